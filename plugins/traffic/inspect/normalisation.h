/* SPDX-License-Identifier: Apache-2.0
 *
 * What the statistics of a store make of features that are normalised by kind (traffic/normalise.h): what a model with
 * risk_gnn.normalise = "store" would be given if it were trained on all of the store. Training takes the scenes that it
 * trains on alone. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_NORMALISATION_H
#define DTRAIN_PLUGINS_TRAFFIC_NORMALISATION_H

#include "base/json.h"
#include "base/str.h"
#include "traffic/store/store.h"

#include "dtrain/traffic/normalise.h"

typedef struct dt_normalisation { /* of features in SI units: (x + shift) scale, x and y from the middle of the frame */
    dt_normaliser node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
} dt_normalisation;

/* Cost: a pass over the positions. */
dt_normalisation dt_normalisation_measure(const dt_store *s);
void dt_normalisation_text(const dt_normalisation *k, dt_str *out);
void dt_normalisation_json(const dt_normalisation *k, dt_json_out *o);

#endif
