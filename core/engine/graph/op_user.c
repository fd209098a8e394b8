/* SPDX-License-Identifier: Apache-2.0
 *
 * See op_user.h. The rule of an op is checked once, so that infer.c, which trusts its text, can read it; that of the
 * derivative is made of its parts: "g0?[y] x[..] w[..] y[..] -> d0[x] d1[w]".
 */
#include <config.h>

#include "engine/graph/op_user.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/str.h"
#include "engine/backend/user.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ARGS = DT_USER_OP_MAX_IN + DT_USER_OP_MAX_OUT,
    NAME = 14,
    OP_NAME = 32,
    MOST_LETTERS = 12,
    MOST_FACTOR = 1 << 20
};

typedef struct rule_arg {
    const char *name, *dims, *type; /* dims: "[...,D]" */
    int name_n, dims_n, type_n;
    bool is_optional, is_f32, has_lead;
    uint32_t letters, multiples, attrs; /* bits: letters in it, those with a factor, i0 to i3 */
} rule_arg;

typedef struct user_row {
    dt_user_op op; /* a copy, in full */
    const dt_user_op *original;
    char plugin[64];
    char *forward_rule, *backward_rule;
    dt_op_info info[2];
    rule_arg arg[MAX_ARGS];
    uint32_t n_in, n_out;
    uint32_t multiples, attrs; /* of outputs */
} user_row;

/* Rows are added under a lock and never change or leave; a reader, which takes none, sees those that are complete. */
static user_row *table[DT_USER_OP_MOST];
static _Atomic uint32_t n_rows;

static uint32_t complete_rows(void)
{
    return atomic_load_explicit(&n_rows, memory_order_acquire);
}

static user_row *row_of(uint32_t op)
{
    const uint32_t k = (op - DT_USER_OP_FIRST) / 2;
    return op >= DT_USER_OP_FIRST && k < complete_rows() ? table[k] : NULL;
}

uint32_t dt_user_op_find(const char *name)
{
    const uint32_t n = complete_rows();
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(table[i]->op.name, name) == 0) {
            return DT_USER_OP_FIRST + 2 * i;
        }
    }
    return 0;
}

static user_row *row_named(const char *name)
{
    return row_of(dt_user_op_find(name));
}

void dt_user_op_names(dt_str *out)
{
    const uint32_t n = complete_rows();
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%s", i > 0 ? ", " : "", table[i]->op.name);
    }
}

const dt_op_info *dt_user_op_info(uint32_t op)
{
    const user_row *r = row_of(op);
    return r != NULL ? &r->info[(op - DT_USER_OP_FIRST) % 2] : NULL;
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of a name [a-z][a-z0-9_]* at the beginning of the text. */
static int name_length(const char *text)
{
    int n = 0;
    while (is_lower(text[n]) || (n > 0 && (is_digit(text[n]) || text[n] == '_'))) {
        n++;
    }
    return n;
}

/* One size; returns where it ends, NULL when it is none. */
static const char *read_size(const char *at, rule_arg *a)
{
    if (strncmp(at, "...", 3) == 0) {
        const bool is_second = a->has_lead;
        a->has_lead = true;
        return is_second ? NULL : at + 3;
    }
    if (at[0] == 'i' && at[1] >= '0' && at[1] <= '3') {
        a->attrs |= DT_BIT(at[1] - '0');
        return at + 2;
    }
    char *end = (char *)(uintptr_t)at;
    const bool has_number = is_digit(*at);
    const long number = has_number ? strtol(at, &end, 10) : 1;
    if (has_number && (number < 1 || number > MOST_FACTOR)) {
        return NULL;
    }
    if (*end < 'A' || *end > 'Z') {
        return has_number ? end : NULL;
    }
    a->letters |= DT_BIT(*end - 'A');
    a->multiples |= number != 1 ? DT_BIT(*end - 'A') : 0;
    end++;
    return end[0] == '+' && end[1] == '1' ? end + 2 : end;
}

static const char *read_arg(const char *at, rule_arg *a)
{
    *a = (rule_arg){.name = at, .name_n = name_length(at), .is_f32 = true};
    at += a->name_n;
    if (a->name_n == 0 || a->name_n >= NAME) {
        return NULL;
    }
    a->is_optional = *at == '?';
    at += a->is_optional;
    a->dims = at;
    if (*at != '[') {
        return NULL;
    }
    for (uint32_t n = 0; *at != ']'; n++) {
        at = n < DT_MAX_DIMS ? read_size(at + 1, a) : NULL;
        if (at == NULL || (*at != ',' && *at != ']')) {
            return NULL;
        }
    }
    at++;
    a->dims_n = (int)(at - a->dims);
    a->type = at;
    if (strncmp(at, ":i32", 4) == 0 || strncmp(at, ":f32", 4) == 0) {
        a->is_f32 = at[1] == 'f';
        at += 4;
    }
    a->type_n = (int)(at - a->type);
    return *at == ' ' || *at == '\0' ? at : NULL;
}

/* NULL, or what is wrong with the rule. */
static const char *read_rule(user_row *r, const char **where_p)
{
    const char *at = r->op.shape;
    bool is_out = false;
    while (true) {
        at += strspn(at, " ");
        *where_p = at;
        if (*at == '\0') {
            break;
        }
        if (strncmp(at, "->", 2) == 0) {
            if (is_out) {
                return "\"->\" appears twice";
            }
            is_out = true;
            at += 2;
            continue;
        }
        uint32_t *n = is_out ? &r->n_out : &r->n_in;
        if (*n == (is_out ? (uint32_t)DT_USER_OP_MAX_OUT : (uint32_t)DT_USER_OP_MAX_IN)) {
            return is_out ? "more than 3 outputs" : "more than 4 inputs";
        }
        at = read_arg(at, &r->arg[r->n_in + r->n_out]);
        if (at == NULL) {
            return "expected name[sizes], such as x[...,D], y?[4K,i0] or idx[N]:i32";
        }
        ++*n;
    }
    return r->n_in == 0 || r->n_out == 0 ? "at least one input, \"->\" and one output are required" : NULL;
}

static uint32_t count_bits(uint32_t x)
{
    uint32_t n = 0;
    for (; x != 0; x &= x - 1) {
        n++;
    }
    return n;
}

/* What outputs need must be known from inputs that are always there. */
static const char *check_rule(user_row *r, const char **where_p)
{
    uint32_t bound = 0, all = 0;
    bool has_lead = false;
    const uint32_t results = r->op.results != 0 ? r->op.results : 1;
    for (uint32_t k = 0; k < r->n_in; k++) {
        bound |= r->arg[k].is_optional ? 0 : r->arg[k].letters;
        has_lead = has_lead || (r->arg[k].has_lead && !r->arg[k].is_optional);
        all |= r->arg[k].letters;
    }
    for (uint32_t k = r->n_in; k < r->n_in + r->n_out; k++) {
        const rule_arg *a = &r->arg[k];
        *where_p = a->name;
        if (a->is_optional) {
            return "an output cannot be optional";
        }
        if ((a->letters & ~bound) != 0 || (a->has_lead && !has_lead)) {
            return "a size of an output is in no input, or only in an optional one";
        }
        if (k - r->n_in < results && !a->is_f32) {
            return "a result must be f32; an i32 output comes after the results";
        }
        r->multiples |= a->multiples;
        r->attrs |= a->attrs;
    }
    *where_p = r->op.shape;
    if (r->arg[0].is_optional) {
        return "the first input cannot be optional";
    }
    if (results > r->n_out) {
        return "it has fewer outputs than results";
    }
    return count_bits(all) > MOST_LETTERS ? "more than 12 letters" : NULL;
}

static void add_arg(dt_str *s, const char *name, int name_n, bool is_optional, const rule_arg *a)
{
    dt_str_addf(s, " %.*s%s%.*s%.*s", name_n, name, is_optional ? "?" : "", a->dims_n, a->dims, a->type_n, a->type);
}

static dt_status make_rules(user_row *r)
{
    static const char *const gradient[] = {"g0", "g1", "g2"}, *const slope[] = {"d0", "d1", "d2", "d3"};
    const uint32_t results = r->op.results != 0 ? r->op.results : 1;
    dt_str s = {0};
    for (uint32_t k = 0; k < results; k++) {
        add_arg(&s, gradient[k], 2, true, &r->arg[r->n_in + k]);
    }
    for (uint32_t k = 0; k < r->n_in + r->n_out; k++) {
        add_arg(&s, r->arg[k].name, r->arg[k].name_n, r->arg[k].is_optional, &r->arg[k]);
    }
    dt_str_add(&s, " ->");
    for (uint32_t k = 0, n = 0; k < r->n_in; k++) {
        if (r->arg[k].is_f32) {
            add_arg(&s, slope[n++], 2, false, &r->arg[k]);
        }
    }
    r->backward_rule = dt_strdup(dt_str_text(&s));
    r->forward_rule = dt_strdup(r->op.shape);
    dt_str_fini(&s);
    return r->backward_rule != NULL && r->forward_rule != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for an op");
}

/* ---- in the graph ------------------------------------------------------------------------------------------------ */

static dt_status check_user(dt_infer *q)
{
    const user_row *r = row_named(q->name);
    for (uint32_t i = 0; r != NULL && i < 4; i++) {
        if ((r->attrs & DT_BIT(i)) != 0 && (q->attr.i[i] < 1 || q->attr.i[i] > INT32_MAX)) {
            return dt_infer_fail(q, DT_EINVAL, "i%u is %lld; as a size it must be 1 to 2147483647", i,
                                 (long long)q->attr.i[i]);
        }
    }
    for (int letter = 0; r != NULL && letter < 26; letter++) {
        const char var[2] = {(char)('A' + letter), '\0'};
        int64_t size = 0;
        if ((r->multiples & DT_BIT(letter)) != 0 && !dt_infer_number(q, var, &size)) {
            return dt_infer_fail(q, DT_ESHAPE, "%s is ragged; a multiple of it requires a number", var);
        }
    }
    return DT_OK;
}

/* g of each result, the inputs, the outputs -> a gradient for each f32 input */
static void vjp_user(dt_derive *d, const dt_node *n, int32_t dy)
{
    const user_row *r = row_of(n->op);
    const uint32_t results = r->op.results != 0 ? r->op.results : 1;
    int32_t in[DT_KERNEL_MAX_IN];
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t k = 0; k < results; k++) {
        in[n_in++] = dt_derive_output_grad(d, n, k);
    }
    for (uint32_t k = 0; k < r->n_in; k++) {
        in[n_in++] = k < n->n_in ? n->in[k] : -1;
    }
    for (uint32_t k = 0; k < r->n_out; k++) {
        in[n_in++] = n->out[k];
    }
    const int32_t node = dt_derive_emit(d, n->op + 1, in, n_in, &n->attr);
    for (uint32_t k = 0; k < r->n_in; k++) {
        if (r->arg[k].is_f32) {
            DT_ADD_GRAD(d, n, k, dt_derive_output(d, node, n_out));
            n_out++;
        }
    }
}

/* ---- example ----------------------------------------------------------------------------------------------------- */

static dt_shape example_of(const user_row *r, const rule_arg *a)
{
    dt_shape s = {.dtype = a->is_f32 ? DT_F32 : DT_I32};
    for (const char *at = a->dims; *at != ']';) {
        int64_t size = 3; /* of ... */
        at++;
        if (*at == 'i') {
            size = r->op.check_attr.i[at[1] - '0'];
        } else if (*at != '.') {
            size = is_digit(*at) ? strtol(at, (char **)(uintptr_t)&at, 10) : 1;
            if (*at >= 'A' && *at <= 'Z') {
                size = size * (2 + (*at - 'A') % 4) + (at[1] == '+');
            }
        }
        at += strcspn(at, ",]");
        s.dim[s.rank++] = dt_extent_number(size);
    }
    return s;
}

uint32_t dt_user_op_example(uint32_t op, dt_shape in[DT_USER_OP_MAX_IN])
{
    const user_row *r = row_of(op);
    for (uint32_t k = 0; k < r->n_in; k++) {
        in[k] = example_of(r, &r->arg[k]);
    }
    return r->n_in;
}

/* ---- registration ------------------------------------------------------------------------------------------------ */

static dt_status check_name(const user_row *r)
{
    const char *name = r->op.name;
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, OP_NAME - 1, name, "plugin %s: an op", r->plugin));
#define DT_OP(ID, number, builtin)                                                                                     \
    if (strcmp(name, #builtin) == 0) {                                                                                 \
        return DT_FAIL(DT_EPLUGIN, "plugin %s: the op %s has the name of an op of dtrain; give it another", r->plugin, \
                       name);                                                                                          \
    }
#include "engine/backend/ops.def"
    const user_row *other = row_named(name);
    if (other != NULL) {
        return DT_FAIL(DT_EPLUGIN, "plugins %s and %s both have an op named %s; rename one, or load one of them",
                       other->plugin, r->plugin, name);
    }
    return DT_OK;
}

static dt_status fill_row(user_row *r)
{
    const char *where = "";
    DT_TRY(check_name(r));
    if (r->op.shape == NULL || r->op.forward == NULL) {
        return DT_FAIL(DT_EPLUGIN, "plugin %s: the op %s has no %s", r->plugin, r->op.name,
                       r->op.shape == NULL ? "shape" : "forward");
    }
    const char *wrong = read_rule(r, &where);
    wrong = wrong == NULL ? check_rule(r, &where) : wrong;
    if (wrong != NULL) {
        return DT_FAIL(DT_EPLUGIN, "plugin %s: the op %s: shape \"%s\": at \"%s\": %s", r->plugin, r->op.name,
                       r->op.shape, where, wrong);
    }
    DT_TRY(make_rules(r));
    r->info[0] = (dt_op_info){.shape = r->forward_rule,
                              .check = check_user,
                              .vjp = r->op.backward != NULL ? vjp_user : NULL,
                              .storage = {.kind = DT_STORAGE_F32},
                              .results = r->op.results};
    for (uint32_t k = 0; k < r->n_in; k++) {
        r->info[0].grad_in |= r->arg[k].is_f32 ? DT_BIT(k) : 0;
    }
    r->info[1] = (dt_op_info){.shape = r->backward_rule, .storage = {.kind = DT_STORAGE_F32}};
    return DT_OK;
}

static dt_status register_under_lock(const dt_user_op *op, const char *plugin)
{
    const uint32_t n = complete_rows();
    for (uint32_t i = 0; i < n; i++) {
        if (table[i]->original == op) {
            return DT_OK;
        }
    }
    user_row *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an op");
    }
    const size_t known = op->struct_size < sizeof(r->op) ? op->struct_size : sizeof(r->op);
    memcpy(&r->op, op, known);
    r->original = op;
    (void)snprintf(r->plugin, sizeof(r->plugin), "%s", plugin);
    dt_status st = n < DT_USER_OP_MOST
                       ? fill_row(r)
                       : DT_FAIL(DT_EPLUGIN, "plugin %s: more than %d ops of plugins", plugin, DT_USER_OP_MOST);
    if (st < 0) {
        dt_free(r->forward_rule);
        dt_free(r->backward_rule);
        dt_free(r);
        return st;
    }
    table[n] = r;
    dt_user_op_add(&r->op);
    atomic_store_explicit(&n_rows, n + 1, memory_order_release);
    return DT_OK;
}

dt_status dt_user_op_register(const dt_user_op *op, const char *plugin)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const dt_status st = register_under_lock(op, plugin);
    pthread_mutex_unlock(&lock);
    return st;
}
