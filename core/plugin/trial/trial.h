/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign code on trial: done in a forked copy of this process, which continues whatever happens there, be it a crash,
 * an exit, a loop without end, or a write where there is nothing to write. What the copy changes in memory is gone with
 * it. Host memory of the copy is fenced (base/fence.h), its memory is bounded, state of the process that is not the
 * code's own must stay as it is (process_state.h), and a process that the code starts ends with the trial. Threads:
 * [main], and no others at the time of the fork.
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_TRIAL_H
#define DTRAIN_CORE_PLUGIN_TRIAL_TRIAL_H

#include "dtrain/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dt_trial {      /* shared by both sides */
    atomic_uint beat;          /* the copy adds to it as often as it is alive: it has timeout_s from beat to beat */
    atomic_bool is_done;       /* its work returned */
    char step[64];             /* what is being tried, empty at first; set by dt_trial_begin_step */
    char call[128];            /* which call of it; empty: the step is enough, or unknown */
    char finding[320];         /* what the fence found, what became of fd, or of the process's state */
    char forked[64];           /* the step that a fork came back from; empty: none did */
    const char *broken;        /* of the copy: steps that are to be left out, a line each; NULL: none */
    int fd;                    /* of the copy, to the other side */
    uint64_t fd_ino;           /* what fd was when it began */
    int pid;                   /* of the copy */
    uint64_t memory;           /* bytes that it may take */
    atomic_uint_fast64_t sent; /* bytes that were sent; more received bytes come from foreign writes */
} dt_trial;

typedef struct dt_trial_result {
    char step[64], call[128]; /* the last that was tried */
    bool is_late;             /* timeout_s was over */
} dt_trial_result;

/* Does work in the copy; here, hear is given what that reports as it comes, in pieces of any size (NULL: ignored).
 * *result_p is written whole. Errors: DT_EIO when it did not return, which dt_error_text() describes as in "it was
 * killed by signal 11, Segmentation fault"; DT_EUNSUPPORTED when there is no second process to be had. */
dt_status dt_trial_execute(void (*work)(void *user, dt_trial *t),
                           void (*hear)(void *user, const char *text, size_t bytes), void *user, double timeout_s,
                           dt_trial_result *result_p) DT_NODISCARD;
/* For trials from now on, in place of 4 GB. */
void dt_trial_limit_memory(uint64_t bytes);
/* In the copy: text for hear. */
void dt_trial_report(dt_trial *t, const char *text, size_t bytes);
/* What comes next, a beat; false, and none, where it is to be left out. */
bool dt_trial_begin_step(dt_trial *t, const char *step);
/* The program itself changed state of its process: it is as it should be now. t: NULL is fine. */
void dt_trial_accept_state(dt_trial *t);
/* A call of that step, a beat; without a trial (NULL) nothing. */
void dt_trial_report_call(dt_trial *t, const char *fmt, ...) DT_PRINTF(2, 3);

#endif
