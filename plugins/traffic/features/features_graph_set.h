/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of a frame in the instructions of one set. features_graph.c includes this once for each, with SET(name) and
 * TARGET of it, D doubles and so many floats as fill a vector of it, and what this cannot express for all processors:
 * which vehicles of a stretch are near, and ranks. Every number is that of one operation after the other, in the order
 * written here, so all sets write the same bits.
 */
typedef double SET(vd) __attribute__((vector_size(8 * D), aligned(8), may_alias));
typedef int64_t SET(vl) __attribute__((vector_size(8 * D), aligned(8), may_alias));
typedef float SET(vf) __attribute__((vector_size(4 * D), aligned(4), may_alias));
#define vd SET(vd)
#define vl SET(vl)
#define vf SET(vf)

/* As numbers: yes where is is all bits, else no. */
#define CHOOSE(is, yes, no) ((vd)(((is) & (vl)(yes)) | (~(is) & (vl)(no))))

/* Is it true of some lane? Vectors go by pointers: how they are passed differs between sets. */
TARGET static ALWAYS_INLINE bool SET(any)(const vl *is)
{
    int64_t any = 0;
    for (int q = 0; q < D; q++) {
        any |= (*is)[q];
    }
    return any != 0;
}

/* ---- cosine ------------------------------------------------------------------------------------------------------ */

/* cos(x), |x| <= 2 DT_HEADING_MAX, off by less than 0.75 units of the last place (0.56 where |x| <= pi / 4). Reduced
 * to the nearest multiple of pi / 2, of which there are fewer than 2^21: PI_2_1 and PI_2_2 have 30 bits, so their
 * multiples are exact. Polynomials of k_cos.c and k_sin.c of FDLIBM (Sun Microsystems, 1993), with their
 * coefficients. */
TARGET static ALWAYS_INLINE void SET(cosine)(const vd *angle, vd *out)
{
    const vd x = *angle;
    const vd zero = {0}, one = zero + 1.0, half = zero + 0.5;
    vd y = x, rest = zero;
    vl quadrant = {0};
    const vl is_large = (x > PI_4) | (x < -PI_4);
    const bool is_reduced = SET(any)(&is_large);
    if (is_reduced) {
        const vd shifted = x * TWO_OVER_PI + ROUND, n = shifted - ROUND; /* the nearest integer */
        quadrant = (vl)shifted;                                          /* its last bits are those of the integer */
        const vd a = x - n * PI_2_1, b = n * PI_2_2, s = a - b, bb = s - a;
        const vd err = (a - (s - bb)) - (b + bb), tail = err - n * PI_2_3; /* Knuth, TAOCP 2, 4.2.2, theorem B */
        y = s + tail;
        rest = (s - y) + tail;
    }
    /* 26 bits, whose square is exact, and the rest */
    const vd high = (vd)((vl)y & ~INT64_C(0x7ffffff)), low = y - high;
    const vd z = y * y, hz = half * (high * high), w = one - hz;
    const vd r = z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * C6)))));
    const vd c = w + (((one - w) - hz) + ((z * r - y * rest) - half * (low * (y + high))));
    if (!is_reduced) {
        *out = c;
        return;
    }
    const vd v = z * y, q = S2 + z * (S3 + z * (S4 + z * (S5 + z * S6)));
    const vd s = y - ((z * (half * rest - v * q) - rest) - v * S1);
    const vd of = CHOOSE((quadrant & 1) != 0, s, c); /* cos, -sin, -cos, sin */
    *out = CHOOSE(((quadrant + 1) & 2) != 0, -of, of);
}

TARGET static void SET(cosines)(const double *x, uint32_t n, double *out)
{
    for (uint32_t p = 0; p < n; p += D) {
        double in[D] = {0}, got[D];
        for (uint32_t q = 0; q < D && p + q < n; q++) {
            in[q] = x[p + q];
        }
        SET(cosine)((const vd *)in, (vd *)got);
        for (uint32_t q = 0; q < D && p + q < n; q++) {
            out[p + q] = got[q];
        }
    }
}

/* ---- features of edges ------------------------------------------------------------------------------------------- */

/* Features 0..3 of sources j[0..n) seen from the target, n <= MANY. */
TARGET static inline void SET(describe)(const target *t, const int32_t *j, uint32_t n, described *out)
{
    const dt_vehicle *a = &t->v[t->i];
    double x[MANY + D], y[MANY + D], heading[MANY + D], length[MANY + D], speed[MANY + D];
    for (uint32_t p = 0; p < n; p++) {
        const dt_vehicle *b = &t->v[j[p]];
        x[p] = b->x;
        y[p] = b->y;
        heading[p] = b->heading;
        length[p] = b->length;
        speed[p] = b->speed;
    }
    for (uint32_t p = n; p % D != 0; p++) { /* their results are not used */
        x[p] = y[p] = heading[p] = length[p] = speed[p] = 0;
    }
    const vd zero = {0}, one = zero + 1.0, most = zero + DT_ITTC_MAX;
    const double a_x = a->x, a_y = a->y, a_heading = a->heading, a_length = a->length, a_speed = a->speed;
    const double sin_h = t->sin_h, cos_h = t->cos_h;
    for (uint32_t p = 0; p < n; p += D) {
        const vd ex = *(const vd *)(x + p) - a_x, ey = *(const vd *)(y + p) - a_y;
        const vd turned = *(const vd *)(heading + p) - a_heading;
        vd along;
        SET(cosine)(&turned, &along);
        const vd dx = ex * cos_h + ey * sin_h, dy = ey * cos_h - ex * sin_h;
        const vl is_ahead = dx >= zero;
        const vd side = CHOOSE(is_ahead, one, -one), apart = CHOOSE(is_ahead, dx, -dx);
        const vd free_m = apart - 0.5 * (a_length + *(const vd *)(length + p));
        const vd gap = CHOOSE(free_m > zero, free_m, zero);
        const vd closing = side * (a_speed - *(const vd *)(speed + p) * along), quotient = closing / gap;
        const vd ittc = CHOOSE(closing <= zero, zero, CHOOSE(closing >= most * gap, most, quotient));
        *(vd *)(out->ittc + p) = ittc;
        *(vf *)(out->f[0] + p) = __builtin_convertvector(side * gap, vf);
        *(vf *)(out->f[1] + p) = __builtin_convertvector(dy, vf);
        *(vf *)(out->f[2] + p) = __builtin_convertvector(closing, vf);
        *(vf *)(out->f[3] + p) = __builtin_convertvector(ittc, vf);
    }
}

TARGET static void SET(write_edges)(const target *t, int32_t *col, float *edge)
{
    described d;
    for (uint32_t from = 0; from < t->n_best; from += MANY) {
        const uint32_t n = t->n_best - from < MANY ? t->n_best - from : MANY;
        SET(describe)(t, t->best + from, n, &d);
        memcpy(col + from, t->best + from, n * sizeof(*col));
        write_rows(&d, n, edge + (size_t)from * DT_EDGE_FEATURES);
    }
}

/* The largest inverse TTC of those ahead on the path. NAN: none is dangerous, and of some it is unknown. */
TARGET static double SET(worst_of)(const target *t, const int32_t *ahead, uint32_t n_ahead)
{
    described d;
    double worst = 0;
    bool is_unknown = false;
    for (uint32_t from = 0; from < n_ahead; from += MANY) {
        const uint32_t n = n_ahead - from < MANY ? n_ahead - from : MANY;
        SET(describe)(t, ahead + from, n, &d);
        for (uint32_t p = 0; p < n; p++) {
            if (t->unknown != NULL && t->unknown[ahead[from + p]] == DT_HEADING_MOVES) {
                is_unknown = true;
            } else {
                worst = d.ittc[p] > worst ? d.ittc[p] : worst;
            }
        }
    }
    return is_unknown && !dt_risk_is_now(0, worst) ? NAN : worst;
}

/* ---- the nearest ------------------------------------------------------------------------------------------------- */

/* All within most, one by one, however many there are. */
static void SET(insert_all)(target *t, const dt_nearby *g, const dt_nearby_cell *c, double most)
{
    near best[DT_NEIGHBOURS_MOST];
    t->n_best = 0;
    for (int side = 0; side < 3; side++) {
        for (uint32_t p = c->begin[side]; p < c->end[side]; p++) {
            if (g->d2[p] <= most) {
                t->n_best = keep_nearest(best, t->n_best, t->k, (near){g->d2[p], (int32_t)g->order[p]});
            }
        }
    }
    for (uint32_t p = 0; p < t->n_best; p++) {
        t->best[p] = best[p].j;
    }
    t->kth_d2 = t->n_best == t->k ? best[t->k - 1].d2 : INFINITY;
}

/* The k nearest within r2, of distances that are measured. Few are listed that lie within what is likely to hold k of
 * them; more only where it does not. */
TARGET static inline void SET(find_nearest)(target *t, const dt_nearby *g, const dt_nearby_cell *c, double likely_d2)
{
    listed l;
    uint8_t by_rank[LISTED];
    t->n_best = 0;
    t->kth_d2 = INFINITY;
    if (t->k == 0) {
        return;
    }
    for (double most = likely_d2 < t->r2 ? likely_d2 : t->r2;; most = 4 * most < t->r2 ? 4 * most : t->r2) {
        uint32_t n = 0;
        for (int side = 0; side < 3 && n <= LISTED; side++) {
            n = SET(list)(g, c->begin[side], c->end[side], most, &l, n);
        }
        if (n < t->k && most < t->r2) {
            continue;
        }
        const uint32_t kept = n < t->k ? n : t->k;
        if (n > LISTED || !SET(rank)(&l, n, kept, by_rank)) {
            SET(insert_all)(t, g, c, most);
            if (t->n_best < t->k && most < t->r2) {
                continue;
            }
            return;
        }
        for (uint32_t p = 0; p < kept; p++) {
            t->best[p] = (int32_t)g->order[l.at[by_rank[p]]];
        }
        t->n_best = kept;
        t->kth_d2 = kept == t->k ? g->d2[l.at[by_rank[kept - 1]]] : INFINITY;
        return;
    }
}

/* ---- a frame ----------------------------------------------------------------------------------------------------- */

TARGET static void SET(make_graph)(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                   int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    target t = {.v = v, .k = k_max - 1, .r2 = radius_m * radius_m, .unknown = g->unknown};
    double likely_d2 = INFINITY;
    int32_t e = 0;
    for (uint32_t i = 0; i < n; i++) {
        dt_nearby_cell *c = &g->cell[g->spare[i]];
        uint32_t n_ahead = 0;
        t.i = (int32_t)i;
        t.sin_h = g->sin_h[i];
        t.cos_h = g->cos_h[i];
        t.width = g->width[g->place[i]];
        for (int side = 0; side < 3; side++) {
            n_ahead = SET(measure)(&t, g, c->begin[side], c->end[side], n_ahead);
        }
        g->d2[g->place[i]] = INFINITY; /* no vehicle is its own neighbour */
        SET(find_nearest)(&t, g, c, c->likely_d2 > 0 ? c->likely_d2 : likely_d2);
        likely_d2 = LIKELY * t.kth_d2 > NEAREST * t.r2 ? LIKELY * t.kth_d2 : NEAREST * t.r2;
        c->likely_d2 = likely_d2;
        const bool is_known = t.unknown == NULL || t.unknown[i] == DT_HEADING_KNOWN;
        if (!is_known) {
            t.n_best = 0; /* what others are to it is unknown */
        } else if (t.unknown != NULL) {
            drop_unknown(&t);
        }
        rowptr[i] = e;
        col[e] = t.i; /* the vehicle itself comes first */
        memset(edge + (size_t)e * DT_EDGE_FEATURES, 0, DT_EDGE_FEATURES * sizeof(*edge));
        e++;
        SET(write_edges)(&t, col + e, edge + (size_t)e * DT_EDGE_FEATURES);
        e += (int32_t)t.n_best;
        if (path_ittc != NULL) {
            path_ittc[i] = is_known ? (float)SET(worst_of)(&t, g->ahead, n_ahead) : NAN;
        }
    }
    rowptr[n] = e;
}
#undef CHOOSE
#undef vd
#undef vl
#undef vf
#undef SET
#undef TARGET
#undef D
