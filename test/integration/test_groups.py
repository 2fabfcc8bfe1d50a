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


def groups_of(partners):
    return {frozenset([node, *others]) for node, others in partners.items()}


def test_what_a_node_has_is_on_all_of_its_group(site):
    model, partners = write(site)
    groups = groups_of(partners)
    assert sorted(len(group) for group in groups) == [8, 8]
    for shared in partners.values():
        # What it sends to each and gets from each: 2 * 300 in seven parts.
        assert max(shared.values()) <= 2 * 44 and min(shared.values()) >= 2 * 42
    site.expect(model, [f"n{i}" for i in range(NODES)], 8)
    # The loss of one node of each group is survived.
    site.lose(*(min(group) for group in groups))
    site.expect(model, [f"n{i}" for i in range(NODES) if f"n{i}" not in map(min, groups)], 5)


def test_groups_are_of_different_domains(site):
    racks = [f"rack{i // 4}" for i in range(NODES)]
    model, partners = write(site, racks)
    for group in groups_of(partners):
        assert len(group) == 8
        assert set(collections.Counter(racks[int(node[1:])] for node in group).values()) == {2}
    site.expect(model, [f"n{i}" for i in range(NODES)], 4)


def test_a_whole_rack_is_survived(site):
    """As many racks as a group has nodes: no rack has two of one group."""
    racks = [f"rack{i // 2}" for i in range(NODES)]
    model, partners = write(site, racks)
    for group in groups_of(partners):
        assert len({racks[int(node[1:])] for node in group}) == len(group) == 8
    for rack in (0, 5):
        lost = [f"n{2 * rack}", f"n{2 * rack + 1}"]
        site.lose(*lost)
        site.expect(model, [f"n{i}" for i in range(NODES) if f"n{i}" not in lost], 7)
        site.bring_back(*lost)


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
