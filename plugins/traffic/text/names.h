/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a recording (scenes, vehicles of a simulator), numbered 0, 1, ... in the order in which they came. Threads:
 * one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_NAMES_H
#define DTRAIN_PLUGINS_TRAFFIC_NAMES_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { DT_NAMES_MOST = 1 << 28 };

typedef struct dt_names { /* zeroed is empty */
    char **name;          /* [n] */
    int32_t n, cap;
    int32_t *bucket; /* [n_buckets] number + 1 */
    size_t n_buckets;
    uint64_t seed; /* of the hash */
} dt_names;

/* The number of a name; *is_new_p: it was not there. Errors: DT_EDATA (more than DT_NAMES_MOST), DT_ENOMEM. */
dt_status dt_names_add(dt_names *t, const char *name, int32_t *number_p, bool *is_new_p) DT_NODISCARD;
int32_t dt_names_find(const dt_names *t, const char *name); /* -1: not there */
void dt_names_fini(dt_names *t);

/* Control characters, which no name of a scene, a site or a map has. */
bool dt_has_control(const char *name);

/* A seed for hash tables whose keys come from files: random bytes of this process, so that no file can be written whose
 * keys all collide. Results do not depend on it. */
uint64_t dt_names_seed(void);

#endif
