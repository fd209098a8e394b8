/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.comm/1": rank, number of ranks, and small collectives. The host sums gradients itself; a phase needs
 * this service only for its own state. Threads: [main][collective].
 */
#ifndef DTRAIN_SVC_COMM_H
#define DTRAIN_SVC_COMM_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_COMM "dtrain.comm/1"

enum { DT_RANKS_SUM = 1, DT_RANKS_MIN, DT_RANKS_MAX }; /* of reduce */

typedef struct dt_comm_api {
    uint32_t struct_size, reserved;
    uint32_t (*rank)(const dt_host *h);
    uint32_t (*size)(const dt_host *h);
    /* all [size, bytes]: the bytes of every rank, in rank order, on every rank. */
    dt_status (*all_gather)(const dt_host *h, const void *mine, uint64_t bytes, void *all);
    dt_status (*barrier)(const dt_host *h);
    dt_status (*agree)(const dt_host *h, dt_status mine); /* the worst status of all ranks, returned on all of them */
    /* Copies data of rank root to all ranks. Errors: DT_EINVAL (no such rank). */
    dt_status (*broadcast)(const dt_host *h, uint32_t root, void *data, uint64_t bytes);
    /* value [n]: replaced by the sum, minimum or maximum over all ranks, on all ranks. Sums are in rank order, in
     * f64: exact for integers below 2^53; otherwise the last digits depend on the number of ranks. Errors: DT_EINVAL
     * (how is none of DT_RANKS_*). */
    dt_status (*reduce)(const dt_host *h, uint32_t how, double *value, uint64_t n);
} dt_comm_api;

#ifdef __cplusplus
}
#endif
#endif
