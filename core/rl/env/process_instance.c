/* SPDX-License-Identifier: Apache-2.0
 *
 * See process_inner.h: instances, and what is done about those that are lost.
 */
#include <config.h>

#include "rl/env/process_inner.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "rl/env/check.h"

#include <stdio.h>
#include <string.h>

/* The host's own: this instance is of no use any more, its worker is; its episode cannot be continued. */
enum { BROKEN = -1000, GONE = -1001 };
enum { MOST_CRASHES = 2, LOG_BYTES = 1 << 26 }; /* in one step; of the actions of an episode */

static char *shared_record(const dt_process_instance *x)
{
    return dt_wire_record(&x->p->m, x->p->map, x->place);
}

/* ---- creating ---------------------------------------------------------------------------------------------------- */

static dt_status read_status(const dt_process_instance *x)
{
    const int32_t status = *dt_wire_status(&x->p->m, x->p->map, x->place); /* once: it may change */
    if (status < 0) {
        char text[DT_WIRE_ERROR_BYTES];
        memcpy(text, dt_wire_error(&x->p->m, x->p->map, x->place), sizeof(text));
        text[sizeof(text) - 1] = '\0';
        return DT_FAIL(dt_process_check_status(status), "%s", text);
    }
    return (dt_status)status;
}

static void push_create(dt_process_instance *x)
{
    x->number = dt_process_push(x->p, &(dt_wire_call){.call = DT_CALL_CREATE, .place = x->place});
    x->posted_in = 0;
    x->playing_in = 0;
}

static dt_status wait_for_create(const dt_process_instance *x)
{
    DT_TRY(dt_process_wait(x->p, x->number));
    const dt_status st = read_status(x);
    return st > 0 ? dt_process_overwritten(x->p) : st;
}

dt_process_instance *dt_process_begin_instance(dt_process_instance *other)
{
    dt_process *p = other->p;
    for (uint32_t i = 0; i < p->d.places; i++) {
        dt_process_instance *x = &p->instance[i];
        if (!x->is_used) {
            x->is_used = true;
            p->n_used++;
            push_create(x);
            dt_process_flush(p);
            return x;
        }
    }
    return NULL;
}

dt_status dt_process_finish_instance(dt_process_instance *x)
{
    const dt_status st = wait_for_create(x);
    return st < 0 ? DT_CONTEXT(st, "creating %s in a process", x->p->d.id) : DT_OK;
}

/* ---- restarts ---------------------------------------------------------------------------------------------------- */

/* One more restart of an instance, if it has one left: reported with the reason, this thread's error. */
static dt_status count_restart(dt_process_instance *x, const char *what)
{
    dt_process *p = x->p;
    char why[1024];
    snprintf(why, sizeof(why), "%s", dt_error_text());
    if (x->restarts == p->d.restarts) {
        return DT_FAIL(DT_EIO, "%s; it was restarted %u times before, which is all env.restarts allows", why,
                       x->restarts);
    }
    x->restarts++;
    atomic_fetch_add(p->d.n_restarts, 1);
    if (!p->d.is_deterministic) {
        atomic_fetch_add(p->d.n_lost, 1);
    }
    dt_log(DT_LOG_WARN, "environment %s: %s. %s (restart %u of %u)%s", p->d.id, why, what, x->restarts, p->d.restarts,
           p->d.is_deterministic ? "" : "; from now on the run is not reproducible");
    return DT_OK;
}

/* A worker with all the instances that the lost one had. */
static dt_status open_replacement(dt_process *p)
{
    const dt_layout *l = p->l;
    dt_process_close(p);
    p->tail_bytes = 0;
    p->tail[0] = '\0';
    DT_TRY(dt_process_open(p));
    DT_TRY(dt_process_take_spec(p));
    DT_TRY(dt_layout_compare(l, &p->env_spec));
    DT_TRY(dt_process_map(p, l));
    for (uint32_t i = 1; i < p->d.places; i++) {
        if (p->instance[i].is_used) {
            push_create(&p->instance[i]);
        }
    }
    dt_process_flush(p);
    for (uint32_t i = 1; i < p->d.places; i++) {
        DT_TRY(p->instance[i].is_used ? wait_for_create(&p->instance[i]) : DT_OK);
    }
    return DT_OK;
}

/* Another worker, while the instance that is blamed has restarts left; one that is lost while it starts is lost as any
 * other. */
static dt_status restart_worker(dt_process *p, uint32_t place)
{
    dt_process_instance *x = &p->instance[place];
    const char *what = p->d.is_deterministic ? "A new process repeats the episodes of its instances"
                       : p->n_used > 1       ? "The episodes of all instances in it count as truncated, a new process "
                                               "begins the next ones"
                                             : "Its episode counts as truncated, a new process begins the next one";
    dt_status st = DT_EIO;
    x->crashes++;
    while (st == DT_EIO || st == DT_EBROKEN) {
        DT_TRY(count_restart(x, what));
        st = open_replacement(p);
    }
    return st;
}

/* The instance alone, in the same worker. */
static dt_status restart_instance(dt_process_instance *x)
{
    DT_TRY(count_restart(x, x->p->d.is_deterministic
                                ? "A new instance repeats its episode"
                                : "Its episode counts as truncated, a new instance begins the next one"));
    x->crashes++;
    push_create(x);
    dt_process_flush(x->p);
    const dt_status st = wait_for_create(x);
    return st == DT_EIO || st == DT_EBROKEN ? restart_worker(x->p, dt_process_blamed(x->p, x->place)) : st;
}

/* ---- repeating an episode ---------------------------------------------------------------------------------------- */

static size_t action_bytes(const dt_process *p)
{
    return p->l->record_bytes - p->l->act_i;
}

/* The actions of the step just made; where there is no memory for them the episode cannot be repeated. */
static void log_actions(dt_process_instance *x, const dt_env_io *io)
{
    const dt_layout *l = x->p->l;
    const size_t bytes = action_bytes(x->p);
    if (!x->is_logged) {
        return;
    }
    if (x->n_logged == x->log_cap) {
        const uint64_t cap = x->log_cap > 0 ? 2 * x->log_cap : 64;
        char *grown = cap <= LOG_BYTES / (bytes + 1) ? dt_realloc(x->log, cap * bytes) : NULL;
        x->is_logged = grown != NULL;
        if (grown == NULL) {
            return;
        }
        x->log = grown;
        x->log_cap = cap;
    }
    char *at = x->log + x->n_logged++ * bytes;
    memcpy(at, io->act_i, l->act_f - l->act_i);
    memcpy(at + (l->act_f - l->act_i), io->act_f, l->record_bytes - l->act_f);
}

static dt_status repeat_call(dt_process_instance *x, uint32_t call)
{
    x->number =
        dt_process_push(x->p, &(dt_wire_call){.call = call, .place = x->place, .seed = x->seed, .episode = x->episode});
    dt_process_flush(x->p);
    DT_TRY(dt_process_wait(x->p, x->number));
    const int32_t status = *dt_wire_status(&x->p->m, x->p->map, x->place);
    return status == DT_OK ? DT_OK : GONE;
}

static dt_status repeat_calls(dt_process_instance *x)
{
    const size_t bytes = action_bytes(x->p);
    DT_TRY(repeat_call(x, DT_CALL_RESET));
    for (uint64_t i = 0; i < x->n_logged; i++) {
        memcpy(shared_record(x) + x->p->l->act_i, x->log + i * bytes, bytes);
        DT_TRY(repeat_call(x, DT_CALL_STEP));
    }
    return DT_OK;
}

/* What the last of them left is what it left before. */
static dt_status compare_repeated_episode(dt_process_instance *x, dt_status st)
{
    const dt_layout *l = x->p->l;
    const char *differs = "the end of the episode";
    if (st == DT_OK) {
        memcpy(x->repeated, shared_record(x), l->record_bytes); /* a copy: it may change */
        differs = dt_compare_records(l, x->kept, x->repeated);
    }
    if (differs == NULL) {
        return DT_OK;
    }
    (void)DT_FAIL(DT_EPLUGIN,
                  "its episode %llu was repeated with the same seed and actions, and after %llu steps %s differs; it "
                  "declares DT_COMP_DETERMINISTIC, which it is not",
                  (unsigned long long)x->episode, (unsigned long long)x->n_logged, differs);
    DT_TRY(count_restart(x, "Its episode counts as truncated"));
    return GONE;
}

/* The episode up to the step under way, in a worker that has not seen it. GONE: it counts as truncated. */
static dt_status repeat_episode(dt_process_instance *x)
{
    dt_process *p = x->p;
    if (!p->d.is_deterministic) {
        return GONE;
    }
    if (!x->is_logged || x->crashes >= MOST_CRASHES) {
        dt_log(DT_LOG_WARN, "environment %s: %s, so that it counts as truncated", p->d.id,
               x->is_logged ? "the step of its episode was lost again when it was repeated"
                            : "its episode is too long to be repeated");
        return GONE;
    }
    const dt_status st = repeat_calls(x);
    if (st != DT_OK && st != GONE) {
        return st;
    }
    DT_TRY(compare_repeated_episode(x, st));
    x->playing_in = p->generation;
    return DT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void post_instance_call(dt_process_instance *x)
{
    dt_process *p = x->p;
    x->posted_in = 0;
    if (p->pid == 0 || p->map == NULL) {
        return;
    }
    x->number =
        dt_process_push(p, &(dt_wire_call){.call = x->call, .place = x->place, .seed = x->seed, .episode = x->episode});
    x->posted_in = p->generation;
    x->playing_in = p->generation;
}

static void begin_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    dt_process_instance *x = self;
    x->p->is_given_up = false;
    x->call = DT_CALL_RESET;
    x->seed = seed;
    x->episode = io->episode;
    post_instance_call(x);
}

static void post_step(dt_process_instance *x, const dt_env_io *io)
{
    const dt_layout *l = x->p->l;
    char *record = shared_record(x);
    memcpy(record + l->act_i, io->act_i, l->act_f - l->act_i);
    memcpy(record + l->act_f, io->act_f, l->record_bytes - l->act_f);
    post_instance_call(x);
}

static void begin_step(void *self, const dt_env_io *io)
{
    dt_process_instance *x = self;
    x->p->is_given_up = false;
    x->call = DT_CALL_STEP;
    x->posted_in = 0;
    if (x->playing_in == x->p->generation && x->p->pid > 0) {
        post_step(x, io);
    }
}

static void flush_calls(void *self)
{
    const dt_process_instance *x = self;
    if (x->p->map != NULL) {
        dt_process_flush(x->p);
    }
}

/* A copy of what the worker wrote goes to the caller, if it is right. */
static dt_status copy_record(dt_process_instance *x, const dt_env_io *io, const uint8_t *acted, bool is_over)
{
    const dt_layout *l = x->p->l;
    const size_t bytes = l->mask + (size_t)l->spec.n_agents * l->n_choices;
    char *record = io->obs[0]; /* observations come first */
    memcpy(record, shared_record(x), bytes);
    DT_TRY(dt_check_record(l, record, acted, is_over));
    memcpy(x->kept, record, bytes);
    return DT_OK;
}

/* The answer to the call that was posted: DT_EIO when the worker is lost, BROKEN when the instance is. */
static dt_status read_result(dt_process_instance *x, const dt_env_io *io)
{
    const dt_layout *l = x->p->l;
    const bool is_step = x->call == DT_CALL_STEP;
    DT_TRY(dt_process_wait(x->p, x->number));
    const dt_status st = read_status(x);
    if (st < 0) {
        return st == DT_EIO || st == DT_EBROKEN ? BROKEN : st;
    }
    if (st > (is_step ? DT_DONE : DT_OK)) {
        return dt_process_overwritten(x->p);
    }
    const dt_status right = is_step ? copy_record(x, io, (const uint8_t *)x->kept + l->alive, st == DT_DONE)
                                    : copy_record(x, io, NULL, false);
    return right >= 0 ? st : is_step ? BROKEN : right;
}

static dt_status allocate_kept(dt_process_instance *x)
{
    const size_t bytes = x->p->l->record_bytes;
    x->kept = x->kept != NULL ? x->kept : dt_alloc(bytes);
    x->repeated = x->repeated != NULL || !x->p->d.is_deterministic ? x->repeated : dt_alloc(bytes);
    return x->kept != NULL && (x->repeated != NULL || !x->p->d.is_deterministic)
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for environment %s", x->p->d.id);
}

/* The answer to the call under way, which is posted to a worker that has not got it. */
static dt_status wait_for_answer(dt_process_instance *x, const dt_env_io *io)
{
    dt_process *p = x->p;
    if (p->pid == 0) { /* lost between two calls */
        return p->is_given_up ? dt_process_interrupt(p) : dt_process_died(p);
    }
    if (x->posted_in != p->generation && x->call == DT_CALL_STEP) {
        DT_TRY(x->playing_in != p->generation ? repeat_episode(x) : DT_OK);
        post_step(x, io);
    } else if (x->posted_in != p->generation) {
        post_instance_call(x);
    }
    dt_process_flush(p);
    const dt_status st = read_result(x, io);
    x->posted_in = 0;
    return st;
}

static void keep_log(dt_process_instance *x, const dt_env_io *io, dt_status st)
{
    x->crashes = 0;
    if (x->call == DT_CALL_RESET) {
        x->n_logged = 0;
        x->is_logged = x->p->d.is_deterministic;
    } else if (st == DT_OK) {
        log_actions(x, io);
    }
}

static dt_status finish_call(void *self, const dt_env_io *io)
{
    dt_process_instance *x = self;
    dt_process *p = x->p;
    DT_TRY(allocate_kept(x));
    for (;;) {
        const dt_status st = wait_for_answer(x, io);
        if (st == GONE) {
            atomic_fetch_add(p->d.n_lost, 1);
            x->crashes = 0;
            x->playing_in = 0;
            dt_truncate_record(p->l, x->kept, io->obs[0]); /* observations come first */
            return DT_DONE;
        }
        if (st != DT_EIO && st != BROKEN) {
            if (st >= 0) {
                keep_log(x, io, st);
            }
            return st;
        }
        x->playing_in = 0;
        DT_TRY(st == BROKEN ? restart_instance(x) : restart_worker(p, dt_process_blamed(p, x->place)));
    }
}

/* ---- one at a time ----------------------------------------------------------------------------------------------- */

static dt_status process_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    begin_reset(self, io, seed);
    flush_calls(self);
    return finish_call(self, io);
}

static dt_status process_step(void *self, const dt_env_io *io)
{
    begin_step(self, io);
    flush_calls(self);
    return finish_call(self, io);
}

static dt_status process_spec(const void *self, dt_env_spec *out)
{
    *out = ((const dt_process_instance *)self)->p->env_spec;
    return DT_OK;
}

dt_status dt_process_query(dt_process_instance *x, uint32_t what, char **answer_p, uint64_t *bytes_p)
{
    dt_process *p = x->p;
    if (p->pid == 0 || p->map == NULL) {
        return dt_process_died(p);
    }
    const uint32_t number = dt_process_push(p, &(dt_wire_call){.call = DT_CALL_QUERY, .place = x->place, .seed = what});
    dt_process_flush(p);
    DT_TRY(dt_process_wait(p, number));
    const dt_wire_patience patience = dt_process_patience(p, p->d.timeout_s);
    const dt_wire_result r = dt_wire_receive_message(p->socket, answer_p, bytes_p, &patience);
    if (r != DT_WIRE_OK) {
        const dt_status st = dt_process_missing_message(p, r, "answer a request");
        dt_process_kill(p); /* the rest of an answer would be taken for the next one */
        return st;
    }
    return DT_OK;
}

const dt_env_ops dt_process_ops = {.struct_size = sizeof(dt_env_ops),
                                   .spec = process_spec,
                                   .reset = process_reset,
                                   .step = process_step,
                                   .destroy = dt_process_destroy};
const dt_env_async dt_process_async = {
    .begin_reset = begin_reset, .begin_step = begin_step, .flush = flush_calls, .finish = finish_call};
