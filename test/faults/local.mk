# Sources of test/faults/: see the root Makefile.am for the variables.

# File systems in memory, for whatever simulates.
check_LTLIBRARIES += libdedup_memory.la
libdedup_memory_la_SOURCES = \
  test/faults/memory_content.cc \
  test/faults/memory_content.h \
  test/faults/memory_system.cc \
  test/faults/memory_system.h

check_PROGRAMS += fault_tests
TESTS += fault_tests
fault_tests_SOURCES = \
  test/faults/faulty_job.h \
  test/faults/faulty_system_test.cc \
  test/faults/kept_faults_test.cc \
  test/faults/memory_system_test.cc \
  test/faults/store_damage_test.cc \
  test/faults/store_faults_test.cc \
  test/faults/store_world.cc \
  test/faults/store_world.h \
  test/faults/tier_faults_test.cc
fault_tests_CPPFLAGS = $(unit_tests_CPPFLAGS)
fault_tests_LDADD = libdedup_memory.la libdedup_hooks.la libdedup_core.la $(GTEST_LIBS) -lpthread
