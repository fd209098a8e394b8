/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.metrics/1": scalars and results of evaluations. Rank 0 writes them; calls of other ranks are ignored.
 * scalar writes to metrics.jsonl with the current step; several values of a name in one iteration are averaged.
 * report adds to the JSON object of `dtrain eval` and to the log. Names are "GROUP/NAME" ("losses/nll",
 * "eval/rmse_5s"). Threads: [main].
 */
#ifndef DTRAIN_SVC_METRICS_H
#define DTRAIN_SVC_METRICS_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_METRICS "dtrain.metrics/1"

typedef struct dt_metrics_api {
    uint32_t struct_size, reserved;
    void (*scalar)(const dt_host *h, const char *name, double value);
    /* A part of an evaluation's result, in the order of calls: a list of n numbers, or one number (n = 0). Slashes in
     * key create nested objects: "return/mean" is member mean of return. */
    void (*report)(const dt_host *h, const char *key, const double *value, uint32_t n);
    /* A table [rows, columns] of an evaluation for pictures; rows 0: one list of `columns` numbers. Keys nest as above.
     * The last evaluation's tables are in evaluation/<n>-<phase>.pictures.json of the run directory; reports draw the
     * keys listed at the end of this file. */
    void (*picture)(const dt_host *h, const char *key, const float *value, uint32_t rows, uint32_t columns);
} dt_metrics_api;

/* Pictures that a report draws, in m, s and rad:
 *   trajectories/<i>/...          scenes of predicted traffic, i from 0
 *     rmse_m                      of the scene, at the last horizon
 *     share                       of scenes that are better than this one, 0 to 1
 *     vehicle/<j>/pose            x, y, heading (rad) and length when the prediction is made
 *     vehicle/<j>/history, future, predicted, constant   rows of x, y: recorded before and after, predicted, at
 *                                 constant velocity; future and what follows it begin after the pose
 *     vehicle/<j>/spread          rows of a standard deviation along and across the vehicle's heading, for `predicted`
 *     vehicle/<j>/futures/<k>     rows of x, y: one of several predicted ones, of which `predicted` is the mean
 *     vehicle/<j>/probability     of each of them
 *     vehicle/<j>/lane            rows of x, y: where its lane leads, from the vehicle on
 *     horizon                     rows of `predicted` that are marked, counted from 0
 *   traffic/...                   an episode from above; the host leaves it where the environment has ext/scene.h
 *     road                        rows of lane, x, y, width: neighbours of one lane are joined
 *     colours                     where risk comes from: 0 the environment, 1 what perception predicts, 2 the
 *                                 environment, since perception was never taught
 *     moment/<i>/time             since the episode began
 *     moment/<i>/delay            mean delay of the vehicles until then, in s, where the environment reports it
 *     moment/<i>/vehicle          rows of id, x, y, heading, length, width, speed, risk, mark (0, 1: an agent, 2: one
 *                                 whose action the shield changed); x, y: the middle of its front; risk: 0 to 1, NAN
 *                                 where it is not known
 *     moment/<i>/signal           rows of x, y, heading, width, state (DT_SCENE_*), mark, agent (-1: none)
 */

#ifdef __cplusplus
}
#endif
#endif
