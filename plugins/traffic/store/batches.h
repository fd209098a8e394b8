/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames whose features are made ahead, by several threads, and come back in the order in which they were given: the
 * writer of a store fills batches of frames, and takes them back when they are made. What is made does not depend on
 * the number of threads. Memory: a few batches, and frames however large one at a time. Threads: the caller's is one,
 * which works too where it would wait; the others never touch anything but batches.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_BATCHES_H
#define DTRAIN_PLUGINS_TRAFFIC_BATCHES_H

#include "traffic/store/feature_stats.h"
#include "traffic/features/features.h"
#include "base/err.h"

typedef struct dt_batch_frame {
    int64_t number;
    double time_s;
    uint32_t first, n;      /* of the batch's vehicles */
    dt_feature_stats stats; /* made */
} dt_batch_frame;

/* Of a vehicle what the features replace; NAN: unknown. */
typedef struct dt_recorded {
    double accel, length;
} dt_recorded;

/* The caller fills vehicles, recorded and frames; what follows is computed. A frame whose first vehicle is the f-th has
 * its numbers from there on: node at 9 f, ittc at f, col at k_max f, edge at 4 k_max f; rowptr of the i-th frame at
 * f + i. */
typedef struct dt_batch {
    dt_vehicle *vehicle;   /* [cap] */
    dt_recorded *recorded; /* [cap] for the caller alone */
    dt_batch_frame *frame;
    uint32_t n, n_frames;
    float *node, *edge, *ittc;
    int32_t *rowptr, *col;
    uint32_t cap, frames_cap;
    dt_status st;
    dt_error error; /* depending on st */
    bool is_made;
} dt_batch;

typedef struct dt_batches dt_batches;

/* jobs: threads, the caller's among them; 0: 1. DT_ENOMEM. */
dt_status dt_batches_create(double radius_m, uint32_t k_max, uint32_t jobs, dt_batches **out_p) DT_NODISCARD;
/* Room for a frame of n vehicles after those that the open batch holds. *out_p NULL: take batches back first. */
dt_status dt_batches_reserve(dt_batches *a, uint32_t n, dt_batch **out_p) DT_NODISCARD;
void dt_batches_close(dt_batches *a); /* no more frames for the open batch, which may be empty */
/* The oldest closed batch, made; NULL: there is none, or it is not made yet and waits is false. Its frames are valid
 * until it is returned. What could not be made: DT_ENOMEM. */
dt_status dt_batches_take(dt_batches *a, bool waits, dt_batch **out_p) DT_NODISCARD;
void dt_batches_release(dt_batches *a);
void dt_batches_destroy(dt_batches *a); /* whatever is under way; NULL is fine */

#endif
