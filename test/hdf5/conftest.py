"""Fixtures of the tests of the HDF5 driver: programs of Open MPI with HDF5 1.14, on simulated nodes.

By hand, since building what they need takes minutes: DEDUP_TEST_HDF5_DRIVER=1. DEDUP_BUILD names the
build tree for MPICH (../../build), in which the driver is built, too.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mpich = load(ROOT / "hdf5-tests" / "conftest.py", "mpich")
mpich.HANG_GUARD_SECONDS = 1800  # testphdf5 takes minutes
build, programs = mpich.build, mpich.programs  # fixtures: the tree for MPICH, its HDF5 programs


def pytest_collection_modifyitems(items):
    if os.environ.get("DEDUP_TEST_HDF5_DRIVER") == "1":
        return
    why = pytest.mark.skip(reason="building HDF5 and the driver takes minutes: DEDUP_TEST_HDF5_DRIVER=1")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(why)


def built(what):
    """A directory that `build` makes; no hang guard, since the first time it compiles for minutes."""
    result = subprocess.run([HERE / "build", what], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode == 77:
        pytest.skip(result.stderr.splitlines()[-1])
    if result.returncode != 0:
        pytest.fail(result.stderr, pytrace=False)
    return pathlib.Path(result.stdout.strip())


class Installation:
    """Open MPI, HDF5 and the driver."""

    def __init__(self):
        self.openmpi = built("openmpi")
        self.hdf5 = built("hdf5")
        self.plugins = built("driver") / "lib" / "hdf5" / "plugin"
        self.preloaded = self.plugins / "libhdf5_dedup.so"

    def compile(self, source, target):
        mpich.run([self.openmpi / "bin" / "mpicc", *FLAGS, "-I", ROOT / "hdf5", "-isystem",
                   self.hdf5 / "include", source, "-o", target, "-L", self.plugins, "-L", self.hdf5 / "lib",
                   f"-Wl,-rpath,{self.plugins}:{self.hdf5}/lib", "-Wl,--as-needed", "-lhdf5_dedup",
                   "-lhdf5"])


@pytest.fixture(scope="session")
def installation():
    return Installation()


@pytest.fixture(scope="session")
def open_programs(installation, tmp_path_factory):
    """The directory of the programs for Open MPI: driver.c, and those of hdf5-tests as they are."""
    directory = tmp_path_factory.mktemp("open-programs")
    for source in (HERE / "driver.c", ROOT / "hdf5-tests" / "parallel.c", ROOT / "hdf5-tests" / "serial.c"):
        installation.compile(source, directory / source.stem)
    return directory


class Bed:
    """Simulated nodes' stores, which programs of both MPIs use, and a directory for files."""

    def __init__(self, installation, build_directory, directory):
        self.installation = installation
        self.mpich = mpich.Bed(build_directory, directory)
        self.directory = directory
        self.stores = self.mpich.stores
        self.stores.mkdir()
        self.file = directory / "file.h5"
        self.dedupctl = build_directory / "bin" / "dedupctl"
        self.lose = self.mpich.lose

    def environment(self, nodes, replication, preload, env):
        names = nodes if isinstance(nodes, int) else ",".join(nodes)
        variables = {
            "HDF5_DRIVER": "dedup", "HDF5_PLUGIN_PATH": self.installation.plugins,
            "DEDUP_NODES": names, "DEDUP_STORE": f"{self.stores}/%n", "DEDUP_REPLICATION": replication,
            # Ranks on one host that share cores with others.
            "OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1,
            "OMPI_MCA_mpi_yield_when_idle": 1, "OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_rmaps_base_oversubscribe": 1, **(env or {})}
        if preload:
            variables["LD_PRELOAD"] = self.installation.preloaded
        return {name: str(value) for name, value in variables.items()}

    def run(self, ranks, *command, nodes=4, replication=2, preload=False, env=None, ok=True):
        """Runs `command` with so many ranks of Open MPI on `nodes`: a number, or a list of names."""
        variables = self.environment(nodes, replication, preload, env)
        words = [word for name, value in variables.items() if not name.startswith("OMPI_")
                 for word in ("-x", f"{name}={value}")]
        mpi = {name: value for name, value in variables.items() if name.startswith("OMPI_")}
        return mpich.run([self.installation.openmpi / "bin" / "mpiexec", "--bind-to", "none", "-n", ranks,
                          "-wdir", self.directory, *words, *command], env=mpi, ok=ok)

    def run_alone(self, *command, env=None, ok=True):
        """The same for a program that no mpiexec starts."""
        variables = self.environment(1, 1, False, env)
        del variables["DEDUP_NODES"]
        return mpich.run([self.installation.openmpi / "bin" / "run", *command], env=variables, ok=ok)


@pytest.fixture
def bed(installation, build, tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("DEDUP_") and name not in ("DEDUP_BUILD", "DEDUP_TEST_HDF5_DRIVER"):
            monkeypatch.delenv(name)
    yield Bed(installation, build, tmp_path)
    shutil.rmtree(tmp_path / "stores", ignore_errors=True)
