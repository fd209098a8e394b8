/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/samples.h"

#include "base/err.h"
#include "base/name.h"
#include "base/plugin_call.h"
#include "base/str.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/port.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static int32_t find_symbol(const dt_samples *s, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < s->n_symbols; i++) {
        if (strlen(s->symbol[i]) == bytes && memcmp(s->symbol[i], name, bytes) == 0) {
            return (int32_t)i;
        }
    }
    return bytes == 1 && name[0] == 'B' ? (int32_t)s->n_symbols : -1;
}

static dt_status parse_port(const dt_samples *s, const dt_port *p, dt_field_shape *out)
{
    const bool is_half = p->dtype == DT_F16 || p->dtype == DT_BF16; /* no graph takes fields of these */
    out->item_bytes = is_half ? 0 : (uint32_t)dt_dtype_bytes(p->dtype);
    if (out->item_bytes == 0) {
        return DT_FAIL(DT_EPLUGIN, "data field %s has dtype %u, which data cannot have", p->name, p->dtype);
    }
    const char *t = p->dims;
    while (*t != '\0') {
        size_t n = strcspn(t, " ");
        if (out->rank == DT_MAX_DIMS) {
            return DT_FAIL(DT_EPLUGIN, "data field %s has more than %d dimensions", p->name, DT_MAX_DIMS);
        }
        size_t name_bytes = n;
        int64_t plus = 0;
        if (n > 2 && t[n - 2] == '+' && t[n - 1] == '1') {
            name_bytes = n - 2;
            plus = 1;
        }
        int32_t sym = find_symbol(s, t, name_bytes);
        char number[24] = "";
        if (n < sizeof(number)) {
            memcpy(number, t, n);
        }
        int64_t size = 0;
        if (sym >= 0) {
            out->symbol[out->rank] = sym;
            out->number[out->rank] = plus;
        } else if (dt_parse_i64(number, &size) && size >= 1) {
            out->symbol[out->rank] = -1;
            out->number[out->rank] = size;
        } else {
            return DT_FAIL(DT_EPLUGIN, "data field %s: \"%.*s\" in dims \"%s\" is neither a number nor a symbol",
                           p->name, (int)n, t, p->dims);
        }
        out->rank++;
        t += n;
        t += *t == ' ';
    }
    return DT_OK;
}

static const char who[] = "the data source";

static dt_status call_sizes(const dt_samples *s, const uint64_t *index, uint32_t n, int64_t *size)
{
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, who, "sizes", s->ops->sizes(s->self, index, n, size));
    return st;
}

/* Largest sample, mean size and its deviation per symbol; capacities follow from the first two, so that a micro-batch
 * of slice_rows rows of the first symbol rarely hits another capacity first. */
static dt_status scan_sizes(dt_samples *s, int64_t slice_rows)
{
    double total[DT_SAMPLES_MAX_SYMBOLS] = {0}, squares[DT_SAMPLES_MAX_SYMBOLS] = {0};
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t size[DT_SAMPLES_MAX_SYMBOLS] = {0};
        DT_TRY(call_sizes(s, &i, 1, size));
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            if (size[k] < 0 || size[k] > INT32_MAX) {
                return DT_FAIL(DT_EPLUGIN, "data reports that sample %llu has %lld of %s, outside [0, 2^31)",
                               (unsigned long long)i, (long long)size[k], s->symbol[k]);
            }
            total[k] += (double)size[k];
            squares[k] += (double)size[k] * (double)size[k];
            s->sample_max[k] = size[k] > s->sample_max[k] ? size[k] : s->sample_max[k];
        }
    }
    /* without ragged sizes a sample is a row */
    const double rows = s->n_symbols > 0 && total[0] > 0 ? total[0] : (double)(s->count > 0 ? s->count : 1);
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const double share = k == 0 ? (double)slice_rows : 1.25 * (double)slice_rows * total[k] / rows;
        s->slice_cap[k] = (int64_t)share > s->sample_max[k] ? (int64_t)share : s->sample_max[k];
        s->sample_mean[k] = s->count > 0 ? total[k] / (double)s->count : 0;
        const double mean = s->sample_mean[k], n = s->count > 0 ? (double)s->count : 1;
        s->sample_std[k] = sqrt(fmax(0, squares[k] / n - mean * mean));
    }
    s->slice_cap[s->n_symbols] = 1 + (int64_t)(1.5 * (double)slice_rows * (double)s->count / rows);
    return DT_OK;
}

/* Which fields and symbols there are, and how many samples. */
static dt_status read_ports(dt_samples *s, const dt_data_ops *ops, void *self)
{
    memset(s, 0, sizeof(*s));
    s->ops = ops;
    s->self = self;
    s->field = ops->fields(self, &s->n_fields);
    s->symbol = ops->symbols(self, &s->n_symbols);
    if (s->n_fields > DT_SAMPLES_MAX_FIELDS || s->n_symbols > DT_SAMPLES_MAX_SYMBOLS) {
        return DT_FAIL(DT_EPLUGIN, "data has %u fields and %u symbols; at most %d and %d are possible", s->n_fields,
                       s->n_symbols, DT_SAMPLES_MAX_FIELDS, DT_SAMPLES_MAX_SYMBOLS);
    }
    if ((s->n_fields > 0 && s->field == NULL) || (s->n_symbols > 0 && s->symbol == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "data has %u fields and %u symbols, but no list of them", s->n_fields, s->n_symbols);
    }
    for (uint32_t i = 0; i < s->n_fields; i++) {
        DT_TRY(parse_port(s, &s->field[i], &s->shape[i]));
    }
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, who, "count", ops->count(self, &s->count));
    return st;
}

/* Of a plugin. */
static dt_status check_names(const dt_data_ops *ops, const void *self)
{
    uint32_t n_fields = 0, n_symbols = 0;
    const dt_port *field = ops->fields(self, &n_fields);
    const char *const *symbol = ops->symbols(self, &n_symbols);
    if (n_fields > DT_SAMPLES_MAX_FIELDS || n_symbols > DT_SAMPLES_MAX_SYMBOLS || (n_symbols > 0 && symbol == NULL)) {
        return DT_OK; /* read_ports reports it */
    }
    for (uint32_t k = 0; k < n_symbols; k++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_SYMBOL, DT_NAME_MOST_SYMBOL, symbol[k], "data symbol %u", k));
    }
    return dt_ports_check(DT_EPLUGIN, who, "field", field, n_fields, false);
}

dt_status dt_samples_open(dt_samples *s, const dt_data_ops *ops, void *self, int64_t slice_rows)
{
    DT_TRY(check_names(ops, self));
    DT_TRY(read_ports(s, ops, self));
    return s->count <= DT_SAMPLES_MOST ? scan_sizes(s, slice_rows)
                                       : DT_FAIL(DT_EPLUGIN, "the source counts %llu samples, expected at most 2^40",
                                                 (unsigned long long)s->count);
}

/* A micro-batch has room for as many of the largest samples as give about slice_rows rows of any one of the first two
 * symbols; of smaller samples it takes more. */
dt_status dt_samples_open_live(dt_samples *s, const dt_data_ops *ops, void *self, const int64_t *largest,
                               int64_t slice_rows, const char *keyed)
{
    DT_TRY(read_ports(s, ops, self));
    int64_t rows = 1;
    s->is_live = true;
    s->keyed = -1;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        s->keyed = strcmp(s->field[f].name, keyed) == 0 ? (int32_t)f : s->keyed;
    }
    for (uint32_t k = 0; k < s->n_symbols && k < 2; k++) {
        rows = largest[k] > rows ? largest[k] : rows;
    }
    const int64_t n = slice_rows > rows ? slice_rows / rows : 1;
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        s->sample_max[k] = largest[k];
        s->sample_mean[k] = (double)largest[k];
        s->slice_cap[k] = n * largest[k];
    }
    s->slice_cap[s->n_symbols] = 1 + slice_rows * 3 / 2;
    return DT_OK;
}

dt_status dt_samples_open_mixed(dt_samples *s, const dt_data_ops *ops, void *self, uint32_t n_whole)
{
    DT_TRY(read_ports(s, ops, self));
    s->is_live = true;
    s->keyed = -1;
    s->n_whole = n_whole;
    return DT_OK;
}

dt_status dt_samples_fetch_parts(const dt_samples *s, const dt_samples_part *part)
{
    return s->bring != NULL ? s->bring(s->self, s->skipped, part) : DT_OK;
}

void dt_samples_field_dims(const dt_samples *s, uint32_t f, const int64_t *size, int64_t dim[DT_MAX_DIMS])
{
    const dt_field_shape *p = &s->shape[f];
    for (uint32_t i = 0; i < p->rank; i++) {
        dim[i] = p->symbol[i] < 0 ? p->number[i] : size[p->symbol[i]] + p->number[i];
    }
}

size_t dt_samples_field_bytes(const dt_samples *s, uint32_t f, const int64_t *size)
{
    int64_t dim[DT_MAX_DIMS];
    dt_samples_field_dims(s, f, size, dim);
    size_t n = s->shape[f].item_bytes;
    for (uint32_t i = 0; i < s->shape[f].rank; i++) {
        n *= (size_t)dim[i];
    }
    return n;
}

/* All n at once, when even the largest samples would fit. */
static bool do_samples_always_fit(const dt_samples *s, uint32_t n)
{
    bool fit = n <= s->slice_cap[s->n_symbols];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        fit = fit && s->sample_max[k] <= s->slice_cap[k] / n;
    }
    return fit;
}

/* So many of the first of n samples are of one part. */
static uint32_t count_in_part(const dt_samples *s, const uint64_t *index, uint32_t n)
{
    uint32_t same = n > 0;
    if (s->part == NULL) {
        return n;
    }
    while (same < n && s->part(s->self, index[same]) == s->part(s->self, index[0])) {
        same++;
    }
    return same;
}

dt_status dt_samples_cut_micro_batch(const dt_samples *s, const uint64_t *index, uint32_t n, uint32_t *take_p,
                                     int64_t *size)
{
    uint32_t take = 0;
    n = count_in_part(s, index, n);
    memset(size, 0, (s->n_symbols + 1) * sizeof(*size));
    if (n > 0 && do_samples_always_fit(s, n)) {
        take = n;
        DT_TRY(call_sizes(s, index, n, size));
    }
    while (take < n) {
        int64_t one[DT_SAMPLES_MAX_SYMBOLS] = {0};
        DT_TRY(call_sizes(s, &index[take], 1, one));
        bool fits = take + 1 <= s->slice_cap[s->n_symbols];
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            fits = fits && size[k] + one[k] <= s->slice_cap[k];
        }
        if (!fits && take > 0) {
            break;
        }
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            size[k] += one[k];
        }
        take++;
    }
    size[s->n_symbols] = take;
    *take_p = take;
    return DT_OK;
}

dt_status dt_samples_read(const dt_samples *s, const uint64_t *index, const uint64_t *key, uint32_t n,
                          const int64_t *size, char *arena, size_t arena_bytes, void **field, size_t *used_p)
{
    size_t at = 0;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        const bool is_read = (s->skipped >> f & 1) == 0;
        const size_t bytes = is_read ? align_up(dt_samples_field_bytes(s, f, size)) : 0;
        if (bytes > arena_bytes - at) {
            return DT_FAIL(DT_EPLUGIN, "data field %s needs %zu bytes, more than its largest sample allows (%zu)",
                           s->field[f].name, bytes, arena_bytes - at);
        }
        field[f] = is_read ? arena + at : NULL;
        at += bytes;
    }
    *used_p = at;
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, who, "read", s->ops->read(s->self, index, key, n, field));
    return st;
}

size_t dt_samples_bytes_max(const dt_samples *s, uint64_t n_samples)
{
    size_t bytes = 0;
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = s->sample_max[k] * (int64_t)n_samples;
    }
    size[s->n_symbols] = (int64_t)n_samples;
    /* one micro-batch per sample is the worst case of alignment and of row pointers (SYMBOL+1) */
    for (uint32_t f = 0; f < s->n_fields; f++) {
        bytes += align_up(dt_samples_field_bytes(s, f, size)) + n_samples * 2 * ALIGN;
    }
    return bytes;
}

size_t dt_samples_slice_bytes(const dt_samples *s)
{
    size_t bytes = 0;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        bytes += align_up(dt_samples_field_bytes(s, f, s->slice_cap));
    }
    return bytes;
}
