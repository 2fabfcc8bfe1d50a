"""ROMIO's own tests, and MPICH's tests of MPI-IO."""

import collections

import pytest

from conftest import built_suite, by_hand_in

Program = collections.namedtuple("Program", "name ranks arguments", defaults=[4, ("-fname", "FILE")])

# As in ROMIO's runtests; in the arguments, FILE stands for a file's name with the driver's prefix.
ROMIO = [
    Program("aggregation1", 4, ("-h", "-f", "FILE")),
    Program("aggregation2", 4, ("FILE",)),
    Program("async"),
    Program("async-multiple"),
    Program("atomicity"),
    Program("big_extents", 4, ("FILE",)),
    Program("coll_test"),
    Program("creat_excl"),
    Program("darray_read", 4, ("FILE",)),
    Program("error", 1),
    Program("excl"),
    Program("file_info"),
    Program("hindexed", 4, ("FILE",)),
    Program("i_noncontig", 2),
    Program("misc"),
    Program("noncontig", 2),
    Program("noncontig_coll", 2),
    Program("noncontig_coll2"),
    Program("ordered_fp"),
    Program("psimple"),
    Program("shared_fp"),
    Program("simple"),
    Program("split_coll"),
    Program("status", 1),
    Program("types_with_zeros", 2, ("FILE",)),
]
# These say nothing when they are content.
SILENT = [Program("perf")]
LARGE = [Program("large_array"), Program("large_file", 1)]  # 4 GB
OTHERS = {"external32", "syshints"}  # have functions of their own here
# coll_perf writes 41 GB.
NOT_RUN = {"coll_perf"}

# Half a minute each.
BY_HAND_IN = {"bigtype": "flush-close", "i_bigtype": "default"}

# As in MPICH's test/mpi/io/testlist.
MPICH = [
    Program("async", 4),
    Program("async_any", 4),
    Program("bigtype", 1),
    Program("external32_derived_dtype", 1),
    Program("getextent", 2),
    Program("hindexed_io", 1),
    Program("i_aggregation1", 4),
    Program("i_aggregation2", 4),
    Program("i_bigtype", 1),
    Program("i_coll_test", 4),
    Program("i_darray_read", 4),
    Program("i_hindexed", 4),
    Program("i_hindexed_io", 1),
    Program("i_noncontig", 2),
    Program("i_noncontig_coll", 2),
    Program("i_noncontig_coll2", 4),
    Program("i_rdwrord", 4),
    Program("i_setviewcur", 4),
    Program("i_types_with_zeros", 2),
    Program("rdwrord", 4),
    Program("rdwrzero", 4),
    Program("resized", 1),
    Program("resized2", 1),
    Program("setinfo", 4),
    Program("setviewcur", 4),
    Program("simple_collective", 1, ("simple_collective.testfile",)),
    Program("tst_fileview", 1),
    Program("userioerr", 1),
    Program("zero_count", 4),
]


def names_of(programs):
    return pytest.mark.parametrize("program", [
        pytest.param(program, id=program.name, marks=by_hand_in(BY_HAND_IN.get(program.name)))
        for program in programs])


@pytest.fixture
def suite():
    return built_suite("mpich")


def run_romio(bed, suite, program):
    arguments = [bed.name("file") if word == "FILE" else word for word in program.arguments]
    return bed.run(program.ranks, suite / "romio" / program.name, *arguments)


@names_of(ROMIO)
def test_romio(bed, suite, program):
    result = run_romio(bed, suite, program)
    if "No Errors" not in result.stdout + result.stderr:
        bed.fail("errors", result)


def check_silent(bed, suite, program):
    result = run_romio(bed, suite, program)
    if "rror" in result.stdout + result.stderr:
        bed.fail("errors", result)


@names_of(SILENT)
def test_romio_silent(bed, suite, program):
    check_silent(bed, suite, program)


@pytest.mark.by_hand
@names_of(LARGE)
def test_romio_large(bed, suite, program):
    check_silent(bed, suite, program)


def test_romio_syshints(bed, suite):
    """Has a file of hints as its file, which it only opens."""
    hints = suite / "romio" / "test_hintfile"
    result = bed.run(1, suite / "romio" / "syshints", hints)
    if "No Errors" not in result.stdout:
        bed.fail("errors", result)


def test_romio_external32(bed, suite):
    """Looks with POSIX at what it has written."""
    if not bed.plain_at_close:
        pytest.skip("external32.c:89 reads with fopen what it wrote")
    result = bed.run(4, suite / "romio" / "external32", all_files=True)
    assert result.stdout.splitlines() == ["native datarep is LITTLE ENDIAN",
                                          "external32 datarep is BIG ENDIAN",
                                          "internal datarep is LITTLE ENDIAN"]


@names_of(MPICH)
def test_mpich(bed, suite, program):
    arguments = [] if "FILE" in program.arguments else program.arguments
    result = bed.run(program.ranks, suite / "mpich" / program.name, *arguments, all_files=True)
    if "No Errors" not in result.stdout:
        bed.fail("errors", result)


def test_no_program_is_forgotten(suite):
    romio = {program.name for program in ROMIO + SILENT + LARGE} | OTHERS | NOT_RUN
    assert romio | {"test_hintfile"} == {path.name for path in (suite / "romio").iterdir()}
    assert {program.name for program in MPICH} == {p.name for p in (suite / "mpich").iterdir()}
