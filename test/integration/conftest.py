"""Fixtures of the integration tests: C and Fortran programs, run on simulated nodes.

Environment:
  DEDUP_BUILD        the build tree (../../build). The tests run with the MPICH it is configured for
  DEDUP_TEST_PREFIX  what names of files begin with. With `ufs:` the programs run on ROMIO's own
                     driver, without dedup-mpiexec: a test that passes there is right itself.
                     Tests of what only dedup: does are skipped then.
  DEDUP_TEST_TIERS   puts a faster tier in front of every store: 1, or the most that each may take
  DEDUP_TEST_MPI     the prefix of an MPICH with the driver inside, in place of the preloaded one.
"""

import collections
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # others load this file by its path
import form  # noqa: E402
from form import BUILD, TEST_BUILD  # noqa: E402

SOURCES = HERE / "programs"
PREFIX = os.environ.get("DEDUP_TEST_PREFIX", "dedup:")
HANG_GUARD_SECONDS = 180

# Compiled once, by hand: tests must not depend on what the build tree was configured with.
C_FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
FORTRAN_FLAGS = ["-O1", "-g", "-Wall", "-Werror"]

# Ranks and nodes: alone, one rank a node, the same number of ranks a node, uneven.
Layout = collections.namedtuple("Layout", "ranks nodes")
LAYOUTS = [Layout(1, 1), Layout(4, 4), Layout(6, 3), Layout(5, 2)]


def layout_name(layout):
    return f"{layout.ranks}ranks-{layout.nodes}nodes"


def cases_of(program):
    """The names of the cases in a C program's table."""
    names = re.findall(r"\bCASE\((\w+)\)", (SOURCES / f"{program}.c").read_text())
    assert names, program
    return names


only_dedup = pytest.mark.skipif(PREFIX != "dedup:", reason="tests what only dedup: does")


def clean_environment():
    """The environment without what would change how programs or the driver behave."""
    drop = ("DEDUP_", "ROMIO_", "HYDRA_", "MPIEXEC", "MPICH_", "SLURM_", "PBS_", "LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return {**kept, **form.environment()}


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


def run_guarded(command, environment, timeout=HANG_GUARD_SECONDS):
    """Runs `command`; a program that hangs is killed, with its children, and fails the test."""
    command = [str(word) for word in command]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_tree(process)
        out, err = process.communicate()
        pytest.fail(f"hangs: {' '.join(command)}\n{out}\n{err}", pytrace=False)
    finally:
        if process.poll() is None:
            kill_tree(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def is_stale(target, source):
    if not target.exists():
        return True
    inputs = [source, *SOURCES.glob("*.h")] if source.suffix == ".c" else [source]
    return any(i.stat().st_mtime > target.stat().st_mtime for i in inputs)


def compile_program(source, directory):
    """The compiled program; only what is older than its sources is compiled."""
    target = directory / source.stem
    name, flags = ("mpicc", C_FLAGS) if source.suffix == ".c" else ("mpifort", FORTRAN_FLAGS)
    compiler = form.command(name)
    with open(directory / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_stale(target, source):
            result = subprocess.run([compiler, *flags, source, "-o", target, "-lpthread", "-rdynamic"],
                                    capture_output=True, text=True, check=False)
            if result.returncode != 0:
                pytest.fail(f"{source} does not compile:\n{result.stderr}", pytrace=False)
    return target


@pytest.fixture(scope="session")
def build():
    if PREFIX == "dedup:" and not (TEST_BUILD / "bin" / "dedup-mpiexec").exists():
        pytest.fail(f"{TEST_BUILD}/bin/dedup-mpiexec is not there: run scripts/setup", pytrace=False)
    return BUILD


def files_below(directory):
    return sorted(str(path) for path in directory.rglob("*") if not path.is_dir())


@pytest.fixture
def make(build, tmp_path):
    """Makes a target; the prefix is tmp_path / "prefix"."""

    def run(target, *variables):
        result = run_guarded(["make", "-C", build, target, f"prefix={tmp_path / 'prefix'}", *variables],
                             os.environ)
        assert result.returncode == 0, result.stderr

    return run


@pytest.fixture(scope="session")
def programs():
    """A function from a program's name to its path; compiles it when needed."""
    directory = BUILD / "test-programs"
    if form.PREFIX:  # a program is linked to the MPICH that it was compiled with
        directory = BUILD / "test-programs-inside" / form.PREFIX.strip("/").replace("/", "-")
    directory.mkdir(parents=True, exist_ok=True)

    def path_of(name):
        for suffix in (".c", ".f90"):
            source = SOURCES / (name + suffix)
            if source.exists():
                break
        else:
            pytest.fail(f"there is no program {name}", pytrace=False)
        if source.suffix == ".f90" and shutil.which(form.command("mpifort")) is None:
            pytest.skip("mpifort, MPICH's Fortran compiler, is not installed")
        return compile_program(source, directory)

    return path_of


@pytest.fixture
def mount_tmpfs():
    """Makes directories small file systems of their own, or changes their size."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs takes root")
    mounted = []

    def mount(path, size, options=""):
        path.mkdir(parents=True, exist_ok=True)
        again = path in mounted
        result = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"{'remount,' if again else ''}size={size}{options}",
             "none", path], capture_output=True, text=True, check=False)
        if result.returncode != 0 and not mounted:
            pytest.skip(f"cannot mount a tmpfs: {result.stderr.strip()}")
        assert result.returncode == 0, result.stderr
        if not again:
            mounted.append(path)

    yield mount
    for path in mounted:
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def bound(site):
    """The directory of a test's file is another one, mounted there: bound.command("umount") takes it away, also from
    who has files of it open, and bound.command("mount") brings it back."""
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    place, other = site.path.parent, site.root / "elsewhere"

    class Bound:
        @staticmethod
        def command(what):
            return f"umount -l {place}" if what == "umount" else f"mount --bind {other} {place}"

        def run(self, what):
            return subprocess.run(self.command(what), shell=True, capture_output=True, check=False)

    other.mkdir()
    bound = Bound()
    if bound.run("mount").returncode != 0:
        pytest.skip("cannot mount")
    yield bound
    while bound.run("umount").returncode == 0:
        pass


@pytest.fixture
def tmpfs(site, mount_tmpfs):
    """The same with the stores of nodes."""
    return lambda node, size, options="": mount_tmpfs(site.store(node), size, options)


@pytest.fixture(params=["host", "job"])
def where(request):
    """A function from the nodes that are there to dedupctl()'s argument."""
    return (lambda nodes: None) if request.param == "host" else list


@pytest.fixture
def start(site):
    """Starts jobs of a test's site; they are ended with the test."""
    jobs = []

    def start_it(*arguments, **keywords):
        jobs.append(site.start(*arguments, **keywords))
        return jobs[-1]

    yield start_it
    for job in jobs:
        if job.process.poll() is None:
            job.kill()


class Stores:
    """Fresh stores of simulated nodes, and a directory for the names of files."""

    def __init__(self, directory):
        self.directory = directory / "stores"
        self.files = directory

    def name(self, file="file"):
        """A file's name for a program, with the driver's prefix."""
        return f"{PREFIX}{self.files}/{file}"

    def node(self, node):
        """The directory of a node's store."""
        return self.directory / node

    def nodes(self):
        return sorted(entry.name for entry in self.directory.iterdir())

    def lose(self, *nodes):
        """Deletes these nodes' stores with everything in them."""
        for node in nodes:
            assert any(self.node(node).iterdir()), f"the store of {node} is empty"
            shutil.rmtree(self.node(node))
            shutil.rmtree(form.fast_tiers(self.directory) / node, ignore_errors=True)

    def bytes(self, node):
        """Bytes in the files of a node's store."""
        return sum(f.stat().st_size for f in self.node(node).rglob("*") if f.is_file())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        item.has_failed = True


@pytest.fixture(autouse=True)
def files_of_failed_tests_stay(request):
    """What the others leave is removed: pytest keeps it until all have run, which is many GiB."""
    directory = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if directory and not getattr(request.node, "has_failed", False):
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def stores(tmp_path):
    return Stores(tmp_path)


@pytest.fixture
def mpirun(build, programs, stores):
    """Runs a program: mpirun(ranks, program, *arguments, nodes=N or "n0,n2").

    program: the name of one of programs/, or a path. env: variables to add. expect: the exit code
    that it must end with, several of which one must be it, or None for any but 0. wrapper: what the program is run under.
    Returns what subprocess.run would.
    """

    def run(ranks, program, *arguments, nodes=1, env=None, expect=0, timeout=HANG_GUARD_SECONDS,
            wrapper=()):
        environment = clean_environment()
        environment.update({name: str(value) for name, value in (env or {}).items()})
        path = programs(program) if isinstance(program, str) else program
        if PREFIX == "dedup:":
            command = [TEST_BUILD / "bin" / "dedup-mpiexec", "--nodes", nodes, "--store",
                       form.tiers(stores.directory)]
        else:
            command = [form.command("mpiexec")]
            library = build / "lib" / "libdedup-yield.so"
            if library.exists():
                command += ["-genv", "LD_PRELOAD", library]
        command += ["-n", ranks, *wrapper, path, *arguments]
        result = run_guarded(command, environment, timeout)
        codes = expect if isinstance(expect, tuple) else (expect,)
        wrong = result.returncode == 0 if expect is None else result.returncode not in codes
        if wrong:
            # The first ranks' words matter most; MPICH's own come last.
            pytest.fail(f"exit code {result.returncode}: {' '.join(result.args)}\n"
                        f"{result.stdout[-3000:]}\n{result.stderr[:6000]}", pytrace=False)
        return result

    return run


@pytest.fixture
def run_case(mpirun, stores):
    """Runs one case of a program on a layout."""

    def run(program, case, layout, **keywords):
        result = mpirun(layout.ranks, program, stores.name(), case, nodes=layout.nodes, **keywords)
        assert result.stdout.splitlines()[-1] == "1 cases passed"
        return result

    return run
