/* SPDX-License-Identifier: Apache-2.0
 *
 * Environment plugins in a foreign process: libdtrain-env, which the Python package loads (python/dtrain/_native.py
 * has these declarations too). n instances of one environment are stepped together by rl/env/vector.h; observations,
 * rewards and actions are in one block of memory, a record per instance, that the caller reads and writes in place.
 *
 * Errors are a status and, in the caller's buffer, a text; on success the buffer is not touched. Threads: an object,
 * one thread at a time; objects side by side. Plugins are opened once in a process and stay.
 */
#ifndef DTRAIN_CORE_EMBED_WORLDS_H
#define DTRAIN_CORE_EMBED_WORLDS_H

#include "dtrain/plugin.h"

typedef struct dt_worlds dt_worlds;

typedef struct dt_worlds_desc {
    uint32_t struct_size, n;     /* n: instances, at least 1 */
    const char *env;             /* id, as of env.id, or the path of a plugin's file */
    const char *const *settings; /* "key=value" ..., NULL at the end: options of the environment; NULL: none */
    const char *plugin_dir;      /* where plugins are, after the folders of DTRAIN_PLUGIN_PATH; of the first object */
    uint32_t threads, reserved;  /* at least 1: the calling thread and others */
} dt_worlds_desc;

/* Errors: DT_ENOTFOUND (no such environment), DT_ECONFIG (options), DT_EUNSUPPORTED (an environment with one instance
 * per process, and n > 1), those of the loader and of the environment. */
DT_EXPORT dt_status dt_worlds_create(const dt_worlds_desc *d, dt_worlds **out_p, char *message, size_t message_bytes)
    DT_NODISCARD;
DT_EXPORT void dt_worlds_destroy(dt_worlds *w); /* NULL is fine */
/* JSON: "agents", "observations": [{"name", "dtype", "rows", "shape", "offset", ...}], "choices", "low", "high", and at
 * "offsets" where the other members of dt_env_io are in a record of "record_bytes". Lives as long as w. */
DT_EXPORT const char *dt_worlds_describe(const dt_worlds *w);
DT_EXPORT void *dt_worlds_memory(dt_worlds *w); /* [n, record_bytes] */
/* [n] 1: the episode is over, the next step is a reset; the caller may set more of them. */
DT_EXPORT uint8_t *dt_worlds_over(dt_worlds *w);
/* New episodes. which: [n] 1: of this instance; NULL: all. seed: [n], of those episodes, and with their number of the
 * later ones of the instance; NULL: the next episode of the seed that the instance has. */
DT_EXPORT dt_status dt_worlds_reset(dt_worlds *w, const uint8_t *which, const uint64_t *seed, char *message,
                                    size_t message_bytes) DT_NODISCARD;
/* A step of all by the actions in their records; a reset of those whose episode is over. */
DT_EXPORT dt_status dt_worlds_step(dt_worlds *w, char *message, size_t message_bytes) DT_NODISCARD;
/* Ids of all environments that are found, one a line; lives until the next call. [main] */
DT_EXPORT const char *dt_worlds_list(const char *plugin_dir);

#endif
