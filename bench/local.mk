# The programs of bench/ are compiled by the scripts that run them.
EXTRA_DIST += bench/memory bench/memory_bench.c
