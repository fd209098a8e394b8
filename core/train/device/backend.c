/* SPDX-License-Identifier: Apache-2.0
 *
 * The device as a backend of the trainer (train/backend.h). See device.h.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/err.h"

static dt_status device_check(const dt_trainer *t)
{
    if (t->c.half != DT_HALF_NONE) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "comm.wire = \"%s\" rounds gradients where the CPU adds them, and a GPU computes here; set "
                       "comm.wire = \"fp32\", or engine.device = \"cpu\"",
                       t->c.half == DT_HALF_BF16 ? "bf16" : "fp16");
    }
    if (t->d.source->part != NULL) {
        return DT_FAIL(
            DT_EUNSUPPORTED,
            "a GPU reads a shard of a batch as a whole, but cannot join the field %s of samples of different "
            "stores: its port must declare which rows it counts (DT_PORT_INDEX or DT_PORT_PLAIN, "
            "dtrain/plugin.h); or set engine.device = \"cpu\"",
            t->d.source->apart);
    }
    return DT_OK;
}

static dt_status device_create(dt_trainer *t)
{
    DT_TRY(dt_trainer_create_arenas(t));
    DT_TRY(dt_record_training_graph(t, t->d.source, &t->train));
    return dt_train_device_create(t, &t->device);
}

static void device_destroy(dt_trainer *t)
{
    if (t->device != NULL) {
        t->train.plan = NULL; /* one of the device's */
        dt_train_device_destroy(t, t->device);
    }
}

static const dt_samples *device_feed_source(const dt_trainer *t)
{
    return &t->device->source;
}

static uint32_t device_feed_slots(const dt_trainer *t)
{
    return 2 * t->device->shards;
}

static uint32_t device_concurrent_shards(const dt_trainer *t)
{
    return t->device->launch_shards;
}

static void device_memory_get(const dt_trainer *t, dt_trainer_memory *out)
{
    dt_train_device_memory_get(t->device, out);
}

const dt_train_backend dt_device_backend = {.is_fed_ahead = true,
                                            .check = device_check,
                                            .create = device_create,
                                            .destroy = device_destroy,
                                            .begin = dt_device_begin_step,
                                            .run_shards = dt_device_run_shards,
                                            .reduce = dt_device_reduce,
                                            .update = dt_device_update,
                                            .read_result = dt_device_read_step,
                                            .synchronize = dt_train_device_download,
                                            .invalidate = dt_train_device_invalidate,
                                            .feed_source = device_feed_source,
                                            .feed_slots = device_feed_slots,
                                            .concurrent_shards = device_concurrent_shards,
                                            .memory_get = device_memory_get,
                                            .reduction_bytes = dt_train_device_sum_bytes};
