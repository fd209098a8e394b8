/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/flat.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { MAX_BYTES = 16 << 20, MAX_DEPTH = 32 };

typedef struct reader {
    dt_json *json;
    dt_flat *out;
    dt_str path;
    size_t end[MAX_DEPTH];    /* bytes of the path that belong to the levels above */
    int64_t index[MAX_DEPTH]; /* of the next element, -1 in objects */
    int depth;
} reader;

static dt_status add_item(reader *r, const dt_json_token *t)
{
    static const char *const words[] = {[DT_JSON_TRUE] = "true", [DT_JSON_FALSE] = "false", [DT_JSON_NULL] = "null"};
    dt_flat *f = r->out;
    if (f->n == f->cap) {
        const uint32_t cap = f->cap > 0 ? 2 * f->cap : 64;
        dt_flat_item *grown = dt_realloc(f->item, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u values", cap);
        }
        f->item = grown;
        f->cap = cap;
    }
    const bool has_text = t->kind == DT_JSON_STRING || t->kind == DT_JSON_NUMBER;
    dt_flat_item item = {.path = dt_strdup(dt_str_text(&r->path)),
                         .text = dt_strdup(has_text ? t->text : words[t->kind]),
                         .kind = t->kind,
                         .number = t->kind == DT_JSON_NUMBER ? t->number : (double)NAN};
    if (item.path == NULL || item.text == NULL) {
        dt_free(item.path);
        dt_free(item.text);
        return DT_FAIL(DT_ENOMEM, "out of memory for %u values", f->n + 1);
    }
    f->item[f->n++] = item;
    return DT_OK;
}

/* The path back to the open object or array, and the name of what follows it. */
static void append_path_name(reader *r, const char *key)
{
    dt_str *p = &r->path;
    p->bytes = r->end[r->depth];
    if (p->text != NULL) {
        p->text[p->bytes] = '\0';
    }
    if (key != NULL) {
        dt_str_addf(p, "%s%s", p->bytes > 0 ? "/" : "", key);
    } else if (r->depth > 0 && r->index[r->depth] >= 0) {
        dt_str_addf(p, "%s%lld", p->bytes > 0 ? "/" : "", (long long)r->index[r->depth]++);
    }
}

static dt_status read_token(reader *r, const dt_json_token *t)
{
    const bool is_end = t->kind == DT_JSON_OBJECT_END || t->kind == DT_JSON_ARRAY_END;
    const bool is_element = !is_end && t->kind != DT_JSON_KEY && r->depth > 0 && r->index[r->depth] >= 0;
    if (t->kind == DT_JSON_KEY) {
        append_path_name(r, t->text);
    } else if (is_element) {
        append_path_name(r, NULL);
    }
    if (t->kind == DT_JSON_OBJECT || t->kind == DT_JSON_ARRAY) {
        if (++r->depth == MAX_DEPTH) {
            return dt_json_fail(r->json, "more than %d levels", MAX_DEPTH - 1);
        }
        r->end[r->depth] = r->path.bytes;
        r->index[r->depth] = t->kind == DT_JSON_ARRAY ? 0 : -1;
    } else if (is_end) {
        r->depth--;
    } else if (t->kind != DT_JSON_KEY) {
        return add_item(r, t);
    }
    return DT_OK;
}

dt_status dt_flat_read(const char *path, dt_flat *out)
{
    reader r = {.out = out};
    char *text = NULL;
    size_t bytes = 0;
    dt_json_token t = {0};
    *out = (dt_flat){0};
    DT_TRY(dt_fs_read_all(path, MAX_BYTES, &text, &bytes));
    dt_status st = dt_json_open_mem(text, bytes, path, &r.json);
    while (st == DT_OK && (st = dt_json_next(r.json, &t)) == DT_OK && t.kind != DT_JSON_END) {
        st = read_token(&r, &t);
        if (st == DT_OK) {
            st = dt_str_status(&r.path);
        }
    }
    dt_json_close(r.json);
    dt_str_fini(&r.path);
    dt_free(text);
    if (st < 0) {
        dt_flat_fini(out);
    }
    return st;
}

void dt_flat_fini(dt_flat *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        dt_free(f->item[i].path);
        dt_free(f->item[i].text);
    }
    dt_free(f->item);
    *f = (dt_flat){0};
}

const dt_flat_item *dt_flat_find(const dt_flat *f, const char *path)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (strcmp(f->item[i].path, path) == 0) {
            return &f->item[i];
        }
    }
    return NULL;
}

const char *dt_flat_text(const dt_flat *f, const char *path)
{
    const dt_flat_item *i = dt_flat_find(f, path);
    return i != NULL ? i->text : "";
}

double dt_flat_number(const dt_flat *f, const char *path, double other)
{
    const dt_flat_item *i = dt_flat_find(f, path);
    return i != NULL && i->kind == DT_JSON_NUMBER ? i->number : other;
}
