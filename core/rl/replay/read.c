/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1", samples that were drawn as data, packed by rows. See replay.h.
 */
#include <config.h>

#include "rl/replay/replay.h"

#include "base/err.h"
#include "rl/buffer/buffer_internal.h"

#include <string.h>

enum { AHEAD = 8 }; /* samples whose records are asked for from memory before they are read */

typedef struct reader { /* one read */
    const dt_replay *p;
    int64_t total[DT_REPLAY_MAX_SIZES], before[DT_REPLAY_MAX_SIZES];
    uint64_t sample, key;
    const char *record;
    const int32_t *size;
    int32_t laid_out[DT_REPLAY_MAX_SIZES]; /* of such sizes fields lie at: */
    size_t at[DT_BUFFER_MAX_FIELDS];
    /* of symbols with lists: rows of the own steps of all samples, of those before, of this one */
    int64_t own_total[DT_REPLAY_MAX_SIZES], own_before[DT_REPLAY_MAX_SIZES], own[DT_REPLAY_MAX_SIZES];
} reader;

/* Numbers of the rows of field f, after those of the samples before. */
static void scale_rows(const reader *x, const dt_replay_field *f, size_t step, char *to)
{
    const dt_replay *p = x->p;
    const size_t D = f->row_bytes / sizeof(float);
    const dt_replay_note *note = (const void *)(x->record + p->n_sizes * sizeof(int32_t));
    const dt_buffer_scale s = {
        .mean = p->held[f->port], .scale = p->held[f->port] + D, .clip = (float)p->r->d.clip_obs};
    for (int32_t row = 0; row < x->size[0]; row++) {
        const bool is_seen = f->kind == DT_REPLAY_NEXT      ? !note[row].is_ended
                             : f->kind == DT_REPLAY_HISTORY ? f->lead - 1 - step <= note[row].age
                                                            : true;
        if (is_seen) {
            dt_buffer_scale_rows(&s, (float *)(void *)(to + (size_t)row * f->row_bytes), 1, (int64_t)D);
        }
    }
}

/* Most are single numbers. */
static void copy_bytes(char *to, const char *from, size_t bytes)
{
    if (bytes == sizeof(float)) {
        memcpy(to, from, sizeof(float));
    } else {
        memcpy(to, from, bytes);
    }
}

static bool is_scaled_field(const dt_replay *p, const dt_replay_field *f)
{
    return (f->kind == DT_REPLAY_OBS || f->kind == DT_REPLAY_HISTORY || f->kind == DT_REPLAY_NEXT) &&
           p->held[f->port] != NULL && p->is_held;
}

static void copy_rows(const reader *x, const dt_replay_field *f, const char *from, char *out)
{
    const size_t rows = (size_t)x->size[f->symbol], bytes = rows * f->row_bytes;
    const bool is_normalised = is_scaled_field(x->p, f);
    for (size_t step = 0; step < f->lead; step++) {
        const size_t first = step * (size_t)x->total[f->symbol] + (size_t)x->before[f->symbol];
        char *const to = out + first * f->row_bytes;
        copy_bytes(to, from + step * bytes, bytes);
        if (is_normalised) {
            scale_rows(x, f, step, to);
        }
    }
}

/* Counted over all samples; of row pointers the last one is the next sample's first. */
static void copy_indices(const reader *x, const dt_replay_field *f, const char *from, char *out)
{
    const int32_t of = x->p->r->all->l->obs[f->port].index_of;
    const size_t n = ((size_t)x->size[f->symbol] + f->plus) * f->row_bytes / sizeof(int32_t);
    int32_t *to = (int32_t *)(void *)(out + (size_t)x->before[f->symbol] * f->row_bytes);
    for (size_t i = 0; i < n; i++) {
        int32_t v;
        memcpy(&v, from + i * sizeof(v), sizeof(v));
        to[i] = v >= 0 ? v + (int32_t)x->before[of] : v;
    }
}

/* Where the rows of this sample's step after begin: after the own ones of all samples. */
static int64_t next_rows_before(const reader *x, int32_t k)
{
    return x->own_total[k] + x->before[k] - x->own_before[k];
}

static void shift_indices(char *rows, size_t n, int64_t before)
{
    for (size_t i = 0; i < n; i++) {
        int32_t v;
        memcpy(&v, rows + i * sizeof(v), sizeof(v));
        if (v >= 0) {
            v += (int32_t)before;
            memcpy(rows + i * sizeof(v), &v, sizeof(v));
        }
    }
}

/* Rows of lists: those of the sample's own step, and those of the step after, each among their like. */
static void copy_list_rows(const reader *x, const dt_replay_field *f, const char *from, char *out)
{
    const int32_t k = f->symbol, of = x->p->r->all->l->obs[f->port].index_of;
    const size_t rows = (size_t)x->size[k], own = (size_t)x->own[k], bytes = f->row_bytes;
    for (size_t step = 0; step < f->lead; step++, from += rows * bytes, out += (size_t)x->total[k] * bytes) {
        char *const first = out + (size_t)x->own_before[k] * bytes, *const second =
                                                                        out + (size_t)next_rows_before(x, k) * bytes;
        memcpy(first, from, own * bytes);
        memcpy(second, from + own * bytes, (rows - own) * bytes);
        if (f->kind == DT_REPLAY_INDEX) {
            shift_indices(first, own * bytes / sizeof(int32_t), x->before[of]);
            shift_indices(second, (rows - own) * bytes / sizeof(int32_t), x->before[of]);
        }
    }
}

/* Row pointers of lists; the last one is the next sample's first. */
static void copy_lists(const reader *x, const dt_replay_field *f, const char *from, char *out)
{
    const int32_t of = x->p->r->all->l->obs[f->port].index_of;
    const size_t n = (size_t)x->size[0] + 1;
    char *const to = out + (size_t)x->before[0] * sizeof(int32_t);
    memcpy(to, from, n * sizeof(int32_t));
    shift_indices(to, n, f->kind == DT_REPLAY_LISTS ? x->own_before[of] : next_rows_before(x, of) - x->own[of]);
}

static void copy_keys(const reader *x, const char *from, char *out)
{
    const uint64_t A = x->p->r->all->l->spec.n_agents;
    int64_t *to = (int64_t *)(void *)out + x->before[0];
    for (int32_t row = 0; row < x->size[0]; row++) {
        int64_t own;
        memcpy(&own, from + (size_t)row * sizeof(own), sizeof(own));
        to[row] = x->key != 0 ? (int64_t)((x->key + (uint64_t)own % A) & INT64_MAX) : own;
    }
}

static void copy_weights(const reader *x, char *out)
{
    float *to = (float *)(void *)out + x->before[0];
    for (int32_t row = 0; row < x->size[0]; row++) {
        to[row] = x->p->weight[x->sample];
    }
}

/* Per row: the row of each place of its instance, -1 where there is none. */
static void copy_team_rows(const reader *x, char *out)
{
    const size_t A = x->p->r->all->l->spec.n_agents, rows = (size_t)x->size[0];
    const char *from = x->record + x->at[x->p->place - 1];
    int32_t *to = (int32_t *)(void *)out + (size_t)x->before[0] * A;
    for (size_t a = 0; a < rows * A; a++) {
        to[a] = -1;
    }
    for (size_t of = 0; of < rows; of++) {
        int32_t place;
        memcpy(&place, from + of * sizeof(place), sizeof(place));
        for (size_t row = 0; row < rows; row++) {
            to[row * A + (size_t)place] = (int32_t)(x->before[0] + (int64_t)of);
        }
    }
}

static void compute_offsets(reader *x)
{
    if (memcmp(x->laid_out, x->size, x->p->n_sizes * sizeof(*x->size)) != 0) {
        memcpy(x->laid_out, x->size, x->p->n_sizes * sizeof(*x->size));
        (void)dt_replay_record_bytes(x->p, x->size, x->at);
    }
}

/* Where the lists of the sample's own step end. */
static void find_own_rows(reader *x)
{
    for (uint32_t k = 1; k < x->p->n_sizes; k++) {
        x->own[k] = x->p->lists[k] > 0 ? dt_replay_own_rows(x->p, x->record, x->at, (int32_t)k) : 0;
    }
}

static void copy_field(const reader *x, uint32_t i, char *out)
{
    const dt_replay_field *f = &x->p->field[i];
    const char *from = x->record + x->at[i];
    if (x->p->lists[f->symbol] > 0) {
        copy_list_rows(x, f, from, out);
        return;
    }
    switch (f->kind) {
    case DT_REPLAY_LISTS:
    case DT_REPLAY_NEXT_LISTS:
        copy_lists(x, f, from, out);
        break;
    case DT_REPLAY_WEIGHT:
        copy_weights(x, out);
        break;
    case DT_REPLAY_TEAM_ROWS:
        copy_team_rows(x, out);
        break;
    case DT_REPLAY_INDEX:
        copy_indices(x, f, from, out);
        break;
    case DT_REPLAY_KEY:
        copy_keys(x, from, out);
        break;
    default:
        copy_rows(x, f, from, out);
        break;
    }
}

static void copy_sample(reader *x, void *const *out)
{
    compute_offsets(x);
    find_own_rows(x);
    for (uint32_t i = 0; i < x->p->n_fields; i++) {
        if (out[i] != NULL) {
            copy_field(x, i, out[i]);
        }
    }
}

static void begin_sample(reader *x, const uint64_t *index, const uint64_t *key, uint32_t j)
{
    x->sample = index[j];
    x->key = key != NULL ? key[j] : 0;
    x->record = x->p->record[index[j]];
}

/* ---- samples of one size: fields one after the other ------------------------------------------------------------- */

static bool have_same_sizes(const dt_replay *p, const uint64_t *index, uint32_t n)
{
    const int32_t *first = p->size + index[0] * p->n_sizes;
    bool is = true;
    for (uint32_t j = 0; j < n && is; j++) {
        const char *record = p->record[index[j]];
        is = record != NULL && memcmp(p->size + index[j] * p->n_sizes, first, p->n_sizes * sizeof(*first)) == 0;
        if (is) {
            __builtin_prefetch(record);
        }
    }
    return is;
}

#define COPY_COLUMN(n)                                                                                                 \
    case n:                                                                                                            \
        for (uint32_t j = 0; j < count; j++) {                                                                         \
            memcpy(out + (size_t)j * (n), p->record[index[j]] + at, n);                                                \
        }                                                                                                              \
        break

/* Bytes that lie at the same place of each record; most are few. */
static void copy_column(const dt_replay *p, const uint64_t *index, uint32_t count, size_t at, size_t bytes, char *out)
{
    switch (bytes) {
        COPY_COLUMN(4);
        COPY_COLUMN(8);
        COPY_COLUMN(12);
        COPY_COLUMN(16);
    default:
        for (uint32_t j = 0; j < count; j++) {
            memcpy(out + j * bytes, p->record[index[j]] + at, bytes);
        }
        break;
    }
}
#undef COPY_COLUMN

static bool is_copied_field(const dt_replay *p, const dt_replay_field *f)
{
    const bool is_made = dt_replay_is_made(f->kind) || f->kind == DT_REPLAY_INDEX || f->kind == DT_REPLAY_KEY;
    return !is_made && f->lead == 1 && !is_scaled_field(p, f);
}

static void read_equal_records(reader *x, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const dt_replay *p = x->p;
    x->size = dt_replay_record_sizes(p->record[index[0]]);
    compute_offsets(x);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        if (out[i] != NULL && is_copied_field(p, f)) {
            copy_column(p, index, n, x->at[i], (size_t)x->size[f->symbol] * f->row_bytes, out[i]);
            continue;
        }
        for (uint32_t j = 0; j < n && out[i] != NULL; j++) {
            begin_sample(x, index, key, j);
            for (uint32_t k = 0; k < p->n_sizes; k++) {
                x->before[k] = (int64_t)j * x->size[k];
            }
            copy_field(x, i, out[i]);
        }
    }
}

/* ---- the face of data -------------------------------------------------------------------------------------------- */

static const dt_port *data_fields(const void *self, uint32_t *n_p)
{
    const dt_replay *p = self;
    *n_p = p->n_fields;
    return p->port;
}

static const char *const *data_symbols(const void *self, uint32_t *n_p)
{
    const dt_replay *p = self;
    *n_p = p->n_sizes;
    return p->symbol;
}

static dt_status data_count(const void *self, uint64_t *n_p)
{
    *n_p = ((const dt_replay *)self)->d.draw;
    return DT_OK;
}

/* Before anything was drawn a sample may turn out as large as it can be. */
static dt_status data_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const dt_replay *p = self;
    for (uint32_t k = 0; k < p->n_sizes; k++) {
        size[k] = p->is_drawn ? 0 : dt_buffer_max_rows(p->r->all, (int32_t)k) * n;
    }
    for (uint32_t j = 0; j < n && p->is_drawn; j++) {
        for (uint32_t k = 0; k < p->n_sizes; k++) {
            size[k] += p->size[index[j] * p->n_sizes + k];
        }
    }
    return DT_OK;
}

static bool has_lists(const dt_replay *p)
{
    bool is = false;
    for (uint32_t k = 1; k < p->n_sizes; k++) {
        is = is || p->lists[k] > 0;
    }
    return is;
}

/* Rows of lists that are of the samples' own steps come before all those of the steps after. */
static void count_own_rows(reader *x, const uint64_t *index, uint32_t n)
{
    for (uint32_t j = 0; j < n && has_lists(x->p); j++) {
        x->record = x->p->record[index[j]];
        if (x->record == NULL) {
            return; /* it is refused when it is read */
        }
        x->size = dt_replay_record_sizes(x->record);
        compute_offsets(x);
        find_own_rows(x);
        for (uint32_t k = 1; k < x->p->n_sizes; k++) {
            x->own_total[k] += x->own[k];
        }
    }
}

static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const dt_replay *p = self;
    reader x = {.p = p};
    if (!p->is_drawn) {
        return DT_FAIL(DT_EPLUGIN, "the replay's data is read before anything was drawn, or after something was added");
    }
    DT_TRY(data_sizes(self, index, n, x.total));
    count_own_rows(&x, index, n);
    if (n > 0 && !has_lists(p) && have_same_sizes(p, index, n)) {
        read_equal_records(&x, index, key, n, out);
        return DT_OK;
    }
    for (uint32_t j = 0; j < n; j++) {
        begin_sample(&x, index, key, j);
        if (x.record == NULL) {
            return DT_FAIL(DT_EPLUGIN, "sample %llu of the replay is read on a rank that does not have it",
                           (unsigned long long)index[j]);
        }
        if (j + AHEAD < n && p->record[index[j + AHEAD]] != NULL) {
            __builtin_prefetch(p->record[index[j + AHEAD]]);
        }
        x.size = dt_replay_record_sizes(x.record);
        copy_sample(&x, out);
        for (uint32_t k = 0; k < p->n_sizes; k++) {
            x.before[k] += x.size[k];
            x.own_before[k] += x.own[k];
        }
    }
    return DT_OK;
}

const dt_data_ops dt_replay_data_ops = {.struct_size = sizeof(dt_data_ops),
                                        .fields = data_fields,
                                        .symbols = data_symbols,
                                        .count = data_count,
                                        .sizes = data_sizes,
                                        .read = data_read};
