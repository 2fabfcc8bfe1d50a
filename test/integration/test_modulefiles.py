"""The modulefiles that `make install` writes, for its prefix, with Lmod: the Lua one, and the one in Tcl."""

import os
import pathlib
import shutil
import subprocess

import pytest

import form
from conftest import only_dedup

LMOD = pathlib.Path("/usr/share/lmod/lmod/init/bash")
pytestmark = [only_dedup,
              pytest.mark.skipif(form.PREFIX is not None, reason="nothing is installed there"),
              pytest.mark.skipif(not LMOD.exists(), reason="lmod is not installed")]

# What a shell has before, while the module is loaded, and afterwards.
SHELL = f"""
source {LMOD}
module use $1
seen() {{ env | grep -v -e ^_ -e LMOD -e ModuleTable | sort; }}
seen >$2/before
module load dedup || exit 1
seen >$2/loaded
echo "$(type -P dedup-mpiexec)"
man -w dedup-mpiexec
manpath
pkg-config --variable=preload dedup
module unload dedup
seen >$2/after
"""


def variables(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


@pytest.mark.parametrize("name", ["0.1.0.lua", "0.1.0"])
@pytest.mark.parametrize("given", [{}, {"MANPATH": "/usr/share/man", "LD_LIBRARY_PATH": "/opt/x/lib"}])
def test_loaded_and_unloaded(make, tmp_path, name, given):
    make("install")
    prefix = tmp_path / "prefix"
    modules = tmp_path / "modules"
    (modules / "dedup").mkdir(parents=True)
    shutil.copy(prefix / "share" / "dedup" / "modulefiles" / "dedup" / name, modules / "dedup")

    done = subprocess.run(["bash", "-c", SHELL, "bash", modules, tmp_path], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), **given}, timeout=120)
    assert done.returncode == 0, done
    launcher, page, pages, library = done.stdout.splitlines()
    assert launcher == str(prefix / "bin" / "dedup-mpiexec")
    assert page == str(prefix / "share" / "man" / "man1" / "dedup-mpiexec.1")
    assert "/usr/share/man" in pages.split(":")
    assert os.path.samefile(library, prefix / "lib" / "libromio-dedup.so")

    loaded = variables(tmp_path / "loaded")
    assert loaded["LD_LIBRARY_PATH"] == ":".join([str(prefix / "lib"), *given.get("LD_LIBRARY_PATH", "").split()])
    assert variables(tmp_path / "after") == variables(tmp_path / "before")
    assert loaded != variables(tmp_path / "before")
