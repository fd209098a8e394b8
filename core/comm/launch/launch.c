/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/launch.h"

#include "base/beneath.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/signals.h"
#include "base/str.h"
#include "comm/board.h"
#include "comm/launch/cause.h"
#include "comm/launch/hostfile.h"
#include "comm/launch/listen.h"
#include "comm/launch/members.h"
#include "comm/launch/mpirun.h"
#include "comm/launch/notes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* After the first rank was lost or failed: when mpirun is asked to end the others, and when it is ended. Processes that
 * outlive a launcher that is no longer there: how long they may save. */
static const double NOTICE_S = 15, ENDED_S = 20, SAVING_S = 20;
/* Hosts that processes ran on and that no process can be started on any more: how long they are waited for. */
static const double OUTAGE_S = 600;

typedef struct job {
    const dt_launch_desc *d;
    char *run;            /* its directory, once it is known; NULL */
    int lock;             /* of its launcher, held from then on; -1 */
    dt_board *board;      /* what the processes of this machine say */
    int stop_sent;        /* signals to stop that were forwarded */
    bool was_ended;       /* one of them as SIGTERM, which mpirun answers by ending all */
    bool had_ranks;       /* in this life */
    bool started_nothing; /* the same */
    bool was_left;        /* stopped, and the run has recorded how the attempt before ended */
    dt_launch_wait wait;
    bool is_elastic;    /* members choose the processes */
    dt_members members; /* where it is */
    uint32_t n;         /* processes of this attempt */
    uint32_t n_asked;   /* that the ranks are asked to stop for; 0: they are not */
    bool was_said;      /* in this life */
    bool was_resized;   /* it ended for another number of processes */
    double outage_s;    /* since when mpirun has started no process, though it had before; 0: it does */
    double failed_s;    /* since when a rank has left with an error, 0: none has */
    bool was_hurried;   /* the launcher asked mpirun to end then */
    int killed_by;      /* a signal that ended mpirun itself, and was not the launcher's; 0: none */
    dt_listen output;   /* what mpirun said of this life */
    dt_cause cause;
    dt_launch_notes notes;
    bool had[2]; /* own_files in the run's folder, before this job */
    pid_t pid;
} job;

static void append_range_option(dt_str *words, const char *option, const dt_launch_range *r)
{
    if (r->max > 0) {
        dt_str_addf(words, r->min == r->max ? " %s %u" : " %s %u:%u", option, r->min, r->max);
    }
}

/* The command that continues the run: the processes print it, too. */
static dt_status set_environment(const job *j)
{
    dt_str words = {0};
    append_range_option(&words, "--nproc", &j->d->processes);
    append_range_option(&words, "--nnodes", &j->d->machines);
    if (j->d->hostfile != NULL) {
        dt_str_addf(&words, " --hostfile %s", j->d->hostfile);
    }
    dt_status st = dt_str_status(&words);
    if (st == DT_OK && (setenv(DT_LAUNCH_WORDS, dt_str_text(&words), 1) != 0 ||
                        setenv(DT_BOARD_ENV, dt_board_path(j->board), 1) != 0)) {
        st = DT_FAIL(DT_ENOMEM, "out of memory");
    }
    dt_str_fini(&words);
    DT_TRY(st);
    return j->d->hostfile != NULL ? dt_mpirun_watch_machines() : DT_OK;
}

/* ---- one life of the job ----------------------------------------------------------------------------------------- */

static dt_status start_mpirun(job *j, int *err_p)
{
    const dt_launch_desc *d = j->d;
    const bool has_members_file = j->is_elastic && d->hostfile != NULL;
    const dt_mpirun_desc m = {.n = j->n,
                              .hostfile = has_members_file ? j->members.path : d->hostfile,
                              .fills_hosts = has_members_file,
                              .program = d->program,
                              .arg = d->arg,
                              .n_arg = d->n_arg,
                              .resume = j->run != NULL ? j->run : d->resume};
    return dt_mpirun_start(&m, &j->pid, err_p);
}

/* Has rank 0 its run directory? Before, mpirun may not hand on a signal yet, and there is nothing to save. */
static bool has_run_dir(const job *j)
{
    return dt_board_run_dir(j->board)[0] != '\0';
}

/* Of the folder of run.lock: that one is held by rank 0, and for a while longer than a launcher that was
 * killed has lived; this one as long as a launcher sees to the run. */
static dt_status lock_run_folder(const char *run, int *fd_p)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/launch.lock", run);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_lock_acquire(dt_str_text(&path), fd_p);
    }
    dt_str_fini(&path);
    return st;
}

/* Where another launcher trains, nothing has to be started to know it. */
static dt_status check_unlocked(const dt_launch_desc *d)
{
    const char *run =
        d->resume != NULL && d->resume[0] != '\0' && strcmp(d->resume, "auto") != 0 ? d->resume : d->run_dir;
    dt_str path = {0};
    int fd = -1;
    dt_status st = DT_OK;
    dt_str_addf(&path, "%s/launch.lock", run != NULL ? run : "");
    if (run != NULL && dt_fs_is_dir(run) && dt_beneath_guard(run) == DT_OK && dt_lock_is_held(dt_str_text(&path))) {
        st = lock_run_folder(run, &fd);
        dt_lock_release(fd);
    }
    dt_str_fini(&path);
    if (st == DT_AGAIN) {
        return DT_CONTEXT(DT_ECONFIG, "%s is in use by a training; wait until it ends or name another folder", run);
    }
    dt_error_clear();
    return DT_OK;
}

static const char *const own_files[] = {"launch.log", "launch.lock"};

static void visit_own_files(const job *j, bool *had, bool removes)
{
    for (size_t i = 0; i < sizeof(own_files) / sizeof(own_files[0]); i++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", j->run, own_files[i]);
        if (dt_str_status(&path) == DT_OK && !removes) {
            had[i] = dt_fs_is_file(dt_str_text(&path));
        } else if (dt_str_status(&path) == DT_OK && !had[i]) {
            dt_fs_try_remove(dt_str_text(&path));
        }
        dt_str_fini(&path);
    }
}

static void find_run_dir(job *j)
{
    const char *run = dt_board_run_dir(j->board);
    if (run[0] != '\0' && (j->run == NULL || strcmp(j->run, run) != 0)) {
        dt_free(j->run);
        j->run = dt_strdup(run);
        visit_own_files(j, j->had, false);
        dt_launch_notes_open(&j->notes, run);
        dt_lock_release(j->lock);
        j->lock = -1;
        if (lock_run_folder(run, &j->lock) != DT_OK) { /* the other lock still holds */
            dt_error_clear();
        }
    }
}

/* The first signal to stop becomes SIGUSR2, which mpirun hands to every process, and which stops a run as SIGTERM does:
 * mpirun's own answer to SIGTERM leaves them a second. Another one is that, and one that comes before the run is up. */
static void forward_signals(job *j)
{
    const int asked = dt_signals_stop_count();
    if (dt_signals_take_save_request()) {
        kill(j->pid, SIGUSR1);
    }
    for (; j->stop_sent < asked && j->stop_sent < 2; j->stop_sent++) {
        const bool ends = j->stop_sent > 0 || !has_run_dir(j);
        j->was_ended = j->was_ended || ends;
        kill(j->pid, ends ? SIGTERM : SIGUSR2);
    }
}

/* The state of the ranks of this machine: which is lost, and has one failed? */
static void update_ranks(job *j)
{
    dt_cause_update(&j->cause, j->board);
    find_run_dir(j);
    for (uint32_t r = 0; r < j->n; r++) {
        const dt_board_rank *w = &j->cause.was[r];
        const bool has_failed = w->state == DT_BOARD_GONE || (w->state == DT_BOARD_LEFT && w->code != DT_EXIT_DONE &&
                                                              w->code != DT_EXIT_INTERRUPTED);
        j->had_ranks = j->had_ranks || w->state != DT_BOARD_NEVER;
        j->failed_s = j->failed_s == 0 && has_failed ? dt_clock_s() : j->failed_s;
    }
}

static void update_machines(job *j)
{
    if (j->output.node[0] != '\0') {
        dt_cause_set_lost_machine(&j->cause, j->board, j->output.node);
        j->failed_s = j->failed_s == 0 ? dt_clock_s() : j->failed_s;
    }
}

/* mpirun waits for processes of machines that it cannot reach any more. */
static void end_stuck_job(job *j)
{
    const double since = j->failed_s > 0 ? dt_clock_s() - j->failed_s : 0;
    j->was_hurried = since > NOTICE_S;
    if (j->was_hurried) {
        kill(j->pid, since > ENDED_S ? SIGKILL : SIGTERM);
    }
}

/* Asks the ranks to stop at a checkpoint when other hosts or slots would be chosen by now. */
static void update_members(job *j)
{
    if (!j->is_elastic) {
        return;
    }
    dt_members_update(&j->members);
    j->members.hosts.most = dt_board_max_ranks(j->board);
    const uint32_t n = dt_hosts_find_change(&j->members.hosts, dt_clock_s());
    if (n != j->n_asked) {
        j->n_asked = n;
        dt_board_resize_set(j->board, n > 0);
    }
    if (n > 0 && !j->was_said) {
        j->was_said = true;
        dt_log(DT_LOG_INFO, "%u instead of %u processes from the next checkpoint on", n, j->n);
    }
}

/* Until mpirun has ended, and its standard error is closed. */
static int wait_for_mpirun(job *j, int err)
{
    int status = 0;
    bool has_ended = false;
    struct pollfd p = {.fd = err, .events = POLLIN};
    char bytes[4096];
    double looked = 0;
    while (!has_ended || p.fd >= 0) {
        forward_signals(j);
        if (dt_clock_s() - looked > 0.05) {
            update_ranks(j);
            update_members(j);
            end_stuck_job(j);
            looked = dt_clock_s();
        }
        if (p.fd >= 0 && poll(&p, 1, has_ended ? 1000 : 50) > 0) {
            const ssize_t n = read(p.fd, bytes, sizeof(bytes));
            if (n > 0) {
                dt_listen_add(&j->output, bytes, (size_t)n);
                update_machines(j);
            } else if (n == 0 || errno != EINTR) {
                p.fd = -1;
            }
        } else if (has_ended) {
            p.fd = -1; /* a process that outlived the launcher may hold it for ever */
        }
        if (!has_ended && p.fd < 0) {
            const struct timespec nap = {.tv_nsec = 20000000};
            nanosleep(&nap, NULL);
        }
        if (!has_ended) {
            has_ended = waitpid(j->pid, &status, WNOHANG) == j->pid;
        }
    }
    close(err);
    dt_listen_end(&j->output);
    update_machines(j);
    j->killed_by = WIFSIGNALED(status) && !j->was_hurried && j->stop_sent == 0 ? WTERMSIG(status) : 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Processes that outlived mpirun, as when it was killed: the system asked each to stop and save; they get the time for
 * it. */
static void end_remaining_processes(job *j)
{
    const double begin = dt_clock_s();
    bool is_any = true;
    while (is_any && dt_clock_s() - begin < SAVING_S) {
        is_any = false;
        for (uint32_t r = 0; r < j->n; r++) {
            dt_board_rank seen;
            dt_board_read_rank(j->board, r, &seen);
            is_any = is_any || (seen.state == DT_BOARD_HERE && !seen.is_stopped);
        }
        const struct timespec nap = {.tv_nsec = 20000000};
        nanosleep(&nap, NULL);
    }
    const uint32_t n = dt_board_kill_processes(j->board);
    if (n > 0) {
        dt_log(DT_LOG_WARN, "ended %u process%s that mpirun had left running", n, n == 1 ? "" : "es");
    }
}

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

/* If a process is lost while it connects to mpirun, mpirun ends with a 1 of its own and names the signal or nothing. */
static bool was_lost_early(const job *j, int code)
{
    const dt_board_rank *w = j->cause.is_known ? &j->cause.was[j->cause.rank] : NULL;
    const bool is_unnamed = j->output.rank < 0 && w != NULL && j->cause.node[0] == '\0' &&
                            (w->state == DT_BOARD_GONE || w->state == DT_BOARD_NEVER);
    return code == DT_EXIT_FAILED && (is_unnamed || j->output.signal > 0);
}

/* A run's own codes mean that a restart would not help; a lost or killed process is restarted. */
static bool can_restart(const job *j, int code)
{
    return code == DT_EXIT_PEER || dt_exit_find(code) == NULL || was_lost_early(j, code);
}

/* A process was asked twice to end, and exited at once (signals.c), not by a fault: so do all of them. */
static bool was_stopped_twice(const job *j, int code)
{
    static const int stops[] = {SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM};
    bool is_stop = false;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        is_stop = is_stop || code == 128 + stops[i];
    }
    return is_stop && j->killed_by == 0;
}

/* From outside: no fault of a program sends itself SIGKILL. */
static bool was_launcher_killed(const job *j)
{
    return j->killed_by > 0 || j->output.signal == SIGKILL;
}

/* -1: it is not known */
static int find_lost_rank(const job *j)
{
    return j->output.rank >= 0 ? j->output.rank : j->cause.is_known ? (int)j->cause.rank : -1;
}

static void log_lost_process(const job *j, int code)
{
    char who[96] = "a process";
    if (j->killed_by > 0) {
        dt_log(DT_LOG_ERROR, "mpirun (process %d) was ended by signal %d (%s), and all ranks with it", (int)j->pid,
               j->killed_by, strsignal(j->killed_by));
    }
    if (j->killed_by > 0 && j->output.rank < 0) {
        return; /* no rank was lost before */
    }
    if (j->cause.node[0] != '\0') {
        dt_cause_log(&j->cause, "");
        return;
    }
    const int rank = find_lost_rank(j);
    const bool was_here = j->cause.is_known && j->cause.was[j->cause.rank].state == DT_BOARD_HERE;
    if (rank >= 0) {
        snprintf(who, sizeof(who), "rank %d", rank);
    }
    if (j->output.signal > 0) {
        dt_log(DT_LOG_ERROR, "%s was ended by signal %d (%s)", who, j->output.signal, strsignal(j->output.signal));
    } else if (!was_here && !was_lost_early(j, code)) {
        dt_log(DT_LOG_ERROR, "%s ended with code %d", who, code);
    }
    dt_cause_log(&j->cause, j->run != NULL ? j->run : "");
}

/* Of a process that failed, mpirun names the rank. */
static bool has_started_nothing(const job *j, int code)
{
    return code != 0 && !j->had_ranks && j->output.rank < 0 && j->output.signal == 0 && j->killed_by == 0 &&
           j->stop_sent == 0;
}

/* So the reason is mpirun's. */
static void log_nothing_started(const job *j, int code)
{
    if (j->output.n_kept > 0) {
        dt_log_lines(DT_LOG_ERROR, j->output.kept);
    }
    if (j->d->hostfile != NULL) {
        dt_log(DT_LOG_ERROR,
               "mpirun started no process on the hosts of %s: can ssh reach them without a password, and have they "
               "enough slots for --nproc?",
               j->d->hostfile);
    } else {
        dt_log(DT_LOG_ERROR, "mpirun ended with code %d and started no process", code);
    }
}

static dt_status run_attempt(job *j, int *code_p)
{
    int err = -1;
    dt_board_rank first;
    j->output = (dt_listen){.rank = -1, .also = dt_launch_notes_add, .user = &j->notes};
    j->had_ranks = false;
    j->was_hurried = false;
    j->failed_s = 0;
    j->n_asked = 0;
    j->was_said = false;
    j->cause.n = j->n;
    dt_cause_clear(&j->cause);
    dt_board_clear(j->board);
    DT_TRY(start_mpirun(j, &err));
    *code_p = wait_for_mpirun(j, err);
    update_ranks(j);
    dt_cause_decide(&j->cause, j->output.rank, j->d->hostfile == NULL);
    end_remaining_processes(j);
    dt_board_read_rank(j->board, 0, &first);
    if (first.state == DT_BOARD_LEFT && first.code == DT_EXIT_INTERRUPTED && j->killed_by == 0) {
        *code_p = first.code; /* mpirun has a number of its own, where the signal came to it */
    }
    j->was_resized = dt_board_was_resized(j->board) && *code_p == DT_EXIT_DONE && j->stop_sent == 0;
    j->started_nothing = has_started_nothing(j, *code_p);
    if (j->started_nothing) {
        log_nothing_started(j, *code_p);
        *code_p = DT_EXIT_DEVICE;
    }
    return DT_OK;
}

/* -1: there is no checkpoint to continue from */
static int64_t newest_step(const job *j)
{
    const char *run = j->run != NULL ? j->run : j->d->stands;
    return run != NULL && j->d->newest_step != NULL ? j->d->newest_step(run) : -1;
}

/* A run that was rejected before its first step leaves its folder as it was: rank 0 sees to what the ranks wrote. */
static void remove_own_files(job *j, int code)
{
    if (j->run != NULL && dt_exit_is_rejection(code) && !dt_board_has_advanced(j->board) && newest_step(j) < 0) {
        visit_own_files(j, j->had, true);
    }
}

/* Asked to stop once: where a checkpoint is intact the run continues from it, whatever the processes ended with that
 * were stopped while they started, or after one of them was lost. */
static int exit_code_of_stop(job *j, int code)
{
    const char *run = j->run != NULL ? j->run : j->d->stands;
    if (!j->was_ended && dt_exit_find(code) != NULL && !can_restart(j, code)) {
        return code;
    }
    j->was_left = j->run != NULL;
    if (dt_signals_stop_count() > 1 || newest_step(j) < 0) {
        return 128 + dt_signals_stop();
    }
    dt_log(DT_LOG_INFO,
           "stopped before it continued, its last checkpoint is intact; continue with: %s run --resume %s%s",
           j->d->program, run, getenv(DT_LAUNCH_WORDS));
    return DT_EXIT_INTERRUPTED;
}

/* Between two attempts no process receives a signal. */
static bool was_stopped_between(job *j, int *code_p)
{
    if (dt_signals_stop_count() == 0) {
        return false;
    }
    const bool is_saved = newest_step(j) >= 0;
    j->was_left = true;
    *code_p = is_saved ? DT_EXIT_INTERRUPTED : 128 + dt_signals_stop();
    dt_log(DT_LOG_WARN, "asked to stop before they restarted%s%s", is_saved ? ": continue with --resume " : "",
           is_saved ? j->run : "");
    return true;
}

static void sleep_shortly(void)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

/* Returns whether to continue. */
static bool wait_to_restart(job *j, double wait_s, int *code_p)
{
    const double end_s = dt_clock_s() + (dt_fault("launch.wait") ? 0 : wait_s);
    while (dt_signals_stop_count() == 0 && dt_clock_s() < end_s) {
        sleep_shortly();
    }
    return !was_stopped_between(j, code_p);
}

/* ---- elastic jobs ------------------------------------------------------------------------------------------------ */

/* Processes or hosts that the next attempt does without. */
static void leave_out_lost(job *j)
{
    const double now = dt_clock_s();
    const int rank = find_lost_rank(j);
    if (!j->is_elastic || (j->killed_by > 0 && j->output.rank < 0)) {
        return;
    }
    if (j->cause.node[0] != '\0') {
        dt_hosts_lose_host(&j->members.hosts, j->cause.node, now, newest_step(j));
    } else if (rank >= 0) {
        dt_hosts_lose_rank(&j->members.hosts, (uint32_t)rank, now, newest_step(j));
    }
}

/* No process started: finds out on which hosts none can. Returns whether to continue. */
static bool probe_hosts(job *j, int *code_p)
{
    dt_hosts_suspect_all(&j->members.hosts, dt_clock_s());
    do {
        if (was_stopped_between(j, code_p)) {
            return false;
        }
        dt_members_update(&j->members);
        sleep_shortly();
    } while (dt_members_are_probed(&j->members));
    return true;
}

/* The processes of the next attempt, at once or when there are enough of them again. Returns whether to continue. */
static dt_status choose_processes(job *j, int *code_p, bool *is_ready_p)
{
    const double begin_s = dt_clock_s();
    const uint32_t before = j->n;
    *is_ready_p = false;
    for (bool is_said = false; j->is_elastic; is_said = true) {
        j->members.hosts.most = dt_board_max_ranks(j->board);
        DT_TRY(dt_members_choose(&j->members, &j->n));
        if (j->n > 0) {
            break;
        }
        if (dt_clock_s() - begin_s > OUTAGE_S || dt_fault("launch.outage")) {
            dt_log(DT_LOG_ERROR,
                   "for %.0f s there were fewer hosts or slots than the minimum; continue with: %s run%s%s%s",
                   dt_clock_s() - begin_s, j->d->program, j->run != NULL ? " --resume " : "",
                   j->run != NULL ? j->run : "", getenv(DT_LAUNCH_WORDS));
            *code_p = DT_EXIT_DEVICE;
            return DT_OK;
        }
        if (!is_said) {
            dt_log(DT_LOG_WARN, "fewer hosts or slots than the minimum: waiting for them, up to %.0f s", OUTAGE_S);
        }
        if (was_stopped_between(j, code_p)) {
            return DT_OK;
        }
        dt_members_update(&j->members);
        sleep_shortly();
    }
    if (before > 0 && before != j->n) {
        dt_log(DT_LOG_WARN, "continuing with %u processes instead of %u", j->n, before);
    }
    *is_ready_p = true;
    return DT_OK;
}

/* mpirun has started no process. It did before: its hosts, or their network, may return. */
static bool wait_for_hosts(job *j, int *code_p)
{
    const double now = dt_clock_s();
    j->outage_s = j->outage_s > 0 ? j->outage_s : now;
    const double left_s = OUTAGE_S - (now - j->outage_s), wait_s = dt_launch_wait_next(&j->wait, newest_step(j));
    if (left_s <= 0 || dt_fault("launch.outage")) {
        dt_log(DT_LOG_ERROR, "no process could be started for %.0f s; continue with: %s run --resume %s%s",
               now - j->outage_s, j->d->program, j->run != NULL ? j->run : "", getenv(DT_LAUNCH_WORDS));
        return false;
    }
    dt_log(DT_LOG_WARN, "mpirun started processes before: trying again in %g s, for %.0f s more", wait_s, left_s);
    return wait_to_restart(j, wait_s, code_p);
}

/* Without the hosts on which no process can be started, or later. */
static bool prepare_another_start(job *j, bool had_ranks, int *code_p)
{
    if (j->is_elastic && j->d->hostfile != NULL) {
        if (!probe_hosts(j, code_p)) {
            return false;
        }
        if (dt_hosts_find_change(&j->members.hosts, dt_clock_s()) > 0) {
            return true;
        }
    }
    return had_ranks && wait_for_hosts(j, code_p);
}

static void log_no_more_restarts(const job *j, uint64_t n)
{
    char what[64] = "not started again (--max-restarts 0)";
    if (n > 0) {
        snprintf(what, sizeof(what), "%llu restart%s did not help", (unsigned long long)n, n == 1 ? "" : "s");
    }
    dt_log(DT_LOG_ERROR, "%s; continue with: %s run --resume %s%s", what, j->d->program, j->run,
           getenv(DT_LAUNCH_WORDS));
}

/* Processes were lost: n restarts so far. Returns whether to start them again. */
static bool prepare_restart(job *j, uint64_t n, int *code_p)
{
    log_lost_process(j, *code_p);
    leave_out_lost(j);
    *code_p = DT_EXIT_PEER; /* what mpirun ends with then is one of its own numbers */
    if (j->run == NULL && !j->had_ranks && !was_launcher_killed(j)) {
        return false; /* nothing ran: it would fail alike */
    }
    if (n >= j->d->max_restarts) {
        if (j->run != NULL) {
            log_no_more_restarts(j, n);
        }
        return false;
    }
    const double wait_s = dt_launch_wait_next(&j->wait, newest_step(j));
    char what[48] = "the processes that remain";
    if (!j->is_elastic) {
        snprintf(what, sizeof(what), "the %u processes", j->n);
    }
    dt_log(DT_LOG_WARN, "restarting %s%s%s, restart %llu of %llu, in %g s", what,
           j->run != NULL ? " from the last checkpoint of " : "", j->run != NULL ? j->run : "",
           (unsigned long long)n + 1, (unsigned long long)j->d->max_restarts, wait_s);
    return wait_to_restart(j, wait_s, code_p);
}

static dt_status run_attempts(job *j, int *code_p)
{
    uint64_t n = 0; /* restarts */
    bool had_ranks = false, is_ready = false;
    for (;;) {
        DT_TRY(choose_processes(j, code_p, &is_ready));
        if (!is_ready) {
            return DT_OK;
        }
        DT_TRY(run_attempt(j, code_p));
        had_ranks = had_ranks || j->had_ranks;
        if (j->stop_sent > 0) {
            *code_p = exit_code_of_stop(j, *code_p);
            return DT_OK;
        }
        if (j->started_nothing && (had_ranks || j->is_elastic)) {
            if (!prepare_another_start(j, had_ranks, code_p)) {
                return DT_OK;
            }
            continue;
        }
        j->outage_s = 0;
        if (j->was_resized) {
            continue;
        }
        if (!can_restart(j, *code_p)) {
            return DT_OK;
        }
        if (was_stopped_twice(j, *code_p)) {
            dt_log(DT_LOG_WARN, "a process was asked twice to end (signal %d): the last checkpoint is intact%s%s",
                   *code_p - 128, j->run != NULL ? ", continue with --resume " : "", j->run != NULL ? j->run : "");
            return DT_OK;
        }
        if (!prepare_restart(j, n, code_p)) {
            return DT_OK;
        }
        n++;
    }
}

static dt_status run_job(job *j, int *code_p)
{
    const dt_launch_desc *d = j->d;
    dt_launch_range processes = d->processes;
    if (processes.max == 0) { /* all slots of the hosts */
        processes = (dt_launch_range){.min = d->machines.min, .max = DT_LAUNCH_MAX_PROCESSES};
    }
    j->is_elastic = processes.min < processes.max || d->machines.max > 0;
    j->n = j->is_elastic ? 0 : processes.max;
    if (j->is_elastic) {
        const dt_status st = dt_members_init(d->hostfile, processes, d->machines, &j->members);
        if (st < 0) {
            j->is_elastic = false;
            return st;
        }
    }
    DT_TRY(dt_cause_init(processes.max, &j->cause));
    DT_TRY(dt_board_create(processes.max, &j->board));
    DT_TRY(set_environment(j));
    return run_attempts(j, code_p);
}

dt_status dt_launch_run(const dt_launch_desc *d, int *code_p, char **left_p)
{
    job j = {.d = d, .lock = -1, .wait = {.saved = -1}};
    *left_p = NULL;
    DT_TRY(dt_mpirun_check());
    DT_TRY(dt_hostfile_check(d->hostfile));
    DT_TRY(check_unlocked(d));
    dt_signals_install();
    dt_signals_forward();
    dt_launch_notes_begin(&j.notes);
    const dt_status st = run_job(&j, code_p);
    if (j.is_elastic) {
        dt_members_fini(&j.members);
    }
    dt_launch_notes_end(&j.notes);
    if (st == DT_OK) {
        remove_own_files(&j, *code_p);
    }
    dt_board_close(j.board);
    dt_cause_fini(&j.cause);
    dt_lock_release(j.lock);
    if (j.was_left && st == DT_OK) {
        *left_p = j.run;
    } else {
        dt_free(j.run);
    }
    return st;
}
