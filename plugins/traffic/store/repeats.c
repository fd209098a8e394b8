/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/repeats.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

const char *const dt_repeats_policies[] = {
    [DT_REPEATS_KEEP] = "keep", [DT_REPEATS_SKIP] = "skip", [DT_REPEATS_REFUSE] = "refuse", NULL};

uint64_t dt_repeats_hash(uint64_t hash, int64_t frame, const double pose[3], float speed)
{
    const double row[5] = {(double)frame, pose[0], pose[1], pose[2], (double)speed};
    return dt_hash64(row, sizeof(row), hash);
}

uint64_t dt_repeats_hash_core(uint64_t hash, uint8_t is_core)
{
    return dt_hash64(&is_core, sizeof(is_core), hash);
}

dt_status dt_repeats_add(dt_repeats *r, uint64_t hash, const char *scene, const char **same_p)
{
    char text[24];
    int32_t number = 0;
    bool is_new = false;
    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    if (r->hashes.n == r->cap) {
        const int32_t cap = r->cap == 0 ? 64 : 2 * r->cap; /* of dt_names: at most DT_NAMES_MOST */
        char **grown = dt_realloc(r->scene, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " scenes", cap);
        }
        r->scene = grown;
        r->cap = cap;
    }
    char *name = dt_strdup(scene);
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for scene %s", scene);
    }
    const dt_status st = dt_names_add(&r->hashes, text, &number, &is_new);
    if (st != DT_OK || !is_new) {
        dt_free(name);
        *same_p = st == DT_OK ? r->scene[number] : NULL;
        return st;
    }
    r->scene[number] = name;
    *same_p = NULL;
    return DT_OK;
}

void dt_repeats_fini(dt_repeats *r)
{
    for (int32_t i = 0; i < r->hashes.n; i++) {
        dt_free(r->scene[i]);
    }
    dt_free(r->scene);
    dt_names_fini(&r->hashes);
    *r = (dt_repeats){.scene = NULL};
}
