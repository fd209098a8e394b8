/* SPDX-License-Identifier: Apache-2.0
 *
 * The weight that the advantage of a cost gets against that of the reward, from how the cost of episodes compares with
 * its limit. Plain numbers that a checkpoint keeps as they are. Threads: any.
 */
#ifndef DTRAIN_PHASES_PHASE3_MULTIPLIER_H
#define DTRAIN_PHASES_PHASE3_MULTIPLIER_H

#include <stdint.h>

enum { MULTIPLIER_PID, MULTIPLIER_LAGRANGIAN, MULTIPLIER_PENALTY, MULTIPLIER_LOG_BARRIER };
enum { MULTIPLIER_MAX_DELAY = 64 };

typedef struct multiplier_rule {
    uint32_t algorithm; /* MULTIPLIER_* */
    double start, max;
    double rate;                /* lagrangian */
    double kp, ki, kd;          /* pid */
    double error_ema, cost_ema; /* pid: what is kept of the past */
    int64_t delay;              /* pid: rounds, 1 .. MULTIPLIER_MAX_DELAY */
    double penalty;             /* penalty */
    double sharpness;           /* log barrier: t */
} multiplier_rule;

typedef struct multiplier {
    double value, integral, error, cost;
    double past[MULTIPLIER_MAX_DELAY]; /* smoothed costs, a ring */
    uint64_t rounds;                   /* so far */
} multiplier;

void multiplier_init(multiplier *m, const multiplier_rule *r);
/* After a round whose episodes had this mean cost. */
void multiplier_update(multiplier *m, const multiplier_rule *r, double cost, double limit);

#endif
