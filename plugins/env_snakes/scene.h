/* SPDX-License-Identifier: Apache-2.0
 *
 * How a game of env_snakes looks (dtrain/ext/scene.h): rows of the board are roads, every segment is a vehicle, beans
 * are small ones that are not steered. Cells are 1 m. Risk is that of heads: the share of the four cells around one
 * that is blocked. Threads: [worker].
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_SCENE_H
#define DTRAIN_PLUGINS_ENV_SNAKES_SCENE_H

#include "board.h"
#include "dtrain/ext/scene.h"

void snakes_scene_roads(const void *self, dt_scene_roads *out);
/* team: that of the agents. */
void scene_draw(const board *b, uint32_t team, dt_scene *out);

#endif
