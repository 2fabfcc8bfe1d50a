"""dedup_flush=close: a file is a plain file at its real path again when it is closed."""

import errno
import os
import re
import shutil

import pytest

from stores import Count, Model, Script, fault_library, is_placeholder, noise, parts, shared_site

HINTS = {"replication": 2, "flush": "close"}
IN_STORES = {"replication": 2}
MIB = 1 << 20


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def files_in(site):
    return [path for node in site.node_names() for path in (site.store(node) / "files").iterdir()]


def check_plain(site, model):
    """The file is plain and whole, and nothing else is anywhere."""
    assert site.path.read_bytes() == bytes(model.content)
    assert [path.name for path in site.path.parent.iterdir()] == [site.path.name]
    assert files_in(site) == []


@pytest.mark.parametrize("nodes, ranks", [(1, 1), (3, 3), (2, 5), (4, 2)])
@pytest.mark.parametrize("size", [1, 5000, 9 * MIB + 7])
def test_the_whole_file_is_there(site, nodes, ranks, size):
    model = Model(noise(1, size))
    site.write(parts(bytes(model.content), ranks), nodes, ranks, HINTS)
    check_plain(site, model)
    site.expect(model, nodes, ranks, hints=HINTS)
    # Taken over, changed, written back.
    pieces = {0: [(size // 2, b"changed")]}
    site.write(pieces, nodes, ranks, HINTS, mode="w")
    model.write(pieces)
    check_plain(site, model)


@pytest.mark.parametrize("unit, written", [(None, [8, 16, 16]), (24, [16, 24]), (32, [8, 32])])
def test_writers_keep_to_the_units_that_a_program_gives(site, unit, written):
    model = Model(noise(1, 40 * MIB))
    hints = site.root / "romio-hints"
    hints.write_text("" if unit is None else f"striping_unit {unit * MIB}\n")
    site.variables["ROMIO_HINTS"] = hints
    with Count(site) as count:
        site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    check_plain(site, model)
    assert count.writers == [each * MIB for each in written]


def test_holes_and_sizes(site):
    script = Script().open("wc").write("at", {1: [(70_000, b"end")]}).add("size", 0, 5 * MIB).close()
    site.run(script, 3, 3, HINTS).check()
    model = Model()
    model.write({1: [(70_000, b"end")]})
    model.resize(5 * MIB)
    check_plain(site, model)
    site.run(Script().open("w").add("size", 0, 0).close(), 3, 3, HINTS).check()
    check_plain(site, Model())
    site.run(Script().open("w").close(), 3, 3, HINTS).check()
    check_plain(site, Model())


@pytest.mark.parametrize("change", ["size", "write"])
def test_what_could_not_be_committed_is_not_written_back(site, change):
    """What the file has then is neither the generation that stands nor a later one."""
    old = Model(noise(1, 9 * MIB))
    site.write(parts(bytes(old.content), 3), 3, 3, IN_STORES)
    script = Script().open("w")
    if change == "size":
        script.add("size", 0, 10_000)
    else:
        script.write("all-at", {0: [(5, b"new")]})
    job = site.run(script.close(), 3, 3, HINTS, {
        "LD_PRELOAD": str(fault_library()), "FAULT_RANK": "2", "FAULT_CALL": "1",
        "FAULT_ERROR": str(errno.EIO), "FAULT_ONLY": "fdatasync"})
    assert job.code == 0 and set(job.errors_of("close")) == {"IO"}, f"{job}"
    assert is_placeholder(site.path)
    assert site.read(3, 3) == old.content


def test_holes_stay_holes(site):
    end = 300 * MIB
    script = Script().open("wc").write("at", {1: [(100, b"begin"), (end, b"end")]}).close()
    site.run(script, 3, 3, HINTS).check()
    about = site.path.stat()
    assert about.st_size == end + 3 and about.st_blocks * 512 <= MIB
    with open(site.path, "rb") as file:
        assert file.read(105) == bytes(100) + b"begin"
        file.seek(end)
        assert file.read() == b"end"


def test_what_was_in_the_stores_is_written_back_when_it_is_changed(site):
    model = Model(noise(1, 200_000))
    site.write(parts(bytes(model.content), 3), 3, 3, IN_STORES)
    assert is_placeholder(site.path)
    site.expect(model, 3, 3, hints=HINTS)
    assert is_placeholder(site.path)
    site.write({0: [(5, b"new")]}, 3, 3, HINTS, mode="w")
    model.write({0: [(5, b"new")]})
    check_plain(site, model)


def test_permissions_stay_and_links_do(site):
    target = site.path.with_name("target")
    target.touch()
    target.chmod(0o604)
    site.path.symlink_to(target)
    site.write(parts(noise(1, 10_000), 3), 3, 3, HINTS, mode="w")
    assert site.path.is_symlink() and target.read_bytes() == noise(1, 10_000)
    assert target.stat().st_mode & 0o777 == 0o604


def test_a_new_file_has_the_permissions_of_open(site):
    old = os.umask(0o027)
    try:
        site.write(parts(noise(1, 10_000), 3), 3, 3, HINTS)
    finally:
        os.umask(old)
    assert site.path.stat().st_mode & 0o777 == 0o640


def test_only_the_last_close_writes_back(site):
    script = Script().open("wc", 0).open("w", 1).write("all-at", parts(noise(1, 5000), 3), 0)
    script.close(0).add("shell", f"cmp -n 8 {site.path} /dev/null; test $? = 1")
    script.add("shell", f"grep -q 'This is a placeholder' {site.path}")
    script.write("all-at", {1: [(0, b"second")]}, 1).close(1)
    script.add("shell", f"! grep -q 'This is a placeholder' {site.path}")
    site.run(script, 3, 3, HINTS).check()
    model = Model(noise(1, 5000))
    model.write({1: [(0, b"second")]})
    check_plain(site, model)


def test_a_reader_may_be_the_last_to_close(site):
    script = Script().open("wc", 0).open("r", 1).write("all-at", parts(noise(1, 5000), 3), 0)
    script.close(0).add("read", 1, site.root / "out", 0).close(1)
    site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, 5000)
    check_plain(site, Model(noise(1, 5000)))


def test_changed_within_the_same_tick(site):
    """The file as it stands is the file, whatever its times say."""
    site.write(parts(noise(1, 10_000), 3), 3, 3, HINTS)
    before = site.path.stat()
    with open(site.path, "r+b") as file:
        file.seek(5000)
        file.write(b"!")
    os.utime(site.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    model = Model(noise(1, 10_000))
    model.content[5000:5001] = b"!"
    site.expect(model, 3, 3, hints=HINTS)
    site.expect(model, 3, 3, hints=IN_STORES)


# ---- Errors are the close's ----------------------------------------------------------------------


def check_failed(site, job, model, ranks=3):
    """The close has failed on all ranks, and the stores have everything."""
    errors = set(job.errors_of("close"))
    assert len(errors) == 1 and "SUCCESS" not in errors, f"{job}"
    assert "stays in the stores" in job.stderr, f"{job}"
    site.check_stores(model, 2)
    return errors.pop()


def test_no_space_for_the_plain_file(site, mount_tmpfs):
    directory = site.path.parent
    mount_tmpfs(directory, "1m")
    model = Model(noise(1, 3 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    job = site.run(script, 3, 3, HINTS)
    assert check_failed(site, job, model) == "NO_SPACE"
    assert is_placeholder(site.path)
    assert [path.name for path in directory.iterdir()] == ["file"]
    site.expect(model, 3, 3)
    # Once there is room, the next close that has something to write succeeds.
    mount_tmpfs(directory, "10m")
    site.write({0: [(0, b"more")]}, 3, 3, HINTS, mode="w")
    model.write({0: [(0, b"more")]})
    check_plain(site, model)


@pytest.mark.parametrize("what", ["directory", "file"])
def test_removed_meanwhile(site, what):
    model = Model(noise(1, 20_000))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).add("barrier")
    target = site.path.parent if what == "directory" else site.path
    script.add("@0 shell", f"rm -r {target}").add("barrier").close()
    job = site.run(script, 3, 3, HINTS)
    check_failed(site, job, model)
    assert re.search("identity [0-9a-f]{32}", job.stderr)


def test_replaced_meanwhile(site):
    model = Model(noise(1, 20_000))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).add("sync", 0)
    script.add("@0 shell", f"printf other > {site.path}.new; mv {site.path}.new {site.path}")
    script.add("barrier").close()
    job = site.run(script, 3, 3, HINTS)
    check_failed(site, job, model)
    assert site.path.read_bytes() == b"other"


def test_no_permission(site):
    """What cannot be replaced is not opened for writing; a loss meanwhile is the close's error."""
    wrapper = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("giving up root's right to everything takes setpriv")
        wrapper = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    site.path.touch()
    directory = site.path.parent
    directory.chmod(0o555)
    try:
        for mode, error in (("w", "ACCESS"), ("wc", "ACCESS"), ("r", "SUCCESS")):
            job = site.run(Script().open(mode).close(), 3, 3, HINTS, wrapper=wrapper)
            assert job.errors_of("open") == [error] * 3, f"{job}"
        directory.chmod(0o755)
        model = Model(noise(1, 20_000))
        script = Script().open("w").write("all-at", parts(bytes(model.content), 3)).add("sync", 0)
        script.add("@0 shell", f"chmod 555 {directory}").add("barrier").close()
        job = site.run(script, 3, 3, HINTS, wrapper=wrapper)
        assert check_failed(site, job, model) == "ACCESS"
    finally:
        directory.chmod(0o755)
    assert is_placeholder(site.path)
    site.expect(model, 3, 3)


@pytest.mark.parametrize("step, rank", [
    ("writeback.begun", 0), ("writeback.begun", 1), ("writeback.copied", 2), ("writeback.copied", 0),
    ("writeback.renamed", 0), ("writeback.renamed", 1)])
def test_killed_in_write_back(site, step, rank):
    """The placeholder with everything in the stores, or the whole plain file."""
    model = Model(noise(1, 500_000))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    job = site.run(script, 3, 3, HINTS, {"DEDUP_TEST_KILL": f"{step}:1:{rank}"})
    assert job.code != 0
    whole = site.path.read_bytes() == bytes(model.content)
    assert whole or is_placeholder(site.path)
    # Rank 0 renames, when all have copied.
    if step == "writeback.begun" or (step, rank) == ("writeback.copied", 0):
        assert not whole
    elif (step, rank) == ("writeback.renamed", 0):
        assert whole
    site.expect(model, 3, 4)
    site.write({0: [(7, b"next")]}, 3, 3, HINTS, mode="w")
    model.write({0: [(7, b"next")]})
    assert site.path.read_bytes() == bytes(model.content)
    assert [path.name for path in site.path.parent.iterdir()] == ["file"]
