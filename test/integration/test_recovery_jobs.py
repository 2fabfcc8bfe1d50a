"""Several jobs at one file at the same time."""

import pytest

from stores import Model, Script, Site, names_file, noise, parts

HINTS = {"replication": 2}


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def first(site):
    """A file of one generation."""
    model = Model(noise(1, 900_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    return model


def test_a_second_writer_is_refused_on_all_ranks(site, first, start):
    opened, may_close = site.root / "opened", site.root / "may_close"
    change = {0: [(0, noise(2, 300_000))]}
    script = Script().open("w").write("all-at", change).add("touch", opened)
    script.add("wait", may_close).close()
    writer = start(script, 3, 3, HINTS)
    writer.wait_for(opened)

    for mode in ("w", "wc"):
        second = site.run(Script().open(mode).close(), 3, 4, HINTS)
        assert second.errors_of("open") == ["FILE_IN_USE"] * 4, f"{second}"
        assert names_file(site.path, second.entries("open")[0].text)
    # Not even on a part of the nodes.
    second = site.run(Script().open("w").close(), ["n1", "n2"], 2, HINTS)
    assert second.errors_of("open") == ["FILE_IN_USE"] * 2, f"{second}"
    # Reading what is committed is allowed.
    site.expect(first, 3, 3)

    may_close.touch()
    writer.finish().check()
    first.write(change)
    site.expect(first, 3, 3)
    site.write({1: [(5, b"x")]}, 3, 3, HINTS, mode="w")


@pytest.mark.form
def test_a_writer_that_dies_frees_the_file(site, first, start):
    opened = site.root / "opened"
    script = Script().open("w").write("at", {0: [(0, b"lost")]}).add("touch", opened)
    script.add("wait", site.root / "never").close()
    writer = start(script, 3, 3, HINTS)
    writer.wait_for(opened)
    writer.kill()
    site.expect(first, 3, 3)
    change = {0: [(0, b"kept")]}
    first.write(change)
    site.write(change, 3, 3, HINTS, mode="w")
    site.check_stores(first, 2)


def test_a_reader_keeps_its_generation(site, first, start):
    """While another job commits twice, and frees what is old otherwise."""
    opened, may_read = site.root / "opened", site.root / "may_read"
    out = site.root / "out"
    script = Script().open("r").add("touch", opened).add("wait", may_read)
    script.add("read", 0, out, 0).add("pieces", 0, site.root / "out2", 10_001).close()
    reader = start(script, 3, 3, HINTS)
    reader.wait_for(opened)

    second = Model(noise(2, 700_000))
    script = Script().open("w").write("all-at", parts(bytes(second.content), 3)).add("sync", 0)
    script.write("all-at", parts(noise(3, 700_000), 3)).add("size", 0, 700_000).close()
    site.run(script, 3, 3, HINTS).check()
    may_read.touch()
    reader.finish().check()
    assert out.read_bytes() == first.content
    assert (site.root / "out2").read_bytes() == first.content

    # When the reader is gone, the next commit frees what it had kept.
    last = Model(noise(3, 700_000))
    site.expect(last, 3, 4)
    change = {2: [(0, b"again")]}
    last.write(change)
    site.write(change, 3, 3, HINTS, mode="w")
    site.check_stores(last, 2)


def test_a_reader_of_a_part_of_the_nodes_keeps_its_generation(site, start):
    model = Model(noise(1, 900_000))
    hints = {"replication": 3}
    site.write(parts(bytes(model.content), 3), 3, 3, hints)
    opened, may_read = site.root / "opened", site.root / "may_read"
    out = site.root / "out"
    script = Script().open("r").add("touch", opened).add("wait", may_read)
    script.add("read", 0, out, 0).close()
    reader = start(script, ["n1", "n2"], 2, hints)
    reader.wait_for(opened)
    new = Model(noise(2, 900_000))
    site.write(parts(bytes(new.content), 3), 3, 3, hints, mode="w")
    may_read.touch()
    reader.finish().check()
    assert out.read_bytes() == model.content
    site.expect(new, 3, 3)


def test_a_file_is_deleted_while_another_job_reads_it(site, first, start):
    """The delete is refused or the reader goes on; either way the reader's bytes are right."""
    opened, may_read = site.root / "opened", site.root / "may_read"
    out = site.root / "out"
    script = Script().open("r").add("touch", opened).add("wait", may_read)
    script.add("read", 0, out, 0).close()
    reader = start(script, 3, 3, HINTS)
    reader.wait_for(opened)
    delete = site.run(Script().add("delete"), 3, 3, HINTS)
    may_read.touch()
    reader.finish().check()
    assert out.read_bytes() == first.content
    (error,) = [entry.error for entry in delete.entries("delete") if entry]
    if error == "SUCCESS":
        gone = site.run(Script().open("r").close(), 3, 3, HINTS)
        assert gone.errors_of("open") == ["NO_SUCH_FILE"] * 3
    else:
        assert error == "FILE_IN_USE"
        site.expect(first, 3, 3)


@pytest.mark.form
def test_two_jobs_with_a_file_each(site, start):
    """In the same stores at the same time."""
    models = [Model(noise(number, 900_000)) for number in range(2)]
    jobs = []
    for number, model in enumerate(models):
        script = Script().open("wc")
        for _ in range(3):
            script.write("all-at", parts(bytes(model.content), 2)).add("sync", 0)
        script.close()
        jobs.append(start(script, 2, 2, HINTS, path=site.root / f"file{number}"))
    for job in jobs:
        job.finish().check()
    for number, model in enumerate(models):
        out = site.root / "out"
        script = Script().open("r").add("read", 0, out, 0).close()
        site.run(script, 2, 3, HINTS, path=site.root / f"file{number}").check()
        assert out.read_bytes() == model.content
        out.unlink()
    assert len(site.walk()["files"]) == 2


def test_two_jobs_create_the_same_file(site, start):
    """The second is refused: there must not be two files under one name."""
    opened, may_close = site.root / "opened", site.root / "may_close"
    model = Model(noise(1, 400_000))
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 2))
    script.add("touch", opened).add("wait", may_close).close()
    creator = start(script, 2, 2, HINTS)
    creator.wait_for(opened)
    for mode in ("wc", "wcx"):
        second = site.run(Script().open(mode).close(), 2, 2, HINTS)
        assert second.errors_of("open") == ["FILE_IN_USE"] * 2, f"{second}"
    may_close.touch()
    creator.finish().check()
    site.expect(model, 2, 2)


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_two_jobs_create_the_same_file_at_once(site, start, number):
    """Each works or is told that the file is in use; the file is then that of one that worked."""
    models = [Model(noise(number, 400_000)), Model(noise(-number, 300_000))]
    jobs = [start(Script().open("wc").write("all-at", parts(bytes(m.content), 2)).close(), 2, 2,
                  HINTS) for m in models]
    worked = []
    for job, model in zip(jobs, models):
        job.finish()
        errors = set(job.errors_of("open"))
        assert errors in ({"SUCCESS"}, {"FILE_IN_USE"}), f"{job}"
        if errors == {"SUCCESS"}:
            worked.append(model.content)
    content = site.read(2, 2)
    # If one followed the other, it has overwritten it from the start.
    expected = worked + [second + first[len(second):] for first in worked for second in worked]
    assert content in [bytes(e) for e in expected]
