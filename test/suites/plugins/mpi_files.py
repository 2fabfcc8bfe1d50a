"""A plugin of pytest for h5py's tests: what they use of pytest-mpi, which in Debian needs Open MPI."""

import os
import tempfile

import pytest
from mpi4py import MPI


@pytest.fixture
def mpi_file_name():
    """One name on all ranks, for a file that is not there."""
    comm = MPI.COMM_WORLD
    directory = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    yield os.path.join(directory, "file")
    comm.barrier()
