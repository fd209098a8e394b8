/* SPDX-License-Identifier: Apache-2.0
 *
 * Target networks: copies of parameters that follow them (Polyak averaging), or that are set when asked for. Every rank
 * has all parameters after a step and updates all copies itself, element by element, so that neither threads nor ranks
 * change a bit.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/str.h"
#include "base/trace.h"

#include <string.h>

enum { PIECE = 65536 }; /* elements that a worker takes at once */

static bool is_due(const dt_trainer *t, uint32_t target)
{
    const uint64_t every = t->state.target[target].every;
    const uint8_t group = t->state.target_group[target];
    return every > 0 && dt_group_is_updated(t, group) && t->state.group[group].updates % every == 0;
}

/* Elements [begin, end) of the arena, of targets that are due. */
static void update_range(dt_trainer *t, int64_t begin, int64_t end)
{
    const dt_param_table *table = t->d.params;
    for (uint32_t i = 0; i < table->n; i++) {
        const dt_param *p = &table->param[i];
        const int64_t from = p->offset > begin ? p->offset : begin;
        const int64_t to = p->offset + p->count < end ? p->offset + p->count : end;
        if (p->is_shadow && is_due(t, p->shadow) && from < to) {
            const int64_t source = table->param[p->of].offset + from - p->offset;
            dt_optim_blend(t->state.params + from, t->state.params + source, t->state.target[p->shadow].tau, to - from);
        }
    }
}

static dt_status update_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    const int64_t base = t->d.params->base_total, end = t->d.params->total;
    DT_TRACE("step", "shadows");
    for (;;) {
        const int64_t begin = base + (int64_t)atomic_fetch_add(&t->scratch.next_piece, 1) * PIECE;
        if (begin >= end) {
            return DT_OK;
        }
        update_range(t, begin, begin + PIECE < end ? begin + PIECE : end);
    }
}

dt_status dt_targets_update(dt_trainer *t)
{
    bool any = false;
    for (uint32_t i = 0; i < t->d.params->n_shadows; i++) {
        any = any || is_due(t, i);
    }
    if (!any) {
        return DT_OK;
    }
    atomic_store(&t->scratch.next_piece, 0);
    const bool is_small = t->d.params->total - t->d.params->base_total <= PIECE;
    return is_small ? update_job(t, 0) : dt_pool_run(t->workers.pool, update_job, t);
}

static dt_status check_name(const dt_param_table *table, const char *name)
{
    dt_str all = {0};
    for (uint32_t i = 0; i < table->n_shadows; i++) {
        if (strcmp(table->shadow[i].name, name) == 0) {
            dt_str_fini(&all);
            return DT_OK;
        }
        dt_str_addf(&all, "%s%s", i > 0 ? ", " : "", table->shadow[i].name);
    }
    const dt_status st = DT_FAIL(DT_EINVAL, "there is no target network \"%s\"; there %s%s", name,
                                 all.bytes > 0 ? "are " : "is none", dt_str_text(&all));
    dt_str_fini(&all);
    return st;
}

dt_status dt_trainer_copy_to_targets(dt_trainer *t, const char *name)
{
    DT_TRY(name != NULL ? check_name(t->d.params, name) : DT_OK);
    if (t->d.params->n_shadows == 0) {
        return DT_OK;
    }
    DT_TRY(dt_trainer_synchronize(t));
    dt_param_table_copy_shadows(t->d.params, name, t->state.params);
    t->state.params_version++;
    return DT_OK;
}
