# SPDX-License-Identifier: Apache-2.0
# The CUDA module built for the emulated device (emulate/cuda_runtime.h), so that its kernels are tested where there is
# no GPU and no toolkit. Wants a C++ compiler; not with ThreadSanitizer, which does not know coroutines.
emulator_sources = \
	tests/engine/cuda/emulate/blas.cc \
	tests/engine/cuda/emulate/block.cc \
	tests/engine/cuda/emulate/graph.cc \
	tests/engine/cuda/emulate/memory.cc \
	tests/engine/cuda/emulate/runtime.cc \
	tests/engine/cuda/emulate/stream.cc
emulator_headers = \
	tests/engine/cuda/emulate/cooperative_groups.h \
	tests/engine/cuda/emulate/cublasLt.h \
	tests/engine/cuda/emulate/cuda_bf16.h \
	tests/engine/cuda/emulate/cuda_fp16.h \
	tests/engine/cuda/emulate/cuda_runtime.h \
	tests/engine/cuda/emulate/machine.h \
	tests/engine/cuda/emulate/mma.h
EXTRA_DIST += $(emulator_sources) $(emulator_headers) tests/engine/cuda/emulate/launch.sed tests/engine/cuda/test_emulator.cu \
	tests/engine/cuda/acting.sh tests/engine/cuda/emulator.sh tests/engine/cuda/half.sh tests/engine/cuda/mutations.sh \
	tests/engine/cuda/nccl/nccl.cc tests/engine/cuda/nccl.sh tests/engine/cuda/orders.sh tests/engine/cuda/phase1.sh tests/engine/cuda/policies.sh tests/engine/cuda/ranks.sh tests/engine/cuda/stream.sh \
	tests/engine/cuda/toolkit.sh tests/engine/cuda/user_op.sh \
	tests/engine/cuda/versions.sh
dt_scripts += tests/engine/cuda/versions_stand_ins.sh

# They run on the emulated GPU in make check, and on a real one in make check-gpu and of a bundle (tests/engine/gpu).
gpu_tests = tests/engine/cuda/test_finish$(EXEEXT) tests/engine/cuda/test_kernels$(EXEEXT) tests/engine/cuda/test_nccl$(EXEEXT) \
	tests/engine/cuda/test_train$(EXEEXT)
if HAVE_CMOCKA
EXTRA_PROGRAMS += tests/engine/cuda/test_finish tests/engine/cuda/test_kernels tests/engine/cuda/test_nccl tests/engine/cuda/test_train
endif
tests_engine_cuda_test_kernels_SOURCES = tests/engine/cuda/test_kernels.c tests/engine/cuda/half.h tests/engine/cuda/open.h \
	tests/engine/ops/cases.c tests/engine/ops/harness.c tests/engine/ops/harness.h
tests_engine_cuda_test_kernels_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_engine_cuda_test_train_SOURCES = tests/engine/cuda/test_train.c tests/engine/cuda/open.h tests/train/toy.c tests/train/toy.h
tests_engine_cuda_test_train_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
tests_engine_cuda_test_nccl_SOURCES = tests/engine/cuda/test_nccl.c tests/engine/cuda/open.h
tests_engine_cuda_test_nccl_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_engine_cuda_test_finish_SOURCES = tests/engine/cuda/test_finish.c tests/engine/cuda/open.h $(host_device_sources)
tests_engine_cuda_test_finish_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
if HAVE_EMULATION
dt_tests += tests/engine/cuda/test_finish tests/engine/cuda/test_kernels tests/engine/cuda/test_nccl tests/engine/cuda/test_train
tests/engine/cuda/test_finish.log tests/engine/cuda/test_kernels.log tests/engine/cuda/test_nccl.log tests/engine/cuda/test_train.log: \
	tests/engine/cuda/emulated/backend_cuda.so
dt_scripts += tests/engine/cuda/acting.sh tests/engine/cuda/emulator.sh tests/engine/cuda/half.sh tests/engine/cuda/nccl.sh tests/engine/cuda/orders.sh \
	tests/engine/cuda/phase1.sh tests/engine/cuda/policies.sh tests/engine/cuda/ranks.sh tests/engine/cuda/stream.sh
dt_slow_tests += $(gpu_tests) tests/engine/cuda/acting.sh tests/engine/cuda/emulator.sh tests/engine/cuda/half.sh tests/engine/cuda/nccl.sh \
	tests/engine/cuda/orders.sh tests/engine/cuda/phase1.sh tests/engine/cuda/policies.sh tests/engine/cuda/ranks.sh tests/engine/cuda/stream.sh \
	tests/engine/cuda/test_doctor$(EXEEXT)
dt_longer_tests += tests/engine/cuda/test_kernels tests/engine/cuda/acting.sh tests/engine/cuda/emulator.sh tests/engine/cuda/half.sh tests/engine/cuda/nccl.sh \
	tests/engine/cuda/orders.sh tests/engine/cuda/ranks.sh tests/engine/cuda/stream.sh
tests/engine/cuda/acting.log tests/engine/cuda/half.log tests/engine/cuda/nccl.log tests/engine/cuda/orders.log tests/engine/cuda/phase1.log tests/engine/cuda/policies.log \
	tests/engine/cuda/ranks.log tests/engine/cuda/stream.log: \
	dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json tests/engine/cuda/emulated/backend_cuda.so
emulator_programs = tests/engine/cuda/emulated/test_emulator tests/engine/cuda/emulated/backend_cuda.so \
	tests/engine/cuda/emulated/older/backend_cuda.so tests/engine/cuda/test_doctor tests/engine/cuda/test_finish tests/engine/cuda/test_kernels tests/engine/cuda/test_train
tests/engine/cuda/emulator.log: $(emulator_programs)
dt_tests += tests/engine/cuda/test_doctor
tests_engine_cuda_test_doctor_SOURCES = tests/engine/cuda/test_doctor.c tests/engine/cuda/open.h
tests_engine_cuda_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_tests_engine_cuda_test_doctor_DEPENDENCIES = tests/engine/cuda/emulated/backend_cuda.so tests/engine/device/libnvidia-ml.la

EMULATED_FLAGS = -std=c++17 -O2 -g -fPIC -ffp-contract=off -fvisibility=hidden -fno-exceptions -Wall -Wextra \
	-Wno-unused-parameter -Wno-unused-function -Wno-unknown-pragmas \
	-Itests/engine/cuda/emulated/include -I$(top_srcdir)/tests/engine/cuda/emulate -I$(top_srcdir)/include -I$(top_srcdir)/core
# Each load and store of the module's own code is a call of emulate/memory.cc.
EMULATED_CHECKS = $(EMULATION_CHECKS) -fsanitize=alignment
emulated_objects = $(cuda_sources:core/engine/backend/cuda/%.cu=tests/engine/cuda/emulated/%.o) \
	$(emulator_sources:tests/engine/cuda/emulate/%.cc=tests/engine/cuda/emulated/emulate_%.o)
emulated_headers = $(cuda_own_headers:core/%=tests/engine/cuda/emulated/include/%)
$(emulated_headers): tests/engine/cuda/emulated/include/%: core/% tests/engine/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/engine/cuda/emulate/launch.sed $< >$@
$(cuda_sources:core/engine/backend/cuda/%.cu=tests/engine/cuda/emulated/%.o): tests/engine/cuda/emulated/%.o: core/engine/backend/cuda/%.cu \
		$(cuda_headers) $(emulated_headers) $(emulator_headers) tests/engine/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/engine/cuda/emulate/launch.sed $< >$(@:.o=.cc) && \
		$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -c -o $@ $(@:.o=.cc)
$(emulator_sources:tests/engine/cuda/emulate/%.cc=tests/engine/cuda/emulated/emulate_%.o): tests/engine/cuda/emulated/emulate_%.o: \
		tests/engine/cuda/emulate/%.cc $(emulator_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -fvisibility=default -c -o $@ $<
# its own calls of the emulator are its own, whatever else the process has of these names
tests/engine/cuda/emulated/backend_cuda.so: $(emulated_objects)
	$(AM_V_GEN)$(CXX_CHECK) -shared -Wl,-z,defs -Wl,-Bsymbolic -o $@ $(emulated_objects)

# A plugin that brings kernels along (examples/bars.cu), on the emulated runtime of the module.
dt_scripts += tests/engine/cuda/user_op.sh
dt_slow_tests += tests/engine/cuda/user_op.sh
tests/engine/cuda/user_op.log: dtrain $(plugin_LTLIBRARIES) examples/bars.la tests/engine/cuda/emulated/bars/bars.so
tests/engine/cuda/emulated/bars/bars.o: examples/bars.cu include/dtrain/ext/ops.h $(emulator_headers) tests/engine/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/engine/cuda/emulate/launch.sed $< >$(@:.o=.cc) && \
		$(CXX_CHECK) $(EMULATED_FLAGS) -fvisibility=default -c -o $@ $(@:.o=.cc)
tests/engine/cuda/emulated/bars/bars.so: examples/bars.c tests/engine/cuda/emulated/bars/bars.o tests/engine/cuda/emulated/backend_cuda.so
	$(AM_V_GEN)$(COMPILE) $(PLUGIN_CPPFLAGS) -fPIC -DDT_PLUGIN_NAME=bars -DBARS_CUDA -shared -o $@ $< $(@:.so=.o) \
		tests/engine/cuda/emulated/backend_cuda.so -Wl,-rpath,'$$ORIGIN/..' -lm

# NCCL's stand-in, between processes that each have an emulated GPU
# (a rule for test_nccl.log alone would replace automake's, which runs it)
tests/engine/cuda/nccl.log tests/engine/cuda/test_nccl.log: tests/engine/cuda/emulated/nccl/libnccl.so.2
tests/engine/cuda/emulated/nccl/libnccl.so.2: tests/engine/cuda/nccl/nccl.cc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -shared -Wl,-z,defs -o $@ $< -ldl

# the same as if compiled for compute capability 8.0 alone; later GPUs then run what the driver translates
older_parts = lstm_cluster.o emulate_runtime.o
older_objects = $(filter-out $(older_parts:%=tests/engine/cuda/emulated/%), $(emulated_objects)) \
	$(older_parts:%=tests/engine/cuda/emulated/older/%)
tests/engine/cuda/emulated/older/lstm_cluster.o: tests/engine/cuda/emulated/lstm_cluster.o
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -D__CUDA_ARCH__=800 -c -o $@ $(<:.o=.cc)
tests/engine/cuda/emulated/older/emulate_runtime.o: tests/engine/cuda/emulate/runtime.cc tests/engine/cuda/emulated/emulate_runtime.o
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -DDT_EMULATED_CODE=80 -c -o $@ $<
tests/engine/cuda/emulated/older/backend_cuda.so: $(older_objects)
	$(AM_V_GEN)$(CXX_CHECK) -shared -Wl,-z,defs -o $@ $(older_objects)

# of the emulator itself
tests/engine/cuda/emulated/test_emulator: tests/engine/cuda/test_emulator.cu tests/engine/cuda/emulate/launch.sed \
		$(emulator_sources:tests/engine/cuda/emulate/%.cc=tests/engine/cuda/emulated/emulate_%.o)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/engine/cuda/emulate/launch.sed $< >$@.cc && \
		$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -o $@ $@.cc \
		$(emulator_sources:tests/engine/cuda/emulate/%.cc=tests/engine/cuda/emulated/emulate_%.o)

# Many seeds, and mistakes that are put back to see that they are found: an hour and more. EMULATED_SEEDS: how many.
EMULATED_SEEDS = 5000
check-gpu-emulated: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json $(emulator_programs) \
		tests/engine/cuda/emulated/nccl/libnccl.so.2
	@$(AM_TESTS_ENVIRONMENT) \
	EMULATED_CXX='$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS)' EMULATED_PARTS='$(emulated_objects)' \
	DTRAIN_COMPILE='$(COMPILE)' DTRAIN_LINK='$(LINK)'; \
	export EMULATED_CXX EMULATED_PARTS DTRAIN_COMPILE DTRAIN_LINK; \
	DT_LONG=1 tests/engine/cuda/test_kernels && \
	$(SHELL) $(srcdir)/tests/engine/cuda/mutations.sh && \
	DT_EMULATED_SEEDS='$(EMULATED_SEEDS)' $(SHELL) $(srcdir)/tests/engine/cuda/orders.sh

emulation-clean:
	rm -rf tests/engine/cuda/emulated tests/engine/cuda/mutant
mostlyclean_hooks += emulation-clean
else
check-gpu-emulated:
	@echo 'check-gpu-emulated: this build has no emulated GPU (it wants a C++ compiler, and neither --disable-emulation nor --enable-tsan)'
	@exit 1
endif
.PHONY: check-gpu-emulated
