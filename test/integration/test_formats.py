"""What earlier versions of this software wrote into stores is read, or refused by name.

test/data/formats has a folder for each set of format versions that a release or `main` wrote: the
stores of some nodes and what stood at the real path. A new version of a format adds a folder, and
none goes as long as its versions are read:

    /usr/bin/python3 test/integration/test_formats.py test/data/formats/NAME [logs]
"""

import pathlib
import shutil
import sys
import tempfile

import pytest

from ctl import FINE, dedupctl
from stores import AS_IF_MUCH, Model, Script, Site, difference, noise, shared_site

HINTS = {"redundancy": "xor:2", "chunk_size": 512}
NODES = ["n0", "n1", "n2"]  # that a folder has now; those before stripes have two
FORMATS = pathlib.Path(__file__).resolve().parents[1] / "data" / "formats"
LOGS = FORMATS / "2026-11-logs"  # with segments of version 3, of another file
FOLDERS = sorted(set(FORMATS.iterdir()) - {LOGS})
HAVE_KEPT = ["2026-11-kept", "2026-11-differences", "2026-11-stripes", "2026-11-repeats"]


def generations():
    """Two, so that the second has chunks of the first: what twins have, single ones, zeros, a hole, an
    odd end, and a few bytes that are written again."""
    shared = noise("shared", 2000)
    first = {rank: [(rank * 5000, shared + noise(rank, 1000) + bytes(1024))] for rank in range(3)}
    first[2].append((20_000, noise("end", 777)))
    second = {0: [(300, noise("again", 900))], 1: [(30_000, noise("new", 1300))]}
    return first, second


def content(newest=True):
    model = Model()
    for pieces in generations()[:2 if newest else 1]:
        model.write(pieces)
    return bytes(model.content)


def make(directory):
    """Writes a folder with this software's versions."""
    with tempfile.TemporaryDirectory() as root:
        site = Site(root, shared=True)
        first, second = generations()
        site.write(first, NODES, 3, HINTS, how="all-view")
        site.run(Script().open("w").write("all-at", second).close(), NODES, 3, {**HINTS, "keep": 2}).check()
        # Nothing changes, so that the recipe's blocks stay where they are.
        assert site.run(Script().add("heal", 0, 0), NODES, 3).code == 0
        assert difference(site.read(NODES, 3), content()) is None
        shutil.copytree(site.stores, directory / "stores")
        shutil.copy(site.path, directory / "placeholder")


def logged():
    """Independent writes of two ranks: one over another, zeros, and what both have."""
    return {rank: [(rank * 40_000 + 5000, noise(f"below {rank}", 3000)),
                   (rank * 40_000, noise(f"log {rank}", 30_000) + bytes(2048) + noise("both", 2048))] for rank in range(2)}


def make_logs(directory):
    with tempfile.TemporaryDirectory() as root:
        site = Site(root, shared=True)
        site.run(Script().open("wc").write("at", logged()).close(), 2, 2, {"replication": 1, "chunk_size": 512},
                 AS_IF_MUCH).check()
        shutil.copytree(site.stores, directory / "stores")
        shutil.copy(site.path, directory / "placeholder")


def site_with(folder, directory):
    site = shared_site(directory)
    shutil.copytree(folder / "stores", site.stores)
    # Nobody else's business; git keeps no permissions.
    for path in [site.stores, *site.stores.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    # Git keeps no empty directories either.
    site.nodes = site.node_names()
    for node in site.nodes:
        (site.stores / node / "marks").mkdir(mode=0o700, exist_ok=True)
        for file in (site.stores / node / "files").iterdir():
            (file / "logs").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / "placeholder", site.path)
    return site


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def site(request, tmp_path):
    site = site_with(request.param, tmp_path)
    site.has_kept = request.param.name in HAVE_KEPT
    return site


def test_segments_that_were_logs_are_read(tmp_path):
    site = site_with(LOGS, tmp_path)
    model = Model()
    model.write(logged())
    found = [path for path in site.stores.rglob("*.seg") if path.read_bytes()[8] == 3]
    assert len(found) == 2
    site.check_stores(model, 1)
    site.expect(model, 2, 2)
    assert dedupctl(site, "check", site.path).code == FINE


def identity(site):
    answer = dedupctl(site, "--json", "ls", site.path)
    assert answer.code == FINE, answer
    return answer.file["identity"]


def test_it_is_read(site):
    site.expect(Model(content()), site.nodes, len(site.nodes))


@pytest.mark.parametrize("lost", [[], ["n0"], ["n1"]], ids=["whole", "without-n0", "without-n1"])
def test_it_is_exported_and_sound(site, lost):
    left = [node for node in site.nodes if node not in lost]
    stores = [site.stores / node for node in left]
    answer = dedupctl(site, "export", identity(site), "out", stores=stores)
    assert answer.code == FINE, answer
    assert difference((site.root / "out").read_bytes(), content()) is None
    if not lost:
        answer = dedupctl(site, "check", identity(site), stores=stores)
        assert answer.code == FINE, answer


def test_the_generation_before_is_read_where_it_was_kept(site):
    kept = dedupctl(site, "--json", "ls", site.path).file.get("kept", [])
    assert kept == ([1] if site.has_kept else [])
    if kept:
        site.expect(Model(content(newest=False)), site.nodes, len(site.nodes), hints={"generation": -1})


if __name__ == "__main__":
    (make_logs if sys.argv[2:] == ["logs"] else make)(pathlib.Path(sys.argv[1]))
