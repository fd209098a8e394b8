/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process that dies of its own fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) still says: the signal, and the
 * calls that led there, on standard error and in its log. Then the signal ends it as ever. Addresses of functions that
 * are not exported are told as FILE(+OFFSET), which addr2line reads. Where the C library has no backtrace (execinfo.h),
 * the signal alone. Threads: install and log_set [main]; the rest is for signal handlers.
 */
#ifndef DTRAIN_CORE_BASE_CRASH_H
#define DTRAIN_CORE_BASE_CRASH_H

/* Signals that somebody else handles, such as a sanitizer, stay theirs. Before a library takes them (MPI). */
void dt_crash_install(void);
/* The file that hears it, too, open for appending as long as it is set; -1: none. */
void dt_crash_log_set(int fd);
/* Asked in the handler, async-signal-safe: a file that was changed under the program and explains the crash, or NULL.
 * Such a crash ends the program by the exit code of data (4). */
void dt_crash_file_set(const char *(*changed)(void));
/* For a handler that finds out that the signal was not for it. Async-signal-safe; once in a process. */
void dt_crash_tell(int number);

#endif
