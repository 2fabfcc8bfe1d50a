"""A bit that changes on its way from rank to rank: an error on all ranks, or the end of the job, and
never other data."""

import pytest

from conftest import only_dedup

pytestmark = only_dedup

# The rank that sends, and how many of its messages are tried, each in a job of its own.
SENT = {"Send": (3, 2), "Isend": (1, 12), "Bcast": (0, 3), "Alltoall": (2, 3), "Allgather": (0, 1)}


def try_each(mpirun, stores, function, rank, most, nodes, env):
    """How often it was noticed."""
    noticed = 0
    for number in range(1, most + 1):
        result = mpirun(4, "flips", stores.name(f"file{number}"), function, rank, number, nodes=nodes,
                        env=env, expect=(0, 1))
        if result.returncode == 1:
            # MPI_Abort, where nobody knows what the others go on by; not for what was read back.
            assert "written" not in result.stdout and "flips.c" not in result.stderr, result
            noticed += 1
        elif "flipped 1" in result.stdout:
            # What only says which chunks may have twins is not checked: any answer will do.
            noticed += "written 0" not in result.stdout
    return noticed


@pytest.mark.parametrize("function", SENT)
def test_what_mpi_carries(mpirun, stores, function):
    assert try_each(mpirun, stores, function, *SENT[function], 2, {}) > 0


def test_units_and_parities(mpirun, stores):
    """What is said of them ends the job; they themselves are found to be others, and make no stripe."""
    everything = {"DEDUP_REDUNDANCY": "xor:2", "DEDUP_REPLICATION": 8}
    assert try_each(mpirun, stores, "Isend", 1, 24, 4, everything) > 0
