"""The Debian package: built, clean for lintian, installed, at work from where it is installed, and removed.

It packs what is in the build tree, which shows the packaging. With DEDUP_TEST_WHOLE_PACKAGE=1 it is built as
anybody would build it, from the sources alone, with its unit tests: for ten minutes and more.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

import form
from conftest import BUILD, clean_environment, files_below, only_dedup, run_guarded

WHOLE = os.environ.get("DEDUP_TEST_WHOLE_PACKAGE") == "1"
pytestmark = [only_dedup, pytest.mark.long,
              pytest.mark.skipif(form.PREFIX is not None, reason="the driver is inside of MPICH: it is no package"),
              pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only")]

ROOT = pathlib.Path(__file__).resolve().parents[2]
DPKG = pathlib.Path("/var/lib/dpkg")
GUARD = 7200 if WHOLE else 900


def run(*command, cwd=None, env=None):
    environment = {**clean_environment(), **(env or {})}
    if cwd:
        command = ["env", "--chdir", cwd, *command]
    result = run_guarded(command, environment, timeout=GUARD)
    assert result.returncode == 0, result
    return result.stdout


@pytest.fixture
def tree(tmp_path):
    """The sources as they are now, which is what a clone has."""
    tree = tmp_path / "dedup-0.1.0"
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def the_one(directory, pattern):
    found = list(directory.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def source_package(tree):
    run("tar", "-cJf", "dedup_0.1.0.orig.tar.xz", f"--exclude={tree.name}/debian", tree.name, cwd=tree.parent)
    run("dpkg-source", "-b", tree.name, cwd=tree.parent)
    return the_one(tree.parent, "*.dsc")


def package(tree):
    """The package's path, and that of the list of all that was built."""
    options = {} if WHOLE else {"DEDUP_PREBUILT": str(BUILD), "DEB_BUILD_OPTIONS": "noautodbgsym"}
    run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=tree, env=options)
    return the_one(tree.parent, "dedup-mpich_*.deb"), the_one(tree.parent, "*.changes")


@pytest.fixture
def dpkg(tmp_path):
    """dpkg with a root of its own, and a copy of this system's list of packages: what is needed must be there."""
    root, admin = tmp_path / "root", tmp_path / "dpkg"
    root.mkdir()
    shutil.copytree(DPKG, admin, ignore=lambda _, names: [name for name in names if name.startswith("lock")])
    # Other packages' would run in that root.
    options = ["--no-triggers", f"--instdir={root}", f"--admindir={admin}"]

    def call(*arguments):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        run("dpkg", *options, *arguments, env={"PATH": path})
        return root

    call.packages = lambda: set(run("dpkg-query", f"--admindir={admin}", "-W", "-f",
                                    "${Package} ${Version} ${Architecture}\n").splitlines())
    return call


# One test, since each worker would build a package of its own.
def test_built_checked_installed_used_and_removed(dpkg, tree):
    description = source_package(tree)
    built, changes = package(tree)
    assert not run("lintian", "--allow-root", "--fail-on", "error,warning", description, changes)

    before = dpkg.packages()
    root = dpkg("--install", built)
    assert [line.split()[0] for line in dpkg.packages() - before] == ["dedup-mpich"]
    run(tree / "debian" / "tests" / "checkpoint", env={"PATH": f"{root}/usr/bin:{os.environ['PATH']}"})

    # A program that is linked with it knows where it is.
    libraries = next(root.glob("usr/lib/*/pkgconfig")).parent
    flags = run("pkg-config", "--libs", "dedup", env={"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}).split()
    program = root.parent / "checkpoint"
    run(form.command("mpicc"), ROOT / "examples" / "checkpoint" / "checkpoint.c", "-o", program, *flags)
    assert str(libraries / "dedup" / "libromio-dedup.so") in os.path.normpath(
        next(line.split()[2] for line in run("ldd", program).splitlines() if "libromio-dedup" in line))

    man = run("man", "-M", root / "usr" / "share" / "man", "-w", "dedupctl", "dedup-run", "dedup-mpiexec", "dedup")
    assert len(man.splitlines()) == 4
    # /usr/bin is in everybody's PATH: a module would take it out.
    assert not list(root.rglob("modulefiles"))

    dpkg("--remove", "dedup-mpich")
    dpkg("--purge", "dedup-mpich")
    assert files_below(root) == []
    assert dpkg.packages() == before
