"""What stands at a file's real path, where all nodes share a file system: placeholders, and plain
files that are read through and taken over. Writing back is in test_write_back.py."""

import os
import re
import shutil

import pytest

from stores import (Model, Script, fault_library, is_placeholder, names_file, noise, parts,
                    shared_site)

HINTS = {"replication": 2}
MIB = 1 << 20


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def nothing_left_over(site):
    return [path.name for path in site.path.parent.iterdir() if path.name.startswith(".")] == []


def write_model(site, seed=1, size=300_001, nodes=3, ranks=3, mode="wc"):
    model = Model(noise(seed, size))
    site.write(parts(bytes(model.content), ranks), nodes, ranks, HINTS, mode=mode)
    return model


def change(site, model, seed=2, nodes=3, ranks=3, at=1000, size=50_000):
    """A generation that overwrites a part."""
    pieces = {rank: [(offset + at, content)] for rank, ((offset, content),) in
              parts(noise(seed, size), ranks).items()}
    site.write(pieces, nodes, ranks, HINTS, mode="w")
    model.write(pieces)


def files_in(site, node="n0"):
    """The identities that a store has."""
    return sorted(path.name for path in (site.store(node) / "files").iterdir()
                  if re.fullmatch("[0-9a-f]{32}", path.name))


def open_errors(site, mode="r", nodes=3, ranks=3, path=None):
    job = site.run(Script().open(mode).close(), nodes, ranks, HINTS, path=path)
    return job, job.errors_of("open")


# ---- Placeholders --------------------------------------------------------------------------------


def test_a_placeholder_stands_there_while_the_data_is_in_the_stores(site):
    model = write_model(site)
    assert is_placeholder(site.path)
    content = site.path.read_bytes()
    assert content[:8] == bytes(model.content[:8])
    assert b"300001 bytes" in content and b"DEDUP_FLUSH=close" in content
    assert nothing_left_over(site)
    site.expect(model, 3, 5)
    site.check_stores(model, 2)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 4096])
def test_short_files(site, size):
    model = write_model(site, size=size)
    assert is_placeholder(site.path)
    assert site.path.read_bytes()[:8] == bytes(model.content[:8]).ljust(8, b"\0")
    site.expect(model, 3, 2)


def test_a_file_that_nobody_writes_to_is_an_empty_plain_file(site):
    site.run(Script().open("wc").close(), 3, 3, HINTS).check()
    assert site.path.read_bytes() == b""
    assert files_in(site) == []
    site.expect(Model(), 3, 3)


def test_permissions_and_owner_stay(site):
    model = write_model(site)
    site.path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(site.path, 1234, 1235)
    before = site.path.stat()
    change(site, model)
    after = site.path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid,
                                                           before.st_gid)
    assert is_placeholder(site.path) and after.st_ino != before.st_ino
    site.expect(model, 3, 3)


def test_a_symbolic_link_stays_one(site):
    target = site.root / "target"
    site.path.symlink_to(target)
    target.touch()
    model = write_model(site, mode="w")
    assert site.path.is_symlink() and is_placeholder(target)
    change(site, model)
    assert site.path.is_symlink() and is_placeholder(target)
    site.expect(model, 3, 3)


def test_exclusive_creation(site):
    assert open_errors(site, "wcx")[1] == ["SUCCESS"] * 3
    assert open_errors(site, "wcx")[1] == ["FILE_EXISTS"] * 3
    write_model(site)
    assert open_errors(site, "wcx")[1] == ["FILE_EXISTS"] * 3
    assert is_placeholder(site.path)


def test_a_failed_open_leaves_no_file(site):
    (site.stores).mkdir()
    (site.stores / "n1").write_text("not a directory")
    job, errors = open_errors(site, "wc")
    assert errors == ["IO"] * 3 or "SUCCESS" not in errors, f"{job}"
    assert not site.path.exists()


@pytest.mark.parametrize("mode, names", [("r", "no such file"), ("w", "no such file")])
def test_nothing_is_there(site, mode, names):
    job, errors = open_errors(site, mode)
    assert errors == ["NO_SUCH_FILE"] * 3
    assert names in job.entries("open")[0].text


def test_rm(site):
    write_model(site)
    site.path.unlink()
    assert open_errors(site)[1] == ["NO_SUCH_FILE"] * 3
    other = write_model(site, seed=2, size=5000)
    site.expect(other, 3, 3)


def test_mv(site):
    model = write_model(site)
    old = site.path
    site.path = old.with_name("renamed")
    old.rename(site.path)
    assert open_errors(site, path=old)[1] == ["NO_SUCH_FILE"] * 3
    site.expect(model, 3, 4)
    change(site, model)
    site.expect(model, 3, 2)
    # Another directory.
    (site.root / "archive").mkdir()
    new = site.root / "archive" / "file"
    site.path.rename(new)
    site.path = new
    change(site, model, seed=3)
    site.expect(model, 3, 3)
    site.check_stores(model, 2)


def test_mv_over_another_file(site):
    write_model(site)
    final = site.path
    site.path = final.with_name("file.tmp")
    newer = write_model(site, seed=2, size=200_000)
    site.path.rename(final)
    site.path = final
    site.expect(newer, 3, 3)
    change(site, newer)
    site.expect(newer, 3, 3)


def test_a_copy_reads_what_it_names_and_is_not_written_to(site):
    model = write_model(site)
    copy = site.path.with_name("copy")
    shutil.copy(site.path, copy)
    original, site.path = site.path, copy
    site.expect(model, 3, 3)
    job, errors = open_errors(site, "w")
    assert errors == ["UNSUPPORTED_OPERATION"] * 3, f"{job}"
    assert str(original) in job.entries("open")[0].text + job.stderr

    # Once the original is another generation, the copy must not be read as that one.
    site.path = original
    change(site, model)
    site.path = copy
    job, errors = open_errors(site)
    assert errors == ["IO"] * 3, f"{job}"
    assert "written to since" in job.entries("open")[0].text + job.stderr

    # Deleting the copy is not deleting the original.
    job = site.run(Script().add("@0 delete"), 3, 3, HINTS)
    job.check()
    assert not copy.exists()
    site.path = original
    site.expect(model, 3, 3)


@pytest.mark.form
def test_delete(site):
    write_model(site)
    site.run(Script().add("@0 delete"), 3, 3, HINTS).check()
    assert not site.path.exists()
    assert all(files_in(site, node) == [] for node in ("n0", "n1", "n2"))
    job = site.run(Script().add("@0 delete"), 3, 3, HINTS)
    assert job.errors_of("delete")[0] == "NO_SUCH_FILE"


@pytest.mark.form
def test_delete_on_close(site):
    pieces = parts(noise(1, 10_000), 3)
    site.run(Script().open("wcd").write("all-at", pieces).add("sync", 0).close(), 3, 3,
             HINTS).check()
    assert not site.path.exists() and nothing_left_over(site)
    assert all(files_in(site, node) == [] for node in ("n0", "n1", "n2"))


@pytest.mark.form
def test_delete_while_it_is_open(site):
    pieces = parts(noise(1, 10_000), 3)
    script = Script().open("wc").write("all-at", pieces).add("sync", 0).add("@0 delete")
    script.add("barrier").add("read", 0, site.root / "out", 0).write("all-at", pieces).close()
    site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, 10_000)
    assert not site.path.exists()
    assert all(files_in(site, node) == [] for node in ("n0", "n1", "n2"))


@pytest.mark.parametrize("damage", ["mark", "text", "first", "cut", "cut short", "longer"])
def test_a_damaged_placeholder_is_an_error_never_data(site, damage):
    write_model(site)
    content = bytearray(site.path.read_bytes())
    if damage == "cut":
        del content[3000:]
    elif damage == "cut short":
        del content[40:]
    elif damage == "longer":
        content += bytes(10)
    else:
        at = {"mark": 1100, "text": 1024, "first": 3}[damage]
        content[at] ^= 1
    site.path.write_bytes(content)
    for mode in ("r", "w", "wc"):
        job, errors = open_errors(site, mode)
        assert errors == ["IO"] * 3, f"{job}"
        assert names_file(site.path, job.entries("open")[0].text)
        assert site.path.read_bytes() == content


@pytest.mark.parametrize("what", ["directory", "fifo"])
def test_what_is_no_file(site, what):
    if what == "directory":
        site.path.mkdir()
    else:
        os.mkfifo(site.path)
    for mode in ("r", "wc"):
        job, errors = open_errors(site, mode)
        assert errors == ["BAD_FILE"] * 3, f"{job}"


# ---- The placeholder as a fence ------------------------------------------------------------------


def test_all_stores_are_gone(site):
    write_model(site)
    site.lose("n0", "n1", "n2")
    for mode in ("r", "w", "wc"):
        job, errors = open_errors(site, mode)
        assert errors == ["IO"] * 3, f"{job}"
        text = job.stderr + job.entries("open")[0].text
        assert "%n of nodes n0, n1, n2" in text
    assert is_placeholder(site.path)


def test_stores_that_were_left_out_do_not_win(site):
    """A job goes on with half of the nodes; the other half alone has only what is too old."""
    model = write_model(site, nodes=4, ranks=4)
    change(site, model, nodes=["n0", "n1", "n2"])
    for mode in ("r", "w", "wc"):
        job, errors = open_errors(site, mode, nodes=["n3"], ranks=2)
        assert errors == ["IO"] * 2, f"{job}"
        assert "generation 2" in job.entries("open")[0].text + job.stderr
    site.expect(model, 4, 4)
    change(site, model, seed=3, nodes=4, ranks=4)
    site.expect(model, ["n1", "n2", "n3"], 3)
    site.check_stores(model, 2)


def test_two_jobs_on_disjoint_nodes_go_on_from_one_generation(site, start):
    """Both have the file open: they cannot see each other's stores, but one placeholder."""
    hints = {"replication": 4}
    model = Model(noise(1, 300_000))
    site.write(parts(bytes(model.content), 4), 4, 4, hints)
    opened, may_write = site.root / "opened", site.root / "may_write"
    script = Script().open("w").add("touch", opened).add("wait", may_write)
    late = start(script.write("all-at", parts(noise(2, 100_000), 2)).add("sync", 0).close(),
                 ["n0", "n1"], 2, hints)
    late.wait_for(opened)
    winner = {0: [(0, noise(3, 50_000))]}
    site.run(Script().open("w").write("all-at", winner).close(), ["n2", "n3"], 2, hints).check()
    model.write(winner)
    may_write.touch()
    late.finish()
    assert late.errors_of("sync") == ["IO"] * 2, f"{late}"
    assert "nothing of it is overwritten" in late.stderr + late.entries("sync")[0].text
    assert late.errors_of("close") == ["IO"] * 2
    site.expect(model, ["n2", "n3"], 2)
    site.expect(model, 4, 4)
    change(site, model, seed=4, nodes=4, ranks=4)
    site.expect(model, 4, 4)


@pytest.mark.parametrize("begins", ["placeholder", "empty"])
def test_two_jobs_commit_at_once_where_no_node_sees_the_locks_of_another(site, start, begins):
    """Both are about to take the placeholder's place in the same moment. On a file system without
    locks between nodes (Lustre with localflock, say) one of them wins all the same."""
    hints = {"replication": 4}
    model = Model(noise(1, 300_000) if begins == "placeholder" else b"")
    if begins == "placeholder":
        site.write(parts(bytes(model.content), 4), 4, 4, hints)
    else:
        site.path.touch()
    meeting, may_write = site.root / "meeting", site.root / "may_write"
    meeting.mkdir()
    environment = {"LD_PRELOAD": str(fault_library()), "FAULT_NO_LOCKS": "1",
                   "FAULT_MEET": str(meeting)}
    jobs, pieces = [], []
    for i, nodes in enumerate([["n0", "n1"], ["n2", "n3"]]):
        opened = site.root / f"opened{i}"
        pieces.append({0: [(0, noise(2 + i, 50_000))]})
        script = Script().open("w").add("touch", opened).add("wait", may_write)
        jobs.append(start(script.write("all-at", pieces[i]).add("sync", 0).close(), nodes, 2, hints,
                          environment=environment))
        jobs[i].wait_for(opened)
    may_write.touch()
    for job in jobs:
        job.finish()
    lost = [job.errors_of("sync") == ["IO"] * 2 for job in jobs]
    assert sorted(lost) == [False, True], f"{jobs[0]}{jobs[1]}"
    model.write(pieces[lost.index(False)])
    site.expect(model, 4, 4)
    change(site, model, seed=4, nodes=4, ranks=4)
    site.expect(model, 4, 4)


def test_an_old_store_returns(site):
    model = write_model(site, nodes=4, ranks=4)
    saved = site.root / "saved"
    shutil.copytree(site.store("n3"), saved)
    change(site, model, nodes=4, ranks=4)
    shutil.rmtree(site.store("n3"))
    shutil.copytree(saved, site.store("n3"))
    assert open_errors(site, nodes=["n3"], ranks=1)[1] == ["IO"]
    site.expect(model, 4, 4)
    change(site, model, seed=3, nodes=4, ranks=4)
    site.check_stores(model, 2)


@pytest.mark.parametrize("step", ["commit.renamed", "commit.unfenced", "commit.fenced"])
def test_killed_around_the_fence(site, step):
    model = write_model(site)
    newer = model.copy()
    pieces = parts(noise(2, 100_000), 3)
    newer.write(pieces)
    job = site.run(Script().open("w").write("all-at", pieces).close(), 3, 3, HINTS,
                   {"DEDUP_TEST_KILL": f"{step}:1:0"})
    assert job.code != 0
    found = site.read(3, 4)
    assert found in (bytes(model.content), bytes(newer.content))
    # Committed on some node is committed, whether the placeholder says so already or not.
    if step != "commit.renamed":
        assert found == bytes(newer.content)
    now = Model(found)
    change(site, now, seed=3)
    assert is_placeholder(site.path) and nothing_left_over(site)
    site.expect(now, 3, 3)
    site.check_stores(now, 2)


def test_its_directory_is_not_there(site):
    """The file system is not mounted: nothing is lost, and nothing is made instead."""
    model = write_model(site)
    away = site.root / "unmounted"
    site.path.parent.rename(away)
    for mode in ("r", "w", "wc"):
        job, errors = open_errors(site, mode)
        assert errors == ["NO_SUCH_FILE"] * 3, f"{job}"
        assert "mounted" in job.entries("open")[0].text + job.stderr
    # An empty mount point.
    site.path.parent.mkdir()
    job, errors = open_errors(site, "r")
    assert errors == ["NO_SUCH_FILE"] * 3
    site.path.parent.rmdir()
    away.rename(site.path.parent)
    site.expect(model, 3, 3)


def test_removed_while_it_is_open(site):
    pieces = parts(noise(1, 10_000), 3)
    script = Script().open("wc").write("all-at", pieces).add("sync", 0)
    script.add("@0 shell", f"rm {site.path}").add("barrier").write("all-at", pieces)
    script.add("read", 0, site.root / "out", 0).close()
    job = site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, 10_000)
    assert "was removed while it was open" in job.stderr
    assert open_errors(site)[1] == ["NO_SUCH_FILE"] * 3


# ---- Plain files ---------------------------------------------------------------------------------


def make_plain(site, content):
    site.path.write_bytes(content)
    return Model(content)


@pytest.mark.parametrize("size", [1, 4096, 300_001, 9 * MIB + 5])
def test_a_plain_file_is_read_through(site, size):
    model = make_plain(site, noise(1, size))
    before = site.path.stat()
    site.expect(model, 3, 4)
    site.expect(model, 2, 3, block=7001)
    after = site.path.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert files_in(site) == []


def test_a_plain_file_that_is_opened_for_writing_but_not_written_stays(site):
    make_plain(site, noise(1, 10_000))
    before = site.path.stat()
    site.run(Script().open("w").add("read", 0, site.root / "out", 0).add("sync", 0).close(), 3, 3,
             HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, 10_000)
    after = site.path.stat()
    # All but the time of the last access.
    assert (after.st_ino, after.st_size, after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino, before.st_size, before.st_mode, before.st_mtime_ns, before.st_ctime_ns)
    assert files_in(site) == []


@pytest.mark.parametrize("how", ["all-at", "at"])
@pytest.mark.parametrize("size, offset, length", [
    (10_000, 0, 3000), (10_000, 9000, 3000), (10_000, 20_000, 3000), (9 * MIB + 5, 4 * MIB - 10, 20),
    (9 * MIB + 5, 5, 8 * MIB), (5000, 0, 5000)])
def test_the_first_commit_takes_a_plain_file_over(site, how, size, offset, length):
    model = make_plain(site, noise(1, size))
    pieces = {rank: [(offset + at, content)] for rank, ((at, content),) in
              parts(noise(2, length), 3).items()}
    out = site.root / "out"
    script = Script().open("w").write(how, pieces).add("barrier").add("read", 0, out, 0)
    script.add("sync", 0).add("read", 0, f"{out}2", 0).close()
    site.run(script, 3, 3, {**HINTS, "buffer": "1M"}).check()
    model.write(pieces)
    assert out.read_bytes() == bytes(model.content)
    assert (site.root / "out2").read_bytes() == bytes(model.content)
    assert is_placeholder(site.path)
    site.expect(model, 3, 5)
    site.check_stores(model, 2)


@pytest.mark.parametrize("sizes", [(5000,), (20_000,), (0,), (100, 20_000), (5 * MIB, 9 * MIB)])
def test_resizing_a_plain_file(site, sizes):
    model = make_plain(site, noise(1, 9 * MIB if sizes[0] > MIB else 10_000))
    script = Script().open("w")
    for size in sizes:
        script.add("size", 0, size)
        model.resize(size)
    script.add("read", 0, site.root / "out", 0).close()
    site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == bytes(model.content)
    site.expect(model, 3, 3)


def test_a_plain_file_replaces_what_the_stores_have(site):
    write_model(site)
    model = make_plain(site, noise(5, 2000))
    site.expect(model, 3, 3)
    site.path.write_bytes(b"")
    site.expect(Model(), 3, 3)
    model = make_plain(site, noise(6, 3000))
    change(site, model, at=100, size=500)
    assert is_placeholder(site.path)
    site.expect(model, 3, 3)


@pytest.mark.parametrize("how", ["append", "replace", "shorten"])
def test_changed_from_outside_while_it_is_open(site, how):
    """What another program has written in the meantime is not overwritten."""
    make_plain(site, noise(1, 10_000))
    script = Script().open("w").write("all-at", {0: [(0, b"x" * 100)]}).add("barrier")
    change_it = {"append": f"printf more >> {site.path}",
                 "replace": f"printf other > {site.path}.new; mv {site.path}.new {site.path}",
                 "shorten": f"truncate -s 5 {site.path}"}[how]
    script.add("@0 shell", change_it).add("barrier").add("sync", 0).close()
    job = site.run(script, 3, 3, HINTS)
    assert job.errors_of("sync") == ["IO"] * 3, f"{job}"
    assert job.errors_of("close") == ["IO"] * 3, f"{job}"
    expected = {"append": noise(1, 10_000) + b"more", "replace": b"other",
                "shorten": noise(1, 10_000)[:5]}[how]
    assert site.path.read_bytes() == expected
    site.expect(Model(expected), 3, 3)


def test_a_plain_file_that_does_not_fit_stays(site, tmpfs):
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "4m")
    model = make_plain(site, noise(1, 12 * MIB))
    script = Script().open("w").write("all-at", {0: [(0, b"x" * 100)]}).add("sync", 0).close()
    job = site.run(script, 3, 3, HINTS)
    assert job.errors_of("sync") == ["NO_SPACE"] * 3, f"{job}"
    assert job.errors_of("close") == ["NO_SPACE"] * 3, f"{job}"
    assert site.path.read_bytes() == bytes(model.content)
    assert nothing_left_over(site)
    site.expect(model, 3, 3)
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "40m")
    change(site, model)
    site.expect(model, 3, 3)


# ---- Space ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["all-at", "at"])
def test_renaming_over_a_checkpoint_again_and_again(site, tmpfs, how):
    """Stores that hold three checkpoints, and thirty of them."""
    size = 600_000
    for node in ("n0", "n1"):
        tmpfs(node, "4m")  # two copies of a checkpoint: 0.6 MB on each of two nodes
    final = site.path
    site.path = final.with_name("ckpt.tmp")
    for number in range(30 if how == "all-at" else 10):
        pieces = parts(noise(number, size), 2)
        site.run(Script().open("wc").write(how, pieces).close(), 2, 2, HINTS).check()
        site.path.rename(final)
    site.path = final
    site.expect(Model(noise(number, size)), 2, 2)


def test_making_room_leaves_alone_what_has_a_name_or_no_directory(site, tmpfs):
    for node in ("n0", "n1"):
        tmpfs(node, "8m")
    kept = {}
    for name in ("renamed", "elsewhere", "removed", "overwritten"):
        (site.root / name).mkdir()
        site.path = site.root / name / "file"
        kept[name] = write_model(site, seed=name, size=500_000, nodes=2, ranks=2)
    (site.root / "renamed" / "file").rename(site.root / "renamed" / "other")
    (site.root / "elsewhere").rename(site.root / "unmounted")
    (site.root / "elsewhere").mkdir()  # an empty mount point
    (site.root / "removed" / "file").unlink()
    (site.root / "overwritten" / "file").write_bytes(b"plain")
    assert len(files_in(site)) == 4
    site.path = site.root / "large"
    large = write_model(site, size=5 * MIB, nodes=2, ranks=2)
    site.expect(large, 2, 2)
    assert len(files_in(site)) == 3
    site.path = site.root / "renamed" / "other"
    site.expect(kept["renamed"], 2, 2)
    (site.root / "elsewhere").rmdir()
    (site.root / "unmounted").rename(site.root / "elsewhere")
    site.path = site.root / "elsewhere" / "file"
    site.expect(kept["elsewhere"], 2, 2)
