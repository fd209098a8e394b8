/* SPDX-License-Identifier: Apache-2.0
 *
 * From recordings to a store: trajectory tables (csv), floating cars of SUMO and scenarios of CommonRoad (xml), each
 * plain or packed by gzip or xz, and the JSON chunk layout. Input streams through: memory is a sort buffer, one frame,
 * the vehicles in sight and the names of the scenes and of a simulator's vehicles, however large the input. Every value
 * is checked; what is wrong is DT_EDATA and names file, line, column, value and limit.
 *
 * Tables. Columns are known by role: scene site frame time id x y heading speed accel length width stop_distance
 * controlled frame_rate_hz vx vy ax ay kind; vx and vy may replace the speed, kind names road users on foot or on a
 * bicycle. Known headers are recognised; any other table needs a column map. Empty cells of heading, accel, length,
 * width and stop_distance are missing values; the rest must be there. Rows may be ordered by frame or by vehicle (they
 * are sorted), but a vehicle's rows must follow each other in time. A hole of more than 5 s in a scene begins a new
 * scene named "scene#2". A table that names no scene is one, named like the file, and a scene is in one file. Missing
 * headings are the direction of travel over the last metre, from the past alone, and unknown before. Units that cannot
 * be are a warning (units.h).
 *   commonroad   scenario,frame,vehicle_id,type,length_m,...: site from the benchmark id (USA_Lanker-2_1 -> Lanker)
 *   us101_single vehicle_id,frame,epoch_ms,local_x_m,local_y_m,...: not a full scene, so each vehicle is its own scene
 *                without neighbours; heading along the road's +y; lengths unknown; site US101
 *   ngsim        Vehicle_ID,Frame_ID,Global_Time,Local_X,Local_Y,v_Length,v_Width,v_Vel,v_Acc[,Location]: feet to
 *                metres; the position is the front centre and becomes the vehicle's centre; first heading +y on
 *                freeways, unknown where Location names another street. Both the 18 columns of the recordings' own
 *                files and the 25 of the portal's export, where Location names the scene, numbers may have thousands
 *                separators, and rows that repeat another are left out
 *   highD        frame,id,x,y,width,height,xVelocity,...: corner of the box and y down, to centre and y up; headings
 *                by velocity. NN_recordingMeta.csv next to NN_tracks.csv has rate and location, the site is
 *                "location-N", or "SITE-N" of the options, and the scene "site/NN_tracks"
 *   inD          recordingId,trackId,frame,...,xCenter,yCenter,heading,...: of inD and rounD, degrees to radians, the
 *                same table next to it. A road user without a size, on foot or on a bicycle, is left out
 *   INTERACTION  [case_id,]track_id,frame_id,timestamp_ms,agent_type,x,y,vx,vy,psi_rad,length,width: site and scene by
 *                the folder, "site/file", and cases "site/file/case". Pedestrians and bicycles are left out
 *   dtrain       the roles themselves as column names, as export_table.h writes them; a scene may be named
 *                "scene#part"
 * XML files, plain or packed; none has a DOCTYPE.
 *   fcd          floating-car output of SUMO: the step that the first two time steps make is the frame rate; angles
 *                from +y clockwise, front bumpers to centres, with lengths by type (types of the options); the scene is
 *                named like the file. Persons and containers are left out
 *   commonroad   scenarios of CommonRoad, 2018b and 2020a: the states of dynamic obstacles with exact values, and
 *                the box around their shape; site, scene and map by the benchmark id. Lanelets become the
 *                scene's map: centre lines, types, limits of speed, those of signs too, successors and neighbours.
 *                Static obstacles, people on foot and on bicycles, lights and planning problems are left out
 * Arrays of numpy, a folder of them: node_features.npy [rows,9] f32 or f64, the features of features.h as they are,
 * not normalised; frame_ids.npy and vehicle_ids.npy [rows] i64 or i32; scene_ids.npy [rows], where there are several
 * scenes. Edges are computed again. Messages name a row by its number.
 * The JSON chunk layout is described in docs of the recording format; statistics.json is checked against the chunks.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_IMPORT_H
#define DTRAIN_PLUGINS_TRAFFIC_IMPORT_H

#include "base/str.h"
#include "traffic/store/store.h"

/* How far an import is: bytes of its files read, as they are packed, then rows stored; of a folder, chunks stored; in
 * parts, bytes of all files, which count half when they are read and whole when their rows are stored. */
typedef struct dt_import_progress {
    bool is_storing, is_chunks, is_parts;
    uint64_t done, total;
    uint64_t before;          /* of done, parts that lay there finished */
    uint32_t n_done, n_parts; /* in parts: how many */
} dt_import_progress;

typedef struct dt_import_options {
    const char *columns;  /* "role=column[*factor],...", e.g. "id=car,frame=f,x=X*0.3048,..."; NULL or "": recognise */
    double frame_rate_hz; /* of a table without a known one; 0: the preset's, its column's or metadata.json's. Never
                           * resampled */
    const char *site;     /* for tables without a site column; NULL or "": "unknown" */
    const char *map;      /* file with the roads of all scenes (map_reader.h), or a folder with one for each
                           * (dt_map_find); NULL or "": none but a source's own */
    const char *map_origin; /* where positions are counted from, for a map in degrees: dt_map_origin_parse; NULL or "":
                             * as in the recording, else (0, 0) */
    const char *map_offset; /* "DX,DY" m that are added to the positions of maps; NULL or "": none */
    const char *types;   /* file with vType elements of SUMO, for the sizes of vehicles of an fcd; NULL or "": none */
    bool is_unordered;   /* accept a vehicle's rows in any order */
    double radius_m;     /* 0: 50 */
    double smooth_s;     /* width of the average over accelerations (smooth.h); 0: as recorded */
    uint32_t k_max;      /* 0: 16 */
    size_t memory_bytes; /* of the sort buffers, of all jobs together; 0: 64 MiB */
    uint32_t jobs;       /* parts that are made at once, or threads that make one; 0: 1 */
    uint64_t part_bytes; /* files are gathered, in their order, to parts of so many bytes at least; 0: a part each */
    dt_packing packing;  /* how the store is written */
    void (*progress)(void *user, const dt_import_progress *p); /* called now and then; NULL: not needed */
    void *progress_user;
    bool (*stops)(void *user); /* called now and then, by any thread: true ends it, DT_EINTERRUPTED; NULL: never */
    void *stops_user;
} dt_import_options;

#define DT_SCENE_GAP_S 5.0 /* nothing recorded for longer: a new scene */

/* src [n_src]: files, of any layouts at one frame rate, or one folder of chunks or arrays. out: the store, must not
 * exist. opt NULL: defaults. notes gets lines for people (what was found, what is worth knowing). Nothing is left at
 * out when it fails; where files make more than one part (import_jobs.h), finished ones are kept next to it.
 * DT_ENOTFOUND, DT_EDATA, DT_EINVAL (options, out exists, its parts are being written), DT_EINTERRUPTED (stops),
 * DT_EIO, DT_ENOMEM. */
dt_status dt_data_import(const char *const *src, uint32_t n_src, const char *out, const dt_import_options *opt,
                         dt_str *notes) DT_NODISCARD;

/* ---- for tests that read millions of them ------------------------------------------------------------------------ */

/* Reads a table in memory as an import does, header and every row, and stores nothing. */
dt_status dt_table_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
    DT_NODISCARD;
/* The same of an fcd, of a scenario. */
dt_status dt_fcd_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt) DT_NODISCARD;
dt_status dt_commonroad_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
    DT_NODISCARD;
/* The same of metadata.json and of one chunk; chunk NULL: metadata alone. */
dt_status dt_chunks_check(const void *metadata, size_t metadata_bytes, const void *chunk, size_t chunk_bytes)
    DT_NODISCARD;

/* ---- for the readers of this room -------------------------------------------------------------------------------- */

struct dt_rows;
/* Do the options fit these files? DT_ECONFIG. */
dt_status dt_import_check(const char *const *src, uint32_t n_src, const dt_import_options *opt) DT_NODISCARD;
/* Every row of these files, whatever layouts they have. */
dt_status dt_import_read(const char *const *src, uint32_t n_src, const dt_import_options *opt, dt_str *notes,
                         struct dt_rows *rows) DT_NODISCARD;
/* Every row of a file to rows. */
dt_status dt_table_read(const char *path, const dt_import_options *opt, dt_str *notes, struct dt_rows *rows)
    DT_NODISCARD;
dt_status dt_fcd_read(const char *path, const dt_import_options *opt, dt_str *notes, struct dt_rows *rows) DT_NODISCARD;
dt_status dt_commonroad_read(const char *path, const dt_import_options *opt, dt_str *notes, struct dt_rows *rows)
    DT_NODISCARD;
#define DT_NUMPY_COLUMNS                                                                                               \
    "x, y, speed, acceleration, sin and cos of the heading, length, distance to the stop line, controlled, in m, m/s " \
    "and m/s^2"
dt_status dt_numpy_is_folder(const char *folder, bool *is_p) DT_NODISCARD; /* has it a node_features.npy? DT_ENOMEM */
dt_status dt_import_numpy(const char *src, const char *out, const dt_import_options *opt, dt_str *notes) DT_NODISCARD;
dt_status dt_import_chunks(const char *src, const char *out, const dt_import_options *opt, dt_str *notes) DT_NODISCARD;

#endif
