/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of foreign code that returns a status. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_PLUGIN_CALL_H
#define DTRAIN_CORE_BASE_PLUGIN_CALL_H

#include "base/err.h"
#include "base/fp_mode.h"

/* st = EXPR, with the floating-point environment restored, and a reason recorded for a failure that gave none:
 * DT_CALL_PLUGIN(st, id, "step", ops->step(self, &io)); */
#define DT_CALL_PLUGIN(st, culprit, call, ...)                                                                         \
    do {                                                                                                               \
        const uint64_t n_records_ = dt_error_count();                                                                  \
        DT_FP_GUARD(culprit, call, (st) = (__VA_ARGS__));                                                              \
        if (__builtin_expect((st) < 0, 0)) {                                                                           \
            (st) = dt_error_require_reason((st), n_records_, culprit, call);                                           \
        }                                                                                                              \
    } while (0)

#endif
