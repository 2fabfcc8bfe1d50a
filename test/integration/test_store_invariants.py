"""What the stores hold after random writes: every chunk on enough nodes, none twice on a node, and
the bytes that were written."""

import dataclasses
import os
import random

import pytest

from stores import Model, Script, Site, noise, parts

FIXED_SEED = 20260101
QUICK = 25
LONG = 20
BLOCK = 4 << 20


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@dataclasses.dataclass
class Case:
    seed: int
    nodes: int
    ranks: int
    hints: dict
    chunk: int
    jobs: int

    def copies(self):
        return self.hints["replication"]


def make_case(seed):
    rng = random.Random(seed)
    ranks = rng.randint(1, 8)
    nodes = rng.randint(1, min(ranks, 6))
    chunk = rng.choice([512, 513, 1024, 4096, 4096, 10000, 65536, 1 << 20])
    hints = {
        "replication": rng.randint(1, 4),
        "threshold": rng.choice([1, 8, 50, 1000, 131072]),
        "chunk_size": chunk,
        "mode": rng.choice(["collective", "collective", "collective", "local", "none"]),
        "reduction": rng.choice(["exact", "exact", "tree"]),
        "partners": rng.choice(["load", "ring"]),
        "exchange": rng.choice(["put", "send"]),
        "buffer": rng.choice(["1 MiB", "64 MiB"]),
        "fsync": rng.choice(["never", "never", "commit"]),
    }
    return Case(seed, nodes, ranks, hints, chunk, rng.randint(1, 2))


class Content:
    """Data in which chunks come back: on other ranks, at other offsets, in later phases."""

    def __init__(self, rng, chunk):
        self.rng = rng
        self.chunk = chunk
        self.pool = [noise(rng.random(), chunk) for _ in range(12)]

    def make(self, length):
        out = bytearray()
        while len(out) < length:
            kind = self.rng.random()
            if kind < 0.5:
                out += self.rng.choice(self.pool)
            elif kind < 0.6:
                out += bytes(self.chunk)
            else:
                out += self.rng.randbytes(self.chunk)
        return bytes(out[:length])


def random_pieces(rng, content, ranks, how, large):
    """Disjoint pieces for each rank, as this way of writing takes them."""
    base = rng.choice([0, rng.randint(0, 3_000_000), BLOCK - rng.randint(1, 5000)])
    if how in ("all-at", "split", "nonblocking"):
        pieces = {}
        at = base
        for rank in range(ranks):
            if rng.random() < 0.1:
                continue
            length = rng.randint(1, 20000)
            if large:
                length = rng.randint(200_000, 400_000)
            pieces[rank] = [(at, content.make(length))]
            at += length + rng.choice([0, 0, rng.randint(1, 3000)])
        return pieces
    # Runs of one length, dealt in turn (finely interleaved), or of many lengths, at random.
    fine = rng.random() < 0.5
    total = (300_000 if large else 8000) * ranks
    unit = max(rng.choice([24, 500, 1000]), total // 3000) if fine else 0
    pieces = {rank: [] for rank in range(ranks)}
    at = base
    turn = 0
    while at < base + total and sum(map(len, pieces.values())) < 3500:
        length = unit or rng.randint(1, 60_000)
        rank = turn % ranks if fine else rng.randrange(ranks)
        pieces[rank].append((at, content.make(length)))
        turn += 1
        at += length + (0 if fine else rng.choice([0, 1, rng.randint(0, 9000)]))
    return {rank: found for rank, found in pieces.items() if found}


WAYS = ["all-at", "all-at", "all-view", "all-view", "all-memory", "split", "nonblocking", "view",
        "at"]


def add_writes(script, model, rng, content, ranks, phases):
    for _ in range(phases):
        how = rng.choice(WAYS)
        pieces = random_pieces(rng, content, ranks, how, large=rng.random() < 0.7)
        script.write(how, pieces)
        script.add("barrier")
        model.write(pieces)
        if rng.random() < 0.1:
            size = rng.randint(0, len(model.content) + 100_000)
            script.add("size", 0, size)
            model.resize(size)


def run_case(site, case):
    print(case)
    rng = random.Random(case.seed + 1)
    content = Content(rng, case.chunk)
    model = Model()
    for _ in range(case.jobs):
        script = Script().open()
        for generation in range(rng.randint(1, 3)):
            if generation > 0:
                script.add("sync", 0)
            add_writes(script, model, rng, content, case.ranks, rng.randint(1, 3))
        site.run(script.close(), case.nodes, case.ranks, case.hints).check()
        site.check_stores(model, case.copies())
    if case.copies() >= case.nodes:
        nodes, ranks = rng.randint(1, case.nodes), rng.randint(1, 8)
    else:
        nodes, ranks = case.nodes, rng.randint(case.nodes, 8)
    block = rng.choice([0, rng.choice([100, 4096, 70_001])])
    # A simulated node needs a rank.
    site.expect(model, nodes if ranks >= nodes else ranks, ranks, block)


@pytest.mark.parametrize("number", range(QUICK))
def test_random_writes(site, number):
    run_case(site, make_case(FIXED_SEED + number))


@pytest.mark.long
@pytest.mark.parametrize("number", range(LONG))
def test_more_random_writes(site, number):
    seed = int(os.environ.get("TEST_SEED", FIXED_SEED))
    run_case(site, make_case(seed + 1000 + number))


def run_jobs_of_one_generation(site, seed):
    """A chunk that the generation before has on a node is not stored there again."""
    case = make_case(seed)
    print(case)
    rng = random.Random(seed + 1)
    content = Content(rng, case.chunk)
    model = Model()
    before = {}
    for _ in range(5):
        script = Script().open()
        add_writes(script, model, rng, content, case.ranks, 2)
        site.run(script.close(), case.nodes, case.ranks, case.hints).check()
        file = site.check_stores(model, case.copies())
        held = {node: (set(store["again"]), {chunk["fingerprint"] for chunk in file["chunks"]
                                             if node in chunk["held"]})
                for node, store in file["on_store"].items()}
        for node, (again, _) in held.items():
            again_before, held_before = before.get(node, (set(), set()))
            assert not (again - again_before) & held_before, node
        before = held


@pytest.mark.parametrize("number", range(2))
def test_jobs_of_one_generation(site, number):
    run_jobs_of_one_generation(site, FIXED_SEED + 5000 + number)


@pytest.mark.long
@pytest.mark.parametrize("number", range(LONG))
def test_more_jobs_of_one_generation(site, number):
    run_jobs_of_one_generation(site, FIXED_SEED + 6000 + number)


def chunk_copies(file):
    return sum(len(chunk["held"]) for chunk in file["chunks"])


def stored_bytes(site, file):
    return sum(store["segment_bytes"] for store in file["on_store"].values())


@pytest.mark.parametrize("mode", ["collective", "local", "none"])
def test_zeros_are_not_stored(site, mode):
    size = 1_500_001
    hints = {"replication": 3, "mode": mode}
    site.write(parts(bytes(size), 3), 3, 3, hints)
    file = site.check_stores(Model(bytes(size)), 3)
    assert file["chunks"] == []
    assert file["size"] == size
    assert stored_bytes(site, file) <= 64 * 3  # at most empty segments' headers
    site.expect(Model(bytes(size)), 3, 2)


def test_zeros_written_over_data_replace_it(site):
    model = Model(noise(1, 1_200_000))
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 2})
    hole = {1: [(300_000, bytes(600_000))]}
    model.write(hole)
    site.write(hole, 3, 3, {"replication": 2}, mode="w")
    file = site.check_stores(model, 2)
    assert file["chunk_bytes"] <= 600_000 + 4 * 4096
    site.expect(model, 3, 4)


@pytest.mark.parametrize("bits", [0, 3, 9])
def test_chunks_that_seem_to_have_twins(site, bits):
    """What the search for twins finds is never taken for equal: here nearly all chunks seem to have
    some, on the same rank, on others, and in what was dumped before."""
    environment = {"DEDUP_TEST_TWIN_BITS": str(bits)}
    hints = {"replication": 2}
    shared = noise("shared", 200_000)
    model = Model()
    script = Script().open("wc")
    for step in range(3):
        # Some of it is on all ranks, some was there in the step before, some is new.
        pieces = {rank: [(rank * 1_500_000 + step * 70_000,
                          shared + noise(rank, 400_000) +
                          noise(f"{rank} {step}", 400_000))]
                  for rank in range(4)}
        model.write(pieces)
        script.write("all-at", pieces)
        if step == 1:
            script.add("sync", 0)
    site.run(script.close(), 3, 4, hints, environment).check()
    file = site.check_stores(model, 2, nothing_else=False)
    marks = {chunk["fingerprint"][-12:] for chunk in file["chunks"]}
    assert marks <= {"02" + 10 * "0", "03" + 10 * "0"}, marks
    kinds = {mark.startswith("02") for mark in marks}  # single
    assert kinds == {False, True} if bits == 9 else {False}, kinds
    assert site.read(["n0", "n2"], 3, environment=environment) == bytes(model.content)


@pytest.mark.parametrize("mode, copies_of_each", [("collective", 2), ("local", 4)])
def test_equal_data_at_odd_offsets_on_each_rank(site, mode, copies_of_each):
    """The same 300 kB on four nodes, at offsets that are no multiple of the chunk size: the copies
    that are there anyway are the replicas."""
    content = noise(7, 307_300)
    pieces = {rank: [(13 + rank * 307_817, content)] for rank in range(4)}
    model = Model()
    model.write(pieces)
    site.write(pieces, 4, 4, {"replication": 2, "mode": mode})
    file = site.check_stores(model, 2)
    assert len(file["chunks"]) == -(-len(content) // 4096)
    assert chunk_copies(file) == copies_of_each * len(file["chunks"])
    # Also where each node keeps its own and is sent the same by another one.
    assert stored_bytes(site, file) < 1.1 * copies_of_each * len(content)


def test_mode_none_stores_everything(site):
    content = noise(7, 307_200)
    pieces = {rank: [(rank * 307_200, content)] for rank in range(4)}
    model = Model()
    model.write(pieces)
    site.write(pieces, 4, 4, {"replication": 2, "mode": "none"})
    file = site.check_stores(model, 2)
    assert len(file["chunks"]) == 4 * 75


def test_later_phases_find_what_is_there(site):
    """A second dump, an independent write, and another generation bring the same chunks on the node
    that has them: nothing more is stored."""
    content = noise(8, 409_600)
    hints = {"replication": 2}
    first = {0: [(0, content)]}
    model = Model()
    model.write(first)
    site.write(first, 3, 3, hints)
    expected = chunk_copies(site.check_stores(model, 2))
    assert expected == 2 * 100

    again = Script().open("w")
    for step, how in enumerate(["all-at", "at", "all-at"]):
        pieces = {0: [((step + 1) * 409_600, content)]}
        again.write(how, pieces).add("barrier")
        model.write(pieces)
        if step == 1:
            again.add("sync", 0)
    site.run(again.close(), 3, 3, hints).check()
    assert chunk_copies(site.check_stores(model, 2)) == expected
    site.expect(model, 3, 5)


@pytest.mark.parametrize("threshold", [1, 8, 131072])
def test_the_threshold_costs_space_but_no_copies(site, threshold):
    """What the tree does not carry counts as unique: more is stored, nothing less safely."""
    content = noise(9, 400 * 1024)
    pieces = {rank: [(rank * len(content), content)] for rank in range(4)}
    model = Model()
    model.write(pieces)
    site.write(pieces, 4, 4, {"replication": 2, "threshold": threshold, "reduction": "tree"})
    copies = chunk_copies(site.check_stores(model, 2))
    unique = 100
    if threshold > unique:
        assert copies == 2 * unique
    else:
        assert copies > 2 * unique


def test_twenty_generations_take_the_room_of_two(site):
    """Space of superseded generations is reclaimed."""
    hints = {"replication": 2}
    sizes = []
    for job in range(4):
        script = Script().open()
        for generation in range(5):
            pieces = parts(noise(job * 5 + generation, 900_000), 3)
            script.write("all-at", pieces).add("sync", 0)
        site.run(script.close(), 3, 3, hints).check()
        sizes.append(sum(site.bytes_used(node) for node in ("n0", "n1", "n2")))
    assert max(sizes) <= 3 * 2 * 900_000
    assert sizes[-1] <= 1.2 * sizes[0]
    model = Model(noise(19, 900_000))
    file = site.check_stores(model, 2)
    assert file["generation"] >= 20
    site.expect(model, 3, 2)


def test_rewritten_parts_do_not_pile_up(site):
    """Each generation overwrites a part: segments that are mostly dead are rewritten."""
    hints = {"replication": 2}
    model = Model(noise("base", 1_200_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    script = Script().open("w")
    rng = random.Random(4)
    for generation in range(16):
        at = rng.randrange(0, 900_000)
        pieces = {rank: [(at + rank * 90_000, noise(generation * 3 + rank, 90_000))]
                  for rank in range(3)}
        script.write("at" if generation % 2 else "all-at", pieces).add("sync", 0)
        model.write(pieces)
    site.run(script.close(), 3, 3, hints).check()
    file = site.check_stores(model, 2, nothing_else=False)
    live = sum(store["live_bytes"] for store in file["on_store"].values())
    assert stored_bytes(site, file) <= 2.2 * live + 3 * 100_000
    site.expect(model, 3, 4)


def test_more_nodes_than_ranks(site):
    model = Model(noise(3, 700_001))
    site.write(parts(bytes(model.content), 2), 5, 2, {"replication": 3})
    assert site.node_names() == ["n0", "n1"]
    site.check_stores(model, 3)
    site.expect(model, 5, 1)


@pytest.mark.parametrize("per_node", [[5, 1], [1, 1, 6], [3, 3, 1]])
def test_uneven_ranks_on_nodes(site, per_node):
    ranks = sum(per_node)
    rng = random.Random(ranks)
    content = Content(rng, 4096)
    pieces = {}
    at = 0
    for rank in range(ranks):
        pieces[rank] = [(at, content.make(300_000))]
        at += 300_000
    model = Model()
    model.write(pieces)
    nodes = [(f"n{node}", count) for node, count in enumerate(per_node)]
    site.write(pieces, nodes, ranks, {"replication": 2})
    site.check_stores(model, 2)
    site.expect(model, len(per_node), ranks)
