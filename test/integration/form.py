"""The form of the driver that the integration tests run with, and its MPICH.

The installed MPICH with the driver preloaded; or, if DEDUP_TEST_MPI names the prefix of another one,
that MPICH, which has the driver inside (test/inside/build).
"""

import os
import pathlib
import shutil

PREFIX = os.environ.get("DEDUP_TEST_MPI")


def command(name):
    """A command of MPICH's: mpicc, mpifort, mpiexec."""
    if PREFIX:
        return str(pathlib.Path(PREFIX) / "bin" / name)
    return shutil.which(f"{name}.mpich") or name


def environment():
    """What tells dedup-mpiexec."""
    return {"DEDUP_PRELOAD": "0", "MPIEXEC": command("mpiexec")} if PREFIX else {}


# Cases of programs that MPICH 4.0.2 with its datatype engine "dataloop" does wrong by itself, on ufs:
# and without the driver too.
BEYOND_DATALOOP = {"darray"} if PREFIX else set()
