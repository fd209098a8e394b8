/* SPDX-License-Identifier: Apache-2.0
 *
 * The weight that the advantage of a cost gets against that of the reward, from how the cost of episodes compares with
 * its limit. Plain numbers that a checkpoint keeps as they are.
 *
 * Gains know no units. Costs are compared by the share of their limit d that they are off,
 *
 *   e = (J - d) / max(d, J)
 *
 * where J is smoothed in the divisor alone, and multipliers move in units of deviation(reward's advantages) /
 * deviation(cost's advantages), by which a cost weighs about as much as the reward: an environment that counts
 * its costs in other units, or pays ten times as much, learns the same. Threads: any.
 */
#ifndef DTRAIN_PHASES_PHASE3_MULTIPLIER_H
#define DTRAIN_PHASES_PHASE3_MULTIPLIER_H

#include <stdint.h>

enum { MULTIPLIER_PID, MULTIPLIER_LAGRANGIAN, MULTIPLIER_PENALTY, MULTIPLIER_LOG_BARRIER };
enum { MULTIPLIER_MAX_DELAY = 64 };

typedef struct multiplier_rule {
    uint32_t algorithm;         /* MULTIPLIER_* */
    double start, max;          /* units; so are the gains, per e */
    double rate;                /* lagrangian */
    double kp, ki, kd;          /* pid */
    double error_ema, cost_ema; /* pid: what is kept of the past */
    int64_t delay;              /* pid: rounds, 1 .. MULTIPLIER_MAX_DELAY */
    double penalty;             /* penalty */
    double sharpness;           /* log barrier: t */
} multiplier_rule;

typedef struct multiplier {
    double value;                      /* reward per cost */
    double unit;                       /* smoothed */
    double size;                       /* smoothed cost */
    double integral, error, cost;      /* pid: cost is e under cost_ema */
    double past[MULTIPLIER_MAX_DELAY]; /* pid: such costs, a ring */
    uint64_t rounds;                   /* so far */
} multiplier;

void multiplier_init(multiplier *m);
/* After a round whose episodes had this mean cost. unit: of the round's advantages; 0: there are none to tell by.
 * share: of ki and rate that is used, 0 to 1. */
void multiplier_update(multiplier *m, const multiplier_rule *r, double cost, double limit, double unit, double share);
/* The same at a cost that the policy is estimated to have by now, of the rules without memory: penalty, log barrier. */
void multiplier_follow(multiplier *m, const multiplier_rule *r, double cost, double limit);

#endif
