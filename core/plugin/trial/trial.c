/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/trial/trial.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fence.h"
#include "base/log.h"
#include "plugin/trial/exit_guard.h"
#include "plugin/trial/process_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the copy ------------------------------------------------------------------------------------------------- */

static dt_trial *current;               /* of the copy, for the fence */
static char own_step[64];               /* of this process, as a fork of it has it too */
static dt_process_state expected_state; /* of the copy, as the plugin must leave it */

static void report_broken_fence(const char *what)
{
    snprintf(current->finding, sizeof(current->finding), "%s", what);
    _exit(1);
}

/* A fork that comes back from a plugin is the program a second time, and all that it does is done twice. */
static void check_writer_process(const dt_trial *t)
{
    if (t == current && getpid() != t->pid) {
        snprintf(current->forked, sizeof(current->forked), "%s", own_step);
        report_broken_fence(
            "it forked, and the child process returned into the program; a child must end in the plugin, "
            "by exec or _exit");
    }
}

void dt_trial_report(dt_trial *t, const char *text, size_t bytes)
{
    check_writer_process(t);
    while (bytes > 0) {
        const ssize_t n = write(t->fd, text, bytes);
        if (n < 0 && errno != EINTR) {
            return;
        }
        if (n > 0) {
            atomic_fetch_add(&t->sent, (uint64_t)n);
            text += n;
            bytes -= (size_t)n;
        }
    }
}

static void check_state(const dt_trial *t)
{
    char what[sizeof(t->finding)];
    if (t == current && dt_process_state_differs(&expected_state, what, sizeof(what))) {
        report_broken_fence(what);
    }
}

void dt_trial_accept_state(dt_trial *t)
{
    if (t != NULL && t == current) {
        dt_process_state_capture(&expected_state);
    }
}

/* Descriptors are numbers, and code that closes one that is not its own closes another's. */
static void check_files(const dt_trial *t)
{
    struct stat st;
    check_writer_process(t);
    if (t == current && (fstat(t->fd, &st) != 0 || st.st_ino != t->fd_ino)) {
        report_broken_fence("it closed a file of the program, whose number it did not get from open");
    }
}

static bool is_call_to_skip(const dt_trial *t, const char *step)
{
    const size_t bytes = strlen(step);
    for (const char *p = t->broken; p != NULL && *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n') {
        if (strcspn(p, "\n") == bytes && memcmp(p, step, bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool dt_trial_begin_step(dt_trial *t, const char *step)
{
    check_writer_process(t);
    check_state(t);
    t->call[0] = '\0'; /* which of the calls it was does not show any more */
    dt_fence_check();  /* what was written by the step that ends */
    check_files(t);
    if (is_call_to_skip(t, step)) {
        t->step[0] = '\0'; /* what comes until the next one is no part of the one before */
        return false;
    }
    snprintf(t->step, sizeof(t->step), "%s", step);
    snprintf(own_step, sizeof(own_step), "%s", step);
    atomic_fetch_add(&t->beat, 1);
    return true;
}

void dt_trial_report_call(dt_trial *t, const char *fmt, ...)
{
    va_list ap;
    if (t == NULL) {
        return;
    }
    check_files(t);
    check_state(t);
    va_start(ap, fmt);
    vsnprintf(t->call, sizeof(t->call), fmt, ap);
    va_end(ap);
    atomic_fetch_add(&t->beat, 1);
}

/* A bound for what the other side sees too late, and for processes that the code starts: twice of what is allowed. */
static void limit_memory(uint64_t bytes)
{
    unsigned long long data = 0;
    struct rlimit l;
    FILE *f = fopen("/proc/self/statm", "re");
    const bool is_known = f != NULL && fscanf(f, "%*u %*u %*u %*u %*u %llu", &data) == 1;
    if (f != NULL) {
        fclose(f);
    }
    if (is_known && getrlimit(RLIMIT_DATA, &l) == 0) {
        const rlim_t most = (rlim_t)data * (rlim_t)sysconf(_SC_PAGESIZE) + 2 * (rlim_t)bytes;
        l.rlim_cur = l.rlim_cur < most ? l.rlim_cur : most;
        (void)setrlimit(RLIMIT_DATA, &l);
    }
}

static void run_work_in_copy(void (*work)(void *user, dt_trial *t), void *user, dt_trial *t, pid_t parent)
{
    setpgid(0, 0); /* so that what it starts can be ended with it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    struct stat st;
    t->fd_ino = fstat(t->fd, &st) == 0 ? st.st_ino : 0;
    current = t;
    t->pid = getpid();
    dt_exit_guard_disable(); /* the other side sees how this one ends */
    dt_fence_install(report_broken_fence);
    limit_memory(t->memory);
    dt_process_state_divert();
    dt_process_state_capture(&expected_state);
    work(user, t);
    check_writer_process(t);
    check_state(t);
    t->call[0] = '\0';
    dt_fence_check();
    check_files(t);
    atomic_store(&t->is_done, true);
    _exit(0);
}

/* ---- on the other side ------------------------------------------------------------------------------------------- */

/* Has the process ended? It stays to be waited for. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static uint64_t memory_limit = UINT64_C(4) << 30;

void dt_trial_limit_memory(uint64_t bytes)
{
    memory_limit = bytes;
}

static uint64_t resident_bytes(pid_t pid)
{
    char path[40];
    unsigned long long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f != NULL && fscanf(f, "%*u %llu", &pages) != 1) {
        pages = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void report_progress(const dt_trial *t, double begin_s, double *last_s)
{
    enum { EVERY_S = 10 };
    const double now = dt_clock_s();
    if (now - *last_s < EVERY_S) {
        return;
    }
    *last_s = now;
    dt_log(DT_LOG_INFO, "still at %.63s%s%.127s, after %.0f s", t->step[0] != '\0' ? t->step : "the first step",
           t->call[0] != '\0' ? ", " : "", t->call, now - begin_s);
}

/* Takes what comes until the other side has ended (true), takes too much memory, or has shown no life for timeout_s.
 * A pipe that was closed reports nothing: the code that closed it may continue. */
static bool read_reports(const dt_trial *t, pid_t pid, int fd, double timeout_s,
                         void (*hear)(void *user, const char *text, size_t bytes), void *user, uint64_t *heard_p,
                         bool *is_large_p)
{
    unsigned beat = atomic_load(&t->beat);
    double since = dt_clock_s(), reported_s = since;
    const double begin_s = since;
    for (;;) {
        report_progress(t, begin_s, &reported_s);
        if (resident_bytes(pid) > t->memory) {
            *is_large_p = true;
            return false;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char text[1024];
        const bool is_over = has_ended(pid); /* before it is read: then nothing more comes */
        const ssize_t n = poll(&p, 1, is_over ? 0 : 20) > 0 ? read(fd, text, sizeof(text)) : -1;
        if (n <= 0 && is_over) {
            return true;
        }
        if (n == 0) {
            (void)poll(NULL, 0, 20); /* the end of the pipe, again and again */
        }
        if (n > 0) {
            *heard_p += (uint64_t)n;
        }
        if (n > 0 && hear != NULL) {
            hear(user, text, (size_t)n);
        }
        if (n > 0 || atomic_load(&t->beat) != beat) {
            beat = atomic_load(&t->beat);
            since = dt_clock_s();
        } else if (dt_clock_s() - since > timeout_s) {
            return false;
        }
    }
}

/* What it started may be about to come back from the plugin, which must be read. */
static void wait_for_children(pid_t pid, const dt_trial *t)
{
    enum { TIMES = 20, EACH_MS = 10 };
    for (int i = 0; i < TIMES && t->finding[0] == '\0' && kill(-pid, 0) == 0; i++) {
        (void)poll(NULL, 0, EACH_MS);
    }
}

static dt_status wait_for_end_of(pid_t pid, const dt_trial *t, bool is_over, bool is_large, double timeout_s,
                                 uint64_t n_received)
{
    int status = 0;
    if (!is_over) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    wait_for_children(pid, t);
    kill(-pid, SIGKILL); /* what it started and left running */
    if (is_large) {
        return DT_FAIL(DT_EIO, "it takes more than %.3g GB of memory, the limit of a check; does each call allocate?",
                       (double)t->memory / 1e9);
    }
    if (!is_over) {
        return DT_FAIL(DT_EIO, "it did not return within %g s", timeout_s);
    }
    if (t->finding[0] != '\0') {
        return DT_FAIL(DT_EIO, "%s", t->finding);
    }
    if (WIFSIGNALED(status)) {
        return DT_FAIL(DT_EIO, "it was killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    if (!atomic_load(&t->is_done)) {
        return DT_FAIL(DT_EIO, "it ended the process with code %d; a plugin returns a status instead",
                       WEXITSTATUS(status));
    }
    if (n_received != atomic_load(&t->sent)) {
        return DT_FAIL(DT_EIO, "it wrote into a file of the program, whose number it did not get from open");
    }
    return DT_OK;
}

dt_status dt_trial_execute(void (*work)(void *user, dt_trial *t),
                           void (*hear)(void *user, const char *text, size_t bytes), void *user, double timeout_s,
                           dt_trial_result *result_p)
{
    int pair[2] = {-1, -1};
    dt_trial *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(result_p, 0, sizeof(*result_p));
    if (t != MAP_FAILED) {
        t->memory = memory_limit;
    }
    fflush(NULL); /* else the copy would write what is buffered again */
    const pid_t parent = getpid();
    const pid_t pid = t != MAP_FAILED && pipe2(pair, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        close(pair[0]);
        t->fd = pair[1];
        run_work_in_copy(work, user, t, parent);
    }
    dt_status st = DT_OK;
    if (pid < 0) {
        st = DT_FAIL(DT_EUNSUPPORTED, "cannot start a process: %s", strerror(errno));
    }
    if (pair[1] >= 0) {
        close(pair[1]);
    }
    if (pid > 0) {
        setpgid(pid, pid); /* the first one */
        uint64_t n_received = 0;
        bool is_large = false;
        const bool is_over = read_reports(t, pid, pair[0], timeout_s, hear, user, &n_received, &is_large);
        st = wait_for_end_of(pid, t, is_over, is_large, timeout_s, n_received);
        memcpy(result_p->step, t->step, sizeof(t->step));
        memcpy(result_p->call, t->call, sizeof(t->call));
        if (t->forked[0] != '\0') {
            memcpy(result_p->step, t->forked, sizeof(t->forked));
            result_p->call[0] = '\0';
        }
        result_p->step[sizeof(result_p->step) - 1] = result_p->call[sizeof(result_p->call) - 1] = '\0';
        result_p->is_late = !is_over && !is_large;
    }
    if (pair[0] >= 0) {
        close(pair[0]);
    }
    if (t != MAP_FAILED) {
        munmap(t, sizeof(*t));
    }
    return st;
}
