# libFuzzer's targets: built by test/fuzz_formats/run, with clang, in a directory of their own.
EXTRA_PROGRAMS += fuzz_formats
fuzz_formats_SOURCES = \
  test/fuzz_formats/formats.cc \
  test/fuzz_formats/main.cc \
  test/fuzz_formats/messages.cc \
  test/fuzz_formats/store.cc \
  test/fuzz_formats/targets.h \
  test/fuzz_formats/wire.cc
fuzz_formats_LDFLAGS = -fsanitize=fuzzer
fuzz_formats_LDADD = libdedup_memory.la libdedup_core.la -lpthread
