"""Nodes of one host read each other's stores themselves, or ask each other's services over the network: either
way all is read, also after a loss, and nothing that is damaged."""

import pytest

from conftest import only_dedup
from stores import Model, Script, Site, noise, parts

pytestmark = only_dedup

NODES = ["n0", "n1", "n2", "n3"]
RANKS = 4
SIZE = 3_000_001  # of odd ends
WAYS = {"lent": {}, "network": {"DEDUP_SAME_HOST": "network"}}
KEPT = {"copies": {"replication": 2}, "stripes": {"redundancy": "xor:2", "replication": 8}}


@pytest.fixture(name="site", params=WAYS)
def fixture_site(request, tmp_path):
    site = Site(tmp_path, shared=True)
    site.variables = WAYS[request.param]
    return site


def written(site, kept):
    model = Model(noise("data", SIZE))
    site.write(parts(bytes(model.content), RANKS), NODES, RANKS, {"chunk_size": 4096, **KEPT[kept]})
    return model


def damage(site, node, places):
    """Flips a bit at these shares of each of a node's segments."""
    for path in sorted((site.stores / node).rglob("*.seg")):
        content = bytearray(path.read_bytes())
        for place in places:
            content[int(place * (len(content) - 1))] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("kept", KEPT)
def test_after_a_loss(site, kept):
    model = written(site, kept)
    site.expect(model, NODES, 5)  # each rank reads what others wrote, too
    site.lose("n2")
    site.expect(model, ["n0", "n1", "n3"], RANKS)
    site.expect(model, ["n3", "n0", "n1"], 3)


@pytest.mark.parametrize("kept", KEPT)
def test_a_damaged_chunk_is_read_somewhere_else(site, kept):
    model = written(site, kept)
    damage(site, "n1", [0.2, 0.5, 0.9])
    site.expect(model, NODES, 5)
    site.expect(model, list(reversed(NODES)), RANKS)


def test_what_is_lost_is_said(site):
    """With one copy: the bytes of the lost node are an error, and the others are read."""
    model = Model(noise("data", SIZE))
    site.write(parts(bytes(model.content), RANKS), NODES, RANKS, {"replication": 1})
    site.lose("n1")
    left = ["n0", "n2", "n3"]
    job = site.run(Script().open("r").add("read", 0, site.root / "read", 0).close(), left, 3)
    assert "IO" in job.errors_of("read")
    assert "no copy of these bytes is left" in f"{job}" or "the recipe of these bytes is on" in f"{job}"
