/* SPDX-License-Identifier: Apache-2.0
 *
 * Which foreign code a watched thread is in, and whether anything moves: a callback that never returns can be named by
 * another thread (run/hang_watch.h). DT_FP_GUARD notes each call; whatever takes long within services of the host
 * pulses. A pulse writes only where the watcher has looked since, so that it costs a read. Threads that work for a
 * watched one, as those of environments, have slots of their own, which that one's slot leads to.
 * Threads: [any]; a slot belongs to the thread that it was set for.
 */
#ifndef DTRAIN_CORE_BASE_CALL_WATCH_H
#define DTRAIN_CORE_BASE_CALL_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dt_call_slot dt_call_slot;

struct dt_call_slot {
    _Atomic(const char *) culprit, call; /* the innermost; call NULL: none. Texts last as long as the call */
    atomic_bool is_waiting;              /* for other ranks */
    atomic_uint first, n;                /* instances of an environment that it is called for; n 0: none */
    dt_call_slot *helper, *next;         /* of threads that work for this one, and the next of them; under a lock */
};

extern _Thread_local dt_call_slot *dt_call_here; /* NULL: this thread is not watched */
extern atomic_bool dt_call_has_pulsed;

typedef struct dt_call_mark {
    const char *culprit, *call;
} dt_call_mark;

static inline void dt_call_pulse(void)
{
    if (!atomic_load_explicit(&dt_call_has_pulsed, memory_order_relaxed)) {
        atomic_store_explicit(&dt_call_has_pulsed, true, memory_order_relaxed);
    }
}

static inline void dt_call_note(const char *culprit, const char *call)
{
    atomic_store_explicit(&dt_call_here->call, NULL, memory_order_relaxed);
    atomic_store_explicit(&dt_call_here->culprit, culprit, memory_order_release);
    atomic_store_explicit(&dt_call_here->call, call, memory_order_release);
}

/* What the thread was in before, for dt_call_end. */
static inline dt_call_mark dt_call_begin(const char *culprit, const char *call)
{
    dt_call_mark before = {NULL, NULL};
    dt_call_pulse();
    if (dt_call_here != NULL) {
        before.culprit = atomic_load_explicit(&dt_call_here->culprit, memory_order_relaxed);
        before.call = atomic_load_explicit(&dt_call_here->call, memory_order_relaxed);
        dt_call_note(culprit, call);
    }
    return before;
}

static inline void dt_call_end(dt_call_mark before)
{
    dt_call_pulse();
    if (dt_call_here != NULL) {
        dt_call_note(before.culprit, before.call);
    }
}

static inline void dt_call_instances_set(uint32_t first, uint32_t n)
{
    if (dt_call_here != NULL) {
        atomic_store_explicit(&dt_call_here->n, 0, memory_order_relaxed);
        atomic_store_explicit(&dt_call_here->first, first, memory_order_release);
        atomic_store_explicit(&dt_call_here->n, n, memory_order_release);
    }
}

/* This thread works for the one of that slot from now on, until the end; mine lasts until then. NULL: that one is not
 * watched, and so is this one not. */
void dt_call_help_begin(dt_call_slot *mine, dt_call_slot *of);
void dt_call_help_end(dt_call_slot *of);
/* "step of my_env, instance 3": the call that a thread or one that works for it is in; false: none. */
bool dt_call_describe(const dt_call_slot *s, char *out, size_t bytes);

static inline void dt_call_wait_set(bool is_waiting)
{
    if (dt_call_here != NULL) {
        atomic_store_explicit(&dt_call_here->is_waiting, is_waiting, memory_order_relaxed);
    }
}

#endif
