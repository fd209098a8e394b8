/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer updates over ranges of flat arenas. See optim.h; the loops are in loops.c.
 */
#include <config.h>

#include "engine/backend/cpu/isa.h"
#include "engine/optim/loops.h"
#include "engine/optim/optim.h"

#include <math.h>
#include <string.h>

static const dt_optim_loops *select_loops(void)
{
    switch (dt_cpu_isa_index()) {
#ifdef DT_HAVE_CPU_AVX512
    case DT_CPU_ISA_AVX512:
    case DT_CPU_ISA_AVX512_BF16:
    case DT_CPU_ISA_AMX_BF16:
        return &dt_optim_loops_avx512;
#endif
#ifdef DT_HAVE_CPU_AVX2
    case DT_CPU_ISA_AVX2:
        return &dt_optim_loops_avx2;
#endif
    default:
        return &dt_optim_loops_base;
    }
}

dt_optim_consts dt_optim_constants(const dt_optim_step *s)
{
    dt_optim_consts k = {.grad_scale = (float)s->grad_scale, .rate = (float)s->lr, .keep = 1};
    if (s->kind == DT_OPTIMIZER_SGD) {
        k.l2 = (float)s->weight_decay;
        k.beta1 = (float)s->momentum;
        return k;
    }
    k.beta1 = (float)s->beta1;
    k.one_minus_beta1 = (float)(1.0 - s->beta1);
    k.beta2 = (float)s->beta2;
    k.one_minus_beta2 = (float)(1.0 - s->beta2);
    k.rate = (float)(s->lr / (1.0 - pow(s->beta1, (double)s->step)));
    k.inv_root = (float)(1.0 / sqrt(1.0 - pow(s->beta2, (double)s->step)));
    k.eps = (float)s->eps;
    if (s->kind == DT_OPTIMIZER_ADAMW) {
        k.keep = (float)(1.0 - s->lr * s->weight_decay);
    } else {
        k.l2 = (float)s->weight_decay;
    }
    return k;
}

void dt_optim_apply(dt_optimizer kind, const dt_optim_consts *k, float *p, const float *g, float *m, float *v,
                    int64_t n)
{
    switch (
        kind) { /* a new one also in n_moments below, and by the number of moments in update_slice of cuda/optim.cu */
    case DT_OPTIMIZER_ADAMW:
    case DT_OPTIMIZER_ADAM:
        select_loops()->adam(k, p, g, m, v, n);
        break;
    case DT_OPTIMIZER_SGD:
        select_loops()->sgd(k, p, g, m, n);
        break;
    }
}

uint32_t dt_optim_n_moments(dt_optimizer kind)
{
    switch (kind) {
    case DT_OPTIMIZER_ADAMW:
    case DT_OPTIMIZER_ADAM:
        return 2;
    case DT_OPTIMIZER_SGD:
        return 1;
    }
    return 0;
}

double dt_optim_sum_squares(const float *g, int64_t begin, int64_t end)
{
    return end > begin ? select_loops()->sum_squares(g + begin, end - begin) : 0;
}

void dt_optim_add(float *dst, const float *src, int64_t begin, int64_t end)
{
    if (end > begin) {
        select_loops()->add(dst + begin, src + begin, end - begin);
    }
}

void dt_optim_blend(float *to, const float *from, double tau, int64_t n)
{
    if (tau == 1 && n > 0) {
        memcpy(to, from, (size_t)n * sizeof(*to));
    } else if (n > 0) {
        select_loops()->blend(to, from, (float)tau, n);
    }
}

void dt_optim_round(uint32_t half, float *x, int64_t begin, int64_t end)
{
    if (half != DT_HALF_NONE && end > begin) {
        select_loops()->round[half - 1](x + begin, end - begin);
    }
}

void dt_half_from_f32(uint32_t half, const float *from, uint16_t *to, int64_t n)
{
    select_loops()->pack[half - 1](from, to, n);
}

void dt_half_to_f32(uint32_t half, const uint16_t *from, float *to, int64_t n)
{
    select_loops()->unpack[half - 1](from, to, n);
}

/* ---- learning-rate schedules ------------------------------------------------------------------------------------- */

/* Warm-up: lr x / warmup. Cosine (Loshchilov & Hutter 2017, eq. 5, one period, PyTorch's CosineAnnealingLR shifted by
 * the warm-up): eta_min + (lr - eta_min)/2 (1 + cos(pi (x - warmup) / (t_max - warmup))).
 * Step: lr gamma^floor(x / size). Linear: from lr to eta_min over the same stretch as the cosine. */
double dt_schedule_rate(const dt_schedule *s, double x)
{
    if (s->warmup > 0 && x < s->warmup) {
        return s->lr * x / s->warmup;
    }
    switch (s->kind) {
    case DT_SCHEDULE_COSINE:
        if (x >= s->t_max) {
            return s->eta_min;
        }
        return s->eta_min + 0.5 * (s->lr - s->eta_min) * (1.0 + cos(M_PI * (x - s->warmup) / (s->t_max - s->warmup)));
    case DT_SCHEDULE_STEP:
        return s->lr * pow(s->gamma, floor(x / s->step_size));
    case DT_SCHEDULE_LINEAR:
        return x >= s->t_max ? s->eta_min : s->lr + (s->eta_min - s->lr) * (x - s->warmup) / (s->t_max - s->warmup);
    case DT_SCHEDULE_CONSTANT:
        break;
    }
    return s->lr;
}
