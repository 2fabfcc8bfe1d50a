"""A host dies, with all that is on it, at each step of a write: what was committed reads whole on the
others, nothing hangs, and no rank of the job is left."""

import os
import select

import pytest

from cluster_site import PATIENCE, wait_until
from stores import Model, Script, noise, parts

HOSTS = ["h0", "h1", "h2", "h3"]
RANKS = 6  # blocks: one on h0, two on h1, one on h2, two on h3
HOST_OF = ["h0", "h1", "h1", "h2", "h3", "h3"]

# Steps of the second generation, and the rank whose host dies there. In the order in which a write
# and its commit pass them.
STEPS = [
    ("dump.hashed", 1), ("dump.reducing", 3), ("dump.storing", 4), ("dump.exchanging", 3),
    ("dump.stored", 2), ("write.dumped", 0),
    ("commit.begin", 4), ("commit.dumped", 1), ("commit.shards", 3),
    ("commit.prepared", 4),  # before its record is renamed; the others' are
    ("commit.prepared", 0),
    ("commit.renamed", 1), ("commit.unfenced", 0), ("commit.fenced", 0), ("commit.installed", 3),
    ("commit.collected", 2), ("close.committed", 5),
]


def contents():
    """Two states of a file. The second is large enough to be dumped when it is written, and half of
    it is on all ranks."""
    old = Model(noise("old", 1_200_000))
    new = Model(b"".join(noise("all", 150_000) + noise(rank, 130_000 + rank)
                         for rank in range(RANKS)))
    return old, new


def lose_at(site, step, rank, replication, more=None):
    """Writes a generation, then another one, of which a host dies at `step`; `more`: another host
    dies afterwards. Then restarts on what is left and goes on."""
    hints = {"replication": replication}
    old, new = contents()
    site.write(parts(bytes(old.content), RANKS), HOSTS, RANKS, hints)

    script = Script().open("w").write("all-at", parts(bytes(new.content), RANKS)).add("sync", 0)
    job = site.run(script.close(), HOSTS, RANKS, hints, site.kill_at(step, rank))
    assert job.code != 0, f"{job}"
    print(job)
    lost = HOST_OF[rank]
    site.cluster.bury(lost)
    site.expect_no_rank_left()
    if more is not None:
        site.cluster.kill(more)

    left = [host for host in HOSTS if host not in (lost, more)]
    content = site.read(left, 5)
    committed = any(e.operation == "sync" and e.error == "SUCCESS"
                    for entries in job.results for e in entries)
    models = [model for model in ((new,) if committed else (old, new))
              if bytes(model.content) == content]
    assert models, f"{len(content)} bytes that are no generation's; committed: {committed}\n{job}"
    (model,) = models
    change = {1: [(77, noise("change", 400_000))], 0: [(0, b"x")]}
    model.write(change)
    site.write(change, left, 3, hints, mode="w")
    site.check_stores(model, replication, *left)
    site.expect(model, left[1:], 2)


@pytest.mark.parametrize("replication", [2, 3])
@pytest.mark.parametrize("step, rank", STEPS)
def test_a_host_dies(site, step, rank, replication):
    more = None
    if replication == 3:
        more = next(host for host in reversed(HOSTS) if host != HOST_OF[rank])
    lose_at(site, step, rank, replication, more)


def commits(site, host):
    """How many generations of the file a host's store has a commit record of."""
    return len(list(site.file_directory(host).glob("generations/*/record")))


@pytest.mark.parametrize("replication", [2, 3])
def test_a_host_dies_between_commit_records(site, replication):
    """All others have renamed theirs when it dies, and it has not: the new generation is committed,
    though nobody was told. K = 3: another host, with its record, goes as well."""
    hints = {"replication": replication}
    old, new = contents()
    site.write(parts(bytes(old.content), RANKS), HOSTS, RANKS, hints)

    fifo = site.root / "stopped"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDWR), "rb", buffering=0) as stopped:
        script = Script().open("w").write("all-at", parts(bytes(new.content), RANKS)).add("sync", 0)
        # It stops there, and lives on until it is killed here.
        job = site.start(script.close(), HOSTS, RANKS, hints,
                         {"DEDUP_TEST_KILL": "commit.prepared:1:4", "DEDUP_TEST_KILL_HOST": str(fifo)})
        try:
            assert select.select([stopped], [], [], PATIENCE)[0], "rank 4 did not get there"
            others = HOSTS[:3]
            wait_until(lambda: all(commits(site, host) == 2 for host in others))
            assert commits(site, "h3") == 1
            site.cluster.kill("h3")
            assert job.finish().code != 0, f"{job}"
        finally:
            if job.process.poll() is None:
                job.kill()
    site.expect_no_rank_left()
    left = others
    if replication == 3:
        site.cluster.kill("h1")
        left = ["h0", "h2"]
    site.expect(new, left, 3)
    change = {0: [(5, noise("change", 100_000))]}
    new.write(change)
    site.write(change, left, 3, hints, mode="w")
    site.check_stores(new, replication, *left)
