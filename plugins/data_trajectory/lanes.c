/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"
#include "following.h"
#include "tracks.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { NODE_ACCEL = 3, MAX_LANES_OF_PATH = 256, N_AHEAD = 5, CHAIN = 8 /* vehicles ahead that are followed */ };
#define REACH_M     4.0        /* a vehicle further from every lane is on none */
#define TURNED_RAD  (M_PI / 3) /* and so is one that points elsewhere */
#define PER_RAD_M   3.0        /* what a heading that differs is worth, in metres */
#define BEYOND_M    1.0        /* over a lane's end: so far, or it is on none */
#define LANE_M      3.5        /* where no width is known */
#define SIGHT_M     (LANES_STEP_M * (LANES_PATH - 1))
#define FAR_ASIDE_M 8.0
#define STANDS_MPS  0.1 /* below, a vehicle needs no heading to be in the way */
#define SAME_WAY    0.5 /* cosine between a vehicle's heading and the path's where it is */

static const int ahead_m[N_AHEAD] = {4, 8, 20, 32, 48}; /* where the path's direction is reported */

bool lanes_available(const dt_store_view *v)
{
    return v->n_lanes > 0;
}

/* ---- what is computed once --------------------------------------------------------------------------------------- */

static void measure_lane(lanes *l, int64_t lane)
{
    const dt_store_view *v = l->v;
    double *box = l->box + 4 * lane, s = 0;
    for (int64_t p = v->lane_point[lane]; p < v->lane_point[lane + 1]; p++) {
        const double *xy = v->lane_xy + 2 * p;
        const bool is_first = p == v->lane_point[lane];
        s = is_first ? 0 : s + hypot(xy[0] - xy[-2], xy[1] - xy[-1]);
        l->at[p] = s;
        for (int d = 0; d < 2; d++) {
            box[d] = is_first ? xy[d] : fmin(box[d], xy[d]);
            box[2 + d] = is_first ? xy[d] : fmax(box[2 + d], xy[d]);
        }
    }
}

dt_status lanes_init(lanes *l, const dt_host *h, const dt_store_view *v, int64_t past)
{
    *l = (lanes){.h = h, .v = v, .past = past};
    if (!lanes_available(v)) {
        return DT_OK;
    }
    l->n_into = h->alloc(h, (uint64_t)v->n_lanes * sizeof(*l->n_into));
    l->at = h->alloc(h, (uint64_t)v->n_lane_points * sizeof(*l->at));
    l->box = h->alloc(h, (uint64_t)v->n_lanes * 4 * sizeof(*l->box));
    if (l->at == NULL || l->box == NULL || l->n_into == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for the measures of %lld lanes", (long long)v->n_lanes);
    }
    for (int64_t i = 0; i < v->n_lanes; i++) {
        measure_lane(l, i);
    }
    for (int64_t k = 0; k < v->n_lane_links; k++) {
        l->n_into[v->lane_next[k]]++;
    }
    return DT_OK;
}

void lanes_fini(lanes *l)
{
    if (l->h != NULL) {
        l->h->release(l->h, l->at);
        l->h->release(l->h, l->box);
        l->h->release(l->h, l->n_into);
        *l = (lanes){0};
    }
}

/* ---- the lane of a vehicle --------------------------------------------------------------------------------------- */

static double wrap_angle(double a)
{
    return remainder(a, 2 * M_PI);
}

/* The point nearest to (x, y) of a line of n points, the first if several are: s m along it, side m to its left. */
static lane_place project_on_line(const double *xy, const double *at, int64_t n, double x, double y)
{
    lane_place best = {.lane = -1, .gap = INFINITY};
    for (int64_t i = 0; i + 1 < n; i++) {
        const double dx = xy[2 * i + 2] - xy[2 * i], dy = xy[2 * i + 3] - xy[2 * i + 1], length = at[i + 1] - at[i];
        const double px = x - xy[2 * i], py = y - xy[2 * i + 1];
        const double t = fmin(fmax((px * dx + py * dy) / length, 0), length);
        const double gap = hypot(px - t * dx / length, py - t * dy / length);
        if (gap < best.gap) {
            best = (lane_place){.s = at[i] + t, .side = (dx * py - dy * px) / length, .heading = atan2(dy, dx)};
            best.gap = gap;
            best.lane = i; /* the piece, until the caller sets the lane */
        }
    }
    return best;
}

bool lanes_is_driven(int32_t kind)
{
    return kind != DT_LANE_FOOT && kind != DT_LANE_BICYCLE;
}

static double length_of(const lanes *l, int64_t lane) /* m */
{
    return l->at[l->v->lane_point[lane + 1] - 1];
}

lane_place lanes_find(const lanes *l, int64_t map, const double pose[3])
{
    const dt_store_view *v = l->v;
    lane_place best = {.lane = -1};
    double least = INFINITY;
    for (int64_t i = map < 0 ? 0 : v->map_lane[map]; map >= 0 && i < v->map_lane[map + 1]; i++) {
        const double *box = l->box + 4 * i;
        if (!lanes_is_driven(v->lane_kind[i]) || pose[0] < box[0] - REACH_M || pose[0] > box[2] + REACH_M ||
            pose[1] < box[1] - REACH_M || pose[1] > box[3] + REACH_M) {
            continue;
        }
        const int64_t from = v->lane_point[i], n = v->lane_point[i + 1] - from;
        lane_place at = project_on_line(v->lane_xy + 2 * from, l->at + from, n, pose[0], pose[1]);
        const double turned = fabs(wrap_angle(pose[2] - at.heading));
        const bool is_beyond = at.gap * at.gap > at.side * at.side + BEYOND_M * BEYOND_M;
        if (at.gap > REACH_M || turned > TURNED_RAD || is_beyond || at.gap + PER_RAD_M * turned >= least) {
            continue;
        }
        least = at.gap + PER_RAD_M * turned;
        best = at;
        best.lane = i;
    }
    return best;
}

/* ---- its path ---------------------------------------------------------------------------------------------------- */

typedef struct path {
    double xy[2 * LANES_PATH], at[LANES_PATH]; /* centre line; m along it */
    double nx[LANES_PATH], ny[LANES_PATH];     /* unit vector to its left */
    double end_m;                              /* where the road ends, SIGHT_M: further than it is looked at */
    double node_m; /* where it next parts, meets another one or comes to a junction, SIGHT_M alike */
} path;

/* Direction of the last piece of a lane. */
static double end_heading(const dt_store_view *v, int64_t lane)
{
    const double *xy = v->lane_xy + 2 * (v->lane_point[lane + 1] - 1);
    return atan2(xy[1] - xy[-1], xy[0] - xy[-2]);
}

/* The successor that turns least from the end of this lane to the end of that one; -1: none. */
static int64_t straightest_successor(const dt_store_view *v, int64_t lane)
{
    const double heading = end_heading(v, lane);
    double least = INFINITY;
    int64_t best = -1;
    for (int64_t k = v->lane_next_ptr[lane]; k < v->lane_next_ptr[lane + 1]; k++) {
        const int64_t next = v->lane_next[k];
        const double turned = fabs(wrap_angle(end_heading(v, next) - heading));
        if (lanes_is_driven(v->lane_kind[next]) && turned < least) {
            least = turned;
            best = next;
        }
    }
    return best;
}

/* Number of the point where the straight piece at s m of a lane begins, s in [0, length]. */
static int64_t line_at(const lanes *l, int64_t lane, double s)
{
    const dt_store_view *v = l->v;
    int64_t lo = v->lane_point[lane], hi = v->lane_point[lane + 1] - 1;
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (l->at[mid] <= s) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* out [2]: the place at s m of a lane */
static void point_at(const lanes *l, int64_t lane, double s, double *out)
{
    const dt_store_view *v = l->v;
    const int64_t lo = line_at(l, lane, s);
    const double t = (s - l->at[lo]) / (l->at[lo + 1] - l->at[lo]);
    out[0] = v->lane_xy[2 * lo] + t * (v->lane_xy[2 * lo + 2] - v->lane_xy[2 * lo]);
    out[1] = v->lane_xy[2 * lo + 1] + t * (v->lane_xy[2 * lo + 3] - v->lane_xy[2 * lo + 1]);
}

static void make_normals(path *p)
{
    for (int k = 0; k < LANES_PATH; k++) {
        const int a = k > 0 ? k - 1 : 0, b = k + 1 < LANES_PATH ? k + 1 : k;
        const double dx = p->xy[2 * b] - p->xy[2 * a], dy = p->xy[2 * b + 1] - p->xy[2 * a + 1], d = hypot(dx, dy);
        p->nx[k] = d > 0 ? -dy / d : p->nx[a]; /* a path that comes back to where it was */
        p->ny[k] = d > 0 ? dx / d : p->ny[a];
    }
}

static void extend_straight(path *p, int k, double x, double y, double heading)
{
    for (int i = 0; k < LANES_PATH; k++, i++) {
        p->xy[2 * k] = x + i * LANES_STEP_M * cos(heading);
        p->xy[2 * k + 1] = y + i * LANES_STEP_M * sin(heading);
    }
}

/* Between a lane and the one after it: do ways part or meet there, or does a junction begin? */
static bool is_lane_junction(const lanes *l, int64_t lane, int64_t next)
{
    const dt_store_view *v = l->v;
    return v->lane_next_ptr[lane + 1] - v->lane_next_ptr[lane] > 1 || l->n_into[next] > 1 ||
           (v->lane_kind[next] == DT_LANE_JUNCTION && v->lane_kind[lane] != DT_LANE_JUNCTION);
}

static void follow_lanes(const lanes *l, const lane_place *at, path *p)
{
    int64_t lane = at->lane;
    double begin = -at->s; /* of the lane, on the path */
    int k = 0, n = 0;
    p->end_m = p->node_m = SIGHT_M;
    while (k < LANES_PATH) {
        const double end = begin + length_of(l, lane), s = k * LANES_STEP_M;
        if (s <= end) {
            point_at(l, lane, s - begin, p->xy + 2 * k++);
            continue;
        }
        const int64_t next = n++ < MAX_LANES_OF_PATH ? straightest_successor(l->v, lane) : -1;
        if (next < 0) {
            const double *last = l->v->lane_xy + 2 * (l->v->lane_point[lane + 1] - 1), h = end_heading(l->v, lane);
            p->end_m = end;
            extend_straight(p, k, last[0] + (s - end) * cos(h), last[1] + (s - end) * sin(h), h);
            break;
        }
        if (is_lane_junction(l, lane, next)) {
            p->node_m = fmin(p->node_m, end);
        }
        begin = end;
        lane = next;
    }
}

static void make_path(const lanes *l, const lane_place *at, const double pose[3], path *p)
{
    if (at->lane >= 0) {
        follow_lanes(l, at, p);
    } else {
        p->end_m = p->node_m = SIGHT_M;
        extend_straight(p, 0, pose[0], pose[1], pose[2]);
    }
    p->at[0] = 0;
    for (int k = 1; k < LANES_PATH; k++) { /* chords, a little shorter than the way */
        p->at[k] = p->at[k - 1] + hypot(p->xy[2 * k] - p->xy[2 * k - 2], p->xy[2 * k + 1] - p->xy[2 * k - 1]);
    }
    make_normals(p);
}

/* ---- a vehicle's own frame --------------------------------------------------------------------------------------- */

typedef struct frame {
    double cos_h, sin_h, flip;
} frame;

static void turn_into_frame(const frame *o, double dx, double dy, double *x, double *y)
{
    *x = dx * o->cos_h + dy * o->sin_h;
    *y = o->flip * (dy * o->cos_h - dx * o->sin_h);
}

/* Row 0: 0 0 and the normal at the vehicle; row k: the way from point k-1 to k, and how the normal changes. The path is
 * shifted by the vehicle's offset, so that it begins at the vehicle. Mirrored, what was left of the path is right. */
static void write_path(const path *p, const lane_place *at, const frame *o, float *out)
{
    const double side = at->lane >= 0 ? at->side : 0;
    double x[LANES_PATH], y[LANES_PATH], nx[LANES_PATH], ny[LANES_PATH];
    for (int k = 0; k < LANES_PATH; k++) {
        turn_into_frame(o, p->xy[2 * k] + side * p->nx[k] - p->xy[0], p->xy[2 * k + 1] + side * p->ny[k] - p->xy[1],
                        &x[k], &y[k]);
        turn_into_frame(o, o->flip * p->nx[k], o->flip * p->ny[k], &nx[k], &ny[k]);
    }
    for (int k = 0; k < LANES_PATH; k++, out += LANES_PATH_COLUMNS) {
        out[0] = k > 0 ? (float)(x[k] - x[k - 1]) : 0.f;
        out[1] = k > 0 ? (float)(y[k] - y[k - 1]) : 0.f;
        out[2] = (float)(k > 0 ? nx[k] - nx[k - 1] : nx[k]);
        out[3] = (float)(k > 0 ? ny[k] - ny[k - 1] : ny[k]);
    }
}

/* ---- what a vehicle sees of its lane ----------------------------------------------------------------------------- */

static double width_at(const dt_store_view *v, int64_t lane)
{
    const double w = (double)v->lane_width[v->lane_point[lane]];
    return w > 0 ? w : LANE_M;
}

/* 2 at 0 m, 0 from 100 m on: what is far away, and what is not there, is encoded alike. */
static float nearness_of_distance(double m)
{
    return (float)fmax(0, 2 - m / 50);
}

static void write_lane(const lanes *l, const lane_place *at, const path *p, const double pose[3], const frame *o,
                       float *out)
{
    const dt_store_view *v = l->v;
    memset(out, 0, LANES_OWN * sizeof(*out));
    if (at->lane < 0) {
        return;
    }
    const int32_t kind = v->lane_kind[at->lane];
    const int64_t left = v->lane_left[at->lane], right = v->lane_right[at->lane];
    out[0] = 1.f;
    out[1] = (float)(o->flip * at->side / 2);
    out[2] = (float)(o->flip * sin(pose[2] - at->heading) * 5);
    out[3] = (float)(2 * (width_at(v, at->lane) / LANE_M - 1));
    out[4] = nearness_of_distance(p->end_m);
    out[15] = nearness_of_distance(p->node_m);
    out[5] = (o->flip > 0 ? left : right) >= 0 ? 1.f : 0.f;
    out[6] = (o->flip > 0 ? right : left) >= 0 ? 1.f : 0.f;
    out[7] = kind == DT_LANE_HIGHWAY ? 1.f : 0.f;
    out[8] = kind == DT_LANE_RAMP ? 1.f : 0.f;
    out[9] = kind == DT_LANE_JUNCTION ? 1.f : 0.f;
    for (int i = 0; i < N_AHEAD; i++) {
        const int k = ahead_m[i] / (int)LANES_STEP_M;
        double x = 0, y = 0; /* the normal, a quarter turn from the path */
        turn_into_frame(o, o->flip * p->nx[k], o->flip * p->ny[k], &x, &y);
        out[10 + i] = (float)atan2(-x, y);
    }
}

/* ---- vehicles ahead -------------------------------------------------------------------------------------------- */

typedef struct moment { /* the frame that is read */
    const dt_store_view *v;
    const following *past;
    const float *node; /* [to - from,9] */
    int64_t from, to;  /* its rows */
} moment;

typedef struct slot {
    double gap, speed, accel; /* m bumper to bumper, m/s, m/s^2; gap INFINITY: none */
    double length;
    int64_t row;
} slot;

static void insert_slot(slot *of, int n, slot s)
{
    for (int i = 0; i < n; i++) {
        if (s.gap < of[i].gap) {
            const slot moved = of[i];
            of[i] = s;
            s = moved;
        }
    }
}

static void write_slots(const slot *of, int n, double speed, float *out)
{
    for (int i = 0; i < n; i++, out += LANES_SLOT) {
        const bool is_there = isfinite(of[i].gap);
        out[0] = nearness_of_distance(of[i].gap);
        out[1] = (float)(is_there ? (of[i].speed - speed) / 5 : 0);
        out[2] = is_there ? 1.f : 0.f;
        out[3] = (float)(is_there ? of[i].accel / 2 : 0);
    }
}

/* How far vehicle i of the frame gets in whole seconds if it follows, beyond what its speed gives. */
static void write_following(const moment *m, const slot *ahead, int64_t i, double speed, float *out)
{
    follower chain[CHAIN + 1];
    int n = 0;
    chain[n++] = (follower){i, ahead[0].gap, speed};
    for (int k = 0; k < CHAIN && isfinite(ahead[k].gap); k++) {
        const double next = k + 1 < CHAIN ? ahead[k + 1].gap : INFINITY;
        chain[n++] = (follower){ahead[k].row - m->from, next - ahead[k].gap - ahead[k].length, ahead[k].speed};
    }
    for (int t = 1; t <= LANES_FOLLOWED_S; t++) {
        out[t - 1] = (float)((following_distance(m->past, chain, n, t) - speed * t) / 10);
    }
}

/* Of row r: the nearest vehicles ahead on its path, and on both sides of it. */
static void write_ahead(const moment *m, int64_t r, const lane_place *at, const path *p, const frame *o, float *out)
{
    const dt_store_view *v = m->v;
    const double side = at->lane >= 0 ? at->side : 0, wide = at->lane >= 0 ? width_at(v, at->lane) : LANE_M;
    slot own[CHAIN], beside[2][LANES_BESIDE]; /* left, right */
    for (int i = 0; i < CHAIN; i++) {
        own[i].gap = INFINITY;
    }
    for (int i = 0; i < LANES_BESIDE; i++) {
        beside[0][i].gap = beside[1][i].gap = INFINITY;
    }
    for (int64_t q = m->from; q < m->to; q++) {
        const double *pose = v->pose + 3 * q;
        if (q == r || hypot(pose[0] - p->xy[0], pose[1] - p->xy[1]) > SIGHT_M) {
            continue;
        }
        const lane_place j = project_on_line(p->xy, p->at, LANES_PATH, pose[0], pose[1]);
        const bool is_along = tracks_has_heading(v, q) ? cos(pose[2] - j.heading) >= SAME_WAY
                                                       : fabs((double)v->motion[4 * q]) < STANDS_MPS;
        if (j.s <= 0 || j.gap > FAR_ASIDE_M || !is_along) {
            continue;
        }
        const double aside = o->flip * (j.side - side) / wide;
        const double half = 0.5 * (double)(tracks_length(v, q) + tracks_length(v, r));
        const slot s = {j.s - half, (double)v->motion[4 * q],
                        (double)m->node[DT_NODE_FEATURES * (q - m->from) + NODE_ACCEL], (double)tracks_length(v, q), q};
        if (fabs(aside) < 0.5) {
            insert_slot(own, CHAIN, s);
        } else if (fabs(aside) < 1.5) {
            insert_slot(beside[aside < 0], LANES_BESIDE, s);
        }
    }
    const double speed = (double)v->motion[4 * r];
    write_slots(own, LANES_AHEAD, speed, out);
    write_slots(beside[0], LANES_BESIDE, speed, out + LANES_AHEAD * LANES_SLOT);
    write_slots(beside[1], LANES_BESIDE, speed, out + (LANES_AHEAD + LANES_BESIDE) * LANES_SLOT);
    write_following(m, own, r - m->from, speed, out + (LANES_AHEAD + 2 * LANES_BESIDE) * LANES_SLOT);
}

dt_status lanes_read(const lanes *l, int64_t scene, int64_t frame_idx, const float *node, double flip, float *lane,
                     float *path_out)
{
    const dt_store_view *v = l->v;
    const int64_t map = lanes_available(v) ? v->scene_map[scene] : -1;
    const int64_t from = v->frame_row[frame_idx], to = v->frame_row[frame_idx + 1];
    following past;
    const moment m = {v, &past, node, from, to};
    DT_TRY_H(following_init(&past, l->h, v, scene, frame_idx, l->past));
    for (int64_t r = from; r < to; r++, lane += LANES_COLUMNS, path_out += LANES_PATH * LANES_PATH_COLUMNS) {
        const double *pose = v->pose + 3 * r;
        if (!tracks_has_heading(v, r)) { /* no lane, no path, nothing ahead */
            memset(lane, 0, LANES_COLUMNS * sizeof(*lane));
            memset(path_out, 0, LANES_PATH * LANES_PATH_COLUMNS * sizeof(*path_out));
            continue;
        }
        const frame o = {cos(pose[2]), sin(pose[2]), flip};
        const lane_place at = lanes_find(l, map, pose);
        path p;
        make_path(l, &at, pose, &p);
        write_path(&p, &at, &o, path_out);
        write_lane(l, &at, &p, pose, &o, lane);
        write_ahead(&m, r, &at, &p, &o, lane + LANES_OWN);
    }
    following_fini(&past);
    return DT_OK;
}
