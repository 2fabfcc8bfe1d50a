"""adio/add-to-mpich: what it does to an MPICH source tree, on the parts of one that it looks at.

That the result builds and works is what test/inside/build and the tests marked `form` are for.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROMIO = pathlib.Path("src/mpi/romio")
DRIVER = ROMIO / "adio" / "ad_dedup"


@pytest.fixture
def tree(build, tmp_path):
    """The parts of the source of the MPICH that the build tree is configured for."""
    found = re.search(r"^MPICH_SOURCE = (.+)$", (build / "Makefile").read_text(), re.MULTILINE)
    assert found, "the build tree is configured without MPICH"
    source = pathlib.Path(found[1])
    copy = tmp_path / "mpich"
    # cp keeps the times that make goes by.
    for part in ("maint", "src/glue/romio", "src/mpi/init", ROMIO):
        (copy / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", source / part, copy / part], check=True)
    yield copy
    shutil.rmtree(copy)


def add(tree, *options, path=os.environ["PATH"]):
    return subprocess.run([ROOT / "adio" / "add-to-mpich", *options, tree], capture_output=True, text=True,
                          env={**os.environ, "PATH": path}, check=False)


def added(tree, *options, **keywords):
    result = add(tree, *options, **keywords)
    assert result.returncode == 0, result.stderr
    return result.stdout


def state(tree):
    return {path: (path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(tree.rglob("*")) if path.is_file()}


@pytest.mark.long
def test_adding(tree, tmp_path):
    assert "autoreconf in" in added(tree)
    known = re.search(r"^known_filesystems=.*$", (tree / ROMIO / "configure").read_text(),
                      re.MULTILINE)
    assert "dedup" in known[0].split('"')[1].split()
    assert "ad_dedup_engine_la" in (tree / ROMIO / "Makefile.in").read_text()
    for room in ("base", "engine", "hints", "plan", "service", "store"):
        sources = list((ROOT / room).rglob("*.[ch]*"))
        assert sources, f"nothing in {room}/"
        for source in sources:
            assert (tree / DRIVER / source.relative_to(ROOT)).read_bytes() == source.read_bytes()

    # A second time changes nothing, so that make has nothing to do.
    before = state(tree)
    assert added(tree).endswith(": 0 files written\n")
    assert state(tree) == before

    # Only what differs is written.
    changed = tree / DRIVER / "engine" / "close_handle.cc"
    stale = tree / DRIVER / "engine" / "dump" / "gone.cc"
    edited = tree / ROMIO / "adio" / "common" / "ad_fstype.c"
    expected = changed.read_bytes()
    changed.write_text("old\n")
    stale.write_text("old\n")
    edited.write_text(edited.read_text() + "\n")
    assert added(tree).endswith(": 2 files written\n")
    after = state(tree)
    assert {path for path in before if after[path] != before[path]} == {changed, edited}
    assert changed.read_bytes() == expected and not stale.exists()
    assert after[edited][1] == before[edited][1]

    # What tests need is there only if it is asked for. That autoreconf makes something of it is not seen
    # again: it takes long.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "autoreconf").symlink_to(shutil.which("true"))
    quickly = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert not (tree / DRIVER / "test").exists()
    assert "autoreconf in" in added(tree, "--test-hooks", path=quickly)
    hooks = {source.name for source in (ROOT / "test" / "hooks").glob("*.[ch]*")}
    assert {source.name for source in (tree / DRIVER / "test" / "hooks").iterdir()} == hooks
    makefile = (tree / DRIVER / "Makefile.mk").read_text()
    assert "adio/ad_dedup/test/hooks/job.cc" in makefile
    added(tree, path=quickly)
    assert not list((tree / DRIVER).glob("test/hooks/*"))
    assert "test/hooks" not in (tree / DRIVER / "Makefile.mk").read_text()


@pytest.mark.parametrize("file, line", [
    (ROMIO / "configure.ac", "m4_define([known_filesystems_m4_w],"),
    (ROMIO / "configure.ac", "AC_MSG_CHECKING([configured file systems])"),
    (ROMIO / "adio/Makefile.mk", "include $(top_srcdir)/adio/ad_ufs/Makefile.mk"),
    (ROMIO / "adio/include/adio.h", '#include "mpi.h"'),
    (ROMIO / "adio/common/ad_fstype.c", "static struct ADIO_FSTypes fstypes[] = {"),
    (ROMIO / "adio/common/eof_offset.c", "void ADIOI_Get_eof_offset("),
    (pathlib.Path("src/mpi/init/mpir_init.c"), '#include "mpiimpl.h"'),
])
def test_a_place_that_is_not_there(tree, file, line):
    text = (tree / file).read_text()
    assert line in text
    if line.startswith("#include"):
        text = text.replace("#include", "#import")
    else:
        text = text.replace(line, line.replace("_", "-"))
    (tree / file).write_text(text)
    before = state(tree)
    result = add(tree)
    assert result.returncode == 1
    assert result.stderr.startswith("add-to-mpich: MPICH ")
    assert "this script does not know that version" in result.stderr
    assert file.name in result.stderr or "ADIOI_Get_eof_offset" in result.stderr
    assert state(tree) == before


def test_not_a_source_of_mpich(tmp_path):
    result = add(tmp_path)
    assert result.returncode == 1 and "is not an unpacked source of MPICH" in result.stderr
    result = add(tmp_path / "none")
    assert result.returncode == 1 and "there is no directory" in result.stderr
    (tmp_path / "maint").mkdir()
    (tmp_path / "maint" / "version.m4").write_text("m4_define([MPICH_VERSION_m4],[4.0])dnl\n")
    (tmp_path / ROMIO).mkdir(parents=True)
    result = add(tmp_path)
    assert result.returncode == 1 and "needs ./autogen.sh first" in result.stderr
    (tmp_path / ROMIO / "configure").write_text("")
    (tmp_path / ROMIO / "configure").chmod(0o755)
    (tmp_path / "maint" / "version.m4").write_text("m4_define([MPICH_VERSION_m4],[3.4.3])dnl\n")
    result = add(tmp_path)
    assert result.returncode == 1 and "MPICH 3.4.3 is too old" in result.stderr
    assert os.listdir(tmp_path / "src" / "mpi" / "romio") == ["configure"]
