/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a step on the CPU: the norm of the summed gradient, the decision that all ranks take alike, and the update
 * of this rank's slices. Each is a pass over ranges of the arenas, so that what a rank does not own it does not touch.
 * Then target networks.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- passes over own slices -------------------------------------------------------------------------------------- */

static const dt_piece *take_next_piece(dt_trainer *t)
{
    const uint32_t i = atomic_fetch_add(&t->scratch.next_piece, 1);
    return i < t->reduce.n_pieces ? &t->reduce.piece[i] : NULL;
}

static bool is_finite_range(const float *x, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

/* What statistics change by is in no norm, but must be finite. */
static double sum_squares_of_trained(const dt_trainer *t, int64_t at, int64_t end)
{
    const dt_param_table *table = t->d.params;
    const float *gradient = t->scratch.gradient;
    double sum = 0;
    for (uint32_t i = 0; i < table->n && table->has_statistics; i++) {
        const dt_param *p = &table->param[i];
        const int64_t from = p->offset > at ? p->offset : at;
        const int64_t to = dt_param_end(p) < end ? dt_param_end(p) : end;
        if (p->is_statistic && from < to) {
            sum += dt_optim_sum_squares(gradient, at, from);
            if (!is_finite_range(gradient, from, to)) {
                sum = (double)NAN;
            }
            at = to;
        }
    }
    return sum + dt_optim_sum_squares(gradient, at, end);
}

/* Sums of squares of units, each in a fixed order of its own. */
static dt_status run_norm_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    DT_TRACE("step", "norm");
    for (const dt_piece *p = take_next_piece(t); p != NULL; p = take_next_piece(t)) {
        double *sum = &t->reduce.unit_sum[p->unit];
        for (int64_t at = p->at.begin; at < p->at.end;) {
            const int64_t cut = (at / DT_SLICE_UNIT + 1) * DT_SLICE_UNIT, end = cut < p->at.end ? cut : p->at.end;
            *sum++ = sum_squares_of_trained(t, at, end);
            at = end;
        }
    }
    return DT_OK;
}

static void update_range(const dt_trainer *t, const dt_optim_consts *k, dt_range at, int64_t moment)
{
    float *m = t->state.moment[0] + moment, *v = t->state.moment[1] != NULL ? t->state.moment[1] + moment : NULL;
    dt_optim_apply(t->c.optim.kind, k, t->state.params + at.begin, t->scratch.gradient + at.begin, m, v,
                   at.end - at.begin);
}

static void update_statistic(const dt_trainer *t, dt_range at)
{
    for (int64_t i = at.begin; i < at.end; i++) {
        t->state.params[i] -= t->scratch.gradient[i];
    }
}

/* Frozen tensors are left alone, and so are those of other groups, and those that the phase moves itself. */
static dt_status update_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    const dt_param_table *table = t->d.params;
    DT_TRACE("step", "update");
    for (const dt_piece *k = take_next_piece(t); k != NULL; k = take_next_piece(t)) {
        for (uint32_t i = 0; i < table->n; i++) {
            const dt_param *p = &table->param[i];
            const int64_t from = p->offset > k->at.begin ? p->offset : k->at.begin;
            const int64_t to = p->offset + p->count < k->at.end ? p->offset + p->count : k->at.end;
            const uint8_t group = t->state.group_of[i];
            if (p->frozen || !dt_group_is_updated(t, group) || from >= to) {
                continue;
            }
            if (p->is_statistic) {
                update_statistic(t, (dt_range){from, to});
            } else {
                update_range(t, &t->scratch.consts[group], (dt_range){from, to}, k->moment + from - k->at.begin);
            }
        }
    }
    return DT_OK;
}

static dt_status run_pieces(dt_trainer *t, dt_pool_job *job)
{
    atomic_store(&t->scratch.next_piece, 0);
    return t->reduce.n_pieces > 1 ? dt_pool_run(t->workers.pool, job, t) : job(t, 0);
}

/* ---- the norm ---------------------------------------------------------------------------------------------------- */

static uint32_t count_slice_units(dt_range s)
{
    return s.end > s.begin ? (uint32_t)((s.end + DT_SLICE_UNIT - 1) / DT_SLICE_UNIT - s.begin / DT_SLICE_UNIT) : 0;
}

/* A rank's units, one bucket after the other, from where all of them are into a row or back. Returns how many. */
static uint32_t copy_square_sums(dt_trainer *t, uint32_t rank, double *row, bool is_out)
{
    const dt_reduction *r = &t->reduce;
    uint32_t n = 0;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const dt_range slice = dt_rank_slice(r->bucket[b], dt_comm_size(t->d.comm), rank);
        const uint32_t count = count_slice_units(slice);
        double *at = &r->unit_sum[r->unit[b] + slice.begin / DT_SLICE_UNIT - r->bucket[b].begin / DT_SLICE_UNIT];
        if (row != NULL && count > 0) {
            memcpy(is_out ? &row[n] : at, is_out ? at : &row[n], count * sizeof(*row));
        }
        n += count;
    }
    return n;
}

dt_status dt_all_gather_square_sums(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    const uint32_t ranks = dt_comm_size(t->d.comm), me = dt_comm_rank(t->d.comm);
    double *at = r->unit_packed, *mine = at;
    if (ranks == 1) {
        return DT_OK;
    }
    for (uint32_t k = 0; k < ranks; k++) {
        const uint32_t n = copy_square_sums(t, k, NULL, false);
        mine = k == me ? at : mine;
        r->in[k] = (dt_comm_in){at, n * sizeof(double)};
        at += n;
    }
    const uint32_t n_mine = copy_square_sums(t, me, mine, true);
    for (uint32_t k = 0; k < ranks; k++) {
        r->out[k] = (dt_comm_out){mine, n_mine * sizeof(double)};
    }
    DT_TRY(dt_comm_all_to_all(t->d.comm, r->out, r->in));
    for (uint32_t k = 0; k < ranks; k++) {
        copy_square_sums(t, k, r->in[k].data, false);
    }
    return DT_OK;
}

/* Of all, and of each group: buckets are of one. */
static dt_status compute_norms(dt_trainer *t, double *sum_p, double *of_group)
{
    const dt_reduction *r = &t->reduce;
    DT_TRY(run_pieces(t, run_norm_job));
    DT_TRY(dt_all_gather_square_sums(t));
    *sum_p = 0;
    memset(of_group, 0, t->state.n_groups * sizeof(*of_group));
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        for (uint32_t i = r->unit[b]; i < r->unit[b + 1]; i++) {
            *sum_p += r->unit_sum[i];
            of_group[r->group[b]] += r->unit_sum[i];
        }
    }
    return DT_OK;
}

/* ---- the decision ------------------------------------------------------------------------------------------------ */

/* Names the first parameter whose gradient is not finite; bad: its element of the arena, -1: none. */
static dt_status fail_diverged(const dt_trainer *t, uint64_t step, const dt_step_report *r, int64_t bad)
{
    char when[128];
    snprintf(when, sizeof(when), "training diverged at step %llu", (unsigned long long)step);
    if (t->c.scaling.kind != DT_SCALING_NONE) {
        snprintf(when, sizeof(when),
                 "training diverged: %llu steps in a row were skipped up to step %llu, the loss scale is %g",
                 (unsigned long long)t->state.scaler.skips, (unsigned long long)step, t->state.scaler.scale);
    }
    const dt_param_table *table = t->d.params;
    const bool is_small = t->c.half == DT_HALF_FP16;
    for (uint32_t i = 0; i < table->n && bad >= 0; i++) {
        const dt_param *p = &table->param[i];
        if (bad >= p->offset && bad < p->offset + p->count) {
            return DT_FAIL(DT_EDIVERGED,
                           "%s (loss %g): the gradient of %s is not finite, element %lld; lower "
                           "training.learning_rate or training.gradient_clip, and check the data%s",
                           when, r->loss, p->name, (long long)(bad - p->offset),
                           is_small ? "; comm.wire = fp16 holds numbers up to 65504, bf16 any" : "");
        }
    }
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    for (uint32_t i = 0; i < n; i++) {
        if ((t->scratch.reported >> loss[i].group & 1) != 0 && !isfinite(t->scratch.step_loss[i])) {
            return DT_FAIL(DT_EDIVERGED, "%s: loss %s is %g while all gradients are finite", when, loss[i].name,
                           t->scratch.step_loss[i]);
        }
    }
    return DT_FAIL(DT_EDIVERGED, "%s: the gradient norm overflows", when);
}

dt_status dt_trainer_check_divergence(dt_trainer *t, uint64_t step, bool is_finite, const dt_step_report *r,
                                      int64_t bad)
{
    char text[512];
    const dt_scaler_config *c = &t->c.scaling;
    if (dt_trainer_is_mixed_precision(t) &&
        dt_amp_monitor_step(&t->state.monitor, c, t->state.scaler.scale, is_finite, r->grad_norm, text, sizeof(text)) &&
        dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "mixed precision: %s", text);
    }
    return dt_scaler_has_failed(&t->state.scaler, c) ? fail_diverged(t, step, r, bad) : DT_OK;
}

dt_status dt_find_first_not_finite(dt_trainer *t, int64_t *bad_p)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    int64_t bad = INT64_MAX;
    for (uint32_t i = 0; i < t->reduce.n_pieces; i++) {
        const dt_range at = t->reduce.piece[i].at;
        for (int64_t k = at.begin; k < at.end && k < bad; k++) {
            bad = isfinite(t->scratch.gradient[k]) ? bad : k;
        }
    }
    int64_t *all = dt_alloc_n(ranks, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for what %u ranks found", ranks);
    }
    const dt_status st = dt_comm_all_gather(t->d.comm, &bad, sizeof(bad), all);
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        bad = all[k] < bad ? all[k] : bad;
    }
    dt_free(all);
    *bad_p = bad < INT64_MAX ? bad : -1;
    return st;
}

/* ---- the update -------------------------------------------------------------------------------------------------- */

static void report_groups(dt_trainer *t, const double *of_group, double scale, dt_step_report *out)
{
    bool is_first = true;
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        dt_group_state *s = &t->state.group[g];
        if (dt_group_is_updated(t, g)) {
            s->norm = sqrt(of_group[g]) / scale;
            s->rate = dt_group_learning_rate(t, g, s->updates + 1);
            out->learning_rate = is_first ? s->rate : out->learning_rate;
            is_first = false;
        }
    }
}

/* One update more of each group that is moved, with the numbers that were reported. */
static void prepare_updates(dt_trainer *t, double scale)
{
    t->state.updates++;
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        dt_group_state *s = &t->state.group[g];
        if (!dt_group_is_updated(t, g)) {
            continue;
        }
        s->updates++;
        dt_optim_step u = t->c.optim;
        u.lr = s->rate;
        u.step = s->updates;
        u.grad_scale = 1.0 / scale;
        if (s->gradient_clip > 0 && s->norm > s->gradient_clip) {
            u.grad_scale *= s->gradient_clip / (s->norm + 1e-6); /* PyTorch's clip_grad_norm_ */
        }
        t->scratch.consts[g] = dt_optim_constants(&u);
    }
}

/* ---- target networks --------------------------------------------------------------------------------------------- */

/* Copies of parameters that follow them (Polyak averaging), or that are set when asked for. Every rank
 * has all parameters after a step and updates all copies itself, element by element, so that neither threads nor ranks
 * change a bit. */

enum { PIECE = 65536 }; /* elements that a worker takes at once */

static bool is_target_due(const dt_trainer *t, uint32_t target)
{
    const uint64_t every = t->state.target[target].every;
    const uint8_t group = t->state.target_group[target];
    return every > 0 && dt_group_is_updated(t, group) && t->state.group[group].updates % every == 0;
}

/* Elements [begin, end) of the arena, of targets that are due. */
static void blend_range(dt_trainer *t, int64_t begin, int64_t end)
{
    const dt_param_table *table = t->d.params;
    for (uint32_t i = 0; i < table->n; i++) {
        const dt_param *p = &table->param[i];
        const int64_t from = p->offset > begin ? p->offset : begin;
        const int64_t to = p->offset + p->count < end ? p->offset + p->count : end;
        if (p->is_target && is_target_due(t, p->target) && from < to) {
            const int64_t source = table->param[p->of].offset + from - p->offset;
            dt_optim_blend(t->state.params + from, t->state.params + source, t->state.target[p->target].tau, to - from);
        }
    }
}

static dt_status update_targets_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    const int64_t base = t->d.params->base_total, end = t->d.params->total;
    DT_TRACE("step", "target networks");
    for (;;) {
        const int64_t begin = base + (int64_t)atomic_fetch_add(&t->scratch.next_piece, 1) * PIECE;
        if (begin >= end) {
            return DT_OK;
        }
        blend_range(t, begin, begin + PIECE < end ? begin + PIECE : end);
    }
}

/* [main] after an update of parameters that are whole on this rank. */
static dt_status update_targets(dt_trainer *t)
{
    bool any = false;
    for (uint32_t i = 0; i < t->d.params->n_targets; i++) {
        any = any || is_target_due(t, i);
    }
    if (!any) {
        return DT_OK;
    }
    atomic_store(&t->scratch.next_piece, 0);
    const bool is_small = t->d.params->total - t->d.params->base_total <= PIECE;
    return is_small ? update_targets_job(t, 0) : dt_pool_run(t->workers.pool, update_targets_job, t);
}

/* Every rank has the same norm, so all of them skip or none. */
dt_status dt_apply_update(dt_trainer *t, dt_step_report *out)
{
    double sum = 0, of_group[DT_TRAIN_MAX_GROUPS];
    int64_t bad = -1;
    DT_TRACE("step", "optimizer");
    DT_TRY(compute_norms(t, &sum, of_group));
    const double scale = t->state.scaler.scale;
    const bool is_finite = isfinite(sum) && isfinite(out->loss);
    out->grad_norm = sqrt(sum) / scale;
    report_groups(t, of_group, scale, out);
    dt_scaler_update(&t->state.scaler, &t->c.scaling, is_finite);
    DT_TRY(is_finite ? DT_OK : dt_find_first_not_finite(t, &bad));
    DT_TRY(dt_trainer_check_divergence(t, t->state.step + 1, is_finite, out, bad));
    if (!is_finite) {
        return DT_OK; /* skipped */
    }
    prepare_updates(t, scale);
    DT_TRY(run_pieces(t, update_job));
    const double begin = dt_clock_s();
    DT_TRY(dt_reduce_all_gather(t, t->state.params, false));
    t->times.share = dt_clock_s() - begin;
    return update_targets(t);
}

static dt_status check_name(const dt_param_table *table, const char *name)
{
    dt_str all = {0};
    for (uint32_t i = 0; i < table->n_targets; i++) {
        if (strcmp(table->target[i].name, name) == 0) {
            dt_str_fini(&all);
            return DT_OK;
        }
        dt_str_addf(&all, "%s%s", i > 0 ? ", " : "", table->target[i].name);
    }
    const dt_status st = DT_FAIL(DT_EINVAL, "there is no target network \"%s\"; there %s%s", name,
                                 all.bytes > 0 ? "are " : "is none", dt_str_text(&all));
    dt_str_fini(&all);
    return st;
}

dt_status dt_trainer_copy_to_targets(dt_trainer *t, const char *name)
{
    DT_TRY(name != NULL ? check_name(t->d.params, name) : DT_OK);
    if (t->d.params->n_targets == 0) {
        return DT_OK;
    }
    DT_TRY(dt_trainer_synchronize(t));
    dt_param_table_copy_targets(t->d.params, name, t->state.params);
    t->state.params_version++;
    return DT_OK;
}
