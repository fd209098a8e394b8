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
#    define HAS_WIDE 1
#    define WIDE     __attribute__((target("avx2")))
#else
#    define HAS_WIDE 0
#    define WIDE
#endif
#define IN_BOTH __attribute__((always_inline)) static inline

enum { NOISE_STREAM = 2, PATCH_STREAM = 4, LEAST_KNOTS = 2, BINS = 4096, PATCH_SAMPLE = 4 };

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
 *   result = s0 + s3, then the state goes on */
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
IN_BOTH int16_t sign(int16_t a)
{
    return (int16_t)(a >> 15);
}

IN_BOTH int32_t dot(const int16_t *restrict a, const int16_t *restrict b, int32_t n)
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
    const uint64_t n = (uint64_t)cells * (uint64_t)cells;
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

static void forget(field *f)
{
    const int64_t n = (int64_t)f->cells * f->cells;
    f->n_target = 0;
    for (int32_t y = 0; y < f->cells; y++) {
        const int16_t *truth = f->truth + (int64_t)y * f->cells;
        f->n_target += dot(truth, truth, f->cells);
    }
    memset(f->odds, 0, (size_t)n * sizeof(*f->odds));
    for (int64_t i = 0; i < n; i++) {
        f->H[i] = FIELD_ONE;
    }
    f->weighted = n * FIELD_ONE; /* 2 w is 1 */
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
    forget(f);
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
    forget(f);
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

static int32_t within(int32_t x, int32_t high)
{
    return x < 0 ? 0 : x > high ? high : x;
}

field_rect field_footprint(const field *f, int32_t x, int32_t y, int32_t half)
{
    return (field_rect){within(x - half, f->cells), within(x + half, f->cells), within(y - half, f->cells),
                        within(y + half, f->cells)};
}

/* z = truth, flipped with probability error; L += z ? odds : -odds, within the limit */
IN_BOTH void fuse(const int16_t *restrict truth, const int16_t *restrict random, int16_t *restrict odds,
                  int16_t *restrict added, int32_t n, const field_level *level, int16_t limit)
{
    const int16_t once = level->odds, twice = (int16_t)(2 * level->odds), flip = level->flip;
    for (int32_t x = 0; x < n; x++) {
        const int16_t is_wrong = sign((int16_t)((random[x] & 0x7fff) - flip));
        const int16_t z = (int16_t)(truth[x] ^ is_wrong), a = (int16_t)((z & twice) - once);
        const int16_t L = (int16_t)(odds[x] + a), low = L > (int16_t)-limit ? L : (int16_t)-limit;
        added[x] = a;
        odds[x] = low < limit ? low : limit;
    }
}

IN_BOTH void measure_row(field *f, field_view *v, int32_t y, const field_level *level)
{
    int16_t random[FIELD_MAX_CELLS + 2 * FIELD_LANES], added[FIELD_MAX_CELLS];
    const int32_t n = v->at.x1 - v->at.x0, S = v->stride;
    const int64_t at = (int64_t)y * f->cells + v->at.x0;
    draw_row(&v->noise, random, n);
    fuse(f->truth + at, random, f->odds + at, added, n, &level[v->level], f->limit);
    if (y % S == 0) {
        const int32_t first = (v->at.x0 + S - 1) / S, columns = (v->at.x1 + S - 1) / S - first;
        int16_t *seen = v->seen + (int64_t)(y / S - (v->at.y0 + S - 1) / S) * columns;
        for (int32_t i = 0; i < columns; i++) {
            seen[i] = added[(first + i) * S - v->at.x0];
        }
    }
}

/* The runs of columns that measurements cover in row y, merged, from left to right. */
static uint32_t runs_of(const field_view *view, uint32_t n, int32_t y, int32_t run[FIELD_MAX_VIEWS][2])
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
        if (run[k][0] <= run[kept][1]) {
            run[kept][1] = run[k][1] > run[kept][1] ? run[k][1] : run[kept][1];
        } else {
            kept++;
            run[kept][0] = run[k][0];
            run[kept][1] = run[k][1];
        }
    }
    return n_runs > 0 ? kept + 1 : 0;
}

typedef struct field_row { /* of cells measured: 2 w after, how much more than before, and the fall of H */
    int16_t weight[FIELD_MAX_CELLS], more[FIELD_MAX_CELLS], fall[FIELD_MAX_CELLS];
} field_row;

/* 2 w */
IN_BOTH int16_t weigh(int16_t odds, int16_t unsure)
{
    return (int16_t)(1 - sign((int16_t)(unsure - odds)) + sign((int16_t)(odds + unsure)));
}

/* was, is: L before and after; h0, h1: their entropies, 2 w from each L */
IN_BOTH void compare(const int16_t *restrict was, const int16_t *restrict is, const int16_t *restrict h0,
                     const int16_t *restrict h1, int32_t n, int16_t unsure, field_row *out)
{
    for (int32_t x = 0; x < n; x++) {
        const int16_t w = weigh(is[x], unsure);
        out->weight[x] = w;
        out->more[x] = (int16_t)(w - weigh(was[x], unsure));
        out->fall[x] = (int16_t)(h0[x] - h1[x]);
    }
}

IN_BOTH void settle_run(field *f, int64_t at, int32_t n, const int16_t *was, field_worth *worth)
{
    field_row row;
    int16_t h[FIELD_MAX_CELLS];
    const int16_t *is = f->odds + at, *entropy = f->entropy + f->limit;
    for (int32_t x = 0; x < n; x++) {
        h[x] = entropy[is[x]];
    }
    compare(was, is, f->H + at, h, n, f->unsure, &row);
    /* 32 bits are enough for FIELD_MAX_CELLS times 2 FIELD_ONE */
    const int32_t gained = dot(row.weight, row.fall, n), more = dot(row.more, f->H + at, n);
    memcpy(f->H + at, h, (size_t)n * sizeof(*h));
    worth->gained += gained;
    worth->before += more;
    f->weighted += more - gained;
}

IN_BOTH void measure(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    int32_t y0 = f->cells, y1 = 0;
    field_worth worth = {0, f->weighted};
    for (uint32_t i = 0; i < n; i++) {
        y0 = view[i].at.y0 < y0 ? view[i].at.y0 : y0;
        y1 = view[i].at.y1 > y1 ? view[i].at.y1 : y1;
    }
    for (int32_t y = y0; y < y1; y++) {
        int32_t run[FIELD_MAX_VIEWS][2];
        int16_t was[FIELD_MAX_CELLS];
        const int64_t row = (int64_t)y * f->cells;
        const uint32_t n_runs = runs_of(view, n, y, run);
        for (uint32_t k = 0; k < n_runs; k++) {
            memcpy(was + run[k][0], f->odds + row + run[k][0], (size_t)(run[k][1] - run[k][0]) * sizeof(*was));
        }
        for (uint32_t i = 0; i < n; i++) {
            if (y >= view[i].at.y0 && y < view[i].at.y1) {
                measure_row(f, &view[i], y, level);
            }
        }
        for (uint32_t k = 0; k < n_runs; k++) {
            settle_run(f, row + run[k][0], run[k][1] - run[k][0], was + run[k][0], &worth);
        }
    }
    *worth_p = worth;
}

WIDE static void measure_wide(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    measure(f, view, n, level, worth_p);
}

void field_measure(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
{
    if (f->is_wide) {
        measure_wide(f, view, n, level, worth_p);
    } else {
        measure(f, view, n, level, worth_p);
    }
}

IN_BOTH field_score judge(const field *f)
{
    int16_t claim[FIELD_MAX_CELLS];
    field_score score = {0, 0, 0};
    for (int32_t y = 0; y < f->cells; y++) {
        const int16_t *truth = f->truth + (int64_t)y * f->cells, *odds = f->odds + (int64_t)y * f->cells;
        for (int32_t x = 0; x < f->cells; x++) {
            claim[x] = sign((int16_t)-odds[x]);
        }
        /* the truth, and sign, are -1 */
        score.H -= dot(truth, f->H + (int64_t)y * f->cells, f->cells);
        score.n_found += dot(truth, claim, f->cells);
        score.n_claimed += dot(claim, claim, f->cells);
    }
    return score;
}

WIDE static field_score judge_wide(const field *f)
{
    return judge(f);
}

field_score field_judge(const field *f)
{
    return f->is_wide ? judge_wide(f) : judge(f);
}
