"""dedup_flushed=keep: what is at its path as a plain file stays in the stores as a cache."""

import json
import mmap
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from ctl import FINE, dedupctl
from stores import Count, Model, Script, fault_library, is_placeholder, noise, parts, shared_site
from test_write_back import files_in

MIB = 1 << 20
KEEP = {"replication": 2, "flush": "close", "flushed": "keep"}
SIZE = 40 * MIB + 5


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


@pytest.fixture
def site_on_disk():
    with tempfile.TemporaryDirectory() as directory:
        stat = ["stat", "-f", "-c", "%T", directory]
        if subprocess.run(stat, stdout=subprocess.PIPE, text=True, check=True).stdout.strip() == "tmpfs":
            pytest.skip("TMPDIR is a tmpfs, which does not note when what is mapped of a file changes")
        yield shared_site(pathlib.Path(directory))


def is_plain_alone(site, model):
    """The file is plain and whole, and nothing is beside it."""
    assert site.path.read_bytes() == bytes(model.content)
    assert [path.name for path in site.path.parent.iterdir()] == [site.path.name]


@pytest.mark.parametrize("flush", ["close", "background"])
def test_it_is_read_from_the_stores(site, flush):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, {**KEEP, "flush": flush})
    is_plain_alone(site, model)
    assert len(files_in(site)) == 3
    with Count(site) as count:
        site.expect(model, 3, 3)
    assert count.read == 0


@pytest.mark.parametrize("change", ["byte", "touch", "replace", "same times"])
def test_a_plain_file_that_has_changed_is_what_is_read(site, change):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    about = site.path.stat()
    if change == "replace":
        other = site.path.with_name("other")
        other.write_bytes(noise(2, SIZE))
        other.rename(site.path)
        model = Model(noise(2, SIZE))
    elif change == "touch":
        os.utime(site.path)
    else:
        with open(site.path, "r+b") as file:
            file.seek(SIZE // 2)
            file.write(b"!")
        model.write({0: [(SIZE // 2, b"!")]})
    if change == "same times":
        os.utime(site.path, ns=(about.st_atime_ns, about.st_mtime_ns))
    with Count(site) as count:
        site.expect(model, 3, 3)
    assert count.read >= SIZE
    # Written to, it becomes a file of its own.
    site.write({0: [(3, b"new")]}, 3, 3, KEEP, mode="w")
    model.write({0: [(3, b"new")]})
    is_plain_alone(site, model)
    site.expect(model, 3, 3)


def test_writing_to_it_goes_on_from_the_stores(site):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    with Count(site) as count:
        site.write({1: [(SIZE // 2, b"changed")]}, 3, 3, {**KEEP, "flush": "none"}, mode="w")
    model.write({1: [(SIZE // 2, b"changed")]})
    assert is_placeholder(site.path)
    assert count.read == 0
    site.expect(model, 3, 3)


def test_nodes_that_are_lost_are_made_up_for(site):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    first, *others = site.node_names()
    site.lose(others[0])
    with Count(site) as count:
        site.expect(model, [first, others[1]], 2)
    assert count.read == 0
    # Too many: the plain file is there.
    site.lose(others[1])
    with Count(site) as count:
        site.expect(model, [first], 1)
    assert count.read >= SIZE


def test_stores_that_have_dropped_it_do_not_count(site):
    """One after the other, with somebody who reads in between; then somebody writes."""
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    names = site.node_names()
    for name in names[:2]:
        others = [other for other in names if other != name]
        site.lose(*others)
        assert dedupctl(site, "evict").code == FINE
        site.bring_back(*others)
        site.expect(model, 3, 3)
    site.write({1: [(SIZE // 2, b"changed")]}, 3, 3, {"replication": 2}, mode="w")
    model.write({1: [(SIZE // 2, b"changed")]})
    site.expect(model, 3, 3)


def test_deleting_it_frees_the_stores(site):
    site.write(parts(noise(1, SIZE), 3), 3, 3, KEEP)
    site.run(Script().add("delete"), 3, 3, KEEP).check()
    assert not site.path.exists()
    assert files_in(site) == []


# ---- Only what has changed ----------------------------------------------------------------------

LONG = 80 * MIB + 5  # in blocks of 4 MiB: what files that are worth it have
BLOCK = 4 * MIB


def change(model, block, nodes=3):
    """Some bytes in one block, by one of the ranks."""
    pieces = {block % nodes: [(block * BLOCK + 77, b"changed %d" % block)]}
    model.write(pieces)
    return pieces


@pytest.mark.parametrize("flush", ["close", "background"])
def test_only_blocks_that_have_changed_are_written(site, flush):
    hints = {**KEEP, "flush": flush}
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    for block in (3, 11):
        with Count(site) as count:
            site.write(change(model, block), 3, 3, hints, mode="w")
        is_plain_alone(site, model)
        assert count.read == 0
        assert BLOCK <= count.written <= 2 * BLOCK  # its last bytes are not a whole block
    site.expect(model, 3, 3)


def test_a_tenth_of_the_blocks_costs_a_tenth_of_the_bytes(site):
    model = Model(noise(1, 20 * BLOCK))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    pieces = change(model, 3)
    pieces.update(change(model, 11))
    with Count(site) as count:
        site.write(pieces, 3, 3, KEEP, mode="w")
    is_plain_alone(site, model)
    assert count.written <= 0.12 * len(model.content)


def test_several_commits_are_one_change(site):
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    script = Script().open("w")
    for block in (3, 11, 3):
        script.write("all-at", change(model, block)).add("sync", 0)
    with Count(site) as count:
        site.run(script.close(), 3, 3, KEEP).check()
    is_plain_alone(site, model)
    assert 2 * BLOCK <= count.written <= 3 * BLOCK


def test_a_commit_that_failed_at_the_path_can_be_tried_again(site):
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    script = Script().open("w").write("all-at", change(model, 3)).add("sync", 0).close()
    fault = {"LD_PRELOAD": fault_library(), "FAULT_RANK": "0", "FAULT_ONLY": "symlink", "FAULT_CALL": "1",
             "FAULT_ERROR": "5", "FAULT_ONCE": "1"}
    job = site.run(script, 3, 3, KEEP, fault)
    assert job.errors_of("sync") == ["IO"] * 3 and job.errors_of("close") == ["SUCCESS"] * 3, f"{job}"
    is_plain_alone(site, model)


@pytest.mark.parametrize("size", [LONG // 2, LONG + 9 * MIB, LONG - 1])
def test_a_size_that_has_changed(site, size):
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    model.resize(size)
    with Count(site) as count:
        site.run(Script().open("w").add("size", 0, size).close(), 3, 3, KEEP).check()
    is_plain_alone(site, model)
    assert count.written <= 12 * MIB + 2 * BLOCK


@pytest.mark.parametrize("who", ["reads", "writes", "has another name for"])
def test_who_has_the_old_file_open_keeps_it(site, who):
    """… as with any file that another one is renamed over."""
    before = Model(noise(1, LONG))
    site.write(parts(bytes(before.content), 3), 3, 3, KEEP)
    model = Model(before.content)
    link = site.root / "link"
    if who == "has another name for":
        os.link(site.path, link)
        with Count(site) as count:
            site.write(change(model, 3), 3, 3, KEEP, mode="w")
        content = link.read_bytes()
    else:
        with open(site.path, "rb" if who == "reads" else "r+b") as file:
            with Count(site) as count:
                site.write(change(model, 3), 3, 3, KEEP, mode="w")
            content = file.read()
            if who == "writes":
                file.write(b"late")
    assert content == bytes(before.content)
    is_plain_alone(site, model)
    assert count.written >= LONG


def test_a_job_of_other_nodes_writes_all_of_it(site):
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    site.write(change(model, 3), 4, 4, KEEP, mode="w")
    is_plain_alone(site, model)
    site.expect(model, 4, 4)


# ---- Numbered files -----------------------------------------------------------------------------


@pytest.mark.parametrize("flush", ["close", "background"])
def test_numbered_files_share_with_one_that_is_at_its_path(site, flush):
    hints = {**KEEP, "flush": flush}
    model = Model(noise(1, LONG))
    site.path = site.path.with_name("step_1")
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    first = bytes(model.content)
    site.path = site.path.with_name("step_2")
    change(model, 3)
    report = site.root / "report"
    site.run(Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close(), 3, 3, hints,
             {"DEDUP_REPORT": str(report)}).check()
    line = json.loads(report.read_text().splitlines()[-1])
    assert line["bytes_stored"]["total"] < LONG / 10 and line["bytes_sent"]["total"] < LONG / 10, line
    assert site.path.read_bytes() == bytes(model.content)
    site.expect(model, 3, 3)
    # The first one is as it was, also in the stores.
    site.path = site.path.with_name("step_1")
    assert site.path.read_bytes() == first
    with Count(site) as count:
        site.expect(Model(first), 3, 3)
    assert count.read == 0


def test_one_that_some_store_has_dropped_is_no_donor(site):
    hints = {**KEEP, "replication": 1}
    site.path = site.path.with_name("step_1")
    site.write(parts(noise(1, LONG), 3), 3, 3, hints)
    shutil.rmtree(site.file_directory(site.node_names()[1]))
    site.path = site.path.with_name("step_2")
    model = Model(noise(1, LONG))
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 1})
    site.expect(model, 3, 3)


# ---- Killed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["commit.prepared", "commit.unfenced", "commit.displaced", "commit.fenced",
                                  "commit.installed", "writeback.begun", "writeback.copied", "writeback.renamed"])
def test_killed_while_what_has_changed_is_written(site, step):
    """The old file or the new one, plain or in the stores; who comes next finishes it."""
    old = Model(noise(1, LONG))
    site.write(parts(bytes(old.content), 3), 3, 3, KEEP)
    new = Model(old.content)
    script = Script().open("w").write("all-at", change(new, 3)).close()
    job = site.run(script, 3, 3, KEEP, {"DEDUP_TEST_KILL": f"{step}:1:0"})
    assert job.code != 0
    content = site.read(3, 3)
    assert content in (bytes(old.content), bytes(new.content))
    assert content == bytes(new.content) or step in ("commit.prepared", "commit.unfenced", "commit.displaced")
    if not is_placeholder(site.path):
        assert site.path.read_bytes() == content
    model = Model(content)
    site.write(change(model, 11), 3, 3, KEEP, mode="w")
    is_plain_alone(site, model)
    site.expect(model, 3, 3)


# ---- Room ---------------------------------------------------------------------------------------


def test_it_makes_room_for_what_is_not_at_its_path(site, tmpfs):
    """… and is read from its path then."""
    tmpfs("sim0", "48m")
    first = Model(noise(1, 24 * MIB))
    hints = {**KEEP, "replication": 1}
    site.write(parts(bytes(first.content), 1), ["sim0"], 1, hints)
    assert len(files_in(site)) == 1
    other = site.path.with_name("other")
    script = Script().open("wc").write("all-at", {0: [(0, noise(2, 36 * MIB))]}).close()
    site.run(script, ["sim0"], 1, {"replication": 1}, path=other).check()
    with Count(site) as count:
        site.expect(first, ["sim0"], 1)
    assert count.read >= 24 * MIB


def test_dedupctl_knows_it(site):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, KEEP)
    answer = dedupctl(site, "ls")
    assert answer.code == FINE and "cached: it is at its path as a plain file" in answer.out, answer
    assert dedupctl(site, "--json", "ls").file["at_path"] == "cached"
    # Nothing is to be done about it.
    for command in (["gc"], ["gc", "--unnamed", "--yes"], ["flush"], ["heal"], ["export", "--all"]):
        assert dedupctl(site, *command).code == FINE, command
    assert len(files_in(site)) == 3
    is_plain_alone(site, model)
    assert "is at its path already" in dedupctl(site, "flush", site.path).err
    answer = dedupctl(site, "--json", "evict")
    assert answer.code == FINE and len(answer.json["files"]) == 1 and answer.json["files"][0]["freed_bytes"] > SIZE
    assert files_in(site) == []
    is_plain_alone(site, model)
    site.expect(model, 3, 3)


def test_only_what_is_at_its_path_is_evicted(site):
    site.write(parts(noise(1, SIZE), 3), 3, 3, {**KEEP, "flush": "none"})
    assert dedupctl(site, "evict").code == FINE
    answer = dedupctl(site, "evict", site.path)
    assert answer.code != FINE and "is not at its path as a plain file" in answer.err, answer
    site.expect(Model(noise(1, SIZE)), 3, 3)
    # Nor one that has changed there since.
    site.write({0: [(0, b"x")]}, 3, 3, KEEP, mode="w")
    os.utime(site.path)
    assert dedupctl(site, "evict").code == FINE
    assert len(files_in(site)) == 3
    assert dedupctl(site, "gc", "--unnamed", "--yes").code == FINE
    assert files_in(site) == []


def test_evicting_all_leaves_older_generations(site):
    hints = {**KEEP, "keep": 3}
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    site.write(change(model, 3), 3, 3, hints, mode="w")
    assert dedupctl(site, "evict").code == FINE
    assert dedupctl(site, "export", site.path, site.root / "old", "--generation", 1).code == FINE
    assert dedupctl(site, "evict", site.path).code == FINE
    assert files_in(site) == []


def test_what_the_stores_cannot_give_is_read_at_its_path(site):
    model = Model(noise(1, SIZE))
    site.write(parts(bytes(model.content), 3), 3, 3, {**KEEP, "replication": 1})
    for node in site.node_names():
        for segment in site.store(node).rglob("*.seg"):
            with open(segment, "r+b") as file:
                file.seek(segment.stat().st_size // 2)
                file.write(bytes(1 << 20))
    site.expect(model, 3, 3)


# ---- Stage-in (dedup_fetch) ---------------------------------------------------------------------

FETCH = {"replication": 2, "fetch": "open"}


@pytest.mark.parametrize("size", [1, 4096, 5 * MIB + 3, 80 * MIB + 5])
@pytest.mark.parametrize("nodes, ranks", [(1, 1), (3, 5)])
def test_a_plain_file_is_read_once_and_then_from_the_stores(site, nodes, ranks, size):
    model = Model(noise(1, size))
    site.path.write_bytes(model.content)
    with Count(site) as first:
        site.expect(model, nodes, ranks, hints=FETCH)
    with Count(site) as second:
        site.expect(model, nodes, ranks)
    assert second.read == 0
    assert size <= 4097 or size <= first.read <= size + ranks * 4097
    is_plain_alone(site, model)
    assert len(files_in(site)) == nodes
    # Written to, it is a placeholder as any other.
    site.write({0: [(0, b"!")]}, nodes, ranks, {"replication": 2}, mode="w")
    model.write({0: [(0, b"!")]})
    assert is_placeholder(site.path)
    site.expect(model, nodes, ranks)


def test_what_has_changed_is_fetched_anew(site):
    site.path.write_bytes(noise(1, SIZE))
    site.expect(Model(noise(1, SIZE)), 3, 3, hints=FETCH)
    site.path.write_bytes(noise(2, SIZE))
    site.expect(Model(noise(2, SIZE)), 3, 3, hints=FETCH)
    with Count(site) as count:
        site.expect(Model(noise(2, SIZE)), 3, 3, hints=FETCH)
    assert count.read == 0
    assert site.path.read_bytes() == noise(2, SIZE)


def test_neither_the_file_nor_its_directory_need_be_writable(site):
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    site.path.chmod(0o400)
    site.path.parent.chmod(0o500)
    site.expect(model, 3, 3, hints=FETCH)
    with Count(site) as count:
        site.expect(model, 3, 3)
    assert count.read == 0
    site.path.parent.chmod(0o700)


def test_what_finds_no_room_is_read_where_it_is(site, tmpfs):
    for node in ("sim0", "sim1"):
        tmpfs(node, "8m")
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    path = site.root / "out"
    job = site.run(Script().open("r").add("read", 0, path, 0).close(), ["sim0", "sim1"], 2, FETCH).check()
    assert path.read_bytes() == bytes(model.content)
    assert job.stderr.count("is read where it is") == 1, f"{job}"
    is_plain_alone(site, model)


def test_nothing_is_fetched_for_who_writes_or_of_nothing(site):
    site.path.write_bytes(b"")
    site.expect(Model(), 3, 3, hints=FETCH)
    site.path.write_bytes(noise(1, SIZE))
    site.run(Script().open("w").close(), 3, 3, FETCH).check()
    assert site.path.read_bytes() == noise(1, SIZE)


@pytest.mark.parametrize("step", ["commit.dumped", "commit.prepared", "commit.renamed", "commit.installed"])
def test_killed_while_it_is_fetched(site, step):
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    script = Script().open("r").close()
    assert site.run(script, 3, 3, FETCH, {"DEDUP_TEST_KILL": f"{step}:1:1"}).code != 0
    is_plain_alone(site, model)
    site.expect(model, 3, 3, hints=FETCH)
    with Count(site) as count:
        site.expect(model, 3, 3)
    assert count.read == 0


def test_what_is_deleted_on_close_is_read_first(site):
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    out = site.root / "out"
    site.run(Script().open("rd").add("read", 0, out, 0).close(), 3, 3, FETCH).check()
    assert out.read_bytes() == bytes(model.content)
    assert not site.path.exists()


def test_what_the_job_writes_to_is_not_fetched(site):
    """What is not committed yet is not at the path."""
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    script = Script().open("w").write("all-at", parts(noise(2, SIZE), 3))
    script.open("r", 1).close(1).add("barrier").add("die", 0).add("barrier")
    assert site.run(script, 3, 3, FETCH).code != 0
    assert site.path.read_bytes() == bytes(model.content)
    site.expect(model, 3, 3)


def test_jobs_on_other_nodes_fetch_it_too(site):
    model = Model(noise(1, SIZE))
    site.path.write_bytes(model.content)
    for names in (["a", "b"], ["c", "d"]):
        site.expect(model, names, 2, hints=FETCH)
    with Count(site) as count:
        site.expect(model, ["a", "b", "c", "d"], 4, hints=FETCH)
    assert count.read == 0
    assert len(files_in(site)) == 4


def test_what_somebody_has_mapped_and_changes_later_is_read(site_on_disk):
    site = site_on_disk
    content = bytearray(noise(1, SIZE))
    site.path.write_bytes(content)
    with open(site.path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        content[0] = mapped[0] = 1
        site.expect(Model(content), 3, 3, hints=FETCH)
        content[1] = mapped[1] = 1 ^ content[1]
        mapped.close()
    assert site.path.read_bytes() == bytes(content)
    site.expect(Model(content), 3, 3)


def test_dedupctl_fetches_by_hand(site):
    model = Model(noise(1, SIZE))
    site.write({}, 3, 3)  # makes the stores
    site.path.unlink()
    site.path.write_bytes(model.content)
    assert dedupctl(site, "import", "--cache", site.path).code == FINE
    is_plain_alone(site, model)
    with Count(site) as count:
        site.expect(model, 3, 3)
    assert count.read == 0
    # And once more.
    assert dedupctl(site, "import", "--cache", site.path).code == FINE
    answer = dedupctl(site, "import", "--cache", site.path, "other")
    assert answer.code != FINE and "takes no FILE" in answer.err, answer
