/* SPDX-License-Identifier: Apache-2.0
 *
 * See formula.h. A recursive descent parser that writes a tree; every node's range is known when it is made.
 */
#include "formula.h"

#include <stdlib.h>

#define SIGNAL_COLUMN(ID, name, unit, low, high, meaning)   {name, unit, meaning, low, high},
#define SIGNAL_QUANTITY(ID, name, unit, low, high, meaning) {name, unit, meaning, low, high},
const formula_name signal_columns[N_SIGNAL_COLUMNS] = {
#include "columns.def"
};
const formula_name signal_quantities[N_SIGNAL_QUANTITIES] = {
#include "quantities.def"
};
#undef SIGNAL_COLUMN
#undef SIGNAL_QUANTITY

enum { MOST_NODES = 1024, MOST_DEPTH = 48, MESSAGE_BYTES = 3072, MOST_NAME = 48 };
#define MOST_NUMBER 1e9

enum { NUMBER, QUANTITY, COLUMN, ADD, SUBTRACT, TIMES, OVER, MIN, MAX, ABS, SUM_ALL, MEAN_ALL, MIN_ALL, MAX_ALL };

static const struct {
    const char *name;
    uint32_t what, least, most; /* arguments */
} functions[] = {{"min", MIN, 2, 16},          {"max", MAX, 2, 16},
                 {"abs", ABS, 1, 1},           {"clip", 0, 3, 3},
                 {"phase_sum", SUM_ALL, 1, 1}, {"phase_mean", MEAN_ALL, 1, 1},
                 {"phase_min", MIN_ALL, 1, 1}, {"phase_max", MAX_ALL, 1, 1}};
enum { N_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

typedef struct operand { /* a node, and what is known of it */
    uint16_t node;
    bool is_by_phase;
    double low, high;
} operand;

typedef struct parser {
    const dt_host *h;
    const char *key, *text, *at;
    formulas *f;
    uint32_t depth;
    bool is_list;
} parser;

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void append_format(char *text, size_t bytes, const char *format, ...) DT_PRINTF(3, 4);
static void append_format(char *text, size_t bytes, const char *format, ...)
{
    const size_t n = strlen(text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text + n, bytes - n, format, ap);
    va_end(ap);
}

static void list_names(char *text)
{
    append_format(text, MESSAGE_BYTES, ". Quantities of a signal:");
    for (uint32_t i = 0; i < N_SIGNAL_QUANTITIES; i++) {
        append_format(text, MESSAGE_BYTES, "%s %s [%s]", i > 0 ? "," : "", signal_quantities[i].name,
                      signal_quantities[i].unit);
    }
    append_format(text, MESSAGE_BYTES, ". Quantities of a phase:");
    for (uint32_t i = 0; i < N_SIGNAL_COLUMNS; i++) {
        append_format(text, MESSAGE_BYTES, "%s phase.%s [%s]", i > 0 ? "," : "", signal_columns[i].name,
                      signal_columns[i].unit);
    }
    append_format(text, MESSAGE_BYTES, ". Functions:");
    for (uint32_t i = 0; i < N_FUNCTIONS; i++) {
        append_format(text, MESSAGE_BYTES, "%s %s", i > 0 ? "," : "", functions[i].name);
    }
}

/* The name with the most first letters in common; NULL: none is close. */
static const char *nearest_name(const formula_name *all, uint32_t n, const char *text, size_t bytes)
{
    enum { CLOSE = 3 };
    const char *best = NULL;
    size_t most = CLOSE - 1;
    for (uint32_t i = 0; i < n; i++) {
        size_t same = 0;
        while (same < bytes && all[i].name[same] == text[same] && text[same] != '\0') {
            same++;
        }
        if (same > most) {
            most = same;
            best = all[i].name;
        }
    }
    return best;
}

/* with_names: followed by all that is allowed there */
static dt_status fail_formula(const parser *p, const char *at, bool with_names, const char *format, ...)
    DT_PRINTF(4, 5);
static dt_status fail_formula(const parser *p, const char *at, bool with_names, const char *format, ...)
{
    char text[MESSAGE_BYTES] = "";
    va_list ap;
    append_format(text, sizeof(text), "%s = \"%.200s%s\": character %zu: ", p->key, p->text,
                  strlen(p->text) > 200 ? "..." : "", (size_t)(at - p->text) + 1);
    const size_t n = strlen(text);
    va_start(ap, format);
    vsnprintf(text + n, sizeof(text) - n, format, ap);
    va_end(ap);
    if (with_names) {
        list_names(text);
    }
    return p->h->fail(p->h, DT_ECONFIG, __FILE__ ":" DT_STR(__LINE__), text);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* 0 times something unbounded is 0: the factor is 0 itself, not near it */
static double product(double a, double b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

static double quotient(double a, double b)
{
    return isinf(b) ? 0 : a / b;
}

static void result_range(uint32_t what, operand a, operand b, operand *out)
{
    double low = INFINITY, high = -INFINITY;
    const double x[2] = {a.low, a.high}, y[2] = {b.low, b.high};
    switch (what) {
    case ADD:
        low = a.low + b.low;
        high = a.high + b.high;
        break;
    case SUBTRACT:
        low = a.low - b.high;
        high = a.high - b.low;
        break;
    case MIN:
        low = fmin(a.low, b.low);
        high = fmin(a.high, b.high);
        break;
    case MAX:
        low = fmax(a.low, b.low);
        high = fmax(a.high, b.high);
        break;
    case ABS:
        low = a.low > 0 ? a.low : a.high < 0 ? -a.high : 0;
        high = fmax(fabs(a.low), fabs(a.high));
        break;
    case SUM_ALL: /* of one phase or more */
        low = a.low < 0 ? -INFINITY : a.low;
        high = a.high > 0 ? INFINITY : a.high;
        break;
    case TIMES:
    case OVER:
        for (int i = 0; i < 4; i++) {
            const double z = what == TIMES ? product(x[i / 2], y[i % 2]) : quotient(x[i / 2], y[i % 2]);
            low = fmin(low, z);
            high = fmax(high, z);
        }
        break;
    default:
        low = a.low;
        high = a.high;
    }
    out->low = low;
    out->high = high;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static dt_status make_node(parser *p, formula_node node, operand *out)
{
    formulas *f = p->f;
    if (f->n_nodes == MOST_NODES) {
        return fail_formula(p, p->at, false, "more than %d numbers, names and operations", MOST_NODES);
    }
    out->node = (uint16_t)f->n_nodes;
    f->node[f->n_nodes++] = node;
    return DT_OK;
}

static dt_status join_operands(parser *p, uint32_t what, const char *at, operand a, operand b, operand *out)
{
    if (what == OVER && b.low <= 0 && b.high >= 0) {
        return fail_formula(
            p, at, false,
            "the divisor may be 0 (its range is %g to %g); write max(..., 1) around it, or divide by a number", b.low,
            b.high);
    }
    const bool is_over_all = what == SUM_ALL || what == MEAN_ALL || what == MIN_ALL || what == MAX_ALL;
    DT_TRY_H(make_node(p, (formula_node){.what = (uint16_t)what, .a = a.node, .b = b.node}, out));
    result_range(what, a, b, out);
    if (!(out->low < INFINITY && out->high > -INFINITY)) {
        return fail_formula(p, at, false, "the value is too large for a number");
    }
    out->is_by_phase = !is_over_all && (a.is_by_phase || b.is_by_phase);
    return DT_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status read_sum(parser *p, operand *out);

static void skip_blanks(parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || is_digit(c);
}

static dt_status read_number(parser *p, operand *out)
{
    const char *from = p->at;
    p->at += strspn(p->at, "0123456789.");
    if (*p->at == 'e' || *p->at == 'E') {
        p->at++;
        p->at += *p->at == '+' || *p->at == '-';
        p->at += strspn(p->at, "0123456789");
    }
    char *end = NULL;
    const double x = strtod(from, &end);
    if (end != p->at || is_of_name(*p->at)) {
        return fail_formula(p, from, false, "\"%.*s\" is not a number",
                            (int)(p->at - from) + (is_of_name(*p->at) ? 1 : 0), from);
    }
    if (!(x <= MOST_NUMBER)) {
        return fail_formula(p, from, false, "the number %g is above %g", x, MOST_NUMBER);
    }
    *out = (operand){.low = x, .high = x};
    return make_node(p, (formula_node){.what = NUMBER, .number = x}, out);
}

static bool is_called(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

static dt_status read_arguments(parser *p, uint32_t k, const char *from, operand *out)
{
    operand arg[3] = {{0}};
    uint32_t n = 0;
    do {
        operand x;
        const char *at = ++p->at; /* after ( or , */
        DT_TRY_H(read_sum(p, &x));
        if (n++ == 0 || functions[k].what == 0) {
            arg[n <= 3 ? n - 1 : 2] = x;
        } else if (n <= functions[k].most) {
            const operand before = arg[0];
            DT_TRY_H(join_operands(p, functions[k].what, at, before, x, &arg[0]));
        }
        skip_blanks(p);
    } while (*p->at == ',');
    if (*p->at != ')') {
        return fail_formula(p, p->at, false, "expected , or ) after an argument of %s", functions[k].name);
    }
    p->at++;
    if (n < functions[k].least || n > functions[k].most) {
        return fail_formula(p, from, false, "%s takes %u%s argument%s, not %u", functions[k].name, functions[k].least,
                            functions[k].most > functions[k].least ? " or more" : "", functions[k].least > 1 ? "s" : "",
                            n);
    }
    if (functions[k].what == 0) { /* clip */
        if (arg[1].low > arg[2].high) {
            return fail_formula(p, from, false, "the lower bound of clip, %g, is above the upper one, %g", arg[1].low,
                                arg[2].high);
        }
        operand raised;
        DT_TRY_H(join_operands(p, MAX, from, arg[0], arg[1], &raised));
        return join_operands(p, MIN, from, raised, arg[2], out);
    }
    if (functions[k].most > 1) {
        *out = arg[0];
        return DT_OK;
    }
    if (functions[k].what >= SUM_ALL && !arg[0].is_by_phase) {
        return fail_formula(p, from, false, "%s expects a quantity of a phase, such as %s(phase.near)",
                            functions[k].name, functions[k].name);
    }
    return join_operands(p, functions[k].what, from, arg[0], arg[0], out);
}

static dt_status read_name(parser *p, operand *out)
{
    static const char by_phase[] = "phase.";
    const char *from = p->at;
    size_t n = 0;
    while (is_of_name(from[n])) {
        n++;
    }
    p->at += n;
    const char *end = p->at;
    skip_blanks(p);
    if (*p->at == '(') {
        for (uint32_t k = 0; k < N_FUNCTIONS; k++) {
            if (is_called(functions[k].name, from, n)) {
                return read_arguments(p, k, from, out);
            }
        }
        return fail_formula(p, from, true, "\"%.*s\" is not a function", (int)(n < MOST_NAME ? n : MOST_NAME), from);
    }
    p->at = end;
    const size_t prefix = sizeof(by_phase) - 1;
    const bool is_column = n > prefix && memcmp(from, by_phase, prefix) == 0;
    const formula_name *all = is_column ? signal_columns : signal_quantities;
    const uint32_t n_all = is_column ? N_SIGNAL_COLUMNS : N_SIGNAL_QUANTITIES;
    for (uint32_t i = 0; i < n_all; i++) {
        if (is_called(all[i].name, from + (is_column ? prefix : 0), n - (is_column ? prefix : 0))) {
            *out = (operand){.low = all[i].low, .high = all[i].high, .is_by_phase = is_column};
            return make_node(p, (formula_node){.what = is_column ? COLUMN : QUANTITY, .index = (uint16_t)i}, out);
        }
    }
    const char *close = nearest_name(all, n_all, from + (is_column ? prefix : 0), n - (is_column ? prefix : 0));
    return fail_formula(p, from, true, "\"%.*s\" is not a quantity%s%s%s", (int)(n < MOST_NAME ? n : MOST_NAME), from,
                        close != NULL ? "; did you mean " : "", close != NULL && is_column ? by_phase : "",
                        close != NULL ? close : "");
}

static dt_status read_primary(parser *p, operand *out)
{
    if (is_digit(*p->at) || *p->at == '.') {
        return read_number(p, out);
    }
    if (is_of_name(*p->at)) {
        return read_name(p, out);
    }
    if (*p->at != '(') {
        return *p->at == '\0'
                   ? fail_formula(p, p->at, false, "the formula ends where a number or a quantity is expected")
                   : fail_formula(p, p->at, false, "expected a number, a quantity or (");
    }
    const char *from = p->at++;
    DT_TRY_H(read_sum(p, out));
    skip_blanks(p);
    if (*p->at != ')') {
        return fail_formula(p, from, false, "this ( has no )");
    }
    p->at++;
    return DT_OK;
}

static dt_status read_factor(parser *p, operand *out)
{
    skip_blanks(p);
    if (++p->depth > MOST_DEPTH) {
        return fail_formula(p, p->at, false, "more than %d parentheses and signs within each other", MOST_DEPTH);
    }
    if (*p->at == '-' || *p->at == '+') {
        const char *from = p->at++;
        operand x, zero = {0};
        DT_TRY_H(read_factor(p, &x));
        if (*from == '-') {
            DT_TRY_H(make_node(p, (formula_node){.what = NUMBER}, &zero));
            DT_TRY_H(join_operands(p, SUBTRACT, from, zero, x, out));
        } else {
            *out = x;
        }
    } else {
        DT_TRY_H(read_primary(p, out));
    }
    p->depth--;
    return DT_OK;
}

static dt_status read_product(parser *p, operand *out)
{
    DT_TRY_H(read_factor(p, out));
    for (skip_blanks(p); *p->at == '*' || *p->at == '/'; skip_blanks(p)) {
        const char *at = p->at++;
        operand right;
        const operand left = *out;
        DT_TRY_H(read_factor(p, &right));
        DT_TRY_H(join_operands(p, *at == '*' ? TIMES : OVER, at, left, right, out));
    }
    return DT_OK;
}

static dt_status read_sum(parser *p, operand *out)
{
    DT_TRY_H(read_product(p, out));
    for (skip_blanks(p); *p->at == '+' || *p->at == '-'; skip_blanks(p)) {
        const char *at = p->at++;
        operand right;
        const operand left = *out;
        DT_TRY_H(read_product(p, &right));
        DT_TRY_H(join_operands(p, *at == '+' ? ADD : SUBTRACT, at, left, right, out));
    }
    return DT_OK;
}

static dt_status read_item(parser *p)
{
    formulas *f = p->f;
    operand x;
    skip_blanks(p);
    const char *from = p->at;
    if (f->n == FORMULA_MOST_ITEMS) {
        return fail_formula(p, from, false, "more than %d items", FORMULA_MOST_ITEMS);
    }
    DT_TRY_H(read_sum(p, &x));
    if (x.is_by_phase && !p->is_list) {
        return fail_formula(p, from, false,
                            "the formula has a value per phase, and one per signal is expected; write phase_sum(), "
                            "phase_mean(), phase_min() or phase_max() around quantities of a phase");
    }
    const char *end = p->at;
    while (end > from && strchr(" \t\r\n", end[-1]) != NULL) {
        end--;
    }
    skip_blanks(p);
    if (*p->at != '\0' && (*p->at != ',' || !p->is_list)) {
        return fail_formula(p, p->at, false, "expected %s the end of the formula",
                            p->is_list ? "an operator, a comma or" : "an operator or");
    }
    const formula_node *root = &f->node[x.node];
    f->text[end - p->text] = '\0';
    f->item[f->n++] = (formula_item){.text = f->text + (from - p->text),
                                     .root = x.node,
                                     .is_by_phase = x.is_by_phase,
                                     .quantity = root->what == QUANTITY || root->what == COLUMN ? root->index : -1};
    f->n_by_phase += x.is_by_phase;
    return DT_OK;
}

static dt_status read_all(parser *p)
{
    DT_TRY_H(read_item(p));
    while (*p->at == ',') {
        p->at++;
        DT_TRY_H(read_item(p));
    }
    return DT_OK;
}

dt_status formulas_init(formulas *f, const dt_host *h, const char *key, const char *text, bool is_list)
{
    *f = (formulas){.h = h};
    const size_t bytes = strlen(text);
    if (text[strspn(text, " \t\r\n")] == '\0') {
        return DT_OK;
    }
    if (bytes > FORMULA_MOST_BYTES) {
        return DT_FAIL_H(h, DT_ECONFIG, "%s has %zu characters, at most %d are possible", key, bytes,
                         FORMULA_MOST_BYTES);
    }
    f->text = h->alloc(h, bytes + 1);
    f->node = h->alloc(h, MOST_NODES * sizeof(*f->node));
    dt_status st = DT_OK;
    if (f->text == NULL || f->node == NULL) {
        st = DT_FAIL_H(h, DT_ENOMEM, "no memory for %s", key);
    } else {
        parser p = {.h = h, .key = key, .text = text, .at = text, .f = f, .is_list = is_list};
        memcpy(f->text, text, bytes + 1);
        st = read_all(&p);
    }
    if (st != DT_OK) {
        formulas_fini(f);
    }
    return st;
}

void formulas_fini(formulas *f)
{
    if (f->h != NULL) {
        f->h->release(f->h, f->text);
        f->h->release(f->h, f->node);
    }
    *f = (formulas){.h = NULL};
}

dt_status formulas_read(const dt_host *h, const char *environment, const char *reward_text, const char *observation,
                        formulas *reward, formulas *row)
{
    char key[64];
    if (reward_text != NULL) {
        snprintf(key, sizeof(key), "%s.reward", environment);
        DT_TRY_H(formulas_init(reward, h, key, reward_text, false));
        if (reward->n == 0) {
            return DT_FAIL_H(h, DT_ECONFIG, "%s is empty; expected delay, queue, pressure or a formula", key);
        }
    }
    snprintf(key, sizeof(key), "%s.observation", environment);
    return formulas_init(row, h, key, observation, true);
}

dt_status formulas_check(const dt_host *h, const char *environment, const char *reward_text, const char *observation,
                         bool signals_learn)
{
    formulas reward = {.h = NULL}, row = {.h = NULL};
    dt_status st = formulas_read(h, environment, reward_text, observation, &reward, &row);
    if (st == DT_OK && !signals_learn && reward.n + row.n > 0) {
        st = DT_FAIL_H(h, DT_ECONFIG, "%s.%s is for signals that learn, not for control = \"vehicles\"", environment,
                       reward.n > 0 ? "reward" : "observation");
    }
    formulas_fini(&reward);
    formulas_fini(&row);
    return st;
}

/* ---- evaluating -------------------------------------------------------------------------------------------------- */

static double evaluate_node(const formulas *f, uint32_t k, const formula_values *v, uint32_t phase)
{
    const formula_node *n = &f->node[k];
    double sum = 0, least = INFINITY, most = -INFINITY;
    switch (n->what) {
    case NUMBER:
        return n->number;
    case QUANTITY:
        return v->signal[n->index];
    case COLUMN:
        return (double)v->phases[(size_t)phase * N_SIGNAL_COLUMNS + n->index];
    case ADD:
        return evaluate_node(f, n->a, v, phase) + evaluate_node(f, n->b, v, phase);
    case SUBTRACT:
        return evaluate_node(f, n->a, v, phase) - evaluate_node(f, n->b, v, phase);
    case TIMES:
        return evaluate_node(f, n->a, v, phase) * evaluate_node(f, n->b, v, phase);
    case OVER:
        return evaluate_node(f, n->a, v, phase) / evaluate_node(f, n->b, v, phase);
    case MIN:
        return fmin(evaluate_node(f, n->a, v, phase), evaluate_node(f, n->b, v, phase));
    case MAX:
        return fmax(evaluate_node(f, n->a, v, phase), evaluate_node(f, n->b, v, phase));
    case ABS:
        return fabs(evaluate_node(f, n->a, v, phase));
    default:
        for (uint32_t p = 0; p < v->n_phases; p++) {
            const double x = evaluate_node(f, n->a, v, p);
            sum += x;
            least = fmin(least, x);
            most = fmax(most, x);
        }
        return n->what == SUM_ALL ? sum : n->what == MEAN_ALL ? sum / v->n_phases : n->what == MIN_ALL ? least : most;
    }
}

double formula_value(const formulas *f, uint32_t i, const formula_values *v, uint32_t phase)
{
    return evaluate_node(f, f->item[i].root, v, phase);
}

uint32_t formulas_width(const formulas *f, uint32_t P)
{
    return f->n - f->n_by_phase + f->n_by_phase * P;
}

bool formulas_row(const formulas *f, const formula_values *v, uint32_t P, float *out, uint32_t *bad_p)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const uint32_t n = f->item[i].is_by_phase ? v->n_phases : 1;
        for (uint32_t p = 0; p < n; p++) {
            out[p] = (float)formula_value(f, i, v, p);
            if (!isfinite(out[p])) {
                *bad_p = i;
                return false;
            }
        }
        out += f->item[i].is_by_phase ? P : 1;
    }
    return true;
}

/* ---- what columns hold ------------------------------------------------------------------------------------------- */

dt_column signal_column(const char *port, const formula_name *what, uint32_t first, uint32_t n, uint32_t stride)
{
    return (dt_column){.port = port,
                       .name = what->name,
                       .unit = what->unit,
                       .meaning = what->meaning,
                       .low = what->low,
                       .high = what->high,
                       .first = first,
                       .n = n,
                       .stride = stride};
}

#define PORT_COLUMN(port, name, unit, low, high, meaning, first, n)                                                    \
    {port, name, unit, meaning, low, high, first, (n) > 0 ? (n) : 1, 1, 0},
#define SIGNAL_COLUMN(ID, name, unit, low, high, meaning)                                                              \
    {"phases", name, unit, meaning, low, high, SIGNAL_COLUMN_##ID, 1, 1, 0},
const dt_column signal_columns_all[N_PORT_COLUMNS + N_SIGNAL_COLUMNS + 1] = {
#include "ports.def"
#include "columns.def"
    {.port = NULL}};
#undef SIGNAL_COLUMN
#undef PORT_COLUMN

uint32_t signal_describe_phases(dt_column *out)
{
    memcpy(out, signal_columns_all + N_PORT_COLUMNS, N_SIGNAL_COLUMNS * sizeof(*out));
    return N_SIGNAL_COLUMNS;
}

uint32_t formulas_describe(const formulas *f, const char *port, uint32_t P, dt_column *out)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const formula_item *x = &f->item[i];
        const uint32_t n = x->is_by_phase ? P : 1;
        const formula_name own = {x->text, "", x->is_by_phase ? "a formula, for each phase" : "a formula", -INFINITY,
                                  INFINITY};
        const formula_name *all = x->is_by_phase ? signal_columns : signal_quantities;
        out[i] = signal_column(port, x->quantity >= 0 ? &all[x->quantity] : &own, first, n, 1);
        out[i].name = x->text;
        first += n;
    }
    return f->n;
}

/* The last number of dims; 1 of a list. */
static uint32_t row_width(const char *dims)
{
    const char *last = strrchr(dims, ' ');
    const unsigned long width = last != NULL ? strtoul(last + 1, NULL, 10) : 0;
    return width > 0 ? (uint32_t)width : 1;
}

uint32_t signal_describe_ports(const dt_port *port, uint32_t n_ports, dt_column *out)
{
#define PORT_COLUMN(port, name, unit, low, high, meaning, first, n) (n) == 0,
    static const bool is_whole[N_PORT_COLUMNS] = {
#include "ports.def"
    };
#undef PORT_COLUMN
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ports; i++) {
        for (uint32_t k = 0; k < N_PORT_COLUMNS; k++) {
            if (strcmp(signal_columns_all[k].port, port[i].name) == 0) {
                out[n] = signal_columns_all[k];
                out[n].n = is_whole[k] ? row_width(port[i].dims) : out[n].n;
                n++;
            }
        }
    }
    return n;
}
