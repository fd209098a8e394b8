/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the values of a store are such as an import could have written. See store_opened.h.
 */
#include <config.h>

#include "traffic/store/store_opened.h"
#include "base/err.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { PIECE = 1152 }; /* values: whole rows of 1, 3, 4 and 9 columns */
_Static_assert(PIECE % 3 == 0 && PIECE % 4 == 0 && PIECE % DT_NODE_FEATURES == 0, "of whole rows");

typedef struct range {
    const char *name;
    double least, most;
    bool may_be_unknown; /* NAN, in a store whose store.json counts unknown values */
} range;

#define FINITE -(double)FLT_MAX, (double)FLT_MAX, false
#define PLACE  -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false
#define SPEED  -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false
#define SIZE   0, DT_SIZE_MAX_M

static const range pose_range[3] = {{"x", PLACE}, {"y", PLACE}, {"heading", -DT_HEADING_MAX, DT_HEADING_MAX, true}};
static const range motion_range[4] = {{"speed", SPEED},
                                      {"acceleration", -(double)FLT_MAX, (double)FLT_MAX, true},
                                      {"length", SIZE, true},
                                      {"width", SIZE, true}};
static const range node_range[DT_NODE_FEATURES] = {{"x", PLACE},
                                                   {"y", PLACE},
                                                   {"speed", SPEED},
                                                   {"acceleration", FINITE},
                                                   {"sin_heading", -1, 1, false},
                                                   {"cos_heading", -1, 1, false},
                                                   {"length", SIZE, false},
                                                   {"stop_distance", 0, DT_STOP_DISTANCE_MAX_M, false},
                                                   {"controlled", 0, 1, false}};
static const range edge_range[DT_EDGE_FEATURES] = {
    {"longitudinal_gap", PLACE},
    {"lateral_offset", PLACE},
    {"closing_speed", -2 * DT_SPEED_MAX_MPS, 2 * DT_SPEED_MAX_MPS, false},
    {"inverse_ttc", 0, DT_ITTC_MAX, false}};
static const range centre_range[2] = {{"x", PLACE}, {"y", PLACE}};
static const range accel_range[1] = {{"acceleration", FINITE}};
static const range stop_range[1] = {{"stop_distance", 0, DT_STOP_DISTANCE_MAX_M, false}};

static dt_status fail_out_of_range(const dt_store *s, const char *array, const range *column, int64_t row, double value)
{
    return DT_FAIL(DT_EDATA, "%s/%s.npy: %s of row %" PRId64 " is %g, outside [%g, %g]", s->path, array, column->name,
                   row, value, column->least, column->most);
}

/* A flag of a whole piece first, of contiguous values against limits that repeat: a loop of a fixed length, which
 * compilers vectorise. Where there is one, and in the last piece, values are looked at one by one. */
#define CHECK_COLUMNS(suffix, T)                                                                                       \
    static bool is_bad_##suffix(const T *p, const T *least, const T *most)                                             \
    {                                                                                                                  \
        int bad = 0;                                                                                                   \
        for (int k = 0; k < PIECE; k++) {                                                                              \
            bad |= !(p[k] >= least[k]) | !(p[k] <= most[k]);                                                           \
        }                                                                                                              \
        return bad != 0;                                                                                               \
    }                                                                                                                  \
    /* rows [from, end) */                                                                                             \
    static dt_status check_##suffix(dt_store_look *l, const char *array, const T *p, int64_t from, int64_t end,        \
                                    int width, const range *column)                                                    \
    {                                                                                                                  \
        T least[PIECE], most[PIECE];                                                                                   \
        const bool has_unknown = dt_store_has_unknown(&l->s->count);                                                   \
        for (int k = 0; k < PIECE; k++) {                                                                              \
            least[k] = (T)column[k % width].least;                                                                     \
            most[k] = (T)column[k % width].most;                                                                       \
        }                                                                                                              \
        for (int64_t i = from * width; p != NULL && i < end * width; i += PIECE) {                                     \
            const int m = end * width - i < PIECE ? (int)(end * width - i) : PIECE;                                    \
            dt_store_count_read_bytes(l, (size_t)m * sizeof(*p));                                                      \
            if (m == PIECE && !is_bad_##suffix(p + i, least, most)) {                                                  \
                continue;                                                                                              \
            }                                                                                                          \
            for (int k = 0; k < m; k++) {                                                                              \
                const T x = p[i + k];                                                                                  \
                const bool is_unknown = has_unknown && isnan(x) && column[k % width].may_be_unknown;                   \
                if (!(x >= least[k] && x <= most[k]) && !is_unknown) {                                                 \
                    return fail_out_of_range(l->s, array, &column[k % width], (i + k) / width, (double)x);             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return DT_OK;                                                                                                  \
    }
CHECK_COLUMNS(f32, float)
CHECK_COLUMNS(f64, double)

/* Times rise within a scene. */
static dt_status check_times(dt_store_look *l)
{
    const dt_store *s = l->s;
    const dt_store_view *v = &s->view;
    static const range time = {"time", -DBL_MAX, DBL_MAX, false};
    for (int64_t scene = 0; scene < v->n_scenes; scene++) {
        for (int64_t f = v->scene_frame[scene]; f < v->scene_frame[scene + 1]; f++) {
            const double *t = v->frame_time + f;
            dt_store_count_read_bytes(l, sizeof(*t));
            if (!(*t >= time.least && *t <= time.most)) {
                return fail_out_of_range(s, "frame_time", &time, f, *t);
            }
            if (f > v->scene_frame[scene] && !(t[0] > t[-1])) {
                return DT_FAIL(DT_EDATA,
                               "%s/frame_time.npy: time of row %" PRId64 " is %.9g s, after %.9g s: times rise within "
                               "a scene",
                               s->path, f, t[0], t[-1]);
            }
        }
    }
    return DT_OK;
}

/* A mean is between the values, and a deviation is no more than what is between them; but for rounding. */
static bool is_possible(const dt_feature_stat *s)
{
    const double room = 1e-6 * (fabs(s->min) + fabs(s->max));
    return s->min <= s->max && s->mean >= s->min - room && s->mean <= s->max + room && s->std >= 0 &&
           s->std <= s->max - s->min + room;
}

/* Features in blocks lie within their statistics (packed.h), and so these within what features can be. */
static dt_status check_statistics(const dt_store *s, const char *kind, const dt_feature_stat *stat, int n,
                                  const range *column)
{
    for (int d = 0; d < n; d++) {
        if (stat[d].min < column[d].least || stat[d].max > column[d].most) {
            return DT_FAIL(DT_EDATA, "%s/store.json: statistics.%s: %s runs from %g to %g, outside [%g, %g]", s->path,
                           kind, column[d].name, stat[d].min, stat[d].max, column[d].least, column[d].most);
        }
        if (!is_possible(&stat[d])) {
            return DT_FAIL(DT_EDATA,
                           "%s/store.json: statistics.%s: %s with mean %g and std %g cannot run from %g to %g", s->path,
                           kind, column[d].name, stat[d].mean, stat[d].std, stat[d].min, stat[d].max);
        }
    }
    return DT_OK;
}

/* As many as in store.json. */
static dt_status check_unknown(dt_store_look *l)
{
    const dt_store *s = l->s;
    const dt_store_view *v = &s->view;
    dt_store_counts found = {.rows = 0};
    for (int64_t r = 0; r < v->n_rows && dt_store_has_unknown(&s->count); r++) {
        dt_store_count_read_bytes(l, 3 * sizeof(*v->pose) + 4 * sizeof(*v->motion));
        dt_store_count_unknown(&found, v->pose + 3 * r, v->motion + 4 * r);
    }
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        if (found.unknown[k] != s->count.unknown[k]) {
            return DT_FAIL(DT_EDATA, "%s/store.json: unknown.%s is %" PRId64 ", and it is unknown in %" PRId64 " rows",
                           s->path, dt_unknown_name[k], s->count.unknown[k], found.unknown[k]);
        }
    }
    return DT_OK;
}

static dt_status check_recorded(dt_store_look *l)
{
    const dt_store_view *v = &l->s->view;
    DT_TRY(check_times(l));
    DT_TRY(check_f64(l, "pose", v->pose, 0, v->n_rows, 3, pose_range));
    DT_TRY(check_f64(l, "frame_centre", v->frame_centre, 0, v->n_frames, 2, centre_range));
    DT_TRY(check_f32(l, "motion", v->motion, 0, v->n_rows, 4, motion_range));
    DT_TRY(check_unknown(l));
    DT_TRY(check_f32(l, "node", v->node, 0, v->n_rows, DT_NODE_FEATURES, node_range));
    return check_f32(l, "accel_centred", v->accel_centred, 0, v->n_rows, 1, accel_range);
}

static dt_status check_other_ranges(dt_store_look *l)
{
    const dt_store *s = l->s;
    DT_TRY(check_f32(l, "stop_distance", s->array[A_stop_distance].data, 0, s->view.n_rows, 1, stop_range));
    DT_TRY(check_statistics(s, "node", s->node_stat, DT_NODE_FEATURES, node_range));
    return check_statistics(s, "edge", s->edge_stat, DT_EDGE_FEATURES, edge_range);
}

dt_status dt_store_check_ranges(dt_store_look *l, int part)
{
    const dt_store_view *v = &l->s->view;
    const int64_t half = v->n_edges / 2;
    switch (part) {
    case 0:
        return check_recorded(l);
    case 1:
        return check_f32(l, "edge", v->edge, 0, half, DT_EDGE_FEATURES, edge_range);
    case 2:
        return check_f32(l, "edge", v->edge, half, v->n_edges, DT_EDGE_FEATURES, edge_range);
    default:
        return check_other_ranges(l);
    }
}
