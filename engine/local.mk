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
  engine/protocol/cached_file.cc \
  engine/protocol/displaced_file.cc \
  engine/protocol/fence.cc \
  engine/protocol/at_my_nodes.h \
  engine/protocol/cached_file.h \
  engine/protocol/displaced_file.h \
  engine/protocol/fence.h \
  engine/protocol/given_up.cc \
  engine/protocol/given_up.h \
  engine/protocol/keeping.h \
  engine/protocol/kept_file.cc \
  engine/protocol/kept_file.h \
  engine/protocol/settled.cc \
  engine/protocol/settled.h \
  engine/protocol/writer_watch.cc \
  engine/protocol/writer_watch.h \
  engine/protocol/file_view.cc \
  engine/protocol/file_view.h \
  engine/protocol/find_and_attach.cc \
  engine/protocol/find_and_attach.h \
  engine/protocol/held_file.cc \
  engine/protocol/held_file.h \
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
  engine/protocol/lost_nodes.cc \
  engine/protocol/lost_nodes.h \
  engine/protocol/own_leases.cc \
  engine/protocol/own_leases.h \
  engine/protocol/plain_file.cc \
  engine/protocol/plain_file.h \
  engine/protocol/reader.cc \
  engine/protocol/reader.h \
  engine/protocol/rank_grid.cc \
  engine/protocol/rank_grid.h \
  engine/protocol/reference_exchange.cc \
  engine/protocol/reference_exchange.h \
  engine/protocol/referrals.cc \
  engine/protocol/referrals.h \
  engine/protocol/restores.cc \
  engine/protocol/restores.h \
  engine/protocol/search.cc \
  engine/protocol/search.h \
  engine/protocol/shard_build.cc \
  engine/protocol/shard_build.h \
  engine/protocol/new_stripes.cc \
  engine/protocol/new_stripes.h \
  engine/protocol/stored_units.cc \
  engine/protocol/stored_units.h \
  engine/protocol/stripe_maker.cc \
  engine/protocol/stripe_maker.h \
  engine/protocol/striping.cc \
  engine/protocol/striping.h \
  engine/protocol/unit_source.h \
  engine/protocol/flusher.cc \
  engine/protocol/flusher.h \
  engine/protocol/part_writer.cc \
  engine/protocol/part_writer.h \
  engine/protocol/write_back.cc \
  engine/protocol/write_back.h

# What a dump does with one rank's chunks by itself: cutting, naming, judging, storing.
EXTRA_LTLIBRARIES += libdedup_chunks.la
libdedup_chunks_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
libdedup_chunks_la_SOURCES = \
  engine/chunks/chunk_writer.cc \
  engine/chunks/chunk_writer.h \
  engine/chunks/copies.cc \
  engine/chunks/copies.h \
  engine/chunks/cut_chunks.cc \
  engine/chunks/cut_chunks.h \
  engine/chunks/dump_result.cc \
  engine/chunks/dump_result.h \
  engine/chunks/first_error.h \
  engine/chunks/judge.cc \
  engine/chunks/judge.h \
  engine/chunks/known_chunks.cc \
  engine/chunks/known_chunks.h \
  engine/chunks/name_chunks.cc \
  engine/chunks/name_chunks.h \
  engine/chunks/node_chunks.cc \
  engine/chunks/node_chunks.h \
  engine/chunks/own_chunks.cc \
  engine/chunks/own_chunks.h \
  engine/chunks/own_store.h \
  engine/chunks/own_units.cc \
  engine/chunks/own_units.h \
  engine/chunks/sends.cc \
  engine/chunks/sends.h \
  engine/chunks/settle.cc \
  engine/chunks/settle.h \
  engine/chunks/stored_chunks.cc \
  engine/chunks/stored_chunks.h \
  engine/chunks/timer.h \
  engine/chunks/verdict.h

# What needs MPI: the job and its ranks; the dump; and what makes a file of them.
EXTRA_LTLIBRARIES += libdedup_mpi.la libdedup_dump.la
libdedup_mpi_la_CPPFLAGS = $(libdedup_engine_la_CPPFLAGS)
libdedup_mpi_la_CXXFLAGS = $(libdedup_engine_la_CXXFLAGS)
libdedup_mpi_la_SOURCES = \
  engine/mpi/agreement.cc \
  engine/mpi/agreement.h \
  engine/mpi/checked_message.cc \
  engine/mpi/checked_message.h \
  engine/mpi/comm_ranks.cc \
  engine/mpi/comm_ranks.h \
  engine/mpi/counts.cc \
  engine/mpi/counts.h \
  engine/mpi/datatype.cc \
  engine/mpi/datatype.h \
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
  engine/mpi/yield.h

libdedup_dump_la_CPPFLAGS = $(libdedup_engine_la_CPPFLAGS)
libdedup_dump_la_CXXFLAGS = $(libdedup_engine_la_CXXFLAGS)
libdedup_dump_la_SOURCES = \
  engine/dump/counting.cc \
  engine/dump/counting.h \
  engine/dump/dump.cc \
  engine/dump/dump.h \
  engine/dump/dump_round.cc \
  engine/dump/dump_round.h \
  engine/dump/dump_stripes.cc \
  engine/dump/dump_stripes.h \
  engine/dump/exchange.cc \
  engine/dump/exchange.h \
  engine/dump/node_exchange.cc \
  engine/dump/node_exchange.h \
  engine/dump/node_plan.cc \
  engine/dump/node_plan.h \
  engine/dump/outgoing.h \
  engine/dump/put_exchange.cc \
  engine/dump/put_exchange.h \
  engine/dump/reduction.cc \
  engine/dump/reduction.h \
  engine/dump/rounds.cc \
  engine/dump/rounds.h \
  engine/dump/send_exchange.cc \
  engine/dump/send_exchange.h \
  engine/dump/store_and_exchange.cc \
  engine/dump/store_and_exchange.h \
  engine/dump/twins.cc \
  engine/dump/twins.h

libdedup_engine_la_SOURCES += \
  engine/absolute_path.cc \
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
  engine/file_handle.h \
  engine/fetch.cc \
  engine/fetch.h \
  engine/heal.cc \
  engine/heal.h \
  engine/log_dump.cc \
  engine/log_dump.h \
  engine/open_handle.cc \
  engine/open_handle.h \
  engine/report.cc \
  engine/report.h \
  engine/set_size.cc \
  engine/set_size.h \
  engine/take_over.cc \
  engine/take_over.h \
  engine/tell.cc \
  engine/tell.h \
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

unit_tests_SOURCES += \
  test/unit/engine_chunks_test.cc \
  test/unit/engine_counts_test.cc \
  test/unit/engine_round_test.cc

# The borders between rooms. Each program is one room whole, with those that it may use: it does not
# link if the room uses anything else. test/integration/test_rooms.py does the same for headers.
noinst_PROGRAMS += test/rooms/chunks test/rooms/protocol
if BUILD_DRIVER
noinst_PROGRAMS += test/rooms/mpi test/rooms/dump
endif
test_rooms_chunks_SOURCES = test/rooms/nothing.cc
test_rooms_chunks_LDFLAGS = $(AM_LDFLAGS) -Wl,--whole-archive,.libs/libdedup_chunks.a,--no-whole-archive
test_rooms_chunks_LDADD = libdedup_core.la
test_rooms_chunks_DEPENDENCIES = libdedup_chunks.la libdedup_core.la
test_rooms_protocol_SOURCES = test/rooms/nothing.cc
test_rooms_protocol_LDFLAGS = $(AM_LDFLAGS) -Wl,--whole-archive,.libs/libdedup_protocol.a,--no-whole-archive
test_rooms_protocol_LDADD = libdedup_core.la
test_rooms_protocol_DEPENDENCIES = libdedup_protocol.la libdedup_core.la
test_rooms_mpi_SOURCES = test/rooms/nothing.cc
test_rooms_mpi_LDFLAGS = $(AM_LDFLAGS) -Wl,--whole-archive,.libs/libdedup_mpi.a,--no-whole-archive
test_rooms_mpi_LDADD = libdedup_protocol.la libdedup_core.la $(MPI_LIBS)
test_rooms_mpi_DEPENDENCIES = libdedup_mpi.la libdedup_protocol.la libdedup_core.la
test_rooms_dump_SOURCES = test/rooms/nothing.cc
test_rooms_dump_LDFLAGS = $(AM_LDFLAGS) -Wl,--whole-archive,.libs/libdedup_dump.a,--no-whole-archive
test_rooms_dump_LDADD = libdedup_chunks.la libdedup_mpi.la libdedup_protocol.la libdedup_core.la $(MPI_LIBS)
test_rooms_dump_DEPENDENCIES = libdedup_dump.la libdedup_chunks.la libdedup_mpi.la libdedup_protocol.la libdedup_core.la
