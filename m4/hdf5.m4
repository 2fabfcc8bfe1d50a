# DEDUP_HDF5_DRIVER(PREFIX): PREFIX is the argument of --with-hdf5-driver ("no" if there was none): looks
# for a parallel HDF5 that loads drivers, and for the MPI it was built with, by MPICC.
# Substitutes HDF5_DRIVER_CPPFLAGS and HDF5_DRIVER_LIBS; sets build_hdf5_driver and HDF5_DRIVER_VERSION.
AC_DEFUN([DEDUP_HDF5_DRIVER], [
  AC_SUBST([HDF5_DRIVER_CPPFLAGS])
  AC_SUBST([HDF5_DRIVER_LIBS])
  build_hdf5_driver=no
  AS_CASE(["$1"],
    [no], [],
    [/*], [build_hdf5_driver=yes],
    [AC_MSG_ERROR([--with-hdf5-driver takes the absolute path of what HDF5 was installed into (there is an include/hdf5.h in it), not '$1'])])
  AS_IF([test $build_hdf5_driver = yes], [
    _DEDUP_HDF5_MPI
    _DEDUP_HDF5_VERSION([$1])
  ])
])

# Any MPI. Where DEDUP_MPICH has been here, its MPICH.
AC_DEFUN([_DEDUP_HDF5_MPI], [
  AS_IF([test -z "$MPI_LIBS"], [
    DEDUP_MPICC([mpicc], [MPI not found: there is no mpicc in PATH. Set MPICC to the compiler wrapper of the MPI that HDF5 was built with])
    DEDUP_MPI_FLAGS([MPICH's or Open MPI's])
  ])
])

AC_DEFUN([_DEDUP_HDF5_VERSION], [
  HDF5_DRIVER_CPPFLAGS="-isystem $1/include"
  HDF5_DRIVER_LIBS="-L$1/lib -Wl,-rpath,$1/lib -lhdf5"
  dedup_save_CPPFLAGS=$CPPFLAGS
  dedup_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $HDF5_DRIVER_CPPFLAGS $MPI_CPPFLAGS"
  LIBS="$HDF5_DRIVER_LIBS $MPI_LIBS $LIBS"
  AC_LANG_PUSH([C])
  AC_MSG_CHECKING([the version of HDF5 in $1])
  cat >conftest.c <<_ACEOF
#include <H5public.h>
dedup_version H5_VERS_INFO
_ACEOF
  HDF5_DRIVER_VERSION=`$CC -E $CPPFLAGS conftest.c 2>&AS_MESSAGE_LOG_FD | sed -n '/"HDF5 library version: / { s/.*version: //; s/".*//p; }'`
  AC_MSG_RESULT([${HDF5_DRIVER_VERSION:-none}])
  AS_IF([test -z "$HDF5_DRIVER_VERSION"],
    [AC_MSG_ERROR([there is no HDF5 in $1, or it was built with another MPI than that of $MPICC])])
  AS_VERSION_COMPARE([$HDF5_DRIVER_VERSION], [1.14],
    [AC_MSG_ERROR([HDF5 $HDF5_DRIVER_VERSION is too old: from 1.14 on it loads drivers])])
  AC_MSG_CHECKING([that it is a parallel HDF5 for the MPI of $MPICC])
  AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error not parallel
#endif
int main(void) { return H5Pset_mpi_params(0, MPI_COMM_WORLD, MPI_INFO_NULL) < 0; }]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([HDF5 in $1 is not a parallel one (configured with --enable-parallel) for the MPI of $MPICC; set MPICC to that MPI's])])
  AC_LANG_POP([C])
  CPPFLAGS=$dedup_save_CPPFLAGS
  LIBS=$dedup_save_LIBS
])
