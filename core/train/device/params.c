/* SPDX-License-Identifier: Apache-2.0
 *
 * See internal.h: what follows an update of the parameters: their copies in half precision and target networks.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/err.h"

dt_status dt_device_narrow_params(const dt_trainer *t, void *half, const float *params, int64_t n)
{
    const dt_train_device *d = t->device;
    return half == NULL ? DT_OK : d->ops->narrow(d->device, half, params, n, dt_device_storage_type(t), d->compute);
}

/* Launches the update of a target network if it is due; the kernel reads from the step's result whether it was applied,
 * so that the host does not wait. Parameters that are adjacent in both networks are blended by one launch. The CPU's:
 * train/update.c. */
static dt_status update_target(const dt_trainer *t, const dt_device_finish *f, uint32_t target)
{
    const dt_train_device *d = t->device;
    const dt_param_table *table = t->d.params;
    dt_device_blend b = {.result = d->result,
                         .every = t->state.target[target].every,
                         .group = t->state.target_group[target],
                         .tau = (float)t->state.target[target].tau};
    if (b.every == 0 || b.group >= t->state.n_groups || (f->groups >> b.group & 1) == 0) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < table->n; i++) {
        const dt_param *p = &table->param[i];
        if (!p->is_target || p->target != target) {
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
    for (uint32_t i = 0; i < t->d.params->n_targets; i++) {
        DT_TRY(update_target(t, f, i));
    }
    return DT_OK;
}
