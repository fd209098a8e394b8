/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lagrange multiplier of a cost: the weight of its advantage relative to that of the reward, updated from the cost
 * J of episodes and its limit d. Plain numbers, which a checkpoint stores as they are.
 *
 * Gains have no units. The error is
 *
 *   e = (J - d) / max(d, J)
 *
 * where J is smoothed in the divisor alone, and multipliers are in units of deviation(advantages of the reward) /
 * deviation(advantages of the cost), which give a cost about the weight of the reward: other units of costs or rewards
 * do not change training. Threads: any.
 */
#ifndef DTRAIN_PHASES_CONSTRAINTS_MULTIPLIER_H
#define DTRAIN_PHASES_CONSTRAINTS_MULTIPLIER_H

#include "dtrain/helpers.h"
#include "dtrain/svc/wiring.h"

#include <stdbool.h>

enum { MULTIPLIER_PID, MULTIPLIER_LAGRANGIAN, MULTIPLIER_PENALTY, MULTIPLIER_LOG_BARRIER };
enum { MULTIPLIER_MAX_DELAY = 64 };

typedef struct multiplier_rule {
    uint32_t algorithm;         /* MULTIPLIER_* */
    double start, max;          /* units; so are the gains, per e */
    double rate;                /* lagrangian */
    double kp, ki, kd;          /* pid */
    double error_ema, cost_ema; /* pid: smoothing */
    int64_t delay;              /* pid: rounds, 1 .. MULTIPLIER_MAX_DELAY */
    double penalty;             /* penalty */
    double sharpness;           /* log barrier: t */
} multiplier_rule;

typedef struct multiplier {
    double value;                      /* reward per cost */
    double unit;                       /* smoothed */
    double size;                       /* smoothed cost */
    double integral, error, cost;      /* pid: cost is e under cost_ema */
    double past[MULTIPLIER_MAX_DELAY]; /* pid: of cost, a ring */
    uint64_t rounds;                   /* so far */
} multiplier;

/* Options MULTIPLIER_OPTIONS of member PART of T; FIRST_OF, OF: their algorithms, for help. */
typedef struct multiplier_config {
    double start, multiplier_max, kp, ki, kd, error_ema, cost_ema;
    int64_t pid_delay;
} multiplier_config;

/* clang-format off */
#define MULTIPLIER_OPTION(T, PART, member, type, dfl, unit, min, max, help)                                            \
    DT_OPTION_OF(T, PART, multiplier_config, member, type, dfl, unit, min, max, NULL, help)
#define MULTIPLIER_OPTIONS(T, PART, FIRST_OF, OF)                                                                      \
    MULTIPLIER_OPTION(T, PART, start, DT_OPT_F64, "0.1", "u", 0, 1e9,                                                  \
        FIRST_OF "initial multiplier; at u cost and reward have equal weight"),                                        \
    MULTIPLIER_OPTION(T, PART, multiplier_max, DT_OPT_F64, "20", "u", 0, 1e9, "maximum of multipliers"),               \
    MULTIPLIER_OPTION(T, PART, kp, DT_OPT_F64, "2", "u", 0, 1e9, OF "proportional gain of multipliers"),               \
    MULTIPLIER_OPTION(T, PART, ki, DT_OPT_F64, "0.2", "u", 0, 1e9, OF "integral gain"),                                \
    MULTIPLIER_OPTION(T, PART, kd, DT_OPT_F64, "0.1", "u", 0, 1e9, OF "derivative gain, only for rising costs"),      \
    MULTIPLIER_OPTION(T, PART, error_ema, DT_OPT_F64, "0.5", "1", 0, 1,                                                \
        OF "smoothing of the proportional part"),                                                                      \
    MULTIPLIER_OPTION(T, PART, cost_ema, DT_OPT_F64, "0.5", "1", 0, 1,                                                 \
        OF "smoothing of the derivative part"),                                                                        \
    MULTIPLIER_OPTION(T, PART, pid_delay, DT_OPT_I64, "10", "rounds", 1, MULTIPLIER_MAX_DELAY,                         \
        OF "interval over which the rise of costs is measured")
/* clang-format on */

/* The members that these options set. */
multiplier_rule multiplier_rule_from_config(const multiplier_config *c, uint32_t algorithm);
/* Errors: DT_ECONFIG: multipliers that would stay 0 or start above their maximum. phase: its id; algorithm:
 * MULTIPLIER_*. */
dt_status multiplier_check(const dt_host *h, const char *phase, const multiplier_config *c, uint32_t algorithm);

void multiplier_init(multiplier *m);
/* After a round whose episodes had this mean cost. unit: of the round's advantages, 0: unknown; share: factor of ki and
 * rate, 0 to 1. */
void multiplier_update(multiplier *m, const multiplier_rule *r, double cost, double limit, double unit, double share);
/* Within a round, for an estimated cost of the current policy: penalty and log barrier, which have no state. */
void multiplier_update_in_round(multiplier *m, const multiplier_rule *r, double cost, double limit);

#endif
