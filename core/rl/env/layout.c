/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/layout.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/str.h"
#include "dtrain/checked.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/port.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 64 };
#define MOST_BYTES ((size_t)1 << 40) /* of one observation: what memory has room for is up to the plan */

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static dt_status check_names(const char *id, const char *what, const char *const *name, uint32_t n, uint32_t most)
{
    if (n > most) {
        return DT_FAIL(DT_EPLUGIN, "%s has %u %ss; at most %u are possible", id, n, what, most);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, name != NULL ? name[i] : NULL, "%s: %s %u",
                             id, what, i));
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(name[i], name[j]) == 0) {
                return DT_FAIL(DT_EPLUGIN, "%s has two %ss called \"%s\"", id, what, name[i]);
            }
        }
    }
    return DT_OK;
}

static dt_status check_counts(const char *id, const dt_env_spec *s)
{
    enum { MOST_AGENTS = 65536, MOST_CHOICES = 65536 };
    if (s->n_agents < 1 || s->n_agents > MOST_AGENTS) {
        return DT_FAIL(DT_EPLUGIN, "%s has places for %u agents; expected 1 to %d", id, s->n_agents, MOST_AGENTS);
    }
    if (s->n_obs < 1 || s->n_obs > DT_ENV_MAX_OBS || s->obs == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s has %u observation ports; expected 1 to %d", id, s->n_obs, DT_ENV_MAX_OBS);
    }
    for (uint32_t i = 0; i < s->n_obs; i++) {
        const dt_port *p = &s->obs[i];
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_PORT, p->name, "%s: observation port %u", id, i));
        DT_TRY(dt_text_check(DT_EPLUGIN, DT_PORT_MOST_DIMS, p->dims, "%s: dims of observation port %s", id, p->name));
    }
    if (s->n_symbols > DT_ENV_MAX_SYMBOLS || (s->n_symbols > 0 && s->symbols == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%s has %u ragged symbols; at most %d are possible", id, s->n_symbols,
                       DT_ENV_MAX_SYMBOLS);
    }
    if (s->n_heads > DT_ENV_MAX_HEADS || (s->n_heads > 0 && s->choices == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%s has %u discrete actions; at most %d are possible", id, s->n_heads,
                       DT_ENV_MAX_HEADS);
    }
    if (s->n_heads + s->n_continuous == 0 || s->n_continuous > 1024) {
        return DT_FAIL(DT_EPLUGIN, "%s has %u discrete and %u continuous actions; expected at least one, at most 1024",
                       id, s->n_heads, s->n_continuous);
    }
    for (uint32_t h = 0; h < s->n_heads; h++) {
        if (s->choices[h] < 1 || s->choices[h] > MOST_CHOICES) {
            return DT_FAIL(DT_EPLUGIN, "%s: discrete action %u has %d choices; expected 1 to %d", id, h, s->choices[h],
                           MOST_CHOICES);
        }
    }
    if (s->n_continuous > 0 && (s->low == NULL || s->high == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%s has continuous actions without bounds", id);
    }
    for (uint32_t i = 0; i < s->n_continuous; i++) {
        if (!(s->low[i] < s->high[i])) { /* NaN too */
            return DT_FAIL(DT_EPLUGIN, "%s: continuous action %u has the bounds %g and %g", id, i, (double)s->low[i],
                           (double)s->high[i]);
        }
    }
    for (uint32_t a = 0; s->team != NULL && a < s->n_agents; a++) {
        if (s->team[a] >= DT_ENV_MAX_TEAMS) {
            return DT_FAIL(DT_EPLUGIN, "%s: place %u is of team %u; teams have numbers from 0 to %d", id, a, s->team[a],
                           DT_ENV_MAX_TEAMS - 1);
        }
    }
    DT_TRY(check_names(id, "cost", s->costs, s->n_costs, DT_ENV_MAX_COSTS));
    return check_names(id, "metric", s->metrics, s->n_metrics, DT_ENV_MAX_METRICS);
}

static dt_status check_symbols(const char *id, const dt_env_spec *s)
{
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const char *name = s->symbols[k].name;
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_SYMBOL, DT_NAME_MOST_SYMBOL, name, "%s: ragged symbol %u", id, k));
        if (strcmp(name, "A") == 0 || strcmp(name, "B") == 0) {
            return DT_FAIL(DT_EPLUGIN, "%s: ragged symbol %u is called \"%s\"; expected a capital other than A and B",
                           id, k, name);
        }
        if (s->symbols[k].size < 1 || s->symbols[k].size > INT32_MAX) {
            return DT_FAIL(DT_EPLUGIN, "%s: symbol %s may have %lld rows; expected 1 to 2^31 - 1", id, name,
                           (long long)s->symbols[k].size);
        }
    }
    return DT_OK;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static int32_t find_symbol(const dt_layout *l, const char *name, size_t bytes)
{
    for (int32_t k = 0; k <= (int32_t)l->spec.n_symbols; k++) {
        const char *s = dt_layout_symbol_name(l, k);
        if (strlen(s) == bytes && memcmp(s, name, bytes) == 0) {
            return k;
        }
    }
    return -1;
}

static dt_status parse_rows(const dt_layout *l, const char *id, const dt_port *p, dt_obs_port *o)
{
    size_t n = strcspn(p->dims, " ");
    o->plus = n > 2 && memcmp(p->dims + n - 2, "+1", 2) == 0;
    o->symbol = find_symbol(l, p->dims, n - (o->plus ? 2 : 0));
    if (o->symbol < 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: port %s has dims \"%s\"; the first one must be A or one of its ragged symbols, with +1 "
                       "of row pointers",
                       id, p->name, p->dims);
    }
    o->cap = dt_layout_max_rows(l, o->symbol) + o->plus;
    o->row_items = 1;
    uint32_t rank = 1;
    for (const char *t = p->dims + n; *t != '\0'; t += n) {
        t++; /* the blank */
        n = strcspn(t, " ");
        char number[24] = "";
        int64_t size = 0;
        memcpy(number, t, n < sizeof(number) ? n : 0);
        if (!dt_parse_i64(number, &size) || size < 1 || size > INT32_MAX || ++rank > DT_MAX_DIMS - 1 ||
            o->row_items > INT32_MAX / size) {
            return DT_FAIL(DT_EPLUGIN,
                           "%s: port %s has dims \"%s\"; after the first one they must be numbers, at most %d", id,
                           p->name, p->dims, DT_MAX_DIMS - 2);
        }
        o->row_items *= size;
        o->steps = rank == 2 && (p->flags & DT_PORT_STEPS) != 0 ? size : o->steps;
    }
    o->is_plain = p->dtype == DT_F32 && o->symbol == 0 && rank == 2 && o->steps == 0;
    return DT_OK;
}

static dt_status parse_port(const dt_layout *l, const char *id, const dt_port *p, dt_obs_port *o)
{
    static const char *const taken[] = {"action_i",    "action_f",  "mask",    "log_prob",
                                        "value",       "advantage", "target",  "cost_value",
                                        "cost_target", "row_key",   "present", "cost_advantage"};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], p->name) == 0) {
            return DT_FAIL(DT_EPLUGIN, "%s: port %s has a name that the host gives to a field of its own", id, p->name);
        }
    }
    o->port = p;
    o->item_bytes = p->dtype == DT_F16 || p->dtype == DT_BF16 ? 0 : (uint32_t)dt_dtype_bytes(p->dtype);
    if (o->item_bytes == 0) {
        return DT_FAIL(DT_EPLUGIN, "%s: port %s has dtype %u, which observations cannot have", id, p->name, p->dtype);
    }
    DT_TRY(parse_rows(l, id, p, o));
    o->row_bytes = (size_t)o->row_items * o->item_bytes;
    o->index_of = (int32_t)((p->flags >> 8) & 0xff) - 1;
    if (o->index_of > (int32_t)l->spec.n_symbols || (o->index_of >= 0 && p->dtype != DT_I32)) {
        return DT_FAIL(DT_EPLUGIN, "%s: port %s counts rows of symbol %d; there are %u, and indices are i32", id,
                       p->name, o->index_of, l->spec.n_symbols + 1);
    }
    if ((p->flags & DT_PORT_STEPS) != 0 && (o->steps == 0 || o->plus || o->index_of >= 0)) {
        return DT_FAIL(
            DT_EPLUGIN,
            "%s: port %s has dims \"%s\" and the flag DT_PORT_STEPS; steps are the first number after the rows, "
            "of values that count nothing",
            id, p->name, p->dims);
    }
    if (o->plus && o->index_of == 0) {
        return DT_FAIL(
            DT_EPLUGIN,
            "%s: port %s [%s] contains row pointers that count \"A\", whose rows are those of agents that act: "
            "use a port \"A 1\" with DT_PORT_INDEX that gives the row of its symbol each agent belongs to",
            id, p->name, p->dims);
    }
    if (o->plus && (o->index_of < 1 || o->row_items != 1)) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: port %s [%s] contains row pointers; declare with DT_PORT_INDEX which rows they count", id,
                       p->name, p->dims);
    }
    return DT_OK;
}

/* Rows that are counted per agent go where their agent goes, and leave with it: nothing else may count them. */
static dt_status find_lists(dt_layout *l, const char *id)
{
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        uint32_t *lists = o->index_of > 0 ? &l->lists[o->index_of] : NULL;
        if (dt_obs_is_lists(o) && *lists != 0) {
            return DT_FAIL(DT_EPLUGIN,
                           "%s: ports %s and %s both define the owners of rows of %s; one of them is enough", id,
                           l->obs[*lists - 1].port->name, o->port->name, dt_layout_symbol_name(l, o->index_of));
        }
        if (dt_obs_is_lists(o)) {
            *lists = i + 1;
        }
    }
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        const uint32_t counted = o->index_of > 0 ? l->lists[o->index_of] : 0, own = l->lists[o->symbol];
        if (counted > 0 && !dt_obs_is_lists(o)) {
            return DT_FAIL(DT_EPLUGIN,
                           "%s: port %s counts rows of %s, of which each agent has its own (port %s [A+1]); no other "
                           "port may count them",
                           id, o->port->name, dt_layout_symbol_name(l, o->index_of), l->obs[counted - 1].port->name);
        }
        if (own > 0 && o->plus) {
            return DT_FAIL(
                DT_EPLUGIN,
                "%s: port %s [%s] holds lists of rows of %s, of which each agent has its own (port %s [A+1]); "
                "lists of lists are not possible",
                id, o->port->name, o->port->dims, dt_layout_symbol_name(l, o->symbol), l->obs[own - 1].port->name);
        }
    }
    return DT_OK;
}

/* Row pointers "N+1" count rows of E, and rows of E count N, or another symbol: a graph. Lists of agents are none:
 * which . */
static void find_graphs(dt_layout *l)
{
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        dt_obs_port *o = &l->obs[i];
        for (uint32_t k = 0; k < l->spec.n_obs && o->index_of > 0 && !o->plus; k++) {
            const dt_obs_port *p = &l->obs[k];
            o->is_edges |= p->plus && p->symbol > 0 && p->index_of == o->symbol;
        }
    }
}

/* ---- what columns, places and choices are ------------------------------------------------------------------------ */

static dt_status check_texts(const char *id, const char *what, const char *const *text, size_t n)
{
    for (size_t i = 0; text != NULL && i < n; i++) {
        if (text[i] == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s: %s %zu has no text; use an empty one if nothing is known", id, what, i);
        }
    }
    return DT_OK;
}

/* Before the copy: everything that is counted and read by it. */
static dt_status check_described(const char *id, const dt_env_spec *s)
{
    size_t n_choices = 0;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        n_choices += (size_t)s->choices[h];
    }
    if (s->n_columns > DT_ENV_MAX_COLUMNS || (s->n_columns > 0 && s->columns == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%s describes %u columns; at most %d are possible", id, s->n_columns,
                       DT_ENV_MAX_COLUMNS);
    }
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const dt_column *c = &s->columns[i];
        if (c->port == NULL || c->name == NULL || c->unit == NULL || c->meaning == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s: described column %u lacks its port, name, unit or meaning", id, i);
        }
        if (!(c->low <= c->high) || c->n < 1 || c->stride < 1) {
            return DT_FAIL(DT_EPLUGIN, "%s: %u columns %s of port %s, %u apart, have the range %g to %g", id, c->n,
                           c->name, c->port, c->stride, c->low, c->high);
        }
    }
    if (s->choices_shown != NULL && n_choices * s->n_agents > DT_ENV_MAX_CHOICES_SHOWN) {
        return DT_FAIL(DT_EPLUGIN, "%s shows %zu choices of %u places; at most %d are possible", id, n_choices,
                       s->n_agents, DT_ENV_MAX_CHOICES_SHOWN);
    }
    DT_TRY(check_texts(id, "place", s->places, s->n_agents));
    return check_texts(id, "shown choice", s->choices_shown, n_choices * s->n_agents);
}

/* Columns that there are. */
static dt_status check_columns(const dt_layout *l, const char *id)
{
    for (uint32_t i = 0; i < l->spec.n_columns; i++) {
        const dt_column *c = &l->spec.columns[i];
        const dt_obs_port *o = NULL;
        for (uint32_t k = 0; k < l->spec.n_obs; k++) {
            o = strcmp(l->spec.obs[k].name, c->port) == 0 ? &l->obs[k] : o;
        }
        if (o == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s describes columns of port %s, which it does not have", id, c->port);
        }
        const char *last = strrchr(o->port->dims, ' ');
        int64_t width = 1; /* a list of numbers */
        if (last != NULL && !dt_parse_i64(last + 1, &width)) {
            width = 1;
        }
        if (c->first + (uint64_t)(c->n - 1) * c->stride >= (uint64_t)width) {
            return DT_FAIL(DT_EPLUGIN, "%s: port %s [%s] has no column %llu, which is described as %s", id, c->port,
                           o->port->dims, (unsigned long long)(c->first + (uint64_t)(c->n - 1) * c->stride), c->name);
        }
    }
    return DT_OK;
}

/* ---- a copy of the spec ------------------------------------------------------------------------------------------ */

typedef struct copier { /* the first pass counts, the second writes */
    char *at;
    size_t used;
} copier;

static void *copy_bytes(copier *c, const void *from, size_t bytes)
{
    void *to = c->at != NULL ? c->at + c->used : NULL;
    if (to != NULL && bytes > 0) {
        memcpy(to, from, bytes);
    }
    c->used += (bytes + 7) / 8 * 8;
    return to;
}

static const char *copy_text(copier *c, const char *s)
{
    return copy_bytes(c, s, strlen(s) + 1);
}

static const char *const *copy_names(copier *c, const char *const *name, uint32_t n)
{
    const char **to = copy_bytes(c, name, n * sizeof(*to));
    for (uint32_t i = 0; i < n; i++) {
        const char *text = copy_text(c, name[i]);
        if (to != NULL) {
            to[i] = text;
        }
    }
    return to;
}

static void copy_spec(copier *c, const dt_env_spec *s, dt_env_spec *out)
{
    *out = *s;
    dt_port *obs = copy_bytes(c, s->obs, s->n_obs * sizeof(*obs));
    for (uint32_t i = 0; i < s->n_obs; i++) {
        const char *name = copy_text(c, s->obs[i].name);
        const char *dims = copy_text(c, s->obs[i].dims);
        if (obs != NULL) {
            obs[i].name = name;
            obs[i].dims = dims;
        }
    }
    out->obs = obs;
    dt_dim *symbols = copy_bytes(c, s->symbols, s->n_symbols * sizeof(*symbols));
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const char *name = copy_text(c, s->symbols[k].name);
        if (symbols != NULL) {
            symbols[k].name = name;
        }
    }
    out->symbols = symbols;
    out->choices = copy_bytes(c, s->choices, s->n_heads * sizeof(*s->choices));
    out->low = copy_bytes(c, s->low, s->n_continuous * sizeof(*s->low));
    out->high = copy_bytes(c, s->high, s->n_continuous * sizeof(*s->high));
    out->costs = copy_names(c, s->costs, s->n_costs);
    out->metrics = copy_names(c, s->metrics, s->n_metrics);
    out->team = s->team != NULL ? copy_bytes(c, s->team, s->n_agents * sizeof(*s->team)) : NULL;
    dt_column *columns = copy_bytes(c, s->columns, s->n_columns * sizeof(*columns));
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const dt_column *from = &s->columns[i];
        const dt_column mine = {.port = copy_text(c, from->port),
                                .name = copy_text(c, from->name),
                                .unit = copy_text(c, from->unit),
                                .meaning = copy_text(c, from->meaning)};
        if (columns != NULL) {
            columns[i].port = mine.port;
            columns[i].name = mine.name;
            columns[i].unit = mine.unit;
            columns[i].meaning = mine.meaning;
        }
    }
    out->columns = columns;
    uint32_t n_choices = 0;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        n_choices += (uint32_t)s->choices[h];
    }
    out->places = s->places != NULL ? copy_names(c, s->places, s->n_agents) : NULL;
    out->choices_shown = s->choices_shown != NULL ? copy_names(c, s->choices_shown, s->n_agents * n_choices) : NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static size_t reserve_bytes(size_t *at, size_t bytes)
{
    const size_t offset = *at;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return offset;
}

/* All that an agent has is bounded by check_counts; rows, and what is in one, are bounded each, not their product. */
static dt_status place_arrays(dt_layout *l, const char *id)
{
    const dt_env_spec *s = &l->spec;
    size_t at = 0, rows = 0;
    for (uint32_t i = 0; i < s->n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        if (!dt_grow_size(&rows, (size_t)o->cap, o->row_bytes) || rows > MOST_BYTES) {
            return DT_FAIL(DT_EPLUGIN, "%s: up to port %s [%s] with %lld rows, an observation has more than %zu GB", id,
                           o->port->name, o->port->dims, (long long)o->cap, MOST_BYTES >> 30);
        }
        l->obs[i].offset = reserve_bytes(&at, (size_t)o->cap * o->row_bytes);
    }
    l->size = reserve_bytes(&at, s->n_symbols * sizeof(int64_t));
    l->alive = reserve_bytes(&at, s->n_agents);
    l->reward = reserve_bytes(&at, s->n_agents * sizeof(float));
    l->cost = reserve_bytes(&at, (size_t)s->n_agents * s->n_costs * sizeof(float));
    l->terminated = reserve_bytes(&at, s->n_agents);
    l->truncated = reserve_bytes(&at, s->n_agents);
    l->metric = reserve_bytes(&at, s->n_metrics * sizeof(double));
    l->out_bytes = at;
    l->mask = reserve_bytes(&at, (size_t)s->n_agents * l->n_choices);
    l->act_i = reserve_bytes(&at, (size_t)s->n_agents * s->n_heads * sizeof(int32_t));
    l->act_f = reserve_bytes(&at, (size_t)s->n_agents * s->n_continuous * sizeof(float));
    l->record_bytes = at;
    return DT_OK;
}

dt_status dt_layout_init(dt_layout *l, const char *id, const dt_env_spec *spec)
{
    memset(l, 0, sizeof(*l));
    DT_TRY(check_counts(id, spec));
    DT_TRY(check_symbols(id, spec));
    DT_TRY(check_described(id, spec));
    copier c = {0};
    copy_spec(&c, spec, &l->spec);
    c = (copier){.at = dt_alloc(c.used)};
    if (c.at == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the spec of %s", id);
    }
    l->memory = c.at;
    copy_spec(&c, spec, &l->spec);
    for (uint32_t h = 0; h < spec->n_heads; h++) {
        l->n_choices += (uint32_t)spec->choices[h];
    }
    for (uint32_t i = 0; i < spec->n_obs; i++) {
        DT_TRY(parse_port(l, id, &l->spec.obs[i], &l->obs[i]));
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(l->spec.obs[i].name, l->spec.obs[j].name) == 0) {
                return DT_FAIL(DT_EPLUGIN, "%s has two observation ports called \"%s\"", id, l->spec.obs[i].name);
            }
        }
    }
    DT_TRY(check_columns(l, id));
    DT_TRY(find_lists(l, id));
    find_graphs(l);
    return place_arrays(l, id);
}

void dt_layout_fini(dt_layout *l)
{
    dt_free(l->memory);
    memset(l, 0, sizeof(*l));
}

uint32_t dt_layout_team_of(const dt_layout *l, uint32_t place)
{
    return l->spec.team != NULL ? l->spec.team[place] : 0;
}

/* Of the spec that is compared, which nothing has checked. */
static const char *text_or_none(const char *text)
{
    return text != NULL ? text : "(none)";
}

static bool is_same_text(const char *was, const char *is)
{
    return is != NULL && strcmp(was, is) == 0;
}

static dt_status compare_ports(const dt_layout *l, const dt_env_spec *spec)
{
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        const dt_port *p = &l->spec.obs[i], *q = &spec->obs[i];
        if (!is_same_text(p->name, q->name) || !is_same_text(p->dims, q->dims) || p->dtype != q->dtype ||
            p->flags != q->flags) {
            return DT_FAIL(DT_EPLUGIN, "port %u is %s [%s, %s, flags %u] instead of %s [%s, %s, flags %u]", i,
                           text_or_none(q->name), text_or_none(q->dims), dt_dtype_name(q->dtype), q->flags, p->name,
                           p->dims, dt_dtype_name(p->dtype), p->flags);
        }
    }
    for (uint32_t k = 0; k < l->spec.n_symbols; k++) {
        const dt_dim *was = &l->spec.symbols[k], *is = &spec->symbols[k];
        if (!is_same_text(was->name, is->name) || was->size != is->size) {
            return DT_FAIL(DT_EPLUGIN, "symbol %u is %s of at most %lld rows instead of %s of %lld", k,
                           text_or_none(is->name), (long long)is->size, was->name, (long long)was->size);
        }
    }
    return DT_OK;
}

static dt_status compare_actions(const dt_env_spec *a, const dt_env_spec *b)
{
    for (uint32_t h = 0; h < a->n_heads; h++) {
        if (a->choices[h] != b->choices[h]) {
            return DT_FAIL(DT_EPLUGIN, "discrete action %u has %d choices instead of %d", h, b->choices[h],
                           a->choices[h]);
        }
    }
    for (uint32_t i = 0; i < a->n_continuous; i++) {
        if (memcmp(&a->low[i], &b->low[i], sizeof(float)) != 0 ||
            memcmp(&a->high[i], &b->high[i], sizeof(float)) != 0) {
            return DT_FAIL(DT_EPLUGIN, "continuous action %u has the bounds %g and %g instead of %g and %g", i,
                           (double)b->low[i], (double)b->high[i], (double)a->low[i], (double)a->high[i]);
        }
    }
    return DT_OK;
}

static dt_status compare_names(const char *what, const char *const *was, const char *const *is, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is == NULL || !is_same_text(was[i], is[i])) {
            return DT_FAIL(DT_EPLUGIN, "%s %u is called %s instead of %s", what, i,
                           text_or_none(is != NULL ? is[i] : NULL), was[i]);
        }
    }
    return DT_OK;
}

dt_status dt_layout_compare_env(const dt_layout *l, const dt_env_spec *spec)
{
    const dt_env_spec *a = &l->spec;
    const struct {
        const char *what;
        uint32_t was, is;
    } count[] = {{"places for agents", a->n_agents, spec->n_agents},
                 {"observation ports", a->n_obs, spec->n_obs},
                 {"ragged symbols", a->n_symbols, spec->n_symbols},
                 {"discrete actions", a->n_heads, spec->n_heads},
                 {"continuous actions", a->n_continuous, spec->n_continuous},
                 {"costs", a->n_costs, spec->n_costs},
                 {"metrics", a->n_metrics, spec->n_metrics}};
    for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
        if (count[i].was != count[i].is) {
            return DT_FAIL(DT_EPLUGIN, "%u %s instead of %u", count[i].is, count[i].what, count[i].was);
        }
    }
    if (spec->obs == NULL || (a->n_symbols > 0 && spec->symbols == NULL) || (a->n_heads > 0 && spec->choices == NULL) ||
        (a->n_continuous > 0 && (spec->low == NULL || spec->high == NULL))) {
        return DT_FAIL(DT_EPLUGIN, "a list of its ports, symbols, choices or bounds is NULL");
    }
    for (uint32_t i = 0; i < a->n_agents; i++) {
        const uint32_t was = dt_layout_team_of(l, i), is = spec->team != NULL ? spec->team[i] : 0;
        if (was != is) {
            return DT_FAIL(DT_EPLUGIN, "place %u is of team %u instead of %u", i, is, was);
        }
    }
    DT_TRY(compare_ports(l, spec));
    DT_TRY(compare_actions(a, spec));
    DT_TRY(compare_names("cost", a->costs, spec->costs, a->n_costs));
    return compare_names("metric", a->metrics, spec->metrics, a->n_metrics);
}

dt_status dt_layout_compare(const dt_layout *l, const dt_env_spec *spec)
{
    const dt_status st = dt_layout_compare_env(l, spec);
    return st < 0 ? DT_CONTEXT(st, "its spec has changed") : DT_OK;
}

/* Places and their teams are as l has them for the comparison. */
dt_status dt_layout_compare_fewer_places(const dt_layout *l, const dt_env_spec *spec)
{
    dt_env_spec part = *spec;
    if (spec->n_agents > l->spec.n_agents) {
        return DT_FAIL(DT_EPLUGIN, "%u places for agents instead of %u", spec->n_agents, l->spec.n_agents);
    }
    for (uint32_t a = 0; a < spec->n_agents; a++) {
        const uint32_t was = dt_layout_team_of(l, a), is = spec->team != NULL ? spec->team[a] : 0;
        if (was != is) {
            return DT_FAIL(DT_EPLUGIN, "place %u is of team %u instead of %u", a, is, was);
        }
    }
    part.n_agents = l->spec.n_agents;
    part.team = l->spec.team;
    return dt_layout_compare_env(l, &part);
}

void dt_layout_get_io(const dt_layout *l, char *record, void **obs, dt_env_io *io)
{
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        obs[i] = record + l->obs[i].offset;
    }
    *io = (dt_env_io){.struct_size = sizeof(*io),
                      .n_obs = l->spec.n_obs,
                      .obs = obs,
                      .size = (int64_t *)(void *)(record + l->size),
                      .alive = (uint8_t *)(record + l->alive),
                      .mask = (uint8_t *)(record + l->mask),
                      .act_i = (const int32_t *)(const void *)(record + l->act_i),
                      .act_f = (const float *)(const void *)(record + l->act_f),
                      .reward = (float *)(void *)(record + l->reward),
                      .cost = (float *)(void *)(record + l->cost),
                      .terminated = (uint8_t *)(record + l->terminated),
                      .truncated = (uint8_t *)(record + l->truncated),
                      .metric = (double *)(void *)(record + l->metric)};
}

int64_t dt_layout_count_rows(const dt_layout *l, const dt_obs_port *o, const int64_t *size)
{
    return (o->symbol == 0 ? (int64_t)l->spec.n_agents : size[o->symbol - 1]) + o->plus;
}

int64_t dt_layout_max_rows(const dt_layout *l, int32_t symbol)
{
    return symbol == 0 ? l->spec.n_agents : l->spec.symbols[symbol - 1].size;
}

const char *dt_layout_symbol_name(const dt_layout *l, int32_t symbol)
{
    return symbol == 0 ? "A" : l->spec.symbols[symbol - 1].name;
}
