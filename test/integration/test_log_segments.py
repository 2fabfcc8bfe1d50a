"""Independent writes of much data: what stands in a rank's log stays there, and the log becomes a segment."""

import random

import pytest

from stores import AS_IF_MUCH, Model, Script, Site, fault_library, noise, parts

CHUNK = 4096
HINTS = {"replication": 1, "chunk_size": CHUNK}
LOG_SEGMENT = b"DEDUPSEG\x03\0\0\0"
DATA_AT = 69632  # in a log
STEPS = ["dump.hashed", "dump.storing", "dump.stored", "commit.begin", "commit.dumped", "commit.shards", "commit.prepared",
         "commit.renamed", "commit.unfenced", "commit.fenced", "commit.installed", "commit.collected", "close.committed"]


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return Site(tmp_path, shared=True)


def segments(site):
    """All of them, and those that were logs."""
    found = sorted(site.stores.rglob("*.seg"))
    return found, [path for path in found if path.read_bytes()[:12] == LOG_SEGMENT]


def logs(site):
    return [path for path in site.stores.rglob("*") if path.parent.name == "logs"]


def used(site):
    return sum(path.stat().st_blocks * 512 for path in site.stores.rglob("*.seg"))


def write(site, pieces, hints=None, mode="wc"):
    site.run(Script().open(mode).write("at", pieces).close(), 3, 3, hints or HINTS).check()


@pytest.mark.parametrize("seed", range(6))
def test_little_pieces_of_all_kinds(site, seed):
    """As if they were much: chunks of a log and others, one after the other, and leases on the log before."""
    site.variables = AS_IF_MUCH
    rng = random.Random(seed)
    hints = {"replication": rng.choice([1, 2]), "chunk_size": 512}
    kinds = [lambda n: noise(rng.random(), n), lambda n: noise("of all", 4000)[:n].ljust(n, b"x"), bytes]
    model = Model(b"")
    stayed = 0
    for _ in range(5):
        script = Script().open("wc")
        for _ in range(3):
            pieces = {}
            for rank in range(4):
                at = rank * 40_000
                pieces[rank] = [(at + rng.randrange(30_000), rng.choice(kinds)(rng.randrange(1, 10_000)))
                                for _ in range(rng.randrange(4))]
            script.write("at", pieces).add("barrier")
            model.write(pieces)
            if rng.random() < 0.3:
                script.add("sync", 0)
        site.run(script.close(), 4, 4, hints).check()
        site.expect(model, 4, 4)
        site.check_stores(model, hints["replication"], nothing_else=False)
        stayed += len(segments(site)[1])
    assert stayed, "of some logs enough is live"


@pytest.mark.parametrize("replication", [1, 2])
def test_what_repeats_nowhere_is_written_once(site, replication):
    """Each rank has three parts of a MiB and something, one after the other, and a chunk's length is no divisor."""
    hints = {"replication": replication, "chunk_size": CHUNK}
    model = Model(noise(1, 3 * 3_333_333))
    pieces = {rank: [(at + n * 1_111_111, content[n * 1_111_111:(n + 1) * 1_111_111])
                     for n in range(3)] for rank, ((at, content),) in parts(bytes(model.content), 3).items()}
    write(site, pieces, hints=hints)
    found, were_logs = segments(site)
    assert len(were_logs) == 3 and len(found) == 3 * replication and not logs(site)
    assert used(site) <= replication * len(model.content) + 6 * DATA_AT
    site.check_stores(model, replication)
    for ranks in (3, 5):
        site.expect(model, 3, ranks)
    if replication == 2:
        site.lose("n1")
        site.expect(model, ["n0", "n2"], 2)


def test_only_what_is_of_the_file_and_nowhere_else_takes_space(site):
    """Written over, zeros, and what all ranks have: of nine MiB that are written three are kept."""
    content = {}
    pieces = {}
    for rank in range(3):
        own = noise(rank, 1 << 20)
        content[rank] = noise("of all", 1 << 19) + bytes(1 << 20) + own + noise("of all", 1 << 19)
        at = rank * (3 << 20)
        pieces[rank] = [(at + (3 << 19), noise(f"before {rank}", 1 << 20)), (at, content[rank])]
    write(site, pieces)
    model = Model(b"".join(content[rank] for rank in range(3)))
    site.check_stores(model, 1)
    site.expect(model, 3, 4)
    assert segments(site)[1] and not logs(site)
    assert used(site) <= (3 << 20) + (1 << 19) + 8 * DATA_AT


def test_where_nothing_can_stay_there_is_no_segment(site):
    write(site, {rank: [(rank << 20, noise("of all", 1 << 20))] for rank in range(3)})
    assert not segments(site)[1] and not logs(site)
    site.expect(Model(noise("of all", 1 << 20) * 3), 3, 3)


@pytest.mark.parametrize("seed", range(4))
def test_in_any_order_and_again(site, seed):
    """Pieces of any size, of several generations; what is replaced goes."""
    rng = random.Random(seed)
    hints = {"replication": rng.choice([1, 2]), "chunk_size": rng.choice([512, 4096, 65536]),
             "redundancy": rng.choice(["copies", "xor:2"]) if seed % 2 else "copies"}
    if hints["redundancy"] == "xor:2":
        hints["replication"] = 2
    model = Model(b"")
    size = 4 << 20
    for generation in range(4):
        script = Script().open("wc")
        for step in range(2):
            pieces = {}
            for rank in range(3):
                cuts = sorted(rng.sample(range(size), rng.randrange(1, 12)))
                ends = [*cuts[1:], size]
                own = [(rank * size + begin, noise(f"{seed} {generation} {step} {rank} {begin}", end - begin))
                       for begin, end in zip(cuts, ends)]
                rng.shuffle(own)
                pieces[rank] = own
            script.write("at", pieces).add("barrier")
            model.write(pieces)
        site.run(script.close(), 3, 3, hints).check()
        site.expect(model, 3, 4)
        site.check_stores(model, hints["replication"], nothing_else=False)
        assert not logs(site)
    live = len(model.content) * (2 if hints["redundancy"] == "copies" and hints["replication"] == 2 else 1.6)
    assert used(site) <= 2 * live + 12 * DATA_AT, "segments that are mostly dead are written anew"


def test_with_tiers_it_is_written_again(tmp_path):
    """It would be in the slowest of them."""
    site = Site(tmp_path, shared=True)
    site.fast_limit = "64M"
    model = Model(noise(1, 6 << 20))
    write(site, parts(bytes(model.content), 3))
    assert not segments(site)[1]
    site.expect(model, 3, 4)


def expect_one_of(site, olds, replication=2):
    content = site.read(3, 3)
    models = [model for model in olds if bytes(model.content) == content]
    assert models, f"{len(content)} bytes that are no generation's"
    site.check_stores(models[0], replication, nothing_else=False)
    return models[0]


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(site, step):
    hints = {"replication": 2, "chunk_size": CHUNK}
    old = Model(noise("old", 6_000_000))
    write(site, parts(bytes(old.content), 3), hints=hints)
    new = Model(noise("new", 6_000_000))
    script = Script().open("w").write("at", parts(bytes(new.content), 3)).close()
    job = site.run(script, 3, 3, hints, {"DEDUP_TEST_KILL": f"{step}:1:1"})
    assert job.code != 0
    expect_one_of(site, [old, new])
    write(site, parts(bytes(new.content), 3), hints=hints, mode="w")
    assert expect_one_of(site, [new]) is new
    assert not logs(site)


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
def test_killed_at_a_call(site, rank):
    """That changes files."""
    library = fault_library()
    hints = {"replication": 2, "chunk_size": CHUNK}
    old = Model(noise("old", 4_500_000))
    write(site, parts(bytes(old.content), 3), hints=hints)
    killed = 0
    for call in range(1 + rank, 200, 7):
        new = Model(noise(f"new {call}", 4_500_000))
        script = Script().open("w").write("at", parts(bytes(new.content), 3)).close()
        job = site.run(script, 3, 3, hints, {"LD_PRELOAD": str(library), "FAULT_RANK": str(rank), "FAULT_CALL": str(call)})
        if job.code == 0:
            old = new
            break
        killed += 1
        old = expect_one_of(site, [old, new])
    assert killed > 5
    expect_one_of(site, [old])
