/* SPDX-License-Identifier: Apache-2.0
 *
 * What critics have in common, role critic: what each agent observes of itself and what it does, and Q estimates of
 * what follows. Included by the models next to it; not installed, not part of the contract.
 *
 *   in   obs "A D", action "A P"    dims D, P, Q    out  q "A Q": estimates that share no parameter
 *
 * Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_CRITIC_NET_H
#define DTRAIN_MODELS_CRITIC_NET_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"
#include <string.h>

enum { CRITIC_TEXT = 48, CRITIC_MAX_ESTIMATES = 8 };

typedef struct critic_net {
    int64_t D, P, Q;
    dt_port in[2], out[1];
    char text[3][CRITIC_TEXT];
} critic_net;

static inline int64_t critic_dim(const dt_dim *dims, uint32_t n_dims, const char *name)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return 0;
}

/* n must not move afterwards. Errors: DT_ESHAPE. */
static inline dt_status critic_net_init(critic_net *n, const dt_host *h, const dt_dim *dims, uint32_t n_dims)
{
    n->D = critic_dim(dims, n_dims, "D");
    n->P = critic_dim(dims, n_dims, "P");
    n->Q = critic_dim(dims, n_dims, "Q");
    if (n->D < 1 || n->P < 1 || n->Q < 1 || n->Q > CRITIC_MAX_ESTIMATES) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the phase gives D %lld, P %lld, Q %lld: a critic needs columns of obs \"A D\" and of action "
                         "\"A P\", and makes 1 to %d estimates",
                         (long long)n->D, (long long)n->P, (long long)n->Q, CRITIC_MAX_ESTIMATES);
    }
    snprintf(n->text[0], CRITIC_TEXT, "A %lld", (long long)n->D);
    snprintf(n->text[1], CRITIC_TEXT, "A %lld", (long long)n->P);
    snprintf(n->text[2], CRITIC_TEXT, "A %lld", (long long)n->Q);
    n->in[0] = (dt_port){"obs", n->text[0], DT_F32, 0};
    n->in[1] = (dt_port){"action", n->text[1], DT_F32, 0};
    n->out[0] = (dt_port){"q", n->text[2], DT_F32, 0};
    return DT_OK;
}

/* q [A,Q] of its columns, [A,1] each. */
static inline dt_tensor *critic_join(dt_graph *g, dt_tensor *const *column, int64_t n)
{
    return n > 1 ? dt_concat(g, column, (uint32_t)n) : column[0];
}

#endif
