/* SPDX-License-Identifier: Apache-2.0
 *
 * Inline conveniences for plugins: printf-style logging and errors over dt_host, so that no varargs cross the ABI.
 * Threads: any.
 */
#ifndef DTRAIN_HELPERS_H
#define DTRAIN_HELPERS_H

#include "dtrain/plugin.h"
#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_STR_(x) #x
#define DT_STR(x)  DT_STR_(x)

static inline void dt_logf(const dt_host *h, int32_t level, const char *fmt, ...) DT_PRINTF(3, 4);
static inline void dt_logf(const dt_host *h, int32_t level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    h->log(h, level, text);
}

static inline dt_status dt_failf(const dt_host *h, dt_status st, const char *where, const char *fmt, ...)
    DT_PRINTF(4, 5);
static inline dt_status dt_failf(const dt_host *h, dt_status st, const char *where, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return h->fail(h, st, where, text);
}

/* return DT_FAIL_H(h, DT_ECONFIG, "clip_eps %g is outside (0,1)", c); */
#define DT_FAIL_H(h, st, ...) dt_failf((h), (st), __FILE__ ":" DT_STR(__LINE__), __VA_ARGS__)

/* Is a member inside the table that an older or newer peer filled? */
#define DT_HAS(p, member)                                                                                              \
    ((p) != NULL && (p)->struct_size >= (uint32_t)((const char *)(&(p)->member + 1) - (const char *)(p)) &&            \
     (p)->member != NULL)

/* Propagate a failure unchanged. */
#define DT_TRY_H(expr)                                                                                                 \
    do {                                                                                                               \
        dt_status dt_try_st_ = (expr);                                                                                 \
        if (dt_try_st_ < 0) {                                                                                          \
            return dt_try_st_;                                                                                         \
        }                                                                                                              \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
