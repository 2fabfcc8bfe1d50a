"""Damaged stores: what is sound somewhere is read, what is not is an error, never other bytes."""

import random

import pytest

from stores import Model, Script, Site, names_file, noise, parts

HINTS = {"replication": 2}
SEGMENT_HEADER = 64


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def model(site):
    """Three nodes, two copies; data that is on one node's ranks only and data that is on all."""
    pieces = {rank: [(rank * 300_000 + 7, noise("same", 150_000) + noise(rank, 150_000))]
              for rank in range(3)}
    model = Model()
    model.write(pieces)
    site.write(pieces, 3, 3, HINTS)
    return model


def segments(site, node):
    found = sorted((site.file_directory(node) / "segments").iterdir())
    assert found
    return found


def generation(site, node):
    (directory,) = (site.file_directory(node) / "generations").iterdir()
    return directory


def flip(path, places):
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 0x10
    path.write_bytes(content)


def flip_many(site, node, step=1000):
    for segment in segments(site, node):
        flip(segment, range(SEGMENT_HEADER + 50, segment.stat().st_size, step))


@pytest.mark.parametrize("seed", range(2))
def test_single_bytes_of_one_nodes_segments(site, model, seed):
    """Anywhere, also in the chunks' headers."""
    rng = random.Random(seed)
    for node in ("n0", "n1", "n2"):
        saved = {path: path.read_bytes() for path in segments(site, node)}
        for path in saved:
            flip(path, [rng.randrange(path.stat().st_size) for _ in range(20)])
        site.expect(model, 3, 3)
        site.expect(model, 3, 4, block=5000)
        for path, content in saved.items():
            path.write_bytes(content)


def test_all_of_one_nodes_segments(site, model):
    flip_many(site, "n1")
    site.expect(model, 3, 3)


def test_a_chunk_that_is_damaged_everywhere(site, model):
    """An error for its bytes, everything else is read."""
    # A chunk that is in the file once: the 50th of rank 0.
    place = 7 + 49 * 4096
    victim = bytes(model.content[place:place + 4096])
    held = 0
    for node in site.node_names():
        for path in segments(site, node):
            at = path.read_bytes().find(victim)
            if at >= 0:
                flip(path, [at + 100])
                held += 1
    assert held == 2
    length = 1024
    job, found, read = site.read_pieces(3, 3, length)
    failed = [e for entries in job.results for e in entries if e.error != "SUCCESS"]
    assert failed and {e.error for e in failed} == {"IO"}, f"{job}"
    for entry in failed:
        assert names_file(site.path, entry.text)
    unread = [piece for piece, was_read in enumerate(read) if not was_read]
    assert 4 <= len(unread) <= 5
    for piece, was_read in enumerate(read):
        at = piece * length
        assert not was_read or found[at:at + length] == model.content[at:at + length]

    # A commit cannot bring it back. It stays an error, until it is overwritten.
    change = {0: [(0, b"x")]}
    model.write(change)
    site.write(change, 3, 3, HINTS, how="at", mode="w")
    job, found, read = site.read_pieces(3, 3, length)
    assert [piece for piece, was_read in enumerate(read) if not was_read] == unread
    first = unread[0] * length
    change = {1: [(first, noise("new", len(unread) * length))]}
    model.write(change)
    site.write(change, 3, 3, HINTS, how="at", mode="w")
    site.expect(model, 3, 3)


def test_every_copy_of_everything(site, model):
    for node in ("n0", "n1", "n2"):
        flip_many(site, node, step=500)
    script = Script().open("r").add("read", 0, site.root / "out", 0).close()
    job = site.run(script, 3, 3)
    assert job.errors_of("read") == ["IO"] * 3
    assert names_file(site.path, job.entries("read")[0].text)


@pytest.mark.parametrize("node", ["n0", "n2"])
@pytest.mark.parametrize("what", ["segments", "one segment", "cut segment", "index", "cut index",
                                  "damaged index", "shards", "damaged shards", "record",
                                  "cut record", "generation"])
def test_files_of_one_node_are_lost(site, model, node, what):
    """Reading goes on; a commit makes all whole again."""
    directory = generation(site, node)
    if what == "segments":
        for path in segments(site, node):
            path.unlink()
    elif what == "one segment":
        segments(site, node)[0].unlink()
    elif what == "cut segment":
        path = segments(site, node)[0]
        path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    elif what == "index":
        (directory / "index").unlink()
    elif what == "cut index":
        content = (directory / "index").read_bytes()
        (directory / "index").write_bytes(content[:len(content) // 2])
    elif what == "damaged index":
        flip(directory / "index", range(20, (directory / "index").stat().st_size, 500))
    elif what == "shards":
        for path in directory.glob("shard-*"):
            path.unlink()
    elif what == "damaged shards":
        for path in directory.glob("shard-*"):
            flip(path, range(70, path.stat().st_size, 200))
    elif what == "record":
        (directory / "record").unlink()
    elif what == "cut record":
        (directory / "record").write_bytes((directory / "record").read_bytes()[:100])
    elif what == "generation":
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    site.expect(model, 3, 3)

    change = {1: [(333, b"a change")]}
    model.write(change)
    site.write(change, 3, 3, HINTS, how="at", mode="w")
    site.expect(model, 3, 4)
    site.check_stores(model, 2, nothing_else=False)


def test_bytes_appended_to_a_segment_do_no_harm(site, model):
    for path in segments(site, "n0"):
        path.write_bytes(path.read_bytes() + b"\0" * 100)
    site.expect(model, 3, 3)
    change = {0: [(0, noise("z", 300_000))]}
    model.write(change)
    site.write(change, 3, 3, HINTS, mode="w")
    site.expect(model, 3, 3)
