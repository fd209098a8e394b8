/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/hdf5/hdf5_roads.h"
#include "traffic/store/store_roads.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>

typedef struct spec {
    const char *name;
    uint32_t dtype;
    int64_t width;
    size_t count_at; /* of how many there are, in dt_store_counts */
    int64_t plus;
} spec;

static const spec specs[N_ARRAYS] = {
#define DT_ARRAY(name, dtype, width, count, plus) {#name, dtype, width, offsetof(dt_store_counts, count), plus},
#include "traffic/store/arrays.def"
#undef DT_ARRAY
};

static int64_t array_rows(const spec *a, const dt_store_counts *n)
{
    return *(const int64_t *)(const void *)((const char *)n + a->count_at) + a->plus;
}

static dt_store_counts view_counts(const dt_store_view *v)
{
    return (dt_store_counts){.scenes = v->n_scenes,
                             .maps = v->n_maps,
                             .lanes = v->n_lanes,
                             .lane_points = v->n_lane_points,
                             .lane_links = v->n_lane_links};
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static const void *array_data(const dt_store_view *v, int a)
{
    const void *const data[N_ARRAYS] = {
        [A_scene_map] = v->scene_map,   [A_map_lane] = v->map_lane,     [A_lane_point] = v->lane_point,
        [A_lane_xy] = v->lane_xy,       [A_lane_width] = v->lane_width, [A_lane_kind] = v->lane_kind,
        [A_lane_limit] = v->lane_limit, [A_lane_id] = v->lane_id,       [A_lane_next_ptr] = v->lane_next_ptr,
        [A_lane_next] = v->lane_next,   [A_lane_left] = v->lane_left,   [A_lane_right] = v->lane_right};
    return data[a];
}

dt_status dt_hdf5_roads_write(const dt_hdf5_ops *ops, dt_hdf5 *f, const dt_store_view *v, int64_t chunk_rows, int gzip)
{
    const dt_store_counts n = view_counts(v);
    if (v->n_maps == 0) {
        return DT_OK;
    }
    for (int a = A_scene_map; a <= A_lane_right; a++) {
        const int64_t rows = array_rows(&specs[a], &n);
        if (rows > 0) {
            DT_TRY(ops->make(f, specs[a].name, specs[a].dtype, specs[a].width, rows, chunk_rows, gzip));
            DT_TRY(ops->write(f, specs[a].name, specs[a].dtype, specs[a].width, 0, rows, array_data(v, a)));
        }
    }
    return ops->put_texts(f, "map", v->map, v->n_maps);
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static size_t value_bytes(uint32_t dtype)
{
    return dtype == DT_F64 || dtype == DT_I64 ? 8 : 4;
}

/* How many lanes, points and links there are, by the arrays that have one of each. */
static dt_status find_counts(const dt_hdf5_ops *ops, dt_hdf5 *f, dt_store_counts *n)
{
    DT_TRY(ops->find(f, "lane_kind", DT_I32, 0, &n->lanes));
    DT_TRY(ops->find(f, "lane_width", DT_F32, 0, &n->lane_points));
    return ops->has(f, "lane_next") ? ops->find(f, "lane_next", DT_I32, 0, &n->lane_links) : DT_OK;
}

static dt_status read_array(const dt_hdf5_ops *ops, dt_hdf5 *f, const char *path, const spec *a, int64_t rows,
                            void **out_p)
{
    int64_t got = 0;
    DT_TRY(ops->find(f, a->name, a->dtype, a->width, &got));
    if (got != rows) {
        return DT_FAIL(DT_EDATA, "%s: %s has %" PRId64 " rows, expected %" PRId64, path, a->name, got, rows);
    }
    *out_p = dt_alloc_n((size_t)rows, (size_t)(a->width == 0 ? 1 : a->width) * value_bytes(a->dtype));
    if (*out_p == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " rows of %s", rows, a->name);
    }
    return ops->read(f, a->name, a->dtype, a->width, 0, rows, *out_p);
}

/* What was read, as a store would show it. */
static dt_store_view make_view(void *const data[N_ARRAYS], const dt_store_counts *n)
{
    return (dt_store_view){.n_scenes = n->scenes,
                           .n_maps = n->maps,
                           .n_lanes = n->lanes,
                           .n_lane_points = n->lane_points,
                           .n_lane_links = n->lane_links,
                           .scene_map = data[A_scene_map],
                           .map_lane = data[A_map_lane],
                           .lane_point = data[A_lane_point],
                           .lane_xy = data[A_lane_xy],
                           .lane_width = data[A_lane_width],
                           .lane_kind = data[A_lane_kind],
                           .lane_limit = data[A_lane_limit],
                           .lane_id = data[A_lane_id],
                           .lane_next_ptr = data[A_lane_next_ptr],
                           .lane_next = data[A_lane_next],
                           .lane_left = data[A_lane_left],
                           .lane_right = data[A_lane_right]};
}

static dt_status store_map(const dt_hdf5_ops *ops, dt_hdf5 *f, const dt_store_view *v, int64_t map, const char *path,
                           dt_store_writer *to, int32_t *number_p)
{
    char name[DT_HDF5_TEXT_BYTES];
    dt_roads roads = {.n_lanes = 0};
    DT_TRY(ops->read_text(f, "map", map, name));
    DT_TRY(dt_roads_of_view(v, map, &roads));
    const dt_status st = dt_store_map(to, name, &roads, number_p);
    dt_roads_fini(&roads);
    return st == DT_EINVAL ? DT_CONTEXT(DT_EDATA, "%s: map %" PRId64, path, map) : st;
}

static dt_status read_all(const dt_hdf5_ops *ops, dt_hdf5 *f, const char *path, dt_store_counts *n, dt_store_writer *to,
                          dt_hdf5_roads *r)
{
    DT_TRY(find_counts(ops, f, n));
    for (int a = A_scene_map; a <= A_lane_right; a++) {
        const int64_t rows = array_rows(&specs[a], n);
        DT_TRY(rows > 0 ? read_array(ops, f, path, &specs[a], rows, &r->data[a]) : DT_OK);
    }
    const dt_store_view v = make_view(r->data, n);
    DT_TRY(dt_roads_check(&v, path, NULL, NULL));
    r->number = dt_alloc_n((size_t)n->maps, sizeof(*r->number));
    if (r->number == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " maps", n->maps);
    }
    for (int64_t i = 0; i < n->maps; i++) {
        DT_TRY(store_map(ops, f, &v, i, path, to, &r->number[i]));
    }
    r->scene_map = r->data[A_scene_map];
    return DT_OK;
}

dt_status dt_hdf5_roads_read(const dt_hdf5_ops *ops, dt_hdf5 *f, const char *path, int64_t n_scenes,
                             dt_store_writer *to, dt_hdf5_roads *out_p)
{
    dt_hdf5_roads r = {.n_maps = 0};
    dt_store_counts n = {.scenes = n_scenes};
    if (!ops->has(f, "map")) {
        *out_p = r;
        return DT_OK;
    }
    DT_TRY(ops->find_texts(f, "map", &n.maps));
    if (n.maps < 1) {
        return DT_FAIL(DT_EDATA, "%s: map names no map: a file without roads has no such array", path);
    }
    r.n_maps = n.maps;
    const dt_status st = read_all(ops, f, path, &n, to, &r);
    if (st != DT_OK) {
        dt_hdf5_roads_fini(&r);
        return st;
    }
    *out_p = r;
    return DT_OK;
}

void dt_hdf5_roads_fini(dt_hdf5_roads *r)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_free(r->data[a]);
    }
    dt_free(r->number);
    *r = (dt_hdf5_roads){.n_maps = 0};
}
