# What users start programs with, and the generator of the documentation of hints.
launchers = tools/dedup-mpiexec tools/dedup-run
bin_SCRIPTS += $(launchers)
EXTRA_DIST += tools/dedup-mpiexec.in tools/dedup-run.in scripts/generate-docs
CLEANFILES += $(launchers)

# What stands in them depends on where they are installed, which may be said as late as then: the hooks of
# installing in the root Makefile.am fill them in once more.
fill_in = mpi_bindir=`case '$(MPICC)' in /*) dirname '$(MPICC)' ;; esac` && \
  sed -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' -e "s|@mpi_bindir[@]|$$mpi_bindir|" \
    -e 's|@MPICH_VERSION[@]|$(MPICH_INSTALLED_VERSION)|' -e 's|@bindir[@]|$(bindir)|' -e 's|@libdir[@]|$(libdir)|' \
    -e 's|@mandir[@]|$(mandir)|' -e 's|@pkgconfigdir[@]|$(pkgconfigdir)|' \
    -e "s|@pkgconfigdir_to_libdir[@]|`realpath -ms --relative-to='$(pkgconfigdir)' '$(libdir)'`|"

$(launchers): $(top_builddir)/config.status
	$(AM_V_GEN)$(MKDIR_P) tools && $(fill_in) $(srcdir)/$@.in >$@.new && chmod 755 $@.new && mv $@.new $@
tools/dedup-mpiexec: tools/dedup-mpiexec.in
tools/dedup-run: tools/dedup-run.in

noinst_PROGRAMS += tools/hints-doc
tools_hints_doc_SOURCES = tools/hints_doc.cc
tools_hints_doc_LDADD = libdedup_core.la

dist_man_MANS += doc/man/dedup.7 doc/man/dedup-mpiexec.1 doc/man/dedup-run.1 doc/man/dedupctl.1

# What dedupctl does to stores that jobs use. test/simulation runs it, too.
EXTRA_LTLIBRARIES += libdedup_upkeep.la
libdedup_upkeep_la_SOURCES = \
  tools/dedupctl/catalog.cc \
  tools/dedupctl/catalog.h \
  tools/dedupctl/freeing.cc \
  tools/dedupctl/freeing.h \
  tools/dedupctl/removal.cc \
  tools/dedupctl/removal.h \
  tools/dedupctl/stores.cc \
  tools/dedupctl/stores.h \
  tools/dedupctl/upkeep.cc \
  tools/dedupctl/upkeep.h \
  tools/dedupctl/whereabouts.cc \
  tools/dedupctl/whereabouts.h

# What of dedupctl needs no store. Unit tests are linked with it, too.
EXTRA_LTLIBRARIES += libdedup_ctl_plain.la
libdedup_ctl_plain_la_SOURCES = \
  tools/dedupctl/chart.cc \
  tools/dedupctl/chart.h \
  tools/dedupctl/closest.cc \
  tools/dedupctl/closest.h \
  tools/dedupctl/duration.cc \
  tools/dedupctl/duration.h \
  tools/dedupctl/expiry.cc \
  tools/dedupctl/expiry.h \
  tools/dedupctl/interval.cc \
  tools/dedupctl/interval.h \
  tools/dedupctl/metrics.cc \
  tools/dedupctl/metrics.h \
  tools/dedupctl/name_tree.cc \
  tools/dedupctl/name_tree.h \
  tools/dedupctl/node_watch.cc \
  tools/dedupctl/node_watch.h \
  tools/dedupctl/page.cc \
  tools/dedupctl/page.h \
  tools/dedupctl/progress_line.cc \
  tools/dedupctl/progress_line.h \
  tools/dedupctl/recommend.cc \
  tools/dedupctl/recommend.h \
  tools/dedupctl/repetition.cc \
  tools/dedupctl/repetition.h \
  tools/dedupctl/report_lines.cc \
  tools/dedupctl/report_lines.h \
  tools/dedupctl/scan.cc \
  tools/dedupctl/scan.h \
  tools/dedupctl/table.cc \
  tools/dedupctl/table.h \
  tools/dedupctl/utf8.cc \
  tools/dedupctl/utf8.h

unit_tests_SOURCES += \
  test/unit/dedupctl_chart_test.cc \
  test/unit/dedupctl_closest_test.cc \
  test/unit/dedupctl_duration_test.cc \
  test/unit/dedupctl_expiry_test.cc \
  test/unit/dedupctl_interval_test.cc \
  test/unit/dedupctl_metrics_test.cc \
  test/unit/dedupctl_name_tree_test.cc \
  test/unit/dedupctl_node_watch_test.cc \
  test/unit/dedupctl_page_test.cc \
  test/unit/dedupctl_progress_line_test.cc \
  test/unit/dedupctl_recommend_test.cc \
  test/unit/dedupctl_repetition_test.cc \
  test/unit/dedupctl_report_lines_test.cc \
  test/unit/dedupctl_scan_test.cc \
  test/unit/noise.h

# An MPI program only when an mpiexec starts it. In a library, since a test build's has the same objects.
if BUILD_DRIVER
bin_PROGRAMS += tools/dedupctl/dedupctl

# What dedup-mpiexec --mount preloads, also where the driver is inside of MPICH.
lib_LTLIBRARIES += libdedup-mount.la
libdedup_mount_la_SOURCES = tools/mount_in_job.c tools/mount_in_job.h
libdedup_mount_la_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE
libdedup_mount_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version
endif
EXTRA_LTLIBRARIES += libdedup_ctl.la
libdedup_ctl_la_SOURCES = \
  tools/dedupctl/advise.cc \
  tools/dedupctl/check.cc \
  tools/dedupctl/check.h \
  tools/dedupctl/content.cc \
  tools/dedupctl/content.h \
  tools/dedupctl/decode.cc \
  tools/dedupctl/decode.h \
  tools/dedupctl/explain.cc \
  tools/dedupctl/export.cc \
  tools/dedupctl/gc.cc \
  tools/dedupctl/generation.cc \
  tools/dedupctl/generation.h \
  tools/dedupctl/driver_file.cc \
  tools/dedupctl/driver_file.h \
  tools/dedupctl/elsewhere.cc \
  tools/dedupctl/elsewhere.h \
  tools/dedupctl/evict.cc \
  tools/dedupctl/flush.cc \
  tools/dedupctl/heal.cc \
  tools/dedupctl/heal.h \
  tools/dedupctl/holding.cc \
  tools/dedupctl/holding.h \
  tools/dedupctl/import.cc \
  tools/dedupctl/in_job.cc \
  tools/dedupctl/in_job.h \
  tools/dedupctl/known_services.cc \
  tools/dedupctl/known_services.h \
  tools/dedupctl/ls.cc \
  tools/dedupctl/main.cc \
  tools/dedupctl/mount.cc \
  tools/dedupctl/mount_session.h \
  tools/dedupctl/mount_users.cc \
  tools/dedupctl/mount_users.h \
  tools/dedupctl/mounted_files.cc \
  tools/dedupctl/mounted_files.h \
  tools/dedupctl/mpi_job.cc \
  tools/dedupctl/mpi_job.h \
  tools/dedupctl/node_load.cc \
  tools/dedupctl/node_load.h \
  tools/dedupctl/output.cc \
  tools/dedupctl/output.h \
  tools/dedupctl/owner.cc \
  tools/dedupctl/owner.h \
  tools/dedupctl/progress.cc \
  tools/dedupctl/progress.h \
  tools/dedupctl/prometheus.cc \
  tools/dedupctl/prometheus.h \
  tools/dedupctl/random_reader.cc \
  tools/dedupctl/random_reader.h \
  tools/dedupctl/report.cc \
  tools/dedupctl/rm.cc \
  tools/dedupctl/screen.cc \
  tools/dedupctl/screen.h \
  tools/dedupctl/select.cc \
  tools/dedupctl/select.h \
  tools/dedupctl/session.h \
  tools/dedupctl/some_of_nodes.h \
  tools/dedupctl/stat.cc \
  tools/dedupctl/stripes.cc \
  tools/dedupctl/stripes.h \
  tools/dedupctl/top.cc
if HAVE_FUSE
libdedup_ctl_la_SOURCES += tools/dedupctl/mount_session.cc
else
libdedup_ctl_la_SOURCES += tools/dedupctl/no_mount_session.cc
endif
libdedup_ctl_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) $(CLI11_CFLAGS) $(FUSE_CFLAGS) \
  -DMPICH_SKIP_MPICXX
tools_dedupctl_dedupctl_SOURCES =
nodist_EXTRA_tools_dedupctl_dedupctl_SOURCES = none.cc
tools_dedupctl_dedupctl_LDADD = libdedup_ctl.la libdedup_ctl_plain.la libdedup_mpi.la libdedup_protocol.la libdedup_upkeep.la \
  libdedup_core.la \
  $(FUSE_LIBS) $(MPI_LIBS)

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = tools/completion/dedup-mpiexec tools/completion/dedup-run \
  tools/completion/dedupctl

# What a site with Slurm starts from.
slurmdir = $(pkgdatadir)/slurm
dist_slurm_SCRIPTS = site/slurm/epilog site/slurm/job.sh site/slurm/prolog

# For Lmod and for Environment Modules, which each find their own of the two.
modulefilesdir = $(pkgdatadir)/modulefiles/dedup
EXTRA_DIST += site/modulefiles/dedup.lua.in site/modulefiles/dedup.tcl.in
