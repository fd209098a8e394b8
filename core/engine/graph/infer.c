/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules. See infer.h.
 */
#include <config.h>

#include "engine/graph/infer.h"
#include "engine/graph/op.h"
#include "base/err.h"
#include "engine/tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

/* ---- the language ------------------------------------------------------------------------------------------------ */

typedef enum token_kind { TOKEN_LEAD, TOKEN_NUMBER, TOKEN_VAR, TOKEN_ATTR } token_kind;

typedef struct token {
    token_kind kind;
    int64_t number; /* LEAD: 0 for ..., 1 for *; NUMBER; VAR: factor; ATTR: index */
    int64_t plus;   /* VAR */
    char var[4];
} token;

typedef struct arg {
    char name[DT_INFER_NAME];
    bool optional;
    uint32_t dtype, other_dtype, n_tokens; /* other_dtype: 0, or as good */
    token tok[DT_MAX_DIMS];
    const char *text; /* "[...,K]" */
    int text_n;
} arg;

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static token parse_token(const char *at, const char *end)
{
    token t = {.kind = TOKEN_VAR, .number = 1};
    if (*at == '.' || *at == '*') {
        t.kind = TOKEN_LEAD;
        t.number = *at == '*';
        return t;
    }
    if (*at == 'i') {
        t.kind = TOKEN_ATTR;
        t.number = at[1] - '0';
        return t;
    }
    if (!is_upper(*at)) {
        char *rest = NULL;
        t.number = strtol(at, &rest, 10);
        at = rest;
        if (at == end) {
            t.kind = TOKEN_NUMBER;
            return t;
        }
    }
    for (size_t n = 0; at < end && is_upper(*at) && n + 1 < sizeof(t.var); n++) {
        t.var[n] = *at++;
    }
    t.plus = at < end ? 1 : 0; /* "+1" */
    return t;
}

/* Next argument of a rule; returns where it ends, NULL at "->" or the end of the text. */
static const char *parse_arg(const char *at, arg *out)
{
    at += strspn(at, " ");
    if (*at == '\0' || *at == '-') {
        return NULL;
    }
    *out = (arg){.dtype = DT_F32};
    size_t name_n = strcspn(at, "[?");
    memcpy(out->name, at, name_n);
    at += name_n;
    if (*at == '?') {
        out->optional = true;
        at++;
    }
    out->text = at++;
    while (true) {
        size_t n = strcspn(at, ",]");
        out->tok[out->n_tokens++] = parse_token(at, at + n);
        at += n + 1;
        if (at[-1] == ']') {
            break;
        }
    }
    out->text_n = (int)(at - out->text);
    if (*at == ':') {
        size_t n = strcspn(++at, "| ");
        out->dtype = dt_dtype_find(at, n);
        at += n;
        if (*at == '|') {
            n = strcspn(++at, " ");
            out->other_dtype = dt_dtype_find(at, n);
            at += n;
        }
    }
    return at;
}

static const char *rule_outputs(const char *rule)
{
    return strstr(rule, "->") + 2;
}

/* ---- bound letters ----------------------------------------------------------------------------------------------- */

static int find_var(const dt_infer *q, const char *name)
{
    for (uint32_t i = 0; i < q->n_vars; i++) {
        if (strcmp(q->var[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

dt_extent dt_infer_get(const dt_infer *q, const char *var)
{
    int i = find_var(q, var);
    return i < 0 ? dt_extent_number(0) : q->var[i].extent;
}

void dt_infer_set(dt_infer *q, const char *var, dt_extent e)
{
    int i = find_var(q, var);
    if (i < 0) {
        i = (int)q->n_vars++;
        strncpy(q->var[i].name, var, sizeof(q->var[i].name) - 1);
    }
    q->var[i].extent = e;
}

bool dt_infer_number(const dt_infer *q, const char *var, int64_t *out_p)
{
    dt_extent e = dt_infer_get(q, var);
    if (e.symbol >= 0) {
        return false;
    }
    *out_p = e.size;
    return true;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

dt_status dt_infer_fail(const dt_infer *q, dt_status st, const char *fmt, ...)
{
    dt_str s = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addf(&s, "%s: ", q->name);
    dt_str_addv(&s, fmt, ap);
    va_end(ap);
    st = DT_FAIL(st, "%s", dt_str_text(&s));
    dt_str_fini(&s);
    return st;
}

void dt_infer_input_text(const dt_infer *q, uint32_t k, dt_str *out)
{
    dt_str_addf(out, "%s is ", q->in_name[k]);
    dt_shape_text(q->in[k], q->symbol, out);
}

/* "w is 64 32 f32, wanted [M,K] f32 where K = 30" */
static dt_status fail_mismatch(const dt_infer *q, uint32_t k, const arg *a)
{
    dt_str s = {0};
    dt_infer_input_text(q, k, &s);
    dt_str_addf(&s, ", expected %.*s %s", a->text_n, a->text, dt_dtype_name(a->dtype));
    if (a->other_dtype != 0) {
        dt_str_addf(&s, " or %s", dt_dtype_name(a->other_dtype));
    }
    const char *joint = " where ";
    for (uint32_t i = 0; i < a->n_tokens; i++) {
        const token *t = &a->tok[i];
        if (t->kind == TOKEN_VAR && find_var(q, t->var) >= 0) {
            dt_str_addf(&s, "%s%s = ", joint, t->var);
            dt_extent_text(dt_infer_get(q, t->var), q->symbol, &s);
            joint = ", ";
        } else if (t->kind == TOKEN_LEAD && q->has_lead[t->number]) {
            const dt_shape *lead = &q->lead[t->number];
            dt_str_addf(&s, "%s%s =", joint, t->number == 0 ? "..." : "*");
            for (uint32_t j = 0; j < lead->rank; j++) {
                dt_str_add(&s, " ");
                dt_extent_text(lead->dim[j], q->symbol, &s);
            }
            joint = ", ";
        }
    }
    dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s", dt_str_text(&s));
    dt_str_fini(&s);
    return st;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static bool match_extent(dt_infer *q, const token *t, dt_extent e)
{
    if (t->kind == TOKEN_NUMBER || t->kind == TOKEN_ATTR) {
        int64_t want = t->kind == TOKEN_NUMBER ? t->number : q->attr.i[t->number];
        return e.symbol < 0 && e.size == want;
    }
    /* e = number * var + plus */
    if (e.symbol >= 0) {
        if (t->number != 1 || (t->plus != 0 && e.size != t->plus)) {
            return false;
        }
        e.size -= t->plus;
    } else {
        e.size -= t->plus;
        if (e.size < 0 || e.size % t->number != 0) {
            return false;
        }
        e.size /= t->number;
    }
    if (find_var(q, t->var) < 0) {
        dt_infer_set(q, t->var, e);
        return true;
    }
    return dt_extent_equal(e, dt_infer_get(q, t->var));
}

static bool match_leading_dims(dt_infer *q, int64_t which, const dt_extent *dim, uint32_t n)
{
    dt_shape lead = {.rank = n};
    memcpy(lead.dim, dim, n * sizeof(*dim));
    if (!q->has_lead[which]) {
        q->lead[which] = lead;
        q->has_lead[which] = true;
        return true;
    }
    return dt_shape_equal(&lead, &q->lead[which]);
}

static bool match_arg(dt_infer *q, const arg *a, const dt_shape *s)
{
    bool has_lead = false;
    for (uint32_t i = 0; i < a->n_tokens; i++) {
        has_lead = has_lead || a->tok[i].kind == TOKEN_LEAD;
    }
    uint32_t n_fixed = a->n_tokens - (has_lead ? 1 : 0);
    const bool is_dtype = s->dtype == a->dtype || (a->other_dtype != 0 && s->dtype == a->other_dtype);
    if (!is_dtype || s->rank < n_fixed || (!has_lead && s->rank != n_fixed)) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < a->n_tokens; i++) {
        if (a->tok[i].kind == TOKEN_LEAD) {
            if (!match_leading_dims(q, a->tok[i].number, &s->dim[at], s->rank - n_fixed)) {
                return false;
            }
            at += s->rank - n_fixed;
        } else if (!match_extent(q, &a->tok[i], s->dim[at++])) {
            return false;
        }
    }
    return true;
}

static dt_status match_inputs(dt_infer *q, const char *rule)
{
    arg a;
    uint32_t k = 0, n_given = q->n_in;
    for (const char *at = parse_arg(rule, &a); at != NULL; at = parse_arg(at, &a), k++) {
        memcpy(q->in_name[k], a.name, sizeof(a.name));
        if (k >= n_given || q->in[k] == NULL) {
            if (!a.optional) {
                return dt_infer_fail(q, DT_EINVAL, "input %s (number %u) is missing", a.name, k);
            }
            q->in[k] = NULL;
            continue;
        }
        const uint32_t n_vars = q->n_vars;
        const bool had_lead[2] = {q->has_lead[0], q->has_lead[1]};
        if (!match_arg(q, &a, q->in[k])) {
            /* the message names what earlier inputs fixed, not what this one proposed */
            q->n_vars = n_vars;
            memcpy(q->has_lead, had_lead, sizeof(had_lead));
            return fail_mismatch(q, k, &a);
        }
    }
    if (n_given > k) {
        return dt_infer_fail(q, DT_EINVAL, "%u inputs given, it takes at most %u", n_given, k);
    }
    q->n_in = k;
    return DT_OK;
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static dt_extent token_extent(const dt_infer *q, const token *t)
{
    switch (t->kind) {
    case TOKEN_NUMBER:
        return dt_extent_number(t->number);
    case TOKEN_ATTR:
        return dt_extent_number(q->attr.i[t->number]);
    default: {
        dt_extent e = dt_infer_get(q, t->var);
        if (e.symbol < 0) {
            e.size *= t->number;
        }
        e.size += t->plus;
        return e;
    }
    }
}

static dt_status add_output(dt_infer *q, const arg *a)
{
    dt_shape *s = &q->out[q->n_out++];
    *s = (dt_shape){.dtype = a->dtype};
    for (uint32_t i = 0; i < a->n_tokens; i++) {
        const token *t = &a->tok[i];
        uint32_t n = t->kind == TOKEN_LEAD ? q->lead[t->number].rank : 1;
        if (s->rank + n > DT_MAX_DIMS) {
            return dt_infer_fail(q, DT_ESHAPE, "%s would have more than %d dimensions", a->name, DT_MAX_DIMS);
        }
        if (t->kind == TOKEN_LEAD) {
            memcpy(&s->dim[s->rank], q->lead[t->number].dim, n * sizeof(dt_extent));
        } else {
            s->dim[s->rank] = token_extent(q, t);
        }
        s->rank += n;
    }
    return dt_shape_fits(s) ? DT_OK
                            : dt_infer_fail(q, DT_ESHAPE, "%s would have more elements than a shape may", a->name);
}

dt_status dt_infer_run(dt_infer *q, const dt_op_info *info)
{
    DT_TRY(match_inputs(q, info->shape));
    if (info->check != NULL) {
        DT_TRY(info->check(q));
    }
    arg a;
    for (const char *at = parse_arg(rule_outputs(info->shape), &a); at != NULL; at = parse_arg(at, &a)) {
        DT_TRY(add_output(q, &a));
    }
    return DT_OK;
}
