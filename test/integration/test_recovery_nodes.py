"""Nodes that are lost, added, or come back with what they had: a file reads whole, or says which of
its bytes are lost and where they were; never an older generation, never a mixture."""

import itertools

import pytest

from stores import Model, Script, Site, names_file, noise, parts

BLOCK = 4 << 20
SIX = ["n0", "n1", "n2", "n3", "n4", "n5"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def spread(seed, blocks=6, length=180_000, ranks=6):
    """A file with data in several blocks, so that its recipe is in several shards, of which the
    ranks share some."""
    pieces = {}
    for rank in range(ranks):
        at = rank % blocks * BLOCK + rank // blocks * 1_000_000 + 1003
        pieces[rank] = [(at, noise(f"{seed} {rank // 2}", length // 2) +
                         noise(f"{seed} alone {rank}", length // 2))]
    return pieces


def write_six(site, replication, seed="six"):
    model = Model()
    pieces = spread(seed, length=320_000)
    model.write(pieces)
    site.write(pieces, SIX, 6, {"replication": replication})
    return model


# ---- Other numbers of ranks and nodes ------------------------------------------------------------


@pytest.mark.form
@pytest.mark.parametrize("first", range(3))
def test_three_writers_and_any_number_of_readers(site, first):
    """M from 1 to 4 N; with fewer ranks than nodes, the other nodes are missing."""
    model = Model(noise(1, 1_000_003))
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 3})
    for readers in range(1 + first, 13, 3):
        site.expect(model, 3, readers, block=0 if readers % 2 else 10_007)


@pytest.mark.form
def test_nodes_are_added(site):
    """Other nodes read, then take part in the next generation with copies of their own."""
    model = Model(noise(2, 1_500_000))
    hints = {"replication": 3}
    site.write(parts(bytes(model.content), 2), ["n0", "n1"], 2, hints)
    more = ["n0", "n7", "n1", "n8", "n9"]
    site.expect(model, more, 5)
    change = {4: [(700_001, noise(3, 300_000))], 1: [(0, noise(4, 17))]}
    model.write(change)
    site.write(change, more, 5, hints, mode="w")
    file = site.check_stores(model, 3, *more)
    assert sorted(file["stores"]) == sorted(more)
    for left in (["n7", "n8", "n9"], ["n0", "n1", "n9"]):
        site.expect(model, left, 4)


def test_all_nodes_are_replaced_one_by_one(site):
    """Each job loses one node and gets a new one: what earlier generations wrote moves on."""
    hints = {"replication": 2}
    nodes = ["a0", "a1", "a2"]
    model = Model(noise(5, 1_200_000))
    site.write(parts(bytes(model.content), 3), nodes, 3, hints)
    for step in range(3):
        site.lose(nodes[step])
        nodes[step] = f"b{step}"
        change = {step: [(step * 100_000 + 7, noise(step, 50))]}
        model.write(change)
        site.write(change, nodes, 3, hints, how="at", mode="w")
        site.check_stores(model, 2)
    site.expect(model, ["b0", "b2"], 3)


def test_a_smaller_replication_than_before(site):
    model = Model(noise(6, 900_000))
    site.write(parts(bytes(model.content), 4), 4, 4, {"replication": 4})
    change = {0: [(10, b"x")]}
    model.write(change)
    site.write(change, 4, 4, {"replication": 2}, mode="w")
    site.check_stores(model, 2)
    site.write(change, 4, 4, {"replication": 3}, mode="w")
    site.check_stores(model, 3)
    site.expect(model, ["n1", "n3"], 2)


# ---- Lost nodes ----------------------------------------------------------------------------------


@pytest.mark.form
def test_every_pair_of_six_nodes_is_lost(site):
    model = write_six(site, 3)
    site.check_stores(model, 3)
    for pair in itertools.combinations(SIX, 2):
        site.lose(*pair)
        site.expect(model, [node for node in SIX if node not in pair], 5)
        site.bring_back(*pair)


def go_on_with_four(site, model, lost):
    """Restart on four nodes, overwrite a part, commit, then lose any two of them."""
    site.lose(*lost)
    left = [node for node in SIX if node not in lost]
    change = {0: [(500, noise(str(lost), 300_000))], 3: [(2 * BLOCK - 1000, noise("b", 2000))]}
    model = model.copy()
    model.write(change)
    site.write(change, left, 4, {"replication": 3}, how="all-at", mode="w")
    site.check_stores(model, 3, *left)
    for pair in itertools.combinations(left, 2):
        site.lose(*pair)
        site.expect(model, [node for node in left if node not in pair], 3)
        site.bring_back(*pair)


def test_after_a_loss_any_two_more_can_go(site):
    go_on_with_four(site, write_six(site, 3), ("n1", "n4"))


@pytest.mark.long
@pytest.mark.parametrize("lost", itertools.combinations(SIX, 2))
def test_after_any_loss_any_two_more_can_go(site, lost):
    go_on_with_four(site, write_six(site, 3), lost)


def test_data_of_an_earlier_generation_is_as_safe_as_new_data(site):
    """A node is lost; a commit that touches one byte brings all back to K copies."""
    model = write_six(site, 2)
    site.lose("n3")
    left = [node for node in SIX if node != "n3"]
    change = {2: [(0, b"!")]}
    model.write(change)
    site.write(change, left, 5, {"replication": 2}, how="at", mode="w")
    site.check_stores(model, 2, *left)
    for node in left:
        site.lose(node)
        site.expect(model, [other for other in left if other != node], 4)
        site.bring_back(node)


# ---- More is lost than that ----------------------------------------------------------------------


@pytest.mark.parametrize("replication, lost", [
    (2, ("n1", "n2")), (2, ("n0", "n3", "n5")), (3, ("n0", "n1", "n2", "n3")), (1, ("n4",))])
def test_too_many_nodes_are_lost(site, replication, lost):
    """Reads of lost ranges are MPI_ERR_IO that names range, stores and file; others are right."""
    model = write_six(site, replication)
    site.lose(*lost)
    left = [node for node in SIX if node not in lost]
    content = site.root / "left"
    walked = site.walk(content=content)
    held = content.read_bytes()
    (file,) = walked["files"]
    assert len(held) == len(model.content)

    length = 5000
    job, found, read = site.read_pieces(left, 6, length)
    failed = [e for entries in job.results for e in entries if e.error != "SUCCESS"]
    assert failed and all(e.error == "IO" for e in failed), f"{job}"
    wrong = 0
    unread = 0
    shards = len(file["shards"])
    for piece, was_read in enumerate(read):
        at = piece * length
        expected = bytes(model.content[at:at + length])
        touched = range(at // BLOCK, (at + len(expected) - 1) // BLOCK + 1)
        shard_lost = any(block % shards in file["unreadable_shards"] for block in touched)
        if was_read:
            wrong += found[at:at + length] != expected
        else:
            unread += 1
            # Exactly what no store holds is refused.
            assert shard_lost or held[at:at + length] != expected, f"piece {piece} is still held"
    assert wrong == 0
    assert unread > 0

    text = " ".join(e.text for e in failed) + job.stderr
    assert names_file(site.path, text)
    assert "bytes" in text
    for node in lost:
        assert node in text
    for entry in failed:
        assert names_file(site.path, entry.text), entry


def test_a_collective_read_of_lost_bytes_fails_on_all_ranks(site):
    # Of what each of the three reads, one node alone had some.
    write_six(site, 1)
    site.lose("n0", "n2", "n4")
    script = Script().open("r").add("read", 0, site.root / "out", 0).close()
    job = site.run(script, SIX[1::2], 3)
    assert job.code == 0, f"{job}"
    assert job.errors_of("read") == ["IO"] * 3
    assert job.errors_of("close") == ["SUCCESS"] * 3


def test_without_replication_writing_takes_all_stores(site):
    """K = 1: a store that is missing may have had a newer generation."""
    pieces = {rank: [(rank * 300_000, noise(f"w{rank}", 300_000))] for rank in range(3)}
    site.write(pieces, 3, 3, {"replication": 1})
    site.lose("n1")
    job = site.run(Script().open("w").close(), ["n0", "n2"], 2, {"replication": 3})
    assert job.errors_of("open") == ["IO"] * 2, f"{job}"
    text = job.entries("open")[0].text + job.stderr
    assert names_file(site.path, text) and "n1" in text
    site.bring_back("n1")
    site.run(Script().open("w").close(), 3, 3).check()


# ---- Stores that go and come back ----------------------------------------------------------------


def generation(site):
    return max(file["generation"] for file in site.walk()["files"])


def test_an_older_store_returns(site):
    hints = {"replication": 2}
    model = Model(noise(1, 900_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    site.lose("n2")
    for step in range(2):  # two jobs run without it
        change = {step: [(step * 200_000, noise(step, 300_000))]}
        model.write(change)
        site.write(change, ["n0", "n1"], 2, hints, mode="w")
    site.bring_back("n2")
    site.expect(model, 3, 3)
    site.expect(model, ["n2", "n1"], 2)
    site.expect(model, ["n0", "n2"], 4)

    change = {2: [(650_000, noise(9, 300_000))]}
    model.write(change)
    site.write(change, 3, 3, hints, mode="w")
    site.check_stores(model, 2)
    for pair in itertools.combinations(["n0", "n1", "n2"], 2):
        site.expect(model, list(pair), 2)


def test_each_job_runs_without_another_store(site):
    """Stores take turns in being away; what they come back with is always the older."""
    hints = {"replication": 2}
    nodes = ["n0", "n1", "n2"]
    model = Model(noise(1, 600_000))
    site.write(parts(bytes(model.content), 3), nodes, 3, hints)
    for step in range(6):
        away = nodes[step % 3]
        site.lose(away)
        here = [node for node in nodes if node != away]
        change = {step % 2: [(step * 70_001, noise(f"step {step}", 270_000))]}
        model.write(change)
        site.write(change, here, 2, hints, how="all-at" if step % 2 else "at", mode="w")
        site.bring_back(away)
        site.expect(model, nodes, 4)
    assert generation(site) == 7


def test_a_store_alone_with_an_older_generation(site):
    """Nothing tells the job that a newer one exists: it may read, with a warning, but not write."""
    hints = {"replication": 3}
    nodes = ["n0", "n1", "n2", "n3"]
    old = Model()
    pieces = spread("old", blocks=4, ranks=4, length=300_000)
    old.write(pieces)
    site.write(pieces, nodes, 4, hints)
    site.lose("n3")
    site.write({0: [(0, noise(2, 300_000))]}, nodes[:3], 3, hints, mode="w")
    site.lose(*nodes[:3])
    site.bring_back("n3")

    length = 9000
    job, found, read = site.read_pieces(["n3"], 1, length)
    for node in nodes[:3]:
        assert node in job.stderr
    assert 1 in read
    for piece, was_read in enumerate(read):
        at = piece * length
        assert not was_read or found[at:at + length] == old.content[at:at + length]

    for mode in ("w", "wc"):
        job = site.run(Script().open(mode).close(), ["n3"], 1, hints)
        assert job.errors_of("open") == ["IO"], f"{job}"
        text = job.entries("open")[0].text
        assert names_file(site.path, text)
        for node in nodes[:3]:
            assert node in text + job.stderr


def test_jobs_on_disjoint_nodes_conflict(site):
    """With K = N one store is enough to write. Two jobs that know nothing of each other make two
    generations from one: that is an error that names both, never the one or the other."""
    hints = {"replication": 4}
    nodes = ["n0", "n1", "n2", "n3"]
    model = Model(noise(1, 500_000))
    site.write(parts(bytes(model.content), 4), nodes, 4, hints)
    halves = [nodes[:2], nodes[2:]]
    models = []
    for number, half in enumerate(halves):
        change = {0: [(1000, noise(f"half {number}", 300_000))]}
        models.append(model.copy())
        models[-1].write(change)
        site.lose(*halves[1 - number])
        site.write(change, half, 2, hints, mode="w")
        site.bring_back(*halves[1 - number])
    # One of them goes on for another generation: a higher number does not win.
    more = {1: [(3, noise("more", 100))]}
    models[1].write(more)
    site.write(more, halves[1], 2, hints, mode="w")
    attempts = set()
    for half in halves:
        (file,) = site.walk(*half)["files"]
        attempts.add(file["attempt"])
    assert len(attempts) == 2

    for mode in ("r", "w", "wc"):
        job = site.run(Script().open(mode).close(), nodes, 4, hints)
        assert job.errors_of("open") == ["IO"] * 4, f"{job}"
        for entry in job.entries("open"):
            assert names_file(site.path, entry.text)
        for attempt in attempts:
            assert attempt in job.stderr + job.entries("open")[0].text
    # Each half on its own still reads as what it wrote.
    for half, own in zip(halves, models):
        site.expect(own, half, 3)
    # As the message says: without one half's stores, the other's generation is the file.
    site.lose(*halves[0])
    site.expect(models[1], halves[1], 2)


def test_a_store_is_known_by_its_uuid_not_by_the_nodes_name(site):
    """Two nodes swap their names: nothing is lost."""
    hints = {"replication": 2}
    model = Model(noise(1, 800_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    site.store("n0").rename(site.store("x"))
    site.store("n2").rename(site.store("n0"))
    site.store("x").rename(site.store("n2"))
    site.expect(model, 3, 3)
    site.expect(model, ["n1", "n2"], 2)
    change = {1: [(100_000, noise(2, 300_000))]}
    model.write(change)
    site.write(change, 3, 3, hints, mode="w")
    site.check_stores(model, 2)


def test_an_emptied_store_gets_its_copies_again(site):
    """A node's disk is replaced: it comes back under its name with nothing."""
    hints = {"replication": 2}
    model = Model(noise(1, 800_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    site.lose("n1")
    site.expect(model, 3, 3)
    change = {1: [(100, b"abc")]}
    model.write(change)
    site.write(change, 3, 3, hints, how="at", mode="w")
    site.check_stores(model, 2)
    for pair in (["n0", "n1"], ["n1", "n2"]):
        site.expect(model, pair, 2)


def test_a_deleted_file_does_not_come_back_with_a_store(site):
    hints = {"replication": 2}
    site.write(parts(noise(1, 400_000), 3), 3, 3, hints)
    site.lose("n2")
    site.run(Script().add("delete"), ["n0", "n1"], 2, hints).check()
    site.bring_back("n2")
    job = site.run(Script().open("r").close(), 3, 3, hints)
    assert job.errors_of("open") == ["NO_SUCH_FILE"] * 3, f"{job}"
    model = Model(noise(2, 300_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    site.expect(model, 3, 2)
    assert len(list((site.store("n2") / "files").iterdir())) == 1


def test_a_commit_that_reached_some_nodes_is_finished_by_the_next_open(site):
    """One node has the record, the others have prepared it only: it is the generation."""
    hints = {"replication": 2}
    model = Model(noise(1, 500_000))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    (file,) = site.walk()["files"]
    for node in ("n1", "n2"):
        attempt = site.file_directory(node) / "generations" / file["attempt"]
        (attempt / "record").rename(attempt / "record.tmp")
    (before,) = site.walk()["files"]
    assert sorted(before["behind"]) == ["n1", "n2"]
    site.expect(model, 3, 3)
    site.check_stores(model, 2)
    site.lose("n0")
    site.expect(model, ["n1", "n2"], 2)
