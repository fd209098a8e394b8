/* SPDX-License-Identifier: Apache-2.0
 *
 * See origins.h.
 */
#include <config.h>

#include "config/origins.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

enum { MAX_ENTRIES = 100000, MAX_TEXT = 1024 };

typedef struct dt_origin_entry {
    char *path, *origin;
} dt_origin_entry;

void dt_origins_fini(dt_origins *o)
{
    for (size_t i = 0; i < o->n; i++) {
        dt_free(o->list[i].path);
        dt_free(o->list[i].origin);
    }
    dt_free(o->list);
    *o = (dt_origins){0};
}

static dt_status add(dt_origins *o, const char *path)
{
    if (o->n == MAX_ENTRIES) {
        return DT_FAIL(DT_EDATA, "more than %d values", MAX_ENTRIES);
    }
    if (o->n == o->cap) {
        const size_t cap = o->cap == 0 ? 512 : 2 * o->cap;
        dt_origin_entry *larger = dt_realloc(o->list, cap * sizeof(*larger));
        if (larger == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %zu origins", cap);
        }
        o->list = larger;
        o->cap = cap;
    }
    o->list[o->n] = (dt_origin_entry){.path = dt_strdup(path)};
    return o->list[o->n++].path != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for an origin");
}

/* {"value": ..., "origin": "..."} of the last entry. */
static dt_status read_entry(dt_json *j, dt_origin_entry *e)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_OBJECT) {
        return dt_json_fail(j, "expected an object");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        if (strcmp(t.text, "origin") != 0) {
            DT_TRY(dt_json_skip(j));
            continue;
        }
        DT_TRY(dt_json_next(j, &t));
        if (t.kind != DT_JSON_STRING || t.bytes > MAX_TEXT || e->origin != NULL) {
            return dt_json_fail(j, "expected one text of at most %d bytes", MAX_TEXT);
        }
        e->origin = dt_strdup(t.text);
        if (e->origin == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for an origin");
        }
    }
}

static dt_status read_all(dt_json *j, dt_origins *out)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_OBJECT) {
        return dt_json_fail(j, "expected an object");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        DT_TRY(add(out, t.text));
        DT_TRY(read_entry(j, &out->list[out->n - 1]));
    }
}

dt_status dt_origins_read(const char *json, size_t bytes, dt_origins *out)
{
    dt_json *j = NULL;
    *out = (dt_origins){0};
    DT_TRY(dt_json_open_mem(json, bytes, "config.origin.json", &j));
    const dt_status st = read_all(j, out);
    dt_json_close(j);
    if (st < 0) {
        dt_origins_fini(out);
    }
    return st;
}

const char *dt_origins_find(dt_origins *o, const char *path)
{
    for (size_t i = 0; i < o->n; i++) {
        const size_t at = (o->next + i) % o->n;
        if (strcmp(o->list[at].path, path) == 0) {
            o->next = (at + 1) % o->n;
            return o->list[at].origin;
        }
    }
    return NULL;
}
