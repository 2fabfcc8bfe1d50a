"""dedupctl ls, df, stat and check, on this host's stores and in a job."""

import functools
import itertools
import os
import re
import shutil

import pytest

import completion
from ctl import FINE, NO_FILE, NO_STORE, PROBLEMS, USAGE, dedupctl
from stores import BUILD, Model, Script, Site, noise, parts, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
BLOCK = 4 << 20
CHUNK = 4096
HINTS = {"replication": 2}


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def write_four(site):
    """A block that all ranks have, one of each rank's own, zeros, and a hole; in two blocks."""
    pieces = {rank: [(rank * 50 * CHUNK, noise("same", 20 * CHUNK) + noise(rank, 20 * CHUNK)),
                     (BLOCK + rank * 10 * CHUNK, bytes(10 * CHUNK))] for rank in range(4)}
    model = Model()
    model.write(pieces)
    site.write(pieces, FOUR, 4, HINTS, how="all-view")
    return model


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Written once; the tests get copies of the stores, and see the one placeholder."""
    site = shared_site(tmp_path_factory.mktemp("written"))
    return site, write_four(site)


@pytest.fixture
def four(site, written):
    """Four nodes' stores with a file in them, and what it is."""
    original, model = written
    shutil.copytree(original.stores, site.stores)
    site.path = original.path
    return model


def flip(site, node, step=CHUNK - 96):
    """A bit of each chunk of a store: so little apart that each is hit, wherever it stands."""
    for segment in (site.file_directory(node) / "segments").iterdir():
        content = bytearray(segment.read_bytes())
        for place in range(64 + 100, len(content), step):
            content[place] ^= 0x10
        segment.write_bytes(content)


def test_ls(site, four, where):
    answer = dedupctl(site, "--json", "ls", nodes=where(FOUR))
    assert answer.code == FINE, answer
    file = answer.file
    assert file["path"] == str(site.path) and file["size"] == len(four.content)
    assert (file["generation"], file["replication"], file["certain_copies"]) == (1, 2, 2)
    assert (file["state"], file["at_path"], file["open"]) == ("committed", "placeholder", "no")
    assert [(store["node"], store["state"]) for store in file["stores"]] == \
        [(node, "here") for node in FOUR]
    assert [store["node"] for store in answer.json["stores"]] == FOUR
    assert file["stored_bytes"] == sum(
        path.stat().st_size for node in FOUR
        for path in (site.file_directory(node) / "segments").iterdir())
    answer = dedupctl(site, "ls", f"dedup:{site.path}", nodes=where(FOUR))
    assert answer.code == FINE and str(site.path) in answer.out and "2 of 2" in answer.out
    assert dedupctl(site, "ls", file["identity"], nodes=where(FOUR)).out == answer.out


def test_a_store_is_missing(site, four, where):
    uuid = dedupctl(site, "--json", "ls").file["stores"][1]["uuid"]
    site.lose("n1")
    left = ["n0", "n2", "n3"]
    answer = dedupctl(site, "ls", nodes=where(left))
    assert answer.code == PROBLEMS, answer
    assert "1 of 2" in answer.out and f"missing: store {uuid} of node n1" in answer.out
    answer = dedupctl(site, "--json", "check", nodes=where(left))
    assert answer.code == PROBLEMS, answer
    assert (answer.file["result"], answer.file["lost_bytes"]) == ("degraded", 0)
    assert answer.file["lowest_copies"] == 1 and answer.file["short_bytes"] > 0
    assert any(uuid in problem["text"] and problem["node"] == "n1"
               for problem in answer.file["problems"])


def test_a_node_has_no_store(site, four):
    site.lose("n1")
    answer = dedupctl(site, "ls", nodes=FOUR)
    assert answer.code == NO_STORE, answer
    assert "node n1: no store at" in answer.err and str(site.path) in answer.out


def test_what_small_files_take_on_disk(site):
    """Records, recipes, indexes and directories count."""
    for number in range(20):
        site.path = site.root / "data" / f"small{number}"
        site.write({0: [(0, noise(number, 1000))]}, 2, 2, HINTS)
    taken = sum(path.stat().st_blocks * 512 for path in site.stores.rglob("*")) + sum(
        path.stat().st_blocks * 512 for path in site.stores.iterdir())
    rows = dedupctl(site, "--json", "df").json["stores"]
    assert sum(row["disk_bytes"] for row in rows) == pytest.approx(taken, rel=0.2)
    files = dedupctl(site, "--json", "ls").json["files"]
    assert len(files) == 20
    for file in files:
        assert file["disk_bytes"] > 5 * 2 * 1000 > file["stored_bytes"], file


def test_names_reach_the_terminal_as_text(site):
    site.path = site.root / "data" / "a\n\x1b[31mname"
    site.write({0: [(0, noise(1, 1000))]}, 2, 2, HINTS)
    for command in ("ls", "check", "stat", "gc"):
        answer = dedupctl(site, command)
        assert answer.code == FINE, answer
        assert "\x1b" not in answer.out + answer.err
        assert command == "gc" or "a\\x0a\\x1b[31mname" in answer.out, answer
    assert dedupctl(site, "--json", "ls").file["path"] == str(site.path)
    answer = dedupctl(site, "cat", site.path.with_name("no\x1bsuch"))
    assert answer.code == NO_FILE and "\x1b" not in answer.err and "\\x1b" in answer.err, answer


def test_a_file_that_was_never_committed_has_its_path(site):
    script = Script().open("wc").write("all-at", parts(noise(1, 300_001), 4)).close()
    site.run(script, FOUR, 4, HINTS, environment={"DEDUP_TEST_KILL": "commit.indexed:1:0"})
    answer = dedupctl(site, "ls")
    assert str(site.path) in answer.out and "nothing is committed" in answer.out, answer


def test_df(site, four, where):
    (site.stores / "n2" / "files").rename(site.root / "files")
    (site.stores / "n2" / "files").mkdir()
    answer = dedupctl(site, "--json", "df", nodes=where(FOUR))
    assert answer.code == FINE, answer
    rows = {row["node"] if row["node"] in FOUR else "n2": row for row in answer.json["stores"]}
    assert {node: row["files"] for node, row in rows.items()} == \
        {"n0": 1, "n1": 1, "n2": 0, "n3": 1}
    assert 0 < rows["n0"]["live_bytes"] <= rows["n0"]["stored_bytes"] < rows["n0"]["free_bytes"]
    assert rows["n2"]["stored_bytes"] == 0
    system = os.statvfs(site.stores)
    assert rows["n0"]["file_system_bytes"] == system.f_blocks * system.f_frsize
    text = dedupctl(site, "df", nodes=where(FOUR)).out
    assert re.match(r"NODE +FILES +LIVE +STORED +LOGS +FREE +SIZE +STORE\n", text)
    assert re.search(rf"^n0 +1 +\S+ KiB +\S+ [KM]iB +0 B +\S+ \wiB +\S+ \wiB +{site.store('n0')}$", text, re.M)
    assert dedupctl(site, "df", "-h", nodes=where(FOUR)).out.splitlines()[0] == text.splitlines()[0]


def test_stat_agrees_with_the_stores(site, four, where):
    walked = site.walk()["files"][0]
    answer = dedupctl(site, "--json", "stat", site.path, nodes=where(FOUR))
    assert answer.code == FINE, answer
    file = answer.file
    assert file["data_bytes"] == 4 * 40 * CHUNK
    assert file["zero_bytes"] == len(four.content) - file["data_bytes"]
    assert (file["unique_chunks"], file["unique_bytes"]) == (100, 100 * CHUNK)
    assert (file["unique_chunks"], file["unique_bytes"]) == \
        (len(walked["chunks"]), walked["chunk_bytes"])
    by_copies = {}
    for chunk in walked["chunks"]:
        by_copies[len(chunk["held"])] = by_copies.get(len(chunk["held"]), 0) + 1
    assert {row["copies"]: row["chunks"] for row in file["by_copies"]} == by_copies
    for row in file["nodes"]:
        store = walked["on_store"][row["node"]]
        assert (row["chunks"], row["live_bytes"], row["stored_bytes"]) == \
            (store["chunks"], store["live_bytes"], store["segment_bytes"])


def lost_bytes(site, identity, nodes):
    return dedupctl(site, "--json", "stat", identity, stores=[site.stores / node for node in nodes]).file["lost_bytes"]


def test_stat_tells_the_odds_of_losing_data(site, four, where):
    file = dedupctl(site, "--json", "stat", site.path, nodes=where(FOUR)).file
    assert file["losses_survived"] == 1 and len(file["loss_odds"]) == 3
    for odds, lost in zip(file["loss_odds"], (2, 3)):
        left = list(itertools.combinations(FOUR, len(FOUR) - lost))
        fatal = sum(lost_bytes(site, file["identity"], nodes) > 0 for nodes in left)
        assert odds == pytest.approx(fatal / len(left)) and 0 < odds < 1.01
    assert file["loss_odds"][2] == 1
    text = dedupctl(site, "stat", site.path, nodes=where(FOUR)).out
    assert re.search(r"survives +any 1 of 4 nodes; odds of losing data with 2: [\d.]+ %, 3: [\d.]+ %, 4: 100 %", text)
    # What is lost already is not lost again.
    three = FOUR[1:]
    file = dedupctl(site, "--json", "stat", file["identity"], stores=[site.stores / node for node in three]).file
    assert file["losses_survived"] == 0 and file["lost_bytes"] == 0
    fatal = sum(lost_bytes(site, file["identity"], [node for node in three if node != lost]) > 0 for lost in three)
    assert file["loss_odds"][0] == pytest.approx(fatal / 3)


def test_check_of_what_is_sound(site, four, where):
    answer = dedupctl(site, "--json", "check", nodes=where(FOUR), ranks=7)
    assert answer.code == FINE, answer
    file = answer.file
    assert (file["result"], file["problems"]) == ("sound", [])
    assert (file["lowest_copies"], file["wanted_copies"], file["lowest_shard_copies"]) == (2, 2, 2)
    held = sum(len(chunk["held"]) for chunk in site.walk()["files"][0]["chunks"])
    assert (file["checked_chunks"], file["checked_bytes"], file["bad_chunks"]) == \
        (held, held * CHUNK, 0)


def test_check_finds_bad_copies(site, four, where):
    flip(site, "n2")
    answer = dedupctl(site, "--json", "check", nodes=where(FOUR))
    assert answer.code == PROBLEMS, answer
    file = answer.file
    chunks = site.walk()["files"][0]["on_store"]["n2"]["chunks"]
    assert (file["result"], file["bad_chunks"]) == ("degraded", chunks)
    assert {problem["node"] for problem in file["problems"]} == {"n2", ""}
    assert "n2" in dedupctl(site, "check", nodes=where(FOUR)).out


def test_check_finds_chunks_in_each_others_places(site, four):
    segment = next((site.file_directory("n0") / "segments").iterdir())
    # The last two chunks change places.
    content = segment.read_bytes()
    segment.write_bytes(content[:-2 * CHUNK] + content[-CHUNK:] + content[-2 * CHUNK:-CHUNK])
    answer = dedupctl(site, "--json", "check")
    assert (answer.code, answer.file["bad_chunks"]) == (PROBLEMS, 2), answer


def test_check_says_which_bytes_are_lost(site, four, where):
    for node in FOUR:
        flip(site, node)
    answer = dedupctl(site, "--json", "check", nodes=where(FOUR))
    assert answer.code == PROBLEMS, answer
    file = answer.file
    assert (file["result"], file["lost_bytes"]) == ("lost", 4 * 40 * CHUNK)
    assert file["lost_ranges"] == [{"offset": rank * 50 * CHUNK, "length": 40 * CHUNK}
                                   for rank in range(4)]


def test_check_finds_bad_recipes_and_indexes(site, four, where):
    generation = next((site.file_directory("n3") / "generations").iterdir())
    for path in [*generation.glob("shard-*"), generation / "index"]:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    answer = dedupctl(site, "--json", "check", nodes=where(FOUR))
    assert (answer.code, answer.file["result"]) == (PROBLEMS, "degraded"), answer
    texts = [problem["text"] for problem in answer.file["problems"] if problem["node"] == "n3"]
    assert any("recipe shard" in text for text in texts) and any("index" in text for text in texts)


def test_a_stale_store(site, where):
    """One that was away while a generation was committed."""
    model = write_four(site)
    site.lose("n3")
    site.run(Script().open("w").write("all-at", {0: [(5, b"new")]}).close(), FOUR[:3], 3,
             HINTS).check()
    shutil.move(site.away / "n3", site.store("n3"))
    answer = dedupctl(site, "--json", "ls", nodes=where(FOUR))
    file = answer.file
    assert (answer.code, file["generation"]) == (FINE, 2), answer
    assert [store["node"] for store in file["stores"]] == FOUR[:3]
    assert file["certain_copies"] == 2
    assert dedupctl(site, "check", nodes=where(FOUR)).code == FINE
    assert len(model.content) == file["size"]


def test_a_conflict(tmp_path):
    """Two jobs on disjoint nodes went on from one generation; no file system fences them."""
    site = Site(tmp_path)
    hints = {"replication": 4}
    site.write(parts(noise(1, 50_000), 4), FOUR, 4, hints)
    for nodes in (FOUR[:2], FOUR[2:]):
        site.run(Script().open("w").write("all-at", {0: [(0, nodes[0].encode())]}).close(), nodes,
                 2, hints).check()
    answer = dedupctl(site, "--json", "ls")
    assert answer.code == PROBLEMS and answer.file["state"] == "conflict", answer
    answer = dedupctl(site, "check")
    assert answer.code == PROBLEMS and "neither was made from the other" in answer.err, answer


def test_a_job_has_it_open(site, start):
    write_four(site)
    script = Script().open("w").add("touch", site.root / "open").add("wait", site.root / "go")
    job = start(script.close(), FOUR, 4, HINTS)
    job.wait_for(site.root / "open")
    answer = dedupctl(site, "--json", "ls")
    assert (answer.code, answer.file["open"]) == (FINE, "writing"), answer
    assert dedupctl(site, "check").code == FINE, "checking does not mind"
    (site.root / "go").touch()
    job.finish().check()


def test_names(site):
    write_four(site)
    site.path.rename(site.path.with_name("other"))
    answer = dedupctl(site, "--json", "ls", site.path.with_name("other"))
    assert (answer.code, answer.file["at_path"]) == (FINE, "moved"), answer
    site.path.with_name("other").unlink()
    assert dedupctl(site, "--json", "ls", site.path).file["at_path"] == "nothing"
    site.path.write_bytes(b"another")
    assert dedupctl(site, "--json", "ls", site.path).file["at_path"] == "replaced"
    answer = dedupctl(site, "ls", "nothing-of-this-name")
    assert answer.code == NO_FILE and "nothing-of-this-name" in answer.err, answer


def test_stores_that_are_none(site, four):
    empty = site.root / "empty"
    empty.mkdir()
    answer = dedupctl(site, "ls", stores=[empty])
    assert answer.code == NO_STORE and f"no store at {empty}" in answer.err, answer
    other = site.root / "other"
    (other / "files").mkdir(parents=True)
    other.chmod(0o700)
    (other / "STORE").write_bytes(b"something else")
    answer = dedupctl(site, "--json", "ls", stores=[other, site.store("n0")])
    assert answer.code == NO_STORE, answer
    assert [row["node"] for row in answer.json["unreadable_stores"]] == ["other"]
    assert len(answer.json["files"]) == 1
    link = site.root / "link"
    link.symlink_to(site.store("n0"))
    assert dedupctl(site, "ls", stores=[link]).code == NO_STORE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_without_permission(site, four):
    (site.store("n0") / "STORE").chmod(0)
    answer = dedupctl(site, "ls")
    (site.store("n0") / "STORE").chmod(0o600)
    assert answer.code == NO_STORE and "n0" in answer.err, answer


def test_anothers_store(site, four):
    if os.geteuid() != 0:
        pytest.skip("giving a store away takes root")
    os.chown(site.store("n0"), 12345, -1)
    answer = dedupctl(site, "ls")
    assert answer.code == USAGE and "user 12345" in answer.err and "one user's stores" in answer.err, answer


def test_an_empty_store(site):
    site.run(Script().open("wc").close(), 1, 1).check()
    answer = dedupctl(site, "--json", "ls")
    assert answer.code == FINE and answer.json["files"] == [], answer
    assert dedupctl(site, "check").code == FINE


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["ls", "--nonsense"], ["cat"],
                                       ["export", "x"], ["heal", "--replication", "99"]])
def test_usage(site, arguments):
    site.stores.mkdir()
    answer = dedupctl(site, *arguments)
    assert answer.code == USAGE and answer.err and not answer.out, answer


@pytest.mark.parametrize("command, meant", [("exprot", "export"), ("hael", "heal"), ("lss", "ls")])
def test_a_mistyped_command(site, command, meant):
    answer = dedupctl(site, command, "x")
    assert (answer.code, answer.err) == (USAGE, f"dedupctl: error: there is no command {command}; did you mean {meant}?\n")
    answer = dedupctl(site, "--json", command, nodes=["n0", "n1"])
    assert answer.code == USAGE and answer.err.count(f"did you mean {meant}?") == 1, answer


def test_what_is_no_command(site):
    answer = dedupctl(site, "frobnicate")
    assert (answer.code, answer.err) == (
        USAGE, "dedupctl: error: there is no command frobnicate; dedupctl --help shows all of them\n")
    assert "did you mean" not in dedupctl(site, "--nonsense", "ls").err


def test_help(site):
    answer = dedupctl(site, "--help")
    assert answer.code == FINE and "check" in answer.out, answer
    assert BUILD.joinpath("bin", "dedupctl").exists()


def test_completion_knows_every_command_and_option(site):
    """What bash offers is what the program takes."""
    offered = functools.partial(completion.offered, "dedupctl")
    summary = dedupctl(site, "--help").out
    commands = set(re.findall(r"^  ([a-z]+) ", summary.partition("Subcommands")[2], re.M))
    assert len(commands) == 18 and commands <= offered("")
    for command in commands:
        options = set(re.findall(r"--[a-z-]+", dedupctl(site, command, "--help").out))
        missing = {o for o in options if o not in offered(command, "--")}
        assert not missing, f"{command}: {missing}"
