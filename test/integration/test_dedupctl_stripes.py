"""dedupctl and files in stripes (dedup_redundancy): what it shows, finds, reads without services, and mends."""

import itertools
import re

import pytest

from ctl import FAILED, FINE, NO_FILE, PROBLEMS, USAGE, dedupctl
from stores import Model, Script, check_file, difference, is_placeholder, noise, parts, shared_site

CHUNK = 4096
OWN = 12  # chunks of each rank that no other has
WAYS = [("xor:2", 3), ("rs:4+2", 6), ("rs:3+2", 7), ("rs:2+3", 5)]
UNIT_TABLE, WHOLE_TABLE, PARITY = 0x00, 0x40, 0x80  # doc/format.md, "Fingerprints"


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


class File:
    """A block that all ranks have, so that copies are kept of it, and what each has alone, which is in stripes."""

    def __init__(self, site, redundancy, nodes, path=None, own=OWN, **hints):
        self.site = site
        self.redundancy = redundancy
        self.nodes = [f"n{i}" for i in range(nodes)]
        self.losses = int(redundancy.split("+")[1]) if "+" in redundancy else 1
        self.data = int(re.search(r"\d+", redundancy)[0])
        self.path = path or site.path
        size = (own + 4) * CHUNK
        self.pieces = {rank: [(rank * size, noise("same", 4 * CHUNK) + noise(f"{self.path.name} {rank}", own * CHUNK))]
                       for rank in range(nodes)}
        self.model = Model()
        self.model.write(self.pieces)
        site.run(Script().open("wc").write("all-at", self.pieces).close(), self.nodes, nodes,
                 {"redundancy": redundancy, "chunk_size": CHUNK, **hints}, path=self.path).check()
        self.walked = self.walk()
        self.identity = self.walked["identity"]

    def walk(self, *nodes):
        (walked,) = (file for file in self.site.walk(*nodes)["files"] if file["path"] == str(self.path))
        return walked

    def own(self, rank, number):
        """One of the chunks that only this rank has."""
        begin = (4 + number) * CHUNK
        return self.pieces[rank][0][1][begin:begin + CHUNK]

    def ask(self, *words, without=(), **options):
        """Of this host's stores, but for some."""
        stores = [self.site.store(node) for node in self.nodes if node not in without]
        return dedupctl(self.site, *words, self.identity, stores=stores, **options)

    def expect_cat(self, without=(), code=FINE):
        answer = self.ask("cat", without=without, text=False)
        assert answer.code == code, answer
        wrong = difference(answer.out, bytes(self.model.content))
        assert wrong is None, f"without {without}: {wrong}"

    def sets_of(self, most, of=None):
        of = self.nodes if of is None else of
        return [lost for count in range(1, most + 1) for lost in itertools.combinations(of, count)]

    def a_stripe(self):
        """One with as many units as they may have, by its id."""
        return next((name, stripe) for name, stripe in sorted(self.walked["stripes"].items())
                    if stripe["data"] == self.data)

    def place_of(self, node, content):
        """Where in a node's segments these bytes stand."""
        for segment in sorted((self.site.store(node) / "files" / self.identity / "segments").iterdir()):
            at = segment.read_bytes().find(content)
            if at >= 0:
                return segment, at
        raise AssertionError(f"{node} does not have {content[:8]}")

    def place_of_part(self, stripe, part, slot):
        """The header of a table or parity."""
        node = self.walked["stripes"][stripe]["nodes"][slot]
        name = bytes.fromhex(stripe) + bytes([part | slot]) + bytes(9) + b"\x04" + bytes(5)
        segment, at = self.place_of(node, name)
        return node, segment, at - 12

    def damage(self, segment, at):
        content = bytearray(segment.read_bytes())
        content[at] ^= 0x10
        segment.write_bytes(content)

    def damage_part(self, stripe, part, slot):
        node, segment, at = self.place_of_part(stripe, part, slot)
        self.damage(segment, at + 52 + 5)
        return node

    def cut_off_part(self, stripe, part, slot):
        """And all that stands behind it in its segment."""
        node, segment, at = self.place_of_part(stripe, part, slot)
        with open(segment, "r+b") as file:
            file.truncate(at)
        return node

    def expect_whole(self, nodes=None):
        """By check and by the stores themselves."""
        answer = dedupctl(self.site, "--json", "check", self.path)
        assert (answer.code, answer.file["result"]) == (FINE, "sound"), answer
        assert answer.file["whole_stripes"] == answer.file["stripes"]
        check_file(self.walk(*(nodes or [])), self.losses + 1, nothing_else=False)


@pytest.fixture(name="file", params=WAYS, ids=[way for way, _ in WAYS])
def fixture_file(request, site):
    return File(site, *request.param)


@pytest.fixture(name="six")
def fixture_six(site):
    return File(site, "rs:4+2", 6)


def test_what_is_whole(file, where):
    site = file.site
    nodes = where(file.nodes)
    check_file(file.walked, file.losses + 1)
    answer = dedupctl(site, "--json", "ls", nodes=nodes)
    assert answer.code == FINE, answer
    assert answer.file["redundancy"] == file.redundancy
    assert answer.file["replication"] == answer.file["certain_copies"] == file.losses + 1
    assert f"{file.redundancy}: {file.losses} of {file.losses} losses" in dedupctl(site, "ls", nodes=nodes).out

    stat = dedupctl(site, "--json", "stat", site.path, nodes=nodes).file
    in_stripes = [chunk for chunk in file.walked["chunks"] if chunk["stripe"]]
    assert len(in_stripes) == OWN * len(file.nodes)
    assert stat["stripes"] == stat["whole_stripes"] == len(file.walked["stripes"])
    assert stat["in_stripes"] == [{"losses_survived": file.losses, "chunks": len(in_stripes),
                                   "bytes": len(in_stripes) * CHUNK}]
    assert [row["chunks"] for row in stat["by_copies"]] == [4]
    assert stat["unique_chunks"] == len(file.walked["chunks"]) and stat["losses_survived"] == file.losses
    assert f"{len(in_stripes)} chunks survive any {file.losses} losses" in dedupctl(site, "stat", nodes=nodes).out
    stores = dedupctl(site, "--json", "df", nodes=nodes).json["stores"]
    assert sum(store["live_bytes"] for store in stores) <= site.segment_bytes()

    answer = dedupctl(site, "--json", "check", nodes=nodes)
    assert (answer.code, answer.file["problems"]) == (FINE, []), answer
    assert answer.file["whole_stripes"] == stat["stripes"]
    # Parities and tables are read, too.
    assert answer.file["checked_chunks"] == sum(row["chunks"] for row in stat["nodes"])
    assert f"any {file.losses} stores may be lost" in dedupctl(site, "check", nodes=nodes).out

    answer = dedupctl(site, "--json", "heal", nodes=file.nodes)
    assert (answer.code, answer.file["healthy"], answer.file["generation"]) == (FINE, True, 1), answer


def test_any_stores_are_lost_that_may_be(file):
    for lost in file.sets_of(file.losses):
        file.expect_cat(lost)
        check = file.ask("--json", "check", without=lost)
        assert (check.code, check.file["result"], check.file["lost_bytes"]) == (PROBLEMS, "degraded", 0), check
        assert check.file["lowest_copies"] == file.losses + 1 - len(lost)
        stat = file.ask("--json", "stat", without=lost).file
        assert stat["unique_chunks"] == len(file.walked["chunks"])
        assert stat["losses_survived"] == file.losses - len(lost)


@pytest.mark.parametrize("ranks", [None, 1, 2])
def test_export_by_several_ranks(file, ranks):
    """A rank a store, and several of them on one."""
    site = file.site
    for lost in (file.nodes[:file.losses], file.nodes[-file.losses:], file.nodes[1::2][:file.losses]):
        site.lose(*lost)
        left = [node for node in file.nodes if node not in lost]
        nodes = {"nodes": left, "ranks": ranks * len(left)} if ranks else {}
        target = site.root / "exported"
        answer = dedupctl(site, "--json", "export", file.identity, target, "--force", **nodes)
        assert (answer.code, answer.file["lost_bytes"]) == (FINE, 0), answer
        assert difference(target.read_bytes(), bytes(file.model.content)) is None
        answer = dedupctl(site, "cat", file.identity, text=False, **nodes)
        assert answer.code == FINE and answer.out == bytes(file.model.content), answer
        answer = dedupctl(site, "--json", "check", file.identity, **nodes)
        assert (answer.code, answer.file["lost_bytes"]) == (PROBLEMS, 0), answer
        site.bring_back(*lost)


def test_what_is_lost_has_a_name(file):
    """Never other bytes: an error, or zeros if that is asked for, just where check says."""
    sets = list(itertools.combinations(file.nodes, file.losses + 1))
    for lost in sets[::max(1, len(sets) // 6)]:
        check = file.ask("--json", "check", without=lost)
        assert (check.code, check.file["result"]) == (PROBLEMS, "lost"), check
        ranges = [(row["offset"], row["offset"] + row["length"]) for row in check.file["lost_ranges"]]
        answer = file.ask("cat", without=lost, text=False)
        assert answer.code == PROBLEMS, answer
        for begin, end in ranges[:10]:
            assert f"bytes {begin} to {end - 1}" in answer.err, answer
        expected = bytearray(file.model.content)
        for begin, end in ranges:
            expected[begin:end] = bytes(end - begin)
        answer = file.ask("cat", "--incomplete", without=lost, text=False)
        assert answer.code == PROBLEMS and difference(answer.out, bytes(expected)) is None, answer
        assert sum(end - begin for begin, end in ranges) == check.file["lost_bytes"]


def test_a_damaged_chunk_counts_for_itself(file):
    """With one node less that may be lost."""
    node = file.nodes[0]
    file.damage(*file.place_of(node, file.own(0, 5)))
    answer = file.ask("--json", "check")
    assert (answer.code, answer.file["bad_chunks"], answer.file["lost_bytes"]) == (PROBLEMS, 1, 0), answer
    assert {"n0", ""} == {problem["node"] for problem in answer.file["problems"]}
    assert "chunks of 1 units" in file.ask("check").out
    file.expect_cat()
    others = file.nodes[1:]
    for lost in file.sets_of(file.losses - 1, others):
        file.expect_cat(lost)
    # Beyond that, what does not stand where the damage is can still be made of the same unit.
    damaged = [lost for lost in itertools.combinations(others, file.losses)]
    for lost in damaged:
        check = file.ask("--json", "check", without=lost)
        assert check.file["lost_bytes"] <= CHUNK * (2 * file.losses + 1), check
    assert any(file.ask("cat", without=lost).code == PROBLEMS for lost in damaged)


def test_stores_of_which_every_chunk_is_damaged(file):
    """As many as may be lost, and not one more."""
    for node in file.nodes[:file.losses + 1]:
        if node == file.nodes[file.losses]:
            file.expect_cat()
            check = file.ask("--json", "check")
            assert (check.code, check.file["lost_bytes"]) == (PROBLEMS, 0), check
        for segment in file.site.store(node).rglob("*.seg"):
            content = bytearray(segment.read_bytes())
            for place in range(64 + 100, len(content), CHUNK - 96):
                content[place] ^= 0x10
            segment.write_bytes(content)
    check = file.ask("--json", "check")
    assert (check.code, check.file["result"]) == (PROBLEMS, "lost"), check
    answer = file.ask("cat", text=False)
    assert answer.code == PROBLEMS and f"bytes {check.file['lost_ranges'][0]['offset']} to " in answer.err, answer


@pytest.mark.parametrize("ranks", [None, 1, 2])
def test_many_units_are_made_in_rounds(site, ranks):
    """More of them than are made at the same time."""
    # Too little memory for a dump to make whole stripes: a commit makes smaller ones.
    file = File(site, "rs:4+2", 6, own=600, buffer=8 << 20)
    assert len(file.walked["stripes"]) > 50
    lost = ["n0", "n3"]
    site.lose(*lost)
    left = [node for node in file.nodes if node not in lost]
    nodes = {"nodes": left, "ranks": ranks * len(left)} if ranks else {}
    answer = dedupctl(site, "cat", file.identity, text=False, **nodes)
    assert answer.code == FINE and answer.out == bytes(file.model.content), answer
    check = dedupctl(site, "--json", "check", file.identity, **nodes)
    assert (check.code, check.file["lost_bytes"], check.file["lowest_copies"]) == (PROBLEMS, 0, 1), check


@pytest.mark.parametrize("part,slot,word", [(PARITY, 4, "1 parities"), (PARITY, 5, "1 parities"),
                                            (WHOLE_TABLE, 4, "1 tables"), (UNIT_TABLE, 2, "1 tables")])
def test_a_damaged_part_is_found_and_mended(six, where, part, slot, word):
    name, stripe = six.a_stripe()
    node = six.damage_part(name, part, slot)
    assert slot not in six.walk()["stripes"][name]["sound"]
    answer = dedupctl(six.site, "--json", "check", nodes=where(six.nodes))
    assert (answer.code, answer.file["result"], answer.file["bad_chunks"]) == (PROBLEMS, "degraded", 1), answer
    assert any(problem["node"] == node and word in problem["text"] for problem in answer.file["problems"]), answer
    assert answer.file["whole_stripes"] == answer.file["stripes"] - 1
    for lost in itertools.combinations([other for other in stripe["nodes"] if other != node], 1):
        six.expect_cat(lost)
    answer = dedupctl(six.site, "--json", "check", "--repair", nodes=six.nodes)
    assert (answer.code, answer.file["bad_chunks"]) == (FINE, 1), answer
    six.expect_whole()
    for lost in six.sets_of(2):
        six.expect_cat(lost)


@pytest.mark.parametrize("part,slot", [(PARITY, 4), (WHOLE_TABLE, 5), (UNIT_TABLE, 1)])
def test_heal_makes_parts_that_are_missing(six, part, slot):
    """It looks for them before it calls a file healthy."""
    name, _ = six.a_stripe()
    node = six.cut_off_part(name, part, slot)
    answer = dedupctl(six.site, "--json", "check", six.path)
    assert answer.code == PROBLEMS and node in {problem["node"] for problem in answer.file["problems"]}, answer
    answer = dedupctl(six.site, "--json", "heal", nodes=six.nodes)
    assert (answer.code, answer.file["healthy"], answer.file["lowest_copies"]) == (FINE, False, 3), answer
    assert answer.file["copies_made"] > 0
    six.expect_whole()
    assert dedupctl(six.site, "--json", "heal", nodes=six.nodes).file["healthy"]


def test_repair_of_a_chunk_with_a_lost_node(six):
    site = six.site
    six.damage(*six.place_of("n0", six.own(0, 3)))
    site.lose("n3")
    left = [node for node in six.nodes if node != "n3"]
    answer = dedupctl(site, "--json", "check", "--repair", nodes=left)
    assert (answer.code, answer.file["lost_chunks"]) == (FINE, 0), answer
    for lost in itertools.combinations(left, 2):
        answer = dedupctl(site, "cat", six.identity, stores=[site.store(node) for node in left if node not in lost],
                          text=False)
        assert answer.code == FINE and answer.out == bytes(six.model.content), answer


def test_heal(file):
    site = file.site
    lost = file.nodes[1:1 + file.losses]
    site.lose(*lost)
    left = [node for node in file.nodes if node not in lost]
    answer = dedupctl(site, "--json", "heal", nodes=left)
    # Of what fewer nodes can have.
    losses = min(file.losses, len(left) - 1)
    assert answer.file["lost_chunks"] == 0 and answer.file["lowest_copies"] == losses + 1, answer
    assert answer.code == (FINE if losses == file.losses else PROBLEMS), answer
    for gone in itertools.combinations(left, losses):
        answer = dedupctl(site, "cat", file.identity, stores=[site.store(node) for node in left if node not in gone],
                          text=False)
        assert answer.code == FINE and answer.out == bytes(file.model.content), answer
    assert not file.walk()["problems"]


def test_heal_gives_up_what_is_lost_only_if_asked(six):
    site = six.site
    site.lose("n0", "n2", "n4")
    left = ["n1", "n3", "n5"]
    answer = dedupctl(site, "--json", "heal", nodes=left)
    assert answer.code == PROBLEMS and "nothing was changed" in answer.err, answer
    assert six.walk()["generation"] == 1
    answer = dedupctl(site, "--json", "heal", "--accept-loss", nodes=left)
    assert answer.code == PROBLEMS and answer.file["lost_chunks"] > 0, answer


def test_copies_in_place_of_stripes(six):
    """Stripes stay where they are as good."""
    answer = dedupctl(six.site, "heal", "--replication", 3, nodes=six.nodes)
    assert answer.code == FINE, answer
    file = dedupctl(six.site, "--json", "check", six.path).file
    assert (file["redundancy"], file["result"], file["lowest_copies"], file["wanted_copies"]) == ("copies", "sound", 3, 3)
    assert "any 2 stores may be lost, 2 wanted" in dedupctl(six.site, "check", six.path).out
    six.expect_cat(("n2", "n5"))
    # What the stripes survive is not enough for more copies.
    assert dedupctl(six.site, "heal", "--replication", 4, nodes=six.nodes).code == FINE
    file = dedupctl(six.site, "--json", "stat", six.path).file
    assert (file["stripes"], file["in_stripes"]) == (0, [])
    assert min(row["copies"] for row in file["by_copies"]) == 4
    six.expect_cat(("n1", "n2", "n5"))


def test_the_odds_are_of_what_is_there(six, where):
    site = six.site
    odds = dedupctl(site, "--json", "stat", site.path, nodes=where(six.nodes)).file["loss_odds"]
    for lost, told in zip((3, 4), odds):
        sets = list(itertools.combinations(six.nodes, lost))
        fatal = sum(six.ask("--json", "stat", without=gone).file["lost_bytes"] > 0 for gone in sets)
        assert told == pytest.approx(fatal / len(sets))
    # Without a parity, one loss less.
    name, _ = six.a_stripe()
    six.cut_off_part(name, PARITY, 5)
    assert dedupctl(site, "--json", "stat", site.path).file["losses_survived"] == 1


def test_import_in_stripes(site):
    content = noise(1, 6 * OWN * CHUNK)
    source = site.root / "source"
    source.write_bytes(content)
    nodes = [f"n{i}" for i in range(6)]
    answer = dedupctl(site, "import", "--redundancy", "rs:4+2", source, site.path, nodes=nodes)
    assert answer.code == FINE and is_placeholder(site.path), answer
    assert dedupctl(site, "--json", "ls").file["redundancy"] == "rs:4+2"
    check_file(site.walk()["files"][0], 3)
    other = site.root / "data" / "other"
    answer = dedupctl(site, "import", source, other, nodes=nodes, hints={"redundancy": "xor:3"})
    assert answer.code == FINE, answer
    assert dedupctl(site, "--json", "ls", other).file["redundancy"] == "xor:3"
    for way in ("rs:4", "rs:0+2", "xor:64", "raid"):
        answer = dedupctl(site, "import", "--redundancy", way, source, site.root / "data" / "third", nodes=nodes)
        assert answer.code == USAGE and "rs:k+m" in answer.err, answer
    answer = dedupctl(site, "import", "--redundancy", "rs:4+2", "--replication", 2, source,
                      site.root / "data" / "third", nodes=nodes)
    assert answer.code == FAILED and "dedup_replication" in answer.err, answer


def test_files_of_both_kinds_side_by_side(six, where):
    site = six.site
    copied = Model(noise(7, 6 * OWN * CHUNK))
    path = site.root / "data" / "copied"
    site.run(Script().open("wc").write("all-at", parts(bytes(copied.content), 6)).close(), six.nodes, 6,
             {"replication": 3}, path=path).check()
    answer = dedupctl(site, "--json", "check", nodes=where(six.nodes))
    assert answer.code == FINE, answer
    assert {row["redundancy"]: row["stripes"] > 0 for row in answer.json["files"]} == {"rs:4+2": True, "copies": False}
    site.lose("n1", "n4")
    left = [node for node in six.nodes if node not in ("n1", "n4")]
    answer = dedupctl(site, "export", "--all", site.root / "all", nodes=where(left))
    assert answer.code == FINE, answer
    for name, content in ((six.path, six.model.content), (path, copied.content)):
        assert difference((site.root / "all" / str(name)[1:]).read_bytes(), bytes(content)) is None


def test_rm_and_gc(six):
    """A rewrite leaves stripes behind that nobody needs; a removed file nothing."""
    site = six.site
    content = bytearray(six.model.content)
    for rank in range(6):
        begin = rank * (OWN + 4) * CHUNK
        content[begin + 5 * CHUNK:begin + 9 * CHUNK] = noise(f"new {rank}", 4 * CHUNK)
    site.run(Script().open("w").write("all-at", parts(bytes(content), 6)).close(), six.nodes, 6,
             {"redundancy": "rs:4+2", "chunk_size": CHUNK}).check()
    six.model = Model(content)
    assert dedupctl(site, "gc", nodes=six.nodes).code == FINE
    six.expect_whole()
    for lost in six.sets_of(2):
        six.expect_cat(lost)
    assert dedupctl(site, "rm", site.path, nodes=six.nodes).code == FINE
    assert not site.path.exists() and not list(site.stores.rglob("*.seg"))
    assert dedupctl(site, "check", six.identity).code == NO_FILE
