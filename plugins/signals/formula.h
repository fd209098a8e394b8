/* SPDX-License-Identifier: Apache-2.0
 *
 * Formulas of the user over quantities of a traffic signal: a reward, or a list of observations. Text such as
 *
 *   diff_waiting_s - 0.1*queue + 0.25*pressure
 *   min(waiting_s, 500)/500, phase.near, phase_max(phase.red_s)
 *
 * is read once, checked, and evaluated without allocation. There are numbers, + - * / and parentheses; min, max (two
 * or more arguments), abs, clip(x, low, high); names of quantities.def; names of columns.def as phase.NAME, which have
 * a value per phase; phase_sum, phase_mean, phase_min, phase_max of such a value, over the phases of the signal.
 * Ranges of all quantities are known, so that a division by what may be 0 is rejected when the text is read.
 *
 * Compiled into each environment with signals. Threads: one at a time.
 */
#ifndef DTRAIN_PLUGINS_SIGNALS_FORMULA_H
#define DTRAIN_PLUGINS_SIGNALS_FORMULA_H

#include "dtrain/helpers.h"

#include <math.h>
#include <stdbool.h>

#define SIGNAL_COLUMN(ID, name, unit, low, high, meaning)   SIGNAL_COLUMN_##ID,
#define SIGNAL_QUANTITY(ID, name, unit, low, high, meaning) SIGNAL_##ID,
enum {
#include "columns.def"
    N_SIGNAL_COLUMNS
};
enum {
#include "quantities.def"
    N_SIGNAL_QUANTITIES
};
#undef SIGNAL_COLUMN
#undef SIGNAL_QUANTITY

typedef struct formula_name {
    const char *name, *unit, *meaning;
    double low, high;
} formula_name;

extern const formula_name signal_columns[N_SIGNAL_COLUMNS], signal_quantities[N_SIGNAL_QUANTITIES];

enum { FORMULA_MOST_ITEMS = 64, FORMULA_MOST_BYTES = 2000 };

typedef struct formula_node {
    uint16_t what, a, b, index; /* formula.c */
    double number;
} formula_node;

typedef struct formula_item {
    const char *text; /* without blanks around it */
    uint32_t root;
    bool is_by_phase; /* it has a value per phase */
    int32_t quantity; /* it is this quantity or column and nothing else, -1: more than that */
} formula_item;

typedef struct formulas { /* n 0: no text was given */
    const dt_host *h;
    char *text;
    formula_node *node;
    formula_item item[FORMULA_MOST_ITEMS];
    uint32_t n, n_nodes, n_by_phase;
} formulas;

typedef struct formula_values {
    double signal[N_SIGNAL_QUANTITIES];
    const float *phases; /* [n_phases, N_SIGNAL_COLUMNS] */
    uint32_t n_phases;
} formula_values;

/* key: of the option, for messages. is_list: several, by commas, also
 * with a value per phase; else one, with one value. Empty text is no formula. Errors: DT_ECONFIG (what, at which
 * character, and what is possible), DT_ENOMEM; *f is then empty. */
dt_status formulas_init(formulas *f, const dt_host *h, const char *key, const char *text, bool is_list);
void formulas_fini(formulas *f);
/* The options `reward` and `observation` of an environment, whose name starts the key in messages. reward_text: NULL
 * where a built-in reward was chosen; an empty one is rejected. Errors: as formulas_init; pass both to formulas_fini.
 * formulas_check does the same without keeping them; if signals do not learn, a formula is DT_ECONFIG. */
dt_status formulas_read(const dt_host *h, const char *environment, const char *reward_text, const char *observation,
                        formulas *reward, formulas *row);
dt_status formulas_check(const dt_host *h, const char *environment, const char *reward_text, const char *observation,
                         bool signals_learn);
/* Item i; of a phase where it is by phase. Finite for quantities within their ranges unless products overflow. */
double formula_value(const formulas *f, uint32_t i, const formula_values *v, uint32_t phase);
/* Numbers of a row of all items: one each, P of those by phase. */
uint32_t formulas_width(const formulas *f, uint32_t P);
/* out [formulas_width], zeros where the signal has fewer phases than P. false: an item is not finite, *bad_p names it.
 */
bool formulas_row(const formulas *f, const formula_values *v, uint32_t P, float *out, uint32_t *bad_p);

/* Extension dtrain.columns/1: ports.def, then columns.def */
#define PORT_COLUMN(port, name, unit, low, high, meaning, first, n) +1
enum {
    N_PORT_COLUMNS = 0
#include "ports.def"
};
#undef PORT_COLUMN
extern const dt_column signal_columns_all[N_PORT_COLUMNS + N_SIGNAL_COLUMNS + 1];

/* What columns hold (dt_column), for people: one, and into out, which return how many. Of the observation phases
 * [A P N_SIGNAL_COLUMNS]; of the row of all items, in a port; of those of the ports that ports.def has. */
dt_column signal_column(const char *port, const formula_name *what, uint32_t first, uint32_t n, uint32_t stride);
uint32_t signal_describe_phases(dt_column *out);
uint32_t formulas_describe(const formulas *f, const char *port, uint32_t P, dt_column *out);
uint32_t signal_describe_ports(const dt_port *port, uint32_t n_ports, dt_column *out);

#endif
