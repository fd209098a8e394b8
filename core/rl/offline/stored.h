/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored rollouts: what a phase did, as files that another learns from without an environment. A folder with a
 * safetensors file for each round, round-000000000012.safetensors, and nothing else that ends so. The format is in
 * docs/reference/stored-rollouts.md.
 *
 *   round_writer.c  rollouts.keep: rounds that a phase collects go out
 *   round_reader.c  a folder, or one file of it, is read as the samples of a replay, each round once
 *   metadata.c      a file's metadata, written and read
 *   sample_check.c  what a sample has to fulfil
 *
 * Files have no order of ranks or instances but that of the rollout, and hold no time: the same round is the same
 * bytes on any number of ranks. Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_OFFLINE_STORED_H
#define DTRAIN_CORE_RL_OFFLINE_STORED_H

#include "rl/replay/replay.h"

#define DT_STORED_FORMAT   "dtrain-rollouts"
#define DT_STORED_VERSION  "2" /* with a seal (state/checkpoint/safetensors.h) */
#define DT_STORED_UNSEALED "1" /* the same without one, as other programs write it */
#define DT_STORED_SUFFIX   ".safetensors"
/* Tensors next to the fields of samples; no port of an environment has a stroke in its name. */
#define DT_STORED_SIZES    "sample/sizes"    /* [samples, symbols] i32: rows of "A", then of each ragged symbol */
#define DT_STORED_STEP     "sample/step"     /* [samples] i32: of the round */
#define DT_STORED_INSTANCE "sample/instance" /* [samples] i32 */

/* round_writer.c: writes rounds of r if rollouts.keep is set; destroyed with r. Errors: DT_ECONFIG, DT_ENOMEM. */
dt_status dt_round_writer_create(dt_rollout *r) DT_NODISCARD;

/* round_reader.c: count returns the capacity of a replay, read fills it. Errors: DT_ENOTFOUND, DT_EIO, DT_EDATA naming
 * the file, the sample and what is wrong. */
extern const dt_replay_store dt_stored_store;
/* sample_check.c: a record that was filled from sample `number` of the file p->origin, of the last step of its round or
 * not. DT_EDATA names the file, the sample, the row, the field, its value and what is possible. */
dt_status dt_stored_check_sample(const dt_replay *p, uint64_t number, const char *record, bool is_last) DT_NODISCARD;
/* Is kept field i of a replay in files? */
bool dt_stored_is_in_files(const dt_replay *p, uint32_t i);
dt_st_dtype dt_stored_dtype(const dt_replay *p, uint32_t i);
/* Dims of its rows, after the first, which counts rows; how many there are. */
uint32_t dt_stored_dims(const dt_replay *p, uint32_t i, int64_t *dim);

#endif
