# Sources of bench/: see the root Makefile.am for the variables. bench/run makes bench_programs; hdf5_settings
# is compiled by the script that runs it.
EXTRA_PROGRAMS += bench/programs/memory
bench_programs: bench/programs/memory
.PHONY: bench_programs

bench_programs_memory_SOURCES = bench/programs/memory.c
bench_programs_memory_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
bench_programs_memory_LDADD = $(MPI_LIBS)

EXTRA_DIST += bench/hdf5-settings bench/hdf5_settings.c bench/run bench/plot bench/performance.md bench/harness \
  bench/sections
