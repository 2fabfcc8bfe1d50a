"""Erasure codes (dedup_redundancy): what no other node has is kept in stripes with parities."""

import itertools
import json
import random
import shutil

import pytest

from stores import Model, Script, changed, noise, parts, shared_site

CHUNK = 4096


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


class File:
    """One that is written in stripes, a rank a node unless `ranks` says otherwise."""

    def __init__(self, site, redundancy, nodes, ranks=None, **hints):
        self.site = site
        self.nodes = [f"n{i}" for i in range(nodes)]
        self.ranks = ranks or nodes
        self.losses = int(redundancy.split("+")[1]) if "+" in redundancy else 1
        self.hints = {"redundancy": redundancy, "chunk_size": CHUNK, "report": site.root / "report", **hints}
        self.model = Model()

    def write(self, pieces, mode="wc", nodes=None, **hints):
        self.model.write(pieces)
        nodes = nodes or self.nodes
        job = self.site.run(Script().open(mode).write("all-at", pieces).close(), nodes, self.ranks,
                            {**self.hints, **hints})
        return job.check()

    def fill(self, seed, bytes_a_rank, mode="wc"):
        return self.write(parts(noise(seed, self.ranks * bytes_a_rank), self.ranks), mode)

    def rewrite(self, seed, every=10):
        content = changed(bytes(self.model.content), seed, CHUNK, every)
        return self.write(parts(content, self.ranks), "w")

    def report(self):
        return json.loads((self.site.root / "report").read_text().splitlines()[-1])

    def heal(self, nodes, flags=0):
        job = self.site.run(Script().add("heal", 0, flags), nodes, len(nodes), {})
        assert job.code == 0 and not job.failures(), f"{job}"
        return job

    def expect_without(self, lost, nodes=None, ranks=None):
        self.site.lose(*lost)
        left = [node for node in nodes or self.nodes if node not in lost]
        self.site.expect(self.model, left, ranks or len(left))
        self.site.bring_back(*lost)

    def expect_without_any(self, nodes=None, most=5):
        """Whatever may be lost: `most` of all sets of nodes, chosen by chance."""
        sets = list(itertools.combinations(nodes or self.nodes, self.losses))
        for lost in random.Random(len(self.model.content)).sample(sets, min(most, len(sets))):
            self.expect_without(lost, nodes)


@pytest.mark.parametrize("redundancy,nodes,ranks", [("xor:5", 6, 6), ("rs:4+2", 6, 12), ("rs:3+3", 8, 8), ("xor:3", 8, 8),
                                                    ("rs:8+2", 10, 10)])
def test_any_so_many_nodes_may_be_lost(site, redundancy, nodes, ranks):
    file = File(site, redundancy, nodes, ranks)
    file.fill(1, 40 * CHUNK)
    file.site.expect(file.model, file.nodes, ranks)
    file.expect_without_any(most=1000)


@pytest.mark.parametrize("redundancy,nodes", [("rs:4+2", 6), ("xor:3", 6), ("rs:2+2", 8)])
@pytest.mark.parametrize("chunks", [1, 3, 300])
def test_uneven_ranks_and_few_or_many_chunks(site, redundancy, nodes, chunks):
    """Every node has another number of ranks, and of chunks."""
    names = [(f"n{i}", 1 + i % 3) for i in range(nodes)]
    file = File(site, redundancy, nodes, sum(count for _, count in names))
    pieces = {}
    offset = 0
    for rank in range(file.ranks):
        length = chunks * CHUNK * (rank % 4) + rank
        pieces[rank] = [(offset, noise(rank, length))] if length else []
        offset += length
    file.write(pieces, nodes=names)
    file.expect_without_any()


def test_what_is_kept_is_little_more_than_the_data(site):
    file = File(site, "rs:8+2", 10)
    file.fill(1, 2 << 20)
    data = len(file.model.content)
    report = file.report()
    assert report["losses_survived"] == 2 and report["lowest_copies"] == 3
    assert 1.25 * data < report["bytes_stored"]["total"] < 1.3 * data
    assert 1.125 * data < report["bytes_sent"]["total"] < 1.17 * data
    assert site.segment_bytes() < 1.31 * data


@pytest.mark.parametrize("ranks", [6, 12, 9])
def test_whole_stripes_are_made_by_the_dump_and_the_rest_by_the_commit(site, ranks):
    """Three units of 512 KiB a rank, and what fills none; the last time some nodes have a rank more than others."""
    file = File(site, "rs:4+2", 6, ranks)
    file.fill(1, (3 << 19) + 5 * CHUNK + 7)
    data = len(file.model.content)
    assert 1.5 * data < file.report()["bytes_stored"]["total"] < (1.6 if ranks % 6 == 0 else 1.65) * data
    file.expect_without_any()
    # Half of it, before it is committed; then it stays.
    first, second = (parts(noise(f"{ranks} {n}", ranks * (3 << 19)), ranks) for n in range(2))
    half = {rank: [pieces[0]] for rank, pieces in second.items() if rank % 2 == 0}
    script = Script().open("w").write("all-at", first).write("all-at", half).add("sync", 0)
    file.model.write(first)
    file.model.write(half)
    site.run(script.close(), file.nodes, ranks, file.hints).check()
    file.expect_without_any()


@pytest.mark.parametrize("count", [1, 2])
def test_killed_while_a_dump_makes_stripes(site, count):
    file = File(site, "rs:4+2", 6)
    file.fill(1, 1 << 20)
    pieces = parts(noise("new", 6 << 20), 6)
    job = site.run(Script().open("w").write("all-at", pieces).close(), file.nodes, 6, file.hints,
                   {"DEDUP_TEST_KILL": f"commit.encoding:{count}:2"})
    assert job.code != 0
    file.site.expect(file.model, file.nodes, 6)
    file.expect_without_any()
    file.write(pieces, "w")
    file.expect_without_any()


def test_duplicates_on_enough_nodes_are_left_alone(site):
    """Of what three nodes have nothing is sent; what two have is one of them's."""
    nodes = 6
    file = File(site, "rs:4+2", nodes)
    three, two = noise("three", 64 * CHUNK), noise("two", 64 * CHUNK)
    pieces = {rank: [(rank * 128 * CHUNK, (three if rank < 3 else noise(rank, 64 * CHUNK)) +
                      (two if rank in (1, 4) else bytes(64 * CHUNK)))] for rank in range(nodes)}
    file.write(pieces)
    kept = {}
    for chunk in site.walk()["files"][0]["chunks"]:
        kept[len(chunk["named"])] = kept.get(len(chunk["named"]), 0) + 1
    assert kept == {3: 64, 1: (3 + 1) * 64}
    file.expect_without_any()


@pytest.mark.parametrize("enough,kept", [(4, {3: 2 * 64, 1: 64}), (6, {3: 64, 1: 2 * 64}), (9, {1: 3 * 64})])
def test_how_many_nodes_with_a_duplicate_are_enough(site, enough, kept):
    """Three of them keep it, whatever more have it; with more than there are, none is left alone."""
    nodes = 6
    file = File(site, "rs:4+2", nodes, replication=enough)
    pieces = {rank: [(rank * 192 * CHUNK, b"".join(noise(have, 64 * CHUNK) if rank < have else bytes(64 * CHUNK)
                                                   for have in (6, 4, 3)))] for rank in range(nodes)}
    file.write(pieces)
    found = {}
    for chunk in site.walk()["files"][0]["chunks"]:
        found[len(chunk["named"])] = found.get(len(chunk["named"]), 0) + 1
    assert found == kept
    file.expect_without_any()
    file.rewrite(1)
    file.expect_without_any(most=3)


def test_after_a_part_was_rewritten(site):
    file = File(site, "rs:4+2", 6)
    file.fill(1, 1 << 20)
    first = site.segment_bytes()
    for seed in range(3):
        file.rewrite(seed)
    # Each step brings a tenth, with its parities.
    assert site.segment_bytes() < first + 3 * 0.2 * len(file.model.content)
    file.expect_without_any()


def test_what_has_not_changed_is_neither_sent_nor_stored(site):
    file = File(site, "rs:4+2", 6)
    file.fill(1, 1 << 20)
    before = site.segment_bytes()
    file.write(parts(bytes(file.model.content), 6), "w")
    report = file.report()
    assert report["bytes_stored"]["total"] == report["bytes_sent"]["total"] == 0
    assert site.segment_bytes() == before
    file.expect_without(["n1", "n4"])


@pytest.mark.parametrize("redundancy,nodes", [("rs:4+2", 8), ("xor:4", 6)])
def test_healed_it_survives_as_much_again(site, redundancy, nodes):
    file = File(site, redundancy, nodes)
    file.fill(1, 60 * CHUNK)
    lost = file.nodes[1:1 + file.losses]
    site.lose(*lost)
    left = [node for node in file.nodes if node not in lost]
    file.heal(left)
    assert file.losses == 2 or site.walk()["files"][0]["stores"] == left
    file.expect_without_any(left)
    # On a new node, too.
    shutil.rmtree(site.away)
    file.heal([*left, "new"])
    file.expect_without_any([*left, "new"])


def test_healed_on_too_few_nodes_there_are_copies(site):
    file = File(site, "rs:4+2", 6)
    file.fill(1, 40 * CHUNK)
    site.lose("n0", "n1")
    left = file.nodes[2:]
    file.heal(left)  # stripes of 2 + 2
    file.expect_without_any(left)
    site.lose("n2")
    file.heal(left[1:])  # copies
    for chunk in site.walk()["files"][0]["chunks"]:
        assert chunk["named"] == left[1:]
    file.expect_without_any(left[1:])


def test_a_node_that_returns_has_nothing_that_is_taken_for_new(site):
    file = File(site, "rs:4+2", 7)
    file.fill(1, 60 * CHUNK)
    site.lose("n2")
    left = [node for node in file.nodes if node != "n2"]
    file.ranks = len(left)
    content = changed(bytes(file.model.content), "new", CHUNK, 3)
    file.write(parts(content, len(left)), "w", left)
    site.bring_back("n2")
    file.site.expect(file.model, file.nodes, 7)
    for lost in (["n0", "n2"], ["n5", "n6"], ["n2"]):
        file.expect_without(lost)
    file.ranks = 7
    file.rewrite("again")
    file.expect_without_any()


def test_the_next_of_a_series_shares_stripes(site):
    file = File(site, "rs:4+2", 6)
    first = site.root / "step_0001"
    second = site.root / "step_0002"
    file.model = Model()
    content = noise(1, 6 * 256 * CHUNK)
    for path in (first, second):
        site.path = path
        content = changed(content, path.name, CHUNK, 20)
        file.write(parts(content, 6))
    file.expect_without_any()
    # What they share outlives the first.
    site.run(Script().add("delete", 0), file.nodes, 6, {}, path=first)
    file.expect_without(["n3", "n5"])


def test_files_with_copies_and_with_stripes_live_in_one_store(site):
    file = File(site, "rs:4+2", 6)
    file.fill(1, 40 * CHUNK)
    copies, content = site.root / "copies", parts(noise(2, 6 * 40 * CHUNK), 6)
    site.run(Script().open("wc").write("all-at", content).close(), file.nodes, 6, {"replication": 3},
             path=copies).check()
    file.expect_without_any()
    other = Model()
    other.write(content)
    site.path = copies
    file.model = other
    file.expect_without(["n1", "n2"])


@pytest.mark.parametrize("before,after", [({"redundancy": "rs:4+2"}, {"replication": 2}),
                                          ({"replication": 2}, {"redundancy": "rs:4+2"}),
                                          ({"redundancy": "xor:5"}, {"redundancy": "rs:4+2"})])
def test_from_one_way_to_the_other(site, before, after):
    file = File(site, "rs:4+2", 6)
    for mode, hints in (("wc", before), ("w", after)):
        file.hints = {**hints, "chunk_size": CHUNK}
        file.fill(mode, 20 * CHUNK, mode)
        file.write({0: [(5, b"a few bytes")], 3: [(100000, b"and others")]}, "w")
        file.losses = 2 if hints.get("redundancy") == "rs:4+2" else 1
        file.expect_without_any()


def test_one_rank_alone_makes_stripes_on_all_nodes(site):
    """A communicator that does not reach the others' nodes."""
    file = File(site, "rs:3+2", 6)
    pieces = {0: [(0, noise(1, 100 * CHUNK))]}
    site.run(Script().open("wc", comm="self").write("at", pieces).close(), file.nodes, 6, file.hints)
    file.model.write(pieces)
    file.expect_without_any()


def test_small_independent_writes(site):
    file = File(site, "rs:4+2", 6)
    script = Script().open("wc")
    for step in range(30):
        pieces = {rank: [((step * 6 + rank) * 1000, noise(f"{step} {rank}", 1000))] for rank in range(6)}
        script.write("at", pieces)
        file.model.write(pieces)
    site.run(script.close(), file.nodes, 6, file.hints).check()
    file.expect_without_any()


@pytest.mark.parametrize("nodes,says", [(5, "stripes have 3 units"), (3, "each chunk is on 3 of them")])
def test_with_too_few_nodes_it_says_what_it_does(site, nodes, says):
    file = File(site, "rs:4+2", nodes)
    assert says in file.fill(1, 30 * CHUNK).stderr
    file.expect_without_any()


def test_with_fewer_nodes_than_losses_the_open_fails(site):
    file = File(site, "rs:4+2", 2)
    job = site.run(Script().open("wc"), file.nodes, 2, file.hints)
    assert set(job.errors_of("open")) == {"UNSUPPORTED_OPERATION"}, f"{job}"
    assert "dedup_redundancy=rs:4+2" in job.stderr + str(job) and "3 nodes" in str(job)


def segments(site, node):
    return sorted((site.file_directory(node) / "segments").iterdir())


def flip(path, places):
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("redundancy,nodes", [("xor:3", 4), ("rs:2+2", 4), ("rs:3+2", 6)])
def test_bytes_that_changed_are_never_read(site, redundancy, nodes):
    """A few anywhere in one node's segments, of its units, tables and parities, with one node less gone than may be."""
    file = File(site, redundancy, nodes)
    file.fill(1, 60 * CHUNK)
    rng = random.Random(f"{redundancy} {nodes}")
    for node in file.nodes:
        saved = {path: path.read_bytes() for path in segments(site, node)}
        for path, content in saved.items():
            flip(path, [rng.randrange(64, len(content)) for _ in range(3)])
        others = [other for other in file.nodes if other != node]
        file.expect_without(rng.sample(others, file.losses - 1))
        for path, content in saved.items():
            path.write_bytes(content)


def test_what_is_damaged_everywhere_is_an_error_that_names_it(site):
    file = File(site, "rs:2+2", 4)
    file.fill(1, 30 * CHUNK)
    for node in file.nodes[:3]:
        for path in segments(site, node):
            flip(path, range(100, path.stat().st_size, 1000))
    job, content, read = site.read_pieces(file.nodes, 4, CHUNK)
    good = bytes(file.model.content)
    assert 0 < sum(read) < len(read)
    for i, was_read in enumerate(read):
        if was_read:
            assert content[i * CHUNK:(i + 1) * CHUNK] == good[i * CHUNK:(i + 1) * CHUNK]
    assert "no copy of these bytes is left" in job.stderr


def test_what_was_damaged_is_healed(site):
    file = File(site, "rs:3+2", 6)
    file.fill(1, 60 * CHUNK)
    for node in ("n1", "n4"):
        for path in segments(site, node):
            flip(path, range(200, path.stat().st_size, 3000))
    file.heal(file.nodes, flags=1)
    file.expect_without_any()


def test_of_a_stripe_that_is_hardly_needed_the_rest_is_striped_anew(site):
    """Else what is not needed any more would stay with the little that is."""
    file = File(site, "rs:4+2", 6)
    size = 6 * 200 * CHUNK
    script = Script().open("wc")
    content = bytearray(noise("first", size))
    pieces = parts(bytes(content), 6)
    script.write("all-at", pieces).add("sync", 0)
    for step in range(8):
        for n in range(size // CHUNK):
            if n % 10 != 0:
                content[n * CHUNK:(n + 1) * CHUNK] = noise(f"{step} {n}", CHUNK)
        pieces = parts(bytes(content), 6)
        script.write("all-at", pieces).add("sync", 0)
        script.add("shell", f"cat {site.stores}/*/files/*/segments/* | wc -c > {site.root}/size{step}")
    file.model = Model(content)
    site.run(script.close(), file.nodes, 6, file.hints).check()
    sizes = [int((site.root / f"size{step}").read_text()) for step in range(8)]
    # First with all of the first stripes.
    assert sizes[0] > 2.5 * size and max(sizes[2:]) < 1.8 * size, sizes
    file.expect_without_any()


def test_a_stripe_that_others_have_dropped_is_not_taken_for_whole(site):
    """An index may still name what nothing referred to for a while, and the parities are gone."""
    file = File(site, "rs:4+2", 6, chunk_size=512)
    little, much = 32 << 10, 2 << 20
    again = noise("again", little)
    offset = 6 * little
    file.write({r: [(r * little, again if r == 0 else noise(f"{r} first", little))] for r in range(6)})
    file.write({r: [(offset + r * much, noise(f"{r} much", much))] for r in range(6)}, "w")
    # All of the first is written over; only n0 writes so little that its index stays.
    first = {r: [(r * little, noise(f"{r} over", little))] for r in range(6)}
    rest = {r: [(offset + (6 + r) * much, noise(f"{r} more", much if r else 512))] for r in range(6)}
    file.model.write(first)
    file.model.write(rest)
    site.run(Script().open("w").write("all-at", first).write("all-at", rest).close(), file.nodes, 6,
             file.hints).check()
    file.write({0: [(0, again)]}, "w")
    assert file.report()["losses_survived"] == 2
    for lost in (["n0"], ["n0", "n1"], ["n2", "n5"]):
        file.expect_without(lost)
    file.heal(file.nodes, flags=1)


def test_a_damaged_page_of_an_index_does_not_keep_from_healing(site):
    file = File(site, "rs:4+2", 6, chunk_size=512)
    file.fill(1, 512 << 10)
    (index,) = site.file_directory("n2").rglob("index")
    flip(index, [5 * 4096 + 100])
    file.heal(file.nodes)
    file.expect_without_any()


def test_a_damaged_table_does_not_keep_from_committing(site):
    file = File(site, "rs:4+2", 6, chunk_size=512)
    file.fill(1, 64 << 10)
    for path in segments(site, "n2"):
        flip(path, range(200, path.stat().st_size, 3000))
    file.write({r: [(r * 65536, noise(f"{r} new", 1024))] for r in range(6)}, "w")
    file.heal(file.nodes, flags=1)
    file.expect_without_any()


def test_a_chunk_in_two_stripes_comes_back_to_both_nodes(site):
    """Two ranks wrote it in one generation, and others, who did not have it, in the next."""
    file = File(site, "rs:2+2", 8)
    same = noise("same", 8 * CHUNK)
    for at, mode, ranks in ((0, "wc", (0, 1)), (32 << 20, "w", (5, 6))):
        file.write({r: [(at + r * 16 * CHUNK, same if r in ranks else noise(f"{at} {r}", 8 * CHUNK))]
                    for r in range(8)}, mode)
    damaged = 0
    for path in site.stores.rglob("*.seg"):
        content = path.read_bytes()
        places = [content.find(same[i:i + CHUNK]) for i in range(0, len(same), CHUNK)]
        flip(path, [place + 100 for place in places if place >= 0])
        damaged += sum(place >= 0 for place in places)
    assert damaged == 16
    file.heal(file.nodes, flags=1)
    file.expect_without_any()
