# The mpiexec of users, its helper, and the generator of the documentation of hints.
bin_SCRIPTS += tools/dedup-mpiexec
EXTRA_DIST += tools/dedup-mpiexec.in scripts/generate-docs
CLEANFILES += tools/dedup-mpiexec

tools/dedup-mpiexec: tools/dedup-mpiexec.in $(top_builddir)/config.status
	$(AM_V_GEN)$(MKDIR_P) tools && \
	mpi_bindir=`case '$(MPICC)' in /*) dirname '$(MPICC)' ;; esac` && \
	sed -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' -e "s|@mpi_bindir[@]|$$mpi_bindir|" \
	  -e 's|@bindir[@]|$(bindir)|' -e 's|@libdir[@]|$(libdir)|' \
	  -e 's|@helperdir[@]|$(pkglibexecdir)|' $(srcdir)/tools/dedup-mpiexec.in >$@.new && \
	chmod 755 $@.new && mv $@.new $@

# Started as every rank of simulated nodes, before the program: no library, no sanitizer.
pkglibexec_PROGRAMS = tools/dedup-rank
tools_dedup_rank_SOURCES = tools/dedup_rank.cc
tools_dedup_rank_CXXFLAGS = $(WARN_CXXFLAGS)
tools_dedup_rank_LDFLAGS =

noinst_PROGRAMS += tools/hints-doc
tools_hints_doc_SOURCES = tools/hints_doc.cc
tools_hints_doc_LDADD = libdedup_core.la

dist_man_MANS += doc/man/dedup.7 doc/man/dedup-mpiexec.1
