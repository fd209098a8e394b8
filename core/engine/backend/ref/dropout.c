/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted dropout (Srivastava et al. 2014) from counter-based bits; its derivative is the same op on dy. See ref.h.
 */
#include "engine/backend/ref/ref.h"
#include "base/rng.h"

/* y = x / (1 - p) where bits >= p 2^32, else 0. Bits of column d: word d % 4 of block d / 4 of the stream named by
 * (seed, phase, attr i0, step) and the row's key; independent of slices, workers and ranks.   x [R,D]  key [R] i64 */
void REF(dropout)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    const int64_t *key = (const int64_t *)a->in[1].data;
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    const double p = a->run->training ? a->attr->f[0] : 0, threshold = p * 0x1p32;
    const dt_rng_key name = {a->run->seed, a->run->phase, (uint32_t)a->attr->i[0], a->run->step, 0};
    dt_rng_stream stream;
    dt_rng_stream_init(&stream, &name);
    for (int64_t r = 0; r < R; r++) {
        uint32_t bits[4] = {0};
        for (int64_t d = 0; d < D; d++) {
            if (p > 0 && d % 4 == 0) {
                dt_rng_stream_block(&stream, (uint64_t)key[r], (uint64_t)d / 4, bits);
            }
            y[r * D + d] = (real)(bits[d % 4] >= threshold ? x[r * D + d] / (1.0 - p) : 0);
        }
    }
}
