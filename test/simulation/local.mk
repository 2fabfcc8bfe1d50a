# Sources of test/simulation/: see the root Makefile.am for the variables.
check_LTLIBRARIES += libdedup_simulation.la
libdedup_simulation_la_SOURCES = \
  test/simulation/chunks.h \
  test/simulation/cluster.cc \
  test/simulation/cluster.h \
  test/simulation/dedupctl.cc \
  test/simulation/dedupctl.h \
  test/simulation/model.cc \
  test/simulation/model.h \
  test/simulation/rank_fibers.cc \
  test/simulation/rank_fibers.h \
  test/simulation/run.cc \
  test/simulation/run.h \
  test/simulation/sequence.cc \
  test/simulation/sequence.h \
  test/simulation/tidy.cc \
  test/simulation/tidy.h

simulation_libraries = libdedup_simulation.la libdedup_chunks.la libdedup_protocol.la \
  libdedup_upkeep.la \
  libdedup_memory.la libdedup_hooks.la \
  libdedup_core.la -lpthread
check_PROGRAMS += simulate simulate_scale simulation_tests
simulate_SOURCES = test/simulation/main.cc
simulate_LDADD = $(simulation_libraries)
simulate_scale_SOURCES = test/simulation/scale.cc
simulate_scale_LDADD = $(simulation_libraries)
TESTS += simulation_tests
simulation_tests_SOURCES = \
  test/simulation/carried_test.cc \
  test/simulation/held_file_test.cc \
  test/simulation/handles.h \
  test/simulation/many_ranks_test.cc \
  test/simulation/protocol_test.cc \
  test/simulation/rank_grid_test.cc \
  test/simulation/replacement_test.cc \
  test/simulation/requests_test.cc \
  test/simulation/settled_test.cc \
  test/simulation/sharing_test.cc \
  test/simulation/simulation_test.cc \
  test/simulation/stripe_maker_test.cc \
  test/simulation/write_back_test.cc
simulation_tests_CPPFLAGS = $(AM_CPPFLAGS) $(GTEST_CFLAGS)
simulation_tests_LDADD = $(simulation_libraries) $(GTEST_LIBS)
