"""NetCDF-4's parallel tests (nc_test4/run_par_test.sh), on Debian's HDF5 for MPICH."""

import pytest

from conftest import built_suite, by_hand_in

# With as many ranks as there. All have names of their own for their files.
PROGRAMS = [
    ("tst_mode", 1), ("tst_mpi_parallel", 4), ("tst_parallel", 4), ("tst_parallel3", 16),
    ("tst_parallel4", 1), ("tst_parallel4", 2), ("tst_parallel4", 4), ("tst_parallel4", 8),
    ("tst_parallel5", 4), ("tst_nc4perf", 4), ("tst_simplerw_coll_r", 1),
    ("tst_simplerw_coll_r", 2), ("tst_simplerw_coll_r", 4), ("tst_parallel_zlib", 4),
    ("tst_parallel_compress", 1), ("tst_parallel_compress", 4), ("tst_quantize_par", 4),
    ("tst_parallel6", 4),
]
# A minute and half a minute.
BY_HAND_IN = {"tst_nc4perf": "flush-close", "tst_parallel3": "default"}


@pytest.fixture
def suite():
    return built_suite("netcdf")


@pytest.mark.parametrize("program, ranks", [
    pytest.param(program, ranks, id=f"{program}-{ranks}", marks=by_hand_in(BY_HAND_IN.get(program)))
    for program, ranks in PROGRAMS])
def test_netcdf(bed, suite, program, ranks):
    bed.run(ranks, suite / "nc_test4" / program, all_files=True)


def test_no_program_is_forgotten(suite):
    assert {program for program, _ in PROGRAMS} == {path.name for path in (suite / "nc_test4").iterdir()}
