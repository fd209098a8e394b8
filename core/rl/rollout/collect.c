/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/collect.h"

#include "base/activity.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"

#include <math.h>
#include <string.h>

typedef struct draw { /* of one step */
    dt_collector *c;
    dt_dist dist;
    dt_rng_stream stream;
    uint64_t sample; /* of the instance being drawn for */
    uint32_t t;
} draw;

static uint32_t number_of_instance(const dt_collector *c, uint32_t i)
{
    return dt_vector_instance(c->vector, i)->number - c->buffer->d.first;
}

static const float *row_of_output(const float *p, size_t row, size_t items)
{
    return p != NULL ? p + row * items : NULL;
}

/* Draws for one agent and puts down what it does, for the data and for the environment. */
static dt_status draw_action(const draw *d, const dt_actor *p, dt_instance *x, size_t at, uint32_t a, size_t row)
{
    const dt_collector *c = d->c;
    dt_buffer *b = c->buffer;
    const dt_env_spec *s = &b->l->spec;
    const uint32_t H = s->n_heads, C = s->n_continuous, M = b->l->n_choices;
    const dt_dist_row r = {.logits = row_of_output(p->logits, row, M),
                           .allow = row_of_output(p->allow, row, M),
                           .mean = row_of_output(p->mean, row, C),
                           .log_std = row_of_output(p->log_std, row, p->log_std_row),
                           .low = row_of_output(p->low, row, C),
                           .high = row_of_output(p->high, row, C),
                           .mask = b->mask + at * M,
                           .drawn_i = b->act_i + at * H,
                           .drawn_f = b->act_f + at * C,
                           .executed_f = b->executed_f + at * C};
    const dt_dist_result out = dt_dist_draw_action(&d->dist, &d->stream, d->sample * s->n_agents + a, c->greedy, &r);
    if (isnan(out.log_prob)) {
        return DT_FAIL(DT_EDIVERGED,
                       "the policy's outputs for agent %u of instance %u are not finite; lower training.learning_rate "
                       "or training.gradient_clip",
                       a, x->number);
    }
    b->log_prob[at] = out.log_prob;
    b->report[at] =
        (uint8_t)((out.is_changed ? DT_REPORT_CHANGED : 0) | (out.is_infeasible ? DT_REPORT_INFEASIBLE : 0));
    memcpy(x->record + b->l->act_i + (size_t)a * H * sizeof(int32_t), r.drawn_i, H * sizeof(int32_t));
    memcpy(x->record + b->l->act_f + (size_t)a * C * sizeof(float), r.executed_f, C * sizeof(float));
    return DT_OK;
}

/* What this row leaves for the next step of its agent. */
static void carry_to_next_step(dt_buffer *b, const dt_actor *p, size_t at, size_t row)
{
    const dt_env_spec *s = &b->l->spec;
    const size_t next = at + (size_t)b->d.instances * s->n_agents;
    for (uint32_t k = 0; k < b->d.n_carried; k++) {
        const size_t columns = b->carried_columns[k];
        memcpy(b->carried[k] + next * columns, p->carried[k] + row * columns, columns * sizeof(float));
    }
    dt_buffer_carry_action(b, at, b->act_i + at * s->n_heads, b->executed_f + at * s->n_continuous);
}

/* Random numbers of an instance's actions. */
static void set_random_stream(draw *d, const dt_instance *x, size_t slot)
{
    const dt_buffer *b = d->c->buffer;
    d->sample = x->number;
    if (d->c->key_of != NULL && b->n_acts[slot] + b->n_opponents[slot] > 0) {
        dt_rng_key key = d->c->key;
        d->c->key_of(d->c->user, x, &key);
        d->sample = key.sample;
        dt_rng_stream_init(&d->stream, &key);
    }
}

/* Values of the rows of one instance, and actions where it continues. row_p: rows used so far. */
static dt_status draw_rows(draw *d, uint32_t i, bool acts, size_t *row_p)
{
    const dt_actor *p = d->c->actor;
    dt_buffer *b = d->c->buffer;
    const dt_env_spec *s = &b->l->spec;
    dt_instance *x = dt_vector_instance(d->c->vector, i);
    const size_t slot = dt_buffer_slot(b, d->t, number_of_instance(d->c, i));
    memset(x->record + b->l->act_i, 0, b->l->record_bytes - b->l->act_i); /* places without an agent */
    set_random_stream(d, x, slot);
    for (uint32_t a = 0; a < s->n_agents; a++) {
        const size_t at = slot * s->n_agents + a;
        if ((b->row[at] & DT_ROW_SEEN) == 0) {
            continue;
        }
        const size_t row = (*row_p)++;
        b->value[at] = p->value != NULL ? p->value[row] : 0;
        for (uint32_t k = 0; k < s->n_costs; k++) {
            b->cost_value[k * b->n_places + at] = p->cost_value != NULL ? p->cost_value[row * s->n_costs + k] : 0;
        }
        for (uint32_t k = 0; k < b->d.n_kept && b->kept[k] != NULL; k++) {
            const size_t columns = b->kept_columns[k];
            memcpy(b->kept[k] + at * columns, p->kept[k] + row * columns, columns * sizeof(float));
        }
        if (acts && (b->row[at] & DT_ROW_ACTS) != 0) {
            DT_TRY(draw_action(d, p, x, at, a, row));
            carry_to_next_step(b, p, at, row);
        }
    }
    return DT_OK;
}

static uint64_t sample_index(const dt_collector *c, uint32_t t, uint32_t i)
{
    return (uint64_t)t * c->buffer->d.instances + number_of_instance(c, i);
}

/* Rows of instances [begin, end) at step t; sizes to size. */
static void select_rows(const dt_collector *c, uint32_t t, uint32_t begin, uint32_t end, int64_t *size)
{
    const dt_buffer *b = c->buffer;
    for (uint32_t i = begin; i < end; i++) {
        c->index[i - begin] = sample_index(c, t, i);
    }
    dt_buffer_get_sizes(b, DT_ROW_SEEN, c->index, end - begin, size);
    size[1 + b->l->spec.n_symbols] = end - begin;
}

static dt_status run_policy(const dt_collector *c, const dt_turn *x)
{
    dt_actor *p = c->actor;
    int64_t size[2 + DT_ENV_MAX_SYMBOLS] = {0};
    select_rows(c, x->t, x->begin, x->end, size);
    if (size[0] == 0) {
        return DT_OK;
    }
    dt_buffer_pack_samples(c->buffer, DT_ROW_SEEN, c->index, NULL, x->end - x->begin, p->want, p->field);
    return dt_actor_run_policy(p, size);
}

static dt_status request_policy(const dt_collector *c, dt_turn *x)
{
    dt_actor *p = c->actor;
    const uint32_t n = (x->end - x->begin + p->unit - 1) / p->unit;
    int64_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t size[2 + DT_ENV_MAX_SYMBOLS] = {0};
        const uint32_t begin = x->begin + i * p->unit, end = x->end - begin < p->unit ? x->end : begin + p->unit;
        select_rows(c, x->t, begin, end, size);
        rows += size[0];
        dt_buffer_pack_samples(c->buffer, DT_ROW_SEEN, c->index, NULL, end - begin, p->want,
                               dt_actor_piece_fields(p, x->place, i, n));
        DT_TRY(dt_actor_submit_piece(p, x->place, i, n, size));
    }
    x->is_asked = rows > 0;
    return x->is_asked ? dt_actor_start_policy(p, x->place, n) : DT_OK;
}

/* ---- opponents --------------------------------------------------------------------------------------------------- */

/* Rows of samples index [n], piece by piece, where a piece is all that an actor takes at once. */
static dt_status run_opponents(const dt_collector *c, const uint64_t *index, uint32_t n)
{
    const dt_buffer *b = c->buffer;
    dt_actor *p = c->opponents->actor;
    const uint32_t unit = p->places > 0 ? p->unit : n, pieces = (n + unit - 1) / unit;
    for (uint32_t i = 0; i < pieces; i++) {
        int64_t size[2 + DT_ENV_MAX_SYMBOLS] = {0};
        const uint32_t first = i * unit, some = n - first < unit ? n - first : unit;
        void *const *field = p->places > 0 ? dt_actor_piece_fields(p, 0, i, pieces) : p->field;
        dt_buffer_get_sizes(b, DT_ROW_OPPONENT, index + first, some, size);
        size[1 + b->l->spec.n_symbols] = some;
        dt_buffer_pack_samples(b, DT_ROW_OPPONENT, index + first, NULL, some, p->want, field);
        if (p->places == 0) {
            return dt_actor_run_policy(p, size);
        }
        DT_TRY(dt_actor_submit_piece(p, 0, i, pieces, size));
    }
    DT_TRY(dt_actor_start_policy(p, 0, pieces));
    return dt_actor_wait_for_policy(p, 0);
}

static dt_status draw_opponents(draw *d, uint32_t i, size_t *row_p)
{
    const dt_collector *c = d->c;
    const dt_buffer *b = c->buffer;
    dt_instance *x = dt_vector_instance(c->vector, i);
    const size_t slot = dt_buffer_slot(b, d->t, number_of_instance(c, i)), A = b->l->spec.n_agents;
    set_random_stream(d, x, slot);
    for (uint32_t a = 0; a < A; a++) {
        if ((b->row[slot * A + a] & DT_ROW_OPPONENT) != 0) {
            DT_TRY(draw_action(d, c->opponents->actor, x, slot * A + a, a, (*row_p)++));
        }
    }
    return DT_OK;
}

/* Instances of a turn in which this policy plays. */
static bool is_played_by(const dt_collector *c, const dt_turn *x, uint32_t policy, uint32_t i)
{
    return c->buffer->n_opponents[dt_buffer_slot(c->buffer, x->t, number_of_instance(c, i))] > 0 &&
           dt_vector_instance(c->vector, i)->opponent == policy;
}

static dt_status act_by_policy(draw *d, const dt_turn *x, uint32_t policy)
{
    const dt_collector *c = d->c;
    uint32_t n = 0;
    size_t row = 0;
    for (uint32_t i = x->begin; i < x->end; i++) {
        if (is_played_by(c, x, policy, i)) {
            c->index[n++] = sample_index(c, x->t, i);
        }
    }
    if (n == 0) {
        return DT_OK;
    }
    DT_TRY(c->opponents->choose(c->opponents->user, policy));
    DT_TRY(run_opponents(c, c->index, n));
    for (uint32_t i = x->begin; i < x->end; i++) {
        DT_TRY(is_played_by(c, x, policy, i) ? draw_opponents(d, i, &row) : DT_OK);
    }
    return DT_OK;
}

static dt_status act_for_opponents(draw *d, const dt_turn *x)
{
    DT_TRACE_N("policy", "opponents", "group", x->group);
    const dt_collect_opponents *o = d->c->opponents;
    for (uint32_t i = x->begin; i < x->end; i++) {
        dt_instance *instance = dt_vector_instance(d->c->vector, i);
        instance->opponent = o->of(o->user, instance);
    }
    for (uint32_t k = 0; k < o->n; k++) {
        DT_TRY(act_by_policy(d, x, k));
    }
    return DT_OK;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static uint8_t end_flags_of_instance(const dt_instance *x)
{
    if (!x->has_ended) {
        return 0;
    }
    return (uint8_t)(DT_DONE_ENDED | (x->is_cut ? DT_DONE_CUT : 0) | (x->is_learnt_from ? 0 : DT_DONE_UNPLAYED));
}

/* What the step just made produced: slot t; and of t - 1 whether it ended an episode. */
static void store_slots(const dt_collector *c, uint32_t t, uint32_t begin, uint32_t end)
{
    dt_buffer *b = c->buffer;
    for (uint32_t i = begin; i < end; i++) {
        const dt_instance *x = dt_vector_instance(c->vector, i);
        const uint32_t number = number_of_instance(c, i);
        dt_buffer_store(b, t, number, x->record);
        if (t > 0) {
            const size_t before = dt_buffer_slot(b, t - 1, number);
            b->done[before] = end_flags_of_instance(x);
            if (x->has_ended) {
                memcpy(b->episode + before * b->episode_items, x->earned, b->episode_items * sizeof(double));
            }
        }
    }
}

/* Seconds since the last lap. */
static double take_lap_time(dt_collector *c)
{
    const double before = c->now;
    c->now = dt_clock_s();
    return c->now - before;
}

static dt_status check_stop(const dt_collector *c)
{
    return c->stops != NULL && (dt_fault("run.stop") || c->stops(c->stops_user))
               ? DT_FAIL(DT_EINTERRUPTED, "asked to stop at step %u of a round", c->step)
               : DT_OK;
}

static dt_status wait_for_group(const dt_collector *c, uint32_t g)
{
    DT_TRACE_N("env", "wait for environments", "group", g);
    return dt_vector_wait(c->vector, g);
}

/* Looks at what the last round of a group left, and hands it to the policy. */
static dt_status observe_group(dt_collector *c, dt_turn *x)
{
    const bool is_last = x->t == c->buffer->d.steps;
    dt_vector_group_range(c->vector, x->group, &x->begin, &x->end);
    if (x->t > 0) {
        DT_TRY(wait_for_group(c, x->group));
        c->wait_s += take_lap_time(c);
    }
    store_slots(c, x->t, x->begin, x->end);
    x->infers = !is_last || c->bootstraps;
    if (x->infers) {
        DT_TRACE_N("policy", "look", "group", x->group);
        DT_TRY(c->actor->places > 0 ? request_policy(c, x) : run_policy(c, x));
    }
    c->policy_s += take_lap_time(c);
    return DT_OK;
}

/* Acts on it, and begins the group's next round. */
static dt_status apply_answer(draw *d, dt_turn *x)
{
    dt_collector *c = d->c;
    const bool is_last = x->t == c->buffer->d.steps;
    size_t row = 0;
    DT_TRACE_N("policy", "act", "group", x->group);
    c->step = d->t = x->t;
    c->key.step = c->first_step + x->t;
    dt_rng_stream_init(&d->stream, &c->key);
    if (x->is_asked) {
        x->is_asked = false;
        DT_TRY(dt_actor_wait_for_policy(c->actor, x->place));
    }
    for (uint32_t i = x->begin; i < x->end && x->infers; i++) {
        DT_TRY(draw_rows(d, i, !is_last, &row));
    }
    if (d->c->opponents != NULL && !is_last) {
        DT_TRY(act_for_opponents(d, x));
    }
    c->policy_s += take_lap_time(c);
    if (!is_last) {
        dt_vector_begin_step(c->vector, x->group);
    }
    return DT_OK;
}

/* Nothing may be under way when we leave; the error is reported first. */
static dt_status abort_round(dt_collector *c, dt_status st)
{
    dt_actor *p = c->actor;
    dt_error reason;
    dt_error_save(&reason, st);
    for (uint32_t i = 0; i < p->places; i++) {
        if (c->turn[i].is_asked && dt_actor_wait_for_policy(p, i) < 0) {
            dt_error_clear();
        }
    }
    dt_vector_drain(c->vector, c->begin, c->begin + c->groups);
    return dt_error_restore(&reason);
}

void dt_collect_begin(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end)
{
    const uint32_t n = end - begin, n_wanted = c->actor->places > 0 ? c->actor->places : 1;
    memset(c->turn, 0, sizeof(c->turn));
    c->first_step = first_step;
    c->begin = begin;
    c->groups = n;
    c->places = n_wanted < n ? n_wanted : n;
    c->at = 0;
    c->turns = (uint64_t)(c->buffer->d.steps + 1) * n;
    c->policy_s = c->wait_s = 0;
}

/* Turns are numbered step by step, in each group by group. With one place a group acts at once; with more, a turn's
 * actions are taken when its place is wanted for the turn that many later. There are at least as many groups as places
 * in use. */
static dt_status run_turn(draw *d, uint64_t k)
{
    dt_collector *c = d->c;
    dt_turn *x = &c->turn[k % c->places];
    DT_TRY(k >= c->places ? apply_answer(d, x) : DT_OK);
    if (k >= c->turns) {
        return DT_OK;
    }
    *x = (dt_turn){.t = (uint32_t)(k / c->groups), .place = (uint32_t)(k % c->places)};
    x->group = c->begin + (uint32_t)(k % c->groups);
    c->step = x->t;
    DT_TRY(k % c->groups == 0 ? check_stop(c) : DT_OK);
    return observe_group(c, x);
}

dt_status dt_collect_run_turns(dt_collector *c, uint64_t n)
{
    const dt_env_spec *s = &c->buffer->l->spec;
    draw d = {.c = c, .dist = {.choices = s->choices, .low = s->low, .high = s->high}};
    d.dist.n_heads = s->n_heads;
    d.dist.n_continuous = s->n_continuous;
    d.dist.is_squashed = c->is_squashed;
    c->now = dt_clock_s();
    for (; n > 0 && c->at < c->turns + c->places; n--) {
        if (c->reports_activity && c->at % c->groups == 0) {
            dt_activity_set(DT_ACTIVITY_COLLECT, c->at, c->turns);
        }
        const dt_status st = run_turn(&d, c->at++);
        if (st < 0) {
            return abort_round(c, st);
        }
    }
    return c->at < c->turns + c->places ? DT_OK : DT_DONE;
}

dt_status dt_collect_groups(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end)
{
    dt_collect_begin(c, first_step, begin, end);
    const dt_status st = dt_collect_run_turns(c, UINT64_MAX);
    return st < 0 ? st : DT_OK;
}

dt_status dt_collect_run_round(dt_collector *c, uint64_t first_step)
{
    dt_buffer_begin_round(c->buffer, c->buffer);
    DT_TRY(dt_collect_groups(c, first_step, 0, dt_vector_count_groups(c->vector)));
    c->buffer->is_filled = true;
    return DT_OK;
}
