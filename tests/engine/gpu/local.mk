# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: make check-gpu; or make gpu-bundle here, and `sh measure.sh` of that folder there.
dt_whole_run_scripts += tests/engine/gpu/stand_ins.sh
EXTRA_DIST += tests/engine/gpu/measure.sh tests/engine/gpu/cupti_trace.cc tests/engine/gpu/trace_report.py build-aux/gpu-bundle.sh

gpu_programs = dtrain$(EXEEXT) bench_phase1_step$(EXEEXT)
if HAVE_CMOCKA
gpu_programs += $(gpu_tests)
endif
gpu_needs = $(gpu_programs) $(plugin_LTLIBRARIES) share/demo.store/store.json profiles-of-build

if HAVE_CUDA
# Compiled for GPU_ARCHS alone, each "90" of sm_90: those of all GPUs are 100 MB. A build for the same GPUs is used as
# it is.
GPU_ARCHS = 90
GPU_BUNDLE_MAX_MIB = 44
gpu_gencode = $(foreach arch,$(GPU_ARCHS),-gencode=arch=compute_$(arch),code=sm_$(arch))
gpu_objects_dir = gpu-objects/$(subst $(subst ,, ),-,$(strip $(GPU_ARCHS)))
gpu_objects = $(cuda_sources:core/engine/backend/cuda/%.cu=$(gpu_objects_dir)/%.o)
gpu_module_own = $(gpu_objects_dir)/backend_cuda.so
gpu_module = $(if $(subst $(strip $(gpu_gencode)),,$(strip $(NVCC_GENCODE))),$(gpu_module_own),core/engine/backend/cuda/backend_cuda.la)
$(gpu_objects_dir)/optim.o: cuda_file_flags = $(cuda_optim_flags)
$(gpu_objects): $(gpu_objects_dir)/%.o: core/engine/backend/cuda/%.cu $(cuda_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) $(CUDA_FLAGS) --compiler-options -fPIC $(gpu_gencode) $(cuda_file_flags) -c -o $@ $<
$(gpu_module_own): $(gpu_objects)
	$(AM_V_GEN)$(CC) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-rpath,$(CUDA_LIBDIR) -o $@ $(gpu_objects) $(CUDA_LIBS) -lm

# The kernel timeline, where the toolkit has CUPTI.
tests/engine/gpu/libcupti_trace.so: tests/engine/gpu/cupti_trace.cc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)root=`dirname '$(NVCC)'`/..; cupti=$$root/extras/CUPTI; \
	if echo '#include <cupti.h>' | $(CXX_CHECK) -I$$root/include -I$$cupti/include -E -x c++ - >/dev/null 2>&1; then \
	  $(CXX_CHECK) -std=c++17 -O2 -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden -shared -fPIC -static-libstdc++ -static-libgcc \
	    -Wl,-z,defs -I$$root/include -I$$cupti/include -o $@ $(srcdir)/tests/engine/gpu/cupti_trace.cc \
	    -L'$(CUDA_LIBDIR)' -L$$cupti/lib64 -Wl,-rpath,'$(CUDA_LIBDIR)' -lcupti; \
	else echo 'no cupti.h in this toolkit: measure.sh will have no kernel timeline'; : >$@; fi
tests/engine/gpu/stand_ins.log: tests/engine/gpu/libcupti_trace.so

gpu-bundle: $(BUILT_SOURCES) $(gpu_needs) $(gpu_module) tests/engine/gpu/libcupti_trace.so
	CUDA_LIBDIR='$(CUDA_LIBDIR)' CUDA_VERSION='$(CUDA_VERSION)' GPU_ARCHS='$(GPU_ARCHS)' VERSION='$(PACKAGE_VERSION)' \
	MAX_MIB='$(GPU_BUNDLE_MAX_MIB)' $(SHELL) $(srcdir)/build-aux/gpu-bundle.sh $(abs_top_srcdir) $(abs_top_builddir) \
		gpu-bundle $(gpu_programs) -- $(gpu_module) $(plugin_LTLIBRARIES)
gpu_trace = tests/engine/gpu/libcupti_trace.so
else
gpu_trace =
gpu-bundle:
	@echo 'gpu-bundle: this build has no CUDA; configure --with-cuda=PATH (docs/howto/gpu.md)' >&2
	@exit 1
endif
check-gpu: $(gpu_needs) $(module_LTLIBRARIES) $(gpu_trace)
	DT_SRCDIR='$(abs_top_srcdir)' DT_BUILDDIR='$(abs_top_builddir)' OUT=gpu-results DEADLINE=0 BOX=20 \
		$(SHELL) $(srcdir)/tests/engine/gpu/measure.sh check || test $$? -eq 77
.PHONY: check-gpu gpu-bundle
gpu-clean:
	rm -rf gpu-bundle gpu-objects gpu-results tests/engine/gpu/libcupti_trace.so
mostlyclean_hooks += gpu-clean
