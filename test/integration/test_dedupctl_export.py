"""dedupctl export, cat and import."""

import errno
import os
import shutil

import pytest

from ctl import FAILED, FINE, NO_FILE, PROBLEMS, dedupctl
from stores import Model, Site, fault_library, is_placeholder, noise, parts, shared_site

FOUR = ["n0", "n1", "n2", "n3"]
BLOCK = 4 << 20
HINTS = {"replication": 2}


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def write_four(site, path=None):
    """In several blocks, with a hole of more than one and zeros at the end."""
    pieces = {rank: [(rank * BLOCK // 3 + 7, noise("same", 100_000) + noise(rank, 100_000))]
              for rank in range(4)}
    pieces[3].append((5 * BLOCK - 10, bytes(100_010)))
    model = Model()
    model.write(pieces)
    if path is not None:
        site.path = path
    site.write(pieces, FOUR, 4, HINTS, how="all-view")
    return model


def flip(site, node, step):
    for segment in (site.file_directory(node) / "segments").iterdir():
        content = bytearray(segment.read_bytes())
        for place in range(64 + 50, len(content), step):
            content[place] ^= 0x10
        segment.write_bytes(content)


def test_export(site, where):
    model = write_four(site)
    answer = dedupctl(site, "export", site.path, "out", nodes=where(FOUR), ranks=6)
    assert answer.code == FINE, answer
    out = site.root / "out"
    assert out.read_bytes() == bytes(model.content)
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o666 & ~umask
    assert out.stat().st_blocks * 512 < out.stat().st_size // 2, "holes stay holes"
    assert is_placeholder(site.path)


def test_export_after_a_loss(site, where):
    model = write_four(site)
    site.lose("n1")
    answer = dedupctl(site, "export", site.path, "out", nodes=where(["n0", "n2", "n3"]))
    assert answer.code == FINE, answer
    assert (site.root / "out").read_bytes() == bytes(model.content)


def test_export_takes_good_copies(site, where):
    model = write_four(site)
    flip(site, "n1", 3000)
    answer = dedupctl(site, "export", site.path, "out", nodes=where(FOUR))
    assert answer.code == FINE, answer
    assert (site.root / "out").read_bytes() == bytes(model.content)


def test_what_is_lost_is_not_exported_unless_asked(site, where):
    model = write_four(site)
    site.lose("n1", "n2", "n3")
    answer = dedupctl(site, "export", site.path, "out", nodes=where(["n0"]))
    assert answer.code == PROBLEMS and "n1" in answer.err, answer
    assert not (site.root / "out").exists() and not list(site.root.glob(".out*"))
    answer = dedupctl(site, "--json", "export", "--incomplete", site.path, "out",
                      nodes=where(["n0"]))
    assert answer.code == PROBLEMS and answer.file["lost_bytes"] > 0, answer
    found = (site.root / "out").read_bytes()
    assert len(found) == len(model.content)
    assert all(a in (b, 0) for a, b in zip(found, model.content))


def test_nothing_is_overwritten_unless_asked(site, where):
    model = write_four(site)
    out = site.root / "out"
    out.write_bytes(b"precious")
    answer = dedupctl(site, "export", site.path, out, nodes=where(FOUR))
    assert answer.code == FAILED and "--force" in answer.err, answer
    assert out.read_bytes() == b"precious"
    assert dedupctl(site, "export", "--force", site.path, out, nodes=where(FOUR)).code == FINE
    assert out.read_bytes() == bytes(model.content)
    answer = dedupctl(site, "export", site.path, site.root / "none" / "out")
    assert answer.code == FAILED and "directory is not there" in answer.err, answer


def test_export_all_to_the_original_paths(site, where):
    """As a job's epilogue does. The permissions are kept."""
    models = {name: write_four(site, site.root / "data" / name) for name in ("a", "b")}
    (site.root / "data" / "a").chmod(0o640)
    answer = dedupctl(site, "export", "--all", nodes=where(FOUR))
    assert answer.code == FINE, answer
    for name, model in models.items():
        assert (site.root / "data" / name).read_bytes() == bytes(model.content)
    assert (site.root / "data" / "a").stat().st_mode & 0o777 == 0o640
    assert dedupctl(site, "check").code == FINE, "the stores still have it"
    answer = dedupctl(site, "export", "--all", nodes=where(FOUR))
    assert answer.code == FINE and "left out" in answer.err, answer


def test_export_all_to_a_directory(site, where):
    """Also of a file whose own directory is gone; not of one that was removed."""
    models = {name: write_four(site, site.root / "data" / name) for name in ("a", "b")}
    (site.root / "data" / "b").unlink()
    answer = dedupctl(site, "export", "--all", "out", nodes=where(FOUR))
    assert answer.code == FINE and "left out" in answer.err, answer
    out = site.root / "out" / str(site.root / "data")[1:]
    assert [path.name for path in out.iterdir()] == ["a"]
    shutil.rmtree(site.root / "data")
    shutil.rmtree(site.root / "out")
    assert dedupctl(site, "export", "--all", "out", nodes=where(FOUR)).code == FINE
    assert (out / "a").read_bytes() == bytes(models["a"].content)
    assert (out / "b").read_bytes() == bytes(models["b"].content)


def test_export_all_finds_what_was_moved(site, where):
    """Rotated in its directory, into one below it, and to where only --search finds it."""
    data = site.root / "data"
    models = {}
    for seed in ("far", "below", "beside", "here"):
        models[seed] = Model(noise(seed, 200_001))
        site.path = data / "x"
        site.write(parts(bytes(models[seed].content), 4), FOUR, 4, HINTS)
        if seed == "far":
            (site.root / "far" / "away").mkdir(parents=True)
            site.path.rename(site.root / "far" / "away" / "x")
        elif seed == "below":
            (data / "old").mkdir()
            site.path.rename(data / "old" / "x")
        elif seed == "beside":
            site.path.rename(data / "x.old")
    stands = {"far": site.root / "far" / "away" / "x", "below": data / "old" / "x",
              "beside": data / "x.old", "here": data / "x"}
    shutil.copy(data / "x.old", data / "copy")

    def files():
        return dedupctl(site, "--json", "ls").json["files"]

    assert {(file["at_path"], file.get("stands_at")) for file in files()} == {
        ("replaced", None), ("moved", str(stands["below"])), ("moved", str(stands["beside"])),
        ("placeholder", str(stands["here"]))}
    answer = dedupctl(site, "--json", "--search", site.root / "far", "export", "--all", "out",
                      nodes=where(FOUR))
    assert answer.code == FINE and len(answer.json["files"]) == 4, answer
    for seed, path in stands.items():
        assert is_placeholder(path)
        out = site.root / "out" / str(path)[1:]
        assert out.read_bytes() == bytes(models[seed].content), seed
    answer = dedupctl(site, "export", "--all", nodes=where(FOUR))
    assert answer.code == FINE and "--search" in answer.err, answer
    assert is_placeholder(stands["far"]) and is_placeholder(data / "copy")
    for seed in ("below", "beside", "here"):
        assert stands[seed].read_bytes() == bytes(models[seed].content), seed
    # Once it was read where it is, it is found there.
    site.path = stands["far"]
    site.expect(models["far"], 4, 4)
    answer = dedupctl(site, "export", "--all", nodes=where(FOUR))
    assert answer.code == FINE, answer
    assert stands["far"].read_bytes() == bytes(models["far"].content)


def test_by_identity_into_a_directory(site):
    model = write_four(site)
    identity = dedupctl(site, "--json", "ls").file["identity"]
    (site.root / "out").mkdir()
    site.path.unlink()
    assert dedupctl(site, "export", identity, "out").code == FINE
    assert (site.root / "out" / "file").read_bytes() == bytes(model.content)


def test_cat(site, where):
    model = write_four(site)
    answer = dedupctl(site, "cat", f"dedup:{site.path}", nodes=where(FOUR), text=False)
    assert answer.code == FINE and answer.out == bytes(model.content)
    assert dedupctl(site, "cat", "nothing", nodes=where(FOUR)).code == NO_FILE


def test_without_a_shared_file_system(tmp_path):
    """Rank 0 then writes all of it."""
    site = Site(tmp_path)
    model = Model(noise(1, 3 * BLOCK))
    site.write(parts(bytes(model.content), 3), FOUR[:3], 3, HINTS)
    answer = dedupctl(site, "export", site.path, "out", nodes=FOUR[:3])
    assert answer.code == FINE, answer
    assert (site.root / "out").read_bytes() == bytes(model.content)


@pytest.mark.parametrize("in_job", [True, False])
def test_import(site, in_job):
    """Without a job it starts one, a rank for each store of this host."""
    write_four(site, site.root / "data" / "other")
    site.path = site.root / "data" / "file"
    content = noise(1, 9 * BLOCK // 4) + bytes(BLOCK)
    source = site.root / "source"
    source.write_bytes(content)
    source.chmod(0o640)
    nodes = FOUR if in_job else None
    answer = dedupctl(site, "import", source, site.path, nodes=nodes, hints=HINTS)
    assert answer.code == FINE, answer
    assert is_placeholder(site.path) and site.path.stat().st_mode & 0o777 == 0o640
    answer = dedupctl(site, "--json", "check", site.path)
    assert (answer.code, answer.file["size"]) == (FINE, len(content)), answer
    assert len(answer.file["stores"]) == 4 and answer.file["wanted_copies"] == 2
    site.expect(Model(content), 4, 4)
    answer = dedupctl(site, "import", source, site.path, nodes=nodes, hints=HINTS)
    assert answer.code == FAILED and "--force" in answer.err, answer


@pytest.mark.parametrize("call", [1, 5, 9])
def test_an_import_that_fails_leaves_what_was_there(site, monkeypatch, call):
    """One write to a store fails, and all after it would do."""
    monkeypatch.setenv("LD_PRELOAD", str(fault_library()))
    for name, value in {"RANK": 0, "CALL": call, "ERROR": errno.EIO, "ONCE": 1,
                        "ONLY": "pwritev64"}.items():
        monkeypatch.setenv("FAULT_" + name, str(value))
    source = site.root / "source"
    source.write_bytes(noise(2, 40 << 20))
    hints = {**HINTS, "buffer": 4 << 20}
    answer = dedupctl(site, "import", source, site.path, nodes=FOUR[:2], hints=hints)
    assert answer.code == FAILED and "Input/output error" in answer.err, answer
    for name in ("LD_PRELOAD", "FAULT_RANK"):
        monkeypatch.delenv(name)
    assert not site.path.exists()
    old = Model(noise(1, 300_000))
    site.write(parts(bytes(old.content), 2), 2, 2, HINTS)
    monkeypatch.setenv("LD_PRELOAD", str(fault_library()))
    monkeypatch.setenv("FAULT_RANK", "0")
    answer = dedupctl(site, "import", "--force", source, site.path, nodes=FOUR[:2], hints=hints)
    assert answer.code == FAILED and "Input/output error" in answer.err, answer
    for name in ("LD_PRELOAD", "FAULT_RANK"):
        monkeypatch.delenv(name)
    site.expect(old, 2, 2)
    answer = dedupctl(site, "import", "--force", source, site.path, nodes=FOUR[:2], hints=hints)
    assert answer.code == FINE, answer
    site.expect(Model(source.read_bytes()), 2, 2)


def test_import_in_place(site):
    content = noise(1, 3 * BLOCK // 2)
    site.path.write_bytes(content)
    answer = dedupctl(site, "import", site.path, nodes=FOUR[:3], hints=HINTS)
    assert answer.code == FINE, answer
    assert is_placeholder(site.path)
    site.check_stores(Model(content), 2)
    site.expect(Model(content), 3, 3)
    answer = dedupctl(site, "import", site.path, nodes=FOUR[:3], hints=HINTS)
    assert answer.code == FAILED and "already" in answer.err, answer
