/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameter table. See params.h.
 */
#include <config.h>

#include "engine/graph/params.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/rng.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ALIGN_ELEMENTS = 64, /* 256 bytes of f32: a cache line multiple for every kernel set and for reduction buckets */
    MAX_ROLE = 64,
    INIT_STREAM = 1 /* dt_rng_key.op: keeps initial values apart from every other use of the seed */
};
static const int64_t MAX_ELEMENTS = (int64_t)1 << 40; /* 4 TiB of f32: more is a mistake in a shape */

void dt_param_table_fini(dt_param_table *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        dt_free(t->param[i].name);
    }
    for (uint32_t i = 0; i < t->n_targets; i++) {
        dt_free(t->target[i].role);
        dt_free(t->target[i].name);
    }
    dt_free(t->target);
    dt_free(t->param);
    *t = (dt_param_table){0};
}

#define NAME "abcdefghijklmnopqrstuvwxyz0123456789_."

static bool is_role(const char *s)
{
    return s != NULL && s[0] != '\0' && strlen(s) < MAX_ROLE && strspn(s, NAME "@") == strlen(s);
}

static dt_status check_constant(const char *role, const char *name)
{
    return strncmp(name, DT_PARAM_CONSTANT, strlen(DT_PARAM_CONSTANT)) == 0
               ? DT_OK
               : DT_FAIL(DT_EINVAL, "parameter %s.%s is a constant (DT_INIT_CONSTANT): call it " DT_PARAM_CONSTANT "%s",
                         role, name, name);
}

static dt_status check_init(const char *role, const char *name, uint32_t n_dims, uint32_t init, double a)
{
    if (init > DT_INIT_ORTHO) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s: initialiser %u is not one of DT_INIT_* (0 to %d)", role, name, init,
                       DT_INIT_ORTHO);
    }
    if (!isfinite(a)) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s: initialiser argument %g is not finite", role, name, a);
    }
    if ((init == DT_INIT_XAVIER || init == DT_INIT_FAN_IN) && n_dims < 2) {
        return DT_FAIL(DT_EINVAL,
                       "parameter %s.%s: the fan-in of a vector is not known from its shape, use "
                       "DT_INIT_UNIFORM",
                       role, name);
    }
    if (init == DT_INIT_EYE ? n_dims != 2 : init == DT_INIT_ORTHO && n_dims < 2) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s: %s expects a matrix, not %u dimensions", role, name,
                       init == DT_INIT_EYE ? "DT_INIT_EYE" : "DT_INIT_ORTHO", n_dims);
    }
    return DT_OK;
}

static dt_status check_dims(const char *role, const char *name, const int64_t *dim, uint32_t n_dims, int64_t *count_p)
{
    if (n_dims < 1 || n_dims > 4) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s has %u dimensions, allowed are 1 to 4", role, name, n_dims);
    }
    if (dim == NULL) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s: its dimensions are NULL; pass an array of %u", role, name, n_dims);
    }
    int64_t count = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (dim[i] < 1) {
            return DT_FAIL(DT_EINVAL, "parameter %s.%s: dimension %u is %lld, must be at least 1", role, name, i,
                           (long long)dim[i]);
        }
        if (!dt_mul_i64(count, dim[i], &count) || count > MAX_ELEMENTS) {
            return DT_FAIL(DT_ECONFIG, "parameter %s.%s has more than %lld elements", role, name,
                           (long long)MAX_ELEMENTS);
        }
    }
    *count_p = count;
    return DT_OK;
}

static int64_t align_count(int64_t count)
{
    return (count + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

int64_t dt_param_end(const dt_param *p)
{
    return p->offset + align_count(p->count);
}

static dt_status reserve_param(dt_param_table *t)
{
    if (t->n < t->cap) {
        return DT_OK;
    }
    uint32_t cap = t->cap == 0 ? 32 : t->cap * 2;
    dt_param *grown = dt_realloc(t->param, cap * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a table of %u parameters", cap);
    }
    t->param = grown;
    t->cap = cap;
    return DT_OK;
}

dt_status dt_param_table_add(dt_param_table *t, const char *role, const char *name, const int64_t *dim, uint32_t n_dims,
                             uint32_t kind, double a)
{
    const bool is_constant = (kind & DT_INIT_CONSTANT) != 0;
    const bool is_statistic = (kind & DT_INIT_STATISTIC) != 0;
    const uint32_t init = kind & ~((uint32_t)DT_INIT_CONSTANT | (uint32_t)DT_INIT_STATISTIC);
    if (!is_role(role)) {
        return DT_FAIL(DT_EINVAL, "role \"%s\" must be 1 to %d characters of a-z 0-9 _ .", role != NULL ? role : "",
                       MAX_ROLE - 1);
    }
    DT_TRY(dt_name_check(DT_EINVAL, DT_NAME_PARAM, DT_NAME_MOST_PARAM, name, "a parameter of %s", role));
    int64_t count = 0;
    DT_TRY(check_dims(role, name, dim, n_dims, &count));
    DT_TRY(check_init(role, name, n_dims, init, a));
    DT_TRY(is_constant ? check_constant(role, name) : DT_OK);
    if (is_constant && is_statistic) {
        return DT_FAIL(DT_EINVAL, "parameter %s.%s is a constant and a statistic; it can be one of both", role, name);
    }
    DT_TRY(reserve_param(t));

    size_t name_bytes = strlen(role) + strlen(name) + 2;
    char *full = dt_alloc(name_bytes);
    if (full == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the name of parameter %s.%s", role, name);
    }
    snprintf(full, name_bytes, "%s.%s", role, name);
    if (dt_param_table_find(t, full) != NULL) {
        dt_status st = DT_FAIL(DT_EPLUGIN, "parameter %s is registered twice", full);
        dt_free(full);
        return st;
    }
    dt_param p = {.name = full,
                  .n_dims = n_dims,
                  .init = init,
                  .init_a = a,
                  .count = count,
                  .offset = t->total,
                  .frozen = is_constant,
                  .is_constant = is_constant,
                  .is_statistic = is_statistic};
    memcpy(p.dim, dim, n_dims * sizeof(dim[0]));
    t->param[t->n++] = p;
    t->base_total = t->total += align_count(count);
    t->count += count;
    t->has_statistics = t->has_statistics || is_statistic;
    if (!is_constant && !is_statistic) {
        t->trained_count += count;
    }
    return DT_OK;
}

void dt_param_table_align(dt_param_table *t, int64_t elements)
{
    t->base_total = t->total = (t->total + elements - 1) / elements * elements;
}

const dt_param *dt_param_table_find(const dt_param_table *t, const char *full_name)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (strcmp(t->param[i].name, full_name) == 0) {
            return &t->param[i];
        }
    }
    return NULL;
}

static bool has_role(const dt_param *p, const char *role)
{
    size_t n = strlen(role);
    return strncmp(p->name, role, n) == 0 && p->name[n] == '.';
}

/* ---- target networks --------------------------------------------------------------------------------------------- */

static bool is_target_name(const char *role, const char *s)
{
    return s != NULL && s[0] >= 'a' && s[0] <= 'z' && strlen(role) + 1 + strlen(s) < MAX_ROLE &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(s);
}

bool dt_param_table_has_target(const dt_param_table *t, const char *role, const char *name)
{
    for (uint32_t i = 0; i < t->n_targets; i++) {
        if (strcmp(t->target[i].role, role) == 0 && strcmp(t->target[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status list_target_network(dt_param_table *t, const char *role, const char *name)
{
    dt_param_target *grown = dt_realloc(t->target, (t->n_targets + 1) * sizeof(*grown));
    if (grown != NULL) {
        t->target = grown;
        t->target[t->n_targets++] = (dt_param_target){.role = dt_strdup(role), .name = dt_strdup(name)};
    }
    return grown != NULL && grown[t->n_targets - 1].role != NULL && grown[t->n_targets - 1].name != NULL
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for the target network %s of %s", name, role);
}

static dt_status copy_param(dt_param_table *t, uint32_t of, const char *role, const char *name)
{
    DT_TRY(reserve_param(t));
    dt_param p = t->param[of];
    const char *own = p.name + strlen(role) + 1;
    const size_t bytes = strlen(p.name) + strlen(name) + 2;
    p.name = dt_alloc(bytes);
    if (p.name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the target network %s of %s", name, role);
    }
    snprintf(p.name, bytes, "%s@%s.%s", role, name, own);
    p.frozen = p.is_target = true;
    p.target = t->n_targets - 1;
    p.of = of;
    p.offset = t->total;
    t->param[t->n++] = p;
    t->total += align_count(p.count);
    return DT_OK;
}

dt_status dt_param_table_add_target(dt_param_table *t, const char *role, const char *name)
{
    const uint32_t n = t->n;
    if (!is_target_name(role, name)) {
        return DT_FAIL(DT_EPLUGIN,
                       "the target network \"%s\" of %s: its name must begin with a-z, continue with a-z 0-9 _, and "
                       "have less than %zu characters",
                       name != NULL ? name : "", role, MAX_ROLE - 1 - strlen(role));
    }
    if (dt_param_table_has_target(t, role, name)) {
        return DT_FAIL(DT_EPLUGIN, "%s has two target networks %s", role, name);
    }
    DT_TRY(list_target_network(t, role, name));
    for (uint32_t i = 0; i < n; i++) {
        if (!t->param[i].is_target && has_role(&t->param[i], role)) {
            DT_TRY(copy_param(t, i, role, name));
        }
    }
    return DT_OK;
}

void dt_param_table_copy_targets(const dt_param_table *t, const char *name, float *arena)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const dt_param *p = &t->param[i];
        if (p->is_target && (name == NULL || strcmp(t->target[p->target].name, name) == 0)) {
            memcpy(arena + p->offset, arena + t->param[p->of].offset, (size_t)p->count * sizeof(*arena));
        }
    }
}

/* ---- frozen ------------------------------------------------------------------------------------------------------ */

dt_status dt_param_table_freeze(dt_param_table *t, const char *pattern, uint32_t *n_p)
{
    if (pattern == NULL || pattern[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "the pattern of parameters to freeze is empty; give a role or a glob such as "
                                   "perception.*");
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        dt_param *p = &t->param[i];
        if (p->is_target || (!has_role(p, pattern) && !dt_glob_match(pattern, p->name))) {
            continue;
        }
        n++;
        if (!p->frozen && !p->is_statistic) {
            t->trained_count -= p->count;
        }
        p->frozen = true;
    }
    *n_p = n;
    return DT_OK;
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

/* Element i of the stream: half of block i / 2, as a number in [0,1) with 53 bits. */
static double draw_uniform(const dt_rng_stream *s, int64_t i)
{
    uint32_t r[4];
    dt_rng_stream_block(s, 0, (uint64_t)i / 2, r);
    const uint32_t *half = r + 2 * (i % 2);
    return (double)((((uint64_t)half[0] << 32) | half[1]) >> 11) * 0x1p-53;
}

/* Box-Muller on elements 2i and 2i + 1: sqrt(-2 ln u) cos(2 pi v), u in (0,1]. */
static double draw_normal(const dt_rng_stream *s, int64_t i)
{
    static const double two_pi = 6.283185307179586;
    double u = 1.0 - draw_uniform(s, 2 * i), v = draw_uniform(s, 2 * i + 1);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

/* Half width of the uniform distribution of p. */
static double uniform_bound(const dt_param *p)
{
    double fan_out = (double)p->dim[0], fan_in = (double)(p->count / p->dim[0]);
    switch (p->init) {
    case DT_INIT_XAVIER:
        return p->init_a * sqrt(6.0 / (fan_in + fan_out));
    case DT_INIT_FAN_IN:
        return p->init_a / sqrt(fan_in);
    default:
        return p->init_a;
    }
}

/* x . y in four sums, so that the compiler may use four lanes; always in this order */
static double dot_product(const double *x, const double *y, int64_t n)
{
    double sum[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += x[i + k] * y[i + k];
        }
    }
    for (; i < n; i++) {
        sum[0] += x[i] * y[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* v [n_v, n], rows already normal numbers: orthonormal rows by modified Gram-Schmidt, each row twice against those
 * before it ("twice is enough", Giraud et al. 2005). Of normal numbers that gives every rotation the same chance. */
static void orthonormalise(double *v, int64_t n_v, int64_t n)
{
    for (int64_t j = 0; j < n_v; j++) {
        double *row = v + j * n;
        for (int64_t pass = 0; pass < 2; pass++) {
            for (int64_t i = 0; i < j; i++) {
                const double *before = v + i * n, along = dot_product(before, row, n);
                for (int64_t k = 0; k < n; k++) {
                    row[k] -= along * before[k];
                }
            }
        }
        const double size = sqrt(dot_product(row, row, n));
        for (int64_t k = 0; k < n; k++) {
            row[k] /= size;
        }
    }
}

/* Saxe, McClelland & Ganguli 2014: the shorter side of the matrix is orthonormal, times a. */
static dt_status init_orthogonal(const dt_param *p, const dt_rng_stream *s, float *value)
{
    const int64_t rows = p->dim[0], columns = p->count / rows; /* of a kernel: all of its other dimensions */
    const bool is_tall = rows > columns;
    const int64_t n_v = is_tall ? columns : rows, n = is_tall ? rows : columns;
    double *v = dt_alloc_n((size_t)p->count, sizeof(*v));
    if (v == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the initial value of %s", p->name);
    }
    for (int64_t i = 0; i < p->count; i++) {
        v[i] = draw_normal(s, i);
    }
    orthonormalise(v, n_v, n);
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t row = i / columns, column = i % columns;
        value[i] = (float)(p->init_a * (is_tall ? v[column * n + row] : v[row * n + column]));
    }
    dt_free(v);
    return DT_OK;
}

static dt_status init_param(const dt_param *p, uint64_t seed, float *value)
{
    const dt_rng_key key = {.seed = seed, .op = INIT_STREAM, .step = dt_hash64(p->name, strlen(p->name), 0)};
    dt_rng_stream s;
    dt_rng_stream_init(&s, &key);
    if (p->init == DT_INIT_ORTHO) {
        return init_orthogonal(p, &s, value);
    }
    double width = uniform_bound(p);
    for (int64_t i = 0; i < p->count; i++) {
        switch (p->init) {
        case DT_INIT_ZERO:
            value[i] = 0.0f;
            break;
        case DT_INIT_CONST:
            value[i] = (float)p->init_a;
            break;
        case DT_INIT_EYE:
            value[i] = i / p->dim[1] == i % p->dim[1] ? (float)p->init_a : 0.0f;
            break;
        case DT_INIT_NORMAL:
            value[i] = (float)(p->init_a * draw_normal(&s, i));
            break;
        default:
            value[i] = (float)(width * (2.0 * draw_uniform(&s, i) - 1.0));
            break;
        }
    }
    return DT_OK;
}

dt_status dt_param_table_init(const dt_param_table *t, uint64_t seed, float *arena)
{
    memset(arena, 0, (size_t)t->total * sizeof(*arena));
    for (uint32_t i = 0; i < t->n; i++) {
        const dt_param *p = &t->param[i];
        DT_TRY(p->is_target ? DT_OK : init_param(p, seed, arena + p->offset));
    }
    dt_param_table_copy_targets(t, NULL, arena);
    return DT_OK;
}
