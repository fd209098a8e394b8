/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles in sight while a scene streams by. See live.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "traffic/store/live.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "traffic/import/names.h"

#include <math.h>

static bool is_kept(const dt_live *t, const dt_live_vehicle *v, int64_t frame)
{
    return v->frame >= 0 && frame - v->frame <= t->gap;
}

static size_t find(const dt_live_vehicle *slot, size_t cap, int64_t id, uint64_t seed)
{
    size_t s = (size_t)dt_hash64(&id, sizeof(id), seed) & (cap - 1);
    while (slot[s].frame >= 0 && slot[s].id != id) {
        s = (s + 1) & (cap - 1);
    }
    return s;
}

/* Half full: into a fresh table, without those out of sight. */
static dt_status rebuild(dt_live *t, int64_t frame)
{
    size_t kept = 0, cap = 64;
    for (size_t i = 0; i < t->cap; i++) {
        kept += is_kept(t, &t->slot[i], frame);
    }
    while (cap < 4 * (kept + 1)) {
        cap *= 2;
    }
    dt_live_vehicle *slot = dt_alloc_n(cap, sizeof(*slot));
    if (slot == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %zu vehicles in sight", kept);
    }
    for (size_t i = 0; i < cap; i++) {
        slot[i].frame = -1;
    }
    for (size_t i = 0; i < t->cap; i++) {
        if (is_kept(t, &t->slot[i], frame)) {
            slot[find(slot, cap, t->slot[i].id, t->seed)] = t->slot[i];
        }
    }
    dt_free(t->slot);
    t->slot = slot;
    t->cap = cap;
    t->n = kept;
    return DT_OK;
}

void dt_live_init(dt_live *t, double frame_rate_hz)
{
    *t = (dt_live){.gap = (int64_t)floor(DT_TRACK_GAP_S * frame_rate_hz + 1e-6), .seed = dt_names_seed()};
    t->gap = t->gap < 1 ? 1 : t->gap;
}

void dt_live_clear(dt_live *t)
{
    for (size_t i = 0; i < t->cap; i++) {
        t->slot[i].frame = -1;
    }
    t->n = 0;
}

void dt_live_fini(dt_live *t)
{
    dt_free(t->slot);
    *t = (dt_live){0};
}

dt_status dt_live_get(dt_live *t, int64_t id, int64_t frame, dt_live_vehicle **out_p, bool *is_new_p)
{
    if (2 * (t->n + 1) > t->cap) {
        DT_TRY(rebuild(t, frame));
    }
    dt_live_vehicle *v = &t->slot[find(t->slot, t->cap, id, t->seed)];
    bool is_new = !is_kept(t, v, frame);
    if (is_new) {
        t->n += v->frame < 0;
        *v = (dt_live_vehicle){.id = id, .frame = frame};
    }
    *out_p = v;
    *is_new_p = is_new;
    return DT_OK;
}
