/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting: the forward part of what a phase records, without its losses, run on rows that the caller packs, with the
 * trainer's parameters as they are now, or as they were when they were held. It runs on the calling thread and
 * allocates nothing; a row of an output does not depend on the rows beside it. Threads: [main]; dt_policy_run [any],
 * one thread per place, and where parameters are held also while the trainer makes steps.
 */
#ifndef DTRAIN_CORE_TRAIN_POLICY_H
#define DTRAIN_CORE_TRAIN_POLICY_H

#include "base/str.h"
#include "train/trainer.h"

typedef struct dt_policy dt_policy;

/* source: names and shapes of fields, outlives the policy; its samples are not looked at. cap: the most rows per symbol
 * of one run, "B" last. places: how many runs there may be at the same time. keep: kept values that become outputs,
 * ends with NULL. pictures: what the phase records for pictures (svc/rollout.h), and not how it acts. The trainer
 * outlives the policy. Errors: DT_ENOMEM, what recording reports. */
dt_status dt_policy_create(dt_trainer *t, const dt_samples *source, const int64_t *cap, uint32_t places,
                           const char *const *keep, bool pictures, dt_policy **out_p) DT_NODISCARD;
/* The host's arenas of all places: mapped, and what runs of n samples of this mean make resident. */
void dt_policy_arenas_get(const dt_policy *p, const double *mean, uint64_t n, uint64_t *mapped, uint64_t *resident);
void dt_policy_destroy(dt_policy *p);
uint32_t dt_policy_places(const dt_policy *p); /* 1 on a device */
/* Does it read this field of the source? */
bool dt_policy_reads(const dt_policy *p, const char *field);
/* A named output of a place, NULL when nothing was recorded under the name. The address stays, its rows are those of
 * the last run. */
const dt_view *dt_policy_output(const dt_policy *p, uint32_t place, const char *name);
/* Step inputs as they are set now, for the runs that follow. Errors: DT_EPLUGIN (one that was never set). */
dt_status dt_policy_begin(dt_policy *p) DT_NODISCARD;
/* The same with parameters and step inputs that stay as they are now, whatever the trainer learns, until the next begin
 * or hold; make_room before, once. On the CPU. Saved: bytes appended to out, without frozen parameters; loaded instead
 * of those of now. Errors: DT_ENOMEM, as begin; load: DT_EDATA (other parameters). */
dt_status dt_policy_make_room(dt_policy *p) DT_NODISCARD;
dt_status dt_policy_hold(dt_policy *p) DT_NODISCARD;
dt_status dt_policy_save(const dt_policy *p, dt_str *out) DT_NODISCARD;
dt_status dt_policy_load(dt_policy *p, const void *data, size_t size) DT_NODISCARD;
/* size: live rows per symbol, "B" last; field: as the source orders them, NULL where the policy reads nothing. */
dt_status dt_policy_run(dt_policy *p, uint32_t place, const int64_t *size, void *const *field) DT_NODISCARD;

#endif
