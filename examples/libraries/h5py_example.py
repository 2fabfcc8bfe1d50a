"""h5py: each rank writes its part of a dataset collectively, then reads its neighbour's.

    dedup-mpiexec -n 4 python3 h5py_example.py dedup:/scratch/run/h5py.h5
"""

import sys

import h5py
import numpy
from mpi4py import MPI

CELLS = 100000
comm = MPI.COMM_WORLD


def cells_of(rank):
    return rank + numpy.arange(CELLS) / CELLS


def part_of(rank):
    return slice(rank * CELLS, (rank + 1) * CELLS)


with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    temperature = file.create_dataset("temperature", (comm.size * CELLS,), "f8")
    with temperature.collective:
        temperature[part_of(comm.rank)] = cells_of(comm.rank)

neighbour = (comm.rank + 1) % comm.size
with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as file:
    with file["temperature"].collective:
        found = file["temperature"][part_of(neighbour)]
wrong = comm.allreduce(int((found != cells_of(neighbour)).sum()))
if comm.rank == 0:
    print(f"{comm.size} ranks, {wrong} wrong")
sys.exit(wrong != 0)
