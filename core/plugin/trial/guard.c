/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/trial/guard.h"

#include "base/err.h"

dt_status dt_check_guard_bytes(const uint8_t *from, size_t bytes, const char *call, const char *after_what,
                               const char *next)
{
    size_t first = 0;
    while (first < bytes && from[first] == DT_GUARD) {
        first++;
    }
    if (first == bytes) {
        return DT_OK;
    }
    const bool is_front = after_what == NULL || (next != NULL && first >= bytes / 2);
    return DT_FAIL(DT_EPLUGIN, "%s writes %s %s", call, is_front ? "before the start of" : "past the end of",
                   is_front ? next : after_what);
}
