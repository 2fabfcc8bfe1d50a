"""An h5py program for any number of ranks; the file's content does not depend on it.

usage: h5py_content.py create|append|check-created|check-appended|modes FILE
"""

import os
import sys

import h5py
import numpy as np
from mpi4py import MPI

# h5py makes no call for an empty selection, so each part written or read collectively has at least
# as many rows as there are ranks.
COLUMNS, ROWS, OLD_ROWS, ALL_ROWS, PATCHED, FEW = 300, 211, 67, 193, 13, 9

comm = MPI.COMM_WORLD

# What h5py calls it. It has no name for a driver that took the place of HDF5's own.
DRIVER = os.environ.get("H5PY_CONTENT_DRIVER", "mpio")


def open_file(name, mode):
    return h5py.File(name, mode, driver="mpio", comm=comm)


def content(stage, begin, end):
    rows = np.arange(begin, end, dtype=np.int64)[:, None]
    return rows * 1000003 + np.arange(COLUMNS) * 17 + stage * 7919


def part(begin, end):
    """This rank's share of [begin, end)."""
    count = end - begin
    return (begin + count * comm.rank // comm.size, begin + count * (comm.rank + 1) // comm.size)


def write_rows(dataset, stage, begin, end):
    mine, mine_end = part(begin, end)
    with dataset.collective:
        dataset[mine:mine_end, :] = content(stage, mine, mine_end)


def check_rows(dataset, stage, begin, end):
    mine, mine_end = part(begin, end)
    with dataset.collective:
        found = dataset[mine:mine_end, :]
    assert np.array_equal(found, content(stage, mine, mine_end)), dataset.name
    # All of it on each rank, independently.
    assert np.array_equal(dataset[begin:end, :], content(stage, begin, end)), dataset.name


def create(name):
    with open_file(name, "w") as file:
        assert file.driver == DRIVER
        file.attrs["title"] = "written by h5py"
        file.attrs["numbers"] = np.arange(5.0)
        grid = file.create_group("grid/inner")
        grid.attrs["stage"] = 1
        write_rows(grid.create_dataset("contiguous", (ROWS, COLUMNS), "i8"), 1, 0, ROWS)
        write_rows(grid.create_dataset("chunked", (OLD_ROWS, COLUMNS), "i8", chunks=(16, 64),
                                       maxshape=(None, COLUMNS)), 1, 0, OLD_ROWS)
        # Independent writes of interleaved elements.
        interleaved = grid.create_dataset("interleaved", (1000,), "f8", fillvalue=-1.0)
        interleaved[comm.rank:900:comm.size] = np.arange(comm.rank, 900, comm.size) * 0.5
        file["link"] = h5py.SoftLink("/grid/inner/chunked")


def check_created(name):
    with open_file(name, "r") as file:
        check_common(file)
        assert file["grid/inner"].attrs["stage"] == 1
        check_rows(file["grid/inner/contiguous"], 1, 0, ROWS)
        assert file["link"].shape == (OLD_ROWS, COLUMNS)
        found = file["grid/inner/interleaved"][:]
        assert np.array_equal(found[:900], np.arange(900) * 0.5)
        assert np.all(found[900:] == -1.0)


def check_common(file):
    assert file.attrs["title"] == "written by h5py"
    assert np.array_equal(file.attrs["numbers"], np.arange(5.0))
    check_rows(file["link"], 1, 0, OLD_ROWS)


def append(name):
    with open_file(name, "a") as file:
        check_common(file)
        inner = file["grid/inner"]
        inner.attrs["stage"] = 2
        chunked = inner["chunked"]
        chunked.resize(ALL_ROWS, axis=0)
        write_rows(chunked, 2, OLD_ROWS, ALL_ROWS)
        file.flush()
        write_rows(inner["contiguous"], 2, 0, PATCHED)
        check_rows(inner["contiguous"], 2, 0, PATCHED)
        del inner["interleaved"]
        later = file.create_group("later").create_dataset("small", (20, COLUMNS), "i8",
                                                          chunks=True, maxshape=(30, COLUMNS))
        write_rows(later, 3, 0, 20)
        # Not written to after this: HDF5 1.10.8 loses what is written to a dataset that was shrunk
        # since the file was opened, on any MPI-IO driver.
        later.resize((FEW, COLUMNS))


def check_appended(name):
    with open_file(name, "r") as file:
        check_common(file)
        assert file["grid/inner"].attrs["stage"] == 2
        assert sorted(file["grid/inner"]) == ["chunked", "contiguous"]
        check_rows(file["link"], 2, OLD_ROWS, ALL_ROWS)
        check_rows(file["grid/inner/contiguous"], 2, 0, PATCHED)
        check_rows(file["grid/inner/contiguous"], 1, PATCHED, ROWS)
        assert file["later/small"].shape == (FEW, COLUMNS)
        check_rows(file["later/small"], 3, 0, FEW)


def refuses(name, mode):
    try:
        open_file(name, mode).close()
    except OSError:
        return True
    return False


def modes(name):
    """Every mode of h5py.File, with a file that is not there and with one that is."""
    for mode in ("r", "r+"):
        assert refuses(name, mode), mode
    with open_file(name, "a") as file:
        file.attrs["made by"] = "a"
    assert refuses(name, "w-")
    with open_file(name, "r+") as file:
        assert file.attrs["made by"] == "a"
        file.attrs["made by"] = "r+"
    with open_file(name, "a") as file:
        assert file.attrs["made by"] == "r+"
    with open_file(name, "r") as file:
        assert file.attrs["made by"] == "r+"
        assert file.filename == name
    with open_file(name, "w") as file:
        assert not file.attrs
    with open_file(name + ".new", "x") as file:
        file.attrs["made by"] = "x"
    with open_file(name + ".new", "r") as file:
        assert file.attrs["made by"] == "x"


if __name__ == "__main__":
    {"create": create, "append": append, "check-created": check_created,
     "check-appended": check_appended, "modes": modes}[sys.argv[1]](sys.argv[2])
