/* SPDX-License-Identifier: Apache-2.0
 *
 * A little training run for tests of checkpoints: all that it saves follows from the step, so that what is loaded can
 * be recognised as complete. A test begins and ends with it.
 */
#ifndef DTRAIN_TESTS_CHECKPOINT_SMALL_RUN_H
#define DTRAIN_TESTS_CHECKPOINT_SMALL_RUN_H

#include "state/checkpoint/checkpoint.h"

enum { SMALL_RUN_W = 12, SMALL_RUN_B = 3 };
extern const int64_t small_run_dim_w[2], small_run_dim_b[1];

/* world.w with its two moments, perception.b; a text and a plugin's blob */
typedef struct small_run_state {
    float w[SMALL_RUN_W], b[SMALL_RUN_B], m[SMALL_RUN_W], v[SMALL_RUN_W];
    char state[128], blob[40];
} small_run_state;

/* Where the run is, and what the next save says of it besides its step. */
typedef struct small_run {
    char dir[256];
    double metric;
    uint32_t phase_index, n_shards;
    bool is_phase_end;
} small_run;
extern small_run run;

void small_run_fill(uint64_t step, small_run_state *r); /* with what is saved at this step */
int small_run_begin(void **state);                      /* of a test, in a folder of its own */
int small_run_end(void **state);
/* What a save of the step writes, kept until the next. */
const dt_ckpt_save_desc *small_run_describe(uint64_t step);
dt_status small_run_save(uint64_t step, dt_ckpt_info *info_p);
/* The same by run.n_shards processes, as each does its part: shard `failing` is not written, 0: all are. */
dt_status small_run_save_apart(uint64_t step, uint32_t failing, dt_ckpt_info *info_p);
/* What is loaded is the run at this step, bit by bit. */
bool small_run_is_at(const dt_ckpt *c, uint64_t step);
/* Which step loads from the run, checked to be whole; 0 when none does. */
uint64_t small_run_step(void);
/* Of a name below checkpoints; good until the next call. */
const char *small_run_path(const char *name);
size_t small_run_count(const char *pattern); /* names there that match it */

#endif
