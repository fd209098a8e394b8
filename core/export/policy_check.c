/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "export/policy_check.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/graph/op.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <string.h>

typedef struct checker {
    const dt_policy_file *f;
    const dt_ir *ir;
    dt_policy_facts *out;
} checker;

/* ---- names and numbers ------------------------------------------------------------------------------------------- */

static int32_t find_symbol(const dt_policy_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        if (strcmp(f->symbol[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static dt_status check_names(const dt_policy_file *f)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        const char *name = f->symbol[i];
        if (name[0] < 'A' || name[0] > 'Z' || strpbrk(name, " +") != NULL || find_symbol(f, name) != (int32_t)i) {
            return DT_FAIL(DT_EDATA, "symbol \"%s\" is not a name of its own that begins with a capital letter", name);
        }
    }
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(f->input[i].name, f->input[k].name) == 0) {
                return DT_FAIL(DT_EDATA, "two inputs are called \"%s\"", f->input[i].name);
            }
        }
    }
    return DT_OK;
}

static dt_status check_actions(checker *c)
{
    const dt_policy_file *f = c->f;
    dt_policy_facts *x = c->out;
    for (uint32_t i = 0; i < f->n_heads; i++) {
        if (!dt_add_u32(x->n_choices, (uint32_t)f->choices[i], &x->n_choices) ||
            x->n_choices > DT_POLICY_MOST_CHOICES) {
            return DT_FAIL(DT_EDATA, "the heads have more than %d choices together", DT_POLICY_MOST_CHOICES);
        }
    }
    for (uint32_t i = 0; i < f->n_continuous; i++) {
        if (!(f->low[i] <= f->high[i])) {
            return DT_FAIL(DT_EDATA, "action %u has the bounds %g and %g: no number is between them", i,
                           (double)f->low[i], (double)f->high[i]);
        }
        if (f->is_squashed && (!isfinite(f->low[i]) || !isfinite(f->high[i]))) {
            return DT_FAIL(DT_EDATA, "action %u is squashed between %g and %g, which are not finite", i,
                           (double)f->low[i], (double)f->high[i]);
        }
    }
    x->window = f->window > 0 ? f->window : 1;
    if (x->window > DT_POLICY_MOST_WINDOW) {
        return DT_FAIL(DT_EDATA, "window is %u, at most %d steps are kept", x->window, DT_POLICY_MOST_WINDOW);
    }
    return DT_OK;
}

static dt_status check_symbols(checker *c)
{
    const dt_policy_file *f = c->f;
    dt_policy_facts *x = c->out;
    x->A = find_symbol(f, "A");
    x->B = find_symbol(f, "B");
    if (x->A < 0 || f->n_heads + f->n_continuous == 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "a model of phase %s without actions; only policies can act", f->phase);
    }
    if (f->most[x->A] < 1 || f->most[x->A] > DT_POLICY_MOST_PLACES) {
        return DT_FAIL(DT_EDATA, "%lld places, expected 1 to %d", (long long)f->most[x->A], DT_POLICY_MOST_PLACES);
    }
    if (x->B >= 0 && f->most[x->B] < 1) {
        return DT_FAIL(DT_EDATA, "room for %lld worlds, one is needed", (long long)f->most[x->B]);
    }
    x->places = (uint32_t)f->most[x->A];
    return DT_OK;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static bool is_number(const dt_extent *e, int64_t n)
{
    return e->symbol < 0 && e->size == n;
}

static bool is_rows(const dt_extent *e, int32_t symbol)
{
    return e->symbol == symbol && e->size == 0;
}

/* What an environment can show: rows of places or of a ragged symbol, each of the same bytes. */
static dt_status measure_input(const checker *c, uint32_t i, const dt_shape *s)
{
    const dt_bundle_input *x = &c->f->input[i];
    dt_policy_input *d = &c->out->input[i];
    const bool is_given = x->kind == DT_BUNDLE_GIVEN, is_steps = x->kind == DT_BUNDLE_STEPS;
    const uint32_t rows = is_given || x->kind == DT_BUNDLE_MASK ? 0 : 1; /* which dimension they are */
    const dt_extent *dim = s->dim;
    bool is_known = s->rank > rows && dim[rows].symbol >= 0 && dim[rows].symbol != c->out->B;
    d->symbol = is_known ? dim[rows].symbol : -1;
    d->plus = is_known ? (int32_t)dim[rows].size : 0;
    d->steps = rows == 0 ? 1 : dim[0].symbol < 0 && dim[0].size <= UINT16_MAX ? (uint32_t)dim[0].size : 0;
    d->row_bytes = dt_dtype_bytes(x->dtype);
    for (uint32_t k = rows + 1; k < s->rank; k++) {
        is_known = is_known && dim[k].symbol < 0 && dt_mul_size(d->row_bytes, (size_t)dim[k].size, &d->row_bytes);
    }
    const bool is_of_places = d->symbol == c->out->A;
    is_known = is_known && strlen(x->dims) < DT_POLICY_DIMS_BYTES;
    if (!is_known || d->steps == 0 || (!is_of_places && !is_given && !is_steps) ||
        (d->plus != 0 && (!is_given || is_of_places || x->index_of < 0 || x->index_of == c->out->A)) ||
        (x->index_of >= 0 && (x->dtype != DT_I32 || !is_given)) || (x->dtype != DT_F32 && !is_given && !is_steps)) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "input %s [%s] is not what an environment shows: rows of places, or of a ragged symbol", x->name,
                       x->dims);
    }
    return DT_OK;
}

/* What is made here of other things has their shape. */
static dt_status check_derived_input(const checker *c, uint32_t i, const dt_shape *s)
{
    const dt_bundle_input *x = &c->f->input[i];
    const dt_policy_facts *p = c->out;
    const dt_policy_input *d = &p->input[i];
    if (x->kind == DT_BUNDLE_MASK && !(s->rank == 2 && is_number(&s->dim[1], p->n_choices))) {
        return DT_FAIL(DT_EDATA, "mask %s [%s] is not [A %u], a column per choice of the heads", x->name, x->dims,
                       p->n_choices);
    }
    if (x->kind == DT_BUNDLE_PRESENT && s->rank != 2) {
        return DT_FAIL(DT_EDATA, "%s [%s] is not [%u A], a number per step and place", x->name, x->dims, p->window);
    }
    if ((x->kind == DT_BUNDLE_PRESENT || x->kind == DT_BUNDLE_HISTORY) && d->steps != p->window) {
        return DT_FAIL(DT_EDATA, "%s [%s] has %u steps, the window %u", x->name, x->dims, d->steps, p->window);
    }
    if (x->kind != DT_BUNDLE_HISTORY) {
        return DT_OK;
    }
    const dt_bundle_input *of = &c->f->input[x->of];
    const dt_policy_input *o = &p->input[x->of];
    if (of->kind != DT_BUNDLE_GIVEN || of->dtype != x->dtype || o->symbol != p->A || o->row_bytes != d->row_bytes) {
        return DT_FAIL(DT_EDATA, "%s [%s] is not a history of %s [%s]: rows of places, of the same length", x->name,
                       x->dims, of->name, of->dims);
    }
    return DT_OK;
}

/* Room for its rows, where they are put together or change; what a step keeps of them. */
static dt_status count_arena(checker *c, uint32_t i)
{
    const dt_bundle_input *x = &c->f->input[i];
    dt_policy_input *d = &c->out->input[i];
    const bool is_made = d->symbol == c->out->A || x->kind == DT_BUNDLE_STEPS || x->index_of == c->out->A;
    size_t rows = (size_t)c->f->most[d->symbol] + (size_t)d->plus;
    bool fits = dt_mul_size(rows, d->steps, &rows) && dt_mul_size(rows, d->row_bytes, &d->room_bytes);
    d->room_bytes = !is_made ? 0 : d->room_bytes > 0 ? d->room_bytes : 1;
    if (x->kind == DT_BUNDLE_HISTORY) {
        fits = fits && dt_mul_size((size_t)c->out->places * c->out->window, d->row_bytes, &d->memory_bytes);
    }
    size_t *all = &c->out->room_bytes;
    fits = fits && dt_add_size(*all, d->room_bytes, all) && dt_add_size(*all, d->memory_bytes, all);
    return fits && *all <= DT_POLICY_MOST_BYTES
               ? DT_OK
               : DT_FAIL(DT_EUNSUPPORTED, "input %s [%s] needs more than %zu MB for its rows", x->name, x->dims,
                         DT_POLICY_MOST_BYTES >> 20);
}

static dt_status check_inputs(checker *c)
{
    const dt_policy_file *f = c->f;
    dt_shape shape[DT_BUNDLE_MAX_INPUTS];
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const dt_bundle_input *x = &f->input[i];
        const dt_status st = dt_shape_parse(x->dims, x->dtype, f->symbol, f->n_symbols, &shape[i]);
        if (st < 0) {
            return DT_CONTEXT(DT_EDATA, "input %s", x->name);
        }
        DT_TRY(measure_input(c, i, &shape[i]));
    }
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        DT_TRY(check_derived_input(c, i, &shape[i]));
        DT_TRY(count_arena(c, i));
    }
    return DT_OK;
}

/* ---- what indices point into ------------------------------------------------------------------------------------- */

/* Operand k of an op points into rows: of which operand, -1 none; columns of that are not rows. Row pointers count too,
 * and have one more than there are rows. */
static int32_t find_indexed_operand(uint32_t op, uint32_t k, uint32_t *columns_p, bool *is_pointer_p)
{
    static const struct {
        uint32_t op, operand, into, columns;
        bool is_pointer;
    } known[] = {{DT_OPX_GATHER, 1, 0, 1, false},  {DT_OPX_SEGMENT_MEAN, 1, 0, 1, true},
                 {DT_OPX_GAT, 5, 6, 0, true},      {DT_OPX_GAT, 6, 0, 1, false},
                 {DT_OPX_GRAPH_QK, 4, 5, 0, true}, {DT_OPX_GRAPH_QK, 5, 1, 1, false}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].op == op && known[i].operand == k) {
            *columns_p = known[i].columns;
            *is_pointer_p = known[i].is_pointer;
            return (int32_t)known[i].into;
        }
    }
    return -1;
}

/* Are there at least as many rows as the symbol has, whatever its live size? */
static bool has_rows_for(const dt_policy_file *f, const dt_shape *s, uint32_t columns, int32_t symbol)
{
    int64_t fixed = 1;
    int n_ragged = 0;
    for (uint32_t i = 0; i + columns < s->rank; i++) {
        if (s->dim[i].symbol >= 0) {
            n_ragged += s->dim[i].symbol == symbol ? 1 : 2;
        } else {
            fixed *= s->dim[i].size; /* shapes of a graph fit (dt_shape_fits) */
        }
    }
    return n_ragged == 1 || (n_ragged == 0 && fixed >= f->most[symbol]);
}

static dt_status check_index_input(checker *c, int32_t node, uint32_t k, uint32_t input)
{
    const dt_node *n = &c->ir->node[node];
    const dt_bundle_input *x = &c->f->input[input];
    dt_policy_input *d = &c->out->input[input];
    uint32_t columns = 0;
    bool is_pointer = false;
    const int32_t into = find_indexed_operand(n->op, k, &columns, &is_pointer);
    if (into < 0 || x->index_of < 0) {
        return DT_FAIL(DT_EDATA, "node %d, %s: input %s is read as an index, but %s", node, dt_op_name(n->op), x->name,
                       into < 0 ? "its target is undefined" : "the file does not define what it counts");
    }
    const dt_shape *s = &c->ir->value[n->in[into]].shape;
    if (is_pointer != (d->plus != 0) || !has_rows_for(c->f, s, columns, x->index_of)) {
        dt_str text = {0};
        dt_shape_text(s, c->ir->symbol, &text);
        const dt_status st =
            DT_FAIL(DT_EDATA, "node %d, %s: input %s [%s] counts rows of %s, and points into [%s]", node,
                    dt_op_name(n->op), x->name, x->dims, c->f->symbol[x->index_of], dt_str_text(&text));
        dt_str_fini(&text);
        return st;
    }
    if (n->op == DT_OPX_GATHER) {
        return DT_OK; /* -1 is a row of zeros there */
    }
    d->least = 0;
    return x->index_of != c->out->A
               ? DT_OK
               : DT_FAIL(DT_EDATA, "node %d, %s: input %s points to places, some of which may be absent", node,
                         dt_op_name(n->op), x->name);
}

static dt_status check_indices(checker *c)
{
    const dt_ir *ir = c->ir;
    for (uint32_t i = 0; i < c->f->n_inputs; i++) {
        c->out->input[i].least = -1;
    }
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            const dt_value *v = n->in[k] >= 0 ? &ir->value[n->in[k]] : NULL;
            if (v != NULL && v->shape.dtype == DT_I32 && v->kind == DT_VALUE_FIELD) {
                DT_TRY(check_index_input(c, i, k, (uint32_t)v->index));
            }
        }
    }
    return DT_OK;
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

static const dt_shape *output_shape(const dt_ir *ir, const char *name)
{
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        if (strcmp(ir->output[i].name, name) == 0) {
            return &ir->value[ir->output[i].value].shape;
        }
    }
    return NULL;
}

static dt_status check_outputs(const checker *c)
{
    const uint32_t M = c->out->n_choices, C = c->f->n_continuous;
    const struct {
        const char *name;
        uint32_t items;
        bool is_needed;
    } want[] = {{"logits", M, c->f->n_heads > 0},
                {"mean", C, C > 0},
                {"log_std", C, C > 0},
                {"low", C, false},
                {"high", C, false},
                {"allow", M, false}};
    for (size_t o = 0; o < sizeof(want) / sizeof(want[0]); o++) {
        const dt_shape *s = output_shape(c->ir, want[o].name);
        if (s == NULL && !want[o].is_needed) {
            continue;
        }
        const bool is_row =
            s != NULL && s->rank == 2 && is_rows(&s->dim[0], c->out->A) && is_number(&s->dim[1], want[o].items);
        const bool is_shared =
            s != NULL && strcmp(want[o].name, "log_std") == 0 && s->rank == 1 && is_number(&s->dim[0], want[o].items);
        if (s == NULL || s->dtype != DT_F32 || (!is_row && !is_shared)) {
            return DT_FAIL(DT_EDATA, "output %s is %s; acting needs [A %u] f32", want[o].name,
                           s == NULL ? "missing" : "of another shape", want[o].items);
        }
    }
    return DT_OK;
}

/* No value may be larger than all memory that a policy may have; so no sum over a few of them wraps. */
static dt_status check_values(const checker *c)
{
    const dt_ir *ir = c->ir;
    int64_t cap[DT_GRAPH_MAX_SYMBOLS];
    for (uint32_t i = 0; i < ir->n_symbols; i++) {
        cap[i] = c->f->most[i] > 0 ? c->f->most[i] : 1;
    }
    for (int32_t v = 0; v < ir->n_values; v++) {
        const dt_shape *s = &ir->value[v].shape;
        int64_t count = 0;
        if (s->rank == 0 || !dt_shape_count(s, cap, &count) ||
            count > (int64_t)(DT_POLICY_MOST_BYTES / sizeof(double))) {
            dt_str text = {0};
            dt_shape_text(s, ir->symbol, &text);
            const dt_status st = DT_FAIL(DT_EUNSUPPORTED, "a value [%s] %s", dt_str_text(&text),
                                         s->rank == 0 ? "has no dimension" : "is too large with the most rows");
            dt_str_fini(&text);
            return st;
        }
    }
    return DT_OK;
}

dt_status dt_policy_check(const dt_policy_file *f, dt_policy_facts *out_p)
{
    dt_policy_facts x = {.A = -1};
    checker c = {.f = f, .ir = dt_graph_ir(f->graph), .out = &x};
    DT_TRY(check_names(f));
    DT_TRY(check_symbols(&c));
    DT_TRY(check_actions(&c));
    DT_TRY(check_inputs(&c));
    DT_TRY(check_values(&c));
    DT_TRY(check_indices(&c));
    DT_TRY(check_outputs(&c));
    *out_p = x;
    return DT_OK;
}
