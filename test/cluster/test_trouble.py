"""Hosts that are there, but slow, full, or out of reach, in the middle of a collective write."""

import re

import pytest

import cluster as clusters
from cluster_site import PATIENCE
from stores import Model, Script, noise, parts

HOSTS = ["h0", "h1", "h2", "h3"]
HINTS = {"replication": 2}
RANKS = 6
MIB = 1 << 20


def with_pause(site, first, second):
    """A job's script that writes twice, and between that waits until go() is called. When `ready`
    exists all ranks have written the first."""
    script = Script().open("w").write("all-at", first)
    script.add("touch", site.root / "ready").add("wait", site.root / "go")
    return script.write("all-at", second).add("sync", 0).close()


def first_generation(site):
    model = Model(noise("first", 1_200_000))
    site.write(parts(bytes(model.content), RANKS), HOSTS, RANKS, HINTS)
    return model


def test_a_slow_host(site):
    """It holds up the others, and nothing else happens."""
    first_generation(site)
    new = Model(noise("second", 6 * MIB))
    pieces = parts(bytes(new.content), 2 * RANKS)
    script = with_pause(site, {r: pieces[r] for r in range(RANKS)},
                        {r: pieces[r + RANKS] for r in range(RANKS)})
    job = site.start(script, HOSTS, RANKS, HINTS)
    try:
        job.wait_for(site.root / "ready")
        try:
            site.cluster.slow("h2", "8mbit")
        except clusters.Unavailable as error:
            pytest.skip(str(error))
        (site.root / "go").touch()
        job.finish().check()
        # It was what the write went through.
        shaped = site.cluster.run(["tc", "-s", "qdisc", "show", "dev",
                                   site.cluster.hosts["h2"].link])
    finally:
        if job.process.poll() is None:
            job.kill()
        site.cluster.kill("h2")
        site.cluster.start("h2")
    sent, over = re.search(r"Sent (\d+) bytes .* overlimits (\d+)", shaped).groups()
    assert int(sent) > MIB / 2 and int(over) > 0, shaped
    # One is lost already.
    site.expect(new, ["h0", "h1", "h3"], 3)


def fill_between_writes(site, full, free, size):
    """Fills these hosts between two collective writes of one generation; returns the job and what
    the file is to be."""
    new = Model(noise("second", size))
    pieces = parts(bytes(new.content), 2 * RANKS)
    script = with_pause(site, {r: pieces[r] for r in range(RANKS)},
                        {r: pieces[r + RANKS] for r in range(RANKS)})
    job = site.start(script, HOSTS, RANKS, HINTS)
    try:
        job.wait_for(site.root / "ready")
        for host in full:
            site.cluster.fill(host, free)
        (site.root / "go").touch()
    except BaseException:
        job.kill()
        raise
    return job.finish(), new


@pytest.fixture
def filled_site(site):
    yield site
    for host in site.cluster.names():
        site.cluster.empty(host)


def test_one_host_gets_full(filled_site):
    """Others have room: copies go there, and what its own ranks write as well."""
    site = filled_site
    first_generation(site)
    job, new = fill_between_writes(site, ["h1"], MIB, 8 * MIB)
    job.check()
    site.check_stores(new, 2)
    site.cluster.kill("h3")
    site.expect(new, ["h0", "h1", "h2"], 4)


def test_three_hosts_get_full(filled_site):
    """There is no place for two copies: all ranks are told. What was written before that is there,
    if there is room to commit it; else the last generation stands."""
    site = filled_site
    old = first_generation(site)
    job, new = fill_between_writes(site, ["h0", "h1", "h3"], MIB, 8 * MIB)
    assert job.code == 0, f"{job}"
    assert job.errors_of("write") == ["NO_SPACE"] * RANKS, f"{job}"
    (outcome,) = set(job.errors_of("sync"))
    for host in site.cluster.names():
        site.cluster.empty(host)
    content = site.read(HOSTS, 3)
    if outcome == "SUCCESS":
        assert content == bytes(new.content[:4 * MIB])
    else:
        assert outcome == "NO_SPACE" and content == bytes(old.content), f"{job}"


def test_a_host_out_of_reach(site):
    """Nobody is told that it is gone. A write that needs its service ends with an error all the
    same, and so does the job."""
    model = first_generation(site)
    # Independent, in blocks of 4 MiB that are at home on all hosts in turn.
    pieces = {rank: [(block * 4 * MIB + rank * 1000, noise(rank, 1000)) for block in range(4)]
              for rank in range(RANKS)}
    script = Script().open("w").add("touch", site.root / "ready").add("wait", site.root / "go")
    # All of that time passes. One that is only busy is waited for.
    environment = {"DEDUP_NODE_TIMEOUT": "10"}
    job = site.start(script.write("at", pieces).close(), HOSTS, RANKS, HINTS, environment)
    try:
        job.wait_for(site.root / "ready")
        site.cluster.cut("h2")
        (site.root / "go").touch()
        job.finish(2 * PATIENCE)
        assert job.code != 0, f"{job}"
        # Hydra hears of it after a while too, and ends ranks that have not come back yet. Rank 3 is on
        # h2 itself.
        entries = [entry for rank, entry in enumerate(job.entries("write")) if entry and rank != 3]
        assert entries, f"{job}"
        assert all(e.error == "IO" and "node h2" in e.text for e in entries), f"{entries}\n{job}"
    finally:
        if job.process.poll() is None:
            job.kill()
        site.cluster.kill("h2")
    site.expect_no_rank_left()
    site.expect(model, ["h0", "h1", "h3"], 3)
