/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of recordings, one vehicle in one frame each, into a store: what every reader of files hands its rows to. Scenes
 * get their names, rows are sorted (sort.h) and checked, missing headings made, holes cut a scene, frames go to the
 * store. import.h documents what is done to them. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_ROWS_H
#define DTRAIN_PLUGINS_TRAFFIC_ROWS_H

#include "traffic/import/columns.h"
#include "traffic/import/import.h"
#include "traffic/import/sort.h"
#include "traffic/import/units.h"

typedef struct dt_rows dt_rows;

/* What the rows of a file have in common. */
typedef struct dt_rows_file {
    const char *path;   /* copied */
    const char *layout; /* a name for people, copied */
    double rate_hz;     /* in [DT_RATE_MIN_HZ, DT_RATE_MAX_HZ], of all files of an import the same */
    bool has_axis;      /* the road is along axis_heading, rad: the heading until a vehicle has moved a metre */
    double axis_heading;
    bool is_heading_fixed; /* and from then on */
    bool is_front;         /* positions are those of the front's centre */
    bool may_repeat;       /* rows that repeat another are left out */
    bool has_utm;          /* positions are counted from this place of the UTM grid, m */
    double utm[2];
} dt_rows_file;

/* out: the store, must not exist; NULL: rows are looked at, and none is kept. opt and notes stay the caller's.
 * Errors: DT_ENOMEM. */
dt_status dt_rows_create(const char *out, const dt_import_options *opt, dt_str *notes, dt_rows **out_p) DT_NODISCARD;
/* The rows that follow are of this file. Errors: DT_EDATA (another frame rate than the files before), what
 * of dt_store_create. */
dt_status dt_rows_file_begin(dt_rows *r, const dt_rows_file *f) DT_NODISCARD;
/* Of the file that has begun: its columns move into r, which doubts their units when all is read. */
void dt_rows_keep_columns(dt_rows *r, dt_columns *c);
/* The number of a scene of the file that has begun; line: of the file, for messages. Errors: DT_EDATA (a name that no
 * scene can have, or that is a scene of another file), DT_ENOMEM. */
dt_status dt_rows_scene(dt_rows *r, int64_t line, const char *name, const char *site, bool has_parts, int32_t *number_p)
    DT_NODISCARD;
/* A sealed map, into the store; without a store it is looked at and nothing is kept. Errors: as dt_store_map. */
dt_status dt_rows_map(dt_rows *r, const char *name, const dt_roads *roads, int32_t *number_p) DT_NODISCARD;
void dt_rows_scene_without_axis(dt_rows *r, int32_t scene);     /* its roads are not all along the axis of the file */
void dt_rows_scene_map(dt_rows *r, int32_t scene, int32_t map); /* the map of a scene; without a call it has none */
dt_status dt_rows_add(dt_rows *r, const dt_table_row *row) DT_NODISCARD; /* DT_EIO, DT_ENOMEM */
/* How much of the file that has begun is read (dt_source_bytes_read): for watchers. */
void dt_rows_report_progress(const dt_rows *r, uint64_t taken);
/* The file is read to its end; bytes: its size. */
void dt_rows_file_end(dt_rows *r, uint64_t bytes);
/* Of all files of the import together. */
void dt_rows_expect_bytes(dt_rows *r, uint64_t bytes);
/* What an import reports at its end: numbers of rows, and doubts of units, a line each. */
typedef struct dt_rows_report { /* zeroed is empty */
    int64_t runs, repeats, no_length, no_width, no_heading, no_accel;
    int64_t unknown_heading, axis_heading; /* rows of vehicles that have none and have not moved yet */
    int64_t fronts;                        /* of the former those of fronts, kept in place of centres */
    bool is_heading_fixed;
    int64_t checked[DT_UNITS_N], off[DT_UNITS_N]; /* of units.h */
    bool has_heading_off;
    double heading_off; /* degrees, the largest median of a file */
    dt_str warnings;
} dt_rows_report;
void dt_rows_report_add(dt_rows_report *to, const dt_rows_report *from);
/* Of one file, or of a source that is one: shares of inconsistent rows, and doubts that begin with its path. c: as of
 * dt_units_report. */
void dt_rows_report_units(dt_rows_report *to, const dt_units *u, const char *path, const dt_columns *c);
void dt_rows_report_print(const dt_rows_report *t,
                          dt_str *notes); /* doubts as warnings of the log, the rest to notes */

/* Everything into the store, which appears by a commit after it; report accumulates. Errors: DT_EDATA with file and
 * line, DT_EINTERRUPTED (the options' stops), DT_EIO, DT_ENOMEM. */
dt_status dt_rows_finish(dt_rows *r, dt_rows_report *report) DT_NODISCARD;
dt_status dt_rows_commit(dt_rows *r) DT_NODISCARD; /* DT_EIO, DT_ENOMEM */

/* Of an import in parts: the store is a part (store.h), by a call right after create; and what is known once its files
 * are read: rows, the frame rate and the layout of the first file, scenes by the names that the files give them, each
 * with the number of its file. */
void dt_rows_read_as_part(dt_rows *r);
int64_t dt_rows_count(const dt_rows *r);
double dt_rows_rate(const dt_rows *r);
const char *dt_rows_layout(const dt_rows *r);
int32_t dt_rows_scenes(const dt_rows *r);
const char *dt_rows_scene_name(const dt_rows *r, int32_t number, int32_t *file_p);
void dt_rows_destroy(dt_rows *r); /* without a finish nothing is left at out; NULL is fine */

/* "dir/name_tracks.csv.gz" -> "name_tracks": what a scene is called whose file has no name. */
dt_status dt_rows_stem(const char *path, dt_str *out) DT_NODISCARD;
/* Benchmark ids of CommonRoad, COUNTRY_MAP-1_2_T-3: the map names the site. */
void dt_rows_site_of_benchmark(const char *id, char *out, size_t bytes);
/* The same ids: COUNTRY_MAP-1 names the map, C-COUNTRY_MAP-1 of cooperative ones. */
void dt_rows_map_of_benchmark(const char *id, char *out, size_t bytes);

#endif
