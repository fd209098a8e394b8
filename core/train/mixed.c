/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/mixed.h"

#include "base/err.h"
#include "base/mem.h"
#include "train/sampler.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64, DIMS_BYTES = 160, SYMBOL_BYTES = 24 };
enum { FEW = 128 }; /* stored samples of a micro-batch: more of them need memory */

typedef struct text {
    char name[NAME_BYTES], dims[DIMS_BYTES];
} text;

struct dt_mixed {
    const dt_samples *live, *stored;
    uint64_t n;       /* stored samples of all live ones together */
    uint64_t *sample; /* [n] drawn */
    dt_port field[DT_SAMPLES_MAX_FIELDS];
    text text[DT_SAMPLES_MAX_FIELDS]; /* of the stored fields */
    const char *symbol[DT_SAMPLES_MAX_SYMBOLS];
    char symbol_text[DT_SAMPLES_MAX_SYMBOLS][SYMBOL_BYTES];
    dt_samples samples;
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_symbol(const dt_samples *s, const char *token, size_t bytes)
{
    if (bytes > 2 && memcmp(token + bytes - 2, "+1", 2) == 0) {
        bytes -= 2;
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        if (strlen(s->symbol[k]) == bytes && memcmp(s->symbol[k], token, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status name_field(const dt_samples *s, const dt_port *p, text *t)
{
    int at = 0;
    const int n = snprintf(t->name, NAME_BYTES, "%s%s", DT_MIXED_PREFIX, p->name);
    for (const char *token = p->dims; *token != '\0' && at < DIMS_BYTES;) {
        const size_t bytes = strcspn(token, " ");
        at += snprintf(t->dims + at, (size_t)(DIMS_BYTES - at), "%s%s%.*s", at > 0 ? " " : "",
                       is_symbol(s, token, bytes) ? DT_MIXED_PREFIX : "", (int)bytes, token);
        token += bytes;
        token += strspn(token, " ");
    }
    return n < NAME_BYTES && at < DIMS_BYTES
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN, "data field %s [%s] has too long a name to be mixed into other data", p->name,
                         p->dims);
}

static dt_status name_all_fields(dt_mixed *m)
{
    const dt_samples *a = m->live, *b = m->stored;
    for (uint32_t k = 0; k < a->n_symbols; k++) {
        m->symbol[k] = a->symbol[k];
    }
    for (uint32_t k = 0; k < b->n_symbols; k++) {
        char *name = m->symbol_text[k];
        if (snprintf(name, SYMBOL_BYTES, "%s%s", DT_MIXED_PREFIX, b->symbol[k]) >= SYMBOL_BYTES) {
            return DT_FAIL(DT_EPLUGIN, "data symbol %s has too long a name to be mixed into other data", b->symbol[k]);
        }
        m->symbol[a->n_symbols + k] = name;
    }
    memcpy(m->field, a->field, a->n_fields * sizeof(*a->field));
    for (uint32_t f = 0; f < b->n_fields; f++) {
        dt_port *p = &m->field[a->n_fields + f];
        DT_TRY(name_field(b, &b->field[f], &m->text[f]));
        *p = b->field[f];
        p->name = m->text[f].name;
        p->dims = m->text[f].dims;
    }
    return DT_OK;
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static uint64_t first_stored(const dt_mixed *m, uint64_t live)
{
    return live * m->n / m->live->count;
}

static const dt_port *mixed_fields(const void *self, uint32_t *n_p)
{
    const dt_mixed *m = self;
    *n_p = m->live->n_fields + m->stored->n_fields;
    return m->field;
}

static const char *const *mixed_symbols(const void *self, uint32_t *n_p)
{
    const dt_mixed *m = self;
    *n_p = m->live->n_symbols + m->stored->n_symbols;
    return m->symbol;
}

static dt_status mixed_count(const void *self, uint64_t *n_p)
{
    *n_p = ((const dt_mixed *)self)->live->count;
    return DT_OK;
}

static dt_status read_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const dt_mixed *m = self;
    const dt_samples *a = m->live, *b = m->stored;
    int64_t *total = size + a->n_symbols;
    DT_TRY(a->ops->sizes(a->self, index, n, size));
    memset(total, 0, b->n_symbols * sizeof(*total));
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t from = first_stored(m, index[i]), to = first_stored(m, index[i] + 1);
        int64_t some[DT_SAMPLES_MAX_SYMBOLS] = {0};
        if (to > from) {
            DT_TRY(b->ops->sizes(b->self, m->sample + from, (uint32_t)(to - from), some));
        }
        for (uint32_t k = 0; k < b->n_symbols; k++) {
            total[k] += some[k];
        }
    }
    return DT_OK;
}

static dt_status read_stored(const dt_mixed *m, const uint64_t *index, const uint64_t *key, uint32_t n,
                             void *const *out)
{
    const dt_samples *b = m->stored;
    uint64_t own[2 * FEW] = {0}, taken = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        most += first_stored(m, index[i] + 1) - first_stored(m, index[i]);
    }
    uint64_t *list = most <= FEW ? own : dt_alloc_n(2 * most, sizeof(*list)), *use = list + most;
    if (list == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %llu stored samples", (unsigned long long)most);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t from = first_stored(m, index[i]), to = first_stored(m, index[i] + 1);
        for (uint64_t j = from; j < to; j++) {
            list[taken] = m->sample[j];
            use[taken++] = key == NULL || key[i] == 0 ? 0 : key[i] + 2 * (j - from); /* odd, and so never 0 */
        }
    }
    const dt_status st = b->ops->read(b->self, list, use, (uint32_t)taken, out);
    dt_free(list != own ? list : NULL);
    return st;
}

static dt_status read_samples(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const dt_mixed *m = self;
    const dt_samples *a = m->live;
    DT_TRY(a->ops->read(a->self, index, key, n, out));
    return out[a->n_fields] != NULL ? read_stored(m, index, key, n, out + a->n_fields) : DT_OK;
}

static dt_status fetch_live_samples(void *self, uint64_t skipped, const dt_samples_part *part)
{
    const dt_samples *live = ((const dt_mixed *)self)->live;
    return live->bring(live->self, skipped, part); /* its fields come first */
}

static const dt_data_ops ops = {.struct_size = sizeof(dt_data_ops),
                                .fields = mixed_fields,
                                .symbols = mixed_symbols,
                                .count = mixed_count,
                                .sizes = read_sizes,
                                .read = read_samples};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status check_sources(const dt_mixed *m)
{
    const dt_samples *a = m->live, *b = m->stored;
    if (!a->is_live) {
        return DT_FAIL(DT_EPLUGIN, "stored data is mixed only into the samples of a rollout, not into other stored "
                                   "data");
    }
    if (b->count == 0 || a->count == 0) {
        return DT_FAIL(DT_EDATA, "there is no sample of %s to mix in", b->count == 0 ? "stored data" : "experience");
    }
    if (a->n_fields + b->n_fields > DT_SAMPLES_MAX_FIELDS || a->n_symbols + b->n_symbols > DT_SAMPLES_MAX_SYMBOLS) {
        return DT_FAIL(DT_EPLUGIN,
                       "experience and stored data have %u + %u fields and %u + %u symbols; at most %d and %d together "
                       "are possible",
                       a->n_fields, b->n_fields, a->n_symbols, b->n_symbols, DT_SAMPLES_MAX_FIELDS,
                       DT_SAMPLES_MAX_SYMBOLS);
    }
    return DT_OK;
}

/* A micro-batch takes live samples as before; of stored ones what their own micro-batches would hold, or what falls to
 * a sample. */
static void set_capacities(dt_mixed *m)
{
    const dt_samples *a = m->live, *b = m->stored;
    dt_samples *s = &m->samples;
    const double share = (double)m->n / (double)a->count;
    const int64_t each = (int64_t)((m->n + a->count - 1) / a->count);
    memcpy(s->sample_max, a->sample_max, sizeof(s->sample_max));
    memcpy(s->sample_mean, a->sample_mean, sizeof(s->sample_mean));
    memcpy(s->slice_cap, a->slice_cap, sizeof(s->slice_cap));
    s->slice_cap[a->n_symbols + b->n_symbols] = a->slice_cap[a->n_symbols];
    for (uint32_t k = 0; k < b->n_symbols; k++) {
        const uint32_t to = a->n_symbols + k;
        s->sample_max[to] = each * b->sample_max[k];
        s->sample_mean[to] = share * b->sample_mean[k];
        s->slice_cap[to] = b->slice_cap[k] > s->sample_max[to] ? b->slice_cap[k] : s->sample_max[to];
    }
}

static dt_status build_mixed_samples(dt_mixed *m)
{
    DT_TRY(check_sources(m));
    DT_TRY(name_all_fields(m));
    m->sample = dt_alloc_n(m->n, sizeof(*m->sample));
    if (m->sample == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %llu stored samples", (unsigned long long)m->n);
    }
    DT_TRY(dt_samples_open_mixed(&m->samples, &ops, m, m->stored->n_fields));
    m->samples.keyed = m->live->keyed;
    m->samples.bring = m->live->bring != NULL ? fetch_live_samples : NULL;
    set_capacities(m);
    return DT_OK;
}

dt_status dt_mixed_create(const dt_samples *live, const dt_samples *stored, uint64_t n, dt_mixed **out_p)
{
    dt_mixed *m = dt_alloc(sizeof(*m));
    if (m == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for stored data");
    }
    m->live = live;
    m->stored = stored;
    m->n = n;
    const dt_status st = build_mixed_samples(m);
    if (st < 0) {
        dt_mixed_destroy(m);
        return st;
    }
    dt_mixed_draw_stored(m, 0, 0, 0);
    *out_p = m;
    return DT_OK;
}

void dt_mixed_destroy(dt_mixed *m)
{
    if (m != NULL) {
        dt_free(m->sample);
        dt_free(m);
    }
}

const dt_samples *dt_mixed_samples(const dt_mixed *m)
{
    return &m->samples;
}

const dt_samples *dt_mixed_live_samples(const dt_mixed *m)
{
    return m->live;
}

bool dt_mixed_contains(const dt_mixed *m, const dt_samples *s)
{
    return m != NULL && s->self == m;
}

void dt_mixed_draw_stored(dt_mixed *m, uint64_t seed, uint32_t phase, uint64_t epoch)
{
    const uint64_t from = epoch * m->n, all = m->stored->count;
    const dt_sampler whole = {.count = all, .batch = 1, .kind = DT_SAMPLING_SHUFFLED, .drop_last = true};
    dt_sampler_epoch order;
    for (uint64_t j = 0; j < m->n; j++) {
        const uint64_t at = (from + j) % all;
        if (j == 0 || at == 0) {
            dt_sampler_begin_epoch(&order, &whole, seed, phase, (from + j) / all);
        }
        m->sample[j] = dt_sampler_sample_at(&order, at);
    }
}
