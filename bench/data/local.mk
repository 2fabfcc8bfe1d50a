# Sources of bench/data/: see the root Makefile.am for the variables. Without MPI, so that the unit tests have it.
check_LTLIBRARIES += libdedup_bench_data.la
libdedup_bench_data_la_SOURCES = \
  bench/data/data.cc \
  bench/data/data.h
unit_tests_SOURCES += \
  test/unit/bench_data_test.cc
