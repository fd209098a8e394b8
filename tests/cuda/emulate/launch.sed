# SPDX-License-Identifier: Apache-2.0
# kernel<<<...>>>(...) of CUDA as C++ can read it (cuda_runtime.h beside this)
s/\([A-Za-z_][A-Za-z_0-9]*\(<[^<>;]*>\)\{0,1\}\)<<</DT_EMULATE((\1), /g
s/>>>/)/g
