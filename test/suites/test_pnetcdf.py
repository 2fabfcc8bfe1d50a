"""PnetCDF's own tests: its scripts, which also run ncvalidator (not in the default configuration,
where there is no plain file that it could read). Not its xfail_runs.sh, which does no MPI-IO."""

import pytest

from conftest import HERE, PREFIX, built_suite, by_hand_in

# As in the Makefile.am of each folder: what wrap_runs.sh runs with one rank, each by itself.
SERIAL = {
    "nc_test": "t_nc tst_misc tst_norm tst_small tst_names tst_atts3 tst_atts",
    "testcases": """
        ncmpi_vars_null_stride vectors collective_error test_varm alignment_test flexible flexible2
        flexible_varm nonblocking noclobber record inq_num_vars varn_int modes one_record
        inq_recsize test_vard test_vard_rec test_vard_multiple varn_contig ivarn check_striping
        add_var buftype_free last_large_var check_type test_erange scalar null_args tst_dimsizes
        mix_collectives large_var_cdf5 tst_max_var_dims tst_info tst_vars_fill tst_def_var_fill
        test_fillvalue error_precedence tst_free_comm erange_fill""",
    "nonblocking": """
        test_bput interleaved i_varn_int64 flexible_bput wait_after_indep req_all i_varn_indef
        large_num_reqs bput_varn column_wise""",
    "cdf_format": "cdf_type dim_cdf12",
}
# What parallel_run.sh runs besides these.
PARALLEL_ONLY = {
    "testcases": "put_all_kinds redef1 iput_all_kinds tst_version",
    "nonblocking": "mcoll_perf",
    "header": "header_consistency",
}
# Programs that only the scripts below run.
IN_SCRIPTS = {
    "nc_test": "tst_nofill nc_test",
    "C": "pres_temp_4D_wr pres_temp_4D_rd",
    "cdf_format": "test_inq_format tst_open_cdf5 tst_corrupt",
}
SCRIPTS = [("C", "seq_runs.sh"), ("C", "parallel_run.sh 4"), ("nc_test", "seq_runs.sh"),
           ("testcases", "seq_runs.sh"), ("nonblocking", "seq_runs.sh"),
           ("cdf_format", "seq_runs.sh"), ("cdf_format", "parallel_run.sh 4")]
# More than a minute.
BY_HAND_IN = {("nc_test", "seq_runs.sh"): "flush-close"}


def programs_of(*tables):
    return [(directory, program) for table in tables for directory, programs in table.items()
            for program in programs.split()]


def each(cases):
    return pytest.mark.parametrize("directory, program", [
        pytest.param(*case, id="-".join(case).replace(" ", "-"), marks=by_hand_in(BY_HAND_IN.get(case)))
        for case in cases])


@pytest.fixture
def suite():
    return built_suite("pnetcdf")


@pytest.fixture
def run_script(bed, suite):
    """Runs a script of a folder as the Makefile does, for one program."""

    def run(directory, script, program="", expect=0):
        place = suite / "test" / directory
        serial = bed.launcher(1, directory=place)
        if PREFIX == "dedup:" and not bed.plain_files:
            serial.insert(0, str(HERE / "without-validator"))
        variables = {
            "SED": "sed", "srcdir": ".", "PNETCDF_DEBUG": "0", "ENABLE_BURST_BUFFER": "0",
            "ENABLE_NETCDF4": "0", "ENABLE_THREAD_SAFE": "0",
            "TESTOUTDIR": bed.name("").rstrip("/"), "TESTSEQRUN": " ".join(serial),
            "TESTMPIRUN": " ".join(bed.launcher("NP", directory=place)),
            "check_PROGRAMS": program,
        }
        words = f"cd {place} && exec ./{script}"
        return bed.run_command(["sh", "-c", words], env=variables, expect=expect)

    return run


@each(programs_of(SERIAL))
def test_serial(run_script, directory, program):
    run_script(directory, f"wrap_runs.sh ./{program}")


@each([case for case in programs_of(SERIAL, PARALLEL_ONLY) if case[0] in PARALLEL_ONLY])
def test_parallel(run_script, directory, program):
    run_script(directory, "parallel_run.sh 4", program)


@each(SCRIPTS)
def test_script(run_script, directory, program):
    run_script(directory, program)


def test_no_program_is_forgotten(suite):
    known = set(programs_of(SERIAL, PARALLEL_ONLY, IN_SCRIPTS))
    there = {(place.parent.name, place.name) for place in (suite / "test").glob("*/*")
             if place.is_file() and place.stat().st_mode & 0o100 and place.suffix != ".sh"}
    assert {case for case in there if case[0] in {name for name, _ in known}} == known
