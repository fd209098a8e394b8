/* SPDX-License-Identifier: Apache-2.0
 *
 * See buffer.h: what a round keeps, and how steps come into it.
 */
#include <config.h>

#include "rl/buffer/buffer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status add_field(dt_buffer *b, uint32_t kind, uint32_t port, uint32_t dtype, const char *name,
                           const char *dims)
{
    if (b->n_fields == DT_BUFFER_MAX_FIELDS) {
        return DT_FAIL(DT_EPLUGIN, "the environment's %u ports make more than %d fields", b->l->spec.n_obs,
                       DT_BUFFER_MAX_FIELDS);
    }
    for (uint32_t i = 0; i < b->n_fields; i++) {
        if (strcmp(b->field[i].name, name) == 0) {
            return DT_FAIL(
                DT_EPLUGIN,
                "a rollout would have two fields of the name %s; rename the observation, or what the phase keeps, "
                "annotates or carries",
                name);
        }
    }
    dt_buffer_field *f = &b->field[b->n_fields];
    f->kind = kind;
    f->port = port;
    snprintf(f->name, sizeof(f->name), "%s", name);
    snprintf(f->dims, sizeof(f->dims), "%s", dims);
    b->port[b->n_fields++] = (dt_port){f->name, f->dims, dtype, 0};
    return DT_OK;
}

static dt_status add_field_of_columns(dt_buffer *b, uint32_t kind, uint32_t dtype, const char *name, uint32_t n)
{
    char dims[64];
    snprintf(dims, sizeof(dims), "A %u", n);
    return n > 0 ? add_field(b, kind, 0, dtype, name, dims) : DT_OK;
}

static dt_status add_history(dt_buffer *b)
{
    char name[64], dims[64];
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        if (o->is_plain) {
            snprintf(name, sizeof(name), "%.40s_history", o->port->name);
            snprintf(dims, sizeof(dims), "%u A %lld", b->d.window, (long long)o->row_items);
            DT_TRY(add_field(b, FIELD_HISTORY, i, DT_F32, name, dims));
        }
    }
    snprintf(dims, sizeof(dims), "%u A", b->d.window);
    return add_field(b, FIELD_PRESENT, 0, DT_F32, "present", dims);
}

/* Of rows with steps the steps come first: "S 15 6" is "15 S 6". */
static dt_status add_observation_field(dt_buffer *b, uint32_t i)
{
    const dt_port *p = &b->l->spec.obs[i];
    char dims[64];
    if (b->l->obs[i].steps == 0) {
        return add_field(b, FIELD_OBS, i, p->dtype, p->name, p->dims);
    }
    const size_t rows = strcspn(p->dims, " "), steps = strcspn(p->dims + rows + 1, " ");
    snprintf(dims, sizeof(dims), "%.*s %.*s%s", (int)steps, p->dims + rows + 1, (int)rows, p->dims,
             p->dims + rows + 1 + steps);
    return add_field(b, FIELD_STEPS, i, p->dtype, p->name, dims);
}

static dt_status add_next_fields(dt_buffer *b)
{
    char name[64];
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        const bool is_row = o->symbol == 0 && o->steps == 0;
        snprintf(name, sizeof(name), "next_%.40s", o->port->name);
        const uint32_t dtype = o->port->dtype;
        if (is_row && o->index_of < 0 && (dtype == DT_F32 || dtype == DT_U8)) {
            DT_TRY(add_field(b, FIELD_NEXT, i, dtype, name, o->port->dims));
        } else if (is_row && o->index_of >= 0 && dt_buffer_is_joined(b)) {
            DT_TRY(add_field(b, FIELD_NEXT_INDEX, i, DT_I32, name, o->port->dims));
        }
    }
    DT_TRY(add_field(b, FIELD_NEXT_PRESENT, 0, DT_F32, "next_present", "A"));
    return add_field_of_columns(b, FIELD_COST_IN, DT_F32, "cost_in", b->l->spec.n_costs);
}

static dt_status add_transition_fields(dt_buffer *b)
{
    const dt_env_spec *s = &b->l->spec;
    DT_TRY(add_field(b, FIELD_REWARD, 0, DT_F32, "reward", "A"));
    DT_TRY(add_field_of_columns(b, FIELD_COST, DT_F32, "cost", s->n_costs));
    DT_TRY(add_field(b, FIELD_TERMINATED, 0, DT_F32, "terminated", "A"));
    DT_TRY(add_field(b, FIELD_TRUNCATED, 0, DT_F32, "truncated", "A"));
    DT_TRY(add_field_of_columns(b, FIELD_EXECUTED, DT_F32, "executed", s->n_continuous));
    DT_TRY(add_field(b, FIELD_PLACE, 0, DT_I32, "place", "A"));
    DT_TRY(add_field_of_columns(b, FIELD_NEXT_MASK, DT_F32, "next_mask", b->l->n_choices));
    DT_TRY(s->n_heads == 1 ? add_field_of_columns(b, FIELD_OTHERS, DT_F32, "others", s->n_agents * b->l->n_choices)
                           : DT_OK);
    DT_TRY(add_field_of_columns(b, FIELD_OTHERS_F, DT_F32, "others_f", s->n_agents * s->n_continuous));
    DT_TRY(add_field(b, FIELD_DISCOUNT, 0, DT_F32, "discount", "A"));
    DT_TRY(add_field(b, FIELD_WEIGHT, 0, DT_F32, "weight", "A"));
    return add_field_of_columns(b, FIELD_TEAM_ROWS, DT_I32, "team_rows", s->n_agents);
}

/* Columns of a port that is to be "A D" f32. */
static dt_status count_columns(const dt_port *p, const char *what, uint32_t most, size_t *columns_p)
{
    int64_t columns = 0;
    if (p->dtype != DT_F32 || strncmp(p->dims, "A ", 2) != 0 || !dt_parse_i64(p->dims + 2, &columns) || columns < 1) {
        return DT_FAIL(DT_EPLUGIN, "a rollout %s at most %u values of rows, [A D] f32; %s [%s] is not one", what, most,
                       p->name, p->dims);
    }
    *columns_p = (size_t)columns;
    return DT_OK;
}

static dt_status add_carried_fields(dt_buffer *b)
{
    char dims[64];
    for (uint32_t k = 0; k < b->d.n_carried; k++) {
        const dt_port *p = &b->d.carried[k];
        DT_TRY(count_columns(p, "carries", DT_ROLLOUT_MAX_CARRIED, &b->carried_columns[k]));
        DT_TRY(add_field(b, FIELD_CARRIED, k, DT_F32, p->name, p->dims));
    }
    b->n_carried = b->d.n_carried;
    if (!b->d.has_last_action) {
        return DT_OK;
    }
    const uint32_t last = b->n_carried++, columns = b->l->n_choices + b->l->spec.n_continuous;
    b->carried_columns[last] = columns;
    snprintf(dims, sizeof(dims), "A %u", columns);
    DT_TRY(add_field(b, FIELD_CARRIED, last, DT_F32, "last_action", dims));
    snprintf(dims, sizeof(dims), "%u A %u", b->d.window, columns);
    return b->d.window > 1 ? add_field(b, FIELD_CARRIED_HISTORY, last, DT_F32, "last_action_history", dims) : DT_OK;
}

static dt_status add_annotations(dt_buffer *b)
{
    for (uint32_t k = 0; k < b->d.n_annotations; k++) {
        const dt_port *p = &b->d.annotation[k];
        DT_TRY(count_columns(p, "annotates", DT_ROLLOUT_MAX_ANNOTATIONS, &b->annotation_columns[k]));
        DT_TRY(add_field(b, FIELD_ANNOTATION, k, DT_F32, p->name, p->dims));
    }
    return DT_OK;
}

static dt_status add_kept_fields(dt_buffer *b)
{
    for (uint32_t k = 0; k < b->d.n_kept; k++) {
        const dt_port *p = &b->d.kept[k];
        DT_TRY(count_columns(p, "keeps", DT_ROLLOUT_MAX_KEPT, &b->kept_columns[k]));
        DT_TRY(add_field(b, FIELD_KEPT, k, DT_F32, p->name, p->dims));
    }
    return DT_OK;
}

static dt_status add_fields(dt_buffer *b)
{
    const dt_env_spec *s = &b->l->spec;
    for (uint32_t i = 0; i < s->n_obs; i++) {
        DT_TRY(add_observation_field(b, i));
    }
    if (b->d.window > 1) {
        DT_TRY(add_history(b));
    }
    DT_TRY(add_field_of_columns(b, FIELD_ACTION_I, DT_I32, "action_i", s->n_heads));
    DT_TRY(add_field_of_columns(b, FIELD_MASK, DT_F32, "mask", b->l->n_choices));
    DT_TRY(add_field_of_columns(b, FIELD_ACTION_F, DT_F32, "action_f", s->n_continuous));
    DT_TRY(add_field(b, FIELD_LOG_PROB, 0, DT_F32, "log_prob", "A"));
    DT_TRY(add_field(b, FIELD_VALUE, 0, DT_F32, "value", "A"));
    DT_TRY(add_field(b, FIELD_ADVANTAGE, 0, DT_F32, "advantage", "A"));
    DT_TRY(add_field(b, FIELD_TARGET, 0, DT_F32, "target", "A"));
    DT_TRY(add_field_of_columns(b, FIELD_COST_VALUE, DT_F32, "cost_value", s->n_costs));
    DT_TRY(add_field_of_columns(b, FIELD_COST_ADVANTAGE, DT_F32, "cost_advantage", s->n_costs));
    DT_TRY(add_field_of_columns(b, FIELD_COST_TARGET, DT_F32, "cost_target", s->n_costs));
    DT_TRY(add_field(b, FIELD_ROW_KEY, 0, DT_I64, "row_key", "A"));
    DT_TRY(add_carried_fields(b));
    DT_TRY(b->d.transitions > 0 ? add_next_fields(b) : DT_OK);
    DT_TRY(b->d.transitions > 1 ? add_transition_fields(b) : DT_OK);
    DT_TRY(add_annotations(b));
    return add_kept_fields(b); /* last, with what is annotated: an evaluation's buffer has all but these */
}

/* n items. Called twice: without memory it counts; what no memory can hold stays SIZE_MAX. */
static char *reserve_memory(dt_buffer *b, size_t n, size_t item_bytes)
{
    size_t bytes = 0;
    char *p = b->map != NULL ? (char *)b->map + b->map_bytes : NULL;
    const bool fits = dt_mul_size(n, item_bytes, &bytes) && bytes < SIZE_MAX / 2 && b->map_bytes < SIZE_MAX / 2;
    b->map_bytes = fits ? b->map_bytes + (bytes + ALIGN - 1) / ALIGN * ALIGN : SIZE_MAX;
    return p;
}

static void lay_out_arrays(dt_buffer *b)
{
    const dt_env_spec *s = &b->l->spec;
    const size_t n = b->n_places, slots = b->n_slots;
    b->map_bytes = 0;
    b->row = (uint8_t *)reserve_memory(b, n, 1);
    b->flag = (uint8_t *)reserve_memory(b, n, 1);
    b->report = (uint8_t *)reserve_memory(b, n, 1);
    b->done = (uint8_t *)reserve_memory(b, slots, 1);
    b->age = (void *)reserve_memory(b, n, sizeof(*b->age));
    b->n_acts = (void *)reserve_memory(b, slots, sizeof(*b->n_acts));
    b->n_seen = (void *)reserve_memory(b, slots, sizeof(*b->n_seen));
    b->n_opponents = (void *)reserve_memory(b, slots, sizeof(*b->n_opponents));
    b->size = (void *)reserve_memory(b, slots, s->n_symbols * sizeof(*b->size));
    for (uint32_t k = 1; k <= s->n_symbols; k++) {
        b->length[k] = b->l->lists[k] > 0 ? (void *)reserve_memory(b, n, sizeof(*b->length[k])) : NULL;
    }
    for (uint32_t i = 0; i < s->n_obs && !b->d.is_narrow; i++) {
        if (dt_obs_is_lists(&b->l->obs[i])) {
            continue;
        }
        if (b->l->obs[i].symbol == 0) {
            b->obs[i] = reserve_memory(b, n, b->l->obs[i].row_bytes);
        } else {
            b->at[i] = (void *)reserve_memory(b, slots, sizeof(*b->at[i]));
        }
    }
    for (uint32_t k = 0; k < b->n_carried && !b->d.is_narrow; k++) {
        b->carried[k] = (void *)reserve_memory(b, n, b->carried_columns[k] * sizeof(float));
    }
    b->mask = b->d.is_narrow ? NULL : (uint8_t *)reserve_memory(b, n, b->l->n_choices);
    b->act_i = (void *)reserve_memory(b, n, s->n_heads * sizeof(int32_t));
    b->act_f = (void *)reserve_memory(b, n, s->n_continuous * sizeof(float));
    b->executed_f = (void *)reserve_memory(b, n, s->n_continuous * sizeof(float));
    float **const one[] = {&b->log_prob, &b->value, &b->reward, &b->advantage, &b->target};
    for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
        *one[i] = (void *)reserve_memory(b, n, sizeof(float));
    }
    float **const per_cost[] = {&b->cost_value, &b->cost, &b->cost_advantage, &b->cost_target};
    for (size_t i = 0; i < sizeof(per_cost) / sizeof(per_cost[0]); i++) {
        *per_cost[i] = (void *)reserve_memory(b, n, s->n_costs * sizeof(float));
    }
    b->cost_in = b->d.transitions > 0 ? (void *)reserve_memory(b, n, s->n_costs * sizeof(float)) : NULL;
    for (uint32_t k = 0; k < b->d.n_annotations; k++) {
        b->annotation[k] = (void *)reserve_memory(b, n, b->annotation_columns[k] * sizeof(float));
    }
    b->episode_items = 2 + s->n_costs + s->n_metrics;
    b->episode = (void *)reserve_memory(b, slots, b->episode_items * sizeof(double));
}

static dt_status map_memory(dt_buffer *b)
{
    size_t bytes = 0;
    void *map = NULL;
    lay_out_arrays(b);
    if (b->map_bytes == SIZE_MAX) {
        return DT_FAIL(DT_ECONFIG, "%u steps of %u instances are more bytes than can be counted; take fewer steps",
                       b->d.steps, b->d.instances);
    }
    DT_TRY(dt_arena_map(b->map_bytes, &map));
    b->map = map;
    lay_out_arrays(b);
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        if (o->symbol == 0 || b->d.is_narrow) {
            continue;
        }
        if (!dt_mul_size(b->n_slots, (size_t)o->cap * o->row_bytes, &bytes)) {
            return DT_FAIL(DT_ENOMEM, "port %s of %zu steps of instances does not fit in memory", o->port->name,
                           b->n_slots);
        }
        DT_TRY(dt_arena_map(bytes, &b->arena[i]));
        b->arena_bytes[i] = bytes;
        b->obs[i] = b->arena[i];
    }
    return DT_OK;
}

dt_status dt_buffer_init(dt_buffer *b, const dt_buffer_desc *d)
{
    memset(b, 0, sizeof(*b));
    b->d = *d;
    b->l = d->layout;
    const bool fits = dt_mul_size((size_t)d->steps + d->window, d->instances, &b->n_slots);
    if (!fits || !dt_mul_size(b->n_slots, b->l->spec.n_agents, &b->n_places) || b->n_places > INT32_MAX) {
        return DT_FAIL(DT_ECONFIG, "%u steps of %u instances with %u places are more than 2^31 rows; take fewer steps",
                       d->steps, d->instances, b->l->spec.n_agents);
    }
    for (int32_t k = 0; k <= (int32_t)b->l->spec.n_symbols; k++) {
        b->symbol[k] = dt_layout_symbol_name(b->l, k);
        if (dt_buffer_max_rows(b, k) > INT32_MAX) {
            return DT_FAIL(DT_ECONFIG, "a sample with the step after it may have %lld rows of %s; at most %d can be",
                           (long long)dt_buffer_max_rows(b, k), b->symbol[k], INT32_MAX);
        }
    }
    DT_TRY(add_fields(b));
    return map_memory(b);
}

dt_status dt_buffer_allocate_kept(dt_buffer *b, uint32_t k)
{
    size_t bytes = 0;
    void *rows = NULL;
    if (!dt_mul_size(b->n_places, b->kept_columns[k] * sizeof(float), &bytes)) {
        return DT_FAIL(DT_ENOMEM, "%s of %zu rows does not fit in memory", b->d.kept[k].name, b->n_places);
    }
    DT_TRY(dt_arena_map(bytes, &rows));
    b->kept[k] = rows;
    return DT_OK;
}

void dt_buffer_fini(dt_buffer *b)
{
    for (uint32_t k = 0; k < DT_ROLLOUT_MAX_KEPT; k++) {
        dt_arena_unmap(b->kept[k], b->n_places * b->kept_columns[k] * sizeof(float));
    }
    dt_arena_unmap(b->map, b->map_bytes);
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_arena_unmap(b->arena[i], b->arena_bytes[i]);
    }
    memset(b, 0, sizeof(*b));
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void dt_buffer_begin_round(dt_buffer *b, const dt_buffer *last)
{
    const size_t from = (size_t)b->d.steps * b->d.instances; /* slots */
    const size_t n = (size_t)b->d.window * b->d.instances, A = b->l->spec.n_agents;
    memmove(b->row, last->row + from * A, n * A);
    memmove(b->age, last->age + from * A, n * A * sizeof(*b->age));
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        if (o->symbol == 0 && !dt_obs_is_lists(o)) {
            memmove(b->obs[i], last->obs[i] + from * A * o->row_bytes, n * A * o->row_bytes);
        }
        b->used[i] = 0;
    }
    for (uint32_t k = 0; k < b->n_carried; k++) {
        const size_t columns = b->carried_columns[k];
        memmove(b->carried[k], last->carried[k] + from * A * columns, n * A * columns * sizeof(float));
    }
    b->key_base = last->key_base + (uint64_t)b->d.steps * (b->d.all > 0 ? b->d.all : b->d.instances);
}

static void store_rewards(dt_buffer *b, size_t slot, const char *record)
{
    const dt_layout *l = b->l;
    const uint32_t A = l->spec.n_agents, K = l->spec.n_costs;
    const uint8_t *terminated = (const uint8_t *)record + l->terminated;
    const uint8_t *truncated = (const uint8_t *)record + l->truncated;
    const float *reward = (const float *)(const void *)(record + l->reward);
    const float *cost = (const float *)(const void *)(record + l->cost);
    for (uint32_t a = 0; a < A; a++) {
        const size_t at = slot * A + a;
        const bool acted = (b->row[at] & DT_ROW_ACTS) != 0;
        const uint8_t end = terminated[a] ? DT_STEP_TERMINATED : truncated[a] ? DT_STEP_TRUNCATED : 0;
        b->flag[at] = acted ? (uint8_t)(DT_STEP_ACTED | end) : 0;
        b->reward[at] = acted ? reward[a] : 0;
        for (uint32_t k = 0; k < K; k++) {
            b->cost[k * b->n_places + at] = acted ? cost[(size_t)a * K + k] : 0;
        }
    }
}

/* Which agents act now, which are only observed, and since when they are there. */
static void store_rows(dt_buffer *b, size_t slot, bool is_first, const uint8_t *alive)
{
    const uint32_t A = b->l->spec.n_agents;
    int32_t acts = 0, seen = 0, opponents = 0;
    for (uint32_t a = 0; a < A; a++) {
        const size_t at = slot * A + a, before = at - (size_t)b->d.instances * A;
        const uint8_t flag = is_first ? 0 : b->flag[before];
        const bool is_opponent = b->d.is_opponent != NULL && b->d.is_opponent[a] != 0;
        const bool lives = alive[a] != 0, is_ours = lives && !is_opponent;
        const bool is_seen = is_ours || (flag & DT_STEP_TRUNCATED) != 0;
        if (!is_first) {
            const bool stays = (b->row[before] & (DT_ROW_ACTS | DT_ROW_OPPONENT)) != 0;
            b->age[at] = (uint16_t)(stays ? b->age[before] + (b->age[before] < UINT16_MAX) : 0);
        }
        b->row[at] = (uint8_t)((is_ours ? DT_ROW_ACTS : 0) | (is_seen ? DT_ROW_SEEN : 0) |
                               (lives && is_opponent ? DT_ROW_OPPONENT : 0));
        acts += is_ours;
        seen += is_seen;
        opponents += lives && is_opponent;
    }
    b->n_acts[slot] = acts;
    b->n_seen[slot] = seen;
    b->n_opponents[slot] = opponents;
}

/* Rows of a ragged symbol, after those of the slots before. */
static void store_ragged_rows(dt_buffer *b, size_t slot, uint32_t port, const char *record)
{
    const dt_obs_port *o = &b->l->obs[port];
    const bool is_seen = b->n_seen[slot] > 0 || b->n_opponents[slot] > 0;
    const int64_t rows = is_seen ? b->size[slot * b->l->spec.n_symbols + (uint32_t)o->symbol - 1] + o->plus : 0;
    char *const to = b->obs[port] + (size_t)b->used[port] * o->row_bytes;
    b->at[port][slot] = b->used[port];
    b->used[port] += rows;
    if (b->length[o->symbol] != NULL) {
        dt_buffer_store_list_rows(b, slot, o, record, to);
    } else {
        memcpy(to, record + o->offset, (size_t)rows * o->row_bytes);
    }
}

static void store_observations(dt_buffer *b, size_t slot, const char *record)
{
    const dt_layout *l = b->l;
    const int64_t *size = (const int64_t *)(const void *)(record + l->size);
    const size_t A = l->spec.n_agents;
    for (uint32_t k = 0; k < l->spec.n_symbols; k++) {
        b->size[slot * l->spec.n_symbols + k] = (int32_t)size[k];
    }
    dt_buffer_store_lists(b, slot, record);
    for (uint32_t i = 0; i < l->spec.n_obs; i++) {
        const dt_obs_port *o = &l->obs[i];
        if (o->symbol > 0) {
            store_ragged_rows(b, slot, i, record);
        } else if (!dt_obs_is_lists(o)) {
            memcpy(b->obs[i] + slot * A * o->row_bytes, record + o->offset, A * o->row_bytes);
        }
    }
}

void dt_buffer_store(dt_buffer *b, uint32_t t, uint32_t i, const char *record)
{
    const dt_layout *l = b->l;
    const size_t slot = dt_buffer_slot(b, t, i), choices = (size_t)l->spec.n_agents * l->n_choices;
    if (t > 0) {
        store_rewards(b, slot - b->d.instances, record);
    }
    store_rows(b, slot, t == 0, (const uint8_t *)record + l->alive);
    store_observations(b, slot, record);
    memcpy(b->mask + slot * choices, record + l->mask, choices);
}

void dt_buffer_carry_action(dt_buffer *b, size_t at, const int32_t *drawn_i, const float *executed_f)
{
    const dt_env_spec *s = &b->l->spec;
    if (!b->d.has_last_action) {
        return;
    }
    const size_t columns = b->carried_columns[b->d.n_carried];
    float *out = b->carried[b->d.n_carried] + (at + (size_t)b->d.instances * s->n_agents) * columns;
    memset(out, 0, columns * sizeof(*out));
    for (uint32_t h = 0; h < s->n_heads; h++) {
        out[drawn_i[h]] = 1;
        out += s->choices[h];
    }
    for (uint32_t c = 0; c < s->n_continuous; c++) {
        const float middle = 0.5f * s->low[c] + 0.5f * s->high[c], half = 0.5f * s->high[c] - 0.5f * s->low[c];
        out[c] = isfinite(half) && half > 0 ? (executed_f[c] - middle) / half : executed_f[c];
    }
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

uint32_t dt_buffer_list_arrays(const dt_buffer *b, dt_buffer_array *out)
{
    const dt_env_spec *s = &b->l->spec;
    const size_t A = s->n_agents, f = A * sizeof(float);
    uint32_t n = 0;
    out[n++] = (dt_buffer_array){b->row, A};
    out[n++] = (dt_buffer_array){b->flag, A};
    out[n++] = (dt_buffer_array){b->report, A};
    out[n++] = (dt_buffer_array){b->done, 1};
    out[n++] = (dt_buffer_array){b->age, A * sizeof(*b->age)};
    out[n++] = (dt_buffer_array){b->n_acts, sizeof(*b->n_acts)};
    out[n++] = (dt_buffer_array){b->n_seen, sizeof(*b->n_seen)};
    out[n++] = (dt_buffer_array){b->size, s->n_symbols * sizeof(*b->size)};
    for (uint32_t k = 1; k <= s->n_symbols; k++) {
        if (b->length[k] != NULL) {
            out[n++] = (dt_buffer_array){b->length[k], A * sizeof(*b->length[k])};
        }
    }
    out[n++] = (dt_buffer_array){b->act_i, A * s->n_heads * sizeof(int32_t)};
    out[n++] = (dt_buffer_array){b->act_f, f * s->n_continuous};
    out[n++] = (dt_buffer_array){b->executed_f, f * s->n_continuous};
    out[n++] = (dt_buffer_array){b->log_prob, f};
    out[n++] = (dt_buffer_array){b->value, f};
    out[n++] = (dt_buffer_array){b->reward, f};
    out[n++] = (dt_buffer_array){b->episode, b->episode_items * sizeof(double)};
    for (uint32_t k = 0; k < s->n_costs; k++) {
        out[n++] = (dt_buffer_array){b->cost + k * b->n_places, f};
        out[n++] = (dt_buffer_array){b->cost_value + k * b->n_places, f};
    }
    return n;
}

uint32_t dt_buffer_list_derived_arrays(const dt_buffer *b, dt_buffer_array *out)
{
    const size_t f = b->l->spec.n_agents * sizeof(float);
    uint32_t n = 0;
    out[n++] = (dt_buffer_array){b->advantage, f};
    out[n++] = (dt_buffer_array){b->target, f};
    for (uint32_t k = 0; k < b->l->spec.n_costs; k++) {
        out[n++] = (dt_buffer_array){b->cost_advantage + k * b->n_places, f};
        out[n++] = (dt_buffer_array){b->cost_target + k * b->n_places, f};
        if (b->cost_in != NULL) {
            out[n++] = (dt_buffer_array){b->cost_in + k * b->n_places, f};
        }
    }
    for (uint32_t k = 0; k < b->d.n_annotations; k++) {
        out[n++] = (dt_buffer_array){b->annotation[k], f * b->annotation_columns[k]};
    }
    return n;
}

/* Fields of one of two kinds, and of this port. */
static uint64_t fields_of_kinds(const dt_buffer *b, uint32_t kind, uint32_t or_kind, uint32_t port)
{
    uint64_t fields = 0;
    for (uint32_t f = 0; f < b->n_fields; f++) {
        const bool is_one = b->field[f].kind == kind || b->field[f].kind == or_kind;
        fields |= is_one && b->field[f].port == port ? UINT64_C(1) << f : 0;
    }
    return fields;
}

uint32_t dt_buffer_list_wide_arrays(const dt_buffer *b, dt_buffer_wide *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        if (dt_obs_is_lists(o)) {
            continue; /* it follows from length */
        }
        dt_buffer_wide *w = &out[n++];
        *w = (dt_buffer_wide){.data = b->obs[i], .row_bytes = o->row_bytes, .symbol = o->symbol, .at = b->at[i]};
        w->before = fields_of_kinds(b, FIELD_HISTORY, FIELD_HISTORY, i);
        w->after = fields_of_kinds(b, FIELD_NEXT, FIELD_NEXT_INDEX, i);
        w->fields = fields_of_kinds(b, FIELD_OBS, FIELD_STEPS, i) | w->before;
    }
    out[n++] = (dt_buffer_wide){.data = (char *)b->mask,
                                .row_bytes = b->l->n_choices,
                                .fields = fields_of_kinds(b, FIELD_MASK, FIELD_MASK, 0),
                                .after = fields_of_kinds(b, FIELD_NEXT_MASK, FIELD_NEXT_MASK, 0)};
    for (uint32_t k = 0; k < b->d.n_kept; k++) {
        if (b->kept[k] != NULL) {
            out[n++] = (dt_buffer_wide){.data = (char *)b->kept[k],
                                        .row_bytes = b->kept_columns[k] * sizeof(float),
                                        .fields = fields_of_kinds(b, FIELD_KEPT, FIELD_KEPT, k)};
        }
    }
    for (uint32_t k = 0; k < b->n_carried; k++) {
        dt_buffer_wide *w = &out[n++];
        *w = (dt_buffer_wide){.data = (char *)b->carried[k], .row_bytes = b->carried_columns[k] * sizeof(float)};
        w->before = fields_of_kinds(b, FIELD_CARRIED_HISTORY, FIELD_CARRIED_HISTORY, k);
        w->fields = fields_of_kinds(b, FIELD_CARRIED, FIELD_CARRIED, k) | w->before;
    }
    return n;
}
