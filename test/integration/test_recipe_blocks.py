"""A commit writes the blocks of the recipe that changed, and no others."""

import re

import pytest

from stores import Model, Script, noise, shared_site

BLOCK = 4 << 20
BLOCKS = 12
CHUNK = 512
# A block's recipe: a chunk takes 33 bytes.
RECIPE = BLOCK // CHUNK * 33
# Header, table, donors and footer of a node's shards.
TABLES = 4096
NODES = ["n0", "n1", "n2"]
HINTS = {"replication": 2, "chunk_size": CHUNK}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def own_bytes(site, node):
    """What a node's shards of its one generation take, without those in which blocks stay."""
    (generation,) = (site.file_directory(node) / "generations").iterdir()
    return sum(path.stat().st_size for path in generation.glob("shard-*")
               if re.fullmatch(r"shard-\d+", path.name))


def donors(site, node):
    (generation,) = (site.file_directory(node) / "generations").iterdir()
    return [path for path in generation.glob("shard-*") if path.name.count("-") == 2]


def write_first(site):
    """Nothing deduplicates."""
    part = BLOCKS * BLOCK // 3
    pieces = {rank: [(rank * part, noise(rank, part))] for rank in range(3)}
    model = Model()
    model.write(pieces)
    site.write(pieces, NODES, 3, HINTS)
    return model


def heal(site, nodes):
    job = site.run(Script().add("heal", 0, 0), nodes, len(nodes))
    assert job.code == 0 and all(entry.error == "SUCCESS" for entry in job.entries("heal")), f"{job}"


def test_only_what_changed_is_written(site):
    model = write_first(site)
    first = {node: own_bytes(site, node) for node in NODES}
    assert sum(first.values()) > 2 * BLOCKS * RECIPE
    assert not any(donors(site, node) for node in NODES)

    # A sixtieth of one block of 12, by whichever rank: what is new of it.
    pieces = {1: [(5 * BLOCK + 100_000, noise("new", 70_000))]}
    model.write(pieces)
    site.write(pieces, NODES, 3, HINTS, mode="w")
    second = {node: own_bytes(site, node) for node in NODES}
    assert sum(second.values()) < 2 * RECIPE / 40 + 3 * TABLES, (first, second)
    file = site.check_stores(model, 2)
    assert file["generation"] == 2
    site.expect(model, NODES, 2)

    # Nothing changes, but all that makes a commit safe is done.
    heal(site, NODES)
    third = {node: own_bytes(site, node) for node in NODES}
    assert max(third.values()) < TABLES, third
    assert site.check_stores(model, 2)["generation"] == 3

    # The first generations are gone; what stays of them is read, with either store away.
    for node in NODES:
        site.lose(node)
        site.expect(model, [other for other in NODES if other != node], 2)
        site.bring_back(node)


def test_a_replaced_node_gets_its_shards(site):
    """The others write blocks of which it had chunks, if these are on other nodes now."""
    model = write_first(site)
    site.lose("n2")
    new = ["n0", "n1", "n3"]
    heal(site, new)
    site.check_stores(model, 2, *new, nothing_else=False)
    written = {node: own_bytes(site, node) for node in new}
    assert written["n3"] > BLOCKS // 3 * RECIPE, written
    assert sum(len(donors(site, node)) for node in ("n0", "n1")) > 0
    # What is left in a file of which less than half is used is copied once; then all stays.
    heal(site, new)
    heal(site, new)
    assert max(own_bytes(site, node) for node in new) < TABLES
    site.check_stores(model, 2, *new, nothing_else=False)
    site.lose("n0")
    site.expect(model, ["n1", "n3"], 2)


def test_a_damaged_block_that_stays_is_replaced(site):
    model = write_first(site)
    pieces = {0: [(7 * BLOCK, noise("new", 70_000))]}
    model.write(pieces)
    site.write(pieces, NODES, 3, HINTS, mode="w")
    path = donors(site, "n1")[0]
    content = bytearray(path.read_bytes())
    content[10_000] ^= 1
    path.write_bytes(content)
    file = site.walk()["files"][0]
    assert min(file["shards"]) == 1, file["shards"]
    site.expect(model, NODES, 3)
    heal(site, NODES)
    assert own_bytes(site, "n1") > RECIPE
    site.check_stores(model, 2)
