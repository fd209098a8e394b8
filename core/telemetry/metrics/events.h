/* SPDX-License-Identifier: Apache-2.0
 *
 * Event files as TensorBoard reads them: a chain of TFRecords (length, its checksum, data, its checksum; checksums are
 * CRC-32C, rotated and shifted by a constant: tensorflow/core/lib/io/record_writer.cc), each holding one Event in the
 * wire format of protocol buffers (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto). Scalars,
 * text, histograms, pictures, and hyper-parameters (tensorboard/plugins/hparams). Written through a buffer and flushed
 * every few seconds, so that a steady step makes no call of the system.
 * Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_TELEMETRY_METRICS_EVENTS_H
#define DTRAIN_CORE_TELEMETRY_METRICS_EVENTS_H

#include "base/str.h"

typedef struct dt_events dt_events;

/* Makes dir and a new file events.out.tfevents.<time>.<host>.<pid>.<n> in it. first_step: the step that is written
 * next; what older files of the folder have from there on was undone by a resume, and TensorBoard drops it. That their
 * session is over is not true any more and is cut off them: TensorBoard believes the first end it reads. Errors:
 * DT_EIO, DT_ENOMEM. */
dt_status dt_events_open(const char *dir, uint64_t first_step, dt_events **out_p) DT_NODISCARD;
/* What is buffered is written; a failure is logged as a warning. NULL is fine. */
void dt_events_close(dt_events *e);

/* One record: begin, any number of scalars, end. Errors of end: DT_EIO, DT_ENOMEM; the file is of no use then. */
void dt_events_begin(dt_events *e, uint64_t step);
void dt_events_add_scalar(dt_events *e, const char *tag, double value); /* stored as a float */
dt_status dt_events_end(dt_events *e) DT_NODISCARD;
/* A text of its own record, shown as it is, with its lines. */
dt_status dt_events_write_text(dt_events *e, uint64_t step, const char *tag, const char *text) DT_NODISCARD;
/* How values are spread: between the least and the greatest in equal parts; those that are not finite are left out. */
enum { DT_HISTOGRAM_PARTS = 64 };
typedef struct dt_histogram {
    double low, high, sum, squares;
    double count[DT_HISTOGRAM_PARTS];
    uint64_t n;
} dt_histogram;
void dt_histogram_begin(dt_histogram *h);
void dt_histogram_extend_range(dt_histogram *h, const float *x, int64_t n); /* of all values, first */
void dt_histogram_count_values(dt_histogram *h, const float *x, int64_t n); /* the same values again */
dt_status dt_events_write_histogram(dt_events *e, uint64_t step, const char *tag, const dt_histogram *h) DT_NODISCARD;
/* png: a whole file. */
dt_status dt_events_write_image(dt_events *e, uint64_t step, const char *tag, uint32_t width, uint32_t height,
                                const dt_str *png) DT_NODISCARD;
/* What a phase was configured with, for the comparison of runs: any number of hyper-parameters, then the record. One
 * whose name was given before replaces it. */
void dt_events_hparam_number(dt_events *e, const char *name, double value);
void dt_events_hparam_bool(dt_events *e, const char *name, bool value);
void dt_events_hparam_text(dt_events *e, const char *name, const char *value);
dt_status dt_events_write_hparams(dt_events *e, const char *group) DT_NODISCARD;
/* The phase is over: the last record of a file; said once, the first time counts. */
dt_status dt_events_write_session_end(dt_events *e, bool is_success) DT_NODISCARD;

#endif
