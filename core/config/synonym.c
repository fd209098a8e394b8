/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/synonym.h"

#include <string.h>
#include <strings.h>

enum { MOST = 3 }; /* suggestions in one message */

static const struct {
    const char *theirs, *ours; /* ours: a key in whatever section has it, or section.key */
} synonyms[] = {
    {"lr", "learning_rate"},
    {"lr_schedule", "training.scheduler"},
    {"lr_scheduler", "training.scheduler"},
    {"learning_rate_schedule", "training.scheduler"},
    {"max_grad_norm", "gradient_clip"},
    {"grad_clip", "gradient_clip"},
    {"gradient_clip_val", "gradient_clip"},
    {"clip_grad", "gradient_clip"},
    {"max_epochs", "training.epochs"},
    {"num_epochs", "training.epochs"},
    {"accumulate_grad_batches", "training.accumulation"},
    {"gradient_accumulation_steps", "training.accumulation"},
    {"optim", "training.optimizer"},
    {"batch_size", "data.batch"},
    {"minibatch_size", "data.batch"},
    {"mini_batch_size", "data.batch"},
    {"num_workers", "data.workers"},
    {"num_minibatches", "data.batch"},
    {"n_steps", "fragment"},
    {"num_steps", "fragment"},
    {"rollout_length", "fragment"},
    {"horizon_steps", "fragment"},
    {"rollout_fragment_length", "fragment"},
    {"train_batch_size", "train_batch"},
    {"n_epochs", "sgd_epochs"},
    {"update_epochs", "sgd_epochs"},
    {"num_sgd_iter", "sgd_epochs"},
    {"clip_range", "clip"},
    {"clip_coef", "clip"},
    {"clip_param", "clip"},
    {"clip_eps", "clip"},
    {"ent_coef", "entropy_coef"},
    {"entropy_coeff", "entropy_coef"},
    {"vf_coef", "value_coef"},
    {"vf_loss_coeff", "value_coef"},
    {"gae_lambda", "lambda"},
    {"discount", "gamma"},
    {"target_kl_div", "target_kl"},
    {"total_timesteps", "iterations"},
    {"total_steps", "iterations"},
    {"timesteps", "iterations"},
    {"n_iterations", "iterations"},
    {"rounds", "iterations"},
    {"num_envs", "env.instances"},
    {"n_envs", "env.instances"},
    {"num_env_runners", "env.instances"},
    {"env_id", "env.id"},
    {"replay_size", "buffer_size"},
    {"buffer_capacity", "buffer_size"},
    {"polyak", "tau"},
    {"device", "engine.device"},
    {"threads", "engine.threads"},
    {"num_threads", "engine.threads"},
    {"precision", "amp.enabled"},
    {"fp16", "amp.enabled"},
    {"bf16", "amp.enabled"},
    {"save_freq", "checkpoint.every_steps"},
    {"save_every", "checkpoint.every_steps"},
    {"eval_freq", "training.eval_interval"},
    {"n_eval_episodes", "evaluation.episodes"},
    {"evaluation_interval", "training.eval_interval"},
    {"evaluation_duration", "evaluation.episodes"},
    {"num_envs_per_env_runner", "env.instances"},
    {"num_envs_per_worker", "env.instances"},
    {"num_rollout_workers", "env.instances"},
    {"num_learners", "comm.ranks"},
    {"vf_clip_param", "value_clip"},
    {"random_seed", "seed"},
    {"stop_iters", "iterations"},
    {"training_iteration", "iterations"},
    {"weight_decay_rate", "training.weight_decay"},
};

static bool has_key(const dt_section *s, const char *key)
{
    for (const dt_option *o = s->table; o != NULL && o->name != NULL; o++) {
        if (strcmp(o->name, key) == 0) {
            return true;
        }
    }
    return false;
}

static void append_key_path(dt_str *out, uint32_t *n, const char *section, const char *key)
{
    if (*n < MOST) {
        dt_str_addf(out, "%s%s%s%s", *n > 0 ? ", " : "", section, *section != '\0' ? "." : "", key);
    }
    (*n)++;
}

/* Every section that has the key; the one that was meant to hold it first. */
static void append_holders(const dt_config *c, const dt_section *section, const char *key, dt_str *out, uint32_t *n)
{
    if (section != NULL && has_key(section, key)) {
        append_key_path(out, n, section->name, key);
        return; /* it has what was meant */
    }
    for (const dt_section *s = c->sections; s != NULL; s = s->next) {
        if (s != section && has_key(s, key)) {
            append_key_path(out, n, s->name, key);
        }
    }
}

/* The counterpart of a key in the table above or in that of a plugin, or NULL. */
static const char *find_counterpart(const dt_config *c, const char *key)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
        if (strcasecmp(synonyms[i].theirs, key) == 0) {
            return synonyms[i].ours;
        }
    }
    const size_t bytes = strlen(key);
    for (const char *const *s = c->keys != NULL ? c->keys->synonyms : NULL; s != NULL && *s != NULL; s++) {
        if (strncasecmp(*s, key, bytes) == 0 && (*s)[bytes] == '=') {
            return *s + bytes + 1;
        }
    }
    return NULL;
}

void dt_synonym_suggest(const dt_config *c, const dt_section *section, const char *key, dt_str *out)
{
    uint32_t n = 0;
    const char *ours = find_counterpart(c, key);
    if (ours != NULL && strchr(ours, '.') != NULL) {
        dt_str_add(out, ours);
    } else {
        append_holders(c, section, ours != NULL ? ours : key, out, &n);
    }
}
