/* SPDX-License-Identifier: Apache-2.0
 *
 * phase2_ppo: proximal policy optimisation (Schulman et al. 2017) of a controller in an environment.
 *
 * One iteration collects train_batch samples (svc/rollout.h) and makes sgd_epochs passes of minibatches (data.batch)
 * over them. Loss, means over the agents of a minibatch:
 *
 *   policy_loss   -min(r A, clip(r, 1 - clip, 1 + clip) A),  r = p(a|s) / p_old(a|s)
 *   value_loss    value_coef times the squared error of the value, clipped as value_clip_mode says; the same for the
 *                 value of every cost
 *   entropy       minus entropy_coef (moving linearly to entropy_coef_end) times the entropy of the policy
 *   kl            kl_coef times KL(old || new), estimated by (r - 1) - log r; kl_coef is doubled and halved to keep the
 *                 KL of an iteration near kl_target (section 4 of the paper), 0 without one
 *
 * With foresight what models.world predicts of vehicles is shown to controllers (option foresight of each) and shields
 * (shield_barrier.look_ahead_mps2), see policy/foresight.h; imagine_weight mixes imagined branches into A, see
 * policy/imagine.h.
 *
 * With overlap the next round is collected while this one is learnt from, by the policy as it was before: what is
 * learnt from is one update old, and log_prob, which the ratio is to, is that of the policy that acted. A checkpoint
 * keeps that policy's parameters, and a run that goes on collects the round again.
 *
 * target_kl ends the passes of an iteration early, after the pass whose mean KL is above 1.5 times of it.
 * What the shield permits (outputs low, high, allow of its model) is part of the environment for continuous actions,
 * of the policy for discrete ones: see svc/rollout.h. An iteration depends on parameters, seed and configuration alone.
 */
#include "learner.h"

#include <string.h>

typedef ppo_config config;
typedef ppo_learner state;

static dt_status check(const dt_host *h, const void *cfg)
{
    return ppo_check(h, "phase2_ppo", cfg);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    return ppo_create(self, h, "phase2_ppo", cfg, DT_NORMALISE_EACH);
}

static dt_status iterate(void *self, dt_progress *out)
{
    dt_rollout_report collected;
    uint64_t iteration = 0;
    const dt_status st = ppo_collect(self, &iteration, &collected);
    if (st != DT_OK) {
        return st;
    }
    DT_TRY_H(ppo_ahead(self, iteration));
    return ppo_learn(self, iteration, &collected, out);
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const dt_option options[] = {PPO_OPTIONS("200"),
    PPO_OPTION(overlap, DT_OPT_I64, "0", "rounds", 0, 1,
        "1: the next round is collected beside learning from this one, by the policy of before it; 0: after it"),
    DT_OPTION_END};
/* clang-format on */

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "env.id=cartpole",
                   "data.batch=128", "data.shards=4", "training.learning_rate=3e-4", "training.weight_decay=0",
                   "training.freeze_loaded=perception,world,shield", "training.optimizer=adam", "training.eps=1e-5",
                   "training.gradient_clip=0.5", "training.scheduler=constant", "training.warmup_epochs=0",
                   "training.eval_interval=10", "training.save_interval=10", "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, "phase2_ppo", "proximal policy optimisation of a controller in an environment",
                "Schulman et al. 2017, arXiv 1707.06347", config, state, options,
                DT_OPS(.create = create, .start = ppo_start, .iterate = iterate, .evaluate = ppo_evaluate,
                       .stop = dt_no_op, .destroy = ppo_destroy, .save = ppo_save, .load = ppo_load),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase2_ppo", "1.0", "dtrain", "Apache-2.0");
