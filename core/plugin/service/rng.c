/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rng/1": random numbers by stream and key.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/rng.h"
#include "dtrain/svc/rng.h"

static dt_rng_key rng_key(const dt_host *h, uint32_t stream, uint64_t key)
{
    const dt_stage *s = dt_stage_of(h);
    return (dt_rng_key){.seed = s->d.seed, .phase = (uint32_t)s->d.index, .op = stream, .sample = key};
}

static void rng_uniform(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n)
{
    const dt_rng_key k = rng_key(h, stream, key);
    for (uint32_t j = 0; j < n; j++) {
        out[j] = dt_rng_uniform(&k, i + j);
    }
}

static void rng_normal(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n)
{
    const dt_rng_key k = rng_key(h, stream, key);
    for (uint32_t j = 0; j < n; j++) {
        out[j] = dt_rng_normal(&k, i + j);
    }
}

const dt_rng_api dt_rng_service = {.struct_size = sizeof(dt_rng_api), .uniform = rng_uniform, .normal = rng_normal};
