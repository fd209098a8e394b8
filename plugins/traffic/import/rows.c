/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/rows.h"
#include "traffic/store/tracker.h"
#include "traffic/map/map_reader.h"
#include "traffic/text/names.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_ROWS = 1 << 12, STOP_ROWS = 1 << 10 }; /* so often a watcher receives the stored rows, and is polled */
enum { VEHICLES_MAX = 1 << 20, FILES_MAX = 1 << 20, SCENE_BYTES = 400 };

typedef struct scene {
    char *site;
    int32_t file;
    int32_t map; /* -1: none */
    bool has_no_axis;
} scene;

typedef struct file {
    char *path;
    double axis_heading; /* NAN: none */
    bool is_heading_fixed, is_front, may_repeat;
    dt_columns columns; /* of a table */
    bool has_columns;
} file;

struct dt_rows {
    const char *out; /* NULL: nothing is kept */
    const dt_import_options *opt;
    dt_str *notes;
    double rate_hz;
    dt_names names; /* of scenes */
    scene *scene;   /* [scenes_cap], names.n of them */
    int32_t scenes_cap;
    file *file;
    int32_t n_files, files_cap;
    int32_t last; /* scene asked for last, -1 */
    dt_sort *sort;
    char *label, *layout; /* the store's source and options */
    dt_store_writer *writer;
    uint64_t bytes, bytes_before; /* of all files, of those before this one */
    int64_t n_rows, n_no_length, n_no_heading, n_repeats;
    bool is_heading_fixed; /* of some file */
    bool is_part;          /* the store is one */
    dt_units units;        /* of the file that is stored, `doubted`; -1: none */
    int32_t doubted;
    dt_rows_report said; /* of the files before */
    int32_t map;         /* of the file that has begun, by the options; -1: none */
    bool map_is_folder;  /* of maps, one of each scene */
    dt_map_origin map_origin;
};

dt_status dt_rows_create(const char *out, const dt_import_options *opt, dt_str *notes, dt_rows **out_p)
{
    dt_rows *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to import");
    }
    r->out = out;
    r->opt = opt;
    r->notes = notes;
    r->last = r->map = r->doubted = -1;
    *out_p = r;
    return DT_OK;
}

/* ---- files and scenes -------------------------------------------------------------------------------------------- */

static dt_status add_file(dt_rows *r, const dt_rows_file *f)
{
    if (r->n_files == r->files_cap) {
        if (r->files_cap == FILES_MAX) {
            return DT_FAIL(DT_EDATA, "%s: more than %d files in one import", f->path, FILES_MAX);
        }
        const int32_t cap = r->files_cap == 0 ? 16 : 2 * r->files_cap;
        file *grown = dt_realloc(r->file, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " files", cap);
        }
        r->file = grown;
        r->files_cap = cap;
    }
    file *to = &r->file[r->n_files];
    *to = (file){.path = dt_strdup(f->path),
                 .axis_heading = f->has_axis ? f->axis_heading : NAN,
                 .is_heading_fixed = f->is_heading_fixed,
                 .is_front = f->is_front,
                 .may_repeat = f->may_repeat};
    if (to->path == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", f->path);
    }
    r->n_files++;
    return DT_OK;
}

static bool has_map(const dt_rows *r)
{
    return r->opt->map != NULL && r->opt->map[0] != '\0' && r->out != NULL;
}

/* The store, when the first file has said its frame rate. */
static dt_status create_store(dt_rows *r, const dt_rows_file *f)
{
    const char *slash = strrchr(f->path, '/');
    r->label = dt_strdup(slash == NULL ? f->path : slash + 1);
    r->layout = dt_strdup(f->layout);
    if (r->label == NULL || r->layout == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", f->path);
    }
    const dt_store_meta meta = {.frame_rate_hz = f->rate_hz,
                                .radius_m = r->opt->radius_m,
                                .smooth_s = r->opt->smooth_s,
                                .k_max = r->opt->k_max,
                                .jobs = r->opt->jobs,
                                .role = r->is_part ? DT_STORE_PART : DT_STORE_WHOLE,
                                .packing = r->is_part ? (dt_packing){0} : r->opt->packing,
                                .map_near_m = has_map(r) ? DT_MAP_NEAR_M : 0,
                                .source = r->label,
                                .options = r->layout};
    DT_TRY(dt_store_create(r->out, &meta, &r->writer));
    const size_t memory_bytes = r->opt->memory_bytes > 0 ? r->opt->memory_bytes : (size_t)64 << 20;
    return dt_sort_create(r->out, memory_bytes, r->opt->jobs, &r->sort);
}

static bool is_same_origin(const dt_map_origin *a, const dt_map_origin *b)
{
    return a->is_given == b->is_given && a->is_utm == b->is_utm && a->at[0] == b->at[0] && a->at[1] == b->at[1];
}

/* A map into the store, named like its file. */
static dt_status add_map(dt_rows *r, const char *path, int32_t *number_p)
{
    dt_roads roads = {.n_lanes = 0};
    dt_str name = {0}, each = {0}; /* notes of one map of many are not shown */
    dt_status st = dt_rows_stem(path, &name);
    if (st == DT_OK) {
        st = dt_map_read(path, &r->map_origin, r->map_is_folder ? &each : r->notes, &roads);
    }
    if (st == DT_OK) {
        st = dt_rows_map(r, dt_str_text(&name), &roads, number_p);
    }
    dt_roads_fini(&roads);
    dt_str_fini(&name);
    dt_str_fini(&each);
    return st;
}

/* The map that the options name for all scenes. Files whose positions are counted from other places see it from there;
 * a folder has one for each scene. */
static dt_status find_map(dt_rows *r, const dt_rows_file *f)
{
    const char *text = r->opt->map_origin, *offset = r->opt->map_offset;
    dt_map_origin origin;
    if (!has_map(r)) {
        return DT_OK;
    }
    DT_TRY(dt_map_origin_parse(text == NULL ? "" : text, &origin));
    if (!origin.is_given && f->has_utm) {
        origin = (dt_map_origin){.is_given = true, .is_utm = true, .at = {f->utm[0], f->utm[1]}};
    }
    DT_TRY(dt_map_offset_parse(offset == NULL ? "" : offset, origin.offset));
    const bool is_known = r->map >= 0 && is_same_origin(&origin, &r->map_origin);
    r->map_origin = origin;
    r->map_is_folder = dt_fs_is_dir(r->opt->map);
    return is_known || r->map_is_folder ? DT_OK : add_map(r, r->opt->map, &r->map);
}

static dt_status map_of_scene(dt_rows *r, const char *name, int32_t *map_p)
{
    dt_str path = {0};
    *map_p = r->map;
    if (!has_map(r) || !r->map_is_folder) {
        return DT_OK;
    }
    dt_status st = dt_map_find(r->opt->map, name, &path);
    if (st == DT_OK) {
        st = add_map(r, dt_str_text(&path), map_p);
    }
    dt_str_fini(&path);
    return st;
}

dt_status dt_rows_file_begin(dt_rows *r, const dt_rows_file *f)
{
    DT_TRY(add_file(r, f));
    r->last = -1;
    r->is_heading_fixed |= f->is_heading_fixed;
    if (r->n_files > 1) {
        return f->rate_hz == r->rate_hz
                   ? find_map(r, f)
                   : DT_FAIL(DT_EDATA, "%s is of %g Hz and %s of %g Hz: a store has one frame rate, import them apart",
                             r->file[0].path, r->rate_hz, f->path, f->rate_hz);
    }
    r->rate_hz = f->rate_hz;
    DT_TRY(r->out == NULL ? DT_OK : create_store(r, f));
    return find_map(r, f);
}

void dt_rows_keep_columns(dt_rows *r, dt_columns *c)
{
    file *f = &r->file[r->n_files - 1];
    f->columns = *c;
    f->has_columns = true;
    *c = (dt_columns){.n = 0};
}

static dt_status reserve_scene(dt_rows *r)
{
    if (r->names.n < r->scenes_cap) {
        return DT_OK;
    }
    const int32_t cap = r->scenes_cap == 0 ? 64 : 2 * r->scenes_cap; /* of dt_names: at most DT_NAMES_MOST */
    scene *grown = dt_realloc(r->scene, (size_t)cap * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " scenes", cap);
    }
    r->scene = grown;
    r->scenes_cap = cap;
    return DT_OK;
}

dt_status dt_rows_scene(dt_rows *r, int64_t line, const char *name, const char *site, bool has_parts, int32_t *number_p)
{
    const int32_t here = r->n_files - 1;
    const char *path = r->file[here].path;
    if (r->last >= 0 && strcmp(r->names.name[r->last], name) == 0) {
        *number_p = r->last; /* as nearly always */
        return DT_OK;
    }
    if (name[0] == '\0' || name[0] == '#' || (!has_parts && strchr(name, '#') != NULL) || strlen(name) > SCENE_BYTES) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": the scene's name \"%.60s\" is empty, has a '#' or more than %d bytes",
                       path, line, name, SCENE_BYTES);
    }
    if (dt_has_control(name) || dt_has_control(site)) {
        return DT_FAIL(
            DT_EDATA, "%s:%" PRId64 ": the name of the scene \"%.60s\" or of its site \"%.60s\" has control characters",
            path, line, name, site);
    }
    bool is_new = false;
    int32_t number = 0;
    DT_TRY(reserve_scene(r));
    DT_TRY(dt_names_add(&r->names, name, &number, &is_new));
    scene *s = &r->scene[number];
    if (is_new) {
        *s = (scene){.site = dt_strdup(site), .file = here, .map = -1};
        if (s->site == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for scene %s", name);
        }
        DT_TRY(map_of_scene(r, name, &s->map));
    } else if (s->file != here) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64
                       ": scene %s is in %s too: a scene must be in one file; import them apart, or as one "
                       "table",
                       path, line, name, r->file[s->file].path);
    }
    *number_p = r->last = number;
    return DT_OK;
}

dt_status dt_rows_map(dt_rows *r, const char *name, const dt_roads *roads, int32_t *number_p)
{
    *number_p = -1;
    return r->writer != NULL ? dt_store_map(r->writer, name, roads, number_p) : DT_OK;
}

void dt_rows_scene_without_axis(dt_rows *r, int32_t number)
{
    r->scene[number].has_no_axis = true;
}

void dt_rows_scene_map(dt_rows *r, int32_t number, int32_t map)
{
    r->scene[number].map = map;
}

void dt_rows_expect_bytes(dt_rows *r, uint64_t bytes)
{
    r->bytes = bytes;
}

void dt_rows_report_progress(const dt_rows *r, uint64_t taken)
{
    if (r->opt->progress != NULL) {
        const dt_import_progress p = {.done = r->bytes_before + taken, .total = r->bytes};
        r->opt->progress(r->opt->progress_user, &p);
    }
}

static void report_stored(const dt_rows *r, int64_t n)
{
    if (r->opt->progress != NULL) {
        const dt_import_progress p = {.is_storing = true, .done = (uint64_t)n, .total = (uint64_t)r->n_rows};
        r->opt->progress(r->opt->progress_user, &p);
    }
}

/* The reason for leaving off, where the importer requests it. */
static dt_status check_stop(const dt_rows *r)
{
    return r->opt->stops != NULL && r->opt->stops(r->opt->stops_user)
               ? DT_FAIL(DT_EINTERRUPTED, "the import was asked to stop")
               : DT_OK;
}

dt_status dt_rows_add(dt_rows *r, const dt_table_row *row)
{
    if (++r->n_rows % STOP_ROWS == 0) {
        DT_TRY(check_stop(r));
    }
    r->n_no_length += isnan(row->length);
    r->n_no_heading += isnan(row->heading);
    r->said.no_accel += isnan(row->accel);
    r->said.no_width += isnan(row->width);
    return r->sort != NULL ? dt_sort_add(r->sort, row) : DT_OK;
}

/* ---- sorted rows into frames ------------------------------------------------------------------------------------- */

typedef struct feed {
    dt_tracker live;
    dt_vehicle *vehicle;
    uint32_t n, cap;
    int32_t scene;      /* of the open frame, -1 before the first */
    int64_t frame;      /* of the file */
    int64_t begin;      /* frame of the file that is the store scene's frame 0 */
    int64_t last_frame; /* fed to this scene */
    int64_t part;       /* 1, 2, ... of the file's scene */
    bool is_open;
} feed;

static file *scene_file(const dt_rows *r, int32_t scene_number)
{
    return &r->file[r->scene[scene_number].file];
}

static dt_status end_scene(dt_rows *r, feed *f)
{
    if (!f->is_open) {
        return DT_OK;
    }
    dt_str name = {0};
    dt_str_add(&name, r->names.name[f->scene]);
    if (f->part > 1) {
        dt_str_addf(&name, "#%" PRId64, f->part);
    }
    dt_status st = dt_str_status(&name);
    if (st == DT_OK) {
        st = dt_store_scene_end(r->writer, dt_str_text(&name), r->scene[f->scene].site);
    }
    dt_str_fini(&name);
    f->is_open = false;
    return st;
}

/* The vehicles gathered so far are a whole frame. */
static dt_status end_frame(dt_rows *r, feed *f)
{
    if (f->n == 0) {
        return DT_OK;
    }
    dt_units_add_frame(&r->units, r->rate_hz, f->frame, f->vehicle, f->n);
    const dt_status st =
        dt_store_frame(r->writer, f->frame - f->begin, (double)f->frame / r->rate_hz, f->vehicle, f->n);
    if (st == DT_EDATA) {
        return DT_CONTEXT(st, "%s: scene %s, frame %" PRId64, scene_file(r, f->scene)->path, r->names.name[f->scene],
                          f->frame);
    }
    DT_TRY(st);
    f->last_frame = f->frame;
    f->n = 0;
    return DT_OK;
}

static dt_status begin_frame(dt_rows *r, feed *f, const dt_table_row *row)
{
    bool is_new_scene = row->scene != f->scene;
    DT_TRY(end_frame(r, f));
    if (is_new_scene || (double)(row->frame - f->last_frame) > DT_SCENE_GAP_S * r->rate_hz) {
        DT_TRY(end_scene(r, f));
        f->part = is_new_scene ? 1 : f->part + 1;
        f->scene = row->scene;
        f->begin = row->frame;
        DT_TRY(dt_store_scene_begin(r->writer));
        DT_TRY(dt_store_scene_map(r->writer, r->scene[row->scene].map));
        f->is_open = true;
        dt_tracker_clear(&f->live);
    }
    f->frame = row->frame;
    return DT_OK;
}

/* hypot(dx, dy) >= 1, which is called only where rounding could matter. */
static bool is_a_metre(double dx, double dy)
{
    const double d2 = dx * dx + dy * dy;
    return d2 > 1 + 1e-9 || (d2 > 1 - 1e-9 && hypot(dx, dy) >= 1.0);
}

/* Direction of travel over at least the last metre: causal, steady where a vehicle stands. NAN: unknown. */
static double travel_heading(const file *from, bool has_axis, dt_tracked_vehicle *l, const dt_table_row *row,
                             bool is_new)
{
    if (is_new) {
        l->heading = has_axis ? from->axis_heading : NAN;
        l->x = row->x;
        l->y = row->y;
    }
    if (!isnan(row->heading)) {
        l->has_heading = true;
        l->heading = row->heading; /* and so it stays until the vehicle has moved on */
        l->x = row->x;
        l->y = row->y;
    } else if (!from->is_heading_fixed && is_a_metre(row->x - l->x, row->y - l->y)) {
        l->has_heading = true;
        l->heading = atan2(row->y - l->y, row->x - l->x);
        l->x = row->x;
        l->y = row->y;
    }
    return l->heading;
}

static dt_status check_order(const dt_rows *r, const dt_tracked_vehicle *l, const dt_table_row *row, int64_t begin,
                             bool is_new)
{
    const char *path = scene_file(r, row->scene)->path;
    if (is_new) {
        return DT_OK;
    }
    if (l->frame + begin == row->frame) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": vehicle %" PRId64 " is in frame %" PRId64 " of scene %s twice (before "
                       "in line %" PRId64 ")",
                       path, row->line, row->id, row->frame, r->names.name[row->scene], l->line);
    }
    if (row->line < l->line && !r->opt->is_unordered) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": time goes backwards: vehicle %" PRId64 " of scene %s is in frame %" PRId64
                       " here and in frame %" PRId64 " before (line %" PRId64 "); a table in no order at all needs "
                       "import.unordered",
                       path, l->line, row->id, r->names.name[row->scene], l->frame + begin, row->frame, row->line);
    }
    return DT_OK;
}

/* Of the file whose rows were all stored: scenes of a file follow each other. */
static void report_units(dt_rows *r)
{
    if (r->doubted < 0) {
        return;
    }
    const file *f = &r->file[r->doubted];
    dt_rows_report_units(&r->said, &r->units, f->path, f->has_columns ? &f->columns : NULL);
    r->units = (dt_units){.n_windows = 0};
}

static dt_status add_vehicle(dt_rows *r, feed *f, const dt_table_row *row)
{
    file *from = scene_file(r, row->scene);
    if (f->n == f->cap) {
        uint32_t cap = f->cap == 0 ? 256 : 2 * f->cap;
        if (cap > VEHICLES_MAX) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": frame %" PRId64 " has more than %d vehicles", from->path,
                           row->line, row->frame, VEHICLES_MAX);
        }
        dt_vehicle *grown = dt_realloc(f->vehicle, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", cap);
        }
        f->vehicle = grown;
        f->cap = cap;
    }
    dt_tracked_vehicle *l = NULL;
    bool is_new = false;
    const int64_t frame = row->frame - f->begin; /* of the scene that is stored: from 0, as dt_tracker has them */
    DT_TRY(dt_tracker_get(&f->live, row->id, frame, &l, &is_new));
    DT_TRY(check_order(r, l, row, f->begin, is_new));
    const double heading = travel_heading(from, !r->scene[row->scene].has_no_axis, l, row, is_new);
    r->said.unknown_heading += isnan(heading);
    r->said.axis_heading += !isnan(heading) && !l->has_heading && !from->is_heading_fixed;
    r->said.fronts += isnan(heading) && from->is_front;
    const double before_s = is_new ? 0 : (double)(frame - l->frame) / r->rate_hz;
    if (r->doubted != r->scene[row->scene].file) {
        report_units(r);
        r->doubted = r->scene[row->scene].file;
    }
    dt_units_add_row(&r->units, &l->window, row, before_s, l->last_x, l->last_y);
    l->line = row->line;
    l->frame = frame;
    l->last_x = row->x;
    l->last_y = row->y;
    const double back = 0.5 * (isnan(row->length) ? DT_LENGTH_DEFAULT_M : row->length);
    const bool is_moved = from->is_front && !isnan(heading);
    f->vehicle[f->n++] = (dt_vehicle){.x = is_moved ? row->x - back * cos(heading) : row->x,
                                      .y = is_moved ? row->y - back * sin(heading) : row->y,
                                      .heading = heading,
                                      .speed = row->speed,
                                      .accel = row->accel,
                                      .length = row->length,
                                      .width = row->width,
                                      .stop_distance = row->stop_distance,
                                      .id = row->id,
                                      .controlled = row->controlled != 0};
    return DT_OK;
}

static bool equal_or_nan(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* A row that only repeats the one before; loose: its place and speed, as data portals repeat rows. */
static bool is_repeat(const dt_table_row *a, const dt_table_row *b, bool is_loose)
{
    return a->scene == b->scene && a->frame == b->frame && a->id == b->id && a->x == b->x && a->y == b->y &&
           a->speed == b->speed &&
           (is_loose || (equal_or_nan(a->heading, b->heading) && equal_or_nan(a->accel, b->accel) &&
                         equal_or_nan(a->length, b->length) && equal_or_nan(a->width, b->width) &&
                         equal_or_nan(a->stop_distance, b->stop_distance) && a->controlled == b->controlled));
}

static dt_status feed_store(dt_rows *r)
{
    feed f = {.scene = -1};
    dt_table_row last = {.scene = -1};
    const dt_table_row *row = NULL;
    int64_t n = 0;
    dt_tracker_init(&f.live, r->rate_hz);
    dt_status st;
    while ((st = dt_sort_next(r->sort, &row)) == DT_OK) {
        if (++n % PROGRESS_ROWS == 0) {
            report_stored(r, n);
            if ((st = check_stop(r)) != DT_OK) {
                break;
            }
        }
        if (is_repeat(row, &last, scene_file(r, row->scene)->may_repeat)) {
            r->n_repeats++;
            continue;
        }
        last = *row;
        if (row->scene != f.scene || row->frame != f.frame) {
            st = begin_frame(r, &f, row);
        }
        if (st == DT_OK) {
            st = add_vehicle(r, &f, row);
        }
        if (st != DT_OK) {
            break;
        }
    }
    if (st == DT_DONE) {
        report_stored(r, n);
        st = end_frame(r, &f);
    }
    if (st == DT_OK) {
        st = end_scene(r, &f);
    }
    dt_tracker_fini(&f.live);
    dt_free(f.vehicle);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

dt_status dt_rows_finish(dt_rows *r, dt_rows_report *report)
{
    DT_TRY(feed_store(r));
    report_units(r);
    DT_TRY(dt_str_status(&r->said.warnings));
    r->said.runs = dt_sort_runs(r->sort);
    r->said.repeats = r->n_repeats;
    r->said.no_length = r->n_no_length;
    r->said.no_heading = r->n_no_heading;
    r->said.is_heading_fixed = r->is_heading_fixed;
    dt_rows_report_add(report, &r->said);
    return dt_str_status(&report->warnings);
}

dt_status dt_rows_commit(dt_rows *r)
{
    return dt_store_commit(r->writer);
}

void dt_rows_read_as_part(dt_rows *r)
{
    r->is_part = true;
}

int64_t dt_rows_count(const dt_rows *r)
{
    return r->n_rows;
}

double dt_rows_rate(const dt_rows *r)
{
    return r->rate_hz;
}

const char *dt_rows_layout(const dt_rows *r)
{
    return r->layout;
}

int32_t dt_rows_scenes(const dt_rows *r)
{
    return r->names.n;
}

const char *dt_rows_scene_name(const dt_rows *r, int32_t number, int32_t *file_p)
{
    *file_p = r->scene[number].file;
    return r->names.name[number];
}

void dt_rows_file_end(dt_rows *r, uint64_t bytes)
{
    r->bytes_before += bytes;
    dt_rows_report_progress(r, 0);
}

void dt_rows_destroy(dt_rows *r)
{
    if (r == NULL) {
        return;
    }
    dt_str_fini(&r->said.warnings);
    dt_sort_destroy(r->sort);
    dt_store_destroy(r->writer);
    for (int32_t i = 0; i < r->names.n; i++) {
        dt_free(r->scene[i].site);
    }
    for (int32_t i = 0; i < r->n_files; i++) {
        dt_free(r->file[i].path);
        dt_columns_fini(&r->file[i].columns);
    }
    dt_names_fini(&r->names);
    dt_free(r->scene);
    dt_free(r->file);
    dt_free(r->label);
    dt_free(r->layout);
    dt_free(r);
}
