libdedup_core_la_SOURCES += \
  store/block_encoding.cc \
  store/chunk_check.cc \
  store/chunk_check.h \
  store/commit_record.cc \
  store/commit_record.h \
  store/deletion.cc \
  store/deletion.h \
  store/faulty_system.cc \
  store/faulty_system.h \
  store/format.cc \
  store/format.h \
  store/fs.cc \
  store/fs.h \
  store/generations.cc \
  store/index.cc \
  store/index.h \
  store/layout.cc \
  store/layout.h \
  store/log.cc \
  store/log.h \
  store/open_store.cc \
  store/open_store.h \
  store/path_entries.cc \
  store/path_entries.h \
  store/placeholder.cc \
  store/placeholder.h \
  store/real_path.cc \
  store/real_path.h \
  store/segment.cc \
  store/segment.h \
  store/shard.cc \
  store/shard.h \
  store/store.cc \
  store/store.h \
  store/store_private.h \
  store/survey.cc \
  store/survey.h \
  store/system.cc \
  store/system.h \
  store/unnamed.cc \
  store/unnamed.h

unit_tests_SOURCES += \
  test/unit/store_chunk_check_test.cc \
  test/unit/store_commit_record_test.cc \
  test/unit/store_generations_test.cc \
  test/unit/store_helpers.h \
  test/unit/store_index_test.cc \
  test/unit/store_log_test.cc \
  test/unit/store_open_test.cc \
  test/unit/store_placeholder_test.cc \
  test/unit/store_real_path_test.cc \
  test/unit/store_segment_test.cc \
  test/unit/store_shard_test.cc \
  test/unit/store_survey_test.cc \
  test/unit/temp_dir.h
