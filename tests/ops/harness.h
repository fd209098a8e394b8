/* SPDX-License-Identifier: Apache-2.0
 *
 * Harness of the op tests: one row per op and shape, run through every lane and every check. To test another shape,
 * add a row to cases.c.
 *
 * Inputs and outputs are written as text, a letter and dims: "x 5 7". Letters:
 *   x normal numbers             k the same, at least 0.05 away from kinks (0, -0.5, 0.5)    p positive, 0.2 to 3
 *   w weights, a third of them 0 m present, 0 or 1, some sequences all absent                z all zeros
 *   rE rowptr with E edges, some targets without any      cN columns below N     iR row indices below R, some -1
 *   sR segment pointers over R rows, some empty           K dropout keys (i64)   d [1] f64
 *   - absent                     f f32 output             a f32 output that may add to what is there
 * `poison` names inputs (letters a.. by position) of which the rows with w or m = 0 are set to NaN.
 */
#ifndef DTRAIN_TESTS_OPS_HARNESS_H
#define DTRAIN_TESTS_OPS_HARNESS_H

#include "backend/kernel.h"

/* One derivative op. args: g = gradient of output 0, iN = input N, oN = output N, sN = shape of input N alone.
 * grads: for each output the input whose gradient it is, with its kind: "f0 a1". */
typedef struct op_derivative {
    uint32_t op;
    const char *args, *grads;
} op_derivative;

typedef struct op_case {
    const char *name;
    uint32_t op;
    dt_attr attr;
    const char *in[DT_KERNEL_MAX_IN], *out[3]; /* end with NULL */
    const char *poison;
    op_derivative derivative[3];
    double sum_length; /* terms of the longest sum: widens the parity tolerance by sqrt(sum_length / 1024) */
    bool in_place;     /* output 0 may be input 0 */
} op_case;

extern const op_case op_cases[];
extern const int n_op_cases;

#endif
