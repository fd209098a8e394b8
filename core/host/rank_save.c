/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a rank's phase; see rank.h.
 */
#include <config.h>

#include "host/rank.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

static dt_snapshot_desc describe_snapshot(const dt_rank *k)
{
    const dt_run_state *r = k->r;
    return (dt_snapshot_desc){.run_dir = dt_rundir_path(r->d->dir),
                              .base_step = r->base_step,
                              .epoch = k->epoch,
                              .phase_ms = (uint64_t)(dt_rank_phase_s(k) * 1e3),
                              .ranks = dt_comm_size(k->comm),
                              .is_evaluated = k->evaluated_step == dt_rank_global_step(k)};
}

static dt_status write_checkpoint(dt_rank *k, const dt_snapshot_desc *d)
{
    DT_TRY(dt_snapshot_save(k->stage, d, NULL));
    k->last_saved_step = dt_rank_global_step(k);
    return dt_snapshot_prune(k->stage, d->run_dir);
}

dt_status dt_rank_save(dt_rank *k, bool phase_end, bool must)
{
    dt_status st = DT_OK;
    const uint64_t step = dt_rank_global_step(k);
    if (dt_rank_is_first(k) && (phase_end || k->last_saved_step != step)) {
        DT_TRACE_N("run", "checkpoint", "step", step);
        dt_snapshot_desc d = describe_snapshot(k);
        d.phase_end = phase_end;
        st = write_checkpoint(k, &d);
        if (st < 0 && !must && st != DT_EDIVERGED) {
            dt_log(DT_LOG_ERROR, "checkpoint of step %llu failed, training goes on: %s", (unsigned long long)step,
                   dt_error_text());
            st = DT_OK;
        }
        k->last_save_s = dt_clock_s();
    }
    return dt_comm_agree(k->comm, st);
}

dt_status dt_rank_rescue(dt_rank *k, dt_status st, const dt_snapshot_held *held)
{
    const uint64_t step = dt_rank_global_step(k);
    const bool is_news = step > k->r->base_step && step == k->good_step && step != k->last_saved_step;
    if (!dt_rank_is_first(k) || st == DT_EINTERRUPTED || k->stage->d.device_ops != NULL || !is_news ||
        (held != NULL && !held->is_there)) {
        return st;
    }
    dt_error *reason = dt_alloc(sizeof(*reason));
    if (reason == NULL) {
        return st;
    }
    dt_error_take(reason, st);
    dt_snapshot_desc d = describe_snapshot(k);
    d.held = held;
    if (write_checkpoint(k, &d) < 0) {
        dt_log(DT_LOG_WARN, "what was learnt before the failure is not saved: %s", dt_error_text());
    } else {
        dt_log(DT_LOG_WARN, "what was learnt before the failure is saved at step %llu", (unsigned long long)step);
    }
    dt_error_put(reason);
    dt_free(reason);
    return st;
}
