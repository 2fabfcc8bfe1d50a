"""Fixtures of the HDF5 tests: programs that use HDF5 on `dedup:` names, on simulated nodes.

DEDUP_BUILD names the build directory (../build by default).
"""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's: h5py is built for it
HANG_GUARD_SECONDS = 120


def kill_tree(process):
    """Kills `process`, a session leader, and all its descendants, also those in other sessions."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        parents[int(entry.parent.name)] = int(fields[1])
    doomed = {process.pid}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in doomed} - doomed
        doomed |= more
        grown = bool(more)
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def run(command, env=None, ok=True):
    """Runs `command` and returns what it wrote, as CompletedProcess; with `ok`, it must succeed."""
    command = [str(word) for word in command]
    process = subprocess.Popen(command, env={**os.environ, **(env or {})}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=HANG_GUARD_SECONDS)
    except subprocess.TimeoutExpired:
        kill_tree(process)
        out, err = process.communicate()
        pytest.fail(f"hangs: {' '.join(command)}\n{out}\n{err}")
    if ok and process.returncode != 0:
        pytest.fail(f"exit code {process.returncode}: {' '.join(command)}\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture(scope="session")
def build():
    directory = pathlib.Path(os.environ.get("DEDUP_BUILD", HERE.parent / "build")).resolve()
    if not (directory / "bin" / "dedup-mpiexec").exists():
        pytest.fail(f"{directory}/bin/dedup-mpiexec is not there: run scripts/setup")
    return directory


class Bed:
    """Simulated nodes with their stores below one directory."""

    def __init__(self, build_directory, directory):
        self.build = build_directory
        self.stores = directory / "stores"
        self.directory = directory
        self.file = f"dedup:{directory}/file.h5"

    def run(self, ranks, *command, nodes=4, replication=2, env=None, ok=True):
        """Runs `command` with so many ranks on `nodes`: a number, or a list of names."""
        names = nodes if isinstance(nodes, int) else ",".join(nodes)
        return run([self.build / "bin" / "dedup-mpiexec", "--nodes", names, "--store", self.stores,
                    "-n", ranks, *command],
                   env={"DEDUP_REPLICATION": str(replication), **(env or {})}, ok=ok)

    def lose(self, node):
        """Deletes the store of `node` and all that is in it."""
        assert any((self.stores / node).iterdir())
        shutil.rmtree(self.stores / node)


@pytest.fixture
def bed(build, tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("DEDUP_") and name != "DEDUP_BUILD":
            monkeypatch.delenv(name)
    return Bed(build, tmp_path)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The directory of the compiled C programs, each named after its source."""
    directory = tmp_path_factory.mktemp("programs")
    flags = run(["pkg-config", "--cflags", "--libs", "hdf5-mpich"], ok=False)
    if flags.returncode != 0:
        pytest.skip("HDF5 for MPICH (libhdf5-mpich-dev) is not installed")
    for source in sorted(HERE.glob("*.c")):
        run(["mpicc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", source,
             "-o", directory / source.stem, *flags.stdout.split()])
    return directory


@pytest.fixture(scope="session")
def h5py_environment():
    """What a Python process needs in its environment to find h5py and mpi4py for MPICH."""
    # No hang guard: the first time this compiles for minutes.
    built = subprocess.run([HERE / "build-h5py"], text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if built.returncode == 77:
        pytest.skip(built.stderr.splitlines()[-1])
    if built.returncode != 0:
        pytest.fail(built.stderr)
    return {"PYTHONPATH": built.stdout.strip(), "PYTHONDONTWRITEBYTECODE": "1"}
