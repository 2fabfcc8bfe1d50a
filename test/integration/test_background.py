"""dedup_flush=background: the plain file appears at its path while the program goes on.

What makes a write-back stand still is dedup_flush_rate=1: each writer writes its first 8 MiB, and would
then wait for weeks."""

import errno
import json
import os
import subprocess
import time

import pytest

from ctl import FAILED, FINE, dedupctl
from form import TEST_BUILD
from stores import Model, Script, fault_library, is_placeholder, noise, parts, shared_site
from test_write_back import check_plain, files_in

HINTS = {"replication": 2, "flush": "background"}
STANDS_STILL = {**HINTS, "flush_rate": 1, "flush_wait": "leave"}
MIB = 1 << 20
LONG = 40 * MIB + 5  # more than 8 MiB for each of three


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def copies_beside(site):
    return [path for path in site.path.parent.iterdir() if ".dedup-copy-" in path.name]


def until_plain(path):
    return f"while grep -q 'This is a placeholder' {path}; do sleep 0.02; done"


def begin_and_stop(site, size=LONG, hints=STANDS_STILL):
    """A write-back that was begun and left."""
    model = Model(noise(1, size))
    job = site.write(parts(bytes(model.content), 3), 3, 3, hints)
    assert "dedupctl flush" in job.stderr
    assert is_placeholder(site.path) and len(copies_beside(site)) == 1
    return model


@pytest.mark.parametrize("nodes, ranks", [(1, 1), (3, 3), (2, 5), (4, 4)])
@pytest.mark.parametrize("size", [1, 9 * MIB + 7])
def test_the_whole_file_is_there_when_the_program_ends(site, nodes, ranks, size):
    model = Model(noise(1, size))
    job = site.write(parts(bytes(model.content), ranks), nodes, ranks, HINTS)
    assert "written back" not in job.stderr
    check_plain(site, model)
    # Taken over, changed, written back.
    pieces = {0: [(size // 2, b"changed")]}
    site.write(pieces, nodes, ranks, HINTS, mode="w")
    model.write(pieces)
    check_plain(site, model)


def test_nothing_is_written_back_of_nothing(site):
    site.run(Script().open("wc").close(), 3, 3, HINTS).check()
    check_plain(site, Model())


def test_it_appears_while_the_program_goes_on(site):
    model = Model(noise(1, 20 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.add("@1 shell", until_plain(site.path)).add("@1 shell", f"cmp {site.path} {site.path}.expected")
    script.add("barrier")
    (site.path.parent / f"{site.path.name}.expected").write_bytes(model.content)
    site.run(script, 3, 3, HINTS).check()


def test_several_files_and_a_close_by_one_rank(site):
    script = Script()
    for handle, comm in ((0, "world"), (1, "self")):
        script.open("wc", handle, comm)
        how = "all-at" if comm == "world" else "at"
        script.write(how, parts(noise(handle, 5 * MIB), 3), handle).close(handle)
    job = site.run(script, 3, 3, HINTS)
    job.check()
    assert len(site.path.read_bytes()) == 5 * MIB
    assert files_in(site) == []


def test_permissions_that_change_meanwhile_stay(site):
    script = Script().open("wc").write("all-at", parts(noise(1, LONG), 3)).close()
    script.add("@0 shell", f"chmod 604 {site.path}").add("barrier")
    site.run(script, 3, 3, STANDS_STILL).check()
    assert dedupctl(site, "flush", site.path).code == FINE
    assert site.path.read_bytes() == noise(1, LONG)
    assert site.path.stat().st_mode & 0o777 == 0o604


def test_what_is_left_is_finished_by_dedupctl(site):
    model = begin_and_stop(site)
    site.expect(model, 3, 2)
    answer = dedupctl(site, "ls")
    assert answer.code == FINE and " of 40.0 MiB written back" in answer.out, answer
    assert "written_back_bytes" in dedupctl(site, "--json", "ls").file
    answer = dedupctl(site, "flush")
    assert answer.code == FINE and "written back, 40.0 MiB" in answer.out, answer
    check_plain(site, model)
    answer = dedupctl(site, "flush")
    assert answer.code == FINE and answer.out == "", answer


def test_dedupctl_flushes_what_is_named(site):
    model = Model(noise(1, 5 * MIB))
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 2})
    assert dedupctl(site, "flush").out == ""
    assert is_placeholder(site.path)
    answer = dedupctl(site, "--json", "flush", site.path, nodes=["n0", "n1", "n2"])
    assert answer.code == FINE and answer.file["size"] == 5 * MIB, answer
    check_plain(site, model)


def test_it_is_finished_on_the_nodes_that_are_left(site):
    model = begin_and_stop(site)
    site.lose("n1")
    assert dedupctl(site, "flush", nodes=["n0", "n2"]).code == FINE
    assert site.path.read_bytes() == model.content
    assert copies_beside(site) == []


def test_who_goes_on_writes_only_what_is_missing(site):
    """Killed when two thirds were noted; what was noted then is not written again."""
    model = Model(noise(1, 200 * MIB))
    script = Script().open("wc").write("all-at", {0: [(0, bytes(model.content))]}).close()
    job = site.run(script, 1, 1, {"replication": 1, "flush": "background"},
                   {"DEDUP_TEST_KILL": "writeback.noted:2:0"})
    assert job.code != 0 and is_placeholder(site.path)
    (copy,) = copies_beside(site)
    assert copy.stat().st_size == len(model.content)
    with open(copy, "r+b") as file:
        for at in (5, 127 * MIB):
            file.seek(at)
            file.write(b"as it was noted")
            model.content[at:at + 15] = b"as it was noted"
        # This was not.
        file.seek(130 * MIB)
        file.write(b"not noted")
    answer = dedupctl(site, "--json", "ls")
    assert answer.file["written_back_bytes"] == 128 * MIB, answer
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


@pytest.mark.parametrize("step", ["writeback.begun", "writeback.step", "writeback.noted",
                                  "writeback.renamed"])
@pytest.mark.parametrize("rank", [0, 1])
def test_killed_at_every_step(site, step, rank):
    """The placeholder with everything in the stores, or the whole plain file; dedupctl finishes it."""
    model = Model(noise(1, LONG))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    job = site.run(script, 3, 3, HINTS, {"DEDUP_TEST_KILL": f"{step}:1:{rank}"})
    # Any of them may be the one that ends last, and renames.
    assert job.code != 0 or step == "writeback.renamed"
    assert is_placeholder(site.path) or site.path.read_bytes() == bytes(model.content)
    assert dedupctl(site, "flush").code == FINE
    site.expect(model, 3, 4)
    if step != "writeback.begun" or not is_placeholder(site.path):
        assert site.path.read_bytes() == bytes(model.content)
        assert copies_beside(site) == []


def test_whoever_opens_it_for_writing_ends_it(site):
    model = Model(noise(1, LONG))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.open("w").write("all-at", {1: [(10 * MIB, b"second")]}).close()
    site.run(script, 3, 3, HINTS).check()
    model.write({1: [(10 * MIB, b"second")]})
    check_plain(site, model)


@pytest.mark.parametrize("changes", [True, False])
def test_one_that_stands_still_gives_way_to_a_writer(site, changes):
    model = Model(noise(1, LONG))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.open("w")
    if changes:
        script.write("all-at", {1: [(10 * MIB, b"second")]})
        model.write({1: [(10 * MIB, b"second")]})
    script.close()
    job = site.run(script, 3, 3, STANDS_STILL).check()
    assert is_placeholder(site.path), f"{job}"
    site.expect(model, 3, 3)
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


def test_readers_do_not_end_it(site):
    script = Script().open("wc").write("all-at", parts(noise(1, LONG), 3)).close()
    script.open("r").add("read", 0, site.root / "out", 0).close()
    site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, LONG)
    check_plain(site, Model(noise(1, LONG)))


def test_a_reader_that_is_there_when_it_ends(site):
    """The plain file takes the placeholder's place when nobody in the job reads from the stores any more."""
    script = Script().open("wc", 0).open("r", 1).write("all-at", parts(noise(1, 5 * MIB), 3), 0)
    script.close(0).add("read", 1, site.root / "out", 0).close(1)
    site.run(script, 3, 3, HINTS).check()
    assert (site.root / "out").read_bytes() == noise(1, 5 * MIB)
    check_plain(site, Model(noise(1, 5 * MIB)))


@pytest.mark.parametrize("hints", [HINTS, STANDS_STILL])
def test_deleted_meanwhile(site, hints):
    script = Script().open("wc").write("all-at", parts(noise(1, LONG), 3)).close().add("delete")
    site.run(script, 3, 3, hints)
    assert not site.path.exists()
    if hints is HINTS:
        assert files_in(site) == [] and list(site.path.parent.iterdir()) == []


@pytest.mark.parametrize("what", ["removed", "replaced", "rewritten"])
def test_removed_or_replaced_meanwhile(site, what):
    """Nothing of what stands there by then is touched, and the error is told."""
    change = {"removed": f"rm {site.path}", "rewritten": f"printf other > {site.path}",
              "replaced": f"printf other > {site.path}.x; mv {site.path}.x {site.path}"}[what]
    script = Script().open("wc").write("all-at", parts(noise(1, LONG), 3)).close()
    script.add("@0 shell", change).add("barrier")
    hints = {**HINTS, "flush_rate": 16 * MIB}
    job = site.run(script, 3, 3, hints)
    assert job.stderr.count("could not be written back") == 1, f"{job}"
    assert copies_beside(site) == []
    if what == "removed":
        assert not site.path.exists()
    else:
        assert site.path.read_bytes() == b"other"


def test_unmounted_meanwhile(site, bound):
    """All stays in the stores; once it is mounted again, it can be finished."""
    model = Model(noise(1, LONG))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.add("@0 shell", bound.command("umount")).add("barrier")
    job = site.run(script, 3, 3, {**HINTS, "flush_rate": 16 * MIB})
    assert job.stderr.count("could not be written back") == 1, f"{job}"
    assert list(site.path.parent.iterdir()) == []
    answer = dedupctl(site, "flush")
    assert answer.code == FAILED and "its placeholder is not there" in answer.err, answer
    assert len(files_in(site)) == 3
    assert bound.run("mount").returncode == 0
    assert is_placeholder(site.path)
    site.expect(model, 3, 3)
    assert dedupctl(site, "flush", site.path).code == FINE
    check_plain(site, model)


def test_no_space_is_told_and_nothing_is_lost(site, mount_tmpfs):
    directory = site.path.parent
    mount_tmpfs(directory, "1m")
    model = Model(noise(1, 3 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    job = site.run(script, 3, 3, HINTS).check()
    assert job.stderr.count("is not written back yet") == 1, f"{job}"
    assert job.stderr.count("could not be written back") == 1, f"{job}"
    assert is_placeholder(site.path)
    assert [path.name for path in directory.iterdir()] == ["file"]
    site.expect(model, 3, 3)
    answer = dedupctl(site, "ls")
    assert "0 B of 3.0 MiB written back: " in answer.out and "space" in answer.out, answer
    mount_tmpfs(directory, "10m")
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


def test_the_next_commits_report_tells_what_is_not_written_back(site, mount_tmpfs):
    directory = site.path.parent
    mount_tmpfs(directory, "1m")
    report = site.root / "report"
    model = Model(noise(1, 3 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    # Until a store has been told why.
    script.add("@0 shell", f"until grep -rqs 'o space left' {site.stores}; do sleep 0.02; done").add("barrier")
    (site.root / f"other{directory}").mkdir(parents=True)
    script.add("prefix", f"dedup:{site.root}/other").open("wc").write("all-at", {0: [(0, b"x")]}).close()
    site.run(script, 3, 3, {**HINTS, "report": report})
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert lines[0]["not_written_back"] == []
    (left,) = lines[-1]["not_written_back"]
    assert left["file"] == str(site.path) and "o space" in left["why"], left


def test_room_that_comes_is_used_at_the_next_close(site, mount_tmpfs):
    """A write-back that failed is tried again when the job closes another file."""
    directory = site.path.parent
    mount_tmpfs(directory, "1m")
    model = Model(noise(1, 3 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.add("barrier").add("@0 shell", f"mount -o remount,size=10m {directory}").add("barrier")
    script.open("r").close().add("@0 shell", until_plain(site.path)).add("barrier")
    site.run(script, 3, 3, HINTS).check()
    check_plain(site, model)


def test_stripes_are_written_back(site):
    model = Model(noise(1, 12 * MIB))
    site.write(parts(bytes(model.content), 4), 4, 4,
               {"redundancy": "rs:2+1", "flush": "background"})
    check_plain(site, model)


def test_the_report_of_what_is_left_is_json(site):
    begin_and_stop(site)
    top = json.loads(dedupctl(site, "--json", "top", "--count", "1").out)
    assert 0 < top["bytes_to_write_back"] <= LONG
    file = json.loads(dedupctl(site, "--json", "ls", site.path).out)["files"][0]
    assert 0 <= file["written_back_bytes"] <= file["size"]


# ---- What file systems do ------------------------------------------------------------------------


def copy_fault(what, **more):
    return {"LD_PRELOAD": str(fault_library("copy_faults")), "COPY_FAULT": what,
            **{f"COPY_{name.upper()}": str(value) for name, value in more.items()}}


@pytest.mark.parametrize("flush", ["background", "close"])
def test_what_a_failed_flush_has_dropped_is_written_again(site, flush):
    model = Model(noise(1, 20 * MIB))
    script = Script().open("wc").write("all-at", {0: [(0, bytes(model.content))]}).close()
    job = site.run(script, 1, 1, {"replication": 1, "flush": flush}, copy_fault("lose"))
    if flush == "close":
        assert job.errors_of("close") == ["IO"] and is_placeholder(site.path), f"{job}"
        site.expect(model, 1, 1)
    else:
        job.check()
        check_plain(site, model)


def test_an_error_of_one_writer_is_told_to_the_end(site):
    model = Model(noise(1, 12 * MIB))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 2)).close()
    job = site.run(script, 2, 2, HINTS, copy_fault("refuse", rank=0)).check()
    assert job.stderr.count("is not written back yet") == 1, f"{job}"
    assert job.stderr.count("could not be written back") == 1, f"{job}"
    assert is_placeholder(site.path)
    site.expect(model, 2, 2)
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


def test_two_that_go_on_have_a_copy_each(site):
    """What the slower one writes late is not in what the faster one has put at the path."""
    model = Model(noise(1, 20 * MIB))
    site.write(parts(bytes(model.content), 2), 2, 2, STANDS_STILL)
    go = site.root / "go"
    slow = site.start(Script().open("w").close(), ["n1"], 1, {"replication": 2, "flush": "close"},
                      copy_fault("stall", go=go))
    slow.wait_for(site.root / "go.stalled")
    assert dedupctl(site, "flush", site.path, nodes=["n0"]).code == FINE
    assert site.path.read_bytes() == bytes(model.content)
    with open(site.path, "r+b") as file:
        file.write(b"what the user wrote since")
    go.touch()
    job = slow.finish()
    assert set(job.errors_of("close")) == {"IO"}, f"{job}"
    model.content[:25] = b"what the user wrote since"
    assert site.path.read_bytes() == bytes(model.content)
    assert copies_beside(site) == []


def test_a_stopped_writer_writes_to_nothing_that_counts(site):
    """It is in the middle of a write when somebody opens the file, who then has it written back again."""
    model = Model(noise(1, 12 * MIB))
    go = site.root / "go"
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 2)).close()
    script.add("@0 shell", f"while [ ! -e {go}.stalled ]; do sleep 0.02; done").add("barrier")
    script.add("@0 open", 1, "w", "self").add("@0 close", 1)
    script.add("@0 shell", f"{until_plain(site.path)}; printf mine | dd of={site.path} conv=notrunc status=none")
    script.add("@0 shell", f"touch {go}").add("barrier")
    job = site.run(script, 2, 2, HINTS, copy_fault("stall", rank=1, go=go)).check()
    model.content[:4] = b"mine"
    assert site.path.read_bytes() == bytes(model.content), f"{job}"


@pytest.mark.parametrize("lost", ["n0", "n1"])
@pytest.mark.parametrize("flush", ["background", "close"])
def test_a_node_with_an_empty_store_writes_back_too(site, flush, lost):
    """It has nothing of the generation, and so cannot note what it has written of it."""
    model = Model(noise(1, 9 * MIB))
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 2})
    site.lose(lost)
    site.run(Script().open("w").close(), 3, 3, {"replication": 2, "flush": flush}).check()
    assert site.path.read_bytes() == model.content


@pytest.mark.parametrize("how", ["rm", "delete", "next"])
def test_no_copy_stays_of_what_is_gone(site, how):
    begin_and_stop(site)
    if how == "rm":
        assert dedupctl(site, "rm", site.path).code == FINE
    elif how == "delete":
        site.run(Script().add("delete"), 3, 3, HINTS).check()
    else:
        site.run(Script().open("w").write("all-at", {0: [(0, b"new" * 1000)]}).close(), 3, 3,
                 {"replication": 2}).check()
    assert copies_beside(site) == []


def test_renamed_meanwhile(site):
    """Nothing is put at the old name, nor is the data lost."""
    model = Model(noise(1, LONG))
    moved = site.path.with_name("moved")
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.add("@0 shell", f"mv {site.path} {moved}").add("barrier")
    site.run(script, 3, 3, {**HINTS, "flush_rate": 16 * MIB}).check()
    assert not site.path.exists() and is_placeholder(moved)
    site.path = moved
    site.expect(model, 3, 3)
    assert dedupctl(site, "flush").code == FINE
    assert moved.read_bytes() == bytes(model.content)


# ---- SIGTERM, with 30 s of grace ----------------------------------------------------------------


@pytest.mark.parametrize("where, wait", [("computing", "wait"), ("computing", "leave"), ("finalizing", "wait")])
def test_ended_by_a_batch_system(site, start, where, wait):
    """While it is written back, by a job that goes on or one that waits for it."""
    model = Model(noise(1, LONG))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
    script.add("touch", site.root / "closed").add("wait", site.root / ("never" if where == "computing" else "closed"))
    job = start(script, 3, 3, {**STANDS_STILL, "flush_wait": wait})
    job.wait_for(site.root / "closed")
    job.end_as_batch_systems_do()
    assert is_placeholder(site.path)
    site.expect(model, 3, 3)
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


def test_a_flush_ended_by_a_batch_system(site):
    """The next one goes on with what is noted."""
    model = begin_and_stop(site)
    fault = copy_fault("stall", go=site.root / "go")
    command = [TEST_BUILD / "bin" / "dedupctl", "--store", site.places(), "flush"]
    with subprocess.Popen(command, env={**os.environ, **fault}, stdin=subprocess.DEVNULL, cwd=site.root) as flush:
        while not (site.root / "go.stalled").exists():
            assert flush.poll() is None
            time.sleep(0.01)
        flush.terminate()
        assert flush.wait(30) != 0
    assert is_placeholder(site.path)
    site.expect(model, 3, 3)
    assert dedupctl(site, "flush").code == FINE
    check_plain(site, model)


def every_point(calls, first):
    """Numbers of calls; all with DEDUP_TEST_EVERY_POINT=1."""
    return range(1, calls + 1) if os.environ.get("DEDUP_TEST_EVERY_POINT") else range(first, calls + 1, 13)


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("fault", ["SIGKILL", "EIO", "ENOSPC"])
def test_a_fault_at_every_call(site, fault, rank):
    """Of the write-back of a file that is committed, at any call of a rank or of its node's service: the
    placeholder with everything in the stores, or the whole plain file, and somebody can finish it."""
    model = Model(noise(1, 5 * MIB))  # a part for each node
    script = Script().open("w").close()
    wanted = {"LD_PRELOAD": str(fault_library()), "FAULT_RANK": str(rank)}

    def begin():
        site.run(Script().open("wc").write("all-at", parts(bytes(model.content), 2)).close(),
                 2, 2, {"replication": 2}).check()

    begin()
    count = site.root / "count"
    site.run(script, 2, 2, HINTS, {**wanted, "FAULT_COUNT": str(count)}).check()
    calls = int(count.read_text())
    check_plain(site, model)
    assert calls > 30
    points = every_point(calls, 2 + 5 * rank + len(fault) % 3)
    for call in points:
        begin()
        error = {} if fault == "SIGKILL" else {"FAULT_ERROR": str(getattr(errno, fault)), "FAULT_ONCE": "1"}
        job = site.run(script, 2, 2, HINTS, {**wanted, **error, "FAULT_CALL": str(call)})
        plain = site.path.read_bytes() == bytes(model.content)
        assert plain or is_placeholder(site.path), f"call {call}: {job}"
        assert fault == "SIGKILL" or job.code == 0, f"call {call}: {job}"
        answer = dedupctl(site, "flush", site.path) if not plain else dedupctl(site, "gc")
        assert answer.code == FINE, f"call {call}: {answer}\n{job}"
        assert site.path.read_bytes() == bytes(model.content), f"call {call}"
        site.expect(model, 2, 2)
