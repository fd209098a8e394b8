/* SPDX-License-Identifier: Apache-2.0
 *
 * phase2_ppo: proximal policy optimisation (Schulman et al. 2017) of a controller in an environment.
 *
 * One iteration collects train_batch samples (svc/rollout.h) and makes sgd_epochs passes of minibatches (data.batch)
 * over them. Loss, means over the agents of a minibatch:
 *
 *   policy_loss   -min(r A, clip(r, 1 - clip, 1 + clip) A),  r = p(a|s) / p_old(a|s)
 *   value_loss    value_coef times the squared error of the value, clipped by value_clip_mode; the same for the
 *                 value of every cost
 *   entropy       minus entropy_coef (moving linearly to entropy_coef_end) times the entropy of the policy
 *   kl            kl_coef times KL(old || new), estimated by (r - 1) - log r; kl_coef is doubled or halved to keep the
 *                 KL of an iteration near kl_target (section 4 of the paper); 0 without kl_target
 *
 * The loss is in ppo/ppo_loss.c, the schedule of its coefficients in ppo/ppo.c, rounds in the host (svc/rounds.h).
 *
 * With foresight, controllers (their option foresight) and shields (shield_barrier.look_ahead_mps2) read the
 * predictions of models.world, see svc/wiring.h; imagine_weight mixes imagined branches into A, see ppo/imagine.h.
 *
 * With overlap the next round is collected during training on this one, by the policy before the update: samples are
 * one update old, and log_prob in the ratio is that of the policy that acted. A checkpoint keeps that policy's
 * parameters, and a resumed run collects the round again.
 *
 * target_kl ends the passes of an iteration early, after a pass whose mean KL exceeds 1.5 target_kl. Bounds of a shield
 * (its outputs low, high, allow) are part of the environment for continuous actions and of the policy for discrete
 * ones: see svc/rollout.h. An iteration depends on parameters, seed and configuration alone.
 */
#include "ppo/ppo.h"

#define ID "phase2_ppo"

typedef struct config {
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    ppo_config ppo;
} config;

typedef ppo state;

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    const config *c = cfg;
    const dt_rounds_api *rounds = NULL;
    DT_SERVICE_H(h, rounds, DT_SVC_ROUNDS, ID);
    DT_TRY_H(ppo_create(s, h, ID, &c->ppo, &c->wiring, &c->rounds));
    dt_rounds_desc d = DT_ROUNDS_DESC(ID, &c->rounds, s->wiring, s, ppo_record);
    d.begin = ppo_begin_round;
    d.collected = ppo_after_collect;
    d.after_pass = ppo_after_pass;
    return rounds->create(h, &d, &s->rounds);
}
DT_ROUNDS_OPS_DEFINE(run, state);

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static const dt_option options[] = {DT_ROUNDS_OPTIONS(config, rounds, "200"), DT_WIRING_OPTIONS(config, wiring),
                                    PPO_OPTIONS(config, ppo), DT_ROUNDS_OPTION_OVERLAP(config, rounds), DT_OPTION_END};

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.world=world_lstm", "models.controller=controller_mlp",
                   "env.id=cartpole", "data.batch=128", "data.shards=4", "training.learning_rate=3e-4",
                   "training.weight_decay=0", "training.freeze_loaded=perception,world,shield",
                   "training.optimizer=adam", "training.eps=1e-5", "training.gradient_clip=0.5",
                   "training.scheduler=constant", "training.warmup_epochs=0", "training.eval_interval=10",
                   "training.save_interval=10", "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, ID, "proximal policy optimisation of a controller in an environment",
                "Schulman et al. 2017, arXiv 1707.06347", config, state, options,
                DT_OPS(.create = create, .start = run_start, .iterate = run_iterate, .evaluate = run_evaluate,
                       .stop = dt_no_op, .destroy = dt_no_op, .save = ppo_save, .load = ppo_load),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, ID, "1.0", "dtrain", "Apache-2.0");
