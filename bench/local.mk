# The programs of bench/ are compiled by the scripts that run them.
EXTRA_DIST += bench/hdf5-settings bench/hdf5_settings.c bench/memory bench/memory_bench.c
