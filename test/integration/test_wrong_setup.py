"""What users get wrong before the driver has begun: each is told in one line that says what to do."""

import pathlib
import subprocess
import tempfile

import pytest

import form
from conftest import C_FLAGS, SOURCES, only_dedup

pytestmark = only_dedup

NOT_PRELOADED = pytest.mark.skipif(form.PREFIX is not None,
                                   reason="the driver is inside of MPICH: nothing is preloaded")

# As Debian's mpi4py: a program that has Open MPI's library, and gets MPICH's functions.
OPEN_MPI = "int ompi_mpi_comm_world;\n"
PROGRAM = "extern int ompi_mpi_comm_world;\nint* unused = &ompi_mpi_comm_world;\n"


@NOT_PRELOADED
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_program_for_another_mpi(mpirun, stores, tmp_path, ranks):
    (tmp_path / "mpi.c").write_text(OPEN_MPI)
    (tmp_path / "program.c").write_text(PROGRAM)
    library = tmp_path / "libmpi.so.40"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "mpi.c", "-o", library], check=True)
    program = tmp_path / "hints"
    subprocess.run([form.command("mpicc"), *C_FLAGS, SOURCES / "hints.c", tmp_path / "program.c",
                    library, f"-Wl,-rpath,{tmp_path}", "-o", program], check=True)
    result = mpirun(ranks, program, "open", stores.name(), "close", nodes=ranks, expect=1)
    told = [line for line in result.stderr.splitlines() if line.startswith("dedup:")]
    assert len(told) == 1 and f"Open MPI ({library})" in told[0] and "mpicc.mpich" in told[0], result
    assert "open" not in result.stdout


@NOT_PRELOADED
@pytest.mark.parametrize("version, told", [
    ("MPICH Version:      3.4.3\\nMPICH Release date: x", ['"MPICH Version:      3.4.3"', "build the driver again"]),
    ("Intel(R) MPI Library 2021.11 for Linux* OS\\n", ['"Intel(R) MPI Library 2021.11 for Linux* OS"', "doc/mpich.md"]),
    ("MVAPICH Version:  3.0\\n", ['"MVAPICH Version:  3.0"', "doc/mpich.md"]),
])
def test_another_mpi_of_the_same_abi(mpirun, stores, tmp_path, version, told):
    """As such a library says which it is, before MPI_Init does anything."""
    library = tmp_path / "libmpi.so.12"
    (tmp_path / "mpi.c").write_text(
        "#include <string.h>\nint PMPI_Get_library_version(char* text, int* length) {\n"
        f'  strcpy(text, "{version}"); *length = (int)strlen(text); return 0; }}\n')
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "mpi.c", "-o", library], check=True)
    program = tmp_path / "hints"
    subprocess.run([form.command("mpicc"), *C_FLAGS, SOURCES / "hints.c", "-Wl,--no-as-needed", library,
                    f"-Wl,-rpath,{tmp_path}", "-o", program], check=True)
    result = mpirun(3, program, "open", stores.name(), "close", nodes=3, expect=1)
    # Each rank says it: before MPI_Init none knows of the others.
    (line,) = {line for line in result.stderr.splitlines() if line.startswith("dedup:")}
    assert all(part in line for part in told), result
    assert not result.stdout


# scripts/setup does not install it: Open MPI's mpicc and mpiexec would be the system's then.
MPI4PY = pathlib.Path("/usr/lib/python3/dist-packages/mpi4py")


@NOT_PRELOADED
@pytest.mark.skipif(not MPI4PY.exists(), reason="Debian's python3-mpi4py is not installed")
def test_mpi4py_of_debian(mpirun, stores):
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_rank())"
    result = mpirun(3, pathlib.Path("/usr/bin/python3"), "-c", program, nodes=3, expect=1)
    told = result.stderr.splitlines()
    assert len(told) == 1 and "built for Open MPI (/" in told[0] and "mpi4py" in told[0], result
    assert not result.stdout


def test_an_unknown_variable_gets_one_warning(mpirun, stores):
    result = mpirun(4, "hints", "open", stores.name(), "open", stores.name("other"), nodes=2,
                    env={"DEDUP_REPLICATON": 3, "DEDUP_REPLICATION": 1})
    assert result.stderr.count("DEDUP_") == 1, result
    assert 'unknown variable "DEDUP_REPLICATON"' in result.stderr


@pytest.fixture
def short():
    """A directory with a short name: MPI has no room for long ones in its errors."""
    with tempfile.TemporaryDirectory(prefix="d") as name:
        yield pathlib.Path(name)


def test_a_forgotten_store_is_named(mpirun, stores, short):
    used, other = short / "used", short / "made" / "for" / "this"
    mpirun(2, "hints", "set", f"dedup_store={used}/%n", "open", stores.name(), "write", 1000,
           "close", nodes=2)
    result = mpirun(2, "hints", "set", f"dedup_store={other}/%n", "open", stores.name(), nodes=2)
    lines = [line for line in result.stdout.splitlines() if line.startswith("open ")]
    assert len(lines) == 2
    for line in lines:
        assert f"it is in {used}/%n of nodes n0, n1: set dedup_store" in line, line
    assert [sorted(path.name for path in store.iterdir()) for store in (used, other)] == [
        ["n0", "n1"], ["n0", "n1"]]
