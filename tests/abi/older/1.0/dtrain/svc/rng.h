/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rng/1": counter-based random numbers (Philox4x32-10) of the run's seed. A number depends on its
 * arguments alone, never on rank, worker or draw order. Threads: [any].
 */
#ifndef DTRAIN_SVC_RNG_H
#define DTRAIN_SVC_RNG_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_RNG "dtrain.rng/1"

typedef struct dt_rng_api {
    uint32_t struct_size, reserved;
    /* n uniforms in [0,1) of stream (seed, phase, stream, key, i); n doubles are written. */
    void (*uniform)(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n);
    void (*normal)(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n);
} dt_rng_api;

#ifdef __cplusplus
}
#endif
#endif
