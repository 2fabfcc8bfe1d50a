"""A job's mount on each host (dedup-mpiexec --mount): a host has a part of each file, and shows all of it."""

import pytest

from cluster_site import mounting_is_not_possible
from stores import Script, noise, parts

HOSTS = ["h0", "h1", "h2", "h3"]
RANKS = 6

pytestmark = pytest.mark.skipif(mounting_is_not_possible() is not None, reason=str(mounting_is_not_possible()))


@pytest.fixture(name="site")
def fixture_site(make_site):
    site = make_site(HOSTS)
    site.options = [f"--mount={site.cluster.own / 'mnt'}"]
    return site


def read_below_mount(site, hosts, ranks):
    """What each rank reads there."""
    copies = [site.root / f"copy{rank}" for rank in range(ranks)]
    script = Script()
    for rank, copy in enumerate(copies):
        script.add(f"@{rank}", "shell", f"cat {site.cluster.own / 'mnt'}{site.path} >{copy}")
    job = site.run(script.add("barrier"), hosts, ranks).check()
    assert job.stderr == "", f"{job}"
    return [copy.read_bytes() for copy in copies]


@pytest.mark.parametrize("redundancy", ["copies", "rs:2+1"])
def test_each_host_shows_what_all_have(site, redundancy):
    content = noise(redundancy, 1_500_007)
    site.write(parts(content, RANKS), HOSTS, RANKS, {"replication": 2, "redundancy": redundancy})
    assert [copy == content for copy in read_below_mount(site, HOSTS, RANKS)] == [True] * RANKS
    # A job from which a host is missing.
    assert [copy == content for copy in read_below_mount(site, HOSTS[1:], 4)] == [True] * 4
    site.expect_no_rank_left()
