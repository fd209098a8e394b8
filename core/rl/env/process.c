/* SPDX-License-Identifier: Apache-2.0
 *
 * See process.h: the host's side. Of what a worker wrote only a checked copy of the host's own is ever used.
 */
#include <config.h>

#include "rl/env/process.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "rl/env/check.h"
#include "rl/env/process_log.h"
#include "rl/env/process_spec.h"
#include "rl/env/process_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TAIL_BYTES = 2048,
    READ_AT_ONCE = 64
};                             /* pieces of output, so that a worker that never stops is not waited for */
static const double end_s = 1; /* for an environment to clean up */

struct dt_process {
    dt_process_desc d;
    const dt_layout *l;
    struct dt_process *next; /* of all */
    pid_t pid;               /* 0: none. Leader of a group of its own: what it starts ends with it */
    atomic_int seen;         /* the same, for who only looks */
    int socket, memory, output;
    void *map;
    size_t map_bytes;
    char *spec; /* as the worker sent it */
    void *spec_memory;
    dt_env_spec env_spec;
    uint32_t turn;
    unsigned calls;   /* made of this worker */
    double left_s;    /* when it was ordered to end, 0: it was not */
    uint64_t episode; /* of the reset under way */
    char *kept;       /* the last record that was right */
    uint32_t restarts;
    char tail[TAIL_BYTES]; /* the last of what it wrote */
    size_t tail_bytes;
    dt_process_log log;
};

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static dt_process *list;

static void register_process(dt_process *p)
{
    pthread_mutex_lock(&list_lock);
    p->next = list;
    list = p;
    pthread_mutex_unlock(&list_lock);
}

static void unregister_process(dt_process *p)
{
    pthread_mutex_lock(&list_lock);
    dt_process **at = &list;
    while (*at != NULL && *at != p) {
        at = &(*at)->next;
    }
    *at = *at != NULL ? p->next : NULL;
    pthread_mutex_unlock(&list_lock);
}

uint64_t dt_process_all_bytes(uint32_t *n_p)
{
    uint64_t own = 0, shared = 0, most_shared = 0;
    *n_p = 0;
    pthread_mutex_lock(&list_lock);
    for (const dt_process *p = list; p != NULL; p = p->next) {
        const int pid = atomic_load(&p->seen);
        if (pid > 0) {
            own += dt_own_bytes_of(pid, &shared);
        }
        most_shared = pid > 0 && shared > most_shared ? shared : most_shared;
        *n_p += pid > 0;
    }
    pthread_mutex_unlock(&list_lock);
    return own + most_shared;
}

uint64_t dt_process_bytes(const dt_process *p, uint64_t *shared_p)
{
    *shared_p = 0;
    return p->pid > 0 ? dt_own_bytes_of(p->pid, shared_p) : 0;
}

/* ---- starting and ending a worker -------------------------------------------------------------------------------- */

/* Keeps the end of what the worker wrote. */
static void read_output(dt_process *p)
{
    char text[1024];
    ssize_t n = 0;
    for (int i = 0; i < READ_AT_ONCE && p->output >= 0 && (n = read(p->output, text, sizeof(text))) > 0; i++) {
        const size_t bytes = (size_t)n, room = sizeof(p->tail) - 1;
        const size_t keep = p->tail_bytes + bytes > room ? room - bytes : p->tail_bytes;
        memmove(p->tail, p->tail + p->tail_bytes - keep, keep);
        memcpy(p->tail + keep, text, bytes);
        p->tail_bytes = keep + bytes;
        p->tail[p->tail_bytes] = '\0';
        dt_process_log_add(&p->log, text, bytes);
    }
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Has it ended by itself? It is left as it is: until it is waited for, its process id is not reused. */
static bool has_ended(const dt_process *p)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

/* Ends it, and all that it started and left in its group; the status from waitpid. */
static int kill_worker(dt_process *p)
{
    int status = 0;
    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        (void)kill(p->pid, SIGKILL); /* one that moved to another group */
        atomic_store(&p->seen, 0);
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    p->pid = 0;
    return status;
}

static void end_worker(dt_process *p)
{
    kill_worker(p);
    read_output(p);
    if (p->map != NULL) {
        munmap(p->map, p->map_bytes);
    }
    p->map = NULL;
    close_fd(&p->socket);
    close_fd(&p->memory);
    close_fd(&p->output);
    dt_free(p->spec);
    dt_free(p->spec_memory);
    p->spec = NULL;
    p->spec_memory = NULL;
}

static dt_status spawn(dt_process *p, int theirs, int output)
{
    static char verb[] = DT_PROCESS_VERB, name[] = "dtrain";
    char *const argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t a;
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP); /* of its own */
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&a, output, 1);
    posix_spawn_file_actions_adddup2(&a, output, 2);
    posix_spawn_file_actions_adddup2(&a, theirs, DT_WIRE_SOCKET);
    posix_spawn_file_actions_adddup2(&a, p->memory, DT_WIRE_MEMORY);
    const int reason = posix_spawn(&p->pid, "/proc/self/exe", &a, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&a);
    if (reason != 0) {
        p->pid = 0;
        return DT_FAIL(DT_EUNSUPPORTED, "cannot start a process for environment %s: %s", p->d.id, strerror(reason));
    }
    atomic_store(&p->seen, p->pid);
    return DT_OK;
}

/* Everything a worker inherits lies above the numbers it gets there. */
static int max_of(int fd)
{
    const int up = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 16) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return up;
}

static dt_status open_worker(dt_process *p)
{
    int pair[2] = {-1, -1}, out[2] = {-1, -1};
    const bool is_open =
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0;
    p->memory = max_of(memfd_create("dtrain-env", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    p->socket = max_of(pair[0]);
    p->output = max_of(out[0]);
    int theirs = max_of(pair[1]), output = max_of(out[1]);
    p->calls = 0;
    p->left_s = 0;
    dt_status st = is_open && p->memory >= 0 && p->socket >= 0 && p->output >= 0 && theirs >= 0 && output >= 0
                       ? spawn(p, theirs, output)
                       : DT_FAIL(DT_EUNSUPPORTED, "cannot open what a process for environment %s needs: %s", p->d.id,
                                 strerror(errno));
    close_fd(&theirs);
    close_fd(&output);
    return st;
}

/* Why the worker is no more, with what it wrote last. */
static dt_status report_lost_worker(dt_process *p, const char *how)
{
    read_output(p);
    return DT_FAIL(DT_EIO, "its process %s%s%s", how, p->tail_bytes > 0 ? "; it wrote: " : "", p->tail);
}

/* It does not respond any more: it has ended, is about to, or continues without us, which is not waited for. */
static dt_status worker_died(dt_process *p)
{
    enum { LOOKS = 1000 };
    const struct timespec ms = {.tv_nsec = 1000000};
    char how[96] = "is gone";
    for (int i = 0; i < LOOKS && p->pid > 0 && !has_ended(p); i++) {
        (void)nanosleep(&ms, NULL);
    }
    if (p->pid > 0) {
        const bool was_alive = !has_ended(p);
        const int status = kill_worker(p);
        if (was_alive) {
            snprintf(how, sizeof(how), "closed its connection to the host and continued");
        } else if (WIFSIGNALED(status)) {
            snprintf(how, sizeof(how), "was killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
        } else {
            snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
        }
    }
    return report_lost_worker(p, how);
}

static dt_status interrupted(dt_process *p)
{
    kill_worker(p);
    return DT_FAIL(DT_EINTERRUPTED, "asked to stop while environment %s was running", p->d.id);
}

static bool goes_on(void *user)
{
    dt_process *p = user;
    read_output(p); /* it is never full for long */
    return p->d.stops == NULL || !p->d.stops(p->d.stops_user);
}

static dt_wire_patience deadline_of(dt_process *p)
{
    return (dt_wire_patience){.deadline = dt_clock_s() + p->d.timeout_s, .user = p, .goes_on = goes_on};
}

/* What it means that a message did not come, or go, whole: the worker is of no use any more. */
static dt_status report_missing_message(dt_process *p, dt_wire_result r, const char *what)
{
    char how[96];
    switch (r) {
    case DT_WIRE_STOPPED:
        return interrupted(p);
    case DT_WIRE_NO_MEMORY:
        kill_worker(p);
        return DT_FAIL(DT_ENOMEM, "out of memory for the output of the process of environment %s", p->d.id);
    case DT_WIRE_NONSENSE:
        kill_worker(p);
        return report_lost_worker(p, "wrote over the connection that it has to the host");
    case DT_WIRE_LATE:
        kill_worker(p);
        snprintf(how, sizeof(how), "did not %s within %g s (env.timeout_s)", what, p->d.timeout_s);
        return report_lost_worker(p, how);
    default:
        return worker_died(p);
    }
}

/* What a worker may say that it failed of; what else there is is the host's own. */
static dt_status check_answer(int32_t status)
{
    const bool is_possible = (status >= DT_EDATA && status <= DT_EINVAL) || status == DT_ENOMEM || status == DT_EIO ||
                             status == DT_EUNSUPPORTED || status >= 0;
    return is_possible ? (dt_status)status : DT_EPLUGIN;
}

static dt_status send_request(dt_process *p)
{
    const dt_wire_patience patience = deadline_of(p);
    const dt_wire_result r = dt_wire_send_message(p->socket, p->d.request, p->d.request_bytes, &patience);
    return r == DT_WIRE_OK ? DT_OK : report_missing_message(p, r, "listen");
}

/* The answer to the request: a spec, or why there is none. */
static dt_status receive_spec(dt_process *p)
{
    const dt_wire_patience patience = deadline_of(p);
    uint64_t bytes = 0;
    int32_t status = 0;
    dt_wire_result r = dt_wire_receive(p->socket, &status, sizeof(status), &patience);
    r = r == DT_WIRE_OK ? dt_wire_receive_message(p->socket, &p->spec, &bytes, &patience) : r;
    if (r != DT_WIRE_OK) {
        return report_missing_message(p, r, "describe itself");
    }
    read_output(p);
    if (status < 0) {
        return DT_FAIL(check_answer(status), "%s", p->spec);
    }
    return dt_spec_read(p->spec, bytes, &p->env_spec, &p->spec_memory);
}

dt_status dt_process_start(const dt_process_desc *d, dt_process **out_p)
{
    dt_process *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for environment %s", d->id);
    }
    p->d = *d;
    p->socket = p->memory = p->output = -1;
    dt_status st = open_worker(p);
    if (st == DT_OK) {
        st = send_request(p);
    }
    if (st < 0) {
        end_worker(p);
        dt_free(p);
        return DT_CONTEXT(st, "creating %s in a process", d->id);
    }
    register_process(p);
    *out_p = p;
    return DT_OK;
}

dt_status dt_process_receive_spec(dt_process *p)
{
    const dt_status st = receive_spec(p);
    return st < 0 ? DT_CONTEXT(st, "creating %s in a process", p->d.id) : DT_OK;
}

dt_status dt_process_attach(dt_process *p, const dt_layout *l)
{
    const uint64_t bytes = DT_WIRE_CONTROL_BYTES + 2 * l->record_bytes;
    p->l = l;
    p->kept = p->kept != NULL ? p->kept : dt_alloc(l->record_bytes);
    if (p->kept == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for environment %s", p->d.id);
    }
    /* sealed: who makes it shorter takes pages away under the host */
    const bool has_bytes = ftruncate(p->memory, (off_t)bytes) == 0 &&
                           fcntl(p->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    void *map = has_bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0) : MAP_FAILED;
    if (map == MAP_FAILED) {
        return DT_FAIL(DT_ENOMEM, "cannot share %llu bytes with environment %s: %s", (unsigned long long)bytes, p->d.id,
                       strerror(errno));
    }
    p->map = map;
    p->map_bytes = bytes;
    const dt_wire_patience patience = deadline_of(p);
    const dt_wire_result r = dt_wire_send_message(p->socket, &bytes, sizeof(bytes), &patience);
    return r == DT_WIRE_OK ? DT_OK : report_missing_message(p, r, "listen");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static char *record_of(const dt_process *p, uint32_t which)
{
    return (char *)p->map + DT_WIRE_CONTROL_BYTES + which * p->l->record_bytes;
}

static void post_call(dt_process *p, uint32_t what, uint64_t seed)
{
    dt_wire_control *c = p->map;
    c->call = what;
    c->seed = seed;
    c->episode = p->episode;
    c->record = p->turn;
    atomic_store(&c->asked, ++p->calls);
    dt_wire_wake(&c->asked);
}

/* Until the worker has answered the call just made. */
static dt_status wait_for_answer(dt_process *p)
{
    dt_wire_control *c = p->map;
    const dt_wire_patience patience = deadline_of(p);
    for (;;) {
        unsigned answered = atomic_load(&c->answered);
        if (answered == p->calls) {
            return DT_OK;
        }
        if (answered != p->calls - 1) {
            kill_worker(p);
            return report_lost_worker(p, "wrote over the memory that it shares with the host");
        }
        dt_wire_sleep(&c->answered, answered, 0.05);
        if (atomic_load(&c->answered) != answered) {
            continue;
        }
        if (!goes_on(p)) {
            return interrupted(p);
        }
        if (has_ended(p) && atomic_load(&c->answered) == answered) {
            return worker_died(p);
        }
        if (dt_clock_s() > patience.deadline) {
            return report_missing_message(p, DT_WIRE_LATE, "answer");
        }
    }
}

/* One call; DT_EIO when the worker is lost. */
static dt_status call_worker(dt_process *p, uint32_t what, uint64_t seed)
{
    const dt_wire_control *c = p->map;
    if (p->pid == 0) { /* lost before */
        return worker_died(p);
    }
    post_call(p, what, seed);
    DT_TRY(wait_for_answer(p));
    const int32_t status = *(const volatile int32_t *)&c->status; /* once: it may change */
    if (status < 0) {
        char text[DT_WIRE_ERROR_BYTES];
        memcpy(text, c->error, sizeof(text));
        text[sizeof(text) - 1] = '\0';
        return DT_FAIL(status == DT_EIO ? DT_EPLUGIN : check_answer(status), "%s", text);
    }
    return (dt_status)status;
}

dt_status dt_process_query(dt_process *p, uint32_t what, char **answer_p, uint64_t *bytes_p)
{
    DT_TRY(call_worker(p, DT_CALL_ASK, what));
    const dt_wire_patience patience = deadline_of(p);
    const dt_wire_result r = dt_wire_receive_message(p->socket, answer_p, bytes_p, &patience);
    if (r != DT_WIRE_OK) {
        const dt_status st = report_missing_message(p, r, "answer a request");
        kill_worker(p); /* the rest of an answer would be taken for the next one */
        return st;
    }
    return DT_OK;
}

/* Another worker, while there are restarts left. */
static dt_status restart(dt_process *p)
{
    const dt_layout *l = p->l;
    char why[1024];
    snprintf(why, sizeof(why), "%s", dt_error_text());
    if (p->restarts == p->d.restarts) {
        return DT_FAIL(DT_EIO, "%s; it was restarted %u times before, which is all env.restarts allows", why,
                       p->restarts);
    }
    p->restarts++;
    atomic_fetch_add(p->d.n_restarts, 1);
    dt_log(DT_LOG_WARN,
           "environment %s: %s. Its episode counts as truncated, a new process begins the next one (restart %u of %u); "
           "from now on the run is not reproducible",
           p->d.id, why, p->restarts, p->d.restarts);
    end_worker(p);
    p->tail_bytes = 0;
    p->tail[0] = '\0';
    DT_TRY(open_worker(p));
    DT_TRY(send_request(p));
    DT_TRY(receive_spec(p));
    DT_TRY(dt_layout_compare(l, &p->env_spec));
    return dt_process_attach(p, l);
}

/* A copy of what the worker wrote goes to the caller, and is checked there. */
static dt_status take_record(dt_process *p, const dt_env_io *io, const uint8_t *acted, bool is_over)
{
    const dt_layout *l = p->l;
    const size_t bytes = l->mask + (size_t)l->spec.n_agents * l->n_choices;
    char *record = io->obs[0]; /* observations come first */
    memcpy(record, record_of(p, p->turn), bytes);
    DT_TRY(dt_check_record(l, record, acted, is_over));
    memcpy(p->kept, record, bytes);
    return DT_OK;
}

static dt_status process_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    dt_process *p = self;
    p->episode = io->episode;
    for (;;) {
        p->turn ^= 1;
        dt_status st = call_worker(p, DT_CALL_RESET, seed);
        if (st == DT_OK) {
            st = take_record(p, io, NULL, false);
        }
        if (st != DT_EIO) {
            return st;
        }
        DT_TRY(restart(p));
    }
}

/* What the agents saw last stays; rewards are 0. */
static void truncate_episode(const dt_process *p, const dt_env_io *io)
{
    const dt_layout *l = p->l;
    char *record = io->obs[0];
    memcpy(record, p->kept, l->reward);
    memset(record + l->reward, 0, l->out_bytes - l->reward);
    memset(record + l->mask, 1, (size_t)l->spec.n_agents * l->n_choices);
    memcpy(io->truncated, p->kept + l->alive, l->spec.n_agents);
    memset(io->alive, 0, l->spec.n_agents);
    for (uint32_t m = 0; m < l->spec.n_metrics; m++) {
        io->metric[m] = NAN;
    }
}

static dt_status process_step(void *self, const dt_env_io *io)
{
    dt_process *p = self;
    const dt_layout *l = p->l;
    p->turn ^= 1;
    char *record = record_of(p, p->turn);
    memcpy(record + l->act_i, io->act_i, l->act_f - l->act_i);
    memcpy(record + l->act_f, io->act_f, l->record_bytes - l->act_f);
    const dt_status st = call_worker(p, DT_CALL_STEP, 0);
    const dt_status right = st >= 0 ? take_record(p, io, (const uint8_t *)p->kept + l->alive, st == DT_DONE) : st;
    if (right >= 0 || (st < 0 && st != DT_EIO)) {
        return st;
    }
    truncate_episode(p, io);
    DT_TRY(restart(p));
    return DT_DONE;
}

static dt_status process_spec(const void *self, dt_env_spec *out)
{
    *out = ((const dt_process *)self)->env_spec;
    return DT_OK;
}

void dt_process_begin_end(dt_process *p)
{
    if (p->map != NULL && p->pid > 0 && p->left_s == 0) {
        p->left_s = dt_clock_s();
        post_call(p, DT_CALL_END, 0);
    }
}

static void process_destroy(void *self)
{
    dt_process *p = self;
    dt_process_begin_end(p);
    if (p->left_s > 0) { /* let it clean up, but do not wait for long */
        dt_wire_control *c = p->map;
        for (double left = end_s; left > 0 && atomic_load(&c->answered) == p->calls - 1 && !has_ended(p);
             left = p->left_s + end_s - dt_clock_s()) {
            dt_wire_sleep(&c->answered, p->calls - 1, left < 0.05 ? left : 0.05);
        }
    }
    unregister_process(p);
    end_worker(p);
    dt_free(p->kept);
    dt_free(p);
}

const dt_env_ops dt_process_ops = {.struct_size = sizeof(dt_env_ops),
                                   .spec = process_spec,
                                   .reset = process_reset,
                                   .step = process_step,
                                   .destroy = process_destroy};
