/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/store_tracks.h"
#include "traffic/store/npy.h"
#include "traffic/store/smooth.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FORGET_ROWS = 1 << 18 };

typedef struct maps {
    dt_npy frame_row, row_track, track_ptr, track_row, risk;
    dt_npy frame_time, motion, accel_centred; /* with smoothing */
} maps;

static dt_status open_maps(const char *folder, double smooth_s, const dt_store_counts *c, maps *m)
{
    dt_str p = {0};
    dt_status st = DT_OK;
#define OPEN(member, call)                                                                                             \
    if (st == DT_OK) {                                                                                                 \
        dt_str_clear(&p);                                                                                              \
        dt_str_addf(&p, "%s/" #member ".npy", folder);                                                                 \
        st = dt_str_status(&p) == DT_OK ? call : DT_ENOMEM;                                                            \
    }
    OPEN(frame_row, dt_npy_map(dt_str_text(&p), DT_I64, 0, &m->frame_row))
    OPEN(row_track, dt_npy_map(dt_str_text(&p), DT_I32, 0, &m->row_track))
    OPEN(risk, dt_npy_map_rw(dt_str_text(&p), DT_U8, 0, &m->risk))
    OPEN(track_ptr, dt_npy_create_mapped(dt_str_text(&p), DT_I64, 0, c->tracks + 1, &m->track_ptr))
    OPEN(track_row, dt_npy_create_mapped(dt_str_text(&p), DT_I64, 0, c->rows, &m->track_row))
    if (smooth_s > 0) {
        OPEN(frame_time, dt_npy_map(dt_str_text(&p), DT_F64, 0, &m->frame_time))
        OPEN(motion, dt_npy_map(dt_str_text(&p), DT_F32, 4, &m->motion))
        OPEN(accel_centred, dt_npy_create_mapped(dt_str_text(&p), DT_F32, 0, c->rows, &m->accel_centred))
    }
#undef OPEN
    dt_str_fini(&p);
    return st;
}

/* After every so many rows: the passes over the whole recording leave their pages to the page cache. */
static void forget_read_pages(const maps *m, int64_t row)
{
    if (row % FORGET_ROWS == FORGET_ROWS - 1) {
        dt_npy_release_pages(&m->frame_row);
        dt_npy_release_pages(&m->row_track);
        dt_npy_release_pages(&m->track_ptr);
        dt_npy_release_pages(&m->track_row);
        dt_npy_release_pages(&m->risk);
        dt_npy_release_pages(&m->motion);
        dt_npy_release_pages(&m->accel_centred);
    }
}

/* Counting sort of rows by track; rows come in time order, so each list is too. */
static void list_tracks(const dt_store_counts *c, const maps *m)
{
    const int32_t *row_track = m->row_track.data;
    int64_t *ptr = (int64_t *)(uintptr_t)m->track_ptr.data, *track_row = (int64_t *)(uintptr_t)m->track_row.data;
    for (int64_t r = 0; r < c->rows; r++) {
        ptr[row_track[r] + 1]++;
        forget_read_pages(m, r);
    }
    for (int64_t t = 0; t < c->tracks; t++) {
        ptr[t + 1] += ptr[t];
    }
    for (int64_t r = 0; r < c->rows; r++) {
        track_row[ptr[row_track[r]]++] = r;
        forget_read_pages(m, r);
    }
    for (int64_t t = c->tracks; t > 0; t--) { /* every cursor is at its end now, which is the next one's begin */
        ptr[t] = ptr[t - 1];
    }
    ptr[0] = 0;
}

/* The last index i with a[i] <= x, in n ascending numbers, a[0] <= x. */
static int64_t last_not_above(const int64_t *a, int64_t n, int64_t x)
{
    int64_t lo = 0, hi = n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (a[mid] <= x) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Centred accelerations of a track, and DT_RISK_NOW where they are hard braking. room: of 5 numbers a frame. */
static void label_braking(const maps *m, double smooth_s, int64_t begin, int64_t end, double *room)
{
    const int64_t *row = (const int64_t *)m->track_row.data + begin, *frame_row = m->frame_row.data, n = end - begin;
    const float *motion = m->motion.data;
    float *centred = (float *)(uintptr_t)m->accel_centred.data;
    uint8_t *risk = (uint8_t *)(uintptr_t)m->risk.data;
    double *time = room, *speed = room + n, *accel = room + 2 * n;
    int64_t frame = last_not_above(frame_row, m->frame_row.rows, row[0]);
    for (int64_t i = 0; i < n; i++) {
        while (frame_row[frame + 1] <= row[i]) {
            frame++;
        }
        time[i] = ((const double *)m->frame_time.data)[frame];
        speed[i] = (double)motion[4 * row[i]];
    }
    dt_smooth_track(time, speed, n, smooth_s, room + 3 * n, accel);
    for (int64_t i = 0; i < n; i++) {
        centred[row[i]] = (float)accel[i];
        if (dt_risk_is_now(accel[i], 0.0)) {
            risk[row[i]] = DT_RISK_NOW;
        }
        forget_read_pages(m, begin + i);
    }
}

static dt_status label_all_braking(const dt_store_counts *c, double smooth_s, const maps *m)
{
    const int64_t *ptr = m->track_ptr.data;
    int64_t longest = 0;
    for (int64_t t = 0; t < c->tracks; t++) {
        longest = ptr[t + 1] - ptr[t] > longest ? ptr[t + 1] - ptr[t] : longest;
    }
    double *room = dt_alloc_n((size_t)longest, 5 * sizeof(*room));
    if (room == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to smooth a track of %" PRId64 " frames", longest);
    }
    for (int64_t t = 0; t < c->tracks; t++) {
        label_braking(m, smooth_s, ptr[t], ptr[t + 1], room);
    }
    dt_free(room);
    return DT_OK;
}

/* In: DT_RISK_NOW where dangerous in the frame itself, DT_RISK_UNKNOWN where that is unknown, else 0. From the last row
 * of a track to its first: the nearest danger ahead and the number of frames recorded without a hole are all that a row
 * needs to know of its future. */
static void label_track(const maps *m, int64_t ahead, int64_t begin, int64_t end, dt_store_counts *c)
{
    const int64_t *row = m->track_row.data, *frame_row = m->frame_row.data;
    uint8_t *risk = (uint8_t *)(uintptr_t)m->risk.data;
    int64_t n_frames = m->frame_row.rows - 1;
    int64_t last = last_not_above(frame_row, n_frames + 1, row[end - 1]);
    int64_t nearest_now = INT64_MAX, frame = last, frame_after = last, run = 0;
    for (int64_t p = end - 1; p >= begin; p--) {
        while (frame_row[frame] > row[p]) {
            frame--;
        }
        /* run: frames recorded without a hole right after this one */
        run = p == end - 1 ? 0 : frame_after == frame + 1 ? run + 1 : 0;
        frame_after = frame;
        uint8_t *state = &risk[row[p]];
        const bool is_unknown = *state == DT_RISK_UNKNOWN;
        frame_after = is_unknown ? INT64_MAX : frame_after; /* like a frame that was not recorded */
        if (*state == DT_RISK_NOW) {
            nearest_now = frame;
        } else if (nearest_now != INT64_MAX && nearest_now - frame <= ahead) {
            *state = DT_RISK_POSITIVE;
        } else {
            *state = run >= ahead && !is_unknown ? DT_RISK_NEGATIVE : DT_RISK_UNKNOWN;
        }
        c->risk[*state]++;
        forget_read_pages(m, p);
    }
}

static dt_status flush_maps(const maps *m)
{
    DT_TRY(m->accel_centred.rows > 0 ? dt_npy_sync(&m->accel_centred, "accel_centred.npy") : DT_OK);
    DT_TRY(dt_npy_sync(&m->track_ptr, "track_ptr.npy"));
    DT_TRY(dt_npy_sync(&m->track_row, "track_row.npy"));
    return dt_npy_sync(&m->risk, "risk.npy");
}

dt_status dt_store_tracks_write(const char *folder, double frame_rate_hz, double smooth_s, bool is_flushed,
                                dt_store_counts *count)
{
    maps m = {0};
    int64_t ahead = (int64_t)floor(DT_RISK_AHEAD_S * frame_rate_hz + 1e-6);
    dt_status st = open_maps(folder, smooth_s, count, &m);
    if (st != DT_OK) {
        goto out;
    }
    const int64_t *ptr = m.track_ptr.data;
    list_tracks(count, &m);
    memset(count->risk, 0, sizeof(count->risk));
    if (smooth_s > 0) {
        st = label_all_braking(count, smooth_s, &m);
    }
    for (int64_t t = 0; t < count->tracks && st == DT_OK; t++) {
        label_track(&m, ahead, ptr[t], ptr[t + 1], count);
    }
    if (st == DT_OK && is_flushed) {
        st = flush_maps(&m);
    }
out:
    dt_npy_unmap(&m.frame_row);
    dt_npy_unmap(&m.row_track);
    dt_npy_unmap(&m.track_ptr);
    dt_npy_unmap(&m.track_row);
    dt_npy_unmap(&m.risk);
    dt_npy_unmap(&m.frame_time);
    dt_npy_unmap(&m.motion);
    dt_npy_unmap(&m.accel_centred);
    return st;
}
