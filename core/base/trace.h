/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time goes: spans of all threads, kept in memory while tracing is on, written as Chrome's trace events
 * ("Trace Event Format", Google 2016), which Perfetto and chrome://tracing open. Off, a span is one load and one branch
 * that is never taken; on, two readings of the clock and a record of 48 bytes, without locks or system calls.
 *
 * A span is a scope: DT_TRACE("step", "reduce"); ends where its block does, however it is left. Names and categories
 * are strings that live as long as the program. Spans of a thread nest because scopes do.
 * Threads: spans and counters any; start, write and fini by one thread.
 */
#ifndef DTRAIN_CORE_BASE_TRACE_H
#define DTRAIN_CORE_BASE_TRACE_H

#include "dtrain/status.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct dt_trace_scope {
    uint64_t begin_ns; /* 0: it is not recorded */
    const char *category, *name, *key;
    int64_t value;
} dt_trace_scope;

extern atomic_bool dt_trace_flag; /* read by dt_trace_is_on alone */

void dt_trace_thread(const char *role, uint32_t number); /* names the calling thread: "worker 3" */
void dt_trace_start(void);                               /* what was recorded before is forgotten */
void dt_trace_stop(void);
/* What was recorded, as JSON. dropped_p: spans beyond the room of their thread. part: [n_parts] files that
 * dt_trace_write_part made in other processes, each of which becomes a track of its own. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_trace_write(const char *path, char *const *part, uint32_t n_parts, uint64_t *n_p, uint64_t *dropped_p)
    DT_NODISCARD;
/* What rank 1 or more recorded, for rank 0: whole or not at all. */
dt_status dt_trace_write_part(const char *path, uint32_t rank, uint64_t *n_p, uint64_t *dropped_p) DT_NODISCARD;
/* Frees all records; no thread may be inside a span. */
void dt_trace_fini(void);
void dt_trace_counter(const char *name, double value); /* a curve under the spans */

/* for the macros */
uint64_t dt_trace_now(void);
void dt_trace_record(const dt_trace_scope *s);

static inline bool dt_trace_is_on(void)
{
    return __builtin_expect(atomic_load_explicit(&dt_trace_flag, memory_order_relaxed), false);
}

static inline dt_trace_scope dt_trace_enter(const char *category, const char *name, const char *key, int64_t value)
{
    dt_trace_scope s = {0};
    if (dt_trace_is_on()) {
        s = (dt_trace_scope){dt_trace_now(), category, name, key, value};
    }
    return s;
}

static inline void dt_trace_leave(const dt_trace_scope *s)
{
    if (__builtin_expect(s->begin_ns != 0, false)) {
        dt_trace_record(s);
    }
}

/* One span a block. The second one has a number, such as which leaf: DT_TRACE_N("step", "leaf", "leaf", i). */
#define DT_TRACE_JOIN2(a, b) a##b
#define DT_TRACE_JOIN(a, b)  DT_TRACE_JOIN2(a, b)
#define DT_TRACE_N(category, name, key, value)                                                                         \
    const dt_trace_scope DT_TRACE_JOIN(trace_scope_, __LINE__) __attribute__((cleanup(dt_trace_leave), unused)) =      \
        dt_trace_enter(category, name, key, (int64_t)(value))
#define DT_TRACE(category, name) DT_TRACE_N(category, name, NULL, 0)

#endif
