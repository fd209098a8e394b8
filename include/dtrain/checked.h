/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on numbers that others give: counts of a file, sizes of a message, floats that become integers. Each
 * function returns false, and leaves *out_p alone, where the true result does not fit; so a size that passed is one
 * that can be allocated, indexed and looped to. Code that reads foreign numbers uses these, never + and * and casts:
 *
 *   int32_t n_pieces = 0;
 *   for (each lane) {
 *       if (!dt_add_i32(n_pieces, lane->n_points, &n_pieces)) {
 *           return DT_FAIL_H(h, DT_EDATA, "%s: more than %d points", path, INT32_MAX);
 *       }
 *   }
 *
 * What is unpacked has a bound too: dt_is_bomb. Needs gcc or clang. Threads: any.
 */
#ifndef DTRAIN_CHECKED_H
#define DTRAIN_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CHECKED_(name, type, builtin)                                                                               \
    static inline bool name(type a, type b, type *out_p)                                                               \
    {                                                                                                                  \
        type result;                                                                                                   \
        if (builtin(a, b, &result)) {                                                                                  \
            return false;                                                                                              \
        }                                                                                                              \
        *out_p = result;                                                                                               \
        return true;                                                                                                   \
    }

/* *out_p = a + b, *out_p = a * b; out_p may point at a or b's own variable */
DT_CHECKED_(dt_add_size, size_t, __builtin_add_overflow)
DT_CHECKED_(dt_mul_size, size_t, __builtin_mul_overflow)
DT_CHECKED_(dt_add_i32, int32_t, __builtin_add_overflow)
DT_CHECKED_(dt_mul_i32, int32_t, __builtin_mul_overflow)
DT_CHECKED_(dt_add_u32, uint32_t, __builtin_add_overflow)
DT_CHECKED_(dt_add_i64, int64_t, __builtin_add_overflow)
DT_CHECKED_(dt_mul_i64, int64_t, __builtin_mul_overflow)
#undef DT_CHECKED_

/* *total_p += n * each, the usual way a size is counted up */
static inline bool dt_grow_size(size_t *total_p, size_t n, size_t each)
{
    size_t bytes;
    return dt_mul_size(n, each, &bytes) && dt_add_size(*total_p, bytes, total_p);
}

static inline bool dt_i32_of_i64(int64_t x, int32_t *out_p)
{
    if (x < INT32_MIN || x > INT32_MAX) {
        return false;
    }
    *out_p = (int32_t)x;
    return true;
}

/* Towards zero, as a cast does where it is defined; false for NaN too. */
static inline bool dt_i64_of_f64(double x, int64_t *out_p)
{
    if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0)) {
        return false;
    }
    *out_p = (int64_t)x;
    return true;
}

static inline bool dt_i32_of_f64(double x, int32_t *out_p)
{
    if (!(x > -2147483649.0 && x < 2147483648.0)) {
        return false;
    }
    *out_p = (int32_t)x;
    return true;
}

/* For what is only shown: the nearest number within [low, high], low for NaN. */
static inline int64_t dt_i64_within(double x, int64_t low, int64_t high)
{
    if (!(x > (double)low)) {
        return low;
    }
    return x >= (double)high ? high : (int64_t)x;
}

/* A small file that unpacks to a huge one: no table or network of roads repeats itself so much. */
#define DT_UNPACK_ANY_BYTES  ((uint64_t)256 << 20) /* up to here not checked */
#define DT_UNPACK_MOST_RATIO 250                   /* tables and XML of SUMO reach 10 to 60 */
static inline bool dt_is_bomb(uint64_t packed_bytes, uint64_t unpacked_bytes)
{
    return unpacked_bytes > DT_UNPACK_ANY_BYTES && unpacked_bytes / DT_UNPACK_MOST_RATIO > packed_bytes;
}

#ifdef __cplusplus
}
#endif
#endif
