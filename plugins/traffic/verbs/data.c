/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain data import|inspect|export|merge|split|sample|cut|convert`.
 */
#include <config.h>

#include "traffic/verbs/data.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "dtrain/helpers.h"
#include "traffic/export/export_table.h"
#include "traffic/export/export_hdf5.h"
#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/roadnet/roadnet.h"
#include "traffic/store/smooth.h"
#include "traffic/store/cut.h"
#include "traffic/store/merge_split.h"
#include "traffic/verbs/draw_scene.h"

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

static const dt_verb_section sections[] = {
    {"import", import_table}, {"store", store_table}, {"hdf5", hdf5_table}, {"split", split_table},
    {"sample", sample_table}, {"cut", cut_table},     {NULL, NULL}};

/* packing_p: from the section "store". */
static dt_status read_opts(const dt_verb_call *c, const char *section, void *out, size_t bytes, dt_packing *packing_p)
{
    store_opts s;
    DT_TRY(c->section(c, "store", &s, sizeof(s)));
    *packing_p =
        (dt_packing){.features = s.features, .codec = s.compress, .level = (int)s.compress_level, .repeats = s.repeats};
    return section == NULL ? DT_OK : c->section(c, section, out, bytes);
}

/* What --out names will be a folder, however it is written: "store/" is "store". */
static dt_status normalise_out(const dt_verb_call *c, dt_str *plain)
{
    const char *out = c->option(c, "out");
    size_t bytes = strlen(out);
    if (strcmp(out, "-") == 0) {
        return DT_FAIL(DT_ECONFIG, "--out -: stores are folders, none is written to standard output; give a path (./- "
                                   "is a folder of that name)");
    }
    while (bytes > 1 && out[bytes - 1] == '/') {
        bytes--;
    }
    dt_str_add_n(plain, out, bytes);
    return dt_str_status(plain);
}

/* Notes about a store that was written. */
static dt_status print_notes(const dt_verb_call *c, dt_status st, dt_str *notes)
{
    if (st == DT_OK && !c->quiet) {
        c->print(c, dt_str_text(notes));
    }
    dt_str_fini(notes);
    return st == DT_ENOTFOUND ? DT_EDATA : st; /* exit code 4 */
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

#define QUICK_S 1.0 /* what is done by then needs no line */

typedef struct watch {
    const dt_verb_call *call;
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
    w->call->progress(w->call, text, left_s);
}

static bool stop_requested(void *call)
{
    const dt_verb_call *c = call;
    return c->stop(c) != 0;
}

static dt_status import_watched(const dt_verb_call *c, const char *out, dt_import_options *io, dt_str *notes)
{
    watch w = {.call = c, .begin_s = dt_clock_s(), .stage_s = dt_clock_s()};
    io->progress = show_import;
    io->progress_user = &w;
    io->stops = stop_requested;
    io->stops_user = (void *)(uintptr_t)c;
    c->catch_signals(c, 0); /* until parts are made, which are kept */
    const dt_status st = dt_data_import(c->word, c->n_words, out, io, notes);
    const double s = dt_clock_s() - w.begin_s;
    c->progress(c, NULL, 0);
    if (st == DT_OK && s >= QUICK_S && w.bytes > 0 && !c->quiet) {
        dt_log(DT_LOG_INFO, "imported %.1f MB in %.1f s, %.1f MB/s", 1e-6 * (double)w.bytes, s,
               1e-6 * (double)w.bytes / s);
    }
    return st;
}

/* --jobs, else the key, else the cores. */
static dt_status find_jobs(const dt_verb_call *c, const import_opts *o, uint32_t *jobs_p)
{
    const char *text = c->option(c, "jobs");
    int64_t n = o->jobs;
    if (text != NULL && (!dt_parse_i64(text, &n) || n < 1 || n > JOBS_MAX)) {
        return DT_FAIL(DT_ECONFIG, "--jobs %s is not a number in [1, %d]", text, JOBS_MAX);
    }
    *jobs_p = n > 0 ? (uint32_t)n : c->cores;
    return DT_OK;
}

static dt_status import_store(const dt_host *h, const dt_verb_call *c)
{
    uint32_t jobs = 0;
    import_opts o;
    dt_packing packing;
    dt_str notes = {0}, out = {0};
    DT_TRY(read_opts(c, "import", &o, sizeof(o), &packing));
    DT_TRY(find_jobs(c, &o, &jobs));
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
    dt_status st = normalise_out(c, &out);
    if (st == DT_OK) {
        st = import_watched(c, dt_str_text(&out), &io, &notes);
    }
    dt_str_fini(&out);
    return print_notes(c, st, &notes);
}

static dt_status inspect_store(const dt_host *h, const dt_verb_call *c)
{
    dt_str out = {0};
    const char *picture = c->option(c, "out");
    dt_status st = dt_data_inspect(c->word[0], c->json != 0, &out);
    if (st == DT_OK && picture != NULL) {
        dt_str where = {0};
        st = strcmp(picture, "-") != 0
                 ? dt_draw_scene(c->word[0], picture, &where)
                 : DT_FAIL(DT_ECONFIG, "--out -: a picture is a file; give a path (./- is a file of that name)");
        dt_str_add(&out, c->json ? "" : dt_str_text(&where));
        dt_str_fini(&where);
    }
    if (st == DT_OK) {
        c->print(c, dt_str_text(&out));
    }
    dt_str_fini(&out);
    return st == DT_ENOTFOUND ? DT_EDATA : st;
}

static dt_status export_hdf5(const dt_verb_call *c, dt_str *notes)
{
    hdf5_opts o;
    dt_packing unused;
    DT_TRY(read_opts(c, "hdf5", &o, sizeof(o), &unused));
    const dt_hdf5_options opt = {.gzip = (int)o.gzip, .chunk_rows = o.chunk_rows};
    return dt_hdf5_export(c->word[0], c->word[1], &opt, notes);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* A name that promises another format than a table would deceive its reader. */
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

static dt_status export_store(const dt_host *h, const dt_verb_call *c)
{
    dt_str notes = {0};
    const char *file = c->word[1];
    DT_TRY(check_ending(file));
    const bool is_hdf5 = ends_with(file, ".h5") || ends_with(file, ".hdf5");
    return print_notes(c, is_hdf5 ? export_hdf5(c, &notes) : dt_data_export(c->word[0], file, &notes), &notes);
}

/* ---- merge, split, sample, cut ----------------------------------------------------------------------------------- */

static dt_status merge_to(const dt_verb_call *c, const char *out, dt_str *notes)
{
    dt_packing packing;
    DT_TRY(read_opts(c, NULL, NULL, 0, &packing));
    return dt_data_merge(c->word, c->n_words, out, &packing, notes);
}

static dt_status split_to(const dt_verb_call *c, const char *out, dt_str *notes)
{
    split_opts o;
    dt_packing packing;
    DT_TRY(read_opts(c, "split", &o, sizeof(o), &packing));
    const dt_split_options opt = {
        .by = (int)o.by, .share = o.share, .gap_s = o.gap_s, .seed = (uint64_t)o.seed, .packing = packing};
    return dt_data_split(c->word[0], out, &opt, notes);
}

static dt_status sample_to(const dt_verb_call *c, const char *out, dt_str *notes)
{
    sample_opts o;
    dt_packing packing;
    DT_TRY(read_opts(c, "sample", &o, sizeof(o), &packing));
    const dt_sample_options opt = {
        .scenes = o.scenes, .seconds = o.seconds, .seed = (uint64_t)o.seed, .packing = packing};
    return dt_data_sample(c->word[0], out, &opt, notes);
}

static dt_status cut_to(const dt_verb_call *c, const char *out, dt_str *notes)
{
    cut_opts o;
    dt_packing packing;
    DT_TRY(read_opts(c, "cut", &o, sizeof(o), &packing));
    const dt_cut_options opt = {
        .tile_m = o.tile_m, .regions = o.regions, .halo_m = o.halo_m, .halo_s = o.halo_s, .packing = packing};
    return dt_data_cut(c->word[0], out, &opt, notes);
}

static dt_status write_store(const dt_verb_call *c, dt_status (*to)(const dt_verb_call *, const char *, dt_str *))
{
    dt_str out = {0}, notes = {0};
    dt_status st = normalise_out(c, &out);
    if (st == DT_OK) {
        st = to(c, dt_str_text(&out), &notes);
    }
    dt_str_fini(&out);
    return print_notes(c, st, &notes);
}

static dt_status merge_stores(const dt_host *h, const dt_verb_call *c)
{
    return write_store(c, merge_to);
}

static dt_status split_store(const dt_host *h, const dt_verb_call *c)
{
    return write_store(c, split_to);
}

static dt_status sample_store(const dt_host *h, const dt_verb_call *c)
{
    return write_store(c, sample_to);
}

static dt_status cut_store(const dt_host *h, const dt_verb_call *c)
{
    return write_store(c, cut_to);
}

/* ---- convert ----------------------------------------------------------------------------------------------------- */

static dt_status convert_roads(const dt_host *h, const dt_verb_call *c)
{
    dt_str notes = {0};
    const char *prefix = c->option(c, "out");
    if (prefix[0] == '\0' || prefix[strlen(prefix) - 1] == '/') {
        return DT_FAIL(DT_ECONFIG, "--out %s: the begin of two file names is needed, such as %snet", prefix, prefix);
    }
    const dt_status st = roadnet_convert(c->word[0], c->n_words > 1 ? c->word[1] : NULL, prefix, &notes);
    return print_notes(c, st, &notes);
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

#define OUT_STORE                                                                                                      \
    {                                                                                                                  \
        "out", "PATH", "folder of the store or stores to write", 'o', DT_VERB_OPTION_REQUIRED, DT_COMPLETE_FOLDER, 0   \
    }
#define OPTIONS_END                                                                                                    \
    {                                                                                                                  \
        NULL, NULL, NULL, 0, 0, 0, 0                                                                                   \
    }
static const dt_verb_option import_options[] = {
    OUT_STORE,
    {"jobs", "N", "parts that are imported simultaneously; default: as many as there are cores", 'j', 0, 0, 0},
    OPTIONS_END};
static const dt_verb_option inspect_options[] = {
    {"out", "FILE.svg", "draw a scene into this file", 'o', 0, DT_COMPLETE_FILE, 0}, OPTIONS_END};
static const dt_verb_option write_options[] = {OUT_STORE, OPTIONS_END};

static const dt_verb_option convert_options[] = {{"out", "PREFIX",
                                                  "write PREFIX.net.xml and, from a flow file, PREFIX.rou.xml", 'o',
                                                  DT_VERB_OPTION_REQUIRED, DT_COMPLETE_FILE, 0},
                                                 OPTIONS_END};

static const char examples[] = "  dtrain data import recording/ --out stores/mine\n"
                               "  dtrain data import a_tracks.csv b_tracks.csv --out stores/both --jobs 2\n"
                               "  dtrain show import                 # every import.KEY for --set\n"
                               "  dtrain data inspect stores/ngsim --out scene.svg\n"
                               "  dtrain data export stores/ngsim ngsim.csv\n"
                               "  dtrain data merge stores/a stores/b --out stores/both\n"
                               "  dtrain data split stores/both --out parts --set split.by=site\n"
                               "  dtrain data sample stores/both --out small --set sample.scenes=10\n"
                               "  dtrain data cut stores/town --out regions --set cut.regions=4\n"
                               "  dtrain data convert roadnet.json flow.json --out town\n";

enum { MOST = DT_VERB_MAX_WORDS, FILES = DT_COMPLETE_FILE, FOLDERS = DT_COMPLETE_FOLDER };
static const dt_verb_form forms[] = {
    {"import", "SRC...", "import recordings into a store", import_options, FILES, 1, MOST, 0, import_store},
    {"inspect", "STORE", "print the contents of a store", inspect_options, FOLDERS, 1, 1, 0, inspect_store},
    {"export", "STORE FILE", "write a store as a table, or as HDF5 (.h5, .hdf5)", NULL, FILES, 2, 2, 0, export_store},
    {"merge", "STORE...", "merge several stores into one", write_options, FOLDERS, 1, MOST, 0, merge_stores},
    {"split", "STORE", "split a store into parts", write_options, FOLDERS, 1, 1, 0, split_store},
    {"sample", "STORE", "copy some scenes of a store", write_options, FOLDERS, 1, 1, 0, sample_store},
    {"cut", "STORE", "cut a store into regions of its area", write_options, FOLDERS, 1, 1, 0, cut_store},
    {"convert", "ROADNET [FLOW]", "make files of SUMO of a road network of CityFlow or the City Brain Challenge",
     convert_options, FILES, 1, 2, 0, convert_roads},
    {NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL}};

const dt_verb dt_data_verb = {.struct_size = sizeof(dt_verb),
                              .name = "data",
                              .summary =
                                  "import recordings into stores; inspect, export, merge, split, sample and cut them; "
                                  "convert road networks",
                              .examples = examples,
                              .forms = forms,
                              .sections = sections};
