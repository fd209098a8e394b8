/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/memory_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "plugin/service/plugin_memory.h"
#include "plan/machine/limits.h"
#include "rl/env/process.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>

/* ---- the watch --------------------------------------------------------------------------------------------------- */

void dt_memory_watch_init(dt_memory_watch *w, const dt_memory_opts *o, bool may_log)
{
    *w = (dt_memory_watch){.o = *o, .root = "", .may_log = may_log};
}

static void warn_low_memory(const dt_memory_watch *w, const char *what)
{
    if (!w->may_log) {
        return;
    }
    const uint64_t arenas = dt_arena_live_bytes(), plugins = dt_plugin_memory_bytes();
    const uint64_t heap = dt_alloc_live_bytes() - plugins;
    char workers[64] = "";
    if (w->n_workers > 0) {
        snprintf(workers, sizeof(workers), ", %u processes of environments %.2f GB", w->n_workers,
                 (double)w->workers / 1e9);
    }
    dt_log(DT_LOG_WARN,
           "%.2f of %.2f GB of memory%s are in use (%.0f %%): %s; this process holds %.2f GB (arenas of at most %.2f, "
           "%.2f requested by the host, %.2f by plugins)%s",
           (double)w->used / 1e9, (double)w->limit / 1e9, w->o.target_gb > 0 ? " (memory.target_gb)" : "",
           100.0 * (double)w->used / (double)w->limit, what, (double)w->own / 1e9, (double)arenas / 1e9,
           (double)heap / 1e9, (double)plugins / 1e9, workers);
}

/* One piece a look: what it fetched is seen at the next one. */
static void release_memory(dt_memory_watch *w, dt_trainer *trainer)
{
    char text[128];
    if (!w->is_trimmed) {
        w->is_trimmed = true;
#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
        warn_low_memory(w, "returned freed blocks to the system");
    } else if (trainer != NULL && dt_trainer_release_memory(trainer)) {
        const uint32_t n = dt_trainer_concurrent_shards(trainer);
        snprintf(text, sizeof(text),
                 "from now on %u shard%s of a batch at a time, without prefetching; results are unchanged", n,
                 n == 1 ? "" : "s");
        warn_low_memory(w, text);
    } else if (!w->is_exhausted) {
        w->is_exhausted = true;
        warn_low_memory(
            w, "nothing is left to release; end other programs, or take --profile memory, fewer environments or "
               "smaller models");
    }
}

void dt_memory_watch_update(dt_memory_watch *w, double now_s, dt_trainer *trainer)
{
    if (now_s < w->next_s) {
        return;
    }
    enum { SHARE = 100 }; /* of the time at most a hundredth: thousands of workers take a while */
    const double before = dt_clock_s();
    w->own = dt_rss_bytes();
    w->workers = dt_process_all_bytes(&w->n_workers);
    w->next_s = now_s + fmax(w->o.watch_s, SHARE * (dt_clock_s() - before));
    if (w->o.target_gb > 0) {
        w->used = w->own + w->workers;
        w->limit = (uint64_t)(w->o.target_gb * 1e9);
    } else if (!dt_limits_memory_use(w->root, &w->used, &w->limit)) {
        w->limit = 0;
        return;
    }
    const double share = (double)w->used / (double)w->limit;
    if (w->o.shed_fraction > 0 && share > w->o.shed_fraction) {
        release_memory(w, trainer);
        w->has_warned = true;
    } else if (w->o.warn_fraction > 0 && share > w->o.warn_fraction && !w->has_warned) {
        w->has_warned = true;
        warn_low_memory(w, "memory is released above memory.shed_fraction");
    } else if (share < w->o.warn_fraction) {
        w->has_warned = w->is_trimmed = w->is_exhausted = false;
    }
}
