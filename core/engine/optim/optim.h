/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers over flat arenas, and learning-rate schedules. Every function is one pass over a range and element-wise
 * (or over a unit whose ends are fixed), so that the result does not depend on how ranges are dealt to workers.
 *
 *   AdamW  Loshchilov & Hutter 2019, decoupled decay: p -= lr * (m^ / (sqrt(v^) + eps) + wd * p)
 *   Adam   Kingma & Ba 2015, wd added to the gradient (PyTorch's Adam)
 *   SGD    momentum m = mu m + g, p -= lr * m (PyTorch's SGD, dampening 0), wd added to the gradient
 * Threads: [worker], disjoint ranges.
 */
#ifndef DTRAIN_CORE_ENGINE_OPTIM_OPTIM_H
#define DTRAIN_CORE_ENGINE_OPTIM_OPTIM_H

#include "base/choices.h"
#include "dtrain/status.h"
#include <stdint.h>

typedef struct dt_optim_step {
    dt_optimizer kind;
    double lr, beta1, beta2, eps, weight_decay, momentum;
    double grad_scale; /* clip factor (and later unscale), multiplies the gradient */
    uint64_t step;     /* number of this update, from 1: bias correction */
} dt_optim_step;

typedef struct dt_optim_consts { /* one update's numbers, rounded to float once */
    float grad_scale, l2, beta1, one_minus_beta1, beta2, one_minus_beta2, rate, inv_root, eps, keep;
} dt_optim_consts;
dt_optim_consts dt_optim_constants(const dt_optim_step *s);

/* How many moments an optimizer keeps of a parameter: 1 or 2. */
uint32_t dt_optim_n_moments(dt_optimizer kind);

/* Update n elements. k: dt_optim_constants of the step. m, v: moments (v unused by SGD, may be NULL). g is read only.
 * On x86-64 numbers below the smallest normal float are taken, and stored, as 0. */
void dt_optim_apply(dt_optimizer kind, const dt_optim_consts *k, float *p, const float *g, float *m, float *v,
                    int64_t n);
/* Sum of squares of one unit [begin, end) in double, fixed order. */
double dt_optim_sum_squares(const float *g, int64_t begin, int64_t end);
/* dst += src over [begin, end): a merge of the fixed reduction tree. */
void dt_optim_add(float *dst, const float *src, int64_t begin, int64_t end);
/* to += tau (from - to) of n; tau 1: a copy. Small numbers as in an update. */
void dt_optim_blend(float *to, const float *from, double tau, int64_t n);

/* Numbers in half the bits, as they are sent: rounded to nearest, ties to even; what is too large becomes infinite
 * (from 65520 on in fp16), what is smaller than half of the smallest one 0, and NaN stays NaN. */
void dt_optim_round(uint32_t half, float *x, int64_t begin, int64_t end); /* in place; none: nothing */
void dt_half_from_f32(uint32_t half, const float *from, uint16_t *to, int64_t n);
void dt_half_to_f32(uint32_t half, const uint16_t *from, float *to, int64_t n); /* exact */

typedef struct dt_schedule {
    dt_schedule_kind kind;
    double lr, eta_min;      /* base rate; end of the cosine and of the line */
    double warmup;           /* in units of x: linear from lr/warmup-step to lr */
    double t_max;            /* cosine, linear: x where eta_min is reached (warm-up included); later x stays there */
    double step_size, gamma; /* step: lr * gamma^floor(x / step_size) */
} dt_schedule;
/* Rate at x, measured in epochs as a real number (step / steps per epoch), first step at x > 0 during warm-up. */
double dt_schedule_rate(const dt_schedule *s, double x);

#endif
