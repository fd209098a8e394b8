/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/hang_watch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/signals.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double LOOK_S = 0.1, LEAST_S = 1; /* between looks; no shorter silence is reported */
static const double LEFT_S = 10;               /* that others wait for, which have failed */

struct dt_hang_watch {
    dt_hang_desc d;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ends;
    double quiet_s; /* since the last pulse, as far as this process was running */
    bool is_reported;
    uint32_t hung; /* the rank that is reported */
};

/* Of those in a callback the first that does not wait for others. */
static bool find_hung(const dt_hang_watch *w, uint32_t *rank_p)
{
    for (uint32_t r = 0; r < w->d.n; r++) {
        const dt_call_slot *s = &w->d.rank[r].calls;
        if (!atomic_load(&s->is_waiting) && atomic_load(&w->d.rank[r].failed) == 0 && atomic_load(&s->call) != NULL) {
            *rank_p = r;
            return true;
        }
    }
    return false;
}

static void describe(const dt_hang_watch *w, uint32_t r, char *out, size_t bytes)
{
    char who[32] = "", call[192] = "a callback";
    if (w->d.is_one_of_many) {
        snprintf(who, sizeof(who), "rank %u: ", w->d.rank[r].number);
    }
    (void)dt_call_describe(&w->d.rank[r].calls, call, sizeof(call));
    snprintf(out, bytes, "%s%s has neither returned nor made progress for %.0f s", who, call, w->quiet_s);
}

/* Its exit code; 0: none has. */
static int find_failure(const dt_hang_watch *w)
{
    int code = 0;
    for (uint32_t r = 0; r < w->d.n && code == 0; r++) {
        code = atomic_load(&w->d.rank[r].failed);
    }
    return code;
}

static void end_process(const dt_hang_watch *w, int failed)
{
    char text[320], why[64] = "the time of --max-time is over";
    describe(w, w->hung, text, sizeof(text));
    if (failed != 0) {
        dt_log(DT_LOG_ERROR, "%s, and another rank has failed: the run ends; its last checkpoint remains", text);
    } else {
        if (dt_signals_stop() != 0) {
            snprintf(why, sizeof(why), "asked to stop (signal %d)", dt_signals_stop());
        }
        dt_log(DT_LOG_ERROR, "%s; %s, the run ends without saving: its last checkpoint remains", text, why);
    }
    _exit(w->d.end(w->d.user, failed));
}

static void look(dt_hang_watch *w, double passed_s)
{
    const bool has_pulsed = atomic_exchange(&dt_call_has_pulsed, false);
    w->quiet_s = has_pulsed ? 0 : w->quiet_s + fmin(passed_s, 5 * LOOK_S); /* a stopped process is not hung */
    const int failed = find_failure(w);
    const double long_s = fmax(w->d.timeout_s / 2, LEAST_S), limit_s = failed != 0 ? fmin(long_s, LEFT_S) : long_s;
    uint32_t r = 0;
    if (w->quiet_s < limit_s || !find_hung(w, &r)) {
        w->is_reported = w->is_reported && !has_pulsed;
        return;
    }
    const bool is_known = w->is_reported && w->hung == r;
    w->hung = r;
    w->is_reported = true;
    if (failed != 0) {
        end_process(w, failed);
    }
    if (!is_known) {
        char text[320];
        describe(w, r, text, sizeof(text));
        dt_log(DT_LOG_ERROR, "%s: waiting for it; a signal to stop ends the run from now on without saving", text);
    }
    if (w->d.is_stopping(w->d.user)) {
        end_process(w, 0);
    }
}

static void *watch_main(void *arg)
{
    dt_hang_watch *w = arg;
    double before = dt_clock_s();
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(LOOK_S * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&w->changed, &w->lock, &until);
        const double now = dt_clock_s();
        if (!w->ends) {
            look(w, now - before);
        }
        before = now;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

dt_status dt_hang_watch_begin(const dt_hang_desc *d, dt_hang_watch **out_p)
{
    dt_hang_watch *w = dt_alloc(sizeof(*w));
    *out_p = NULL;
    if (w == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to watch callbacks");
    }
    pthread_condattr_t attr;
    w->d = *d;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&w->thread, NULL, watch_main, w) != 0) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        dt_free(w);
        return DT_OK;
    }
    *out_p = w;
    return DT_OK;
}

void dt_hang_watch_end(dt_hang_watch *w)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    dt_free(w);
}
