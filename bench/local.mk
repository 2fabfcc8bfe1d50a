# Sources of bench/: see the root Makefile.am for the variables. bench/run makes bench_programs; hdf5_settings
# is compiled by the script that runs it.
bench_program_names = bench/programs/checkpoint bench/programs/partner_copy bench/programs/pieces \
  bench/programs/rates bench/programs/frames bench/programs/losses bench/programs/recovery \
  bench/programs/background bench/programs/small_files bench/programs/rounds bench/programs/reduction \
  bench/programs/beyond_reduce bench/programs/beyond_reduce_wide bench/programs/beyond_count \
  bench/programs/beyond_place
EXTRA_PROGRAMS += $(bench_program_names)
bench_programs: $(bench_program_names)
.PHONY: bench_programs

EXTRA_LTLIBRARIES += libdedup_bench.la
libdedup_bench_la_SOURCES = \
  bench/programs/common.h \
  bench/programs/options.h \
  bench/programs/processor.h \
  bench/programs/source.cc \
  bench/programs/source.h

bench_cppflags = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) -DMPICH_SKIP_MPICXX $(CLI11_CFLAGS)
bench_libraries = libdedup_bench.la libdedup_bench_data.la libdedup_core.la $(MPI_LIBS)

bench_programs_checkpoint_SOURCES = bench/programs/checkpoint.cc
bench_programs_checkpoint_CPPFLAGS = $(bench_cppflags)
bench_programs_checkpoint_LDADD = $(bench_libraries)

bench_programs_partner_copy_SOURCES = bench/programs/partner_copy.cc
bench_programs_partner_copy_CPPFLAGS = $(bench_cppflags) -D_GNU_SOURCE
bench_programs_partner_copy_LDADD = $(bench_libraries)

bench_programs_pieces_SOURCES = bench/programs/pieces.cc
bench_programs_pieces_CPPFLAGS = $(bench_cppflags)
bench_programs_pieces_LDADD = $(bench_libraries)

# Not one of bench_programs: of what others have to install. REDSET is where.
EXTRA_PROGRAMS += bench/programs/redset
bench_programs_redset_SOURCES = bench/programs/redset.cc
bench_programs_redset_CPPFLAGS = $(bench_cppflags) -isystem $(REDSET)/include
bench_programs_redset_LDADD = $(bench_libraries) -L$(REDSET)/lib -lredset -lrankstr -lkvtree
bench_programs_redset_LDFLAGS = -Wl,-rpath,$(REDSET)/lib

bench_programs_recovery_SOURCES = bench/programs/recovery.cc
bench_programs_recovery_CPPFLAGS = $(bench_cppflags) -D_GNU_SOURCE
bench_programs_recovery_LDADD = $(bench_libraries)

bench_programs_background_SOURCES = bench/programs/background.cc
bench_programs_background_CPPFLAGS = $(bench_cppflags)
bench_programs_background_LDADD = $(bench_libraries)

bench_programs_small_files_SOURCES = bench/programs/small_files.cc
bench_programs_small_files_CPPFLAGS = $(bench_cppflags)
bench_programs_small_files_LDADD = $(bench_libraries)

bench_programs_rates_SOURCES = bench/programs/rates.cc
bench_programs_rates_CPPFLAGS = $(bench_cppflags)
bench_programs_rates_LDADD = $(bench_libraries)

# Without MPI.
bench_programs_frames_SOURCES = bench/programs/frames.cc
bench_programs_frames_LDADD = libdedup_core.la

bench_programs_rounds_SOURCES = bench/programs/rounds.cc
bench_programs_rounds_CPPFLAGS = $(AM_CPPFLAGS) $(CLI11_CFLAGS)

bench_programs_losses_SOURCES = bench/programs/losses.cc
bench_programs_losses_LDADD = libdedup_core.la

# Calls the engine itself.
bench_programs_reduction_SOURCES = bench/programs/reduction.cc
bench_programs_reduction_CPPFLAGS = $(bench_cppflags)
bench_programs_reduction_LDADD = libdedup_engine.la $(bench_libraries)

# The pure parts alone: without MPI.
beyond_sources = \
  bench/programs/beyond/meter.cc \
  bench/programs/beyond/meter.h \
  bench/programs/beyond/sets.cc \
  bench/programs/beyond/sets.h
bench_programs_beyond_reduce_SOURCES = bench/programs/beyond/reduce.cc $(beyond_sources)
bench_programs_beyond_reduce_LDADD = libdedup_core.la
bench_programs_beyond_reduce_wide_SOURCES = bench/programs/beyond/reduce.cc bench/programs/beyond/wide.h \
  $(beyond_sources) plan/reduce.cc
bench_programs_beyond_reduce_wide_CPPFLAGS = $(AM_CPPFLAGS) -include bench/programs/beyond/wide.h
bench_programs_beyond_count_SOURCES = bench/programs/beyond/count.cc $(beyond_sources)
bench_programs_beyond_count_LDADD = libdedup_core.la
bench_programs_beyond_place_SOURCES = bench/programs/beyond/place.cc $(beyond_sources)
bench_programs_beyond_place_LDADD = libdedup_core.la

EXTRA_DIST += bench/hdf5-settings bench/hdf5_settings.c bench/run bench/plot bench/profile bench/README.md \
  bench/performance.md bench/every_target.md \
  bench/harness bench/sections
