/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed matrix product. See gemm.h. Structure: Goto & van de Geijn 2008, with one level of blocking, because slices
 * are cut so that A and C stay in the second-level cache.
 */
#include "engine/backend/cpu/gemm.h"

/* A tile of C is MR rows by NV vectors, held in registers: 14 x 2 + 2 + 1 of 32, or 6 x 2 + 2 + 1 of 16. */
#if defined(DT_ISA_AVX512)
enum { MR = 14, NV = 2 };
#else
enum { MR = 6, NV = 2 };
#endif
enum { NR = NV * VL };

/* Loops: columns by DT_GEMM_COLUMNS, then k by DT_GEMM_BLOCK (that part of B is packed, into the second-level cache),
 * then row tiles (its part of A in the first-level cache), then panels. */

/* ---- packing: panel[k][NR], columns past N are 0 ----------------------------------------------------------------- */

#if defined(DT_ISA_AVX512)
enum { TILE = 16 };

/* dst[k][0..TILE-1] = src[0..TILE-1][k] for k below n_k; rows of src past n_row are 0 */
static ALWAYS_INLINE void transpose_tile(const float *src, int64_t src_row, int64_t n_row, int64_t n_k, float *dst,
                                         int64_t dst_row)
{
    const __mmask16 mask = (__mmask16)((1u << n_k) - 1);
    __m512 r[16], t[16];
    for (int i = 0; i < 16; i++) {
        r[i] = i < n_row ? _mm512_maskz_loadu_ps(mask, src + i * src_row) : _mm512_setzero_ps();
    }
    for (int i = 0; i < 8; i++) { /* pairs of rows */
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) { /* fours: r[4i + q] holds columns q, q+4, q+8, q+12 of rows 4i..4i+3 */
        for (int q = 0; q < 2; q++) {
            const __m512d lo = _mm512_castps_pd(t[4 * i + q]), hi = _mm512_castps_pd(t[4 * i + q + 2]);
            r[4 * i + 2 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
            r[4 * i + 2 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
        }
    }
    for (int q = 0; q < 4; q++) { /* then 4 x 4 blocks of four */
        const __m512 a = _mm512_shuffle_f32x4(r[q], r[4 + q], 0x88), b = _mm512_shuffle_f32x4(r[q], r[4 + q], 0xdd);
        const __m512 c = _mm512_shuffle_f32x4(r[8 + q], r[12 + q], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(r[8 + q], r[12 + q], 0xdd);
        t[q] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[8 + q] = _mm512_shuffle_f32x4(a, c, 0xdd);
        t[4 + q] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[12 + q] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
    for (int k = 0; k < 16; k++) {
        if (k < n_k) {
            _mm512_storeu_ps(dst + k * dst_row, t[k]);
        }
    }
}
#elif defined(DT_ISA_AVX2)
enum { TILE = 8 };

static ALWAYS_INLINE void transpose_tile(const float *src, int64_t src_row, int64_t n_row, int64_t n_k, float *dst,
                                         int64_t dst_row)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++) {
        r[i] = i < n_row ? vf_get(src + i * src_row, n_k) : _mm256_setzero_ps();
    }
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        for (int q = 0; q < 2; q++) {
            r[4 * i + 2 * q] = _mm256_shuffle_ps(t[4 * i + q], t[4 * i + q + 2], 0x44);
            r[4 * i + 2 * q + 1] = _mm256_shuffle_ps(t[4 * i + q], t[4 * i + q + 2], 0xee);
        }
    }
    for (int q = 0; q < 4; q++) {
        t[q] = _mm256_permute2f128_ps(r[q], r[4 + q], 0x20);
        t[4 + q] = _mm256_permute2f128_ps(r[q], r[4 + q], 0x31);
    }
    for (int k = 0; k < 8; k++) {
        if (k < n_k) {
            _mm256_storeu_ps(dst + k * dst_row, t[k]);
        }
    }
}
#else
enum { TILE = 4 };

static ALWAYS_INLINE void transpose_tile(const float *src, int64_t src_row, int64_t n_row, int64_t n_k, float *dst,
                                         int64_t dst_row)
{
    for (int64_t k = 0; k < n_k; k++) {
        for (int64_t i = 0; i < TILE; i++) {
            dst[k * dst_row + i] = i < n_row ? src[i * src_row + k] : 0;
        }
    }
}
#endif

/* dst[k][i] = src[i][k], i below n_row, k below K, whole TILEs of i written (zeros past n_row) */
static void transpose_rows(const float *src, int64_t src_row, int64_t n_row, int64_t K, float *dst, int64_t dst_row)
{
    for (int64_t i = 0; i < n_row; i += TILE) {
        const int64_t rows = n_row - i < TILE ? n_row - i : TILE;
        for (int64_t k = 0; k < K; k += TILE) {
            if (rows == TILE && K - k >= TILE) {
                transpose_tile(src + i * src_row + k, src_row, TILE, TILE, dst + k * dst_row + i, dst_row);
            } else {
                transpose_tile(src + i * src_row + k, src_row, rows, K - k < TILE ? K - k : TILE, dst + k * dst_row + i,
                               dst_row);
            }
        }
    }
}

/* k0 .. k0 + K - 1 of columns n0 .. n0 + NR - 1 */
static void pack_panel(const dt_gemm *g, int64_t k0, int64_t K, int64_t n0, float *panel)
{
    const float *b = g->b + k0 * g->b_k + n0 * g->b_col;
    const int64_t n = g->N - n0 < NR ? g->N - n0 : NR;
    if (g->b_col != 1) {
        transpose_rows(b, g->b_col, n, K, panel, NR);
        return;
    }
    for (int64_t k = 0; k < K; k++) {
        for (int v = 0; v < NV; v++) {
            const int64_t left = n - v * VL;
            vf_store(panel + k * NR + v * VL, left >= VL ? vf_load(b + k * g->b_k + v * VL)
                                              : left > 0 ? vf_load_n(b + k * g->b_k + v * VL, left)
                                                         : vf_set(0));
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

typedef struct tile {
    const float *a, *b, *bias; /* bias: where accumulators start, or NULL */
    float *c;
    int64_t a_row, a_k, b_k, c_row, K, n; /* n: columns that exist */
    int place;                            /* TILE_* */
    bool accum, is_relu;                  /* is_relu: of the result, while it is in registers */
} tile;

enum { GROUP = 4, GROUPS = (MR + GROUP - 1) / GROUP }; /* rows of A addressed from one pointer */

/* acc[i][v] += a(i) b[v] for the k-th k from where the pointers are */
static ALWAYS_INLINE void add_product(vf acc[MR][NV], const float *const a[GROUPS], const int64_t k, const float *b,
                                      const int mr, const int nv, const int64_t a_row)
{
    vf right[NV];
#pragma GCC unroll 16
    for (int v = 0; v < nv; v++) {
        right[v] = vf_load(b + v * VL);
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        const vf left = vf_set(a[i / GROUP][i % GROUP * a_row + k]);
#pragma GCC unroll 16
        for (int v = 0; v < nv; v++) {
            acc[i][v] = vf_fma(left, right[v], acc[i][v]);
        }
    }
}

static ALWAYS_INLINE void advance_pointers(const float *a[GROUPS], int64_t by)
{
#pragma GCC unroll 16
    for (int i = 0; i < GROUPS; i++) {
        a[i] += by;
    }
}

/* Fetches the next panel's part of C while this one is worked on. */
static ALWAYS_INLINE void fetch_next(const tile *t, const int mr)
{
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
#pragma GCC unroll 16
        for (int v = 0; v < NV; v++) {
            __builtin_prefetch(t->c + i * t->c_row + NR + v * VL, 1);
        }
    }
}

/* As CPU(apply) does it: NaN stays. */
static ALWAYS_INLINE void apply_relu(vf acc[MR][NV], const int mr, const int nv)
{
#pragma GCC unroll 16
    for (int v = 0; v < nv; v++) {
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            acc[i][v] = vf_max(vf_set(0), acc[i][v]);
        }
    }
}

/* mr, nv, unroll and (where the place of A and B allows) the strides are constants of each call below: acc lives in
 * registers, and addresses are a pointer and a number. */
static ALWAYS_INLINE void run_tile(const tile *t, const int mr, const int nv, const int64_t a_row, const int64_t a_k,
                                   const int64_t b_k, const int unroll)
{
    vf acc[MR][NV];
    const int64_t last = t->n - (nv - 1) * VL;
    const float *a[GROUPS], *b = t->b;
    int64_t k = 0;
#pragma GCC unroll 16
    for (int i = 0; i < GROUPS; i++) {
        a[i] = t->a + i * GROUP * a_row;
        if (!__builtin_constant_p(a_row)) {
            __asm__("" : "+r"(a[i])); /* or all rows are addressed from one pointer, with offsets in memory */
        }
    }
#pragma GCC unroll 16
    for (int v = 0; v < nv; v++) {
        const int64_t n = v == nv - 1 ? last : VL;
        const vf start = t->bias != NULL ? vf_get(t->bias + v * VL, n) : vf_set(0);
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            acc[i][v] = t->accum ? vf_get(t->c + i * t->c_row + v * VL, n) : start;
        }
    }
    if (t->accum) {
        fetch_next(t, mr);
    }
    for (; k + unroll <= t->K; k += unroll) {
#pragma GCC unroll 16
        for (int u = 0; u < unroll; u++) {
            add_product(acc, a, u * a_k, b + u * b_k, mr, nv, a_row);
        }
        advance_pointers(a, unroll * a_k);
        b += unroll * b_k;
    }
    for (; k < t->K; k++) {
        add_product(acc, a, 0, b, mr, nv, a_row);
        advance_pointers(a, a_k);
        b += b_k;
    }
    if (t->is_relu) {
        apply_relu(acc, mr, nv);
    }
#pragma GCC unroll 16
    for (int v = 0; v < nv; v++) {
        const int64_t n = v == nv - 1 ? last : VL;
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            vf_put(t->c + i * t->c_row + v * VL, acc[i][v], n);
        }
    }
}

/* Where a tile finds its operands: A copied, in rows or in columns, B in panels or in place. */
enum { TILE_COPIED, TILE_ROWS, TILE_COLUMNS, TILE_PLACE };

static ALWAYS_INLINE void run_placed_tile(const tile *t, const int mr, const int nv)
{
    if (t->place == TILE_COPIED) {
        run_tile(t, mr, nv, 1, DT_GEMM_TILE, NR, 4);
    } else if (t->place == TILE_ROWS) {
        run_tile(t, mr, nv, t->a_row, 1, NR, 1);
    } else if (t->place == TILE_COLUMNS) {
        run_tile(t, mr, nv, 1, t->a_k, t->b_k, 1);
    } else {
        run_tile(t, mr, nv, t->a_row, t->a_k, t->b_k, 1);
    }
}

/* Each size is a function of its own: one function that holds them all takes gcc twice as long. */
#define TILE_FUNCTION(mr, nv)                                                                                          \
    static __attribute__((noinline)) void tile_##mr##_by_##nv(const tile *t)                                           \
    {                                                                                                                  \
        run_placed_tile(t, mr, nv);                                                                                    \
    }
#define TILE_FUNCTIONS(mr) TILE_FUNCTION(mr, 1) TILE_FUNCTION(mr, 2)
#define TILE_NAMES(mr)     tile_##mr##_by_1, tile_##mr##_by_2,
#if defined(DT_ISA_AVX512)
#    define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#    define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

EACH_HEIGHT(TILE_FUNCTIONS)

static void dispatch_tile(const tile *t, int64_t mr, int64_t nv)
{
    static void (*const of_size[MR * NV])(const tile *) = {EACH_HEIGHT(TILE_NAMES)};
    of_size[(mr - 1) * NV + nv - 1](t);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

typedef struct block {
    int64_t k0, K, n0, N;
} block;

/* Rows of A whose distance is a multiple of 4096 bytes fall into the same few places of the first-level cache, and so
 * do the columns of a transposed A: those are copied together, if several panels will use them. */
static bool is_tile_copied(const dt_gemm *g, const block *b)
{
    return b->N > 2 * NR && (g->a_k != 1 || g->a_row % 1024 == 0);
}

static void copy_tile(const dt_gemm *g, const block *b, int64_t m, int64_t mr, float *copy)
{
    const float *a = g->a + m * g->a_row + b->k0 * g->a_k;
    if (g->a_k == 1) {
        transpose_rows(a, g->a_row, mr, b->K, copy, DT_GEMM_TILE);
        return;
    }
    for (int64_t k = 0; k < b->K; k++) {
        for (int64_t i = 0; i < mr; i += VL) {
            vf_put(copy + k * DT_GEMM_TILE + i, vf_get(a + k * g->a_k + i, mr - i < VL ? mr - i : VL), VL);
        }
    }
}

static void apply_rows(const dt_gemm *g, const block *b, int64_t m, int64_t mr)
{
    float *c = g->c + m * g->c_row + b->n0;
    if (b->N == g->c_row) { /* without gaps */
        CPU(apply)(g->fn, g->f0, c, c, mr * b->N);
        return;
    }
    for (int64_t r = 0; r < mr; r++) {
        CPU(apply)(g->fn, g->f0, c + r * g->c_row, c + r * g->c_row, b->N);
    }
}

/* All rows against the panels of one block; they lie at b, or where B is when b is NULL. Rows are dealt evenly: a tile
 * of two rows would wait for its own sums. */
static void run_block(const dt_gemm *g, const block *b, const float *panels, float *tile_copy)
{
    const int64_t n_tiles = (g->M + MR - 1) / MR;
    const bool is_copied = is_tile_copied(g, b), is_last = b->k0 + b->K == g->K;
    int64_t m = 0;
    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t mr = (g->M - m + n_tiles - i - 1) / (n_tiles - i);
        if (is_copied) {
            copy_tile(g, b, m, mr, tile_copy);
        }
        for (int64_t n0 = b->n0; n0 < b->n0 + b->N; n0 += NR) {
            const int64_t n = b->n0 + b->N - n0 < NR ? b->n0 + b->N - n0 : NR;
            const tile t = {.a = is_copied ? tile_copy : g->a + m * g->a_row + b->k0 * g->a_k,
                            .a_row = is_copied ? 1 : g->a_row,
                            .a_k = is_copied ? DT_GEMM_TILE : g->a_k,
                            .b = panels != NULL ? panels + (n0 - b->n0) * b->K : g->b + b->k0 * g->b_k + n0,
                            .b_k = panels != NULL ? NR : g->b_k,
                            .bias = g->bias != NULL && b->k0 == 0 ? g->bias + n0 : NULL,
                            .c = g->c + m * g->c_row + n0,
                            .c_row = g->c_row,
                            .K = b->K,
                            .place = is_copied && panels != NULL     ? TILE_COPIED
                                     : !is_copied && g->a_row == 1   ? TILE_COLUMNS
                                     : panels != NULL && g->a_k == 1 ? TILE_ROWS
                                                                     : TILE_PLACE,
                            .n = n,
                            .accum = g->accum || b->k0 > 0,
                            .is_relu = g->fn == DT_FN_RELU && is_last};
            dispatch_tile(&t, mr, (n + VL - 1) / VL);
        }
        if (g->fn != 0 && g->fn != DT_FN_RELU && is_last) {
            apply_rows(g, b, m, mr);
        }
        m += mr;
    }
}

static void pack_block(const dt_gemm *g, const block *b, float *panels)
{
    for (int64_t n0 = 0; n0 < b->N; n0 += NR) {
        pack_panel(g, b->k0, b->K, b->n0 + n0, panels + n0 * b->K);
    }
}

/* The blocks in order; false after the last. Begin with an empty one. */
static bool next_block(const dt_gemm *g, block *b)
{
    b->k0 += b->K;
    if (b->k0 == g->K) {
        b->k0 = 0;
        b->n0 += b->N;
    }
    b->K = g->K - b->k0 < DT_GEMM_BLOCK ? g->K - b->k0 : DT_GEMM_BLOCK;
    b->N = g->N - b->n0 < DT_GEMM_COLUMNS ? g->N - b->n0 : DT_GEMM_COLUMNS;
    return b->N > 0;
}

static size_t block_floats(const block *b)
{
    return (size_t)(b->K * ((b->N + NR - 1) / NR * NR));
}

/* a . b in 16 lanes, halved to VL: along k, four times 16 lanes at a time. */
static ALWAYS_INLINE vf dot_product(const float *a, const float *b, int64_t K)
{
    enum { SUMS = 4, STEP = SUMS * LANES };
    vw sum[SUMS] = {vw_set(0), vw_set(0), vw_set(0), vw_set(0)};
    int64_t k = 0;
    for (; k + STEP <= K; k += STEP) {
#pragma GCC unroll 16
        for (int i = 0; i < STEP / VL; i++) {
            vf *part = &sum[i / VW].part[i % VW];
            *part = vf_fma(vf_load(a + k + i * VL), vf_load(b + k + i * VL), *part);
        }
    }
    for (; k < K; k += LANES) { /* what is left goes to the first 16 */
#pragma GCC unroll 4
        for (int i = 0; i < VW; i++) {
            const int64_t at = k + i * VL, left = VF_LEFT(at, K);
            if (left > 0) {
                sum[0].part[i] = vf_fma(vf_get(a + at, left), vf_get(b + at, left), sum[0].part[i]);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < VW; i++) {
        sum[0].part[i] = (sum[0].part[i] + sum[1].part[i]) + (sum[2].part[i] + sum[3].part[i]);
    }
    return vw_half(sum[0]);
}

/* Up to VL rows of column n, their sums halved together. */
static ALWAYS_INLINE void sum_rows(const dt_gemm *g, int64_t m, int64_t n, int64_t rows)
{
    const float *a = g->a + m * g->a_row, *b = g->b + n * g->b_col;
    float *c = g->c + m * g->c_row + n, sum[VL];
    vf part[VL];
    for (int64_t i = 0; i < rows; i++) {
        part[i] = dot_product(a + i * g->a_row, b, g->K);
    }
    for (int64_t i = rows; i < VL; i++) {
        part[i] = vf_set(0);
    }
    vf_store(sum, vf_sum_each(part));
    for (int64_t i = 0; i < rows; i++) {
        const float start = g->accum ? c[i * g->c_row] : g->bias != NULL ? g->bias[n] : 0;
        c[i * g->c_row] = start + sum[i];
    }
}

/* Few columns: dot products. */
static void multiply_thin(const dt_gemm *g)
{
    const block all = {.K = g->K, .N = g->N};
    VF_FOR (m, rows, g->M) {
        for (int64_t n = 0; n < g->N; n++) {
            sum_rows(g, m, n, rows);
        }
        if (g->fn != 0) {
            apply_rows(g, &all, m, rows);
        }
    }
}

enum { THIN_COLUMNS = 4, THIN_VECTORS = 4, PACK_ROWS = 7 };

/* nv vectors of rows of C from row m on, N columns; the last vector has `last` rows. */
static ALWAYS_INLINE void sum_columns(const dt_gemm *g, int64_t m, const int nv, int64_t last, const int N)
{
    vf acc[THIN_VECTORS][THIN_COLUMNS];
    float c[VL];
    for (int v = 0; v < nv; v++) {
        for (int n = 0; n < N; n++) {
            for (int64_t i = 0; i < VL; i++) {
                const bool is_there = v < nv - 1 || i < last;
                c[i] = g->accum && is_there ? g->c[(m + v * VL + i) * g->c_row + n] : 0;
            }
            acc[v][n] = vf_load(c);
        }
    }
    for (int64_t k = 0; k < g->K; k++) {
        const float *a = g->a + k * g->a_k + m, *b = g->b + k * g->b_k;
        for (int v = 0; v < nv; v++) {
            const vf left = vf_get(a + v * VL, v == nv - 1 ? last : VL);
            for (int n = 0; n < N; n++) {
                acc[v][n] = vf_fma(left, vf_set(b[n]), acc[v][n]);
            }
        }
    }
    for (int v = 0; v < nv; v++) {
        for (int n = 0; n < N; n++) {
            vf_store(c, acc[v][n]);
            for (int64_t i = 0; i < (v == nv - 1 ? last : VL); i++) {
                g->c[(m + v * VL + i) * g->c_row + n] = c[i];
            }
        }
    }
}

static ALWAYS_INLINE void sum_all_columns(const dt_gemm *g, const int N)
{
    int64_t m = 0;
    for (; m + THIN_VECTORS * VL <= g->M; m += THIN_VECTORS * VL) {
        sum_columns(g, m, THIN_VECTORS, VL, N);
    }
    for (; m < g->M; m += VL) {
        sum_columns(g, m, 1, g->M - m < VL ? g->M - m : VL, N);
    }
}

/* Few columns, A in columns: the gradient of a layer with few inputs. Vectors run along the rows of C; every element is
 * one chain over k, as in tiles. */
static void multiply_thin_columns(const dt_gemm *g)
{
    switch (g->N) {
    case 1:
        sum_all_columns(g, 1);
        break;
    case 2:
        sum_all_columns(g, 2);
        break;
    case 3:
        sum_all_columns(g, 3);
        break;
    default:
        sum_all_columns(g, THIN_COLUMNS);
        break;
    }
}

static bool is_thin_product(const dt_gemm *g)
{
    return g->N <= THIN_COLUMNS && g->a_k == 1 && g->b_k == 1;
}

void CPU(gemm)(const dt_gemm *g, float *scratch)
{
    if (g->M == 0 || g->N == 0) {
        return;
    }
    if (g->K == 0) {
        write_empty_sum(g);
        return;
    }
    if (is_thin_product(g)) {
        multiply_thin(g);
        return;
    }
    if (g->N <= THIN_COLUMNS && g->a_row == 1 && g->b_col == 1 && g->bias == NULL && g->fn == 0) {
        multiply_thin_columns(g);
        return;
    }
    float *tile_copy = scratch, *panels = scratch + DT_GEMM_TILE * (g->K < DT_GEMM_BLOCK ? g->K : DT_GEMM_BLOCK);
    block b = {0};
    while (next_block(g, &b)) {
        /* some rows do not pay for packing what can be read in place */
        const bool is_packed = g->M > PACK_ROWS * MR || g->b_col != 1 || b.N % NR != 0;
        if (is_packed) {
            pack_block(g, &b, panels);
        }
        run_block(g, &b, is_packed ? panels : NULL, tile_copy);
    }
}

void CPU(gemm_pack)(const dt_gemm *g, float *packed)
{
    block b = {0};
    while (g->K > 0 && next_block(g, &b)) {
        pack_block(g, &b, packed);
        packed += block_floats(&b);
    }
}

void CPU(gemm_packed)(const dt_gemm *g, const float *packed, float *scratch)
{
    if (g->M == 0) {
        return;
    }
    if (g->K == 0) {
        write_empty_sum(g);
        return;
    }
    block b = {0};
    while (next_block(g, &b)) {
        run_block(g, &b, packed, scratch);
        packed += block_floats(&b);
    }
}

void CPU(gemm_kept)(const dt_gemm *g, float *kept, bool is_kept, float *scratch)
{
    if (is_thin_product(g)) {
        CPU(gemm)(g, scratch);
        return;
    }
    if (!is_kept) {
        CPU(gemm_pack)(g, kept);
    }
    CPU(gemm_packed)(g, kept, scratch);
}
