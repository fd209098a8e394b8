/* SPDX-License-Identifier: Apache-2.0
 *
 * Inline conveniences for plugins: printf-style logging and errors over dt_host, so that no varargs cross the ABI, and
 * the operations that every other plugin writes alike.
 * Threads: any.
 */
#ifndef DTRAIN_HELPERS_H
#define DTRAIN_HELPERS_H

#include "dtrain/plugin.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Returns every code but DT_OK to the caller unchanged: failures, and DT_DONE and DT_AGAIN, too. */
#define DT_TRY_H(expr)                                                                                                 \
    do {                                                                                                               \
        dt_status dt_try_st_ = (expr);                                                                                 \
        if (dt_try_st_ != DT_OK) {                                                                                     \
            return dt_try_st_;                                                                                         \
        }                                                                                                              \
    } while (0)

/* DT_SERVICE_H(h, s->bind, DT_SVC_BIND, "mine"): the service, or return that the host has none. */
#ifdef __cplusplus
#    define DT_SERVICE_CAST_(var) (decltype(var))
#else
#    define DT_SERVICE_CAST_(var)
#endif
#define DT_SERVICE_H(h, var, id, who)                                                                                  \
    do {                                                                                                               \
        (var) = DT_SERVICE_CAST_(var)(h)->service((h), (id));                                                          \
        if ((var) == NULL) {                                                                                           \
            return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which %s needs", (id), (who));          \
        }                                                                                                              \
    } while (0)

/* ---- operations that do nothing ------------------------------------------------------------------------------- */

/* stop of a phase that runs nothing by itself; destroy of what owns nothing beyond its state */
static inline void dt_no_op(void *self)
{
    (void)self;
}

/* symbols and sizes of data whose samples are all of one shape */
static inline const char *const *dt_no_symbols(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = 0;
    return NULL;
}

static inline dt_status dt_no_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    (void)self;
    (void)index;
    (void)n;
    (void)size;
    return DT_OK;
}

/* ---- operations that are alike, as functions FN ---------------------------------------------------------------- */

/* A state that is no more than DT_CREATE_DEFINE or DT_MODEL_CREATE_DEFINE need. */
#define DT_STATE_DEFINE(STATE, CONFIG)                                                                                 \
    typedef struct STATE {                                                                                             \
        const dt_host *h;                                                                                              \
        CONFIG config;                                                                                                 \
    } STATE

/* create of a phase, an environment or data: keeps the host as member h and the configuration as member config. */
#define DT_CREATE_DEFINE(FN, STATE)                                                                                    \
    static dt_status FN(void *self, const dt_host *h, const void *config_)                                             \
    {                                                                                                                  \
        STATE *s_ = (STATE *)self;                                                                                     \
        s_->h = h;                                                                                                     \
        memcpy(&s_->config, config_, sizeof(s_->config));                                                              \
        return DT_OK;                                                                                                  \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

/* create of a model that needs no sizes from the phase: the same. */
#define DT_MODEL_CREATE_DEFINE(FN, STATE)                                                                              \
    static dt_status FN(void *self, const dt_host *h, const void *config_, const dt_dim *dims, uint32_t n_dims)        \
    {                                                                                                                  \
        STATE *s_ = (STATE *)self;                                                                                     \
        (void)dims;                                                                                                    \
        (void)n_dims;                                                                                                  \
        s_->h = h;                                                                                                     \
        memcpy(&s_->config, config_, sizeof(s_->config));                                                              \
        return DT_OK;                                                                                                  \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

/* inputs or outputs of a model, fields of data, where the configuration does not change them: the array FN_ports, and
 * FN that answers with it. DT_PORTS_DEFINE(inputs, {"x", "B 1", DT_F32, 0}); */
#define DT_PORTS_DEFINE(FN, ...)                                                                                       \
    static const dt_port FN##_ports[] = {__VA_ARGS__};                                                                 \
    static const dt_port *FN(const void *self, uint32_t *n_p)                                                          \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        *n_p = (uint32_t)(sizeof(FN##_ports) / sizeof(FN##_ports[0]));                                                 \
        return FN##_ports;                                                                                             \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

/* extension of a phase: defaults of the host's own sections ("dtrain.defaults/1").
 * DT_DEFAULTS_DEFINE(extension, "training.epochs=20", "data.batch=64"); */
#define DT_DEFAULTS_DEFINE(FN, ...)                                                                                    \
    static const void *FN(const char *id)                                                                              \
    {                                                                                                                  \
        static const char *const text_[] = {__VA_ARGS__, NULL};                                                        \
        return strcmp(id, DT_EXT_DEFAULTS) == 0 ? (const void *)text_ : NULL;                                          \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

/* extension of an environment or a phase: what the numbers of its evaluations are ("dtrain.results/1"), a row
 * "KEY|GROUP|UNIT|BETTER|TEXT" each. DT_RESULTS_DEFINE(extension, "metrics/delay_s||s|lower|lost by a vehicle"); */
#define DT_RESULTS_DEFINE(FN, ...)                                                                                     \
    static const void *FN(const char *id)                                                                              \
    {                                                                                                                  \
        static const char *const text_[] = {__VA_ARGS__, NULL};                                                        \
        return strcmp(id, DT_EXT_RESULTS) == 0 ? (const void *)text_ : NULL;                                           \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

#ifdef __cplusplus
}
#endif
#endif
