/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/join.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

enum { ALIGN = 64, INDEX_SHIFT = 8 };

typedef struct layout {  /* of a field: outer blocks of rows of inner bytes */
    uint32_t symbol;     /* whose rows */
    int64_t plus;        /* 1: row pointers */
    size_t outer, inner; /* inner: bytes */
} layout;

static layout field_layout(const dt_samples *s, uint32_t f)
{
    const dt_field_shape *p = &s->shape[f];
    layout l = {.outer = 1, .inner = p->item_bytes};
    bool is_after_change = false;
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->symbol[i] >= 0) {
            l.symbol = (uint32_t)p->symbol[i];
            l.plus = p->number[i];
            is_after_change = true;
        } else if (is_after_change) {
            l.inner *= (size_t)p->number[i];
        } else {
            l.outer *= (size_t)p->number[i];
        }
    }
    return l;
}

/* Which rows its integers count: 0: "B", k: symbol k - 1; -1: none. */
static int64_t index_symbol(const dt_port *p)
{
    return (int64_t)(p->flags >> INDEX_SHIFT) - 1;
}

static bool is_joinable(const dt_samples *s, uint32_t f)
{
    const dt_port *p = &s->field[f];
    uint32_t ragged = 0;
    bool has_pointers = false;
    for (uint32_t i = 0; i < s->shape[f].rank; i++) {
        ragged += s->shape[f].symbol[i] >= 0;
        has_pointers = has_pointers || (s->shape[f].symbol[i] >= 0 && s->shape[f].number[i] == 1);
    }
    if (ragged != 1 || index_symbol(p) > (int64_t)s->n_symbols || (index_symbol(p) >= 0 && p->dtype != DT_I32)) {
        return false;
    }
    if (has_pointers) { /* a vector: blocks of them would each begin again */
        return index_symbol(p) >= 0 && s->shape[f].rank == 1;
    }
    return p->dtype != DT_I32 || index_symbol(p) >= 0 || (p->flags & DT_PORT_PLAIN) != 0;
}

const char *dt_join_find_obstacle(const dt_samples *s)
{
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (!is_joinable(s, f)) {
            return s->field[f].name;
        }
    }
    return NULL;
}

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t field_bytes(const layout *l, const int64_t *size)
{
    return l->outer * (size_t)(size[l->symbol] + l->plus) * l->inner;
}

/* Of the fields whose rows would not follow each other. */
static size_t workspace_bytes(const dt_samples *s, const int64_t *size)
{
    size_t bytes = 0;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        const layout l = field_layout(s, f);
        if (l.outer > 1) {
            bytes += align_up(field_bytes(&l, size));
        }
    }
    return bytes;
}

/* Row pointers overlap in one item, on which both reads agree once the later one is raised. */
static void find_destinations(const dt_join *j, const int64_t *size, void *const *out, void **to)
{
    char *at = j->room;
    for (uint32_t f = 0; f < j->like->n_fields; f++) {
        const layout l = field_layout(j->like, f);
        if (l.outer > 1) {
            to[f] = at;
            at += align_up(field_bytes(&l, size));
        } else {
            to[f] = (char *)out[f] + (size_t)j->before[l.symbol] * l.inner;
        }
    }
}

/* What is negative counts nothing. */
static void offset_indices(int32_t *value, size_t n, int64_t by)
{
    for (size_t i = 0; i < n; i++) {
        if (value[i] >= 0) {
            value[i] += (int32_t)by;
        }
    }
}

static void place_blocks(const dt_join *j, const int64_t *size, void *const *out, void *const *to)
{
    const dt_samples *s = j->like;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        const layout l = field_layout(s, f);
        const int64_t rows_of = index_symbol(&s->field[f]);
        const size_t block = (size_t)(size[l.symbol] + l.plus) * l.inner;
        if (rows_of >= 0) {
            const uint32_t k = rows_of == 0 ? s->n_symbols : (uint32_t)rows_of - 1;
            offset_indices(to[f], field_bytes(&l, size) / sizeof(int32_t), j->before[k]);
        }
        for (size_t o = 0; l.outer > 1 && block > 0 && o < l.outer; o++) { /* nothing has no place to be copied from */
            char *row = (char *)out[f] + (o * (size_t)j->total[l.symbol] + (size_t)j->before[l.symbol]) * l.inner;
            memcpy(row, (const char *)to[f] + o * block, block);
        }
    }
}

void dt_join_init(dt_join *j, const dt_samples *like, const int64_t *total)
{
    *j = (dt_join){.like = like};
    memcpy(j->total, total, (like->n_symbols + 1) * sizeof(*total));
}

void dt_join_fini(dt_join *j)
{
    dt_free(j->room);
    j->room = NULL;
}

static dt_status reserve_workspace(dt_join *j, size_t bytes)
{
    if (bytes <= j->room_bytes) {
        return DT_OK;
    }
    dt_free(j->room);
    j->room = dt_alloc(bytes);
    j->room_bytes = j->room != NULL ? bytes : 0;
    return j->room != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for %zu bytes of samples", bytes);
}

dt_status dt_join_append_read(dt_join *j, const dt_data_ops *ops, void *self, const uint64_t *index,
                              const uint64_t *key, uint32_t n, void *const *out)
{
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    void *to[DT_SAMPLES_MAX_FIELDS];
    DT_TRY(ops->sizes(self, index, n, size));
    size[j->like->n_symbols] = n;
    DT_TRY(reserve_workspace(j, workspace_bytes(j->like, size)));
    find_destinations(j, size, out, to);
    DT_TRY(ops->read(self, index, key, n, to));
    place_blocks(j, size, out, to);
    for (uint32_t k = 0; k <= j->like->n_symbols; k++) {
        j->before[k] += size[k];
    }
    return DT_OK;
}
