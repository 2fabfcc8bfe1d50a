"""Fixtures of the public suites: other people's tests, unmodified, on `dedup:`.

Every test runs in two configurations: the default one, and with dedup_flush=close, in which each
file is a plain file again when it is closed. Environment, beside what `build` reads:
  DEDUP_TEST_CONFIGURATIONS  others, separated by commas: flush-background
  DEDUP_BUILD        the build tree (../../build)
  DEDUP_TEST_PREFIX  `ufs:` runs the suites on ROMIO's own driver, without dedup-mpiexec: what passes
                     there is right itself
  DEDUP_TEST_MPI     the prefix of an MPICH with the driver inside, in place of the preloaded one
"""

import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
NODES = 4
HANG_GUARD_SECONDS = 1800


def load_integration():
    """The integration tests' conftest, for what it knows of running programs."""
    path = HERE.parent / "integration" / "conftest.py"
    spec = importlib.util.spec_from_file_location("integration", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


integration = load_integration()
PREFIX = integration.PREFIX
INSIDE = integration.form.PREFIX
ALL = {"default": {},
       "flush-close": {"DEDUP_FLUSH": "close"},
       "flush-background": {"DEDUP_FLUSH": "background", "DEDUP_FLUSHED": "keep", "DEDUP_FETCH": "open"}}
IN_CI = "default,flush-close"
if PREFIX == "dedup:":
    CONFIGURATIONS = {name: {"DEDUP_REPLICATION": "2", **ALL[name]}
                      for name in os.environ.get("DEDUP_TEST_CONFIGURATIONS", IN_CI).split(",")}
else:
    CONFIGURATIONS = {PREFIX.rstrip(":"): {}}


def pytest_configure(config):
    config.addinivalue_line("markers", "by_hand: takes too long for CI; run with -m by_hand")
    config.addinivalue_line("markers", "by_hand_in(configuration): the same in that configuration; CI "
                                       "runs it in the other one")


def pytest_collection_modifyitems(config, items):
    """Tests by_hand are not run unless -m says otherwise."""
    for item in items:
        for mark in item.iter_markers("by_hand_in"):
            assert mark.args[0] in ("default", "flush-close"), item.nodeid
            if item.callspec.params["bed"] == mark.args[0]:
                item.add_marker(pytest.mark.by_hand)
    if config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("by_hand")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def by_hand_in(configuration):
    """The marks of a test that takes so long that CI runs it in the other configuration alone: what a
    close writes does not depend on how the data came in. None for None."""
    return [pytest.mark.by_hand_in(configuration)] if configuration else []


@functools.lru_cache(maxsize=None)
def built(*arguments):
    """What `build` prints and says; no hang guard, since the first time it compiles for minutes."""
    return subprocess.run([HERE / "build", *arguments], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def built_suite(*arguments):
    """The directory of a built suite; skips the test if its source cannot be had."""
    result = built(*arguments)
    if result.returncode == 77:
        pytest.skip(result.stderr.splitlines()[-1])
    if result.returncode != 0:
        pytest.fail(result.stderr, pytrace=False)
    return pathlib.Path(result.stdout.strip())


class Bed:
    """Four simulated nodes with fresh stores, a directory for files, and a configuration."""

    def __init__(self, configuration, directory):
        self.configuration = configuration
        self.directory = directory
        self.stores = directory / "stores"
        self.work = directory / "work"
        self.work.mkdir()

    @property
    def plain_files(self):
        """Whether what was written is a plain file at its name once the program has ended."""
        return self.configuration != "default"

    @property
    def plain_at_close(self):
        """Whether it is one when the close returns. None: as it comes."""
        return None if self.configuration == "flush-background" else self.plain_files

    def name(self, file):
        """A file's name with the driver's prefix."""
        return f"{PREFIX}{self.work}/{file}"

    def environment(self, env=None):
        variables = {**integration.clean_environment(), **CONFIGURATIONS[self.configuration]}
        if not INSIDE:
            # Ranks that wait yield, always: with two on two cores and anything else running, it takes
            # minutes otherwise.
            variables["DEDUP_YIELD"] = "1"
        variables.update({name: str(value) for name, value in (env or {}).items()})
        return variables

    def launcher(self, ranks, all_files=False, directory=None):
        """The words before a program's name. The program runs in `directory`, or in self.work."""
        if PREFIX == "dedup:":
            words = [integration.BUILD / "bin" / "dedup-mpiexec", "--nodes", NODES, "--store",
                     self.stores]
            if all_files:
                words += ["--all-files"]
        else:
            words = [integration.form.command("mpiexec")]
            library = integration.BUILD / "lib" / "libdedup-yield.so"
            if library.exists() and not INSIDE:
                words += ["-genv", "LD_PRELOAD", library]
            if all_files:
                words += ["-genv", "ROMIO_FSTYPE_FORCE", PREFIX]
        words += ["-wdir", directory or self.work, "-n", ranks]
        return [str(word) for word in words]

    def run(self, ranks, program, *arguments, all_files=False, env=None, expect=0):
        """Runs a program; fails the test unless it ends with the code `expect` (None: any).

        all_files: puts every file of the program on the driver, whatever its name.
        """
        return self.run_command([*self.launcher(ranks, all_files), program, *arguments], env, expect)

    def run_command(self, command, env=None, expect=0):
        """The same for a whole command line."""
        result = integration.run_guarded(command, self.environment(env), HANG_GUARD_SECONDS)
        if expect is not None and result.returncode != expect:
            self.fail(f"exit code {result.returncode}", result)
        return result

    def fail(self, why, result):
        """Fails the test and shows what the program wrote; its first ranks' words matter most."""
        pytest.fail(f"{why}: {' '.join(result.args)}\n{result.stdout[-3000:]}\n"
                    f"{result.stderr[:6000]}", pytrace=False)


@pytest.fixture(params=CONFIGURATIONS)
def bed(request, tmp_path):
    launcher = integration.BUILD / "bin" / "dedup-mpiexec"
    if PREFIX == "dedup:" and not launcher.exists():
        pytest.fail(f"{launcher} is not there: run scripts/setup", pytrace=False)
    yield Bed(request.param, tmp_path)
    # pytest keeps the directories of some runs; these are large.
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="session")
def python_packages():
    """The directory that has mpi4py, its tests, and h5py, all for MPICH."""
    builder = HERE.parents[1] / "hdf5-tests" / "build-h5py"
    result = subprocess.run([builder], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode == 77:
        pytest.skip(result.stderr.splitlines()[-1])
    if result.returncode != 0:
        pytest.fail(result.stderr, pytrace=False)
    return pathlib.Path(result.stdout.strip())


@pytest.fixture
def python_environment(bed, python_packages):
    """What Python programs find them with."""
    return {"PYTHONPATH": f"{python_packages}:{HERE / 'plugins'}", "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": bed.work}
