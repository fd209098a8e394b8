/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/features/features_graph.h"
#include "traffic/features/features.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum {
    MANY = 32,  /* edges that are described at once, a multiple of every D */
    LISTED = 64 /* neighbours that are ranked by counting; of more the nearest are inserted one by one */
};
/* Where k neighbours are likely to be: within so many times the squared distance of the last one that was measured
 * before in the same cell, and not within less than that part of the squared radius. */
#define LIKELY  1.6
#define NEAREST (1.0 / 1024)

/* FDLIBM: pi / 4, 2 / pi, pi / 2 in parts, 3 * 2^51, polynomials of the sine and the cosine. */
#define PI_4        0.78539816339744830962
#define TWO_OVER_PI 0.63661977236758134308
#define PI_2_1      0x1.921fb54p+0
#define PI_2_2      0x1.10b46118p-30
#define PI_2_3      0x1.313198a2e0370p-61
#define ROUND       0x1.8p52
#define S1          (-1.66666666666666324348e-01)
#define S2          8.33333333332248946124e-03
#define S3          (-1.98412698298579493134e-04)
#define S4          2.75573137070700676789e-06
#define S5          (-2.50507602534068634195e-08)
#define S6          1.58969099521155010221e-10
#define C1          4.16666666666666019037e-02
#define C2          (-1.38888888888741095749e-03)
#define C3          2.48015872894767294178e-05
#define C4          (-2.75573143513906633035e-07)
#define C5          2.08757232129817482790e-09
#define C6          (-1.13596475577881948265e-11)

typedef struct near {
    double d2;
    int32_t j;
} near;

typedef struct target {
    const dt_vehicle *v; /* of all */
    int32_t i;
    double sin_h, cos_h, width, r2;
    uint32_t k;
    int32_t best[DT_NEIGHBOURS_MOST]; /* the nearest, in order */
    uint32_t n_best;
    double kth_d2;          /* of the last of k; INFINITY: there are fewer */
    const uint8_t *unknown; /* of the grid */
} target;

typedef struct listed {     /* and room for a vector more */
    float key[LISTED + 16]; /* distances rounded to floats, which keeps their order unless two become one */
    int32_t at[LISTED + 16];
} listed;

typedef struct described { /* features of edges, column by column, and the last one as it was before it was rounded */
    float f[DT_EDGE_FEATURES][MANY];
    double ittc[MANY];
} described;

/* Keep the k nearest in order of (distance, index); the result does not depend on the order of the calls. */
static uint32_t keep_nearest(near *best, uint32_t n, uint32_t k, near c)
{
    uint32_t p = n < k ? n : k;
    while (p > 0 && (c.d2 < best[p - 1].d2 || (c.d2 == best[p - 1].d2 && c.j < best[p - 1].j))) {
        if (p < k) {
            best[p] = best[p - 1];
        }
        p--;
    }
    if (p < k) {
        best[p] = c;
    }
    return n < k ? n + 1 : k;
}

static inline void write_rows(const described *d, uint32_t n, float *edge)
{
    uint32_t p = 0;
#if defined(__SSE__)
    for (; p + 4 <= n; p += 4) {
        __m128 a = _mm_loadu_ps(d->f[0] + p), b = _mm_loadu_ps(d->f[1] + p);
        __m128 c = _mm_loadu_ps(d->f[2] + p), e = _mm_loadu_ps(d->f[3] + p);
        _MM_TRANSPOSE4_PS(a, b, c, e);
        _mm_storeu_ps(edge + 4 * p, a);
        _mm_storeu_ps(edge + 4 * p + 4, b);
        _mm_storeu_ps(edge + 4 * p + 8, c);
        _mm_storeu_ps(edge + 4 * p + 12, e);
    }
#endif
    for (; p < n; p++) {
        for (int k = 0; k < DT_EDGE_FEATURES; k++) {
            edge[DT_EDGE_FEATURES * p + k] = d->f[k][p];
        }
    }
}

/* Of neighbours without a heading those that move are left out: how fast they approach is unknown. */
static void drop_unknown(target *t)
{
    uint32_t kept = 0;
    for (uint32_t p = 0; p < t->n_best; p++) {
        if (t->unknown[t->best[p]] != DT_HEADING_MOVES) {
            t->best[kept++] = t->best[p];
        }
    }
    t->n_best = kept;
}

/* by_rank[r]: which of n is listed r-th nearest; rank[p]: how many are nearer than p. False: of the nearest `kept` and
 * the one after them two are equally near, and so some rank is unused. */
static inline bool place_ranks(const int32_t *rank, uint32_t n, uint32_t kept, uint8_t *by_rank)
{
    const uint32_t looked = kept < n ? kept + 1 : kept;
    uint64_t is_taken = 0;
    for (uint32_t p = 0; p < n; p++) {
        by_rank[rank[p]] = (uint8_t)p;
        is_taken |= UINT64_C(1) << rank[p];
    }
    const uint64_t all = looked == 64 ? UINT64_MAX : (UINT64_C(1) << looked) - 1;
    return (is_taken & all) == all;
}

/* For each set of instructions:
 *   measure  squared distances of a stretch into g->d2, and those of it that are ahead on the path after the n_ahead
 *            that g->ahead has already: how many it has then
 *   list     those of a stretch that are within most after the n that are listed: how many are then, or any number
 *            above LISTED
 *   rank     of n <= LISTED, see place_ranks */

/* ---- any processor ----------------------------------------------------------------------------------------------- */

#define SET(name) name##_plain
#define TARGET
#define D 4

static uint32_t measure_plain(const target *t, const dt_nearby *g, uint32_t from, uint32_t end, uint32_t n_ahead)
{
    const double *const gx = g->x, *const gy = g->y, *const gw = g->width;
    double *const to = g->d2;
    const dt_vehicle *a = &t->v[t->i];
    for (uint32_t p = from; p < end; p++) {
        const double ex = gx[p] - a->x, ey = gy[p] - a->y, d2 = ex * ex + ey * ey;
        const double aside = ey * t->cos_h - ex * t->sin_h, reach = 0.5 * (t->width + gw[p]);
        to[p] = d2;
        g->ahead[n_ahead] = (int32_t)g->order[p];
        n_ahead += (d2 <= t->r2) & (ex * t->cos_h + ey * t->sin_h > 0) & (aside < reach) & (-aside < reach);
    }
    return n_ahead;
}

static uint32_t list_plain(const dt_nearby *g, uint32_t from, uint32_t end, double most, listed *l, uint32_t n)
{
    for (uint32_t p = from; p < end && n <= LISTED; p++) {
        l->key[n] = (float)g->d2[p];
        l->at[n] = (int32_t)p;
        n += g->d2[p] <= most;
    }
    return n;
}

static bool rank_plain(const listed *l, uint32_t n, uint32_t kept, uint8_t *by_rank)
{
    int32_t rank[LISTED];
    for (uint32_t a = 0; a < n; a++) {
        int32_t nearer = 0;
        for (uint32_t b = 0; b < n; b++) {
            nearer += l->key[b] < l->key[a];
        }
        rank[a] = nearer;
    }
    return place_ranks(rank, n, kept, by_rank);
}

#include "traffic/features/features_graph_set.h"

#if defined(__x86_64__)
/* ---- AVX2 -------------------------------------------------------------------------------------------------------- */

#    define SET(name) name##_avx2
#    define TARGET    __attribute__((target("avx2,popcnt,bmi")))
#    define D         4

TARGET static uint32_t measure_avx2(const target *t, const dt_nearby *g, uint32_t from, uint32_t end, uint32_t n_ahead)
{
    const double *const gx = g->x, *const gy = g->y, *const gw = g->width;
    double *const to = g->d2;
    const dt_vehicle *a = &t->v[t->i];
    const __m256d x = _mm256_set1_pd(a->x), y = _mm256_set1_pd(a->y), r2 = _mm256_set1_pd(t->r2);
    const __m256d sin_a = _mm256_set1_pd(t->sin_h), cos_a = _mm256_set1_pd(t->cos_h), zero = _mm256_setzero_pd();
    const __m256d width = _mm256_set1_pd(t->width), half = _mm256_set1_pd(0.5), sign = _mm256_set1_pd(-0.0);
    for (uint32_t p = from; p < end; p += D) {
        const __m256d ex = _mm256_sub_pd(_mm256_loadu_pd(gx + p), x), ey = _mm256_sub_pd(_mm256_loadu_pd(gy + p), y);
        const __m256d d2 = _mm256_add_pd(_mm256_mul_pd(ex, ex), _mm256_mul_pd(ey, ey));
        const __m256d along = _mm256_add_pd(_mm256_mul_pd(ex, cos_a), _mm256_mul_pd(ey, sin_a));
        const __m256d aside = _mm256_sub_pd(_mm256_mul_pd(ey, cos_a), _mm256_mul_pd(ex, sin_a));
        const __m256d reach = _mm256_mul_pd(half, _mm256_add_pd(width, _mm256_loadu_pd(gw + p)));
        const __m256d is_near =
            _mm256_and_pd(_mm256_cmp_pd(d2, r2, _CMP_LE_OQ), _mm256_cmp_pd(along, zero, _CMP_GT_OQ));
        const __m256d is_on = _mm256_cmp_pd(_mm256_andnot_pd(sign, aside), reach, _CMP_LT_OQ);
        uint32_t left = (uint32_t)_mm256_movemask_pd(_mm256_and_pd(is_near, is_on));
        _mm256_storeu_pd(to + p, d2);
        left = end - p < D ? left & ((1u << (end - p)) - 1) : left;
        for (; left != 0; left &= left - 1) {
            g->ahead[n_ahead++] = (int32_t)g->order[p + (uint32_t)__builtin_ctz(left)];
        }
    }
    return n_ahead;
}

TARGET static uint32_t list_avx2(const dt_nearby *g, uint32_t from, uint32_t end, double most, listed *l, uint32_t n)
{
    /* which bytes of four numbers go to the front, by which of the four are wanted */
#    define WORD(w) 4 * (w), 4 * (w) + 1, 4 * (w) + 2, 4 * (w) + 3
#    define NONE    -1, -1, -1, -1
    static const int8_t front[16][16] = {{NONE, NONE, NONE, NONE},          {WORD(0), NONE, NONE, NONE},
                                         {WORD(1), NONE, NONE, NONE},       {WORD(0), WORD(1), NONE, NONE},
                                         {WORD(2), NONE, NONE, NONE},       {WORD(0), WORD(2), NONE, NONE},
                                         {WORD(1), WORD(2), NONE, NONE},    {WORD(0), WORD(1), WORD(2), NONE},
                                         {WORD(3), NONE, NONE, NONE},       {WORD(0), WORD(3), NONE, NONE},
                                         {WORD(1), WORD(3), NONE, NONE},    {WORD(0), WORD(1), WORD(3), NONE},
                                         {WORD(2), WORD(3), NONE, NONE},    {WORD(0), WORD(2), WORD(3), NONE},
                                         {WORD(1), WORD(2), WORD(3), NONE}, {WORD(0), WORD(1), WORD(2), WORD(3)}};
#    undef WORD
#    undef NONE
    const __m256d limit = _mm256_set1_pd(most);
    __m128i at = _mm_add_epi32(_mm_set1_epi32((int)from), _mm_setr_epi32(0, 1, 2, 3));
    for (uint32_t p = from; p < end && n <= LISTED; p += D) {
        const __m256d d2 = _mm256_loadu_pd(g->d2 + p);
        uint32_t is_near = (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(d2, limit, _CMP_LE_OQ));
        is_near = end - p < D ? is_near & ((1u << (end - p)) - 1) : is_near;
        const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)front[is_near]);
        const __m128i key = _mm_castps_si128(_mm256_cvtpd_ps(d2));
        _mm_storeu_si128((__m128i *)(void *)(l->key + n), _mm_shuffle_epi8(key, order));
        _mm_storeu_si128((__m128i *)(void *)(l->at + n), _mm_shuffle_epi8(at, order));
        n += (uint32_t)__builtin_popcount(is_near);
        at = _mm_add_epi32(at, _mm_set1_epi32(D));
    }
    return n;
}

/* Ranks of the 8 m numbers from key on. */
#    define RANK_AVX2(m)                                                                                               \
        for (uint32_t b = 0; b < n; b++) {                                                                             \
            const __m256 other = _mm256_broadcast_ss(l->key + b);                                                      \
            for (int q = 0; q < (m); q++) {                                                                            \
                const __m256 is_nearer = _mm256_cmp_ps(other, key[q], _CMP_LT_OQ);                                     \
                sum[q] = _mm256_sub_epi32(sum[q], _mm256_castps_si256(is_nearer));                                     \
            }                                                                                                          \
        }

TARGET static bool rank_avx2(const listed *l, uint32_t n, uint32_t kept, uint8_t *by_rank)
{
    int32_t rank[LISTED];
    for (uint32_t a = 0; a < n; a += 32) {
        __m256 key[4];
        __m256i sum[4];
        for (uint32_t q = 0; q < 4; q++) {
            key[q] = _mm256_loadu_ps(l->key + a + 8 * q);
            sum[q] = _mm256_setzero_si256();
        }
        if (n - a <= 24) {
            RANK_AVX2(3)
        } else {
            RANK_AVX2(4)
        }
        for (uint32_t q = 0; q < 4; q++) {
            _mm256_storeu_si256((__m256i *)(void *)(rank + a + 8 * q), sum[q]);
        }
    }
    return place_ranks(rank, n, kept, by_rank);
}

#    include "traffic/features/features_graph_set.h"

/* ---- AVX-512 ----------------------------------------------------------------------------------------------------- */

#    define SET(name) name##_avx512
#    define TARGET    __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,popcnt,bmi")))
#    define D         8

TARGET static uint32_t measure_avx512(const target *t, const dt_nearby *g, uint32_t from, uint32_t end,
                                      uint32_t n_ahead)
{
    const double *const gx = g->x, *const gy = g->y, *const gw = g->width;
    double *const to = g->d2;
    const dt_vehicle *a = &t->v[t->i];
    const __m512d x = _mm512_set1_pd(a->x), y = _mm512_set1_pd(a->y), r2 = _mm512_set1_pd(t->r2);
    const __m512d sin_a = _mm512_set1_pd(t->sin_h), cos_a = _mm512_set1_pd(t->cos_h), zero = _mm512_setzero_pd();
    const __m512d width = _mm512_set1_pd(t->width), half = _mm512_set1_pd(0.5);
    for (uint32_t p = from; p < end; p += D) {
        const __mmask8 is_there = end - p < D ? (__mmask8)((1u << (end - p)) - 1) : (__mmask8)0xff;
        const __m512d ex = _mm512_sub_pd(_mm512_loadu_pd(gx + p), x), ey = _mm512_sub_pd(_mm512_loadu_pd(gy + p), y);
        const __m512d d2 = _mm512_add_pd(_mm512_mul_pd(ex, ex), _mm512_mul_pd(ey, ey));
        const __m512d along = _mm512_add_pd(_mm512_mul_pd(ex, cos_a), _mm512_mul_pd(ey, sin_a));
        const __m512d aside = _mm512_sub_pd(_mm512_mul_pd(ey, cos_a), _mm512_mul_pd(ex, sin_a));
        const __m512d reach = _mm512_mul_pd(half, _mm512_add_pd(width, _mm512_loadu_pd(gw + p)));
        __mmask8 is_on = _mm512_mask_cmp_pd_mask(is_there, d2, r2, _CMP_LE_OQ);
        is_on = _mm512_mask_cmp_pd_mask(is_on, along, zero, _CMP_GT_OQ);
        is_on = _mm512_mask_cmp_pd_mask(is_on, _mm512_abs_pd(aside), reach, _CMP_LT_OQ);
        _mm512_storeu_pd(to + p, d2);
        for (uint32_t left = is_on; left != 0; left &= left - 1) {
            g->ahead[n_ahead++] = (int32_t)g->order[p + (uint32_t)__builtin_ctz(left)];
        }
    }
    return n_ahead;
}

TARGET static uint32_t list_avx512(const dt_nearby *g, uint32_t from, uint32_t end, double most, listed *l, uint32_t n)
{
    const __m512d limit = _mm512_set1_pd(most);
    __m256i at = _mm256_add_epi32(_mm256_set1_epi32((int)from), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (uint32_t p = from; p < end && n <= LISTED; p += D) {
        const __mmask8 is_there = end - p < D ? (__mmask8)((1u << (end - p)) - 1) : (__mmask8)0xff;
        const __m512d d2 = _mm512_loadu_pd(g->d2 + p);
        const __mmask8 is_near = _mm512_mask_cmp_pd_mask(is_there, d2, limit, _CMP_LE_OQ);
        _mm256_storeu_ps(l->key + n, _mm256_maskz_compress_ps(is_near, _mm512_cvtpd_ps(d2)));
        _mm256_storeu_si256((__m256i *)(void *)(l->at + n), _mm256_maskz_compress_epi32(is_near, at));
        n += (uint32_t)__builtin_popcount(is_near);
        at = _mm256_add_epi32(at, _mm256_set1_epi32(D));
    }
    return n;
}

TARGET static bool rank_avx512(const listed *l, uint32_t n, uint32_t kept, uint8_t *by_rank)
{
    int32_t rank[LISTED];
    const __m512i one = _mm512_set1_epi32(1);
    for (uint32_t a = 0; a < n; a += 32) {
        const __m512 low = _mm512_loadu_ps(l->key + a), high = _mm512_loadu_ps(l->key + a + 16);
        __m512i low_sum = _mm512_setzero_si512(), high_sum = _mm512_setzero_si512();
        for (uint32_t b = 0; b < n; b++) {
            const __m512 other = _mm512_set1_ps(l->key[b]);
            low_sum = _mm512_mask_add_epi32(low_sum, _mm512_cmp_ps_mask(other, low, _CMP_LT_OQ), low_sum, one);
            high_sum = _mm512_mask_add_epi32(high_sum, _mm512_cmp_ps_mask(other, high, _CMP_LT_OQ), high_sum, one);
        }
        _mm512_storeu_si512(rank + a, low_sum);
        _mm512_storeu_si512(rank + a + 16, high_sum);
    }
    return place_ranks(rank, n, kept, by_rank);
}

#    include "traffic/features/features_graph_set.h"
#endif

/* ---- which one --------------------------------------------------------------------------------------------------- */

dt_graph_set dt_graph_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
        return DT_GRAPH_AVX512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")) {
        return DT_GRAPH_AVX2;
    }
#endif
    return DT_GRAPH_PLAIN;
}

void dt_features_graph_of(dt_graph_set set, dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m,
                          uint32_t k_max, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    switch (set) {
#if defined(__x86_64__)
    case DT_GRAPH_AVX512:
        make_graph_avx512(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
        return;
    case DT_GRAPH_AVX2:
        make_graph_avx2(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
        return;
#endif
    default:
        make_graph_plain(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
    }
}

void dt_features_cosines_of(dt_graph_set set, const double *x, uint32_t n, double *out)
{
    switch (set) {
#if defined(__x86_64__)
    case DT_GRAPH_AVX512:
        cosines_avx512(x, n, out);
        return;
    case DT_GRAPH_AVX2:
        cosines_avx2(x, n, out);
        return;
#endif
    default:
        cosines_plain(x, n, out);
    }
}

void dt_features_graph(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, int32_t *rowptr,
                       int32_t *col, float *edge, float *path_ittc)
{
    dt_features_graph_of(dt_graph_best(), g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
}
