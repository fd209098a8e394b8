/* SPDX-License-Identifier: Apache-2.0
 *
 * Event files as TensorBoard reads them: a chain of TFRecords (length, its checksum, data, its checksum; checksums are
 * CRC-32C, rotated and shifted by a constant: tensorflow/core/lib/io/record_writer.cc), each holding one Event in the
 * wire format of protocol buffers (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto). Scalars
 * and text. Written through a buffer and flushed every few seconds, so that a steady step makes no call of the system.
 * Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_METRICS_EVENTS_H
#define DTRAIN_CORE_METRICS_EVENTS_H

#include "dtrain/status.h"

typedef struct dt_events dt_events;

/* Makes dir and a new file events.out.tfevents.<time>.<host>.<pid>.<n> in it. first_step: the step that is written
 * next; what older files of the folder say from there on was undone by a resume, and TensorBoard drops it. Errors:
 * DT_EIO, DT_ENOMEM. */
dt_status dt_events_open(const char *dir, uint64_t first_step, dt_events **out_p) DT_NODISCARD;
/* What is buffered is written; a failure is told as a warning. NULL is fine. */
void dt_events_close(dt_events *e);

/* One record: begin, any number of scalars, end. Errors of end: DT_EIO, DT_ENOMEM; the file is of no use then. */
void dt_events_begin(dt_events *e, uint64_t step);
void dt_events_scalar(dt_events *e, const char *tag, double value); /* stored as a float */
dt_status dt_events_end(dt_events *e) DT_NODISCARD;
/* A text of its own record, shown as it is, with its lines. */
dt_status dt_events_text(dt_events *e, uint64_t step, const char *tag, const char *text) DT_NODISCARD;

#endif
