# Sources of test/hooks/: what a test build has, and users have not (doc/testing.md, "Test build").

noinst_LTLIBRARIES += libdedup_hooks.la
libdedup_hooks_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
libdedup_hooks_la_SOURCES = \
  test/hooks/failpoint.cc \
  test/hooks/failpoint.h \
  test/hooks/faults.cc \
  test/hooks/faults.h \
  test/hooks/faulty_system.cc \
  test/hooks/faulty_system.h \
  test/hooks/forwarding_system.h \
  test/hooks/names.h \
  test/hooks/paced_device.cc \
  test/hooks/paced_device.h \
  test/hooks/paced_system.h \
  test/hooks/variables.cc

# All of it, in a program: what is defined weakly makes no linker look into an archive.
hooks_in_program = -Wl,--whole-archive,.libs/libdedup_hooks.a,--no-whole-archive

unit_tests_SOURCES += \
  test/unit/hooks_paced_device_test.cc \
  test/unit/hooks_paced_system_test.cc

if BUILD_DRIVER
# test/bin and test/lib are laid out as bin and lib: the same objects, with the hooks.
noinst_LTLIBRARIES += libdedup_job_hooks.la test/lib/libromio-dedup.la
libdedup_job_hooks_la_CPPFLAGS = $(libdedup_engine_la_CPPFLAGS)
libdedup_job_hooks_la_CXXFLAGS = $(libdedup_engine_la_CXXFLAGS)
libdedup_job_hooks_la_SOURCES = test/hooks/job.cc

test_lib_libromio_dedup_la_SOURCES =
nodist_EXTRA_test_lib_libromio_dedup_la_SOURCES = none.cc
test_lib_libromio_dedup_la_CXXFLAGS = $(AM_CXXFLAGS)
# With an -rpath libtool makes a shared library of it.
test_lib_libromio_dedup_la_LDFLAGS = $(libromio_dedup_la_LDFLAGS) -rpath $(abs_builddir)/test/lib
test_lib_libromio_dedup_la_LIBADD = libdedup_job_hooks.la libdedup_hooks.la $(libromio_dedup_la_LIBADD)
test_lib_libromio_dedup_la_DEPENDENCIES = libdedup_job_hooks.la libdedup_hooks.la \
  $(libromio_dedup_la_DEPENDENCIES)

# Where dedupctl looks for dedup-mpiexec: beside its own folder's folder.
noinst_PROGRAMS += test/libexec/dedupctl/dedupctl
test_libexec_dedupctl_dedupctl_SOURCES =
nodist_EXTRA_test_libexec_dedupctl_dedupctl_SOURCES = none.cc
test_libexec_dedupctl_dedupctl_LDFLAGS = $(AM_LDFLAGS) $(hooks_in_program)
test_libexec_dedupctl_dedupctl_LDADD = $(tools_dedupctl_dedupctl_LDADD)
test_libexec_dedupctl_dedupctl_DEPENDENCIES = libdedup_hooks.la libdedup_ctl.la libdedup_ctl_plain.la libdedup_mpi.la \
  libdedup_protocol.la libdedup_upkeep.la libdedup_core.la

test_tree_programs = test/lib/libromio-dedup.la test/libexec/dedupctl/dedupctl$(EXEEXT)
# What each is a link to.
test_tree = \
  test/bin/dedup-mpiexec=../../tools/dedup-mpiexec \
  test/bin/dedup-run=../../tools/dedup-run \
  test/bin/dedupctl=../libexec/dedupctl/dedupctl$(EXEEXT) \
  test/lib/libdedup-mount.so=../../lib/libdedup-mount.so \
  test/lib/libromio-dedup.so=.libs/libromio-dedup.so
if HAVE_UCP
test_tree += test/lib/libdedup-yield.so=../../lib/libdedup-yield.so
endif
endif
