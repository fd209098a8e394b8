# SPDX-License-Identifier: Apache-2.0
# What C++ cannot read of CUDA, in C++ (cuda_runtime.h beside this). Kernels begin by saying how many threads of a block
# they are compiled for, 0 when they do not say: on the line of their brace, so that lines keep their numbers.
s/.*__global__.*{.*/#error "the brace of a kernel wants a line of its own"/
/__global__/{
h
s/.*__launch_bounds__(\([^()]*\)).*/\1/
t bounded
s/.*/0/
:bounded
x
}
/^{$/{
G
s/\n\(..*\)/ if (dt_emulate_enter((unsigned)(\1), __func__)) return;/
s/\n//
x
s/.*//
x
}
# kernel<<<...>>>(...)
s/\([A-Za-z_][A-Za-z_0-9]*\(<[^<>;]*>\)\{0,1\}\)<<</DT_EMULATE((\1), /g
s/>>>/)/g
