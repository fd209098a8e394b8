/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/crash.h"

#include "base/exit.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_EXECINFO_H
#    include <execinfo.h>
#endif

enum { MOST_FRAMES = 40, OWN_FRAMES = 2, STACK_BYTES = 65536 }; /* own: distinguishing itself */

static atomic_int log_fd = -1;
static atomic_bool is_reported;
static const char *(*changed_file)(void);
static char stack[STACK_BYTES]; /* of the handler on the main thread, whose own may have run over */

/* strsignal may allocate. */
static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV: invalid memory access";
    case SIGBUS:
        return "SIGBUS: memory or a mapped file is not accessible";
    case SIGFPE:
        return "SIGFPE: integer division by zero";
    case SIGILL:
        return "SIGILL: this processor does not have this instruction";
    default:
        return "SIGABRT: the program aborted";
    }
}

static void append_text(int fd, const char *text)
{
    const ssize_t ignored = write(fd, text, strlen(text));
    (void)ignored;
}

static void write_crash_report(int fd, int number)
{
    append_text(fd, "crash: ended by ");
    append_text(fd, signal_name(number));
    append_text(fd, "\n");
#ifdef HAVE_EXECINFO_H
    void *frame[MOST_FRAMES];
    const int n = backtrace(frame, MOST_FRAMES);
    append_text(fd, n > OWN_FRAMES ? "crash: backtrace, most recent call first:\n" : "");
    if (n > OWN_FRAMES) {
        backtrace_symbols_fd(frame + OWN_FRAMES, n - OWN_FRAMES, fd);
    }
#endif
}

void dt_crash_report(int number)
{
    const int kept = errno;
    if (!atomic_exchange(&is_reported, true)) {
        const int fd = atomic_load(&log_fd);
        write_crash_report(STDERR_FILENO, number);
        if (fd >= 0) {
            write_crash_report(fd, number);
        }
    }
    errno = kept;
}

/* As the log writes an error. */
static void report_changed_file(int fd, const char *path)
{
    append_text(fd, "error ");
    append_text(fd, path);
    append_text(
        fd, " was changed while in use, and the program crashed reading it; restore the complete file and resume from "
            "the last checkpoint (--resume)\n");
}

static void handle_crash_signal(int number)
{
    signal(number, SIG_DFL); /* first: a fault in here ends it, too */
    const char *path = changed_file != NULL ? changed_file() : NULL;
    if (path != NULL) {
        const int fd = atomic_load(&log_fd);
        report_changed_file(STDERR_FILENO, path);
        if (fd >= 0) {
            report_changed_file(fd, path);
        }
        _exit(DT_EXIT_DATA);
    }
    dt_crash_report(number);
    raise(number);
}

void dt_crash_set_changed_file(const char *(*changed)(void))
{
    changed_file = changed;
}

void dt_crash_set_log(int fd)
{
    atomic_store(&log_fd, fd);
}

void dt_crash_install(void)
{
    static const int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGABRT};
    struct sigaction a, old;
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
#ifdef HAVE_EXECINFO_H
    void *frame[1];
    (void)backtrace(frame, 1); /* loads what it needs now, when memory may be allocated */
#endif
    sigaltstack(&own, NULL);
    memset(&a, 0, sizeof(a));
    sigemptyset(&a.sa_mask);
    a.sa_flags = SA_ONSTACK;
    a.sa_handler = handle_crash_signal;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
            sigaction(signals[i], &a, NULL);
        }
    }
}
