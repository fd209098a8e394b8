/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two ways to run an LSTM share: lstm.cu launches a kernel for each time step and runs anywhere;
 * lstm_cluster.cu keeps weights and state on chip over the whole sequence. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_LSTM_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_LSTM_H

#include "engine/backend/cuda/stored.h"

enum { DT_CUDA_LSTM_GATES = 4 };

/* E: how everything is stored but present, the cell state and what is carried from step to step */
template <typename E> struct dt_cuda_lstm_forward {
    using element = E;
    dt_cuda_ptr<const E> xw, wh;
    dt_cuda_ptr<const float> present;
    dt_cuda_ptr<E> h, gates;
    dt_cuda_ptr<float> c;
    dt_cuda_ptr<float> state; /* [S,H] in scratch: the cell state when c is not kept */
    dt_cuda_span rows;        /* dt_cuda_sequences */
    int T, S, H;
};

template <typename E> struct dt_cuda_lstm_backward {
    using element = E;
    dt_cuda_ptr<const E> dy, gates, wh;
    dt_cuda_ptr<const float> c, present;
    dt_cuda_ptr<E> dz; /* [T,S,4H]: dxw, or in scratch */
    dt_cuda_ptr<float> dc,
        held; /* [S,H] in scratch: carried from the step after; held: dh where no sequence was present */
    dt_cuda_span rows;
    int T, S, H;
};

/* gate: arguments of i f g o on entry, their values on return   c = f c_before + i g   h = o tanh(c) */
__device__ static inline void dt_cuda_lstm_cell(float gate[DT_CUDA_LSTM_GATES], float c_before, float *c, float *h)
{
    gate[0] = dt_cuda_sigmoid(gate[0]);
    gate[1] = dt_cuda_sigmoid(gate[1]);
    gate[2] = tanhf(gate[2]);
    gate[3] = dt_cuda_sigmoid(gate[3]);
    *c = gate[1] * c_before + gate[0] * gate[2];
    *h = gate[3] * tanhf(*c);
}

/* gate: values of i f g o on entry, gradients of their arguments on return; the gradient of c_before is returned */
__device__ static inline float dt_cuda_lstm_gradient(float gate[DT_CUDA_LSTM_GATES], float c, float c_before, float dh,
                                                     float dc_after)
{
    const float i = gate[0], f = gate[1], g = gate[2], o = gate[3], tc = tanhf(c);
    const float dc = dc_after + dh * o * (1 - tc * tc);
    gate[0] = dc * g * (i * (1 - i));
    gate[1] = dc * c_before * (f * (1 - f));
    gate[2] = dc * i * (1 - g * g);
    gate[3] = dh * tc * (o * (1 - o));
    return dc * f;
}

/* May this call run on clusters? Compute capability 9.0 or later, of the device and of the code compiled for it;
 * products in bf16 or fp16, H of 32 to 256; and the device reports that it has room for such a cluster. */
bool dt_cuda_lstm_fits_cluster(const dt_device_args *a, int H);
template <typename E> dt_status dt_cuda_lstm_cluster(const dt_device_args *a, const dt_cuda_lstm_forward<E> *f);
/* Without dwh. */
template <typename E> dt_status dt_cuda_lstm_cluster_bwd(const dt_device_args *a, const dt_cuda_lstm_backward<E> *b);

#endif
