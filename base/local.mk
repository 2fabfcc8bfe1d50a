libdedup_core_la_SOURCES += \
  base/byte_ranges.cc \
  base/byte_ranges.h \
  base/barrier.h \
  base/checksum.h \
  base/codec.h \
  base/descriptor.cc \
  base/descriptor.h \
  base/erasure.cc \
  base/erasure.h \
  base/fields.h \
  base/chunk_namer.cc \
  base/chunk_namer.h \
  base/gmac.cc \
  base/gmac.h \
  base/gmac_ipsec_mb.cc \
  base/hasher.cc \
  base/hasher.h \
  base/hooks.cc \
  base/hooks.h \
  base/lru.h \
  base/mount_address.h \
  base/numbered.h \
  base/openssl.cc \
  base/openssl.h \
  base/passed_descriptor.cc \
  base/passed_descriptor.h \
  base/piece.h \
  base/ranks.cc \
  base/ranks.h \
  base/retried.h \
  base/spare_bytes.h \
  base/status.cc \
  base/status.h \
  base/store_place.cc \
  base/store_place.h \
  base/text.cc \
  base/text.h \
  base/thread.cc \
  base/thread.h \
  base/types.cc \
  base/types.h \
  base/varint.h \
  base/warn.cc \
  base/warn.h \
  base/worker.cc \
  base/worker.h \
  base/xxh3.h

base_unit_tests = \
  test/unit/base_byte_ranges_test.cc \
  test/unit/base_codec_test.cc \
  test/unit/base_erasure_test.cc \
  test/unit/base_fields_test.cc \
  test/unit/base_chunk_namer_test.cc \
  test/unit/base_gmac_test.cc \
  test/unit/base_hasher_test.cc \
  test/unit/base_lru_test.cc \
  test/unit/base_ranks_test.cc \
  test/unit/base_spare_bytes_test.cc \
  test/unit/base_status_test.cc \
  test/unit/base_text_test.cc \
  test/unit/base_types_test.cc \
  test/unit/base_warn_test.cc \
  test/unit/base_worker_test.cc
unit_tests_SOURCES += $(base_unit_tests)
thread_tests_SOURCES += $(base_unit_tests)
