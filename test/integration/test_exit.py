"""Files that are open when a program ends by exit(): what it wrote must be there."""

import pytest

from conftest import only_dedup

pytestmark = pytest.mark.form

WAYS = ["early", "late", "object", "destructor", "finalize"]

# mpiexec takes a rank that ends without MPI_Finalize for one that failed if it sees its connection
# close before its exit code, and ends the others, perhaps on their last lines, which are lost then.
# Its exit code may be that of the signal it sent, or 1.
ENDED = (9, 1)


def expected(code):
    """The exit codes of a job whose ranks exit with `code`."""
    return (code, *ENDED)


def assert_closed(result, ranks):
    """Rank 0 said that the file is closed, if it surely lived to do so."""
    assert "dedup:" not in result.stderr, result
    assert ranks > 1 or "closed 0" in result.stdout, result


@pytest.mark.parametrize("ranks", [1, 2])
def test_files_closed_during_exit_are_whole(mpirun, stores, ranks):
    names = {how: stores.name(how) for how in WAYS}
    for how, name in names.items():
        result = mpirun(ranks, "exits", name, "write", how, nodes=ranks, expect=expected(0))
        assert_closed(result, ranks)
    mpirun(ranks, "exits", "check", *names.values(), nodes=ranks)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("how", ["late", "destructor"])
def test_a_reader_that_exits_with_an_error(mpirun, stores, how, ranks):
    mpirun(ranks, "exits", stores.name(), "write", "late", nodes=ranks, expect=expected(0))
    result = mpirun(ranks, "exits", stores.name(), "read", how, nodes=ranks,
                    expect=expected(1))
    assert_closed(result, ranks)


@only_dedup
def test_one_rank_exits_while_others_go_on(mpirun, stores):
    """mpiexec ends the others, and what was committed stands."""
    mpirun(2, "exits", stores.name(), "write", "one", nodes=2, expect=None)
    mpirun(2, "exits", "check", stores.name(), nodes=2)
