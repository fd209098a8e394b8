/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/signals.h"
#include "comm/processes.h"

bool dt_rank_is_first(const dt_rank *k)
{
    return dt_comm_rank(k->comm) == 0;
}

uint64_t dt_rank_iterations(const dt_rank *k, const dt_progress *p)
{
    return p->iterations > 0 ? p->iterations : k->iterations + 1;
}

uint64_t dt_rank_global_step(const dt_rank *k)
{
    return k->r->base_step + dt_trainer_step_number(k->stage->trainer);
}

static bool is_time_up(const dt_run_context *r)
{
    return r->d->max_time_s > 0 && dt_clock_s() - r->start_s >= r->d->max_time_s;
}

bool dt_run_is_stopping(void *user)
{
    return dt_signals_stop() != 0 || is_time_up(user);
}

void dt_rank_mark_advanced(const dt_rank *k)
{
    const dt_run_desc *d = k->r->d;
    if (k->is_first_here && !*d->advanced_p) {
        *d->advanced_p = true;
        if (d->processes != NULL) {
            dt_board_mark_advanced(dt_processes_board(d->processes));
        }
    }
}

double dt_rank_phase_s(const dt_rank *k)
{
    const dt_run_context *r = k->r;
    const bool is_here = r->start.resume != NULL && k->stage->d.index == r->start.begin;
    return dt_clock_s() - k->begin_s + (is_here ? (double)r->start.spent_ms / 1e3 : 0);
}
