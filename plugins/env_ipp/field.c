/* SPDX-License-Identifier: Apache-2.0
 *
 * See field.h. The loops over the cells of a row are plain and free of branches, on 16-bit numbers, for compilers to
 * make vectors of; only the look-up of entropies is one by one.
 */
#include "field.h"

#include "dtrain/helpers.h"
#include "dtrain/random.h"

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

/* result = rotl(s0 + s3, 7) + s0, then the state goes on */
static void draw(field_noise *n, uint32_t *out)
{
    uint32_t *s0 = n->word[0], *s1 = n->word[1], *s2 = n->word[2], *s3 = n->word[3];
    for (int i = 0; i < FIELD_LANES; i++) {
        const uint32_t sum = s0[i] + s3[i], shifted = s1[i] << 9;
        out[i] = ((sum << 7) | (sum >> 25)) + s0[i];
        s2[i] ^= s0[i];
        s3[i] ^= s1[i];
        s1[i] ^= s2[i];
        s0[i] ^= s3[i];
        s2[i] ^= shifted;
        s3[i] = (s3[i] << 11) | (s3[i] >> 21);
    }
}

/* at least n numbers of 16 bits, rounded up to whole draws */
static void draw_row(field_noise *noise, int16_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i += 2 * FIELD_LANES) {
        uint32_t words[FIELD_LANES];
        draw(noise, words);
        memcpy(out + i, words, sizeof(words));
    }
}

/* ---- the whole field --------------------------------------------------------------------------------------------- */

dt_status field_init(field *f, const dt_host *h, int32_t cells)
{
    const uint64_t n = (uint64_t)cells * (uint64_t)cells;
    f->cells = cells;
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

/* Nothing is known of the truth that stands there. */
static void forget(field *f)
{
    const int64_t n = (int64_t)f->cells * f->cells;
    int64_t n_target = 0;
    memset(f->odds, 0, (size_t)n * sizeof(*f->odds));
    for (int64_t i = 0; i < n; i++) {
        f->H[i] = FIELD_ONE;
    }
    for (int32_t y = 0; y < f->cells; y++) {
        const int16_t *truth = f->truth + (int64_t)y * f->cells;
        int32_t sum = 0;
        for (int32_t x = 0; x < f->cells; x++) {
            sum -= truth[x];
        }
        n_target += sum;
    }
    f->weighted = n * FIELD_ONE; /* 2 w is 1 */
    f->n_target = n_target;
    f->target_H = n_target * FIELD_ONE;
    f->n_found = f->n_claimed = 0;
}

void field_half_plane(field *f, uint32_t side, double share)
{
    const int32_t C = f->cells, edge = (int32_t)lround(share * C);
    for (int32_t y = 0; y < C; y++) {
        int16_t *truth = f->truth + (int64_t)y * C;
        const bool is_row = side == 2 ? y < edge : y >= C - edge;
        for (int32_t x = 0; x < C; x++) {
            const bool is_column = side == 0 ? x < edge : x >= C - edge;
            truth[x] = (int16_t) - (side < 2 ? is_column : is_row);
        }
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

/* -1 where a is negative, else 0: comparisons in 16 bits, which compilers widen otherwise */
static int16_t sign(int16_t a)
{
    return (int16_t)(a >> 15);
}

/* z = truth, flipped with probability error; L += z ? odds : -odds, within the limit */
static void fuse(const int16_t *restrict truth, const int16_t *restrict random, int16_t *restrict odds,
                 int16_t *restrict added, int32_t n, const field_level *level, int16_t limit)
{
    const int16_t once = level->odds, twice = (int16_t)(2 * level->odds), flip = level->flip;
    for (int32_t x = 0; x < n; x++) {
        const int16_t is_wrong = sign((int16_t)((random[x] & 0x7fff) - flip));
        const int16_t z = (int16_t)(truth[x] ^ is_wrong);
        added[x] = (int16_t)((z & twice) - once);
    }
    for (int32_t x = 0; x < n; x++) {
        const int16_t L = (int16_t)(odds[x] + added[x]), low = L > (int16_t)-limit ? L : (int16_t)-limit;
        odds[x] = low < limit ? low : limit;
    }
}

static void measure_row(field *f, field_view *v, int32_t y, const field_level *level)
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

typedef struct row_sums { /* 32 bits are enough for FIELD_MAX_CELLS times 2 FIELD_ONE */
    int32_t after, mixed, before, target_H, found, claimed;
} row_sums;

/* 2 w */
static void weigh(const int16_t *restrict odds, int32_t n, int16_t unsure, int16_t *restrict w)
{
    for (int32_t x = 0; x < n; x++) {
        w[x] = (int16_t)(1 - sign((int16_t)(unsure - odds[x])) + sign((int16_t)(odds[x] + unsure)));
    }
}

static int32_t dot(const int16_t *restrict a, const int16_t *restrict b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t x = 0; x < n; x++) {
        sum += a[x] * b[x];
    }
    return sum;
}

/* was, is: L before and after; h0, h1: their entropies */
static void compare(const int16_t *restrict was, const int16_t *restrict is, const int16_t *restrict h0,
                    const int16_t *restrict h1, const int16_t *restrict truth, int32_t n, int16_t unsure, row_sums *out)
{
    int16_t w0[FIELD_MAX_CELLS], w1[FIELD_MAX_CELLS], claim[FIELD_MAX_CELLS], fall[FIELD_MAX_CELLS];
    int32_t claimed = 0;
    weigh(was, n, unsure, w0);
    weigh(is, n, unsure, w1);
    for (int32_t x = 0; x < n; x++) {
        claim[x] = (int16_t)(sign((int16_t)-was[x]) - sign((int16_t)-is[x]));
        fall[x] = (int16_t)(h0[x] - h1[x]);
    }
    for (int32_t x = 0; x < n; x++) {
        claimed += claim[x];
    }
    /* the truth is -1 */
    *out =
        (row_sums){dot(w1, h1, n), dot(w1, h0, n), dot(w0, h0, n), dot(fall, truth, n), -dot(claim, truth, n), claimed};
}

static void settle_run(field *f, int64_t at, int32_t n, const int16_t *was, field_worth *worth)
{
    int16_t h[FIELD_MAX_CELLS];
    const int16_t *is = f->odds + at, *entropy = f->entropy + f->limit;
    row_sums s;
    for (int32_t x = 0; x < n; x++) {
        h[x] = entropy[is[x]];
    }
    compare(was, is, f->H + at, h, f->truth + at, n, f->unsure, &s);
    memcpy(f->H + at, h, (size_t)n * sizeof(*h));
    worth->gained += s.mixed - s.after;
    worth->before += s.mixed - s.before;
    f->weighted += s.after - s.before;
    f->target_H += s.target_H;
    f->n_found += s.found;
    f->n_claimed += s.claimed;
}

void field_measure(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p)
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
