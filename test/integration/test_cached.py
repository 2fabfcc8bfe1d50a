"""dedup_flushed=keep: what is at its path as a plain file stays in the stores as a cache."""

import os

import pytest

from stores import Model, Script, fault_library, is_placeholder, noise, parts, shared_site
from test_write_back import files_in

MIB = 1 << 20
KEEP = {"replication": 2, "flush": "close", "flushed": "keep"}
SIZE = 40 * MIB + 5


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def is_plain_alone(site, model):
    """The file is plain and whole, and nothing is beside it."""
    assert site.path.read_bytes() == bytes(model.content)
    assert [path.name for path in site.path.parent.iterdir()] == [site.path.name]


class Count:
    """What processes read and write of the plain file while this is on."""

    def __init__(self, site):
        self.site = site
        self.to = site.root / "counted"
        library = fault_library("count_io")
        site.variables.update(LD_PRELOAD=library, COUNT_DIRECTORY=site.path.parent, COUNT_TO=self.to)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in ("LD_PRELOAD", "COUNT_DIRECTORY", "COUNT_TO"):
            del self.site.variables[name]
        counted = [line.split() for line in self.to.read_text().splitlines()] if self.to.exists() else []
        self.read = sum(int(read) for read, _ in counted)
        self.written = sum(int(written) for _, written in counted)


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
    site.lose("1")
    with Count(site) as count:
        site.expect(model, ["0", "2"], 2)
    assert count.read == 0
    # Too many: the plain file is there.
    site.lose("2")
    with Count(site) as count:
        site.expect(model, ["0"], 1)
    assert count.read >= SIZE


def test_deleting_it_frees_the_stores(site):
    site.write(parts(noise(1, SIZE), 3), 3, 3, KEEP)
    site.run(Script().add("delete"), 3, 3, KEEP).check()
    assert not site.path.exists()
    assert files_in(site) == []
