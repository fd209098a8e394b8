/* SPDX-License-Identifier: Apache-2.0
 *
 * See process.h: the worker's side, and the thread that ends it with its host.
 */
#include <config.h>

#include "rl/env/process.h"

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
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
static void end_group(void)
{
    (void)kill(getpgrp() == getpid() ? 0 : getpid(), SIGKILL);
    _exit(1);
}

/* Whatever the environment does at that time, in a step of its own or in a library's loop: it ends with the host. Who
 * is the parent is what counts; the file only signals when to check. An environment may close files that it does
 * not know, and get their numbers for its own: a descriptor with false results is ignored from then on. */
static void *watch(void *arg)
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
    end_group();
    return NULL;
}

/* The host is who made the socket, even if it is gone by now. */
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
    const int reason = pthread_create(&thread, &a, watch, &host);
    pthread_attr_destroy(&a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason == 0 ? DT_OK : DT_FAIL(DT_EUNSUPPORTED, "cannot start a thread: %s", strerror(reason));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef struct server {
    const dt_process_worker *w;
    const dt_env_ops *ops;
    void *self;
    dt_layout l;
    char *map;
    dt_env_io io[2];
    void *obs[2][DT_ENV_MAX_OBS];
} server;

static bool is_watched;

static dt_status describe(server *s, dt_str *out)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    DT_TRY_PLUGIN(s->ops->spec(s->self, &spec), "spec");
    DT_TRY(dt_layout_init(&s->l, "the environment", &spec));
    return dt_spec_write(&spec, out);
}

static dt_status send_spec(server *s, const dt_process_worker *w, dt_str *out)
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
    dt_status st = w->make(w->user, request, bytes, &s->ops, &s->self);
    if (st >= 0) {
        st = describe(s, out);
    }
    dt_free(request);
    return st;
}

static bool map_shared_memory(server *s)
{
    uint64_t bytes = 0;
    char *message = NULL;
    if (dt_wire_receive_message(DT_WIRE_SOCKET, &message, &bytes, NULL) != DT_WIRE_OK || bytes != sizeof(bytes)) {
        dt_free(message);
        return false;
    }
    memcpy(&bytes, message, sizeof(bytes));
    dt_free(message);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, DT_WIRE_MEMORY, 0);
    s->map = map;
    if (map != MAP_FAILED) {
        for (int i = 0; i < 2; i++) {
            dt_layout_io(&s->l, s->map + DT_WIRE_CONTROL_BYTES + (size_t)i * s->l.record_bytes, s->obs[i], &s->io[i]);
        }
    }
    return map != MAP_FAILED;
}

static dt_status run_call(server *s, const dt_wire_control *c)
{
    dt_env_io io = s->io[c->record & 1];
    char *record = io.obs[0];
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_error_clear();
    memset(record, 0, s->l.out_bytes);
    memset(record + s->l.mask, 1, (size_t)s->l.spec.n_agents * s->l.n_choices);
    if (c->call == DT_CALL_STEP) {
        return dt_fault("env.step") ? DT_FAIL(DT_EPLUGIN, "the step failed on purpose") : s->ops->step(s->self, &io);
    }
    io.act_i = NULL;
    io.act_f = NULL;
    io.episode = c->episode;
    DT_TRY_PLUGIN(s->ops->reset(s->self, &io, c->seed), "reset");
    DT_TRY_PLUGIN(s->ops->spec(s->self, &spec), "spec");
    return dt_layout_compare(&s->l, &spec);
}

static bool answer_query(server *s, uint32_t what)
{
    dt_str out = {0};
    if (s->w->tell != NULL) {
        s->w->tell(s->w->user, s->self, what, &out);
    }
    const bool is_told = dt_str_status(&out) == DT_OK &&
                         dt_wire_send_message(DT_WIRE_SOCKET, dt_str_text(&out), out.bytes, NULL) == DT_WIRE_OK;
    dt_str_fini(&out);
    return is_told;
}

/* Waits for call n. false: another process overwrote the memory that the host shares. */
static bool wait_for_call(dt_wire_control *c, unsigned n)
{
    for (;;) {
        const unsigned asked = atomic_load(&c->asked);
        if (asked != n - 1) {
            return asked == n;
        }
        dt_wire_sleep(&c->asked, n - 1, 60);
    }
}

static bool answer_calls(server *s)
{
    dt_wire_control *c = (dt_wire_control *)(void *)s->map;
    for (unsigned n = 1;; n++) {
        if (!wait_for_call(c, n)) {
            fprintf(stderr, "the memory shared with the host was written over\n");
            return false;
        }
        const uint32_t called = c->call, what = (uint32_t)c->seed; /* once answered, they are the next call's */
        if (called == DT_CALL_ASK) {
            c->status = DT_OK;
        } else if (called != DT_CALL_END) {
            c->status = (int32_t)run_call(s, c);
            snprintf(c->error, sizeof(c->error), "%s", dt_error_text()[0] != '\0' ? dt_error_text() : "it failed");
        } else {
            s->ops->destroy(s->self);
        }
        atomic_store(&c->answered, n);
        dt_wire_wake(&c->answered);
        if (called == DT_CALL_END || (called == DT_CALL_ASK && !answer_query(s, what))) {
            return true;
        }
    }
}

int dt_process_serve(const dt_process_worker *w)
{
    server s = {.w = w};
    dt_str spec = {0};
    const int32_t st = (int32_t)send_spec(&s, w, &spec);
    const char *text = st < 0 ? dt_error_text() : dt_str_text(&spec);
    const size_t bytes = st < 0 ? strlen(text) + 1 : spec.bytes;
    const bool is_told = dt_wire_send(DT_WIRE_SOCKET, &st, sizeof(st), NULL) == DT_WIRE_OK &&
                         dt_wire_send_message(DT_WIRE_SOCKET, text, bytes, NULL) == DT_WIRE_OK;
    const bool is_well = !is_told || st < 0 || !map_shared_memory(&s) || answer_calls(&s);
    dt_str_fini(&spec);
    dt_layout_fini(&s.l);
    while (is_watched && is_well) { /* the process that ends us ends what we started, too: the host, or its watcher */
        pause();
    }
    return 1;
}
