# SPDX-License-Identifier: Apache-2.0
# The CUDA module built for the emulated device (emulate/cuda_runtime.h), so that its kernels are tested where there is
# no GPU and no toolkit. Wants a C++ compiler; not with ThreadSanitizer, which does not know coroutines.
emulator_sources = tests/cuda/emulate/blas.cc tests/cuda/emulate/block.cc tests/cuda/emulate/runtime.cc
emulator_headers = \
	tests/cuda/emulate/cooperative_groups.h \
	tests/cuda/emulate/cublasLt.h \
	tests/cuda/emulate/cuda_bf16.h \
	tests/cuda/emulate/cuda_fp16.h \
	tests/cuda/emulate/cuda_runtime.h \
	tests/cuda/emulate/mma.h
EXTRA_DIST += $(emulator_sources) $(emulator_headers) tests/cuda/emulate/launch.sed tests/cuda/phase1.sh tests/cuda/policies.sh

if HAVE_EMULATION
dt_tests += tests/cuda/test_kernels
tests_cuda_test_kernels_SOURCES = tests/cuda/test_kernels.c tests/cuda/open.h \
	tests/ops/cases.c tests/ops/harness.c tests/ops/harness.h
tests_cuda_test_kernels_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_tests_cuda_test_kernels_DEPENDENCIES = tests/cuda/emulated/backend_cuda.so
dt_tests += tests/cuda/test_train
tests_cuda_test_train_SOURCES = tests/cuda/test_train.c tests/cuda/open.h tests/train/toy.c tests/train/toy.h
tests_cuda_test_train_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
EXTRA_tests_cuda_test_train_DEPENDENCIES = tests/cuda/emulated/backend_cuda.so
dt_scripts += tests/cuda/phase1.sh tests/cuda/policies.sh
tests/cuda/phase1.log tests/cuda/policies.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json tests/cuda/emulated/backend_cuda.so
dt_tests += tests/cuda/test_finish
tests_cuda_test_finish_SOURCES = tests/cuda/test_finish.c tests/cuda/open.h \
	tests/device/host_device.c tests/device/host_device.h
tests_cuda_test_finish_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_tests_cuda_test_finish_DEPENDENCIES = tests/cuda/emulated/backend_cuda.so

EMULATED_FLAGS = -std=c++17 -O2 -g -fPIC -ffp-contract=off -fvisibility=hidden -fno-exceptions -fsanitize=alignment \
	-fsanitize-undefined-trap-on-error -Wall -Wextra \
	-Wno-unused-parameter -Wno-unused-function -Wno-unknown-pragmas \
	-I$(top_srcdir)/tests/cuda/emulate -I$(top_srcdir)/include -I$(top_srcdir)/core
emulated_objects = $(cuda_sources:core/backend/cuda/%.cu=tests/cuda/emulated/%.o) \
	$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o)
$(cuda_sources:core/backend/cuda/%.cu=tests/cuda/emulated/%.o): tests/cuda/emulated/%.o: core/backend/cuda/%.cu \
		$(cuda_headers) $(emulator_headers) tests/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/cuda/emulate/launch.sed $< >$(@:.o=.cc) && \
		$(CXX_CHECK) $(EMULATED_FLAGS) -c -o $@ $(@:.o=.cc)
$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o): tests/cuda/emulated/emulate_%.o: \
		tests/cuda/emulate/%.cc $(emulator_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -c -o $@ $<
tests/cuda/emulated/backend_cuda.so: $(emulated_objects)
	$(AM_V_GEN)$(CXX_CHECK) -shared -o $@ $(emulated_objects)

CLEANFILES += tests/cuda/emulated/*
endif
