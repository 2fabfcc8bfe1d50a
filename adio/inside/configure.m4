# What ROMIO's configure asks for the dedup: driver (add-to-mpich puts it in).
m4_include([adio/ad_dedup/dedup.m4])

AC_PROG_CXX
PKG_PROG_PKG_CONFIG
AS_IF([test -n "$file_system_dedup"], [
  # From MPICH 5.0 on. It is ROMIO once more, with handles of another kind than the driver's mpi.h has.
  AS_IF([test "$enable_mpi_abi" = yes],
    [AC_MSG_ERROR([the dedup: driver is not for libmpi_abi; configure without --enable-mpi-abi, or without dedup])])
  AS_IF([test -z "$PKG_CONFIG"],
    [AC_MSG_ERROR([pkg-config not found; the dedup: driver needs it. Debian: apt-get install pkg-config])])
  DEDUP_CXX20
  DEDUP_LIBRARY([OPENSSL], [OpenSSL], [libcrypto >= 3.0], [libssl-dev])
  DEDUP_IPSEC_MB
  DEDUP_LIBRARY([XXHASH], [xxHash], [libxxhash >= 0.8], [libxxhash-dev])
  DEDUP_LIBRARY([ZSTD], [zstd], [libzstd >= 1.4], [libzstd-dev])
  DEDUP_LIBRARY([ISAL], [ISA-L], [libisal >= 2.30], [libisal-dev])
  DEDUP_LIBRARY([FMT], [fmt], [fmt >= 9], [libfmt-dev])
  DEDUP_LIBRARY([JSON], [nlohmann-json], [nlohmann_json >= 3.10], [nlohmann-json3-dev])
  # MPICH's own linking is that of C.
  LIBS="$OPENSSL_LIBS $IPSEC_MB_LIBS $XXHASH_LIBS $ZSTD_LIBS $ISAL_LIBS $FMT_LIBS -lstdc++ -lm -lpthread $LIBS"
  AC_DEFINE([ROMIO_DEDUP], [1], [Define for ROMIO with the dedup: driver])
])
