"""Stores that are full, unwritable, missing, or of a newer version: one clear error on every rank,
no hang, and the previous generation can be read."""

import contextlib
import errno
import json
import os
import shutil
import subprocess

import pytest

from stores import Model, Script, Site, fault_library, names_file, noise, parts

HINTS = {"replication": 2}
MIB = 1 << 20


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def write_model(site, seed=1, size=900_000, ranks=3):
    model = Model(noise(seed, size))
    site.write(parts(bytes(model.content), ranks), ranks, ranks, HINTS)
    return model


def first_failure(job):
    """The operation that failed first; it must fail on all ranks, with one error class."""
    failed = [next((e for e in entries if e.error != "SUCCESS"), None) for entries in job.results]
    assert all(failed), f"not on all ranks\n{job}"
    assert len({(e.line, e.error) for e in failed}) == 1, f"{job}"
    return failed[0]


# ---- Full stores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["all-at", "at"])
def test_all_stores_are_full(site, tmpfs, how):
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "4m")
    model = write_model(site)
    script = Script().open("w").write(how, parts(noise(2, 15 * MIB), 3)).add("sync", 0).close()
    job = site.run(script, 3, 3, HINTS)
    if how == "all-at":
        assert first_failure(job).error == "NO_SPACE", f"{job}"
    else:
        assert "NO_SPACE" in job.errors_of("write"), f"{job}"
    site.expect(model, 3, 3)

    # What the failed attempt took is free again: the same amount as before fits.
    new = Model(noise(3, 900_000))
    site.write(parts(bytes(new.content), 3), 3, 3, HINTS, mode="w")
    site.check_stores(new, 2)
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "40m")
    large = Model(noise(2, 15 * MIB))
    site.write(parts(bytes(large.content), 3), 3, 3, HINTS, mode="w")
    site.check_stores(large, 2)


def test_the_commit_finds_no_room(site, tmpfs):
    """Independent writes fit into the logs, but not as chunks with their copies beside them."""
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "4m")
    model = write_model(site)
    pieces = {rank: [(rank * 1_500_000, noise(rank, 1_500_000))] for rank in range(3)}
    script = Script().open("w").write("at", pieces).add("barrier").add("sync", 0).close()
    job = site.run(script, 3, 3, HINTS)
    assert job.errors_of("write") == ["SUCCESS"] * 3, f"{job}"
    assert job.errors_of("sync") == ["NO_SPACE"] * 3, f"{job}"
    assert job.errors_of("close") == ["NO_SPACE"] * 3, f"{job}"
    # Programs ignore what close returns: it is said on stderr, once.
    lines = [line for line in job.stderr.splitlines() if "close could not commit" in line]
    assert len(lines) == 1 and str(site.path) in lines[0] and "generation 1" in lines[0]
    site.expect(model, 3, 4)


def test_room_is_made_and_the_next_commit_works(site, tmpfs):
    """In the same job: what was written is not lost by a commit that failed."""
    for node in ("n0", "n1", "n2"):
        tmpfs(node, "4m")
    model = write_model(site)
    pieces = {rank: [(rank * 1_400_000, noise(rank, 1_400_000))] for rank in range(3)}
    failed, room = site.root / "failed", site.root / "room"
    script = Script().open("w").write("at", pieces).add("barrier").add("sync", 0)
    script.add("touch", failed).add("wait", room).add("sync", 0).close()
    job = site.start(script, 3, 3, HINTS)
    try:
        while not failed.exists() and job.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.process.wait(0.01)
        for node in ("n0", "n1", "n2"):
            tmpfs(node, "64m")
        room.touch()
    finally:
        job.finish()
    syncs = [[e.error for e in entries if e.operation == "sync"] for entries in job.results]
    assert syncs == [["NO_SPACE", "SUCCESS"]] * 3, f"{job}"
    model.write(pieces)
    site.check_stores(model, 2)
    site.expect(model, 3, 3)


def test_one_full_store_among_others_with_room(site, tmpfs):
    """Its copies go elsewhere."""
    tmpfs("n1", "2m")
    model = Model(noise(1, 300_000))
    site.write(parts(bytes(model.content), 4), 4, 4, HINTS)
    ballast = site.store("n1") / "ballast"
    free = shutil.disk_usage(site.store("n1")).free
    ballast.write_bytes(bytes(free - 300_000))
    pieces = {rank: [(rank * MIB, noise(rank, MIB))] for rank in (0, 2, 3)}
    model.write(pieces)
    site.write(pieces, 4, 4, HINTS, mode="w")
    file = site.check_stores(model, 2)
    assert file["on_store"]["n1"]["segment_bytes"] < 400_000
    site.expect(model, 4, 4)
    for lost in ("n0", "n3"):
        site.lose(lost)
        site.expect(model, [node for node in ("n0", "n1", "n2", "n3") if node != lost], 3)
        site.bring_back(lost)


def test_a_full_store_whose_own_ranks_write(site, tmpfs):
    """It has to keep what its ranks wrote, or others have to keep all copies of it; if neither
    works it is NO_SPACE on all ranks."""
    tmpfs("n1", "2m")
    model = Model(noise(1, 600_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    new = Model(noise(2, 9 * MIB))
    script = Script().open("w").write("all-at", parts(bytes(new.content), 3)).close()
    job = site.run(script, 3, 3, HINTS)
    if job.failures():
        assert first_failure(job).error == "NO_SPACE"
        site.expect(model, 3, 3)
    else:
        site.check_stores(new, 2)
        site.expect(new, 3, 3)


def test_a_file_is_created_on_a_full_store(site, tmpfs):
    tmpfs("n1", "64k")
    (site.store("n1") / "ballast").write_bytes(b"")
    with contextlib.suppress(OSError):
        with open(site.store("n1") / "ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
    os.chmod(site.store("n1"), 0o700)
    job = site.run(Script().open("wc").close(), 3, 3, HINTS)
    failure = first_failure(job)
    assert (failure.operation, failure.error) == ("open", "NO_SPACE"), f"{job}"
    assert "n1" in failure.text + job.stderr


# ---- Calls that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize("function, error, expected", [
    ("fdatasync", errno.EIO, "IO"),
    ("fsync", errno.EIO, "IO"),
    ("pwritev", errno.EIO, "IO"),
    ("pwritev", errno.ENOSPC, "NO_SPACE"),
    ("pwritev", errno.EDQUOT, "QUOTA"),
    ("rename", errno.EIO, "IO"),
    ("mkdir", errno.EACCES, "ACCESS"),
])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_call_fails_on_one_node(site, function, error, expected, rank):
    """All ranks get the same error, or, when the commit's outcome is certain already, a warning; the
    file is what it was, or what it was to become."""
    old = write_model(site)
    new = Model(noise(2, 1_000_000))
    script = Script().open("w").write("all-at", parts(bytes(new.content), 3))
    script.add("sync", 0).close()
    for call in (1, 3):
        job = site.run(script, 3, 3, HINTS, {
            "LD_PRELOAD": str(fault_library()), "FAULT_RANK": str(rank), "FAULT_CALL": str(call),
            "FAULT_ERROR": str(error), "FAULT_ONLY": function})
        assert job.code == 0, f"{job}"
        content = site.read(3, 3)
        if job.failures():
            assert first_failure(job).error == expected, f"{job}"
        if "SUCCESS" in job.errors_of("sync"):
            assert content == new.content
        else:
            assert content == old.content
        old = Model(content)
    change = {0: [(0, b"afterwards")]}
    old.write(change)
    site.write(change, 3, 3, HINTS, mode="w")
    site.check_stores(old, 2)


def test_chunks_that_could_not_be_flushed_are_not_relied_on(site):
    """The kernel tells of a failed flush once. The next commit, whose flushes all succeed, gets the
    chunks from the other node, which has them too."""
    model = Model(noise(3, 1_200_000))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 4))
    script.add("sync", 0).add("sync", 0).close()
    report = site.root / "report"
    # Rank 3 is not the first of its node: it flushes its own segment and nothing else.
    job = site.run(script, 2, 4, {**HINTS, "report": report}, {
        "LD_PRELOAD": str(fault_library()), "FAULT_RANK": "3", "FAULT_CALL": "1",
        "FAULT_ERROR": str(errno.EIO), "FAULT_ONLY": "fdatasync", "FAULT_ONCE": "1"})
    assert job.code == 0, f"{job}"
    failure = first_failure(job)
    assert (failure.operation, failure.error) == ("sync", "IO"), f"{job}"
    assert set(job.errors_of("sync")) == {"SUCCESS"}, f"{job}"  # the second
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    # The attempt that failed had no number yet.
    assert [line["generation"] for line in lines] == [1]
    assert lines[0]["copies_made"] > 0
    assert site.read(2, 4) == model.content
    site.check_stores(model, 2)


# ---- Stores that cannot be used ------------------------------------------------------------------


def spoil(site, node, how):
    """Makes a store unusable; returns the expected error class."""
    path = site.store(node)
    kept = site.root / "kept"
    if how == "file":
        path.rename(kept)
        path.write_text("not a directory")
        return "ACCESS"
    if how == "link":
        path.rename(kept)
        path.symlink_to(kept)
        return "ACCESS"
    if how == "read-only":
        if os.geteuid() != 0:
            pytest.skip("mounting takes root")
        result = subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False)
        if result.returncode != 0:
            pytest.skip("cannot mount")
        subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
        return "READ_ONLY"
    if how == "no permission":
        if os.geteuid() == 0:
            pytest.skip("root may do everything")
        path.chmod(0)
        return "ACCESS"
    if how == "shared":
        path.rename(kept)
        path.mkdir()
        path.chmod(0o755)
        (path / "something").write_text("of others")
        return "ACCESS"
    if how == "newer":
        content = bytearray((path / "STORE").read_bytes())
        content[8:12] = (2).to_bytes(4, "little")
        (path / "STORE").write_bytes(content)
        return "IO"
    if how == "damaged":
        content = bytearray((path / "STORE").read_bytes())
        content[20] ^= 1
        (path / "STORE").write_bytes(content)
        return "IO"
    if how == "no STORE":
        (path / "STORE").rename(kept)
        return "IO"
    raise AssertionError(how)


def repair(site, node, how):
    path = site.store(node)
    if how == "read-only":
        subprocess.run(["umount", path], check=True)
    elif how == "no permission":
        path.chmod(0o700)


@pytest.mark.parametrize("how", ["file", "link", "read-only", "no permission", "shared", "newer",
                                 "damaged", "no STORE"])
def test_a_store_that_cannot_be_used(site, how):
    model = write_model(site)
    expected = spoil(site, "n1", how)
    try:
        job = site.run(Script().open("w").close(), 3, 3, HINTS)
        failure = first_failure(job)
        assert (failure.operation, failure.error) == ("open", expected), f"{job}"
        text = failure.text + job.stderr
        assert "n1" in text
        if how == "newer":
            assert "newer" in text or "version" in text
        # A new file is no different.
        job = site.run(Script().open("wc").close(), 3, 3, HINTS, path=site.root / "other")
        assert first_failure(job).error == expected, f"{job}"
    finally:
        repair(site, "n1", how)
    # The others have it all.
    site.expect(model, ["n0", "n2"], 2)


def test_a_store_whose_parent_directories_are_missing(site):
    """They are made, as an administrator's /local/$USER is there on no node at first."""
    missing = site.root / "no" / "such" / "%n"
    content = parts(noise(7, 50_000), 3)
    script = Script().add("info", "dedup_store", missing).open("wc").write("all-at", content)
    site.run(script.close().open("r").close(), 3, 3, HINTS).check()
    assert sorted(path.name for path in (site.root / "no" / "such").iterdir()) == ["n0", "n1", "n2"]


def test_a_store_below_what_is_no_directory(site):
    above = site.root / "file"
    above.write_text("mine")
    for mode in ("wc", "r"):
        script = Script().add("info", "dedup_store", above / "such" / "%n").open(mode).close()
        job = site.run(script, 3, 3, HINTS)
        failure = first_failure(job)
        assert (failure.operation, failure.error) == ("open", "ACCESS"), f"{job}"
        assert str(above) in failure.text + job.stderr
    assert above.read_text() == "mine"


def test_no_such_file(site):
    job = site.run(Script().open("r").close(), 3, 3)
    failure = first_failure(job)
    assert failure.error == "NO_SUCH_FILE"
    assert names_file(site.path, failure.text)


def make_newer(site, node, pattern):
    for path in site.file_directory(node).glob(pattern):
        content = bytearray(path.read_bytes())
        content[8:12] = (9).to_bytes(4, "little")
        path.write_bytes(content)


@pytest.mark.parametrize("pattern", ["generations/*/shard-*", "generations/*/index", "segments/*"])
def test_files_of_a_newer_version(site, pattern):
    """On one node: the others serve. On all: an error."""
    model = write_model(site)
    make_newer(site, "n1", pattern)
    site.expect(model, 3, 3)
    make_newer(site, "n0", pattern)
    make_newer(site, "n2", pattern)
    script = Script().open("r").add("read", 0, site.root / "out", 0).close()
    job = site.run(script, 3, 3)
    assert first_failure(job).error == "IO", f"{job}"


def test_a_record_of_a_newer_version(site):
    """It may be the newest generation's: nothing else is taken for it."""
    model = write_model(site)
    make_newer(site, "n1", "generations/*/record")
    for mode in ("r", "w", "wc"):
        job = site.run(Script().open(mode).close(), 3, 3)
        failure = first_failure(job)
        assert (failure.operation, failure.error) == ("open", "IO"), f"{job}"
        assert "n1" in failure.text and "version" in failure.text
    site.expect(model, ["n0", "n2"], 3)
