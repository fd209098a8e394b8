/* SPDX-License-Identifier: Apache-2.0
 *
 * The services "dtrain.wiring/1" and "dtrain.rounds/1" as the host makes them: dtrain/svc/wiring.h, rounds.h. What is
 * bound lives in the stage, and so do both. wiring.c binds, record.c records, rounds.c collects and learns in turn.
 * Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_POLICY_WIRING_H
#define DTRAIN_CORE_RL_POLICY_WIRING_H

#include "dtrain/ext/foresight.h"
#include "dtrain/svc/rounds.h"

#include <stdbool.h>
#include <string.h>

enum { DT_WIRING_MAX_OBS = DT_ENV_MAX_OBS + 1 };

typedef struct dt_wired { /* a dt_wiring, as the host has it */
    dt_wiring face;       /* first */
    const dt_host *h;
    dt_wiring_config config;
    uint32_t flags;
    const dt_foresight_api *predictor;     /* of a plugin; NULL: none has it */
    dt_foresight foresight;                /* with face.F > 0 */
    dt_model *other[DT_WIRING_MAX_MODELS]; /* of other roles, as they were bound */
    uint32_t n_others;
} dt_wired;

extern const dt_wiring_api dt_wiring_service;
extern const dt_rounds_api dt_rounds_service;

static inline dt_wired *dt_wired_of(dt_wiring *w)
{
    return (dt_wired *)(void *)w;
}

static inline const dt_wired *dt_wired_of_const(const dt_wiring *w)
{
    return (const dt_wired *)(const void *)w;
}

/* Is the controller asked for log_std? */
static inline bool dt_wired_has_spread(const dt_wired *w)
{
    return w->face.spec->n_continuous > 0 && (w->flags & DT_WIRING_NO_LOG_STD) == 0;
}

/* A row of each agent's own, or its list: what it observes of the step after has a name of its own (svc/rollout.h,
 * transitions). */
static inline bool dt_wiring_is_of_agents(const dt_port *p)
{
    return p->dims[0] == 'A' && (p->dims[1] == ' ' || p->dims[1] == '\0' || strcmp(p->dims, "A+1") == 0);
}

/* The same of numbers, an image of bytes included. */
static inline bool dt_wiring_is_row(const dt_port *p)
{
    return (p->dtype == DT_F32 || p->dtype == DT_U8) && dt_wiring_is_of_agents(p) && (p->flags & DT_PORT_STEPS) == 0;
}

/* An image per agent: bytes of two sizes or more after "A", or numbers of three or more. */
static inline bool dt_wiring_is_image(const dt_port *p)
{
    uint32_t n = 0;
    for (const char *c = p->dims; *c != '\0'; c++) {
        n += *c == ' ';
    }
    return dt_wiring_is_row(p) && n >= (p->dtype == DT_U8 ? 2 : 3);
}

/* record.c: members of dt_wiring_api */
dt_status dt_wiring_record(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out) DT_NODISCARD;
dt_status dt_wiring_record_model(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m,
                                 const dt_named *more, uint32_t n_more, dt_named *out, uint32_t n_out) DT_NODISCARD;
dt_status dt_wiring_drawn(const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p, dt_tensor **log_prob_p,
                          dt_tensor **entropy_p) DT_NODISCARD;

#endif
