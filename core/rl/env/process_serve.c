/* SPDX-License-Identifier: Apache-2.0
 *
 * See process.h: the worker's side, and the thread that ends it with its host.
 */
#include <config.h>

#include "rl/env/process.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "base/fault.h"
#include "base/mem.h"
#include "rl/env/batch.h"
#include "rl/env/process_spec.h"
#include "rl/env/process_wire.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- ending with the host ---------------------------------------------------------------------------------------- */

enum { LOOK_MS = 250, WATCH_STACK = 256 * 1024 };

/* The worker and all that it started. */
static void kill_process_group(void)
{
    (void)kill(getpgrp() == getpid() ? 0 : getpid(), SIGKILL);
    _exit(1);
}

/* Whatever the environment does at that time, in a step of its own or in a library's loop: it ends with the host. A
 * process that is the parent is what counts; the file only signals when to check. An environment may close files that
 * it does not know, and get their numbers for its own: a descriptor with false results is ignored from then on. */
static void *watch_host_process(void *arg)
{
    const pid_t host = *(const pid_t *)arg;
#ifdef SYS_pidfd_open
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, host, 0), .events = POLLIN};
#else
    struct pollfd p = {.fd = -1, .events = POLLIN};
#endif
    while (getppid() == host) {
        if (poll(&p, 1, LOOK_MS) > 0 && getppid() == host) {
            p.fd = -1;
        }
    }
    kill_process_group();
    return NULL;
}

/* The host is the creator of the socket, even if it is gone by now. */
static dt_status watch_host(void)
{
    static pid_t host;
    struct ucred who = {0};
    socklen_t bytes = sizeof(who);
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t a;
    if (getsockopt(DT_WIRE_SOCKET, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "this process was not started by a run");
    }
    host = who.pid;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the environment's threads */
    pthread_attr_init(&a);
    (void)pthread_attr_setstacksize(&a, WATCH_STACK);
    (void)pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    const int reason = pthread_create(&thread, &a, watch_host_process, &host);
    pthread_attr_destroy(&a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason == 0 ? DT_OK : DT_FAIL(DT_EUNSUPPORTED, "cannot start a thread: %s", strerror(reason));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum { ANSWERED_LATE = 16 }; /* calls whose answers the host may see together */

typedef struct server {
    const dt_process_worker *w;
    const dt_env_ops *ops;
    size_t state_bytes;
    void **self; /* [places] NULL: not created */
    dt_layout l;
    dt_wire_map m;
    char *map;
    dt_wire_spin spin;
    uint32_t answered; /* as the host sees it */

    /* of an environment that has step_many, [places]: the calls of a batch */
    uint32_t *place;
    void **stepped;
    char **record;
    dt_status *result;
    char *batch;
} server;

static bool is_watched;
static const char who[] = "the environment";

/* An instance at a place, in place of the one that was there. */
static dt_status create_instance(server *s, void **self)
{
    const size_t bytes = s->state_bytes > 0 ? s->state_bytes : 1;
    if (*self != NULL) {
        s->ops->destroy(*self);
        memset(*self, 0, bytes);
    } else {
        *self = dt_alloc(bytes);
    }
    if (*self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an instance");
    }
    return s->w->create(s->w->user, *self);
}

static dt_status describe_environment(server *s, void **first, dt_str *out)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    DT_TRY_PLUGIN(s->ops->spec(*first, &spec), "spec");
    DT_TRY(dt_layout_init(&s->l, "the environment", &spec));
    return dt_spec_write(&spec, out);
}

static dt_status send_spec(server *s, const dt_process_worker *w, void **first, dt_str *out)
{
    uint64_t bytes = 0;
    char *request = NULL;
    char pid[16];
    DT_TRY(watch_host());
    is_watched = true;
    snprintf(pid, sizeof(pid), "%ld", (long)getpid()); /* for environments that confine what they open */
    (void)setenv("DTRAIN_WORKER", pid, 1);
    if (dt_wire_receive_message(DT_WIRE_SOCKET, &request, &bytes, NULL) != DT_WIRE_OK) {
        return DT_FAIL(DT_EIO, "the host sent no request");
    }
    dt_status st = w->prepare(w->user, request, bytes, &s->ops, &s->state_bytes);
    if (st >= 0) {
        st = create_instance(s, first);
    }
    if (st >= 0) {
        st = describe_environment(s, first, out);
    }
    dt_free(request);
    return st;
}

static bool allocate_batch(server *s)
{
    s->place = dt_alloc_n(s->m.places, sizeof(*s->place));
    s->stepped = dt_alloc_n(s->m.places, sizeof(*s->stepped));
    s->record = dt_alloc_n(s->m.places, sizeof(*s->record));
    s->result = dt_alloc_n(s->m.places, sizeof(*s->result));
    s->batch = dt_alloc(dt_batch_bytes(&s->l, s->m.places, 0));
    return s->place != NULL && s->stepped != NULL && s->record != NULL && s->result != NULL && s->batch != NULL;
}

/* The host sends how much it shares, and for how many instances: as many bytes as they take here, too. */
static bool map_shared_memory(server *s, void *first)
{
    uint64_t bytes = 0, is[2];
    char *message = NULL;
    if (dt_wire_receive_message(DT_WIRE_SOCKET, &message, &bytes, NULL) != DT_WIRE_OK || bytes != sizeof(is)) {
        dt_free(message);
        return false;
    }
    memcpy(is, message, sizeof(is));
    dt_free(message);
    if (is[1] > UINT32_MAX || !dt_wire_map_init(&s->m, (uint32_t)is[1], s->l.record_bytes) || s->m.bytes != is[0]) {
        fprintf(stderr, "the host shares %llu bytes for %llu instances, which need %llu\n", (unsigned long long)is[0],
                (unsigned long long)is[1], (unsigned long long)s->m.bytes);
        return false;
    }
    s->self = dt_alloc_n(s->m.places, sizeof(*s->self));
    if (s->ops->step_many != NULL && !allocate_batch(s)) {
        return false;
    }
    void *map = mmap(NULL, s->m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, DT_WIRE_MEMORY, 0);
    if (s->self == NULL || map == MAP_FAILED) {
        return false;
    }
    s->map = map;
    s->self[0] = first;
    return true;
}

static dt_status run_step(server *s, void *self, const dt_env_io *io)
{
    char *record = io->obs[0];
    memset(record, 0, s->l.out_bytes);
    memset(record + s->l.mask, 1, (size_t)s->l.spec.n_agents * s->l.n_choices);
    if (dt_fault("env.step")) {
        return DT_FAIL(DT_EPLUGIN, "the step failed on purpose");
    }
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, who, "step", s->ops->step(self, io));
    return st;
}

static dt_status run_reset(server *s, void *self, dt_env_io *io, const dt_wire_call *c)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_status st = DT_OK;
    char *record = io->obs[0];
    memset(record, 0, s->l.out_bytes);
    memset(record + s->l.mask, 1, (size_t)s->l.spec.n_agents * s->l.n_choices);
    io->act_i = NULL;
    io->act_f = NULL;
    io->episode = c->episode;
    DT_CALL_PLUGIN(st, who, "reset", s->ops->reset(self, io, c->seed));
    DT_TRY_PLUGIN(st, "reset");
    DT_CALL_PLUGIN(st, who, "spec", s->ops->spec(self, &spec));
    DT_TRY_PLUGIN(st, "spec");
    return dt_layout_compare(&s->l, &spec);
}

static dt_status run_create(server *s, void **self)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    const dt_status st = create_instance(s, self);
    DT_TRY(st > 0 ? DT_OK : st);
    DT_TRY_PLUGIN(s->ops->spec(*self, &spec), "spec");
    return dt_layout_compare(&s->l, &spec);
}

/* DT_OK, DT_DONE of a step, or an error: the host takes anything else for memory that was written over. */
static void set_status(server *s, uint32_t place, dt_status st)
{
    if (st > DT_DONE) {
        st = DT_FAIL(DT_EPLUGIN, "step returned %d", (int)st);
    }
    if (st < 0) {
        snprintf(dt_wire_error(&s->m, s->map, place), DT_WIRE_ERROR_BYTES, "%s",
                 dt_error_text()[0] != '\0' ? dt_error_text() : "it failed");
    }
    *dt_wire_status(&s->m, s->map, place) = (int32_t)st;
}

static void run_call(server *s, const dt_wire_call *c)
{
    dt_env_io io;
    void *obs[DT_ENV_MAX_OBS];
    void **self = &s->self[c->place];
    dt_status st = DT_OK;
    dt_error_clear();
    if (c->call == DT_CALL_CREATE) {
        st = run_create(s, self);
    } else {
        dt_layout_get_io(&s->l, dt_wire_record(&s->m, s->map, c->place), obs, &io);
        st = c->call == DT_CALL_STEP ? run_step(s, *self, &io) : run_reset(s, *self, &io, c);
    }
    set_status(s, c->place, st);
}

/* A legal call of the ring: those that the host made. */
static bool read_call(server *s, uint32_t number, dt_wire_call *out)
{
    *out = *dt_wire_ring(&s->m, s->map, number);
    return out->place < s->m.places && out->call >= DT_CALL_RESET && out->call <= DT_CALL_CREATE &&
           (out->call == DT_CALL_CREATE || s->self[out->place] != NULL);
}

/* Steps from call number on, up to asked, that step_many makes in one call; how many. */
static uint32_t run_batch(server *s, uint32_t number, uint32_t asked)
{
    dt_wire_call c;
    uint32_t n = 0;
    while (n < s->m.places && n <= asked - number && read_call(s, number + n, &c) && c.call == DT_CALL_STEP) {
        s->place[n] = c.place;
        s->stepped[n] = s->self[c.place];
        s->record[n] = dt_wire_record(&s->m, s->map, c.place);
        n++;
    }
    if (n > 1) {
        dt_error_clear();
        dt_batch_step(who, &s->l, s->ops, n, s->stepped, s->record, s->batch, s->result);
    }
    for (uint32_t i = 0; i < n && n > 1; i++) {
        if (dt_fault("env.step")) {
            s->result[i] = DT_FAIL(DT_EPLUGIN, "the step failed on purpose");
        }
        set_status(s, s->place[i], s->result[i]);
    }
    return n > 1 ? n : 0;
}

static bool answer_query(server *s, const dt_wire_call *c)
{
    dt_str out = {0};
    if (s->w->query != NULL) {
        s->w->query(s->w->user, s->self[c->place], (uint32_t)c->seed, &out);
    }
    const bool is_sent = dt_str_status(&out) == DT_OK &&
                         dt_wire_send_message(DT_WIRE_SOCKET, dt_str_text(&out), out.bytes, NULL) == DT_WIRE_OK;
    dt_str_fini(&out);
    return is_sent;
}

static void destroy_instances(server *s)
{
    for (uint32_t i = 0; i < s->m.places; i++) {
        if (s->self[i] != NULL) {
            s->ops->destroy(s->self[i]);
        }
    }
}

/* The host sets host_sleeps and looks at answered again before it sleeps: one of the two sees the other's store. */
static void publish_answer(server *s, uint32_t number)
{
    dt_wire_control *c = (dt_wire_control *)(void *)s->map;
    s->answered = number;
    atomic_store(&c->answered, number);
    if (atomic_load(&c->host_sleeps) != 0 && (int32_t)(number - atomic_load(&c->host_target)) >= 0) {
        dt_wire_wake(&c->answered);
    }
}

/* Waits for calls after number; the last one there is. */
static uint32_t wait_for_calls(server *s, uint32_t number)
{
    dt_wire_control *c = (dt_wire_control *)(void *)s->map;
    if (!dt_wire_spin_while(&s->spin, &c->asked, number)) {
        atomic_store(&c->worker_sleeps, 1);
        while (atomic_load(&c->asked) == number) {
            dt_wire_sleep(&c->asked, number, 60);
        }
        atomic_store(&c->worker_sleeps, 0);
    }
    return atomic_load(&c->asked);
}

/* false: another process overwrote the memory that the host shares. */
static bool answer_calls(server *s)
{
    dt_wire_control *c = (dt_wire_control *)(void *)s->map;
    uint32_t asked = 0;
    for (uint32_t n = 1;; n++) {
        if (asked == n - 1) {
            asked = wait_for_calls(s, n - 1);
        }
        dt_wire_call call;
        if (asked - n > s->m.mask || !read_call(s, n, &call)) {
            fprintf(stderr, "the memory shared with the host was written over\n");
            return false;
        }
        atomic_store_explicit(&c->begun, n, memory_order_relaxed);
        const uint32_t n_batch = s->batch != NULL && call.call == DT_CALL_STEP ? run_batch(s, n, asked) : 0;
        if (n_batch > 0) {
            n += n_batch - 1;
        } else if (call.call == DT_CALL_END) {
            destroy_instances(s);
        } else if (call.call != DT_CALL_QUERY) {
            run_call(s, &call);
        }
        if (n == asked || n - s->answered >= ANSWERED_LATE || call.call >= DT_CALL_END) {
            publish_answer(s, n);
        }
        if (call.call == DT_CALL_END || (call.call == DT_CALL_QUERY && !answer_query(s, &call))) {
            return true;
        }
    }
}

int dt_process_run_worker(const dt_process_worker *w)
{
    server s = {.w = w};
    dt_str spec = {0};
    void *first = NULL;
    const int32_t st = (int32_t)send_spec(&s, w, &first, &spec);
    const char *text = st < 0 ? dt_error_text() : dt_str_text(&spec);
    const size_t bytes = st < 0 ? strlen(text) + 1 : spec.bytes;
    const bool is_sent = dt_wire_send(DT_WIRE_SOCKET, &st, sizeof(st), NULL) == DT_WIRE_OK &&
                         dt_wire_send_message(DT_WIRE_SOCKET, text, bytes, NULL) == DT_WIRE_OK;
    const bool is_well = !is_sent || st < 0 || !map_shared_memory(&s, first) || answer_calls(&s);
    dt_str_fini(&spec);
    dt_layout_fini(&s.l);
    while (is_watched && is_well) { /* the process that ends us ends what we started, too: the host, or its watcher */
        pause();
    }
    return 1;
}
