"""Partners are groups (dedup_group), whose members are of different failure domains."""

import collections

import pytest

from stores import Model, Script, noise, parts, shared_site

CHUNK = 512
NODES = 16
SIZE = 300 * CHUNK  # of a node: a part of 32 chunks and more for each of seven partners
HINTS = {"replication": 2, "chunk_size": CHUNK}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def write(site, domains=(), seed=1, mode="wc", **hints):
    """One rank a node. What the file is, and the partners of each node: with whom it has chunks."""
    nodes = [(f"n{i}", 1, *domains[i:i + 1]) for i in range(NODES)]
    pieces = parts(noise(seed, NODES * SIZE), NODES)
    model = Model()
    model.write(pieces)
    site.run(Script().open(mode).write("all-at", pieces).close(), nodes, NODES, {**HINTS, **hints}).check()
    partners = collections.defaultdict(collections.Counter)
    for chunk in site.walk()["files"][0]["chunks"]:
        assert len(chunk["held"]) == 2 and chunk["held"] == chunk["named"]
        for one, other in (chunk["held"], chunk["held"][::-1]):
            partners[one][other] += 1
    return model, partners


def expect_without(site, model, lost):
    site.lose(*lost)
    left = [f"n{i}" for i in range(NODES) if f"n{i}" not in lost]
    site.expect(model, left, len(left))
    site.bring_back(*lost)


def groups_of(partners):
    return {frozenset([node, *others]) for node, others in partners.items()}


def test_what_a_node_has_is_on_all_of_its_group(site):
    model, partners = write(site)
    groups = groups_of(partners)
    assert sorted(len(group) for group in groups) == [8, 8]
    for shared in partners.values():
        # What it sends to each and gets from each: 2 * 300 in seven parts.
        assert max(shared.values()) <= 2 * 44 and min(shared.values()) >= 2 * 42
    expect_without(site, model, ["n3"])


@pytest.mark.parametrize("of_a_rack", [2, 4])
def test_a_whole_rack_is_survived(site, of_a_rack):
    """Also where a group has more nodes than there are racks."""
    racks = [f"rack{i // of_a_rack}" for i in range(NODES)]
    model, partners = write(site, racks)
    for group in groups_of(partners):
        members = collections.Counter(racks[int(node[1:])] for node in group)
        # A node has nothing in common with its neighbour in the rack, also if that is in its group.
        assert sum(members.values()) == (8 if of_a_rack == 2 else 7) and max(members.values()) == of_a_rack // 2
    for node, others in partners.items():
        assert racks[int(node[1:])] not in {racks[int(other[1:])] for other in others}
    for rack in (0, len(set(racks)) - 1):
        expect_without(site, model, [f"n{i}" for i in range(NODES) if racks[i] == f"rack{rack}"])
    # What is healed is in different racks, too.
    site.lose("n0", "n5")
    left = [(f"n{i}", 1, racks[i]) for i in range(NODES) if i not in (0, 5)]
    assert site.run(Script().add("heal", 0, 0), left, len(left)).code == 0
    for chunk in site.walk()["files"][0]["chunks"]:
        assert len({racks[int(node[1:])] for node in chunk["held"]}) == 2


@pytest.mark.parametrize("hints", [{"group": 1}, {"partners": "ring"}])
def test_without_groups_there_is_one_partner(site, hints):
    _, partners = write(site, **hints)
    assert all(len(others) == 2 for others in partners.values())


def test_a_little_goes_to_one_partner(site):
    nodes = [f"n{i}" for i in range(NODES)]
    pieces = parts(noise(1, NODES * 20 * CHUNK), NODES)
    site.write(pieces, nodes, NODES, HINTS)
    held = [chunk["held"] for chunk in site.walk()["files"][0]["chunks"]]
    for node in nodes:
        assert len({other for pair in held if node in pair for other in pair}) <= 3


def test_groups_stay_from_generation_to_generation(site):
    _, partners = write(site, seed=1)
    _, again = write(site, seed=2, mode="w")
    assert groups_of(partners) == groups_of(again)
