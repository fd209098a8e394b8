/* SPDX-License-Identifier: Apache-2.0
 *
 * An HDF5 file of the arrays of a store into a store. See import_hdf5.h.
 */
#include <config.h>

#include "traffic/import/import_hdf5.h"
#include "traffic/hdf5/hdf5_file.h"
#include "traffic/hdf5/hdf5_roads.h"
#include "traffic/import/motion_check.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PROGRESS_FRAMES = 1 << 10 };
#define OFF_GRID 0.11 /* frames: a little more than what other importers accept */
static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

bool dt_hdf5_is_file(const char *file)
{
    char head[sizeof(signature)];
    FILE *f = NULL;
    if (!dt_fs_is_file(file) || dt_fs_open_stream(file, O_RDONLY, "rb", &f) != DT_OK) {
        dt_error_clear();
        return false;
    }
    const bool is = fread(head, 1, sizeof(head), f) == sizeof(head) && memcmp(head, signature, sizeof(head)) == 0;
    fclose(f);
    return is;
}

typedef struct reading {
    const dt_hdf5_ops *ops;
    const dt_import_options *opt;
    dt_hdf5 *file;
    const char *path;
    double rate_hz, first_s, time_s; /* first_s, time_s: of the scene's first frame, of the frame before */
    int64_t scenes, frames, rows, tracks, sites;
    int64_t *scene_frame, *frame_row; /* [scenes+1], [frames+1] */
    int64_t cap;                      /* vehicles of a frame */
    dt_vehicle *vehicle;
    double *pose;
    float *motion, *stop;
    int32_t *row_track;
    unsigned char *controlled;
    int64_t *track_id; /* [tracks] */
    dt_hdf5_roads roads;
    dt_store_writer *writer;
    dt_motion_check check;
} reading;

static dt_status expect_array(reading *r, const char *name, uint32_t dtype, int64_t width, int64_t rows)
{
    int64_t got = 0;
    DT_TRY(r->ops->find(r->file, name, dtype, width, &got));
    return got == rows ? DT_OK
                       : DT_FAIL(DT_EDATA, "%s: %s has %" PRId64 " rows, expected %" PRId64, r->path, name, got, rows);
}

static dt_status read_offsets(reading *r, const char *name, int64_t n, int64_t **out_p)
{
    int64_t *p = *out_p = dt_alloc_n((size_t)n + 1, sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " of %s", n, name);
    }
    DT_TRY(r->ops->read(r->file, name, DT_I64, 0, 0, n + 1, p));
    for (int64_t i = 0; i < n; i++) {
        if (p[0] != 0 || p[i + 1] < p[i]) {
            return DT_FAIL(DT_EDATA,
                           "%s: %s falls from %" PRId64 " to %" PRId64 " at %" PRId64 ", or does not begin at 0",
                           r->path, name, p[i], p[i + 1], i);
        }
    }
    return DT_OK;
}

static dt_status read_shape(reading *r)
{
    double format = 0;
    DT_TRY(r->ops->number(r->file, "format", &format));
    if (format != DT_HDF5_VERSION) {
        return DT_FAIL(DT_EDATA, "%s: format %g, this program reads %d", r->path, format, DT_HDF5_VERSION);
    }
    DT_TRY(r->ops->number(r->file, "frame_rate_hz", &r->rate_hz));
    DT_TRY(r->ops->find_texts(r->file, "scene", &r->scenes));
    DT_TRY(r->ops->find_texts(r->file, "site", &r->sites));
    DT_TRY(r->ops->find(r->file, "frame_time", DT_F64, 0, &r->frames));
    DT_TRY(r->ops->find(r->file, "pose", DT_F64, 3, &r->rows));
    DT_TRY(r->ops->find(r->file, "track_id", DT_I64, 0, &r->tracks));
    DT_TRY(expect_array(r, "scene_frame", DT_I64, 0, r->scenes + 1));
    DT_TRY(expect_array(r, "scene_site", DT_I32, 0, r->scenes));
    DT_TRY(expect_array(r, "frame_row", DT_I64, 0, r->frames + 1));
    DT_TRY(expect_array(r, "motion", DT_F32, 4, r->rows));
    DT_TRY(expect_array(r, "row_track", DT_I32, 0, r->rows));
    DT_TRY(expect_array(r, "stop_distance", DT_F32, 0, r->rows));
    DT_TRY(expect_array(r, "controlled", DT_U8, 0, r->rows));
    DT_TRY(read_offsets(r, "scene_frame", r->scenes, &r->scene_frame));
    DT_TRY(read_offsets(r, "frame_row", r->frames, &r->frame_row));
    if (r->scene_frame[r->scenes] != r->frames || r->frame_row[r->frames] != r->rows) {
        return DT_FAIL(DT_EDATA,
                       "%s: scenes have %" PRId64 " frames of %" PRId64 ", frames %" PRId64 " rows of %" PRId64,
                       r->path, r->scene_frame[r->scenes], r->frames, r->frame_row[r->frames], r->rows);
    }
    return DT_OK;
}

static dt_status reserve_rows(reading *r)
{
    for (int64_t f = 0; f < r->frames; f++) {
        const int64_t n = r->frame_row[f + 1] - r->frame_row[f];
        r->cap = n > r->cap ? n : r->cap;
    }
    const size_t n = (size_t)r->cap + 1;
    r->vehicle = dt_alloc_n(n, sizeof(*r->vehicle));
    r->pose = dt_alloc_n(n, 3 * sizeof(*r->pose));
    r->motion = dt_alloc_n(n, 4 * sizeof(*r->motion));
    r->stop = dt_alloc_n(n, sizeof(*r->stop));
    r->row_track = dt_alloc_n(n, sizeof(*r->row_track));
    r->controlled = dt_alloc_n(n, 1);
    r->track_id = dt_alloc_n((size_t)r->tracks + 1, sizeof(*r->track_id));
    if (r->cap > UINT32_MAX || r->vehicle == NULL || r->pose == NULL || r->motion == NULL || r->stop == NULL ||
        r->row_track == NULL || r->controlled == NULL || r->track_id == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for frames of %" PRId64 " vehicles", r->cap);
    }
    return r->ops->read(r->file, "track_id", DT_I64, 0, 0, r->tracks, r->track_id);
}

static dt_status read_columns(reading *r, int64_t from, int64_t n)
{
    DT_TRY(r->ops->read(r->file, "pose", DT_F64, 3, from, n, r->pose));
    DT_TRY(r->ops->read(r->file, "motion", DT_F32, 4, from, n, r->motion));
    DT_TRY(r->ops->read(r->file, "stop_distance", DT_F32, 0, from, n, r->stop));
    DT_TRY(r->ops->read(r->file, "controlled", DT_U8, 0, from, n, r->controlled));
    return r->ops->read(r->file, "row_track", DT_I32, 0, from, n, r->row_track);
}

static dt_status copy_frame(reading *r, int64_t scene, int64_t frame, int64_t number)
{
    const int64_t from = r->frame_row[frame], n = r->frame_row[frame + 1] - from;
    double time_s = 0;
    DT_TRY(r->ops->read(r->file, "frame_time", DT_F64, 0, frame, 1, &time_s));
    if (!isfinite(time_s)) {
        return DT_FAIL(DT_EDATA, "%s: frame_time %" PRId64 " is %g", r->path, frame, time_s);
    }
    if (number > 0 && time_s <= r->time_s) {
        return DT_FAIL(DT_EDATA,
                       "%s: frame_time of scene %" PRId64 ", frame %" PRId64 ", is %.9g s after %.9g s: times rise "
                       "within a scene",
                       r->path, scene, number, time_s, r->time_s);
    }
    r->first_s = number == 0 ? time_s : r->first_s;
    if (!(fabs((time_s - r->first_s) * r->rate_hz - (double)number) <= OFF_GRID)) {
        return DT_FAIL(DT_EDATA,
                       "%s: frame_time of scene %" PRId64 ", frame %" PRId64
                       ", is %.9g s after its first, and at %g Hz "
                       "that frame is %.9g s after it",
                       r->path, scene, number, time_s - r->first_s, r->rate_hz, (double)number / r->rate_hz);
    }
    r->time_s = time_s;
    DT_TRY(read_columns(r, from, n));
    for (int64_t i = 0; i < n; i++) {
        const float *m = r->motion + 4 * i;
        if (r->row_track[i] < 0 || r->row_track[i] >= r->tracks) {
            return DT_FAIL(DT_EDATA, "%s: row_track %" PRId64 " is %" PRId32 ", outside [0, %" PRId64 ")", r->path,
                           from + i, r->row_track[i], r->tracks);
        }
        r->vehicle[i] = (dt_vehicle){.x = r->pose[3 * i],
                                     .y = r->pose[3 * i + 1],
                                     .heading = r->pose[3 * i + 2],
                                     .speed = (double)m[0],
                                     .accel = (double)m[1],
                                     .length = (double)m[2],
                                     .width = (double)m[3],
                                     .stop_distance = (double)r->stop[i],
                                     .id = r->track_id[r->row_track[i]],
                                     .controlled = r->controlled[i] != 0};
    }
    const dt_status st = dt_store_frame(r->writer, number, time_s, r->vehicle, (uint32_t)n);
    if (st == DT_EDATA || st == DT_EINVAL) {
        return DT_CONTEXT(DT_EDATA, "%s: frame %" PRId64, r->path, frame);
    }
    DT_TRY(st);
    return dt_motion_check_frame(&r->check, number, r->vehicle, (uint32_t)n);
}

static dt_status copy_scene(reading *r, int64_t scene)
{
    char name[DT_HDF5_TEXT_BYTES], site[DT_HDF5_TEXT_BYTES];
    int32_t number = 0;
    DT_TRY(r->ops->read_text(r->file, "scene", scene, name));
    DT_TRY(r->ops->read(r->file, "scene_site", DT_I32, 0, scene, 1, &number));
    if (number < 0 || number >= r->sites || name[0] == '\0') {
        return DT_FAIL(DT_EDATA,
                       "%s: scene %" PRId64 " \"%s\" is of site %" PRId32 ", outside [0, %" PRId64 "), or nameless",
                       r->path, scene, name, number, r->sites);
    }
    DT_TRY(r->ops->read_text(r->file, "site", number, site));
    DT_TRY(dt_store_scene_begin(r->writer));
    dt_motion_check_scene(&r->check);
    const int32_t map = r->roads.n_maps > 0 ? r->roads.scene_map[scene] : -1;
    DT_TRY(map >= 0 ? dt_store_scene_map(r->writer, r->roads.number[map]) : DT_OK);
    for (int64_t f = r->scene_frame[scene]; f < r->scene_frame[scene + 1]; f++) {
        DT_TRY(copy_frame(r, scene, f, f - r->scene_frame[scene]));
        if (r->opt->progress != NULL && f % PROGRESS_FRAMES == 0) {
            const dt_import_progress p = {
                .is_storing = true, .done = (uint64_t)r->frame_row[f + 1], .total = (uint64_t)r->rows};
            r->opt->progress(r->opt->progress_user, &p);
        }
    }
    return dt_store_scene_end(r->writer, name, site);
}

static dt_status read_all(reading *r, const char *out, dt_str *notes)
{
    const char *slash = strrchr(r->path, '/');
    DT_TRY(read_shape(r));
    DT_TRY(reserve_rows(r));
    const dt_store_meta meta = {.frame_rate_hz = r->rate_hz,
                                .radius_m = r->opt->radius_m,
                                .smooth_s = r->opt->smooth_s,
                                .k_max = r->opt->k_max,
                                .packing = r->opt->packing,
                                .source = slash == NULL ? r->path : slash + 1,
                                .options = "hdf5"};
    const dt_status st = dt_store_create(out, &meta, &r->writer);
    if (st == DT_EINVAL && !(r->rate_hz >= DT_RATE_MIN_HZ && r->rate_hz <= DT_RATE_MAX_HZ)) {
        return DT_CONTEXT(DT_EDATA, "%s", r->path);
    }
    DT_TRY(st);
    dt_motion_check_init(&r->check, r->rate_hz);
    DT_TRY(dt_hdf5_roads_read(r->ops, r->file, r->path, r->scenes, r->writer, &r->roads));
    for (int64_t i = 0; i < r->scenes; i++) {
        DT_TRY(copy_scene(r, i));
    }
    dt_str_addf(notes, "HDF5: %" PRId64 " scenes, %g Hz\n", r->scenes, r->rate_hz);
    DT_TRY(dt_motion_check_report(&r->check, r->path, notes));
    return dt_store_commit(r->writer);
}

/* Keys that ask for what an HDF5 file cannot give. */
static dt_status check_options(const char *file, const dt_import_options *opt)
{
    const struct {
        const char *key, *value;
    } foreign[] = {{"map", opt->map},
                   {"map_origin", opt->map_origin},
                   {"map_offset", opt->map_offset},
                   {"columns", opt->columns},
                   {"types", opt->types}};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (foreign[i].value != NULL && foreign[i].value[0] != '\0') {
            return DT_FAIL(DT_ECONFIG,
                           "%s is HDF5, whose arrays fully describe it, but import.%s is %.200s: "
                           "leave it out",
                           file, foreign[i].key, foreign[i].value);
        }
    }
    return DT_OK;
}

dt_status dt_hdf5_import(const char *file, const char *out, const dt_import_options *opt, dt_str *notes)
{
    reading r = {.path = file, .opt = opt};
    DT_TRY(check_options(file, opt));
    DT_TRY(dt_hdf5_open_module(&r.ops));
    DT_TRY(r.ops->open(file, &r.file));
    const dt_status st = read_all(&r, out, notes);
    dt_error kept;
    dt_error_save(&kept, st);
    (void)!r.ops->close(r.file);
    dt_store_destroy(r.writer);
    dt_hdf5_roads_fini(&r.roads);
    dt_free(r.scene_frame);
    dt_free(r.frame_row);
    dt_free(r.vehicle);
    dt_free(r.pose);
    dt_free(r.motion);
    dt_free(r.stop);
    dt_free(r.row_track);
    dt_free(r.controlled);
    dt_free(r.track_id);
    dt_motion_check_fini(&r.check);
    return st == DT_OK ? DT_OK : dt_error_restore(&kept);
}
