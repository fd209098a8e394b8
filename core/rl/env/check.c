/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/check.h"

#include "base/err.h"

#include <math.h>
#include <string.h>

/* All exponents are less than the one of infinity and NaN; no branch, so that it runs in vectors. */
static bool is_finite_f32(const float *x, int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return bad == 0;
}

static dt_status fail_not_finite(const dt_obs_port *o, const char *data)
{
    const int64_t n = (o->symbol < 0 ? 0 : o->cap) * o->row_items;
    for (int64_t i = 0; i < n; i++) {
        const double x = o->port->dtype == DT_F64 ? ((const double *)(const void *)data)[i]
                                                  : (double)((const float *)(const void *)data)[i];
        if (!isfinite(x)) {
            return DT_FAIL(DT_EPLUGIN, "observation %s [%s], row %lld, item %lld is %g", o->port->name, o->port->dims,
                           (long long)(i / o->row_items), (long long)(i % o->row_items), x);
        }
    }
    return DT_OK;
}

/* The list of the agent at place a is rows v[a] .. v[a + 1] - 1. */
static dt_status check_lists(const dt_layout *l, const dt_obs_port *o, const int32_t *v, int64_t limit)
{
    const char *of = dt_layout_symbol_name(l, o->index_of);
    const uint32_t A = l->spec.n_agents;
    if (v[0] != 0) {
        return DT_FAIL(DT_EPLUGIN, "observation %s [%s] begins the list of agent 0 at row %d of %s; expected 0",
                       o->port->name, o->port->dims, v[0], of);
    }
    for (uint32_t a = 0; a < A; a++) {
        if (v[a + 1] < v[a] || v[a + 1] > limit) {
            return DT_FAIL(DT_EPLUGIN,
                           "observation %s [%s] has the list of agent %u from row %d to before row %d of %s; expected "
                           "%d to %lld, all rows that there are",
                           o->port->name, o->port->dims, a, v[a], v[a + 1], of, v[a], (long long)limit);
        }
    }
    return v[A] == limit ? DT_OK
                         : DT_FAIL(DT_EPLUGIN,
                                   "observation %s [%s] ends the list of the last agent, %u, before row %d of %s; "
                                   "expected %lld, all rows that there are",
                                   o->port->name, o->port->dims, A - 1, v[A], of, (long long)limit);
}

static dt_status check_indices(const dt_layout *l, const dt_obs_port *o, const int64_t *size, const char *data,
                               int64_t rows)
{
    const int32_t *v = (const int32_t *)(const void *)data;
    const int64_t limit = o->index_of == 0 ? l->spec.n_agents : size[o->index_of - 1];
    const char *of = dt_layout_symbol_name(l, o->index_of);
    if (dt_obs_is_lists(o)) {
        return check_lists(l, o, v, limit);
    }
    if (o->plus) {
        for (int64_t i = 0; i < rows; i++) {
            const int64_t low = i > 0 ? v[i - 1] : 0;
            const bool is_right =
                v[i] >= low && v[i] <= limit && (i > 0 || v[i] == 0) && (i < rows - 1 || v[i] == limit);
            if (!is_right) {
                return DT_FAIL(DT_EPLUGIN,
                               "observation %s [%s], row %lld is %d: row pointers rise from 0 to the %lld rows of %s",
                               o->port->name, o->port->dims, (long long)i, v[i], (long long)limit, of);
            }
        }
        return DT_OK;
    }
    const int32_t least = o->is_edges ? 0 : -1;
    for (int64_t i = 0; i < rows * o->row_items; i++) {
        if (v[i] < least || v[i] >= limit) {
            return DT_FAIL(DT_EPLUGIN, "observation %s [%s], row %lld is %d, but there are %lld rows of %s (%s)",
                           o->port->name, o->port->dims, (long long)(i / o->row_items), v[i], (long long)limit, of,
                           o->is_edges ? "an edge leads to one of them" : "-1: none");
        }
    }
    return DT_OK;
}

static dt_status check_obs(const dt_layout *l, const char *record)
{
    const int64_t *size = (const int64_t *)(const void *)(record + l->size);
    for (uint32_t k = 0; k < l->spec.n_symbols; k++) {
        if (size[k] < 0 || size[k] > l->spec.symbols[k].size) {
            return DT_FAIL(DT_EPLUGIN, "it has %lld rows of %s; its spec allows 0 to %lld", (long long)size[k],
                           l->spec.symbols[k].name, (long long)l->spec.symbols[k].size);
        }
    }
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        const char *data = record + o->offset;
        const int64_t rows = dt_layout_count_rows(l, o, size);
        const int64_t n = rows * o->row_items;
        dt_obs_port live = *o;
        live.cap = rows;
        if (o->port->dtype == DT_F32 && !is_finite_f32((const float *)(const void *)data, n)) {
            return fail_not_finite(&live, data);
        }
        if (o->port->dtype == DT_F64) {
            DT_TRY(fail_not_finite(&live, data));
        }
        if (o->index_of >= 0) {
            DT_TRY(check_indices(l, o, size, data, rows));
        }
    }
    return DT_OK;
}

static dt_status check_rewards_and_costs(const dt_layout *l, const char *record)
{
    const float *reward = (const float *)(const void *)(record + l->reward);
    const float *cost = (const float *)(const void *)(record + l->cost);
    const uint32_t A = l->spec.n_agents, K = l->spec.n_costs;
    for (uint32_t a = 0; a < A; a++) {
        if (!isfinite(reward[a])) {
            return DT_FAIL(DT_EPLUGIN, "the reward of agent %u is %g", a, (double)reward[a]);
        }
        for (uint32_t k = 0; k < K; k++) {
            const double c = (double)cost[a * K + k];
            if (!(c >= 0) || isinf(c)) {
                return DT_FAIL(DT_EPLUGIN, "cost %s of agent %u is %g; costs are at least 0 and finite",
                               l->spec.costs[k], a, c);
            }
        }
    }
    return DT_OK;
}

static dt_status check_ends(const dt_layout *l, const char *record, const uint8_t *acted, bool is_over)
{
    const uint8_t *alive = (const uint8_t *)record + l->alive;
    const uint8_t *terminated = (const uint8_t *)record + l->terminated;
    const uint8_t *truncated = (const uint8_t *)record + l->truncated;
    for (uint32_t a = 0; a < l->spec.n_agents; a++) {
        const bool ended = terminated[a] != 0 || truncated[a] != 0;
        if (acted == NULL || acted[a] == 0) {
            continue;
        }
        if (ended && alive[a] != 0) {
            return DT_FAIL(DT_EPLUGIN,
                           "agent %u was %s by this step and is marked alive; its place is free from the next "
                           "step on",
                           a, terminated[a] ? "terminated" : "truncated");
        }
        if (!ended && (is_over || alive[a] == 0)) {
            return DT_FAIL(DT_EPLUGIN, "agent %u %s, but is marked neither terminated nor truncated", a,
                           is_over ? "acted in the last step of the episode" : "is gone");
        }
    }
    return DT_OK;
}

/* An agent that acts next has something to choose from. */
static dt_status check_masks(const dt_layout *l, const char *record)
{
    const uint8_t *alive = (const uint8_t *)record + l->alive;
    const uint8_t *mask = (const uint8_t *)record + l->mask;
    for (uint32_t a = 0; a < l->spec.n_agents; a++) {
        for (uint32_t h = 0; h < l->spec.n_heads; h++) {
            bool any = false;
            for (int32_t c = 0; c < l->spec.choices[h]; c++) {
                any = any || mask[c] != 0;
            }
            if (alive[a] != 0 && !any) {
                return DT_FAIL(DT_EPLUGIN, "the mask of agent %u forbids all %d choices of action %u", a,
                               l->spec.choices[h], h);
            }
            mask += l->spec.choices[h];
        }
    }
    return DT_OK;
}

dt_status dt_check_record(const dt_layout *l, const char *record, const uint8_t *acted, bool is_over)
{
    DT_TRY(check_obs(l, record));
    DT_TRY(check_ends(l, record, acted, is_over));
    DT_TRY(check_masks(l, record));
    return acted != NULL ? check_rewards_and_costs(l, record) : DT_OK;
}

/* ---- whole records ----------------------------------------------------------------------------------------------- */

void dt_truncate_record(const dt_layout *l, const char *kept, char *record)
{
    const uint32_t A = l->spec.n_agents;
    memcpy(record, kept, l->reward);
    memset(record + l->reward, 0, l->out_bytes - l->reward);
    memset(record + l->mask, 1, (size_t)A * l->n_choices);
    memcpy(record + l->truncated, kept + l->alive, A);
    memset(record + l->alive, 0, A);
    for (uint32_t m = 0; m < l->spec.n_metrics; m++) {
        ((double *)(void *)(record + l->metric))[m] = NAN;
    }
}

const char *dt_compare_records(const dt_layout *l, const char *a, const char *b)
{
    const dt_env_spec *s = &l->spec;
    const size_t A = s->n_agents;
    const struct {
        const char *name;
        size_t at, bytes;
    } fixed[] = {{"size", l->size, s->n_symbols * sizeof(int64_t)},
                 {"alive", l->alive, A},
                 {"reward", l->reward, A * sizeof(float)},
                 {"cost", l->cost, A * s->n_costs * sizeof(float)},
                 {"terminated", l->terminated, A},
                 {"truncated", l->truncated, A},
                 {"mask", l->mask, A * l->n_choices}};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        if (memcmp(a + fixed[i].at, b + fixed[i].at, fixed[i].bytes) != 0) {
            return fixed[i].name;
        }
    }
    for (uint32_t i = 0; i < s->n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        const size_t rows = (size_t)dt_layout_count_rows(l, o, (const int64_t *)(const void *)(a + l->size));
        if (memcmp(a + o->offset, b + o->offset, rows * o->row_bytes) != 0) {
            return o->port->name;
        }
    }
    return NULL;
}
