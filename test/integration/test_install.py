"""What `make install` leaves, for a prefix that is only named then, and `make uninstall`."""

import os
import shutil
import subprocess

import pytest

import form
from conftest import C_FLAGS, SOURCES, clean_environment, only_dedup, run_guarded

pytestmark = [only_dedup,
              pytest.mark.skipif(form.PREFIX is not None, reason="nothing is installed there")]


def files_below(directory):
    return sorted(str(path) for path in directory.rglob("*") if not path.is_dir())


def test_installed_for_another_prefix(build, stores, tmp_path):
    prefix = tmp_path / "prefix"
    moved = tmp_path / "moved"

    def make(target):
        result = run_guarded(["make", "-C", build, target, f"prefix={prefix}"], os.environ)
        assert result.returncode == 0, result.stderr

    make("install")
    shutil.move(prefix, moved)  # as with DESTDIR, or a tree that is unpacked elsewhere
    environment = clean_environment()
    environment["PKG_CONFIG_PATH"] = str(moved / "lib" / "pkgconfig")
    flags = subprocess.run(["pkg-config", "--libs", "dedup"], env=environment, check=True,
                           capture_output=True, text=True).stdout.split()
    program = tmp_path / "hints"
    subprocess.run([form.command("mpicc"), *C_FLAGS, SOURCES / "hints.c", "-o", program, *flags],
                   check=True)
    # Neither preloaded nor with LD_LIBRARY_PATH: the program itself knows where the library is.
    environment["DEDUP_STORE"] = str(stores.files / "store")
    result = run_guarded([form.command("mpiexec"), "-n", "2", program, "open", stores.name(),
                          "write", "1000", "close"], environment)
    assert result.returncode == 0, result.stderr
    assert "open 0 MPI_SUCCESS" in result.stdout
    assert any((stores.files / "store").iterdir())
    shutil.move(moved, prefix)
    make("uninstall")
    assert files_below(prefix) == []
