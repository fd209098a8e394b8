/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint keeps of opponents: the pool. A snapshot is what training changes; what is frozen is the run's.
 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/err.h"
#include "base/log.h"

#include <string.h>

/* Of each snapshot, in the order of their places, what training changes: whole numbers, then the pool. */
typedef struct head {
    uint64_t pool, added, round, n_values;
} head;

bool dt_rollout_has_opponent_pool(const dt_rollout *r)
{
    return r->opponents != NULL && r->opponents->n > 0 && r->opponents->opts.target[0] == '\0';
}

dt_status dt_rollout_save_opponent_pool(const dt_rollout *r, dt_str *out)
{
    const dt_opponents *o = r->opponents;
    const head h = {(uint64_t)o->opts.pool, o->added, o->round, dt_policy_n_trained(o->policy)};
    dt_str_add_n(out, (const char *)&h, sizeof(h));
    for (uint32_t k = 1; k <= dt_opponents_count_snapshots(o); k++) {
        dt_policy_pack_params(o->policy, o->values[k], out);
    }
    return dt_str_status(out);
}

static dt_status read_pool(dt_opponents *o, const head *h, const char *at, size_t left)
{
    const uint64_t n = h->added < h->pool ? h->added : h->pool, trained = dt_policy_n_trained(o->policy);
    if (h->n_values != trained || left != n * trained * sizeof(float)) {
        return DT_FAIL(DT_EDATA,
                       "the checkpoint's pool of opponents has %llu snapshots of %llu parameters in %zu bytes; this "
                       "run's have %llu",
                       (unsigned long long)n, (unsigned long long)h->n_values, left, (unsigned long long)trained);
    }
    for (uint32_t k = 1; k <= n; k++) {
        DT_TRY(dt_policy_copy_params(o->r->acting.policy, NULL, o->values[k])); /* what is frozen */
        at = dt_policy_unpack_params(o->policy, at, o->values[k]);
        o->version[k] = ++o->versions;
    }
    o->added = h->added;
    o->round = h->round;
    return DT_OK;
}

dt_status dt_rollout_load_opponent_pool(dt_rollout *r, const void *data, size_t size)
{
    dt_opponents *o = r->opponents;
    head h;
    if (o == NULL || o->opts.target[0] != '\0') {
        return DT_OK;
    }
    if (size < sizeof(h)) {
        return DT_FAIL(DT_EDATA, "the checkpoint's pool of opponents has %zu bytes; expected at least %zu", size,
                       sizeof(h));
    }
    memcpy(&h, data, sizeof(h));
    if (h.pool != (uint64_t)o->opts.pool) {
        dt_log(DT_LOG_WARN, "the checkpoint's pool has room for %llu opponents, this run's for %lld: it starts empty",
               (unsigned long long)h.pool, (long long)o->opts.pool);
        return DT_OK;
    }
    DT_TRY(dt_rollout_prepare(r, r->stage->trainer));
    return read_pool(o, &h, (const char *)data + sizeof(h), size - sizeof(h));
}
