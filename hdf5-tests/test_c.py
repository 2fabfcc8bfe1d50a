"""C programs with HDF5, parallel and serial, on `dedup:` names."""

import pytest

from conftest import run

LEFT = ["n0", "n1", "n3"]
TRANSFERS = ["collective", "independent"]

# A job reaches the stores of the nodes it runs on: with one rank, those of one node. What it is to
# read must be there.
EVERYWHERE = 4


@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("ranks", [1, 4])
def test_created_file_reads_back_on_other_numbers_of_ranks(bed, programs, ranks, transfer):
    bed.run(ranks, programs / "parallel", "create", bed.file, transfer,
            replication=EVERYWHERE)
    for readers in (1, 3, 8):
        bed.run(readers, programs / "parallel", "check-created", bed.file, transfer)


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_appending_and_resizing_on_another_number_of_ranks(bed, programs, transfer):
    bed.run(4, programs / "parallel", "create", bed.file, transfer, replication=EVERYWHERE)
    bed.run(5, programs / "parallel", "append", bed.file, transfer, replication=EVERYWHERE)
    for readers in (1, 4):
        bed.run(readers, programs / "parallel", "check-appended", bed.file, transfer)


def test_creating_again_replaces_the_content(bed, programs):
    bed.run(4, programs / "parallel", "create", bed.file)
    bed.run(4, programs / "parallel", "append", bed.file)
    bed.run(3, programs / "parallel", "create", bed.file)
    bed.run(4, programs / "parallel", "check-created", bed.file)


def test_file_survives_the_loss_of_a_node(bed, programs):
    bed.run(4, programs / "parallel", "create", bed.file)
    bed.lose("n2")
    bed.run(5, programs / "parallel", "check-created", bed.file, nodes=LEFT)


def test_appending_after_a_loss_restores_the_copies(bed, programs):
    bed.run(4, programs / "parallel", "create", bed.file)
    bed.lose("n2")
    bed.run(3, programs / "parallel", "append", bed.file, nodes=LEFT)
    bed.lose("n0")
    bed.run(2, programs / "parallel", "check-appended", bed.file, nodes=["n1", "n3"])


def test_bytes_of_the_file_are_hdf5_for_everybody(bed, programs):
    bed.run(4, programs / "parallel", "create", bed.file, replication=EVERYWHERE)
    bed.run(4, programs / "parallel", "append", bed.file, replication=EVERYWHERE)
    plain = bed.directory / "plain.h5"
    bed.run(1, programs / "copy", bed.file, plain)
    run(["mpiexec", "-n", 2, programs / "parallel", "check-appended", plain])


def test_serial_program(bed, programs):
    for command in ("create", "check-created", "append", "check-appended"):
        bed.run(1, programs / "serial", command, bed.file, nodes=1)


def test_serial_program_without_mpiexec(bed, programs):
    bed.stores.mkdir()
    env = {"LD_PRELOAD": str(bed.build / "lib" / "libromio-dedup.so"),
           "DEDUP_STORE": str(bed.stores / "%n")}
    for command in ("create", "check-created", "append", "check-appended"):
        run([programs / "serial", command, bed.file], env=env)
    assert (bed.directory / "file.h5").stat().st_size == 4096  # a placeholder


def test_what_a_serial_program_wrote_is_read_on_other_nodes(bed, programs):
    bed.run(1, programs / "serial", "create", bed.file, nodes=["n0"])
    bed.run(4, programs / "serial", "check-created", bed.file)


def test_serial_program_survives_the_loss_of_a_node(bed, programs):
    # Four processes, each with a file of its own, so that all four nodes take part in the job.
    bed.run(4, "sh", "-c", f'{programs}/serial create "{bed.file}.$PMI_RANK"')
    bed.run(4, "sh", "-c", f'{programs}/serial append "{bed.file}.$PMI_RANK"')
    bed.lose("n1")
    for rank in range(4):
        bed.run(3, programs / "serial", "check-appended", f"{bed.file}.{rank}",
                nodes=["n0", "n2", "n3"])
