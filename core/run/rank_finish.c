/* SPDX-License-Identifier: Apache-2.0
 *
 * What is checked of a phase when it is over; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/log.h"
#include "plugin/service/stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* limits/<cost> is compared with costs/<cost>/mean, where an evaluation reports both. */
void dt_result_warn_limits(const dt_stage *s)
{
    const dt_result *r = NULL;
    const uint32_t n = dt_stage_get_results(s, &r);
    for (uint32_t i = 0; i < n; i++) {
        char key[160];
        if (strncmp(r[i].key, "limits/", 7) != 0 || r[i].is_list) {
            continue;
        }
        snprintf(key, sizeof(key), "costs/%.128s/mean", r[i].key + 7);
        const double *cost = dt_stage_find_result(s, key);
        if (cost == NULL || isnan(*cost)) {
            dt_log(DT_LOG_WARN, "no evaluated episode measures cost %s, whose limit is %g", r[i].key + 7,
                   r[i].value[0]);
        } else if (*cost > r[i].value[0]) {
            dt_log(DT_LOG_WARN, "cost %s is %g in the evaluation, above its limit %g", r[i].key + 7, *cost,
                   r[i].value[0]);
        }
    }
}

/* ---- what was never known ---------------------------------------------------------------------------------------- */

/* Every step was passed over, because its batch had no row, and the phase moved nothing itself. */
static dt_status check_updates(dt_rank *k)
{
    const uint64_t steps = dt_trainer_step_number(k->stage->trainer);
    DT_TRY(dt_trainer_synchronize(k->stage->trainer)); /* a device counts updates itself */
    if (steps == 0 || dt_trainer_updates(k->stage->trainer) > 0 || dt_trainer_vector_updates(k->stage->trainer) > 0 ||
        dt_trainer_bypassed_steps(k->stage->trainer) < steps) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG, "phase %s has learned nothing: none of its %llu steps had a sample. %s",
                   k->stage->d.phase->desc.id, (unsigned long long)steps,
                   k->stage->rollout != NULL
                       ? "No agent that learns acted in any round: check that the options of the environment (env.id "
                         "and its section) admit agents; with several teams, that opponents.learner is one that plays"
                       : "Check that its data has rows");
}

/* Of a resumed run, what earlier processes evaluated is not known. */
static dt_status check_result_was_number(const dt_rank *k, const char *option, const char *name, uint32_t n_known)
{
    static const char text[] = "%s = \"%s\" was not a number in any of %u evaluations of phase %s, so that it had no "
                               "effect; name a result that each evaluation has";
    const char *id = k->stage->d.phase->desc.id;
    if (name[0] == '\0' || k->n_evaluations == 0 || n_known > 0) {
        return DT_OK;
    }
    if (k->begin_step > 0) {
        dt_log(DT_LOG_WARN, text, option, name, k->n_evaluations, id);
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG, text, option, name, k->n_evaluations, id);
}

/* The same of what training records. */
static dt_status check_training_was_number(const dt_rank *k)
{
    static const char text[] =
        "stop.metric = \"train/%s\" was not a number in any of %llu epochs of phase %s, so that it "
        "had no effect; it can be one of %s";
    const char *name = k->stop.training_metric, *id = k->stage->d.phase->desc.id;
    const unsigned long long n = k->n_training_epochs;
    dt_str known = {0};
    dt_status st = DT_OK;
    if (name[0] == '\0' || n == 0 || k->n_training_known > 0) {
        return DT_OK;
    }
    dt_rank_list_training_names(k, &known);
    if (k->begin_step > 0) {
        dt_log(DT_LOG_WARN, text, name, n, id, dt_str_text(&known));
    } else {
        st = DT_FAIL(DT_ECONFIG, text, name, n, id, dt_str_text(&known));
    }
    dt_str_fini(&known);
    return st;
}

static dt_status check_names(const dt_rank *k)
{
    const char *best = dt_rank_best_result_name(k);
    if (!dt_rank_is_first(k)) {
        return DT_OK;
    }
    DT_TRY(check_result_was_number(k, "stop.metric", k->stop.metric, k->n_target_known));
    DT_TRY(check_training_was_number(k));
    return check_result_was_number(k, "checkpoint.best_by", dt_stage_find_result(k->stage, best) != NULL ? best : "",
                                   k->n_best_known);
}

dt_status dt_rank_finish(dt_rank *k)
{
    const dt_status moved = check_updates(k);
    DT_TRY(dt_comm_join(k->comm, moved));
    const dt_status finished = dt_stage_finish(k->stage);
    DT_TRY(dt_comm_join(k->comm, finished));
    const dt_status known = check_names(k);
    DT_TRY(dt_comm_join(k->comm, known));
    if (dt_rank_is_first(k)) {
        dt_result_warn_limits(k->stage);
    }
    return DT_OK;
}
