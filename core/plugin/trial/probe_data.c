/* SPDX-License-Identifier: Apache-2.0
 *
 * A data source on trial. See probe_data.h.
 */
#include <config.h>

#include "plugin/trial/probe_data.h"

#include "base/err.h"
#include "base/mem.h"
#include "dtrain/svc/datasets.h"
#include "dtrain/svc/rng.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "plugin/trial/guard.h"

#include <math.h>
#include <string.h>

enum { MAX_SAMPLES = 3 };

/* ---- host ------------------------------------------------------------------------------------------------------ */

/* What a source may ask for; the rest belongs to phases. */
static const void *find_probe_service(const dt_host *h, const char *id)
{
    static const char *const served[] = {DT_SVC_DATASETS, DT_SVC_RNG};
    const dt_stage *s = h->priv;
    for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
        if (strcmp(id, served[i]) == 0) {
            return s->host.service(&s->host, id);
        }
    }
    return dt_loader_find_service(s->d.loader, id);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

dt_status dt_probe_data_create(dt_probe_data *p, const dt_loaded *data, const void *config)
{
    memset(p, 0, sizeof(*p));
    p->data = data;
    dt_services_init(&p->stage);
    dt_probe_host_init(&p->host);
    p->host.host.priv = &p->stage;
    p->host.host.service = find_probe_service;
    p->state = dt_alloc(data->desc.state_size);
    if (p->state == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the state of %s", data->desc.id);
    }
    p->is_created = true; /* destroy follows even a failed create */
    dt_error_clear();
    dt_status st = data->ops.data.create(p->state, &p->host.host, config);
    return st > 0 ? DT_OK : st;
}

void dt_probe_data_destroy(dt_probe_data *p, uint32_t *n_datasets_p)
{
    if (p->is_created) {
        p->data->ops.data.destroy(p->state);
        p->is_created = false;
    }
    *n_datasets_p = p->stage.n_datasets;
    dt_free(p->state);
    p->state = NULL;
}

dt_status dt_probe_data_describe(dt_probe_data *p)
{
    const dt_data_ops *ops = &p->data->ops.data;
    dt_trial_report_call(p->trial, "fields");
    p->field = ops->fields(p->state, &p->n_fields);
    if (p->field == NULL || p->n_fields == 0 || p->n_fields > DT_PROBE_MAX_FIELDS) {
        return DT_FAIL(DT_EPLUGIN, "%u fields, expected 1 to %d", p->n_fields, DT_PROBE_MAX_FIELDS);
    }
    dt_trial_report_call(p->trial, "symbols");
    const char *const *symbols = ops->symbols(p->state, &p->n_symbols);
    if (p->n_symbols > DT_PROBE_MAX_SYMBOLS || (p->n_symbols > 0 && symbols == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%u symbols, expected at most %d", p->n_symbols, DT_PROBE_MAX_SYMBOLS);
    }
    for (uint32_t i = 0; i < p->n_symbols; i++) {
        p->symbol[i] = symbols[i];
    }
    p->symbol[p->n_symbols] = "B"; /* samples: the host counts them */
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_port *f = &p->field[i];
        dt_shape shape;
        if (f->name == NULL || *f->name == '\0' || f->dims == NULL) {
            return DT_FAIL(DT_EPLUGIN, "field %u has no name or no dims", i);
        }
        dt_status st = dt_shape_parse(f->dims, f->dtype, p->symbol, p->n_symbols + 1, &shape);
        if (st != DT_OK) {
            return DT_CONTEXT(DT_EPLUGIN, "field %s", f->name);
        }
    }
    return DT_OK;
}

dt_status dt_probe_data_count_samples(dt_probe_data *p)
{
    const dt_status st = p->data->ops.data.count(p->state, &p->count);
    DT_TRY(st > 0 ? DT_OK : st);
    return p->count <= DT_SAMPLES_MOST
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN, "%llu samples, expected at most 2^40", (unsigned long long)p->count);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Some samples, and where their fields lie in a block: field i begins at at[i], end[i] is past its last byte, and a
 * guard reaches from there to at[i + 1]; another one is in front of at[0]. */
typedef struct reading {
    uint64_t index[MAX_SAMPLES], key[MAX_SAMPLES];
    uint32_t n;
    size_t at[DT_PROBE_MAX_FIELDS + 1], end[DT_PROBE_MAX_FIELDS];
    int64_t size[DT_PROBE_MAX_SYMBOLS + 1]; /* of all of them, by symbol, and "B" */
} reading;

static dt_status lay_out_buffers(const dt_probe_data *p, reading *r)
{
    const dt_data_ops *ops = &p->data->ops.data;
    int64_t *size = r->size, sum[DT_PROBE_MAX_SYMBOLS] = {0};
    memset(size, 0, sizeof(r->size));
    r->at[0] = DT_GUARD_BYTES;
    dt_trial_report_call(p->trial, "sizes");
    DT_TRY(ops->sizes(p->state, r->index, r->n, size));
    for (uint32_t i = 0; i < r->n; i++) {
        int64_t one[DT_PROBE_MAX_SYMBOLS] = {0};
        DT_TRY(ops->sizes(p->state, &r->index[i], 1, one));
        for (uint32_t k = 0; k < p->n_symbols; k++) {
            sum[k] += one[k];
        }
    }
    for (uint32_t k = 0; k < p->n_symbols; k++) {
        if (size[k] != sum[k]) {
            return DT_FAIL(DT_EPLUGIN, "sizes returns for %u samples %lld of %s together, but %lld one by one", r->n,
                           (long long)size[k], p->symbol[k], (long long)sum[k]);
        }
    }
    size[p->n_symbols] = r->n;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_port *f = &p->field[i];
        dt_shape shape;
        int64_t count = 0;
        DT_TRY(dt_shape_parse(f->dims, f->dtype, p->symbol, p->n_symbols + 1, &shape));
        if (!dt_shape_count(&shape, size, &count) || count < 0 || count > INT64_C(1) << 32) {
            return DT_FAIL(DT_EPLUGIN, "field %s has an impossible size", f->name);
        }
        r->end[i] = r->at[i] + (size_t)count * dt_dtype_bytes(f->dtype);
        r->at[i + 1] = (r->end[i] + DT_GUARD_BYTES + 63) / 64 * 64;
    }
    return DT_OK;
}

static dt_status read_into(const dt_probe_data *p, const reading *r, uint8_t fill, uint8_t *block)
{
    void *out[DT_PROBE_MAX_FIELDS];
    memset(block, DT_GUARD, r->at[0]);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        out[i] = block + r->at[i];
        memset(block + r->at[i], fill, r->end[i] - r->at[i]);
        memset(block + r->end[i], DT_GUARD, r->at[i + 1] - r->end[i]);
    }
    dt_trial_report_call(p->trial, "read");
    const dt_status st = p->data->ops.data.read(p->state, r->index, r->key, r->n, out);
    DT_TRY(st);
    DT_TRY(dt_check_guard_bytes(block, r->at[0], "read", NULL, p->field[0].name));
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const char *next = i + 1 < p->n_fields ? p->field[i + 1].name : NULL;
        DT_TRY(dt_check_guard_bytes(block + r->end[i], r->at[i + 1] - r->end[i], "read", p->field[i].name, next));
    }
    return DT_OK;
}

/* Twice, into buffers filled unequally: what read leaves out differs. */
static dt_status compare_readings(const dt_probe_data *p, const reading *r, uint8_t *first, uint8_t *second)
{
    const size_t bytes = r->at[p->n_fields];
    if (first == NULL || second == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %zu bytes", 2 * bytes);
    }
    DT_TRY(read_into(p, r, 0, first));
    DT_TRY(read_into(p, r, 0xFF, second));
    if (memcmp(first, second, bytes) != 0) {
        return DT_FAIL(DT_EPLUGIN, "reading the same samples twice gives different bytes; every byte must be written, "
                                   "and depend only on index and key");
    }
    return DT_OK;
}

static dt_status check_finite(const dt_port *f, const uint8_t *data, size_t bytes)
{
    const size_t each = dt_dtype_bytes(f->dtype);
    for (size_t i = 0; i < bytes / each; i++) {
        const double x = f->dtype == DT_F64 ? ((const double *)(const void *)data)[i]
                                            : (double)((const float *)(const void *)data)[i];
        if (!isfinite(x)) {
            return DT_FAIL(
                DT_EPLUGIN,
                "field %s [%s], item %zu is %g; its loss would not be finite; mark missing values in another field",
                f->name, f->dims, i, x);
        }
    }
    return DT_OK;
}

/* SYMBOL+1: where the rows of each begin, and the last end; they are those of a symbol, or samples. */
static dt_status check_offsets(const dt_probe_data *p, const reading *r, const dt_port *f, const int32_t *v, size_t n)
{
    int64_t most = r->n;
    bool is_whole = false;
    for (uint32_t k = 0; k < p->n_symbols; k++) {
        most = r->size[k] > most ? r->size[k] : most;
        is_whole = is_whole || v[n - 1] == r->size[k];
    }
    for (size_t i = 0; i < n; i++) {
        if (v[i] < (i > 0 ? v[i - 1] : 0) || v[i] > most || (i == 0 && v[i] != 0)) {
            return DT_FAIL(
                DT_EPLUGIN,
                "field %s [%s], item %zu is %d: starts of rows must rise from 0 to their number, here at most %lld",
                f->name, f->dims, i, v[i], (long long)most);
        }
    }
    return is_whole || v[n - 1] == (int64_t)r->n
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN, "field %s [%s] ends with %d, and no symbol has that many rows in these samples",
                         f->name, f->dims, v[n - 1]);
}

static dt_status check_values(const dt_probe_data *p, const reading *r, const uint8_t *block)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_port *f = &p->field[i];
        const size_t bytes = r->end[i] - r->at[i];
        dt_shape shape;
        DT_TRY(dt_shape_parse(f->dims, f->dtype, p->symbol, p->n_symbols + 1, &shape));
        if (f->dtype == DT_F32 || f->dtype == DT_F64) {
            DT_TRY(check_finite(f, block + r->at[i], bytes));
        }
        const bool is_offsets = shape.rank == 1 && shape.dim[0].symbol >= 0 && shape.dim[0].size == 1;
        if (is_offsets && f->dtype == DT_I32 && bytes > 0) {
            DT_TRY(check_offsets(p, r, f, (const int32_t *)(const void *)(block + r->at[i]), bytes / sizeof(int32_t)));
        }
    }
    return DT_OK;
}

static dt_status read_twice(const dt_probe_data *p, const reading *r)
{
    const size_t bytes = r->at[p->n_fields];
    uint8_t *first = dt_alloc(bytes), *second = dt_alloc(bytes);
    dt_status st = compare_readings(p, r, first, second);
    if (st >= 0) {
        st = check_values(p, r, first);
    }
    dt_free(first);
    dt_free(second);
    return st;
}

dt_status dt_probe_data_read(dt_probe_data *p)
{
    reading r = {.n = p->count < MAX_SAMPLES ? (uint32_t)p->count : MAX_SAMPLES};
    if (r.n == 0) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < r.n; i++) {
        r.index[i] = r.n > 1 ? (p->count - 1) * i / (r.n - 1) : 0;
    }
    DT_TRY(lay_out_buffers(p, &r));
    DT_TRY(read_twice(p, &r));
    for (uint32_t i = 0; i < r.n; i++) {
        r.key[i] = i + 1;
    }
    dt_status st = read_twice(p, &r);
    return st < 0 ? DT_CONTEXT(st, "with keys, for augmentation") : st;
}

/* ---- statistics ------------------------------------------------------------------------------------------------ */

/* Of one field, asked twice: [2, n]. */
static dt_status call_statistics(const dt_probe_data *p, const dt_port *f, uint32_t n, dt_field_stat *stat, bool *has_p)
{
    for (int turn = 0; turn < 2; turn++) {
        dt_trial_report_call(p->trial, "statistics");
        const dt_status st = p->data->ops.data.statistics(p->state, f->name, stat + (size_t)turn * n, n);
        if (st == DT_EUNSUPPORTED) {
            return DT_OK;
        }
        DT_TRY(st);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_bind_check_stat(p->data->desc.id, f->name, i, &stat[i]));
    }
    *has_p = true;
    return memcmp(stat, stat + n, n * sizeof(*stat)) == 0
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN, "statistics of field %s differ from one time to the next", f->name);
}

dt_status dt_probe_data_statistics(dt_probe_data *p, uint32_t *n_p)
{
    *n_p = 0;
    for (uint32_t i = 0; i < p->n_fields && p->data->ops.data.statistics != NULL; i++) {
        const dt_port *f = &p->field[i];
        dt_shape shape;
        bool has = false;
        DT_TRY(dt_shape_parse(f->dims, f->dtype, p->symbol, p->n_symbols + 1, &shape));
        const dt_extent *last = shape.rank > 1 ? &shape.dim[shape.rank - 1] : NULL;
        if (f->dtype != DT_F32 || last == NULL || last->symbol >= 0 || last->size > UINT16_MAX) {
            continue;
        }
        const uint32_t n = (uint32_t)last->size;
        dt_field_stat *stat = dt_alloc_n(2 * (size_t)n, sizeof(*stat));
        const dt_status st = stat != NULL ? call_statistics(p, f, n, stat, &has)
                                          : DT_FAIL(DT_ENOMEM, "no memory for statistics of %u columns", n);
        dt_free(stat);
        DT_TRY(st);
        *n_p += has;
    }
    return DT_OK;
}
