/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes with ragged dimensions: each extent is a number, a symbol whose live size changes from slice to slice ("N"),
 * or a symbol plus one ("N+1", CSR row pointers). Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_TENSOR_SHAPE_H
#define DTRAIN_CORE_ENGINE_TENSOR_SHAPE_H

#include "dtrain/plugin.h"
#include "base/str.h"

typedef struct dt_extent {
    int64_t size;   /* the number; with a symbol: what is added to its live size, 0 or 1 */
    int32_t symbol; /* index of the ragged symbol, -1 for a number */
} dt_extent;

typedef struct dt_shape {
    dt_extent dim[DT_MAX_DIMS];
    uint32_t rank, dtype;
} dt_shape;

dt_extent dt_extent_number(int64_t n);
bool dt_extent_equal(dt_extent a, dt_extent b);
int64_t dt_extent_live(dt_extent e, const int64_t *size);  /* size: live size per symbol */
bool dt_shape_equal(const dt_shape *a, const dt_shape *b); /* dims and dtype */
/* Elements for these live sizes; false when they do not fit in 62 bits. */
bool dt_shape_count(const dt_shape *s, const int64_t *size, int64_t *out_p);

/* Do the numbers of it multiply to at most 2^40? Above that a shape is a mistake, and products of it might wrap. */
bool dt_shape_fits(const dt_shape *s);

/* Read a port's dims ("N+1", "T S 6" with T a number). Errors: DT_EINVAL (unknown symbol, number < 1, rank, dtype, too
 * many elements). */
dt_status dt_shape_parse(const char *dims, uint32_t dtype, const char *const *symbol, uint32_t n_symbols,
                         dt_shape *out_p) DT_NODISCARD;
/* "N 256 f32" */
void dt_shape_text(const dt_shape *s, const char *const *symbol, dt_str *out);
void dt_extent_text(dt_extent e, const char *const *symbol, dt_str *out);

#endif
