/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/trainings.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/signals.h"
#include "study/child.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

typedef struct member {
    pid_t pid;
    uint32_t id;
} member;

typedef struct pool {
    const dt_trainings_desc *d;
    member of[DT_TRAININGS_MAX];
    uint32_t n;
    bool is_stopped; /* all were asked to */
    bool waits;      /* for other processes */
} pool;

static dt_status start_member(pool *p, const dt_words *command, const dt_str *output, uint32_t id)
{
    int fd = -1;
    pid_t pid = 0;
    DT_TRY(dt_str_status(output));
    DT_TRY(dt_fs_open(dt_str_text(output), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, &fd));
    const dt_status st = dt_child_start(command, fd, fd, &pid);
    close(fd);
    if (st == DT_OK) {
        p->of[p->n++] = (member){pid, id};
    }
    return st;
}

/* As many as may run simultaneously. */
static dt_status fill(pool *p)
{
    dt_status st = DT_OK;
    p->waits = false;
    while (st == DT_OK && p->n < p->d->parallel && dt_signals_stop() == 0) {
        dt_words command = {0};
        dt_str output = {0};
        uint32_t id = 0;
        st = p->d->next(p->d->user, &command, &output, &id);
        if (st == DT_OK) {
            st = start_member(p, &command, &output, id);
        }
        dt_words_fini(&command);
        dt_str_fini(&output);
    }
    p->waits = st == DT_AGAIN;
    return st == DT_DONE || st == DT_AGAIN ? DT_OK : st;
}

static void stop_all(pool *p)
{
    for (uint32_t i = 0; i < p->n && !p->is_stopped; i++) {
        kill(p->of[i].pid, SIGTERM);
    }
    p->is_stopped = true;
}

static dt_status take_ended(pool *p)
{
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < p->n;) {
        int code = 0;
        if (!dt_child_ended(p->of[i].pid, false, &code)) {
            i++;
            continue;
        }
        const uint32_t id = p->of[i].id;
        p->of[i] = p->of[--p->n];
        const dt_status said = p->d->ended(p->d->user, id, code, p->is_stopped);
        if (st == DT_OK) {
            st = said;
        }
    }
    return st;
}

/* After an error nothing new begins; the rest saves and stops, and the first error stays the record. */
static dt_status stop_and_fail(pool *p, dt_status st)
{
    dt_error first;
    dt_error_save(&first, st);
    stop_all(p);
    while (p->n > 0) {
        int code = 0;
        (void)dt_child_ended(p->of[--p->n].pid, true, &code);
    }
    return dt_error_restore(&first);
}

dt_status dt_trainings_run(const dt_trainings_desc *d)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    pool p = {.d = d};
    while (true) {
        dt_status st = fill(&p);
        if (st == DT_OK && dt_signals_stop() != 0) {
            stop_all(&p);
        }
        if (st < 0) {
            return stop_and_fail(&p, st);
        }
        if (p.n == 0 && !p.waits) {
            break;
        }
        nanosleep(&nap, NULL);
        st = take_ended(&p);
        if (st < 0) {
            return stop_and_fail(&p, st);
        }
    }
    return dt_signals_stop() != 0 ? DT_FAIL(DT_EINTERRUPTED, "asked to stop") : DT_OK;
}
