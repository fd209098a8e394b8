/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON chunk layout into a store: metadata.json, statistics.json, chunks/chunk_000.json ... streamed, one frame in
 * memory. Units are SI and checked. Unknown keys are skipped (later versions may add some), wrong types never. See
 * chunks.h.
 */
#include <config.h>

#include "traffic/import/chunks.h"
#include "traffic/map/map_reader.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VEHICLES_MAX = 1 << 20 };

/* Of a vehicle in the file: its numbers and their limits. */
enum { CONTROLLED = DT_CHUNKS_N_NUMBERS, ID };
static const char *const vehicle_keys[] = {[DT_CHUNKS_X] = "x",
                                           [DT_CHUNKS_Y] = "y",
                                           [DT_CHUNKS_HEADING] = "heading",
                                           [DT_CHUNKS_SPEED] = "speed",
                                           [DT_CHUNKS_ACCEL] = "accel",
                                           [DT_CHUNKS_LENGTH] = "length",
                                           [DT_CHUNKS_WIDTH] = "width",
                                           [DT_CHUNKS_STOP] = "stop_distance",
                                           [CONTROLLED] = "controlled",
                                           [ID] = "id",
                                           [ID + 1] = NULL};
static const struct {
    double lo, hi;
    bool may_be_missing;
} numbers[DT_CHUNKS_N_NUMBERS] = {
    [DT_CHUNKS_X] = {-DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_CHUNKS_Y] = {-DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_CHUNKS_HEADING] = {-1e3, 1e3, false},
    [DT_CHUNKS_SPEED] = {-DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_CHUNKS_ACCEL] = {-1e3, 1e3, true},
    [DT_CHUNKS_LENGTH] = {0, DT_SIZE_MAX_M, false},
    [DT_CHUNKS_WIDTH] = {0, DT_SIZE_MAX_M, true},
    [DT_CHUNKS_STOP] = {0, 1e6, true},
};

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static dt_status read_vehicle(dt_json *j, dt_chunks *c)
{
    double number[DT_CHUNKS_N_NUMBERS];
    bool controlled = false;
    int64_t id = 0;
    uint32_t seen = 0;
    int i = 0;
    dt_status st;
    for (i = 0; i < DT_CHUNKS_N_NUMBERS; i++) {
        number[i] = NAN;
    }
    while ((st = dt_expect_known_key(j, vehicle_keys, &seen, &i)) == DT_OK) {
        if (i == CONTROLLED) {
            DT_TRY(dt_expect_bool(j, vehicle_keys[i], &controlled));
        } else if (i == ID) {
            DT_TRY(dt_expect_id(j, vehicle_keys[i], &c->ids, &id));
        } else {
            bool is_null = false;
            DT_TRY(dt_expect_f64(j, vehicle_keys[i], &number[i], numbers[i].may_be_missing ? &is_null : NULL));
            if (!is_null && !(number[i] >= numbers[i].lo && number[i] <= numbers[i].hi)) {
                return dt_json_fail(j, "%s %g is outside [%g, %g]", vehicle_keys[i], number[i], numbers[i].lo,
                                    numbers[i].hi);
            }
        }
    }
    DT_TRY_DONE(st);
    for (i = 0; i <= ID; i++) {
        if ((seen >> i & 1) == 0 && (i == ID || (i < DT_CHUNKS_N_NUMBERS && !numbers[i].may_be_missing))) {
            return dt_json_fail(j, "the vehicle has no %s", vehicle_keys[i]);
        }
        if (i < DT_CHUNKS_N_NUMBERS && !isnan(number[i])) {
            dt_chunks_count_value(&c->stat[i], number[i]);
        }
    }
    dt_chunks_count_value(&c->stat[DT_CHUNKS_CONTROLLED], controlled);
    dt_chunks_count_value(&c->stat[DT_CHUNKS_SIN], sin(number[DT_CHUNKS_HEADING]));
    dt_chunks_count_value(&c->stat[DT_CHUNKS_COS], cos(number[DT_CHUNKS_HEADING]));
    c->vehicle[c->n++] = (dt_vehicle){.x = number[DT_CHUNKS_X],
                                      .y = number[DT_CHUNKS_Y],
                                      .heading = number[DT_CHUNKS_HEADING],
                                      .speed = number[DT_CHUNKS_SPEED],
                                      .accel = number[DT_CHUNKS_ACCEL],
                                      .length = number[DT_CHUNKS_LENGTH],
                                      .width = number[DT_CHUNKS_WIDTH],
                                      .stop_distance = number[DT_CHUNKS_STOP],
                                      .id = id,
                                      .controlled = controlled};
    return DT_OK;
}

static dt_status read_vehicles(dt_json *j, dt_chunks *c)
{
    dt_status st;
    DT_TRY(dt_expect_array(j, "vehicles"));
    c->n = 0;
    while ((st = dt_expect_next_object(j, "a vehicle")) == DT_OK) {
        if (c->n == c->cap) {
            uint32_t cap = c->cap == 0 ? 64 : 2 * c->cap;
            if (cap > VEHICLES_MAX) {
                return dt_json_fail(j, "a frame of more than %d vehicles", VEHICLES_MAX);
            }
            dt_vehicle *grown = dt_realloc(c->vehicle, cap * sizeof(*grown));
            if (grown == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", cap);
            }
            c->vehicle = grown;
            c->cap = cap;
        }
        DT_TRY(read_vehicle(j, c));
    }
    return st == DT_DONE ? DT_OK : st;
}

/* Frames lie on the grid that the sample's first one begins. */
static dt_status frame_number(dt_json *j, dt_chunks *c, double t, int64_t *out_p)
{
    if (c->last_frame < 0) {
        c->t0 = t;
    }
    double frame = (t - c->t0) * c->rate_hz;
    if (!(fabs(frame) < 1e12) || fabs(frame - rint(frame)) > 0.1) {
        return dt_json_fail(j, "t %g is %.3f frames of %g Hz after the sample's first, not a whole number", t, frame,
                            c->rate_hz);
    }
    if ((int64_t)rint(frame) <= c->last_frame) {
        return dt_json_fail(j, "time goes backwards: t %g comes after t %g", t,
                            c->t0 + (double)c->last_frame / c->rate_hz);
    }
    if (c->last_frame >= 0 && rint(frame) - (double)c->last_frame > DT_SCENE_GAP_S * c->rate_hz) {
        return dt_json_fail(j, "t %g comes %g s after the frame before, the limit is %g s: make it two samples", t,
                            (rint(frame) - (double)c->last_frame) / c->rate_hz, DT_SCENE_GAP_S);
    }
    *out_p = (int64_t)rint(frame);
    return DT_OK;
}

static dt_status read_frame(dt_json *j, dt_chunks *c)
{
    enum { T, VEHICLES };
    static const char *const keys[] = {"t", "vehicles", NULL};
    uint32_t seen = 0;
    int which = 0;
    double t = 0;
    int64_t frame = 0;
    dt_status st;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        if (which == T) {
            DT_TRY(dt_expect_f64(j, keys[T], &t, NULL));
            DT_TRY(frame_number(j, c, t, &frame));
        } else {
            DT_TRY(read_vehicles(j, c));
        }
    }
    DT_TRY_DONE(st);
    for (int i = T; i <= VEHICLES; i++) {
        if ((seen >> i & 1) == 0) {
            return dt_json_fail(j, "the frame has no %s", keys[i]);
        }
    }
    st = c->writer != NULL ? dt_store_frame(c->writer, frame, t, c->vehicle, c->n) : DT_OK; /* NULL: only looked at */
    if (st == DT_EDATA) {
        dt_error e;
        dt_error_save(&e, st);
        return dt_json_fail(j, "frame t %g: %s", t, e.text);
    }
    DT_TRY(st);
    c->last_frame = frame;
    return dt_motion_check_frame(&c->check, frame, c->vehicle, c->n);
}

static dt_status read_frames(dt_json *j, dt_chunks *c)
{
    dt_status st;
    DT_TRY(dt_expect_array(j, "frames"));
    while ((st = dt_expect_next_object(j, "a frame")) == DT_OK) {
        DT_TRY(read_frame(j, c));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status check_site(dt_json *j, const dt_chunks *c, const char *site)
{
    for (int64_t i = 0; i < c->n_sites; i++) {
        if (strcmp(c->site[i], site) == 0) {
            return DT_OK;
        }
    }
    return c->n_sites == 0 ? DT_OK : dt_json_fail(j, "site \"%s\" is not among the sites of metadata.json", site);
}

static dt_status read_sample(dt_json *j, dt_chunks *c)
{
    enum { SAMPLE_ID, SCENE, SITE, FRAMES };
    static const char *const keys[] = {"id", "scene", "site", "frames", NULL};
    char text[FRAMES][DT_CHUNKS_NAME_BYTES] = {"", "", "unknown"}, *id = text[SAMPLE_ID], *scene = text[SCENE];
    uint32_t seen = 0;
    int which = 0;
    dt_status st;
    c->last_frame = -1;
    dt_motion_check_scene(&c->check);
    if (c->writer != NULL) {
        DT_TRY(dt_store_scene_begin(c->writer));
        DT_TRY(dt_store_scene_map(c->writer, c->map));
    }
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(which == FRAMES ? read_frames(j, c) : dt_expect_str(j, keys[which], text[which], sizeof(text[which])));
        DT_TRY(which == SITE ? check_site(j, c, text[SITE]) : DT_OK);
    }
    DT_TRY_DONE(st);
    if (id[0] == '\0' || strchr(id, '#') != NULL || strchr(scene, '#') != NULL) {
        return dt_json_fail(j, "the sample's id \"%s\" is empty, or it or the scene \"%s\" has a '#'", id, scene);
    }
    char name[2 * DT_CHUNKS_NAME_BYTES + 2];
    snprintf(name, sizeof(name), "%s%s%s", scene, scene[0] == '\0' ? "" : "#", id);
    if (c->last_frame < 0) {
        return dt_json_fail(j, "sample %s has no frames", id);
    }
    st = c->writer != NULL ? dt_store_scene_end(c->writer, name, text[SITE]) : DT_OK;
    if (st == DT_EDATA) {
        dt_error e;
        dt_error_save(&e, st);
        return dt_json_fail(j, "%s", e.text);
    }
    c->n_samples++;
    return st;
}

static const char *const chunk_keys[] = {"samples", NULL};

static dt_status read_samples(dt_json *j, int which, dt_chunks *c)
{
    dt_status st;
    (void)which; /* there is no other key */
    DT_TRY(dt_expect_array(j, "samples"));
    while ((st = dt_expect_next_object(j, "a sample")) == DT_OK) {
        DT_TRY(read_sample(j, c));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_chunk(dt_chunks *c, int64_t i)
{
    char path[DT_CHUNKS_PATH_BYTES];
    const char *slash = strrchr(c->file[i], '/');
    DT_TRY(dt_chunks_path(c, c->file[i], path));
    if (!dt_fs_is_file(path) && slash != NULL) { /* also accepted without chunks/ */
        DT_TRY(dt_chunks_path(c, slash + 1, path));
    }
    if (!dt_fs_is_file(path)) {
        return DT_FAIL(DT_EDATA, "%s/%s is missing, metadata.json announces it", c->folder, c->file[i]);
    }
    dt_chunks_document d;
    int64_t before = c->n_samples;
    DT_TRY(dt_chunks_open(path, &d));
    dt_status st = dt_chunks_read_members(d.json, "a chunk", chunk_keys, read_samples, c);
    dt_chunks_close(&d);
    DT_TRY(st);
    if (c->announced[i] >= 0 && c->announced[i] != c->n_samples - before) {
        return DT_FAIL(DT_EDATA, "%s has %" PRId64 " samples, metadata.json announces %" PRId64, path,
                       c->n_samples - before, c->announced[i]);
    }
    return DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status find_map(dt_chunks *c, dt_str *notes)
{
    const char *path = c->opt->map, *text = c->opt->map_origin, *offset = c->opt->map_offset;
    dt_map_origin origin;
    dt_roads roads = {.n_lanes = 0};
    dt_str name = {0};
    c->map = -1;
    if (path == NULL || path[0] == '\0') {
        return DT_OK;
    }
    if (dt_fs_is_dir(path)) {
        return DT_FAIL(DT_EINVAL, "import.map is the folder %s: chunks have one map for all their scenes, a file",
                       path);
    }
    DT_TRY(dt_map_origin_parse(text == NULL ? "" : text, &origin));
    DT_TRY(dt_map_offset_parse(offset == NULL ? "" : offset, origin.offset));
    dt_status st = dt_rows_stem(path, &name);
    if (st == DT_OK) {
        st = dt_map_read(path, &origin, notes, &roads);
    }
    if (st == DT_OK) {
        st = dt_store_map(c->writer, dt_str_text(&name), &roads, &c->map);
    }
    dt_roads_fini(&roads);
    dt_str_fini(&name);
    return st;
}

static dt_status import_folder(dt_chunks *c, const char *out, dt_str *notes)
{
    DT_TRY(dt_chunks_read_metadata(c));
    dt_motion_check_init(&c->check, c->rate_hz);
    if (c->opt->frame_rate_hz > 0 && fabs(c->opt->frame_rate_hz - c->rate_hz) > 1e-9) {
        return DT_FAIL(DT_EINVAL, "the frame rate %g Hz of the options differs from %g Hz of %s/metadata.json",
                       c->opt->frame_rate_hz, c->rate_hz, c->folder);
    }
    const char *slash = strrchr(c->folder, '/');
    dt_store_meta meta = {.frame_rate_hz = c->rate_hz,
                          .packing = c->opt->packing,
                          .map_near_m = c->opt->map != NULL && c->opt->map[0] != '\0' ? DT_MAP_NEAR_M : 0,
                          .radius_m = c->opt->radius_m,
                          .smooth_s = c->opt->smooth_s,
                          .k_max = c->opt->k_max,
                          .jobs = c->opt->jobs,
                          .source = slash == NULL || slash[1] == '\0' ? c->folder : slash + 1,
                          .options = "dtrain-chunks"};
    DT_TRY(dt_store_create(out, &meta, &c->writer));
    DT_TRY(find_map(c, notes));
    for (int64_t i = 0; i < c->n_files; i++) {
        DT_TRY(read_chunk(c, i));
        if (c->opt->progress != NULL) {
            const dt_import_progress p = {.done = (uint64_t)i + 1, .total = (uint64_t)c->n_files, .is_chunks = true};
            c->opt->progress(c->opt->progress_user, &p);
        }
    }
    DT_TRY(dt_chunks_read_statistics(c, notes));
    dt_str_addf(notes, "%" PRId64 " chunks, %" PRId64 " samples, %g Hz\n", c->n_files, c->n_samples, c->rate_hz);
    DT_TRY(dt_motion_check_report(&c->check, c->folder, notes));
    return dt_store_commit(c->writer);
}

static void chunks_fini(dt_chunks *c)
{
    dt_store_destroy(c->writer);
    for (int64_t i = 0; i < c->n_sites; i++) {
        dt_free(c->site[i]);
    }
    dt_free(c->site);
    dt_free(c->file);
    dt_free(c->announced);
    dt_ids_fini(&c->ids);
    dt_motion_check_fini(&c->check);
    dt_free(c->vehicle);
}

dt_status dt_chunks_check(const void *metadata, size_t metadata_bytes, const void *chunk, size_t chunk_bytes)
{
    static const dt_import_options none = {0};
    dt_chunks c = {.folder = "", .opt = &none};
    dt_chunks_document d;
    dt_status st = dt_chunks_open_text(metadata, metadata_bytes, "metadata.json", &d);
    if (st == DT_OK) {
        st = dt_chunks_read_description(&c, &d, "metadata.json");
        dt_motion_check_init(&c.check, c.rate_hz);
    }
    if (st == DT_OK && chunk != NULL && (st = dt_chunks_open_text(chunk, chunk_bytes, "chunk", &d)) == DT_OK) {
        st = dt_chunks_read_members(d.json, "a chunk", chunk_keys, read_samples, &c);
        dt_chunks_close(&d);
    }
    chunks_fini(&c);
    return st;
}

dt_status dt_import_chunks(const char *src, const char *out, const dt_import_options *opt, dt_str *notes)
{
    dt_chunks c = {.folder = src, .opt = opt};
    dt_status st = import_folder(&c, out, notes);
    chunks_fini(&c);
    return st;
}
