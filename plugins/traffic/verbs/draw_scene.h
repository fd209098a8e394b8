/* SPDX-License-Identifier: Apache-2.0
 *
 * A moment of a store as a picture: the frame with the most vehicles, on the lanes of its map, or where there is none
 * on the paths that vehicles took in that scene. Colours are those of a run's report; risk is the label. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_DRAW_SCENE_H
#define DTRAIN_PLUGINS_TRAFFIC_DRAW_SCENE_H

#include "base/str.h"

/* An SVG file at path, written to a temporary file and renamed. notes: which moment it is. DT_ENOTFOUND, DT_EDATA,
 * DT_EIO. */
dt_status dt_draw_scene(const char *store, const char *path, dt_str *notes) DT_NODISCARD;

#endif
