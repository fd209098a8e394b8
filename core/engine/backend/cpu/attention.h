/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention kernels share. One target at a time; its neighbours' values per head lie side by side, so logits
 * and probabilities are flat arrays [degree,H] that stay in the first-level cache. Functions take H heads and C
 * channels as arguments and are inlined: with constants the accumulators live in registers.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_ATTENTION_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_ATTENTION_H

#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/vmath.h"

/* Eight heads fill half an AVX-512 vector; loads and stores of exactly eight let each load see the store before it. */
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));

/* sum[h] += a[h] */
static ALWAYS_INLINE void add_heads(float *sum, const float *a, const int64_t H)
{
    if (H == 8) {
        *(v8 *)sum += *(const v8 *)a;
        return;
    }
    VF_FOR (h, n, H) {
        vf_put(sum + h, vf_get(sum + h, n) + vf_get(a + h, n), n);
    }
}

/* sum[h] += scale[x] a[x][h], over n rows whose scales lie `step` apart */
static ALWAYS_INLINE void add_scaled_heads(float *sum, const float *scale, int64_t step, const float *a, int64_t n,
                                           const int64_t H)
{
    if (H == 8) {
        v8 total = *(const v8 *)sum;
        for (int64_t x = 0; x < n; x++) {
            total += scale[x * step] * *(const v8 *)(a + x * 8);
        }
        *(v8 *)sum = total;
        return;
    }
    VF_FOR (h, k, H) {
        vf total = vf_get(sum + h, k);
        for (int64_t x = 0; x < n; x++) {
            total = vf_fma(vf_set(scale[x * step]), vf_get(a + x * H + h, k), total);
        }
        vf_put(sum + h, total, k);
    }
}

/* a[h] and b[h]: dot products of head h of u with v and with w */
static ALWAYS_INLINE void dot_heads(const int64_t H, const int64_t C, const float *u, const float *v, const float *w,
                                    float *a, float *b)
{
    for (int64_t first = 0; first < 2 * H; first += VL) { /* rows 0..H-1 are u.v, H..2H-1 are u.w */
        vf sum[VL];
        float part[VL];
#pragma GCC unroll 16
        for (int i = 0; i < VL; i++) {
            const int64_t row = first + i, at = (row < H ? row : row - H) * C;
            const float *right = (row < H ? v : w) + at;
            vw dot = vw_set(0);
            sum[i] = vf_set(0);
            if (row >= 2 * H) {
                continue;
            }
#pragma GCC unroll 4
            VF_FOR (c, k, C) {
                vw_fma(&dot, vf_get(u + at + c, k), vf_get(right + c, k));
            }
            sum[i] = vw_half(dot);
        }
        vf_store(part, vf_sum_each(sum));
        if (2 * H == VL) {
            memcpy(a, part, (size_t)H * sizeof(*a));
            memcpy(b, part + H, (size_t)H * sizeof(*b));
            continue;
        }
        for (int64_t row = first; row < first + VL && row < 2 * H; row++) {
            if (row < H) {
                a[row] = part[row - first];
            } else {
                b[row - H] = part[row - first];
            }
        }
    }
}

/* The flat arrays are walked in steps of whole heads: the largest multiple of H in 16 lanes, so that a lane belongs to
 * one head. A step is VW vectors; lanes past its end are computed with, but neither stored nor summed. H > 16 goes
 * singly. */
static ALWAYS_INLINE int64_t flat_step_size(int64_t H)
{
    return LANES - LANES % H;
}

/* How many elements of vector v of a step, which begins at `at` of n, belong to it. */
static ALWAYS_INLINE int64_t count_in_vector(int v, int64_t at, int64_t n, int64_t H)
{
    const int64_t left = flat_step_size(H) - v * VL;
    return at >= n ? 0 : left < VL ? left : VL;
}

/* v[h] for every head, repeated through the lanes, from values of several neighbours folded together */
static ALWAYS_INLINE vw reduce_by_head(vw v, const int64_t H, const bool is_max)
{
    if (H == LANES) {
        return v;
    }
#if defined(DT_ISA_AVX512)
    if (H == 8) {
        const vf other = _mm512_shuffle_f32x4(v.part[0], v.part[0], 0x4e);
        v.part[0] = is_max ? vf_max(v.part[0], other) : (vf)(v.part[0] + other);
        return v;
    }
#elif defined(DT_ISA_AVX2)
    if (H == 8) {
        v.part[0] = is_max ? vf_max(v.part[0], v.part[1]) : (vf)(v.part[0] + v.part[1]);
        v.part[1] = v.part[0];
        return v;
    }
#endif
    float part[LANES];
    const int64_t step = flat_step_size(H);
    memcpy(part, &v, sizeof(part));
    for (int64_t i = H; i < step; i += H) {
        for (int64_t h = 0; h < H; h++) {
            const float old = part[h], next = part[i + h];
            part[h] = !is_max ? old + next : next > old ? next : old;
        }
    }
    for (int64_t i = H; i < LANES; i++) {
        part[i] = part[i - H];
    }
    memcpy(&v, part, sizeof(part));
    return v;
}

/* Padding after a flat array of n values, so that whole vectors can be read and written. */
static ALWAYS_INLINE void pad_flat(float *flat, int64_t n, float value)
{
    vf_store(flat + n, vf_set(value));
}

/* z [degree,H], padded: p = softmax over the neighbours, in place */
static ALWAYS_INLINE void softmax_flat(float *z, const int64_t n, const int64_t H)
{
    if (H > LANES) {
        for (int64_t h = 0; h < H; h++) {
            float top = n > 0 ? z[h] : 0, sum = 0;
            for (int64_t i = h; i < n; i += H) {
                top = z[i] > top ? z[i] : top;
            }
            for (int64_t i = h; i < n; i += H) {
                float e[VL];
                vf_store(e, vf_exp(vf_set(z[i] - top)));
                z[i] = e[0];
                sum += e[0];
            }
            for (int64_t i = h; i < n; i += H) {
                z[i] /= sum;
            }
        }
        return;
    }
    const int64_t step = flat_step_size(H);
    pad_flat(z, n, -__builtin_inff());
    vw top = vw_set(-__builtin_inff()), sum = vw_set(0);
    for (int64_t i = 0; i < n; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < VW; v++) {
            const int64_t at = i + v * VL, k = count_in_vector(v, at, n, H);
            if (k > 0) {
                top.part[v] = vf_max(top.part[v], vf_load(z + at));
            }
        }
    }
    top = reduce_by_head(top, H, true);
    for (int64_t i = 0; i < n; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < VW; v++) {
            const int64_t at = i + v * VL, k = count_in_vector(v, at, n, H);
            if (k > 0) {
                const vf e = vf_exp(vf_load(z + at) - top.part[v]);
                vf_put(z + at, e, k);
                sum.part[v] = sum.part[v] + e;
            }
        }
    }
    vw inverse = reduce_by_head(sum, H, false);
#pragma GCC unroll 4
    for (int v = 0; v < VW; v++) {
        inverse.part[v] = vf_set(1) / inverse.part[v];
    }
    for (int64_t i = 0; i < n; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < VW; v++) {
            const int64_t at = i + v * VL, k = count_in_vector(v, at, n, H);
            if (k > 0) {
                vf_put(z + at, vf_load(z + at) * inverse.part[v], k);
            }
        }
    }
}

/* dz = p (dp - sum over the neighbours of p dp), over dp; returns the sum of slope' dz for each head when z is given:
 * there dz is multiplied by 1 where z > 0 and by slope elsewhere. All flat, dp and z padded; total [H] or NULL. */
static ALWAYS_INLINE void softmax_flat_backward(const float *p, float *dp, float *z, float slope, float *total,
                                                const int64_t n, const int64_t H)
{
    if (H > LANES) {
        for (int64_t h = 0; h < H; h++) {
            float mean = 0, sum = 0;
            for (int64_t i = h; i < n; i += H) {
                mean += p[i] * dp[i];
            }
            for (int64_t i = h; i < n; i += H) {
                dp[i] = p[i] * (dp[i] - mean) * (z == NULL || z[i] > 0 ? 1 : slope);
                sum += dp[i];
            }
            if (total != NULL) {
                total[h] = sum;
            }
        }
        return;
    }
    const int64_t step = flat_step_size(H);
    pad_flat(dp, n, 0);
    if (z != NULL) {
        pad_flat(z, n, 0);
    }
    vw mean = vw_set(0), sum = vw_set(0);
    for (int64_t i = 0; i < n; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < VW; v++) {
            const int64_t at = i + v * VL, k = count_in_vector(v, at, n, H);
            if (k > 0) {
                mean.part[v] = vf_fma(vf_get(p + at, n - at < k ? n - at : k), vf_load(dp + at), mean.part[v]);
            }
        }
    }
    mean = reduce_by_head(mean, H, false);
    for (int64_t i = 0; i < n; i += step) {
#pragma GCC unroll 4
        for (int v = 0; v < VW; v++) {
            const int64_t at = i + v * VL, k = count_in_vector(v, at, n, H);
            if (k > 0) {
                vf d = vf_get(p + at, n - at < k ? n - at : k) * (vf_load(dp + at) - mean.part[v]);
                if (z != NULL) {
                    d = vf_if_gt(vf_load(z + at), vf_set(0), d, d * vf_set(slope));
                }
                vf_put(dp + at, d, k);
                sum.part[v] = sum.part[v] + d;
            }
        }
    }
    if (total != NULL) {
        sum = reduce_by_head(sum, H, false);
        memcpy(total, &sum, (size_t)H * sizeof(*total));
    }
}

/* out[h,c] (+)= scale sum_x p[x,h] value[col[x]][h,c] */
static ALWAYS_INLINE void sum_weighted_values(const float *p, const float *value, const int32_t *col, int64_t degree,
                                              float scale, float *out, const int64_t H, const int64_t C)
{
    enum { ACCS = VL == 16 ? 16 : 8 };
    const int64_t D = H * C, per_head = C / VL;
    if (__builtin_constant_p(C) && C % VL == 0 && ACCS % per_head == 0 && H % (ACCS / per_head) == 0) {
        const int64_t heads = ACCS / per_head;
        for (int64_t h0 = 0; h0 < H; h0 += heads) {
            vf sum[ACCS];
#pragma GCC unroll 16
            for (int i = 0; i < ACCS; i++) {
                sum[i] = vf_set(0);
            }
            for (int64_t x = 0; x < degree; x++) {
                const float *v = value + col[x] * D + h0 * C;
#pragma GCC unroll 16
                for (int i = 0; i < ACCS; i++) {
                    sum[i] = vf_fma(vf_set(p[x * H + h0 + i / per_head]), vf_load(v + i * VL), sum[i]);
                }
            }
#pragma GCC unroll 16
            for (int i = 0; i < ACCS; i++) {
                vf_store(out + h0 * C + i * VL, sum[i] * vf_set(scale));
            }
        }
        return;
    }
    for (int64_t h = 0; h < H; h++) {
        VF_FOR (c, k, C) {
            vf sum = vf_set(0);
            for (int64_t x = 0; x < degree; x++) {
                sum = vf_fma(vf_set(p[x * H + h]), vf_get(value + col[x] * D + h * C + c, k), sum);
            }
            vf_put(out + h * C + c, sum * vf_set(scale), k);
        }
    }
}

/* sum[h,c] += p[h] value[h,c] */
static ALWAYS_INLINE void add_weighted_value(const float *p, const float *value, float *sum, const int64_t H,
                                             const int64_t C)
{
    for (int64_t h = 0; h < H; h++) {
        const vf w = vf_set(p[h]);
        VF_FOR (c, k, C) {
            vf_put(sum + h * C + c, vf_fma(w, vf_get(value + h * C + c, k), vf_get(sum + h * C + c, k)), k);
        }
    }
}

/* sum[col[x]][h,c] += scale p[x,h] value[h,c] for the neighbours x of one target: what its row sends back to them */
static ALWAYS_INLINE void scatter_weighted_values(const float *p, const float *value, const int32_t *col,
                                                  int64_t degree, float scale, float *sum, const int64_t H,
                                                  const int64_t C)
{
    const int64_t D = H * C, per_head = C / VL;
    if (VL == 16 && __builtin_constant_p(C) && C % VL == 0 && H * per_head == 16) {
        vf held[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            held[i] = vf_load(value + i * VL) * vf_set(scale);
        }
        for (int64_t x = 0; x < degree; x++) {
            float *row = sum + col[x] * D;
#pragma GCC unroll 16
            for (int i = 0; i < 16; i++) {
                vf_store(row + i * VL, vf_fma(vf_set(p[x * H + i / per_head]), held[i], vf_load(row + i * VL)));
            }
        }
        return;
    }
    for (int64_t x = 0; x < degree; x++) {
        for (int64_t h = 0; h < H; h++) {
            const vf w = vf_set(p[x * H + h]);
            float *row = sum + col[x] * D + h * C;
            VF_FOR (c, k, C) {
                const vf scaled = vf_get(value + h * C + c, k) * vf_set(scale);
                vf_put(row + c, vf_fma(w, scaled, vf_get(row + c, k)), k);
            }
        }
    }
}

#endif
