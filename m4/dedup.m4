# Checks of this project's own. Each stops with a sentence that says what is wrong and what to do.

# DEDUP_LIBRARY(VARIABLE, NAME, PKG-CONFIG MODULE, DEBIAN PACKAGE)
AC_DEFUN([DEDUP_LIBRARY], [
  PKG_CHECK_MODULES([$1], [$3], [],
    [AC_MSG_ERROR([$2 not found, or too old: need $3 (Debian package: $4).
  $$1_PKG_ERRORS])])
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
