"""Numbered files share what is the same (dedup_base), and none depends on another one."""

import contextlib
import fcntl
import json

import pytest

import ctl
from stores import AS_IF_LARGE, Model, Script, changed, noise, parts, shared_site

CHUNK = 4096
NODES = ["n0", "n1", "n2"]
RANKS = 3
SIZE = RANKS * 40 * CHUNK


class Series:
    """Files step_1, step_2, ... in one directory, of three ranks on three nodes."""

    def __init__(self, tmp_path):
        self.site = shared_site(tmp_path)
        self.site.variables = AS_IF_LARGE
        self.models = {}

    def path(self, step):
        return self.site.path.parent / f"step_{step}.h5"

    def write(self, step, content, copies=2, nodes=None, ranks=RANKS, mode="wc", **hints):
        """What the report says of the commit."""
        pieces = parts(content, ranks)
        report = self.site.root / f"report{self.site.jobs}"
        self.site.run(Script().open(mode).write("all-at", pieces).close(), nodes or NODES, ranks,
                      {"replication": copies, "chunk_size": CHUNK, **hints},
                      {"DEDUP_REPORT": str(report)}, path=self.path(step)).check()
        self.models[step] = Model()
        self.models[step].write(pieces)
        line = json.loads(report.read_text().splitlines()[-1])
        return {figure: value["total"] for figure, value in line.items() if isinstance(value, dict)}

    def expect(self, step, nodes=None):
        path = self.site.path
        self.site.path = self.path(step)
        self.site.expect(self.models[step], nodes or NODES, len(nodes or NODES))
        self.site.path = path

    def expect_all(self, lost=()):
        self.site.lose(*lost)
        for step in self.models:
            self.expect(step, [node for node in NODES if node not in lost])
        self.site.bring_back(*lost)

    def dedupctl(self, *arguments):
        return ctl.dedupctl(self.site, *arguments)

    def remove(self, step):
        self.site.run(Script().add("delete"), NODES, RANKS, path=self.path(step)).check()
        del self.models[step]


@pytest.fixture(name="series")
def fixture_series(tmp_path):
    return Series(tmp_path)


def content_of(kind):
    return noise(1, SIZE) if kind == "unique" else noise(1, SIZE // RANKS) * RANKS


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("kind", ["unique", "shared"])
def test_what_is_the_same_is_neither_stored_nor_sent(series, kind, copies):
    content = content_of(kind)
    first = series.write(1, content, copies)
    assert first["bytes_stored"] > 0
    before = series.site.segment_bytes()
    second = series.write(2, content, copies)
    assert (second["bytes_written"], second["bytes_stored"], second["bytes_sent"]) == (SIZE, 0, 0)
    assert series.site.segment_bytes() == before
    series.expect_all(NODES[1:copies])


def invert_segments(site, but):
    """Each byte of each, but up to that chunk where it is the first one; twice, they are as they were."""
    for path in {path.stat().st_ino: path for path in site.stores.rglob("*.seg")}.values():
        content = path.read_bytes()
        keep = content.find(but, 0, 3 * CHUNK) + CHUNK if but in content[:3 * CHUNK] else 0
        with path.open("r+b") as segment:
            segment.write(content[:keep] + bytes(byte ^ 255 for byte in content[keep:]))


@pytest.mark.parametrize("step", [1, 2], ids=["one-name", "numbered-names"])
def test_no_byte_of_a_segment_is_read(series, step):
    """But of the first chunk: a new file's placeholder has its first bytes."""
    content = content_of("unique")
    series.write(1, content)
    invert_segments(series.site, content[:CHUNK])
    again = series.write(step, content)
    assert (again["bytes_written"], again["bytes_stored"], again["bytes_sent"]) == (SIZE, 0, 0)
    invert_segments(series.site, content[:CHUNK])
    series.expect_all()
    series.expect_all(["n1"])


def test_ten_steps_take_what_changed(series):
    content = content_of("unique")
    for step in range(1, 11):
        series.write(step, content)
        content = changed(content, step, CHUNK)
    # 10 % of the chunks each time, and what stands beside them.
    assert series.site.segment_bytes() < 2 * SIZE * (1 + 9 * 0.11)
    series.expect_all()
    series.expect_all(["n1"])
    # Any of them may go.
    for step in (1, 5, 10):
        series.remove(step)
    series.expect_all(["n2"])
    for step in (2, 3, 4, 6, 7, 8):
        series.remove(step)
    series.expect_all(["n0"])
    assert series.site.segment_bytes() < 2 * SIZE * (1 + 9 * 0.11)
    series.remove(9)
    assert series.site.segment_bytes() == 0


def test_a_few_chunks_do_not_keep_a_whole_file(series):
    """What is left of a file that was deleted, for others' sake, is no more than what they have of it."""
    content = content_of("unique")
    series.write(1, content)
    for step in range(2, 6):
        content = content[:len(content) // 5] + noise(step, len(content) - len(content) // 5)
        content = changed(content, f"{step} again", CHUNK, 7)
        series.write(step, content)
        series.remove(step - 1)
        series.expect_all(["n1"])
        assert series.site.segment_bytes() < 2.1 * SIZE


@pytest.mark.parametrize("base", ["auto", "none", "path"])
def test_the_hint_says_with_whom(series, base):
    content, other = content_of("unique"), noise(2, SIZE)
    series.write("a", content)  # no number: of no series with the others
    series.write(1, other)
    stored = series.write(2, content, base=series.path("a") if base == "path" else base)["bytes_stored"]
    assert stored == (0 if base == "path" else 2 * SIZE)
    stored = series.write(3, content, base=base if base != "path" else series.path("a"))["bytes_stored"]
    assert stored == (2 * SIZE if base == "none" else 0)
    series.expect_all(["n1"])


def test_a_base_that_is_not_there_is_said(series):
    job = series.site.run(Script().open("wc").write("all-at", parts(b"x" * CHUNK, RANKS)).close(), NODES, RANKS,
                          {"base": "/no/such/file"}).check()
    assert "shares nothing with /no/such/file" in job.stderr
    job = series.site.run(Script().open("wc"), NODES, RANKS, {"base": "relative"})
    assert "dedup_base" in f"{job}" and "absolute path" in f"{job}"


def test_the_first_file_is_rewritten_or_healed(series):
    content = content_of("unique")
    series.write(1, content)
    series.write(2, changed(content, 2, CHUNK))
    series.write(1, noise(3, SIZE), mode="w")
    series.expect_all(["n0"])
    # A file that goes on from a step is the same as any other.
    series.write(2, changed(content, 4, CHUNK), mode="w")
    series.expect_all(["n1"])
    series.site.lose("n2")
    nodes = ["n0", "n1", "n3"]
    for step in (1, 2):
        job = series.site.run(Script().add("heal", 0, 0), nodes, 3, path=series.path(step))
        assert job.code == 0, f"{job}"
    series.site.lose("n0")
    for step in (1, 2):
        series.expect(step, ["n1", "n3"])


def test_a_step_after_a_node_was_lost(series):
    """What is carried over is on as many nodes as what is new."""
    content = content_of("unique")
    series.write(1, content)
    series.site.lose("n1")
    nodes = ["n0", "n2", "n3"]
    series.write(2, changed(content, 2, CHUNK), nodes=nodes)
    series.site.lose("n0")
    series.expect(2, ["n2", "n3"])


def test_a_segment_that_both_have_is_lost(series):
    content = content_of("unique")
    series.write(1, content)
    for path in series.site.store("n1").rglob("*.seg"):
        path.unlink()
    series.write(2, content)
    series.site.lose("n0")
    series.expect(2, ["n1", "n2"])


# Not later: what a node has committed is a file, which `gc` leaves to be healed.
@pytest.mark.parametrize("step", ["dump.hashed", "dump.stored", "commit.shards"])
def test_a_job_that_is_killed_takes_nothing_along(series, step):
    content = content_of("unique")
    series.write(1, content)
    before = series.site.segment_bytes()
    pieces = parts(changed(content, 2, CHUNK), RANKS)
    job = series.site.run(Script().open("wc").write("all-at", pieces).close(), NODES, RANKS,
                          {"chunk_size": CHUNK}, {"DEDUP_TEST_KILL": f"{step}:1:1"}, path=series.path(2))
    assert job.code != 0
    series.expect_all(["n1"])
    series.write(2, changed(content, 5, CHUNK))
    series.expect_all(["n2"])
    series.remove(1)
    series.expect_all(["n0"])
    series.remove(2)
    assert series.dedupctl("gc", "--unnamed").code == 0
    assert series.site.segment_bytes() == 0 and before > 0


def test_tools_say_what_is_shared(series):
    content = content_of("unique")
    series.write(1, content)
    assert "shares" not in series.dedupctl("ls").out
    series.write(2, changed(content, 2, CHUNK))
    listed = json.loads(series.dedupctl("ls", "--json").out)["files"]
    shared = {file["path"]: file["shared_bytes"] for file in listed}
    assert set(shared) == {str(series.path(1)), str(series.path(2))}
    assert all(bytes_ >= 2 * SIZE for bytes_ in shared.values())
    assert series.dedupctl("ls").out.count("with other files") == 2
    assert "to remove this one frees" in series.dedupctl("stat", series.path(2)).out
    before = series.site.segment_bytes()
    series.dedupctl("rm", series.path(1))
    del series.models[1]
    assert series.site.segment_bytes() == before
    assert "shares" not in series.dedupctl("ls").out
    series.expect_all(["n1"])


def test_a_donor_that_a_node_cannot_share_is_not_counted_on(series):
    """The new file's own segments have the numbers of the donor's, then, and what it names is not in them."""
    size = 200 * CHUNK  # large enough for each rank to have its first segment for it
    content = noise(1, size)
    series.write(1, content, 1, ["n0"], 2)
    with contextlib.ExitStack() as held:
        # Somebody just removes the generation, or so it looks.
        for lock in series.site.store("n0").glob("files/*/generations/*/lock"):
            fcntl.flock(held.enter_context(lock.open()), fcntl.LOCK_EX)
        new, old = {0: [(0, noise(2, size))]}, {1: [(size, content)]}
        script = Script().open("wc").write("all-at", new).write("all-at", old).close()
        job = series.site.run(script, ["n0"], 2, {"replication": 1, "chunk_size": CHUNK},
                              path=series.path(2)).check()
    assert "no copy is left" not in job.stderr
    series.models[2] = Model()
    series.models[2].write({**new, **old})
    series.expect(1, ["n0"])
    series.expect(2, ["n0"])
