# Sources of engine/: see the root Makefile.am for the variables.

# What needs no MPI: opening, committing, reading, closing, deleting. test/simulation runs it, too.
EXTRA_LTLIBRARIES += libdedup_protocol.la
libdedup_protocol_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
libdedup_protocol_la_SOURCES = \
  engine/attempt.cc \
  engine/attempt.h \
  engine/base_recipe.cc \
  engine/base_recipe.h \
  engine/chunk_source.cc \
  engine/chunk_source.h \
  engine/delete.cc \
  engine/failpoint.cc \
  engine/failpoint.h \
  engine/fence.cc \
  engine/fence.h \
  engine/file_view.cc \
  engine/file_view.h \
  engine/job_file.cc \
  engine/job_file.h \
  engine/leases.cc \
  engine/leases.h \
  engine/leave.cc \
  engine/leave.h \
  engine/local_file.cc \
  engine/local_file.h \
  engine/opening.cc \
  engine/opening.h \
  engine/own_leases.cc \
  engine/own_leases.h \
  engine/plain_file.cc \
  engine/plain_file.h \
  engine/ranks.cc \
  engine/ranks.h \
  engine/reader.cc \
  engine/reader.h \
  engine/search.cc \
  engine/search.h \
  engine/shard_build.cc \
  engine/shard_build.h \
  engine/write_back.cc \
  engine/write_back.h

# What does.
libdedup_engine_la_SOURCES += \
  engine/admin.cc \
  engine/admin.h \
  engine/agreement.cc \
  engine/agreement.h \
  engine/c_interface.cc \
  engine/c_interface.h \
  engine/checked_message.cc \
  engine/checked_message.h \
  engine/chunk_writer.cc \
  engine/chunk_writer.h \
  engine/close.cc \
  engine/commit.cc \
  engine/commit.h \
  engine/dedup.cc \
  engine/dedup.h \
  engine/dump.cc \
  engine/dump.h \
  engine/dump_round.cc \
  engine/dump_round.h \
  engine/exchange.cc \
  engine/exchange.h \
  engine/fault.cc \
  engine/fault.h \
  engine/heal.cc \
  engine/heal.h \
  engine/job.cc \
  engine/job.h \
  engine/log_dump.cc \
  engine/log_dump.h \
  engine/node_chunks.cc \
  engine/node_chunks.h \
  engine/node_plan.cc \
  engine/node_plan.h \
  engine/open.cc \
  engine/open_close.h \
  engine/open_file.h \
  engine/pace.cc \
  engine/pace.h \
  engine/reduction.cc \
  engine/reduction.h \
  engine/single_chunks.cc \
  engine/single_chunks.h \
  engine/report.cc \
  engine/report.h \
  engine/rounds.cc \
  engine/rounds.h \
  engine/set_size.cc \
  engine/set_size.h \
  engine/shared_comms.cc \
  engine/shared_comms.h \
  engine/take_over.cc \
  engine/take_over.h \
  engine/topology.cc \
  engine/topology.h \
  engine/twins.cc \
  engine/twins.h \
  engine/verdict.h \
  engine/wait.cc \
  engine/wait.h \
  engine/writer.cc \
  engine/writer.h

if BUILD_DRIVER
noinst_PROGRAMS += test/integration/programs/exchange_check \
  test/integration/programs/rounds_check test/integration/programs/twins_check
endif
test_integration_programs_rounds_check_SOURCES = test/integration/programs/rounds_check.cc
test_integration_programs_rounds_check_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) \
  -DMPICH_SKIP_MPICXX
test_integration_programs_rounds_check_LDADD = libdedup_engine.la libdedup_core.la $(MPI_LIBS)
test_integration_programs_twins_check_SOURCES = test/integration/programs/twins_check.cc
test_integration_programs_twins_check_CPPFLAGS = \
  $(test_integration_programs_rounds_check_CPPFLAGS)
test_integration_programs_twins_check_LDADD = $(test_integration_programs_rounds_check_LDADD)
test_integration_programs_exchange_check_SOURCES = test/integration/programs/exchange_check.cc
test_integration_programs_exchange_check_CPPFLAGS = \
  $(test_integration_programs_rounds_check_CPPFLAGS)
test_integration_programs_exchange_check_LDADD = $(test_integration_programs_rounds_check_LDADD)
