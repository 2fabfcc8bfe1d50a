# Sources of engine/: see the root Makefile.am for the variables.

# What needs no MPI: opening, committing, reading, closing, deleting. test/simulation runs it, too.
EXTRA_LTLIBRARIES += libdedup_protocol.la
libdedup_protocol_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
libdedup_protocol_la_SOURCES = \
  engine/protocol/base_recipe.cc \
  engine/protocol/base_recipe.h \
  engine/protocol/chunk_source.cc \
  engine/protocol/chunk_source.h \
  engine/protocol/delete_file.cc \
  engine/protocol/delete_file.h \
  engine/protocol/failpoint.cc \
  engine/protocol/failpoint.h \
  engine/protocol/fence.cc \
  engine/protocol/fence.h \
  engine/protocol/file_view.cc \
  engine/protocol/file_view.h \
  engine/protocol/find_and_attach.cc \
  engine/protocol/find_and_attach.h \
  engine/protocol/generation_commit.cc \
  engine/protocol/generation_commit.h \
  engine/protocol/job_file.cc \
  engine/protocol/job_file.h \
  engine/protocol/leases.cc \
  engine/protocol/leases.h \
  engine/protocol/leave.cc \
  engine/protocol/leave.h \
  engine/protocol/local_file.cc \
  engine/protocol/local_file.h \
  engine/protocol/own_leases.cc \
  engine/protocol/own_leases.h \
  engine/protocol/plain_file.cc \
  engine/protocol/plain_file.h \
  engine/protocol/ranks.cc \
  engine/protocol/ranks.h \
  engine/protocol/reader.cc \
  engine/protocol/reader.h \
  engine/protocol/search.cc \
  engine/protocol/search.h \
  engine/protocol/shard_build.cc \
  engine/protocol/shard_build.h \
  engine/protocol/write_back.cc \
  engine/protocol/write_back.h

# What does.
libdedup_engine_la_SOURCES += \
  engine/admin.cc \
  engine/admin.h \
  engine/c_interface.cc \
  engine/c_interface.h \
  engine/close_handle.cc \
  engine/close_handle.h \
  engine/commit.cc \
  engine/commit.h \
  engine/dedup.cc \
  engine/dedup.h \
  engine/dump/chunk_writer.cc \
  engine/dump/chunk_writer.h \
  engine/dump/dump.cc \
  engine/dump/dump.h \
  engine/dump/dump_round.cc \
  engine/dump/dump_round.h \
  engine/dump/exchange.cc \
  engine/dump/exchange.h \
  engine/dump/node_chunks.cc \
  engine/dump/node_chunks.h \
  engine/dump/node_plan.cc \
  engine/dump/node_plan.h \
  engine/dump/reduction.cc \
  engine/dump/reduction.h \
  engine/dump/rounds.cc \
  engine/dump/rounds.h \
  engine/dump/single_chunks.cc \
  engine/dump/single_chunks.h \
  engine/dump/twins.cc \
  engine/dump/twins.h \
  engine/dump/verdict.h \
  engine/file_handle.h \
  engine/heal.cc \
  engine/heal.h \
  engine/log_dump.cc \
  engine/log_dump.h \
  engine/mpi/agreement.cc \
  engine/mpi/agreement.h \
  engine/mpi/checked_message.cc \
  engine/mpi/checked_message.h \
  engine/mpi/hooks.cc \
  engine/mpi/hooks.h \
  engine/mpi/job.cc \
  engine/mpi/job.h \
  engine/mpi/pace.h \
  engine/mpi/shared_comms.cc \
  engine/mpi/shared_comms.h \
  engine/mpi/topology.cc \
  engine/mpi/topology.h \
  engine/mpi/wait.cc \
  engine/mpi/wait.h \
  engine/mpi/yield.cc \
  engine/mpi/yield.h \
  engine/open_handle.cc \
  engine/open_handle.h \
  engine/report.cc \
  engine/report.h \
  engine/set_size.cc \
  engine/set_size.h \
  engine/take_over.cc \
  engine/take_over.h \
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
