/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/process_spec.h"

#include "base/err.h"
#include "base/mem.h"
#include "rl/env/layout.h"

#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_bytes(dt_str *out, const void *p, size_t bytes)
{
    static const char zeros[8];
    dt_str_add_n(out, p != NULL ? p : zeros, p != NULL ? bytes : 0);
    dt_str_add_n(out, zeros, (8 - bytes % 8) % 8);
}

static void write_text(dt_str *out, const char *s)
{
    write_bytes(out, s, strlen(s) + 1);
}

static size_t count_choices(const dt_env_spec *s)
{
    size_t n = 0;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        n += (size_t)s->choices[h];
    }
    return n;
}

dt_status dt_spec_write(const dt_env_spec *s, dt_str *out)
{
    dt_layout l;
    const dt_status st = dt_layout_init(&l, "the environment", s);
    dt_layout_fini(&l);
    DT_TRY(st);
    write_bytes(out, s, sizeof(*s));
    for (uint32_t i = 0; i < s->n_obs; i++) {
        write_bytes(out, &s->obs[i], sizeof(s->obs[i]));
        write_text(out, s->obs[i].name);
        write_text(out, s->obs[i].dims);
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        write_bytes(out, &s->symbols[k], sizeof(s->symbols[k]));
        write_text(out, s->symbols[k].name);
    }
    write_bytes(out, s->choices, s->n_heads * sizeof(*s->choices));
    write_bytes(out, s->low, s->n_continuous * sizeof(*s->low));
    write_bytes(out, s->high, s->n_continuous * sizeof(*s->high));
    write_bytes(out, s->team, s->team != NULL ? s->n_agents * sizeof(*s->team) : 0);
    for (uint32_t k = 0; k < s->n_costs; k++) {
        write_text(out, s->costs[k]);
    }
    for (uint32_t k = 0; k < s->n_metrics; k++) {
        write_text(out, s->metrics[k]);
    }
    for (uint32_t i = 0; i < s->n_columns; i++) {
        write_bytes(out, &s->columns[i], sizeof(s->columns[i]));
        write_text(out, s->columns[i].port);
        write_text(out, s->columns[i].name);
        write_text(out, s->columns[i].unit);
        write_text(out, s->columns[i].meaning);
    }
    for (uint32_t k = 0; s->places != NULL && k < s->n_agents; k++) {
        write_text(out, s->places[k]);
    }
    for (size_t k = 0; s->choices_shown != NULL && k < (size_t)s->n_agents * count_choices(s); k++) {
        write_text(out, s->choices_shown[k]);
    }
    return dt_str_status(out);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at, *end;
    bool is_short; /* more was asked for than there is */
} cursor;

/* NULL: there is not so much, or there was not before. */
static const void *read_bytes(cursor *c, size_t bytes)
{
    const size_t left = (size_t)(c->end - c->at), padding = (8 - bytes % 8) % 8;
    if (c->is_short || bytes > left || padding > left - bytes) {
        c->is_short = true;
        return NULL;
    }
    const void *p = c->at;
    c->at += bytes + padding;
    return p;
}

static const char *read_text(cursor *c)
{
    const size_t left = (size_t)(c->end - c->at), bytes = c->is_short ? 0 : strnlen(c->at, left);
    const char *text = read_bytes(c, bytes + 1); /* the zero is part of it: where there is none, there is not so much */
    return text != NULL ? text : "";
}

static void read_struct(cursor *c, void *to, size_t bytes)
{
    const void *from = read_bytes(c, bytes);
    if (from != NULL) {
        memcpy(to, from, bytes);
    }
}

/* n of them, to *room_p, which moves on. */
static const char *const *get_texts(cursor *c, const char ***room_p, size_t n)
{
    const char **text = *room_p;
    for (size_t i = 0; i < n; i++) {
        text[i] = read_text(c);
    }
    *room_p += n;
    return text;
}

static dt_status check_counts(const dt_env_spec *s)
{
    const struct {
        const char *name;
        uint32_t n, most;
    } count[] = {
        {"observations", s->n_obs, DT_ENV_MAX_OBS},         {"symbols", s->n_symbols, DT_ENV_MAX_SYMBOLS},
        {"discrete actions", s->n_heads, DT_ENV_MAX_HEADS}, {"costs", s->n_costs, DT_ENV_MAX_COSTS},
        {"metrics", s->n_metrics, DT_ENV_MAX_METRICS},      {"described columns", s->n_columns, DT_ENV_MAX_COLUMNS}};
    for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
        if (count[i].n > count[i].most) {
            return DT_FAIL(DT_EPLUGIN, "its process reports %u %s; at most %u are possible", count[i].n, count[i].name,
                           count[i].most);
        }
    }
    return DT_OK;
}

dt_status dt_spec_read(const char *bytes, size_t n, dt_env_spec *out, void **memory_p)
{
    cursor c = {.at = bytes, .end = bytes + n};
    dt_env_spec *s = out;
    read_struct(&c, s, sizeof(*s));
    s->struct_size = sizeof(*s);
    DT_TRY(c.is_short ? DT_OK : check_counts(s));
    const bool has_places = s->places != NULL, shows = s->choices_shown != NULL; /* as sent: present or absent */
    c.is_short |= s->n_agents > n;                                               /* each has a byte somewhere */
    const size_t names = c.is_short ? 0
                                    : s->n_costs + s->n_metrics + (has_places ? s->n_agents : 0) +
                                          (shows ? DT_ENV_MAX_CHOICES_SHOWN : 0);
    dt_port *port = c.is_short ? NULL
                               : dt_alloc(s->n_obs * sizeof(dt_port) + s->n_symbols * sizeof(dt_dim) +
                                          s->n_columns * sizeof(dt_column) + names * sizeof(char *) + 1);
    if (port == NULL) {
        return c.is_short ? DT_FAIL(DT_EPLUGIN, "its process sent %zu bytes, which are not a spec", n)
                          : DT_FAIL(DT_ENOMEM, "out of memory for a spec");
    }
    *memory_p = port;
    dt_dim *symbol = (dt_dim *)(void *)(port + s->n_obs);
    dt_column *column = (dt_column *)(void *)(symbol + s->n_symbols);
    const char **name = (const char **)(void *)(column + s->n_columns);
    for (uint32_t i = 0; i < s->n_obs; i++) {
        read_struct(&c, &port[i], sizeof(dt_port));
        port[i].name = read_text(&c);
        port[i].dims = read_text(&c);
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        read_struct(&c, &symbol[k], sizeof(dt_dim));
        symbol[k].name = read_text(&c);
    }
    s->obs = port;
    s->symbols = symbol;
    s->choices = read_bytes(&c, s->n_heads * sizeof(*s->choices));
    s->low = read_bytes(&c, s->n_continuous * sizeof(*s->low));
    s->high = read_bytes(&c, s->n_continuous * sizeof(*s->high));
    s->team = s->team != NULL ? read_bytes(&c, s->n_agents * sizeof(*s->team)) : NULL; /* as sent: is there one? */
    s->costs = get_texts(&c, &name, s->n_costs);
    s->metrics = get_texts(&c, &name, s->n_metrics);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        read_struct(&c, &column[i], sizeof(dt_column));
        column[i].port = read_text(&c);
        column[i].name = read_text(&c);
        column[i].unit = read_text(&c);
        column[i].meaning = read_text(&c);
    }
    s->columns = column;
    s->places = has_places ? get_texts(&c, &name, s->n_agents) : NULL;
    const size_t n_shown = shows && !c.is_short ? s->n_agents * count_choices(s) : 0;
    if (n_shown > DT_ENV_MAX_CHOICES_SHOWN) {
        return DT_FAIL(DT_EPLUGIN, "its process shows %zu choices; at most %d are possible", n_shown,
                       DT_ENV_MAX_CHOICES_SHOWN);
    }
    s->choices_shown = shows ? get_texts(&c, &name, n_shown) : NULL;
    return c.is_short ? DT_FAIL(DT_EPLUGIN, "its process sent a truncated spec, of %zu bytes", n) : DT_OK;
}
