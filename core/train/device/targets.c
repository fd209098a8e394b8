/* SPDX-License-Identifier: Apache-2.0
 *
 * Target networks on a device: launches behind the update, which ask its result whether it was applied, so that nobody
 * waits; see internal.h, and train/target.c for the CPU.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/err.h"

/* A target network that is to follow its model, or not: where its elements lie as the model's do, they go at once. */
static dt_status update_target(const dt_trainer *t, const dt_device_finish *f, uint32_t shadow)
{
    const dt_train_device *d = t->device;
    const dt_param_table *table = t->d.params;
    dt_device_blend b = {.result = d->result,
                         .every = t->state.target[shadow].every,
                         .group = t->state.target_group[shadow],
                         .tau = (float)t->state.target[shadow].tau};
    if (b.every == 0 || b.group >= t->state.n_groups || (f->groups >> b.group & 1) == 0) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < table->n; i++) {
        const dt_param *p = &table->param[i];
        if (!p->is_shadow || p->shadow != shadow) {
            continue;
        }
        float *to = d->params + p->offset;
        const float *from = d->params + table->param[p->of].offset;
        if (b.n > 0 && (to < b.to + b.n || to - b.to != from - b.from)) {
            DT_TRY(d->ops->blend(d->device, &b, d->compute));
            b.n = 0;
        }
        b.to = b.n > 0 ? b.to : to;
        b.from = b.n > 0 ? b.from : from;
        b.n = to - b.to + p->count;
    }
    return b.n > 0 ? d->ops->blend(d->device, &b, d->compute) : DT_OK;
}

dt_status dt_device_update_targets(const dt_trainer *t, const dt_device_finish *f)
{
    for (uint32_t i = 0; i < t->d.params->n_shadows; i++) {
        DT_TRY(update_target(t, f, i));
    }
    return DT_OK;
}
