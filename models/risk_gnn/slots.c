/* SPDX-License-Identifier: Apache-2.0
 *
 * See slots.h. Gaps come in units of 20 m, lateral offsets in units of 4 m; left is positive.
 */
#include "slots.h"

#define MEMBER_LOGIT 6.0  /* e^6: a member outweighs sixteen vehicles outside the slot */
#define NEAR_LOGIT   12.0 /* e^(12 / 5) = 11 for each 10 m nearer */
#define SELF_LOGIT   4.0
#define NEAR_SLOPE   (20.0 / 50.0)
#define TINY         1e-12 /* below e^-14 / 16, what self alone gives */

/* min(max(scale x + shift, 0), 1) */
static dt_tensor *ramp(dt_graph *g, dt_tensor *x, double scale, double shift)
{
    return dt_clamp(g, dt_affine(g, x, scale, shift), 0.0, 1.0);
}

static dt_tensor *magnitude(dt_graph *g, dt_tensor *x)
{
    return dt_binary(g, DT_BIN_MAX, x, dt_affine(g, x, -1.0, 0.0));
}

/* 1 on a vehicle's edge to itself, which is all zeros, else 0 (from 2 cm on) */
static dt_tensor *self_edges(dt_graph *g, dt_tensor *edges)
{
    dt_tensor *gap = magnitude(g, dt_slice(g, edges, 0, 1)), *side = magnitude(g, dt_slice(g, edges, 1, 1));
    return ramp(g, dt_add(g, gap, side), -1000.0, 1.0);
}

static dt_tensor *near_edges(dt_graph *g, dt_tensor *edges)
{
    return ramp(g, magnitude(g, dt_slice(g, edges, 0, 1)), -NEAR_SLOPE, 1.0);
}

dt_tensor *slot_logits(dt_graph *g, dt_tensor *edges)
{
    dt_tensor *gap = dt_slice(g, edges, 0, 1), *side = dt_slice(g, edges, 1, 1);
    dt_tensor *self = dt_affine(g, self_edges(g, edges), SELF_LOGIT, 0.0);
    dt_tensor *pull = dt_affine(g, near_edges(g, edges), NEAR_LOGIT, MEMBER_LOGIT);
    dt_tensor *ahead = ramp(g, gap, 20.0, 0.0), *behind = ramp(g, gap, -20.0, 0.0); /* full from 1 m on */
    /* a lane reaches 2 m to either side, soft by 0.2 m; the next one 5.8 m */
    dt_tensor *lane = ramp(g, magnitude(g, side), -10.0, 5.5);
    dt_tensor *left = dt_mul(g, ramp(g, side, 10.0, -4.5), ramp(g, side, -10.0, 15.0));
    dt_tensor *right = dt_mul(g, ramp(g, side, -10.0, -4.5), ramp(g, side, 10.0, 15.0));
    dt_tensor *member[N_SLOTS] = {
        [SLOT_LEADER] = dt_mul(g, lane, ahead),       [SLOT_FOLLOWER] = dt_mul(g, lane, behind),
        [SLOT_LEFT_AHEAD] = dt_mul(g, left, ahead),   [SLOT_RIGHT_AHEAD] = dt_mul(g, right, ahead),
        [SLOT_LEFT_BEHIND] = dt_mul(g, left, behind), [SLOT_RIGHT_BEHIND] = dt_mul(g, right, behind),
    };
    dt_tensor *logit[N_SLOTS];
    for (int k = 0; k < SLOT_AHEAD; k++) {
        logit[k] = dt_add(g, dt_mul(g, member[k], pull), self);
    }
    logit[SLOT_AHEAD] = dt_add(g, dt_affine(g, ahead, MEMBER_LOGIT, 0.0), self); /* all alike, however far */
    logit[SLOT_ALL] = dt_affine(g, ahead, 0.0, 0.0);
    return dt_concat(g, logit, N_SLOTS);
}

dt_tensor *slot_nearest(dt_graph *g, dt_tensor *edges, dt_tensor *logits, dt_tensor *rowptr)
{
    const double top = MEMBER_LOGIT + NEAR_LOGIT;
    dt_tensor *w = dt_unary(g, DT_FN_EXP, dt_affine(g, dt_slice(g, logits, 0, SLOT_ALL), 1.0, -top), 0.0);
    dt_tensor *sum = dt_segment_mean(g, w, rowptr); /* softmax = w / sum; both means over the same edges */
    sum = dt_affine(g, sum, 1.0, TINY);             /* a vehicle without edges gets zeros */
    dt_tensor *inverse = dt_unary(g, DT_FN_EXP, dt_affine(g, dt_unary(g, DT_FN_LOG, sum, 0.0), -1.0, 0.0), 0.0);
    dt_tensor *other = dt_affine(g, self_edges(g, edges), -1.0, 1.0);
    dt_tensor *value[SLOT_VALUES] = {dt_mul(g, near_edges(g, edges), other), dt_slice(g, edges, 2, 1)};
    dt_tensor *out[SLOT_VALUES];
    for (int i = 0; i < SLOT_VALUES; i++) {
        out[i] = dt_mul(g, dt_segment_mean(g, dt_mul(g, w, value[i]), rowptr), inverse);
    }
    return dt_concat(g, out, SLOT_VALUES);
}
