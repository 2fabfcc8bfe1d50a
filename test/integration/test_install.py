"""What `make install` leaves, for a prefix that is only named then, and `make uninstall`."""

import re
import shutil
import subprocess

import pytest

import form
from conftest import C_FLAGS, SOURCES, clean_environment, files_below, only_dedup, run_guarded
from form import TEST_BUILD

pytestmark = [only_dedup,
              pytest.mark.skipif(form.PREFIX is not None, reason="nothing is installed there")]


def test_installed_for_another_prefix(make, stores, tmp_path):
    prefix = tmp_path / "prefix"
    moved = tmp_path / "moved"
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


def hooks_in(path):
    """What a library or program has of test/hooks: variables that it reads, and functions."""
    variables = set(re.findall(rb"DEDUP_TEST_[A-Z_]*", path.read_bytes()))
    names = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
    assert "dedup::" in names, f"{path} is stripped"
    classes = set(re.findall(r"\b(?:FaultySystem|PacedSystem|PacedDevice|NodePace)\b", names))
    return variables | classes


def test_no_hooks_for_tests_are_installed(make, programs, stores, tmp_path):
    make("install")
    prefix = tmp_path / "prefix"
    found = {"lib/libromio-dedup.so", "bin/dedupctl"}
    for name in found:
        assert hooks_in(prefix / name) == set(), name
        assert hooks_in(TEST_BUILD / name) > {b"DEDUP_TEST_TWIN_BITS", "FaultySystem"}, name

    # A kill, a fault and a pace that a test build takes; all are unknown variables here.
    variables = {"DEDUP_TEST_KILL": "commit.begin:1:0", "DEDUP_TEST_PACE": "store=1",
                 "DEDUP_TEST_FAULT": tmp_path / "none"}
    words = [prefix / "bin" / "dedup-mpiexec", "--store", stores.directory, "-n", "1",
             programs("hints"), "open", stores.name(), "write", "100000", "close"]
    environment = {**clean_environment(), **{name: str(value) for name, value in variables.items()}}
    result = run_guarded(words, environment)
    assert result.returncode == 0, result
    for name in variables:
        assert result.stderr.count(f'unknown variable "{name}"') == 1, result.stderr
