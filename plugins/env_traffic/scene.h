/* SPDX-License-Identifier: Apache-2.0
 *
 * How the simulation looks from above (dtrain/ext/scene.h). Risk of a vehicle: from its time to collision with what is
 * ahead.
 */
#ifndef DTRAIN_ENV_TRAFFIC_SCENE_H
#define DTRAIN_ENV_TRAFFIC_SCENE_H

#include "sim.h"
#include "dtrain/ext/scene.h"
#include "dtrain/traffic/features.h"

void scene_roads(const sim *s, dt_scene_roads *out);
/* Agents are first_place signals, then places of vehicles. frame [n]: the graph that they saw last. */
void scene_now(const sim *s, int32_t first_place, const dt_vehicle *frame, uint32_t n, dt_scene *out);

#endif
