/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample of stored rollouts, held against the environment and against itself; see stored.h. What a checkpoint's
 * records have to fulfil as well (finite numbers, indices that point at rows) is dt_replay_check_record.
 */
#include <config.h>

#include "rl/offline/stored.h"

#include "base/err.h"
#include "rl/buffer/buffer_internal.h"

#include <string.h>

/* Probabilities that others write may be rounded; ours are at most 1. */
#define MOST_LOG_PROB 1e-4F

enum { N_KINDS = FIELD_KEPT + 1 };

typedef struct fields {
    const dt_replay *p;
    uint64_t number;
    int32_t size[DT_REPLAY_MAX_SIZES];
    size_t at[DT_BUFFER_MAX_FIELDS];
    const void *of[N_KINDS]; /* by kind; NULL: the environment has none of it */
} fields;

static const float *floats_of_kind(const fields *x, uint32_t kind)
{
    return x->of[kind];
}

static const int32_t *integers_of_kind(const fields *x, uint32_t kind)
{
    return x->of[kind];
}

static void find_record_fields(const dt_replay *p, const char *record, fields *x)
{
    memcpy(x->size, record, p->n_sizes * sizeof(*x->size));
    (void)dt_replay_record_bytes(p, x->size, x->at);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (!dt_replay_is_made(p->field[i].kind)) {
            x->of[p->r->all->field[p->field[i].of].kind] = record + x->at[i];
        }
    }
}

/* "FILE, sample 3, row 1: terminated is ..." */
#define WRONG(x, row, ...) add_place_context(x, row, DT_FAIL(DT_EDATA, __VA_ARGS__))

static dt_status add_place_context(const fields *x, size_t row, dt_status st)
{
    return DT_CONTEXT(st, "%s, sample %llu, row %zu", x->p->origin, (unsigned long long)x->number, row);
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static bool is_flag_kind(uint32_t kind)
{
    return kind == FIELD_TERMINATED || kind == FIELD_TRUNCATED || kind == FIELD_NEXT_PRESENT || kind == FIELD_MASK ||
           kind == FIELD_NEXT_MASK;
}

static dt_status check_flags(const fields *x)
{
    const dt_replay *p = x->p;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const uint32_t kind = p->r->all->field[p->field[i].of].kind;
        const size_t columns = p->field[i].row_bytes / sizeof(float);
        const size_t n = is_flag_kind(kind) ? columns * (size_t)x->size[0] : 0;
        for (size_t k = 0; k < n; k++) {
            const float v = floats_of_kind(x, kind)[k];
            if (v != 0 && v != 1) {
                return WRONG(x, k / columns, "%s is %g, neither 0 nor 1", p->port[i].name, (double)v);
            }
        }
    }
    return DT_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* A step ends an agent in one way or continues to the next one, and the last step of a round has none after it. */
static dt_status check_end_flags(const fields *x, size_t row, bool is_last)
{
    const float *present = floats_of_kind(x, FIELD_NEXT_PRESENT);
    const bool terminated = floats_of_kind(x, FIELD_TERMINATED)[row] != 0,
               truncated = floats_of_kind(x, FIELD_TRUNCATED)[row] != 0;
    if (terminated && truncated) {
        return WRONG(x, row, "terminated and truncated are both 1; a step ends an agent in one way at most");
    }
    if (present != NULL && present[row] != 0 && terminated) {
        return WRONG(x, row, "next_present is 1 and terminated is 1; after a termination there is no agent");
    }
    if (present != NULL && present[row] == 0 && !terminated && !truncated) {
        return WRONG(x, row,
                     "next_present is 0, and terminated and truncated are 0; an agent that no step ended is present");
    }
    if (is_last && !terminated && !truncated) {
        return WRONG(x, row,
                     "terminated and truncated are 0 in the last step of the round; expected one of them to be 1");
    }
    return DT_OK;
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

/* Every head's choices allow one; that of the step after, too. */
static dt_status check_choices(const fields *x, size_t row)
{
    const dt_layout *l = x->p->r->all->l;
    const float *mask = floats_of_kind(x, FIELD_MASK) + row * l->n_choices, *next = floats_of_kind(x, FIELD_NEXT_MASK);
    next = next != NULL ? next + row * l->n_choices : NULL;
    for (uint32_t h = 0; h < l->spec.n_heads; h++) {
        const int32_t n = l->spec.choices[h], drawn = integers_of_kind(x, FIELD_ACTION_I)[row * l->spec.n_heads + h];
        float allowed = 0;
        if (mask[drawn] != 1) {
            return WRONG(x, row, "action_i is a choice that mask forbids: %d of head %u", drawn, h);
        }
        for (int32_t c = 0; c < n && next != NULL; c++) {
            allowed += next[c];
        }
        if (next != NULL && allowed == 0) {
            return WRONG(x, row, "next_mask forbids all %d choices of head %u; expected it to allow one", n, h);
        }
        mask += n;
        next = next != NULL ? next + n : NULL;
    }
    return DT_OK;
}

/* A choice has a probability; of what is continuous it is a density, which may be above 1. */
static dt_status check_log_prob(const fields *x, size_t row)
{
    const float *log_prob = floats_of_kind(x, FIELD_LOG_PROB);
    if (log_prob != NULL && x->p->r->all->l->spec.n_continuous == 0 && log_prob[row] > MOST_LOG_PROB) {
        return WRONG(x, row, "log_prob is %g; the logarithm of a choice's probability is at most 0",
                     (double)log_prob[row]);
    }
    return DT_OK;
}

static dt_status check_executed_action(const fields *x, size_t row)
{
    const dt_env_spec *e = &x->p->r->all->l->spec;
    for (uint32_t i = 0; i < e->n_continuous; i++) {
        const float a = floats_of_kind(x, FIELD_EXECUTED)[row * e->n_continuous + i];
        if (a < e->low[i] || a > e->high[i]) {
            return WRONG(x, row, "executed is outside the bounds of the environment's actions: %g of [%g, %g]",
                         (double)a, (double)e->low[i], (double)e->high[i]);
        }
    }
    return DT_OK;
}

static dt_status check_place_row(const fields *x, size_t row)
{
    const int32_t *place = integers_of_kind(x, FIELD_PLACE);
    return row == 0 || place[row] > place[row - 1]
               ? DT_OK
               : WRONG(x, row, "place does not rise from row to row: %d after %d", place[row], place[row - 1]);
}

dt_status dt_stored_check_sample(const dt_replay *p, uint64_t number, const char *record, bool is_last)
{
    fields x = {.p = p, .number = number};
    DT_TRY(dt_replay_check_record(p, number, record));
    find_record_fields(p, record, &x);
    DT_TRY(check_flags(&x));
    for (size_t row = 0; row < (size_t)x.size[0]; row++) {
        DT_TRY(check_end_flags(&x, row, is_last));
        DT_TRY(check_choices(&x, row));
        DT_TRY(check_log_prob(&x, row));
        DT_TRY(check_executed_action(&x, row));
        DT_TRY(check_place_row(&x, row));
    }
    return DT_OK;
}
