/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference over a data set: slices of consecutive samples, one per worker at a time (on a device: a few per launch),
 * handed out in order. Every rank runs all of it, so that results need no exchange and are the same everywhere.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/on_device/infer.h"

#include <string.h>

typedef struct infer_round { /* what one round of workers does */
    dt_trainer *t;
    dt_compiled *c;
    dt_feed_slice *slice; /* [slots] */
    uint64_t **index;     /* [slots][capacity] */
    uint64_t *key;        /* zeros: nothing is augmented */
    char **arena;         /* [slots] */
    size_t arena_bytes;
    uint32_t n; /* slices in this round */
} infer_round;

static dt_status read_slice(const infer_round *r, uint32_t i)
{
    dt_feed_slice *s = &r->slice[i];
    const uint32_t n = (uint32_t)s->size[r->c->source->n_symbols];
    size_t used = 0;
    return dt_samples_read(r->c->source, s->index, r->key, n, s->size, r->arena[i], r->arena_bytes, s->field, &used);
}

static dt_status read_job(void *user, uint32_t worker)
{
    const infer_round *r = user;
    for (uint32_t i = worker; i < r->n; i += r->t->c.threads) {
        DT_TRY(read_slice(r, i));
    }
    return DT_OK;
}

static dt_status infer_job(void *user, uint32_t worker)
{
    infer_round *r = user;
    if (worker >= r->n) {
        return DT_OK;
    }
    const dt_feed_slice *s = &r->slice[worker];
    DT_TRY(read_slice(r, worker));
    const dt_kernel_run run = {.seed = r->t->c.seed, .step = r->t->state.step, .phase = r->t->c.phase, .training = 0};
    double seed[DT_GRAPH_MAX_LOSSES] = {0};
    double loss[DT_GRAPH_MAX_LOSSES] = {0};
    const dt_exec_feed feed = {.size = s->size,
                               .field = s->field,
                               .step_input = r->c->step_input,
                               .params = r->t->state.params,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &run,
                               .params_version = r->t->state.params_version};
    return dt_exec_run(r->c->exec[worker], &feed);
}

static dt_status find_compiled(dt_trainer *t, const dt_samples *d, dt_compiled **out)
{
    for (uint32_t i = 0; i < t->n_infer; i++) {
        if (t->infer[i].source == d) {
            *out = &t->infer[i];
            return DT_OK;
        }
    }
    dt_compiled *grown = dt_realloc(t->infer, (t->n_infer + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an evaluation plan");
    }
    t->infer = grown;
    dt_compiled *c = &t->infer[t->n_infer];
    dt_status st = dt_compile(t, d, false, c);
    if (st < 0) {
        dt_compiled_fini(c);
        return st;
    }
    t->n_infer++;
    *out = c;
    return DT_OK;
}

static dt_status run_round(infer_round *r)
{
    DT_TRACE("evaluation", "samples");
    if (r->c->device == NULL) {
        return dt_pool_run(r->t->lanes.pool, infer_job, r);
    }
    DT_TRY(dt_pool_run(r->t->lanes.pool, read_job, r));
    return dt_device_infer_run(r->c->device, r->slice, r->n, r->c->step_input);
}

static dt_status run_rounds(infer_round *r, uint32_t slots, uint32_t cap, void *user,
                            dt_status (*each)(void *user, const dt_rows *rows))
{
    const dt_samples *d = r->c->source;
    uint64_t next = 0;
    while (next < d->count) {
        r->n = 0;
        while (r->n < slots && next < d->count) {
            dt_feed_slice *s = &r->slice[r->n];
            const uint64_t left = d->count - next;
            const uint32_t most = left < cap ? (uint32_t)left : cap;
            for (uint32_t i = 0; i < most; i++) {
                r->index[r->n][i] = next + i;
            }
            uint32_t take = 0;
            s->index = r->index[r->n];
            DT_TRY(dt_samples_cut(d, s->index, most, &take, s->size));
            next += take;
            r->n++;
        }
        DT_TRY(run_round(r));
        for (uint32_t i = 0; i < r->n; i++) {
            const dt_rows rows = {.t = r->t,
                                  .c = r->c,
                                  .slice = &r->slice[i],
                                  .exec = r->c->device == NULL ? r->c->exec[i] : NULL,
                                  .at = i};
            DT_TRY(each(user, &rows));
        }
    }
    return DT_OK;
}

dt_status dt_trainer_prepare(dt_trainer *t, const dt_samples *d)
{
    dt_compiled *c = NULL;
    return find_compiled(t, d, &c);
}

dt_status dt_trainer_evaluate(dt_trainer *t, const dt_samples *d, void *user,
                              dt_status (*each)(void *user, const dt_rows *r))
{
    dt_compiled *c = NULL;
    t->state.params_version++;
    DT_TRY(find_compiled(t, d, &c));
    DT_TRY(dt_bind_step_inputs(t, c));
    const uint32_t n = c->device != NULL ? dt_device_infer_slices(c->device) : t->lanes.active;
    const uint32_t cap = (uint32_t)d->slice_cap[d->n_symbols];
    infer_round r = {.t = t, .c = c, .arena_bytes = dt_samples_bytes_max(d, cap)};
    r.slice = dt_alloc_n(n, sizeof(*r.slice)); /* of each slot of a round */
    r.index = dt_alloc_n(n, sizeof(*r.index));
    r.arena = dt_alloc_n(n, sizeof(*r.arena));
    r.key = dt_alloc_n(cap, sizeof(*r.key));
    dt_status st = r.slice != NULL && r.index != NULL && r.arena != NULL && r.key != NULL
                       ? DT_OK
                       : DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        void *arena = NULL;
        r.index[i] = dt_alloc_n(cap, sizeof(uint64_t));
        st = r.index[i] == NULL ? DT_FAIL(DT_ENOMEM, "out of memory for evaluation")
                                : dt_arena_map(r.arena_bytes, &arena);
        r.arena[i] = arena;
    }
    if (st == DT_OK) {
        st = run_rounds(&r, n, cap, user, each);
    }
    for (uint32_t i = 0; i < n; i++) {
        dt_arena_unmap(r.arena != NULL ? r.arena[i] : NULL, r.arena_bytes);
        dt_free(r.index != NULL ? r.index[i] : NULL);
    }
    dt_free(r.slice);
    dt_free(r.index);
    dt_free(r.arena);
    dt_free(r.key);
    return st;
}

const void *dt_rows_get(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    const dt_samples *s = r->c->source;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (strcmp(s->field[f].name, name) == 0) {
            dt_samples_field_dims(s, f, r->slice->size, dim);
            *rank = s->shape[f].rank;
            return r->slice->field[f];
        }
    }
    const dt_view *v =
        r->exec != NULL ? dt_exec_output(r->exec, name) : dt_device_infer_output(r->c->device, r->at, name);
    if (v == NULL) {
        return NULL;
    }
    memcpy(dim, v->dim, sizeof(v->dim));
    *rank = (uint32_t)v->rank;
    return v->data;
}

const uint64_t *dt_rows_samples(const dt_rows *r, uint32_t *n)
{
    *n = (uint32_t)r->slice->size[r->c->source->n_symbols];
    return r->slice->index;
}
