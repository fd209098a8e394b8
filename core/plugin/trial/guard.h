/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of the host in front of, between and after the buffers that a plugin on trial may write. Threads: any.
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_GUARD_H
#define DTRAIN_CORE_PLUGIN_TRIAL_GUARD_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_GUARD_BYTES = 64, DT_GUARD = 0xA5 };

/* Is a guard as it was filled, with DT_GUARD? : the buffers before and after it, such as "obs"; NULL:
 * none. DT_EPLUGIN reports what was written where: a guard that is damaged nearer to its end was reached from the
 * buffer after it. */
dt_status dt_check_guard_bytes(const uint8_t *from, size_t bytes, const char *call, const char *after_what,
                               const char *next) DT_NODISCARD;

#endif
