"""dedupctl stat --prometheus: the text format, and that its figures are those of the stores."""

import re

import pytest

from ctl import FINE, NO_STORE, USAGE, dedupctl
from stores import Script, noise, parts, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
CHUNK = 4096
SIZE = 400 * CHUNK
HINTS = {"replication": 2, "chunk_size": CHUNK, "keep": 3}

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'


def unescaped(text):
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), text)


def parse(text):
    """{name: {labels as a sorted tuple: value}}. Takes nothing that the format does not allow, nor what a reader may
    refuse: samples apart from their HELP and TYPE lines, a metric in two places, a sample twice."""
    assert text.endswith("\n")
    metrics = {}
    lines = text.split("\n")[:-1]
    while lines:
        help_line = re.fullmatch(rf"# HELP ({NAME}) (.+)", lines.pop(0))
        name = help_line[1]
        assert lines.pop(0) == f"# TYPE {name} gauge"
        assert name not in metrics
        metrics[name] = {}
        while lines and not lines[0].startswith("#"):
            sample = re.fullmatch(rf"{name}(?:\{{((?:{LABEL},)*{LABEL})\}})? ([0-9]+)", lines.pop(0))
            assert sample, name
            found = re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', sample[1] or "")
            labels = tuple(sorted((label, unescaped(value)) for label, value in found))
            assert labels not in metrics[name] and len(dict(labels)) == len(labels)
            metrics[name][labels] = int(sample[2])
        assert metrics[name]
    return metrics


def by_node(samples):
    return {dict(labels)["node"]: value for labels, value in samples.items()}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def write(site, seed):
    site.write(parts(noise(seed, SIZE), 4), FOUR, 4, HINTS)


def test_of_all_stores(site, where):
    write(site, 1)
    answer = dedupctl(site, "stat", "--prometheus", nodes=where(FOUR))
    assert answer.code == FINE, answer
    metrics = parse(answer.out)
    (labels, *_) = metrics["dedup_store_files"]
    assert [label for label, _ in labels] == ["node", "store"] and len(dict(labels)["store"]) == 32
    segments = by_node(metrics["dedup_store_segment_bytes"])
    assert segments == {node: sum(path.stat().st_size for path in site.store(node).rglob("*.seg")) for node in FOUR}
    live, dead = (by_node(metrics[f"dedup_store_{kind}_bytes"]) for kind in ("live", "dead"))
    rows = {row["node"]: row for row in dedupctl(site, "--json", "df").json["stores"]}
    for node in FOUR:
        assert live[node] == rows[node]["live_bytes"] and live[node] + dead[node] == segments[node]
    assert sum(live.values()) > 2 * SIZE
    metadata = by_node(metrics["dedup_store_metadata_bytes"])
    for node in FOUR:
        files = [path for path in site.store(node).rglob("*") if path.suffix != ".seg"]
        assert 0 < metadata[node] < 2 * sum(path.stat().st_blocks * 512 for path in files)
    assert by_node(metrics["dedup_store_files"]) == dict.fromkeys(FOUR, 1)
    assert by_node(metrics["dedup_store_generations"]) == dict.fromkeys(FOUR, 1)
    assert by_node(metrics["dedup_store_log_bytes"]) == dict.fromkeys(FOUR, 0)
    assert min(by_node(metrics["dedup_store_free_bytes"]).values()) > 0
    assert metrics["dedup_stores_unreadable"] == {(): 0} and metrics["dedup_lost_bytes"] == {(): 0}


def test_what_generations_share_counts_once(site):
    write(site, 1)
    changed = bytearray(noise(1, SIZE))
    changed[:40 * CHUNK] = noise(2, 40 * CHUNK)
    site.write(parts(bytes(changed), 4), FOUR, 4, HINTS)
    metrics = parse(dedupctl(site, "stat", "--prometheus").out)
    assert by_node(metrics["dedup_store_files"]) == dict.fromkeys(FOUR, 1)
    assert by_node(metrics["dedup_store_generations"]) == dict.fromkeys(FOUR, 2)
    assert sum(by_node(metrics["dedup_store_segment_bytes"]).values()) == site.segment_bytes() < 2 * SIZE * 1.3
    # The newest does not need a tenth of what the older one does.
    assert sum(by_node(metrics["dedup_store_dead_bytes"]).values()) < SIZE / 20


def test_of_files(site, where):
    write(site, 1)
    plain = site.path
    site.path = plain.with_name('a "b"\\c\nd')
    write(site, 2)
    answer = dedupctl(site, "stat", "--prometheus", site.path, site.path, plain, nodes=where(FOUR))
    assert answer.code == FINE, answer
    metrics = parse(answer.out)
    assert set(metrics) == {f"dedup_file_{kind}_bytes" for kind in ("segment", "live", "dead", "metadata", "lost")}
    lost = {dict(labels)["file"]: value for labels, value in metrics["dedup_file_lost_bytes"].items()}
    assert lost == {str(plain): 0, str(site.path): 0}
    for row in dedupctl(site, "--json", "stat", site.path).file["nodes"]:
        (live,) = [value for labels, value in metrics["dedup_file_live_bytes"].items()
                   if dict(labels)["file"] == str(site.path) and dict(labels)["node"] == row["node"]]
        assert live == row["live_bytes"]


def test_a_name_that_is_not_utf8(site):
    write(site, 1)
    strange = site.path.with_name("b\udcff")
    site.path.rename(strange)
    answer = dedupctl(site, "stat", "--prometheus", strange)
    names = {dict(labels)["file"] for labels in parse(answer.out)["dedup_file_lost_bytes"]}
    assert names == {str(site.path.with_name("b\ufffd"))}, answer


def test_lost_bytes_only_if_they_are_known(site):
    write(site, 1)
    alone = dedupctl(site, "stat", "--prometheus", stores=[site.store("n0")])
    assert alone.code == FINE and "dedup_lost_bytes" not in parse(alone.out), alone
    alone = dedupctl(site, "stat", "--prometheus", site.path, stores=[site.store("n0")])
    assert set(parse(alone.out)) == {f"dedup_file_{kind}_bytes" for kind in ("segment", "live", "dead", "metadata")}
    for node in FOUR:
        for segment in (site.file_directory(node) / "segments").iterdir():
            segment.write_bytes(b"")
    metrics = parse(dedupctl(site, "stat", "--prometheus").out)
    assert metrics["dedup_lost_bytes"] == {(): SIZE}


def test_a_store_that_cannot_be_read(site):
    write(site, 1)
    (site.store("n1") / "STORE").write_bytes(b"something else")
    answer = dedupctl(site, "stat", "--prometheus")
    metrics = parse(answer.out)
    assert answer.code == NO_STORE and metrics["dedup_stores_unreadable"] == {(): 1}, answer
    assert set(by_node(metrics["dedup_store_files"])) == {"n0", "n2", "n3"}
    assert "dedup_lost_bytes" not in metrics


def test_an_empty_store(site):
    site.run(Script().open("wc").close(), 1, 1).check()
    site.run(Script().add("delete"), 1, 1).check()
    metrics = parse(dedupctl(site, "stat", "--prometheus").out)
    for kind in ("files", "generations", "segment_bytes", "live_bytes", "dead_bytes"):
        assert by_node(metrics[f"dedup_store_{kind}"]) == {"n0": 0}
    assert metrics["dedup_lost_bytes"] == {(): 0}


def test_not_both_formats(site):
    write(site, 1)
    answer = dedupctl(site, "--json", "stat", "--prometheus")
    assert answer.code == USAGE and "not both" in answer.err and not answer.out, answer
