"""dedupctl explain: what it finds in files that deduplicate well or badly, each for one reason."""

import random
import struct

import pytest

from ctl import FINE, NO_FILE, PROBLEMS, USAGE, dedupctl
from stores import Script, noise, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
CHUNK = 4096
PART = 64 * CHUNK
HINTS = {"replication": 2, "chunk_size": CHUNK}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def numbers(seed, length):
    """Doubles between 0 and 1, which no compression made."""
    generator = random.Random(seed)
    count = -(-length // 8)
    return struct.pack(f"<{count}d", *(generator.random() for _ in range(count)))[:length]


def write(site, contents, **hints):
    """Each rank's content, one after the other."""
    offset, pieces = 0, {}
    for rank, content in enumerate(contents):
        pieces[rank] = [(offset, content)]
        offset += len(content)
    site.write(pieces, FOUR, 4, {**HINTS, **hints})


def explain(site, where=lambda nodes: None):
    answer = dedupctl(site, "--json", "explain", site.path, nodes=where(FOUR))
    assert answer.code == FINE, answer
    return answer.file


def share(file, kind):
    return file["sample"][f"{kind}_bytes"] / file["sample"]["bytes"]


def test_what_deduplicates_well(site, where):
    write(site, [numbers("same", PART)] * 4)
    file = explain(site, where)
    assert file["data_bytes"] == 4 * PART and file["zero_bytes"] == 0
    assert file["duplicate_bytes"] == 3 * PART and file["unique_chunks"] == 64
    assert file["occurrences"] == [{"least": 3, "most": 4, "share": 1}]
    assert [row["nodes"] for row in file["on_nodes"]] == [2]
    assert file["sample"]["bytes"] == 4 * PART and share(file, "found") == 0.75
    (advice,) = file["advice"]
    assert "75 % of its data is duplicates. Nothing to do." in advice


def test_what_is_different_everywhere(site):
    write(site, [numbers(rank, PART) for rank in range(4)])
    file = explain(site)
    assert file["duplicate_bytes"] == 0 and share(file, "found_by_content") == 0 and share(file, "dense") == 0
    assert len(file["advice"]) == 1 and "different everywhere" in file["advice"][0]


def test_what_is_shifted(site, where):
    write(site, [noise(rank, 100 + rank) + numbers("same", PART) for rank in range(4)])
    file = explain(site, where)
    assert file["duplicate_bytes"] == 0 and share(file, "found") == 0 and share(file, "found_by_content") > 0.6
    assert len(file["advice"]) == 1 and "begins at different places in its chunks" in file["advice"][0]


def test_chunks_that_are_too_large(site):
    contents = [b"".join(numbers(n, CHUNK // 2) + numbers(f"{rank} {n}", CHUNK // 2) for n in range(64))
                for rank in range(4)]
    write(site, contents)
    file = explain(site)
    assert file["duplicate_bytes"] == 0 and share(file, "found_in_halves") > 0.3
    assert any(f"dedup_chunk_size={CHUNK // 2}" in sentence for sentence in file["advice"])
    write(site, contents, chunk_size=CHUNK // 2)
    assert explain(site)["duplicate_bytes"] == 3 * len(contents[0]) / 2


def test_what_looks_compressed(site):
    write(site, [noise(rank, PART) for rank in range(4)])
    file = explain(site)
    assert share(file, "dense") == 1
    assert len(file["advice"]) == 1 and "compressed or encrypted" in file["advice"][0]


def test_zeros(site):
    write(site, [bytes(PART)] * 4)
    file = explain(site)
    assert file["data_bytes"] == 0 and file["zero_bytes"] == 4 * PART and file["sample"]["bytes"] == 0
    assert len(file["advice"]) == 1 and "zeros only" in file["advice"][0]


def test_what_was_not_compared(site):
    write(site, [numbers("same", PART)] * 4, mode="none")
    assert any("dedup_mode=none" in sentence and "75 %" in sentence for sentence in explain(site)["advice"])


def test_of_a_large_file_a_sample_is_read(site):
    """Its pieces are far apart, so that it has many blocks."""
    block = 4 << 20
    pieces = {rank: [(n * block, numbers(n % 10, 8 * CHUNK)) for n in range(rank, 400, 4)] for rank in range(4)}
    site.write(pieces, FOUR, 4, HINTS, how="all-view")
    file = explain(site)
    assert file["unique_chunks"] == 80 and file["data_bytes"] == 400 * 8 * CHUNK
    assert 10 < file["sample"]["blocks"] < 80
    assert file["sample"]["bytes"] == file["sample"]["blocks"] * 8 * CHUNK


def test_text(site, where):
    write(site, [numbers("same", PART) + bytes(PART)] * 4)
    answer = dedupctl(site, "explain", site.path, nodes=where(FOUR))
    assert answer.code == FINE, answer
    lines = answer.out.splitlines()
    assert lines[0] == str(site.path)
    for text in ("zeros          50.0 % of 2.0 MiB", "duplicates     75.0 % of the data: 64 chunks are different",
                 "occurrences    100.0 % occurs 3 to 4 times", "  as it is cut 75.0 %", "what to do"):
        assert any(line.startswith("  " + text) for line in lines), (text, answer)
    assert lines[-1].startswith("  - It deduplicates as well as it can")


def test_what_is_in_stripes(site, where):
    """Chunks of a lost node are made from the others'."""
    write(site, [numbers(rank, PART) for rank in range(4)], redundancy="xor:3")
    site.lose("n1")
    left = [node for node in FOUR if node != "n1"]
    answer = dedupctl(site, "--json", "explain", site.path, nodes=where(left))
    assert answer.code == FINE and answer.file["sample"]["left_out"] == 0, answer
    assert answer.file["sample"]["bytes"] == answer.file["in_stripes_bytes"] == 4 * PART
    assert "100.0 % in stripes" in dedupctl(site, "explain", site.path, nodes=where(left)).out


def test_what_is_lost_is_left_out(site):
    write(site, [numbers("same", PART)] * 4)
    for node in FOUR:
        for segment in (site.file_directory(node) / "segments").iterdir():
            segment.write_bytes(b"")
    answer = dedupctl(site, "--json", "explain", site.path)
    assert answer.code == PROBLEMS, answer
    assert answer.file["sample"] | {"left_out": 1} == answer.file["sample"] and answer.file["sample"]["bytes"] == 0
    assert "left out" in dedupctl(site, "explain", site.path).out


def test_files_that_are_not_there(site):
    site.run(Script().open("wc").close(), 1, 1).check()
    answer = dedupctl(site, "explain", site.path.with_name("other"))
    assert answer.code == NO_FILE and "other" in answer.err, answer
    assert dedupctl(site, "explain").code == USAGE
