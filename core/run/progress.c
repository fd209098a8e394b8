/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/progress.h"

#include "base/err.h"
#include "rl/rollout/rollout.h"

#include <string.h>

void dt_progress_mark_capture(dt_progress_mark *m, const dt_stage *s, const dt_progress *p)
{
    *m = (dt_progress_mark){.step = p->step,
                            .epoch = p->epoch,
                            .iterations = p->iterations,
                            .trained = s->trainer != NULL ? dt_trainer_step_number(s->trainer) : 0,
                            .moved = s->trainer != NULL ? dt_trainer_vector_updates(s->trainer) : 0,
                            .env_steps = s->rollout != NULL ? dt_rollout_env_steps(s->rollout) : 0};
}

bool dt_progress_mark_differs(const dt_progress_mark *m, const dt_stage *s, const dt_progress *p)
{
    dt_progress_mark now;
    dt_progress_mark_capture(&now, s, p);
    return memcmp(m, &now, sizeof(now)) != 0;
}

dt_status dt_progress_check(dt_progress_mark *m, uint32_t *idle_p, const dt_stage *s, const dt_progress *p)
{
    const bool is_idle = !dt_progress_mark_differs(m, s, p);
    *idle_p = is_idle ? *idle_p + 1 : 0;
    dt_progress_mark_capture(m, s, p);
    return *idle_p < DT_PROGRESS_MOST_IDLE
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN,
                         "phase %s does not advance: %d calls of iterate in a row left step at %llu and epoch at %llu, "
                         "trained nothing and stepped no environment; iterate returns DT_DONE when there is nothing "
                         "left to do",
                         s->d.phase->desc.id, DT_PROGRESS_MOST_IDLE, (unsigned long long)p->step,
                         (unsigned long long)p->epoch);
}
