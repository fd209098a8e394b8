/* SPDX-License-Identifier: Apache-2.0
 *
 * See field.h. The loops over the cells of a row are plain and free of branches, on 16-bit numbers, for compilers to
 * make vectors of; only the look-up of entropies is one by one. They are compiled twice, for any processor and for
 * those with AVX2, and give the same numbers.
 */
#include "field.h"

#include "dtrain/helpers.h"
#include "dtrain/random.h"

#if defined(__x86_64__) && defined(__GNUC__)
#    include <emmintrin.h>
#    define HAS_WIDE 1
#    define WIDE     __attribute__((target("avx2")))
#else
#    define HAS_WIDE 0
#    define WIDE
#endif
#define IN_BOTH __attribute__((always_inline)) static inline

enum {
    NOISE_STREAM = 2,
    PATCH_STREAM = 4,
    LEAST_KNOTS = 2,
    BINS = 4096,
    LINE = 32,
    FIELD_BLOCK = 16,
    ROOM = FIELD_MAX_CELLS + 2 * FIELD_BLOCK,
    PATCH_SAMPLE = 4
};

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

int32_t field_odds(double p)
{
    return (int32_t)lround(log(p / (1 - p)) * FIELD_UNIT);
}

double field_probability(int32_t odds)
{
    return 1 / (1 + exp(-(double)odds / FIELD_UNIT));
}

double field_entropy_bits(double p)
{
    return p <= 0 || p >= 1 ? 0 : -p * log2(p) - (1 - p) * log2(1 - p);
}

/* ---- noise ------------------------------------------------------------------------------------------------------- */

void field_noise_init(field_noise *n, uint64_t seed, uint32_t step, uint32_t uav)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (uint32_t lane = 0; lane < FIELD_LANES; lane++) {
        const uint32_t counter[4] = {lane, step, NOISE_STREAM, uav};
        uint32_t out[4];
        dt_random_philox(key, counter, out);
        for (int k = 0; k < 4; k++) {
            n->word[k][lane] = out[k];
        }
    }
}

typedef uint32_t lanes __attribute__((vector_size(sizeof(uint32_t) * FIELD_LANES)));

/* n numbers of 16 bits, rounded up to whole draws of 2 FIELD_LANES:
 *   result = s0 + s3, then the state advances */
IN_BOTH void draw_row(field_noise *noise, int16_t *out, int32_t n)
{
    lanes s[4];
    memcpy(s, noise->word, sizeof(s));
    for (int32_t at = 0; at < n; at += 2 * FIELD_LANES) {
        const lanes sum = s[0] + s[3], shifted = s[1] << 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = (s[3] << 11) | (s[3] >> 21);
        memcpy(out + at, &sum, sizeof(sum));
    }
    memcpy(noise->word, s, sizeof(s));
}

/* -1 where a is negative, else 0: comparisons in 16 bits, which compilers widen otherwise */
IN_BOTH int16_t sign_mask(int16_t a)
{
    return (int16_t)(a >> 15);
}

/* n cells and those right of them, up to whole blocks: loops over these have no rest. What a row's blocks reach beyond
 * its runs keeps its value: fuse's caller puts it back, and settle finds nothing changed there, because runs are
 * FIELD_BLOCK cells apart at least. A block of padding follows the last cell. */
IN_BOTH int32_t round_up_to_blocks(int32_t n)
{
    return (n + FIELD_BLOCK - 1) & -FIELD_BLOCK;
}

IN_BOTH int32_t dot_product(const int16_t *restrict a, const int16_t *restrict b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t x = 0; x < n; x++) {
        sum += a[x] * b[x];
    }
    return sum;
}

/* ---- the whole field --------------------------------------------------------------------------------------------- */

dt_status field_init(field *f, const dt_host *h, int32_t cells)
{
    const uint64_t n = (uint64_t)cells * (uint64_t)cells + FIELD_BLOCK;
    f->cells = cells;
#if HAS_WIDE
    f->is_wide = __builtin_cpu_supports("avx2") != 0;
#endif
    f->limit = (int16_t)-field_odds(FIELD_CLAMP);
    f->unsure = (int16_t)floor(log(FIELD_SURE / (1 - FIELD_SURE)) * FIELD_UNIT);
    f->entropy = h->alloc(h, (2 * (uint64_t)f->limit + 1) * sizeof(*f->entropy));
    f->truth = h->alloc(h, n * sizeof(*f->truth));
    f->odds = h->alloc(h, n * sizeof(*f->odds));
    f->H = h->alloc(h, n * sizeof(*f->H));
    if (f->entropy == NULL || f->truth == NULL || f->odds == NULL || f->H == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "out of memory for a field of %d by %d cells", cells, cells);
    }
    for (int32_t odds = -f->limit; odds <= f->limit; odds++) {
        f->entropy[odds + f->limit] = (int16_t)lround(field_entropy_bits(field_probability(odds)) * FIELD_ONE);
    }
    return DT_OK;
}

void field_fini(field *f, const dt_host *h)
{
    h->release(h, f->entropy);
    h->release(h, f->truth);
    h->release(h, f->odds);
    h->release(h, f->H);
}

static void reset_entropy(field *f)
{
    const int64_t n = (int64_t)f->cells * f->cells + FIELD_BLOCK; /* what follows is as if not measured */
    f->n_target = 0;
    for (int32_t y = 0; y < f->cells; y++) {
        const int16_t *truth = f->truth + (int64_t)y * f->cells;
        f->n_target += dot_product(truth, truth, f->cells);
    }
    memset(f->odds, 0, (size_t)n * sizeof(*f->odds));
    for (int64_t i = 0; i < n; i++) {
        f->H[i] = FIELD_ONE;
    }
    f->score = (field_score){.H = f->n_target * FIELD_ONE};
    f->weighted = (n - FIELD_BLOCK) * FIELD_ONE; /* 2 w is 1 */
}

void field_half_plane(field *f, uint32_t side, double share)
{
    const int32_t C = f->cells, edge = (int32_t)lround(share * C);
    for (int32_t y = 0; y < C; y++) {
        int16_t *truth = f->truth + (int64_t)y * C;
        const bool is_row = side == 2 ? y < edge : y >= C - edge;
        const int32_t from = side == 1 ? C - edge : 0, to = side == 0 ? edge : C;
        const size_t n = side < 2 || is_row ? (size_t)(to - from) : 0;
        memset(truth, 0, (size_t)C * sizeof(*truth));
        memset(truth + from, 0xff, n * sizeof(*truth)); /* -1 */
    }
    reset_entropy(f);
}

/* A row of values between knots, each uniform in [0,1): bilinear (value noise). */
static void patch_row(const double *knot, int32_t knots, int32_t cells, int32_t y, int32_t stride, float *out)
{
    const double scale = (double)(knots - 1) / cells, v = (y + 0.5) * scale;
    const int32_t j = (int32_t)v;
    const double *low = knot + (int64_t)j * knots, *high = low + knots;
    for (int32_t x = 0; x < cells; x += stride) {
        const double u = (x + 0.5) * scale;
        const int32_t i = (int32_t)u;
        const double south = low[i] + (low[i + 1] - low[i]) * (u - i),
                     north = high[i] + (high[i + 1] - high[i]) * (u - i);
        out[x] = (float)(south + (north - south) * (v - j));
    }
}

/* The value that the share of the cells is above, of every PATCH_SAMPLE-th row and column. */
static float patch_level(const double *knot, int32_t knots, int32_t cells, double share)
{
    static const double whole = BINS;
    int32_t count[BINS] = {0}, n = 0, above = 0, bin = BINS;
    float row[FIELD_MAX_CELLS];
    for (int32_t y = 0; y < cells; y += PATCH_SAMPLE) {
        patch_row(knot, knots, cells, y, PATCH_SAMPLE, row);
        for (int32_t x = 0; x < cells; x += PATCH_SAMPLE, n++) {
            const int32_t at = (int32_t)((double)row[x] * whole);
            count[at < BINS ? at : BINS - 1]++;
        }
    }
    while (bin > 0 && above < share * n) {
        above += count[--bin];
    }
    return (float)(bin / whole);
}

void field_patches(field *f, uint64_t seed, int32_t knots, double share)
{
    enum { MOST = 65 };
    double knot[MOST * MOST];
    float row[FIELD_MAX_CELLS];
    dt_random r;
    dt_random_init(&r, seed, PATCH_STREAM);
    knots = knots < LEAST_KNOTS ? LEAST_KNOTS : knots > MOST ? MOST : knots;
    for (int32_t i = 0; i < knots * knots; i++) {
        knot[i] = dt_random_uniform(&r);
    }
    const float level = patch_level(knot, knots, f->cells, share);
    for (int32_t y = 0; y < f->cells; y++) {
        int16_t *truth = f->truth + (int64_t)y * f->cells;
        patch_row(knot, knots, f->cells, y, 1, row);
        for (int32_t x = 0; x < f->cells; x++) {
            truth[x] = (int16_t) - (row[x] >= level);
        }
    }
    reset_entropy(f);
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

static int32_t clamp_to_high(int32_t x, int32_t high)
{
    return x < 0 ? 0 : x > high ? high : x;
}

field_rect field_footprint(const field *f, int32_t x, int32_t y, int32_t half)
{
    return (field_rect){clamp_to_high(x - half, f->cells), clamp_to_high(x + half, f->cells),
                        clamp_to_high(y - half, f->cells), clamp_to_high(y + half, f->cells)};
}

/* z = truth, flipped with probability error; L += z ? odds : -odds, within the limit */
IN_BOTH int16_t measurement_gain(int16_t truth, int16_t random, const field_level *level)
{
    const int16_t is_wrong = sign_mask((int16_t)((random & 0x7fff) - level->flip)), twice = (int16_t)(2 * level->odds);
    return (int16_t)(((int16_t)(truth ^ is_wrong) & twice) - level->odds);
}

IN_BOTH void fuse_measurement(const int16_t *restrict truth, const int16_t *restrict random, int16_t *restrict odds,
                              int32_t n, const field_level *level, int16_t limit)
{
    for (int32_t x = 0; x < round_up_to_blocks(n); x++) {
        const int16_t L = (int16_t)(odds[x] + measurement_gain(truth[x], random[x], level));
        const int16_t low = L > (int16_t)-limit ? L : (int16_t)-limit;
        odds[x] = low < limit ? low : limit;
    }
}

/* random: of the row's cells that the view covers */
IN_BOTH void measure_row(field *f, field_view *v, int32_t y, const field_level *level, const int16_t *random)
{
    const int32_t n = v->at.x1 - v->at.x0, S = v->stride;
    const int64_t at = (int64_t)y * f->cells + v->at.x0;
    int16_t right[FIELD_BLOCK];
    memcpy(right, f->odds + at + n, sizeof(right));
    fuse_measurement(f->truth + at, random, f->odds + at, n, level, f->limit);
    memcpy(f->odds + at + n, right, sizeof(right));
    if (y % S == 0) {
        const int32_t first = (v->at.x0 + S - 1) / S, columns = (v->at.x1 + S - 1) / S - first;
        int16_t *seen = v->seen + (int64_t)(y / S - (v->at.y0 + S - 1) / S) * columns;
        for (int32_t i = 0; i < columns; i++) {
            const int32_t x = (first + i) * S - v->at.x0;
            seen[i] = measurement_gain(f->truth[at + x], random[x], level);
        }
    }
}

/* The runs of columns that measurements cover in row y, merged where less than a block is between them, from left to
 * right. */
static uint32_t merge_column_runs(const field_view *view, uint32_t n, int32_t y, int32_t run[FIELD_MAX_VIEWS][2])
{
    uint32_t n_runs = 0;
    for (uint32_t i = 0; i < n; i++) {
        const field_rect *r = &view[i].at;
        uint32_t k = n_runs;
        if (y < r->y0 || y >= r->y1 || r->x0 >= r->x1) {
            continue;
        }
        for (; k > 0 && run[k - 1][0] > r->x0; k--) {
            run[k][0] = run[k - 1][0];
            run[k][1] = run[k - 1][1];
        }
        run[k][0] = r->x0;
        run[k][1] = r->x1;
        n_runs++;
    }
    uint32_t kept = 0;
    for (uint32_t k = 1; k < n_runs; k++) {
        if (run[k][0] < run[kept][1] + FIELD_BLOCK) {
            run[kept][1] = run[k][1] > run[kept][1] ? run[k][1] : run[kept][1];
        } else {
            kept++;
            run[kept][0] = run[k][0];
            run[kept][1] = run[k][1];
        }
    }
    return n_runs > 0 ? kept + 1 : 0;
}

/* 2 w */
IN_BOTH int16_t weight_of_odds(int16_t odds, int16_t unsure)
{
    return (int16_t)(1 - sign_mask((int16_t)(unsure - odds)) + sign_mask((int16_t)(odds + unsure)));
}

/* One by one: gathering is slower, by compilers or by processors. */
#if HAS_WIDE
static void look_up_entropy(const int16_t *entropy, const int16_t *odds, int16_t *h, int32_t n)
{
    for (int32_t x = 0; x < n; x += 8, odds += 8) {
        __m128i v = _mm_cvtsi32_si128((uint16_t)entropy[odds[0]]);
        v = _mm_insert_epi16(v, entropy[odds[1]], 1);
        v = _mm_insert_epi16(v, entropy[odds[2]], 2);
        v = _mm_insert_epi16(v, entropy[odds[3]], 3);
        v = _mm_insert_epi16(v, entropy[odds[4]], 4);
        v = _mm_insert_epi16(v, entropy[odds[5]], 5);
        v = _mm_insert_epi16(v, entropy[odds[6]], 6);
        v = _mm_insert_epi16(v, entropy[odds[7]], 7);
        _mm_storeu_si128((__m128i *)(h + x), v);
    }
}
#else
static void look_up_entropy(const int16_t *entropy, const int16_t *odds, int16_t *h, int32_t n)
{
    for (int32_t x = 0; x < n; x++) {
        h[x] = entropy[odds[x]];
    }
}
#endif

typedef struct field_change { /* of cells measured: 2 w after, how much more than before, the fall of H, new claims */
    int16_t weight[ROOM], more[ROOM], fall[ROOM], claim[ROOM];
} field_change;

/* was, is: L before and after; H before, which becomes h, after; 2 w from each L. Claims are -1, as the truth is. */
IN_BOTH void update_entropy(field *f, const int16_t *restrict truth, const int16_t *restrict was,
                            const int16_t *restrict is, int16_t *restrict H, const int16_t *restrict h, int32_t n,
                            field_worth *worth)
{
    field_change c;
    const int16_t unsure = f->unsure;
    int32_t gained = 0, more = 0, found = 0, claimed = 0, fall = 0; /* enough for FIELD_MAX_CELLS times 2 FIELD_ONE */
    for (int32_t x = 0; x < n; x++) {
        const int16_t w = weight_of_odds(is[x], unsure);
        c.weight[x] = w;
        c.more[x] = (int16_t)(w - weight_of_odds(was[x], unsure));
        c.fall[x] = (int16_t)(H[x] - h[x]);
        c.claim[x] = (int16_t)(sign_mask((int16_t)-is[x]) - sign_mask((int16_t)-was[x]));
    }
    for (int32_t x = 0; x < n; x++) {
        gained += c.weight[x] * c.fall[x];
        more += c.more[x] * H[x];
        found += truth[x] * c.claim[x];
        fall += truth[x] * c.fall[x];
        claimed -= c.claim[x];
        H[x] = h[x];
    }
    worth->gained += gained;
    worth->before += more;
    f->weighted += more - gained;
    f->score.H += fall;
    f->score.n_found += found;
    f->score.n_claimed += claimed;
}

typedef struct field_row { /* by column, but random by what a view covers */
    int16_t random[FIELD_MAX_VIEWS][ROOM], was[ROOM], h[ROOM];
} field_row;

IN_BOTH bool covers_row(const field_view *v, int32_t y)
{
    return y >= v->at.y0 && y < v->at.y1;
}

/* Ahead by a row: a load of many bytes waits for stores of fewer to the same place. */
IN_BOTH void draw_ahead(field_view *view, uint32_t n, int32_t y, field_row *row)
{
    for (uint32_t i = 0; i < n; i++) {
        if (covers_row(&view[i], y)) {
            draw_row(&view[i].noise, row->random[i], view[i].at.x1 - view[i].at.x0);
        }
    }
}

/* rows are too short, and too far apart, for processors to see what comes next */
IN_BOTH void fetch_ahead(const field *f, const field_view *view, uint32_t n, int32_t y)
{
    for (uint32_t i = 0; i < n; i++) {
        if (covers_row(&view[i], y)) {
            const int64_t row = (int64_t)y * f->cells;
            for (int32_t x = view[i].at.x0; x < view[i].at.x1; x += LINE) {
                __builtin_prefetch(f->truth + row + x);
                __builtin_prefetch(f->odds + row + x, 1);
                __builtin_prefetch(f->H + row + x, 1);
            }
        }
    }
}

IN_BOTH void measure_views(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    int32_t y0 = f->cells, y1 = 0;
    field_worth worth = {0, f->weighted};
    field_row row;
    for (uint32_t i = 0; i < n; i++) {
        y0 = view[i].at.y0 < y0 ? view[i].at.y0 : y0;
        y1 = view[i].at.y1 > y1 ? view[i].at.y1 : y1;
    }
    draw_ahead(view, n, y0, &row);
    fetch_ahead(f, view, n, y0 + 1);
    for (int32_t y = y0; y < y1; y++) {
        int32_t run[FIELD_MAX_VIEWS][2];
        const int16_t *truth = f->truth + (int64_t)y * f->cells;
        int16_t *odds = f->odds + (int64_t)y * f->cells, *H = f->H + (int64_t)y * f->cells;
        const uint32_t n_runs = merge_column_runs(view, n, y, run);
        for (uint32_t k = 0; k < n_runs; k++) {
            memcpy(row.was + run[k][0], odds + run[k][0],
                   (size_t)round_up_to_blocks(run[k][1] - run[k][0]) * sizeof(*odds));
        }
        for (uint32_t i = 0; i < n; i++) {
            if (covers_row(&view[i], y)) {
                measure_row(f, &view[i], y, &level[view[i].level], row.random[i]);
            }
        }
        for (uint32_t k = 0; k < n_runs; k++) {
            look_up_entropy(f->entropy + f->limit, odds + run[k][0], row.h + run[k][0],
                            round_up_to_blocks(run[k][1] - run[k][0]));
        }
        draw_ahead(view, n, y + 1, &row);
        fetch_ahead(f, view, n, y + 2);
        for (uint32_t k = 0; k < n_runs; k++) {
            const int32_t x = run[k][0];
            update_entropy(f, truth + x, row.was + x, odds + x, H + x, row.h + x, round_up_to_blocks(run[k][1] - x),
                           &worth);
        }
    }
    *worth_p = worth;
}

WIDE static void measure_wide(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    measure_views(f, view, n, level, worth_p);
}

void field_measure(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    if (f->is_wide) {
        measure_wide(f, view, n, level, worth_p);
    } else {
        measure_views(f, view, n, level, worth_p);
    }
}

field_score field_score_of(const field *f)
{
    return f->score;
}
