/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/map/lane_builder.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- lines ------------------------------------------------------------------------------------------------------- */

dt_status dt_polyline_add(dt_polyline *p, double x, double y)
{
    if (p->n == p->cap) {
        const int64_t cap = p->cap == 0 ? 32 : 2 * p->cap;
        double *grown = dt_realloc(p->xy, 2 * (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for a line of %" PRId64 " points", cap);
        }
        p->xy = grown;
        p->cap = cap;
    }
    p->xy[2 * p->n] = x;
    p->xy[2 * p->n + 1] = y;
    p->n++;
    return DT_OK;
}

void dt_polyline_reverse(dt_polyline *p)
{
    for (int64_t i = 0, k = p->n - 1; i < k; i++, k--) {
        for (int d = 0; d < 2; d++) {
            const double kept = p->xy[2 * i + d];
            p->xy[2 * i + d] = p->xy[2 * k + d];
            p->xy[2 * k + d] = kept;
        }
    }
}

void dt_polyline_clear(dt_polyline *p)
{
    p->n = 0;
}

void dt_polyline_fini(dt_polyline *p)
{
    dt_free(p->xy);
    *p = (dt_polyline){.n = 0};
}

static double length_from(const dt_polyline *p, int64_t i)
{
    return hypot(p->xy[2 * i + 2] - p->xy[2 * i], p->xy[2 * i + 3] - p->xy[2 * i + 1]);
}

/* A walk along a line: the next point of it, and how much of its length is before. */
typedef struct walk {
    const dt_polyline *line;
    double length, before; /* m: of all, up to point at */
    int64_t at;
} walk;

static walk walk_begin(const dt_polyline *line)
{
    walk w = {.line = line};
    for (int64_t i = 0; i + 1 < line->n; i++) {
        w.length += length_from(line, i);
    }
    return w;
}

/* The share of the length at which its next point is; a line without a length has all its points at 0, but the last. */
static double next_share(const walk *w)
{
    if (w->at + 1 >= w->line->n - 1) {
        return 1;
    }
    return w->length > 0 ? fmin((w->before + length_from(w->line, w->at)) / w->length, 1) : 0;
}

static void step_walk(walk *w)
{
    if (w->at + 1 < w->line->n - 1) {
        w->before += length_from(w->line, w->at);
        w->at++;
    }
}

/* The place at a share that is not above that of the next point. */
static void place_at_share(const walk *w, double share, double xy[2])
{
    const double *a = w->line->xy + 2 * w->at, *b = a + 2, piece = length_from(w->line, w->at);
    const double t = share >= 1 ? 1 : piece > 0 ? fmin(fmax((share * w->length - w->before) / piece, 0), 1) : 0;
    for (int d = 0; d < 2; d++) {
        xy[d] = t == 1 ? b[d] : a[d] + t * (b[d] - a[d]);
    }
}

static dt_status add_middle(const double *l, const double *r, dt_polyline *line, double *width)
{
    width[line->n] = hypot(l[0] - r[0], l[1] - r[1]);
    return dt_polyline_add(line, 0.5 * (l[0] + r[0]), 0.5 * (l[1] + r[1]));
}

static dt_status pair_by_share(const dt_polyline *left, const dt_polyline *right, dt_polyline *line, double *width)
{
    walk l = walk_begin(left), r = walk_begin(right);
    DT_TRY(add_middle(left->xy, right->xy, line, width));
    for (double share = 0; share < 1;) {
        const double sl = next_share(&l), sr = next_share(&r);
        double a[2], b[2];
        share = fmin(sl, sr);
        place_at_share(&l, share, a);
        place_at_share(&r, share, b);
        DT_TRY(add_middle(a, b, line, width));
        if (sl <= share) {
            step_walk(&l);
        }
        if (sr <= share) {
            step_walk(&r);
        }
    }
    return DT_OK;
}

dt_status dt_polyline_between(const dt_polyline *left, const dt_polyline *right, dt_polyline *line_p, double **width_p)
{
    dt_polyline_clear(line_p);
    if (left->n == 0 || right->n == 0) {
        return DT_OK;
    }
    double *width = dt_realloc(*width_p, (size_t)(left->n + right->n) * sizeof(*width));
    if (width == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a lane of %" PRId64 " points", left->n + right->n);
    }
    *width_p = width;
    if (left->n != right->n && left->n > 1 && right->n > 1) {
        return pair_by_share(left, right, line_p, width);
    }
    for (int64_t i = 0; i < left->n && i < right->n; i++) {
        DT_TRY(add_middle(left->xy + 2 * i, right->xy + 2 * i, line_p, width));
    }
    return DT_OK;
}

/* ---- lanes that name each other ---------------------------------------------------------------------------------- */

typedef struct dt_lane_ref_entry {
    int64_t line; /* of the file */
    int32_t from, name;
    dt_lane_ref role;
} dt_lane_ref_entry;

dt_status dt_lane_builder_add(dt_lane_builder *b, int64_t line, const char *name, const dt_road_lane *lane)
{
    char what[400];
    int32_t number = 0, at = 0;
    bool is_new = false;
    snprintf(what, sizeof(what), "%.200s:%" PRId64 ": %s %.100s", b->path, line, b->word, name);
    DT_TRY(dt_names_add(&b->names, name, &number, &is_new));
    if (!is_new) {
        return DT_FAIL(DT_EDATA, "%s is defined twice", what);
    }
    return dt_roads_lane(&b->roads, what, lane, &at);
}

dt_status dt_lane_builder_refer(dt_lane_builder *b, int64_t line, int32_t from, dt_lane_ref role, const char *name)
{
    if (b->n_refs == b->refs_cap) {
        const int64_t cap = b->refs_cap == 0 ? 128 : 2 * b->refs_cap;
        dt_lane_ref_entry *grown = dt_realloc(b->ref, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " references of lanes", cap);
        }
        b->ref = grown;
        b->refs_cap = cap;
    }
    dt_lane_ref_entry *r = &b->ref[b->n_refs];
    bool is_new = false;
    *r = (dt_lane_ref_entry){.line = line, .from = from, .role = role};
    DT_TRY(dt_names_add(&b->wanted, name, &r->name, &is_new));
    b->n_refs++;
    return DT_OK;
}

static dt_status set_side(const dt_lane_builder *b, const dt_lane_ref_entry *r, int32_t to, const char *side,
                          int32_t *lane)
{
    if (to == r->from || (*lane >= 0 && *lane != to)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s %s has %s on its %s%s", b->path, r->line, b->word,
                       b->names.name[r->from], b->names.name[to], side,
                       to == r->from ? ", itself" : " and another one too");
    }
    *lane = to;
    return DT_OK;
}

static dt_status resolve_reference(dt_lane_builder *b, const dt_lane_ref_entry *r)
{
    static const char *const words[] = {"is followed by", "follows", "has on its left", "has on its right",
                                        "is adjacent to"};
    const int32_t to = dt_names_find(&b->names, b->wanted.name[r->name]);
    if (to < 0 && b->may_lack) {
        b->n_lacking++;
        return DT_OK;
    }
    if (to < 0) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s %s %s %.60s, which does not exist", b->path, r->line, b->word,
                       b->names.name[r->from], words[r->role], b->wanted.name[r->name]);
    }
    switch (r->role) {
    case DT_REF_NEXT:
        return dt_roads_link(&b->roads, r->from, to);
    case DT_REF_BEFORE:
        return dt_roads_link(&b->roads, to, r->from);
    case DT_REF_LEFT:
        return set_side(b, r, to, "left", &b->roads.left[r->from]);
    case DT_REF_RIGHT:
        return set_side(b, r, to, "right", &b->roads.right[r->from]);
    case DT_REF_OPPOSITE:
        break;
    }
    return DT_OK;
}

void dt_lane_builder_count_bad_limit(dt_lane_builder *b, const char *text)
{
    if (b->n_odd_limits++ == 0) {
        snprintf(b->odd_limit, sizeof(b->odd_limit), "%.60s", text);
    }
}

void dt_lane_builder_report(const dt_lane_builder *b, dt_str *notes)
{
    if (b->n_odd_limits > 0) {
        dt_str_addf(notes, "%" PRId64 " limits of speed that are not understood (\"%s\"): left out\n", b->n_odd_limits,
                    b->odd_limit);
    }
}

dt_status dt_lane_builder_close(dt_lane_builder *b)
{
    for (int64_t i = 0; i < b->n_refs; i++) {
        DT_TRY(resolve_reference(b, &b->ref[i]));
    }
    return dt_roads_seal(&b->roads);
}

void dt_lane_builder_fini(dt_lane_builder *b)
{
    dt_roads_fini(&b->roads);
    dt_names_fini(&b->names);
    dt_names_fini(&b->wanted);
    dt_free(b->ref);
    b->ref = NULL;
    b->n_refs = b->refs_cap = 0;
}
