"""dedupctl rm, gc, heal and check --repair."""

import os
import re
import shutil

import pytest

from ctl import FAILED, FINE, IN_USE, NO_FILE, PROBLEMS, USAGE, dedupctl
from stores import Model, Script, Site, is_placeholder, noise, parts, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
HINTS = {"replication": 2}


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def write_four(site, seed=1, replication=2):
    model = Model(noise(seed, 300_001))
    site.write(parts(bytes(model.content), 4), FOUR, 4, {"replication": replication})
    return model


def identities(site, node):
    return [path.name for path in (site.store(node) / "files").iterdir()
            if re.fullmatch("[0-9a-f]{32}", path.name)]


def marks(site, node):
    return list((site.store(node) / "marks").iterdir())


def hold_open(site, start, mode):
    script = Script().open(mode).add("touch", site.root / "open").add("wait", site.root / "go")
    job = start(script.close(), FOUR, 4, HINTS)
    job.wait_for(site.root / "open")
    return job


def flip(site, node, step=4000):
    for segment in (site.file_directory(node) / "segments").iterdir():
        content = bytearray(segment.read_bytes())
        for place in range(64 + 100, len(content), step):
            content[place] ^= 0x10
        segment.write_bytes(content)


# ---- rm -----------------------------------------------------------------------------------------


def test_rm(site, where):
    write_four(site)
    answer = dedupctl(site, "rm", site.path, nodes=where(FOUR))
    assert answer.code == FINE, answer
    assert not site.path.exists()
    assert [identities(site, node) for node in FOUR] == [[]] * 4
    assert [marks(site, node) for node in FOUR] == [[]] * 4
    assert dedupctl(site, "rm", site.path, nodes=where(FOUR)).code == NO_FILE


def test_rm_with_a_store_away(site, where):
    """It drops the file when it comes back."""
    write_four(site)
    site.lose("n3")
    answer = dedupctl(site, "rm", site.path, nodes=where(FOUR[:3]))
    assert answer.code == FINE and "is not here" in answer.err, answer
    assert all(len(marks(site, node)) == 1 for node in FOUR[:3])
    shutil.move(site.away / "n3", site.store("n3"))
    assert dedupctl(site, "--json", "ls").json["files"][0]["state"] == "deleted"
    answer = dedupctl(site, "gc", nodes=where(FOUR))
    assert answer.code == FINE and identities(site, "n3") == [], answer
    assert [marks(site, node) for node in FOUR] == [[]] * 4


@pytest.mark.parametrize("mode", ["r", "w"])
def test_rm_of_what_a_job_has_open(site, start, where, mode):
    model = write_four(site)
    job = hold_open(site, start, mode)
    answer = dedupctl(site, "rm", site.path, nodes=where(FOUR))
    assert answer.code == IN_USE and "n0" in answer.err, answer
    assert is_placeholder(site.path)
    (site.root / "go").touch()
    job.finish().check()
    site.expect(model, 4, 4)


def test_rm_on_some_nodes_ends_a_conflict(tmp_path, where):
    site = Site(tmp_path)
    hints = {"replication": 4}
    site.write(parts(noise(1, 50_000), 4), FOUR, 4, hints)
    for nodes in (FOUR[:2], FOUR[2:]):
        site.run(Script().open("w").write("all-at", {0: [(0, nodes[0].encode())]}).close(), nodes,
                 2, hints).check()
    assert dedupctl(site, "check", nodes=where(FOUR)).code == PROBLEMS
    answer = dedupctl(site, "rm", "--on", "n2", "--on", "n3", site.path, nodes=where(FOUR))
    assert answer.code == FINE, answer
    answer = dedupctl(site, "check", nodes=where(FOUR))
    # Of two nodes, and four copies were asked for.
    assert answer.code == PROBLEMS and "generation 2" in answer.out, answer
    assert site.read(FOUR, 4)[:2] == b"n0"


# ---- gc -----------------------------------------------------------------------------------------


def test_gc_frees_what_a_killed_job_left(site, where):
    model = write_four(site)
    kill = {"DEDUP_TEST_KILL": "commit.shards:1:0"}
    site.run(Script().open("w").write("all-at", parts(noise(2, 300_001), 4)).close(), FOUR, 4,
             HINTS, environment=kill)
    before = sum(site.bytes_used(node) for node in FOUR)
    answer = dedupctl(site, "--json", "gc", nodes=where(FOUR))
    assert answer.code == FINE and answer.json["freed_bytes"] > 300_000, answer
    assert sum(site.bytes_used(node) for node in FOUR) < before - 300_000
    site.check_stores(model, 2)
    assert dedupctl(site, "check").code == FINE


def test_gc_leaves_what_is_not_sure(site, where):
    """A commit that was broken: one store has only prepared what the others have committed. With
    these away, or here, its part must stay."""
    write_four(site)
    changed = noise(2, 300_001)

    def committed(node):
        records = (site.file_directory(node) / "generations").glob("*/record")
        return {path.parent.name for path in records}

    # The others may be ended, too, before they have committed: then it is done again, by a job that
    # first finishes what only some have committed.
    for _ in range(20):
        site.run(Script().open("w").write("all-at", parts(changed, 4)).close(), FOUR, 4, HINTS,
                 environment={"DEDUP_TEST_KILL": "commit.prepared:1:0"})
        broken = set.intersection(*(committed(node) for node in FOUR[1:])) - committed("n0")
        if broken:
            break
    assert len(broken) == 1
    answer = dedupctl(site, "gc", nodes=where(FOUR))
    assert answer.code == FINE and "left as it is" in answer.out, answer
    # Logs die with their job.
    assert not any(list((site.file_directory(node) / "logs").iterdir()) for node in FOUR)
    before = [site.bytes_used(node) for node in FOUR]
    site.lose("n1", "n2", "n3")
    answer = dedupctl(site, "gc", nodes=where(["n0"]))
    assert answer.code == FINE and "left as it is" in answer.out, answer
    site.bring_back("n1", "n2", "n3")
    assert [site.bytes_used(node) for node in FOUR] == before
    site.expect(Model(changed), 4, 4)


def test_gc_and_files_without_a_name(site, where):
    write_four(site)
    site.path.unlink()
    answer = dedupctl(site, "gc", nodes=where(FOUR))
    assert answer.code == FINE and "--unnamed" in answer.out, answer
    assert all(identities(site, node) for node in FOUR)
    answer = dedupctl(site, "gc", "--yes", nodes=where(FOUR))
    assert answer.code == USAGE and "--unnamed" in answer.err, answer
    # Not what the file system has more free, which it may say later.
    taken = sum(path.stat().st_blocks * 512 for node in FOUR
                for path in site.file_directory(node).rglob("*") if path.is_file())
    answer = dedupctl(site, "--json", "gc", "--unnamed", nodes=where(FOUR))
    assert (answer.code, answer.json["dropped_files"]) == (FINE, 0), answer
    assert str(site.path) in answer.json["notes"][0]
    assert all(identities(site, node) for node in FOUR)
    answer = dedupctl(site, "gc", "--unnamed", site.path.with_name("other"), nodes=where(FOUR))
    assert answer.code == NO_FILE and all(identities(site, node) for node in FOUR), answer
    answer = dedupctl(site, "--json", "gc", "--unnamed", site.path, nodes=where(FOUR))
    assert (answer.code, answer.json["dropped_files"]) == (FINE, 4), answer
    assert answer.json["freed_bytes"] == taken > 2 * 300_000, answer
    assert not any(identities(site, node) for node in FOUR)


def leftovers(site):
    """The kinds of them."""
    names = [re.sub("-[0-9a-f]{32}$", "", path.name) for path in site.root.rglob("*")]
    return {name.partition(".")[2] for name in names
            if name.endswith((".log", ".tmp", ".dedup-tmp"))}


@pytest.mark.parametrize("step, left", [("commit.begin", {"log"}),
                                        ("commit.prepared", {"log", "tmp"}),
                                        ("commit.unfenced", {"log", "file.dedup-tmp"})])
def test_gc_finds_all_that_killed_jobs_left(site, where, step, left):
    """Beside a committed generation, and of a file that has none yet."""
    old = write_four(site)
    changed = noise(2, 200_000)
    script = Script().open("w").write("all-at", parts(changed, 4))
    script.add("barrier").write("at", {rank: [(rank, b"x")] for rank in range(4)})
    new = old.copy()
    new.write({0: [(0, b"xxxx" + changed[4:])]})
    kill = {"DEDUP_TEST_KILL": f"{step}:1:0"}
    site.run(script.add("sync", 0).close(), FOUR, 4, HINTS, environment=kill)
    assert left <= leftovers(site)
    # A store that is not here is no reason to keep what no store can need.
    answer = dedupctl(site, "gc", nodes=where(FOUR[:3]))
    assert answer.code in (FINE, PROBLEMS), answer
    assert not any(list((site.file_directory(node) / "logs").iterdir()) for node in FOUR[:3])
    answer = dedupctl(site, "gc", nodes=where(FOUR))
    assert answer.code == FINE, answer
    # What the others have committed is finished by the next job.
    assert leftovers(site) <= ({"tmp"} if "heal it" in answer.out else set())
    assert site.read(FOUR, 4) in (bytes(old.content), bytes(new.content))


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_gc_finds_a_record_that_was_not_written(site, where, content):
    """The job was killed when it had just created it, before anything was committed. One that is
    damaged may be that of a generation that other stores have."""
    script = Script().open("wc").write("all-at", parts(noise(1, 300_001), 4)).close()
    site.run(script, FOUR, 4, HINTS, environment={"DEDUP_TEST_KILL": "commit.indexed:1:0"})
    attempts = list(site.stores.glob("*/files/*/generations/*"))
    assert attempts and not any((attempt / "record").exists() for attempt in attempts)
    (attempts[0] / "record.tmp").write_bytes(content)
    answer = dedupctl(site, "gc", nodes=where(FOUR))
    assert answer.code == FINE and ("left" in answer.out) == bool(content), answer
    assert any(identities(site, node) for node in FOUR) == bool(content)


def test_gc_leaves_what_was_moved(site, where):
    """Also with --yes: into a directory below, and to where it is searched for. Not what was
    moved elsewhere, which nobody can know."""
    model = write_four(site)
    below = site.path.with_name("below")
    below.mkdir()
    (site.root / "far" / "away").mkdir(parents=True)
    site.path.rename(below / "file")
    gc = ("--json", "gc", "--unnamed", "--yes")
    answer = dedupctl(site, *gc, nodes=where(FOUR))
    assert (answer.code, answer.json["dropped_files"]) == (FINE, 0), answer
    (below / "file").rename(site.root / "far" / "away" / "file")
    answer = dedupctl(site, "--search", site.root, *gc, nodes=where(FOUR))
    assert (answer.code, answer.json["dropped_files"]) == (FINE, 0), answer
    (site.root / "far" / "away" / "file").rename(site.path)
    site.expect(model, 4, 4)
    site.path.rename(site.root / "far" / "away" / "file")
    answer = dedupctl(site, *gc, nodes=where(FOUR))
    assert (answer.code, answer.json["dropped_files"]) == (FINE, 4), answer


def test_rm_of_what_was_moved(site, where):
    write_four(site)
    moved = site.path.with_name("moved")
    site.path.rename(moved)
    answer = dedupctl(site, "rm", site.path, nodes=where(FOUR))
    assert answer.code == NO_FILE and str(moved) in answer.err and moved.exists(), answer
    identity = identities(site, "n0")[0]
    answer = dedupctl(site, "rm", identity, nodes=where(FOUR))
    assert answer.code == FINE and not moved.exists(), answer
    assert not any(identities(site, node) for node in FOUR)


@pytest.mark.parametrize("mode", ["r", "w"])
def test_gc_leaves_what_a_job_has_open(site, start, where, mode):
    model = write_four(site)
    job = hold_open(site, start, mode)
    site.path.rename(site.root / "elsewhere")
    answer = dedupctl(site, "gc", "--unnamed", "--yes", nodes=where(FOUR))
    assert answer.code == FINE and all(identities(site, node) for node in FOUR), answer
    (site.root / "elsewhere").rename(site.path)
    (site.root / "go").touch()
    job.finish().check()
    site.expect(model, 4, 4)


# ---- heal, check --repair -----------------------------------------------------------------------


def test_heal(site, where):
    model = write_four(site)
    site.lose("n1")
    left = ["n0", "n2", "n3"]
    answer = dedupctl(site, "--json", "heal", nodes=where(left), ranks=where(left) and 5)
    assert answer.code == FINE, answer
    file = answer.file
    assert file["path"] == str(site.path) and file["generation"] == 2
    assert (file["lowest_copies"], file["wanted_copies"], file["lost_chunks"]) == (2, 2, 0)
    assert file["copies_made"] > 0
    assert dedupctl(site, "check", nodes=where(left)).code == FINE
    site.check_stores(model, 2, *left, nothing_else=False)


@pytest.mark.parametrize("verify", [[], ["--verify"]])
def test_heal_leaves_what_is_healthy(site, verify):
    model = write_four(site)
    answer = dedupctl(site, "--json", "heal", *verify, nodes=FOUR)
    file = answer.file
    assert answer.code == FINE and file["healthy"] and file["generation"] == 1, answer
    assert (file["copies_made"], file["lowest_copies"], file["wanted_copies"]) == (0, 2, 2)
    assert (file["checked_chunks"] > 0) == bool(verify)
    flip(site, "n2")
    answer = dedupctl(site, "--json", "heal", *verify, nodes=FOUR)
    assert answer.file["healthy"] == (not verify), "a bad copy is seen by who reads it"
    assert answer.file["generation"] == (2 if verify else 1)
    site.expect(model, 4, 4)


def test_fewer_nodes_than_copies(site):
    """What was asked for is not forgotten: it is said at the commit, and by every tool, until there
    are as many nodes."""
    model = Model(noise(1, 300_001))
    job = site.run(Script().open("wc").write("all-at", parts(bytes(model.content), 2)).add("sync", 0)
                   .write("all-at", {0: [(0, model.content[:9])]}).close(), FOUR[:2], 2,
                   {"replication": 5})
    job.check()
    assert job.stderr.count("copies are wanted") == 1 and "5 copies are wanted" in job.stderr, job.stderr
    answer = dedupctl(site, "ls")
    assert answer.code == PROBLEMS and "2 of 5" in answer.out, answer
    answer = dedupctl(site, "--json", "check")
    assert (answer.code, answer.file["wanted_copies"]) == (PROBLEMS, 5), answer
    assert (answer.file["lowest_copies"], answer.file["result"]) == (2, "degraded")
    for nodes, generation, copies in ((FOUR[:2], 2, 2), (FOUR, 3, 4), (FOUR, 3, 4)):
        answer = dedupctl(site, "--json", "heal", nodes=nodes)
        assert answer.code == PROBLEMS, answer
        found = answer.file
        assert (found["generation"], found["lowest_copies"], found["wanted_copies"]) == (
            generation, copies, 5), answer
        assert not found["healthy"]
    answer = dedupctl(site, "heal", "--replication", 4, nodes=FOUR)
    assert answer.code == FINE and "4 wanted" in answer.out, answer
    assert dedupctl(site, "ls").code == FINE
    site.expect(model, 4, 4)


def test_a_default_that_cannot_be_had_on_one_node(site):
    """Nobody asked for two copies."""
    content = noise(1, 100_000)
    job = site.run(Script().open("wc").write("all-at", parts(content, 2)).close(), ["n0"], 2)
    job.check()
    assert "copies" not in job.stderr, job.stderr
    answer = dedupctl(site, "ls")
    assert answer.code == FINE and "1 of 1" in answer.out, answer
    answer = dedupctl(site, "check")
    assert answer.code == FINE and "1 wanted" in answer.out, answer


def test_a_healed_store_keeps_its_nodes_name(site):
    site.run(Script().open("wc").write("all-at", parts(noise(1, 100_000), 2)).close(), FOUR[:2], 2,
             HINTS).check()
    site.lose("n1")
    answer = dedupctl(site, "heal", stores=[site.store("n0")])
    assert answer.code == PROBLEMS, answer
    answer = dedupctl(site, "--json", "ls")
    assert [store["node"] for store in answer.file["stores"]] == ["n0"], answer


def test_heal_onto_a_new_node(site):
    model = write_four(site)
    site.lose("n1")
    answer = dedupctl(site, "--json", "heal", nodes=["n0", "n2", "n3", "new"])
    assert answer.code == FINE and answer.file["lowest_copies"] == 2, answer
    site.check_stores(model, 2, "n0", "n2", "n3", "new", nothing_else=False)


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_heal_brings_back_segments_that_are_not_whole(site, damage):
    model = write_four(site)
    segment = max((site.file_directory("n1") / "segments").iterdir(), key=lambda p: p.stat().st_size)
    if damage == "gone":
        segment.unlink()
    else:
        os.truncate(segment, segment.stat().st_size - 1)
    answer = dedupctl(site, "check", site.path)
    assert answer.code == PROBLEMS, answer
    answer = dedupctl(site, "--json", "heal", nodes=FOUR)
    assert answer.code == FINE and not answer.file["healthy"] and answer.file["copies_made"] > 0
    answer = dedupctl(site, "check", site.path)
    assert answer.code == FINE, answer
    site.expect(model, 4, 4)


def test_heal_with_another_number_of_copies(site):
    model = write_four(site)
    answer = dedupctl(site, "heal", "--replication", "3", site.path, nodes=FOUR)
    assert answer.code == FINE and "3 wanted" in answer.out, answer
    site.check_stores(model, 3, nothing_else=False)


def test_repair(site, where):
    model = write_four(site)
    flip(site, "n2")
    assert dedupctl(site, "check", nodes=where(FOUR)).code == PROBLEMS
    answer = dedupctl(site, "--json", "check", "--repair", nodes=where(FOUR))
    assert answer.code == FINE and answer.file["bad_chunks"] > 10, answer
    assert answer.file["copies_made"] == answer.file["bad_chunks"]
    assert dedupctl(site, "check", nodes=where(FOUR)).code == FINE
    site.check_stores(model, 2)


def test_what_cannot_be_repaired(site):
    write_four(site)
    for node in FOUR:
        flip(site, node)
    answer = dedupctl(site, "check", "--repair", nodes=FOUR)
    assert answer.code == PROBLEMS and "no good copy" in answer.err, answer
    assert dedupctl(site, "--json", "ls").file["generation"] == 1
    answer = dedupctl(site, "check", "--repair", "--accept-loss", nodes=FOUR)
    assert answer.code == PROBLEMS and "LOST" in answer.out, answer


def test_a_lost_recipe_shard_is_given_up(site):
    """Two neighbours of four nodes are gone: of one shard in four no copy is left."""
    span = 4 << 20
    model = Model()
    pieces = {rank: [(rank * span, noise(rank, 100_000))] for rank in range(3)}
    # A block whose recipe is lost is lost with its holes. The last one has one as well.
    pieces[3] = [(3 * span + 100_000, noise(3, 100_000))]
    model.write(pieces)
    size = len(model.content)
    site.write(pieces, FOUR, 4, HINTS)
    left = ["n0", "n3"]
    site.lose("n1", "n2")
    lost = dedupctl(site, "--json", "check", nodes=left).file["lost_ranges"]

    def is_lost(begin, end):
        return any(p["offset"] <= begin and end <= p["offset"] + p["length"] for p in lost)

    blocks = [block for block in range(4) if is_lost(block * span, min((block + 1) * span, size))]

    refused = dedupctl(site, "heal", nodes=left)
    assert refused.code == PROBLEMS, refused
    assert max(int(end) for end in re.findall(r"bytes \d+ to (\d+)", refused.err)) < size
    assert dedupctl(site, "--json", "ls").file["generation"] == 1
    refused = dedupctl(site, "export", site.path, site.root / "plain", nodes=left)
    assert refused.code == PROBLEMS and "--incomplete" in refused.err, refused
    for place in lost:
        text = f"bytes {place['offset']} to {place['offset'] + place['length'] - 1}"
        assert text in refused.err, (text, refused)

    healed = dedupctl(site, "heal", "--accept-loss", nodes=left)
    assert healed.code == PROBLEMS, healed
    unknown = sum(min(span, size - block * span) for block in blocks)
    assert f"THE RECIPE OF {unknown} BYTES IS LOST" in healed.out, healed
    after = dedupctl(site, "--json", "check", nodes=left)
    assert after.file["generation"] == 2 and after.file["lost_ranges"] == lost, after
    assert after.file["lowest_shard_copies"] == 2, after
    job, content, read = site.read_pieces(left, 2, 50_000)
    for piece, was_read in enumerate(read):
        at, end = piece * 50_000, min((piece + 1) * 50_000, size)
        has_loss = any(place["offset"] < end and at < place["offset"] + place["length"]
                       for place in lost)
        assert bool(was_read) != has_loss, (piece, lost)
        assert has_loss or content[at:end] == bytes(model.content[at:end])
    assert blocks and "IO" in job.errors_of("pieces")

    again = dedupctl(site, "check", "--repair", nodes=left)
    assert again.code == PROBLEMS and "nothing was changed" in again.err, again
    again = dedupctl(site, "check", "--repair", "--accept-loss", nodes=left)
    assert again.code == PROBLEMS and "LOST" in again.out, again
    export = dedupctl(site, "export", "--incomplete", site.path, site.root / "plain", nodes=left)
    assert export.code == PROBLEMS and (site.root / "plain").stat().st_size == size, export


def test_heal_what_a_job_has_open(site, start):
    write_four(site)
    job = hold_open(site, start, "w")
    assert dedupctl(site, "heal", nodes=FOUR).code == IN_USE
    (site.root / "go").touch()
    job.finish().check()


def test_heal_takes_a_name(site):
    write_four(site)
    site.path.rename(site.path.with_name("other"))
    assert dedupctl(site, "heal", site.path.with_name("other"), nodes=FOUR).code == FINE
    site.path.with_name("other").unlink()
    answer = dedupctl(site, "heal", nodes=FOUR)
    assert answer.code == FAILED and "placeholder is not there" in answer.err, answer
