/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/obs_stats.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

dt_status dt_obs_stats_init(dt_obs_stats *s, const dt_layout *l, bool is_normalised, float clip)
{
    s->clip = clip;
    for (uint32_t i = 0; i < l->spec.n_obs && is_normalised; i++) {
        if (l->obs[i].is_plain) {
            DT_TRY(dt_moments_init(&s->port[i], (size_t)l->obs[i].row_items));
            s->fixed[i] = dt_alloc_n(4 * (size_t)l->obs[i].row_items, sizeof(float));
            if (s->fixed[i] == NULL) {
                return DT_FAIL(DT_ENOMEM, "out of memory for the statistics of %s", l->obs[i].port->name);
            }
        }
    }
    return DT_OK;
}

void dt_obs_stats_fini(dt_obs_stats *s)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_fini(&s->port[i]);
        dt_free(s->fixed[i]);
    }
}

bool dt_obs_stats_has_ports(const dt_obs_stats *s)
{
    bool has = false;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        has = has || s->port[i].columns > 0;
    }
    return has;
}

void dt_obs_stats_apply(dt_obs_stats *s)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_apply(&s->port[i]);
    }
}

void dt_obs_stats_set_scale(const dt_obs_stats *s, dt_buffer *b)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        const dt_moments *m = &s->port[i];
        if (m->n > 0) {
            b->scale[i] = (dt_buffer_scale){.mean = m->shift, .scale = m->scale, .clip = s->clip};
        }
    }
}

void dt_obs_stats_fix_scale(dt_obs_stats *s, dt_buffer *b)
{
    dt_obs_stats_set_scale(s, b);
    s->side = 1 - s->side;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_buffer_scale *x = &b->scale[i];
        const size_t D = s->port[i].columns;
        if (x->mean != NULL) {
            float *const fixed = s->fixed[i] + 2 * D * s->side;
            memcpy(fixed, x->mean, D * sizeof(float));
            memcpy(fixed + D, x->scale, D * sizeof(float));
            x->mean = fixed;
            x->scale = fixed + D;
        }
    }
}

/* part: [ranks, most, 1 + 2 columns] scratch */
static dt_status add_port(dt_obs_stats *s, const dt_partition *split, const dt_buffer *b, uint32_t port, double *part)
{
    dt_moments *m = &s->port[port];
    const uint32_t ranks = dt_comm_size(split->comm), most = dt_partition_largest(split);
    const size_t A = b->l->spec.n_agents, items = 1 + 2 * m->columns;
    double *const mine = part + dt_comm_rank(split->comm) * (most * items);
    for (uint32_t i = 0; i < dt_partition_count_own(split); i++) {
        const size_t at = dt_buffer_slot(b, 0, i) * A;
        const dt_moments_rows rows = {.x = (const float *)(const void *)b->obs[port] + at * m->columns,
                                      .flag = b->row + at,
                                      .n = A,
                                      .blocks = b->d.steps,
                                      .stride = b->d.instances * A};
        dt_moments_sum(&rows, m->columns, mine + i * items);
    }
    if (ranks > 1) {
        DT_TRY(dt_comm_all_gather(split->comm, mine, most * items * sizeof(*part), part));
    }
    for (uint32_t k = 0; k < ranks; k++) {
        for (uint32_t i = 0; i < dt_partition_first_of(split, k + 1) - dt_partition_first_of(split, k); i++) {
            dt_moments_merge(m, part + (k * (size_t)most + i) * items);
        }
    }
    return DT_OK;
}

dt_status dt_obs_stats_add_round(dt_obs_stats *s, const dt_partition *split, const dt_buffer *own)
{
    size_t columns = 0;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        columns = s->port[i].columns > columns ? s->port[i].columns : columns;
    }
    if (columns == 0) {
        return DT_OK;
    }
    const size_t ranks = dt_comm_size(split->comm);
    double *part = dt_alloc_n(ranks * dt_partition_largest(split), (1 + 2 * columns) * sizeof(*part));
    dt_status st = part != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the statistics of observations");
    st = dt_comm_agree(split->comm, st);
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS && st == DT_OK; i++) {
        st = s->port[i].columns > 0 ? add_port(s, split, own, i, part) : DT_OK;
    }
    dt_free(part);
    return st;
}
