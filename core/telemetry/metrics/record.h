/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.jsonl: one JSON object a record, `step`, `phase`, `wall_s` and named numbers. Scalars collect
 * until they are flushed under a step; a name given several times gets the mean. After a resume, records of steps that
 * will be done again are cut off first. Threads: [main] of rank 0.
 */
#ifndef DTRAIN_CORE_TELEMETRY_METRICS_RECORD_H
#define DTRAIN_CORE_TELEMETRY_METRICS_RECORD_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_metrics dt_metrics;

/* Opens for appending; creates it. Errors: DT_EIO. */
dt_status dt_metrics_open(const char *path, dt_metrics **out_p) DT_NODISCARD;
void dt_metrics_close(dt_metrics *m);
/* Drop records of phase after step, everything after them, and what was collected for the next one. A run may hold
 * several phases of this name: nth counts them from 0. */
dt_status dt_metrics_rewind(dt_metrics *m, const char *phase, uint32_t nth, uint64_t step) DT_NODISCARD;
void dt_metrics_add_scalar(dt_metrics *m, const char *name, double value); /* m may be NULL: nothing is kept */
/* The mean so far of what was collected under a name for the next record; NAN: none. */
double dt_metrics_pending_mean(const dt_metrics *m, const char *name);
/* Names whose mean so far is a number are listed from now on, until the next rewind. */
void dt_metrics_mark_pending(dt_metrics *m);
/* The i-th of the marked names; NULL: there are no more. */
const char *dt_metrics_marked(const dt_metrics *m, uint32_t i);
/* What was collected belongs to an iteration that is not recorded (log.every). */
void dt_metrics_discard_pending(dt_metrics *m);
/* Records go to this event file too (events.h) until another is set; NULL: to none. It is closed with m. */
struct dt_events;
void dt_metrics_events_set(dt_metrics *m, struct dt_events *events);
struct dt_events *dt_metrics_events(const dt_metrics *m); /* NULL: none */
/* Adds what was collected as one record. A step has one: where the last rewind was to this step and kept a record of
 * it, that record is rewritten, with what was collected since. So it gets the results of an evaluation that was
 * interrupted, and made when the run continued. Where the disk is full, records wait in memory, up to 4 MiB of them,
 * and nothing is torn; that is a warning. Errors: DT_ENOMEM. */
dt_status dt_metrics_flush(dt_metrics *m, const char *phase, uint64_t step, double wall_s);

#endif
