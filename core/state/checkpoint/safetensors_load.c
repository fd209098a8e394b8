/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of a safetensors file into place, by name. See safetensors.h.
 */
#include <config.h>

#include "state/checkpoint/safetensors.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static void append_shape(dt_str *out, const int64_t *dim, uint32_t n_dims)
{
    dt_str_add(out, "[");
    for (uint32_t i = 0; i < n_dims; i++) {
        dt_str_addf(out, "%s%lld", i > 0 ? "," : "", (long long)dim[i]);
    }
    dt_str_add(out, "]");
}

/* The first few complaints in full, then their number. */
typedef struct complaints {
    dt_str text;
    uint32_t n;
} complaints;

static bool has_room_to_report(complaints *c)
{
    if (c->n++ >= 4) {
        return false;
    }
    dt_str_add(&c->text, c->n > 1 ? "; " : "");
    return true;
}

static void compare_tensor(complaints *c, const dt_ckpt_tensor *want, const dt_st_tensor *have)
{
    bool is_same = have->n_dims == want->n_dims;
    for (uint32_t i = 0; is_same && i < want->n_dims; i++) {
        is_same = have->dim[i] == want->dim[i];
    }
    if (is_same && have->dtype == DT_ST_F32) {
        return;
    }
    if (!has_room_to_report(c)) {
        return;
    }
    dt_str_addf(&c->text, "%s is ", want->name);
    if (!is_same) {
        append_shape(&c->text, have->dim, have->n_dims);
        dt_str_add(&c->text, " in the file, the model has ");
        append_shape(&c->text, want->dim, want->n_dims);
    } else {
        dt_str_addf(&c->text, "%s in the file, expected F32", dt_st_dtype_name(have->dtype));
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Tensors of the file that the caller does not need. */
static dt_status report_extra_tensors(const dt_safetensors *s, const dt_ckpt_tensor *want, uint32_t n, complaints *c)
{
    const char **names = dt_alloc_n(n + (size_t)1, sizeof(*names));
    if (names == NULL) {
        return DT_FAIL(DT_ENOMEM, "%s: out of memory for the names of %u tensors", dt_safetensors_name(s), n);
    }
    for (uint32_t i = 0; i < n; i++) {
        names[i] = want[i].name;
    }
    qsort(names, n, sizeof(*names), compare_names);
    for (uint32_t i = 0; i < dt_safetensors_count(s); i++) {
        const dt_st_tensor *t = dt_safetensors_at(s, i);
        const char *name = t->name;
        if (bsearch(&name, names, n, sizeof(*names), compare_names) == NULL && has_room_to_report(c)) {
            dt_str_addf(&c->text, "%s ", name);
            append_shape(&c->text, t->dim, t->n_dims);
            dt_str_add(&c->text, " is in the file, the model has no such tensor");
        }
    }
    dt_free(names);
    return DT_OK;
}

dt_status dt_safetensors_load(const dt_safetensors *s, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags)
{
    complaints c = {.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        const dt_st_tensor *have = dt_safetensors_find(s, want[i].name);
        if (have != NULL) {
            compare_tensor(&c, &want[i], have);
        } else if (has_room_to_report(&c)) {
            dt_str_addf(&c.text, "%s ", want[i].name);
            append_shape(&c.text, want[i].dim, want[i].n_dims);
            dt_str_add(&c.text, " is not in the file");
        }
    }
    dt_status st = DT_OK;
    if ((flags & DT_LOAD_EXTRA_OK) == 0) {
        st = report_extra_tensors(s, want, n, &c);
    }
    if (st == DT_OK && c.n > 0) {
        if (c.n > 4) {
            dt_str_addf(&c.text, "; and %u more", c.n - 4);
        }
        st = DT_FAIL(DT_ESHAPE, "%s: tensors of another model: %s", dt_safetensors_name(s), dt_str_text(&c.text));
    }
    dt_str_fini(&c.text);
    DT_TRY(st);
    for (uint32_t i = 0; i < n; i++) {
        const dt_st_tensor *have = dt_safetensors_find(s, want[i].name);
        if (have->bytes > 0) {
            memcpy(want[i].data, have->data, have->bytes);
        }
    }
    return DT_OK;
}
