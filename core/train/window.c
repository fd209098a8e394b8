/* SPDX-License-Identifier: Apache-2.0
 *
 * What was read ahead does not count any more: the samples are others now, or a window of an endless source is over.
 */
#include <config.h>

#include "train/trainer_internal.h"

void dt_trainer_discard_prefetched(dt_trainer *t)
{
    if (t->workers.feed != NULL && !t->workers.feed_is_paused) {
        dt_feed_pause(t->workers.feed);
        t->workers.feed_is_paused = true;
    }
    if (t->mixed != NULL) {
        dt_mixed_draw(t->mixed, t->c.seed, t->c.phase, t->state.step / t->state.steps_per_epoch);
    }
}

dt_status dt_advance_window(dt_trainer *t)
{
    const dt_samples *s = t->d.source;
    const uint64_t window = t->state.step / t->state.steps_per_epoch;
    if (s->turn == NULL || (t->workers.has_window && t->workers.window == window)) {
        return DT_OK;
    }
    dt_trainer_discard_prefetched(t);
    t->workers.has_window = false;
    const dt_status st = s->turn(s->self, window);
    t->workers.has_window = st == DT_OK;
    t->workers.window = window;
    return st;
}
