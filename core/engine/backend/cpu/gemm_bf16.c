/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of gemm.h in bf16: A and B are rounded (to nearest even) while they are packed, sums are fp32. Compiled
 * twice, with the vectors of AVX512-BF16 and with the tiles of AMX; both read the same packed operands and add in the
 * order of k.
 *
 * Packed operands are tiles of 1 KB, as TDPBF16PS requires them (Intel SDM, vol. 2):
 *   A  [16 rows][32 k]           two tiles make a strip of 32 rows
 *   B  [16 pairs of k][16 n][2]  two tiles make a panel of 32 columns
 * Rows, columns and k past the end are zeros.
 */
#include "engine/backend/cpu/gemm.h"

#include <immintrin.h>

enum {
    TILE = 16,           /* rows or columns of a tile */
    PAIR = 2 * TILE,     /* rows of a strip, columns of a panel, k of a tile */
    TILE_WORDS = 16 * 16 /* of 4 bytes */
};

typedef struct block {
    int64_t k0, K, n0, N;
} block;

static int64_t round_up(int64_t n)
{
    return (n + PAIR - 1) / PAIR * PAIR;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static ALWAYS_INLINE __mmask16 mask_first_lanes(int64_t n)
{
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* 32 floats of a row as 16 words (k, k + 1) */
static ALWAYS_INLINE __m512i pack_words_along(const float *p, int64_t n)
{
    const __m512 lo = _mm512_maskz_loadu_ps(mask_first_lanes(n), p),
                 hi = _mm512_maskz_loadu_ps(mask_first_lanes(n - 16), p + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(hi, lo);
}

/* 16 floats each of rows k and k + 1 as 16 words (k, k + 1); n_k rows exist */
static ALWAYS_INLINE __m512i pack_words_across(const float *p, int64_t row, int64_t n, int64_t n_k)
{
    static const uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                       8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512 lo = n_k > 0 ? _mm512_maskz_loadu_ps(mask_first_lanes(n), p) : _mm512_setzero_ps();
    const __m512 hi = n_k > 1 ? _mm512_maskz_loadu_ps(mask_first_lanes(n), p + row) : _mm512_setzero_ps();
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), (__m512i)_mm512_cvtne2ps_pbh(hi, lo));
}

/* r[j] word i = r[i] word j */
static ALWAYS_INLINE void transpose_tile(__m512i r[TILE])
{
    __m512i t[TILE];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        for (int q = 0; q < 2; q++) {
            r[4 * i + 2 * q] = _mm512_unpacklo_epi64(t[4 * i + q], t[4 * i + q + 2]);
            r[4 * i + 2 * q + 1] = _mm512_unpackhi_epi64(t[4 * i + q], t[4 * i + q + 2]);
        }
    }
    for (int q = 0; q < 4; q++) {
        const __m512i a = _mm512_shuffle_i32x4(r[q], r[4 + q], 0x88), b = _mm512_shuffle_i32x4(r[q], r[4 + q], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0xdd);
        t[q] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + q] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[4 + q] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + q] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < TILE; i++) {
        r[i] = t[i];
    }
}

/* One tile from n vectors (rows of A or columns of B; they may be fewer than 16) of n_k elements. to_words: word p of
 * vector i goes to dst[p][i] (a tile of B), else to dst[i][p] (a tile of A).
 *   stride_k 1: vector i is at src + i stride; otherwise (stride 1) element k of all vectors is at src + k stride_k */
static ALWAYS_INLINE void pack_tile(const float *src, int64_t stride, int64_t stride_k, int64_t n, int64_t n_k,
                                    bool is_b, uint32_t *dst)
{
    __m512i r[TILE];
    const bool along = stride_k == 1;
    if (along) {
        for (int i = 0; i < TILE; i++) {
            r[i] = i < n ? pack_words_along(src + i * stride, n_k) : _mm512_setzero_si512();
        }
    } else {
        for (int p = 0; p < TILE; p++) {
            r[p] = pack_words_across(src + 2 * p * stride_k, stride_k, n, n_k - 2 * p);
        }
    }
    if (along == is_b) {
        transpose_tile(r);
    }
    for (int i = 0; i < TILE; i++) {
        _mm512_storeu_si512(dst + i * TILE, r[i]);
    }
}

/* 32 rows of A or columns of B over K of k (a strip, a panel): tile pairs in the order of k */
static void pack_pair(const float *src, int64_t stride, int64_t stride_k, int64_t n, int64_t K, bool is_b,
                      uint32_t *dst)
{
    const int64_t n_all = is_b ? PAIR : n; /* no product takes rows of A that are not there */
    for (int64_t k = 0; k < K; k += PAIR, dst += 2 * TILE_WORDS) {
        const int64_t n_k = min_i64(K - k, PAIR);
        for (int64_t i = 0; i < n_all; i += TILE) {
            const float *from = src + i * stride + k * stride_k;
            if (n - i >= TILE && n_k == PAIR) {
                pack_tile(from, stride, stride_k, TILE, PAIR, is_b, dst + i * TILE);
            } else {
                pack_tile(from, stride, stride_k, n - i, n_k, is_b, dst + i * TILE);
            }
        }
    }
}

static void pack_block(const dt_gemm *g, const block *b, uint32_t *panels)
{
    for (int64_t n = 0; n < b->N; n += PAIR) {
        pack_pair(g->b + b->k0 * g->b_k + (b->n0 + n) * g->b_col, g->b_col, g->b_k, min_i64(b->N - n, PAIR), b->K, true,
                  panels + n * round_up(b->K) / 2);
    }
}

/* ---- a strip against a panel: a corner, up to 32 x 32 of C ------------------------------------------------------- */

typedef struct corner {
    const uint32_t *strip, *panel;
    const float *start; /* c itself, or a row of 32 that every row begins with */
    float *c;
    int64_t start_row, c_row;
    int64_t rows, n_pairs; /* rows of C, all 32 columns of which are there; tile pairs along k */
} corner;

#if defined(DT_ISA_AMX)
enum { AMX_TILES = 8, AMX_ROW_BYTES = 64 };

/* Tiles 0 to 3 are C, 4 and 5 A, 6 and 7 B; lower ones have the rows past the first 16. */
static void begin_strip(int64_t rows)
{
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    const uint8_t upper = (uint8_t)min_i64(rows, TILE), lower = (uint8_t)(rows - upper);
    const uint8_t of_tile[AMX_TILES] = {upper, upper, lower, lower, upper, lower, TILE, TILE};
    for (int i = 0; i < AMX_TILES; i++) {
        config.rows[i] = of_tile[i];
        config.row_bytes[i] = of_tile[i] > 0 ? AMX_ROW_BYTES : 0;
    }
    _tile_loadconfig(&config);
}

static void release_tiles(void)
{
    _tile_release();
}

static void run_upper_corner(const corner *q)
{
    const size_t start_row = (size_t)q->start_row * sizeof(float), c_row = (size_t)q->c_row * sizeof(float);
    const uint32_t *a = q->strip, *b = q->panel;
    _tile_loadd(0, q->start, start_row);
    _tile_loadd(1, q->start + TILE, start_row);
    for (int64_t k = 0; k < q->n_pairs; k++, a += 2 * TILE_WORDS, b += 2 * TILE_WORDS) {
        _tile_loadd(4, a, AMX_ROW_BYTES);
        _tile_loadd(6, b, AMX_ROW_BYTES);
        _tile_loadd(7, b + TILE_WORDS, AMX_ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, q->c, c_row);
    _tile_stored(1, q->c + TILE, c_row);
}

static void run_corner(const corner *q)
{
    if (q->rows <= TILE) {
        run_upper_corner(q);
        return;
    }
    const size_t start_row = (size_t)q->start_row * sizeof(float), c_row = (size_t)q->c_row * sizeof(float);
    const float *start = q->start + TILE * q->start_row;
    float *c = q->c + TILE * q->c_row;
    const uint32_t *a = q->strip, *b = q->panel;
    _tile_loadd(0, q->start, start_row);
    _tile_loadd(1, q->start + TILE, start_row);
    _tile_loadd(2, start, start_row);
    _tile_loadd(3, start + TILE, start_row);
    for (int64_t k = 0; k < q->n_pairs; k++, a += 2 * TILE_WORDS, b += 2 * TILE_WORDS) {
        _tile_loadd(4, a, AMX_ROW_BYTES);
        _tile_loadd(6, b, AMX_ROW_BYTES);
        _tile_loadd(7, b + TILE_WORDS, AMX_ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE_WORDS, AMX_ROW_BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, q->c, c_row);
    _tile_stored(1, q->c + TILE, c_row);
    _tile_stored(2, c, c_row);
    _tile_stored(3, c + TILE, c_row);
}
#else
static void begin_strip(int64_t rows) {}

static void release_tiles(void) {}

/* n rows from row i0; n is a constant of each call below */
static ALWAYS_INLINE void run_rows(const corner *q, int64_t i0, const int n)
{
    __m512 acc[8][2];
    const uint32_t *a = q->strip + i0 / TILE * TILE_WORDS + i0 % TILE * TILE, *b = q->panel;
#    pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        acc[i][0] = _mm512_loadu_ps(q->start + (i0 + i) * q->start_row);
        acc[i][1] = _mm512_loadu_ps(q->start + (i0 + i) * q->start_row + TILE);
    }
    for (int64_t k = 0; k < q->n_pairs; k++, a += 2 * TILE_WORDS, b += 2 * TILE_WORDS) {
        for (int p = 0; p < TILE; p++) {
            const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b + p * TILE);
            const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + TILE_WORDS + p * TILE);
#    pragma GCC unroll 8
            for (int i = 0; i < n; i++) {
                const __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[i * TILE + p]);
                acc[i][0] = _mm512_dpbf16_ps(acc[i][0], left, b0);
                acc[i][1] = _mm512_dpbf16_ps(acc[i][1], left, b1);
            }
        }
    }
#    pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        _mm512_storeu_ps(q->c + (i0 + i) * q->c_row, acc[i][0]);
        _mm512_storeu_ps(q->c + (i0 + i) * q->c_row + TILE, acc[i][1]);
    }
}

static void run_corner(const corner *q)
{
    int64_t i = 0;
    for (; i + 8 <= q->rows; i += 8) {
        run_rows(q, i, 8);
    }
    for (; i < q->rows; i++) {
        run_rows(q, i, 1);
    }
}
#endif

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The blocks in order; false after the last. Begin with an empty one. */
static bool next_block(const dt_gemm *g, block *b)
{
    b->k0 += b->K;
    if (b->k0 == g->K) {
        b->k0 = 0;
        b->n0 += b->N;
    }
    b->K = min_i64(g->K - b->k0, DT_GEMM_BLOCK);
    b->N = min_i64(g->N - b->n0, DT_GEMM_HALF_COLUMNS);
    return b->N > 0;
}

static size_t block_words(const block *b)
{
    return (size_t)(round_up(b->K) * round_up(b->N) / 2);
}

/* A corner that hangs over the right edge of C is computed in a place of its own. */
static void run_edge(const corner *q, int64_t columns, float *edge)
{
    corner inner = *q;
    const size_t bytes = (size_t)columns * sizeof(float);
    inner.c = edge;
    inner.c_row = PAIR;
    if (q->start == q->c) {
        for (int64_t i = 0; i < q->rows; i++) {
            memcpy(edge + i * PAIR, q->c + i * q->c_row, bytes);
        }
        inner.start = edge;
        inner.start_row = PAIR;
    }
    run_corner(&inner);
    for (int64_t i = 0; i < q->rows; i++) {
        memcpy(q->c + i * q->c_row, edge + i * PAIR, bytes);
    }
}

typedef struct places { /* in scratch */
    uint32_t *strip;
    float *start; /* what rows of C begin with: bias or zeros. Written well before tiles load it: they would wait. */
    float *edge;  /* a corner of C */
} places;

/* A packed strip of rows from m against the panels of one block. */
static void run_strip(const dt_gemm *g, const block *b, int64_t m, int64_t rows, const uint32_t *panels,
                      const places *at)
{
    const int64_t K = round_up(b->K);
    corner q = {.strip = at->strip, .c_row = g->c_row, .rows = rows, .n_pairs = K / PAIR};
    for (int64_t n = 0; n < b->N; n += PAIR) {
        const int64_t columns = min_i64(b->N - n, PAIR);
        q.panel = panels + n * K / 2;
        q.c = g->c + m * g->c_row + b->n0 + n;
        const bool is_sum = g->accum || b->k0 > 0;
        q.start = is_sum ? q.c : at->start + n;
        q.start_row = is_sum ? q.c_row : 0;
        if (columns == PAIR) {
            run_corner(&q);
        } else {
            run_edge(&q, columns, at->edge);
        }
    }
    if (g->fn != 0 && b->k0 + b->K == g->K) {
        for (int64_t i = m; i < m + rows; i++) {
            float *c = g->c + i * g->c_row + b->n0;
            CPU(apply)(g->fn, g->f0, c, c, b->N);
        }
    }
}

/* All rows against the panels of one block. */
static void run_block(const dt_gemm *g, const block *b, const uint32_t *panels, uint32_t *scratch)
{
    places at = {.strip = scratch};
    at.edge = (float *)(scratch + PAIR * round_up(b->K) / 2);
    at.start = at.edge + PAIR * PAIR;
    memset(at.start, 0, (size_t)round_up(b->N) * sizeof(*at.start));
    if (g->bias != NULL) {
        memcpy(at.start, g->bias + b->n0, (size_t)b->N * sizeof(*at.start));
    }
    for (int64_t m = 0; m < g->M; m += PAIR) {
        const int64_t rows = min_i64(g->M - m, PAIR);
        if (m == 0 || rows < PAIR) {
            begin_strip(rows);
        }
        pack_pair(g->a + m * g->a_row + b->k0 * g->a_k, g->a_row, g->a_k, rows, b->K, false, scratch);
        run_strip(g, b, m, rows, panels, &at);
    }
}

/* packed: all of B, or NULL to pack block by block into scratch. */
static void run_gemm(const dt_gemm *g, const uint32_t *packed, uint32_t *scratch)
{
    if (g->M == 0 || g->N == 0) {
        return;
    }
    if (g->K == 0) {
        write_empty_sum(g);
        return;
    }
    uint32_t *panels = scratch + dt_gemm_tile_floats(g->K);
    block b = {0};
    while (next_block(g, &b)) {
        if (packed == NULL) {
            pack_block(g, &b, panels);
        }
        run_block(g, &b, packed != NULL ? packed : panels, scratch);
        packed = packed != NULL ? packed + block_words(&b) : NULL;
    }
    release_tiles();
}

void CPU(gemm)(const dt_gemm *g, float *scratch)
{
    run_gemm(g, NULL, (uint32_t *)scratch);
}

void CPU(gemm_pack)(const dt_gemm *g, float *packed)
{
    uint32_t *to = (uint32_t *)packed;
    block b = {0};
    while (g->K > 0 && next_block(g, &b)) {
        pack_block(g, &b, to);
        to += block_words(&b);
    }
}

void CPU(gemm_packed)(const dt_gemm *g, const float *packed, float *scratch)
{
    run_gemm(g, (const uint32_t *)packed, (uint32_t *)scratch);
}

void CPU(gemm_kept)(const dt_gemm *g, float *kept, bool is_kept, float *scratch)
{
    if (!is_kept) {
        CPU(gemm_pack)(g, kept);
    }
    CPU(gemm_packed)(g, kept, scratch);
}
