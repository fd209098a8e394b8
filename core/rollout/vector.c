/* SPDX-License-Identifier: Apache-2.0
 *
 * See vector.h.
 */
#include <config.h>

#include "rollout/vector.h"

#include "base/clock.h"
#include "base/mem.h"
#include "rollout/check.h"

#include <math.h>
#include <string.h>

struct dt_vector {
    dt_vector_desc d;
    dt_instance *instance;
    uint8_t *acted;  /* [n, n_agents] who acts in the step to come */
    double *earned;  /* [n, items] */
    dt_error *error; /* [n] */
    char *record;    /* [n] */
    size_t record_bytes;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

dt_status dt_vector_create(const dt_vector_desc *d, dt_vector **out_p)
{
    const dt_env_spec *s = &d->layout->spec;
    const size_t items = 2 + s->n_costs + s->n_metrics;
    dt_vector *v = dt_alloc(sizeof(*v));
    if (v == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", d->n);
    }
    v->d = *d;
    v->instance = dt_alloc_n(d->n, sizeof(*v->instance));
    v->acted = dt_alloc_n(d->n, s->n_agents);
    v->earned = dt_alloc_n(d->n, items * sizeof(double));
    v->error = dt_alloc_n(d->n, sizeof(*v->error));
    void *record = NULL;
    dt_status st = v->instance != NULL && v->acted != NULL && v->earned != NULL && v->error != NULL &&
                           dt_mul_size(d->n, d->layout->record_bytes, &v->record_bytes)
                       ? dt_arena_map(v->record_bytes, &record)
                       : DT_FAIL(DT_ENOMEM, "out of memory for %u environments", d->n);
    if (st < 0) {
        dt_vector_destroy(v);
        return st;
    }
    v->record = record;
    for (uint32_t i = 0; i < d->n; i++) {
        dt_instance *x = &v->instance[i];
        x->self = d->self[i];
        x->record = v->record + i * d->layout->record_bytes;
        x->number = d->first + i;
        x->is_over = true;
        x->earned = v->earned + i * items;
        x->error = &v->error[i];
        dt_layout_io(d->layout, x->record, x->obs, &x->io);
    }
    *out_p = v;
    return DT_OK;
}

void dt_vector_destroy(dt_vector *v)
{
    if (v == NULL) {
        return;
    }
    dt_arena_unmap(v->record, v->record_bytes);
    dt_free(v->error);
    dt_free(v->earned);
    dt_free(v->acted);
    dt_free(v->instance);
    dt_free(v);
}

uint32_t dt_vector_size(const dt_vector *v)
{
    return v->d.n;
}

dt_instance *dt_vector_at(dt_vector *v, uint32_t i)
{
    return &v->instance[i];
}

/* ---- one step of one instance ------------------------------------------------------------------------------------ */

static void clear_outputs(const dt_vector *v, dt_instance *x)
{
    const dt_layout *l = v->d.layout;
    memset(x->record, 0, l->out_bytes);
    memset(x->record + l->mask, 1, (size_t)l->spec.n_agents * l->n_choices);
}

static dt_status reset(dt_vector *v, dt_instance *x)
{
    const dt_layout *l = v->d.layout;
    dt_env_io io = x->io;
    io.act_i = NULL;
    io.act_f = NULL;
    x->episode = x->episodes++;
    x->episode_step = 0;
    memset(x->earned, 0, (2 + l->spec.n_costs + l->spec.n_metrics) * sizeof(double));
    clear_outputs(v, x);
    const dt_status st = v->d.ops->reset(x->self, &io, v->d.seed(v->d.user, x->number, x->episode));
    if (st != DT_OK) {
        return st < 0 ? st : DT_FAIL(DT_EPLUGIN, "reset returned %d", (int)st);
    }
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    DT_TRY(v->d.ops->spec(x->self, &spec));
    DT_TRY(dt_layout_compare(l, &spec));
    DT_TRY(dt_check_record(l, x->record, NULL, false));
    x->is_over = false;
    return DT_OK;
}

static void add_up(const dt_vector *v, dt_instance *x, const uint8_t *acted)
{
    const dt_env_spec *s = &v->d.layout->spec;
    x->earned[1] += 1;
    for (uint32_t a = 0; a < s->n_agents; a++) {
        if (acted[a] != 0) {
            x->earned[0] += (double)x->io.reward[a];
            for (uint32_t k = 0; k < s->n_costs; k++) {
                x->earned[2 + k] += (double)x->io.cost[a * s->n_costs + k];
            }
        }
    }
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        x->earned[2 + s->n_costs + m] = x->io.metric[m];
    }
}

static dt_status step(dt_vector *v, dt_instance *x, uint8_t *acted)
{
    memcpy(acted, x->io.alive, v->d.layout->spec.n_agents);
    clear_outputs(v, x);
    x->episode_step++;
    const dt_status st = v->d.ops->step(x->self, &x->io);
    if (st != DT_OK && st != DT_DONE) {
        return st < 0 ? st : DT_FAIL(DT_EPLUGIN, "step returned %d", (int)st);
    }
    x->is_over = st == DT_DONE;
    x->has_ended = x->is_over;
    DT_TRY(dt_check_record(v->d.layout, x->record, acted, x->is_over));
    add_up(v, x, acted);
    return DT_OK;
}

dt_status dt_vector_advance(dt_vector *v, uint32_t i)
{
    dt_instance *x = &v->instance[i];
    const bool is_reset = x->is_over;
    x->has_ended = false;
    if (x->is_idle) {
        return DT_OK;
    }
    const dt_status st = is_reset ? reset(v, x) : step(v, x, v->acted + (size_t)i * v->d.layout->spec.n_agents);
    if (st >= 0) {
        return DT_OK;
    }
    if (is_reset) {
        return DT_CONTEXT(st, "environment %s, instance %u, reset of episode %llu", v->d.id, x->number,
                          (unsigned long long)x->episode);
    }
    return DT_CONTEXT(st, "environment %s, instance %u, episode %llu, step %llu", v->d.id, x->number,
                      (unsigned long long)x->episode, (unsigned long long)x->episode_step);
}

dt_status dt_vector_step(dt_vector *v, uint32_t begin, uint32_t end)
{
    const double from = dt_clock_s();
    for (uint32_t i = begin; i < end; i++) {
        DT_TRY(dt_vector_advance(v, i));
    }
    if (end > begin) {
        v->instance[begin].env_s += dt_clock_s() - from;
    }
    return DT_OK;
}
