# SPDX-License-Identifier: Apache-2.0
# The CUDA module built for the emulated device (emulate/cuda_runtime.h), so that its kernels are tested where there is
# no GPU and no toolkit. Wants a C++ compiler; not with ThreadSanitizer, which does not know coroutines.
emulator_sources = \
	tests/cuda/emulate/blas.cc \
	tests/cuda/emulate/block.cc \
	tests/cuda/emulate/graph.cc \
	tests/cuda/emulate/memory.cc \
	tests/cuda/emulate/runtime.cc \
	tests/cuda/emulate/stream.cc
emulator_headers = \
	tests/cuda/emulate/cooperative_groups.h \
	tests/cuda/emulate/cublasLt.h \
	tests/cuda/emulate/cuda_bf16.h \
	tests/cuda/emulate/cuda_fp16.h \
	tests/cuda/emulate/cuda_runtime.h \
	tests/cuda/emulate/machine.h \
	tests/cuda/emulate/mma.h
EXTRA_DIST += $(emulator_sources) $(emulator_headers) tests/cuda/emulate/launch.sed tests/cuda/test_emulator.cu \
	tests/cuda/acting.sh tests/cuda/emulator.sh tests/cuda/half.sh tests/cuda/mutations.sh \
	tests/cuda/nccl/nccl.cc tests/cuda/nccl.sh tests/cuda/orders.sh tests/cuda/phase1.sh tests/cuda/policies.sh tests/cuda/ranks.sh tests/cuda/stream.sh \
	tests/cuda/toolkit.sh \
	tests/cuda/versions.sh
dt_scripts += tests/cuda/versions_stand_ins.sh

# They run on the emulated GPU in make check, and on a real one in make check-gpu and of a bundle (tests/gpu).
gpu_tests = tests/cuda/test_finish$(EXEEXT) tests/cuda/test_kernels$(EXEEXT) tests/cuda/test_nccl$(EXEEXT) \
	tests/cuda/test_train$(EXEEXT)
if HAVE_CMOCKA
EXTRA_PROGRAMS += tests/cuda/test_finish tests/cuda/test_kernels tests/cuda/test_nccl tests/cuda/test_train
endif
tests_cuda_test_kernels_SOURCES = tests/cuda/test_kernels.c tests/cuda/half.h tests/cuda/open.h \
	tests/ops/cases.c tests/ops/harness.c tests/ops/harness.h
tests_cuda_test_kernels_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_cuda_test_train_SOURCES = tests/cuda/test_train.c tests/cuda/open.h tests/train/toy.c tests/train/toy.h
tests_cuda_test_train_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
tests_cuda_test_nccl_SOURCES = tests/cuda/test_nccl.c tests/cuda/open.h
tests_cuda_test_nccl_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_cuda_test_finish_SOURCES = tests/cuda/test_finish.c tests/cuda/open.h \
	tests/device/host_device.c tests/device/host_device.h \
	tests/device/host_work.c tests/device/host_work.h
tests_cuda_test_finish_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
if HAVE_EMULATION
dt_tests += tests/cuda/test_finish tests/cuda/test_kernels tests/cuda/test_nccl tests/cuda/test_train
tests/cuda/test_finish.log tests/cuda/test_kernels.log tests/cuda/test_nccl.log tests/cuda/test_train.log: \
	tests/cuda/emulated/backend_cuda.so
dt_scripts += tests/cuda/acting.sh tests/cuda/emulator.sh tests/cuda/half.sh tests/cuda/nccl.sh tests/cuda/orders.sh \
	tests/cuda/phase1.sh tests/cuda/policies.sh tests/cuda/ranks.sh tests/cuda/stream.sh
dt_slow_tests += $(gpu_tests) tests/cuda/acting.sh tests/cuda/emulator.sh tests/cuda/half.sh tests/cuda/nccl.sh \
	tests/cuda/orders.sh tests/cuda/phase1.sh tests/cuda/policies.sh tests/cuda/ranks.sh tests/cuda/stream.sh \
	tests/cuda/test_doctor$(EXEEXT)
dt_longer_tests += tests/cuda/test_kernels tests/cuda/acting.sh tests/cuda/emulator.sh tests/cuda/half.sh tests/cuda/nccl.sh \
	tests/cuda/orders.sh tests/cuda/ranks.sh tests/cuda/stream.sh
tests/cuda/acting.log tests/cuda/half.log tests/cuda/nccl.log tests/cuda/orders.log tests/cuda/phase1.log tests/cuda/policies.log \
	tests/cuda/ranks.log tests/cuda/stream.log: \
	dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json tests/cuda/emulated/backend_cuda.so
emulator_programs = tests/cuda/emulated/test_emulator tests/cuda/emulated/backend_cuda.so \
	tests/cuda/emulated/older/backend_cuda.so tests/cuda/test_doctor tests/cuda/test_finish tests/cuda/test_kernels tests/cuda/test_train
tests/cuda/emulator.log: $(emulator_programs)
dt_tests += tests/cuda/test_doctor
tests_cuda_test_doctor_SOURCES = tests/cuda/test_doctor.c tests/cuda/open.h
tests_cuda_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_tests_cuda_test_doctor_DEPENDENCIES = tests/cuda/emulated/backend_cuda.so tests/device/libnvidia-ml.la

EMULATED_FLAGS = -std=c++17 -O2 -g -fPIC -ffp-contract=off -fvisibility=hidden -fno-exceptions -Wall -Wextra \
	-Wno-unused-parameter -Wno-unused-function -Wno-unknown-pragmas \
	-Itests/cuda/emulated/include -I$(top_srcdir)/tests/cuda/emulate -I$(top_srcdir)/include -I$(top_srcdir)/core
# Each load and store of the module's own code is a call of emulate/memory.cc.
EMULATED_CHECKS = $(EMULATION_CHECKS) -fsanitize=alignment
emulated_objects = $(cuda_sources:core/backend/cuda/%.cu=tests/cuda/emulated/%.o) \
	$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o)
emulated_headers = $(cuda_own_headers:core/%=tests/cuda/emulated/include/%)
$(emulated_headers): tests/cuda/emulated/include/%: core/% tests/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/cuda/emulate/launch.sed $< >$@
$(cuda_sources:core/backend/cuda/%.cu=tests/cuda/emulated/%.o): tests/cuda/emulated/%.o: core/backend/cuda/%.cu \
		$(cuda_headers) $(emulated_headers) $(emulator_headers) tests/cuda/emulate/launch.sed
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/cuda/emulate/launch.sed $< >$(@:.o=.cc) && \
		$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -c -o $@ $(@:.o=.cc)
$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o): tests/cuda/emulated/emulate_%.o: \
		tests/cuda/emulate/%.cc $(emulator_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -c -o $@ $<
tests/cuda/emulated/backend_cuda.so: $(emulated_objects)
	$(AM_V_GEN)$(CXX_CHECK) -shared -Wl,-z,defs -o $@ $(emulated_objects)

# NCCL's stand-in, between processes that each have an emulated GPU
# (a rule for test_nccl.log alone would replace automake's, which runs it)
tests/cuda/nccl.log tests/cuda/test_nccl.log: tests/cuda/emulated/nccl/libnccl.so.2
tests/cuda/emulated/nccl/libnccl.so.2: tests/cuda/nccl/nccl.cc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -shared -Wl,-z,defs -o $@ $< -ldl

# the same as if compiled for compute capability 8.0 alone; later GPUs then run what the driver translates
older_parts = lstm_cluster.o emulate_runtime.o
older_objects = $(filter-out $(older_parts:%=tests/cuda/emulated/%), $(emulated_objects)) \
	$(older_parts:%=tests/cuda/emulated/older/%)
tests/cuda/emulated/older/lstm_cluster.o: tests/cuda/emulated/lstm_cluster.o
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -D__CUDA_ARCH__=800 -c -o $@ $(<:.o=.cc)
tests/cuda/emulated/older/emulate_runtime.o: tests/cuda/emulate/runtime.cc tests/cuda/emulated/emulate_runtime.o
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(CXX_CHECK) $(EMULATED_FLAGS) -DDT_EMULATED_CODE=80 -c -o $@ $<
tests/cuda/emulated/older/backend_cuda.so: $(older_objects)
	$(AM_V_GEN)$(CXX_CHECK) -shared -Wl,-z,defs -o $@ $(older_objects)

# of the emulator itself
tests/cuda/emulated/test_emulator: tests/cuda/test_emulator.cu tests/cuda/emulate/launch.sed \
		$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o)
	$(AM_V_GEN)$(SED) -f $(top_srcdir)/tests/cuda/emulate/launch.sed $< >$@.cc && \
		$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS) -o $@ $@.cc \
		$(emulator_sources:tests/cuda/emulate/%.cc=tests/cuda/emulated/emulate_%.o)

# Many seeds, and mistakes that are put back to see that they are found: an hour and more. EMULATED_SEEDS: how many.
EMULATED_SEEDS = 5000
check-gpu-emulated: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json $(emulator_programs) \
		tests/cuda/emulated/nccl/libnccl.so.2
	@$(AM_TESTS_ENVIRONMENT) \
	EMULATED_CXX='$(CXX_CHECK) $(EMULATED_FLAGS) $(EMULATED_CHECKS)' EMULATED_PARTS='$(emulated_objects)' \
	DTRAIN_COMPILE='$(COMPILE)' DTRAIN_LINK='$(LINK)'; \
	export EMULATED_CXX EMULATED_PARTS DTRAIN_COMPILE DTRAIN_LINK; \
	DT_LONG=1 tests/cuda/test_kernels && \
	$(SHELL) $(srcdir)/tests/cuda/mutations.sh && \
	DT_EMULATED_SEEDS='$(EMULATED_SEEDS)' $(SHELL) $(srcdir)/tests/cuda/orders.sh

emulation-clean:
	rm -rf tests/cuda/emulated tests/cuda/mutant
mostlyclean_hooks += emulation-clean
else
check-gpu-emulated:
	@echo 'check-gpu-emulated: this build has no emulated GPU (it wants a C++ compiler, and neither --disable-emulation nor --enable-tsan)'
	@exit 1
endif
.PHONY: check-gpu-emulated
