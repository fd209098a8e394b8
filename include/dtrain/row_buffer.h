/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of numbers that a phase makes itself, as data of a trainer: imagined transitions, targets, start states. All of
 * it is in this header, on top of own_data (svc/bind.h). A sample is one row of symbol "A", with the fields of
 * dt_row_buffer_init, f32, and
 *
 *   row_key   "A"   i64   the row's number and that of the last dt_row_buffer_renew: the key of noise and dropout
 *
 * so that a graph that reads the fields of a rollout (svc/rollout.h) reads these as well. A full buffer drops its
 * oldest rows. Every rank has all rows and has to add the same ones. Threads: [main]; the host reads rows in its own
 * threads, so that between steps of a trainer that reads them rows are changed inside of refill (svc/train.h).
 */
#ifndef DTRAIN_ROW_BUFFER_H
#define DTRAIN_ROW_BUFFER_H

#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/train.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DT_ROW_MAX_FIELDS = 15, DT_ROW_TEXT = 48 };

typedef struct dt_row_field {
    const char *name;
    uint32_t columns; /* 0: dims "A", one number a row; else "A columns" */
    uint32_t at;      /* set by init: place of its first number in a row */
} dt_row_field;

typedef struct dt_row_buffer { /* read-only, but for the rows */
    const dt_host *h;
    float *row; /* [capacity, width] */
    uint64_t capacity, added, renewed;
    uint32_t width, n_fields;
    dt_row_field field[DT_ROW_MAX_FIELDS];
    dt_port port[DT_ROW_MAX_FIELDS + 1];
    char text[DT_ROW_MAX_FIELDS][2][DT_ROW_TEXT]; /* names and dims */
} dt_row_buffer;

static inline uint32_t dt_row_columns_(const dt_row_field *f)
{
    return f->columns > 0 ? f->columns : 1;
}

/* In create of the phase. Zeros until rows are added. Errors: DT_EINVAL (too many fields, a name of 48 characters or
 * more), DT_ENOMEM. */
static inline dt_status dt_row_buffer_init(dt_row_buffer *b, const dt_host *h, const dt_row_field *field, uint32_t n,
                                           uint64_t capacity)
{
    memset(b, 0, sizeof(*b));
    b->h = h;
    for (uint32_t i = 0; i < n && n <= DT_ROW_MAX_FIELDS; i++) {
        if (strlen(field[i].name) >= DT_ROW_TEXT || field[i].columns > UINT32_MAX / 64) {
            return DT_FAIL_H(h, DT_EINVAL, "the field %.60s of a row buffer is too long", field[i].name);
        }
        snprintf(b->text[i][0], DT_ROW_TEXT, "%s", field[i].name);
        snprintf(b->text[i][1], DT_ROW_TEXT, field[i].columns > 0 ? "A %u" : "A", field[i].columns);
        b->field[i] = field[i];
        b->field[i].name = b->text[i][0];
        b->field[i].at = b->width;
        b->width += dt_row_columns_(&field[i]);
        b->port[i].name = b->text[i][0];
        b->port[i].dims = b->text[i][1];
        b->port[i].dtype = DT_F32;
    }
    if (n == 0 || n > DT_ROW_MAX_FIELDS || capacity == 0) {
        return DT_FAIL_H(h, DT_EINVAL, "a row buffer of %u fields and %llu rows; 1 to %d fields and a row are possible",
                         n, (unsigned long long)capacity, DT_ROW_MAX_FIELDS);
    }
    b->n_fields = n;
    b->port[n].name = "row_key";
    b->port[n].dims = "A";
    b->port[n].dtype = DT_I64;
    b->capacity = capacity;
    b->row = capacity <= UINT64_MAX / sizeof(float) / b->width
                 ? (float *)h->alloc(h, capacity * b->width * sizeof(float))
                 : NULL;
    return b->row != NULL
               ? DT_OK
               : DT_FAIL_H(h, DT_ENOMEM, "no memory for %llu rows of a buffer", (unsigned long long)capacity);
}

/* In destroy of the phase. */
static inline void dt_row_buffer_fini(dt_row_buffer *b)
{
    if (b->h != NULL) {
        b->h->release(b->h, b->row);
        b->row = NULL;
    }
}

/* Rows that there are. */
static inline uint64_t dt_row_buffer_count(const dt_row_buffer *b)
{
    return b->added < b->capacity ? b->added : b->capacity;
}

static inline float *dt_row_buffer_at(const dt_row_buffer *b, uint64_t i)
{
    return b->row + i * b->width;
}

static inline void dt_row_buffer_add(dt_row_buffer *b, const float *row)
{
    memcpy(dt_row_buffer_at(b, b->added % b->capacity), row, b->width * sizeof(*row));
    b->added++;
}

/* A row that u in [0, 1) chooses; there has to be one. */
static inline const float *dt_row_buffer_choose(const dt_row_buffer *b, double u)
{
    return dt_row_buffer_at(b, (uint64_t)(u * (double)dt_row_buffer_count(b)));
}

/* Of the n numbers of a row from number `at` on, over the rows that there are: mean, deviation (at least 1e-4), least
 * and greatest, [n] each. Without rows: 0, 1, 0, 0. */
static inline void dt_row_buffer_scales(const dt_row_buffer *b, uint32_t at, uint32_t n, float *mean, float *deviation,
                                        float *low, float *high)
{
    const uint64_t rows = dt_row_buffer_count(b);
    for (uint32_t c = 0; c < n; c++) {
        double sum = 0, squares = 0;
        mean[c] = low[c] = high[c] = 0;
        deviation[c] = 1;
        for (uint64_t i = 0; i < rows; i++) {
            const float x = dt_row_buffer_at(b, i)[at + c];
            low[c] = i == 0 || x < low[c] ? x : low[c];
            high[c] = i == 0 || x > high[c] ? x : high[c];
            sum += (double)x;
        }
        mean[c] = rows > 0 ? (float)(sum / (double)rows) : 0;
        for (uint64_t i = 0; i < rows; i++) {
            const double x = (double)dt_row_buffer_at(b, i)[at + c] - (double)mean[c];
            squares += x * x;
        }
        if (rows > 0) {
            const double variance = squares / (double)rows;
            deviation[c] = (float)sqrt(variance > 1e-8 ? variance : 1e-8);
        }
    }
}

/* Every row has another row_key from here on; n: as often, for a number that continues after a resume. */
static inline void dt_row_buffer_renew(dt_row_buffer *b, uint64_t n)
{
    b->renewed = n;
}

typedef struct dt_row_copy_ {
    dt_row_buffer *b;
    const dt_train_api *train;
    const char *const *name;
    uint32_t n, field;
} dt_row_copy_;

static inline dt_status dt_row_copy_each_(void *user, const dt_rows *r)
{
    const dt_row_copy_ *c = (const dt_row_copy_ *)user;
    dt_row_buffer *b = c->b;
    uint32_t n = 0;
    const uint64_t *index = c->train->samples(r, &n);
    for (uint32_t k = 0; k < c->n; k++) {
        int64_t dim[DT_MAX_DIMS] = {0};
        uint32_t rank = 0;
        const uint32_t at = b->field[c->field + k].at;
        const float *from = (const float *)c->train->rows(r, c->name[k], dim, &rank);
        const int64_t columns = rank > 1 ? dim[1] : 1;
        if (from == NULL) {
            return DT_FAIL_H(b->h, DT_ENOTFOUND, "the graph reads no field and has no output %s", c->name[k]);
        }
        if (rank < 1 || rank > 2 || dim[0] != (int64_t)n || columns > (int64_t)(b->width - at)) {
            return DT_FAIL_H(b->h, DT_ESHAPE,
                             "%s has %lld rows of %lld numbers for %u samples; expected a row each, of "
                             "at most %u numbers",
                             c->name[k], (long long)dim[0], (long long)columns, n, b->width - at);
        }
        for (uint32_t i = 0; i < n && index[i] < b->capacity; i++) {
            memcpy(dt_row_buffer_at(b, index[i]) + at, from + (size_t)i * (size_t)columns,
                   (size_t)columns * sizeof(float));
            b->added = index[i] >= b->added ? index[i] + 1 : b->added;
        }
    }
    return DT_OK;
}
/* [collective] Evaluates the graph of trainer t over d, and copies the f32 fields or outputs called name[k] of its
 * samples to the rows of the same numbers, from field `field` + k on; one with more columns than that field fills those
 * after it. One row of "A" a sample. Errors: those of evaluate; DT_ENOTFOUND (no such field or output), DT_ESHAPE. */
static inline dt_status dt_row_buffer_evaluate(dt_row_buffer *b, const dt_train_api *train, dt_train *t, dt_data *d,
                                               const char *const *name, uint32_t n, uint32_t field)
{
    dt_row_copy_ c;
    c.b = b;
    c.train = train;
    c.name = name;
    c.n = n;
    c.field = field;
    return field + n <= b->n_fields ? train->evaluate(t, d, &c, dt_row_copy_each_)
                                    : DT_FAIL_H(b->h, DT_ESHAPE, "a row buffer has %u fields", b->n_fields);
}

/* In save and load of the phase: the rows, and how many were added. Errors: DT_EDATA. */
static inline dt_status dt_row_buffer_save(const dt_row_buffer *b, dt_writer *w)
{
    const uint64_t head[] = {b->added, b->renewed, b->capacity, b->width};
    const dt_status st = w->write(w, head, sizeof(head));
    return st < 0 ? st : w->write(w, b->row, dt_row_buffer_count(b) * b->width * sizeof(float));
}
static inline dt_status dt_row_buffer_load(dt_row_buffer *b, dt_reader *r)
{
    uint64_t head[4] = {0};
    const dt_status st = r->read(r, head, sizeof(head));
    if (st < 0) {
        return st;
    }
    if (head[2] != b->capacity || head[3] != b->width) {
        return DT_FAIL_H(b->h, DT_EDATA, "a row buffer of %llu rows of %llu numbers was saved; here it is %llu of %u",
                         (unsigned long long)head[2], (unsigned long long)head[3], (unsigned long long)b->capacity,
                         b->width);
    }
    b->added = head[0];
    b->renewed = head[1];
    return r->read(r, b->row, dt_row_buffer_count(b) * b->width * sizeof(float));
}

/* save and load of a phase whose only state besides weights is one buffer, as functions FN_save and FN_load: of its
 * state's member MEMBER. */
#define DT_ROW_BUFFER_STATE_DEFINE(FN, STATE, MEMBER)                                                                  \
    static dt_status FN##_save(void *self, dt_writer *w)                                                               \
    {                                                                                                                  \
        return dt_row_buffer_save(&((STATE *)self)->MEMBER, w);                                                        \
    }                                                                                                                  \
    static dt_status FN##_load(void *self, dt_reader *r, uint32_t version)                                             \
    {                                                                                                                  \
        (void)version;                                                                                                 \
        return dt_row_buffer_load(&((STATE *)self)->MEMBER, r);                                                        \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static inline const dt_port *dt_row_buffer_fields_(const void *self, uint32_t *n_p)
{
    *n_p = ((const dt_row_buffer *)self)->n_fields + 1;
    return ((const dt_row_buffer *)self)->port;
}
static inline const char *const *dt_row_buffer_symbols_(const void *self, uint32_t *n_p)
{
    static const char *const name[] = {"A"};
    (void)self;
    *n_p = 1;
    return name;
}
static inline dt_status dt_row_buffer_capacity_(const void *self, uint64_t *n_p)
{
    *n_p = ((const dt_row_buffer *)self)->capacity;
    return DT_OK;
}
static inline dt_status dt_row_buffer_sizes_(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    (void)self;
    (void)index;
    size[0] = n;
    return DT_OK;
}
static inline dt_status dt_row_buffer_read_(void *self, const uint64_t *index, const uint64_t *key, uint32_t n,
                                            void *const *out)
{
    const dt_row_buffer *b = (const dt_row_buffer *)self;
    (void)key;
    for (uint32_t i = 0; i < n; i++) {
        const float *row = dt_row_buffer_at(b, index[i]);
        for (uint32_t f = 0; f < b->n_fields; f++) {
            const size_t columns = dt_row_columns_(&b->field[f]);
            memcpy((float *)out[f] + i * columns, row + b->field[f].at, columns * sizeof(*row));
        }
        ((int64_t *)out[b->n_fields])[i] = (int64_t)(b->renewed * b->capacity + index[i]);
    }
    return DT_OK;
}
/* In create: all `capacity` rows as data, zeros among them while there are fewer. Errors: those of own_data. */
static inline dt_status dt_row_buffer_data(dt_row_buffer *b, const dt_bind_api *bind, dt_data **out)
{
    dt_data_ops ops;
    memset(&ops, 0, sizeof(ops));
    ops.struct_size = (uint32_t)sizeof(ops);
    ops.fields = dt_row_buffer_fields_;
    ops.symbols = dt_row_buffer_symbols_;
    ops.count = dt_row_buffer_capacity_;
    ops.sizes = dt_row_buffer_sizes_;
    ops.read = dt_row_buffer_read_;
    return bind->own_data(b->h, &ops, b, out);
}

#ifdef __cplusplus
}
#endif
#endif
