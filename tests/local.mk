# SPDX-License-Identifier: Apache-2.0
# Tests. A room's local.mk adds one line per cmocka program: dt_tests += tests/<room>/test_<file>
# (its source is tests/<room>/test_<file>.c, or list more in tests_<room>_test_<file>_SOURCES). Scripts: dt_scripts += x.sh
# Every test runs in the build folder and finds the source by $DT_SRCDIR and the build by $DT_BUILDDIR.
# What reads or compiles sources and runs nothing of the build is one of dt_source_scripts, what follows the documents
# one of dt_doc_scripts, and what trains until something is learnt, or measures, one of dt_training_scripts: `make check`
# runs all, the gate runs these three once (dt_once_tests), and the others under the sanitizers and of a release too.
# A plugin for tests only: check_LTLIBRARIES, with $(PLUGIN_LINK) -rpath /nowhere.

dt_tests =
dt_scripts =
dt_training_scripts =
dt_source_scripts = tests/layers.sh tests/quickstart.sh tests/raw_open.sh tests/raw_print.sh tests/tidy.sh
# what reads the objects of the build
dt_scripts += tests/arrows.sh
tests/arrows.log: dtrain
LDADD = core/libdtcore.la $(CMOCKA_LIBS)

include tests/mock/local.mk
include tests/base/local.mk
include tests/config/local.mk
include tests/tensor/local.mk
include tests/backend/local.mk
include tests/cuda/local.mk
include tests/device/local.mk
include tests/gpu/local.mk
include tests/graph/local.mk
include tests/optim/local.mk
include tests/amp/local.mk
include tests/collective/local.mk
include tests/checkpoint/local.mk
include tests/data/local.mk
include tests/metrics/local.mk
include tests/loader/local.mk
include tests/abi/local.mk
include tests/cli/local.mk
include tests/docs/local.mk
include tests/env_snakes/local.mk
include tests/env_traffic/local.mk
include tests/experience/local.mk
include tests/export/local.mk
include tests/machine/local.mk
include tests/models/local.mk
include tests/ops/local.mk
include tests/policy/local.mk
include tests/phases/local.mk
include tests/plugins/local.mk
include tests/porting/local.mk
include tests/report/local.mk
include tests/rollout/local.mk
include tests/launch/local.mk
include tests/run/local.mk
include tests/service/local.mk
include tests/strangers/local.mk
include tests/train/local.mk
include tests/trial/local.mk
include tests/fuzz/local.mk
include tests/mutants/local.mk

if HAVE_CMOCKA
check_PROGRAMS += $(dt_tests)
endif
dt_once_tests = $(dt_training_scripts) $(dt_doc_scripts) $(dt_source_scripts)
TESTS += $(check_PROGRAMS) $(dt_scripts) $(dt_once_tests)
EXTRA_DIST += $(dt_scripts) $(dt_training_scripts) $(dt_doc_scripts) $(dt_source_scripts) tests/lsan.supp tests/peers/run.sh tests/peers/read_tensorboard.py \
	tests/peers/export_onnx.py tests/peers/argoverse2.sh

TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	DT_SRCDIR='$(abs_top_srcdir)'; DT_BUILDDIR='$(abs_top_builddir)'; export DT_SRCDIR DT_BUILDDIR; \
	DTRAIN_PLUGIN_PATH=; DTRAIN_CONFIG=; DTRAIN_FAULT=; unset DTRAIN_PLUGIN_PATH DTRAIN_CONFIG DTRAIN_FAULT; \
	DTRAIN__ENGINE__DEVICE=cpu; export DTRAIN__ENGINE__DEVICE; \
	LC_ALL=C; NO_COLOR=1; export LC_ALL NO_COLOR; \
	ASAN_OPTIONS=allow_user_segv_handler=1; \
	LSAN_OPTIONS=suppressions='$(abs_top_srcdir)/tests/lsan.supp':print_suppressions=0; \
	UBSAN_OPTIONS=print_stacktrace=1; TSAN_OPTIONS=halt_on_error=1; \
	export ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; \
	DT_PLUGINS='$(plugin_LTLIBRARIES)'; DT_PREOPEN='$(enable_force_preopen)'; export DT_PLUGINS DT_PREOPEN; \
	CC='$(CC)' CXX='$(CXX_CHECK)' NVCC='$(NVCC)'; export CC CXX NVCC;

EXTRA_DIST += tests/installcheck.sh tests/failures.sh
installcheck-local:
	DT_SRCDIR='$(abs_top_srcdir)' CC='$(CC)' CXX='$(CXX_CHECK)' \
	bindir='$(bindir)' includedir='$(includedir)' libdir='$(libdir)' plugindir='$(plugindir)' docdir='$(docdir)' \
	plugins='$(notdir $(plugin_LTLIBRARIES:.la=))' $(SHELL) $(srcdir)/tests/installcheck.sh
