/* SPDX-License-Identifier: Apache-2.0
 *
 * dt_policy_load of a file in memory: what that is made of, for tests that load millions of them. Threads:
 * [any].
 */
#ifndef DTRAIN_CORE_EXPORT_POLICY_LOAD_H
#define DTRAIN_CORE_EXPORT_POLICY_LOAD_H

#include "dtrain/policy.h"

/* As dt_policy_load; name: what messages call it. The bytes are not needed afterwards. */
dt_status dt_policy_load_bytes(const void *bytes, size_t n_bytes, const char *name, dt_policy **out_p, char *message,
                               size_t message_bytes) DT_NODISCARD;

#endif
