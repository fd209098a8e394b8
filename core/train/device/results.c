/* SPDX-License-Identifier: Apache-2.0
 *
 * What the steps of a device found, read when it is there, in their order, and the state that they left; see
 * device.h and internal.h.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/trace.h"

static void report_groups(dt_trainer *t, uint32_t groups, const dt_device_result *r, dt_step_report *out)
{
    bool is_first = true;
    t->state.updates = r->updates;
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        dt_group_state *s = &t->state.group[g];
        t->device->updates[g] = s->updates = r->group_updates[g];
        if ((groups >> g & 1) != 0) {
            s->norm = r->group_norm[g];
            s->rate = dt_group_learning_rate(t, g, s->updates);
            out->learning_rate = is_first ? s->rate : out->learning_rate;
            is_first = false;
        }
    }
}

dt_status dt_device_read_result(dt_trainer *t, const dt_device_buffer *b, dt_step_report *out)
{
    dt_train_device *d = t->device;
    DT_TRACE("device", "wait for result");
    DT_TRY(d->ops->event_sync(d->device, b->done));
    const dt_device_result *r = b->result;
    dt_report_losses(t, b->groups, r->loss, b->norm, out);
    out->grad_norm = r->norm;
    report_groups(t, b->groups, r, out);
    if (b->step <= d->read) {
        return DT_OK; /* reported before */
    }
    d->read = b->step;
    t->state.scaler.scale = r->loss_scale;
    t->state.scaler.skips = r->skipped;
    if (!r->applied) {
        t->state.scaler.overflows++;
    }
    return dt_trainer_check_divergence(t, b->step, r->applied != 0, out, r->bad);
}

static dt_status read_pending(dt_trainer *t)
{
    const dt_train_device *d = t->device;
    for (uint32_t i = 0; i < DT_DEVICE_BUFFERS; i++) { /* from the one that the next step takes, which is the oldest */
        const dt_device_buffer *b = &d->buffer[(t->state.step + i) % DT_DEVICE_BUFFERS];
        dt_step_report unused = {.struct_size = sizeof(unused)};
        DT_TRY(b->step > d->read ? dt_device_read_result(t, b, &unused) : DT_OK);
    }
    return DT_OK;
}

dt_status dt_train_device_download(dt_trainer *t)
{
    dt_train_device *d = t->device;
    float *const to[] = {t->state.params, t->state.moment[0], t->state.moment[1]};
    float *const from[] = {d->params, d->moment[0], d->moment[1]};
    if (!d->is_on_host) {
        DT_TRY(dt_device_synchronize(d));
        DT_TRY(read_pending(t));
        for (int i = 0; i < 3; i++) {
            DT_TRY(from[i] != NULL ? dt_device_copy_out(d, to[i], from[i], dt_device_shared_bytes(t, i)) : DT_OK);
        }
        DT_TRY(dt_device_copy_out(d, &d->host_state, d->state, sizeof(d->host_state)));
        DT_TRY(d->ops->stream_sync(d->device, d->compute));
        t->state.updates = d->host_state.updates;
        for (uint32_t g = 0; g < t->state.n_groups; g++) {
            t->state.group[g].updates = d->host_state.group_updates[g];
        }
        t->state.scaler.scale = d->host_state.loss_scale;
        t->state.scaler.good = d->host_state.good_steps;
        t->state.scaler.tolerance = d->host_state.tolerance;
        t->state.scaler.skips = d->host_state.skipped;
    }
    d->is_on_host = true;
    return DT_OK;
}
