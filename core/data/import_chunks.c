/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON chunk layout into a store: metadata.json, statistics.json, chunks/chunk_000.json ... streamed, one frame in
 * memory. Units are SI and checked. Unknown keys are skipped (later versions may add some), wrong types never.
 *
 * statistics.json: {"<feature>":{"min":x,"max":x,"mean":x,"std":x,"count":n},...} over every value of the chunks that
 * is
 * not missing. Features: the numbers of a vehicle (x y heading speed accel length width stop_distance), controlled as
 * 0 or 1, sin_heading and cos_heading, acceleration as another name of accel. Compared with 0.1 % of the feature's
 * range plus 1e-3, which leaves room for rounded figures; std may be that of the population or of the sample.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/import.h"
#include "data/json_in.h"
#include "data/map_in.h"
#include "data/rows.h"
#include "data/source.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 200, PATH_BYTES = 1024, VEHICLES_MAX = 1 << 20, FILES_MAX = 1 << 17, SITES_MAX = 1 << 16 };

/* Numbers of a vehicle in the file. */
enum number { X, Y, HEADING, SPEED, ACCEL, LENGTH, WIDTH, STOP, N_NUMBERS };
static const struct number_spec {
    const char *name;
    double lo, hi;
    bool may_be_missing;
} numbers[N_NUMBERS] = {
    [X] = {"x", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [Y] = {"y", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [HEADING] = {"heading", -1e3, 1e3, false},
    [SPEED] = {"speed", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [ACCEL] = {"accel", -1e3, 1e3, true},
    [LENGTH] = {"length", 0, DT_SIZE_MAX_M, false},
    [WIDTH] = {"width", 0, DT_SIZE_MAX_M, true},
    [STOP] = {"stop_distance", 0, 1e6, true},
};

/* Features that statistics.json may describe: the numbers, and three made from them. */
enum { CONTROLLED = N_NUMBERS, SIN, COS, N_STATS };
static const char *const stat_names[] = {[X] = "x",
                                         [Y] = "y",
                                         [HEADING] = "heading",
                                         [SPEED] = "speed",
                                         [ACCEL] = "accel",
                                         [LENGTH] = "length",
                                         [WIDTH] = "width",
                                         [STOP] = "stop_distance",
                                         [CONTROLLED] = "controlled",
                                         [SIN] = "sin_heading",
                                         [COS] = "cos_heading",
                                         [N_STATS] = NULL};

typedef struct stat {
    int64_t n;
    double min, max, mean, m2;
} stat;

typedef struct chunks {
    const char *folder;
    const dt_import_options *opt;
    dt_store_writer *writer;
    int32_t map; /* of all scenes, -1: none */
    double rate_hz;
    int64_t version;
    char format[64];
    bool has_rate, has_list;
    char (*file)[PATH_BYTES]; /* names as metadata.json gives them */
    int64_t *announced;       /* samples, -1 unknown */
    int64_t n_files, files_cap;
    char **site;
    int64_t n_sites, sites_cap;
    stat stat[N_STATS];
    int64_t n_samples;
    /* of the sample and frame being read */
    dt_vehicle *vehicle;
    uint32_t n, cap;
    double t0;
    int64_t last_frame;
} chunks;

static void stat_add(stat *s, double x)
{
    double d = x - s->mean;
    s->n++;
    s->mean += d / (double)s->n;
    s->m2 += d * (x - s->mean);
    s->min = s->n == 1 || x < s->min ? x : s->min;
    s->max = s->n == 1 || x > s->max ? x : s->max;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

typedef struct document {
    dt_source *source;
    dt_json *json;
} document;

static void close_document(document *d)
{
    dt_json_close(d->json);
    dt_source_close(d->source);
    *d = (document){0};
}

/* bytes NULL: the file of that name. */
static dt_status open_text(const void *bytes, size_t n_bytes, const char *name, document *d)
{
    *d = (document){0};
    DT_TRY(bytes != NULL ? dt_source_open_mem(bytes, n_bytes, name, &d->source) : dt_source_open(name, &d->source));
    dt_status st = dt_json_open(dt_source_read, d->source, name, &d->json);
    if (st != DT_OK) {
        close_document(d);
    }
    return st;
}

static dt_status open_document(const char *path, document *d)
{
    return open_text(NULL, 0, path, d);
}

static dt_status path_in(const chunks *c, const char *name, char out[PATH_BYTES])
{
    int n = snprintf(out, PATH_BYTES, "%s/%s", c->folder, name);
    return n > 0 && n < PATH_BYTES ? DT_OK : DT_FAIL(DT_EDATA, "the path %s/%s is too long", c->folder, name);
}

/* ---- metadata.json ----------------------------------------------------------------------------------------------- */

static dt_status add_file(chunks *c, const char *name, int64_t announced)
{
    if (c->n_files == c->files_cap) {
        if (c->n_files == FILES_MAX) {
            return DT_FAIL(DT_EDATA, "%s holds more than %d chunks", c->folder, FILES_MAX);
        }
        int64_t cap = c->files_cap == 0 ? 64 : 2 * c->files_cap;
        void *file = dt_realloc(c->file, (size_t)cap * PATH_BYTES);
        c->file = file == NULL ? c->file : file;
        int64_t *count = file == NULL ? NULL : dt_realloc(c->announced, (size_t)cap * sizeof(*count));
        if (count == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " chunk names", cap);
        }
        c->announced = count;
        c->files_cap = cap;
    }
    snprintf(c->file[c->n_files], PATH_BYTES, "%s", name);
    c->announced[c->n_files++] = announced;
    return DT_OK;
}

static dt_status read_chunk_list(dt_json *j, chunks *c)
{
    dt_status st;
    DT_TRY(dt_in_array(j, "chunks"));
    while ((st = dt_in_next_object(j, "a chunk")) == DT_OK) {
        char key[DT_IN_KEY_BYTES], file[PATH_BYTES] = "";
        int64_t samples = -1;
        while ((st = dt_in_key(j, key)) == DT_OK) {
            if (strcmp(key, "file") == 0) {
                DT_TRY(dt_in_str(j, key, file, sizeof(file)));
            } else {
                DT_TRY(strcmp(key, "samples") == 0 ? dt_in_i64(j, key, &samples) : dt_json_skip(j));
            }
        }
        DT_TRY(st);
        if (file[0] == '\0' || file[0] == '/' || strstr(file, "..") != NULL) {
            return dt_json_fail(j, "the chunk's file \"%s\" is not a name inside the folder", file);
        }
        DT_TRY(add_file(c, file, samples));
    }
    c->has_list = true;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_sites(dt_json *j, chunks *c)
{
    char name[NAME_BYTES];
    dt_status st;
    DT_TRY(dt_in_array(j, "sites"));
    while ((st = dt_in_next_str(j, "a site", name, sizeof(name))) == DT_OK) {
        if (c->n_sites == c->sites_cap) {
            if (c->n_sites == SITES_MAX) {
                return dt_json_fail(j, "more than %d sites", SITES_MAX);
            }
            int64_t cap = c->sites_cap == 0 ? 16 : 2 * c->sites_cap;
            char **grown = dt_realloc(c->site, (size_t)cap * sizeof(*grown));
            if (grown == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " sites", cap);
            }
            c->site = grown;
            c->sites_cap = cap;
        }
        if ((c->site[c->n_sites] = dt_strdup(name)) == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for site %s", name);
        }
        c->n_sites++;
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_units(dt_json *j)
{
    static const char *const unit[][2] = {{"length", "m"}, {"speed", "m/s"}, {"angle", "rad"}};
    char key[DT_IN_KEY_BYTES], text[NAME_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, "units"));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        size_t i = 0;
        while (i < 3 && strcmp(key, unit[i][0]) != 0) {
            i++;
        }
        DT_TRY(dt_in_str(j, key, text, sizeof(text)));
        if (i < 3 && strcmp(text, unit[i][1]) != 0) {
            return dt_json_fail(j, "the unit of %s is \"%s\", this layout knows \"%s\" alone", key, text, unit[i][1]);
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_metadata_member(dt_json *j, const char *key, chunks *c)
{
    if (strcmp(key, "format") == 0) {
        return dt_in_str(j, key, c->format, sizeof(c->format));
    }
    if (strcmp(key, "version") == 0) {
        DT_TRY(dt_in_i64(j, key, &c->version));
        return c->version == 1 ? DT_OK
                               : dt_json_fail(j, "version %" PRId64 ", this program reads version 1", c->version);
    }
    if (strcmp(key, "frame_rate_hz") == 0) {
        DT_TRY(dt_in_f64(j, key, &c->rate_hz, NULL));
        c->has_rate = true;
        return c->rate_hz >= 0.1 && c->rate_hz <= 1000
                   ? DT_OK
                   : dt_json_fail(j, "frame_rate_hz %g is outside [0.1, 1000]", c->rate_hz);
    }
    if (strcmp(key, "units") == 0) {
        return read_units(j);
    }
    if (strcmp(key, "sites") == 0) {
        return read_sites(j, c);
    }
    return strcmp(key, "chunks") == 0 ? read_chunk_list(j, c) : dt_json_skip(j);
}

/* Every member of an open document's top object, then its end. */
static dt_status read_top(dt_json *j, const char *what, dt_status (*member)(dt_json *, const char *, chunks *),
                          chunks *c)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, what));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        DT_TRY(member(j, key, c));
    }
    return st == DT_DONE ? dt_in_end(j) : st;
}

/* No list in metadata.json: every chunk_*.json of chunks/ or of the folder itself, in the order of their names. */
static dt_status list_folder(chunks *c)
{
    char path[PATH_BYTES];
    DT_TRY(path_in(c, "chunks", path));
    bool is_below = dt_fs_is_dir(path);
    char **names = NULL;
    size_t n = 0;
    dt_status st = dt_fs_list(is_below ? path : c->folder, &names, &n);
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        size_t bytes = strlen(names[i]);
        if (strncmp(names[i], "chunk_", 6) == 0 && bytes > 5 && strcmp(names[i] + bytes - 5, ".json") == 0) {
            char name[PATH_BYTES];
            snprintf(name, sizeof(name), "%s%s", is_below ? "chunks/" : "", names[i]);
            st = add_file(c, name, -1);
        }
    }
    dt_fs_list_free(names, n);
    return st;
}

/* The whole of an open metadata.json, which is closed. */
static dt_status read_description(chunks *c, document *d, const char *path)
{
    dt_status st = read_top(d->json, "metadata.json", read_metadata_member, c);
    close_document(d);
    DT_TRY(st);
    if (strcmp(c->format, "dtrain-chunks") != 0 || c->version == 0 || !c->has_rate) {
        return DT_FAIL(DT_EDATA,
                       "%s: needs \"format\":\"dtrain-chunks\", \"version\":1 and frame_rate_hz; format is "
                       "\"%s\"",
                       path, c->format);
    }
    return DT_OK;
}

static dt_status read_metadata(chunks *c)
{
    char path[PATH_BYTES];
    document d;
    DT_TRY(path_in(c, "metadata.json", path));
    if (!dt_fs_is_file(path)) {
        return DT_FAIL(DT_EDATA, "%s has no metadata.json: not a recording in the chunk layout", c->folder);
    }
    DT_TRY(open_document(path, &d));
    DT_TRY(read_description(c, &d, path));
    if (!c->has_list) {
        DT_TRY(list_folder(c));
    }
    return c->n_files > 0 ? DT_OK : DT_FAIL(DT_EDATA, "%s holds no data: there is no chunk", c->folder);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static dt_status read_vehicle(dt_json *j, chunks *c)
{
    double number[N_NUMBERS];
    bool is_seen[N_NUMBERS] = {false}, has_id = false, controlled = false;
    int64_t id = 0;
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    for (int i = 0; i < N_NUMBERS; i++) {
        number[i] = NAN;
    }
    while ((st = dt_in_key(j, key)) == DT_OK) {
        int i = 0;
        while (i < N_NUMBERS && strcmp(key, numbers[i].name) != 0) {
            i++;
        }
        if (i == N_NUMBERS) {
            if (strcmp(key, "id") == 0) {
                DT_TRY(dt_in_i64(j, key, &id));
                has_id = true;
            } else {
                DT_TRY(strcmp(key, "controlled") == 0 ? dt_in_bool(j, key, &controlled) : dt_json_skip(j));
            }
            continue;
        }
        bool is_null = false;
        DT_TRY(dt_in_f64(j, key, &number[i], numbers[i].may_be_missing ? &is_null : NULL));
        if (is_seen[i]) {
            return dt_json_fail(j, "%s is given twice for one vehicle", key);
        }
        is_seen[i] = true;
        if (!is_null && !(number[i] >= numbers[i].lo && number[i] <= numbers[i].hi)) {
            return dt_json_fail(j, "%s %g is outside [%g, %g]", key, number[i], numbers[i].lo, numbers[i].hi);
        }
    }
    DT_TRY(st);
    for (int i = 0; i < N_NUMBERS; i++) {
        if (!is_seen[i] && !numbers[i].may_be_missing) {
            return dt_json_fail(j, "the vehicle has no %s", numbers[i].name);
        }
        if (!isnan(number[i])) {
            stat_add(&c->stat[i], number[i]);
        }
    }
    if (!has_id) {
        return dt_json_fail(j, "the vehicle has no id");
    }
    stat_add(&c->stat[CONTROLLED], controlled);
    stat_add(&c->stat[SIN], sin(number[HEADING]));
    stat_add(&c->stat[COS], cos(number[HEADING]));
    c->vehicle[c->n++] = (dt_vehicle){.x = number[X],
                                      .y = number[Y],
                                      .heading = number[HEADING],
                                      .speed = number[SPEED],
                                      .accel = number[ACCEL],
                                      .length = number[LENGTH],
                                      .width = number[WIDTH],
                                      .stop_distance = number[STOP],
                                      .id = id,
                                      .controlled = controlled};
    return DT_OK;
}

static dt_status read_vehicles(dt_json *j, chunks *c)
{
    dt_status st;
    DT_TRY(dt_in_array(j, "vehicles"));
    c->n = 0;
    while ((st = dt_in_next_object(j, "a vehicle")) == DT_OK) {
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
static dt_status frame_number(dt_json *j, chunks *c, double t, int64_t *out_p)
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

static dt_status read_frame(dt_json *j, chunks *c)
{
    char key[DT_IN_KEY_BYTES];
    bool has_t = false, has_vehicles = false;
    double t = 0;
    int64_t frame = 0;
    dt_status st;
    while ((st = dt_in_key(j, key)) == DT_OK) {
        if (strcmp(key, "t") == 0) {
            DT_TRY(dt_in_f64(j, key, &t, NULL));
            DT_TRY(frame_number(j, c, t, &frame));
            has_t = true;
        } else if (strcmp(key, "vehicles") == 0) {
            DT_TRY(read_vehicles(j, c));
            has_vehicles = true;
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
    DT_TRY(st);
    if (!has_t || !has_vehicles) {
        return dt_json_fail(j, "the frame has no %s", has_t ? "vehicles" : "t");
    }
    st = c->writer != NULL ? dt_store_frame(c->writer, frame, t, c->vehicle, c->n) : DT_OK; /* NULL: only looked at */
    if (st == DT_EDATA) {
        dt_error e;
        dt_error_take(&e, st);
        return dt_json_fail(j, "frame t %g: %s", t, e.text);
    }
    c->last_frame = frame;
    return st;
}

static dt_status read_frames(dt_json *j, chunks *c)
{
    dt_status st;
    DT_TRY(dt_in_array(j, "frames"));
    while ((st = dt_in_next_object(j, "a frame")) == DT_OK) {
        DT_TRY(read_frame(j, c));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status check_site(dt_json *j, const chunks *c, const char *site)
{
    for (int64_t i = 0; i < c->n_sites; i++) {
        if (strcmp(c->site[i], site) == 0) {
            return DT_OK;
        }
    }
    return c->n_sites == 0 ? DT_OK : dt_json_fail(j, "site \"%s\" is not among the sites of metadata.json", site);
}

static dt_status read_sample(dt_json *j, chunks *c)
{
    char key[DT_IN_KEY_BYTES], id[NAME_BYTES] = "", scene[NAME_BYTES] = "", site[NAME_BYTES] = "unknown";
    bool has_frames = false;
    dt_status st;
    c->last_frame = -1;
    if (c->writer != NULL) {
        DT_TRY(dt_store_scene_begin(c->writer));
        DT_TRY(dt_store_scene_map(c->writer, c->map));
    }
    while ((st = dt_in_key(j, key)) == DT_OK) {
        if (strcmp(key, "id") == 0) {
            DT_TRY(dt_in_str(j, key, id, sizeof(id)));
        } else if (strcmp(key, "scene") == 0) {
            DT_TRY(dt_in_str(j, key, scene, sizeof(scene)));
        } else if (strcmp(key, "site") == 0) {
            DT_TRY(dt_in_str(j, key, site, sizeof(site)));
            DT_TRY(check_site(j, c, site));
        } else if (strcmp(key, "frames") == 0) {
            if (has_frames) {
                return dt_json_fail(j, "the sample has its frames twice");
            }
            DT_TRY(read_frames(j, c));
            has_frames = true;
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
    DT_TRY(st);
    if (id[0] == '\0' || strchr(id, '#') != NULL || strchr(scene, '#') != NULL) {
        return dt_json_fail(j, "the sample's id \"%s\" is empty, or it or the scene \"%s\" has a '#'", id, scene);
    }
    char name[2 * NAME_BYTES + 2];
    snprintf(name, sizeof(name), "%s%s%s", scene, scene[0] == '\0' ? "" : "#", id);
    if (c->last_frame < 0) {
        return dt_json_fail(j, "sample %s has no frames", id);
    }
    st = c->writer != NULL ? dt_store_scene_end(c->writer, name, site) : DT_OK;
    if (st == DT_EDATA) {
        dt_error e;
        dt_error_take(&e, st);
        return dt_json_fail(j, "%s", e.text);
    }
    c->n_samples++;
    return st;
}

static dt_status read_chunk_member(dt_json *j, const char *key, chunks *c)
{
    dt_status st;
    if (strcmp(key, "samples") != 0) {
        return dt_json_skip(j);
    }
    DT_TRY(dt_in_array(j, "samples"));
    while ((st = dt_in_next_object(j, "a sample")) == DT_OK) {
        DT_TRY(read_sample(j, c));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_chunk(chunks *c, int64_t i)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(c->file[i], '/');
    DT_TRY(path_in(c, c->file[i], path));
    if (!dt_fs_is_file(path) && slash != NULL) { /* also accepted without chunks/ */
        DT_TRY(path_in(c, slash + 1, path));
    }
    if (!dt_fs_is_file(path)) {
        return DT_FAIL(DT_EDATA, "%s/%s is missing, metadata.json announces it", c->folder, c->file[i]);
    }
    document d;
    int64_t before = c->n_samples;
    DT_TRY(open_document(path, &d));
    dt_status st = read_top(d.json, "a chunk", read_chunk_member, c);
    close_document(&d);
    DT_TRY(st);
    if (c->announced[i] >= 0 && c->announced[i] != c->n_samples - before) {
        return DT_FAIL(DT_EDATA, "%s has %" PRId64 " samples, metadata.json announces %" PRId64, path,
                       c->n_samples - before, c->announced[i]);
    }
    return DT_OK;
}

/* ---- statistics.json --------------------------------------------------------------------------------------------- */

static dt_status compare(dt_json *j, const char *feature, const char *what, double said, double found, double tolerance)
{
    return fabs(said - found) <= tolerance ? DT_OK
                                           : dt_json_fail(j,
                                                          "%s of %s is %.9g, but the chunks give %.9g (tolerance %.3g)"
                                                          ": the statistics belong to other chunks",
                                                          what, feature, said, found, tolerance);
}

static dt_status read_statistics_member(dt_json *j, const char *feature, chunks *c)
{
    int i = 0;
    while (i < N_STATS && strcmp(feature, stat_names[i]) != 0) {
        i++;
    }
    i = strcmp(feature, "acceleration") == 0 ? ACCEL : i;
    if (i == N_STATS) {
        const char *near = dt_did_you_mean(feature, stat_names);
        return dt_json_fail(j, "there is no feature \"%s\"%s%s%s", feature, near == NULL ? "" : ", did you mean \"",
                            near == NULL ? "" : near, near == NULL ? "" : "\"?");
    }
    const stat *s = &c->stat[i];
    double n = (double)s->n, tolerance = 1e-3 + 1e-3 * (s->n > 0 ? s->max - s->min : 0);
    double population = s->n > 0 ? sqrt(s->m2 / n) : 0, sample = s->n > 1 ? sqrt(s->m2 / (n - 1)) : population;
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, feature));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        double x = 0;
        bool is_null = false;
        if (strcmp(key, "count") == 0) {
            int64_t count = 0;
            DT_TRY(dt_in_i64(j, key, &count));
            if (count != s->n) {
                return dt_json_fail(j, "count of %s is %" PRId64 ", but the chunks hold %" PRId64 " values", feature,
                                    count, s->n);
            }
            continue;
        }
        DT_TRY(dt_in_f64(j, key, &x, s->n == 0 ? &is_null : NULL));
        if (is_null || s->n == 0) {
            continue;
        }
        if (strcmp(key, "min") == 0) {
            DT_TRY(compare(j, feature, key, x, s->min, tolerance));
        } else if (strcmp(key, "max") == 0) {
            DT_TRY(compare(j, feature, key, x, s->max, tolerance));
        } else if (strcmp(key, "mean") == 0) {
            DT_TRY(compare(j, feature, key, x, s->mean, tolerance));
        } else if (strcmp(key, "std") == 0) {
            DT_TRY(
                compare(j, feature, key, x, fabs(x - population) < fabs(x - sample) ? population : sample, tolerance));
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status check_statistics(chunks *c, dt_str *notes)
{
    char path[PATH_BYTES];
    document d;
    DT_TRY(path_in(c, "statistics.json", path));
    if (!dt_fs_is_file(path)) {
        dt_str_add(notes, "no statistics.json: nothing to check the chunks against\n");
        return DT_OK;
    }
    DT_TRY(open_document(path, &d));
    dt_status st = read_top(d.json, "statistics.json", read_statistics_member, c);
    close_document(&d);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status find_map(chunks *c, dt_str *notes)
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

static dt_status import_folder(chunks *c, const char *out, dt_str *notes)
{
    DT_TRY(read_metadata(c));
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
    DT_TRY(check_statistics(c, notes));
    dt_str_addf(notes, "%" PRId64 " chunks, %" PRId64 " samples, %g Hz\n", c->n_files, c->n_samples, c->rate_hz);
    return dt_store_commit(c->writer);
}

static void chunks_fini(chunks *c)
{
    dt_store_destroy(c->writer);
    for (int64_t i = 0; i < c->n_sites; i++) {
        dt_free(c->site[i]);
    }
    dt_free(c->site);
    dt_free(c->file);
    dt_free(c->announced);
    dt_free(c->vehicle);
}

dt_status dt_chunks_check(const void *metadata, size_t metadata_bytes, const void *chunk, size_t chunk_bytes)
{
    static const dt_import_options none = {0};
    chunks c = {.folder = "", .opt = &none};
    document d;
    dt_status st = open_text(metadata, metadata_bytes, "metadata.json", &d);
    if (st == DT_OK) {
        st = read_description(&c, &d, "metadata.json");
    }
    if (st == DT_OK && chunk != NULL && (st = open_text(chunk, chunk_bytes, "chunk", &d)) == DT_OK) {
        st = read_top(d.json, "a chunk", read_chunk_member, &c);
        close_document(&d);
    }
    chunks_fini(&c);
    return st;
}

dt_status dt_import_chunks(const char *src, const char *out, const dt_import_options *opt, dt_str *notes)
{
    chunks c = {.folder = src, .opt = opt};
    dt_status st = import_folder(&c, out, notes);
    chunks_fini(&c);
    return st;
}
