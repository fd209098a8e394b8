/* SPDX-License-Identifier: Apache-2.0 */
#include "ppo.h"

#include <math.h>
#include <string.h>

/* Nats in the last pass of a round, for each update before it, up to 100; learning has 1e-3 to 1e-2. */
#define STILL_KL      1e-7
#define STILL_UPDATES 100.0
enum { STILL_ROUNDS = 10 };

const char *const ppo_value_clip_modes[] = {"none", "step", "error", NULL};

/* ---- life -------------------------------------------------------------------------------------------------------- */

dt_status ppo_create(ppo *k, const dt_host *h, const char *phase, const ppo_config *c, const dt_wiring_config *wiring,
                     const dt_rounds_config *rounds)
{
    const dt_wiring_api *api = NULL;
    const imagine_config imagine = {.weight = c->imagine_weight,
                                    .gamma = rounds->gamma,
                                    .steps = c->imagine_steps,
                                    .is_scaled = rounds->normalise_obs};
    const dt_wiring_desc d = {.struct_size = sizeof(d),
                              .config_size = sizeof(*wiring),
                              .phase = phase,
                              .config = wiring,
                              .flags = c->imagine_weight > 0 ? DT_WIRING_OBS_ONLY : 0};
    k->h = h;
    k->phase = phase;
    k->config = *c;
    k->kl_coef = c->kl_target > 0 ? c->kl_coef : 0;
    k->is_normalised = rounds->normalise_advantage != 0;
    k->loss = (ppo_loss_config){.clip = c->clip,
                                .value_clip = c->value_clip,
                                .value_coef = c->value_coef,
                                .cost_value_coef = c->cost_value_coef,
                                .value_clip_mode = c->value_clip_mode,
                                .has_entropy = c->entropy_coef > 0 || c->entropy_coef_end > 0,
                                .has_kl = c->kl_target > 0,
                                .imagine = imagine};
    DT_SERVICE_H(h, k->metrics, DT_SVC_METRICS, phase);
    DT_SERVICE_H(h, api, DT_SVC_WIRING, phase);
    DT_TRY_H(api->create(h, &d, &k->wiring));
    return imagine_check(h, &imagine, k->wiring, phase);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* Advantages are divided by `deviation` where they are normalised; imagined ones must be as well. */
static dt_status set_advantage_unit(ppo *k, double deviation)
{
    const bool is_one = !k->is_normalised || !(deviation > 0);
    const float unit = is_one ? 1 : (float)(1 / deviation);
    return k->loss.imagine.weight > 0 ? k->rounds->train->set(k->rounds->trainer, "advantage_unit", &unit, 1) : DT_OK;
}

dt_status ppo_record(void *self, dt_graph *g, const dt_policy_tensors *p)
{
    const ppo *k = self;
    return ppo_record_losses(k->wiring, &k->loss, g, p);
}

dt_status ppo_begin_round(void *self, uint64_t round)
{
    ppo *k = self;
    const ppo_config *c = &k->config;
    const uint64_t n = k->rounds->n_rounds;
    const double x = n > 1 ? (double)round / (double)(n - 1) : 0;
    if (k->loss.has_entropy) {
        const float entropy = (float)(c->entropy_coef + (c->entropy_coef_end - c->entropy_coef) * x);
        DT_TRY_H(k->rounds->train->set(k->rounds->trainer, "entropy_coef", &entropy, 1));
    }
    if (k->loss.has_kl) {
        const float kl = (float)k->kl_coef;
        DT_TRY_H(k->rounds->train->set(k->rounds->trainer, "kl_coef", &kl, 1));
    }
    return set_advantage_unit(k, 1); /* for evaluations; each round sets its own */
}

dt_status ppo_after_collect(void *self, uint64_t round, const dt_rollout_report *r)
{
    ppo *k = self;
    k->round = round;
    k->advantage_std = r->advantage_std;
    return set_advantage_unit(k, r->advantage_std);
}

/* A policy that does not follow its advantages: values may dominate the gradient, which is clipped as a whole. Only in
 * the first half of the rounds: schedules end with learning rates at which nothing moves. */
static void watch_change(ppo *k, const dt_pass_report *r, double kl)
{
    const double updates = fmin((double)(r->pass * r->steps), STILL_UPDATES), least = STILL_KL * updates;
    const bool is_still = k->advantage_std > 0 && fabs(kl) < least && 2 * k->round < k->rounds->n_rounds;
    k->n_still = is_still ? k->n_still + 1 : 0;
    if (k->n_still == STILL_ROUNDS) {
        dt_logf(k->h, 1,
                "%s: the policy hardly changes: approx_kl was below %g in %d rounds in a row, though advantages differ "
                "(deviation %g). Compare grad_norm with training.gradient_clip: where values dominate it, set "
                "%s.normalise_reward = true, and %s.cost_value_coef = 0 where no cost is limited; else raise "
                "training.learning_rate or lower data.batch",
                k->phase, least, STILL_ROUNDS, k->advantage_std, k->phase, k->phase);
    }
}

static double find_loss(const dt_pass_report *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_losses; i++) {
        if (strcmp(r->loss_name[i], name) == 0) {
            return r->loss_value[i];
        }
    }
    return 0;
}

dt_status ppo_after_pass(void *self, const dt_pass_report *r)
{
    ppo *k = self;
    const ppo_config *c = &k->config;
    const double kl = find_loss(r, "approx_kl");
    const bool is_last = r->pass + 1 == r->passes, is_far = c->target_kl > 0 && kl > 1.5 * c->target_kl;
    if (is_last) {
        watch_change(k, r, kl);
    }
    if (c->kl_target > 0 && (is_last || is_far)) { /* Schulman et al. 2017, section 4 */
        k->kl_coef *= kl > 1.5 * c->kl_target ? 2.0 : kl < c->kl_target / 1.5 ? 0.5 : 1.0;
        k->kl_coef = fmin(fmax(k->kl_coef, 1e-6), 1e6);
    }
    return is_far ? DT_DONE : DT_OK;
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

dt_status ppo_save(void *self, dt_writer *w)
{
    const ppo *k = self;
    return w->write(w, &k->kl_coef, sizeof(k->kl_coef));
}

dt_status ppo_load(void *self, dt_reader *r, uint32_t version)
{
    ppo *k = self;
    (void)version; /* the phase's; this part never changed */
    return r->read(r, &k->kl_coef, sizeof(k->kl_coef));
}
