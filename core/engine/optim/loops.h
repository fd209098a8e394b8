/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of optim.c, compiled once per instruction set like the CPU kernels. The flags forbid contraction and
 * reassociation and every element is handled alike, so all builds give the same bits, and so does every split.
 */
#ifndef DTRAIN_CORE_ENGINE_OPTIM_LOOPS_H
#define DTRAIN_CORE_ENGINE_OPTIM_LOOPS_H

#include "engine/optim/optim.h"

#include <stdint.h>

typedef struct dt_optim_loops {
    void (*adam)(const dt_optim_consts *k, float *p, const float *g, float *m, float *v, int64_t n);
    void (*sgd)(const dt_optim_consts *k, float *p, const float *g, float *m, int64_t n);
    double (*sum_squares)(const float *g, int64_t n);
    void (*add)(float *dst, const float *src, int64_t n);
    void (*blend)(float *to, const float *from, float tau, int64_t n);
    void (*round[2])(float *x, int64_t n); /* by DT_HALF_BF16, DT_HALF_FP16, less one */
    void (*pack[2])(const float *from, uint16_t *to, int64_t n);
    void (*unpack[2])(const uint16_t *from, float *to, int64_t n);
} dt_optim_loops;

extern const dt_optim_loops dt_optim_loops_base, dt_optim_loops_avx2, dt_optim_loops_avx512;

#endif
