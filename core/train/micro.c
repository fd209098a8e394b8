/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-batch: how many shards are computed at once, and fewer of them when memory runs short; see trainer.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

uint32_t dt_trainer_concurrent_shards(const dt_trainer *t)
{
    return t->backend->concurrent_shards(t);
}

static void destroy_execs(dt_compiled *c, uint32_t from)
{
    for (uint32_t i = from; i < c->n_exec; i++) {
        dt_exec_destroy(c->exec[i]);
    }
    c->n_exec = c->n_exec < from ? c->n_exec : from;
}

/* Workers from n on run no shards any more, and what they held goes. Between steps; what the feed read ahead is
 * forgotten. */
void dt_trainer_limit_workers(dt_trainer *t, uint32_t n)
{
    dt_feed_stop(t->workers.feed);
    t->workers.feed = NULL;
    t->workers.feed_is_paused = false;
    destroy_execs(&t->train, n);
    for (uint32_t i = 0; i < t->n_infer; i++) {
        destroy_execs(&t->infer[i], n);
    }
    if (t->workers.reader != NULL) {
        for (uint32_t i = n; i < t->workers.active; i++) {
            dt_feed_reader_destroy(t->workers.reader[i]);
            t->workers.reader[i] = NULL;
        }
    }
    t->workers.active = n;
    if (t->workers.n_grads > 0) {
        dt_grads_destroy(t, dt_count_live_grads(t));
    }
    t->scratch.gradient = NULL;
}

bool dt_trainer_release_memory(dt_trainer *t)
{
    if (!t->backend->can_shrink) {
        return false; /* the host holds what is on its way, no more */
    }
    if (t->c.prefetch > 0 && t->workers.reader == NULL) {
        t->c.prefetch = 0;
        dt_trainer_limit_workers(t, t->workers.active);
        return true;
    }
    if (dt_trainer_concurrent_shards(t) < 2) {
        return false;
    }
    dt_trainer_limit_workers(t, dt_trainer_concurrent_shards(t) / 2);
    return true;
}

void dt_trainer_log_smaller_batch(const dt_trainer *t, uint32_t before)
{
    if (dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "%s; trying %u shard%s at a time instead of %u, nothing ahead; the result is the same",
               dt_error_text(), t->workers.active, t->workers.active == 1 ? "" : "s", before);
    }
    dt_error_clear();
}

bool dt_trainer_shrink_on_enomem(dt_trainer *t, dt_status st)
{
    if (st != DT_ENOMEM || t->workers.ran_out || !t->backend->can_shrink) {
        return false;
    }
    const uint32_t before = dt_trainer_concurrent_shards(t);
    t->workers.ran_out = true;
    t->c.prefetch = 0;
    dt_trainer_limit_workers(t, before > 1 ? before / 2 : 1);
    dt_trainer_log_smaller_batch(t, before);
    return true;
}

dt_status dt_trainer_explain_memory(const dt_trainer *t, dt_status st)
{
    return st != DT_ENOMEM || !t->backend->can_shrink
               ? st
               : DT_CONTEXT(st,
                            "out of memory with %u shard%s of a batch at a time; raise data.shards, set "
                            "engine.recompute = true, or take smaller models",
                            dt_trainer_concurrent_shards(t), dt_trainer_concurrent_shards(t) == 1 ? "" : "s");
}

dt_status dt_trainer_synchronize(dt_trainer *t)
{
    return t->backend->synchronize(t);
}
