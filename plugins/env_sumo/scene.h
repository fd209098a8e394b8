/* SPDX-License-Identifier: Apache-2.0
 *
 * How the scenario looks from above: extension dtrain.scene/1 (dtrain/ext/scene.h). x and y count from the middle of
 * the net, as in the graph; risk is that of the time to collision with what is ahead. Of an episode that is over the
 * last moment is shown. Only viewers pay for it. Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_SCENE_H
#define DTRAIN_ENV_SUMO_SCENE_H

#include "env_sumo.h"

extern const dt_scene_api scene_api;

/* Simulated time has passed. */
static inline void scene_show_step(const state *s)
{
    if (s->picture.each != NULL) {
        s->picture.each(s->picture.user);
    }
}
/* Before SUMO is closed at the end of an episode: keeps the last moment, where there is a viewer. DT_ENOMEM. */
dt_status scene_record(state *s);
/* What belongs to a scenario goes; the watcher stays. */
void scene_forget(state *s);

#endif
