"""Files that are open when a program ends by exit(): what it wrote must be there."""

import pytest

from conftest import only_dedup

pytestmark = pytest.mark.form

# mpiexec kills who has not called MPI_Finalize when another rank has ended, perhaps on its last lines.
KILLED = 9

WAYS = ["early", "late", "object", "destructor", "finalize"]


def assert_closed(result):
    """Rank 0 said that the file is closed, if it lived to do so."""
    assert result.returncode == KILLED or "closed 0" in result.stdout, result


@pytest.mark.parametrize("ranks", [1, 2])
def test_files_closed_during_exit_are_whole(mpirun, stores, ranks):
    names = {how: stores.name(how) for how in WAYS}
    for how, name in names.items():
        result = mpirun(ranks, "exits", name, "write", how, nodes=ranks, expect=(0, KILLED))
        assert_closed(result)
        assert "dedup:" not in result.stderr, (how, result)
    mpirun(ranks, "exits", "check", *names.values(), nodes=ranks)


@pytest.mark.parametrize("how", ["late", "destructor"])
def test_a_reader_that_exits_with_an_error(mpirun, stores, how):
    mpirun(2, "exits", stores.name(), "write", "late", nodes=2, expect=(0, KILLED))
    result = mpirun(2, "exits", stores.name(), "read", how, nodes=2, expect=(1, KILLED))
    assert_closed(result)
    assert "dedup:" not in result.stderr, result


@only_dedup
def test_one_rank_exits_while_others_go_on(mpirun, stores):
    """mpiexec ends the others, and what was committed stands."""
    mpirun(2, "exits", stores.name(), "write", "one", nodes=2, expect=None)
    mpirun(2, "exits", "check", stores.name(), nodes=2)
