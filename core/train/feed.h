/* SPDX-License-Identifier: Apache-2.0
 *
 * Feed: threads that read shards ahead of the workers, in the order in which they will be needed, into a ring of
 * slots. Memory is bounded by the ring (mapped once, touched as used); a worker that has to wait for a shard reports
 * how long. The order of shards and their content follow from the step number alone, so a resumed run reads the same.
 * Threads: start, stop [main]; wait and release [worker].
 */
#ifndef DTRAIN_CORE_TRAIN_FEED_H
#define DTRAIN_CORE_TRAIN_FEED_H

#include "train/sampler.h"

typedef struct dt_feed dt_feed;

typedef struct dt_micro_batch {               /* inputs of one run of the plan */
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1]; /* live sizes, "B" last */
    void *field[DT_SAMPLES_MAX_FIELDS];
    const uint64_t *index; /* samples in it: size of "B" */
} dt_micro_batch;

typedef struct dt_feed_shard {
    const dt_micro_batch *micro_batch;
    uint32_t n_micro_batches, reserved;
} dt_feed_shard;

typedef struct dt_feed_desc {
    const dt_samples *source;
    const dt_sampler *sampler;            /* of the source; outlives the feed */
    uint64_t seed, first_step, last_step; /* reads shards of steps [first_step, last_step) */
    uint32_t phase, shards;               /* S */
    uint32_t shard_begin, shard_end;      /* those of this rank */
    uint32_t slots;                       /* at least workers + 1 */
    uint32_t threads;                     /* that read, at least 1 */
    uint32_t augment;                     /* 0: keys are 0 */
} dt_feed_desc;

/* Of one slot or reader. */
size_t dt_feed_arena_bytes(const dt_samples *s, uint64_t shard_samples);
dt_status dt_feed_start(const dt_feed_desc *d, dt_feed **out_p) DT_NODISCARD;
void dt_feed_stop(dt_feed *f);
/* The data is about to change: forgets what was read ahead and reads nothing until it is resumed, with shard 0 of
 * step first_step, up to last_step. */
void dt_feed_pause(dt_feed *f);
void dt_feed_resume(dt_feed *f, uint64_t first_step, uint64_t last_step);
/* Waits until shard number n (counted from the feed's start, or from where it was resumed) has been read. waited_s is
 * added to. Errors: the reader's. */
dt_status dt_feed_wait(dt_feed *f, uint64_t n, const dt_feed_shard **out_p, double *waited_s);
void dt_feed_release(dt_feed *f, uint64_t n);

/* Reading without a thread, for data that costs less than handing it over: one shard at a time, by the thread that will
 * run it. Nothing is ahead, so nothing has to be forgotten when the data changes. Threads: one per reader. */
typedef struct dt_feed_reader dt_feed_reader;
dt_status dt_feed_reader_create(const dt_feed_desc *d, dt_feed_reader **out) DT_NODISCARD;
void dt_feed_reader_destroy(dt_feed_reader *r);
/* sample: the whole batch of this step, in order; NULL: it is looked up. The shard is good until the next read. */
dt_status dt_feed_read(dt_feed_reader *r, uint64_t step, uint32_t shard, const uint64_t *sample,
                       const dt_feed_shard **out) DT_NODISCARD;

/* Positions of shard s in a batch of b samples cut into S. */
static inline uint64_t dt_shard_begin(uint64_t b, uint32_t shards, uint32_t s)
{
    return b * s / shards;
}

#endif
