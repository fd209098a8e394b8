/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes of dtrain, shared by the host and every plugin.
 *
 * A function that can fail returns dt_status and nothing else reports errors. The codes are grouped
 * by what is lost: the caller's mistake (nothing changed), this rank, or the whole job. The reason in
 * words goes through dt_host.fail (plugins) or DT_FAIL (core/base/err.h) at the first place that knows it.
 * Threads: any. Source of the grouping: UCX, src/ucs/type/status.h ("largest entity permanently affected").
 */
#ifndef DTRAIN_STATUS_H
#define DTRAIN_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#    define DT_NODISCARD    __attribute__((warn_unused_result))
#    define DT_EXPORT       __attribute__((visibility("default")))
#    define DT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#    define DT_NODISCARD
#    define DT_EXPORT
#    define DT_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t dt_status; /* 0 ok, >0 not an error, <0 error */

enum {
    DT_OK = 0,    /* done */
    DT_DONE = 1,  /* done, and there is nothing left to do (end of a phase, of a stream) */
    DT_AGAIN = 2, /* not yet: call again */

    /* caller's mistake, nothing changed */
    DT_EINVAL = -1,    /* an argument is outside its documented range */
    DT_ECONFIG = -2,   /* configuration or command line */
    DT_ESHAPE = -3,    /* shapes, dtypes or ports do not fit */
    DT_ENOTFOUND = -4, /* no such file, name, plugin, service */
    DT_EABI = -5,      /* plugin built for another contract */
    DT_EDATA = -6,     /* data, store or checkpoint is damaged or not what it claims to be */

    /* this rank is lost */
    DT_ENOMEM = -20,       /* out of host or device memory */
    DT_EIO = -21,          /* the operating system refused a read or write */
    DT_ECUDA = -22,        /* a CUDA, cuBLAS or cuDNN call failed */
    DT_EUNSUPPORTED = -23, /* this build or machine cannot do it */
    DT_EPLUGIN = -24,      /* a plugin broke its contract */
    DT_EINTERRUPTED = -25, /* asked to stop by a signal or a time limit, state saved */
    DT_EBROKEN = -26,      /* this instance of an environment is broken; the host creates it again */

    /* the whole job is lost */
    DT_ECOMM = -40,    /* a collective failed or timed out */
    DT_EPEER = -41,    /* another rank died or reported an error */
    DT_EDIVERGED = -42 /* loss or gradients are not finite */
};

#ifdef __cplusplus
}
#endif
#endif
