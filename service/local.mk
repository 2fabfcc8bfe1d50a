# Sources of service/: see the root Makefile.am for the variables.
libdedup_core_la_SOURCES += \
  service/attached_file.cc \
  service/attached_file.h \
  service/base_block.cc \
  service/base_block.h \
  service/block_home.cc \
  service/block_home.h \
  service/chunk_index.cc \
  service/chunk_index.h \
  service/chunks_reply.cc \
  service/chunks_reply.h \
  service/client.cc \
  service/client.h \
  service/compaction.cc \
  service/compaction.h \
  service/connect.cc \
  service/connect.h \
  service/executor.cc \
  service/executor.h \
  service/file_chunks.cc \
  service/file_chunks.h \
  service/file_home.cc \
  service/file_home.h \
  service/fingerprint_numbers.cc \
  service/fingerprint_numbers.h \
  service/frame_mac.cc \
  service/frame_mac.h \
  service/index_writing.cc \
  service/index_writing.h \
  service/live_chunks.cc \
  service/live_chunks.h \
  service/listeners.cc \
  service/listeners.h \
  service/local_calls.cc \
  service/local_calls.h \
  service/messages/block_home.h \
  service/messages/file_home.h \
  service/messages/file_info.h \
  service/messages/homes.cc \
  service/messages/homes.h \
  service/messages/lease.h \
  service/messages/request.cc \
  service/messages/request.h \
  service/messages/store_node.h \
  service/node_commit.cc \
  service/node_commit.h \
  service/node_handler.cc \
  service/pulse.cc \
  service/pulse.h \
  service/restore.cc \
  service/restore.h \
  service/server.cc \
  service/server.h \
  service/store_node.cc \
  service/store_node.h \
  service/stripe_decoder.cc \
  service/stripe_decoder.h \
  service/stripe_pins.cc \
  service/stripe_pins.h \
  service/stripe_units.cc \
  service/stripe_units.h \
  service/wire.cc \
  service/wire.h

service_unit_tests = \
  test/unit/damaged_recv.cc \
  test/unit/damaged_recv.h \
  test/unit/fake_responder.h \
  test/unit/service_block_home_test.cc \
  test/unit/service_chunk_index_test.cc \
  test/unit/service_chunks_reply_test.cc \
  test/unit/service_damage_test.cc \
  test/unit/service_executor_test.cc \
  test/unit/service_file_home_test.cc \
  test/unit/service_frame_mac_test.cc \
  test/unit/service_messages_test.cc \
  test/unit/service_node_handler_test.cc \
  test/unit/service_pulse_test.cc \
  test/unit/service_restore_test.cc \
  test/unit/service_store_node_failures_test.cc \
  test/unit/service_stripes_test.cc \
  test/unit/service_store_node_test.cc \
  test/unit/service_transport_test.cc \
  test/unit/store_job.h \
  test/unit/store_node_fixture.h
unit_tests_SOURCES += $(service_unit_tests)
thread_tests_SOURCES += $(service_unit_tests)
