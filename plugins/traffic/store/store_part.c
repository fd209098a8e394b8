/* SPDX-License-Identifier: Apache-2.0
 *
 * What a part of a store has besides its arrays: of each scene the hash and the sums of its features.
 * See store_writer.h.
 */
#include <config.h>

#include "traffic/store/store_writer.h"
#include "base/err.h"

static dt_status open_extra(dt_store_writer *w, const char *name, uint32_t dtype, int64_t width, dt_npy_writer **out_p)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s.npy", dt_staging_path(w->aside), name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_npy_create(dt_str_text(&path), dtype, width, out_p);
    }
    if (st == DT_OK) {
        dt_npy_unflushed(*out_p);
    }
    dt_str_fini(&path);
    return st;
}

dt_status dt_store_part_open(dt_store_writer *w)
{
    DT_TRY(open_extra(w, "scene_hash", DT_I64, 0, &w->part_hash));
    return open_extra(w, "scene_stat", DT_F64, DT_FEATURE_STATS_WIDTH, &w->part_stat);
}

dt_status dt_store_part_scene(dt_store_writer *w)
{
    DT_TRY(dt_npy_append(w->part_hash, &w->scene_hash, 1));
    return dt_npy_append(w->part_stat, &w->scene_stat, 1);
}

dt_status dt_store_part_close(dt_store_writer *w)
{
    dt_npy_writer *hash = w->part_hash, *stat = w->part_stat;
    w->part_hash = NULL;
    const dt_status st = dt_npy_close(hash);
    DT_TRY(st);
    w->part_stat = NULL;
    return dt_npy_close(stat);
}
