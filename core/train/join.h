/* SPDX-License-Identifier: Apache-2.0
 *
 * Several reads of a source concatenated, to what one read of all those samples would have given. Rows follow
 * rows; integers that count rows are raised by the rows before theirs, as their ports declare (DT_PORT_INDEX,
 * plugin.h). Called by a stream, whose samples are read from one store each (core/plugin/service/stream.h).
 * Threads: [any].
 */
#ifndef DTRAIN_CORE_TRAIN_JOIN_H
#define DTRAIN_CORE_TRAIN_JOIN_H

#include "train/samples.h"

/* The first field that does not declare what it takes: integers without DT_PORT_INDEX or DT_PORT_PLAIN, or not one
 * ragged symbol in dims; NULL: reads of this source can be joined. */
const char *dt_join_find_obstacle(const dt_samples *s);

typedef struct dt_join {    /* reads into one micro-batch */
    const dt_samples *like; /* the caller's: fields and symbols of all reads */
    int64_t total[DT_SAMPLES_MAX_SYMBOLS + 1], before[DT_SAMPLES_MAX_SYMBOLS + 1]; /* live sizes, "B" last */
    void *room;
    size_t room_bytes;
} dt_join;

/* total: [n_symbols + 1] live sizes of all reads together, for which their buffers have room. */
void dt_join_init(dt_join *j, const dt_samples *like, const int64_t *total);
void dt_join_fini(dt_join *j);
/* What n samples give goes after what was read before. key: as in dt_data_ops. Errors: the source's, DT_ENOMEM. */
dt_status dt_join_append_read(dt_join *j, const dt_data_ops *ops, void *self, const uint64_t *index,
                              const uint64_t *key, uint32_t n, void *const *out) DT_NODISCARD;

#endif
