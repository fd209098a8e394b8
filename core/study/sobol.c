/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/sobol.h"

enum { BITS = 32, MOST_DEGREE = 7 };

/* Primitive polynomial of degree s with the inner coefficients a, and the first s direction numbers m. The first
 * dimension is van der Corput's sequence and has none. */
static const struct {
    uint32_t s, a, m[MOST_DEGREE];
} joe_kuo[DT_SOBOL_DIMENSIONS - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

/* Direction numbers v of a dimension, the most significant bit first. */
static void find_directions(uint32_t dimension, uint32_t v[BITS])
{
    if (dimension == 0) {
        for (uint32_t i = 0; i < BITS; i++) {
            v[i] = UINT32_C(1) << (BITS - 1 - i);
        }
        return;
    }
    const uint32_t s = joe_kuo[dimension - 1].s, a = joe_kuo[dimension - 1].a;
    for (uint32_t i = 0; i < s; i++) {
        v[i] = joe_kuo[dimension - 1].m[i] << (BITS - 1 - i);
    }
    for (uint32_t i = s; i < BITS; i++) {
        v[i] = v[i - s] ^ (v[i - s] >> s);
        for (uint32_t k = 1; k < s; k++) {
            v[i] ^= ((a >> (s - 1 - k)) & 1) * v[i - k];
        }
    }
}

double dt_sobol_point(uint64_t index, uint32_t dimension, uint32_t shift)
{
    uint32_t v[BITS], x = shift;
    const uint64_t gray = index ^ (index >> 1);
    find_directions(dimension, v);
    for (uint32_t i = 0; i < BITS; i++) {
        x ^= (uint32_t)((gray >> i) & 1) * v[i];
    }
    return x * 0x1p-32;
}
