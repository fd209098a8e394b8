/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", the policy: what it reads and answers, and which threads run it. On the CPU threads do,
 * each on its own instances; a device is asked by one thread, in pieces, about several groups of instances at a time.
 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_OF_PIECE = 64 }; /* on a device: a product has as many rows at once, or one instance's */

/* ---- outputs and fields ------------------------------------------------------------------------------------------ */

static dt_status check_output(const dt_rollout *r, uint32_t o, uint32_t items, bool needed)
{
    const dt_view *v = r->acting.track[0].own.answer[0].view[o];
    if (v == NULL) {
        return needed ? DT_FAIL(DT_EPLUGIN, "the phase records no output \"%s\", which acting in %s needs",
                                dt_rollout_output[o], r->env->comp->desc.id)
                      : DT_OK;
    }
    const bool is_per_row = o == DT_OUT_VALUE ? v->rank == 1 : v->rank == 2 && v->dim[1] == items;
    const bool is_shared = o == DT_OUT_LOG_STD && v->rank == 1 && v->dim[0] == items;
    if (v->dtype != DT_F32 || (!is_per_row && !is_shared)) {
        return DT_BREACH(DT_ESHAPE,
                         "the phase's output \"%s\" has %d dimensions, the last of %lld; expected [A%s%u] f32",
                         dt_rollout_output[o], v->rank, v->rank > 0 ? (long long)v->dim[v->rank - 1] : 0,
                         o == DT_OUT_VALUE ? "] or 1 of " : " ", items);
    }
    return DT_OK;
}

/* Where acting finds what it carries on. */
static dt_status find_carried_outputs(const dt_rollout *r, uint32_t place, dt_answer *x)
{
    for (uint32_t k = 0; k < r->d.n_carried; k++) {
        const dt_view *v = dt_policy_output(r->acting.policy, place, r->ports.carried_output[k]);
        x->carried[k] = v;
        if (v == NULL || v->dtype != DT_F32 || v->rank != 2 || v->dim[1] != (int64_t)r->buffer.carried_columns[k]) {
            return DT_BREACH(v == NULL ? DT_EPLUGIN : DT_ESHAPE,
                             "the phase carries %s [%s] from step to step, and records %s output \"%s\"",
                             r->ports.carried[k].name, r->ports.carried[k].dims, v == NULL ? "no" : "another shape as",
                             r->ports.carried_output[k]);
        }
    }
    return DT_OK;
}

static dt_status check_outputs(dt_rollout *r)
{
    const dt_layout *l = &r->env->layout;
    const uint32_t C = l->spec.n_continuous, M = l->n_choices;
    DT_TRY(check_output(r, DT_OUT_LOGITS, M, M > 0));
    DT_TRY(check_output(r, DT_OUT_MEAN, C, C > 0));
    DT_TRY(check_output(r, DT_OUT_LOG_STD, C, C > 0));
    DT_TRY(check_output(r, DT_OUT_VALUE, 1, false));
    DT_TRY(check_output(r, DT_OUT_COST_VALUE, l->spec.n_costs, false));
    DT_TRY(check_output(r, DT_OUT_LOW, C, false));
    DT_TRY(check_output(r, DT_OUT_HIGH, C, false));
    return check_output(r, DT_OUT_ALLOW, M, false);
}

/* What is known only after acting cannot decide how to act. */
static dt_status check_fields(const dt_rollout *r, uint64_t *want_p)
{
    for (uint32_t f = 0; f < r->buffer.n_fields; f++) {
        const char *name = r->buffer.field[f].name;
        if (!dt_policy_reads_field(r->acting.policy, name)) {
            continue;
        }
        if (!dt_buffer_is_observed(&r->buffer, f)) {
            return DT_FAIL(DT_EPLUGIN,
                           "an output of the phase that acting needs is computed from the field %s, which is "
                           "not known yet when an action is chosen",
                           name);
        }
        *want_p |= UINT64_C(1) << f;
    }
    return DT_OK;
}

/* Room for what the policy reads at once: of all of this rank's instances, or of a piece. */
static dt_status map_input_buffers(const dt_rollout *r, const int64_t *cap, dt_track *t, size_t *bytes_p)
{
    const dt_samples *s = &r->data.source;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (uint32_t f = 0; f < s->n_fields; f++) {
            const bool is_read = (t->own.want >> f & 1) != 0;
            t->field[f] = is_read && t->arena != NULL ? (char *)t->arena + at : NULL;
            if (is_read) {
                at += (dt_samples_field_bytes(s, f, cap) + 63) / 64 * 64;
            }
        }
        if (pass == 0) {
            *bytes_p = at;
            DT_TRY(dt_arena_map(at, &t->arena));
        }
    }
    return DT_OK;
}

/* What learning reads of the fields of kept values is kept; where a trained parameter contributes to them it reads
 * none. */
static dt_status choose_kept_fields(dt_rollout *r, const dt_trainer *t)
{
    char text[DT_ROLLOUT_MAX_KEPT * sizeof(r->ports.kept_text->name)] = "";
    size_t bytes = 0, at = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->d.n_kept; k++) {
        if (dt_graph_reads(dt_trainer_graph(t), r->ports.kept[k].name)) {
            DT_TRY(dt_buffer_allocate_kept(&r->buffer, k));
            DT_TRY(r->d.has_ahead ? dt_buffer_allocate_kept(&r->next, k) : DT_OK);
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", n > 0 ? ", " : "", r->ports.kept[k].name);
            bytes += r->buffer.n_places * r->buffer.kept_columns[k] * sizeof(float);
            r->ports.read[n++] = r->ports.kept[k].name;
        }
    }
    if (n > 0 && dt_comm_rank(r->stage->d.comm) == 0) {
        dt_log(DT_LOG_INFO, "kept with the samples: %s (%.1f MB); frozen models are not evaluated again", text,
               (double)bytes / 1e6);
    }
    return DT_OK;
}

/* Where acting finds what is kept. */
static dt_status find_kept_outputs(const dt_rollout *r, uint32_t place, dt_answer *x)
{
    for (uint32_t k = 0; k < r->d.n_kept; k++) {
        const dt_view *v = dt_policy_output(r->acting.policy, place, r->ports.kept[k].name);
        x->kept[k] = r->buffer.kept[k] != NULL ? v : NULL;
        if (r->buffer.kept[k] != NULL &&
            (v == NULL || v->dtype != DT_F32 || v->rank != 2 || v->dim[1] != (int64_t)r->buffer.kept_columns[k])) {
            return DT_BREACH(DT_ESHAPE, "what the phase records as kept \"%s\" is not [%s] f32", r->ports.kept[k].name,
                             r->ports.kept[k].dims);
        }
    }
    return DT_OK;
}

/* At a place of the policy: each track has one, or the only track all of them. */
static dt_answer *answer_of_place(const dt_rollout *r, uint32_t place)
{
    return r->acting.n_tracks > 1 ? r->acting.track[place].own.answer : &r->acting.track[0].own.answer[place];
}

static void make_actor(dt_track *t, dt_policy *policy, uint64_t want, uint32_t unit, dt_actor *a)
{
    const dt_view *log_std = a->answer[0].view[DT_OUT_LOG_STD];
    a->policy = policy;
    a->number = t->number;
    a->field = t->field;
    a->room = t->room;
    a->want = want;
    if (dt_policy_is_async(policy)) {
        a->places = dt_policy_n_places(policy);
        a->unit = unit;
    }
    a->log_std_row = log_std != NULL && log_std->rank == 2 ? t->r->env->layout.spec.n_continuous : 0;
}

static dt_status make_track(dt_rollout *r, const int64_t *cap, uint64_t want, uint32_t unit, uint32_t number)
{
    dt_track *t = &r->acting.track[number];
    t->r = r;
    t->number = number;
    t->index = dt_alloc_n(r->split.last - r->split.first, sizeof(*t->index));
    if (t->index == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->split.instances);
    }
    make_actor(t, r->acting.policy, want, unit, &t->own);
    return map_input_buffers(r, cap, t, &r->acting.arena_bytes);
}

/* Threads that act, each with its own instances from the first step to the last: no step waits for another thread.
 * Where that cannot be - one place for the rows of all instances, processes or threads of their own for environments -
 * one thread acts for all. */
static uint32_t count_tracks(const dt_rollout *r)
{
    const uint32_t own = r->split.last - r->split.first, threads = r->stage->d.threads;
    const bool is_apart = r->env->layout.spec.n_symbols == 0 && r->acting.workers == 0 && !r->env->in_process;
    return !is_apart || threads < 1 ? 1 : threads < own ? threads : own;
}

/* While some groups wait for the policy, others are stepped by workers; without these the thread that waits does it. */
uint32_t dt_acting_groups(const dt_rollout *r, uint32_t n)
{
    const bool has_workers = r->acting.workers > 0 || r->env->in_process;
    const uint32_t at_once = r->acting.in_flight > 0 ? r->acting.in_flight : 1;
    const uint32_t n_wanted = has_workers                ? 2 * at_once
                              : r->acting.in_flight == 0 ? r->acting.n_tracks
                                                         : r->acting.in_flight;
    return n_wanted < n ? n_wanted : n;
}

/* Instances of a piece. What a row comes out as may depend on the capacity of its piece, so that it follows from the
 * environment and the number of all instances alone, and not from which rank acts on which of them. */
static uint32_t count_piece_instances(const dt_rollout *r)
{
    const uint32_t agents = r->env->layout.spec.n_agents, unit = agents < ROWS_OF_PIECE ? ROWS_OF_PIECE / agents : 1;
    return unit < r->split.instances ? unit : r->split.instances;
}

static dt_status create_policy(const dt_rollout *r, dt_trainer *t, const dt_samples *acting, uint32_t unit,
                               int64_t *cap, bool is_opponent, dt_policy **out_p)
{
    const int32_t n = (int32_t)r->env->layout.spec.n_symbols;
    const uint32_t own = r->split.last - r->split.first, groups = dt_acting_groups(r, own);
    for (int32_t k = 0; k <= n; k++) {
        cap[k] = dt_layout_max_rows(&r->env->layout, k) * unit;
    }
    cap[n + 1] = unit;
    const uint32_t most = groups > 0 ? (own + groups - 1) / groups : own; /* instances of a group */
    const dt_policy_desc d = {.source = acting,
                              .cap = cap,
                              .pieces = r->acting.in_flight > 0 ? (most + unit - 1) / unit : 1,
                              .places = r->acting.in_flight == 0 ? count_tracks(r)
                                        : is_opponent            ? 1
                                                                 : r->acting.in_flight,
                              .outputs = is_opponent ? dt_rollout_output : r->ports.output,
                              .keep = is_opponent ? NULL : r->ports.read};
    return dt_policy_create(t, &d, out_p);
}

/* The same policy again, which runs with other values; it reads what the policy reads, or less. */
static dt_status make_opponents(dt_rollout *r, dt_trainer *t, const dt_samples *acting, uint32_t unit, uint64_t want)
{
    int64_t cap[2 + DT_ENV_MAX_SYMBOLS];
    DT_TRY(create_policy(r, t, acting, unit, cap, true, &r->opponents->policy));
    for (uint32_t i = 0; i < r->acting.n_tracks; i++) {
        dt_actor_find_outputs(r->opponents->policy, i, r->acting.track[i].opponent.answer);
        make_actor(&r->acting.track[i], r->opponents->policy, want, unit, &r->acting.track[i].opponent);
    }
    return dt_opponents_prepare(r->opponents);
}

dt_status dt_acting_create_policy(dt_rollout *r, dt_trainer *t)
{
    int64_t cap[2 + DT_ENV_MAX_SYMBOLS];
    dt_samples acting = r->data.source;
    acting.n_fields -= r->d.n_kept; /* the last ones: what acting is about to compute */
    uint64_t want = 0;
    const uint32_t unit = r->acting.in_flight > 0 ? count_piece_instances(r) : r->split.last - r->split.first;
    DT_TRY(choose_kept_fields(r, t));
    DT_TRY(dt_exchange_prepare(&r->exchange, t));
    DT_TRY(create_policy(r, t, &acting, unit, cap, false, &r->acting.policy));
    const uint32_t places = dt_policy_n_places(r->acting.policy),
                   tracks = dt_policy_is_async(r->acting.policy) ? 1 : places;
    r->acting.track = dt_alloc_n(tracks, sizeof(*r->acting.track));
    if (r->acting.track == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->split.instances);
    }
    r->acting.n_tracks = tracks;
    for (uint32_t i = 0; i < places; i++) {
        dt_actor_find_outputs(r->acting.policy, i, answer_of_place(r, i));
    }
    DT_TRY(check_outputs(r));
    DT_TRY(check_fields(r, &want));
    for (uint32_t i = 0; i < places; i++) {
        DT_TRY(find_kept_outputs(r, i, answer_of_place(r, i)));
        DT_TRY(find_carried_outputs(r, i, answer_of_place(r, i)));
    }
    for (uint32_t i = 0; i < r->acting.n_tracks; i++) {
        DT_TRY(make_track(r, cap, want, unit, i));
    }
    return r->opponents != NULL ? make_opponents(r, t, &acting, unit, want) : DT_OK;
}

void dt_acting_destroy_policy(dt_rollout *r)
{
    for (uint32_t i = 0; i < r->acting.n_tracks; i++) {
        dt_arena_unmap(r->acting.track[i].arena, r->acting.arena_bytes);
        dt_free(r->acting.track[i].index);
    }
    dt_free(r->acting.track);
    r->acting.track = NULL;
    r->acting.n_tracks = 0;
    if (r->opponents != NULL) {
        dt_opponents_destroy_policy(r->opponents);
    }
    dt_policy_destroy(r->acting.policy);
    r->acting.policy = NULL;
}
