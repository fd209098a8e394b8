/* SPDX-License-Identifier: Apache-2.0
 *
 * A closer look at a store: how its features are distributed, where recordings have holes, which scenes are others
 * again, and whether numbers are in the units that they should be in. For people and as JSON. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_SURVEY_H
#define DTRAIN_PLUGINS_TRAFFIC_SURVEY_H

#include "base/json.h"
#include "base/str.h"
#include "traffic/store/store.h"
#include "traffic/import/units.h"

enum { DT_SURVEY_BINS = 32, DT_SURVEY_REPEATS = 20 };

typedef struct dt_survey {
    uint32_t node[DT_NODE_FEATURES][DT_SURVEY_BINS]; /* values from min to max, in steps of the same width */
    uint32_t edge[DT_EDGE_FEATURES][DT_SURVEY_BINS]; /* without the edges of vehicles to themselves */
    int64_t empty_frames;                            /* of scenes, without vehicles */
    int64_t broken_tracks, missing_rows;             /* vehicles out of sight for a while, frames of it */
    double longest_gap_s;                            /* of one of them */
    int64_t n_repeats;                               /* scenes that are others again; the first of them: */
    int64_t repeat[DT_SURVEY_REPEATS][2];            /* scene, and the one that it is */
    dt_units units;
} dt_survey;

/* DT_ENOMEM, DT_EDATA (a damaged block). Cost: a pass over all rows and edges. */
dt_status dt_survey_make(const dt_store *s, dt_survey *out) DT_NODISCARD;
void dt_survey_text(const dt_survey *u, const dt_store *s, dt_str *out);
void dt_survey_json(const dt_survey *u, const dt_store *s, dt_json_out *o);

#endif
