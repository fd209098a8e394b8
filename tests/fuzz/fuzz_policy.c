/* SPDX-License-Identifier: Apache-2.0
 *
 * An exported policy: the whole file; or, where the input begins with {, what its metadata say of graph, inputs and
 * actions, in addition to tensors that stay the same. What is accepted acts, on as many rows as it says and on fewer.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "state/checkpoint/safetensors.h"
#include "export/policy_load.h"
#include "engine/tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 32, MOST_ARRAYS = 32, MOST_SYMBOLS = 8, WHY = 512 };

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Values of one row, and how many rows beyond the live ones of symbol k (-1: places) there are. */
static size_t row_of(const dt_policy_info *x, const dt_port *port, int *k_p, int64_t *plus_p)
{
    size_t values = 1;
    const char *word = port->dims;
    *k_p = -1;
    *plus_p = 0;
    while (*word != '\0') {
        const size_t bytes = strcspn(word, " ");
        if (*word >= '0' && *word <= '9') {
            fuzz_hold(dt_mul_size(values, strtoull(word, NULL, 10), &values));
        } else if (word[0] != 'A' || (bytes > 1 && word[1] != '+')) {
            const size_t name = strcspn(word, " +");
            for (uint32_t i = 0; i < x->n_symbols; i++) {
                if (strlen(x->symbols[i].name) == name && memcmp(x->symbols[i].name, word, name) == 0) {
                    *k_p = (int)i;
                }
            }
            fuzz_hold(*k_p >= 0);
        }
        *plus_p += memchr(word, '+', bytes) != NULL;
        word += bytes + (word[bytes] == ' ');
    }
    return values;
}

/* One step with so many rows of everything; the arrays have exactly the size that the description says. */
static void act(dt_policy *p, const dt_policy_info *x, int64_t rows)
{
    void *array[MOST_ARRAYS];
    int64_t size[MOST_SYMBOLS];
    char why[WHY];
    const uint32_t places = rows < x->places ? (uint32_t)rows : x->places;
    for (uint32_t i = 0; i < x->n_symbols; i++) {
        size[i] = rows < x->symbols[i].size ? rows : x->symbols[i].size;
    }
    for (uint32_t i = 0; i < x->n_obs; i++) {
        int k = -1;
        int64_t plus = 0;
        const size_t values = row_of(x, &x->obs[i], &k, &plus);
        const int64_t live = (k >= 0 ? size[k] : places) + plus;
        const size_t bytes = (size_t)live * values * dt_dtype_bytes(x->obs[i].dtype);
        array[i] = dt_alloc(bytes);
        fuzz_hold(array[i] != NULL);
        for (int64_t r = 0; plus > 0 && r < live && x->obs[i].dtype == DT_I32; r++) { /* all edges are the last row's */
            ((int32_t *)array[i])[r] = r + 1 < live ? 0 : (int32_t)rows;
        }
    }
    int32_t *act_i = dt_alloc_n(places, x->n_heads * sizeof(*act_i));
    float *act_f = dt_alloc_n(places, x->n_continuous * sizeof(*act_f));
    uint8_t *mask = dt_alloc_n(places, x->n_choices), *report = dt_alloc(places);
    fuzz_hold(act_i != NULL && act_f != NULL && mask != NULL && report != NULL);
    memset(mask, 1, (size_t)places * x->n_choices);
    const dt_policy_io io = {.struct_size = sizeof(io),
                             .n_places = places,
                             .obs = (const void *const *)array,
                             .size = size,
                             .mask = mask,
                             .act_i = act_i,
                             .act_f = act_f,
                             .report = report};
    for (int i = 0; i < 2; i++) {
        why[0] = '\0';
        const dt_status st = dt_policy_act(p, &io, why, sizeof(why));
        fuzz_hold(st == DT_OK || *why != '\0');
        for (uint32_t k = 0; st == DT_OK && k < places * x->n_heads; k++) {
            fuzz_hold(act_i[k] >= 0 && act_i[k] < x->choices[k % x->n_heads]);
        }
        for (uint32_t k = 0; st == DT_OK && k < places * x->n_continuous; k++) {
            fuzz_hold(act_f[k] >= x->low[k % x->n_continuous] && act_f[k] <= x->high[k % x->n_continuous]);
        }
    }
    for (uint32_t i = 0; i < x->n_obs; i++) {
        dt_free(array[i]);
    }
    dt_free(act_i);
    dt_free(act_f);
    dt_free(mask);
    dt_free(report);
}

static void use(dt_policy *p)
{
    const dt_policy_info *x = dt_policy_describe(p);
    uint64_t most = x->places;
    for (uint32_t i = 0; i < x->n_symbols; i++) {
        fuzz_touch_text(x->symbols[i].name);
        most = (uint64_t)x->symbols[i].size > most ? (uint64_t)x->symbols[i].size : most;
    }
    fuzz_touch_text(x->phase);
    fuzz_touch_text(x->environment);
    fuzz_hold(x->n_obs <= MOST_ARRAYS && x->n_symbols <= MOST_SYMBOLS);
    if (most > MOST_ROWS || x->n_choices > 4096 || x->window > 64) {
        return; /* it may; but not 20 million times */
    }
    act(p, x, (int64_t)most);
    act(p, x, 1);
    dt_policy_reset(p);
    act(p, x, 0);
    fuzz_accepted();
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static dt_status take(void *user, const void *p, size_t bytes)
{
    dt_str_add_n(user, p, bytes);
    return dt_str_status(user);
}

static void make_file(const char *text, dt_str *out)
{
    static const float w[] = {1, 0, 0, 1, 1, 1}, b[] = {0, 0, 0}, to[] = {1, 0}, from[] = {0, 1}, low[] = {-1},
                       high[] = {2};
    const char *const pair[][2] = {{"dtrain.export", text}};
    const dt_st_tensor t[] = {{.name = "controller.w", .dtype = DT_ST_F32, .n_dims = 2, .dim = {3, 2}, .data = w},
                              {.name = "controller.b", .dtype = DT_ST_F32, .n_dims = 1, .dim = {3}, .data = b},
                              {.name = "graph.to", .dtype = DT_ST_F32, .n_dims = 1, .dim = {2}, .data = to},
                              {.name = "graph.from", .dtype = DT_ST_F32, .n_dims = 1, .dim = {2}, .data = from},
                              {.name = "actions.low", .dtype = DT_ST_F32, .n_dims = 1, .dim = {1}, .data = low},
                              {.name = "actions.high", .dtype = DT_ST_F32, .n_dims = 1, .dim = {1}, .data = high}};
    fuzz_hold(dt_safetensors_write_sealed_to(t, sizeof(t) / sizeof(t[0]), pair, 1, take, out) == DT_OK);
}

DT_FUZZ(policy)
{
    dt_policy *p = NULL;
    dt_str file = {0};
    char why[WHY] = "";
    size_t at = 0;
    fuzz_begin();
    if (n > 0 && bytes[0] == '{') {
        make_file(fuzz_text(bytes, n, &at), &file);
        bytes = (const uint8_t *)dt_str_text(&file);
        n = file.bytes;
    }
    if (dt_policy_load_bytes(bytes, n, "input", &p, why, sizeof(why)) == DT_OK) {
        use(p);
        dt_policy_free(p);
    } else {
        fuzz_hold(*why != '\0');
    }
    dt_str_fini(&file);
    fuzz_end();
    return 0;
}
