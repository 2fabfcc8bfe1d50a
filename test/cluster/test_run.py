"""dedup-run: hosts are lost, and the job goes on unattended to the result of an undisturbed run, bit by bit."""

import pytest

from cluster_site import wait_until
from stores import BUILD

HEAT3D = BUILD / "examples" / "heat3d" / "heat3d"
HOSTS = ["h0", "h1", "h2", "h3"]
SIZE, STEPS, EVERY = 36, 60, 15

# What a run does more than the program: in the first one a host ends in the middle of a commit, in the second
# one the program waits.
RUNS = """
[ "$DEDUP_RUN" = 1 ] || unset DEDUP_TEST_KILL
[ "$DEDUP_RUN" != 2 ] || set -- "$@" --hang-at 50
exec "$@"
"""


@pytest.fixture
def heat(make_site):
    """A site with a program, and the undisturbed result."""
    if not HEAT3D.exists():
        pytest.skip("heat3d was not built: HDF5 for MPICH is missing")
    site = make_site(HOSTS)
    undisturbed = site.root / "undisturbed"
    words = [HEAT3D, "--size", SIZE, "--steps", STEPS, "--result", undisturbed]
    job = site.start_program(words, ["h0", "h1"], 2, {}).finish()
    assert job.code == 0, f"{job}"
    return site, undisturbed.read_bytes()


def test_a_host_is_killed_and_another_one_vanishes(heat):
    """A spare takes the first one's place, and what was there only once then is twice again before the second one
    goes. Of that one nobody is told."""
    site, result = heat
    program = ["sh", "-c", RUNS, "sh", HEAT3D, "--size", SIZE, "--steps", STEPS, "--checkpoint",
               f"dedup:{site.path}", "--checkpoint-every", EVERY, "--result", site.root / "result"]
    words = [BUILD / "bin" / "dedup-run", "--store", site.stores, "--spares", 1, "--watch", 1, "--grace", 1,
             "--restart-argument=--restart", *site.cluster.mpiexec_words(HOSTS, 4), *program]
    job = site.start_command(site.cluster.command(words), 4, {
        "DEDUP_REPLICATION": "2", "DEDUP_NODE_TIMEOUT": "4", **site.kill_at("commit.prepared", 1, 2)})
    try:
        site.cluster.bury("h1")
        output = site.root / "job2.out"
        wait_until(lambda: job.process.poll() is not None or "waiting to be killed" in output.read_text())
        site.cluster.cut("h2")
        job.finish()
    finally:
        if job.process.poll() is None:
            job.kill()
        site.cluster.kill("h2")
    print(job)
    assert job.code == 0
    assert (site.root / "result").read_bytes() == result
    assert "lost: h1\n" in job.stderr and "h3 takes the place of h1" in job.stderr
    assert "lost: h2\n" in job.stderr and "run 3 on h0, h3\n" in job.stderr
    site.expect_no_rank_left()
