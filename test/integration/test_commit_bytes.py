"""What a commit writes beside the data goes with what changed, not with the file."""

import pytest

import ctl
from stores import Model, Script, changed, noise, parts, shared_site

CHUNK = 4096
NODES = ["n0", "n1"]
SIZE = 48 << 20
HINTS = {"replication": 2, "chunk_size": CHUNK}
# What is new of a block of the recipe; header and a page of the index; the record, and the recipe's
# table.
MOST = 24 << 10


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def files_of(site, node):
    """A file that stays has another name in each generation; its inode may be another file's later."""
    return {(path.stat().st_ino, path.stat().st_mtime_ns): path for path in site.store(node).rglob("*")
            if path.is_file()}


def write(site, pieces, mode="w"):
    """The bytes of each node's new files, segments aside."""
    before = {node: set(files_of(site, node)) if mode == "w" else set() for node in NODES}
    site.write(pieces, NODES, 2, HINTS, mode=mode)
    return {node: sum(path.stat().st_size for file, path in files_of(site, node).items()
                      if file not in before[node] and path.suffix not in (".seg", ".log"))
            for node in NODES}


def test_one_chunk_of_many(site):
    model = Model()
    pieces = parts(noise(1, SIZE), 2)
    model.write(pieces)
    first = write(site, pieces, "wc")
    assert min(first.values()) > 10 * MOST
    for step in range(5):
        pieces = {step % 2: [((step * 9 + 2) << 20, noise(f"step {step}", CHUNK))]}
        model.write(pieces)
        written = write(site, pieces)
        assert max(written.values()) <= MOST, written
        site.expect(model, NODES, 2)
    site.check_stores(model, 2, nothing_else=False)
    assert ctl.dedupctl(site, "check").code == ctl.FINE
    for node in NODES:
        site.lose(node)
        site.expect(model, [other for other in NODES if other != node], 1)
        site.bring_back(node)
    # What is dead goes when it is healed.
    job = site.run(Script().add("heal", 0, 0), NODES, 2)
    assert job.code == 0 and all(entry.error == "SUCCESS" for entry in job.entries("heal")), f"{job}"
    site.check_stores(model, 2)


def test_a_new_file_begins_with_what_it_shares(site):
    pieces = parts(noise(1, SIZE), 2)
    model = Model()
    model.write(pieces)
    site.path = site.path.parent / "step_1"
    site.write(pieces, NODES, 2, HINTS, mode="wc")
    before = {node: set(files_of(site, node)) for node in NODES}
    first, site.path = site.path, site.path.parent / "step_2"
    site.write(pieces, NODES, 2, HINTS, mode="wc")
    for node in NODES:
        new = [path for file, path in files_of(site, node).items() if file not in before[node]]
        # The recipe is the file's own, 33 bytes a chunk; entries of the index are its donor's.
        assert sum(path.stat().st_size for path in new) < SIZE // CHUNK * 33 + MOST, new
    site.expect(model, NODES, 2)
    first.unlink()
    site.expect(model, NODES, 2)
    site.lose("n0")
    site.expect(model, ["n1"], 1)


def test_of_blocks_of_which_little_is_new_that_is_written(site):
    content = noise(1, SIZE)
    site.path = first = site.path.parent / "step_1"
    site.write(parts(content, 2), NODES, 2, HINTS, mode="wc")
    before = {node: set(files_of(site, node)) for node in NODES}
    content = changed(content, 1, CHUNK)
    model = Model()
    model.write(parts(content, 2))
    site.path = site.path.parent / "step_2"
    site.write(parts(content, 2), NODES, 2, HINTS, mode="wc")
    chunks = SIZE // CHUNK
    for node in NODES:
        new = [path for file, path in files_of(site, node).items() if file not in before[node]]
        # Every block has new chunks; 33 bytes of each are in the recipe, 56 in the index, which has all of
        # them on both nodes.
        written = sum(path.stat().st_size for path in new if path.suffix not in (".seg", ".log"))
        assert written < chunks * (0.15 * 33 + 0.11 * 56) + MOST, new
    site.expect(model, NODES, 2)
    first.unlink()
    assert ctl.dedupctl(site, "gc", "--unnamed").code == ctl.FINE
    assert ctl.dedupctl(site, "check", site.path).code == ctl.FINE
    for node in NODES:
        site.lose(node)
        site.expect(model, [other for other in NODES if other != node], 1)
        site.bring_back(node)
