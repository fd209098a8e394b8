/* SPDX-License-Identifier: Apache-2.0
 *
 * Report of a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT): the signal and the backtrace, on standard error and in
 * the log. Then the signal ends the process as usual. Functions that are not exported appear as FILE(+OFFSET), as
 * addr2line expects. Without backtrace (execinfo.h) only the signal is reported. Threads: install and set_log [main];
 * the rest is for signal handlers.
 */
#ifndef DTRAIN_CORE_BASE_CRASH_H
#define DTRAIN_CORE_BASE_CRASH_H

/* Signals that already have a handler, such as a sanitizer's, keep it. Call it before a library installs its own
 * (MPI). */
void dt_crash_install(void);
/* A log that also receives the report, open for appending as long as it is set; -1: none. */
void dt_crash_set_log(int fd);
/* Called in the handler, async-signal-safe: a mapped file whose change explains the crash, or NULL. Such a crash ends
 * the program with the exit code of data (4). */
void dt_crash_set_changed_file(const char *(*changed)(void));
/* For a handler of a signal that it does not handle after all. Async-signal-safe; once per process. */
void dt_crash_report(int number);

#endif
