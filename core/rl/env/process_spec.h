/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment's spec as bytes: the struct, then what it points to, member by member, in multiples of 8. A reader of
 * believes none of it. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_SPEC_H
#define DTRAIN_CORE_RL_ENV_PROCESS_SPEC_H

#include "base/str.h"
#include "dtrain/plugin.h"

/* Errors: DT_EPLUGIN (a spec that is not legal cannot be sent), DT_ENOMEM. */
dt_status dt_spec_write(const dt_env_spec *s, dt_str *out) DT_NODISCARD;
/* out points into bytes, which outlive it, and into *memory_p, the caller's, to dt_free. Errors: DT_EPLUGIN (it is not
 * whole, or has more of something than there can be), DT_ENOMEM. */
dt_status dt_spec_read(const char *bytes, size_t n, dt_env_spec *out, void **memory_p) DT_NODISCARD;

#endif
