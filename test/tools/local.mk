# Programs that the integration tests need.
noinst_PROGRAMS += test/tools/store_walk
test_tools_store_walk_SOURCES = test/tools/store_walk.cc
test_tools_store_walk_LDFLAGS = $(AM_LDFLAGS) $(hooks_in_program)
test_tools_store_walk_LDADD = libdedup_core.la
test_tools_store_walk_DEPENDENCIES = libdedup_hooks.la libdedup_core.la
