/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.foresight/1" of a plugin: how perception and a world model see the observations of environments
 * whose ports the plugin knows, and what controllers and shields get of the predictions. Wiring (svc/wiring.h) uses the
 * first plugin that has it:
 *
 *   observations -> scale -> perception -> embedding, risk
 *   observations, embedding -> world -> foresight [A,columns] for controllers, foreseen [A,2F] for shields
 *
 * Returned by dt_plugin.extension. A agents, S sequences of observed vehicles, T and F steps of the past and future, H
 * width of embeddings; f32 unless said. All structs are the host's, in the life of the phase; tensors are the graph's.
 * Source: none; world models are those of phase 1. Threads: [main].
 */
#ifndef DTRAIN_EXT_FORESIGHT_H
#define DTRAIN_EXT_FORESIGHT_H

#include "dtrain/svc/graph.h"
#include "dtrain/svc/wiring.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_FORESIGHT "dtrain.foresight/1"

enum { DT_FORESIGHT_TEXT = 32, DT_FORESIGHT_MAX_SECONDS = 8, DT_FORESIGHT_SETTINGS = 2 };

typedef struct dt_foresight {
    int64_t T, F, dt_ms;                      /* steps of the past and of the future, ms between two; at least 1 */
    int64_t second[DT_FORESIGHT_MAX_SECONDS]; /* [n_seconds] future steps that controllers get, rising, from 0 to F-1 */
    int64_t n_seconds, columns;               /* 1 to DT_FORESIGHT_MAX_SECONDS; of foresight */
    char dims[DT_FORESIGHT_TEXT], foreseen_dims[DT_FORESIGHT_TEXT]; /* "A <columns>", "A <2F>" */
    char text[DT_FORESIGHT_SETTINGS][DT_FORESIGHT_TEXT];
    dt_setting setting[DT_FORESIGHT_SETTINGS]; /* options that the environment is bound with; values are in text, so
                                                * the struct is not copied after init */
    dt_model *world;                           /* set by bind; the host's */
} dt_foresight;

typedef struct dt_foresight_inputs {
    const dt_named *observation; /* [n] ports of the environment as they are recorded, not scaled */
    uint32_t n, is_kept;         /* 1: rows of a rollout, which may have kept the predictions */
    const char *prefix;          /* of the rows, "" or "next_", for messages */
    dt_tensor *embedding, *risk; /* of perception: [N,H] and logits [N], or NULL */
} dt_foresight_inputs;

typedef struct dt_foresight_api {
    uint32_t struct_size, reserved;
    /* Steps and columns of a configuration with foresight; out is written whole, world is NULL. phase: its id, for
     * messages. c: history_s and horizon_s in seconds, rate_hz in 1/s. Errors: DT_ECONFIG (steps are no whole numbers).
     */
    dt_status (*init)(const char *phase, const dt_wiring_config *c, dt_foresight *out);
    /* In create of the phase, once the environment is bound: binds the role world to f->world. H: width of embeddings,
     * 0 where there are none. Errors: those of bind; DT_ESHAPE where the environment lacks ports that the world model
     * needs. */
    dt_status (*bind)(const dt_host *h, dt_foresight *f, const dt_env_spec *spec, const char *env_id, int64_t H);
    /* Observations [n] as perception gets them, which may come from recordings: their tensors are replaced by scaled
     * ones of the same shape, in an environment with the ports that perception was trained on, else unchanged. Errors
     * are the graph's. */
    void (*scale)(dt_graph *g, const dt_env_spec *spec, dt_named *observation, uint32_t n);
    /* Records the world model: *foresight_p [A,columns], *foreseen_p [A,2F], set on success. Once per view of rows.
     * Errors: those of the model; DT_EINVAL where it lacks observations. */
    dt_status (*record)(dt_graph *g, const dt_foresight *f, const dt_foresight_inputs *in, dt_tensor **foresight_p,
                        dt_tensor **foreseen_p);
} dt_foresight_api;

#ifdef __cplusplus
}
#endif
#endif
