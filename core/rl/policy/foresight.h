/* SPDX-License-Identifier: Apache-2.0
 *
 * The world model at work where a policy is trained: what it is fed from an environment's observations and what is
 * made of its predictions. Perception sees the graph scaled as recordings are, so that both may come from phase 1:
 *
 *   nodes, edges, centre -> scaled -> perception -> embedding, risk
 *   embedding of the sequences, past -> world -> future, spread     of the agents and of the vehicles ahead of them
 *   future, spread, risk -> foresight [A,Z] for controllers, foreseen [A,2F] for shields     ports: traffic/ports.h
 *
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_POLICY_FORESIGHT_H
#define DTRAIN_CORE_RL_POLICY_FORESIGHT_H

#include "dtrain/svc/bind.h"
#include "dtrain/svc/wiring.h"

#include <stdbool.h>

enum { DT_FORESIGHT_TEXT = 32, DT_FORESIGHT_MAX_SECONDS = 8 };

typedef struct dt_foresight {
    int64_t T, F, dt_ms;                      /* steps of the past and of the future, ms between two */
    int64_t second[DT_FORESIGHT_MAX_SECONDS]; /* future steps that controllers are shown */
    int64_t n_seconds, columns;               /* how many; Z */
    char dims[DT_FORESIGHT_TEXT], foreseen_dims[DT_FORESIGHT_TEXT];
    dt_model *world;
} dt_foresight;

/* Errors: DT_ECONFIG: steps that are no whole numbers. phase: its id, for messages. */
dt_status dt_foresight_check(const char *phase, const dt_wiring_config *c) DT_NODISCARD;
void dt_foresight_init(dt_foresight *f, const dt_wiring_config *c);
/* What the environment is to be bound with: history_s and history_hz, in text of the caller's. */
void dt_foresight_settings(const dt_wiring_config *c, char text[2][DT_FORESIGHT_TEXT], dt_setting out[2]);
/* Binds models.world. H: width of embeddings, 0 where there are none. Errors: those of bind; DT_ESHAPE where the
 * environment shows no past. */
dt_status dt_foresight_bind(dt_foresight *f, const dt_host *h, const dt_env_spec *spec, const char *env_id, int64_t H)
    DT_NODISCARD;
/* Does the environment show the graph that perception was trained on? */
bool dt_foresight_has_graph(const dt_env_spec *e);
/* nodes [N,9] and edges [E,4] as perception gets them; centre [N,2] or NULL. */
dt_tensor *dt_foresight_nodes(dt_graph *g, dt_tensor *nodes, dt_tensor *centre);
dt_tensor *dt_foresight_edges(dt_graph *g, dt_tensor *edges);

/* Observations that the world model is fed from, and what it says. */
typedef struct dt_foresight_in {
    dt_tensor *past, *seq_node, *agent_seq;
    dt_tensor *embedding, *risk; /* [N,H], [N] of perception, or NULL */
    bool is_kept;                /* rows of a rollout, which may have kept it */
} dt_foresight_in;
/* Records the world model. Errors: those of the model. */
dt_status dt_foresight_record(const dt_foresight *f, dt_graph *g, const dt_foresight_in *in, dt_tensor **foresight_p,
                              dt_tensor **foreseen_p) DT_NODISCARD;

#endif
