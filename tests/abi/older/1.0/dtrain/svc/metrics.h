/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.metrics/1": numbers for people and scripts. Rank 0 writes them; other ranks' calls are ignored.
 * scalar goes to metrics.jsonl with the current step; report* make the JSON object of `dtrain eval` and are also
 * logged. Names follow INTERFACES ("losses/nll", "eval/rmse_5s"). Threads: [main].
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
    /* Parts of an evaluation's result, in the order given: a list of numbers, or one number (n = 0 means one). */
    void (*report)(const dt_host *h, const char *key, const double *value, uint32_t n);
} dt_metrics_api;

#ifdef __cplusplus
}
#endif
#endif
