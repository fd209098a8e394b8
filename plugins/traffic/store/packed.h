/* SPDX-License-Identifier: Apache-2.0
 *
 * The large arrays of a store, its graphs (node, edge, edge_src), kept smaller: features in fewer bits, blocks packed
 * by zstd. They are made when all values are known, at the end of writing. Readers request slices; a packed array
 * has no pointer in the view. How they are kept, and by how much a feature is off at most, is in store.json:
 *   "features":"i8","compress":"zstd","errors":{"node":[..9],"edge":[..4]}
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_PACKED_H
#define DTRAIN_PLUGINS_TRAFFIC_PACKED_H

#include "base/json.h"
#include "traffic/store/block_cache.h"
#include "traffic/features/features.h"
#include "dtrain/traffic/store.h"

enum { DT_PACKED_ARRAYS = DT_STORE_EDGE_SRC + 1 };

/* How a store is written; zeroed: plainly. */
typedef struct dt_packing {
    uint32_t features; /* DT_KEPT_F32, DT_KEPT_F16, DT_KEPT_I8 */
    uint32_t codec;    /* DT_CODEC_* */
    int level;         /* of zstd, 1 to 19; 0: DT_PACKING_LEVEL */
    uint32_t repeats;  /* scenes that are others again: DT_REPEATS_* */
} dt_packing;
enum { DT_PACKING_LEVEL = 3 };

extern const char *const dt_packing_features[]; /* "f32", "f16", "i8", NULL */
extern const char *const dt_packing_codecs[];   /* "none", "zstd", NULL */

/* Is this array (DT_STORE_*) in blocks? */
bool dt_packing_is_in_blocks(const dt_packing *p, uint32_t array);
dt_status dt_packing_check(const dt_packing *p) DT_NODISCARD; /* DT_EINVAL, DT_EUNSUPPORTED (zstd is not built in) */

typedef struct dt_packed_errors {
    double node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES]; /* the most that a value is off */
} dt_packed_errors;

typedef struct dt_packed_range {
    double min, max;
} dt_packed_range;

/* The plain arrays of a finished folder into blocks. node [9], edge [4]: ranges of all values. DT_EIO, DT_ENOMEM. */
dt_status dt_packed_write(const char *folder, const dt_packing *how, const dt_packed_range *node,
                          const dt_packed_range *edge, dt_packed_errors *out_p) DT_NODISCARD;
void dt_packed_describe(dt_json_out *o, const dt_packing *how, const dt_packed_errors *errors);

typedef struct dt_packed {
    dt_packing how;
    dt_packed_errors errors;
    dt_blocks array[DT_PACKED_ARRAYS];
    dt_block_cache *cache;
} dt_packed;

/* A member of store.json that is of this; *is_p false: it is not. */
dt_status dt_packed_read_member(dt_packed *p, dt_json *j, const char *key, bool *is_p) DT_NODISCARD;
/* Opens what is in blocks, which has so many rows each. DT_EDATA, DT_EUNSUPPORTED. */
dt_status dt_packed_open(dt_packed *p, const char *folder, const int64_t rows[DT_PACKED_ARRAYS], uint64_t cache_bytes)
    DT_NODISCARD;
/* Every value of node and edge is finite and in its range, give or take what it is off, which is no more than the way
 * it is kept explains. DT_EDATA. */
dt_status dt_packed_check(const dt_packed *p, const char *folder, const dt_packed_range *node,
                          const dt_packed_range *edge) DT_NODISCARD;
/* Rows of an array in blocks, as the view would show them. */
dt_status dt_packed_read(const dt_packed *p, uint32_t array, int64_t from, int64_t n, void *out) DT_NODISCARD;
void dt_packed_fini(dt_packed *p);

#endif
