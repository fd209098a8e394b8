/* SPDX-License-Identifier: Apache-2.0 */
#include "stored.h"

#include <string.h>

/* Weights of the losses as by default in phase 1. Without a world model windows are as short as possible. */
static prediction_config make_windows(const stored_config *c, const dt_wiring_config *wiring, bool has_world)
{
    const double step_s = 1 / wiring->rate_hz;
    return (prediction_config){.history_s = has_world ? wiring->history_s : step_s,
                               .horizon_s = has_world ? wiring->horizon_s : step_s,
                               .rate_hz = wiring->rate_hz,
                               .nll_weight = c->coef,
                               .position_weight = c->coef,
                               .risk_weight = c->coef};
}

dt_status stored_check(const dt_host *h, const char *phase, const stored_config *c, const dt_wiring_config *wiring)
{
    if (c->samples == 0) {
        return DT_OK;
    }
    if (!(c->coef > 0)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.stored_coef = %g disables training on stored_samples = %lld; it must be above 0", phase,
                         c->coef, (long long)c->samples);
    }
    const prediction_config w = make_windows(c, wiring, true);
    return prediction_check(h, phase, &w);
}

/* ---- what the barrier learns ------------------------------------------------------------------------------------- */

static bool has_port(const dt_env_spec *e, const char *name, const char *dims)
{
    for (uint32_t i = 0; i < e->n_obs; i++) {
        if (strcmp(e->obs[i].name, name) == 0) {
            return strcmp(e->obs[i].dims, dims) == 0;
        }
    }
    return false;
}

static bool is_unsafe_cost(const barrier *b, const dt_env_spec *e, const char *cost)
{
    for (uint32_t k = 0; k < e->n_costs; k++) {
        if (strcmp(e->costs[k], cost) == 0) {
            return b->marks[k] != 0;
        }
    }
    return false;
}

/* The unsafe costs that recordings can label; false: none. */
static bool select_hazards(const barrier *b, const dt_env_spec *e, const stored_config *c, double *ttc_s,
                           double *hard_mps2, bool *collides)
{
    *ttc_s = is_unsafe_cost(b, e, "time_to_collision") ? c->ttc_s : 0;
    *hard_mps2 = is_unsafe_cost(b, e, "hard_braking") ? c->hard_mps2 : 0;
    *collides = is_unsafe_cost(b, e, "collisions");
    return *ttc_s > 0 || *hard_mps2 > 0 || *collides;
}

static bool can_train_barrier(const stored_config *c, const ppo *l, const barrier *b)
{
    const dt_env_spec *e = l->wiring->spec;
    return c->barrier != 0 && b->is_on && has_port(e, "ahead", "A 3 7") && e->step_s > 0 && e->n_continuous == 1 &&
           e->low[0] < 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Recordings are cut as the environment's barrier sees vehicles: by steps of actions and maximum braking. */
static dt_status bind_stored_data(stored *s, const stored_config *c, const ppo *l, barrier *b)
{
    enum { OPTIONS = 7, TEXT = 32 };
    const dt_env_spec *e = l->wiring->spec;
    double ttc_s = 0, hard_mps2 = 0;
    bool collides = false;
    char text[OPTIONS][TEXT];
    b->has_stored = can_train_barrier(c, l, b) && select_hazards(b, e, c, &ttc_s, &hard_mps2, &collides);
    if (s->prediction.world == NULL && !b->has_stored) {
        return DT_FAIL_H(
            l->h, DT_ECONFIG,
            "%s.stored_samples = %lld, but no model can train on recorded scenes, neither models.world (with "
            "foresight, or with models.perception) nor the learned barrier of a shield of vehicles with a cost that "
            "they label (collisions, time_to_collision, hard_braking); set one of these, or stored_samples = 0",
            l->phase, (long long)c->samples);
    }
    snprintf(text[0], TEXT, "true");
    snprintf(text[1], TEXT, "%.9g", e->step_s);
    snprintf(text[2], TEXT, "%.9g", b->has_stored ? -(double)e->low[0] : 0);
    snprintf(text[3], TEXT, "%.9g", ttc_s);
    snprintf(text[4], TEXT, "%.9g", hard_mps2);
    snprintf(text[5], TEXT, "%s", collides ? "true" : "false");
    snprintf(text[6], TEXT, "%lld", (long long)b->config.safe_steps + 1); /* the first of them is number 0 */
    const dt_setting set[OPTIONS] = {
        {"pairs", text[0]},       {"action_s", text[1]},          {"brake_mps2", text[2]},  {"hazard_ttc_s", text[3]},
        {"hazard_mps2", text[4]}, {"hazard_collisions", text[5]}, {"hazard_steps", text[6]}};
    const uint32_t n = b->has_stored ? OPTIONS : 0;
    DT_TRY_H(prediction_bind_data(&s->prediction, "train", set, n, &s->mixed));
    return s->prediction.world != NULL ? prediction_bind_data(&s->prediction, "eval", set, n, &s->held) : DT_OK;
}

dt_status stored_create(stored *s, const stored_config *c, const dt_wiring_config *wiring, const ppo *l, barrier *b)
{
    if (c->samples == 0) {
        return DT_OK;
    }
    dt_wiring *wired = l->wiring;
    const bool foresees = wired->F > 0;
    const bool may_have_world = foresees || wired->perception != NULL;
    const prediction_config w = make_windows(c, wiring, may_have_world);
    const dt_bind_api *bind = NULL;
    prediction *p = &s->prediction;
    s->is_on = true;
    DT_SERVICE_H(l->h, bind, DT_SVC_BIND, l->phase);
    DT_TRY_H(prediction_init(p, l->h, bind, l->phase, &w));
    p->perception = wired->perception;
    p->world = wired->world;
    if (p->world == NULL && p->perception != NULL) {
        DT_TRY_H(prediction_bind_world(p, DT_MODEL_OPTIONAL));
        DT_TRY_H(p->world != NULL ? wired->api->add_model(wired, p->world) : DT_OK); /* its predictions are not used */
    }
    s->n = (uint64_t)c->samples;
    DT_TRY_H(bind_stored_data(s, c, l, b));
    if (l->loss.is_apart && foresees && !b->has_stored) {
        return DT_FAIL_H(l->h, DT_ECONFIG,
                         "%s.stored_samples = %lld would train models.world, whose predictions the policy uses "
                         "(foresight), but algorithm = \"cpo\" must be the only one to update what the policy depends "
                         "on; set foresight = false, another algorithm or stored_samples = 0",
                         l->phase, (long long)c->samples);
    }
    return DT_OK;
}

dt_status stored_record(const stored *s, dt_graph *g)
{
    return s->prediction.world != NULL ? prediction_record(&s->prediction, g) : DT_OK;
}

dt_status stored_start(stored *s, const ppo *l)
{
    if (s->is_on) {
        evaluation_init(&s->evaluation, &s->prediction, l->rounds->train, l->metrics);
    }
    return s->prediction.world != NULL ? prediction_set_horizon(&s->prediction, l->rounds->train, l->rounds->trainer,
                                                                s->prediction.config.horizon_s, NULL)
                                       : DT_OK;
}

dt_status stored_evaluate(stored *s, const ppo *l)
{
    return s->held != NULL ? evaluation_run(&s->evaluation, l->rounds->trainer, s->held) : DT_OK;
}

void stored_fini(stored *s)
{
    evaluation_fini(&s->evaluation);
    prediction_fini(&s->prediction);
}
