/* SPDX-License-Identifier: Apache-2.0
 *
 * Training data without an end: a folder of stores that others add to while a run trains on it (data.stream). Store k
 * is the entry named k in at least six digits, from 000000 on; it is complete when it has that name, as a store of an
 * import is. An entry of that name with ".end" appended means that there is no store k and none after it.
 *
 * Samples are numbered through all stores, and data.window of them are an epoch: which ones a step draws follows from
 * its number alone, whenever they arrive and however many ranks read them. Each store is read by a component of its
 * own, made as the one of data.store was, which defines what fields there are and how large a sample may be.
 *
 * A checkpoint keeps how many samples the stores of the window under way have, and a digest of each: a run that
 * continues needs those stores as they were, and no others before them.
 * Threads: [main], while no one reads; sizes and read: any.
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_STREAM_H
#define DTRAIN_CORE_PLUGIN_SERVICE_STREAM_H

#include "base/json.h"
#include "plugin/service/stage.h"

typedef struct dt_stream dt_stream;

/* d is bound to data.store with these settings, the store among them. Its source becomes that of the stream.
 * DT_ECONFIG, DT_ENOMEM. */
dt_status dt_stream_create(dt_stage *s, dt_data *d, const dt_setting *over, uint32_t n_over, const dt_data_opts *o,
                           dt_stream **out_p) DT_NODISCARD;
void dt_stream_destroy(dt_stream *m); /* NULL is fine */

/* What a checkpoint keeps: a list of texts, into an array that is open; and that list, a line each, back again, for a
 * run that continues at this step of so many in an epoch. Errors: DT_EDATA (a store is gone, or another one),
 * DT_ECONFIG (another data.window, or an epoch of other steps). */
void dt_stream_write(const dt_stream *m, uint64_t steps_per_epoch, dt_json_out *o);
dt_status dt_stream_load(dt_stream *m, const char *lines, uint64_t step, uint64_t steps_per_epoch) DT_NODISCARD;

#endif
