"""The driver for HDF5, under Open MPI: hdf5-tests' programs, unchanged, and some that name it."""

import pytest

from conftest import mpich

LEFT = ["n0", "n1", "n3"]
TRANSFERS = ["collective", "independent"]


def parallel(bed, open_programs, ranks, *arguments, **keywords):
    """A program that says H5Pset_fapl_mpio: HDF5_DRIVER=dedup, with the library preloaded."""
    return bed.run(ranks, open_programs / "parallel", *arguments, preload=True, **keywords)


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_on_other_numbers_of_ranks(bed, open_programs, transfer):
    parallel(bed, open_programs, 4, "create", bed.file, transfer, replication=4)
    assert bed.file.stat().st_size == 4096  # a placeholder
    for readers in (1, 3):
        parallel(bed, open_programs, readers, "check-created", bed.file, transfer)
    parallel(bed, open_programs, 5, "append", bed.file, transfer)
    parallel(bed, open_programs, 4, "check-appended", bed.file, transfer)


def test_survives_the_loss_of_a_node(bed, open_programs):
    parallel(bed, open_programs, 4, "create", bed.file)
    bed.lose("n2")
    parallel(bed, open_programs, 3, "append", bed.file, nodes=LEFT)
    bed.lose("n0")
    parallel(bed, open_programs, 2, "check-appended", bed.file, nodes=["n1", "n3"])


def test_it_is_the_file_that_romio_has(bed, open_programs, programs):
    """One file, written in turn by an Open MPI and by an MPICH with HDF5 1.10."""
    parallel(bed, open_programs, 4, "create", bed.file)
    bed.mpich.run(4, programs / "parallel", "check-created", f"dedup:{bed.file}")
    bed.mpich.run(4, programs / "parallel", "append", f"dedup:{bed.file}")
    parallel(bed, open_programs, 4, "check-appended", bed.file)
    parallel(bed, open_programs, 4, "create", f"dedup:{bed.file}")
    bed.mpich.run(3, programs / "parallel", "check-created", f"dedup:{bed.file}")


def test_its_bytes_are_hdf5_for_everybody(bed, open_programs, programs):
    parallel(bed, open_programs, 4, "create", bed.file)
    plain = bed.directory / "plain.h5"
    stores = [word for node in sorted(bed.stores.iterdir()) for word in ("--store", node)]
    mpich.run([bed.dedupctl, *stores, "export", bed.file, plain])
    mpich.run(["mpiexec", "-n", 2, programs / "parallel", "check-created", plain])
    # Every copy of every chunk, too, is what its fingerprint says.
    mpich.run([bed.dedupctl, *stores, "check"])


def test_flushed_it_is_a_plain_file(bed, open_programs):
    env = {"DEDUP_FLUSH": "close"}
    parallel(bed, open_programs, 4, "create", bed.file, env=env)
    dump = mpich.run([bed.installation.openmpi / "bin" / "run", bed.installation.hdf5 / "bin" / "h5dump", "-H",
                      bed.file])
    assert "GROUP \"grid\"" in dump.stdout


def test_programs_that_name_it_are_not_preloaded(bed, open_programs):
    bed.run(4, open_programs / "driver", "types", bed.file)


def test_what_was_never_written_is_zeros(bed, open_programs):
    bed.run(3, open_programs / "driver", "unwritten", bed.file)


def test_what_it_has_not_is_an_error(bed, open_programs):
    bed.run(2, open_programs / "driver", "refused", bed.file)


@pytest.mark.parametrize("config", ["", "job=world"])
def test_files_of_different_ranks(bed, open_programs, config):
    result = bed.run(4, open_programs / "driver", "jobs", bed.directory, env={"HDF5_DRIVER_CONFIG": config})
    # A rank that opens its first file alone has no node to copy to, unless its job is the world's.
    assert ("2 copies are wanted" in result.stderr) == (config == "")


def test_program_without_mpi(bed, open_programs):
    program = open_programs / "driver"
    bed.run_alone(program, "serial-create", bed.file)
    assert bed.file.stat().st_size == 4096
    bed.run_alone(program, "serial-check", bed.file)
    dump = bed.run_alone(bed.installation.hdf5 / "bin" / "h5dump", "-A", bed.file)
    assert "of a program that knows nothing of MPI" in dump.stdout
    bed.run_alone(program, "serial-leave-open", bed.file)
    bed.run_alone(program, "serial-check", bed.file)
    bed.run_alone(program, "delete", bed.file)
    assert not bed.file.exists()


def test_serial_files_of_a_parallel_program(bed, open_programs):
    bed.run(1, open_programs / "serial", "create", bed.file, preload=True, nodes=1, replication=1)
    bed.run(1, open_programs / "serial", "append", bed.file, preload=True, nodes=1, replication=1)
    bed.run(1, open_programs / "serial", "check-appended", bed.file, preload=True, nodes=1, replication=1)


@pytest.mark.parametrize("config,said", [
    ("", "no such file"),
    ("dedup_store", '"dedup_store" has no ='),
    ("dedup_replication=many", "dedup_replication"),
])
def test_errors_are_on_hdf5s_stack(bed, open_programs, config, said):
    result = bed.run_alone(open_programs / "driver", "failing", bed.directory / "none.h5",
                           env={"HDF5_DRIVER_CONFIG": config})
    assert said in result.stdout, result.stdout + result.stderr


def test_hints_come_from_the_configuration(bed, open_programs):
    elsewhere = bed.directory / "elsewhere"
    bed.run_alone(open_programs / "driver", "serial-create", bed.file,
                  env={"HDF5_DRIVER_CONFIG": f"dedup_store={elsewhere};dedup_replication=1"})
    assert any(elsewhere.iterdir())
