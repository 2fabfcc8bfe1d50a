"""The main job on six hosts: a simulation that checkpoints loses two of them in the middle of a write
and goes on, on the other four, to the result of an undisturbed run, bit by bit."""

import pytest

from stores import BUILD, is_placeholder

HEAT3D = BUILD / "examples" / "heat3d" / "heat3d"
SIX = ["h0", "h1", "h2", "h3", "h4", "h5"]
SIZE, STEPS, EVERY = 84, 60, 15


def heat3d(site, hosts, ranks, *options, environment=None):
    words = [str(word) for word in [HEAT3D, "--steps", STEPS, *options]]
    return site.start_program(words, hosts, ranks,
                              {"DEDUP_REPLICATION": "3", **(environment or {})})


# Both in the third checkpoint: in one of its large writes, and in its commit.
@pytest.mark.parametrize("step, count", [("write.dumped", 18), ("commit.prepared", 3)])
def test_two_of_six_hosts_are_lost_in_the_middle_of_a_write(make_site, step, count):
    if not HEAT3D.exists():
        pytest.skip("heat3d was not built: HDF5 for MPICH is missing")
    site = make_site(SIX)
    undisturbed = site.root / "undisturbed"
    job = heat3d(site, ["h0", "h1"], 2, "--size", SIZE, "--result", undisturbed).finish()
    assert job.code == 0, f"{job}"

    save = ["--checkpoint", f"dedup:{site.path}", "--checkpoint-every", EVERY]
    job = heat3d(site, SIX, 12, "--size", SIZE, *save, environment=site.kill_at(step, 3, count))
    site.cluster.bury("h1")
    site.cluster.kill("h4")
    job.finish()
    assert job.code != 0, f"{job}"
    assert job.stdout.count("checkpoint written") == 2, f"{job.stdout}\n{job}"
    site.expect_no_rank_left()
    assert is_placeholder(site.path)

    left = ["h0", "h2", "h3", "h5"]
    restarted = site.root / "restarted"
    job = heat3d(site, left, 5, *save, "--restart", "--result", restarted).finish()
    assert job.code == 0, f"{job}"
    assert any(f"step {steps}: checkpoint read" in job.stdout for steps in (2 * EVERY, 3 * EVERY)), \
        f"{job.stdout}\n{job}"
    assert restarted.read_bytes() == undisturbed.read_bytes()
