# SPDX-License-Identifier: Apache-2.0
# The module for NVIDIA GPUs, opened when a run wants one. nvcc writes it, the C compiler links it; it sees the headers
# of core but none of its code: what it needs of the host comes through dt_device_host.

cuda_sources = \
	core/engine/backend/cuda/axis.cu \
	core/engine/backend/cuda/batch_norm.cu \
	core/engine/backend/cuda/binary.cu \
	core/engine/backend/cuda/conv.cu \
	core/engine/backend/cuda/copy.cu \
	core/engine/backend/cuda/cumsum.cu \
	core/engine/backend/cuda/device.cu \
	core/engine/backend/cuda/dropout.cu \
	core/engine/backend/cuda/gat.cu \
	core/engine/backend/cuda/graph_qk.cu \
	core/engine/backend/cuda/gru.cu \
	core/engine/backend/cuda/layernorm.cu \
	core/engine/backend/cuda/linear.cu \
	core/engine/backend/cuda/loss.cu \
	core/engine/backend/cuda/lstm.cu \
	core/engine/backend/cuda/lstm_cluster.cu \
	core/engine/backend/cuda/optim.cu \
	core/engine/backend/cuda/policy.cu \
	core/engine/backend/cuda/product.cu \
	core/engine/backend/cuda/recurrent.cu \
	core/engine/backend/cuda/reduce.cu \
	core/engine/backend/cuda/segment_mean.cu \
	core/engine/backend/cuda/softmax.cu \
	core/engine/backend/cuda/sums.cu \
	core/engine/backend/cuda/table.cu \
	core/engine/backend/cuda/unary.cu
cuda_own_headers = \
	core/engine/backend/cuda/attention.h \
	core/engine/backend/cuda/columns.h \
	core/engine/backend/cuda/cuda.h \
	core/engine/backend/cuda/lstm.h \
	core/engine/backend/cuda/stored.h \
	core/engine/backend/cuda/philox.h \
	core/engine/backend/cuda/product.h \
	core/engine/backend/cuda/recurrent.h \
	core/engine/backend/cuda/referrer.h \
	core/engine/backend/cuda/table.h \
	core/engine/backend/cuda/warp.h
cuda_headers = $(cuda_own_headers) core/engine/device/device.h core/engine/backend/kernel.h
EXTRA_DIST += build-aux/nvcc-wrap $(cuda_sources) $(cuda_own_headers)

CUDA_FLAGS = -std=c++17 -O3 -lineinfo -Werror all-warnings \
	--compiler-options -Wall,-Wextra,-Wno-unused-parameter,-fno-exceptions,-fno-threadsafe-statics,-fvisibility=hidden \
	-I$(top_srcdir)/include -I$(top_srcdir)/core
# an update has the bits of the CPU's: multiplication and addition are not contracted
cuda_optim_flags = -fmad=false

# By every release of CUDA that packages can be had of, for every GPU; an hour on two cores. Wants the network once.
# CUDA_VERSIONS='11.8 13.5': these; CUDA_ARCHS=90: for that GPU; CUDA_MORE_FLAGS='-Xcicc -O0 -Xptxas -O0': in minutes.
CUDA_VERSIONS =
CUDA_MORE_FLAGS =
check-cuda-versions: dtrain
	@DT_SRCDIR='$(abs_top_srcdir)' DT_BUILDDIR='$(abs_top_builddir)' CC='$(CC)' CUDA_VERSIONS='$(CUDA_VERSIONS)' \
	CUDA_ARCHS='$(CUDA_ARCHS)' CUDA_SOURCES='$(cuda_sources)' CUDA_FLAGS='$(CUDA_FLAGS) $(CUDA_MORE_FLAGS)' \
	CUDA_FLAGS_optim='$(cuda_optim_flags)'; \
	export DT_SRCDIR DT_BUILDDIR CC CUDA_VERSIONS CUDA_ARCHS CUDA_SOURCES CUDA_FLAGS CUDA_FLAGS_optim; \
	$(SHELL) $(srcdir)/tests/engine/cuda/versions.sh
cuda-versions-clean:
	rm -rf cuda-versions
mostlyclean_hooks += cuda-versions-clean
.PHONY: check-cuda-versions cuda-versions-clean

if HAVE_CUDA
cuda_objects = $(cuda_sources:.cu=.lo)
module_LTLIBRARIES += core/engine/backend/cuda/backend_cuda.la
core_engine_backend_cuda_backend_cuda_la_SOURCES =
core_engine_backend_cuda_backend_cuda_la_LDFLAGS = -module -avoid-version -shared -no-undefined -Wl,-z,defs \
	-Wl,-rpath,$(CUDA_LIBDIR) -export-symbols-regex '^dt_device_module$$'
core_engine_backend_cuda_backend_cuda_la_LIBADD = $(cuda_objects) $(CUDA_LIBS)
core_engine_backend_cuda_backend_cuda_la_DEPENDENCIES = $(cuda_objects)

cuda_file_flags =
core/engine/backend/cuda/optim.lo: cuda_file_flags = $(cuda_optim_flags)
$(cuda_objects): %.lo: %.cu $(cuda_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(LIBTOOL) $(AM_LIBTOOLFLAGS) --silent --tag=CC --mode=compile $(SHELL) $(top_srcdir)/build-aux/nvcc-wrap \
		$(NVCC) $(CUDA_FLAGS) $(NVCC_GENCODE) $(cuda_file_flags) -c -o $@ $(srcdir)/$(<:$(srcdir)/%=%)

cuda-mostlyclean:
	$(LIBTOOL) --silent --mode=clean rm -f $(cuda_objects)
mostlyclean_hooks += cuda-mostlyclean
endif
