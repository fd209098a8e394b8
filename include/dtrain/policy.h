/* SPDX-License-Identifier: Apache-2.0
 *
 * A trained policy in a program of its own: libdtrain-policy loads what `dtrain export --format safetensors` wrote and
 * acts by it, without plugins, configuration or the trainer. What it does is what `dtrain eval` does with most likely
 * actions, bit for bit on the same machine: observations are normalised, networks evaluated, the shield consulted, and
 * of what both allow the most likely action is taken.
 *
 *   dt_policy *p;
 *   char why[512];
 *   if (dt_policy_load("policy.safetensors", &p, why, sizeof(why)) != DT_OK) { ... }
 *   for each step: dt_policy_act(p, &io, why, sizeof(why));
 *   dt_policy_free(p);
 *
 * Build with pkg-config dtrain-policy. One world per object: its places are rows, as in dtrain/plugin.h's environments
 * (dt_env_spec, dt_env_io). A policy with memory keeps the last observations of each place itself; dt_policy_reset
 * forgets them where an episode begins.
 *
 * Errors are a status and, in the caller's buffer, a text with what and where; on success the buffer is not
 * touched. NULL is a buffer of no bytes. Threads: one object, one thread at a time; any number of objects side by side.
 * dt_policy_act allocates nothing and takes no locks.
 */
#ifndef DTRAIN_POLICY_H
#define DTRAIN_POLICY_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_policy dt_policy;

typedef struct dt_policy_info { /* pointers live as long as the policy */
    uint32_t struct_size, reserved;
    const char *phase, *environment; /* ids of what it was trained by and in; "" where the file does not record it */
    const dt_port *obs;              /* [n_obs] observations it reads: name, dims, dtype as the environment's spec has
                                      * them; dims begin with "A", a row per place, or with a ragged symbol */
    const dt_dim *symbols;           /* [n_symbols] ragged symbols of obs, and the most rows each may have */
    const int32_t *choices;          /* [n_heads] choices of each discrete action */
    const float *low, *high;         /* [n_continuous] bounds of continuous actions, in the environment's units */
    const dt_setting *settings; /* [n_settings] options of environment and models: "env_traffic.scenario", "grid" */
    uint32_t n_obs, n_symbols, n_heads, n_continuous, n_settings;
    uint32_t n_choices; /* of all heads together */
    uint32_t places;    /* most rows of "A" */
    uint32_t window;    /* steps of observations it sees, this one included; 1: no memory */
} dt_policy_info;

enum {
    DT_POLICY_CHANGED = 1u,   /* the shield cut the choices or moved the action */
    DT_POLICY_INFEASIBLE = 2u /* it permitted nothing of something: the policy's own action is taken */
};

typedef struct dt_policy_io {       /* of one step; all arrays are the caller's, C order, packed */
    uint32_t struct_size, n_places; /* rows of "A", at most info's places */
    const void *const *obs;         /* [n_obs] in info's order */
    const int64_t *size;            /* [n_symbols] live rows, in info's order; NULL where there are none */
    const uint8_t *alive;           /* [n_places] 1: acts now; NULL: all do */
    const uint8_t *truncated;       /* [n_places] 1: left in the step before, and is seen a last time; NULL: none */
    const uint8_t *mask;            /* [n_places, n_choices] 1: the environment allows it; NULL: everything */
    int32_t *act_i;                 /* out [n_places, n_heads]; rows of places that do not act are 0 */
    float *act_f;                   /* out [n_places, n_continuous], within low and high; the same */
    uint8_t *report;                /* out [n_places] DT_POLICY_*; NULL: not needed */
} dt_policy_io;

/* Reads, checks and prepares; path: a file of `dtrain export --format safetensors`. *out_p is the caller's, to be freed
 * by dt_policy_free, and is written on success alone. Errors: DT_ENOTFOUND; DT_EDATA (damaged, or not an export);
 * DT_EUNSUPPORTED (an export that does not act, of a newer version, or that needs more than 1 GB in addition to its
 * weights for the most rows that it names); DT_EIO, DT_ENOMEM. */
DT_EXPORT dt_status dt_policy_load(const char *path, dt_policy **out_p, char *message, size_t message_bytes)
    DT_NODISCARD;
DT_EXPORT void dt_policy_free(dt_policy *p); /* NULL is fine */
DT_EXPORT const dt_policy_info *dt_policy_describe(const dt_policy *p);
/* An episode begins: nothing is remembered. */
DT_EXPORT void dt_policy_reset(dt_policy *p);
/* The most likely permitted action of every place that acts. Errors: DT_EINVAL (more rows than the policy was made for,
 * an index that points outside, a missing array; nothing is remembered of this step), DT_EDIVERGED (numbers that are
 * not finite come out). Cost: that of the networks. */
DT_EXPORT dt_status dt_policy_act(dt_policy *p, const dt_policy_io *io, char *message, size_t message_bytes)
    DT_NODISCARD;
/* An output of the last act by name ("value", "logits", "mean", "log_std", "cost_value", "low", "high", "allow"), f32,
 * a row for every place that was alive or truncated, in order; dim [DT_MAX_DIMS] and *rank_p are filled in. NULL when
 * there is none. Lives until the next act. */
DT_EXPORT const float *dt_policy_output(const dt_policy *p, const char *name, int64_t *dim, uint32_t *rank_p);
/* The host of environment plugins in a program: errors (dt_policy_host_error), memory, the service traffic.features/1.
 * Warnings and errors of plugins go to standard error. */
DT_EXPORT const dt_host *dt_policy_host(void);
DT_EXPORT const char *dt_policy_host_error(void); /* what a plugin reported last on this thread, "" when nothing */

#ifdef __cplusplus
}
#endif
#endif
