/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.foresight/1" of a plugin: how perception and a world model see the observations of environments
 * whose ports the plugin knows, and what controllers and shields get of the predictions. Wiring (svc/wiring.h) uses the
 * first plugin that has it:
 *
 *   observations -> scale -> perception -> embedding, risk
 *   observations, embedding -> world -> foresight [A,columns] for controllers, foreseen [A,2F] for shields
 *
 * Threads: [main].
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
    int64_t T, F, dt_ms;                      /* steps of the past and of the future, ms between two */
    int64_t second[DT_FORESIGHT_MAX_SECONDS]; /* future steps that controllers get */
    int64_t n_seconds, columns;               /* how many; of foresight */
    char dims[DT_FORESIGHT_TEXT], foreseen_dims[DT_FORESIGHT_TEXT];
    char text[DT_FORESIGHT_SETTINGS][DT_FORESIGHT_TEXT];
    dt_setting setting[DT_FORESIGHT_SETTINGS]; /* options that the environment is bound with; values are in text */
    dt_model *world;
} dt_foresight;

typedef struct dt_foresight_inputs {
    const dt_named *observation; /* [n] as they are recorded */
    uint32_t n, is_kept;         /* 1: rows of a rollout, which may have kept the predictions */
    const char *prefix;          /* of the rows, for messages */
    dt_tensor *embedding, *risk; /* of perception, or NULL */
} dt_foresight_inputs;

typedef struct dt_foresight_api {
    uint32_t struct_size, reserved;
    /* Steps and columns of a configuration with foresight. phase: its id, for messages. Errors: DT_ECONFIG. */
    dt_status (*init)(const char *phase, const dt_wiring_config *c, dt_foresight *out);
    /* Binds the role world. H: width of embeddings, 0 where there are none. Errors: those of bind; DT_ESHAPE where the
     * environment lacks ports that the world model needs. */
    dt_status (*bind)(const dt_host *h, dt_foresight *f, const dt_env_spec *spec, const char *env_id, int64_t H);
    /* Observations as perception gets them, which may come from recordings: scaled in place, in an environment with the
     * ports that perception was trained on, else unchanged. */
    void (*scale)(dt_graph *g, const dt_env_spec *spec, dt_named *observation, uint32_t n);
    /* Records the world model. Errors: those of the model; DT_EINVAL where it lacks observations. */
    dt_status (*record)(dt_graph *g, const dt_foresight *f, const dt_foresight_inputs *in, dt_tensor **foresight_p,
                        dt_tensor **foreseen_p);
} dt_foresight_api;

#ifdef __cplusplus
}
#endif
#endif
