/* SPDX-License-Identifier: Apache-2.0
 *
 * Many places of an order at once: permutations of base/rng.h, compiled once per instruction set like the CPU kernels.
 * They are whole numbers: every build gives the same. Threads: any.
 */
#ifndef DTRAIN_CORE_TRAIN_ORDER_H
#define DTRAIN_CORE_TRAIN_ORDER_H

#include "base/rng.h"

/* dt_permutation_at of n positions in a row */
typedef void dt_order_run(const dt_permutation *p, uint64_t first, uint64_t n, uint64_t *index);
extern dt_order_run *const dt_order_run_base, *const dt_order_run_avx2, *const dt_order_run_avx512;

#endif
