"""Healing: every chunk is on K nodes again, bad copies are replaced, nothing else changes."""

import re

import pytest

from stores import Model, Script, Site, noise, shared_site

BLOCK = 4 << 20
HEADER = 64
VERIFY, ACCEPT_LOSS = 1, 2
FOUR = ["n0", "n1", "n2", "n3"]


@pytest.fixture(params=["shared", "private"])
def site(request, tmp_path):
    return shared_site(tmp_path) if request.param == "shared" else Site(tmp_path)


def write_four(site, replication):
    """Data that is on one node's ranks only, and data that is on all, in several blocks."""
    pieces = {rank: [(rank % 3 * BLOCK + rank * 400_000 + 7,
                      noise("same", 150_000) + noise(rank, 150_000))] for rank in range(4)}
    model = Model()
    model.write(pieces)
    site.write(pieces, FOUR, 4, {"replication": replication})
    return model


def heal(site, nodes, replication=0, flags=0, ranks=None):
    job = site.run(Script().add("heal", replication, flags), nodes, ranks or len(nodes))
    entries = job.entries("heal")
    assert job.code == 0 and all(entries), f"{job}"
    assert len({(entry.error, entry.text) for entry in entries}) == 1, f"{job}"
    error, text = entries[0].error, entries[0].text
    figures = {word: int(number) for word, number in re.findall(r"([a-z]+) (\d+)", text)}
    return error, figures if error == "SUCCESS" else text


def flip_every(site, node, step):
    """Bytes of a node's segments, `step` apart."""
    for segment in (site.file_directory(node) / "segments").iterdir():
        content = bytearray(segment.read_bytes())
        for place in range(HEADER + 50, len(content), step):
            content[place] ^= 0x10
        segment.write_bytes(content)


@pytest.mark.parametrize("replication", [2, 3])
def test_as_many_nodes_as_before_may_be_lost_again(site, replication):
    model = write_four(site, replication)
    site.lose("n1")
    error, healed = heal(site, ["n0", "n2", "n3"])
    assert error == "SUCCESS", healed
    assert healed["generation"] == 2 and healed["made"] > 0
    assert (healed["lost"], healed["lowest"], healed["checked"]) == (0, replication, 0)
    site.check_stores(model, replication, "n0", "n2", "n3", nothing_else=False)
    site.lose(*["n0", "n3"][:replication - 1])
    left = ["n2", "n3", "n0"][:4 - replication]
    site.expect(model, left, 3)


def test_killed_while_nodes_restore(site):
    """What stood before stands, and the next one gets through."""
    model = write_four(site, 2)
    site.lose("n1")
    left = ["n0", "n2", "n3"]
    job = site.run(Script().add("heal", 0, 0), left, 3,
                   environment={"DEDUP_TEST_KILL": "commit.restoring:1:1"})
    assert job.code != 0, f"{job}"
    site.expect(model, left, 3)
    error, healed = heal(site, left)
    assert error == "SUCCESS" and healed["made"] > 0, healed
    site.check_stores(model, 2, *left, nothing_else=False)


def test_nothing_is_lacking(site):
    model = write_four(site, 2)
    error, healed = heal(site, FOUR, flags=VERIFY, ranks=7)
    assert error == "SUCCESS", healed
    assert healed["checked"] > 4 * 36
    assert (healed["bad"], healed["made"], healed["lost"]) == (0, 0, 0)
    site.check_stores(model, 2)


def test_bad_copies_are_replaced(site):
    """What one node has is all bad; with it healed, the others may go."""
    model = write_four(site, 2)
    flip_every(site, "n2", 3000)
    error, healed = heal(site, FOUR, ranks=6)
    assert error == "SUCCESS" and healed["made"] == 0, "without verifying nobody looks"
    error, healed = heal(site, FOUR, flags=VERIFY, ranks=6)
    assert error == "SUCCESS", healed
    assert healed["bad"] == healed["made"] > 30 and healed["lost"] == 0
    site.check_stores(model, 2)
    for other in ("n0", "n1", "n3"):
        site.lose(other)
        site.expect(model, [node for node in FOUR if node != other], 3)
        site.bring_back(other)


def test_a_lost_segment_is_found_without_verifying(site):
    model = write_four(site, 2)
    for segment in (site.file_directory("n3") / "segments").iterdir():
        segment.unlink()
    error, healed = heal(site, FOUR)
    assert error == "SUCCESS" and healed["made"] > 0 and healed["lost"] == 0
    site.check_stores(model, 2)


def test_a_damaged_index_and_shard(site):
    model = write_four(site, 2)
    (generation,) = (site.file_directory("n0") / "generations").iterdir()
    for name in ["index", *[path.name for path in generation.glob("shard-*")]]:
        content = bytearray((generation / name).read_bytes())
        content[20] ^= 1
        (generation / name).write_bytes(content)
    error, healed = heal(site, FOUR, flags=VERIFY)
    assert error == "SUCCESS" and healed["lost"] == 0, healed
    site.check_stores(model, 2, nothing_else=False)


def test_more_copies_than_before(site):
    model = write_four(site, 1)
    error, healed = heal(site, FOUR, replication=3)
    assert error == "SUCCESS" and healed["lowest"] == 3, healed
    site.check_stores(model, 3)


def test_what_has_no_good_copy_is_counted(site):
    model = write_four(site, 2)
    for node in FOUR:
        flip_every(site, node, 40_000)
    error, text = heal(site, FOUR, flags=VERIFY)
    assert error == "IO" and "no good copy" in text
    assert site.walk()["files"][0]["generation"] == 1, "nothing was changed"
    error, healed = heal(site, FOUR, flags=VERIFY + ACCEPT_LOSS)
    assert error == "SUCCESS" and healed["bad"] > 0 and healed["lost"] > 0, healed
    job, content, read = site.read_pieces(FOUR, 4, 4096)
    assert 0 in read
    for piece, was_read in enumerate(read):
        if was_read:
            at = piece * 4096
            assert content[at:at + 4096] == bytes(model.content[at:at + 4096])
    assert "IO" in job.errors_of("pieces")


@pytest.mark.parametrize("hints, name", [({"mode": "none"}, "none"), ({}, "keyed"),
                                         ({"fingerprint": "sha256"}, "sha256")])
def test_other_fingerprints(site, hints, name):
    """Chunks keep their names, also those that have a checksum only."""
    pieces = {rank: [(rank * 100_000, noise(rank, 100_000))] for rank in range(2)}
    model = Model()
    model.write(pieces)
    site.write(pieces, 2, 2, {"replication": 2, **hints})
    flip_every(site, "n1", 9000)
    error, healed = heal(site, ["n0", "n1"], flags=VERIFY)
    assert error == "SUCCESS" and healed["bad"] == healed["made"] > 0, healed
    file = site.check_stores(model, 2)
    assert file["fingerprint"] == name


def test_what_cannot_be_healed(site, tmp_path):
    error, text = heal(site, FOUR)
    assert error == "NO_SUCH_FILE", text
    model = write_four(site, 2)
    site.lose("n0", "n1")
    error, text = heal(site, ["n2", "n3"])
    # Two recipe shards are gone; without a shared path a newer generation may be there, too.
    assert error == "IO" and "n0" in text, text
    site.bring_back("n0", "n1")
    site.expect(model, FOUR, 4)
    if site.shared:
        site.path = tmp_path / "plain"
        site.path.write_bytes(b"12345678")
        error, text = heal(site, ["n2", "n3"])
        assert error == "ARG" and "nothing to heal" in text
        assert site.path.read_bytes() == b"12345678"
