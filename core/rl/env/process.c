/* SPDX-License-Identifier: Apache-2.0
 *
 * See process_inner.h: the life of a worker.
 */
#include <config.h>

#include "rl/env/process_inner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "rl/env/process_spec.h"

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

enum { READ_AT_ONCE = 64 };    /* pieces of output, so that a worker that never stops is not waited for */
static const double end_s = 1; /* for an environment to clean up */

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
            own += dt_private_bytes_of(pid, &shared);
        }
        most_shared = pid > 0 && shared > most_shared ? shared : most_shared;
        *n_p += pid > 0;
    }
    pthread_mutex_unlock(&list_lock);
    return own + most_shared;
}

uint64_t dt_process_bytes(const dt_process_instance *x, uint64_t *shared_p)
{
    const dt_process *p = x->p;
    *shared_p = 0;
    return p->pid > 0 ? dt_private_bytes_of(p->pid, shared_p) : 0;
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
bool dt_process_has_ended(const dt_process *p)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

/* Ends it, and all that it started and left in its group; the status from waitpid. */
int dt_process_kill(dt_process *p)
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

void dt_process_close(dt_process *p)
{
    dt_process_kill(p);
    read_output(p);
    if (p->map != NULL) {
        munmap(p->map, p->m.bytes);
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

static dt_status spawn_worker(dt_process *p, int theirs, int output)
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

/* Everything a worker inherits is above the numbers it gets there. */
static int move_fd_up(int fd)
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
    p->memory = move_fd_up(memfd_create("dtrain-env", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    p->socket = move_fd_up(pair[0]);
    p->output = move_fd_up(out[0]);
    int theirs = move_fd_up(pair[1]), output = move_fd_up(out[1]);
    p->pushed = p->asked = p->answered = p->begun = 0;
    p->n_flushes = 0;
    p->left_s = 0;
    p->generation++;
    dt_status st = is_open && p->memory >= 0 && p->socket >= 0 && p->output >= 0 && theirs >= 0 && output >= 0
                       ? spawn_worker(p, theirs, output)
                       : DT_FAIL(DT_EUNSUPPORTED, "cannot open what a process for environment %s needs: %s", p->d.id,
                                 strerror(errno));
    close_fd(&theirs);
    close_fd(&output);
    return st;
}

/* Why the worker is no more, with what it wrote last. */
static dt_status report_lost(dt_process *p, const char *how)
{
    read_output(p);
    return DT_FAIL(DT_EIO, "its process %s%s%s", how, p->tail_bytes > 0 ? "; it wrote: " : "", p->tail);
}

/* It does not respond any more: it has ended, is about to, or continues without us, which is not waited for. */
dt_status dt_process_died(dt_process *p)
{
    enum { LOOKS = 1000 };
    const struct timespec ms = {.tv_nsec = 1000000};
    char how[96] = "is gone";
    for (int i = 0; i < LOOKS && p->pid > 0 && !dt_process_has_ended(p); i++) {
        (void)nanosleep(&ms, NULL);
    }
    if (p->pid > 0) {
        const bool was_alive = !dt_process_has_ended(p);
        const int status = dt_process_kill(p);
        if (was_alive) {
            snprintf(how, sizeof(how), "closed its connection to the host and continued");
        } else if (WIFSIGNALED(status)) {
            snprintf(how, sizeof(how), "was killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
        } else {
            snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
        }
    }
    return report_lost(p, how);
}

dt_status dt_process_overwritten(dt_process *p)
{
    dt_process_kill(p);
    return report_lost(p, "wrote over the memory that it shares with the host");
}

dt_status dt_process_interrupt(dt_process *p)
{
    dt_process_kill(p);
    p->is_given_up = true;
    return DT_FAIL(DT_EINTERRUPTED, "asked to stop while environment %s was running", p->d.id);
}

bool dt_process_goes_on(void *user)
{
    dt_process *p = user;
    read_output(p); /* it is never full for long */
    return p->d.stops == NULL || !p->d.stops(p->d.stops_user);
}

dt_wire_patience dt_process_patience(dt_process *p, double timeout_s)
{
    p->timeout_s = timeout_s;
    return (dt_wire_patience){.deadline = dt_clock_s() + timeout_s, .user = p, .goes_on = dt_process_goes_on};
}

/* What it means that a message did not come, or go, whole: the worker is of no use any more. */
dt_status dt_process_missing_message(dt_process *p, dt_wire_result r, const char *what)
{
    char how[96];
    switch (r) {
    case DT_WIRE_STOPPED:
        return dt_process_interrupt(p);
    case DT_WIRE_NO_MEMORY:
        dt_process_kill(p);
        return DT_FAIL(DT_ENOMEM, "out of memory for the output of the process of environment %s", p->d.id);
    case DT_WIRE_NONSENSE:
        dt_process_kill(p);
        return report_lost(p, "wrote over the connection that it has to the host");
    case DT_WIRE_LATE:
        dt_process_kill(p);
        snprintf(how, sizeof(how), "did not %s within %g s (%s)", what, p->timeout_s,
                 p->timeout_s == p->d.timeout_s ? "env.timeout_s" : "env.startup_timeout_s");
        return report_lost(p, how);
    default:
        return dt_process_died(p);
    }
}

/* What a worker may say that it failed of; what else there is is the host's own. */
dt_status dt_process_check_status(int32_t status)
{
    const bool is_possible = (status >= DT_EDATA && status <= DT_EINVAL) || status == DT_ENOMEM || status == DT_EIO ||
                             status == DT_EUNSUPPORTED || status == DT_EBROKEN || status >= 0;
    return is_possible ? (dt_status)status : DT_EPLUGIN;
}

static dt_status send_request(dt_process *p)
{
    const dt_wire_patience patience = dt_process_patience(p, p->d.timeout_s);
    const dt_wire_result r = dt_wire_send_message(p->socket, p->d.request, p->d.request_bytes, &patience);
    return r == DT_WIRE_OK ? DT_OK : dt_process_missing_message(p, r, "listen");
}

dt_status dt_process_open(dt_process *p)
{
    DT_TRY(open_worker(p));
    return send_request(p);
}

/* The answer to the request: a spec, or why there is none. */
dt_status dt_process_take_spec(dt_process *p)
{
    const dt_wire_patience patience = dt_process_patience(p, p->d.startup_s);
    uint64_t bytes = 0;
    int32_t status = 0;
    dt_wire_result r = dt_wire_receive(p->socket, &status, sizeof(status), &patience);
    r = r == DT_WIRE_OK ? dt_wire_receive_message(p->socket, &p->spec, &bytes, &patience) : r;
    if (r != DT_WIRE_OK) {
        return dt_process_missing_message(p, r, "describe itself");
    }
    read_output(p);
    if (status < 0) {
        return DT_FAIL(dt_process_check_status(status), "%s", p->spec);
    }
    return dt_spec_read(p->spec, bytes, &p->env_spec, &p->spec_memory);
}

static dt_status allocate_process(dt_process *p)
{
    p->instance = dt_alloc_n(p->d.places, sizeof(*p->instance));
    if (p->instance == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u instances of %s", p->d.places, p->d.id);
    }
    for (uint32_t i = 0; i < p->d.places; i++) {
        p->instance[i].p = p;
        p->instance[i].place = i;
    }
    p->instance[0].is_used = true;
    p->n_used = 1;
    return DT_OK;
}

static void free_process(dt_process *p)
{
    dt_process_close(p);
    for (uint32_t i = 0; i < p->d.places && p->instance != NULL; i++) {
        dt_free(p->instance[i].kept);
        dt_free(p->instance[i].log);
        dt_free(p->instance[i].repeated);
    }
    dt_free(p->instance);
    dt_free(p->sent);
    dt_free(p);
}

dt_status dt_process_start(const dt_process_desc *d, dt_process_instance **first_p)
{
    dt_process *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for environment %s", d->id);
    }
    p->d = *d;
    p->socket = p->memory = p->output = -1;
    dt_status st = allocate_process(p);
    if (st == DT_OK) {
        st = dt_process_open(p);
    }
    if (st < 0) {
        free_process(p);
        return DT_CONTEXT(st, "creating %s in a process", d->id);
    }
    register_process(p);
    *first_p = &p->instance[0];
    return DT_OK;
}

dt_status dt_process_receive_spec(dt_process_instance *first)
{
    const dt_status st = dt_process_take_spec(first->p);
    return st < 0 ? DT_CONTEXT(st, "creating %s in a process", first->p->d.id) : DT_OK;
}

dt_status dt_process_map(dt_process *p, const dt_layout *l)
{
    const uint64_t bytes = p->m.bytes;
    const uint64_t message[2] = {bytes, p->d.places};
    p->l = l;
    /* sealed: a worker that makes it shorter takes pages away under the host */
    const bool has_bytes = bytes <= INT64_MAX && ftruncate(p->memory, (off_t)bytes) == 0 &&
                           fcntl(p->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    void *map = has_bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0) : MAP_FAILED;
    if (map == MAP_FAILED) {
        return DT_FAIL(DT_ENOMEM, "cannot share %llu bytes with environment %s: %s", (unsigned long long)bytes, p->d.id,
                       strerror(errno));
    }
    p->map = map;
    const dt_wire_patience patience = dt_process_patience(p, p->d.timeout_s);
    const dt_wire_result r = dt_wire_send_message(p->socket, message, sizeof(message), &patience);
    return r == DT_WIRE_OK ? DT_OK : dt_process_missing_message(p, r, "listen");
}

dt_status dt_process_attach(dt_process_instance *first, const dt_layout *l)
{
    dt_process *p = first->p;
    const bool is_counted = dt_wire_map_init(&p->m, p->d.places, l->record_bytes);
    if (!is_counted || p->m.bytes > p->d.ring_bytes) {
        return DT_FAIL(DT_ECONFIG,
                       "the ring of a process with %u instances of %s needs %.4g MB, but env.ring_mb = %.4g; raise "
                       "env.ring_mb, or raise env.workers so that a process has fewer instances",
                       p->d.places, p->d.id, is_counted ? (double)p->m.bytes / 1e6 : (double)INFINITY,
                       (double)p->d.ring_bytes / 1e6);
    }
    p->sent = dt_alloc_n((size_t)p->m.mask + 1, sizeof(*p->sent));
    if (p->sent == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for environment %s", p->d.id);
    }
    return dt_process_map(p, l);
}

bool dt_process_is_attached(const dt_process_instance *x)
{
    return x->p->map != NULL;
}

uint32_t dt_process_push(dt_process *p, const dt_wire_call *call)
{
    const uint32_t number = ++p->pushed;
    p->sent[number & p->m.mask] = *call;
    *dt_wire_ring(&p->m, p->map, number) = *call;
    return number;
}

/* The worker sets worker_sleeps and looks at asked again before it sleeps: one of the two sees the other's store. */
void dt_process_flush(dt_process *p)
{
    dt_wire_control *c = dt_process_control(p);
    if (p->asked == p->pushed) {
        return;
    }
    p->asked = p->pushed;
    p->flush[p->n_flushes++ % DT_PROCESS_FLUSHES] = p->asked;
    atomic_store(&c->asked, p->asked);
    if (atomic_load(&c->worker_sleeps) != 0) {
        dt_wire_wake(&c->asked);
    }
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void dt_process_begin_shutdown(dt_process_instance *x)
{
    dt_process *p = x->p;
    x->is_ending = true;
    for (uint32_t i = 0; i < p->d.places; i++) {
        if (p->instance[i].is_used && !p->instance[i].is_ending) {
            return;
        }
    }
    if (p->map != NULL && p->pid > 0 && p->left_s == 0) {
        p->left_s = dt_clock_s();
        (void)dt_process_push(p, &(dt_wire_call){.call = DT_CALL_END});
        dt_process_flush(p);
    }
}

/* Lets it clean up, but does not wait for long. */
static void wait_for_end(const dt_process *p)
{
    dt_wire_control *c = dt_process_control(p);
    for (double left = end_s; left > 0; left = p->left_s + end_s - dt_clock_s()) {
        const unsigned answered = atomic_load(&c->answered);
        if (answered == p->asked || dt_process_has_ended(p)) {
            return;
        }
        atomic_store(&c->host_target, p->asked);
        atomic_store(&c->host_sleeps, 1);
        if (atomic_load(&c->answered) == answered) {
            dt_wire_sleep(&c->answered, answered, left < 0.05 ? left : 0.05);
        }
        atomic_store(&c->host_sleeps, 0);
    }
}

void dt_process_destroy(void *self)
{
    dt_process_instance *x = self;
    dt_process *p = x->p;
    dt_process_begin_shutdown(x);
    x->is_used = x->is_ending = false;
    if (--p->n_used > 0) {
        return;
    }
    if (p->left_s > 0) {
        wait_for_end(p);
    }
    unregister_process(p);
    free_process(p);
}
