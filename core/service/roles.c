/* SPDX-License-Identifier: Apache-2.0
 *
 * See roles.h.
 */
#include "service/roles.h"

#include <string.h>

const char *const dt_role_name[DT_ROLES] = {"perception", "world", "controller", "shield"};

int dt_role_find(const char *name, size_t bytes)
{
    for (int i = 0; i < DT_ROLES; i++) {
        if (strlen(dt_role_name[i]) == bytes && memcmp(dt_role_name[i], name, bytes) == 0) {
            return i;
        }
    }
    return -1;
}
