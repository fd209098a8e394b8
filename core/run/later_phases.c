/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/later_phases.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/log.h"
#include "plan/machine/limits.h"
#include "run/initial_weights.h"
#include "plan/fit.h"
#include "plan/forecast.h"
#include "run/run_start.h"
#include "run/session_parts.h"
#include "plugin/service/stage.h"

#include <string.h>

typedef struct later_check {
    const dt_args *args;
    const dt_session *session;
    const char *run_dir;
    dt_run_start start;
    dt_planned_shapes *planned; /* NULL: where the run begins is not known */
    dt_comm *comm;
} later_check;

/* One on a device is planned when it is due: what it would take there may still be in use by then. */
static dt_status plan_later_phase(dt_stage *stage, bool *is_beyond_p)
{
    dt_forecast f;
    if (stage->d.device_ops != NULL || strncmp(stage->opts.engine.device, "cuda", 4) == 0) {
        return DT_OK;
    }
    DT_TRY(dt_stage_start(stage));
    if (stage->trainer == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_forecast_create(stage, 0, &f));
    return dt_fit_stage(stage, 0, &f, false, is_beyond_p);
}

/* The phase that begins is the run's to try; here it is made for the shapes that it hands over. */
static dt_status create_trial_stage(later_check *r, const dt_initial_weights_desc *first, dt_initial_weights *f,
                                    dt_stage_desc *d, dt_stage **stage_p, bool *is_beyond_p)
{
    const bool is_begin = d->index <= r->start.begin;
    DT_TRY(r->planned != NULL && !is_begin ? dt_initial_weights_find(first, d->index, f, &d->loaded) : DT_OK);
    DT_TRY(dt_stage_create(d, stage_p));
    DT_TRY(plan_later_phase(*stage_p, is_beyond_p));
    DT_TRY((*stage_p)->rollout != NULL && !is_begin ? dt_session_check_instances(r->session, d->index) : DT_OK);
    if (r->planned != NULL && (*stage_p)->trainer == NULL) {
        dt_planned_shapes_remove(r->planned, *stage_p);
    } else if (r->planned != NULL) {
        DT_TRY(is_begin ? DT_OK : dt_initial_weights_check_shapes(first, f, *stage_p));
        DT_TRY(dt_planned_shapes_add(r->planned, *stage_p));
    }
    return DT_OK;
}

static dt_status check_phase(later_check *r, int64_t index)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const int64_t threads = r->session->opts[index].engine.threads;
    dt_stage *stage = NULL;
    dt_initial_weights f = {0};
    bool is_beyond = false;
    dt_stage_desc d = dt_session_describe_stage(r->session, index, r->comm, &lock);
    const dt_initial_weights_desc first = {.session = r->session,
                                           .run_dir = r->run_dir,
                                           .init_from = r->args->init_from,
                                           .start = &r->start,
                                           .planned = r->planned,
                                           .lock = &lock};
    d.threads = threads > 0 ? (uint32_t)threads : dt_limits_count_cores("");
    dt_log_mute(true);
    const dt_status st = create_trial_stage(r, &first, &f, &d, &stage, &is_beyond);
    dt_initial_weights_close(&f);
    dt_stage_destroy(stage);
    dt_log_mute(false);
    if (st < 0 && r->planned != NULL) {
        dt_planned_shapes_clear(r->planned);
    }
    return is_beyond || st == DT_ENOMEM ? dt_fit_advise(&d, st) : st;
}

static dt_status check_later_phases(later_check *r)
{
    const dt_session *s = r->session;
    dt_status st = DT_OK;
    if (r->planned != NULL && r->start.begin + 1 < s->last && check_phase(r, r->start.begin) < 0) {
        dt_error_clear(); /* the run reports it */
    }
    for (int64_t i = s->first + 1; i < s->last && st == DT_OK; i++) {
        if (r->planned != NULL && i <= r->start.begin) {
            continue;
        }
        st = check_phase(r, i);
        if (st < 0 && dt_exit_code(st) != DT_EXIT_USAGE) {
            dt_log(DT_LOG_WARN, "phase %lld could not begin now: %s", (long long)i + 1, dt_error_text());
            dt_error_clear();
            st = DT_OK;
        } else if (st < 0) {
            st =
                DT_CONTEXT(st, "phase %lld, tried before phase %lld begins", (long long)i + 1, (long long)s->first + 1);
        }
    }
    return st;
}

dt_status dt_later_phases_check(const dt_args *a, const dt_session *s, const char *run_dir, const char *resume)
{
    later_check r = {.args = a, .session = s, .run_dir = run_dir};
    if (s->last - s->first < 2) {
        return DT_OK;
    }
    DT_TRY(dt_comm_create_null(&r.comm));
    dt_log_mute(true);
    dt_status st = dt_run_start_find(s, resume, true, &r.start);
    dt_log_mute(false);
    if (st == DT_OK) {
        st = dt_planned_shapes_create(&r.planned);
    } else { /* the run reports it */
        dt_error_clear();
        st = DT_OK;
    }
    if (st == DT_OK) {
        st = check_later_phases(&r);
    }
    dt_planned_shapes_destroy(r.planned);
    dt_run_start_fini(&r.start);
    dt_comm_destroy(r.comm);
    return st;
}
