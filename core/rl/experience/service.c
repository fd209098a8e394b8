/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of service "dtrain.rollout/1", and its results; see service.h.
 */
#include <config.h>

#include "rl/experience/evaluation.h"
#include "rl/experience/replay.h"
#include "rl/experience/rollout.h"

#include "base/err.h"
#include "base/mem.h"
#include "rl/policy/wiring.h"

#include <pthread.h>

static dt_status rollout_report(dt_rollout *r, dt_train *t)
{
    dt_stage *s = r->stage;
    dt_evaluation_opts o;
    pthread_mutex_lock(s->d.config_lock); /* ranks of one process evaluate at the same time */
    dt_status st = dt_config_evaluation(s->d.config, s->d.index, &o);
    pthread_mutex_unlock(s->d.config_lock);
    DT_TRY(st);
    dt_rollout_report *of_seed = dt_alloc_n(o.n_seeds, sizeof(*of_seed));
    if (of_seed == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the results of %u seeds", o.n_seeds);
    }
    for (uint32_t i = 0; i < o.n_seeds; i++) {
        of_seed[i].struct_size = sizeof(*of_seed);
    }
    r->wants_frames = s->d.controller == NULL;
    st = dt_rollout_evaluate(r, t, o.seed, o.n_seeds, (uint32_t)o.episodes, o.greedy, of_seed);
    r->wants_frames = false;
    if (st == DT_OK) {
        dt_evaluation_results(&s->host, s->host.service(&s->host, DT_SVC_METRICS), &r->env->layout.spec, o.seed,
                              of_seed, o.n_seeds);
    }
    dt_free(of_seed);
    return st;
}

static const dt_rollout_api service = {.struct_size = sizeof(dt_rollout_api),
                                       .create = dt_rollout_create,
                                       .data = dt_rollout_data,
                                       .collect = dt_rollout_collect,
                                       .evaluate = dt_rollout_evaluate,
                                       .report = rollout_report,
                                       .ahead = dt_rollout_ahead_begin,
                                       .annotate = dt_rollout_annotate,
                                       .returns = dt_rollout_returns};

static const dt_replay_api replay_service = {.struct_size = sizeof(dt_replay_api),
                                             .create = dt_replay_create,
                                             .data = dt_replay_data,
                                             .add = dt_replay_add,
                                             .draw = dt_replay_draw,
                                             .count = dt_replay_count,
                                             .draws = dt_replay_draws,
                                             .drawn = dt_replay_drawn,
                                             .told = dt_replay_tell,
                                             .priority = dt_replay_priority};

const dt_stage_rollouts dt_experience = {.service = &service,
                                         .replay = &replay_service,
                                         .beside = dt_rollout_ahead_beside,
                                         .settle = dt_rollout_settle,
                                         .destroy = dt_rollout_destroy,
                                         .wiring = &dt_wiring_service,
                                         .rounds = &dt_rounds_service};
