/* SPDX-License-Identifier: Apache-2.0
 *
 * Blobs of a checkpoint: the phase's own state and that of its rollout. The table in snapshot_blobs.c is the one place
 * that names them. Threads: [main].
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_BLOBS_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_BLOBS_H

#include "state/snapshot/snapshot.h"

/* What an iteration changes, and the other blobs. */
typedef enum dt_blob_set { DT_BLOBS_BACKED_UP, DT_BLOBS_OTHER } dt_blob_set;

/* Writes the blobs of one set that this stage has into b. */
dt_status dt_blobs_write(dt_stage *s, dt_blob_set set, dt_snapshot_backup *b) DT_NODISCARD;
/* The blobs that this stage has as a checkpoint lists them; their bytes stay in `backup`, and in `now` for the others.
 * out: [DT_CKPT_BLOBS]. */
uint32_t dt_blobs_list(const dt_stage *s, const dt_snapshot_backup *backup, const dt_snapshot_backup *now,
                       dt_ckpt_blob *out);
/* What a policy acts with apart from weights: step inputs, and the phase's own state. */
dt_status dt_blobs_load_acting(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;
/* All that the checkpoint has, into a started stage. */
dt_status dt_blobs_load(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;

#endif
