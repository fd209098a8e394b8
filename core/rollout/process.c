/* SPDX-License-Identifier: Apache-2.0
 *
 * See process.h.
 */
#include <config.h>

#include "rollout/process.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "rollout/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FD_SOCKET = 3, FD_MEMORY = 4, SPINS = 2000, TAIL_BYTES = 2048, ERROR_BYTES = 4096 };
enum { CONTROL_BYTES = 8192 }; /* before the records: two, used in turns */
enum { CALL_RESET = 1, CALL_STEP, CALL_END, CALL_ASK };

typedef struct control {         /* shared */
    atomic_uint asked, answered; /* calls so far */
    uint32_t call, record;       /* which of the two records */
    uint64_t seed;
    int32_t status;
    char error[ERROR_BYTES];
} control;

struct dt_process {
    dt_process_desc d;
    const dt_layout *l;
    pid_t pid; /* 0: none */
    int socket, memory, output;
    void *map;
    size_t map_bytes;
    char *spec; /* as the worker sent it */
    dt_port *port;
    dt_env_spec env_spec;
    uint32_t turn;
    uint32_t restarts;
    char tail[TAIL_BYTES]; /* the last of what it wrote */
    size_t tail_bytes;
};

uint64_t dt_process_rss_bytes(const dt_process *p)
{
    return p->pid > 0 ? dt_rss_bytes_of(p->pid) : 0;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Until *word is no longer old, or slice_s is over. */
static void sleep_on(atomic_uint *word, unsigned old, double slice_s)
{
    const struct timespec t = {.tv_sec = (time_t)slice_s, .tv_nsec = (long)(1e9 * (slice_s - (double)(time_t)slice_s))};
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) {
            return;
        }
    }
    (void)syscall(SYS_futex, word, FUTEX_WAIT, old, &t, NULL, 0);
}

static void wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- messages over the socket ------------------------------------------------------------------------------------ */

static bool send_all(int fd, const void *p, size_t bytes)
{
    for (const char *at = p; bytes > 0;) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *p, size_t bytes)
{
    for (char *at = p; bytes > 0;) {
        const ssize_t n = recv(fd, at, bytes, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool send_message(int fd, const void *p, uint64_t bytes)
{
    return send_all(fd, &bytes, sizeof(bytes)) && send_all(fd, p, bytes);
}

/* NULL: the other side is gone, or memory is. */
static char *receive_message(int fd, uint64_t *bytes_p)
{
    enum { MOST = 1 << 24 };
    uint64_t bytes = 0;
    if (!receive_all(fd, &bytes, sizeof(bytes)) || bytes > MOST) {
        return NULL;
    }
    char *p = dt_alloc(bytes + 1);
    if (p != NULL && !receive_all(fd, p, bytes)) {
        dt_free(p);
        return NULL;
    }
    *bytes_p = bytes;
    return p;
}

/* ---- a spec as bytes: the struct, then what it points to, member by member, in multiples of 8 -------------------- */

static void put(dt_str *out, const void *p, size_t bytes)
{
    static const char zeros[8];
    dt_str_add_n(out, p != NULL ? p : zeros, p != NULL ? bytes : 0);
    dt_str_add_n(out, zeros, (8 - bytes % 8) % 8);
}

static void put_text(dt_str *out, const char *s)
{
    put(out, s, strlen(s) + 1);
}

static dt_status put_spec(const dt_env_spec *s, dt_str *out)
{
    dt_layout l; /* a spec that is not legal cannot be sent */
    const dt_status st = dt_layout_init(&l, "the environment", s);
    dt_layout_fini(&l);
    DT_TRY(st);
    put(out, s, sizeof(*s));
    for (uint32_t i = 0; i < s->n_obs; i++) {
        put(out, &s->obs[i], sizeof(s->obs[i]));
        put_text(out, s->obs[i].name);
        put_text(out, s->obs[i].dims);
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        put(out, &s->symbols[k], sizeof(s->symbols[k]));
        put_text(out, s->symbols[k].name);
    }
    put(out, s->choices, s->n_heads * sizeof(*s->choices));
    put(out, s->low, s->n_continuous * sizeof(*s->low));
    put(out, s->high, s->n_continuous * sizeof(*s->high));
    for (uint32_t k = 0; k < s->n_costs; k++) {
        put_text(out, s->costs[k]);
    }
    for (uint32_t k = 0; k < s->n_metrics; k++) {
        put_text(out, s->metrics[k]);
    }
    return dt_str_status(out);
}

static void *get(char **at, size_t bytes)
{
    void *p = *at;
    *at += (bytes + 7) / 8 * 8;
    return p;
}

static const char *get_text(char **at)
{
    return get(at, strlen(*at) + 1);
}

/* The same back; it comes from this very program, and points into its bytes. */
static dt_status get_spec(dt_process *p, char *at)
{
    dt_env_spec *s = &p->env_spec;
    memcpy(s, get(&at, sizeof(*s)), sizeof(*s));
    const size_t names = s->n_costs + s->n_metrics;
    p->port = dt_alloc(s->n_obs * sizeof(dt_port) + s->n_symbols * sizeof(dt_dim) + names * sizeof(char *));
    if (p->port == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the spec of %s", p->d.id);
    }
    dt_dim *symbol = (dt_dim *)(void *)(p->port + s->n_obs);
    const char **name = (const char **)(void *)(symbol + s->n_symbols);
    for (uint32_t i = 0; i < s->n_obs; i++) {
        memcpy(&p->port[i], get(&at, sizeof(dt_port)), sizeof(dt_port));
        p->port[i].name = get_text(&at);
        p->port[i].dims = get_text(&at);
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        memcpy(&symbol[k], get(&at, sizeof(dt_dim)), sizeof(dt_dim));
        symbol[k].name = get_text(&at);
    }
    s->obs = p->port;
    s->symbols = symbol;
    s->choices = get(&at, s->n_heads * sizeof(*s->choices));
    s->low = get(&at, s->n_continuous * sizeof(*s->low));
    s->high = get(&at, s->n_continuous * sizeof(*s->high));
    for (size_t k = 0; k < names; k++) {
        name[k] = get_text(&at);
    }
    s->costs = name;
    s->metrics = name + s->n_costs;
    return DT_OK;
}

/* ---- starting and ending a worker -------------------------------------------------------------------------------- */

/* Keeps the end of what the worker wrote. */
static void read_output(dt_process *p)
{
    char text[1024];
    ssize_t n = 0;
    while (p->output >= 0 && (n = read(p->output, text, sizeof(text))) > 0) {
        const size_t bytes = (size_t)n, room = sizeof(p->tail) - 1;
        const size_t keep = p->tail_bytes + bytes > room ? room - bytes : p->tail_bytes;
        memmove(p->tail, p->tail + p->tail_bytes - keep, keep);
        memcpy(p->tail + keep, text, bytes);
        p->tail_bytes = keep + bytes;
        p->tail[p->tail_bytes] = '\0';
    }
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static void kill_worker(dt_process *p)
{
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    p->pid = 0;
}

static void end_worker(dt_process *p)
{
    kill_worker(p);
    if (p->map != NULL) {
        munmap(p->map, p->map_bytes);
    }
    p->map = NULL;
    close_fd(&p->socket);
    close_fd(&p->memory);
    close_fd(&p->output);
    dt_free(p->spec);
    dt_free(p->port);
    p->spec = NULL;
    p->port = NULL;
}

static dt_status spawn(dt_process *p, int theirs, int output)
{
    static char verb[] = DT_PROCESS_VERB, name[] = "dtrain";
    char *const argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t a;
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&a, output, 1);
    posix_spawn_file_actions_adddup2(&a, output, 2);
    posix_spawn_file_actions_adddup2(&a, theirs, FD_SOCKET);
    posix_spawn_file_actions_adddup2(&a, p->memory, FD_MEMORY);
    const int reason = posix_spawn(&p->pid, "/proc/self/exe", &a, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&a);
    if (reason != 0) {
        p->pid = 0;
        return DT_FAIL(DT_EUNSUPPORTED, "cannot start a process for environment %s: %s", p->d.id, strerror(reason));
    }
    return DT_OK;
}

/* Everything a worker inherits lies above the numbers it gets there. */
static int above(int fd)
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
    p->memory = above(memfd_create("dtrain-env", MFD_CLOEXEC));
    p->socket = above(pair[0]);
    p->output = above(out[0]);
    int theirs = above(pair[1]), output = above(out[1]);
    dt_status st = is_open && p->memory >= 0 && p->socket >= 0 && p->output >= 0 && theirs >= 0 && output >= 0
                       ? spawn(p, theirs, output)
                       : DT_FAIL(DT_EUNSUPPORTED, "cannot open what a process for environment %s needs: %s", p->d.id,
                                 strerror(errno));
    close_fd(&theirs);
    close_fd(&output);
    return st;
}

/* What became of it, with what it wrote last. */
static dt_status worker_died(dt_process *p)
{
    char how[64] = "is gone";
    int status = 0;
    if (p->pid > 0 && waitpid(p->pid, &status, 0) == p->pid) {
        p->pid = 0;
        if (WIFSIGNALED(status)) {
            snprintf(how, sizeof(how), "was killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
        } else {
            snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
        }
    }
    read_output(p);
    return DT_FAIL(DT_EIO, "its process %s%s%s", how, p->tail_bytes > 0 ? "; it wrote: " : "", p->tail);
}

static dt_status send_request(dt_process *p)
{
    return send_message(p->socket, p->d.request, p->d.request_bytes) ? DT_OK : worker_died(p);
}

/* The answer to the request: a spec, or why there is none. */
static dt_status receive_spec(dt_process *p)
{
    uint64_t bytes = 0;
    int32_t status = 0;
    const struct timeval t = {.tv_sec = (time_t)p->d.timeout_s + 1};
    errno = 0;
    (void)setsockopt(p->socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    if (!receive_all(p->socket, &status, sizeof(status)) || (p->spec = receive_message(p->socket, &bytes)) == NULL) {
        if (errno == EAGAIN) {
            read_output(p);
            return DT_FAIL(DT_EIO, "its process did not say within %g s what there is (env.timeout_s)%s%s",
                           p->d.timeout_s, p->tail_bytes > 0 ? "; it wrote: " : "", p->tail);
        }
        return worker_died(p);
    }
    if (status < 0) {
        read_output(p);
        return DT_FAIL((dt_status)status, "%s", p->spec);
    }
    return get_spec(p, p->spec);
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
    *out_p = p;
    return DT_OK;
}

dt_status dt_process_meet(dt_process *p)
{
    const dt_status st = receive_spec(p);
    return st < 0 ? DT_CONTEXT(st, "creating %s in a process", p->d.id) : DT_OK;
}

dt_status dt_process_attach(dt_process *p, const dt_layout *l)
{
    const uint64_t bytes = CONTROL_BYTES + 2 * l->record_bytes;
    p->l = l;
    if (ftruncate(p->memory, (off_t)bytes) != 0) {
        return DT_FAIL(DT_ENOMEM, "cannot share %llu bytes with environment %s: %s", (unsigned long long)bytes, p->d.id,
                       strerror(errno));
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0);
    if (map == MAP_FAILED) {
        return DT_FAIL(DT_ENOMEM, "cannot share %llu bytes with environment %s: %s", (unsigned long long)bytes, p->d.id,
                       strerror(errno));
    }
    p->map = map;
    p->map_bytes = bytes;
    return send_message(p->socket, &bytes, sizeof(bytes)) ? DT_OK : worker_died(p);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static char *record_of(const dt_process *p, uint32_t which)
{
    return (char *)p->map + CONTROL_BYTES + which * p->l->record_bytes;
}

/* One call; DT_EIO when the worker is lost. */
static dt_status call(dt_process *p, uint32_t what, uint64_t seed)
{
    control *c = p->map;
    if (p->pid == 0) { /* lost before */
        return worker_died(p);
    }
    const unsigned before = atomic_load(&c->answered);
    const double deadline = dt_clock_s() + p->d.timeout_s;
    c->call = what;
    c->seed = seed;
    c->record = p->turn;
    atomic_fetch_add(&c->asked, 1);
    wake(&c->asked);
    while (atomic_load(&c->answered) == before) {
        sleep_on(&c->answered, before, 0.05);
        read_output(p); /* a full pipe stays readable: nothing waits for us */
        siginfo_t info = {0};
        if (atomic_load(&c->answered) == before &&
            waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid) {
            return worker_died(p);
        }
        if (atomic_load(&c->answered) == before && dt_clock_s() > deadline) {
            kill_worker(p);
            read_output(p);
            return DT_FAIL(DT_EIO, "its process did not answer within %g s (env.timeout_s)%s%s", p->d.timeout_s,
                           p->tail_bytes > 0 ? "; it wrote: " : "", p->tail);
        }
    }
    if (c->status < 0) {
        c->error[ERROR_BYTES - 1] = '\0';
        return DT_FAIL(c->status == DT_EIO ? DT_EPLUGIN : (dt_status)c->status, "%s", c->error);
    }
    return (dt_status)c->status;
}

dt_status dt_process_ask(dt_process *p, uint32_t what, char **answer_p, uint64_t *bytes_p)
{
    DT_TRY(call(p, CALL_ASK, what));
    *answer_p = receive_message(p->socket, bytes_p);
    if (*answer_p == NULL) {
        kill_worker(p); /* the rest of an answer would be taken for the next one */
        return DT_FAIL(DT_EIO, "the process of environment %s did not answer whole", p->d.id);
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
        return DT_FAIL(DT_EIO, "%s; it was started again %u times before, which is all env.restarts allows", why,
                       p->restarts);
    }
    p->restarts++;
    atomic_fetch_add(p->d.n_restarts, 1);
    dt_log(DT_LOG_WARN,
           "environment %s: %s. Its episode counts as truncated, a new process begins the next one (restart %u of %u); "
           "from here on the run cannot be repeated bit by bit",
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

static dt_status process_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    dt_process *p = self;
    for (;;) {
        p->turn ^= 1;
        dt_status st = call(p, CALL_RESET, seed);
        char *record = record_of(p, p->turn);
        st = st == DT_OK ? dt_check_record(p->l, record, NULL, false) : st;
        if (st == DT_OK) {
            memcpy(io->obs[0], record, p->l->mask + (size_t)p->l->spec.n_agents * p->l->n_choices);
        }
        if (st != DT_EIO) {
            return st;
        }
        DT_TRY(restart(p));
    }
}

/* What the agents saw last stays; nobody earns anything. */
static void truncate_episode(dt_process *p, const char *seen, const dt_env_io *io)
{
    const dt_layout *l = p->l;
    char *record = io->obs[0]; /* observations come first */
    memcpy(record, seen, l->reward);
    memset(record + l->reward, 0, l->out_bytes - l->reward);
    memcpy(io->truncated, seen + l->alive, l->spec.n_agents);
    memset(io->alive, 0, l->spec.n_agents);
    for (uint32_t m = 0; m < l->spec.n_metrics; m++) {
        io->metric[m] = NAN;
    }
}

static dt_status process_step(void *self, const dt_env_io *io)
{
    dt_process *p = self;
    const dt_layout *l = p->l;
    const char *seen = record_of(p, p->turn);
    p->turn ^= 1;
    char *record = record_of(p, p->turn);
    memcpy(record + l->act_i, io->act_i, l->act_f - l->act_i);
    memcpy(record + l->act_f, io->act_f, l->record_bytes - l->act_f);
    dt_status st = call(p, CALL_STEP, 0);
    bool is_lost = st == DT_EIO;
    if (st >= 0) {
        const dt_status right = dt_check_record(l, record, (const uint8_t *)seen + l->alive, st == DT_DONE);
        is_lost = right < 0;
        if (right >= 0) {
            memcpy(io->obs[0], record, l->mask + (size_t)l->spec.n_agents * l->n_choices);
            return st;
        }
    }
    if (!is_lost) {
        return st;
    }
    truncate_episode(p, seen, io); /* before the memory goes */
    DT_TRY(restart(p));
    return DT_DONE;
}

static dt_status process_spec(const void *self, dt_env_spec *out)
{
    *out = ((const dt_process *)self)->env_spec;
    return DT_OK;
}

static void process_destroy(void *self)
{
    dt_process *p = self;
    if (p->map != NULL && p->pid > 0) { /* let it clean up, but do not wait for long */
        control *c = p->map;
        const unsigned before = atomic_load(&c->answered);
        c->call = CALL_END;
        atomic_fetch_add(&c->asked, 1);
        wake(&c->asked);
        for (int i = 0; i < 20 && atomic_load(&c->answered) == before; i++) {
            sleep_on(&c->answered, before, 0.05);
        }
    }
    end_worker(p);
    dt_free(p);
}

const dt_env_ops dt_process_ops = {.struct_size = sizeof(dt_env_ops),
                                   .spec = process_spec,
                                   .reset = process_reset,
                                   .step = process_step,
                                   .destroy = process_destroy};

/* ---- the worker -------------------------------------------------------------------------------------------------- */

typedef struct server {
    const dt_process_worker *w;
    const dt_env_ops *ops;
    void *self;
    dt_layout l;
    char *map;
    dt_env_io io[2];
    void *obs[2][DT_ENV_MAX_OBS];
} server;

static dt_status introduce(server *s, const dt_process_worker *w, dt_str *out)
{
    uint64_t bytes = 0;
    char *request = receive_message(FD_SOCKET, &bytes);
    if (request == NULL) {
        return DT_FAIL(DT_EIO, "the host said nothing");
    }
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_status st = w->make(w->user, request, bytes, &s->ops, &s->self);
    st = st >= 0 ? s->ops->spec(s->self, &spec) : st;
    st = st >= 0 ? dt_layout_init(&s->l, "the environment", &spec) : st;
    st = st >= 0 ? put_spec(&spec, out) : st;
    dt_free(request);
    return st;
}

static bool share(server *s)
{
    uint64_t bytes = 0;
    char *message = receive_message(FD_SOCKET, &bytes);
    if (message == NULL || bytes != sizeof(bytes)) {
        return false;
    }
    memcpy(&bytes, message, sizeof(bytes));
    dt_free(message);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FD_MEMORY, 0);
    s->map = map;
    for (int i = 0; i < 2 && map != MAP_FAILED; i++) {
        dt_layout_io(&s->l, s->map + CONTROL_BYTES + (size_t)i * s->l.record_bytes, s->obs[i], &s->io[i]);
    }
    return map != MAP_FAILED;
}

static dt_status answer(server *s, const control *c)
{
    dt_env_io io = s->io[c->record & 1];
    char *record = io.obs[0];
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_error_clear();
    memset(record, 0, s->l.out_bytes);
    memset(record + s->l.mask, 1, (size_t)s->l.spec.n_agents * s->l.n_choices);
    if (c->call == CALL_STEP) {
        return dt_fault("env.step") ? DT_FAIL(DT_EPLUGIN, "the step failed on purpose") : s->ops->step(s->self, &io);
    }
    io.act_i = NULL;
    io.act_f = NULL;
    DT_TRY(s->ops->reset(s->self, &io, c->seed));
    DT_TRY(s->ops->spec(s->self, &spec));
    return dt_layout_compare(&s->l, &spec);
}

static bool tell(server *s, uint32_t what)
{
    dt_str out = {0};
    if (s->w->tell != NULL) {
        s->w->tell(s->w->user, s->self, what, &out);
    }
    const bool is_told = dt_str_status(&out) == DT_OK && send_message(FD_SOCKET, dt_str_text(&out), out.bytes);
    dt_str_fini(&out);
    return is_told;
}

static void answer_calls(server *s, pid_t host)
{
    control *c = (control *)(void *)s->map;
    for (unsigned n = 0;; n++) {
        while (atomic_load(&c->asked) == n) {
            sleep_on(&c->asked, n, 1);
            if (getppid() != host) {
                return;
            }
        }
        const uint32_t called = c->call, what = (uint32_t)c->seed; /* once answered, they are the next call's */
        if (called == CALL_ASK) {
            c->status = DT_OK;
        } else if (called != CALL_END) {
            c->status = (int32_t)answer(s, c);
            snprintf(c->error, sizeof(c->error), "%s", dt_error_text()[0] != '\0' ? dt_error_text() : "it failed");
        } else {
            s->ops->destroy(s->self);
        }
        atomic_fetch_add(&c->answered, 1);
        wake(&c->answered);
        if (called == CALL_END || (called == CALL_ASK && !tell(s, what))) {
            return;
        }
    }
}

int dt_process_serve(const dt_process_worker *w)
{
    server s = {.w = w};
    dt_str spec = {0};
    const pid_t host = getppid();
    const int32_t st = (int32_t)introduce(&s, w, &spec);
    const char *text = st < 0 ? dt_error_text() : dt_str_text(&spec);
    const size_t bytes = st < 0 ? strlen(text) + 1 : spec.bytes;
    const bool is_told = send_all(FD_SOCKET, &st, sizeof(st)) && send_message(FD_SOCKET, text, bytes);
    if (is_told && st >= 0 && share(&s)) {
        answer_calls(&s, host);
    }
    dt_str_fini(&spec);
    dt_layout_fini(&s.l);
    return is_told && st >= 0 ? 0 : 1;
}
