/* SPDX-License-Identifier: Apache-2.0
 *
 * See process_inner.h: waiting for answers. Numbers of calls wrap around; two of them are
 * compared by their difference.
 */
#include <config.h>

#include "rl/env/process_inner.h"

#include "base/clock.h"
#include "base/err.h"

static const double slice_s = 0.05; /* between two looks at what a worker writes and whether the run should stop */

/* Of calls not yet answered, is a at or after b? */
static bool is_reached(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) >= 0;
}

/* Reads how far the worker is. Numbers that cannot be are those of a worker that wrote over them. */
static dt_status read_answered(dt_process *p)
{
    const uint32_t answered = atomic_load_explicit(&dt_process_control(p)->answered, memory_order_acquire);
    if (answered - p->answered > p->asked - p->answered) {
        return dt_process_overwritten(p);
    }
    p->answered = answered;
    return DT_OK;
}

/* The end of the batch that a call is in: all of it is waited for before anything is done with it. */
static uint32_t end_of_batch(const dt_process *p, uint32_t number)
{
    uint32_t end = p->asked;
    for (uint32_t i = 0; i < DT_PROCESS_FLUSHES && i < p->n_flushes; i++) {
        const uint32_t at = p->flush[(p->n_flushes - 1 - i) % DT_PROCESS_FLUSHES];
        end = is_reached(at, number) && is_reached(end, at) ? at : end;
    }
    return end;
}

/* The call that the worker reports to be in, of those not answered; where that cannot be, the first one. */
static uint32_t call_under_way(const dt_process *p)
{
    const uint32_t begun = atomic_load_explicit(&dt_process_control(p)->begun, memory_order_relaxed);
    return begun - p->answered - 1 < p->asked - p->answered ? begun : p->answered + 1;
}

uint32_t dt_process_blamed(const dt_process *p, uint32_t fallback)
{
    if (p->map == NULL || p->answered == p->asked) {
        return fallback;
    }
    const dt_wire_call *call = &p->sent[call_under_way(p) & p->m.mask];
    return call->call == DT_CALL_END ? fallback : call->place;
}

static void sleep_until(dt_process *p, uint32_t target)
{
    dt_wire_control *c = dt_process_control(p);
    atomic_store(&c->host_target, target);
    atomic_store(&c->host_sleeps, 1);
    if (atomic_load(&c->answered) == p->answered) {
        dt_wire_sleep(&c->answered, p->answered, slice_s);
    }
    atomic_store(&c->host_sleeps, 0);
}

/* Every call has its own time, which begins when the one before is over. */
static dt_wire_patience call_patience(dt_process *p, uint32_t call)
{
    const bool creates = p->sent[call & p->m.mask].call == DT_CALL_CREATE;
    return dt_process_patience(p, creates ? p->d.startup_s : p->d.timeout_s);
}

static dt_status wait_asleep(dt_process *p, uint32_t number)
{
    uint32_t call = call_under_way(p);
    dt_wire_patience patience = call_patience(p, call);
    for (;;) {
        sleep_until(p, end_of_batch(p, number));
        DT_TRY(read_answered(p));
        if (is_reached(p->answered, number)) {
            return DT_OK;
        }
        if (!dt_process_goes_on(p)) {
            return dt_process_interrupt(p);
        }
        if (dt_process_has_ended(p)) {
            DT_TRY(read_answered(p)); /* what it answered before counts */
            return is_reached(p->answered, number) ? DT_OK : dt_process_died(p);
        }
        const uint32_t next = call_under_way(p);
        if (next != call && is_reached(next, call)) {
            call = next;
            patience = call_patience(p, call);
        } else if (dt_clock_s() > patience.deadline) {
            return dt_process_missing_message(p, DT_WIRE_LATE, "answer");
        }
    }
}

dt_status dt_process_wait(dt_process *p, uint32_t number)
{
    if (p->pid == 0) { /* lost before */
        return p->is_given_up ? dt_process_interrupt(p) : dt_process_died(p);
    }
    DT_TRY(read_answered(p));
    for (uint32_t seen = p->answered; !is_reached(p->answered, number); seen = p->answered) {
        if (!dt_wire_spin_while(&p->spin, &dt_process_control(p)->answered, seen)) {
            return wait_asleep(p, number);
        }
        DT_TRY(read_answered(p));
    }
    return DT_OK;
}
