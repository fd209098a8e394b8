/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain data import|inspect|export|merge|split|sample|cut`.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/draw_scene.h"
#include "cli/tools.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/print.h"
#include "base/signals.h"
#include "config/options.h"
#include "data/cut.h"
#include "data/export_table.h"
#include "data/hdf5_store.h"
#include "data/import.h"
#include "data/parts.h"
#include "data/smooth.h"
#include "plan/machine/limits.h"
#include "telemetry/metrics/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 1024 };

/* ---- options of an import: the section "import" of a configuration --------------------------------------------- */

typedef struct import_opts {
    const char *columns, *site, *map, *map_origin, *map_offset, *types;
    double frame_rate_hz, radius_m, smooth_s;
    int64_t neighbours, memory_mb, jobs, part_mb;
    uint8_t unordered;
} import_opts;

static const dt_option import_table[] = {
    DT_OPTION(import_opts, columns, DT_OPT_STR, "", "", 0, 0, NULL,
              "column map of a table: \"id=car,frame=f,x=X*0.3048,...\"; empty: recognise the header"),
    DT_OPTION(import_opts, site, DT_OPT_STR, "", "", 0, 0, NULL, "site of a table without a site column"),
    DT_OPTION(import_opts, map, DT_OPT_STR, "", "", 0, 0, NULL,
              "file with the roads of all scenes: lanelet2 (osm), SUMO (net.xml) or Argoverse 2 (json), or a folder "
              "with one for each, "
              "SCENE.osm; empty: none but a scenario's own"),
    DT_OPTION(import_opts, map_origin, DT_OPT_STR, "", "", 0, 0, NULL,
              "origin of positions, for a map in degrees: \"LATITUDE,LONGITUDE\" or \"utm:EASTING,NORTHING\"; empty: "
              "the recording's, else 0,0"),
    DT_OPTION(import_opts, map_offset, DT_OPT_STR, "", "", 0, 0, NULL,
              "\"DX,DY\" in m: shift of maps whose positions have another origin than the recording's"),
    DT_OPTION(import_opts, types, DT_OPT_STR, "", "", 0, 0, NULL,
              "SUMO file with vType elements: lengths of the vehicles in its floating-car output"),
    DT_OPTION(import_opts, frame_rate_hz, DT_OPT_F64, "0", "1/s", 0, 1000, NULL,
              "frame rate of a recording whose layout, columns and times do not give one; 0: taken from the recording"),
    DT_OPTION(import_opts, radius_m, DT_OPT_F64, "50", "m", 1, 1000, NULL, "radius of a vehicle's neighbourhood"),
    DT_OPTION(import_opts, smooth_s, DT_OPT_F64, "0.5", "s", 0, DT_SMOOTH_MAX_S, NULL,
              "accelerations are computed from speeds and smoothed with this width (Thiemann et al. 2008): over the "
              "past for models, on both sides for risk labels; 0: as recorded, for recordings of a simulator"),
    DT_OPTION(import_opts, neighbours, DT_OPT_I64, "16", "1", 1, 64, NULL,
              "maximum edges of a vehicle, itself included"),
    DT_OPTION(import_opts, memory_mb, DT_OPT_I64, "64", "MiB", 1, 65536, NULL,
              "sort buffers of tables, of all jobs together"),
    DT_OPTION(import_opts, jobs, DT_OPT_I64, "0", "1", 0, JOBS_MAX, NULL,
              "parts that are imported simultaneously, threads if there is only one; --jobs sets the same; 0: one per "
              "available core"),
    DT_OPTION(import_opts, part_mb, DT_OPT_I64, "8", "MB", 0, 1048576, NULL,
              "files are grouped into parts of at least this size, which are imported in parallel and kept when an "
              "import is interrupted; 0: each file is a part. The store is the same"),
    DT_OPTION(import_opts, unordered, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "accept a vehicle's rows in any order of time"),
    DT_OPTION_END};

/* ---- how stores are written: the section "store" ----------------------------------------------------------------- */

typedef struct store_opts {
    uint32_t features, compress, repeats;
    int64_t compress_level;
} store_opts;

static const dt_option store_table[] = {
    DT_OPTION(store_opts, features, DT_OPT_ENUM, "f32", "", 0, 0, dt_packing_features,
              "storage of features of vehicles and edges: f32: exact; f16, i8: half and a quarter of the bytes, with "
              "the errors that data inspect prints; recorded values stay exact"),
    DT_OPTION(store_opts, compress, DT_OPT_ENUM, "none", "", 0, 0, dt_packing_codecs,
              "zstd: edges and features are compressed in blocks, which are decompressed when read"),
    DT_OPTION(store_opts, compress_level, DT_OPT_I64, "3", "1", 1, 19, NULL,
              "zstd level: higher is smaller and slower to write, and equally fast to read"),
    DT_OPTION(store_opts, repeats, DT_OPT_ENUM, "keep", "", 0, 0, dt_repeats_policies,
              "a scene that repeats another one row for row: keep it with a warning, skip it, or fail"),
    DT_OPTION_END};

/* ---- how HDF5 is written: the section "hdf5" --------------------------------------------------------------------- */

typedef struct hdf5_opts {
    int64_t gzip, chunk_rows;
} hdf5_opts;

static const dt_option hdf5_table[] = {
    DT_OPTION(hdf5_opts, gzip, DT_OPT_I64, "1", "1", 0, 9, NULL, "gzip level, of shuffled bytes; 0: not compressed"),
    DT_OPTION(hdf5_opts, chunk_rows, DT_OPT_I64, "0", "1", 0, 1048576, NULL,
              "vehicles, and edges, per chunk; 0: as many as a sample of 3 s has"),
    DT_OPTION_END};

/* ---- options of a split and of a sample: sections of the same names ---------------------------------------------- */

typedef struct split_opts {
    uint32_t by;
    double share, gap_s;
    int64_t seed;
} split_opts;

static const char *const split_by[] = {
    [DT_SPLIT_SCENE] = "scene", [DT_SPLIT_SITE] = "site", [DT_SPLIT_TIME] = "time", NULL};

static const dt_option split_table[] = {
    DT_OPTION(split_opts, by, DT_OPT_ENUM, "scene", "", 0, 0, split_by,
              "scene: whole recordings into two stores; site: one store per site; time: each scene at the same share "
              "of its time"),
    DT_OPTION(split_opts, share, DT_OPT_F64, "0.8", "1", 0.001, 0.999, NULL,
              "share of the rows (scene) or of each scene's time (time) that goes to the first store"),
    DT_OPTION(split_opts, gap_s, DT_OPT_F64, "0", "s", 0, 3600, NULL,
              "gap in each scene between the two parts, so that no window overlaps both"),
    DT_OPTION(split_opts, seed, DT_OPT_I64, "0", "", 0, 9e15, NULL, "seed that selects the scenes"), DT_OPTION_END};

typedef struct sample_opts {
    int64_t scenes, seed;
    double seconds;
} sample_opts;

static const dt_option sample_table[] = {
    DT_OPTION(sample_opts, scenes, DT_OPT_I64, "0", "1", 0, 1e9, NULL, "maximum number of scenes; 0: all"),
    DT_OPTION(sample_opts, seconds, DT_OPT_F64, "0", "s", 0, 1e9, NULL,
              "maximum duration taken from each scene, from a random start; 0: the whole scene"),
    DT_OPTION(sample_opts, seed, DT_OPT_I64, "0", "", 0, 9e15, NULL,
              "seed that selects the scenes and where their pieces start"),
    DT_OPTION_END};

/* ---- options of a cut by place: a section of that name ----------------------------------------------------------- */

typedef struct cut_opts {
    double tile_m, halo_m, halo_s;
    int64_t regions;
} cut_opts;

static const dt_option cut_table[] = {
    DT_OPTION(cut_opts, tile_m, DT_OPT_F64, "0", "m", 0, 1e6, NULL,
              "side of square regions; 0: cut.regions sets their number"),
    DT_OPTION(cut_opts, regions, DT_OPT_I64, "0", "1", 0, 65536, NULL,
              "number of regions per scene, with about equally many vehicles each; 0: tiles"),
    DT_OPTION(cut_opts, halo_m, DT_OPT_F64, "200", "m", 1, DT_CUT_HALO_MOST_M, NULL,
              "vehicles within this distance of a region's vehicles are included: radius_m of the store times the "
              "neighbourhoods that a model reads through, for risk_gnn one more than layers"),
    DT_OPTION(cut_opts, halo_s, DT_OPT_F64, "10", "s", 0, DT_CUT_HALO_MOST_S, NULL,
              "past and future included with it: at least the longest history or horizon of a window"),
    DT_OPTION_END};

const char *const dt_data_sections[] = {"import", "store", "hdf5", "split", "sample", "cut", NULL};

dt_status dt_data_declare(dt_config *c)
{
    DT_TRY(dt_config_declare(c, "import", import_table, NULL));
    DT_TRY(dt_config_declare(c, "store", store_table, NULL));
    DT_TRY(dt_config_declare(c, "hdf5", hdf5_table, NULL));
    DT_TRY(dt_config_declare(c, "split", split_table, NULL));
    DT_TRY(dt_config_declare(c, "sample", sample_table, NULL));
    return dt_config_declare(c, "cut", cut_table, NULL);
}

/* packing_p: what the section "store" says. */
static dt_status read_opts(const dt_args *a, dt_config *c, const char *section, void *out, size_t bytes,
                           dt_packing *packing_p)
{
    store_opts s;
    DT_TRY(dt_data_declare(c));
    for (uint32_t i = 0; i < a->n_config; i++) {
        DT_TRY(dt_config_read_file(c, DT_FROM_FILE, a->config[i]));
    }
    for (uint32_t i = 0; i < a->n_set; i++) {
        DT_TRY(dt_config_set(c, a->set[i]));
    }
    DT_TRY(dt_config_check(c, NULL));
    DT_TRY(dt_config_section(c, -1, "store", NULL, 0, &s, sizeof(s)));
    *packing_p =
        (dt_packing){.features = s.features, .codec = s.compress, .level = (int)s.compress_level, .repeats = s.repeats};
    return section == NULL ? DT_OK : dt_config_section(c, -1, section, NULL, 0, out, bytes);
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

#define QUICK_S 1.0 /* what is done by then needs no line */

typedef struct watch {
    dt_screen *screen;
    double begin_s, stage_s; /* of all, of reading or storing */
    bool is_storing;
    uint64_t bytes; /* read */
} watch;

static void show_import(void *user, const dt_import_progress *p)
{
    watch *w = user;
    const double now = dt_clock_s();
    char text[128];
    if (p->is_storing != w->is_storing) {
        w->is_storing = p->is_storing;
        w->stage_s = now;
    }
    w->bytes = p->is_storing || p->is_chunks ? w->bytes : p->done - p->before;
    const double s = now - w->stage_s, done = (double)p->done, total = (double)p->total;
    const double per_s = s > 0 ? (double)(p->done - p->before) / s : 0;
    const double left_s = per_s > 0 && total >= done ? (total - done) / per_s : -1;
    if (now - w->begin_s < QUICK_S) {
        return;
    }
    if (p->is_chunks) {
        snprintf(text, sizeof(text), "import  %.0f of %.0f chunks", done, total);
    } else if (p->is_parts) {
        snprintf(text, sizeof(text), "import  %.1f of %.1f MB  %.1f MB/s  %" PRIu32 " of %" PRIu32 " parts",
                 1e-6 * done, 1e-6 * total, 1e-6 * per_s, p->n_done, p->n_parts);
    } else if (p->is_storing) {
        snprintf(text, sizeof(text), "import  stored %.2f of %.2f M rows  %.2f M rows/s", 1e-6 * done, 1e-6 * total,
                 1e-6 * per_s);
    } else {
        snprintf(text, sizeof(text), "import  read %.1f of %.1f MB  %.1f MB/s", 1e-6 * done, 1e-6 * total,
                 1e-6 * per_s);
    }
    dt_screen_say(w->screen, text, left_s);
}

static bool is_asked_to_stop(void *unused)
{
    (void)unused;
    return dt_signals_stop() != 0;
}

static dt_status import_watched(const dt_args *a, dt_import_options *io, dt_str *notes)
{
    watch w = {.begin_s = dt_clock_s(), .stage_s = dt_clock_s()};
    DT_TRY(dt_screen_open(a->quiet, &w.screen));
    io->progress = show_import;
    io->progress_user = &w;
    io->stops = is_asked_to_stop;
    dt_signals_nothing_to_save(true); /* until parts are made, which are kept */
    dt_signals_install();
    const dt_status st = dt_data_import((const char *const *)a->word + 1, a->n_words - 1, a->out, io, notes);
    const double s = dt_clock_s() - w.begin_s;
    dt_screen_close(w.screen);
    if (st == DT_OK && s >= QUICK_S && w.bytes > 0 && !a->quiet) {
        dt_log(DT_LOG_INFO, "imported %.1f MB in %.1f s, %.1f MB/s", 1e-6 * (double)w.bytes, s,
               1e-6 * (double)w.bytes / s);
    }
    return st;
}

/* --jobs, else the key, else the cores. */
static dt_status find_jobs(const dt_args *a, const import_opts *o, uint32_t *jobs_p)
{
    int64_t n = o->jobs;
    if (a->jobs != NULL && (!dt_parse_i64(a->jobs, &n) || n < 1 || n > JOBS_MAX)) {
        return DT_FAIL(DT_ECONFIG, "--jobs %s is not a number in [1, %d]", a->jobs, JOBS_MAX);
    }
    *jobs_p = n > 0 ? (uint32_t)n : dt_limits_cores("");
    return DT_OK;
}

static dt_status import_with(const dt_args *a, dt_config *c)
{
    uint32_t jobs = 0;
    import_opts o;
    dt_packing packing;
    dt_str notes = {0};
    DT_TRY(read_opts(a, c, "import", &o, sizeof(o), &packing));
    DT_TRY(find_jobs(a, &o, &jobs));
    dt_import_options io = {.columns = o.columns,
                            .frame_rate_hz = o.frame_rate_hz,
                            .site = o.site,
                            .map = o.map,
                            .map_origin = o.map_origin,
                            .map_offset = o.map_offset,
                            .types = o.types,
                            .is_unordered = o.unordered != 0,
                            .radius_m = o.radius_m,
                            .smooth_s = o.smooth_s,
                            .k_max = (uint32_t)o.neighbours,
                            .memory_bytes = (size_t)o.memory_mb << 20,
                            .jobs = jobs,
                            .part_bytes = (uint64_t)o.part_mb * 1000000,
                            .packing = packing};
    dt_status st = import_watched(a, &io, &notes);
    if (st == DT_OK && !a->quiet) {
        dt_print_text(dt_str_text(&notes));
    }
    dt_str_fini(&notes);
    return st;
}

static dt_status import_store(const dt_args *a)
{
    dt_config *c = NULL;
    if (a->out == NULL) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data import SRC... --out STORE [--jobs N] [--set import.KEY=VALUE]");
    }
    DT_TRY(dt_config_create(&c));
    dt_status st = import_with(a, c);
    dt_config_destroy(c);
    return st;
}

static dt_status inspect_store(const dt_args *a)
{
    dt_str out = {0};
    dt_status st = dt_data_inspect(a->word[1], a->json, &out);
    if (st == DT_OK && a->out != NULL) {
        dt_str where = {0};
        st = dt_draw_scene(a->word[1], a->out, &where);
        dt_str_add(&out, a->json ? "" : dt_str_text(&where));
        dt_str_fini(&where);
    }
    if (st == DT_OK) {
        dt_print_text(dt_str_text(&out));
    }
    dt_str_fini(&out);
    return st;
}

static dt_status export_hdf5(const dt_args *a, dt_config *c, dt_str *notes)
{
    hdf5_opts o;
    dt_packing unused;
    DT_TRY(read_opts(a, c, "hdf5", &o, sizeof(o), &unused));
    const dt_hdf5_options opt = {.gzip = (int)o.gzip, .chunk_rows = o.chunk_rows};
    return dt_hdf5_export(a->word[1], a->word[2], &opt, notes);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* A name that promises another format than a table would deceive whoever opens the file. */
static dt_status check_ending(const char *file)
{
    static const char *const other[] = {".gz",  ".xz",  ".zst",     ".bz2",     ".zip",  ".json", ".xml",
                                        ".npy", ".npz", ".parquet", ".feather", ".xlsx", ".mat"};
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        if (ends_with(file, other[i])) {
            return DT_FAIL(
                DT_ECONFIG,
                "%s ends in %s, which is not written: an export is a plain table (.csv), or HDF5 (.h5, .hdf5)", file,
                other[i]);
        }
    }
    return DT_OK;
}

static dt_status export_store(const dt_args *a)
{
    dt_config *c = NULL;
    dt_str notes = {0};
    DT_TRY(check_ending(a->word[2]));
    const bool is_hdf5 = ends_with(a->word[2], ".h5") || ends_with(a->word[2], ".hdf5");
    DT_TRY(dt_config_create(&c));
    dt_status st = is_hdf5 ? export_hdf5(a, c, &notes) : dt_data_export(a->word[1], a->word[2], &notes);
    dt_config_destroy(c);
    if (st == DT_OK && !a->quiet) {
        dt_print_text(dt_str_text(&notes));
    }
    dt_str_fini(&notes);
    return st;
}

static dt_status tell(const dt_args *a, dt_status st, dt_str *notes)
{
    if (st == DT_OK && !a->quiet) {
        dt_print_text(dt_str_text(notes));
    }
    dt_str_fini(notes);
    return st;
}

static dt_status merge_with(const dt_args *a, dt_config *c)
{
    dt_packing packing;
    dt_str notes = {0};
    DT_TRY(read_opts(a, c, NULL, NULL, 0, &packing));
    return tell(a, dt_data_merge((const char *const *)a->word + 1, a->n_words - 1, a->out, &packing, &notes), &notes);
}

static dt_status split_with(const dt_args *a, dt_config *c)
{
    split_opts o;
    dt_packing packing;
    dt_str notes = {0};
    DT_TRY(read_opts(a, c, "split", &o, sizeof(o), &packing));
    const dt_split_options opt = {
        .by = (int)o.by, .share = o.share, .gap_s = o.gap_s, .seed = (uint64_t)o.seed, .packing = packing};
    return tell(a, dt_data_split(a->word[1], a->out, &opt, &notes), &notes);
}

static dt_status sample_with(const dt_args *a, dt_config *c)
{
    sample_opts o;
    dt_packing packing;
    dt_str notes = {0};
    DT_TRY(read_opts(a, c, "sample", &o, sizeof(o), &packing));
    const dt_sample_options opt = {
        .scenes = o.scenes, .seconds = o.seconds, .seed = (uint64_t)o.seed, .packing = packing};
    return tell(a, dt_data_sample(a->word[1], a->out, &opt, &notes), &notes);
}

static dt_status cut_with(const dt_args *a, dt_config *c)
{
    cut_opts o;
    dt_packing packing;
    dt_str notes = {0};
    DT_TRY(read_opts(a, c, "cut", &o, sizeof(o), &packing));
    const dt_cut_options opt = {
        .tile_m = o.tile_m, .regions = o.regions, .halo_m = o.halo_m, .halo_s = o.halo_s, .packing = packing};
    return tell(a, dt_data_cut(a->word[1], a->out, &opt, &notes), &notes);
}

/* merge, split, sample or cut: so many stores, and keys of a section. */
static dt_status part_store(const dt_args *a, const char *usage, dt_status (*with)(const dt_args *, dt_config *))
{
    dt_config *c = NULL;
    if (a->out == NULL) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data %s", usage);
    }
    DT_TRY(dt_config_create(&c));
    const dt_status st = with(a, c);
    dt_config_destroy(c);
    return st;
}

/* What --out names will be a folder, however it is written: "store/" is "store". */
static dt_status plain_out(const char *out, dt_str *plain)
{
    size_t bytes = strlen(out);
    while (bytes > 1 && out[bytes - 1] == '/') {
        bytes--;
    }
    dt_str_add_n(plain, out, bytes);
    return dt_str_status(plain);
}

static dt_status data(const dt_args *a)
{
    switch (a->form) {
    case DT_FORM_DATA_IMPORT:
        return import_store(a);
    case DT_FORM_DATA_INSPECT:
        return inspect_store(a);
    case DT_FORM_DATA_EXPORT:
        return export_store(a);
    case DT_FORM_DATA_MERGE:
        return part_store(a, "merge STORE... --out STORE [--set store.KEY=VALUE]", merge_with);
    case DT_FORM_DATA_SPLIT:
        return part_store(a, "split STORE --out FOLDER [--set split.KEY=VALUE]", split_with);
    case DT_FORM_DATA_SAMPLE:
        return part_store(a, "sample STORE --out STORE [--set sample.KEY=VALUE]", sample_with);
    default:
        return part_store(a, "cut STORE --out STORE --set cut.tile_m=METRES or cut.regions=N", cut_with);
    }
}

dt_status dt_verb_data(const dt_args *a, int *code_p)
{
    dt_args own = *a;
    dt_str out = {0};
    dt_status st = DT_OK;
    if (a->out != NULL) {
        st = plain_out(a->out, &out);
        own.out = dt_str_text(&out);
    }
    if (st == DT_OK) {
        st = data(&own);
        st = st == DT_ENOTFOUND ? DT_EDATA : st; /* exit code 4 */
    }
    dt_str_fini(&out);
    return st;
}
