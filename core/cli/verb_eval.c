/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain eval`: evaluate a checkpoint on held-out data.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/log.h"
#include "base/print.h"
#include "run/baselines.h"
#include "run/evaluate.h"
#include "run/run.h"
#include "run/session.h"

#include <stdio.h>
#include <string.h>

/* Baselines that the user names (evaluation.baselines) are evaluated after it on the same seeds; those that an
 * environment prefers belong to training. */
static dt_status compare_with_baselines(dt_session *s, int64_t index, dt_stage *stage, bool is_json, dt_str *out)
{
    const char *names = NULL;
    dt_origin by;
    dt_policy_result *policy = NULL;
    DT_TRY(dt_config_get(s->config, index, "evaluation.baselines", &names, &by));
    if (names[0] == '\0' || strcmp(names, "auto") == 0 || by.layer <= DT_FROM_RUN) {
        return DT_OK;
    }
    if (stage->rollout == NULL) {
        return DT_FAIL(DT_ECONFIG,
                       "evaluation.baselines = \"%s\": phase %s has no environment for a controller to act in", names,
                       stage->d.phase->desc.id);
    }
    dt_stage_desc d = stage->d;
    d.trained_on = NULL;
    dt_status st = dt_policy_result_capture(stage, &policy);
    if (st == DT_OK) {
        st = dt_baselines_compare(&d, policy, is_json, out);
    }
    dt_policy_result_free(policy);
    return st;
}

static dt_status evaluate_checkpoint(const dt_args *a, dt_session *s)
{
    dt_eval e;
    dt_str text = {0}, others = {0};
    int64_t index = 0;
    DT_TRY(dt_eval_find_phase(s, a->checkpoint, &index));
    DT_TRY(dt_session_enter_phase(s, index));
    dt_status st = dt_eval_run(s, index, a->checkpoint, 0, &e);
    if (st == DT_OK && a->checkpoint == NULL && e.stage->params.n > 0) {
        dt_log(DT_LOG_WARN, "no --checkpoint: these are the results of untrained weights");
    }
    if (st == DT_OK) {
        if (a->json) {
            dt_result_json(e.stage, &text);
        } else {
            dt_result_text_grouped(e.stage, &text);
        }
        dt_result_warn_limits(e.stage);
        st = compare_with_baselines(s, index, e.stage, a->json, &others);
        if (st == DT_OK) {
            st = dt_str_status(&text);
        }
        if (st == DT_OK) {
            st = dt_str_status(&others);
        }
        if (others.bytes > 0 && a->json) { /* one more member of the object */
            dt_print("%.*s,\"baselines\":%s}\n", (int)text.bytes - 1, dt_str_text(&text), dt_str_text(&others));
        } else {
            dt_print("%s\n%s", dt_str_text(&text), dt_str_text(&others));
        }
    }
    dt_str_fini(&text);
    dt_str_fini(&others);
    dt_eval_close(&e);
    return st;
}

/* Weights of one phase evaluated as another: that may fit, but where it does not, it is the first thing to know. */
static dt_status warn_of_other_phase(const dt_args *a, const dt_session *s, dt_status st)
{
    dt_ckpt_info info;
    dt_error reason;
    if (a->checkpoint == NULL || a->plugin == NULL || s->n_phases != 1) {
        return st;
    }
    dt_error_save(&reason, st);
    const bool is_known = dt_ckpt_inspect(a->checkpoint, &info) == DT_OK;
    st = dt_error_restore(&reason);
    return is_known && strcmp(info.phase, s->phase[0]->desc.id) != 0
               ? DT_CONTEXT(st, "--plugin %s, but %s belongs to phase %s", a->plugin, a->checkpoint, info.phase)
               : st;
}

dt_status dt_verb_eval(const dt_args *a, int *code_p)
{
    dt_session s;
    DT_TRY(dt_eval_open(a, &s));
    dt_status st = evaluate_checkpoint(a, &s);
    if (st < 0) {
        st = warn_of_other_phase(a, &s, st);
    }
    dt_session_close(&s);
    return st;
}
