"""dedup_log=info: what each open and commit did, a line each, and why little was found."""

import re

import pytest

from stores import Script, noise, parts, shared_site

NODES = ["n0", "n1", "n2", "n3"]
RANKS = 4
CHUNK = 4096
PART = 64 * CHUNK
INFO = {"log": "info", "chunk_size": CHUNK}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


def told(site, script, **hints):
    """The lines that a job says, without who says them and without its times, which are there."""
    job = site.run(script, NODES, RANKS, {**INFO, **hints}).check()
    lines = []
    for line in job.stderr.splitlines():
        start = f"dedup: info: rank 0 on n0: {site.path}: "
        assert line.startswith(start), job
        lines.append(re.sub(r"; \d+\.\d{3} s$", "; S", line.removeprefix(start)))
    return lines


def why(site, content, **hints):
    """What is said of a new file beside what its open and commit did."""
    opened, committed, *more = told(site, Script().open("wc").write("all-at", parts(content, RANKS)).close(), **hints)
    assert opened.startswith("opened to be written") and committed.startswith("committed generation"), (opened, more)
    return committed, more


def test_a_line_for_each_open_and_commit(site):
    same = noise(1, PART)
    pieces = parts(same * 2 + noise(2, 2 * PART), RANKS)
    script = Script().open("wc").write("all-at", pieces).add("sync", 0).write("all-at", pieces).close().open("r").close()
    assert told(site, script) == [
        "opened to be written by 4 ranks on 4 nodes: new; chunks of 4.0 KiB, each on 2 nodes, mode collective; S",
        # Of four parts two are equal, on two nodes: only the others are sent.
        "committed generation 1: 1.0 MiB written: 0 % zeros, of the rest 0 % found by each rank alone, 25 % by all "
        "together, 0 % stored before; 1.5 MiB stored, 512.0 KiB sent; S",
        *told_of(2),
        "opened to be read by 4 ranks on 4 nodes: generation 2, 1.0 MiB; S",
    ]


def told_of(generation):
    return [f"committed generation {generation}: 1.0 MiB written: 0 % zeros, of the rest 0 % found by each rank alone, "
            "0 % by all together, 100 % stored before; 0 B stored, 0 B sent; S"]


def test_what_was_found_by_whom(site):
    """Half zeros; of the rest half is the same all over the rank, and all ranks have that."""
    part = bytes(PART // 2) + noise(1, CHUNK) * (PART // 4 // CHUNK) + noise(2, PART // 4)
    committed, more = why(site, part * RANKS, replication=1)
    assert "50 % zeros, of the rest 47 % found by each rank alone, 40 % by all together, 0 % stored" in committed, committed
    assert not more


def test_nothing_is_said_unless_asked(site):
    job = site.run(Script().open("wc").write("all-at", parts(noise(1, PART), RANKS)).close(), NODES, RANKS).check()
    assert "info" not in job.stderr


def counting(length, first=0):
    """Numbers that are no noise, and no two of which are equal."""
    return b"".join(n.to_bytes(8, "little") for n in range(first, first + length // 8))


def content_of(kind):
    if kind == "compressed":
        return noise(1, RANKS * PART)
    if kind == "different":
        return counting(RANKS * PART)
    if kind == "not compared":
        return noise(1, CHUNK) * (RANKS * PART // CHUNK)
    # shifted, within each rank's part
    halves = [counting(PART // 2, rank * PART) for rank in range(RANKS)]
    return b"".join(half + bytes(8) + half[:-8] for half in halves)


@pytest.mark.parametrize("kind, hints, text", [
    ("compressed", {}, "looks compressed or encrypted"),
    ("different", {}, "different everywhere"),
    ("shifted", {}, "begins at different places in its chunks"),
    ("not compared", {"mode": "none"}, "dedup_mode=none"),
])
def test_why_little_was_found(site, kind, hints, text):
    committed, more = why(site, content_of(kind), **hints)
    assert len(more) == 1 and more[0].startswith("little was found: ") and text in more[0], (committed, more)


def test_short_pieces(site):
    """Written one by one: to the log, which the close makes chunks of."""
    pieces = {rank: [((RANKS * n + rank) * 2 * CHUNK, noise(f"{rank} {n}", 1000)) for n in range(64)]
              for rank in range(RANKS)}
    lines = told(site, Script().open("wc").write("at", pieces).close())
    assert "in pieces of 1000 bytes" in lines[-1], lines
