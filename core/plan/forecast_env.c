/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/forecast.h"

#include "base/err.h"
#include "base/text.h"
#include "rl/rollout/rollout.h"

#include <stdio.h>
#include <string.h>

/* Options of the environment that are not its defaults, "a = 1, b = 2". */
static void append_changed_options(const dt_stage *s, dt_str *out)
{
    const dt_component *env = &s->env.comp->desc;
    bool is_first = true;
    for (const dt_option *o = env->options; o != NULL && o->name != NULL; o++) {
        char path[160];
        const char *value = NULL;
        dt_origin origin;
        snprintf(path, sizeof(path), "%s.%s", env->id, o->name);
        if (dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
            dt_error_clear();
        } else if (origin.layer > DT_FROM_PLUGIN) {
            char text[256];
            snprintf(text, sizeof(text), "%s", value);
            dt_mask_text(text, true);
            dt_str_addf(out, "%s%s = %s", is_first ? "; " : ", ", o->name, text);
            is_first = false;
        }
    }
}

void dt_forecast_append_env_text(const dt_stage *s, const dt_forecast *f, const char *prefix, dt_str *out)
{
    if (s->rollout == NULL) {
        return;
    }
    const dt_env_spec *spec = &s->env.layout.spec;
    dt_str_addf(out, "%senvironment  %s, %u agent%s", prefix, s->env.comp->desc.id, spec->n_agents,
                spec->n_agents == 1 ? "" : "s");
    pthread_mutex_lock(s->d.config_lock);
    append_changed_options(s, out);
    pthread_mutex_unlock(s->d.config_lock);
    if (spec->max_steps == 0) {
        dt_str_addf(out, "\n%san episode   of any length", prefix);
    } else if (spec->step_s > 0) {
        dt_str_addf(out, "\n%san episode   at most %u steps of %g s: %g s of simulated time", prefix, spec->max_steps,
                    spec->step_s, spec->max_steps * spec->step_s);
    } else {
        dt_str_addf(out, "\n%san episode   at most %u steps", prefix, spec->max_steps);
    }
    if (spec->max_steps > 0 && f->round > 0) {
        const double each = (double)f->round / spec->max_steps;
        const double all = each * (double)f->iterations;
        dt_str_addf(out, each < 100 ? "; %.3g full episodes a round" : "; %.0f full episodes a round", each);
        if (f->iterations > 0) {
            dt_str_addf(out, all < 100 ? ", %.3g in all rounds" : ", %.0f in all rounds", all);
        }
        const uint64_t mine = s->rollout->d.steps; /* of each instance in a round */
        if (mine > 0 && mine < spec->max_steps) {
            dt_str_addf(out, "; the first of full length ends in round %llu",
                        (unsigned long long)((spec->max_steps + mine - 1) / mine));
        }
    }
    dt_str_add(out, "\n");
}

void dt_forecast_env_json(const dt_stage *s, const dt_forecast *f, dt_json_out *o)
{
    if (s->rollout == NULL) {
        return;
    }
    const dt_env_spec *spec = &s->env.layout.spec;
    dt_json_obj(o, "environment");
    dt_json_str(o, "id", s->env.comp->desc.id);
    dt_json_i64(o, "agents", spec->n_agents);
    dt_json_i64(o, "episode_steps", spec->max_steps); /* at most; 0: open */
    dt_json_f64(o, "step_s", spec->step_s);           /* 0: no simulated time */
    if (spec->max_steps > 0 && f->round > 0) {
        dt_json_f64(o, "episodes_per_round", (double)f->round / spec->max_steps);
    }
    dt_json_end(o, '}');
}
