# Sources of test/unit/: see the root Makefile.am for the variables.
