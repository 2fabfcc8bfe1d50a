"""HDF5's own parallel tests (testpar), with plain names: some open their files serially, too.

In the default configuration a file that was written in parallel has no data at its name that a
serial open could read. What needs that must fail there, and at just that place.
"""

import collections

import pytest

from conftest import built_suite, by_hand_in

# What the sources print without always ending with a code that says so.
ERRORS = ("*FAILED*", "***FAILED", "Parallel ERROR", "erify failed", "errors found", "failure_mssg")

Program = collections.namedtuple("Program", "name env", defaults=[{}])
SMOKE = {"HDF5TestExpress": "3"}

# These open serially at most what they never open in parallel.
PROGRAMS = [Program("t_mpi"), Program("t_bigio"), Program("t_init_term"),
            Program("t_shapesame", SMOKE)]
# Half a minute each.
BY_HAND_IN = {"t_bigio": "flush-close", "t_shapesame": "default"}
BY_HAND = [Program("t_cache", SMOKE), Program("t_cache_image", SMOKE), Program("t_shapesame")]
OTHERS = {"testphdf5", "t_filters_parallel", "t_pread", "t_pshutdown", "t_prestart", "t_pflush1",
          "t_pflush2"}

# The sub-tests of testphdf5 that open serially what was written in parallel, and where they do.
REOPENING = {"atomicity": "4113 in t_dset.c"}


@pytest.fixture
def suite():
    return built_suite("hdf5")


def run(bed, suite, program, *arguments, env=None, expect=0):
    result = bed.run(4, suite / program, *arguments, all_files=True, env=env, expect=expect)
    if any(words in result.stdout + result.stderr for words in ERRORS) and expect == 0:
        bed.fail("errors", result)
    return result


def run_aborting(bed, suite, said, program, *arguments):
    """Runs a program that aborts. Now and then mpiexec loses what it writes right before: what must
    be `said` may take more than one run."""
    for _ in range(10):
        result = run(bed, suite, program, *arguments, expect=None)
        if said in result.stdout:
            break
    return result


def must_fail_at(bed, suite, place, program, *arguments):
    """Fails the test unless the program gives up at `place`: a line and a file."""
    said = f"failed at line {place}"
    result = run_aborting(bed, suite, said, program, *arguments)
    if result.returncode == 0 or said not in result.stdout:
        bed.fail(f"does not fail at line {place}", result)

def names_of(programs):
    return pytest.mark.parametrize("program", [
        pytest.param(program, id=program.name, marks=by_hand_in(BY_HAND_IN.get(program.name)))
        for program in programs])


@names_of(PROGRAMS)
def test_program(bed, suite, program):
    run(bed, suite, program.name, env=program.env)


@pytest.mark.by_hand
@names_of(BY_HAND)
def test_by_hand(bed, suite, program):
    if program.name == "t_cache_image":
        # It starts itself, by this name, as a serial process that changes the file.
        if not bed.plain_at_close:
            pytest.skip("t_cache_image.c:1089 opens serially what was written in parallel")
        (bed.work / program.name).symlink_to(suite / program.name)
    run(bed, suite, program.name, env=program.env)


def skip_if_unknown(bed):
    """Of what opens a file serially as soon as it is closed."""
    if bed.plain_at_close is None:
        pytest.skip("the file may be written back by then, or not")


def test_testphdf5(bed, suite):
    left_out = [] if bed.plain_at_close else [word for name in REOPENING for word in ("-x", name)]
    result = run(bed, suite, "testphdf5", *left_out)
    assert "PHDF5 tests finished with no errors" in result.stdout


@pytest.mark.parametrize("name", REOPENING)
def test_testphdf5_reopening(bed, suite, name):
    skip_if_unknown(bed)
    if bed.plain_at_close:
        run(bed, suite, "testphdf5", "-o", name)
    else:
        must_fail_at(bed, suite, REOPENING[name], "testphdf5", "-o", name)


def test_filters(bed, suite):
    """Its first tests write in parallel; then one adds to the same file serially."""
    skip_if_unknown(bed)
    if bed.plain_at_close:
        result = run(bed, suite, "t_filters_parallel")
        assert "All Parallel Filters tests passed" in result.stdout
    else:
        must_fail_at(bed, suite, "2801 in t_filters_parallel.c", "t_filters_parallel")


def test_pread(bed, suite):
    if not bed.plain_at_close:
        pytest.skip("t_pread.c:392 writes with POSIX into what was written in parallel")
    run(bed, suite, "t_pread")


def test_shutdown(bed, suite):
    """A file that is still open in MPI_Finalize, in which HDF5 closes it, is whole."""
    run(bed, suite, "t_pshutdown")
    result = run(bed, suite, "t_prestart")
    assert "PASSED" in result.stdout


def test_flush(bed, suite):
    """t_pflush1 ends with a 1 although it is content, without MPI_Finalize: mpiexec may kill a rank
    that was about to end, and says 9 then. What was flushed is whole."""
    result = run_aborting(bed, suite, "PASSED", "t_pflush1")
    if result.returncode not in (1, 9) or "REAL ERROR" in result.stdout \
            or "PASSED" not in result.stdout:
        bed.fail(f"exit code {result.returncode}", result)
    result = run(bed, suite, "t_pflush2")
    assert result.stdout.count("PASSED") == 2


def test_no_program_is_forgotten(suite):
    known = {program.name for program in PROGRAMS + BY_HAND} | OTHERS
    assert known == {path.name for path in suite.iterdir()}
