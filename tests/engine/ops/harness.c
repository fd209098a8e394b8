/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/ops/harness.h"

enum { GUARD = 16 };

const kernel_set ref64 = {"ref64", true, false, 0, NULL};
const dt_kernel_run op_run = {.seed = 1234, .step = 7, .phase = 1, .training = 1, .share = 0.25};
uint64_t op_draw;

static double uniform(void)
{
    const dt_rng_key key = {.seed = 99, .op = 5, .sample = 1};
    return dt_rng_uniform(&key, op_draw++);
}

static double normal(void)
{
    const dt_rng_key key = {.seed = 99, .op = 5, .sample = 2};
    return dt_rng_normal(&key, op_draw++);
}

void *zalloc(size_t bytes)
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
        case 'b':
            t->f[i] = (float)(15 * x);
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
        case 'u':
            ((uint8_t *)t->raw)[i] = (uint8_t)(uniform() * 256);
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

/* A size at *text, which may begin with its symbol and end with +1. */
static int64_t size_of(char **text, const int64_t *live, int32_t *symbol_p, int32_t *plus_p)
{
    char *p = *text;
    while (*p == ' ') {
        p++;
    }
    *symbol_p = *p >= 'A' && *p <= 'Z' ? *p++ - 'A' : -1;
    int64_t size = strtoll(p, &p, 10);
    *plus_p = 0;
    if (*p == '+') {
        *plus_p = (int32_t)strtol(p, &p, 10);
    }
    if (live != NULL && *symbol_p >= 0) {
        size = live[*symbol_p];
    }
    *text = p;
    return size + *plus_p;
}

tensor tensor_of(const char *text, const int64_t *live)
{
    tensor t = {.kind = text[0], .dtype = DT_F32, .n = 1, .ragged = -1};
    if (t.kind == '-') {
        return t;
    }
    char *p = (char *)text + 1;
    int32_t symbol, plus;
    const int64_t bound = *p == ' ' ? 0 : size_of(&p, live, &symbol, &plus);
    while (*p != '\0') {
        const int64_t size = size_of(&p, live, &symbol, &plus);
        if (symbol >= 0) {
            t.ragged = t.rank;
            t.symbol = symbol;
            t.plus = plus;
        }
        t.dim[t.rank++] = size;
        t.n *= size;
    }
    t.dtype = strchr("rcisj", t.kind) != NULL ? DT_I32
              : t.kind == 'K'                 ? DT_I64
              : t.kind == 'd'                 ? DT_F64
              : t.kind == 'u'                 ? DT_U8
                                              : DT_F32;
    t.f = zalloc((size_t)t.n * sizeof(double));
    t.raw = zalloc((size_t)t.n * sizeof(int64_t));
    fill(&t, bound);
    return t;
}

void tensor_free(tensor *t)
{
    free(t->f);
    free(t->raw);
}

/* ---- running a kernel on buffers with guards --------------------------------------------------------------------- */

static size_t element_bytes(const kernel_set *l, int32_t dtype)
{
    return dtype == DT_U8 ? 1 : dtype == DT_I32 || (dtype == DT_F32 && !l->is_double) ? 4 : 8;
}

/* Bytes of t with GUARD elements of NaN (0xff) on both sides. */
static char *to_buffer(const kernel_set *l, const tensor *t, bool with_values)
{
    const size_t size = element_bytes(l, t->dtype);
    char *p = zalloc(((size_t)t->n + 2 * GUARD) * size);
    memset(p, 0xff, ((size_t)t->n + 2 * GUARD) * size);
    char *data = p + GUARD * size;
    for (int64_t i = 0; i < t->n && with_values; i++) {
        if (t->dtype == DT_I32 || t->dtype == DT_I64 || t->dtype == DT_U8) {
            memcpy(data + (size_t)i * size, (char *)t->raw + (size_t)i * size, size);
        } else if (size == 8) {
            ((double *)data)[i] = t->f[i];
        } else {
            ((float *)data)[i] = (float)t->f[i];
        }
    }
    return p;
}

static void guards_are_whole(const kernel_set *l, const tensor *t, const char *p, const char *what)
{
    const size_t size = element_bytes(l, t->dtype), guard = GUARD * size;
    for (size_t i = 0; i < guard; i++) {
        if ((unsigned char)p[i] != 0xff || (unsigned char)p[guard + (size_t)t->n * size + i] != 0xff) {
            fail_msg("%s, set %s: written outside the output", what, l->name);
        }
    }
}

static dt_view view_of(const tensor *t, void *data)
{
    dt_view v = {.data = data, .rank = t->rank, .dtype = t->dtype};
    memcpy(v.dim, t->dim, sizeof(v.dim));
    return v;
}

/* With every input a parameter, and a place to keep forms of them: the same bits when they are made and when they are
 * used again. */
static void keeping_changes_nothing(const kernel_set *l, const call *c, dt_kernel *kernel, const dt_kernel_args *args)
{
    dt_view *y = &args->out[0];
    const size_t kept_bytes =
        dt_kernel_kept_bytes(c->op, l->is_cpu ? DT_KERNELS_CPU : DT_KERNELS_REF32, args->in, UINT32_MAX);
    const size_t bytes = (size_t)dt_view_count(y) * sizeof(float);
    if (kept_bytes == 0) {
        return;
    }
    char *want = zalloc(bytes + 1);
    dt_kernel_args again = *args;
    dt_kernel_run r = *args->run;
    memcpy(want, y->data, bytes);
    again.run = &r;
    again.kept = zalloc(kept_bytes);
    for (r.is_kept = 0; r.is_kept < 2; r.is_kept++) {
        memset(y->data, 0xff, bytes);
        kernel(&again);
        assert_memory_equal(y->data, want, bytes);
    }
    free(again.kept);
    free(want);
}

void run(const kernel_set *l, const call *c, const char *what)
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
    const dt_kernel_set set = l->is_cpu ? DT_KERNELS_CPU : l->is_double ? DT_KERNELS_REF64 : DT_KERNELS_REF32;
    dt_kernel *kernel = l->find != NULL ? l->find(c->op)
                        : l->is_cpu     ? dt_kernel_find_cpu(c->op, l->isa)
                                        : dt_kernel_find(c->op, set);
    assert_non_null(kernel);
    const size_t scratch_bytes = dt_kernel_scratch_bytes(c->op, set, c->attr, in, out);
    char *scratch = zalloc(scratch_bytes + 64);
    memset(scratch, 0xff, scratch_bytes + 64);
    const dt_kernel_args args = {c->attr, &op_run, in, out, c->n_in, c->n_out, scratch, NULL, NULL};
    kernel(&args);
    keeping_changes_nothing(l, c, kernel, &args);
    for (size_t i = 0; i < 64; i++) {
        if ((unsigned char)scratch[scratch_bytes + i] != 0xff) {
            fail_msg("%s, set %s: used more than %zu bytes of scratch", what, l->name, scratch_bytes);
        }
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
        tensor *t = c->out[i];
        if (out[i].data == NULL) {
            continue;
        }
        for (int64_t k = 0; k < t->n; k++) {
            t->f[k] = t->dtype == DT_I32                ? ((int32_t *)out[i].data)[k]
                      : element_bytes(l, t->dtype) == 8 ? ((double *)out[i].data)[k]
                                                        : (double)((float *)out[i].data)[k];
        }
        if (t->dtype == DT_I32 && t->raw != NULL) { /* a derivative reads it */
            memcpy(t->raw, out[i].data, (size_t)t->n * sizeof(int32_t));
        }
        guards_are_whole(l, t, i == 0 && c->in_place ? buffer[0] : out_buffer[i], what);
    }
    for (uint32_t i = 0; i < c->n_in + c->n_out; i++) {
        free(buffer[i]);
    }
    free(scratch);
}

/* ---- a case with its values -------------------------------------------------------------------------------------- */

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

call forward_call(problem *p, tensor *out)
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

/* Where the values of a tensor begin in the stream of numbers. */
static void draw_for(const char *text, uint64_t which, int leaf)
{
    bool has_symbol = false;
    for (const char *c = text + 1; *c != '\0'; c++) {
        has_symbol = has_symbol || (*c >= 'A' && *c <= 'Z');
    }
    op_draw = 1000 + 10000000 * which + (has_symbol ? 1000000000 * (uint64_t)leaf : 0);
}

problem problem_of(const op_case *row, const int64_t *live, int leaf)
{
    problem p = {.row = row};
    for (; p.n_in < DT_KERNEL_MAX_IN && row->in[p.n_in] != NULL; p.n_in++) {
        draw_for(row->in[p.n_in], p.n_in, leaf);
        p.in[p.n_in] = tensor_of(row->in[p.n_in], live);
    }
    poison(&p);
    for (; p.n_out < 3 && row->out[p.n_out] != NULL; p.n_out++) {
        p.out[p.n_out] = tensor_of(row->out[p.n_out], live);
    }
    const call c = forward_call(&p, p.out);
    run(&ref64, &c, row->name);
    for (uint32_t k = 0; k < p.n_out; k++) {
        draw_for(row->out[k], DT_KERNEL_MAX_IN + k, leaf);
        p.g[k] = tensor_of(row->out[k], live);
        p.g[k].kind = 'g';
        for (int64_t i = 0; i < p.g[k].n; i++) {
            p.g[k].f[i] = (float)normal();
        }
    }
    return p;
}

void problem_free(problem *p)
{
    for (uint32_t i = 0; i < p->n_in; i++) {
        tensor_free(&p->in[i]);
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        tensor_free(&p->out[i]);
        tensor_free(&p->g[i]);
    }
}

call derivative_call(problem *p, const op_derivative *d, tensor *out, uint32_t *of_p)
{
    call c = {.op = d->op, .attr = &p->row->attr};
    char text[64], *save = NULL;
    snprintf(text, sizeof(text), "%s", d->args);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        static const tensor absent = {.kind = '-'};
        const int k = word[1] == '\0' ? 0 : word[1] - '0';
        c.shape_only[c.n_in] = word[0] == 's';
        c.in[c.n_in++] = word[0] == '-' ? &absent : word[0] == 'g' ? &p->g[k] : word[0] == 'o' ? &p->out[k] : &p->in[k];
    }
    snprintf(text, sizeof(text), "%s", d->grads);
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        const int k = word[1] - '0';
        of_p[c.n_out] = (uint32_t)k;
        tensor *t = &out[c.n_out];
        *t = p->in[word[0] == 's' ? 0 : k];
        t->kind = word[0] == 's' ? 'f' : word[0];
        t->f = zalloc((size_t)t->n * sizeof(double));
        t->raw = NULL;
        c.out[c.n_out++] = t;
    }
    return c;
}

/* ---- NaN --------------------------------------------------------------------------------------------------------- */

bool is_gradient(const call *c, uint32_t in)
{
    return c->in[in]->kind == 'g';
}

bool may_be_nan(const call *c, uint32_t in)
{
    const bool is_float = c->in[in]->dtype == DT_F32 || c->in[in]->dtype == DT_F64;
    const bool is_mask = strchr("-mz", c->in[in]->kind) != NULL || (c->op == DT_OP_CATEGORICAL && in == 2) ||
                         (c->op == DT_OPX_CATEGORICAL_BWD && in == 4) || (c->op == DT_OP_BATCH_NORM && in == 5) ||
                         (c->op == DT_OPX_BATCH_NORM_BWD && in == 4);
    return is_float && !is_mask && !c->shape_only[in] && c->in[in]->n > 0;
}

static char *marks_of(const call *c)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < c->n_out; k++) {
        n += c->out[k]->n;
    }
    return zalloc((size_t)n + 1);
}

static void mark_changes(const call *c, const call *plain, char *marks)
{
    for (uint32_t k = 0; k < c->n_out; k++) {
        for (int64_t i = 0; i < c->out[k]->n; i++, marks++) {
            const double now = c->out[k]->f[i], was = plain->out[k]->f[i];
            *marks = *marks || (now != was && !(isnan(now) && isnan(was)));
        }
    }
}

char *depends_on(const call *c, uint32_t in, int64_t at)
{
    static const double by[] = {-30, -3, -0.3, 0.3, 3, 30};
    tensor plain[DT_KERNEL_MAX_OUT], moved[DT_KERNEL_MAX_OUT];
    call one, other;
    double *x = &c->in[in]->f[at];
    const double keep = *x;
    char *marks = marks_of(c);
    clone_outputs(c, &one, plain);
    clone_outputs(c, &other, moved);
    run(&ref64, &one, "as it is");
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        *x = keep + by[i];
        run(&ref64, &other, "with one number moved");
        mark_changes(&other, &one, marks);
    }
    *x = keep;
    free_outputs(plain, c->n_out);
    free_outputs(moved, c->n_out);
    return marks;
}

char *depends_on_gradients(const call *c)
{
    tensor plain[DT_KERNEL_MAX_OUT], moved[DT_KERNEL_MAX_OUT];
    call one, other;
    char *marks = marks_of(c);
    clone_outputs(c, &one, plain);
    clone_outputs(c, &other, moved);
    run(&ref64, &one, "as it is");
    for (int by = 2; by >= -2; by -= 4) {
        for (uint32_t i = 0; i < c->n_in; i++) {
            for (int64_t k = 0; k < c->in[i]->n && is_gradient(c, i); k++) {
                c->in[i]->f[k] *= by;
            }
        }
        run(&ref64, &other, "with other gradients");
        mark_changes(&other, &one, marks);
        for (uint32_t i = 0; i < c->n_in; i++) {
            for (int64_t k = 0; k < c->in[i]->n && is_gradient(c, i); k++) {
                c->in[i]->f[k] /= by;
            }
        }
    }
    free_outputs(plain, c->n_out);
    free_outputs(moved, c->n_out);
    return marks;
}

int64_t lost_nan(const call *c, const char *must, uint32_t k, const double *value)
{
    for (uint32_t i = 0; i < k; i++) {
        must += c->out[i]->n;
    }
    for (int64_t i = 0; i < c->out[k]->n; i++) {
        if (must[i] && !isnan(value[i]) && !(c->op == DT_OP_PPO_CLIP && k == 2) && c->out[k]->dtype != DT_I32) {
            return i;
        }
    }
    return -1;
}

/* ---- derivatives ------------------------------------------------------------------------------------------------- */

uint32_t derivative_reads(const op_derivative *d)
{
    uint32_t bits = 0;
    for (const char *c = d->args; *c != '\0'; c++) {
        if (*c == 'g') {
            bits |= 1u << (c[1] >= '0' && c[1] <= '9' ? c[1] - '0' : 0);
        }
    }
    return bits;
}

double weight_of(double want)
{
    return fabs(want) > 1e20 ? 1 / fabs(want) : 1;
}

void clone_outputs(const call *from, call *to, tensor *copy)
{
    *to = *from;
    for (uint32_t i = 0; i < from->n_out; i++) {
        copy[i] = *from->out[i];
        copy[i].raw = NULL;
        copy[i].f = zalloc((size_t)copy[i].n * sizeof(double));
        to->out[i] = &copy[i];
    }
}

void free_outputs(tensor *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tensor_free(&t[i]);
    }
}
