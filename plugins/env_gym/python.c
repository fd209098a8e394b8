/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python process: started with a socket, memory to share and a pipe that closes with the host, asked by one message
 * for a step of many instances, killed when it is late. Its output is kept for messages and passed on.
 *
 * Instances with equal options share processes, per_process of them each. They are created one by one and know nothing
 * of each other, so that the list of processes is the one static variable of this plugin.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* pipe2, memfd_create */
#endif
#include "env_gym.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROTOCOL = 2, REPLY_BYTES = 1 << 18, SOCKET_FD = 3, MEMORY_FD = 4, LIFE_FD = 5, TEXT = 1024 };

extern char **environ;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static python *list;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

/* In a worker of the host standard error is what the host logs; elsewhere it is a terminal. */
static void pass_on(const python *p, const char *text, size_t bytes)
{
    if (getenv("DTRAIN_WORKER") != NULL) {
        const ssize_t n = write(STDERR_FILENO, text, bytes);
        (void)n;
    } else {
        dt_logf(p->h, 3, "Python: %.*s", (int)bytes, text);
    }
}

static void read_output(python *p)
{
    enum { MOST = 64 };
    char text[512];
    ssize_t n = 0;
    for (int i = 0; i < MOST && p->output >= 0 && (n = read(p->output, text, sizeof(text))) > 0; i++) {
        const size_t bytes = (size_t)n, room = sizeof(p->tail) - 1;
        const size_t keep = p->tail_bytes + bytes > room ? room - bytes : p->tail_bytes;
        memmove(p->tail, p->tail + p->tail_bytes - keep, keep);
        memcpy(p->tail + keep, text, bytes);
        p->tail_bytes = keep + bytes;
        p->tail[p->tail_bytes] = '\0';
        pass_on(p, text, bytes);
    }
    if (n == 0) {
        close_fd(&p->output);
    }
}

/* The end of its output on one line, without control characters. */
static void last_words(const python *p, char *out, size_t bytes)
{
    const size_t from = p->tail_bytes + 1 > bytes ? p->tail_bytes + 1 - bytes : 0;
    size_t n = 0;
    for (size_t i = from; i < p->tail_bytes && n + 1 < bytes; i++) {
        const unsigned char c = (unsigned char)p->tail[i];
        const bool is_end = c == '\n' && i + 1 == p->tail_bytes;
        out[n] = c == '\n' ? '|' : c < 0x20 || c == 0x7f ? '?' : (char)c;
        n += !is_end;
    }
    out[n] = '\0';
}

/* ---- starting and ending ----------------------------------------------------------------------------------------- */

static int move_up(int fd)
{
    const int up = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 16) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return up;
}

/* What the environment of the process has in addition: results must not depend on hashes of texts, and instances, not
 * libraries, share the cores. NULL: out of memory. */
static char **make_environment(void)
{
    static char *const extra[] = {"PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1",
                                  "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1"};
    enum { N = sizeof(extra) / sizeof(extra[0]) };
    size_t n = 0;
    while (environ[n] != NULL) {
        n++;
    }
    char **out = malloc((n + N + 1) * sizeof(*out));
    if (out == NULL) {
        return NULL;
    }
    memcpy(out, environ, n * sizeof(*out));
    for (size_t i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(extra[i], "="), extra[i]);
        if (getenv(name) == NULL) {
            out[n++] = extra[i];
        }
    }
    out[n] = NULL;
    return out;
}

static dt_status spawn(python *p, const char *script, int theirs, int life, int output)
{
    char arguments[3][8];
    static const int numbers[] = {SOCKET_FD, MEMORY_FD, LIFE_FD};
    for (int i = 0; i < 3; i++) {
        snprintf(arguments[i], sizeof(arguments[i]), "%d", numbers[i]);
    }
    char *const argv[] = {p->program, (char *)(uintptr_t)script, arguments[0], arguments[1], arguments[2], NULL};
    char **env = make_environment();
    if (env == NULL) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "no memory to start %s", p->program);
    }
    posix_spawn_file_actions_t a;
    posix_spawnattr_t how;
    sigset_t none, defaults;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_init(&a);
    sigemptyset(&none);
    sigfillset(&defaults);
    p->has_group = getenv("DTRAIN_WORKER") == NULL; /* else that of the worker, which ends as a whole */
    flags = (short)(flags | (p->has_group ? POSIX_SPAWN_SETPGROUP : 0));
    (void)posix_spawnattr_setflags(&how, flags);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &defaults);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&a, output, 1);
    posix_spawn_file_actions_adddup2(&a, output, 2);
    posix_spawn_file_actions_adddup2(&a, theirs, SOCKET_FD);
    posix_spawn_file_actions_adddup2(&a, p->memory, MEMORY_FD);
    posix_spawn_file_actions_adddup2(&a, life, LIFE_FD);
    const int reason = posix_spawn(&p->pid, p->program, &a, &how, argv, env);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&a);
    free(env);
    if (reason != 0) {
        char what[128] = "";
        p->pid = 0;
        if (reason == ENOEXEC || reason == ENOENT) {
            describe_program(p->program, what, sizeof(what));
        }
        return DT_FAIL_H(p->h, DT_EUNSUPPORTED, "the interpreter %s cannot be started: %s%s%s", p->program,
                         strerror(reason), what[0] != '\0' ? "; " : "", what);
    }
    return DT_OK;
}

static dt_status open_process(python *p)
{
    char script[1024];
    int pair[2] = {-1, -1}, out[2] = {-1, -1}, life[2] = {-1, -1};
    DT_TRY_H(find_worker(p->h, script, sizeof(script)));
    const bool is_open = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
                         pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(life, O_CLOEXEC) == 0;
    p->memory = move_up(memfd_create("dtrain-gym", MFD_CLOEXEC));
    p->socket = move_up(pair[0]);
    p->output = move_up(out[0]);
    p->life = move_up(life[1]);
    int theirs = move_up(pair[1]), output = move_up(out[1]), their_life = move_up(life[0]);
    /* Python's own end of its output waits as it is used to */
    const bool is_whole = is_open && p->memory >= 0 && p->socket >= 0 && p->output >= 0 && p->life >= 0 &&
                          theirs >= 0 && output >= 0 && their_life >= 0 && fcntl(output, F_SETFL, 0) == 0;
    dt_status st =
        is_whole ? spawn(p, script, theirs, their_life, output)
                 : DT_FAIL_H(p->h, DT_EUNSUPPORTED, "cannot open what a Python process needs: %s", strerror(errno));
    close_fd(&theirs);
    close_fd(&output);
    close_fd(&their_life);
    return st;
}

/* Ends it, and what it started where it has a group of its own; the status from waitpid. */
static int end_process(python *p, double patience_s)
{
    int status = 0;
    close_fd(&p->socket); /* it leaves by itself */
    const double until = now_s() + patience_s;
    while (p->pid > 0) {
        const pid_t is = waitpid(p->pid, &status, WNOHANG);
        if (is == p->pid || (is < 0 && errno != EINTR)) {
            (void)(p->has_group && kill(-p->pid, SIGKILL));
            p->pid = 0;
        } else if (now_s() >= until) {
            (void)kill(p->has_group ? -p->pid : p->pid, SIGKILL);
            while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
            }
            p->pid = 0;
        } else {
            const struct timespec ms = {.tv_nsec = 1000000};
            (void)nanosleep(&ms, NULL);
        }
    }
    read_output(p);
    close_fd(&p->life);
    return status;
}

static void destroy_process(python *p)
{
    (void)end_process(p, 1);
    close_fd(&p->memory);
    close_fd(&p->output);
    if (p->map != NULL) {
        munmap(p->map, p->map_bytes);
    }
    pthread_mutex_destroy(&p->lock);
    free(p->reply);
    free(p->spec_text);
    free(p->spec_memory);
    free(p->key);
    free(p);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static dt_status fail_ended(python *p, const char *what)
{
    char how[64], words[TEXT / 2];
    const int status = end_process(p, 1);
    last_words(p, words, sizeof(words));
    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
    } else {
        snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
    }
    return DT_FAIL_H(p->h, DT_EBROKEN, "Python (%s) %s during %s%s%s", p->program, how, what,
                     words[0] != '\0' ? "; it wrote: " : "", words);
}

/* A traceback of all its threads comes before the end (faulthandler). */
static dt_status fail_late(python *p, double timeout_s, const char *what)
{
    char words[TEXT / 2];
    const struct timespec moment = {.tv_nsec = 200000000};
    p->tail_bytes = 0;
    p->tail[0] = '\0';
    (void)kill(p->pid, SIGUSR1);
    (void)nanosleep(&moment, NULL);
    read_output(p);
    (void)end_process(p, 0);
    last_words(p, words, sizeof(words));
    return DT_FAIL_H(p->h, DT_EBROKEN, "Python (%s) did not finish %s within %g s (%s); it was at: %s", p->program,
                     what, timeout_s, strcmp(what, "its start") == 0 ? "env_gym.startup_s" : "env_gym.timeout_s",
                     words);
}

dt_status python_send(python *p, uint32_t kind, uint32_t n, const void *payload, size_t bytes)
{
    const uint32_t head[2] = {kind, n};
    struct iovec part[2] = {{(void *)(uintptr_t)head, sizeof(head)}, {(void *)(uintptr_t)payload, bytes}};
    const struct msghdr m = {.msg_iov = part, .msg_iovlen = bytes > 0 ? 2 : 1};
    ssize_t is = -1;
    do {
        is = p->socket >= 0 ? sendmsg(p->socket, &m, MSG_NOSIGNAL) : -1;
    } while (is < 0 && p->socket >= 0 && errno == EINTR);
    if (is >= 0) {
        return DT_OK;
    }
    return p->socket >= 0 && errno == EMSGSIZE
               ? DT_FAIL_H(p->h, DT_ECONFIG, "the options of env_gym are longer than a message may be (%zu bytes)",
                           bytes)
               : fail_ended(p, "a call");
}

dt_status python_receive(python *p, double timeout_s, const char *what)
{
    const double until = now_s() + timeout_s;
    for (;;) {
        struct pollfd f[2] = {{.fd = p->socket, .events = POLLIN}, {.fd = p->output, .events = POLLIN}};
        const double left_s = until - now_s();
        if (left_s <= 0) {
            return fail_late(p, timeout_s, what);
        }
        const int n = poll(f, 2, left_s < 60 ? (int)(1000 * left_s) + 1 : 60000);
        if (n > 0 && f[1].revents != 0) {
            read_output(p);
        }
        if (n > 0 && f[0].revents != 0) {
            const ssize_t is = recv(p->socket, p->reply, REPLY_BYTES - 1, 0);
            if (is > 0) {
                p->reply_bytes = (size_t)is;
                p->reply[is] = '\0';
                return DT_OK;
            }
            if (is == 0 || errno != EINTR) {
                return fail_ended(p, what);
            }
        }
    }
}

/* The next text of the reply after at (NULL: the first); NULL: none is left. */
static const char *python_text(const python *p, const char *at)
{
    const char *next = at == NULL ? p->reply : at + strlen(at) + 1;
    return next < p->reply + p->reply_bytes ? next : NULL;
}

static dt_status status_of(const char *code)
{
    return strcmp(code, "config") == 0        ? DT_ECONFIG
           : strcmp(code, "unsupported") == 0 ? DT_EUNSUPPORTED
           : strcmp(code, "broken") == 0      ? DT_EBROKEN
                                              : DT_EPLUGIN;
}

dt_status python_error(const dt_host *h, const python *p, uint32_t slot)
{
    for (const char *t = python_text(p, NULL); t != NULL; t = python_text(p, t)) {
        if (strcmp(t, "error") == 0) {
            const char *number = python_text(p, t), *code = number != NULL ? python_text(p, number) : NULL,
                       *text = code != NULL ? python_text(p, code) : NULL;
            if (text == NULL) {
                break;
            }
            if ((uint32_t)strtoul(number, NULL, 10) == slot) {
                return DT_FAIL_H(h, status_of(code), "%s", text);
            }
            t = text;
        } else if (strcmp(t, "note") == 0 && (t = python_text(p, t)) == NULL) {
            break;
        }
    }
    return DT_FAIL_H(h, DT_EPLUGIN, "Python gave no reason");
}

void python_log_notes(const python *p)
{
    for (const char *t = python_text(p, NULL); t != NULL; t = python_text(p, t)) {
        if (strcmp(t, "error") == 0) {
            for (int i = 0; i < 3 && t != NULL; i++) {
                t = python_text(p, t);
            }
        } else if (strcmp(t, "note") == 0 && (t = python_text(p, t)) != NULL) {
            dt_logf(p->h, 1, "env_gym: %s", t);
        }
        if (t == NULL) {
            break;
        }
    }
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static dt_status greet(python *p, const config *c)
{
    enum { TEXTS = 6 };
    const char *text[TEXTS] = {NULL};
    const dt_status st = python_receive(p, c->startup_s, "its start");
    if (st != DT_OK) {
        return st == DT_EBROKEN ? DT_EUNSUPPORTED : st; /* it never ran: another one would not either */
    }
    for (int i = 0; i < TEXTS; i++) {
        text[i] = i == 0 || text[i - 1] != NULL ? python_text(p, i == 0 ? NULL : text[i - 1]) : NULL;
    }
    if (text[TEXTS - 1] == NULL || strcmp(text[0], "hello") != 0 || atoi(text[1]) != PROTOCOL) {
        return DT_FAIL_H(p->h, DT_EUNSUPPORTED,
                         "the worker script of env_gym is of another version of dtrain; install "
                         "the plugin and its script together");
    }
    snprintf(p->versions, sizeof(p->versions), "Python %s, %s%s, %s%s", text[2],
             text[4][0] != '\0' ? "NumPy " : "no NumPy", text[4], text[5][0] != '\0' ? "gymnasium " : "no gymnasium",
             text[5]);
    p->has_gymnasium = text[5][0] != '\0';
    return DT_OK;
}

/* Options of an instance as a message, which also identifies processes. */
static char *write_options(const config *c, size_t *bytes_p)
{
    static const char *const bounds[] = {"warn", "error", "ignore"}, *const ports[] = {"flat", "named", "images"};
    char *folder = c->path[0] == '\0' ? getcwd(NULL, 0) : NULL;
    const char *const text[] = {"id",          c->id,
                                "kwargs",      c->kwargs,
                                "wrappers",    c->wrappers,
                                "path",        folder != NULL ? folder : c->path,
                                "costs",       c->costs,
                                "metrics",     c->metrics,
                                "teams",       c->teams,
                                "ports",       ports[c->ports],
                                "bounds",      bounds[c->bounds],
                                "interpreter", c->interpreter};
    enum { N = sizeof(text) / sizeof(text[0]) };
    size_t n = 0;
    for (int i = 0; i < N; i++) {
        n += strlen(text[i]) + 1;
    }
    char *out = malloc(n);
    n = 0;
    for (int i = 0; i < N && out != NULL; i++) {
        memcpy(out + n, text[i], strlen(text[i]) + 1);
        n += strlen(text[i]) + 1;
    }
    free(folder);
    *bytes_p = n;
    return out;
}

static dt_status start_process(const dt_host *h, const config *c, python **p_p)
{
    python *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for a Python process");
    }
    p->h = h;
    p->socket = p->memory = p->life = p->output = -1;
    pthread_mutex_init(&p->lock, NULL);
    p->reply = malloc(REPLY_BYTES);
    dt_status st = p->reply != NULL ? find_interpreter(h, c->interpreter, p->program, sizeof(p->program))
                                    : DT_FAIL_H(h, DT_ENOMEM, "no memory for a Python process");
    if (st == DT_OK) {
        st = open_process(p);
    }
    if (st == DT_OK) {
        st = greet(p, c);
    }
    if (st != DT_OK) {
        destroy_process(p);
        return st;
    }
    dt_logf(h, 3, "env_gym: %s is %s", p->program, p->versions);
    *p_p = p;
    return DT_OK;
}

dt_status python_describe(const dt_host *h, const config *c, char *out, size_t bytes, bool *has_gymnasium_p)
{
    python *p = NULL;
    const dt_status st = start_process(h, c, &p);
    if (st == DT_OK) {
        snprintf(out, bytes, "%s, %s", p->program, p->versions);
        *has_gymnasium_p = p->has_gymnasium;
        destroy_process(p);
    }
    return st;
}

/* Memory for all instances that the process may have, once it is known what they need. */
static dt_status map_memory(python *p, uint32_t places, double timeout_s)
{
    const size_t bytes = p->m.stride * places;
    if (ftruncate(p->memory, (off_t)bytes) != 0) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "cannot share %zu bytes with Python: %s", bytes, strerror(errno));
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0);
    if (map == MAP_FAILED) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "cannot share %zu bytes with Python: %s", bytes, strerror(errno));
    }
    p->map = map;
    p->map_bytes = bytes;
    uint64_t payload[1 + sizeof(gym_map) / sizeof(uint64_t)] = {bytes};
    memcpy(payload + 1, &p->m, sizeof(p->m));
    DT_TRY_H(python_send(p, GYM_MAP, places, payload, sizeof(payload)));
    return python_receive(p, timeout_s, "its start");
}

static dt_status create_instance(python *p, const config *c, uint32_t places, uint32_t slot, const char *key,
                                 size_t bytes)
{
    DT_TRY_H(python_send(p, GYM_CREATE, slot, key, bytes));
    DT_TRY_H(python_receive(p, c->startup_s, "its start"));
    if (strcmp(p->reply, "spec") != 0) {
        return python_error(p->h, p, slot);
    }
    if (p->has_spec) {
        return DT_OK;
    }
    DT_TRY_H(spec_read(p));
    p->has_spec = true;
    return map_memory(p, places, c->startup_s);
}

/* Under the lock of the list. */
static python *find_process(const char *key, size_t bytes, uint32_t places, const dt_host *h)
{
    for (python *p = list; p != NULL; p = p->next) {
        const bool is_same = p->h == h && p->key_bytes == bytes && memcmp(p->key, key, bytes) == 0;
        if (p->pid > 0 && is_same && p->n_used < places) {
            return p;
        }
    }
    return NULL;
}

static void unlist(python *p)
{
    python **at = &list;
    while (*at != NULL && *at != p) {
        at = &(*at)->next;
    }
    *at = *at != NULL ? p->next : NULL;
}

dt_status python_acquire(const dt_host *h, const config *c, python **p_p, uint32_t *slot_p)
{
    static uint32_t number;
    const uint32_t places = (uint32_t)c->per_process;
    size_t bytes = 0;
    dt_status st = DT_OK;
    char *key = write_options(c, &bytes);
    if (key == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for options");
    }
    pthread_mutex_lock(&list_lock);
    python *p = find_process(key, bytes, places, h);
    if (p == NULL && (st = start_process(h, c, &p)) == DT_OK) {
        p->key = malloc(bytes);
        p->number = number++;
        p->next = list;
        list = p;
        if (p->key != NULL) {
            memcpy(p->key, key, bytes);
            p->key_bytes = bytes;
        } else {
            st = DT_FAIL_H(h, DT_ENOMEM, "no memory for options");
        }
    }
    uint32_t slot = 0;
    while (p != NULL && p->used[slot] != 0) {
        slot++;
    }
    if (st == DT_OK) {
        pthread_mutex_lock(&p->lock);
        st = create_instance(p, c, places, slot, key, bytes);
        python_log_notes(p);
        pthread_mutex_unlock(&p->lock);
    }
    if (st == DT_OK) {
        p->used[slot] = 1;
        p->n_used++;
        *p_p = p;
        *slot_p = slot;
    } else if (p != NULL && p->n_used == 0) {
        unlist(p);
        destroy_process(p);
    }
    pthread_mutex_unlock(&list_lock);
    free(key);
    return st;
}

void python_release(python *p, uint32_t slot)
{
    pthread_mutex_lock(&list_lock);
    p->used[slot] = 0;
    p->n_used--;
    if (p->n_used == 0) {
        unlist(p);
        destroy_process(p);
    } else if (p->pid > 0) {
        pthread_mutex_lock(&p->lock);
        if (python_send(p, GYM_CLOSE, slot, NULL, 0) == DT_OK) {
            (void)python_receive(p, 1, "a call");
        }
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&list_lock);
}
