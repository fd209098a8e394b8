/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan on a device: the calls of a plan of kernel set DEVICE with device addresses, ready to be launched, step after
 * step or while a graph is captured. Several leaves run in one launch; when there is no room for all of them, the
 * caller binds one group of leaves after the other to the same activations.
 *
 * Activations: every block of the memory plan has room for `leaves` leaves. Inputs are where the caller specifies, at
 * capacity, one leaf after the other. Gradients of leaves are summed in the fixed tree as soon as backward has ended
 * with a parameter; only sums are kept. Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_DEVICE_EXEC_H
#define DTRAIN_CORE_ENGINE_GRAPH_DEVICE_EXEC_H

#include "engine/device/device.h"
#include "engine/graph/plan.h"

typedef struct dt_device_exec dt_device_exec;

typedef struct dt_device_exec_desc {
    const dt_plan *plan; /* of kernel set DEVICE; outlives the exec */
    const dt_device_ops *ops;
    dt_device *device;
    uint32_t leaves;  /* of one launch */
    uint32_t math;    /* dt_device_math */
    bool synchronous; /* wait for every kernel, so that a failure is reported where it happened; not while capturing */
    const uint32_t *due; /* [n_due] calls after which all gradients that are complete are summed (leaf_grads.h) */
    uint32_t n_due;
} dt_device_exec_desc;

typedef struct dt_device_feed { /* device addresses, of the first leaf of the launch */
    void *arena;                /* dt_device_exec_bytes */
    const int32_t *live;        /* [leaves, symbols of the graph] */
    const dt_device_run *run;   /* [1] */
    void *const *field;         /* per field of the graph's desc, in its order; NULL where the plan does not use it */
    const float *const *step_input; /* per step input of the plan */
    const float *params;            /* [total] */
    const void *params_half;        /* [total], the same rounded to the plan's half; NULL where it has none */
    float *sums;                    /* [slots, total] of gradients; NULL when the plan is not for training */
    int64_t total;                  /* elements of a slot */
    const dt_device_node *node;     /* [n_nodes] what leaves are summed to, in this order; outlives the launches */
    uint32_t n_nodes;
    uint32_t groups;         /* bits of those whose losses and gradients are wanted; 0: all. Other sums stay */
    const double *loss_seed; /* per loss */
    dt_status (*summed)(void *user, uint32_t call); /* the gradients that calls up to this one have completed are
                                                       summed; NULL: not needed */
    void *user;
} dt_device_feed;

/* Errors: DT_EUNSUPPORTED (an op without a kernel there, two ragged dimensions in one tensor, a tensor of more than
 * 2^31 - 1 elements a leaf). */
dt_status dt_device_exec_create(const dt_device_exec_desc *d, dt_device_exec **out_p) DT_NODISCARD;
void dt_device_exec_destroy(dt_device_exec *e);
/* Activations, gradients of leaves and scratch of a launch. */
size_t dt_device_exec_bytes(const dt_device_exec *e);
/* Addresses for the launches that follow. Kernels are prepared the first time. Errors: those of the kernels. */
dt_status dt_device_exec_bind(dt_device_exec *e, const dt_device_feed *f) DT_NODISCARD;
dt_status dt_device_exec_launch(dt_device_exec *e, dt_device_stream *s) DT_NODISCARD;
/* An output or a loss ([leaves] f64) in the order of recording, where the last bind put it; NULL when there is none. */
const dt_device_view *dt_device_exec_output(const dt_device_exec *e, uint32_t i);
const dt_device_view *dt_device_exec_loss(const dt_device_exec *e, uint32_t i);

#endif
