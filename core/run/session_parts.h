/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of session.h share. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_SESSION_PARTS_H
#define DTRAIN_CORE_RUN_SESSION_PARTS_H

#include "run/session.h"

/* session_check.c: how the processes were started, shards, threads and workers of environments. needs_several: a run
 * begins, so that comm.backend = "mpi" in one process is a mistake; what continues a run of several, or looks at it,
 * may be one. */
dt_status dt_session_check(const dt_session *s, bool needs_several) DT_NODISCARD;
/* Ranks that a phase has work for: each needs a shard and, where the phase collects rollouts, an instance. */
uint32_t dt_session_most_ranks(const dt_session *s, int64_t phase, bool collects);
/* Those that take part in it: all, or of MIN:MAX processes as many as have work, if MIN allows that. */
uint32_t dt_session_count_ranks(const dt_session *s, int64_t phase, bool collects);
/* Of a phase with an environment: an instance for each rank that has to take part. Errors: DT_ECONFIG. */
dt_status dt_session_check_instances(const dt_session *s, int64_t phase) DT_NODISCARD;
/* Of a session that trains: does comm.shard_weights deal leaves to its ranks? */
dt_status dt_session_check_shard_weights(const dt_session *s) DT_NODISCARD;
/* What a later phase names is looked for before the first one begins. A run that is resumed may have lost what its
 * phases began with. */
dt_status dt_session_check_names(const dt_session *s, bool is_fresh) DT_NODISCARD;

/* session_device.c: what a later phase names is looked for before the first one begins. */
dt_status dt_session_check_devices(const dt_session *s) DT_NODISCARD;
void dt_session_device_close(dt_session_device *d);

#endif
