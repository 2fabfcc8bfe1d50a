# DEDUP_MPICH(SOURCE, NEEDED): finds MPICH's compiler wrapper, takes include and link flags from
# it, and compares the version of headers, library and source. SOURCE is the argument of
# --with-mpich-source ("unset" if there was none); with NEEDED = no nothing is looked for.
# Substitutes MPICC, MPI_CPPFLAGS, MPI_LIBS, MPICH_SOURCE, ROMIO_SOURCE,
# MPICH_INSTALLED_VERSION, and the conditional LARGE_COUNT_STAND_INS.
AC_DEFUN([DEDUP_MPICH], [
  AC_ARG_VAR([MPICC], [MPICH's C compiler wrapper, or for the HDF5 driver alone that of HDF5's MPI])
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
  AC_SUBST([MPICH_SOURCE])
  AC_SUBST([ROMIO_SOURCE])
  AC_SUBST([MPICH_INSTALLED_VERSION])
  AS_IF([test "$2" = yes], [
    DEDUP_MPICC([mpicc.mpich mpicc], [MPICH not found: there is no mpicc in PATH. Debian: apt-get install mpich libmpich-dev. Elsewhere: set MPICC])
    DEDUP_MPI_FLAGS([MPICH's])
    _DEDUP_MPICH_VERSIONS
    _DEDUP_MPICH_SOURCE([$1])
  ])
  AS_VERSION_COMPARE([${MPICH_INSTALLED_VERSION:-0}], [4.1],
    [dedup_stand_ins=yes], [dedup_stand_ins=no], [dedup_stand_ins=no])
  AM_CONDITIONAL([LARGE_COUNT_STAND_INS], [test $dedup_stand_ins = yes])
])

# DEDUP_MPICC(NAMES, ERROR): MPICC becomes an absolute path: of what it says, or else of the first of NAMES.
AC_DEFUN([DEDUP_MPICC], [
  AS_IF([test -n "$MPICC"], [MPICC=`command -v "$MPICC"`], [AC_PATH_PROGS([MPICC], [$1])])
  AS_IF([test -z "$MPICC"], [AC_MSG_ERROR([$2])])
])

# DEDUP_MPI_FLAGS(WHOSE): asks $MPICC, which is said to be WHOSE, for MPI_CPPFLAGS and MPI_LIBS.
AC_DEFUN([DEDUP_MPI_FLAGS], [
  AC_MSG_CHECKING([what $MPICC adds to a command line])
  dedup_show=`$MPICC -show 2>/dev/null`
  AS_IF([test -z "$dedup_show"],
    [AC_MSG_RESULT([unknown])
     AC_MSG_ERROR([$MPICC does not understand -show, so it is not $1. Set MPICC])])
  MPI_CPPFLAGS=
  MPI_LIBS=
  # All of -Wl: "-Wl,-rpath -Wl,DIR" is two words.
  for dedup_word in $dedup_show; do
    AS_CASE([$dedup_word],
      [-I*|-D*], [MPI_CPPFLAGS="$MPI_CPPFLAGS $dedup_word"],
      [-L*|-l*|-Wl,*], [MPI_LIBS="$MPI_LIBS $dedup_word"])
  done
  AC_MSG_RESULT([$MPI_CPPFLAGS $MPI_LIBS])
])

AC_DEFUN([_DEDUP_MPICH_VERSIONS], [
  AC_MSG_CHECKING([the installed MPICH's version])
  dedup_save_CPPFLAGS=$CPPFLAGS
  dedup_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
  LIBS="$MPI_LIBS $LIBS"
  AC_LANG_PUSH([C])
  cat >conftest.c <<_ACEOF
#include <mpi.h>
#ifdef MPICH_VERSION
dedup_version MPICH_VERSION
#endif
_ACEOF
  MPICH_INSTALLED_VERSION=`$CC -E $CPPFLAGS conftest.c 2>&AS_MESSAGE_LOG_FD | sed -n 's/^dedup_version "\(.*\)"$/\1/p'`
  AS_IF([test -z "$MPICH_INSTALLED_VERSION"],
    [AC_MSG_RESULT([none])
     AC_MSG_ERROR([the mpi.h that $MPICC uses is not MPICH's (no MPICH_VERSION in it). This driver is made for MPICH; set MPICC to MPICH's])])
  AC_MSG_RESULT([$MPICH_INSTALLED_VERSION])

  AC_MSG_CHECKING([that the library is of the same version as mpi.h])
  AC_RUN_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  static const char name[] = "MPICH Version:";
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n")] = '\0';
  const char* version = text + strlen(name);
  if (strncmp(text, name, strlen(name)) == 0) {
    version += strspn(version, " \t"); /* a tab before 4.1, spaces from then on */
    if (strcmp(version, MPICH_VERSION) == 0) return 0;
  }
  FILE* f = fopen("conftest.out", "w");
  if (f) fprintf(f, "%s\n", text);
  return 1;
}]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     dedup_library=`cat conftest.out 2>/dev/null`
     AC_MSG_ERROR([mpi.h is that of MPICH $MPICH_INSTALLED_VERSION, but the library says "${dedup_library:-nothing: a program linked with it does not run}". Two installations are mixed up])],
    [AC_MSG_RESULT([not checked: cross-compiling])])
  AC_LANG_POP([C])
  CPPFLAGS=$dedup_save_CPPFLAGS
  LIBS=$dedup_save_LIBS

  AS_VERSION_COMPARE([$MPICH_INSTALLED_VERSION], [4.0],
    [AC_MSG_ERROR([MPICH $MPICH_INSTALLED_VERSION is too old: need 4.0 or newer])])
])

AC_DEFUN([_DEDUP_MPICH_SOURCE], [
  AC_MSG_CHECKING([the MPICH source])
  AS_CASE(["$1"],
    [unset|yes|""], [AC_MSG_RESULT([none])
      AC_MSG_ERROR([libromio-dedup.so is built from the source of the installed MPICH $MPICH_INSTALLED_VERSION. Say where it is unpacked: --with-mpich-source=DIR (scripts/setup gets it on Debian; elsewhere: https://www.mpich.org/static/downloads/$MPICH_INSTALLED_VERSION/)])])
  MPICH_SOURCE=`cd "$1" 2>/dev/null && pwd`
  AS_IF([test -z "$MPICH_SOURCE" || test ! -f "$MPICH_SOURCE/maint/version.m4"],
    [AC_MSG_RESULT([not there])
     AC_MSG_ERROR([$1 is not an unpacked MPICH source (no maint/version.m4 in it)])])
  dedup_source_version=`sed -n 's/.*MPICH_VERSION_m4.*,.\(.*\).)d.l.*/\1/p' "$MPICH_SOURCE/maint/version.m4"`
  AC_MSG_RESULT([$MPICH_SOURCE, version ${dedup_source_version:-unknown}])
  AS_VERSION_COMPARE([${dedup_source_version:-0}], [5.1], [],
    [dedup_too_new=yes], [dedup_too_new=yes])
  AS_IF([test "$dedup_too_new" = yes],
    [AC_MSG_ERROR([MPICH $dedup_source_version: from 5.1 on ROMIO has no MPI_File functions of its own, so libromio-dedup.so, the preloaded form, cannot be built from it. Build the driver into MPICH instead])])
  AS_IF([test "$dedup_source_version" != "$MPICH_INSTALLED_VERSION"],
    [AC_MSG_ERROR([the source in $MPICH_SOURCE is MPICH ${dedup_source_version:-of unknown version}, but MPICH $MPICH_INSTALLED_VERSION is installed. They must be the same version: ROMIO's structures are shared with the library])])
  ROMIO_SOURCE=$MPICH_SOURCE/src/mpi/romio
  AS_IF([test ! -f "$ROMIO_SOURCE/configure"],
    [AC_MSG_ERROR([there is no $ROMIO_SOURCE/configure: a release tarball of MPICH has it, a checkout of its repository needs ./autogen.sh first])])
])

# DEDUP_UCP(NEEDED): substitutes UCP_LIBS and sets the conditional HAVE_UCP if the MPI library waits
# through UCX and UCX's library can be linked, with or without its development package.
AC_DEFUN([DEDUP_UCP], [
  AC_SUBST([UCP_LIBS])
  AS_IF([test "$1" = yes], [
    AC_MSG_CHECKING([for the UCX library])
    dedup_save_LIBS=$LIBS
    for dedup_lib in -lucp -l:libucp.so.0; do
      LIBS="-Wl,--no-as-needed $dedup_lib $dedup_save_LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[unsigned ucp_worker_progress(void*);]],
        [[return (int)ucp_worker_progress(0);]])], [UCP_LIBS=$dedup_lib; break])
    done
    LIBS=$dedup_save_LIBS
    AC_MSG_RESULT([${UCP_LIBS:-no: ranks that wait will not yield}])
  ])
  AM_CONDITIONAL([HAVE_UCP], [test -n "$UCP_LIBS"])
])
