/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks cost: the latency and the bandwidth of a communicator, measured between its ranks, and what follows from
 * them for a step of training on any number of ranks. In the alpha-beta model a message of b bytes takes
 * latency + b / bandwidth, and a rank sends one at a time. A step that takes t seconds on one rank, of a model with P
 * parameters in fp32 whose gradient goes in n buckets, takes on R ranks
 *   t / R + 2 n (R - 1) latency + (w + 4) P (R - 1) / (R bandwidth)
 * the first part of the exchange being slices of the gradient that go to their owners, with w = 4 bytes a number or 2
 * where it is sent as halves, the second what the owners made of them, in fp32. What is sent while the last leaf's
 * backward pass still runs, two thirds of its time, is overlapped with it.
 * Threads: the communicator's.
 */
#ifndef DTRAIN_CORE_COMM_COST_H
#define DTRAIN_CORE_COMM_COST_H

#include "comm/comm.h"

typedef struct dt_cost_links {
    double latency_s, bytes_per_s;
} dt_cost_links;

typedef struct dt_cost_model { /* of what is trained */
    double parameters;
    double step_s;       /* of a step on one rank, computing alone */
    double bucket_bytes; /* of the gradient, sent at a time */
    uint32_t leaves;     /* of a batch (data.shards); more ranks than these: as many as ranks */
    uint32_t half;       /* DT_HALF_*: how the gradient is sent */
} dt_cost_model;

typedef struct dt_cost_step { /* of one of R ranks */
    double compute_s, exchange_s;
    double hidden_s;     /* of exchange_s, where sending overlaps with the backward pass */
    double step_s;       /* without overlap */
    double overlapped_s; /* with it */
    double sent_bytes;
    double memory_bytes; /* weights, partial sums of gradients, the owned slice of two moments; not activations */
} dt_cost_step;

void dt_cost_predict(const dt_cost_links *l, const dt_cost_model *m, uint32_t ranks, dt_cost_step *out);
/* The number of ranks from which on another doubling makes a step less than a tenth faster, without overlap. */
uint32_t dt_cost_find_useful_ranks(const dt_cost_links *l, const dt_cost_model *m);

enum { DT_COST_SIZES = 5 };
typedef struct dt_cost_measured {
    size_t bytes[DT_COST_SIZES];  /* to each other rank */
    double swap_s[DT_COST_SIZES]; /* until this rank has all of its own: an all_to_all; the median */
    double best_s[DT_COST_SIZES]; /* the least, from which the links follow: the rest is what else machines do */
    double barrier_s;
    dt_cost_links links;
} dt_cost_measured;

/* [collective] Among at least two ranks; by rank 0's clock, on all ranks. Errors: DT_EINVAL (one rank),
 * DT_ENOMEM, those of communicators. */
dt_status dt_cost_measure(dt_comm *c, dt_cost_measured *out) DT_NODISCARD;
/* [collective] The exchange of a step, really: P floats of each rank summed over the tree in buckets, and shared. The
 * median of 5. Errors: as above. */
dt_status dt_cost_measure_exchange(dt_comm *c, const dt_cost_model *m, double *seconds_p) DT_NODISCARD;

#endif
