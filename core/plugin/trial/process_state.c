/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/trial/process_state.h"

#include "base/hash.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

static bool is_diverted;

void dt_process_state_divert(void)
{
    fflush(stdout);
    const int file = memfd_create("stdout of a plugin", MFD_CLOEXEC);
    is_diverted = file >= 0 && dup2(file, STDOUT_FILENO) >= 0;
    if (file >= 0) {
        close(file);
    }
}

static int64_t bytes_written(void)
{
    struct stat st;
    fflush(stdout);
    return is_diverted && fstat(STDOUT_FILENO, &st) == 0 ? st.st_size : 0;
}

static uint64_t hash_environment(void)
{
    uint64_t h = 0;
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        h = dt_hash64(*e, strlen(*e), h);
    }
    return h;
}

static void capture_folder(uint64_t out[2])
{
    struct stat st;
    const bool is_there = stat(".", &st) == 0;
    out[0] = is_there ? (uint64_t)st.st_dev : 0;
    out[1] = is_there ? (uint64_t)st.st_ino : 0;
}

static mode_t current_mask(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return mask;
}

void dt_process_state_capture(dt_process_state *s)
{
    memset(s, 0, sizeof(*s));
    for (int i = 1; i < DT_PROCESS_SIGNALS; i++) {
        (void)sigaction(i, NULL, &s->action[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    for (int i = 0; i < DT_PROCESS_LIMITS; i++) {
        (void)getrlimit((__rlimit_resource_t)i, &s->limit[i]);
    }
    (void)getitimer(ITIMER_REAL, &s->timer);
    snprintf(s->locale, sizeof(s->locale), "%s", setlocale(LC_ALL, NULL));
    capture_folder(s->folder);
    s->environment = hash_environment();
    s->mask = current_mask();
    s->fp = dt_fp_mode_get();
    s->n_fp_changes = dt_fp_mode_n_changed();
    s->written = bytes_written();
}

/* ---- what differs ------------------------------------------------------------------------------------------------ */

static bool differs_signal(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    for (int i = 1; i < DT_PROCESS_SIGNALS; i++) {
        if (a->action[i].sa_handler != b->action[i].sa_handler) {
            snprintf(out, bytes,
                     "it changed the handler of signal %d, %s; signals belong to the program, which saves by them", i,
                     strsignal(i));
            return true;
        }
    }
    for (int i = 1; i < DT_PROCESS_SIGNALS; i++) {
        if (sigismember(&a->blocked, i) != sigismember(&b->blocked, i)) {
            snprintf(out, bytes, "it changed whether signal %d, %s, is blocked; signals belong to the program", i,
                     strsignal(i));
            return true;
        }
    }
    if (memcmp(&a->timer.it_interval, &b->timer.it_interval, sizeof(a->timer.it_interval)) != 0 ||
        (a->timer.it_value.tv_sec == 0) != (b->timer.it_value.tv_sec == 0)) {
        snprintf(out, bytes, "it set a timer (alarm, setitimer), whose signal ends the program");
        return true;
    }
    return false;
}

static bool differs_output(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    if (a->written == b->written) {
        return false;
    }
    snprintf(out, bytes,
             "it wrote %lld bytes to standard output, which belongs to results of the program; use log of dt_host",
             (long long)(b->written - a->written));
    return true;
}

static bool differs_folder(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    if (memcmp(a->folder, b->folder, sizeof(a->folder)) == 0) {
        return false;
    }
    snprintf(out, bytes, "it changed the working folder (chdir); open files by their paths, or by openat");
    return true;
}

static bool differs_locale(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    if (strcmp(a->locale, b->locale) == 0) {
        return false;
    }
    snprintf(out, bytes, "it changed the locale to %.60s (setlocale), by which numbers are read; use newlocale, *_l",
             b->locale);
    return true;
}

static bool differs_fp(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    char what[128];
    if (a->fp == b->fp && a->n_fp_changes == b->n_fp_changes) {
        return false;
    }
    if (a->fp == b->fp) {
        dt_fp_mode_last(what, sizeof(what));
    } else {
        dt_fp_mode_describe(a->fp, b->fp, what, sizeof(what));
    }
    snprintf(out, bytes, "it changed the floating-point environment (%s), which gives other results; restore it", what);
    return true;
}

static bool differs_limit(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    for (int i = 0; i < DT_PROCESS_LIMITS; i++) {
        if (a->limit[i].rlim_cur != b->limit[i].rlim_cur || a->limit[i].rlim_max != b->limit[i].rlim_max) {
            snprintf(out, bytes, "it changed limit %d of the process (setrlimit); limits belong to the user", i);
            return true;
        }
    }
    return false;
}

static bool differs_rest(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes)
{
    if (a->mask != b->mask) {
        snprintf(out, bytes, "it changed the file mode mask to %03o (umask), by which the program creates files",
                 (unsigned)b->mask);
        return true;
    }
    if (a->environment != b->environment) {
        snprintf(out, bytes, "it changed environment variables (setenv), which other threads may be reading");
        return true;
    }
    return false;
}

bool dt_process_state_differs(const dt_process_state *before, char *out, size_t bytes)
{
    static bool (*const all[])(const dt_process_state *a, const dt_process_state *b, char *out, size_t bytes) = {
        differs_signal, differs_output, differs_folder, differs_locale, differs_fp, differs_limit, differs_rest};
    dt_process_state now;
    dt_process_state_capture(&now);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i](before, &now, out, bytes)) {
            return true;
        }
    }
    return false;
}
