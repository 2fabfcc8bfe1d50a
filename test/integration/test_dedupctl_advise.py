"""dedupctl advise: what it says of plain files, of files in the stores, of several steps, and of the interval."""

import json
import math
import struct

import pytest

from ctl import FINE, NO_STORE, PROBLEMS, USAGE, dedupctl
from stores import noise, parts, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
PART = 1 << 20


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def advise(site, *arguments, code=FINE, **keywords):
    answer = dedupctl(site, "--json", "advise", *arguments, **keywords)
    assert answer.code == code, answer
    return answer.json


def row_of(file, chunk_size):
    (row,) = [row for row in file["chunk_sizes"] if row["chunk_size"] == chunk_size]
    return row


def test_a_plain_file(site):
    """Half of each node's part is the same on all nodes."""
    same = noise("same", PART // 2)
    plain = site.root / "plain"
    plain.write_bytes(b"".join(same + noise(n, PART // 2) for n in range(4)))
    answer = advise(site, plain, "--nodes", 4)
    (file,) = answer["files"]
    assert (file["path"], file["size"], file["nodes"]) == (str(plain), 4 * PART, 4)
    row = row_of(file, 4096)
    assert row["data_bytes"] == 4 * PART and row["found"] == 3 / 8 and row["found_by_nodes_alone"] == 0
    assert (row["stored_bytes"], row["sent_bytes"]) == (5 * PART, 2 * PART)
    ways = {way["name"]: way for way in answer["redundancy"]}
    assert list(ways) == ["copies on 2", "xor:3", "copies on 3", "rs:2+2"]
    assert ways["copies on 2"]["stored_bytes"] == 5 * PART > ways["xor:3"]["stored_bytes"]
    assert answer["settings"] == {"DEDUP_REDUNDANCY": "xor:3"}
    assert any("compressed" in sentence for sentence in answer["advice"])
    assert not list(site.stores.glob("*"))


def test_what_the_driver_does_is_what_was_said(site):
    """The same file, written by four nodes."""
    content = b"".join(noise("same", PART // 2) + noise(n, PART // 2) for n in range(4))
    plain = site.root / "plain"
    plain.write_bytes(content)
    report = site.root / "report"
    site.variables = {"DEDUP_REPORT": str(report)}
    site.write(parts(content, 4), FOUR, 4)
    commit = json.loads(report.read_text())
    said = row_of(advise(site, plain, "--nodes", 4)["files"][0], 4096)
    assert (said["stored_bytes"], said["sent_bytes"]) == tuple(commit[f"bytes_{kind}"]["total"]
                                                               for kind in ("stored", "sent"))


def test_a_file_in_the_stores(site, where):
    content = noise("same", PART // 4) * 4 + bytes(PART)
    site.write(parts(content, 4), FOUR, 4)
    (file,) = advise(site, site.path, "--nodes", 2, nodes=where(FOUR))["files"]
    row = row_of(file, 4096)
    assert file["size"] == len(content) and row["data_bytes"] == PART and row["found"] == 0.75


def test_what_is_lost_is_said(site):
    site.write(parts(noise(1, 4 * PART), 4), FOUR, 4, {"replication": 1})
    site.lose("n1")
    answer = dedupctl(site, "advise", site.path)
    assert answer.code in (PROBLEMS, NO_STORE) and "lost, and taken for zeros" in answer.err, answer


def test_steps(site):
    """What is in an earlier step is stored no more."""
    first, second = site.root / "step1", site.root / "step2"
    first.write_bytes(noise(1, 4 * PART))
    second.write_bytes(noise(1, 4 * PART)[:3 * PART] + noise(2, PART))
    one, two = (row_of(file, 4096) for file in advise(site, first, second, "--nodes", 4)["files"])
    assert one["in_earlier_files"] == 0 and two["in_earlier_files"] == 0.75
    assert (one["stored_bytes"], two["stored_bytes"]) == (8 * PART, 2 * PART)
    text = dedupctl(site, "advise", first, second, "--nodes", 4).out
    assert "IN EARLIER FILES" in text and text.count("what to do\n") == 1


def test_text(site):
    plain = site.root / "plain"
    plain.write_bytes(struct.pack("<8Q", *range(8)) * 1024 + bytes(65536))
    answer = dedupctl(site, "advise", plain)
    assert answer.code == FINE, answer
    lines = answer.out.splitlines()
    assert lines[0] == str(plain) and lines[1] == "  128.0 KiB, 50.0 % zeros; as if 8 nodes wrote it, a part each"
    assert lines[2].split() == "CHUNKS FOUND BY NODES ALONE STORED SENT LISTS".split()
    assert "what to do" in lines
    empty = site.root / "empty"
    empty.touch()
    assert "zeros only" in dedupctl(site, "advise", empty).out


def test_the_interval(site):
    given = advise(site, "--mtbf", "24h", "--write", "12s")["interval"]
    assert given["young"]["seconds"] == pytest.approx(math.sqrt(2 * 12 * 86400))
    assert 0 < given["daly"]["time_lost"] <= given["young"]["time_lost"] < 0.02
    text = dedupctl(site, "advise", "--mtbf", "24h", "--write", "12s").out
    assert "Young      after 24.0 min of computing; 1.7 % of the time is lost" in text, text


def test_the_interval_by_what_commits_took(site):
    report = site.root / "report"
    site.variables = {"DEDUP_REPORT": str(report)}
    for _ in range(3):
        site.write(parts(noise(1, PART), 2), FOUR[:2], 2)
    took = sorted(json.loads(line)["seconds_writing"]["max"] for line in report.read_text().splitlines())
    assert len(took) == 3 and took[0] > 0
    # The variable names the report, too; what it is told of another file does not count.
    for arguments in ([], ["--report", report], [site.path]):
        given = advise(site, "--mtbf", "24h", *arguments)["interval"]
        assert given["write_seconds"] == pytest.approx(took[1]) and "3 commits" in given["write_source"]
    other = site.root / "other"
    other.touch()
    answer = dedupctl(site, "advise", "--mtbf", "24h", other)
    assert answer.code == USAGE and "--write" in answer.err, answer


@pytest.mark.parametrize("arguments, text", [
    ([], "advise takes FILE"),
    (["--mtbf", "24h"], "--write"),
    (["--mtbf", "soon", "--write", "1s"], "must be a number with s, m, h or d"),
    (["--write", "1s"], "requires --mtbf"),
    (["--nodes", "65", "file"], "65"),
    (["--mtbf", "1h", "--report", "/dev/null/none"], "/dev/null/none"),
])
def test_what_is_wrong_with_the_arguments(site, arguments, text):
    answer = dedupctl(site, "advise", *arguments)
    assert answer.code != FINE and text in answer.err, answer
