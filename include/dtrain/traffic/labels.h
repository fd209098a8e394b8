/* SPDX-License-Identifier: Apache-2.0
 *
 * What legends call scenes of traffic (dtrain/ext/scene.h). Threads: any (no state).
 */
#ifndef DTRAIN_TRAFFIC_LABELS_H
#define DTRAIN_TRAFFIC_LABELS_H

#include "dtrain/ext/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

static const dt_scene_labels dt_traffic_labels = {sizeof(dt_scene_labels),
                                                  0,
                                                  "traffic",
                                                  "vehicles",
                                                  {"calm", "must brake hard", "at risk", "in danger"},
                                                  {"red light", "yellow", "green", "green that gives way"}};

#ifdef __cplusplus
}
#endif
#endif
