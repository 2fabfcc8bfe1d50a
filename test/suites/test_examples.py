"""The examples of doc/hdf5.md, built as users would and run on dedup:."""

import pathlib
import platform
import shutil
import subprocess

import pytest

from conftest import HERE, PREFIX, built_suite

EXAMPLES = HERE.parents[1] / "examples" / "libraries"
RANKS = 4


def words_of(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip(result.stderr.strip() or f"{command[0]} says nothing")
    return result.stdout.split()


def build(bed, compiler, source, *words):
    program = bed.directory / "example"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    subprocess.run([compiler, "-Wall", "-Werror", EXAMPLES / source, *words, "-o", program], check=True)
    return program


def check(bed, *command, **how):
    """Runs an example, which writes a file and reads it; twice, since the second replaces it."""
    for _ in range(2):
        result = bed.run(RANKS, *command, bed.name("file"), **how)
        assert result.stdout.split("\n")[0] == f"{RANKS} ranks, 0 wrong"
    if PREFIX == "dedup:":
        content = (bed.work / "file").read_bytes()
        assert (len(content) > RANKS * 100000 * 8) == bed.plain_files, len(content)


def test_hdf5(bed):
    flags = words_of("pkg-config", "--cflags", "--libs", "hdf5-mpich")
    check(bed, build(bed, "mpicc", "hdf5.c", *flags))


def test_hdf5_fortran(bed):
    modules = pathlib.Path("/usr/include/hdf5/mpich")
    if not (modules / "hdf5.mod").exists():
        pytest.skip("HDF5's Fortran modules for MPICH (libhdf5-mpich-dev) are not installed")
    libraries = f"-L/usr/lib/{platform.machine()}-linux-gnu/hdf5/mpich"
    check(bed, build(bed, "mpifort", "hdf5.f90", f"-I{modules}", libraries, "-lhdf5_fortran",
                     "-lhdf5"))


def test_pnetcdf(bed):
    tree = built_suite("pnetcdf")
    check(bed, build(bed, "mpicc", "pnetcdf.c", f"-I{tree}/src/include",
                     tree / "src" / "libs" / ".libs" / "libpnetcdf.a", "-lm"))


def test_netcdf(bed):
    tree = built_suite("netcdf")
    flags = words_of("pkg-config", "--libs", "hdf5-mpich")
    program = build(bed, "mpicc", "netcdf.c", f"-I{tree}/include", tree / "libnetcdf.a", *flags,
                    "-lhdf5_hl", "-lm", "-lz", "-lxml2")
    check(bed, program)


def test_h5py(bed, python_environment):
    check(bed, "/usr/bin/python3", EXAMPLES / "h5py_example.py", env=python_environment)
