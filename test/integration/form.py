"""The form of the driver that the integration tests run with, and its MPICH.

The MPICH that the build tree is configured for, with the driver preloaded; or, if DEDUP_TEST_MPI
names the prefix of another one, that MPICH, which has the driver inside (test/inside/build).
"""

import os
import pathlib
import re
import shutil
import subprocess

BUILD = pathlib.Path(
    os.environ.get("DEDUP_BUILD") or pathlib.Path(__file__).resolve().parents[2] / "build"
).resolve()
# Its programs and libraries with the hooks that tests need (test/hooks); BUILD has users' own.
TEST_BUILD = BUILD / "test"
PREFIX = os.environ.get("DEDUP_TEST_MPI")


def _mpicc():
    if PREFIX:
        return pathlib.Path(PREFIX) / "bin" / "mpicc"
    makefile = BUILD / "Makefile"
    found = makefile.exists() and re.search("^MPICC = (.+)$", makefile.read_text(), re.MULTILINE)
    # Programs on ROMIO's own driver run without a build tree too.
    return pathlib.Path(found[1] if found else shutil.which("mpicc.mpich") or "mpicc")


MPICC = _mpicc()


def command(name):
    """A command of MPICH's: mpicc, mpifort, mpiexec. Debian's have a suffix, which is kept."""
    return str(MPICC.with_name(MPICC.name.replace("mpicc", name, 1)))


# A faster tier in front of every store, by DEDUP_TEST_TIERS=1 or =LIMIT.
TIERS = os.environ.get("DEDUP_TEST_TIERS")


def fast_tiers(stores):
    """The directory of the faster tiers of the stores in that one."""
    return pathlib.Path(f"{stores}-fast")


def tiers(stores, limit=None):
    """What --store is to be for the stores in this directory; limit: of a faster tier that they have in any case."""
    limit = limit or ("1GiB" if TIERS == "1" else TIERS)
    return f"{fast_tiers(stores)}={limit}:{stores}" if limit else str(stores)


# How MPICH starts and ends takes more than half of most tests' time, with more ranks than cores: its
# ranks meet in loops that do not yield, each looks through all PCI devices, and most of UCX's transports
# are set up for nothing. Each rank as a host of its own, to MPICH, meets nobody. What runs with the
# driver inside, and test/cluster, leave all this as users have it.
QUICK_START = {"MPIR_CVAR_NOLOCAL": "1", "HWLOC_COMPONENTS": "-linuxio", "UCX_TLS": "self,posix"}


def environment():
    """What tells dedup-mpiexec, and MPICH."""
    return {"DEDUP_PRELOAD": "0", "MPIEXEC": command("mpiexec")} if PREFIX else QUICK_START


def _options():
    """What that MPICH was configured with."""
    tool = shutil.which(MPICC.with_name("mpichversion"))
    if tool is None:
        return ""
    return subprocess.run([tool, "-c"], capture_output=True, text=True, check=True).stdout


# Cases of programs that MPICH with its datatype engine "dataloop" does wrong by itself, on ufs: and
# without the driver too (doc/mpich.md).
BEYOND_DATALOOP = {"darray"} if "--with-datatype-engine=dataloop" in _options() else set()
