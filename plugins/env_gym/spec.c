/* SPDX-License-Identifier: Apache-2.0
 *
 * What Python reports of an environment, as a dt_env_spec, and where the arrays of an instance are in shared memory.
 * Texts and numbers come one after another, counts before their items, in the order in which they are read here.
 */
#include "env_gym.h"

#include <stdlib.h>

enum { ALIGN = 64 };

typedef struct reader {
    const char *at, *end;
    bool is_short;
} reader;

static const char *read_text(reader *r)
{
    const char *t = r->at;
    if (r->is_short || t >= r->end) {
        r->is_short = true;
        return "0";
    }
    r->at += strlen(t) + 1;
    return t;
}

static uint32_t read_number(reader *r)
{
    return (uint32_t)strtoul(read_text(r), NULL, 10);
}

static uint32_t read_count(reader *r, uint32_t most)
{
    const uint32_t n = read_number(r);
    r->is_short |= n > most;
    return r->is_short ? 0 : n;
}

static float read_bound(reader *r)
{
    return (float)strtod(read_text(r), NULL);
}

/* Memory of the spec, which the first pass counts and the second hands out. */
typedef struct taker {
    char *at;
    size_t used;
} taker;

static void *take(taker *t, size_t n, size_t each)
{
    void *p = t->at != NULL ? t->at + t->used : NULL;
    t->used += (n * each + 7) / 8 * 8;
    return p;
}

static void read_ports(reader *r, taker *t, python *p)
{
    dt_env_spec *s = &p->spec;
    s->n_obs = read_count(r, DT_ENV_MAX_OBS);
    dt_port *port = take(t, s->n_obs, sizeof(*port));
    for (uint32_t i = 0; i < s->n_obs; i++) {
        const char *name = read_text(r), *dims = read_text(r), *dtype = read_text(r);
        const bool is_u8 = strcmp(dtype, "u8") == 0;
        p->port_bytes[i] = (size_t)s->n_agents * read_number(r) * (is_u8 ? 1 : sizeof(float));
        if (port != NULL) {
            port[i] = (dt_port){name, dims, is_u8 ? DT_U8 : DT_F32, 0};
        }
    }
    s->obs = port;
}

static void read_actions(reader *r, taker *t, python *p)
{
    dt_env_spec *s = &p->spec;
    s->n_heads = read_count(r, DT_ENV_MAX_HEADS);
    int32_t *choices = take(t, s->n_heads, sizeof(*choices));
    p->n_choices = 0;
    for (uint32_t i = 0; i < s->n_heads; i++) {
        const uint32_t n = read_number(r);
        p->n_choices += n;
        if (choices != NULL) {
            choices[i] = (int32_t)n;
        }
    }
    s->n_continuous = read_count(r, 1024);
    float *low = take(t, s->n_continuous, sizeof(*low)), *high = take(t, s->n_continuous, sizeof(*high));
    for (uint32_t i = 0; i < s->n_continuous; i++) {
        const float l = read_bound(r), u = read_bound(r);
        if (low != NULL) {
            low[i] = l;
            high[i] = u;
        }
    }
    s->choices = choices;
    s->low = low;
    s->high = high;
}

static const char *const *read_names(reader *r, taker *t, uint32_t n)
{
    const char **name = take(t, n, sizeof(*name));
    for (uint32_t i = 0; i < n; i++) {
        const char *text = read_text(r);
        if (name != NULL) {
            name[i] = text;
        }
    }
    return name;
}

static void read_columns(reader *r, taker *t, dt_env_spec *s)
{
    s->n_columns = read_count(r, DT_ENV_MAX_COLUMNS);
    dt_column *column = take(t, s->n_columns, sizeof(*column));
    for (uint32_t i = 0; i < s->n_columns; i++) {
        dt_column c = {.port = read_text(r), .name = read_text(r), .unit = "", .meaning = read_text(r), .stride = 1};
        c.low = strtod(read_text(r), NULL);
        c.high = strtod(read_text(r), NULL);
        c.first = read_number(r);
        c.n = read_number(r);
        if (column != NULL) {
            column[i] = c;
        }
    }
    s->columns = column;
}

static void read_whole(reader r, taker *t, python *p, bool *is_short_p)
{
    dt_env_spec *s = &p->spec;
    *s = (dt_env_spec){.struct_size = sizeof(*s)};
    (void)read_text(&r);
    s->n_agents = read_count(&r, 65536);
    read_ports(&r, t, p);
    read_actions(&r, t, p);
    s->n_costs = read_count(&r, DT_ENV_MAX_COSTS);
    s->costs = read_names(&r, t, s->n_costs);
    s->n_metrics = read_count(&r, DT_ENV_MAX_METRICS);
    s->metrics = read_names(&r, t, s->n_metrics);
    s->max_steps = read_number(&r);
    read_columns(&r, t, s);
    const uint32_t n_names = read_count(&r, s->n_agents);
    const char *const *names = read_names(&r, t, n_names);
    s->places = n_names > 0 ? names : NULL;
    const uint32_t n_teams = read_count(&r, s->n_agents);
    uint32_t *team = take(t, n_teams, sizeof(*team));
    for (uint32_t i = 0; i < n_teams; i++) {
        const uint32_t k = read_number(&r);
        if (team != NULL) {
            team[i] = k;
        }
    }
    s->team = n_teams > 0 ? team : NULL;
    *is_short_p = r.is_short || r.at != r.end;
}

static uint64_t place(uint64_t *at, uint64_t bytes)
{
    const uint64_t offset = *at;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return offset;
}

static void lay_out(python *p)
{
    const dt_env_spec *s = &p->spec;
    const uint64_t A = s->n_agents;
    gym_map *m = &p->m;
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->n_obs; i++) {
        m->obs[i] = place(&at, p->port_bytes[i]);
    }
    m->reward = place(&at, A * sizeof(float));
    m->cost = place(&at, A * s->n_costs * sizeof(float));
    m->alive = place(&at, A);
    m->terminated = place(&at, A);
    m->truncated = place(&at, A);
    m->mask = place(&at, A * p->n_choices);
    m->metric = place(&at, s->n_metrics * sizeof(double));
    m->act_i = place(&at, A * s->n_heads * sizeof(int32_t));
    m->act_f = place(&at, A * s->n_continuous * sizeof(float));
    m->status = place(&at, sizeof(int32_t));
    m->stride = at;
}

dt_status spec_read(python *p)
{
    taker t = {0};
    bool is_short = false;
    p->spec_text = malloc(p->reply_bytes);
    if (p->spec_text == NULL) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "no memory for a spec");
    }
    memcpy(p->spec_text, p->reply, p->reply_bytes);
    const reader r = {.at = p->spec_text, .end = p->spec_text + p->reply_bytes};
    read_whole(r, &t, p, &is_short);
    p->spec_memory = calloc(1, t.used + 1);
    if (p->spec_memory == NULL || is_short) {
        return is_short ? DT_FAIL_H(p->h, DT_ECONFIG,
                                    "the environment has more than dtrain allows: %d ports, %d discrete and 1024 "
                                    "continuous actions, %d costs, %d metrics",
                                    DT_ENV_MAX_OBS, DT_ENV_MAX_HEADS, DT_ENV_MAX_COSTS, DT_ENV_MAX_METRICS)
                        : DT_FAIL_H(p->h, DT_ENOMEM, "no memory for a spec");
    }
    t = (taker){.at = p->spec_memory};
    read_whole(r, &t, p, &is_short);
    lay_out(p);
    return DT_OK;
}
