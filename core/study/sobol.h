/* SPDX-License-Identifier: Apache-2.0
 *
 * Sobol points (Sobol' 1967) by the direction numbers of Joe and Kuo 2008, "Constructing Sobol sequences with
 * better two-dimensional projections" (new-joe-kuo-6.21201), in the order of the Gray code (Antonov and Saleev
 * 1979). A digital shift by the seed makes other points of the same quality. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_STUDY_SOBOL_H
#define DTRAIN_CORE_STUDY_SOBOL_H

#include <stdint.h>

enum { DT_SOBOL_DIMENSIONS = 21 };

/* Point number `index` in dimension `dimension`, in [0, 1) as a multiple of 2^-32. shift: of the dimension, 0: none. */
double dt_sobol_point(uint64_t index, uint32_t dimension, uint32_t shift);

#endif
