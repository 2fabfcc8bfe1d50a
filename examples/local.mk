if HAVE_HDF5
noinst_PROGRAMS += examples/heat3d/heat3d
endif

examples_heat3d_heat3d_SOURCES = \
  examples/heat3d/checkpoint.cc \
  examples/heat3d/checkpoint.h \
  examples/heat3d/grid.cc \
  examples/heat3d/grid.h \
  examples/heat3d/heat.cc \
  examples/heat3d/heat.h \
  examples/heat3d/main.cc
examples_heat3d_heat3d_CPPFLAGS = $(AM_CPPFLAGS) $(CLI11_CFLAGS) $(HDF5_CFLAGS) \
  -DMPICH_SKIP_MPICXX
# Without -ffp-contract=off the compiler may round differently in different parts of one loop.
examples_heat3d_heat3d_CXXFLAGS = $(AM_CXXFLAGS) -ffp-contract=off
examples_heat3d_heat3d_LDADD = $(HDF5_LIBS)

EXTRA_DIST += examples/heat3d/README.md examples/heat3d/report.py examples/libraries examples/survive
