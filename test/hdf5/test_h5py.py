"""h5py of Debian 13, unchanged, with Open MPI 5: `driver="mpio"`, and serial."""

import re
import subprocess

import pytest

from conftest import HERE, mpich

DIRECTORY = "/build/lib/hdf5/plugin"
CONTENT = "/src/hdf5-tests/h5py_content.py"


@pytest.fixture(scope="session")
def debian13():
    # No hang guard: the first time it compiles for minutes.
    result = subprocess.run([HERE / "debian13", "build"], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode == 77:
        pytest.skip(result.stderr.splitlines()[-1])
    if result.returncode != 0:
        pytest.fail(result.stderr, pytrace=False)
    return HERE / "debian13"


@pytest.fixture
def run(debian13, tmp_path):
    """Runs a Python program with so many ranks on so many nodes; None: without mpiexec."""

    def run_it(ranks, *command, nodes=4, ok=True):
        variables = {"HDF5_DRIVER": "dedup", "HDF5_PLUGIN_PATH": DIRECTORY,
                     "LD_PRELOAD": f"{DIRECTORY}/libhdf5_dedup.so",
                     "DEDUP_NODES": nodes, "DEDUP_STORE": f"{tmp_path}/stores/%n", "DEDUP_REPLICATION": 2,
                     "H5PY_CONTENT_DRIVER": "unknown", "PYTHONDONTWRITEBYTECODE": 1, "TMPDIR": tmp_path,
                     "PYTHONPATH": "/src/test/suites/plugins", "COLUMNS": 300}
        if ranks is None:
            del variables["LD_PRELOAD"], variables["DEDUP_NODES"]
        words = [f"{name}={value}" for name, value in variables.items()]
        mpi = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_btl=self,sm",
               "OMPI_MCA_pml=ob1", "OMPI_MCA_mpi_yield_when_idle=1"]
        launcher = [] if ranks is None else [
            "mpiexec.openmpi", "--bind-to", "none", "--oversubscribe", "-n", ranks, "-wdir", tmp_path]
        return mpich.run([debian13, "run", tmp_path, "env", *mpi, *launcher, "env", *words, "python3", *command],
                         ok=ok)

    return run_it


def test_created_and_appended_on_other_numbers_of_ranks(run, tmp_path):
    file = tmp_path / "file.h5"
    run(4, "-m", "mpi4py", CONTENT, "create", file)
    assert file.stat().st_size == 4096  # a placeholder
    run(5, "-m", "mpi4py", CONTENT, "check-created", file)
    run(5, "-m", "mpi4py", CONTENT, "append", file)
    run(4, "-m", "mpi4py", CONTENT, "check-appended", file)


def test_survives_the_loss_of_a_node(run, tmp_path):
    file = tmp_path / "file.h5"
    run(4, "-m", "mpi4py", CONTENT, "create", file)
    subprocess.run(["rm", "-r", tmp_path / "stores" / "n2"], check=True)
    run(3, "-m", "mpi4py", CONTENT, "check-created", file, nodes="n0,n1,n3")


def test_every_mode_of_opening(run, tmp_path):
    run(4, "-m", "mpi4py", CONTENT, "modes", tmp_path / "file.h5")


def test_its_own_parallel_tests(run):
    """What they find is that h5py has no name for the driver, and that there is no atomic mode to be set."""
    tests = "/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi/tests/test_file.py"
    result = run(4, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-p", "mpi_files", tests, "-k",
                 "TestMPI", ok=False)
    assert len(re.findall(r"\b3 failed, 1 passed", result.stdout)) == 4, result.stdout
    failed = set(re.findall(r"FAILED .*::(test_\w+) - (.*)", result.stdout))
    assert {name for name, _ in failed} == {"test_mpio", "test_mpio_append", "test_mpi_atomic"}
    assert all("'unknown' == 'mpio'" in why or "mpi atomicity" in why for _, why in failed), failed


def test_serial(run, tmp_path):
    """No mpi4py, no driver named: HDF5_DRIVER alone."""
    file = tmp_path / "file.h5"
    run(None, "-c", f"import h5py; h5py.File('{file}', 'w')['x'] = list(range(1000))")
    assert file.stat().st_size == 4096
    run(None, "-c", f"import h5py; assert list(h5py.File('{file}')['x']) == list(range(1000))")
