# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/run/test_expect tests/run/test_folders tests/run/test_roofline tests/run/test_rank_load tests/run/test_rank_rules tests/run/test_run_start tests/run/test_fit tests/run/test_memory_watch tests/run/test_result_text
tests_run_test_rank_load_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_scripts += tests/run/diskfull.sh tests/run/faults.sh tests/run/foreign.sh \
	tests/run/import.sh tests/run/judged.sh tests/run/kills.sh tests/run/logs.sh tests/run/mismatch.sh tests/run/patience.sh \
	tests/run/phases.sh tests/run/records.sh tests/run/refused.sh tests/run/regions.sh tests/run/signals.sh \
	tests/run/stream.sh tests/run/trace.sh tests/run/unjudged.sh tests/run/workers.sh
dt_whole_run_scripts += tests/run/again.sh tests/run/batch.sh tests/run/feeding.sh tests/run/fit.sh tests/run/points.sh \
	tests/run/elastic.sh tests/run/processes.sh tests/run/ranks.sh tests/run/resume.sh tests/run/roads.sh tests/run/sums.sh \
	tests/run/sums_mpi.sh
dt_longer_tests += tests/run/memory.sh tests/run/processes.sh tests/run/rank_kills.sh tests/run/resume.sh
dt_training_scripts += tests/run/memory.sh tests/run/numbers.sh tests/run/profiles.sh tests/run/widths.sh
tests/run/again.log tests/run/batch.log tests/run/diskfull.log tests/run/elastic.log tests/run/faults.log tests/run/feeding.log tests/run/fit.log \
	tests/run/foreign.log tests/run/import.log tests/run/judged.log tests/run/kills.log tests/run/logs.log \
	tests/run/memory.log tests/run/mismatch.log tests/run/numbers.log tests/run/patience.log tests/run/phases.log tests/run/processes.log tests/run/profiles.log \
	tests/run/ranks.log tests/run/records.log tests/run/refused.log \
	tests/run/resume.log tests/run/regions.log tests/run/roads.log tests/run/signals.log tests/run/stream.log tests/run/sums.log tests/run/sums_mpi.log tests/run/trace.log \
	tests/run/unjudged.log tests/run/widths.log tests/run/workers.log: \
	dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
tests/run/roads.log: tests/engine/device/backend_cuda.la
dt_scripts += tests/run/rank_kills.sh
tests/run/rank_kills.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
EXTRA_DIST += tests/run/check_trace.py tests/run/half.inc tests/run/job.inc

# 200 steps of each phase on up to 64 virtual ranks
.PHONY: check-ranks
check-ranks: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DT_RANKS_STEPS=200 DT_RANKS_COUNTS='1 2 3 4 8 64' \
	  $(SHELL) $(srcdir)/tests/run/ranks.sh

# the run of tests/run/rank_kills.sh, killed 1,000 times: half an hour
.PHONY: check-kills
check-kills: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DTRAIN__ENGINE__DEVICE=cpu DT_KILLS=1000 \
	  DT_KILLS_SEED="$${DT_KILLS_SEED:-$$(date +%s)}" \
	  $(SHELL) $(srcdir)/tests/run/rank_kills.sh

# one run whose number of processes changes 1,000 times: two hours
EXTRA_DIST += tests/run/elastic_soak.sh
.PHONY: check-elastic
check-elastic: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DTRAIN__ENGINE__DEVICE=cpu \
	  DT_CHANGES="$${DT_CHANGES:-1000}" DT_CHANGES_SEED="$${DT_CHANGES_SEED:-$$(date +%s)}" \
	  $(SHELL) $(srcdir)/tests/run/elastic_soak.sh

# under Slurm itself, by root: four minutes
EXTRA_DIST += tests/run/slurm.sh
.PHONY: check-slurm
check-slurm: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DTRAIN__ENGINE__DEVICE=cpu \
	  $(SHELL) $(srcdir)/tests/run/slurm.sh

# several machines on one, by root; not in the gate, which has no such right; check-ssh: reached by ssh
EXTRA_DIST += tests/run/hosts.sh
.PHONY: check-hosts
check-hosts: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DTRAIN__ENGINE__DEVICE=cpu \
	  $(SHELL) $(srcdir)/tests/run/hosts.sh
.PHONY: check-ssh
check-ssh: all
	DT_BUILDDIR='$(abs_top_builddir)' DT_SRCDIR='$(abs_top_srcdir)' DTRAIN__ENGINE__DEVICE=cpu DT_HOSTS_BY=ssh \
	  $(SHELL) $(srcdir)/tests/run/hosts.sh

# an environment that hangs, and what ends it
check_LTLIBRARIES += tests/run/stubborn.la
tests_run_stubborn_la_SOURCES = tests/run/stubborn.c
tests_run_stubborn_la_CPPFLAGS = -D_GNU_SOURCE $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=stubborn
tests_run_stubborn_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_run_stubborn_la_LDFLAGS = $(PLUGIN_LINK) -rpath /nowhere
tests/run/workers.log: tests/run/stubborn.la

# an environment whose options training and evaluation need not have in common
check_LTLIBRARIES += tests/run/helped.la
tests_run_helped_la_SOURCES = tests/run/helped.c
tests_run_helped_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/run/judged.log: tests/run/helped.la

# an environment whose agents are rarely there, or never
check_LTLIBRARIES += tests/run/sparse.la
tests_run_sparse_la_SOURCES = tests/run/sparse.c
tests_run_sparse_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/run/unjudged.log: tests/run/sparse.la
