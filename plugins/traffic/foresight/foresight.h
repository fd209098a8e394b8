/* SPDX-License-Identifier: Apache-2.0
 *
 * Foresight in traffic (dtrain/ext/foresight.h). Perception sees the graph of vehicles scaled as recordings are, so
 * that it and the world model may come from phase 1. The world model predicts agents and the vehicles ahead of them;
 * ports: dtrain/traffic/ports.h. Threads: [main].
 */
#ifndef DTRAIN_TRAFFIC_FORESIGHT_FORESIGHT_H
#define DTRAIN_TRAFFIC_FORESIGHT_FORESIGHT_H

#include "dtrain/ext/foresight.h"

extern const dt_foresight_api dt_traffic_foresight;

#endif
