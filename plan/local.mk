# Sources of plan/: see the root Makefile.am for the variables.
libdedup_core_la_SOURCES += \
  plan/access.cc \
  plan/access.h \
  plan/block.cc \
  plan/block.h \
  plan/block_changes.cc \
  plan/block_changes.h \
  plan/block_encoding.cc \
  plan/cut.cc \
  plan/cut.h \
  plan/deal.cc \
  plan/deal.h \
  plan/domains.cc \
  plan/domains.h \
  plan/log_runs.h \
  plan/odds.cc \
  plan/odds.h \
  plan/overlay.cc \
  plan/overlay.h \
  plan/placement.cc \
  plan/placement.h \
  plan/reduce.cc \
  plan/reduce.h \
  plan/settled.cc \
  plan/settled.h \
  plan/slots.h \
  plan/stretches.cc \
  plan/stretches.h \
  plan/stripe_content.cc \
  plan/stripe_content.h \
  plan/stripe_decoding.cc \
  plan/stripe_decoding.h \
  plan/stripes.cc \
  plan/stripes.h \
  plan/tally.cc \
  plan/tally.h \
  plan/write_back.cc \
  plan/write_back.h
unit_tests_SOURCES += \
  test/unit/plan_access_test.cc \
  test/unit/plan_block_changes_test.cc \
  test/unit/plan_block_test.cc \
  test/unit/plan_cut_test.cc \
  test/unit/plan_deal_test.cc \
  test/unit/plan_domains_test.cc \
  test/unit/plan_log_runs_test.cc \
  test/unit/plan_odds_test.cc \
  test/unit/plan_overlay_test.cc \
  test/unit/plan_stripe_content_test.cc \
  test/unit/plan_stripe_decoding_test.cc \
  test/unit/plan_stripes_test.cc \
  test/unit/plan_placement_test.cc \
  test/unit/plan_reduce_test.cc \
  test/unit/plan_stretches_test.cc \
  test/unit/plan_tally_test.cc \
  test/unit/plan_write_back_test.cc \
  test/unit/random_stripe.h
