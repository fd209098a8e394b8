/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.wiring/1": what a phase trains as a policy, wired as configured: the
 * environment under env.id, and the models of the roles perception (optional), world (where foresight is on),
 * controller and shield (optional). It knows ports and names; what is learned from them is the phase's loss.
 *
 *   observations -> perception -> embedding [N,H], risk [N]      where models.perception is set
 *   embedding, risk, past -> world -> foresight, foreseen        where foresight is on
 *   observations, embedding, risk, foresight -> controller -> policy         ports: dtrain/roles.h
 *   observations, foreseen -> shield -> low, high, allow         where models.shield is set: outputs for the host alone
 *
 * A phase needs no more than
 *
 *   create    wiring->create(h, &desc, &w);
 *   start     models of dt_train_desc: w->api->models(w, model, DT_WIRING_MAX_MODELS)
 *   record    w->api->record(w, g, NULL, &p); w->api->action_log_prob(w, g, &p, &log_prob, &entropy); and its losses
 *
 * and learns from whatever data has the fields of a rollout (svc/rollout.h). Phases that collect and learn in turn have
 * svc/rounds.h on top. A critic, or another network of the phase's own, is a role that bind adds; it is fed by
 * record_model. Threads: [main].
 */
#ifndef DTRAIN_SVC_WIRING_H
#define DTRAIN_SVC_WIRING_H

#include "dtrain/plugin.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/graph.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_WIRING "dtrain.wiring/1"

typedef struct dt_wiring dt_wiring;

enum { DT_WIRING_MAX_MODELS = 8 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Options in the section of the phase: a member of its configuration, and DT_WIRING_OPTIONS in its option table. */
typedef struct dt_wiring_config {
    double history_s, horizon_s, rate_hz; /* of foresight: past and future of the world model, steps a second */
    int64_t window;                       /* observations that a controller with memory sees; 0 or 1: no memory */
    uint8_t foresight;                    /* 1: it is on */
    uint8_t keep_foresight;               /* 1: a rollout keeps what frozen models foresee; the same bits for less */
    uint8_t reserved[6];
} dt_wiring_config;

/* A row of an option table for member FIELD of the PART_T that is member PART of configuration T; the key is FIELD. */
/* clang-format off */
#define DT_OPTION_OF(T, PART, PART_T, FIELD, type, dfl, unit, min, max, choices, help)                                 \
    DT_OPTION_OF_WITH(T, PART, PART_T, FIELD, type, dfl, unit, min, max, choices, help, NULL)
#define DT_OPTION_OF_WITH(T, PART, PART_T, FIELD, type, dfl, unit, min, max, choices, help, needs)                     \
    {                                                                                                                  \
        #FIELD, dfl, unit, help, choices, min, max, type, 0,                                                           \
            (uint32_t)(offsetof(T, PART) + offsetof(PART_T, FIELD)), (uint32_t)sizeof(((PART_T *)0)->FIELD), needs     \
    }
/* Rows for a configuration T with a member PART of type dt_wiring_config. */
#define DT_WIRING_OPTIONS(T, PART)                                                                                     \
    DT_OPTION_OF(T, PART, dt_wiring_config, window, DT_OPT_I64, "1", "steps", 1, 1024, NULL,                           \
        "observations a controller with memory sees, this one included"),                                              \
    DT_OPTION_OF(T, PART, dt_wiring_config, foresight, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,                         \
        "give controller and shield the predictions of models.world"),                                                 \
    DT_OPTION_OF(T, PART, dt_wiring_config, keep_foresight, DT_OPT_BOOL, "true", NULL, 0, 0, NULL,                     \
        "predictions of frozen models are kept with the samples; false: computed again in every pass, same result"),   \
    DT_OPTION_OF(T, PART, dt_wiring_config, history_s, DT_OPT_F64, "3", "s", 0, 60, NULL,                              \
        "foresight: history that the world model sees, as in phase 1"),                                                \
    DT_OPTION_OF(T, PART, dt_wiring_config, horizon_s, DT_OPT_F64, "5", "s", 0, 60, NULL,                              \
        "foresight: horizon of predictions, as in phase 1"),                                                           \
    DT_OPTION_OF(T, PART, dt_wiring_config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL,                           \
        "foresight: steps per second of both, as in phase 1")
/* clang-format on */

/* ---- wiring ------------------------------------------------------------------------------------------------------ */

enum {
    /* The controller has no value outputs: value and cost_value are neither required nor recorded; its sizes "values"
     * and K are 0. For phases with a critic in another role. */
    DT_WIRING_NO_VALUE = 1u,
    /* The controller is offered only obs, under both of its names, as imagined states have nothing else. */
    DT_WIRING_OBS_ONLY = 2u,
    /* log_std depends on the observation; the controller gets the size "spread" = 1. */
    DT_WIRING_STATE_LOG_STD = 4u,
    /* The controller has no log_std output. For phases that set the spread of actions themselves. */
    DT_WIRING_NO_LOG_STD = 8u,
    /* The phase applies tanh to the means of bounded actions; the controller gets the size "squashed" = 1. */
    DT_WIRING_SQUASHED = 16u,
    /* The controller's outputs are no graph outputs: the phase records graph outputs itself, and the host acts by
     * those. */
    DT_WIRING_NO_OUTPUTS = 32u,
    /* Models are offered only f32 rows of agents, which is what transitions have of the next step (svc/rollout.h). */
    DT_WIRING_AGENT_ROWS = 64u
};

typedef struct dt_wiring_desc {
    uint32_t struct_size, config_size; /* sizeof(dt_wiring_desc), sizeof(dt_wiring_config) */
    const char *phase;                 /* its id, for messages */
    const dt_wiring_config *config;    /* copied; NULL: no foresight, no memory */
    const dt_setting *settings;        /* [n_settings] options of the environment that the phase sets */
    uint32_t n_settings, flags;        /* DT_WIRING_* */
} dt_wiring_desc;
/* The usual one: const dt_wiring_desc d = DT_WIRING_DESC("mine", &c->wiring); */
#define DT_WIRING_DESC(PHASE, CONFIG)                                                                                  \
    DT_DESC_(dt_wiring_desc, DT_OPS(DT_SET(config_size, (uint32_t)sizeof(dt_wiring_config)), DT_SET(phase, PHASE),     \
                                    DT_SET(config, CONFIG)))

/* Outputs of the models in one graph; NULL if absent. A: rows of agents. */
typedef struct dt_policy_tensors {
    uint32_t struct_size, reserved;
    dt_tensor *logits;               /* [A,choices] of all discrete actions one after another */
    dt_tensor *mean, *log_std;       /* [A,continuous] */
    dt_tensor *value;                /* [A] */
    dt_tensor *cost_value;           /* [A,costs] */
    dt_tensor *embedding, *risk;     /* [N,H], [N] of perception */
    dt_tensor *foresight, *foreseen; /* [A,Z], [A,2F] of the world model, as controllers and shields get them */
} dt_policy_tensors;

/* Which fields and parameters to record with; NULL in place of a view: all observations, the models' parameters. */
typedef struct dt_wiring_view {
    uint32_t struct_size;
    uint32_t has_all;   /* 1: every observation, ragged ones too (of "next_" with transitions = 3); 0: f32 rows of
                         * agents, as transitions have them */
    const char *prefix; /* of the fields' names, "next_": of the rows after them; "": of the rows themselves */
    /* name of a target network (svc/train.h) that is recorded in place of the controller, or of the model of
     * record_model; NULL: none */
    const char *target;
} dt_wiring_view;

typedef struct dt_wiring_api {
    uint32_t struct_size, reserved;
    /* In create. Binds the environment, then perception, world, controller and shield. The host frees it with the
     * phase; one per phase. Errors: those of bind; DT_ECONFIG (foresight's steps are no whole numbers), DT_ESHAPE (the
     * environment shows its agents no row of their own, or no past; the shield bounds none of its actions). */
    dt_status (*create)(const dt_host *h, const dt_wiring_desc *d, dt_wiring **out_p);
    /* In create. One more role of the same environment. want: as for bind->model; offers and dims of want come on top
     * of what controllers are offered: dims D, W, choices, continuous, K and columns of every observation, ports of
     * dtrain/roles.h. *out_p: NULL where want has DT_MODEL_OPTIONAL and the configuration names none. */
    dt_status (*bind)(dt_wiring *w, const dt_model_request *want, dt_model **out_p);
    /* In create. Adds a model that the phase bound to models; one of the role world also becomes w->world if there is
     * none. Errors: DT_EINVAL (already added, or too many). */
    dt_status (*add_model)(dt_wiring *w, dt_model *m);
    /* All models, for dt_train_desc: perception, world, controller, shield, then others in binding order. Returns their
     * number; writes at most capacity of them to out. */
    uint32_t (*models)(const dt_wiring *w, dt_model **out, uint32_t capacity);
    /* In record of dt_train_desc. Records all of them, with the outputs that the host acts by; with a view whose prefix
     * is not "" perception, world and controller alone, and no outputs: what the policy makes of other rows. out:
     * struct_size set by the caller, all else NULL; or embedding and risk of the rows themselves, for their step after,
     * where perception has seen both (transitions = 3): it is not recorded again. Errors: those of the models;
     * DT_EINVAL (history or kept rows under a prefix). */
    dt_status (*record)(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out);
    /* In record. Records any bound model m, fed by name: with what rows of the view observe, and with more [n_more, at
     * most 16], such as the action of a critic. Shapes and dtypes are those of its ports; NULL tensors, and inputs that
     * it does not have, are left out. view->target: by the parameters of that target network. out [n_out]: outputs by
     * name; their tensors, which the graph owns, are set on success. Errors: DT_EINVAL (n_more), those of
     * dt_graph_api.model_as. */
    dt_status (*record_model)(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m, const dt_named *more,
                              uint32_t n_more, dt_named *out, uint32_t n_out);
    /* log p(a|s) of the drawn action (fields action_i, mask, action_f) and the entropy of p(.|s), [A] each: sums over
     * its independent parts. Errors: those of the graph. */
    dt_status (*action_log_prob)(const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p, dt_tensor **log_prob_p,
                                 dt_tensor **entropy_p);
} dt_wiring_api;

struct dt_wiring { /* first member of the host's wiring; read-only */
    const dt_wiring_api *api;
    uint32_t struct_size;
    uint32_t n_choices; /* of all discrete actions together */
    dt_env *env;
    const char *env_id;
    const dt_env_spec *spec;
    const dt_port *own; /* each agent's observation of itself: port "obs", else the first row, else image */
    dt_model *perception, *world, *controller, *shield; /* NULL if not configured */
    int64_t window;                                     /* at least 1 */
    int64_t F, dt_ms;                                   /* with foresight: its steps and the time between two, else 0 */
    uint32_t has_graph, reserved; /* 1: a model that is bound so far may read more than f32 rows of agents */
};

/* ---- critics of observation and action (dtrain/roles.h) ---------------------------------------------------------- */

/* In create: the model of the role critic, of n_q estimates. Errors: those of bind. */
static inline dt_status dt_wiring_bind_critic(dt_wiring *w, int64_t n_q, dt_model **out_p)
{
    char columns[2][32];
    dt_port offer, need;
    dt_dim dims[2];
    dt_model_request want;
    memset(&offer, 0, sizeof(offer));
    memset(&want, 0, sizeof(want));
    dims[0].name = "P";
    dims[0].size = (int64_t)w->n_choices + (int64_t)w->spec->n_continuous;
    dims[1].name = "Q";
    dims[1].size = n_q;
    snprintf(columns[0], sizeof(columns[0]), "A %lld", (long long)dims[0].size);
    snprintf(columns[1], sizeof(columns[1]), "A %lld", (long long)n_q);
    offer.name = "action";
    offer.dims = columns[0];
    offer.dtype = DT_F32;
    need = offer;
    need.name = "q";
    need.dims = columns[1];
    want.struct_size = (uint32_t)sizeof(want);
    want.role = "critic";
    want.dims = dims;
    want.n_dims = 2;
    want.offers = &offer;
    want.needs = &need;
    want.n_offers = want.n_needs = 1;
    return w->api->bind(w, &want, out_p);
}

/* Q [A,n_q] of the rows under prefix ("": of the rows themselves) and an action, by the parameters of a target network
 * where target is not NULL. NULL after an error, which is the graph's. */
static inline dt_tensor *dt_wiring_record_q(dt_wiring *w, dt_graph *g, const char *prefix, dt_model *critic,
                                            const char *target, dt_tensor *action)
{
    dt_wiring_view view;
    dt_named in, q;
    memset(&view, 0, sizeof(view));
    view.struct_size = (uint32_t)sizeof(view);
    view.prefix = prefix;
    view.target = target;
    in.name = "action";
    in.tensor = action;
    q.name = "q";
    q.tensor = NULL;
    return w->api->record_model(w, g, &view, critic, &in, 1, &q, 1) < 0 ? NULL : q.tensor;
}

#ifdef __cplusplus
}
#endif
#endif
