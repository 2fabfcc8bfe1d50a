"""Older generations of a file stay (dedup_keep), and can be read (dedup_generation)."""

import ctl
import pytest

from stores import AS_IF_LARGE, Model, Script, Site, changed, noise, parts, shared_site

CHUNK = 4096
NODES = ["n0", "n1", "n2"]
RANKS = 3
SIZE = RANKS * 40 * CHUNK


class Versions:
    """One file of three ranks on three nodes, and what each of its generations is."""

    def __init__(self, site):
        self.site = site
        self.site.variables = AS_IF_LARGE
        self.content = noise(1, SIZE)
        self.models = {}

    def write(self, keep=3, nodes=None, **hints):
        """The next generation, of which a tenth is new."""
        self.content = changed(self.content, len(self.models), CHUNK)
        pieces = parts(self.content, RANKS)
        job = self.site.run(Script().open("wc").write("all-at", pieces).close(), nodes or NODES, RANKS,
                            {"replication": 2, "chunk_size": CHUNK, "keep": keep, **hints}).check()
        model = Model()
        model.write(pieces)
        self.models[len(self.models) + 1] = model
        return job

    def write_many(self, count, keep=3):
        for _ in range(count):
            self.write(keep)
        return self

    def expect(self, generation, number, nodes=None):
        nodes = nodes or NODES
        self.site.expect(self.models[number], nodes, len(nodes), hints={"generation": generation})

    def expect_all(self, numbers, nodes=None):
        for number in numbers:
            self.expect(number, number, nodes)

    def refused(self, generation, mode="r", nodes=None):
        """The error of an open, which all ranks get."""
        nodes = nodes or NODES
        job = self.site.run(Script().open(mode).close(), nodes, len(nodes), {"generation": generation})
        (error,) = set(job.errors_of("open"))
        return error, f"{job}"

    def dedupctl(self, *arguments, **how):
        return ctl.dedupctl(self.site, *arguments, **how)

    def kept(self):
        """What ls has of the file: its newest generation and the older ones."""
        answer = self.dedupctl("--json", "ls", "--generations", self.site.path)
        return [file["generation"] for file in answer.json["files"]]


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


@pytest.fixture(name="versions", params=["shared", "private"])
def fixture_versions(request, tmp_path):
    return Versions(shared_site(tmp_path) if request.param == "shared" else Site(tmp_path))


def test_the_newest_ones_stay_and_are_read(versions):
    versions.write_many(5)
    for generation, number in ((0, 5), (5, 5), (4, 4), (3, 3), (-1, 4), (-2, 3)):
        versions.expect(generation, number)
    for generation in (1, 2, 6, -3):
        error, text = versions.refused(generation)
        assert error == "NO_SUCH_FILE" and f"no generation {generation}" in text and "5, 4, 3" in text
    assert versions.kept() == [5, 4, 3]
    # They cost what changed, and what stands beside it.
    assert versions.site.segment_bytes() < 2 * SIZE * (1 + 2 * 0.11) * 1.15


def test_one_is_called_by_its_name(versions):
    versions.write_many(3)
    site = versions.site
    path = site.path
    site.path = path.parent / f"{path.name}@2"
    site.expect(versions.models[2], NODES, RANKS)
    site.path = path.parent / f"{path.name}@3"
    site.expect(versions.models[3], NODES, RANKS)
    for name in (f"{path.name}@9", f"{path.name}x@2", "@2"):
        site.path = path.parent / name
        job = site.run(Script().open("r").close(), NODES, RANKS)
        assert set(job.errors_of("open")) == {"NO_SUCH_FILE"}, f"{job}"
    site.path = path


def test_it_can_only_be_read(versions):
    versions.write_many(2)
    error, text = versions.refused(-1, "w")
    assert error == "READ_ONLY" and "can only be read" in text
    versions.expect(-1, 1)
    # An open that may make a file is about the newest, whatever the environment says.
    versions.site.run(Script().open("wc").close(), NODES, RANKS, {"generation": -1}).check()
    # By its name, too: where stores find files by their paths it is refused, else another file is made.
    site = versions.site
    name = site.path.parent / f"{site.path.name}@1"
    script = Script().open("wc")
    if site.shared:
        script.close()
    job = site.run(script, NODES, RANKS, path=name)
    assert set(job.errors_of("open")) == {"SUCCESS" if site.shared else "READ_ONLY"}, f"{job}"
    # That is what it is while the job has the other one open.
    site.run(Script().open("r", 0).open("wc", 1).close(1).close(0), NODES, RANKS, path=name).check()
    versions.expect(-1, 1)


def test_a_file_may_have_such_a_name(versions):
    versions.write_many(2)
    site = versions.site
    if not site.shared:
        return
    name = site.path.parent / f"{site.path.name}@1"
    other = noise("another file", SIZE)
    job = site.run(Script().open("wc").write("all-at", parts(other, RANKS)).close(), NODES, RANKS,
                   {"replication": 2, "chunk_size": CHUNK}, path=name)
    job.check()
    versions.expect(1, 1)
    target = site.root / "exported"
    assert versions.dedupctl("export", site.path, target, "--generation", 1).code == ctl.FINE
    assert target.read_bytes() == bytes(versions.models[1].content)
    assert versions.dedupctl("export", name, target, "--force").code == ctl.FINE
    assert target.read_bytes() == other
    assert versions.dedupctl("rm", site.path, "--generation", 1).code == ctl.FINE
    assert versions.dedupctl("export", name, target, "--force").code == ctl.FINE
    assert target.read_bytes() == other
    assert versions.refused(1)[0] == "IO"


def test_they_go_by_the_file_not_by_its_name(versions):
    site = versions.site
    if not site.shared:
        return
    versions.write_many(2)
    moved = site.path.parent / "moved"
    site.path.rename(moved)
    # Another file at the old name, with a generation of the same number.
    old = versions.models[1]
    versions.models, versions.content = {}, noise("another", SIZE)
    versions.write_many(2)
    target = site.root / "exported"
    for path, model in ((moved, old), (site.path, versions.models[1])):
        assert versions.dedupctl("export", path, target, "--generation", 1, "--force").code == ctl.FINE
        assert target.read_bytes() == bytes(model.content)
    site.lose("n1")
    nodes = ["n0", "n2", "n3"]
    healed = versions.dedupctl("heal", nodes=nodes)
    assert healed.code == ctl.FINE, healed
    site.lose("n2")
    versions.expect(1, 1, ["n0", "n3"])
    site.path = moved
    versions.models = {1: old}
    versions.expect(1, 1, ["n0", "n3"])


def test_by_default_none_stays(versions):
    versions.write_many(3)
    versions.write(keep=1)
    assert versions.kept() == [4]
    error, text = versions.refused(-1)
    assert error == "NO_SUCH_FILE" and "dedup_keep" in text
    assert not [path for path in versions.site.stores.glob("*/files/*")
                if (path / "generations").is_dir() and not list((path / "generations").iterdir())]


def test_a_lost_node_takes_none_away(versions):
    versions.write_many(4)
    versions.site.lose("n1")
    versions.expect_all([2, 3, 4], ["n0", "n2"])


def test_heal_brings_them_back_too(versions):
    versions.write_many(3)
    versions.site.lose("n1")
    healed = versions.dedupctl("heal", nodes=["n0", "n2", "n3"])
    assert healed.code == ctl.FINE, healed
    versions.expect_all([1, 2], ["n0", "n2", "n3"])
    versions.expect(0, 3, ["n0", "n2", "n3"])
    # Healing is no new version: it pushes none out.
    assert versions.kept()[1:] == [2, 1]
    versions.site.lose("n2")
    versions.expect_all([1, 2], ["n0", "n3"])
    versions.expect(0, 3, ["n0", "n3"])
    # Each of them was healed, and is found to need it again.
    checked = versions.dedupctl("--json", "check", nodes=["n0", "n3"]).json
    assert len(checked["files"]) == 3


def test_other_nodes_go_on(versions):
    versions.write_many(2)
    others = ["n1", "n2", "n3"]
    versions.write(nodes=others)
    versions.expect_all([1, 2], NODES)
    versions.expect(0, 3, others)
    # The store that was away has them as they were, also after gc, which makes them files there.
    everywhere = ["n0", "n1", "n2", "n3"]
    versions.expect_all([1, 2], everywhere)
    assert versions.dedupctl("gc").code == ctl.FINE
    versions.site.lose("n1")
    versions.expect_all([1, 2], ["n0", "n2", "n3"])


def test_commands(versions, tmp_path):
    versions.write_many(3)
    path = versions.site.path
    assert "keeps 2 older" in versions.dedupctl("ls").out
    shown = versions.dedupctl("ls", "--generations").out
    assert f"{path}@2" in shown and f"{path}@1" in shown
    target = tmp_path / "exported"
    assert versions.dedupctl("export", path, target, "--generation", 1).code == ctl.FINE
    assert target.read_bytes() == bytes(versions.models[1].content)
    assert versions.dedupctl("cat", f"{path}@2", text=False).out == bytes(versions.models[2].content)
    missing = versions.dedupctl("export", path, tmp_path / "none", "--generation", 7)
    assert missing.code == ctl.NO_FILE and "generation 7 is not kept" in missing.err
    assert versions.dedupctl("check").code == ctl.FINE
    assert versions.dedupctl("rm", path, "--generation", 2).code == ctl.FINE
    assert versions.kept() == [3, 1]
    error, text = versions.refused(2)
    assert error == "IO" and "was removed or given up" in text
    versions.expect_all([1, 3])
    assert versions.dedupctl("gc").code == ctl.FINE
    versions.expect_all([1, 3])


def test_they_go_with_the_file(versions):
    versions.write_many(3)
    versions.site.run(Script().add("delete"), NODES, RANKS).check()
    assert not list(versions.site.stores.glob("*/files/*"))
    versions.write_many(2)
    assert versions.dedupctl("rm", versions.site.path).code == ctl.FINE
    assert not list(versions.site.stores.glob("*/files/*"))


def test_a_reader_keeps_the_one_that_it_reads(versions):
    versions.write_many(2, keep=2)
    site = versions.site
    go, opened = site.root / "go", site.root / "opened"
    out = site.root / "out"
    script = Script().open("r").add("touch", opened).add("wait", go).add("read", 0, out, 0).close()
    reader = site.start(script, NODES, RANKS, {"generation": -1})
    reader.wait_for(opened)
    for _ in range(3):
        versions.write(keep=2)
    go.touch()
    reader.finish().check()
    assert out.read_bytes() == bytes(versions.models[1].content)
    assert versions.kept() == [5, 4]
    versions.dedupctl("gc")
    assert versions.refused(1)[0] == "NO_SUCH_FILE"
    assert len({path.name for path in site.stores.glob("*/files/*")}) == 2


@pytest.mark.parametrize("step", ["commit.prepared", "commit.renamed", "commit.unfenced", "commit.fenced",
                                  "commit.installed", "commit.collected", "close.committed"])
def test_a_killed_job_takes_none_away(versions, step):
    versions.write_many(2)
    content = changed(versions.content, 2, CHUNK)
    pieces = parts(content, RANKS)
    versions.site.run(Script().open("w").write("all-at", pieces).close(), NODES, RANKS,
                      {"replication": 2, "chunk_size": CHUNK, "keep": 3}, {"DEDUP_TEST_KILL": f"{step}:1:0"})
    versions.models[3] = Model(content)
    newest = versions.site.read(NODES, RANKS)
    number = 3 if newest == content else 2
    versions.expect(0, number)
    for before in range(1, number):
        versions.expect(-before, number - before)
    # Who goes on from there finishes what was left.
    versions.models = {n: versions.models[n] for n in range(1, number + 1)}
    versions.content = newest
    versions.write()
    versions.expect(-1, number)
    assert versions.dedupctl("gc").code == ctl.FINE
    versions.expect(-1, number)
    assert versions.dedupctl("check").code == ctl.FINE


def test_a_full_store_gives_up_the_oldest(site, tmpfs):
    """`site` is of nodes that share a file system."""
    for node in NODES:
        tmpfs(node, "2m")
    versions = Versions(site)
    for _ in range(2):
        versions.content = noise(f"new {len(versions.models)}", SIZE)
        versions.write(keep=9)
    lines = []
    for number in range(3, 8):
        versions.content = noise(f"new {number}", SIZE)
        lines += [line for line in versions.write(keep=9).stderr.splitlines() if "given up" in line]
    assert any(f"{site.path}@1: this generation, which was kept, is given up on node n" in line
               for line in lines), lines
    versions.expect(0, 7)
    assert versions.refused(1)[0] == "IO"
    left = [number for number in versions.kept() if number != 7]
    assert left and left == sorted(left, reverse=True) and left[0] == 6
    assert f"{site.path}@{left[-1]}" not in "".join(lines)
    versions.expect_all(left)
