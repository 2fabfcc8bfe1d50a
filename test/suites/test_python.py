"""mpi4py's tests of MPI-IO, and h5py's of its parallel files."""

import re

from conftest import NODES

PYTHON = "/usr/bin/python3"


def test_mpi4py(bed, python_packages, python_environment):
    # They name their files themselves.
    tests = python_packages / "mpi4py-tests" / "runtests.py"
    result = bed.run(NODES, PYTHON, tests, "--no-builddir", "-i", "test_io", "-i", "test_file",
                     all_files=True, env=python_environment)
    ran = re.findall(r"Ran (\d+) tests in", result.stderr)
    assert len(ran) == NODES and all(int(number) >= 42 for number in ran), result.stderr


def test_h5py(bed, python_packages, python_environment):
    result = bed.run(NODES, PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
                     "mpi_files", python_packages / "h5py" / "tests", "-k", "TestMPI",
                     all_files=True, env=python_environment)
    assert len(re.findall(r"\b4 passed", result.stdout)) == NODES, result.stdout
