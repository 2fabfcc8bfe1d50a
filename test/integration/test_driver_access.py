"""What MPI_File_* functions do on dedup: files, on several layouts of ranks and nodes.

The cases are in C, see programs/. With DEDUP_TEST_PREFIX=ufs: they run on ROMIO's own driver.
"""

import pytest

from conftest import LAYOUTS, cases_of, layout_name, only_dedup
from form import BEYOND_DATALOOP

PROGRAMS = ["modes", "data", "views", "nonblocking", "handles", "visibility",
            "leases", "small_writes"]
CASES = [(program, case) for program in PROGRAMS for case in cases_of(program)]


def takes_long(case):
    return case.startswith("more_")


def quick_cases(program):
    return [case for case in cases_of(program) if not takes_long(case) and case not in BEYOND_DATALOOP]


# Each case by itself on one layout, and what takes long on two; on the others all other cases of a program in one job.
BY_CASE = [(program, case, LAYOUTS[1]) for program, case in CASES] + [
    (program, case, LAYOUTS[3]) for program, case in CASES if takes_long(case)]
IN_ONE_JOB = [LAYOUTS[0], LAYOUTS[2], pytest.param(LAYOUTS[3], marks=[pytest.mark.long])]


@pytest.mark.parametrize("program, case, layout", [
    pytest.param(program, case, layout, id=f"{program}-{case}-{layout_name(layout)}",
                 marks=[pytest.mark.long] if takes_long(case) else []) for program, case, layout in BY_CASE])
def test_case(run_case, program, case, layout):
    run_case(program, case, layout)


@pytest.mark.form
@pytest.mark.parametrize("layout", IN_ONE_JOB, ids=layout_name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_cases_in_one_job(mpirun, stores, program, layout):
    """What one case leaves behind, in the job or in the stores, is no other's trouble."""
    cases = quick_cases(program)
    result = mpirun(layout.ranks, program, stores.name(), *cases, nodes=layout.nodes)
    assert result.stdout.splitlines()[-1] == f"{len(cases)} cases passed"


OTHER_HINTS = [
    {"DEDUP_REPLICATION": "1"},
    {"DEDUP_REPLICATION": "9"},  # more than there are nodes
    {"DEDUP_CHUNK_SIZE": "512", "DEDUP_THRESHOLD": "4"},
    {"DEDUP_REPLICATION": "3", "DEDUP_EXCHANGE": "put"},
    {"DEDUP_CHUNK_SIZE": "1 MiB"},
    {"DEDUP_MODE": "local"},
    {"DEDUP_MODE": "none", "DEDUP_EXCHANGE": "put"},
    {"DEDUP_BUFFER": "1 MiB", "DEDUP_PARTNERS": "ring", "DEDUP_FSYNC": "never"},
]
WITH_EACH = [("data", "overwriting"), ("data", "large_blocks"), ("data", "zeros"),
             ("views", "random_views")]
IN_TURN = [("visibility", "random_operations"), ("visibility", "random_operations_on_two_handles")]


@pytest.mark.parametrize("program, case, environment", [
    pytest.param(program, case, environment, id="-".join([program, case] + [
        f"{k.removeprefix('DEDUP_').lower()}={v}" for k, v in environment.items()]))
    for number, environment in enumerate(OTHER_HINTS)
    for program, case in [*WITH_EACH, IN_TURN[number % len(IN_TURN)]]])
@only_dedup
def test_case_with_other_hints(run_case, program, case, environment):
    run_case(program, case, LAYOUTS[3], env=environment)


@pytest.mark.form
@pytest.mark.parametrize("writers", LAYOUTS, ids=layout_name)
def test_reopening_with_another_number_of_ranks(mpirun, stores, writers):
    name = stores.name()
    # A job of one rank reaches one node's store, so all must have everything.
    env = {"DEDUP_REPLICATION": 4}
    mpirun(writers.ranks, "reopen", "write", name, nodes=writers.nodes, env=env)
    for ranks in (1, 3, 4, 7):
        mpirun(ranks, "reopen", "check", name, nodes=4, env=env)
    mpirun(2, "reopen", "patch", name, nodes=4, env=env)
    for ranks in (1, 5):
        mpirun(ranks, "reopen", "check-patched", name, nodes=4, env=env)


@pytest.mark.form
@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_name)
@pytest.mark.parametrize("program", ["fortran_mpi", "fortran_f08"])
def test_fortran(mpirun, stores, program, layout):
    result = mpirun(layout.ranks, program, stores.name(), nodes=layout.nodes)
    assert result.stdout.split() == ["Fortran", "passed"]


@pytest.mark.long
@only_dedup
def test_as_many_files_where_threads_may_call_at_once(run_case):
    """Where other threads may be in calls too, a dump finds communicators that it has for itself."""
    run_case("handles", "more_files_open_at_once", LAYOUTS[3], env={"CHECK_THREADS": "1"},
             timeout=900)


# ---- Names ----------------------------------------------------------------------------------------


@pytest.mark.form
@pytest.mark.parametrize("file", ["with space", "ünïcode", "a%nb", "x" * 255, "deep/er/../file"],
                         ids=["space", "unicode", "percent", "long", "dots"])
@only_dedup
def test_names(mpirun, stores, file):
    (stores.files / "deep" / "er").mkdir(parents=True)
    mpirun(3, "reopen", "write", stores.name(file), nodes=2)
    mpirun(2, "reopen", "check", stores.name(file), nodes=2)


@pytest.mark.form
@only_dedup
def test_relative_names_are_those_of_the_working_directory(mpirun, stores):
    for directory in ("here", "there"):
        (stores.files / directory).mkdir()
    in_here, in_there = ([["env", "-C", stores.files / d] for d in ("here", "there")])
    mpirun(3, "reopen", "write", "dedup:file", nodes=3, wrapper=in_here)
    mpirun(3, "reopen", "check", stores.name("here/file"), nodes=3)
    mpirun(3, "reopen", "check", "dedup:../here/./file", nodes=3, wrapper=in_there)
    # It says that there is no such file, which mpiexec may lose when the job aborts.
    result = mpirun(3, "reopen", "check", "dedup:file", nodes=3, wrapper=in_there, expect=None)
    assert result.returncode != 0
    assert not list((stores.files / "there").iterdir())


@pytest.mark.form
@pytest.mark.parametrize("program", PROGRAMS)
@only_dedup
def test_every_file_on_the_driver(mpirun, stores, program):
    """As with --all-files: names without a prefix, no data on the real file system."""
    mpirun(4, program, stores.files / "plain", *quick_cases(program), nodes=2,
           env={"ROMIO_FSTYPE_FORCE": "dedup:"})
    for path in stores.files.glob("plain*"):
        content = path.read_bytes()
        assert not content or content[8:].startswith(b"\nThis is a placeholder."), path


@pytest.mark.form
@pytest.mark.parametrize("program", PROGRAMS)
@only_dedup
def test_other_files_are_served_as_ever(mpirun, stores, program):
    """The library brings its own ROMIO, which must be as good as the one it hides."""
    mpirun(4, program, f"ufs:{stores.files}/plain", *quick_cases(program), nodes=2)
    assert list(stores.files.glob("plain*"))


@only_dedup
def test_visibility_by_mpis_own_rule(mpirun, stores):
    env = {"DEDUP_VISIBILITY": "sync"}
    mpirun(4, "reopen", "write", stores.name(), nodes=4, env=env)
    mpirun(3, "reopen", "patch", stores.name(), nodes=3, env=env)
    mpirun(5, "reopen", "check-patched", stores.name(), nodes=3, env=env)
