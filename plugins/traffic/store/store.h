/* SPDX-License-Identifier: Apache-2.0
 *
 * The trajectory store: a folder of .npy arrays that are read by mmap and that numpy opens, described by store.json.
 *
 * store.json: {"format":"dtrain-store","version":2,"frame_rate_hz":10.0,"units":{...},"source":...,"options":{...},
 *   "sites":[...],"scenes":[{"name":...,"site":0,"frames":90,"rows":5633},...],"node_features":[...],
 *   "edge_features":[...],"counts":{"scenes":..,"frames":..,"rows":..,"tracks":..,"edges":..,"maps":..,"lanes":..,
 *   "lane_points":..,"lane_links":..},"maps":[...],
 *   "risk":{"negative":n,"positive":n,"now":n,"unknown":n},
 *   "statistics":{"node":[{"name":..,"min":..,"max":..,"mean":..,"std":..},...],"edge":[...]}}
 *
 * Rows are one vehicle in one frame, ordered by scene, frame, and as the source gave them within the frame. Frames of a
 * scene are equally spaced at frame_rate_hz; a frame without recorded vehicles has no rows. A track is one vehicle in
 * one scene; one that is out of sight for more than a second and comes back is a new track. Numbers are store-wide.
 *   scene_frame i64 [scenes+1]   scene_site i32 [scenes]   frame_row i64 [frames+1]   frame_time f64 [frames] s
 *   node f32 [rows,9]            pose f64 [rows,3] x y heading, m, rad      motion f32 [rows,4] speed accel length
 *   width
 *   row_track i32 [rows]         track_ptr i64 [tracks+1]   track_row i64 [rows] rows of each track in time order
 *   track_id i64 [tracks] the source's number of the vehicle
 *   edge_ptr i64 [rows+1]        edge_src i32 [edges] index within the frame        edge f32 [edges,4]
 *   risk u8 [rows] DT_RISK_* of features.h
 *   accel_centred f32 [rows]     where options.smooth_s is above 0, and then: the acceleration in node is the average
 *   over the past (smooth.h), risk is labelled by this one, which looks ahead, and motion keeps the recorded one
 *   stop_distance f32 [rows]     where features are kept in fewer bits: as it is recorded; the rest of a recording is
 *   in pose, motion and track_id
 *   core u8 [rows]               frame_centre f64 [frames,2]    of a store of regions (cut.h), which store.json marks
 *   by "regions":{"halo_m":..,"halo_s":..}; dtrain/traffic/store.h documents each. Tracks there may have holes of more
 *   than a second: the vehicle was elsewhere, and is the same one
 * node, edge and edge_src may be kept smaller, NAME.blocks in place of NAME.npy (packed.h).
 * Roads, where there are maps; numbers of lanes are store-wide. dtrain/traffic/store.h documents each.
 *   scene_map i32 [scenes] -1: none                   map_lane i64 [maps+1]
 *   lane_point i64 [lanes+1]     lane_xy f64 [lane_points,2]    lane_width f32 [lane_points]
 *   lane_kind i32 [lanes]        lane_limit f32 [lanes]         lane_id i64 [lanes]
 *   lane_next_ptr i64 [lanes+1]  lane_next i32 [lane_links], where there is a link
 *   lane_left i32 [lanes]        lane_right i32 [lanes]
 * Unknown values are NAN in pose (heading) and motion (acceleration, length, width), and store.json counts them:
 *   "unknown":{"heading":n,"acceleration":n,"length":n,"width":n}
 * Features of them: a length of 4.5 m, a width of 1.8 m, an acceleration of 0, and features.h for headings.
 * Edge statistics leave out the edges of vehicles to themselves, which are zeros.
 *
 * Written to a temporary folder (staging.h) and renamed when complete: an interrupted import leaves nothing that looks
 * like a store. Memory: one frame, the vehicles in sight, and the names of the scenes. Threads: one writer, one thread;
 * an open store may be read by any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_H

#include "base/str.h"
#include "traffic/store/staging.h"
#include "traffic/features/features.h"
#include "traffic/store/packed.h"
#include "traffic/store/repeats.h"
#include "traffic/map/roads.h"
#include "dtrain/traffic/store.h"

#define DT_STORE_FORMAT "dtrain-store"
enum { DT_STORE_VERSION = 2 }; /* stores of other versions are rejected */

/* Recorded values that a source may lack. */
enum { DT_UNKNOWN_HEADING, DT_UNKNOWN_ACCEL, DT_UNKNOWN_LENGTH, DT_UNKNOWN_WIDTH, DT_N_UNKNOWN };
extern const char *const dt_unknown_name[DT_N_UNKNOWN]; /* "heading", "acceleration", "length", "width" */

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct dt_store_writer dt_store_writer;
typedef struct dt_store dt_store;

/* A part is a plain store of some of the scenes, with what a joined one needs to know of each; it does not wait for the
 * disk, and does not look for scenes that are others again. A joined store takes whole parts. The same scenes make the
 * same store, byte for byte, written whole or joined of any parts. */
typedef enum dt_store_role { DT_STORE_WHOLE, DT_STORE_PART, DT_STORE_JOINED } dt_store_role;

typedef struct dt_store_meta {
    dt_store_role role;
    double frame_rate_hz; /* in [0.1, 1000] */
    double radius_m;      /* 0 = DT_RADIUS_M */
    uint32_t k_max;       /* 0 = DT_NEIGHBOURS */
    double smooth_s;      /* width of the average over accelerations, smooth.h; 0 = as they were recorded */
    const char *source;   /* where it came from, a name for people */
    const char *options;  /* importer options, a name for people; NULL = "" */
    dt_packing packing;   /* of the large arrays; zeroed: none; of a part: none */
    uint32_t jobs;        /* threads that make features, the caller's among them; 0: 1. The bytes are the same */
    double halo_m;        /* of a store of regions, which is joined; 0: it is none */
    double halo_s;        /* the same */
    double map_near_m;    /* positions of a scene with a map reach so near to its lanes; 0: they may lie anywhere */
} dt_store_meta;

/* Whether a store could be written there, before any work: as dt_staging_check, and not within another store. */
dt_status dt_store_check_out(const char *path) DT_NODISCARD;
/* path must not exist, and not within another store. DT_EINVAL, DT_EIO, DT_ENOMEM, those of dt_staging_open. */
dt_status dt_store_create(const char *path, const dt_store_meta *meta, dt_store_writer **out_p) DT_NODISCARD;
/* The same in a staging folder that was taken before (staging.h), a folder, which is closed with the writer, or at once
 * where it fails. */
dt_status dt_store_create_in(dt_staging *aside, const dt_store_meta *meta, dt_store_writer **out_p) DT_NODISCARD;
dt_status dt_store_scene_begin(dt_store_writer *w) DT_NODISCARD;
/* frame: number within the scene at the store's rate, larger than the one before; holes become empty frames. time_s is
 * the time of this frame. Accelerations that are NAN are made from the speed before; a vehicle's first stays unknown,
 * and so do headings, lengths and widths that are NAN. With smooth_s no acceleration is shown to models as it was
 * recorded; the first of a track is 0 then.
 * DT_EDATA (a vehicle twice, a value out of range), DT_EIO. */
dt_status dt_store_frame(dt_store_writer *w, int64_t frame, double time_s, const dt_vehicle *v, uint32_t n)
    DT_NODISCARD;
/* A sealed map (roads.h) that scenes may refer to by its number; one that is equal to a map before it, name and all, is
 * that one. roads stays the caller's. DT_EINVAL (not sealed, no lane), DT_EDATA (too many), DT_EIO, DT_ENOMEM. */
dt_status dt_store_map(dt_store_writer *w, const char *name, const dt_roads *roads, int32_t *number_p) DT_NODISCARD;
/* The map of the scene that is open; without a call it has none. DT_EINVAL. */
dt_status dt_store_scene_map(dt_store_writer *w, int32_t map) DT_NODISCARD;
/* Scenes that share the part of their name before '#' belong together and are never split between folds.
 * A scene that is another one again is reported in the log; by the policy it is kept, left out or DT_EDATA. DT_EDATA as
 * well for one that is farther from its map than map_near_m. */
dt_status dt_store_scene_end(dt_store_writer *w, const char *name, const char *site) DT_NODISCARD;
/* Of a joined store, in place of the calls above: every scene and map of a part, which was written with the same rate,
 * radius, neighbours and smoothing. Errors: as dt_store_open of the part; DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_store_append(dt_store_writer *w, const char *part) DT_NODISCARD;
/* Of a joined store of regions: scene of s, of which role [its rows] selects what is copied, as it is. frame_centre is
 * the mean over all rows. Edges from rows that are left out are left out. s stays the caller's, and has the writer's
 * rate, radius, neighbours and smoothing; map: its number in w, -1: none. DT_EDATA, DT_EIO, DT_ENOMEM. */
#define DT_CUT_HALO_MOST_M 1e5
#define DT_CUT_HALO_MOST_S 600.0
enum { DT_CUT_OUT = 0, DT_CUT_HALO = 1, DT_CUT_CORE = 2 };
dt_status dt_store_add_cut(dt_store_writer *w, const dt_store *s, int64_t scene, const uint8_t *role, int32_t map,
                           const char *name) DT_NODISCARD;
/* Track lists, risk labels, store.json, rename. DT_EDATA when there is no row. The writer is still to be destroyed. */
dt_status dt_store_commit(dt_store_writer *w) DT_NODISCARD;
void dt_store_destroy(dt_store_writer *w); /* not committed: removes what was written; NULL is fine */

typedef struct dt_store_counts {
    int64_t scenes, frames, rows, tracks, edges, tracks_of_one_frame, risk[4];
    int64_t maps, lanes, lane_points, lane_links;
    int64_t unknown[DT_N_UNKNOWN]; /* rows */
} dt_store_counts;
bool dt_store_has_unknown(const dt_store_counts *c);
/* Of a row, as the arrays hold it: its unknown values are counted. */
void dt_store_count_unknown(dt_store_counts *c, const double pose[3], const float motion[4]);
void dt_store_writer_counts(const dt_store_writer *w, dt_store_counts *out_p); /* risk is known after the commit */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Maps and checks everything: version, counts, offsets, indices, finite values. DT_ENOTFOUND, DT_EDATA with file and
 * what. Cost: one pass over the arrays. */
dt_status dt_store_open(const char *path, dt_store **out_p) DT_NODISCARD;
/* The same; cache_bytes: of unpacked pieces of a packed store that are held at most. DT_STORE_CACHE_BYTES above. */
dt_status dt_store_open_cached(const char *path, uint64_t cache_bytes, dt_store **out_p) DT_NODISCARD;
#define DT_STORE_CACHE_BYTES ((uint64_t)64 << 20)
/* The same, checked by so many threads, the caller's among them; more than two are not used. */
dt_status dt_store_open_jobs(const char *path, uint32_t jobs, dt_store **out_p) DT_NODISCARD;
/* Rows [from, from + n) of an array (DT_STORE_* of traffic/store.h), packed or not: [n,9] f32, [n,4] f32, [n] i32. [any
 * thread] DT_EINVAL, DT_EDATA, DT_ENOMEM. */
dt_status dt_store_read(const dt_store *s, uint32_t array, int64_t from, int64_t n, void *out) DT_NODISCARD;
const dt_packed *dt_store_packed(const dt_store *s);
const float *dt_store_stop_distance(const dt_store *s); /* [n_rows]; NULL: node has it as it is recorded */
const dt_store_view *dt_store_view_of(const dt_store *s);
const dt_store *dt_store_of_view(const dt_store_view *v); /* back again */
void dt_store_close(dt_store *s);                         /* NULL is fine */
const int64_t *dt_store_track_ids(const dt_store *s);     /* [n_tracks] */
double dt_store_radius_m(const dt_store *s);              /* of the neighbourhoods that its edges are of */
uint32_t dt_store_neighbours(const dt_store *s);          /* edges of a vehicle at most */
double dt_store_smooth_s(const dt_store *s);              /* 0: accelerations are as they were recorded */
uint64_t dt_store_bytes(const dt_store *s);               /* of all arrays */
int64_t dt_store_version(const dt_store *s);              /* of its layout, DT_STORE_VERSION */
const char *dt_store_path(const dt_store *s);             /* as it was opened */
/* What was recorded: scenes, which vehicles were there when, where they began, and roads where there are any. Equal
 * wherever the store is stored, and whatever options derived its features. */
uint64_t dt_store_digest(const dt_store *s);
void dt_store_release_pages(const dt_store *s); /* pages read so far go back to the page cache */
/* Training reads windows here and there. Opening has read all of it in order, so that it is in the page cache as far
 * as there is room; where there is none, reading around each window would push out others that will be needed. */
void dt_store_advise_random(const dt_store *s);
const char *dt_store_source(const dt_store *s);
int64_t dt_store_unknown(const dt_store *s, int what); /* DT_UNKNOWN_*: how many rows */

typedef struct dt_feature_stat {
    double min, max, mean, std;
} dt_feature_stat;
const dt_feature_stat *dt_store_node_stat(const dt_store *s); /* [9] */
const dt_feature_stat *dt_store_edge_stat(const dt_store *s); /* [4] */

#endif
