/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of service "dtrain.rollout/1", and its results; see service.h.
 */
#include <config.h>

#include "rl/experience/service.h"

#include "base/err.h"
#include "rl/evaluate/evaluate.h"
#include "rl/offline/stored.h"
#include "rl/policy/wiring.h"

/* Errors: those of dt_rollout_create and dt_round_writer_create. */
static dt_status create_rollout(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out)
{
    dt_rollout *r = NULL;
    DT_TRY(dt_rollout_create(h, env, d, &r));
    const dt_status st = dt_round_writer_create(r);
    if (st < 0) {
        dt_stage_of(h)->rollout = NULL;
        dt_rollout_destroy(r);
        return st;
    }
    *out = r;
    return DT_OK;
}

static dt_status create_replay(const dt_host *h, dt_rollout *r, const dt_replay_desc *d, dt_replay **out)
{
    return dt_replay_create(h, r, d, &dt_stored_store, out);
}

static const dt_rollout_api service = {.struct_size = sizeof(dt_rollout_api),
                                       .create = create_rollout,
                                       .data = dt_rollout_data,
                                       .collect = dt_rollout_collect,
                                       .evaluate = dt_rollout_evaluate,
                                       .report = dt_rollout_report_evaluation,
                                       .collect_ahead = dt_round_ahead_begin,
                                       .annotate = dt_rollout_annotate,
                                       .returns = dt_rollout_compute_returns};

static const dt_replay_api replay_service = {.struct_size = sizeof(dt_replay_api),
                                             .create = create_replay,
                                             .data = dt_replay_data,
                                             .add = dt_replay_add_round,
                                             .draw = dt_replay_draw_samples,
                                             .count = dt_replay_count,
                                             .draws = dt_replay_count_draws,
                                             .draw_size = dt_replay_draw_size,
                                             .stats = dt_replay_describe,
                                             .priority = dt_replay_set_priorities};

const dt_stage_rollouts dt_experience = {.service = &service,
                                         .replay = &replay_service,
                                         .advance = dt_round_ahead_continue,
                                         .finish = dt_rollout_release_trainer,
                                         .destroy = dt_rollout_destroy,
                                         .wiring = &dt_wiring_service,
                                         .rounds = &dt_rounds_service};
