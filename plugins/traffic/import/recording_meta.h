/* SPDX-License-Identifier: Apache-2.0
 *
 * What highD, inD and rounD record of a recording in a table next to it: NN_recordingMeta.csv of NN_tracks.csv, a
 * header and one row. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_RECORDING_META_H
#define DTRAIN_PLUGINS_TRAFFIC_RECORDING_META_H

#include "base/str.h"
#include "traffic/text/values.h"

enum { DT_MARKINGS_MOST = 32 };

typedef struct dt_recording_meta {
    double frame_rate_hz; /* frameRate */
    int64_t location;     /* locationId: where the camera hung */
    int64_t recording;    /* recordingId, or highD's id: the NN of its files; -1: the table does not have it */
    bool has_utm;         /* xUtmOrigin and yUtmOrigin, of inD and rounD: where positions are counted from, m */
    double utm[2];
    double speed_limit; /* m/s; 0: none, or the table does not have it */
    /* upperLaneMarkings and lowerLaneMarkings, of highD: y of the lines of each carriageway, m from the top of the
     * picture, downwards */
    double marking[2][DT_MARKINGS_MOST];
    int n_markings[2]; /* 0: the table does not have it */
} dt_recording_meta;

/* tracks: path of NN_tracks.csv, plain or packed. Errors: DT_ENOTFOUND (no such table next to it, or the name of tracks
 * has another form), DT_EDATA with file, line and column, also of
 * another recording, DT_EIO, DT_ENOMEM. */
dt_status dt_recording_meta_read(const char *tracks, dt_recording_meta *out_p) DT_NODISCARD;
/* Path of that table, there or not; DT_ENOTFOUND: the name of tracks has another form. DT_ENOMEM. */
dt_status dt_recording_meta_path(const char *tracks, dt_str *out) DT_NODISCARD;
/* Classes of the vehicles of a recording: NN_tracksMeta.csv in the folder of NN_tracks.csv, with trackId (or id) and
 * class. Where there is no such table, or it has no class, n is 0. Errors: DT_EDATA, DT_EIO, DT_ENOMEM. */
typedef struct dt_recording_users { /* zeroed is empty */
    dt_names ids;
    dt_road_user *user; /* [ids.n] */
    int32_t cap;
} dt_recording_users;
dt_status dt_recording_users_read(const char *tracks, dt_recording_users *out) DT_NODISCARD;
/* DT_USER_UNKNOWN: the table does not have it. */
dt_road_user dt_recording_user(const dt_recording_users *u, const char *id);
void dt_recording_users_fini(dt_recording_users *u);
/* The same of an open table. */
struct dt_csv;
dt_status dt_recording_meta_parse(struct dt_csv *csv, dt_recording_meta *out_p) DT_NODISCARD;

#endif
