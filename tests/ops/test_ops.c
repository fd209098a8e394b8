/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op, every lane, every row of cases.c. The checks:
 *   gradients   ref64 derivatives against central differences of the ref64 forward
 *   parity      ref32 and every CPU build this machine runs against ref64, forward and derivative
 *   memory      nothing written outside the outputs, NaN around the inputs and in rows of weight 0 does not spread
 *   accum, absent outputs, in place, same bits again and on another thread
 * DT_TOL_SCALE scales the tolerances; 0 prints the residuals and fails nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "base/rng.h"
#include "ops/harness.h"

#define GRADIENT_STEP 1e-6
#define GRADIENT_TOL  1e-7
#define PARITY_TOL    1e-5

enum { GUARD = 16, MAX_GRADIENT_ELEMENTS = 64 };

typedef struct tensor { /* values as doubles (f32, f64) or as they are (i32, i64) */
    char kind;
    int32_t rank, dtype;
    int64_t dim[DT_MAX_DIMS], n;
    double *f;
    void *raw;
} tensor;

static const dt_kernel_run run_const = {.seed = 1234, .step = 7, .phase = 1, .training = 1};
static double tol_scale = 1;
static uint64_t draw;

static double uniform(void)
{
    const dt_rng_key key = {.seed = 99, .op = 5, .sample = 1};
    return dt_rng_uniform(&key, draw++);
}

static double normal(void)
{
    const dt_rng_key key = {.seed = 99, .op = 5, .sample = 2};
    return dt_rng_normal(&key, draw++);
}

static void *zalloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

/* ---- tensors from text ------------------------------------------------------------------------------------------- */

static void fill(tensor *t, int64_t bound)
{
    int32_t *idx = t->raw;
    for (int64_t i = 0; i < t->n; i++) {
        double x = normal();
        switch (t->kind) {
        case 'x':
            t->f[i] = (float)x;
            break;
        case 'k':
            while (fabs(x) < 0.05 || fabs(fabs(x) - 0.5) < 0.05) {
                x = normal();
            }
            t->f[i] = (float)x;
            break;
        case 'p':
            t->f[i] = (float)(0.2 + 2.8 * uniform());
            break;
        case 'w':
            t->f[i] = i % 3 == 1 ? 0 : (float)(0.2 + uniform());
            break;
        case 'm': /* sequence 1 is never there */
            t->f[i] = (i % t->dim[1] != 1 && uniform() < 0.7) ? 1 : 0;
            break;
        case 'c':
            idx[i] = (int32_t)(uniform() * (double)bound);
            break;
        case 'i':
            idx[i] = (int32_t)(uniform() * (double)(bound + 1)) - 1;
            break;
        case 'K':
            ((int64_t *)t->raw)[i] = (int64_t)(uniform() * 0x1p52);
            break;
        case 'd':
            t->f[i] = x;
            break;
        default:
            break;
        }
    }
    if (t->kind == 'r' || t->kind == 's') { /* deal `bound` elements to the ranges, none to every fifth */
        for (int64_t e = 0; e < bound; e++) {
            int64_t at = (int64_t)(uniform() * (double)(t->n - 1));
            at = at % 5 == 4 ? at - 1 : at;
            idx[at + 1]++;
        }
        for (int64_t i = 1; i < t->n; i++) {
            idx[i] += idx[i - 1];
        }
    }
}

static tensor tensor_of(const char *text)
{
    tensor t = {.kind = text[0], .dtype = DT_F32, .n = 1};
    if (t.kind == '-') {
        return t;
    }
    char *end = (char *)text + 1;
    const int64_t bound = *end == ' ' ? 0 : strtoll(end, &end, 10);
    while (*end != '\0') {
        t.dim[t.rank] = strtoll(end, &end, 10);
        t.n *= t.dim[t.rank++];
    }
    t.dtype = strchr("rcis", t.kind) != NULL ? DT_I32 : t.kind == 'K' ? DT_I64 : t.kind == 'd' ? DT_F64 : DT_F32;
    t.f = zalloc((size_t)t.n * sizeof(double));
    t.raw = zalloc((size_t)t.n * sizeof(int64_t));
    fill(&t, bound);
    return t;
}

static void tensor_free(tensor *t)
{
    free(t->f);
    free(t->raw);
}

/* ---- running a kernel on buffers with guards --------------------------------------------------------------------- */

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

typedef struct lane {
    const char *name;
    bool is_double, is_cpu;
    dt_cpu_isa_id isa;
} lane;

static const lane lanes[] = {
    {"ref64", true, false, 0},
    {"ref32", false, false, 0},
    {"cpu base", false, true, DT_CPU_ISA_BASE},
    {"cpu avx2", false, true, DT_CPU_ISA_AVX2},
    {"cpu avx512", false, true, DT_CPU_ISA_AVX512},
};

static size_t element_bytes(const lane *l, int32_t dtype)
{
    return dtype == DT_I32 || (dtype == DT_F32 && !l->is_double) ? 4 : 8;
}

/* Bytes of t with GUARD elements of NaN (0xff) on both sides. */
static char *to_buffer(const lane *l, const tensor *t, bool with_values)
{
    const size_t size = element_bytes(l, t->dtype);
    char *p = zalloc(((size_t)t->n + 2 * GUARD) * size);
    memset(p, 0xff, ((size_t)t->n + 2 * GUARD) * size);
    char *data = p + GUARD * size;
    for (int64_t i = 0; i < t->n && with_values; i++) {
        if (t->dtype == DT_I32 || t->dtype == DT_I64) {
            memcpy(data + (size_t)i * size, (char *)t->raw + (size_t)i * size, size);
        } else if (size == 8) {
            ((double *)data)[i] = t->f[i];
        } else {
            ((float *)data)[i] = (float)t->f[i];
        }
    }
    return p;
}

static void guards_are_whole(const lane *l, const tensor *t, const char *p, const char *what)
{
    const size_t size = element_bytes(l, t->dtype), guard = GUARD * size;
    for (size_t i = 0; i < guard; i++) {
        if ((unsigned char)p[i] != 0xff || (unsigned char)p[guard + (size_t)t->n * size + i] != 0xff) {
            fail_msg("%s, lane %s: written outside the output", what, l->name);
        }
    }
}

static dt_view view_of(const tensor *t, void *data)
{
    dt_view v = {.data = data, .rank = t->rank, .dtype = t->dtype};
    memcpy(v.dim, t->dim, sizeof(v.dim));
    return v;
}

static void run(const lane *l, const call *c, const char *what)
{
    dt_view in[DT_KERNEL_MAX_IN] = {{0}}, out[DT_KERNEL_MAX_OUT] = {{0}};
    char *buffer[DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT] = {NULL}, **out_buffer = buffer + c->n_in;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const tensor *t = c->in[i];
        if (t->kind == '-') {
            continue;
        }
        buffer[i] = to_buffer(l, t, true);
        in[i] = view_of(t, c->shape_only[i] ? NULL : buffer[i] + GUARD * element_bytes(l, t->dtype));
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
        const tensor *t = c->out[i];
        const bool is_null = (c->null_out >> i & 1) != 0;
        out[i] = view_of(t, NULL);
        out[i].accum = c->accum && t->kind == 'a';
        if (i == 0 && c->in_place) {
            out[i].data = in[0].data;
        } else if (!is_null) {
            out_buffer[i] = to_buffer(l, t, out[i].accum);
            out[i].data = out_buffer[i] + GUARD * element_bytes(l, t->dtype);
        }
    }
    const dt_lane lane_id = l->is_cpu ? DT_LANE_CPU : l->is_double ? DT_LANE_REF64 : DT_LANE_REF32;
    dt_kernel *kernel = l->is_cpu ? dt_kernel_find_cpu(c->op, l->isa) : dt_kernel_find(c->op, lane_id);
    assert_non_null(kernel);
    const size_t scratch_bytes = dt_kernel_scratch(c->op, lane_id, c->attr, in, c->n_in, out, c->n_out);
    char *scratch = zalloc(scratch_bytes + 64);
    memset(scratch, 0xff, scratch_bytes + 64);
    const dt_kernel_args args = {c->attr, &run_const, in, out, c->n_in, c->n_out, scratch};
    kernel(&args);
    for (size_t i = 0; i < 64; i++) {
        if ((unsigned char)scratch[scratch_bytes + i] != 0xff) {
            fail_msg("%s, lane %s: used more than %zu bytes of scratch", what, l->name, scratch_bytes);
        }
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
        tensor *t = c->out[i];
        if (out[i].data == NULL) {
            continue;
        }
        for (int64_t k = 0; k < t->n; k++) {
            t->f[k] = element_bytes(l, t->dtype) == 8 ? ((double *)out[i].data)[k] : (double)((float *)out[i].data)[k];
        }
        guards_are_whole(l, t, i == 0 && c->in_place ? buffer[0] : out_buffer[i], what);
    }
    for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
        free(buffer[i]);
    }
    free(scratch);
}

/* ---- a case with its values -------------------------------------------------------------------------------------- */

typedef struct problem {
    const op_case *row;
    tensor in[DT_KERNEL_MAX_IN], out[3], g;
    uint32_t n_in, n_out;
} problem;

/* NaN in the rows of the named inputs whose last w or m input says 0 */
static void poison(problem *p)
{
    const tensor *mask = NULL;
    for (uint32_t i = 0; i < p->n_in; i++) {
        mask = strchr("wmz", p->in[i].kind) != NULL ? &p->in[i] : mask;
    }
    for (const char *c = p->row->poison; c != NULL && *c != '\0' && mask != NULL; c++) {
        tensor *t = &p->in[*c - 'a'];
        for (int64_t i = 0; i < t->n; i++) {
            t->f[i] = mask->f[i / (t->n / mask->n)] == 0 ? (double)NAN : t->f[i];
        }
    }
}

static call forward_call(problem *p, tensor *out)
{
    call c = {.op = p->row->op, .attr = &p->row->attr, .n_in = p->n_in, .n_out = p->n_out};
    for (uint32_t i = 0; i < p->n_in; i++) {
        c.in[i] = &p->in[i];
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        c.out[i] = &out[i];
    }
    return c;
}

static problem problem_of(const op_case *row)
{
    problem p = {.row = row};
    draw = 1000;
    for (; p.n_in < DT_KERNEL_MAX_IN && row->in[p.n_in] != NULL; p.n_in++) {
        p.in[p.n_in] = tensor_of(row->in[p.n_in]);
    }
    poison(&p);
    for (; p.n_out < 3 && row->out[p.n_out] != NULL; p.n_out++) {
        p.out[p.n_out] = tensor_of(row->out[p.n_out]);
    }
    const call c = forward_call(&p, p.out);
    run(&lanes[0], &c, row->name);
    p.g = tensor_of(row->out[0]);
    for (int64_t i = 0; i < p.g.n; i++) {
        p.g.f[i] = (float)normal();
    }
    return p;
}

static void problem_free(problem *p)
{
    for (uint32_t i = 0; i < p->n_in; i++) {
        tensor_free(&p->in[i]);
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        tensor_free(&p->out[i]);
    }
    tensor_free(&p->g);
}

/* The call of a derivative; its gradients go to out (made here), of_p says which input each belongs to. */
static call derivative_call(problem *p, const op_derivative *d, tensor *out, uint32_t *of_p)
{
    call c = {.op = d->op, .attr = &p->row->attr};
    char text[64], *save = NULL;
    snprintf(text, sizeof(text), "%s", d->args);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        const int k = word[1] - '0';
        c.shape_only[c.n_in] = word[0] == 's';
        c.in[c.n_in++] = word[0] == 'g' ? &p->g : word[0] == 'o' ? &p->out[k] : &p->in[k];
    }
    snprintf(text, sizeof(text), "%s", d->grads);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        const int k = word[1] - '0';
        of_p[c.n_out] = (uint32_t)k;
        tensor *t = &out[c.n_out];
        *t = p->in[k];
        t->kind = word[0];
        t->f = zalloc((size_t)t->n * sizeof(double));
        t->raw = NULL;
        c.out[c.n_out++] = t;
    }
    return c;
}

/* Copies of a call's outputs, to compare with. */
static void clone_outputs(const call *from, call *to, tensor *copy)
{
    *to = *from;
    for (uint32_t i = 0; i < from->n_out; i++) {
        copy[i] = *from->out[i];
        copy[i].raw = NULL;
        copy[i].f = zalloc((size_t)copy[i].n * sizeof(double));
        to->out[i] = &copy[i];
    }
}

static void free_outputs(tensor *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tensor_free(&t[i]);
    }
}

/* Runs `check` on the forward call and on every derivative call of every case, in every lane but ref64. */
typedef void check_fn(const lane *l, const call *c, double tol, const char *what);

static void for_every_call(check_fn *check)
{
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i]);
        const double tol = PARITY_TOL * tol_scale * fmax(1, sqrt(op_cases[i].sum_length / 1024));
        for (size_t k = 1; k < sizeof(lanes) / sizeof(lanes[0]); k++) {
            if (lanes[k].is_cpu && lanes[k].isa > dt_cpu_isa_best()) {
                continue;
            }
            char what[128];
            const call forward = forward_call(&p, p.out);
            check(&lanes[k], &forward, tol, p.row->name);
            for (int d = 0; d < 3 && p.row->derivative[d].op != 0; d++) {
                tensor grads[DT_KERNEL_MAX_OUT];
                uint32_t of[DT_KERNEL_MAX_OUT];
                const call c = derivative_call(&p, &p.row->derivative[d], grads, of);
                run(&lanes[0], &c, p.row->name);
                snprintf(what, sizeof(what), "%s, derivative %d", p.row->name, d);
                check(&lanes[k], &c, tol, what);
                free_outputs(grads, c.n_out);
            }
        }
        problem_free(&p);
    }
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

/* up and down: outputs to work with. The difference is taken per output, before the sum, or it would drown in it. */
static void check_gradient(problem *p, const tensor *grad, uint32_t input, tensor *up, tensor *down)
{
    tensor *x = &p->in[input];
    const int64_t stride = x->n / MAX_GRADIENT_ELEMENTS + 1;
    double worst = 0;
    for (int64_t i = 0; i < x->n; i += stride) {
        const double keep = x->f[i], h = GRADIENT_STEP * fmax(1, fabs(isnan(keep) ? 1 : keep));
        const call above = forward_call(p, up), below = forward_call(p, down);
        x->f[i] = keep + h;
        run(&lanes[0], &above, p->row->name);
        x->f[i] = keep - h;
        run(&lanes[0], &below, p->row->name);
        x->f[i] = keep;
        double want = 0;
        for (int64_t k = 0; k < p->g.n; k++) {
            want += p->g.f[k] * (up[0].f[k] - down[0].f[k]) / (2 * h);
        }
        const double got = grad->f[i];
        const double error = fabs(got - want) / fmax(1, fabs(want));
        worst = fmax(worst, error);
        if (tol_scale > 0 && !(error <= GRADIENT_TOL * tol_scale)) {
            fail_msg("%s: gradient of input %u at %lld is %.12g, central difference %.12g", p->row->name, input,
                     (long long)i, got, want);
        }
    }
    if (tol_scale == 0) {
        printf("gradient  %-26s input %u  %.2e\n", p->row->name, input, worst);
    }
}

static void test_gradients_are_central_differences(void **state)
{
    (void)state;
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i]);
        tensor up[DT_KERNEL_MAX_OUT], down[DT_KERNEL_MAX_OUT];
        call keep = forward_call(&p, p.out), again;
        clone_outputs(&keep, &again, up);
        clone_outputs(&keep, &again, down);
        for (int d = 0; d < 3 && p.row->derivative[d].op != 0; d++) {
            tensor grads[DT_KERNEL_MAX_OUT];
            uint32_t of[DT_KERNEL_MAX_OUT];
            const call c = derivative_call(&p, &p.row->derivative[d], grads, of);
            run(&lanes[0], &c, p.row->name);
            for (uint32_t k = 0; k < c.n_out; k++) {
                if (p.in[of[k]].n < 8000) { /* the large shapes are there for parity */
                    check_gradient(&p, &grads[k], of[k], up, down);
                }
            }
            free_outputs(grads, c.n_out);
        }
        free_outputs(up, p.n_out);
        free_outputs(down, p.n_out);
        problem_free(&p);
    }
}

static void check_parity(const lane *l, const call *c, double tol, const char *what)
{
    tensor got[DT_KERNEL_MAX_OUT];
    call mine;
    clone_outputs(c, &mine, got);
    run(l, &mine, what);
    for (uint32_t k = 0; k < c->n_out; k++) {
        double diff = 0, norm = 0;
        for (int64_t i = 0; i < got[k].n; i++) {
            const double d = got[k].f[i] - c->out[k]->f[i];
            diff += d * d;
            norm += c->out[k]->f[i] * c->out[k]->f[i];
        }
        const double residual = diff == 0 ? 0 : sqrt(diff) / fmax(sqrt(norm), 1e-3);
        if (tol_scale == 0) {
            printf("parity    %-10s %-40s output %u  %.2e\n", l->name, what, k, residual);
        } else if (!(residual < tol)) {
            fail_msg("%s, lane %s, output %u: |difference| / |reference| is %g, allowed %g", what, l->name, k, residual,
                     tol);
        }
    }
    free_outputs(got, c->n_out);
}

static void test_every_lane_agrees_with_ref64(void **state)
{
    (void)state;
    for_every_call(check_parity);
}

static void check_accum(const lane *l, const call *c, double tol, const char *what)
{
    tensor plain[DT_KERNEL_MAX_OUT], added[DT_KERNEL_MAX_OUT];
    call one, two;
    clone_outputs(c, &one, plain);
    clone_outputs(c, &two, added);
    run(l, &one, what);
    two.accum = true;
    for (uint32_t k = 0; k < c->n_out; k++) {
        for (int64_t i = 0; i < added[k].n; i++) {
            added[k].f[i] = (float)(i % 7 - 3);
        }
    }
    run(l, &two, what);
    for (uint32_t k = 0; k < c->n_out && tol > 0; k++) {
        for (int64_t i = 0; i < added[k].n; i++) {
            const double want = plain[k].f[i] + (added[k].kind == 'a' ? (double)(i % 7 - 3) : 0);
            if (!(fabs(added[k].f[i] - want) <= tol * fmax(10, fabs(want)))) {
                fail_msg("%s, lane %s, output %u at %lld: with accum %g, wanted %g", what, l->name, k, (long long)i,
                         added[k].f[i], want);
            }
        }
    }
    free_outputs(plain, c->n_out);
    free_outputs(added, c->n_out);
}

static void test_accum_adds_to_what_is_there(void **state)
{
    (void)state;
    for_every_call(check_accum);
}

static void assert_same_bits(const lane *l, const call *a, const call *b, uint32_t skip, const char *what)
{
    for (uint32_t k = 0; k < a->n_out; k++) {
        if ((skip >> k & 1) == 0 && memcmp(a->out[k]->f, b->out[k]->f, (size_t)a->out[k]->n * sizeof(double)) != 0) {
            fail_msg("%s, lane %s, output %u: other bits", what, l->name, k);
        }
    }
}

static void assert_near(const lane *l, const call *a, const call *b, uint32_t skip, double tol, const char *what)
{
    for (uint32_t k = 0; k < a->n_out; k++) {
        for (int64_t i = 0; i < a->out[k]->n && (skip >> k & 1) == 0 && tol > 0; i++) {
            if (!(fabs(a->out[k]->f[i] - b->out[k]->f[i]) <= tol * fmax(1, fabs(a->out[k]->f[i])))) {
                fail_msg("%s, lane %s, output %u at %lld: %g and %g", what, l->name, k, (long long)i, a->out[k]->f[i],
                         b->out[k]->f[i]);
            }
        }
    }
}

static void check_absent_outputs(const lane *l, const call *c, double tol, const char *what)
{
    tensor whole[DT_KERNEL_MAX_OUT], part[DT_KERNEL_MAX_OUT];
    call one, two;
    clone_outputs(c, &one, whole);
    run(l, &one, what);
    for (uint32_t skip = 1; skip < (1u << c->n_out) - 1; skip++) {
        if ((skip & 1) != 0 && c->op < 1000) {
            continue; /* the first output of a public op is always wanted */
        }
        clone_outputs(c, &two, part);
        two.null_out = skip;
        run(l, &two, what);
        if (c->op == DT_OPX_LSTM_BWD || c->op == DT_OPX_GRU_BWD) { /* dwh is summed step by step without dxw */
            assert_near(l, &one, &two, skip, tol, what);
        } else {
            assert_same_bits(l, &one, &two, skip, what);
        }
        free_outputs(part, c->n_out);
    }
    free_outputs(whole, c->n_out);
}

static void test_outputs_may_be_absent(void **state)
{
    (void)state;
    for_every_call(check_absent_outputs);
}

typedef struct thread_run {
    const lane *l;
    const call *c;
    const char *what;
} thread_run;

static void *thread_main(void *user)
{
    const thread_run *t = user;
    dt_cpu_thread_init();
    run(t->l, t->c, t->what);
    return NULL;
}

static void check_same_bits(const lane *l, const call *c, double tol, const char *what)
{
    (void)tol;
    tensor first[DT_KERNEL_MAX_OUT], second[DT_KERNEL_MAX_OUT], third[DT_KERNEL_MAX_OUT];
    call one, two, three;
    clone_outputs(c, &one, first);
    clone_outputs(c, &two, second);
    clone_outputs(c, &three, third);
    run(l, &one, what);
    void *hole = malloc(4096 + 32); /* the second run gets other addresses */
    run(l, &two, what);
    free(hole);
    pthread_t thread;
    thread_run t = {l, &three, what};
    assert_int_equal(pthread_create(&thread, NULL, thread_main, &t), 0);
    pthread_join(thread, NULL);
    assert_same_bits(l, &one, &two, 0, what);
    assert_same_bits(l, &one, &three, 0, what);
    free_outputs(first, c->n_out);
    free_outputs(second, c->n_out);
    free_outputs(third, c->n_out);
}

static void test_same_bits_again_and_on_any_thread(void **state)
{
    (void)state;
    for_every_call(check_same_bits);
}

static void test_in_place(void **state)
{
    (void)state;
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i]);
        for (size_t k = 1; k < sizeof(lanes) / sizeof(lanes[0]) && p.row->in_place; k++) {
            if (lanes[k].is_cpu && lanes[k].isa > dt_cpu_isa_best()) {
                continue;
            }
            const call forward = forward_call(&p, p.out);
            call one, two;
            tensor apart[3], within[3];
            clone_outputs(&forward, &one, apart);
            clone_outputs(&forward, &two, within);
            run(&lanes[k], &one, p.row->name);
            two.in_place = true;
            run(&lanes[k], &two, p.row->name);
            assert_same_bits(&lanes[k], &one, &two, 0, p.row->name);
            free_outputs(apart, p.n_out);
            free_outputs(within, p.n_out);
        }
        problem_free(&p);
    }
}

/* Rows do not feel each other: a slice of the rows of a product gives the same bits as the whole. */
static void test_rows_of_linear_do_not_depend_on_the_number_of_rows(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 5, 13, 14, 15, 28, 61};
    for (size_t k = 2; k < sizeof(lanes) / sizeof(lanes[0]); k++) {
        if (lanes[k].isa > dt_cpu_isa_best()) {
            continue;
        }
        draw = 0;
        tensor x = tensor_of("x 61 67"), w = tensor_of("x 71 67"), y = tensor_of("f 61 71");
        const dt_attr attr = {{0}, {0}};
        tensor absent = {.kind = '-'};
        call c = {.op = DT_OP_LINEAR, .attr = &attr, .in = {&x, &w, &absent}, .out = {&y}, .n_in = 3, .n_out = 1};
        run(&lanes[k], &c, "linear");
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            tensor part = tensor_of("f 61 71");
            tensor few = x;
            few.dim[0] = part.dim[0] = counts[i];
            few.n = counts[i] * 67;
            part.n = counts[i] * 71;
            call d = c;
            d.in[0] = &few;
            d.out[0] = &part;
            run(&lanes[k], &d, "linear");
            assert_memory_equal(part.f, y.f, (size_t)part.n * sizeof(double));
            tensor_free(&part);
        }
        tensor_free(&x);
        tensor_free(&w);
        tensor_free(&y);
    }
}

static void test_dropout_keeps_what_it_should(void **state)
{
    (void)state;
    draw = 0;
    tensor x = tensor_of("x 2000 32"), key = tensor_of("K 2000"), y = tensor_of("f 2000 32");
    const dt_attr attr = {{3}, {0.25}};
    call c = {.op = DT_OP_DROPOUT, .attr = &attr, .in = {&x, &key}, .out = {&y}, .n_in = 2, .n_out = 1};
    for (int64_t i = 0; i < x.n; i++) {
        x.f[i] = 1;
    }
    run(&lanes[0], &c, "dropout");
    double kept = 0;
    for (int64_t i = 0; i < y.n; i++) {
        assert_true(y.f[i] == 0 || fabs(y.f[i] - 1 / 0.75) < 1e-12);
        kept += y.f[i] != 0;
    }
    /* 64000 draws of 0.75: five deviations are 548 */
    assert_true(fabs(kept - 0.75 * 64000) < 548);
    tensor_free(&x);
    tensor_free(&key);
    tensor_free(&y);
}

/* Closed forms, so that both lanes being wrong in the same way shows. */
static void test_known_values(void **state)
{
    (void)state;
    struct {
        int64_t fn;
        double x, want;
    } rows[] = {
        {DT_FN_RELU, -2, 0},
        {DT_FN_ELU, -1, -0.63212055882855768},
        {DT_FN_GELU, 1, 0.84134474606854293},
        {DT_FN_TANH, 0.5, 0.46211715726000976},
        {DT_FN_SIGMOID, 2, 0.88079707797788243},
        {DT_FN_SOFTPLUS, 1, 1.3132616875182228},
        {DT_FN_SOFTPLUS, 200, 200},
        {DT_FN_SIGMOID, -200, 0},
        {DT_FN_EXP, 1, 2.7182818284590452},
        {DT_FN_LOG, 10, 2.3025850929940457},
    };
    for (size_t k = 0; k < sizeof(lanes) / sizeof(lanes[0]); k++) {
        if (lanes[k].is_cpu && lanes[k].isa > dt_cpu_isa_best()) {
            continue;
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            tensor x = tensor_of("x 1"), y = tensor_of("f 1");
            x.f[0] = rows[i].x;
            const dt_attr attr = {{rows[i].fn}, {1}};
            call c = {.op = DT_OP_UNARY, .attr = &attr, .in = {&x}, .out = {&y}, .n_in = 1, .n_out = 1};
            run(&lanes[k], &c, "unary");
            if (!(fabs(y.f[0] - rows[i].want) <= (lanes[k].is_double ? 1e-12 : 3e-7) * fmax(1, fabs(rows[i].want)))) {
                fail_msg("function %d of %g, lane %s: %.9g, wanted %.9g", (int)rows[i].fn, rows[i].x, lanes[k].name,
                         y.f[0], rows[i].want);
            }
            tensor_free(&x);
            tensor_free(&y);
        }
    }
}

static void test_find(void **state)
{
    (void)state;
    for (int lane_id = DT_LANE_REF64; lane_id <= DT_LANE_CPU; lane_id++) {
#define DT_OP(ID, number, name)                                                                                        \
    assert_int_equal(dt_kernel_find(number, (dt_lane)lane_id) == NULL, number == DT_OP_SPLIT || number == DT_OP_MERGE);
#include "backend/ops.def"
#undef DT_OP
        assert_null(dt_kernel_find(0, (dt_lane)lane_id));
        assert_null(dt_kernel_find(999999, (dt_lane)lane_id));
    }
}

int main(void)
{
    const char *scale = getenv("DT_TOL_SCALE");
    tol_scale = scale != NULL ? atof(scale) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_gradients_are_central_differences),
        cmocka_unit_test(test_every_lane_agrees_with_ref64),
        cmocka_unit_test(test_accum_adds_to_what_is_there),
        cmocka_unit_test(test_outputs_may_be_absent),
        cmocka_unit_test(test_same_bits_again_and_on_any_thread),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_rows_of_linear_do_not_depend_on_the_number_of_rows),
        cmocka_unit_test(test_dropout_keeps_what_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
