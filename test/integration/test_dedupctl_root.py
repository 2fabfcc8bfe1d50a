"""dedupctl of an administrator: root with a user's stores has that user's rights, and no others."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from ctl import FINE, dedupctl
from stores import noise, parts, shared_site

USER = 54321  # whom the system does not know
SIZE = 300_000


@pytest.fixture
def site():
    """Somebody's stores, where he can get to them."""
    if os.geteuid() != 0:
        pytest.skip("only root can act for others")
    root = pathlib.Path(tempfile.mkdtemp())
    root.chmod(0o755)
    made = shared_site(root)
    made.write(parts(noise(1, SIZE), 3), 3, 3)
    for directory in (made.stores, made.path.parent):
        subprocess.run(["chown", "-R", str(USER), directory], check=True)
    yield made
    shutil.rmtree(root)


def owners(directory):
    return {path.stat().st_uid for path in directory.rglob("*")}


def test_a_users_stores_are_looked_at_and_changed_as_he(site):
    answer = dedupctl(site, "ls")
    assert answer.code == FINE and str(site.path) in answer.out, answer
    assert dedupctl(site, "df").code == FINE
    assert dedupctl(site, "check").code == FINE
    target = site.path.parent / "taken"
    assert dedupctl(site, "export", site.path, target).code == FINE
    assert target.read_bytes() == noise(1, SIZE) and target.stat().st_uid == USER
    assert dedupctl(site, "heal").code == FINE
    assert dedupctl(site, "gc").code == FINE
    assert owners(site.stores) == {USER}
    assert dedupctl(site, "rm", site.path).code == FINE
    assert not site.path.exists()


@pytest.mark.parametrize("trick", ["target", "store"])
def test_nothing_of_roots_is_touched(site, trick):
    """What a store or a name leads to is what its user could reach."""
    secret = site.root / "secret"
    secret.mkdir()
    (secret / "file").write_text("root's")
    secret.chmod(0o700)
    if trick == "target":
        link = site.path.parent / "link"
        link.symlink_to(secret)
        assert dedupctl(site, "export", "--force", site.path, link / "file").code != FINE
        assert dedupctl(site, "export", site.path, secret / "new").code != FINE
    else:
        node = site.node_names()[0]
        files = site.store(node) / "files"
        files.rename(site.store(node) / "mine")
        files.symlink_to(secret)
        dedupctl(site, "gc", "--unnamed", "--yes")
        dedupctl(site, "ls")
    assert [path.name for path in secret.iterdir()] == ["file"]
    assert (secret / "file").read_text() == "root's"


def test_stores_of_several_users_are_refused(site):
    nodes = site.node_names()
    subprocess.run(["chown", "-R", str(USER + 1), site.store(nodes[0])], check=True)
    answer = dedupctl(site, "ls")
    assert answer.code != FINE and "one user's stores at a time" in answer.err, answer
    assert str(USER) in answer.err and str(USER + 1) in answer.err
    assert owners(site.store(nodes[0])) == {USER + 1}
