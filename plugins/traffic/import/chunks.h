/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of an import of JSON chunks share: chunks_metadata.c reads metadata.json, import_chunks.c the chunks
 * that it names, and chunks_statistics.c holds statistics.json against them. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_CHUNKS_H
#define DTRAIN_PLUGINS_TRAFFIC_CHUNKS_H

#include "traffic/import/import.h"
#include "traffic/text/json_reader.h"
#include "traffic/import/motion_check.h"
#include "traffic/text/source.h"

enum { DT_CHUNKS_NAME_BYTES = 200, DT_CHUNKS_PATH_BYTES = 1024 };

/* Numbers of a vehicle in the file, and three features made from them, which statistics.json may describe as well. */
enum {
    DT_CHUNKS_X,
    DT_CHUNKS_Y,
    DT_CHUNKS_HEADING,
    DT_CHUNKS_SPEED,
    DT_CHUNKS_ACCEL,
    DT_CHUNKS_LENGTH,
    DT_CHUNKS_WIDTH,
    DT_CHUNKS_STOP,
    DT_CHUNKS_N_NUMBERS,
    DT_CHUNKS_CONTROLLED = DT_CHUNKS_N_NUMBERS,
    DT_CHUNKS_SIN,
    DT_CHUNKS_COS,
    DT_CHUNKS_N_STATS
};

typedef struct dt_chunks_stat {
    int64_t n;
    double min, max, mean, m2;
    bool has_entry; /* statistics.json has something of it */
} dt_chunks_stat;

typedef struct dt_chunks {
    const char *folder;
    const dt_import_options *opt;
    dt_store_writer *writer;
    int32_t map; /* of all scenes, -1: none */
    double rate_hz;
    int64_t version;
    char format[64];
    bool has_rate, has_list;
    char (*file)[DT_CHUNKS_PATH_BYTES]; /* names as metadata.json gives them */
    int64_t *announced;                 /* samples, -1 unknown */
    int64_t n_files, files_cap;
    char **site;
    int64_t n_sites, sites_cap;
    dt_ids ids; /* of vehicles, of all chunks */
    dt_motion_check check;
    dt_chunks_stat stat[DT_CHUNKS_N_STATS];
    int64_t n_unknown_stats; /* of statistics.json: features that are none of these */
    char unknown_stat[DT_IN_KEY_BYTES];
    int64_t n_samples;
    /* of the sample and frame being read */
    dt_vehicle *vehicle;
    uint32_t n, cap;
    double t0;
    int64_t last_frame;
} dt_chunks;

/* ---- a document (chunks_metadata.c) ------------------------------------------------------------------------------ */

typedef struct dt_chunks_document {
    dt_source *source;
    dt_json *json;
} dt_chunks_document;

/* d: what close ends. bytes NULL: the file of that name. Errors: DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_chunks_open_text(const void *bytes, size_t n_bytes, const char *name, dt_chunks_document *d) DT_NODISCARD;
dt_status dt_chunks_open(const char *path, dt_chunks_document *d) DT_NODISCARD;
void dt_chunks_close(dt_chunks_document *d);
/* FOLDER/name. Errors: DT_EDATA: it is too long. */
dt_status dt_chunks_path(const dt_chunks *c, const char *name, char out[DT_CHUNKS_PATH_BYTES]) DT_NODISCARD;
/* Every member of an open document's top object that is among keys (as dt_expect_known_key), then its end. Errors:
 * those of member, DT_EDATA, DT_EIO. */
dt_status dt_chunks_read_members(dt_json *j, const char *what, const char *const *keys,
                                 dt_status (*member)(dt_json *, int, dt_chunks *), dt_chunks *c) DT_NODISCARD;

/* ---- metadata.json (chunks_metadata.c) --------------------------------------------------------------------------- */

/* The whole of an open metadata.json, which is closed. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_chunks_read_description(dt_chunks *c, dt_chunks_document *d, const char *path) DT_NODISCARD;
/* metadata.json of the folder; where it lists no chunks, those that there are. Errors: DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_chunks_read_metadata(dt_chunks *c) DT_NODISCARD;

/* ---- statistics.json (chunks_statistics.c) ----------------------------------------------------------------------- */

void dt_chunks_count_value(dt_chunks_stat *s, double x);
/* statistics.json against what was counted, where there is one. Errors: DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_chunks_read_statistics(dt_chunks *c, dt_str *notes) DT_NODISCARD;

#endif
