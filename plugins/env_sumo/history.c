/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

dt_status sumo_history_init(history *t, const dt_host *h, int64_t T, double every_s, double dt_s)
{
    *t = (history){.h = h, .T = T, .every_s = every_s, .dt_s = dt_s};
    if (T == 0) {
        return DT_OK;
    }
    t->frames = dt_motion_frames(T, every_s, dt_s);
    t->n = h->alloc(h, (uint64_t)t->frames * sizeof(*t->n));
    return t->n != NULL ? DT_OK : DT_FAIL_H(h, DT_ENOMEM, "no memory for %lld steps of a past", (long long)t->frames);
}

void sumo_history_fini(history *t)
{
    if (t->h != NULL) {
        t->h->release(t->h, t->state);
        t->h->release(t->h, t->n);
    }
    *t = (history){0};
}

void sumo_history_reset(history *t)
{
    t->now = 0;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static history_state *history_frame(const history *t, int64_t step)
{
    return t->state + step % t->frames * t->cap;
}

static dt_status widen_frame(history *t, int64_t n)
{
    const int64_t cap = 2 * n;
    history_state *wider = t->h->alloc(t->h, (uint64_t)(t->frames * cap) * sizeof(*wider));
    if (wider == NULL) {
        return DT_FAIL_H(t->h, DT_ENOMEM, "no memory for the past of %lld vehicles", (long long)cap);
    }
    if (t->state != NULL) {
        for (int64_t i = 0; i < t->frames; i++) {
            memcpy(wider + i * cap, t->state + i * t->cap, (size_t)t->cap * sizeof(*wider));
        }
    }
    t->h->release(t->h, t->state);
    t->state = wider;
    t->cap = cap;
    return DT_OK;
}

dt_status history_begin_step(history *t, int64_t n, history_state **frame_p)
{
    if (n > t->cap) {
        DT_TRY_H(widen_frame(t, n));
    }
    t->n[t->now % t->frames] = n;
    *frame_p = n > 0 ? history_frame(t, t->now) : NULL;
    return DT_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const history_state *v = a, *w = b;
    return (v->number > w->number) - (v->number < w->number);
}

void history_end_step(history *t)
{
    const int64_t n = t->n[t->now % t->frames];
    if (n > 0) {
        qsort(history_frame(t, t->now), (size_t)n, sizeof(*t->state), compare_numbers);
    }
    t->now++;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

/* `back` steps of SUMO ago; NULL: it was not there. */
static const dt_motion_pose *find_pose(const history *t, int64_t number, int64_t back)
{
    const history_state key = {.number = number};
    const int64_t step = t->now - 1 - back;
    if (back >= t->frames || step < 0 || t->n[step % t->frames] == 0) {
        return NULL;
    }
    const history_state *s =
        bsearch(&key, history_frame(t, step), (size_t)t->n[step % t->frames], sizeof(*t->state), compare_numbers);
    return s != NULL ? &s->pose : NULL;
}

/* The same at any time. */
static bool pose_at(const history *t, int64_t number, double ago_s, dt_motion_pose *out)
{
    const double steps = ago_s / t->dt_s, whole = floor(steps + DT_MOTION_STEP_TOL), share = fmax(0, steps - whole);
    const dt_motion_pose *newer = find_pose(t, number, (int64_t)whole);
    if (newer == NULL) {
        return false;
    }
    *out = *newer;
    if (share <= DT_MOTION_STEP_TOL) {
        return true;
    }
    const dt_motion_pose *older = find_pose(t, number, (int64_t)whole + 1);
    if (older != NULL) {
        dt_motion_interpolate(out, older, share);
    }
    return older != NULL;
}

void sumo_history_write(const history *t, int64_t number, float *row)
{
    dt_motion_pose now, then;
    memset(row, 0, (size_t)t->T * DT_MOTION_COLUMNS * sizeof(*row));
    if (!pose_at(t, number, 0, &now)) {
        return;
    }
    for (int64_t k = 0; k < t->T; k++, row += DT_MOTION_COLUMNS) {
        const double ago_s = (double)(t->T - 1 - k) * t->every_s;
        if (pose_at(t, number, ago_s, &then)) {
            dt_motion_row(&now, &then, ago_s, row);
        }
    }
}
