/* SPDX-License-Identifier: Apache-2.0
 *
 * Harness of the op tests: one row per op and shape, run through every kernel set and every check. To test another
 * shape, add a row to cases.c. test_ops.c runs those of the CPU, cuda/test_kernels.c those of a device.
 *
 * Inputs and outputs are written as text, a letter and dims: "x 5 7". A capital letter before a size names a symbol,
 * a dimension whose live size differs by leaf on a device: "x N5 7", and "+1" after it belongs to the size but not to
 * the symbol: "rE17 N6+1". What has no symbol is shared by all leaves. Letters:
 *   x normal numbers             k the same, at least 0.05 away from kinks (0, -0.5, 0.5)    p positive, 0.2 to 3
 *   b normal numbers times 15    m present, 0 or 1, some sequences all absent                z all zeros
 *   w weights, a third of them 0
 *   rE rowptr with E edges, some targets without any      cN columns below N     iR row indices below R, some -1
 *   sR segment pointers over R rows, some empty           K dropout keys (i64)   d [1] f64
 *   - absent                     f f32 output             a f32 output that may add to what is there
 *   j i32 output
 * `poison` names inputs (letters a.. by position) of which the rows with w or m = 0 are set to NaN.
 */
#ifndef DTRAIN_TESTS_OPS_HARNESS_H
#define DTRAIN_TESTS_OPS_HARNESS_H

#include "engine/backend/cpu/isa.h"
#include "engine/backend/kernel.h"

/* One derivative op. args: g = gradient of output 0, gN = of output N, iN = input N, oN = output N, sN = shape of
 * input N alone, - = absent. grads: for each output the input whose gradient it is, with its kind: "f0 a1"; kind s is f
 * in the shape of input 0, one gradient for each row that reads the same numbers. */
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

typedef struct tensor { /* values as doubles (f32, f64) or as they are (i32, i64) */
    char kind;
    int32_t rank, dtype;
    int64_t dim[DT_MAX_DIMS], n;
    int32_t ragged; /* dimension with a symbol, -1: none */
    int32_t symbol; /* letter - 'A' */
    int32_t plus;
    double *f;
    void *raw;
} tensor;

typedef struct call {
    uint32_t op;
    const dt_attr *attr;
    const tensor *in[DT_KERNEL_MAX_IN];
    bool shape_only[DT_KERNEL_MAX_IN];
    tensor *out[DT_KERNEL_MAX_OUT]; /* f is read when accum, written after the run */
    uint32_t n_in, n_out;
    bool accum, in_place;
    uint32_t null_out; /* bits */
} call;

typedef struct kernel_set {
    const char *name;
    bool is_double, is_cpu;
    dt_cpu_isa_id isa;
    dt_kernel *(*find)(uint32_t op); /* a build of the test's own instead of isa's, or NULL */
} kernel_set;

typedef struct problem { /* a case with its values; out as ref64 has them */
    const op_case *row;
    tensor in[DT_KERNEL_MAX_IN], out[3], g[3]; /* g: gradients of the outputs */
    uint32_t n_in, n_out;
} problem;

enum { N_SYMBOLS = 26 };

extern const kernel_set ref64;
extern const dt_kernel_run op_run;
extern uint64_t op_draw; /* what is drawn next */

void *zalloc(size_t bytes);
/* live: size of each symbol; NULL: as the text says */
tensor tensor_of(const char *text, const int64_t *live);
void tensor_free(tensor *t);
void free_outputs(tensor *t, uint32_t n);
/* NaN (engine/backend/kernel.h). May an input or output of a call be NaN; is input i a gradient? */
bool may_be_nan(const call *c, uint32_t in);
bool is_gradient(const call *c, uint32_t in);
/* One byte for each element of the outputs, one output after the other: it changes with element `at` of an input; with
 * the gradients that a derivative is given. To be freed. */
char *depends_on(const call *c, uint32_t in, int64_t at);
char *depends_on_gradients(const call *c);
/* Of output k of a call: the first element that must be NaN and is not, -1: none. */
int64_t lost_nan(const call *c, const char *must, uint32_t k, const double *value);
/* Runs a kernel of a CPU set on buffers with guards. */
void run(const kernel_set *l, const call *c, const char *what);
/* leaf: which values the tensors with a symbol have; the others have the same for every leaf */
problem problem_of(const op_case *row, const int64_t *live, int leaf);
void problem_free(problem *p);
call forward_call(problem *p, tensor *out);
/* The call of a derivative; its gradients go to out (made here), of_p says which input each belongs to. */
call derivative_call(problem *p, const op_derivative *d, tensor *out, uint32_t *of_p);
/* Outputs that the derivative takes a gradient of, as bits. */
uint32_t derivative_reads(const op_derivative *d);
/* How much an element counts when tensors are compared: numbers beyond 1e20 (what is forbidden has -1e30) by their
 * relative error, or the others would drown. */
double weight_of(double want);
/* Copies of a call's outputs, to compare with. */
void clone_outputs(const call *from, call *to, tensor *copy);

#endif
