/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops along an axis, and those that make numbers out of a shape or a key. See ref.h.
 */
#include "engine/backend/ref/ref.h"
#include "base/rng.h"

static int64_t dim_from_end(const dt_view *v, int32_t k)
{
    return v->dim[v->rank - k];
}

/* f0 everywhere */
void REF(fill)(const dt_kernel_args *a)
{
    const int64_t n = dt_view_count(&a->out[0]);
    for (int64_t i = 0; i < n; i++) {
        real_out(a, 0)[i] = (real)a->attr->f[0];
    }
}

/* key [R] i64 -> y [R,n]: number d of a row is that of block d of the stream named by (seed, phase, attr i0, step) and
 * the row's key; of uniform ones, that of word d % 4 of block d / 4. The median while not training, but for i3. */
void REF(noise)(const dt_kernel_args *a)
{
    const int64_t *key = (const int64_t *)a->in[0].data;
    const int64_t R = dt_view_count(&a->in[0]), n = a->attr->i[1];
    for (int64_t r = 0; r < R; r++) {
        const dt_rng_key name = {a->run->seed, a->run->phase, (uint32_t)a->attr->i[0], a->run->step, (uint64_t)key[r]};
        for (int64_t d = 0; d < n; d++) {
            uint32_t word[4];
            const bool is_uniform = a->attr->i[2] == DT_NOISE_UNIFORM;
            double number = is_uniform ? 0.5 : 0;
            if ((a->run->training || a->attr->i[3]) && is_uniform) {
                dt_philox(&name, (uint64_t)d / 4, word);
                number = ((word[d % 4] >> 9) + 0.5) * 0x1p-23;
            } else if (a->run->training || a->attr->i[3]) {
                number = dt_rng_normal(&name, (uint64_t)d);
            }
            real_out(a, 0)[r * n + d] = (real)number;
        }
    }
}

/* x [R,F,P] -> y [R,P]: sum, mean, greatest or least over F */
void REF(reduce)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), F = dim_from_end(&a->in[0], 2), P = last_dim(&a->in[0]);
    const int64_t how = a->attr->i[0];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            double sum = how == DT_REDUCE_MAX ? -INFINITY : how == DT_REDUCE_MIN ? INFINITY : 0;
            for (int64_t f = 0; f < F; f++) {
                const double v = x[(r * F + f) * P + p];
                sum = how == DT_REDUCE_MAX ? greatest(v, sum) : how == DT_REDUCE_MIN ? least(v, sum) : sum + v;
            }
            real_out(a, 0)[r * P + p] = (real)(how == DT_REDUCE_MEAN ? sum / (double)F : sum);
        }
    }
}

/* dy [R,P] -> dx [R,F,P]: dy of a sum, dy / F of a mean */
void REF(reduce_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), F = a->attr->i[1], P = last_dim(&a->in[0]);
    const double scale = a->attr->i[0] == DT_REDUCE_MEAN ? 1.0 / (double)F : 1;
    for (int64_t i = 0; i < R * F * P; i++) {
        real_out(a, 0)[i] = (real)(scale * real_in(a, 0)[i / (F * P) * P + i % P]);
    }
}

/* dy [R,P] x [R,F,P] y [R,P] -> dx [R,F,P]: dy at the first f with x = y, or x NaN */
void REF(reduce_max_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *x = real_in(a, 1), *y = real_in(a, 2);
    const int64_t R = dt_view_rows(&a->in[1], 2), F = dim_from_end(&a->in[1], 2), P = last_dim(&a->in[1]);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            bool is_found = false;
            for (int64_t f = 0; f < F; f++) {
                const int64_t i = (r * F + f) * P + p;
                const bool is_it = !is_found && (x[i] == y[r * P + p] || isnan(x[i]));
                real_out(a, 0)[i] = is_it ? dy[r * P + p] : 0;
                is_found = is_found || is_it;
            }
        }
    }
}

/* x [R,A,B] -> y [R,B,A] */
void REF(transpose)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 2), A = dim_from_end(&a->in[0], 2), B = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t i = 0; i < A; i++) {
            for (int64_t k = 0; k < B; k++) {
                real_out(a, 0)[(r * B + k) * A + i] = real_in(a, 0)[(r * A + i) * B + k];
            }
        }
    }
}

/* a [R,M,K] or [R,K,M] when i0, b [R,K,N] or [R,N,K] when i1 -> y [R,M,N] */
void REF(matmul)(const dt_kernel_args *args)
{
    const dt_view *vy = &args->out[0];
    const int64_t R = dt_view_rows(vy, 2), M = dim_from_end(vy, 2), N = last_dim(vy);
    const bool ta = args->attr->i[0] != 0, tb = args->attr->i[1] != 0;
    const int64_t K = dim_from_end(&args->in[0], ta ? 2 : 1);
    for (int64_t r = 0; r < R; r++) {
        const real *a = real_in(args, 0) + r * M * K, *b = real_in(args, 1) + r * K * N;
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++) {
                    sum += (double)a[ta ? k * M + m : m * K + k] * b[tb ? n * K + k : k * N + n];
                }
                real_out(args, 0)[(r * M + m) * N + n] = (real)sum;
            }
        }
    }
}

/* x [R,M], column i0 of idx [R,K] -> y [R,1], 0 where there is no such column of x */
void REF(pick)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]), K = last_dim(&a->in[1]);
    for (int64_t r = 0; r < R; r++) {
        const int32_t m = i32_in(a, 1)[r * K + a->attr->i[0]];
        real_out(a, 0)[r] = m >= 0 && m < M ? real_in(a, 0)[r * M + m] : 0;
    }
}

void REF(pick_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[1], 1), M = a->attr->i[1], K = last_dim(&a->in[1]);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t m = 0; m < M; m++) {
            real_out(a, 0)[r * M + m] = m == i32_in(a, 1)[r * K + a->attr->i[0]] ? real_in(a, 0)[r] : 0;
        }
    }
}

/* Where output o and place k of the kernel read of L; -1: in the zeros. */
static int64_t source_index(const dt_attr *attr, int64_t L, int64_t o, int64_t k)
{
    const int64_t l = o * attr->i[1] + k - attr->i[2];
    return l >= 0 && l < L ? l : attr->i[3] ? ((l % L) + L) % L : -1;
}

/* x [R,L,C] -> y [R,O,K C] */
void REF(unfold)(const dt_kernel_args *a)
{
    const dt_view *vx = &a->in[0], *vy = &a->out[0];
    const int64_t R = dt_view_rows(vx, 2), L = dim_from_end(vx, 2), C = last_dim(vx);
    const int64_t O = dim_from_end(vy, 2), K = a->attr->i[0];
    for (int64_t i = 0; i < R * O * K * C; i++) {
        const int64_t c = i % C, k = i / C % K, o = i / (C * K) % O, r = i / (C * K * O);
        const int64_t l = source_index(a->attr, L, o, k);
        real_out(a, 0)[i] = l < 0 ? 0 : real_in(a, 0)[(r * L + l) * C + c];
    }
}

/* dy [R,O,K C] -> dx [R,L,C] */
void REF(unfold_bwd)(const dt_kernel_args *a)
{
    const dt_view *vy = &a->in[0], *vx = &a->out[0];
    const int64_t R = dt_view_rows(vx, 2), L = dim_from_end(vx, 2), C = last_dim(vx);
    const int64_t O = dim_from_end(vy, 2), K = a->attr->i[0];
    start_sum(a, 0);
    for (int64_t i = 0; i < R * O * K * C; i++) {
        const int64_t c = i % C, k = i / C % K, o = i / (C * K) % O, r = i / (C * K * O);
        const int64_t l = source_index(a->attr, L, o, k);
        if (l >= 0) {
            real_out(a, 0)[(r * L + l) * C + c] += real_in(a, 0)[i];
        }
    }
}

/* ---- choices, order of dimensions, numbers ----------------------------------------------------------------------- */

/* column i0 of idx [R,K] -> y [R,M]: 1 in that column, 0 elsewhere */
void REF(one_hot)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = a->attr->i[1];
    for (int64_t i = 0; i < R * M; i++) {
        real_out(a, 0)[i] = i32_in(a, 0)[i / M * K + a->attr->i[0]] == i % M ? 1 : 0;
    }
}

/* Does x come before y among numbers in falling order, NaN first? */
static bool is_greater(real x, real y)
{
    return (isnan(x) && !isnan(y)) || x > y;
}

/* x [R,M] -> value, index [R,k]: for each element how many come before it */
void REF(top_k)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]), k = a->attr->i[1];
    int32_t *index = a->out[1].data;
    for (int64_t r = 0; r < R; r++) {
        const real *x = real_in(a, 0) + r * M;
        bool has_nan = false;
        for (int64_t m = 0; m < M; m++) {
            has_nan = has_nan || isnan(x[m]);
        }
        for (int64_t m = 0; m < M; m++) {
            int64_t place = 0;
            for (int64_t o = 0; o < M; o++) {
                place += is_greater(x[o], x[m]) || (o < m && !is_greater(x[m], x[o]));
            }
            if (place < k) {
                real_out(a, 0)[r * k + place] = has_nan ? (real)NAN : x[m];
                if (index != NULL) {
                    index[r * k + place] = (int32_t)m;
                }
            }
        }
    }
}

/* dy, index [R,k] -> dx [R,M] */
void REF(top_k_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), k = last_dim(&a->in[0]), M = a->attr->i[2];
    memset(a->out[0].data, 0, (size_t)(R * M) * sizeof(real));
    for (int64_t i = 0; i < R * k; i++) {
        real_out(a, 0)[i / k * M + i32_in(a, 1)[i]] = real_in(a, 0)[i];
    }
}

/* x -> y, whose dimension k of the last n is that of x which digit k of i0 names */
void REF(permute)(const dt_kernel_args *a)
{
    const dt_view *vx = &a->in[0], *vy = &a->out[0];
    int64_t stride[DT_MAX_DIMS] = {0}, order = a->attr->i[0];
    int32_t n = 0;
    for (int64_t left = order; left > 0; left /= 10) {
        n++;
    }
    for (int32_t k = n - 1; k >= 0; k--, order /= 10) {
        stride[k] = 1;
        for (int32_t j = vx->rank - n + (int32_t)(order % 10); j < vx->rank; j++) {
            stride[k] *= vx->dim[j];
        }
    }
    const int64_t count = dt_view_count(vy);
    for (int64_t i = 0; i < count; i++) {
        int64_t left = i, from = 0;
        for (int32_t k = n - 1; k >= 0; k--) {
            const int64_t dim = vy->dim[vy->rank - n + k];
            from += left % dim * stride[k];
            left /= dim;
        }
        int64_t row = 1;
        for (int32_t k = 0; k < n; k++) {
            row *= vy->dim[vy->rank - n + k];
        }
        real_out(a, 0)[i] = real_in(a, 0)[left * row + from];
    }
}

void REF(cast)(const dt_kernel_args *a)
{
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        real_out(a, 0)[i] = a->in[0].dtype == DT_U8 ? (real)((const uint8_t *)a->in[0].data)[i] : (real)i32_in(a, 0)[i];
    }
}

void REF(constant)(const dt_kernel_args *a)
{
    for (int64_t i = 0; i < a->attr->i[0]; i++) {
        real_out(a, 0)[i] = (real)a->attr->f[i];
    }
}

/* ---- sums along the last dim but one ----------------------------------------------------------------------------- */

/* y[f] = x[0] + .. + x[f], rounded as it is stored   x [R,F,P] */
void REF(cumsum)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            double sum = 0;
            for (int64_t f = 0; f < F; f++) {
                sum += x[(r * F + f) * P + p];
                y[(r * F + f) * P + p] = (real)sum;
            }
        }
    }
}

/* dx[f] = dy[f] + .. + dy[F-1] */
void REF(cumsum_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            double sum = 0;
            for (int64_t f = F - 1; f >= 0; f--) {
                sum += dy[(r * F + f) * P + p];
                dx[(r * F + f) * P + p] = (real)sum;
            }
        }
    }
}
