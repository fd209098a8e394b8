/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1", records: a sample of a round as bytes (replay.h), several steps of it added up where that
 * is wanted.
 */
#include <config.h>

#include "rl/replay/replay.h"

#include "base/err.h"
#include "base/hash.h"
#include "rl/buffer/buffer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 8 }; /* of records */

/* ---- what a record is made of ------------------------------------------------------------------------------------ */

/* By itself, or an observation by what it was in the steps before. */
static bool is_requested(const dt_replay_desc *d, const dt_buffer *b, uint32_t f)
{
    bool is = d->n_fields == 0;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        is = is || strcmp(d->field[i], b->field[f].name) == 0 ||
             (b->field[f].kind == FIELD_PLACE && strcmp(d->field[i], "team_rows") == 0); /* made of it */
        for (uint32_t k = 0; k < b->n_fields && b->field[f].kind == FIELD_OBS; k++) {
            is = is || (b->field[k].kind == FIELD_HISTORY && b->field[k].port == b->field[f].port &&
                        strcmp(d->field[i], b->field[k].name) == 0);
        }
    }
    return is;
}

static dt_status check_names(const dt_replay *p, const dt_replay_desc *d)
{
    const dt_buffer *b = p->r->all;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        bool is_there = false;
        for (uint32_t f = 0; f < b->n_fields; f++) {
            is_there = is_there || strcmp(b->field[f].name, d->field[i]) == 0;
        }
        if (!is_there) {
            return DT_FAIL(DT_EPLUGIN, "a replay cannot keep the field %s, which its rollout does not have",
                           d->field[i]);
        }
    }
    return DT_OK;
}

static dt_replay_kind kind_of_field(const dt_buffer *b, uint32_t f)
{
    const dt_obs_port *o = &b->l->obs[b->field[f].port];
    const bool is_parted = dt_buffer_is_joined(b) && dt_obs_is_lists(o);
    switch (b->field[f].kind) {
    case FIELD_OBS:
        return is_parted          ? DT_REPLAY_LISTS
               : o->index_of >= 0 ? DT_REPLAY_INDEX
               : o->is_plain      ? DT_REPLAY_OBS
                                  : DT_REPLAY_PLAIN;
    case FIELD_HISTORY:
        return DT_REPLAY_HISTORY;
    case FIELD_NEXT_INDEX:
        return is_parted ? DT_REPLAY_NEXT_LISTS : DT_REPLAY_INDEX;
    case FIELD_NEXT:
        return o->is_plain ? DT_REPLAY_NEXT : DT_REPLAY_NEXT_PLAIN;
    case FIELD_NEXT_MASK:
    case FIELD_NEXT_PRESENT:
    case FIELD_TERMINATED:
    case FIELD_TRUNCATED:
        return DT_REPLAY_NEXT_PLAIN;
    case FIELD_REWARD:
        return DT_REPLAY_REWARD;
    case FIELD_COST:
        return DT_REPLAY_COST;
    case FIELD_ROW_KEY:
        return DT_REPLAY_KEY;
    case FIELD_DISCOUNT:
        return DT_REPLAY_DISCOUNT;
    case FIELD_WEIGHT:
        return DT_REPLAY_WEIGHT;
    case FIELD_TEAM_ROWS:
        return DT_REPLAY_TEAM_ROWS;
    default:
        return DT_REPLAY_PLAIN;
    }
}

/* Is it what happened, and not derived from it? Which agents the others were is known from their own rows. */
static bool is_recorded_field(const dt_buffer *b, uint32_t f)
{
    switch (b->field[f].kind) {
    case FIELD_OBS:
    case FIELD_STEPS:
    case FIELD_ACTION_I:
    case FIELD_ACTION_F:
    case FIELD_MASK:
    case FIELD_LOG_PROB:
    case FIELD_NEXT:
    case FIELD_NEXT_PRESENT:
    case FIELD_NEXT_MASK:
    case FIELD_REWARD:
    case FIELD_COST:
    case FIELD_TERMINATED:
    case FIELD_TRUNCATED:
    case FIELD_EXECUTED:
    case FIELD_PLACE:
        return true;
    default:
        return false;
    }
}

static bool is_next_kind(dt_replay_kind kind)
{
    return kind == DT_REPLAY_NEXT || kind == DT_REPLAY_NEXT_PLAIN;
}

static void choose_fields(dt_replay *p, const dt_replay_desc *d)
{
    const dt_buffer *b = p->r->all;
    for (uint32_t f = 0; f < b->n_fields; f++) {
        const dt_replay_kind kind = kind_of_field(b, f);
        const bool is_team = kind == DT_REPLAY_TEAM_ROWS;
        const bool is_made = kind == DT_REPLAY_WEIGHT || kind == DT_REPLAY_DISCOUNT || is_team;
        const bool is_wanted = p->is_stored ? is_recorded_field(b, f) || is_team : is_requested(d, b, f);
        const bool is_read = kind == DT_REPLAY_KEY || kind == DT_REPLAY_LISTS; /* here, if by no other */
        const bool is_kept = is_wanted || (is_made && !is_team) || is_read;
        p->unread |= is_kept && !is_made ? 0 : UINT64_C(1) << f;
        if (kind == DT_REPLAY_LISTS) {
            p->lists[b->l->obs[b->field[f].port].index_of] = 1 + p->n_fields;
        }
        if (is_kept && b->field[f].kind == FIELD_PLACE) {
            p->place = 1 + p->n_fields;
        }
        if (is_kept) {
            p->field[p->n_fields] = (dt_replay_field){.kind = kind, .of = f, .port = b->field[f].port};
            p->port[p->n_fields++] = b->port[f];
        }
    }
}

/* Dims of a field: steps, rows, columns. */
static void shape_field(const dt_field_shape *s, dt_replay_field *f)
{
    f->lead = 1;
    f->row_bytes = f->item_bytes = s->item_bytes;
    f->symbol = -1;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (s->symbol[i] >= 0) {
            f->symbol = s->symbol[i];
            f->plus = (uint32_t)s->number[i];
        } else if (f->symbol < 0) {
            f->lead *= (size_t)s->number[i];
        } else {
            f->row_bytes *= (size_t)s->number[i];
        }
    }
}

dt_status dt_replay_plan_record(dt_replay *p, const dt_replay_desc *d, const dt_data_ops *ops)
{
    const dt_layout *l = p->r->all->l;
    int64_t largest[DT_REPLAY_MAX_SIZES];
    int32_t size[DT_REPLAY_MAX_SIZES];
    const int64_t slice_rows = p->r->stage->opts.engine.slice_rows;
    DT_TRY(check_names(p, d));
    choose_fields(p, d);
    p->n_sizes = 1 + l->spec.n_symbols;
    for (uint32_t k = 0; k < p->n_sizes; k++) {
        p->symbol[k] = p->r->all->symbol[k];
        largest[k] = dt_buffer_max_rows(p->r->all, (int32_t)k);
        size[k] = (int32_t)largest[k];
    }
    p->data.self = p;
    DT_TRY(dt_samples_open_live(&p->data.source, ops, p, largest, slice_rows > 0 ? slice_rows : 512, "row_key"));
    for (uint32_t f = 0; f < p->n_fields; f++) {
        shape_field(&p->data.source.shape[f], &p->field[f]);
    }
    p->stride = dt_replay_record_bytes(p, size, NULL);
    return DT_OK;
}

static size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t count_field_rows(const dt_replay_field *f, const int32_t *size)
{
    return (size_t)size[f->symbol] + f->plus;
}

size_t dt_replay_record_bytes(const dt_replay *p, const int32_t *size, size_t *at)
{
    size_t n = p->n_sizes * sizeof(*size) + (size_t)size[0] * sizeof(dt_replay_note);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        if (dt_replay_is_made(f->kind)) {
            continue;
        }
        n = align_up(n, f->item_bytes);
        if (at != NULL) {
            at[i] = n;
        }
        n += f->lead * count_field_rows(f, size) * f->row_bytes;
    }
    return align_up(n, ALIGN);
}

static dt_replay_note *notes_of_record(const dt_replay *p, char *record)
{
    return (dt_replay_note *)(void *)(record + p->n_sizes * sizeof(int32_t));
}

/* ---- a sample into a record -------------------------------------------------------------------------------------- */

uint32_t dt_replay_count_steps(const dt_replay *p, size_t slot, size_t place)
{
    const dt_buffer *b = p->r->all;
    const size_t M = b->d.instances, A = b->l->spec.n_agents;
    const size_t left = b->d.steps - (slot - dt_buffer_slot(b, 0, 0)) / M;
    uint32_t n = 1;
    for (size_t at = slot * A + place; n < p->d.n_step && n < left && b->flag[at] == DT_STEP_ACTED; at += M * A) {
        n++;
    }
    return n;
}

static uint32_t row_of_place(const dt_buffer *b, size_t slot, size_t place)
{
    const size_t A = b->l->spec.n_agents;
    uint32_t row = 0;
    for (size_t a = 0; a < place; a++) {
        row += (b->row[slot * A + a] & DT_ROW_ACTS) != 0;
    }
    return row;
}

/* Fields of a sample of the round, those of kinds that are wanted, to where they lie in a record of these sizes. */
static dt_status read_sample(const dt_replay *p, uint64_t sample, bool next_alone, int32_t *size, char *record)
{
    const dt_samples *s = &p->r->data.source;
    int64_t live[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    void *out[DT_BUFFER_MAX_FIELDS] = {NULL};
    size_t at[DT_BUFFER_MAX_FIELDS] = {0};
    DT_TRY(s->ops->sizes(s->self, &sample, 1, live));
    for (uint32_t k = 0; k < p->n_sizes; k++) {
        size[k] = (int32_t)live[k];
    }
    (void)dt_replay_record_bytes(p, size, at);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        const bool is_read = (p->unread >> f->of & 1) == 0 && (!next_alone || is_next_kind(f->kind));
        out[f->of] = is_read ? record + at[i] : NULL;
    }
    return s->ops->read(s->self, &sample, NULL, 1, out);
}

/* Sums of gamma^i times what step i earned, of k numbers of a row, in planes. */
static void sum_steps(const dt_replay *p, const float *plane, uint32_t planes, size_t at, uint32_t steps, float *out)
{
    const dt_buffer *b = p->r->all;
    const size_t each = b->d.instances * (size_t)b->l->spec.n_agents;
    for (uint32_t k = 0; k < planes; k++) {
        double sum = 0, worth = 1;
        for (uint32_t i = 0; i < steps; i++, worth *= p->d.gamma) {
            sum += worth * (double)plane[k * b->n_places + at + i * each];
        }
        out[k] = (float)sum;
    }
}

/* Row `row` of a record, of the agent at a place that has so many steps from slot on; last: the sample where they end,
 * as a record, in which it is row last_row. */
static void write_record_row(dt_replay *p, char *record, uint32_t row, size_t slot, size_t place, uint32_t steps,
                             const char *last, uint32_t last_row)
{
    const dt_buffer *b = p->r->all;
    const size_t A = b->l->spec.n_agents, at = slot * A + place;
    const size_t end = at + (steps - 1) * (size_t)b->d.instances * A;
    const bool is_ended = (b->flag[end] & DT_STEP_TERMINATED) != 0;
    const uint16_t max_age = (uint16_t)(b->d.window - 1); /* of greater ages; a resumed run knows no more */
    size_t to[DT_BUFFER_MAX_FIELDS], from[DT_BUFFER_MAX_FIELDS];
    (void)dt_replay_record_bytes(p, dt_replay_record_sizes(record), to);
    (void)dt_replay_record_bytes(p, dt_replay_record_sizes(last), from);
    notes_of_record(p, record)[row] =
        (dt_replay_note){.is_ended = is_ended, .age = b->age[at] < max_age ? b->age[at] : max_age};
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        char *const mine = record + to[i] + row * f->row_bytes;
        if (f->kind == DT_REPLAY_DISCOUNT) {
            const float worth = is_ended ? 0 : (float)pow(p->d.gamma, steps);
            memcpy(mine, &worth, sizeof(worth));
        } else if (steps > 1 && is_next_kind(f->kind)) {
            memcpy(mine, last + from[i] + last_row * f->row_bytes, f->row_bytes);
        } else if (steps > 1 && f->kind == DT_REPLAY_REWARD) {
            sum_steps(p, b->reward, 1, at, steps, (float *)(void *)mine);
        } else if (steps > 1 && f->kind == DT_REPLAY_COST) {
            sum_steps(p, b->cost, b->l->spec.n_costs, at, steps, (float *)(void *)mine);
        }
    }
}

/* Agents whose steps end in the same sample, together. */
static dt_status write_record_rows(dt_replay *p, uint64_t sample, char *record, uint32_t steps)
{
    const dt_buffer *b = p->r->all;
    const size_t A = b->l->spec.n_agents, slot = dt_buffer_slot(b, 0, 0) + sample;
    const uint64_t last = sample + (steps - 1) * (uint64_t)b->d.instances;
    const size_t last_slot = dt_buffer_slot(b, 0, 0) + last;
    bool is_read = steps == 1;
    uint32_t row = 0;
    for (size_t a = 0; a < A; a++) {
        if ((b->row[slot * A + a] & DT_ROW_ACTS) == 0) {
            continue;
        }
        if (dt_replay_count_steps(p, slot, a) == steps) {
            DT_TRY(is_read ? DT_OK : read_sample(p, last, true, (int32_t *)(void *)p->scratch, p->scratch));
            is_read = true;
            write_record_row(p, record, row, slot, a, steps, steps > 1 ? p->scratch : record,
                             row_of_place(b, last_slot, a));
        }
        row++;
    }
    return DT_OK;
}

dt_status dt_replay_write_record(dt_replay *p, uint64_t sample, char *record)
{
    int32_t *size = (int32_t *)(void *)record, before[DT_REPLAY_MAX_SIZES];
    memcpy(before, size, p->n_sizes * sizeof(*size));
    memset(record, 0, dt_replay_record_bytes(p, before, NULL)); /* what was here; after it are zeros */
    DT_TRY(read_sample(p, sample, false, size, record));
    for (uint32_t steps = 1; steps <= p->d.n_step; steps++) {
        DT_TRY(write_record_rows(p, sample, record, steps));
    }
    return DT_OK;
}

/* ---- records from elsewhere -------------------------------------------------------------------------------------- */

static dt_status fail_record(const dt_replay *p, uint64_t slot, const char *name, const char *why)
{
    return p->origin != NULL
               ? DT_FAIL(DT_EDATA, "%s, sample %llu: %s %s", p->origin, (unsigned long long)slot, name, why)
               : DT_FAIL(DT_EDATA, "the checkpoint's replay, slot %llu: %s %s", (unsigned long long)slot, name, why);
}

/* The first number that is not finite; 0: all are. */
static float find_non_finite(const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        float x;
        memcpy(&x, data + i, sizeof(x));
        if (!isfinite(x)) {
            return x;
        }
    }
    return 0;
}

static const char *describe_non_finite(float x)
{
    return isnan(x) ? "is not finite (nan)" : x > 0 ? "is not finite (inf)" : "is not finite (-inf)";
}

/* Every number in [low, end); of heads each by its own. */
static bool are_within_range(const char *data, size_t n, const int32_t *end, uint32_t n_ends, int32_t low)
{
    for (size_t i = 0; i < n; i++) {
        int32_t x;
        memcpy(&x, data + i * sizeof(x), sizeof(x));
        if (x < low || x >= end[i % n_ends]) {
            return false;
        }
    }
    return true;
}

/* They rise from the first row to the end. */
static bool are_row_pointers(const char *data, size_t n, int32_t first, int32_t end)
{
    int32_t last = first;
    for (size_t i = 0; i < n; i++) {
        int32_t x;
        memcpy(&x, data + i * sizeof(x), sizeof(x));
        if (x < last || x > end || (i == 0 && x != first)) {
            return false;
        }
        last = x;
    }
    return last == end;
}

/* The last of their row pointers. */
int32_t dt_replay_own_rows(const dt_replay *p, const char *record, const size_t *at, int32_t k)
{
    int32_t agents, rows;
    memcpy(&agents, record, sizeof(agents));
    memcpy(&rows, record + at[p->lists[k] - 1] + (size_t)agents * sizeof(rows), sizeof(rows));
    return rows;
}

/* Fields before this one are right. */
static bool is_valid_index(const dt_replay *p, uint32_t i, const int32_t *size, const char *record, const size_t *at)
{
    const dt_replay_field *f = &p->field[i];
    const char *data = record + at[i];
    const dt_buffer *b = p->r->all;
    const size_t n = f->lead * count_field_rows(f, size) * f->row_bytes / f->item_bytes;
    const int32_t places = (int32_t)b->l->spec.n_agents;
    switch (b->field[f->of].kind) {
    case FIELD_ACTION_I:
        return are_within_range(data, n, b->l->spec.choices, b->l->spec.n_heads, 0);
    case FIELD_PLACE:
        return are_within_range(data, n, &places, 1, 0);
    default:
        break;
    }
    const bool is_parted = f->kind == DT_REPLAY_LISTS || f->kind == DT_REPLAY_NEXT_LISTS;
    if (f->kind != DT_REPLAY_INDEX && !is_parted) {
        return true;
    }
    const dt_obs_port *o = &b->l->obs[f->port];
    const int32_t of = o->index_of, rows = size[of];
    if (is_parted) {
        const int32_t own = dt_replay_own_rows(p, record, at, of);
        return f->kind == DT_REPLAY_LISTS ? own <= rows && are_row_pointers(data, n, 0, own)
                                          : are_row_pointers(data, n, own, rows);
    }
    return f->plus ? are_row_pointers(data, n, 0, rows) : are_within_range(data, n, &rows, 1, o->is_edges ? 0 : -1);
}

static bool are_valid_keys(const dt_replay *p, const char *data, size_t rows)
{
    int64_t last = -1;
    for (size_t i = 0; i < rows; i++) {
        int64_t x;
        memcpy(&x, data + i * sizeof(x), sizeof(x));
        if (x < 0 || (i > 0 && x % p->r->all->l->spec.n_agents <= last)) {
            return false;
        }
        last = x % p->r->all->l->spec.n_agents;
    }
    return true;
}

dt_status dt_replay_check_sizes(const dt_replay *p, uint64_t slot, const int32_t *size)
{
    for (uint32_t k = 0; k < p->n_sizes; k++) {
        const int64_t most = dt_buffer_max_rows(p->r->all, (int32_t)k);
        if (size[k] < (k == 0) || size[k] > most) {
            char why[96];
            snprintf(why, sizeof(why), "has %d rows, and there can be %d to %lld", size[k], k == 0, (long long)most);
            return fail_record(p, slot, p->symbol[k], why);
        }
    }
    return DT_OK;
}

dt_status dt_replay_check_record(const dt_replay *p, uint64_t slot, const char *record)
{
    int32_t size[DT_REPLAY_MAX_SIZES];
    size_t at[DT_BUFFER_MAX_FIELDS] = {0};
    memcpy(size, record, p->n_sizes * sizeof(*size));
    (void)dt_replay_record_bytes(p, size, at);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        const char *data = record + at[i];
        const size_t bytes = f->lead * count_field_rows(f, size) * f->row_bytes;
        if (dt_replay_is_made(f->kind)) {
            continue;
        }
        const float odd = p->port[i].dtype == DT_F32 ? find_non_finite(data, bytes) : 0;
        if (odd != 0) {
            return fail_record(p, slot, p->port[i].name, describe_non_finite(odd));
        }
        if (p->port[i].dtype == DT_I32 && !is_valid_index(p, i, size, record, at)) {
            return fail_record(p, slot, p->port[i].name, "points to a missing row");
        }
        if (f->kind == DT_REPLAY_KEY && !are_valid_keys(p, data, (size_t)size[0])) {
            return fail_record(p, slot, p->port[i].name, "names missing or duplicate places");
        }
    }
    return DT_OK;
}

void dt_replay_seal_slot(dt_replay *p, uint64_t slot)
{
    if (p->crc != NULL) {
        p->crc[slot / p->ranks] = dt_crc32c(0, dt_replay_slot_at(p, slot), p->stride);
    }
}

dt_status dt_replay_check_seal(const dt_replay *p, uint64_t slot)
{
    return p->crc == NULL || p->crc[slot / p->ranks] == dt_crc32c(0, dt_replay_slot_at(p, slot), p->stride)
               ? DT_OK
               : DT_FAIL(
                     DT_EDATA,
                     "sample %llu of the replay differs from what was written to its file in %s: the file is corrupted",
                     (unsigned long long)slot, p->r->stage->d.run_dir);
}
