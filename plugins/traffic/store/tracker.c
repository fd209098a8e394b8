/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles in sight while a scene streams by. See tracker.h.
 */
#include <config.h>

#include "traffic/store/tracker.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "traffic/text/names.h"

#include <math.h>

static bool is_kept(const dt_tracker *t, const dt_tracked_vehicle *v, int64_t frame)
{
    return v->frame >= 0 && frame - v->frame <= t->gap;
}

static size_t find_vehicle_slot(const dt_tracked_vehicle *slot, size_t cap, int64_t id, uint64_t seed)
{
    size_t s = (size_t)dt_hash64(&id, sizeof(id), seed) & (cap - 1);
    while (slot[s].frame >= 0 && slot[s].id != id) {
        s = (s + 1) & (cap - 1);
    }
    return s;
}

/* Half full: into a fresh table, without those out of sight. */
static dt_status rebuild_table(dt_tracker *t, int64_t frame)
{
    size_t kept = 0, cap = 64;
    for (size_t i = 0; i < t->cap; i++) {
        kept += is_kept(t, &t->slot[i], frame);
    }
    while (cap < 4 * (kept + 1)) {
        cap *= 2;
    }
    dt_tracked_vehicle *slot = dt_alloc_n(cap, sizeof(*slot));
    if (slot == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %zu vehicles in sight", kept);
    }
    for (size_t i = 0; i < cap; i++) {
        slot[i].frame = -1;
    }
    for (size_t i = 0; i < t->cap; i++) {
        if (is_kept(t, &t->slot[i], frame)) {
            slot[find_vehicle_slot(slot, cap, t->slot[i].id, t->seed)] = t->slot[i];
        }
    }
    dt_free(t->slot);
    t->slot = slot;
    t->cap = cap;
    t->n = kept;
    return DT_OK;
}

void dt_tracker_init(dt_tracker *t, double frame_rate_hz)
{
    *t = (dt_tracker){.gap = (int64_t)floor(DT_TRACK_GAP_S * frame_rate_hz + 1e-6), .seed = dt_names_seed()};
    t->gap = t->gap < 1 ? 1 : t->gap;
}

void dt_tracker_clear(dt_tracker *t)
{
    for (size_t i = 0; i < t->cap; i++) {
        t->slot[i].frame = -1;
    }
    t->n = 0;
}

void dt_tracker_fini(dt_tracker *t)
{
    dt_free(t->slot);
    *t = (dt_tracker){0};
}

dt_status dt_tracker_get(dt_tracker *t, int64_t id, int64_t frame, dt_tracked_vehicle **out_p, bool *is_new_p)
{
    if (2 * (t->n + 1) > t->cap) {
        DT_TRY(rebuild_table(t, frame));
    }
    dt_tracked_vehicle *v = &t->slot[find_vehicle_slot(t->slot, t->cap, id, t->seed)];
    bool is_new = !is_kept(t, v, frame);
    if (is_new) {
        t->n += v->frame < 0;
        *v = (dt_tracked_vehicle){.id = id, .frame = frame};
    }
    *out_p = v;
    *is_new_p = is_new;
    return DT_OK;
}
