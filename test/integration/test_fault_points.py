"""A fault at the n-th call of one rank to its stores and real paths, for every n until a run gets
through: programs/faults.c, many points in one job. What happens when the process is killed there,
and its node loses power, is tested without MPI in test/faults.

DEDUP_TEST_EVERY_POINT=1 tries every n; without it a part of them, as CI has time for.
"""

import os
import re

import pytest

from conftest import only_dedup

# store::Fault, in its order. Killing takes a job of its own: test_recovery_kill.py.
FAULTS = ["EIO", "EIO though done", "ENOSPC", "full", "EROFS", "EMFILE", "EINTR", "short"]
PLAN_BYTES = 256


@only_dedup
@pytest.mark.long
@pytest.mark.parametrize("rank", range(2))
@pytest.mark.parametrize("fault", FAULTS)
def test_every_call(mpirun, stores, tmp_path, fault, rank):
    ranks = 2
    control = tmp_path / "control"
    control.mkdir()
    for r in range(ranks):
        (control / f"plan.{r}").write_bytes(bytes(PLAN_BYTES))
    files = tmp_path / "files"
    files.mkdir()
    stores.files = files
    stores.directory = files / "stores"
    # Other points for each fault and rank.
    step = 1 if os.environ.get("DEDUP_TEST_EVERY_POINT") else 17
    first = 1 if step == 1 else 1 + (FAULTS.index(fault) * 3 + rank * 5) % step
    result = mpirun(ranks, "faults", stores.name(), control / "plan", rank,
                    FAULTS.index(fault) + 1, first, step, nodes=ranks,
                    env={"DEDUP_TEST_FAULT": control / "plan"}, timeout=1800)
    said = re.search(r"(\d+) points, (\d+) of them", result.stdout)
    print(f"{fault} on rank {rank}: {said[0]} without an error")
    assert int(said[1]) > 0
