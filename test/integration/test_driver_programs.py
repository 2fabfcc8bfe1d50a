"""Threads, error handlers and large counts."""

import errno
import shutil

import pytest

from conftest import LAYOUTS, layout_name, only_dedup
from stores import fault_library

pytestmark = pytest.mark.form


@pytest.mark.parametrize("ranks, nodes", [(1, 1), (3, 2), (4, 4)])
def test_threads(mpirun, stores, ranks, nodes):
    mpirun(ranks, "thread_multiple", stores.name(), 4, 2, nodes=nodes)


@pytest.mark.parametrize("ranks, nodes", [(1, 1), (3, 2), (4, 4)])
def test_a_thread_that_writes_while_another_commits(mpirun, stores, ranks, nodes):
    result = mpirun(ranks, "thread_commit", stores.name(), nodes=nodes)
    assert "thread_commit: ok" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("ranks, nodes, threads, rounds", [(4, 2, 8, 4), (6, 3, 4, 3)])
def test_many_threads(mpirun, stores, ranks, nodes, threads, rounds):
    mpirun(ranks, "thread_multiple", stores.name(), threads, rounds, nodes=nodes, timeout=900)


# MPICH 4.0.2 itself aborts when a file with a user-defined handler of MPI_FILE_NULL is closed.
@only_dedup
@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_name)
def test_error_handlers(mpirun, stores, layout):
    result = mpirun(layout.ranks, "errhandlers", stores.name(), nodes=layout.nodes)
    assert "errhandlers: ok" in result.stdout


@pytest.mark.parametrize("case", ["fatal-open", "fatal-inherited", "fatal-file"])
def test_fatal_error_handlers(mpirun, stores, tmp_path, case):
    # mpiexec loses what a job writes right before it aborts: now and then, that of 4.2 always.
    said = tmp_path / "said"
    result = mpirun(2, "errhandlers", stores.name(), case, nodes=2, expect=None,
                    wrapper=["sh", "-c", 'exec "$@" 2>>"$0"', said])
    assert result.returncode != 3, "the error came back"
    text = said.read_text()
    assert "Abort(" in text or "Fatal error" in text, text


def failing_store(rank):
    """Variables with which nothing can be flushed to one rank's store, which must have the file."""
    return {"LD_PRELOAD": fault_library(), "FAULT_RANK": rank, "FAULT_CALL": 1,
            "FAULT_ONLY": "fdatasync", "FAULT_ERROR": errno.EIO}


@pytest.mark.parametrize("rank", [0, 2])
@only_dedup
def test_close_that_fails(mpirun, stores, rank):
    mpirun(3, "reopen", "write", stores.name(), nodes=3)
    result = mpirun(3, "errhandlers", stores.name(), "failing-close", nodes=3,
                    env=failing_store(rank))
    assert "errhandlers: ok" in result.stdout
    # A program that does not look at what close returns has this line.
    said = [line for line in result.stderr.splitlines() if "close could not commit" in line]
    assert len(said) == 1, result.stderr
    assert stores.name().removeprefix("dedup:") in said[0]


@only_dedup
def test_arguments_that_differ_are_an_error_on_all_ranks(mpirun, stores):
    mpirun(3, "differing", stores.name(), nodes=2, timeout=120)


# ---- Under valgrind -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def valgrind():
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    return ["valgrind", "--quiet", "--error-exitcode=99", "--num-callers=30",
            "--fair-sched=yes"]


@pytest.mark.long
@pytest.mark.parametrize("case", [(), ("failing-close",)], ids=["returning", "failing-close"])
@only_dedup
def test_error_handlers_touch_no_freed_memory(mpirun, stores, valgrind, case):
    env = failing_store(1) if case else {}
    mpirun(2, "reopen", "write", stores.name(), nodes=2)
    result = mpirun(2, "errhandlers", stores.name(), *case, nodes=2, env=env, wrapper=valgrind,
                    timeout=600)
    assert "errhandlers: ok" in result.stdout


# ---- Large counts ---------------------------------------------------------------------------------


@only_dedup
@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_name)
def test_large_counts_of_small_data(mpirun, stores, layout):
    result = mpirun(layout.ranks, "large_count", stores.name(), "small", nodes=layout.nodes)
    assert "large_count: ok" in result.stdout


@only_dedup
@pytest.mark.long
def test_large_counts(mpirun, stores):
    result = mpirun(2, "large_count", stores.name(), nodes=2, timeout=600)
    assert "large_count: ok" in result.stdout
