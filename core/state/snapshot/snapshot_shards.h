/* SPDX-License-Identifier: Apache-2.0
 *
 * How several ranks write one checkpoint: rank 0 makes the folder and broadcasts its name, each rank writes a shard of
 * the optimizer's state there, and its part of what each rank has some of, and rank 0 commits when all have said that
 * their shard is on the disk. Threads: [main], each rank's own; [collective].
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_SHARDS_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_SHARDS_H

#include "state/checkpoint/checkpoint.h"
#include "comm/comm.h"

/* Rank 0, instead of dt_ckpt_save. st: how making the description went; where it failed the others learn that nothing
 * comes, and st is returned. Errors: those of dt_ckpt_save and of any rank's shard; DT_EPEER, DT_ECOMM. */
dt_status dt_shards_save_first(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d, dt_ckpt_info *info_p) DT_NODISCARD;
/* The others; st: the same. Errors: DT_EPEER, DT_ECOMM; rank 0 reports errors of shards. */
dt_status dt_shards_save_other(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d) DT_NODISCARD;

#endif
