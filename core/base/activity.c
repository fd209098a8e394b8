/* SPDX-License-Identifier: Apache-2.0
 *
 * See activity.h. All of it is one word, so that a reader never sees a mixture.
 */
#include <config.h>

#include "base/activity.h"

#include <stdatomic.h>

#define COUNT_BITS 28
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)

static _Atomic uint64_t current;
static _Thread_local bool reports;

void dt_activity_set_reporter(bool is_here)
{
    reports = is_here;
    if (!is_here) {
        atomic_store_explicit(&current, 0, memory_order_relaxed);
    }
}

void dt_activity_set(dt_activity_kind kind, uint64_t done, uint64_t total)
{
    if (reports) {
        const uint64_t d = done < COUNT_MAX ? done : COUNT_MAX, t = total < COUNT_MAX ? total : COUNT_MAX;
        const uint64_t word = (uint64_t)kind << (2 * COUNT_BITS) | d << COUNT_BITS | t;
        atomic_store_explicit(&current, word, memory_order_relaxed);
    }
}

dt_activity dt_activity_get(void)
{
    const uint64_t word = atomic_load_explicit(&current, memory_order_relaxed);
    return (dt_activity){.kind = (dt_activity_kind)(word >> (2 * COUNT_BITS)),
                         .done = (uint32_t)(word >> COUNT_BITS & COUNT_MAX),
                         .total = (uint32_t)(word & COUNT_MAX)};
}
