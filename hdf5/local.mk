# libhdf5_dedup.so: the dedup: driver for HDF5, with the engine, for the MPI that HDF5 was built with.

# What needs neither. Unit tests are linked with it, too.
EXTRA_LTLIBRARIES += libdedup_hdf5_config.la
libdedup_hdf5_config_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
libdedup_hdf5_config_la_SOURCES = hdf5/config.cc hdf5/config.h
unit_tests_SOURCES += test/unit/hdf5_config_test.cc
EXTRA_DIST += hdf5/libhdf5_dedup.map hdf5/README.md

# HDF5 opens each library in its plugin path: in a folder of its own.
hdf5plugindir = $(libdir)/hdf5/plugin
hdf5plugin_LTLIBRARIES =
if BUILD_HDF5_DRIVER
hdf5plugin_LTLIBRARIES += hdf5/libhdf5_dedup.la
include_HEADERS = hdf5/dedup_hdf5.h

hdf5_libhdf5_dedup_la_SOURCES = \
  hdf5/call_context.cc \
  hdf5/call_context.h \
  hdf5/driver.cc \
  hdf5/driver.h \
  hdf5/error_stack.cc \
  hdf5/error_stack.h \
  hdf5/interpose.cc \
  hdf5/mpi_session.cc \
  hdf5/mpi_session.h \
  hdf5/plugin.cc \
  hdf5/transfer.cc \
  hdf5/transfer.h
# The headers of HDF5 and MPI are not ours to warn about.
hdf5_libhdf5_dedup_la_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_DRIVER_CPPFLAGS) $(MPI_CPPFLAGS) $(no_mpi_cxx)
hdf5_libhdf5_dedup_la_CXXFLAGS = $(AM_CXXFLAGS)
# -z nodelete: HDF5 unloads its plugins when it ends, with the services' threads still in this one.
hdf5_libhdf5_dedup_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
  -Wl,--version-script=$(srcdir)/hdf5/libhdf5_dedup.map -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete
hdf5_libhdf5_dedup_la_LIBADD = libdedup_hdf5_config.la libdedup_engine.la libdedup_core.la \
  $(HDF5_DRIVER_LIBS) $(MPI_LIBS) -ldl
hdf5_libhdf5_dedup_la_DEPENDENCIES = libdedup_hdf5_config.la libdedup_engine.la libdedup_core.la \
  $(srcdir)/hdf5/libhdf5_dedup.map
endif

# The driver alone, where programs of a build tree find it.
hdf5-plugin: $(hdf5plugin_LTLIBRARIES)
	@for f in $(hdf5plugin_LTLIBRARIES); do \
	  $(MKDIR_P) lib/hdf5/plugin; so=$${f%.la}.so; so=$${so##*/}; from=$${f%/*}/.libs/$$so; \
	  test lib/hdf5/plugin/$$so -ef $$from || $(LN_S) -f ../../../$$from lib/hdf5/plugin/$$so; \
	done

# It alone: what else there is to install is of no use without MPICH's.
if BUILD_HDF5_DRIVER
install-hdf5-plugin: install-hdf5pluginLTLIBRARIES install-includeHEADERS
	@rm -f $(DESTDIR)$(hdf5plugindir)/libhdf5_dedup.la
endif
