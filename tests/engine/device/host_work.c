/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/device/host_device.h"

#include "engine/amp/scaler.h"
#include "comm/tree_sum.h"
#include "engine/optim/loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static size_t item_bytes(int32_t dtype)
{
    return dtype == DT_F64 || dtype == DT_I64 ? 8 : dtype == DT_U8 ? 1 : 4;
}

/* One leaf's tensor: as blocks of cap items, of which live ones are packed for the CPU kernel. */
typedef struct leaf_view {
    char *data, *packed;
    size_t outer, live, cap, inner; /* inner: bytes */
} leaf_view;

static leaf_view leaf_of(const dt_device_args *a, const dt_device_view *v, uint32_t leaf, dt_view *out)
{
    leaf_view l = {.outer = 1, .live = 1, .cap = 1, .inner = item_bytes(v->dtype)};
    *out = (dt_view){.rank = v->rank, .dtype = v->dtype, .accum = v->accum};
    memcpy(out->dim, v->dim, sizeof(out->dim));
    for (int32_t i = 0; i < v->rank; i++) {
        if (i == v->ragged) {
            l.live = (size_t)(a->live[leaf * a->n_symbols + (uint32_t)v->symbol] + v->plus);
            l.cap = (size_t)v->dim[i];
            out->dim[i] = (int64_t)l.live;
        } else if (v->ragged >= 0 && i < v->ragged) {
            l.outer *= (size_t)v->dim[i];
        } else {
            l.inner *= (size_t)v->dim[i];
        }
    }
    if (v->data != NULL) {
        l.data = (char *)v->data + (int64_t)leaf * v->leaf_stride * (int64_t)item_bytes(v->dtype);
        l.packed = l.data;
        if (v->ragged >= 0) {
            l.packed = calloc(1, l.outer * l.live * l.inner + 64);
            for (size_t o = 0; o < l.outer; o++) {
                memcpy(l.packed + o * l.live * l.inner, l.data + o * l.cap * l.inner, l.live * l.inner);
            }
        }
    }
    out->data = l.packed;
    return l;
}

static void unpack(const leaf_view *l)
{
    for (size_t o = 0; l->packed != l->data && o < l->outer; o++) {
        char *block = l->data + o * l->cap * l->inner;
        memcpy(block, l->packed + o * l->live * l->inner, l->live * l->inner);
        memset(block + l->live * l->inner, 0, (l->cap - l->live) * l->inner);
    }
}

void host_run_leaf(const dt_device_args *a, uint32_t op, uint32_t leaf)
{
    dt_view view[HOST_MAX_VIEWS];
    leaf_view part[HOST_MAX_VIEWS];
    const uint32_t n = a->n_in + a->n_out;
    for (uint32_t i = 0; i < n; i++) {
        part[i] = leaf_of(a, i < a->n_in ? &a->in[i] : &a->out[i - a->n_in], leaf, &view[i]);
    }
    const size_t bytes = dt_kernel_scratch_bytes(op, DT_KERNELS_CPU, a->attr, view, view + a->n_in);
    void *scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
    const dt_kernel_run run = {.seed = a->run->seed,
                               .step = a->run->step,
                               .phase = a->run->phase,
                               .training = a->run->training,
                               .share = a->run->share};
    const dt_kernel_args args = {a->attr, &run, view, view + a->n_in, a->n_in, a->n_out, scratch, NULL, NULL};
    dt_kernel_find(op, DT_KERNELS_CPU)(&args);
    for (uint32_t i = 0; i < n; i++) {
        if (i >= a->n_in && part[i].data != NULL) {
            unpack(&part[i]);
        }
        if (part[i].packed != part[i].data) {
            free(part[i].packed);
        }
    }
    free(scratch);
}

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

void host_begin(const dt_device_finish *f)
{
    for (uint32_t i = 0; i < f->n_losses; i++) {
        f->seed[i] = f->control->loss_seed[i] * f->state->loss_scale;
    }
}

static double sum_squares_of_trained(const dt_device_finish *f, const float *grad, int64_t at, int64_t end)
{
    double sum = 0;
    for (int64_t i = at; i < end;) {
        const int64_t cut = (i / DT_DEVICE_GRANULE + 1) * DT_DEVICE_GRANULE, to = cut < end ? cut : end;
        if ((f->trained[i / DT_DEVICE_GRANULE] & DT_DEVICE_STATISTIC) != 0) {
            sum += dt_optim_sum_squares(grad, at, i);
            for (; i < to; i++) {
                sum += isfinite(grad[i]) ? 0 : (double)NAN;
            }
            at = to;
        }
        i = to;
    }
    return sum + dt_optim_sum_squares(grad, at, end);
}

/* As the CPU path does it: norms of DT_SLICE_UNIT elements, which are a block. */
static void measure(const dt_device_finish *f, const float *grad, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end;) {
        const int64_t cut = (at / DT_DEVICE_BLOCK + 1) * DT_DEVICE_BLOCK, to = cut < end ? cut : end;
        f->block_sum[at / DT_DEVICE_BLOCK] = sum_squares_of_trained(f, grad, at, to);
        at = to;
    }
}

/* As the CPU path does it: leaves begin as zeros. */
void host_sum_piece(const dt_device_sums *f, const dt_device_piece *p)
{
    const uint32_t n = f->node.n;
    float *leaf = calloc((size_t)n * (size_t)p->n + 1, sizeof(*leaf));
    for (uint32_t i = 0; i < n; i++) {
        dt_optim_add(leaf + i * p->n, p->from + (f->node.first + i) * p->leaf_stride, 0, p->n);
    }
    for (uint32_t step = 1; step < n; step *= 2) {
        for (uint32_t i = 0; i < n; i += 2 * step) {
            dt_optim_add(leaf + i * p->n, leaf + (i + step) * p->n, 0, p->n);
        }
    }
    float *to = f->slot + f->node.slot * f->total + p->to;
    const float *right = leaf;
    for (uint32_t k = f->node.n_before; k > 0; k--) {
        float *left = to + (k - 1) * f->total;
        dt_optim_add(left, right, 0, p->n);
        right = left;
    }
    if (right != to) {
        memcpy(to, right, (size_t)p->n * sizeof(*to));
    }
    free(leaf);
}

void host_measure(const dt_device_finish *f)
{
    for (uint32_t k = 0; k < f->n_slices; k++) {
        measure(f, f->grad, f->slice[k].begin, f->slice[k].end);
    }
}

static dt_optim_consts consts_of(const dt_device_finish *f, const dt_device_result *r, uint32_t g)
{
    const dt_device_consts *c = &f->control->consts[g][r->group_updates[g] == f->control->first[g] ? 0 : 1];
    const double clip = f->control->gradient_clip[g], norm = r->group_norm[g];
    double scale = 1.0 / r->loss_scale;
    if (clip > 0 && norm > clip) {
        scale *= clip / (norm + 1e-6);
    }
    return (dt_optim_consts){.grad_scale = (float)scale,
                             .l2 = c->l2,
                             .beta1 = c->beta1,
                             .one_minus_beta1 = c->one_minus_beta1,
                             .beta2 = c->beta2,
                             .one_minus_beta2 = c->one_minus_beta2,
                             .rate = c->rate,
                             .inv_root = c->inv_root,
                             .eps = c->eps,
                             .keep = c->keep};
}

static void update(const dt_device_finish *f, const dt_device_result *r, dt_device_slice s)
{
    for (int64_t i = s.begin; i < s.end;) {
        const int64_t cut = (i / DT_DEVICE_GRANULE + 1) * DT_DEVICE_GRANULE, end = cut < s.end ? cut : s.end;
        const int64_t m = s.moment + i - s.begin;
        const bool is_statistic = (f->trained[i / DT_DEVICE_GRANULE] & DT_DEVICE_STATISTIC) != 0;
        const uint8_t mark = f->trained[i / DT_DEVICE_GRANULE] & ~DT_DEVICE_STATISTIC;
        const bool is_moved = mark != 0 && (f->groups >> (mark - 1) & 1) != 0;
        const dt_optim_consts k = consts_of(f, r, is_moved ? mark - 1u : 0);
        for (int64_t e = i; e < end && is_moved && is_statistic; e++) {
            f->param[e] -= f->grad[e];
        }
        if (is_statistic) {
            i = end;
            continue;
        }
        if (is_moved && f->moment[1] != NULL) {
            dt_optim_loops_base.adam(&k, f->param + i, f->grad + i, f->moment[0] + m, f->moment[1] + m, end - i);
        } else if (is_moved) {
            dt_optim_loops_base.sgd(&k, f->param + i, f->grad + i, f->moment[0] + m, end - i);
        }
        i = end;
    }
}

/* what the device does by itself, in the words of core/engine/amp */
static void rescale(const dt_device_finish *f, bool is_finite)
{
    const dt_device_scaler *k = &f->scaler;
    const dt_scaler_config c = {.kind = k->enabled && k->dynamic ? DT_SCALING_DYNAMIC : DT_SCALING_NONE,
                                .refill = k->refill != 0,
                                .min = k->min,
                                .max = k->max,
                                .growth = k->growth,
                                .backoff = k->backoff,
                                .interval = k->interval,
                                .hysteresis = k->hysteresis};
    dt_scaler s = {.scale = f->state->loss_scale, .good = f->state->good_steps, .tolerance = f->state->tolerance};
    dt_scaler_update(&s, &c, is_finite);
    f->state->loss_scale = s.scale;
    f->state->good_steps = s.good;
    f->state->tolerance = s.tolerance;
}

void host_apply(const dt_device_finish *f)
{
    dt_device_result r = {.loss_scale = f->state->loss_scale, .bad = -1};
    double sum = 0, of_group[DT_DEVICE_MAX_GROUPS] = {0};
    for (int64_t i = 0; i * DT_DEVICE_BLOCK < f->total; i++) {
        sum += f->block_sum[i];
        of_group[f->block_group != NULL ? f->block_group[i] : 0] += f->block_sum[i];
    }
    r.norm = sqrt(sum) / r.loss_scale;
    r.is_finite = isfinite(sum);
    for (uint32_t g = 0; g < f->n_groups; g++) {
        r.group_norm[g] = sqrt(of_group[g]) / r.loss_scale;
    }
    for (uint32_t i = 0; i < f->n_losses; i++) {
        double leaf[DT_TREE_MAX_LEAVES];
        if (f->loss[i] == NULL) {
            continue;
        }
        memcpy(leaf, f->loss[i], f->loss_leaves * sizeof(double));
        for (uint32_t step = 1; step < f->loss_leaves; step *= 2) {
            for (uint32_t k = 0; k < f->loss_leaves; k += 2 * step) {
                leaf[k] += leaf[k + step];
            }
        }
        r.loss[i] = leaf[0];
        r.is_finite = r.is_finite && isfinite(leaf[0]);
    }
    for (int64_t i = 0; i < f->total && r.bad < 0 && !f->is_part; i++) {
        r.bad = isfinite(f->grad[i]) ? -1 : i;
    }
    r.applied = r.is_finite;
    f->state->updates += r.applied;
    f->state->skipped = r.applied ? 0 : f->state->skipped + 1;
    rescale(f, r.applied);
    r.updates = f->state->updates;
    for (uint32_t g = 0; g < f->n_groups; g++) {
        f->state->group_updates[g] += r.applied ? f->groups >> g & 1 : 0;
        r.group_updates[g] = f->state->group_updates[g];
    }
    r.skipped = f->state->skipped;
    for (uint32_t k = 0; k < f->n_slices && r.applied; k++) {
        update(f, &r, f->slice[k]);
    }
    *f->result = r;
}

void host_blend(const dt_device_blend *b)
{
    if (b->result->applied && b->result->group_updates[b->group] % b->every == 0) {
        dt_optim_blend(b->to, b->from, (double)b->tau, b->n);
    }
}
