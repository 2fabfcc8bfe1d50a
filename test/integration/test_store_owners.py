"""Stores that are not the user's own, two users on one machine, and readers beside a writer."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from form import TEST_BUILD
from stores import Model, Script, Site, noise, parts, program, shared_site

HINTS = {"replication": 2}
OTHER = 65534  # "nobody"
AS_OTHER = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]


@pytest.fixture
def site(tmp_path, request):
    return getattr(request, "param", Site)(tmp_path)


def content_of(directory):
    """Names, sizes and times of all that is in a directory."""
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in pathlib.Path(directory).rglob("*")}


def expect_refused(site, store, ranks, reason):
    """Opening fails on all ranks, for reading and for writing, and the store is left alone."""
    before = content_of(store.resolve())
    for mode in ("r", "w", "wc"):
        job = site.run(Script().open(mode).close(), 3, ranks, HINTS)
        assert job.errors_of("open") == ["ACCESS"] * ranks, f"{job}"
        assert reason in job.stderr + "".join(e.text for e in job.entries("open")), f"{job}"
    assert content_of(store.resolve()) == before


def test_a_store_that_is_a_link_is_refused(site):
    model = Model(noise(1, 400_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    elsewhere = site.root / "elsewhere"
    site.store("n1").rename(elsewhere)
    site.store("n1").symlink_to(elsewhere)
    expect_refused(site, site.store("n1"), 3, "is a symbolic link")
    site.store("n1").unlink()
    elsewhere.rename(site.store("n1"))
    site.expect(model, 3, 3)


def test_stores_below_a_link_are_used(site):
    """Only the store's own name must not be a link: its parent is the site's business."""
    (site.root / "disk").mkdir()
    site.stores.symlink_to(site.root / "disk")
    model = Model(noise(1, 400_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    assert sorted(path.name for path in (site.root / "disk").iterdir()) == site.node_names()
    site.expect(model, 3, 4)


# ---- Other users ---------------------------------------------------------------------------------


@pytest.fixture
def common():
    """A directory in which everybody may make files."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as two users")
    pathlib.Path(program("play")).parent.chmod(0o755)
    needed = [TEST_BUILD / "bin" / "dedup-mpiexec", program("play")]
    for path in needed:
        if subprocess.run([*AS_OTHER, "test", "-x", path], check=False).returncode != 0:
            pytest.skip(f"another user may not enter {path.parent}")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="dedup-test-"))
    directory.chmod(0o1777)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def users(common):
    """The sites of two users, and the words that run a job of each; they share a directory of
    files."""
    data = common / "data"
    data.mkdir()
    data.chmod(0o1777)
    sites = []
    for name, user in (("root", 0), ("other", OTHER)):
        home = common / name
        home.mkdir()
        os.chown(home, user, user)
        site = Site(home, shared=True)
        site.path = data / name
        sites.append(site)
    return sites


def test_a_store_of_another_user_is_refused(site):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    model = Model(noise(1, 400_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    os.chown(site.store("n1"), OTHER, OTHER)
    expect_refused(site, site.store("n1"), 3, f"belongs to user {OTHER}")
    os.chown(site.store("n1"), 0, 0)
    site.expect(model, 3, 3)


def test_two_users_at_the_same_time(users):
    """Each has stores of its own on the same nodes; neither gets at the other's."""
    models = [Model(noise(number, 400_000)) for number in range(2)]
    jobs = []
    for site, model, wrapper in zip(users, models, ([], AS_OTHER)):
        script = Script().open("wc").write("all-at", parts(bytes(model.content), 3)).close()
        jobs.append(site.start(script, 3, 3, HINTS, wrapper=wrapper))
    for job in jobs:
        job.finish().check()
    for site, model, wrapper, owner in zip(users, models, ([], AS_OTHER), (0, OTHER)):
        assert {path.stat().st_uid for path in site.stores.rglob("*")} == {owner}
        out = site.root / "out"
        script = Script().open("r").add("read", 0, out, 0).close()
        site.run(script, 3, 2, HINTS, wrapper=wrapper).check()
        assert out.read_bytes() == model.content

    first, second = users
    before = content_of(first.stores)
    # The placeholder can be read; the stores that have the data cannot.
    job = second.run(Script().open("r").close(), 3, 3, HINTS, path=first.path, wrapper=AS_OTHER)
    assert job.errors_of("open") == ["IO"] * 3, f"{job}"
    own, second.stores = second.stores, first.stores
    job = second.run(Script().open("r").close(), 3, 3, HINTS, path=first.path, wrapper=AS_OTHER)
    assert job.errors_of("open") == ["ACCESS"] * 3, f"{job}"
    second.stores = own
    # Nor may the other user replace or delete the file, in a directory with the sticky bit.
    for script in (Script().open("w").close(), Script().add("delete")):
        job = second.run(script, 3, 3, HINTS, path=first.path, wrapper=AS_OTHER)
        operation = "open" if "open" in script.lines[0] else "delete"
        assert set(job.errors_of(operation)) - {None} <= {"ACCESS", "IO"}, f"{job}"
    assert content_of(first.stores) == before
    first.expect(models[0], 3, 3)


# ---- Readers beside a writer ---------------------------------------------------------------------


@pytest.mark.parametrize("site", [Site, shared_site], ids=["private", "shared"], indirect=True)
def test_readers_open_while_a_writer_commits(site, start):
    """Every read is of one generation, and none is older than the one before."""
    size = 60_000
    generations = [bytes([number]) * size for number in range(1, 13)]
    site.write(parts(generations[0], 3), 3, 3, HINTS)
    script = Script().open("w")
    for generation in generations[1:]:
        script.write("all-at", parts(generation, 3)).add("sync", 0)
    writer = start(script.close(), 3, 3, HINTS)
    outs = [site.root / f"out{number}" for number in range(12)]
    script = Script()
    for out in outs:
        script.open("r").add("read", 0, out, 0).close()
    reader = start(script, 3, 2, HINTS)
    writer.finish().check()
    reader.finish().check()
    seen = [out.read_bytes() for out in outs]
    assert all(content in generations for content in seen), [set(content) for content in seen]
    order = [generations.index(content) for content in seen]
    assert order == sorted(order), order
    site.expect(Model(generations[-1]), 3, 3)
