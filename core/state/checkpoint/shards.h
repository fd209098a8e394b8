/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensors of the optimizer a shard holds, and what the files are called: as Hugging Face's libraries shard large
 * models, whole tensors in numbered safetensors files with an index of names next to them. Used by the saver and the
 * loader only; see checkpoint.h.
 */
#ifndef DTRAIN_CORE_STATE_CHECKPOINT_SHARDS_H
#define DTRAIN_CORE_STATE_CHECKPOINT_SHARDS_H

#include "state/checkpoint/manifest.h"

#define DT_SHARDS_INDEX "optim.safetensors.index.json"

typedef char dt_shard_name[40];
/* "optim.safetensors", of several "optim-00002-of-00004.safetensors" for i = 1. */
void dt_shard_file_name(uint32_t i, uint32_t n, dt_shard_name out);
/* The same of a blob's parts: "plugin-<name>.bin", of several "plugin-<name>-00002-of-00004.bin". */
typedef char dt_part_name[DT_CKPT_NAME_BYTES + 40];
void dt_part_file_name(const char *blob, uint32_t i, uint32_t n, dt_part_name out);
/* How many a manifest lists; 0: it lacks one, or lists those of two numbers. */
uint32_t dt_manifest_count_shards(const dt_manifest *m);

typedef struct dt_shard_map { /* dt_shard_map_fini */
    uint32_t *shard;          /* [n_optim] of each tensor */
    uint32_t n;
} dt_shard_map;

/* Each tensor, the largest first, goes where least is written yet; the one that writes shard 0 writes the model too.
 * The same for all processes that have the same tensors. DT_ENOMEM. */
dt_status dt_shard_map_make(const dt_ckpt_save_desc *d, dt_shard_map *out) DT_NODISCARD;
void dt_shard_map_fini(dt_shard_map *m);
/* The tensors of one, in the order of the list: into out [n_optim]; returns how many. */
uint32_t dt_shard_list_tensors(const dt_ckpt_save_desc *d, const dt_shard_map *m, uint32_t shard,
                               const dt_ckpt_tensor **out);
/* {"metadata":{"total_size":bytes},"weight_map":{"<tensor>":"<file>",...}} */
void dt_shard_index_print(const dt_ckpt_save_desc *d, const dt_shard_map *m, dt_str *out);

#endif
