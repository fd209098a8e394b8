/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/packed.h"
#include "traffic/text/json_reader.h"
#include "traffic/store/npy.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PIECE_ROWS = 1 << 12, LEVEL_MOST = 19, NAME_BYTES = 32, FORGET_ROWS = 1 << 18 };

const char *const dt_packing_features[] = {[DT_KEPT_F32] = "f32", [DT_KEPT_F16] = "f16", [DT_KEPT_I8] = "i8", NULL};
const char *const dt_packing_codecs[] = {[DT_CODEC_NONE] = "none", [DT_CODEC_ZSTD] = "zstd", NULL};

typedef struct array_spec {
    const char *name;
    uint32_t dtype, width;
} array_spec;

static const array_spec specs[DT_PACKED_ARRAYS] = {[DT_STORE_NODE] = {"node", DT_F32, DT_NODE_FEATURES},
                                                   [DT_STORE_EDGE] = {"edge", DT_F32, DT_EDGE_FEATURES},
                                                   [DT_STORE_EDGE_SRC] = {"edge_src", DT_I32, 1}};

bool dt_packing_is_in_blocks(const dt_packing *p, uint32_t array)
{
    return p->codec != DT_CODEC_NONE || (p->features != DT_KEPT_F32 && array != DT_STORE_EDGE_SRC);
}

static uint32_t packed_kind(const dt_packing *p, uint32_t array)
{
    return array == DT_STORE_EDGE_SRC ? DT_KEPT_I32 : p->features;
}

dt_status dt_packing_check(const dt_packing *p)
{
    if (p->features > DT_KEPT_I8 || p->codec >= DT_CODECS || p->level < 0 || p->level > LEVEL_MOST) {
        return DT_FAIL(DT_EINVAL, "features %" PRIu32 ", codec %" PRIu32 ", level %d: no way to keep a store",
                       p->features, p->codec, p->level);
    }
    if (p->codec == DT_CODEC_ZSTD && !dt_blocks_has_zstd()) {
        return DT_FAIL(
            DT_EUNSUPPORTED,
            "store.compress=zstd: this dtrain was built without zstd; install libzstd (Debian: apt-get install "
            "libzstd-dev) and configure again, or set store.compress=none");
    }
    return DT_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static dt_status array_path(const char *folder, const array_spec *a, const char *ending, dt_str *out)
{
    dt_str_clear(out);
    dt_str_addf(out, "%s/%s.%s", folder, a->name, ending);
    return dt_str_status(out);
}

static dt_status copy_rows(const dt_npy *from, dt_blocks_writer *w, size_t row_bytes)
{
    for (int64_t i = 0; i < from->rows; i += PIECE_ROWS) {
        const int64_t n = from->rows - i < PIECE_ROWS ? from->rows - i : PIECE_ROWS;
        DT_TRY(dt_blocks_append(w, (const unsigned char *)from->data + (size_t)i * row_bytes, n));
        if (i % FORGET_ROWS == 0) {
            dt_npy_release_pages(from);
        }
    }
    return DT_OK;
}

static dt_status write_array(const char *folder, uint32_t array, const dt_packing *how, const dt_packed_range *range,
                             double *error)
{
    const array_spec *a = &specs[array];
    dt_str plain = {0}, blocks = {0};
    dt_npy from = {0};
    dt_blocks_writer *w = NULL;
    dt_blocks_desc d = {.kind = packed_kind(how, array),
                        .codec = how->codec,
                        .width = a->width,
                        .level = how->level > 0 ? how->level : DT_PACKING_LEVEL};
    for (uint32_t k = 0; k < a->width && range != NULL; k++) {
        d.column[k] = dt_block_column_of(d.kind, range[k].min, range[k].max);
    }
    dt_status st = array_path(folder, a, "npy", &plain);
    if (st == DT_OK) {
        st = array_path(folder, a, "blocks", &blocks);
    }
    if (st == DT_OK) {
        st = dt_npy_map(dt_str_text(&plain), a->dtype, a->width > 1 ? a->width : 0, &from);
    }
    if (st == DT_OK) {
        st = dt_blocks_create(dt_str_text(&blocks), &d, &w);
    }
    if (st == DT_OK) {
        st = copy_rows(&from, w, 4 * (size_t)a->width);
    }
    for (uint32_t k = 0; k < a->width && error != NULL && st == DT_OK; k++) {
        error[k] = dt_blocks_error(w, k);
    }
    if (st == DT_OK) {
        st = dt_blocks_close(w);
    } else {
        dt_blocks_abandon(w);
    }
    dt_npy_unmap(&from);
    if (st == DT_OK) {
        st = dt_fs_remove_tree(dt_str_text(&plain));
    }
    dt_str_fini(&plain);
    dt_str_fini(&blocks);
    return st;
}

dt_status dt_packed_write(const char *folder, const dt_packing *how, const dt_packed_range *node,
                          const dt_packed_range *edge, dt_packed_errors *out_p)
{
    dt_packed_errors e = {.node = {0}};
    if (dt_packing_is_in_blocks(how, DT_STORE_NODE)) {
        DT_TRY(write_array(folder, DT_STORE_NODE, how, node, e.node));
    }
    if (dt_packing_is_in_blocks(how, DT_STORE_EDGE)) {
        DT_TRY(write_array(folder, DT_STORE_EDGE, how, edge, e.edge));
    }
    if (dt_packing_is_in_blocks(how, DT_STORE_EDGE_SRC)) {
        DT_TRY(write_array(folder, DT_STORE_EDGE_SRC, how, NULL, NULL));
    }
    *out_p = e;
    return DT_OK;
}

static void write_errors(dt_json_out *o, const char *key, const double *error, int n)
{
    dt_json_arr(o, key);
    for (int d = 0; d < n; d++) {
        dt_json_f64(o, NULL, error[d]);
    }
    dt_json_end(o, ']');
}

void dt_packed_describe(dt_json_out *o, const dt_packing *how, const dt_packed_errors *errors)
{
    if (!dt_packing_is_in_blocks(how, DT_STORE_NODE)) {
        return;
    }
    dt_json_str(o, "features", dt_packing_features[how->features]);
    dt_json_str(o, "compress", dt_packing_codecs[how->codec]);
    dt_json_obj(o, "errors");
    write_errors(o, "node", errors->node, DT_NODE_FEATURES);
    write_errors(o, "edge", errors->edge, DT_EDGE_FEATURES);
    dt_json_end(o, '}');
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status read_word(dt_json *j, const char *key, const char *const *words, uint32_t *out_p)
{
    char word[NAME_BYTES];
    DT_TRY(dt_expect_str(j, key, word, sizeof(word)));
    for (uint32_t i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out_p = i;
            return DT_OK;
        }
    }
    return dt_json_fail(j, "%s \"%s\" is not known", key, word);
}

static dt_status read_errors_of(dt_json *j, const char *what, double *out, int n)
{
    dt_status st;
    double x = 0;
    int i = 0;
    DT_TRY(dt_expect_array(j, what));
    for (; (st = dt_expect_next_f64(j, what, &x)) == DT_OK; i++) {
        if (i == n || !(x >= 0)) {
            return dt_json_fail(j, "errors.%s: %g at %d is not an error of %d features", what, x, i, n);
        }
        out[i] = x;
    }
    DT_TRY_DONE(st);
    return i == n ? DT_OK : dt_json_fail(j, "errors.%s has %d features, expected %d", what, i, n);
}

static dt_status read_errors(dt_json *j, dt_packed_errors *e)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "errors"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        if (strcmp(key, "node") == 0) {
            DT_TRY(read_errors_of(j, key, e->node, DT_NODE_FEATURES));
        } else if (strcmp(key, "edge") == 0) {
            DT_TRY(read_errors_of(j, key, e->edge, DT_EDGE_FEATURES));
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

dt_status dt_packed_read_member(dt_packed *p, dt_json *j, const char *key, bool *is_p)
{
    *is_p = true;
    if (strcmp(key, "features") == 0) {
        return read_word(j, key, dt_packing_features, &p->how.features);
    }
    if (strcmp(key, "compress") == 0) {
        return read_word(j, key, dt_packing_codecs, &p->how.codec);
    }
    if (strcmp(key, "errors") == 0) {
        return read_errors(j, &p->errors);
    }
    *is_p = false;
    return DT_OK;
}

static dt_status open_array(dt_packed *p, uint32_t array, const char *path, int64_t rows)
{
    dt_blocks *b = &p->array[array];
    const uint32_t kind = packed_kind(&p->how, array);
    const dt_status st = dt_blocks_map(path, b);
    if (st == DT_ENOTFOUND) {
        return DT_FAIL(DT_EDATA, "%s is missing from the store", path);
    }
    DT_TRY(st);
    if (b->kind != kind || b->codec != p->how.codec || b->width != specs[array].width || b->rows != rows) {
        return DT_FAIL(DT_EDATA,
                       "%s: %" PRId64 " rows of %" PRIu32 " values, kind %" PRIu32 ", codec %" PRIu32
                       "; store.json announces %" PRId64 " of %" PRIu32 ", kind %" PRIu32 ", codec %" PRIu32,
                       path, b->rows, b->width, b->kind, b->codec, rows, specs[array].width, kind, p->how.codec);
    }
    return DT_OK;
}

dt_status dt_packed_open(dt_packed *p, const char *folder, const int64_t rows[DT_PACKED_ARRAYS], uint64_t cache_bytes)
{
    dt_str path = {0};
    dt_status st =
        dt_packing_is_in_blocks(&p->how, DT_STORE_NODE) ? dt_block_cache_create(cache_bytes, &p->cache) : DT_OK;
    for (uint32_t a = 0; a < DT_PACKED_ARRAYS && st == DT_OK; a++) {
        if (!dt_packing_is_in_blocks(&p->how, a)) {
            continue;
        }
        st = array_path(folder, &specs[a], "blocks", &path);
        if (st == DT_OK) {
            st = open_array(p, a, dt_str_text(&path), rows[a]);
        }
    }
    dt_str_fini(&path);
    return st;
}

dt_status dt_packed_read(const dt_packed *p, uint32_t array, int64_t from, int64_t n, void *out)
{
    return dt_block_cache_read(p->cache, &p->array[array], array, specs[array].name, from, n, out);
}

static dt_status check_array(const dt_packed *p, const char *folder, uint32_t array, const dt_packed_range *range,
                             const double *error, float *room)
{
    const dt_blocks *b = &p->array[array];
    const char *name = specs[array].name;
    for (uint32_t d = 0; d < b->width; d++) {
        const double bound = dt_block_column_bound(b->kind, &b->column[d], range[d].min, range[d].max);
        if (!(error[d] <= bound * (1 + 1e-6))) {
            return DT_FAIL(DT_EDATA,
                           "%s/%s.blocks: column %" PRIu32 " is said to be off by %g; so kept it is by %g at most",
                           folder, name, d, error[d], bound);
        }
    }
    for (int64_t i = 0; i < b->rows; i += PIECE_ROWS) {
        const int64_t n = b->rows - i < PIECE_ROWS ? b->rows - i : PIECE_ROWS;
        DT_TRY(dt_packed_read(p, array, i, n, room));
        for (int64_t k = 0; k < n * b->width; k++) {
            const int64_t d = k % b->width;
            const double x = (double)room[k];
            if (!(x >= range[d].min - error[d] && x <= range[d].max + error[d])) {
                return DT_FAIL(DT_EDATA, "%s/%s.blocks: value %" PRId64 " is %g, outside [%g, %g]", folder, name,
                               i * b->width + k, x, range[d].min - error[d], range[d].max + error[d]);
            }
        }
        if (i % FORGET_ROWS == 0) {
            dt_blocks_release_pages(b);
        }
    }
    return DT_OK;
}

dt_status dt_packed_check(const dt_packed *p, const char *folder, const dt_packed_range *node,
                          const dt_packed_range *edge)
{
    float *room = dt_alloc_n(PIECE_ROWS, DT_BLOCKS_WIDTH_MAX * sizeof(*room));
    dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to check %s", folder) : DT_OK;
    if (st == DT_OK && dt_packing_is_in_blocks(&p->how, DT_STORE_NODE)) {
        st = check_array(p, folder, DT_STORE_NODE, node, p->errors.node, room);
    }
    if (st == DT_OK && dt_packing_is_in_blocks(&p->how, DT_STORE_EDGE)) {
        st = check_array(p, folder, DT_STORE_EDGE, edge, p->errors.edge, room);
    }
    dt_free(room);
    return st;
}

void dt_packed_fini(dt_packed *p)
{
    for (uint32_t a = 0; a < DT_PACKED_ARRAYS; a++) {
        dt_blocks_unmap(&p->array[a]);
    }
    dt_block_cache_destroy(p->cache);
    *p = (dt_packed){.cache = NULL};
}
