/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors reader and writer. See safetensors.h.
 */
#include <config.h>

#include "state/checkpoint/safetensors.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_HEADER_BYTES = 100000000, /* of the reference reader */
    MAX_TENSORS = 1000000,
    MAX_PAIRS = 100000, /* of metadata: each is two texts of its own */
    MAX_NAME_BYTES = 4096
};

static const struct dtype_row {
    const char *name;
    uint32_t bits;
} dtype_rows[DT_ST_N_DTYPES] = {
#define ROW(name, bits) {#name, bits},
    DT_ST_DTYPES(ROW)
#undef ROW
};

typedef struct pair {
    char *key, *text;
} pair;

struct dt_safetensors {
    char *name; /* of the file, for messages */
    const uint8_t *bytes;
    size_t n_bytes;
    bool is_mapped;
    size_t header_bytes;
    dt_safetensors **part; /* [n_parts] of a joined one, which own the names of its tensors */
    uint32_t n_parts;
    dt_st_tensor *tensor; /* sorted by name; names are owned, if there are no parts */
    uint32_t n, cap;
    pair *pair;
    uint32_t n_pairs, cap_pairs;
};

const char *dt_st_dtype_name(dt_st_dtype d)
{
    return dtype_rows[d].name;
}

/* Bytes of a shape, false when they overflow or end inside a byte. */
static bool shape_bytes(dt_st_dtype dtype, const int64_t *dim, uint32_t n_dims, size_t *out_p)
{
    size_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (dim[i] < 0 || !dt_mul_size(n, (size_t)dim[i], &n)) {
            return false;
        }
    }
    size_t bits = 0;
    if (!dt_mul_size(n, dtype_rows[dtype].bits, &bits) || bits % 8 != 0) {
        return false;
    }
    *out_p = bits / 8;
    return true;
}

/* ---- reading the header ---- */

/* One entry as it is parsed: data is still an offset. */
typedef struct entry {
    dt_st_tensor tensor;
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
} entry;

static dt_status fail_out_of_memory(const dt_safetensors *s)
{
    return DT_FAIL(DT_ENOMEM, "%s: out of memory for its header", s->name);
}

static dt_status read_count(dt_json *j, const char *what, const dt_json_token *t, uint64_t *out_p)
{
    if (t->kind != DT_JSON_NUMBER || !t->is_integer || t->integer < 0) {
        return dt_json_fail(j, "%s must be a whole number from 0 on", what);
    }
    *out_p = (uint64_t)t->integer;
    return DT_OK;
}

static dt_status read_dtype(dt_json *j, entry *e)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_STRING) {
        return dt_json_fail(j, "dtype must be a string");
    }
    for (uint32_t i = 0; i < DT_ST_N_DTYPES; i++) {
        if (strcmp(dtype_rows[i].name, t.text) == 0) {
            e->tensor.dtype = (dt_st_dtype)i;
            e->has_dtype = true;
            return DT_OK;
        }
    }
    return dt_json_fail(j, "unknown dtype \"%.32s\"", t.text);
}

static dt_status read_shape(dt_json *j, entry *e)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_ARRAY) {
        return dt_json_fail(j, "shape must be a list");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            break;
        }
        if (e->tensor.n_dims == DT_ST_MAX_DIMS) {
            return dt_json_fail(j, "a shape of more than %d dimensions", DT_ST_MAX_DIMS);
        }
        uint64_t v = 0;
        DT_TRY(read_count(j, "a dimension", &t, &v));
        e->tensor.dim[e->tensor.n_dims++] = (int64_t)v;
    }
    e->has_shape = true;
    return DT_OK;
}

static dt_status read_offsets(dt_json *j, entry *e)
{
    dt_json_token t;
    uint64_t v[2] = {0, 0};
    DT_TRY(dt_json_next(j, &t));
    bool is_list = t.kind == DT_JSON_ARRAY;
    for (int i = 0; i < 2 && is_list; i++) {
        DT_TRY(dt_json_next(j, &t));
        DT_TRY(read_count(j, "an offset", &t, &v[i]));
    }
    if (is_list) {
        DT_TRY(dt_json_next(j, &t));
    }
    if (!is_list || t.kind != DT_JSON_ARRAY_END) {
        return dt_json_fail(j, "data_offsets must be a list of two numbers");
    }
    if (v[1] < v[0]) {
        return dt_json_fail(j, "data_offsets end at %llu, before they begin at %llu", (unsigned long long)v[1],
                            (unsigned long long)v[0]);
    }
    e->begin = v[0];
    e->end = v[1];
    e->has_offsets = true;
    return DT_OK;
}

static dt_status read_entry(dt_json *j, entry *e)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_OBJECT) {
        return dt_json_fail(j, "a tensor must be an object");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            break;
        }
        if (strcmp(t.text, "dtype") == 0 && !e->has_dtype) {
            DT_TRY(read_dtype(j, e));
        } else if (strcmp(t.text, "shape") == 0 && !e->has_shape) {
            DT_TRY(read_shape(j, e));
        } else if (strcmp(t.text, "data_offsets") == 0 && !e->has_offsets) {
            DT_TRY(read_offsets(j, e));
        } else {
            return dt_json_fail(j, "key \"%.32s\" is unknown or given twice", t.text);
        }
    }
    if (!e->has_dtype || !e->has_shape || !e->has_offsets) {
        return dt_json_fail(j, "a tensor needs dtype, shape and data_offsets");
    }
    size_t bytes = 0;
    if (!shape_bytes(e->tensor.dtype, e->tensor.dim, e->tensor.n_dims, &bytes) || bytes != e->end - e->begin) {
        return dt_json_fail(j, "shape and dtype %s do not make %llu bytes", dtype_rows[e->tensor.dtype].name,
                            (unsigned long long)(e->end - e->begin));
    }
    e->tensor.bytes = bytes;
    return DT_OK;
}

/* The array with room for one more element of size bytes; NULL leaves it as it was. */
static void *reserve_element(void *array, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return array;
    }
    uint32_t more = *cap == 0 ? 16 : *cap * 2;
    void *grown = dt_realloc(array, more * size);
    *cap = grown != NULL ? more : *cap;
    return grown;
}

static dt_status read_metadata(dt_safetensors *s, dt_json *j)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_OBJECT) {
        return dt_json_fail(j, "__metadata__ must be an object");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        if (s->n_pairs == MAX_PAIRS) {
            return dt_json_fail(j, "__metadata__ has more than %d keys", MAX_PAIRS);
        }
        pair *pairs = reserve_element(s->pair, s->n_pairs, &s->cap_pairs, sizeof(*s->pair));
        if (pairs == NULL) {
            return fail_out_of_memory(s);
        }
        s->pair = pairs;
        pair *p = &s->pair[s->n_pairs++];
        *p = (pair){.key = dt_strdup(t.text)};
        DT_TRY(dt_json_next(j, &t));
        if (t.kind != DT_JSON_STRING) {
            return dt_json_fail(j, "__metadata__ must map strings to strings");
        }
        p->text = dt_strdup(t.text);
        if (p->key == NULL || p->text == NULL) {
            return fail_out_of_memory(s);
        }
    }
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp(((const dt_st_tensor *)a)->name, ((const dt_st_tensor *)b)->name);
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->key, ((const pair *)b)->key);
}

static int compare_places(const void *a, const void *b)
{
    const dt_st_tensor *x = *(const dt_st_tensor *const *)a, *y = *(const dt_st_tensor *const *)b;
    if (x->data != y->data) {
        return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* From the first to the last byte of the data, without holes and overlaps. */
static dt_status check_places(const dt_safetensors *s)
{
    const uint8_t *at = s->bytes + 8 + s->header_bytes, *end = s->bytes + s->n_bytes;
    const dt_st_tensor **by_place = dt_alloc_n(s->n + (size_t)1, sizeof(*by_place));
    if (by_place == NULL) {
        return fail_out_of_memory(s);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        by_place[i] = &s->tensor[i];
    }
    qsort(by_place, s->n, sizeof(*by_place), compare_places);
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < s->n && st == DT_OK; i++) {
        if (by_place[i]->data != at) {
            st = DT_FAIL(DT_EDATA, "%s: tensor %s does not begin where the one before it ends", s->name,
                         by_place[i]->name);
        }
        at += by_place[i]->bytes;
    }
    if (st == DT_OK && at != end) {
        st = DT_FAIL(DT_EDATA, "%s: %zu bytes after the last tensor", s->name, (size_t)(end - at));
    }
    dt_free(by_place);
    return st;
}

static dt_status read_header(dt_safetensors *s, dt_json *j)
{
    const size_t data_bytes = s->n_bytes - 8 - s->header_bytes;
    const uint8_t *data = s->bytes + 8 + s->header_bytes;
    bool has_metadata = false;
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            break;
        }
        if (strcmp(t.text, "__metadata__") == 0) {
            if (has_metadata) {
                return dt_json_fail(j, "__metadata__ is given twice");
            }
            has_metadata = true;
            DT_TRY(read_metadata(s, j));
            continue;
        }
        if (t.bytes > MAX_NAME_BYTES || s->n == MAX_TENSORS) {
            return dt_json_fail(j, "a name of more than %d bytes or more than %d tensors", MAX_NAME_BYTES, MAX_TENSORS);
        }
        dt_st_tensor *tensors = reserve_element(s->tensor, s->n, &s->cap, sizeof(*s->tensor));
        char *name = dt_strdup(t.text);
        s->tensor = tensors != NULL ? tensors : s->tensor;
        if (tensors == NULL || name == NULL) {
            dt_free(name);
            return fail_out_of_memory(s);
        }
        s->tensor[s->n++] = (dt_st_tensor){.name = name};
        entry e = {.tensor = {.name = name}};
        dt_status st = read_entry(j, &e);
        if (st != DT_OK) {
            return DT_CONTEXT(st, "tensor %.256s", name);
        }
        if (e.end > data_bytes) {
            return dt_json_fail(
                j, "tensor %.256s ends at %llu, the data have %zu bytes: the file is truncated or its header is wrong",
                name, (unsigned long long)e.end, data_bytes);
        }
        e.tensor.data = data + e.begin;
        s->tensor[s->n - 1] = e.tensor;
    }
    return dt_json_next(j, &t); /* nothing but spaces may follow */
}

static dt_status check_names(dt_safetensors *s)
{
    if (s->n > 0) {
        qsort(s->tensor, s->n, sizeof(*s->tensor), compare_tensors);
    }
    if (s->n_pairs > 0) {
        qsort(s->pair, s->n_pairs, sizeof(*s->pair), compare_pairs);
    }
    for (uint32_t i = 1; i < s->n; i++) {
        if (strcmp(s->tensor[i - 1].name, s->tensor[i].name) == 0) {
            return DT_FAIL(DT_EDATA, "%s: two tensors are called %s", s->name, s->tensor[i].name);
        }
    }
    for (uint32_t i = 1; i < s->n_pairs; i++) {
        if (strcmp(s->pair[i - 1].key, s->pair[i].key) == 0) {
            return DT_FAIL(DT_EDATA, "%s: key %s is twice in __metadata__", s->name, s->pair[i].key);
        }
    }
    return DT_OK;
}

static dt_status read_all(dt_safetensors *s)
{
    if (s->n_bytes < 8) {
        return DT_FAIL(DT_EDATA, "%s: %zu bytes are not a safetensors file", s->name, s->n_bytes);
    }
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) {
        n = n << 8 | s->bytes[i];
    }
    if (n > MAX_HEADER_BYTES || n > s->n_bytes - 8) {
        return DT_FAIL(DT_EDATA,
                       "%s: a header of %llu bytes in a file of %zu (limit %d): truncated, or not a safetensors file",
                       s->name, (unsigned long long)n, s->n_bytes, MAX_HEADER_BYTES);
    }
    s->header_bytes = (size_t)n;
    if (n == 0 || s->bytes[8] != '{') {
        return DT_FAIL(DT_EDATA, "%s: the header does not begin with {", s->name);
    }
    dt_json *j = NULL;
    DT_TRY(dt_json_open_mem((const char *)s->bytes + 8, s->header_bytes, s->name, &j));
    dt_status st = read_header(s, j);
    dt_json_close(j);
    DT_TRY(st);
    DT_TRY(check_names(s));
    return check_places(s);
}

/* ---- opening ---- */

dt_status dt_safetensors_open_mem(const void *p, size_t bytes, const char *name, dt_safetensors **out_p)
{
    dt_safetensors *s = dt_alloc(sizeof(*s));
    char *own_name = dt_strdup(name);
    if (s == NULL || own_name == NULL) {
        dt_free(s);
        dt_free(own_name);
        return DT_FAIL(DT_ENOMEM, "%s: out of memory", name);
    }
    s->name = own_name;
    s->bytes = p;
    s->n_bytes = bytes;
    dt_status st = read_all(s);
    if (st != DT_OK) {
        dt_safetensors_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

dt_status dt_safetensors_open(const char *path, dt_safetensors **out_p)
{
    const void *p = NULL;
    size_t bytes = 0;
    DT_TRY(dt_fs_map(path, &p, &bytes));
    dt_status st = dt_safetensors_open_mem(p, bytes, path, out_p);
    if (st != DT_OK) {
        dt_fs_unmap(p, bytes);
        return st;
    }
    (*out_p)->is_mapped = true;
    return DT_OK;
}

static dt_status join_tensors(dt_safetensors *s, dt_safetensors *const *part, uint32_t n, const char *name)
{
    size_t n_tensors = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_tensors += part[i]->n;
    }
    s->name = dt_strdup(name);
    s->tensor = dt_alloc_n(n_tensors + 1, sizeof(*s->tensor));
    if (s->name == NULL || s->tensor == NULL || n_tensors > MAX_TENSORS) {
        return DT_FAIL(DT_ENOMEM, "%s: out of memory for %zu tensors", name, n_tensors);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (part[i]->n > 0) {
            memcpy(s->tensor + s->n, part[i]->tensor, part[i]->n * sizeof(*s->tensor));
        }
        s->n += part[i]->n;
    }
    return check_names(s);
}

dt_status dt_safetensors_join(dt_safetensors *const *part, uint32_t n, const char *name, dt_safetensors **out_p)
{
    dt_safetensors *s = dt_alloc(sizeof(*s));
    dt_safetensors **own = dt_alloc_n(n, sizeof(dt_safetensors *));
    if (s == NULL || own == NULL || n == 0) {
        for (uint32_t i = 0; i < n; i++) {
            dt_safetensors_close(part[i]);
        }
        dt_free(s);
        dt_free(own);
        return DT_FAIL(DT_ENOMEM, "%s: out of memory", name);
    }
    memcpy(own, part, n * sizeof(dt_safetensors *));
    s->part = own;
    s->n_parts = n;
    const dt_status st = join_tensors(s, part, n, name);
    if (st != DT_OK) {
        dt_safetensors_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

void dt_safetensors_close(dt_safetensors *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->n && s->n_parts == 0; i++) {
        dt_free((char *)(uintptr_t)s->tensor[i].name);
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        dt_safetensors_close(s->part[i]);
    }
    dt_free(s->part);
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        dt_free(s->pair[i].key);
        dt_free(s->pair[i].text);
    }
    dt_free(s->tensor);
    dt_free(s->pair);
    if (s->is_mapped) {
        dt_fs_unmap(s->bytes, s->n_bytes);
    }
    dt_free(s->name);
    dt_free(s);
}

const char *dt_safetensors_name(const dt_safetensors *s)
{
    return s->name;
}

uint32_t dt_safetensors_count(const dt_safetensors *s)
{
    return s->n;
}

const dt_st_tensor *dt_safetensors_at(const dt_safetensors *s, uint32_t i)
{
    return &s->tensor[i];
}

const dt_st_tensor *dt_safetensors_find(const dt_safetensors *s, const char *name)
{
    const dt_st_tensor key = {.name = name};
    return s->n > 0 ? bsearch(&key, s->tensor, s->n, sizeof(*s->tensor), compare_tensors) : NULL;
}

const char *dt_safetensors_metadata(const dt_safetensors *s, const char *key)
{
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        if (strcmp(s->pair[i].key, key) == 0) {
            return s->pair[i].text;
        }
    }
    return NULL;
}

/* ---- writing ---- */

static int compare_indirect(const void *a, const void *b)
{
    return compare_tensors(*(const dt_st_tensor *const *)a, *(const dt_st_tensor *const *)b);
}

static int compare_for_writing(const void *a, const void *b)
{
    const dt_st_tensor *x = *(const dt_st_tensor *const *)a, *y = *(const dt_st_tensor *const *)b;
    uint32_t bx = dtype_rows[x->dtype].bits, by = dtype_rows[y->dtype].bits;
    return bx != by ? (bx > by ? -1 : 1) : strcmp(x->name, y->name);
}

static dt_status make_header(const dt_st_tensor *const *t, uint32_t n, const char *const (*metadata)[2],
                             uint32_t n_pairs, dt_str *out)
{
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    if (n_pairs > 0) {
        dt_json_obj(&o, "__metadata__");
        for (uint32_t i = 0; i < n_pairs; i++) {
            dt_json_str(&o, metadata[i][0], metadata[i][1]);
        }
        dt_json_end(&o, '}');
    }
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        if (t[i]->n_dims > DT_ST_MAX_DIMS || !shape_bytes(t[i]->dtype, t[i]->dim, t[i]->n_dims, &bytes) ||
            bytes > (size_t)(INT64_MAX - at)) {
            return DT_FAIL(DT_EINVAL, "tensor %s has a shape that cannot be stored", t[i]->name);
        }
        dt_json_obj(&o, t[i]->name);
        dt_json_str(&o, "dtype", dtype_rows[t[i]->dtype].name);
        dt_json_arr(&o, "shape");
        for (uint32_t k = 0; k < t[i]->n_dims; k++) {
            dt_json_i64(&o, NULL, t[i]->dim[k]);
        }
        dt_json_end(&o, ']');
        dt_json_arr(&o, "data_offsets");
        dt_json_i64(&o, NULL, at);
        at += (int64_t)bytes;
        dt_json_i64(&o, NULL, at);
        dt_json_end(&o, ']');
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, '}');
    while (out->bytes % 8 != 0 && !out->failed) {
        dt_str_add(out, " ");
    }
    return dt_str_status(out);
}

dt_status dt_safetensors_write_to(const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2], uint32_t n_pairs,
                                  dt_st_sink *sink, void *user)
{
    const dt_st_tensor **order = dt_alloc_n(n + (size_t)1, sizeof(*order));
    dt_str header = {0};
    dt_status st = DT_OK;
    if (order == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the order of %u tensors", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = &t[i];
    }
    qsort(order, n, sizeof(*order), compare_indirect);
    for (uint32_t i = 1; i < n && st == DT_OK; i++) {
        if (strcmp(order[i - 1]->name, order[i]->name) == 0) {
            st = DT_FAIL(DT_EINVAL, "two tensors are called %s", order[i]->name);
        }
    }
    qsort(order, n, sizeof(*order), compare_for_writing);
    if (st == DT_OK) {
        st = make_header(order, n, metadata, n_pairs, &header);
    }
    if (st == DT_OK) {
        uint8_t length[8];
        for (int i = 0; i < 8; i++) {
            length[i] = (uint8_t)((uint64_t)header.bytes >> 8 * i);
        }
        st = sink(user, length, sizeof(length));
    }
    if (st == DT_OK) {
        st = sink(user, header.text, header.bytes);
    }
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        size_t bytes = 0;
        (void)shape_bytes(order[i]->dtype, order[i]->dim, order[i]->n_dims, &bytes);
        st = bytes > 0 ? sink(user, order[i]->data, bytes) : DT_OK;
    }
    dt_str_fini(&header);
    dt_free(order);
    return st;
}

typedef struct file_sink {
    int fd;
    const char *path;
} file_sink;

static dt_status write_piece(void *user, const void *p, size_t bytes)
{
    const file_sink *f = user;
    return dt_fs_write(f->fd, f->path, p, bytes);
}

dt_status dt_safetensors_write(const char *path, const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2],
                               uint32_t n_pairs)
{
    char temp[PATH_MAX], parent[PATH_MAX];
    if (snprintf(temp, sizeof(temp), "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof(temp)) {
        return DT_FAIL(DT_EINVAL, "path %s is too long (limit %d bytes)", path, PATH_MAX - 1);
    }
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof(parent), "%.*s",
             slash == NULL   ? 1
             : slash == path ? 1
                             : (int)(slash - path),
             slash == NULL ? "." : path);
    dt_fs_try_remove(temp);
    file_sink f = {.path = temp};
    DT_TRY(dt_fs_create(temp, &f.fd));
    dt_status st = dt_safetensors_write_to(t, n, metadata, n_pairs, write_piece, &f);
    if (st == DT_OK) {
        st = dt_fs_sync_close(f.fd, temp);
    } else {
        close(f.fd);
    }
    if (st == DT_OK) {
        st = dt_fs_rename(temp, path);
    }
    if (st != DT_OK) {
        dt_fs_try_remove(temp);
        return st;
    }
    return dt_fs_sync_dir(parent);
}

/* ---- seals ---- */

enum { SEAL_DIGITS = 64 };
static const char no_seal[] = "0000000000000000000000000000000000000000000000000000000000000000";

static dt_status hash_piece(void *user, const void *p, size_t bytes)
{
    dt_sha256_add(user, p, bytes);
    return DT_OK;
}

static void end_seal(dt_sha256 *sha, char out[SEAL_DIGITS + 1])
{
    uint8_t digest[SEAL_DIGITS / 2];
    dt_sha256_end(sha, digest);
    dt_hex(digest, sizeof(digest), out);
}

/* metadata and the seal of the file that they describe, in an array of the caller's to free. */
static dt_status add_seal(const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2], uint32_t n_pairs,
                          char seal[SEAL_DIGITS + 1], const char *(**out_p)[2])
{
    dt_sha256 sha;
    const char *(*all)[2] = dt_alloc_n((size_t)n_pairs + 1, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the metadata of a file");
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        all[i][0] = metadata[i][0];
        all[i][1] = metadata[i][1];
    }
    all[n_pairs][0] = DT_ST_SEAL;
    all[n_pairs][1] = no_seal;
    dt_sha256_init(&sha);
    const dt_status st = dt_safetensors_write_to(t, n, (const char *const(*)[2])all, n_pairs + 1, hash_piece, &sha);
    if (st != DT_OK) {
        dt_free(all);
        return st;
    }
    end_seal(&sha, seal);
    all[n_pairs][1] = seal;
    *out_p = all;
    return DT_OK;
}

dt_status dt_safetensors_write_sealed_to(const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2],
                                         uint32_t n_pairs, dt_st_sink *sink, void *user)
{
    char seal[SEAL_DIGITS + 1];
    const char *(*all)[2] = NULL;
    DT_TRY(add_seal(t, n, metadata, n_pairs, seal, &all));
    const dt_status st = dt_safetensors_write_to(t, n, (const char *const(*)[2])all, n_pairs + 1, sink, user);
    dt_free(all);
    return st;
}

dt_status dt_safetensors_write_sealed(const char *path, const dt_st_tensor *t, uint32_t n,
                                      const char *const (*metadata)[2], uint32_t n_pairs)
{
    char seal[SEAL_DIGITS + 1];
    const char *(*all)[2] = NULL;
    DT_TRY(add_seal(t, n, metadata, n_pairs, seal, &all));
    const dt_status st = dt_safetensors_write(path, t, n, (const char *const(*)[2])all, n_pairs + 1);
    dt_free(all);
    return st;
}

/* Where the digits are, in a header as it was written; NULL: nowhere. */
static const uint8_t *find_seal(const dt_safetensors *s, const char *seal)
{
    char text[sizeof(DT_ST_SEAL) + SEAL_DIGITS + 8];
    const int n = snprintf(text, sizeof(text), "\"" DT_ST_SEAL "\":\"%s\"", seal);
    const uint8_t *at = memmem(s->bytes, s->header_bytes, text, (size_t)n);
    return at != NULL ? at + n - 1 - SEAL_DIGITS : NULL;
}

dt_status dt_safetensors_check_seal(const dt_safetensors *s, bool *has_seal_p)
{
    char is[SEAL_DIGITS + 1];
    const char *seal = dt_safetensors_metadata(s, DT_ST_SEAL);
    *has_seal_p = seal != NULL;
    if (seal == NULL) {
        return DT_OK;
    }
    const uint8_t *at = strlen(seal) == SEAL_DIGITS ? find_seal(s, seal) : NULL;
    if (at == NULL) {
        return DT_FAIL(
            DT_EDATA, "%s: its metadata " DT_ST_SEAL " is not 64 digits as dtrain writes them: it is damaged", s->name);
    }
    const uint8_t *after = at + SEAL_DIGITS;
    dt_sha256 sha;
    dt_sha256_init(&sha);
    dt_sha256_add(&sha, s->bytes, (size_t)(at - s->bytes));
    dt_sha256_add(&sha, no_seal, SEAL_DIGITS);
    dt_sha256_add(&sha, after, s->n_bytes - (size_t)(after - s->bytes));
    end_seal(&sha, is);
    return strcmp(is, seal) == 0 ? DT_OK
                                 : DT_FAIL(DT_EDATA, "%s is damaged: its bytes are not those of its sha256", s->name);
}
