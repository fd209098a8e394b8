/* SPDX-License-Identifier: Apache-2.0
 *
 * The world model at work in phases that train a policy: what it is fed from an environment's observations and what is
 * made of its predictions. Perception sees the graph scaled as recordings are, so that both may come from phase 1:
 *
 *   nodes, edges, centre -> scaled -> perception -> embedding, risk
 *   embedding of the sequences, past -> world -> future, spread     of the agents and of the vehicles ahead of them
 *   future, spread, risk -> foresight [A,Z] for controllers, foreseen [A,2F] for shields     ports: dtrain/shapes.h
 *
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_POLICY_FORESIGHT_H
#define DTRAIN_PHASES_POLICY_FORESIGHT_H

#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include <stdbool.h>

enum { FORESIGHT_TEXT = 32, FORESIGHT_MAX_SECONDS = 8 };

typedef struct foresight_config {
    double history_s, horizon_s, rate_hz; /* as in phase 1, where the weights come from */
    uint8_t on;
    uint8_t imagines; /* the controller is shown only what an imagined branch has (imagine.h) */
} foresight_config;

typedef struct foresight {
    int64_t T, F, dt_ms;                   /* steps of the past and of the future, ms between two */
    int64_t second[FORESIGHT_MAX_SECONDS]; /* future steps that controllers are shown */
    int64_t n_seconds, columns;            /* how many; Z */
    char dims[FORESIGHT_TEXT], foreseen_dims[FORESIGHT_TEXT];
    dt_model *world;
} foresight;

/* Errors: DT_ECONFIG: steps that are no whole numbers. phase: its id, for messages. */
dt_status foresight_check(const dt_host *h, const char *phase, const foresight_config *c);
void foresight_init(foresight *f, const foresight_config *c);
/* What the environment is to be bound with: history_s and history_hz, in text of the caller's. */
void foresight_settings(const foresight_config *c, char text[2][FORESIGHT_TEXT], dt_setting out[2]);
/* Binds models.world. H: width of embeddings, 0 where there are none. Errors: those of bind; DT_ESHAPE where the
 * environment shows no past. */
dt_status foresight_bind(foresight *f, const dt_host *h, const dt_bind_api *bind, const dt_env *e, int64_t H);
/* Does the environment show the graph that perception was trained on? */
bool foresight_has_graph(const dt_env_spec *e);
/* nodes [N,9] and edges [E,4] as perception gets them; centre [N,2] or NULL. */
dt_tensor *foresight_nodes(dt_graph *g, dt_tensor *nodes, dt_tensor *centre);
dt_tensor *foresight_edges(dt_graph *g, dt_tensor *edges);
/* Records the world model. embedding [N,H], risk [N]: of perception, or NULL. Errors: those of the model. */
dt_status foresight_record(const foresight *f, dt_graph *g, dt_tensor *embedding, dt_tensor *risk,
                           dt_tensor **foresight_p, dt_tensor **foreseen_p);

#endif
