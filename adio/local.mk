# libromio-dedup.so: ROMIO, built from the installed MPICH's source, with the dedup: driver.

lib_LTLIBRARIES += libromio-dedup.la
EXTRA_DIST += adio/build-romio adio/libromio-dedup.map adio/README.md adio/add-to-mpich \
  adio/inside/Makefile.mk.in adio/inside/configure.m4 adio/inside/init_hook.h adio/romio/config.site

# Built once; again only if how it is built changes.
romio/stamp: adio/build-romio adio/romio/config.site adio/romio/mpir_ext.h
	@$(MKDIR_P) romio
	@MPICC="$(MPICC)" $(SHELL) $(srcdir)/adio/build-romio "$(ROMIO_SOURCE)" "$(srcdir)/adio" romio
	@touch $@

romio_includes = -Iromio/source/include -Iromio/source/adio/include -Iromio/source/mpi-io \
  -Iromio/source/mpl/include -I$(srcdir)/adio/romio

# In a library of its own, since a test build's has the same objects (test/hooks).
EXTRA_LTLIBRARIES += libdedup_adio.la
libdedup_adio_la_SOURCES = \
  adio/ad_dedup.c \
  adio/ad_dedup.h \
  adio/ad_dedup_io.c \
  adio/ad_dedup_view.c \
  adio/beside.c \
  adio/flatten.c \
  adio/flatten.h \
  adio/init.c \
  adio/job.c \
  adio/job.h \
  adio/romio/mpir_ext.h \
  adio/romio_glue.c \
  adio/romio_glue.h \
  adio/romio_threads.c \
  adio/romio_threads.h \
  adio/romio_wrap.c \
  adio/same_arguments.c
if LARGE_COUNT_STAND_INS
libdedup_adio_la_SOURCES += adio/large_count.c
endif
libromio_dedup_la_SOURCES =
nodist_EXTRA_libromio_dedup_la_SOURCES = none.cc
libromio_dedup_la_CXXFLAGS = $(AM_CXXFLAGS)

# ROMIO's headers are not ours to warn about.
libdedup_adio_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) $(romio_includes:-I%=-isystem %) \
  -DROMIO_INSIDE_MPICH -DHAVE_STATUS_SET_BYTES -DMPIO_Err_create_code=MPIR_Err_create_code -D_GNU_SOURCE
libdedup_adio_la_CFLAGS = $(AM_CFLAGS) -fno-strict-aliasing

# ROMIO's headers are configured ones.
$(libdedup_adio_la_OBJECTS): | romio/stamp

# Where ROMIO waits for other processes (the same list is in romio_threads.c; add-to-mpich reads both
# of these).
romio_waiting_calls = Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast \
  Comm_create Comm_dup Comm_free Comm_split Gather Gatherv Recv Send Wait Waitall Waitany \
  Win_create Win_free Win_lock Win_unlock
# Where the driver gets in (romio_wrap.c).
romio_wrapped = ADIO_ResolveFileType ADIO_Open ADIO_Set_view ADIO_Get_shared_fp ADIO_Set_shared_fp \
  ADIOI_Shfp_fname ADIOI_Flatten_and_find ADIOI_Get_position ADIOI_Get_byte_offset ADIOI_Get_eof_offset

# libgcc: from 5.0 on MPL asks what the processor can do.
libromio_dedup_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version \
  -Wl,--whole-archive,romio/libromio.a,romio/libmpl.a,--no-whole-archive,-lgcc \
  -Wl,--undefined=dedup_admin_heal -Wl,--version-script=$(srcdir)/adio/libromio-dedup.map -Wl,-z,defs -Wl,-z,now \
  $(romio_waiting_calls:%=-Wl,--wrap=PMPI_%) $(romio_wrapped:%=-Wl,--wrap=%)
libromio_dedup_la_LIBADD = libdedup_adio.la libdedup_engine.la libdedup_core.la $(MPI_LIBS) -ldl
libromio_dedup_la_DEPENDENCIES = libdedup_adio.la libdedup_engine.la libdedup_core.la romio/stamp \
  $(srcdir)/adio/libromio-dedup.map

if HAVE_UCP
# Must name libucp as needed, or a program that loads MPICH late (Python) loses the symbol.
lib_LTLIBRARIES += libdedup-yield.la
libdedup_yield_la_SOURCES = adio/yield.c
libdedup_yield_la_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE
libdedup_yield_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version -Wl,--no-as-needed
libdedup_yield_la_LIBADD = $(UCP_LIBS) -ldl
endif
