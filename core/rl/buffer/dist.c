/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/buffer/dist.h"

#include <math.h>
#include <string.h>

enum { BLOCK_NORMALS = 64 }; /* blocks of the stream: two heads each from 0 on, two normals each from here on */

/* [0,1) from the upper 53 of 64 bits */
static double uniform_of_bits(const uint32_t r[2])
{
    return (double)(((uint64_t)r[0] << 32 | r[1]) >> 11) * 0x1p-53;
}

/* ---- discrete ---------------------------------------------------------------------------------------------------- */

/* Join the shield to the mask of one head; where nothing is permitted what it gives the most is left. */
static void intersect_masks(const float *allow, uint8_t *mask, int32_t n, dt_dist_result *out)
{
    int32_t n_mask = 0, n_kept = 0;
    float most = -INFINITY; /* NaN is less than all */
    for (int32_t c = 0; c < n; c++) {
        n_mask += mask[c] != 0;
        most = mask[c] != 0 && allow[c] > most ? allow[c] : most;
    }
    if (n_mask > 0) {
        for (int32_t c = 0; c < n; c++) {
            const bool is_kept = most > 0 ? allow[c] > 0 : allow[c] >= most || most == -INFINITY;
            mask[c] = mask[c] != 0 && is_kept;
            n_kept += mask[c] != 0;
        }
    }
    out->is_changed = out->is_changed || n_kept < n_mask;
    out->is_infeasible = out->is_infeasible || (n_mask > 0 && !(most > 0));
}

static int32_t most_likely_choice(const float *logits, const uint8_t *mask, int32_t n)
{
    int32_t best = -1;
    for (int32_t c = 0; c < n; c++) {
        if (mask[c] != 0 && (best < 0 || logits[c] > logits[best])) {
            best = c;
        }
    }
    return best;
}

/* softmax over allowed choices, turned around at u */
static int32_t draw_choice(const float *logits, const uint8_t *mask, int32_t n, double u, bool greedy, float *log_prob)
{
    const int32_t best = most_likely_choice(logits, mask, n);
    if (best < 0) {
        *log_prob = NAN;
        return 0;
    }
    float sum = 0;
    for (int32_t c = 0; c < n; c++) {
        if (mask[c] != 0) {
            sum += expf(logits[c] - logits[best]);
        }
    }
    int32_t at = best;
    double left = u * (double)sum;
    if (!greedy) {
        for (int32_t c = 0; c < n; c++) {
            if (mask[c] != 0) {
                left -= (double)expf(logits[c] - logits[best]);
                at = c; /* rounding may leave a little after the last one */
                if (left < 0) {
                    break;
                }
            }
        }
    }
    *log_prob += logits[at] - logits[best] - logf(sum);
    return at;
}

static void draw_heads(const dt_dist *d, const dt_rng_stream *stream, uint64_t sample, bool greedy,
                       const dt_dist_row *row, dt_dist_result *out)
{
    size_t at = 0;
    uint32_t r[4] = {0};
    for (uint32_t h = 0; h < d->n_heads; h++) {
        const int32_t n = d->choices[h];
        if (row->allow != NULL) {
            intersect_masks(row->allow + at, row->mask + at, n, out);
        }
        if (h % 2 == 0 && !greedy) {
            dt_rng_stream_block(stream, sample, h / 2, r);
        }
        row->drawn_i[h] =
            draw_choice(row->logits + at, row->mask + at, n, uniform_of_bits(r + h % 2 * 2), greedy, &out->log_prob);
        at += (size_t)n;
    }
}

/* ---- continuous -------------------------------------------------------------------------------------------------- */

/* Two of mean 0 and deviation 1 (Box & Muller 1958). */
static void draw_normals(const dt_rng_stream *stream, uint64_t sample, uint64_t block, double z[2])
{
    static const double two_pi = 6.283185307179586;
    uint32_t r[4];
    dt_rng_stream_block(stream, sample, block, r);
    const double radius = sqrt(-2 * log(1 - uniform_of_bits(r)));
    const double angle = two_pi * uniform_of_bits(r + 2);
    z[0] = radius * cos(angle);
    z[1] = radius * sin(angle);
}

static float clamp_float(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* What was drawn as a number for the environment, ignoring bounds. */
static float to_env_action(const dt_dist *d, uint32_t i, float drawn)
{
    const double middle = ((double)d->low[i] + (double)d->high[i]) / 2;
    return d->is_squashed ? (float)(middle + ((double)d->high[i] - middle) * tanh((double)drawn)) : drawn;
}

/* log d tanh(u) / du = log(1 - tanh(u)^2), in the form that does not cancel: 2 (log 2 - u - softplus(-2 u)) */
static double log_tanh_slope(double u)
{
    static const double log_2 = 0.6931471805599453;
    const double softplus = u > 0 ? log1p(exp(-2 * u)) : -2 * u + log1p(exp(2 * u));
    return 2 * (log_2 - u - softplus);
}

/* What is executed: within what the shield permits, where that is something, and always within the bounds. */
static float clip_to_shield(const dt_dist *d, const dt_dist_row *row, uint32_t i, dt_dist_result *out)
{
    const float wanted = to_env_action(d, i, row->drawn_f[i]);
    const float plain = clamp_float(wanted, d->low[i], d->high[i]);
    const float low = row->low != NULL ? row->low[i] : d->low[i];
    const float high = row->high != NULL ? row->high[i] : d->high[i];
    if (isnan(low) || isnan(high)) {
        out->log_prob = NAN;
        return plain;
    }
    out->is_infeasible = out->is_infeasible || low > high || low > d->high[i] || high < d->low[i];
    if (low > high) {
        return plain;
    }
    const float x = clamp_float(clamp_float(wanted, low, high), d->low[i], d->high[i]);
    out->is_changed = out->is_changed || x != plain;
    return x;
}

/* log N(a; mean, std) = -z^2/2 - log std - log(2 pi)/2; of tanh(a), less the logarithm of its slope there */
static void draw_gaussians(const dt_dist *d, const dt_rng_stream *stream, uint64_t sample, bool greedy,
                           const dt_dist_row *row, dt_dist_result *out)
{
    static const double half_log_two_pi = 0.9189385332046727;
    double log_prob = 0, pair[2] = {0};
    for (uint32_t i = 0; i < d->n_continuous; i++) {
        if (i % 2 == 0 && !greedy) {
            draw_normals(stream, sample, BLOCK_NORMALS + i / 2, pair);
        }
        const double std = exp((double)row->log_std[i]);
        row->drawn_f[i] = (float)((double)row->mean[i] + (greedy ? 0 : std * pair[i % 2]));
        const double z = ((double)row->drawn_f[i] - (double)row->mean[i]) / std;
        log_prob -= 0.5 * z * z + (double)row->log_std[i] + half_log_two_pi;
        if (d->is_squashed) {
            log_prob -= log_tanh_slope((double)row->drawn_f[i]);
        }
        row->executed_f[i] = clip_to_shield(d, row, i, out);
    }
    out->log_prob += (float)log_prob;
}

dt_dist_result dt_dist_draw_action(const dt_dist *d, const dt_rng_stream *stream, uint64_t sample, bool greedy,
                                   const dt_dist_row *row)
{
    dt_dist_result out = {0};
    draw_heads(d, stream, sample, greedy, row, &out);
    draw_gaussians(d, stream, sample, greedy, row, &out);
    out.log_prob = isfinite(out.log_prob) ? out.log_prob : NAN;
    return out;
}
