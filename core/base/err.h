/* SPDX-License-Identifier: Apache-2.0
 *
 * Error record: the reason of a dt_status, one per thread.
 *
 * The first place that knows the reason writes it with DT_FAIL; callers pass the status up and may add
 * a line with DT_CONTEXT ("loading phase x"); only core/cli/main.c prints. A record lives until the next
 * dt_error_clear or DT_FAIL on the same thread. Workers pass theirs to the caller with dt_error_save and
 * dt_error_restore. Threads: any (thread-local).
 */
#ifndef DTRAIN_CORE_BASE_ERR_H
#define DTRAIN_CORE_BASE_ERR_H

#include "dtrain/status.h"
#include <stdint.h>

#include <stdbool.h>

enum { DT_ERROR_TEXT_BYTES = 8192 }; /* twenty errors of a configuration, a line each */

/* Record a new error (replaces the old record) and return st. Message: lower case, value and limit, what to do; one
 * line: line ends in it are those of foreign names, and become '?' like all that print.h masks. */
dt_status dt_fail(dt_status st, const char *file, int line, const char *fmt, ...) DT_PRINTF(4, 5);
#define DT_FAIL(st, ...) dt_fail((st), __FILE__, __LINE__, __VA_ARGS__)

/* The same of several lines. What it joins was masked piece by piece: texts of records, words of the program. */
dt_status dt_fail_lines(dt_status st, const char *file, int line, const char *fmt, ...) DT_PRINTF(4, 5);
#define DT_FAIL_LINES(st, ...) dt_fail_lines((st), __FILE__, __LINE__, __VA_ARGS__)

/* Put "context: " in front of the recorded text; returns st. */
dt_status dt_error_add_context(dt_status st, const char *fmt, ...) DT_PRINTF(2, 3);
#define DT_CONTEXT(st, ...) dt_error_add_context((st), __VA_ARGS__)

/* Marks the record as a breach of a plugin's contract, whatever the status is that the plugin gets and may handle:
 * where it ends the run, it is DT_EPLUGIN (dt_error_blame_plugin). Returns st. */
dt_status dt_error_mark_breach(dt_status st);
#define DT_BREACH(st, ...) dt_error_mark_breach(DT_FAIL((st), __VA_ARGS__))
/* What a callback failed with: a breach and DT_EINVAL become DT_EPLUGIN. What a user's value causes is DT_ECONFIG. */
dt_status dt_error_blame_plugin(dt_status st);

const char *dt_error_text(void);  /* the record of this thread, "" when empty */
dt_status dt_error_status(void);  /* the code it was made with, DT_OK when empty */
const char *dt_error_where(void); /* "file:line" of the DT_FAIL that made it, "" when empty */
void dt_error_clear(void);
uint64_t dt_error_count(void); /* records that this thread has made so far */

/* st of foreign code that made no record since the thread had made `before`, or an empty one: a record of that,
 * and how to give a reason. Of a negative number that is no code: DT_EPLUGIN. */
dt_status dt_error_require_reason(dt_status st, uint64_t before, const char *culprit, const char *call);

/* Hand a record from a worker to the thread that waits for it. */
typedef struct dt_error {
    dt_status status;
    char text[DT_ERROR_TEXT_BYTES];
    char where[128];
    bool is_breach; /* dt_error_mark_breach */
} dt_error;
void dt_error_save(dt_error *out_p, dt_status st); /* copies this thread's record */
dt_status dt_error_restore(const dt_error *e);     /* makes it this thread's record, returns e->status */

const char *dt_status_name(dt_status st); /* "DT_ECONFIG"; "DT_?" when unknown */
const char *dt_status_text(dt_status st); /* "configuration or command line" */

/* Returns every code but DT_OK to the caller unchanged: failures, and DT_DONE and DT_AGAIN, which are never ignored. */
#define DT_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        dt_status dt_try_st_ = (expr);                                                                                 \
        if (dt_try_st_ != DT_OK) {                                                                                     \
            return dt_try_st_;                                                                                         \
        }                                                                                                              \
    } while (0)

/* The same after the end of a stream was expected: DT_DONE continues, too. DT_AGAIN never does. */
#define DT_TRY_DONE(expr)                                                                                              \
    do {                                                                                                               \
        dt_status dt_try_st_ = (expr);                                                                                 \
        if (dt_try_st_ != DT_OK && dt_try_st_ != DT_DONE) {                                                            \
            return dt_try_st_;                                                                                         \
        }                                                                                                              \
    } while (0)

/* A plugin's code, where only DT_OK and failures are allowed: other positive codes break the contract. */
#define DT_TRY_PLUGIN(expr, what)                                                                                      \
    do {                                                                                                               \
        const dt_status dt_try_st_ = (expr);                                                                           \
        if (dt_try_st_ > 0) {                                                                                          \
            return DT_FAIL(DT_EPLUGIN, "%s returns %s, expected DT_OK", what, dt_status_name(dt_try_st_));             \
        }                                                                                                              \
        if (dt_try_st_ < 0) {                                                                                          \
            return dt_try_st_;                                                                                         \
        }                                                                                                              \
    } while (0)

#endif
