/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the device path share: device.c (life, memory, shape classes) and device_step.c (the step).
 */
#ifndef DTRAIN_CORE_TRAIN_ON_DEVICE_INTERNAL_H
#define DTRAIN_CORE_TRAIN_ON_DEVICE_INTERNAL_H

#include "graph/device_exec.h"
#include "train/on_device/device.h"
#include "train/trainer_internal.h"

enum { DT_DEVICE_CLASSES = 25, DT_DEVICE_BUFFERS = 2 };

/* Where the parts of a step's input lie in its buffer: control first, then live sizes, step inputs, fields. */
typedef struct dt_device_input {
    size_t live, step[DT_TRAIN_MAX_STEP_INPUTS], field[DT_SAMPLES_MAX_FIELDS], bytes;
    size_t field_bytes[DT_SAMPLES_MAX_FIELDS]; /* of one leaf */
} dt_device_input;

typedef struct dt_device_class {
    int64_t cap[DT_SAMPLES_MAX_SYMBOLS + 1]; /* of a leaf */
    dt_plan *plan;                           /* NULL: not met so far */
    dt_device_exec *exec;
    dt_device_input input;
    dt_device_graph *graph[DT_DEVICE_BUFFERS];
    bool is_warm; /* it ran once without a graph */
} dt_device_class;

typedef struct dt_device_buffer { /* one of the two inputs in flight */
    char *pinned, *device;
    dt_device_result *result; /* pinned */
    dt_device_event *copied, *done;
    uint64_t step;                    /* that was launched from it, counted from 1; 0: none */
    double norm[DT_GRAPH_MAX_LOSSES]; /* what its losses are divided by */
} dt_device_buffer;

struct dt_train_device {
    const dt_device_ops *ops;
    dt_device *device;
    dt_samples source;      /* the trainer's, cut so that a leaf is one slice */
    uint32_t leaves, group; /* of this rank; of one launch */
    dt_device_class class[DT_DEVICE_CLASSES];
    dt_device_stream *compute, *copy;
    dt_device_buffer buffer[DT_DEVICE_BUFFERS];
    size_t buffer_bytes, arena_bytes;

    /* device memory */
    char *arena; /* activations of one group */
    float *params, *moment[2], *grad;
    uint8_t *trained;
    double *block_sum, *seed, *loss[DT_DEVICE_MAX_LOSSES]; /* loss: [leaves] each */
    dt_device_state *state;
    dt_device_result *result;
    int64_t total; /* elements of an arena, rounded up to granules */

    dt_device_node node;   /* all leaves */
    dt_device_slice slice; /* all elements */

    dt_device_state host_state; /* what the host has of the state; the arenas are the trainer's */
    bool host_has_it;           /* the host's arenas hold the state, perhaps changed: upload before the next step */
    uint64_t updates;           /* applied, as far as the host has read */
    uint64_t read;              /* step whose result was read last, counted from 1; 0: none since the upload */

    /* one step's staging */
    const dt_device_class *staging;
    char *staging_at;
};

static inline size_t dt_device_align(size_t n)
{
    return (n + 255) / 256 * 256;
}

/* device.c */
dt_status dt_device_lay_out(const dt_plan *p, const dt_samples *s, const int64_t *cap, uint32_t leaves,
                            dt_device_input *out_p) DT_NODISCARD;
size_t dt_device_class_of(const dt_train_device *d, const int64_t *size); /* DT_DEVICE_CLASSES: none is large enough */
dt_status dt_device_class_use(dt_trainer *t, dt_train_device *d, size_t c) DT_NODISCARD;
/* The host's arenas to the device, if they hold the state. */
dt_status dt_train_device_push(dt_trainer *t) DT_NODISCARD;

/* device_step.c: one slice (NULL: nothing is live) into place i of an input at base. */
dt_status dt_device_pack(const dt_samples *s, const dt_device_input *in, const int64_t *cap, const dt_feed_slice *slice,
                         uint32_t i, char *base) DT_NODISCARD;

#endif
