"""HDF5's own parallel tests (testpar), on the driver in place of HDF5's own: they say H5Pset_fapl_mpio.

Files are plain ones when they are closed, since most of these programs open serially what they have
written in parallel. What is not here: t_mpi, t_vfd, t_cache and t_cache_image, which are about MPI-IO, other drivers and
HDF5's inside; t_init_term, which opens a file when MPI has ended; t_select_io_dset, which demands that
HDF5 report selections where this driver takes vectors, and finds nothing else; t_bigio, t_2Gio,
t_pmulti_dset and t_filters_parallel, for the time that they take (doc/hdf5.md, "What costs time").
"""

PLAIN = {"DEDUP_FLUSH": "close", "HDF5TestExpress": "3"}
# What the sources print without always ending with a code that says so.
ERRORS = ("*FAILED*", "***FAILED", "Parallel ERROR", "erify failed", "errors found", "failure_mssg")


def run(bed, program, *arguments):
    result = bed.run(4, bed.installation.hdf5 / "testpar" / program, *arguments, preload=True, env=PLAIN)
    assert not any(words in result.stdout + result.stderr for words in ERRORS), result.stdout[-3000:]
    return result


def test_testphdf5(bed):
    """Its test of H5Fset_mpi_atomicity, which is an error here, it leaves out itself with Open MPI 4."""
    assert "PHDF5 tests finished with no errors" in run(bed, "testphdf5").stdout


def test_shapesame(bed):
    run(bed, "t_shapesame")


def test_shutdown(bed):
    """A file that is still open in MPI_Finalize, in which HDF5 closes it, is whole."""
    run(bed, "t_pshutdown")
    assert "PASSED" in run(bed, "t_prestart").stdout
