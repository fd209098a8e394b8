/* SPDX-License-Identifier: Apache-2.0
 *
 * See stored.h.
 */
#include "stored.h"

/* Phase 1's weights of its losses are all 1. */
static prediction_config windows(const stored_config *c, const ppo_config *policy)
{
    return (prediction_config){.history_s = policy->history_s,
                               .horizon_s = policy->horizon_s,
                               .rate_hz = policy->rate_hz,
                               .nll_weight = c->coef,
                               .position_weight = c->coef,
                               .risk_weight = c->coef};
}

dt_status stored_check(const dt_host *h, const char *phase, const stored_config *c, const ppo_config *policy)
{
    if (c->samples == 0) {
        return DT_OK;
    }
    if (!(c->coef > 0)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.stored_coef = %g lets nothing be learnt from stored_samples = %lld; it must "
                         "be above 0",
                         phase, c->coef, (long long)c->samples);
    }
    const prediction_config w = windows(c, policy);
    return prediction_check(h, phase, &w);
}

dt_status stored_create(stored *s, const stored_config *c, ppo_learner *l)
{
    if (c->samples == 0) {
        return DT_OK;
    }
    const prediction_config w = windows(c, &l->config);
    prediction *p = &s->prediction;
    s->is_on = true;
    DT_TRY_H(prediction_init(p, l->h, l->bind, l->phase, &w));
    p->perception = l->wiring.perception;
    p->world = l->wiring.foresight.world;
    if (p->world == NULL) {
        DT_TRY_H(prediction_bind_world(p, DT_WANT_OPTIONAL));
        l->wiring.foresight.world = p->world; /* one of the models; nobody foresees by it */
    }
    if (p->world == NULL) {
        return DT_FAIL_H(l->h, DT_ECONFIG,
                         "%s.stored_samples = %lld, but there is no model that recorded scenes could teach; set "
                         "models.world or stored_samples = 0",
                         l->phase, (long long)c->samples);
    }
    DT_TRY_H(prediction_bind_data(p, "train", &l->stored));
    DT_TRY_H(prediction_bind_data(p, "eval", &s->held));
    accuracy_init(&s->accuracy, p, l->train, l->metrics);
    l->n_stored = (uint64_t)c->samples;
    return DT_OK;
}

dt_status stored_record(const stored *s, dt_graph *g)
{
    return prediction_record(&s->prediction, g);
}

dt_status stored_start(stored *s, const ppo_learner *l)
{
    return s->is_on ? prediction_set_horizon(&s->prediction, l->train, l->trainer, s->prediction.config.horizon_s, NULL)
                    : DT_OK;
}

dt_status stored_evaluate(stored *s, const ppo_learner *l)
{
    return s->is_on ? accuracy_run(&s->accuracy, l->trainer, s->held) : DT_OK;
}

void stored_fini(stored *s)
{
    accuracy_fini(&s->accuracy);
    prediction_fini(&s->prediction);
}
