/* SPDX-License-Identifier: Apache-2.0
 *
 * Do all ranks have the same parameters? Exact sums keep them equal to the bit, so that a difference is a fault: of
 * memory, of a processor, of a plugin that gives ranks different numbers. See rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/err.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/mem.h"

/* Of how far a trainer is. */
static uint64_t hash_position(const dt_trainer *t)
{
    struct {
        uint64_t step, updates, passed;
        double scale;
        uint64_t of_group[DT_TRAIN_MAX_GROUPS];
    } place = {.step = dt_trainer_step_number(t),
               .updates = dt_trainer_updates(t),
               .passed = dt_trainer_bypassed_steps(t),
               .scale = dt_trainer_scaler(t)->scale};
    const dt_group_state *group = NULL;
    for (uint32_t g = 0; g < dt_trainer_groups(t, &group); g++) {
        place.of_group[g] = group[g].updates;
    }
    return dt_hash64(&place, sizeof(place), 0);
}

/* One hash a tensor, and one of each trainer's position. */
static void compute_hashes(const dt_rank *k, uint64_t *out)
{
    const dt_stage *s = k->stage;
    const dt_param *p = NULL;
    float *value = NULL;
    uint32_t n = 0;
    for (; (p = dt_stage_param(s, n, &value)) != NULL; n++) {
        out[n] = dt_hash64(value, (size_t)p->count * sizeof(*value), 0);
    }
    for (uint32_t i = 0; i < s->n_trains; i++) {
        out[n + i] = hash_position(s->train[i].trainer);
    }
}

/* The first tensor that is another one on some rank than on rank 0. */
static dt_status compare_hashes(const dt_rank *k, const uint64_t *all)
{
    const uint32_t n_params = dt_stage_n_params(k->stage), n = n_params + k->stage->n_trains;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t r = 1; r < dt_comm_size(k->comm); r++) {
            if (all[(size_t)r * n + i] != all[i]) {
                return DT_FAIL(DT_ECOMM,
                               "after step %llu rank %u has %s than rank 0%s%s: ranks must be bit-identical; test the "
                               "memory of that machine, and check for a plugin whose results depend on the rank",
                               (unsigned long long)dt_rank_global_step(k), r,
                               i < n_params ? "another tensor" : "come to another step", i < n_params ? ", " : "",
                               i < n_params ? dt_stage_param(k->stage, i, NULL)->name : "");
            }
        }
    }
    return DT_OK;
}

dt_status dt_rank_compare_parameters(dt_rank *k, uint64_t before)
{
    const uint32_t ranks = dt_comm_size(k->comm);
    if (ranks == 1 || k->check_every == 0 || k->stage->trainer == NULL ||
        dt_trainer_step_number(k->stage->trainer) / k->check_every == before / k->check_every) {
        return DT_OK;
    }
    if (dt_comm_rank(k->comm) == 1 && dt_fault("run.sync")) { /* as a bit of memory does that turns over */
        dt_trainer_params(k->stage->trainer)[0] += 1;
    }
    DT_TRY(dt_stage_synchronize(k->stage));
    const size_t n = (size_t)dt_stage_n_params(k->stage) + k->stage->n_trains;
    uint64_t *mine = dt_alloc_n((ranks + (size_t)1) * n, sizeof(*mine));
    dt_status st = mine != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory to compare %u ranks", ranks);
    st = dt_comm_agree(k->comm, st);
    if (st == DT_OK) {
        compute_hashes(k, mine);
        st = dt_comm_all_gather(k->comm, mine, n * sizeof(*mine), mine + n);
    }
    if (st == DT_OK) {
        st = compare_hashes(k, mine + n);
    }
    dt_free(mine);
    return st;
}
