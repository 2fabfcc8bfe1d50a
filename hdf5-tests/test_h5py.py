"""h5py in parallel (driver="mpio") on `dedup:` names."""

import pytest

from conftest import HERE, PYTHON

LEFT = ["n0", "n1", "n3"]


@pytest.fixture
def h5py_run(bed, h5py_environment):
    """Runs a command of h5py_content.py on the bed's file."""
    def run_command(ranks, command, **options):
        # With -m mpi4py an exception on one rank ends the others too.
        return bed.run(ranks, PYTHON, "-m", "mpi4py", HERE / "h5py_content.py", command, bed.file,
                       env=h5py_environment, **options)
    return run_command


def test_created_file_reads_back_on_other_numbers_of_ranks(h5py_run):
    h5py_run(4, "create", replication=4)  # a job of one rank reaches the store of one node
    for readers in (1, 4, 7):
        h5py_run(readers, "check-created")


def test_mode_a_and_resizing_on_another_number_of_ranks(h5py_run):
    h5py_run(4, "create", replication=4)
    h5py_run(5, "append", replication=4)
    for readers in (2, 4):
        h5py_run(readers, "check-appended")


@pytest.mark.parametrize("ranks", [1, 4])
def test_every_mode_of_opening(h5py_run, ranks):
    h5py_run(ranks, "modes")


def test_file_survives_the_loss_of_a_node(bed, h5py_run):
    h5py_run(4, "create")
    bed.lose("n2")
    h5py_run(5, "check-created", nodes=LEFT)


def test_appending_after_a_loss_restores_the_copies(bed, h5py_run):
    h5py_run(4, "create")
    bed.lose("n2")
    h5py_run(3, "append", nodes=LEFT)
    bed.lose("n0")
    h5py_run(2, "check-appended", nodes=["n1", "n3"])
