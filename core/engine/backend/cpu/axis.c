/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops along an axis, and what fills a shape with a number. Reference: engine/backend/ref/axis.c.
 */
#include "engine/backend/cpu/cpu.h"

static int64_t dim_from_end(const dt_view *v, int32_t k)
{
    return v->dim[v->rank - k];
}

static ALWAYS_INLINE void copy_row(float *to, const float *from, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_get(from + i, k), k);
    }
}

static ALWAYS_INLINE void fill_row(float *to, float value, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_set(value), k);
    }
}

void CPU(fill)(const dt_kernel_args *a)
{
    fill_row(f32_out(a, 0), (float)a->attr->f[0], dt_view_count(&a->out[0]));
}

/* ---- reduce ------------------------------------------------------------------------------------------------------ */

/* one row of n numbers */
static ALWAYS_INLINE float reduce_row(const float *x, int64_t n, int64_t how)
{
    vw sum = vw_set(0);
    if (how == DT_REDUCE_MIN) {
        float least = x[0];
        int has_nan = 0;
        for (int64_t i = 1; i < n; i++) {
            least = x[i] < least ? x[i] : least;
            has_nan |= __builtin_isnan(x[i]);
        }
        return has_nan ? __builtin_nanf("") : least;
    }
    if (how == DT_REDUCE_MAX) {
        float top = x[0];
        int has_nan = 0; /* apart, so that the next comparison does not wait for it */
        for (int64_t i = 1; i < n; i++) {
            top = x[i] > top ? x[i] : top;
            has_nan |= __builtin_isnan(x[i]);
        }
        return has_nan ? __builtin_nanf("") : top;
    }
    VF_FOR (i, k, n) {
        vw_add(&sum, vf_get(x + i, k));
    }
    return vw_sum(sum);
}

/* F rows of P numbers, side by side */
static ALWAYS_INLINE void reduce_rows(const float *x, int64_t F, int64_t P, int64_t how, float scale, float *y)
{
    const bool is_max = how == DT_REDUCE_MAX, is_min = how == DT_REDUCE_MIN;
    VF_FOR (p, k, P) {
        vf sum = vf_get(x + p, k);
        for (int64_t f = 1; f < F; f++) {
            const vf v = vf_get(x + f * P + p, k);
            sum = is_max ? vf_greatest(v, sum) : is_min ? vf_least(v, sum) : (vf)(sum + v);
        }
        vf_put(y + p, is_max || is_min ? sum : (vf)(sum * vf_set(scale)), k);
    }
}

void CPU(reduce)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), F = dim_from_end(&a->in[0], 2), P = last_dim(&a->in[0]);
    const int64_t how = a->attr->i[0];
    const bool is_extreme = how == DT_REDUCE_MAX || how == DT_REDUCE_MIN;
    const float scale = a->attr->i[0] == DT_REDUCE_MEAN ? 1.0f / (float)F : 1;
    for (int64_t r = 0; r < R; r++) {
        if (P == 1) {
            const float sum = reduce_row(x + r * F, F, how);
            y[r] = is_extreme ? sum : sum * scale;
        } else {
            reduce_rows(x + r * F * P, F, P, how, scale, y + r * P);
        }
    }
}

void CPU(reduce_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0);
    float *dx = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), F = a->attr->i[1], P = last_dim(&a->in[0]);
    const float scale = a->attr->i[0] == DT_REDUCE_MEAN ? 1.0f / (float)F : 1;
    for (int64_t r = 0; r < R; r++) {
        if (P == 1) {
            fill_row(dx + r * F, dy[r] * scale, F);
            continue;
        }
        for (int64_t f = 0; f < F; f++) {
            VF_FOR (p, k, P) {
                vf_put(dx + (r * F + f) * P + p, vf_get(dy + r * P + p, k) * vf_set(scale), k);
            }
        }
    }
}

void CPU(reduce_max_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0), *x = f32_in(a, 1), *y = f32_in(a, 2);
    float *dx = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[1], 2), F = dim_from_end(&a->in[1], 2), P = last_dim(&a->in[1]);
    fill_row(dx, 0, R * F * P);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            int64_t f = 0;
            while (f < F && x[(r * F + f) * P + p] != y[r * P + p] && !__builtin_isnan(x[(r * F + f) * P + p])) {
                f++;
            }
            if (f < F) {
                dx[(r * F + f) * P + p] = dy[r * P + p];
            }
        }
    }
}

/* ---- transpose --------------------------------------------------------------------------------------------------- */

void CPU(transpose)(const dt_kernel_args *a)
{
    enum { TILE = 16 }; /* a line of the cache each way */
    const int64_t R = dt_view_rows(&a->in[0], 2), A = dim_from_end(&a->in[0], 2), B = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        const float *x = f32_in(a, 0) + r * A * B;
        float *y = f32_out(a, 0) + r * A * B;
        for (int64_t k0 = 0; k0 < B; k0 += TILE) {
            const int64_t end = k0 + TILE < B ? k0 + TILE : B;
            for (int64_t i = 0; i < A; i++) {
                for (int64_t k = k0; k < end; k++) {
                    y[k * A + i] = x[i * B + k];
                }
            }
        }
    }
}

/* ---- pick -------------------------------------------------------------------------------------------------------- */

void CPU(pick)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]), K = last_dim(&a->in[1]);
    const int32_t *idx = i32_in(a, 1) + a->attr->i[0];
    for (int64_t r = 0; r < R; r++) {
        const int32_t m = idx[r * K];
        f32_out(a, 0)[r] = m >= 0 && m < M ? x[r * M + m] : 0;
    }
}

void CPU(pick_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[1], 1), M = a->attr->i[1], K = last_dim(&a->in[1]);
    const int32_t *idx = i32_in(a, 1) + a->attr->i[0];
    float *dx = f32_out(a, 0);
    fill_row(dx, 0, R * M);
    for (int64_t r = 0; r < R; r++) {
        const int32_t m = idx[r * K];
        if (m >= 0 && m < M) {
            dx[r * M + m] = f32_in(a, 0)[r];
        }
    }
}

/* ---- unfold ------------------------------------------------------------------------------------------------------ */

/* Where output o and place k of the kernel read of L; -1: in the zeros. padding <= L. */
static ALWAYS_INLINE int64_t source_index(const dt_attr *attr, int64_t L, int64_t o, int64_t k)
{
    const int64_t l = o * attr->i[1] + k - attr->i[2];
    if (l >= 0 && l < L) {
        return l;
    }
    return !attr->i[3] ? -1 : l < 0 ? l + L : l - L;
}

void CPU(unfold)(const dt_kernel_args *a)
{
    const dt_view *vx = &a->in[0];
    const int64_t R = dt_view_rows(vx, 2), L = dim_from_end(vx, 2), C = last_dim(vx);
    const int64_t O = dim_from_end(&a->out[0], 2), K = a->attr->i[0];
    for (int64_t r = 0; r < R; r++) {
        const float *x = f32_in(a, 0) + r * L * C;
        float *y = f32_out(a, 0) + r * O * K * C;
        for (int64_t o = 0; o < O; o++) {
            for (int64_t k = 0; k < K; k++, y += C) {
                const int64_t l = source_index(a->attr, L, o, k);
                if (l < 0) {
                    fill_row(y, 0, C);
                } else {
                    copy_row(y, x + l * C, C);
                }
            }
        }
    }
}

void CPU(unfold_bwd)(const dt_kernel_args *a)
{
    const dt_view *vx = &a->out[0];
    const int64_t R = dt_view_rows(vx, 2), L = dim_from_end(vx, 2), C = last_dim(vx);
    const int64_t O = dim_from_end(&a->in[0], 2), K = a->attr->i[0];
    start_sum(a, 0);
    for (int64_t r = 0; r < R; r++) {
        const float *dy = f32_in(a, 0) + r * O * K * C;
        float *dx = f32_out(a, 0) + r * L * C;
        for (int64_t o = 0; o < O; o++) {
            for (int64_t k = 0; k < K; k++, dy += C) {
                const int64_t l = source_index(a->attr, L, o, k);
                VF_FOR (c, n, l < 0 ? 0 : C) {
                    vf_put(dx + l * C + c, vf_get(dx + l * C + c, n) + vf_get(dy + c, n), n);
                }
            }
        }
    }
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

void CPU(one_hot)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = a->attr->i[1];
    const int32_t *idx = i32_in(a, 0) + a->attr->i[0];
    float *y = f32_out(a, 0);
    fill_row(y, 0, R * M);
    for (int64_t r = 0; r < R; r++) {
        const int32_t m = idx[r * K];
        if (m >= 0 && m < M) {
            y[r * M + m] = 1;
        }
    }
}

/* Does element i of x come before element k, in falling order, NaN first, the first of equal ones first? */
static ALWAYS_INLINE bool is_before(const float *x, int64_t i, int64_t k)
{
    const bool i_is_nan = __builtin_isnan(x[i]), k_is_nan = __builtin_isnan(x[k]);
    if (i_is_nan || k_is_nan) {
        return i_is_nan && (!k_is_nan || i < k);
    }
    return x[i] > x[k] || (x[i] == x[k] && i < k);
}

/* The first of n elements after element `last` in that order; last is -1 for the first of all. */
static int64_t find_next_in_order(const float *x, int64_t n, int64_t last)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        if ((last < 0 || is_before(x, last, i)) && (best < 0 || is_before(x, i, best))) {
            best = i;
        }
    }
    return best;
}

void CPU(top_k)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]), k = a->attr->i[1];
    int32_t *index = a->out[1].data;
    for (int64_t r = 0; r < R; r++) {
        const float *x = f32_in(a, 0) + r * M;
        int64_t at = -1;
        bool has_nan = false;
        for (int64_t i = 0; i < k; i++) {
            at = find_next_in_order(x, M, at);
            has_nan = has_nan || __builtin_isnan(x[at]);
            f32_out(a, 0)[r * k + i] = has_nan ? __builtin_nanf("") : x[at];
            if (index != NULL) {
                index[r * k + i] = (int32_t)at;
            }
        }
    }
}

void CPU(top_k_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), k = last_dim(&a->in[0]), M = a->attr->i[2];
    float *dx = f32_out(a, 0);
    fill_row(dx, 0, R * M);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t i = 0; i < k; i++) {
            dx[r * M + i32_in(a, 1)[r * k + i]] = f32_in(a, 0)[r * k + i];
        }
    }
}

/* ---- order of dimensions, numbers -------------------------------------------------------------------------------- */

void CPU(permute)(const dt_kernel_args *a)
{
    enum { MOST = 4 };
    const dt_view *vx = &a->in[0], *vy = &a->out[0];
    int64_t stride[MOST] = {0}, dim[MOST] = {1, 1, 1, 1}, order = a->attr->i[0], rows = 1;
    int32_t n = 0;
    for (int64_t left = order; left > 0; left /= 10) {
        n++;
    }
    for (int32_t k = MOST - 1; k >= MOST - n; k--, order /= 10) {
        dim[k] = vy->dim[vy->rank - MOST + k];
        stride[k] = 1;
        for (int32_t j = vx->rank - n + (int32_t)(order % 10); j < vx->rank; j++) {
            stride[k] *= vx->dim[j];
        }
    }
    for (int32_t k = 0; k < vx->rank - n; k++) {
        rows *= vx->dim[k];
    }
    const int64_t row = dim[0] * dim[1] * dim[2] * dim[3];
    float *y = f32_out(a, 0);
    for (const float *x = f32_in(a, 0), *end = x + rows * row; x < end; x += row) {
        for (int64_t i = 0; i < dim[0]; i++) {
            for (int64_t j = 0; j < dim[1]; j++) {
                for (int64_t k = 0; k < dim[2]; k++, y += dim[3]) {
                    const float *from = x + i * stride[0] + j * stride[1] + k * stride[2];
                    for (int64_t m = 0; m < dim[3]; m++) {
                        y[m] = from[m * stride[3]];
                    }
                }
            }
        }
    }
}

void CPU(cast)(const dt_kernel_args *a)
{
    const int32_t *x = a->in[0].data;
    const uint8_t *bytes = a->in[0].data;
    float *y = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    if (a->in[0].dtype == DT_U8) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = (float)bytes[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)x[i];
    }
}

void CPU(constant)(const dt_kernel_args *a)
{
    for (int64_t i = 0; i < a->attr->i[0]; i++) {
        f32_out(a, 0)[i] = (float)a->attr->f[i];
    }
}

/* ---- sums along the last dim but one ----------------------------------------------------------------------------- */

/* from the first row on, or from the last row back; y may be x */
static void cumsum_block(const float *x, float *y, int64_t F, int64_t P, bool is_back)
{
    for (int64_t i = 1; i <= F; i++) {
        const int64_t f = is_back ? F - i : i - 1, before = is_back ? f + 1 : f - 1;
        VF_FOR (p, k, P) {
            const vf v = vf_get(x + f * P + p, k);
            vf_put(y + f * P + p, i > 1 ? (vf)(v + vf_get(y + before * P + p, k)) : (vf)v, k);
        }
    }
}

static void cumsum_blocks(const dt_kernel_args *a, bool is_back)
{
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        cumsum_block(f32_in(a, 0) + r * F * P, f32_out(a, 0) + r * F * P, F, P, is_back);
    }
}

void CPU(cumsum)(const dt_kernel_args *a)
{
    cumsum_blocks(a, false);
}

void CPU(cumsum_bwd)(const dt_kernel_args *a)
{
    cumsum_blocks(a, true);
}
