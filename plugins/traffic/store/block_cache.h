/* SPDX-License-Identifier: Apache-2.0
 *
 * Unpacked blocks of a store's arrays, as many as fit so many bytes: reading slices near each other unpacks each
 * block once. Sets of a few blocks each; a block goes to the set given by its number, in place of the one there that
 * was not asked for longest. What comes out is the same whatever is held. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_BLOCK_CACHE_H
#define DTRAIN_PLUGINS_TRAFFIC_BLOCK_CACHE_H

#include "traffic/store/blocks.h"

typedef struct dt_block_cache dt_block_cache;

/* bytes: of unpacked blocks at most, but for the least of a few; taken as they are needed. DT_ENOMEM. */
dt_status dt_block_cache_create(uint64_t bytes, dt_block_cache **out_p) DT_NODISCARD;
void dt_block_cache_destroy(dt_block_cache *c); /* NULL is fine */

/* Rows [from, from + n) of an array, which lie in it: out [n, width] f32, or i32. array: its number, by which the cache
 * distinguishes blocks; name: for messages. DT_EDATA, DT_ENOMEM. */
dt_status dt_block_cache_read(dt_block_cache *c, const dt_blocks *b, uint32_t array, const char *name, int64_t from,
                              int64_t n, void *out) DT_NODISCARD;

typedef struct dt_block_cache_use {
    uint64_t asked, unpacked, bytes; /* blocks asked for, blocks unpacked, bytes held */
} dt_block_cache_use;
dt_block_cache_use dt_block_cache_use_of(const dt_block_cache *c);

#endif
