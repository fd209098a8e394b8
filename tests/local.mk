# SPDX-License-Identifier: Apache-2.0
# Tests. A room's local.mk adds one line per cmocka program: dt_tests += tests/<room>/test_<file>
# (its source is tests/<room>/test_<file>.c, or list more in tests_<room>_test_<file>_SOURCES). Scripts: dt_scripts +=
# x.sh Every test runs in the build folder and finds the source by $DT_SRCDIR and the build by $DT_BUILDDIR. Scripts in
# other lists run less often:
#   dt_source_scripts     read or compile sources and run nothing of the build
#   dt_doc_scripts        run the commands of the documents
#   dt_training_scripts   train until something is learnt, or measure
#   dt_whole_run_scripts  compare states of many whole runs; shorter scripts reach the same code
#   dt_long_scripts       only in `make check-long`
# The first four are dt_once_tests: once in the gate, not under the sanitizers and not of a release.
# dt_slow_tests (dt_training_scripts, dt_whole_run_scripts, the emulated GPU and others that are named) are left out of
# `make check-quick`, which ./quickstart check runs; `make check-slow` runs them.
# dt_longer_tests are in `make check`, and do more in `make check-long`, which sets DT_LONG=1.
# A plugin for tests only: check_LTLIBRARIES, with $(PLUGIN_LINK) -rpath /nowhere.

dt_tests =
dt_scripts =
dt_whole_run_scripts =
dt_training_scripts =
dt_slow_tests =
dt_long_scripts =
dt_longer_tests =
dt_source_scripts = tests/layers.sh tests/quickstart.sh tests/raw_open.sh tests/raw_print.sh tests/tidy.sh
# what reads the objects of the build
dt_scripts += tests/arrows.sh
tests/arrows.log: dtrain
LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS)

include tests/mock/local.mk
include tests/base/local.mk
include tests/config/local.mk
include tests/engine/tensor/local.mk
include tests/engine/backend/local.mk
include tests/engine/cuda/local.mk
include tests/engine/device/local.mk
include tests/engine/gpu/local.mk
include tests/engine/graph/local.mk
include tests/engine/optim/local.mk
include tests/engine/amp/local.mk
include tests/comm/local.mk
include tests/state/checkpoint/local.mk
include tests/traffic/local.mk
include tests/telemetry/metrics/local.mk
include tests/plugin/loader/local.mk
include tests/abi/local.mk
include tests/cli/local.mk
include tests/docs/local.mk
include tests/env_snakes/local.mk
include tests/env_traffic/local.mk
include tests/rl/evaluate/local.mk
include tests/export/local.mk
include tests/plan/local.mk
include tests/plan/machine/local.mk
include tests/models/local.mk
include tests/engine/ops/local.mk
include tests/rl/policy/local.mk
include tests/phases/local.mk
include tests/plugins/local.mk
include tests/config/port/local.mk
include tests/telemetry/report/local.mk
include tests/study/local.mk
include tests/python/local.mk
include tests/rl/buffer/local.mk
include tests/state/snapshot/local.mk
include tests/rl/offline/local.mk
include tests/rl/rollout/local.mk
include tests/comm/launch/local.mk
include tests/run/local.mk
include tests/plugin/service/local.mk
include tests/third_party/local.mk
include tests/train/local.mk
include tests/plugin/trial/local.mk
include tests/fuzz/local.mk
include tests/mutants/local.mk

if HAVE_CMOCKA
check_PROGRAMS += $(dt_tests)
endif
# both may be set by the caller, so EXTRA_DIST does not use them
dt_once_tests = $(dt_training_scripts) $(dt_whole_run_scripts) $(dt_doc_scripts) $(dt_source_scripts)
dt_everywhere_scripts = $(dt_scripts)
# long ones first, so that they do not run alone at the end
TESTS += $(dt_once_tests) $(dt_everywhere_scripts) $(check_PROGRAMS)
EXTRA_DIST += $(dt_scripts) $(dt_whole_run_scripts) $(dt_long_scripts) $(dt_training_scripts) $(dt_doc_scripts) $(dt_source_scripts) tests/lsan.supp tests/peers/run.sh tests/peers/read_tensorboard.py \
	tests/peers/export_onnx.py tests/peers/argoverse2.sh

### parts of make check

dt_slow_tests += $(dt_training_scripts) $(dt_whole_run_scripts)
check-quick:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out $(dt_slow_tests),$(TESTS))' \
		check_PROGRAMS='$(filter-out $(dt_slow_tests),$(check_PROGRAMS))' bench_programs=
check-slow:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter $(dt_slow_tests),$(TESTS))' \
		check_PROGRAMS='$(filter $(dt_slow_tests),$(check_PROGRAMS))'

test_rooms = $(sort $(foreach test,$(TESTS),$(wordlist 2,3,$(subst /, ,$(dir $(test))))))
room_all = $(foreach test,$(TESTS),$(if $(findstring /$*/,$(dir $(test))),$(test)))
room_tests = $(or $(filter-out $(dt_slow_tests),$(room_all)),$(room_all))
check-long:
	DT_LONG=1; export DT_LONG; $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(dt_long_scripts) $(dt_longer_tests)' \
		check_PROGRAMS='$(filter $(dt_longer_tests:=$(EXEEXT)),$(check_PROGRAMS))' bench_programs=
	$(MAKE) $(AM_MAKEFLAGS) fuzz FUZZ_TIME=60
.PHONY: check-quick check-slow check-long
MOSTLYCLEANFILES += $(dt_long_scripts:.sh=.log) $(dt_long_scripts:.sh=.trs)

# The quick tests in tests/ROOM, or all where all are slow, and what they need: make check-ROOM
check-%:
	@test -n '$(room_tests)' || { echo 'no tests of $*; make check-ROOM knows $(test_rooms)' >&2; exit 2; }
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(room_tests)' check_PROGRAMS='$(filter $(room_tests),$(check_PROGRAMS))' \
		check_LTLIBRARIES='$(foreach file,$(check_LTLIBRARIES),$(if $(findstring /$*/,$(file)),$(file)))' bench_programs=

# core/telemetry/tensorboard has its tests there
check-tensorboard:
	@$(MAKE) $(AM_MAKEFLAGS) check-metrics
.PHONY: check-tensorboard

TEST_EXTENSIONS = .sh
# The build may use a smaller shell (quickstart); the tests keep theirs.
test_shell := $(or $(shell command -v bash),$(SHELL))
SH_LOG_COMPILER = $(test_shell)
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

EXTRA_DIST += tests/installcheck.sh tests/failures.sh tests/refused.h
installcheck-local:
	DT_SRCDIR='$(abs_top_srcdir)' CC='$(CC)' CXX='$(CXX_CHECK)' \
	bindir='$(bindir)' includedir='$(includedir)' libdir='$(libdir)' plugindir='$(plugindir)' docdir='$(docdir)' \
	plugins='$(notdir $(plugin_LTLIBRARIES:.la=))' $(SHELL) $(srcdir)/tests/installcheck.sh
