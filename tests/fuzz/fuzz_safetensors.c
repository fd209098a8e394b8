/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights: a safetensors file. What was accepted lies inside the file, is found by name, and comes out again when it
 * is written.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "state/checkpoint/safetensors.h"

#include <string.h>

static dt_status take(void *user, const void *p, size_t bytes)
{
    dt_str_add_n(user, p, bytes);
    return dt_str_status(user);
}

/* What the writer makes of it is a file that says the same. */
static void check_written(const dt_safetensors *s)
{
    const uint32_t n = dt_safetensors_count(s);
    dt_st_tensor *t = dt_alloc_n(n + (size_t)1, sizeof(*t));
    dt_str file = {0};
    dt_safetensors *again = NULL;
    fuzz_hold(t != NULL);
    for (uint32_t i = 0; i < n; i++) {
        t[i] = *dt_safetensors_at(s, i);
    }
    fuzz_hold(dt_safetensors_write_to(t, n, NULL, 0, take, &file) == DT_OK);
    fuzz_hold(dt_safetensors_open_mem(dt_str_text(&file), file.bytes, "again", &again) == DT_OK);
    fuzz_hold(dt_safetensors_count(again) == n);
    for (uint32_t i = 0; i < n; i++) {
        const dt_st_tensor *a = &t[i], *b = dt_safetensors_at(again, i);
        fuzz_hold(strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->n_dims == b->n_dims);
        fuzz_hold(memcmp(a->dim, b->dim, a->n_dims * sizeof(a->dim[0])) == 0);
        fuzz_hold(a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0);
    }
    dt_safetensors_close(again);
    dt_str_fini(&file);
    dt_free(t);
}

DT_FUZZ(safetensors)
{
    dt_safetensors *s = NULL;
    fuzz_begin();
    if (dt_safetensors_open_mem(bytes, n, "input", &s) == DT_OK) {
        size_t data_bytes = 0;
        for (uint32_t i = 0; i < dt_safetensors_count(s); i++) {
            const dt_st_tensor *t = dt_safetensors_at(s, i);
            const uint8_t *p = t->data;
            fuzz_hold(p >= bytes + 8 && p <= bytes + n && t->bytes <= (size_t)(bytes + n - p));
            fuzz_hold(dt_safetensors_find(s, t->name) == t);
            fuzz_touch(t->data, t->bytes);
            data_bytes += t->bytes;
        }
        fuzz_hold(data_bytes < n);
        const char *format = dt_safetensors_metadata(s, "format");
        if (format != NULL) {
            fuzz_touch_text(format);
        }
        check_written(s);
        dt_safetensors_close(s);
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
