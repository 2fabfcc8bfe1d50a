"""A bit that changes on its way from rank to rank: an error on all ranks, or the end of the job, and
never other data."""

import pytest

from conftest import only_dedup

pytestmark = only_dedup

# The rank that sends, and how many of its messages are tried, each in a job of its own.
SENT = {"Send": (3, 2), "Isend": (1, 12), "Bcast": (0, 3), "Alltoall": (2, 3), "Allgather": (0, 1)}


@pytest.mark.parametrize("function", SENT)
def test_what_mpi_carries(mpirun, stores, function):
    rank, most = SENT[function]
    noticed = 0
    for number in range(1, most + 1):
        result = mpirun(4, "flips", stores.name(f"file{number}"), function, rank, number, nodes=2,
                        expect=(0, 1))
        if result.returncode == 1:
            # MPI_Abort, where nobody knows what the others go on by; not for what was read back.
            assert "written" not in result.stdout and "flips.c" not in result.stderr, result
            noticed += 1
        elif "flipped 1" in result.stdout:
            # What only says which chunks may have twins is not checked: any answer will do.
            noticed += "written 0" not in result.stdout
    assert noticed > 0
