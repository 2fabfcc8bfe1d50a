libdedup_core_la_SOURCES += \
  hints/hints.h \
  hints/node.cc \
  hints/node.h \
  hints/hints.cc \
  hints/store_template.cc \
  hints/table.cc

unit_tests_SOURCES += \
  test/unit/hints_node_test.cc \
  test/unit/hints_parse_test.cc \
  test/unit/hints_table_test.cc
