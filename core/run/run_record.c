/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run directory says of the run: see dt_run_record in run.h.
 */
#include <config.h>

#include "run/run.h"

#include "base/err.h"
#include "base/log.h"

dt_status dt_run_record(const dt_session *s, dt_rundir *dir)
{
    DT_TRY(dt_rundir_write_config(dir, s->config));
    return dt_run_note(s, dir, -1);
}

dt_status dt_run_note(const dt_session *s, dt_rundir *dir, int exit_code)
{
    return dt_rundir_write_meta(dir, s->loader, (int64_t)s->seed, s->threads,
                                s->n_processes > 1 ? s->n_processes : s->ranks, s->device.text, exit_code);
}

void dt_run_note_or_warn(const dt_session *s, dt_rundir *dir, int exit_code)
{
    if (dt_run_note(s, dir, exit_code) < 0) {
        dt_log(DT_LOG_WARN, "meta.json is not up to date: %s", dt_error_text());
        dt_error_clear();
    }
}
