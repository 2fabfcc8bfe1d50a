# Checks of this project's own. Each stops with a sentence that says what is wrong and what to do.

# DEDUP_LIBRARY(VARIABLE, NAME, PKG-CONFIG MODULE, DEBIAN PACKAGE)
AC_DEFUN([DEDUP_LIBRARY], [
  PKG_CHECK_MODULES([$1], [$3], [],
    [AC_MSG_ERROR([$2 not found, or too old: need $3 (Debian package: $4).
  $$1_PKG_ERRORS])])
])

# DEDUP_IPSEC_MB: substitutes IPSEC_MB_CFLAGS and IPSEC_MB_LIBS, and sets have_ipsec_mb. They are empty
# if Intel's IPsec MB is not there or not to be used, since OpenSSL does the same. It has no file for
# pkg-config.
AC_DEFUN([DEDUP_IPSEC_MB], [
  AC_ARG_WITH([ipsec-mb],
    [AS_HELP_STRING([--without-ipsec-mb],
      [name chunks by OpenSSL alone, not by Intel's IPsec MB, which takes less time (x86-64; Debian package: libipsec-mb-dev)])],
    [], [with_ipsec_mb=check])
  AC_SUBST([IPSEC_MB_CFLAGS])
  AC_SUBST([IPSEC_MB_LIBS])
  have_ipsec_mb=no
  AS_IF([test "$with_ipsec_mb" != no], [
    AC_MSG_CHECKING([for IPsec MB])
    dedup_save_LIBS=$LIBS
    LIBS="-lIPSec_MB $LIBS"
    AC_LANG_PUSH([C])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <intel-ipsec-mb.h>
#ifndef __x86_64__
#error another processor
#endif]],
      [[IMB_MGR* manager = alloc_mb_mgr(0);
init_mb_mgr_sse(manager);
init_mb_mgr_avx(manager);
init_mb_mgr_avx2(manager);
init_mb_mgr_avx512(manager);
int lacks = imb_get_errno(manager) != 0 || manager->gcm128_pre == 0 || manager->gmac128_init == 0 ||
            manager->gmac128_update == 0 || manager->gmac128_finalize == 0;
free_mb_mgr(manager);
return lacks;]])],
      [have_ipsec_mb=yes; IPSEC_MB_CFLAGS=-DDEDUP_IPSEC_MB; IPSEC_MB_LIBS=-lIPSec_MB])
    AC_LANG_POP([C])
    LIBS=$dedup_save_LIBS
    AC_MSG_RESULT([$have_ipsec_mb])
    AS_IF([test "$with_ipsec_mb$have_ipsec_mb" = yesno],
      [AC_MSG_ERROR([IPsec MB not found, or older than 1.1, or not for this processor (Debian package, for amd64: libipsec-mb-dev)])])
  ])
])

# DEDUP_FUSE: substitutes FUSE_CFLAGS and FUSE_LIBS, and sets have_fuse and the conditional HAVE_FUSE.
# Without libfuse, `dedupctl mount` says so.
AC_DEFUN([DEDUP_FUSE], [
  AC_ARG_WITH([fuse],
    [AS_HELP_STRING([--without-fuse],
      [build dedupctl without its command mount, which takes libfuse 3 (Debian package: libfuse3-dev)])],
    [], [with_fuse=check])
  have_fuse=no
  AS_IF([test "$with_fuse" != no], [
    PKG_CHECK_MODULES([FUSE], [fuse3 >= 3.10], [have_fuse=yes],
      [AS_IF([test "$with_fuse" = yes],
        [AC_MSG_ERROR([libfuse not found, or too old: need fuse3 >= 3.10 (Debian package: libfuse3-dev).
  $FUSE_PKG_ERRORS])])])
  ])
  AM_CONDITIONAL([HAVE_FUSE], [test $have_fuse = yes])
])

# DEDUP_CXX20: adds what the C++ compiler needs for C++20 to CXX.
AC_DEFUN([DEDUP_CXX20], [
  AC_LANG_PUSH([C++])
  AC_MSG_CHECKING([for C++20])
  dedup_cxx20=no
  dedup_save_CXX=$CXX
  for dedup_flag in -std=c++20 -std=c++2a; do
    CXX="$dedup_save_CXX $dedup_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <concepts>
#include <span>
#include <compare>
template <typename T> requires std::integral<T> T twice(T x) { return 2 * x; }]],
      [[std::span<int> s; return twice(static_cast<int>(s.size()));]])],
      [dedup_cxx20=$dedup_flag; break])
  done
  AC_MSG_RESULT([$dedup_cxx20])
  AS_IF([test "$dedup_cxx20" = no],
    [AC_MSG_ERROR([$dedup_save_CXX does not compile C++20 (concepts, span); need g++ 10 or clang++ 12 or newer])])
  AC_LANG_POP([C++])
])

# DEDUP_WARNINGS(yes|no): substitutes WARN_CFLAGS and WARN_CXXFLAGS; "yes" makes warnings errors.
AC_DEFUN([DEDUP_WARNINGS], [
  WARN_CFLAGS="-Wall -Wextra -Wshadow"
  WARN_CXXFLAGS="-Wall -Wextra -Wshadow"
  AS_IF([test "$1" = yes],
    [WARN_CFLAGS="$WARN_CFLAGS -Werror"; WARN_CXXFLAGS="$WARN_CXXFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
  AC_SUBST([WARN_CXXFLAGS])
])
