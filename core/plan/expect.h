/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a phase will take, before its first round: an estimate from a short measurement on this machine, reported
 * with its basis. What was not measured is unknown (NAN). Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_EXPECT_H
#define DTRAIN_CORE_PLAN_EXPECT_H

#include "plan/forecast.h"

typedef struct dt_expected {
    double step_s;       /* of an instance of the environment, or of the trainer where there is none */
    uint32_t n_tried;    /* steps that step_s is the mean of */
    uint32_t parallel;   /* instances that are stepped at a time */
    double rounds;       /* that are left */
    double all_s;        /* stepping environments in all of them; of a phase without environments its training */
    double evaluation_s; /* stepping environments in one evaluation, at most */
    bool acts;
} dt_expected;

/* is_plan: nothing depends on the stage any more, so that a phase without environments may make a few steps, and an
 * environment in a process of its own may be started. Never fails: what cannot be measured is NAN. */
void dt_estimate_duration(dt_stage *s, const dt_forecast *f, uint64_t max_steps, bool is_plan, dt_expected *out);
/* A line, without its end. */
void dt_estimate_text(const dt_expected *e, dt_str *out);
void dt_estimate_json(const dt_expected *e, dt_json_out *o); /* the member "expected" */

#endif
