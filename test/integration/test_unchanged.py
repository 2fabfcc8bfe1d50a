"""What is written again as it is there already is neither stored nor sent, and stays as well kept."""

import json

import pytest

from stores import AS_IF_LARGE, Model, Script, noise, parts, shared_site

CHUNK = 4096
NODES = ["n0", "n1", "n2", "n3"]
RANKS = 4
SIZE = RANKS * 40 * CHUNK


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    site = shared_site(tmp_path)
    site.variables = AS_IF_LARGE
    return site


def hints(copies):
    return {"replication": copies, "chunk_size": CHUNK}


def totals(site, pieces, nodes=None, ranks=RANKS, copies=2, mode="w", more=None):
    """Writes, commits, closes; what the report says of the commit. `more`: hints."""
    report = site.root / f"report{site.jobs}"
    script = Script().open(mode).write("all-at", pieces).close()
    site.run(script, nodes or NODES, ranks, {**hints(copies), **(more or {})},
             {"DEDUP_REPORT": str(report)}).check()
    line = json.loads(report.read_text().splitlines()[-1])
    return {figure: value["total"] for figure, value in line.items() if isinstance(value, dict)}


def content_of(kind):
    """unique: nothing twice. shared: each chunk on ranks of two nodes. mixed: half of each."""
    half = SIZE // 2
    unique, twice = noise(1, SIZE), noise(2, half) * 2
    if kind == "mixed":
        part = SIZE // RANKS
        return b"".join((unique if rank % 2 else twice)[rank * part:(rank + 1) * part] for rank in range(RANKS))
    return unique if kind == "unique" else twice


def expect_without(site, model, lost, nodes):
    site.lose(*lost)
    left = [node for node in nodes if node not in lost]
    site.expect(model, left, len(left))
    site.bring_back(*lost)


def segments(site):
    return {path: path.stat().st_size for path in site.stores.rglob("*.seg")}


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("kind", ["unique", "shared", "mixed"])
def test_nothing_is_stored_or_sent(site, kind, copies):
    pieces = parts(content_of(kind), RANKS)
    model = Model()
    model.write(pieces)
    first = totals(site, pieces, copies=copies, mode="wc")
    assert first["bytes_stored"] > 0
    there = segments(site)
    for _ in range(2):
        again = totals(site, pieces, copies=copies)
        assert (again["bytes_written"], again["bytes_stored"], again["bytes_sent"]) == (SIZE, 0, 0)
        assert segments(site) == there
        site.check_stores(model, copies)
    expect_without(site, model, NODES[1:copies], NODES)


@pytest.mark.parametrize("fingerprint, more", [("sha256", {"fingerprint": "sha256"}),
                                               ("none", {"mode": "none"})])
def test_with_other_names(site, fingerprint, more):
    """SHA-256 finds what is there as well; numbers find nothing."""
    pieces = parts(content_of("mixed"), RANKS)
    model = Model()
    model.write(pieces)
    first = totals(site, pieces, mode="wc", more=more)
    again = totals(site, pieces, more=more)
    stored = first["bytes_stored"] if fingerprint == "none" else 0
    assert again["bytes_stored"] == stored
    assert first["bytes_fingerprinted"] == (SIZE if fingerprint == "sha256" else 0)
    assert site.check_stores(model, 2)["fingerprint"] == fingerprint
    # Keyed names have nothing in common with these: all is new, once.
    once, then = totals(site, pieces), totals(site, pieces)
    assert once["bytes_stored"] > 0 and then["bytes_stored"] == 0
    assert site.check_stores(model, 2)["fingerprint"] == "keyed"
    expect_without(site, model, ["n1"], NODES)


def test_what_the_store_has_lost_is_stored_again(site):
    """No other node has it, and nobody reads what he takes to be there."""
    pieces = parts(content_of("unique"), RANKS)
    model = Model()
    model.write(pieces)
    totals(site, pieces, copies=1, mode="wc")
    lost = [path for path in segments(site) if "n2" in path.parts]
    gone, cut = lost[:1], [path for path in segments(site) if "n3" in path.parts][:1]
    for path in gone:
        path.unlink()
    for path in cut:
        with open(path, "r+b") as file:
            file.truncate(path.stat().st_size // 2)
    assert gone and cut
    again = totals(site, pieces, copies=1)
    assert 0 < again["bytes_stored"] < SIZE
    site.expect(model, NODES, RANKS)
    site.check_stores(model, 1)


def test_what_changed_is_stored_and_sent(site):
    content = bytearray(content_of("unique"))
    pieces = parts(bytes(content), RANKS)
    model = Model()
    model.write(pieces)
    totals(site, pieces, mode="wc")
    for chunk in range(0, len(content) // CHUNK, 10):
        content[chunk * CHUNK:(chunk + 1) * CHUNK] = noise(f"new {chunk}", CHUNK)
    pieces = parts(bytes(content), RANKS)
    model.write(pieces)
    again = totals(site, pieces)
    assert (again["bytes_stored"], again["bytes_sent"]) == (2 * SIZE // 10, SIZE // 10)
    site.check_stores(model, 2)
    expect_without(site, model, ["n1"], NODES)


def test_on_other_nodes_and_ranks(site):
    """Who writes a chunk now may not have it: then it is stored where it is not."""
    content = content_of("mixed")
    model = Model()
    model.write(parts(content, RANKS))
    totals(site, parts(content, RANKS), mode="wc")
    for ranks, nodes in ((3, NODES), (4, NODES[::-1]), (2, NODES[:3]), (5, NODES)):
        totals(site, parts(content, ranks), nodes, ranks)
        site.check_stores(model, 2, *nodes, nothing_else=False)
        expect_without(site, model, nodes[1:2], nodes)


@pytest.mark.parametrize("copies", [2, 3])
def test_a_copy_that_was_lost_comes_back(site, copies):
    """With its node, or with its segments alone, of which the others' indexes know nothing."""
    content = content_of("mixed")
    pieces = parts(content, RANKS)
    model = Model()
    model.write(pieces)
    totals(site, pieces, copies=copies, mode="wc")
    for path in site.store("n2").rglob("*.seg"):
        path.unlink()
    totals(site, pieces, copies=copies)
    site.check_stores(model, copies)
    site.lose("n1")
    nodes = ["n0", "n2", "n3", "n4"]
    totals(site, pieces, nodes, copies=copies)
    site.check_stores(model, copies, *nodes, nothing_else=False)
    expect_without(site, model, nodes[1:copies], nodes)
