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

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BROKEN = -1000 }; /* the host's own, of take_result: this instance is of no use any more, its worker is */

static char *record_of(const dt_process_instance *x)
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
    return st > 0 ? DT_FAIL(DT_EIO, "its process wrote over the memory that it shares with the host") : st;
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
    dt_log(DT_LOG_WARN, "environment %s: %s. %s (restart %u of %u); from now on the run is not reproducible", p->d.id,
           why, what, x->restarts, p->d.restarts);
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
    dt_status st = DT_EIO;
    while (st == DT_EIO) {
        DT_TRY(count_restart(x, p->n_used > 1 ? "The episodes of all instances in it count as truncated, a new process "
                                                "begins the next ones"
                                              : "Its episode counts as truncated, a new process begins the next one"));
        st = open_replacement(p);
    }
    return st;
}

/* The instance alone, in the same worker. */
static dt_status restart_instance(dt_process_instance *x)
{
    DT_TRY(count_restart(x, "Its episode counts as truncated, a new instance begins the next one"));
    push_create(x);
    dt_process_flush(x->p);
    const dt_status st = wait_for_create(x);
    return st == DT_EIO ? restart_worker(x->p, dt_process_blamed(x->p, x->place)) : st;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void post(dt_process_instance *x)
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
    post(x);
}

static void begin_step(void *self, const dt_env_io *io)
{
    dt_process_instance *x = self;
    const dt_layout *l = x->p->l;
    x->p->is_given_up = false;
    x->call = DT_CALL_STEP;
    x->posted_in = 0;
    if (x->playing_in == x->p->generation && x->p->pid > 0) {
        char *record = record_of(x);
        memcpy(record + l->act_i, io->act_i, l->act_f - l->act_i);
        memcpy(record + l->act_f, io->act_f, l->record_bytes - l->act_f);
        post(x);
    }
}

static void flush(void *self)
{
    const dt_process_instance *x = self;
    if (x->p->map != NULL) {
        dt_process_flush(x->p);
    }
}

/* A copy of what the worker wrote goes to the caller, if it is right. */
static dt_status take_record(dt_process_instance *x, const dt_env_io *io, const uint8_t *acted, bool is_over)
{
    const dt_layout *l = x->p->l;
    const size_t bytes = l->mask + (size_t)l->spec.n_agents * l->n_choices;
    char *record = io->obs[0]; /* observations come first */
    memcpy(record, record_of(x), bytes);
    DT_TRY(dt_check_record(l, record, acted, is_over));
    memcpy(x->kept, record, bytes);
    return DT_OK;
}

/* The answer to the call that was posted: DT_EIO when the worker is lost, BROKEN when the instance is. */
static dt_status take_result(dt_process_instance *x, const dt_env_io *io)
{
    const dt_layout *l = x->p->l;
    const bool is_step = x->call == DT_CALL_STEP;
    DT_TRY(dt_process_wait(x->p, x->number));
    const dt_status st = read_status(x);
    if (st < 0) {
        return st == DT_EIO ? DT_EPLUGIN : st;
    }
    if (!is_step && st != DT_OK) {
        return st;
    }
    const dt_status right = is_step ? take_record(x, io, (const uint8_t *)x->kept + l->alive, st == DT_DONE)
                                    : take_record(x, io, NULL, false);
    return right >= 0 ? st : is_step ? BROKEN : right;
}

/* What the agents saw last stays; rewards are 0. */
static void truncate_episode(const dt_process_instance *x, const dt_env_io *io)
{
    const dt_layout *l = x->p->l;
    char *record = io->obs[0];
    memcpy(record, x->kept, l->reward);
    memset(record + l->reward, 0, l->out_bytes - l->reward);
    memset(record + l->mask, 1, (size_t)l->spec.n_agents * l->n_choices);
    memcpy(io->truncated, x->kept + l->alive, l->spec.n_agents);
    memset(io->alive, 0, l->spec.n_agents);
    for (uint32_t m = 0; m < l->spec.n_metrics; m++) {
        io->metric[m] = NAN;
    }
}

static dt_status allocate_kept(dt_process_instance *x)
{
    x->kept = x->kept != NULL ? x->kept : dt_alloc(x->p->l->record_bytes);
    return x->kept != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for environment %s", x->p->d.id);
}

static dt_status finish(void *self, const dt_env_io *io)
{
    dt_process_instance *x = self;
    dt_process *p = x->p;
    DT_TRY(allocate_kept(x));
    for (;;) {
        dt_status st = DT_EIO;
        bool was_posted = x->posted_in == p->generation;
        if (was_posted) {
            st = take_result(x, io);
            x->posted_in = 0;
        } else if (p->pid == 0) { /* lost between two calls */
            st = p->is_given_up ? dt_process_interrupt(p) : dt_process_died(p);
            was_posted = true;
        }
        if (was_posted && st != DT_EIO && st != BROKEN) {
            return st;
        }
        if (was_posted) {
            DT_TRY(st == BROKEN ? restart_instance(x) : restart_worker(p, dt_process_blamed(p, x->place)));
        }
        if (x->call == DT_CALL_STEP) {
            x->playing_in = 0;
            truncate_episode(x, io);
            return DT_DONE;
        }
        post(x);
        dt_process_flush(p);
    }
}

/* ---- one at a time ----------------------------------------------------------------------------------------------- */

static dt_status process_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    begin_reset(self, io, seed);
    flush(self);
    return finish(self, io);
}

static dt_status process_step(void *self, const dt_env_io *io)
{
    begin_step(self, io);
    flush(self);
    return finish(self, io);
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
    .begin_reset = begin_reset, .begin_step = begin_step, .flush = flush, .finish = finish};
