/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting: the forward part of what a phase records, without its losses, run on rows that the caller packs, with the
 * trainer's parameters as they are now, or as they were when they were held. It allocates nothing; a row of an output
 * does not depend on the rows next to it.
 *
 * On the CPU a run is made by the calling thread. A device is asked, and answers later: runs of several places may be
 * under way, and rows are packed for one meanwhile. What it is asked comes in pieces of equal capacity, which alone
 * decides about bits: neither how many pieces a run has nor where in a piece a row is does.
 * Threads: [main]; dt_policy_run [any] on the CPU, one thread per place, and where parameters are held also while the
 * trainer makes steps.
 */
#ifndef DTRAIN_CORE_TRAIN_POLICY_H
#define DTRAIN_CORE_TRAIN_POLICY_H

#include "base/str.h"
#include "train/trainer.h"

typedef struct dt_policy dt_policy;

enum { DT_POLICY_MAX_PLACES = 8 }; /* places of a device */

#define DT_POLICY_CARRIED "carry/" /* what outputs of state that acting carries begin with */

typedef struct dt_policy_desc {
    const dt_samples *source;   /* names and shapes of fields, outlives the policy; its samples are not looked at */
    const int64_t *cap;         /* the most rows per symbol of a piece, "B" last */
    uint32_t pieces;            /* of a run at most; 1 on the CPU */
    uint32_t places;            /* how many runs there may be at once; at most DT_POLICY_MAX_PLACES on a device */
    const char *const *outputs; /* wanted, ends with NULL; others are left out, and what they alone need. NULL: all */
    const char *const *keep;    /* kept values that become outputs, ends with NULL; may be NULL */
    bool pictures;              /* what the phase records for pictures (svc/rollout.h), and not how it acts */
} dt_policy_desc;

/* The trainer outlives the policy. Errors: DT_ENOMEM, what recording reports. */
dt_status dt_policy_create(dt_trainer *t, const dt_policy_desc *d, dt_policy **out_p) DT_NODISCARD;
/* The host's arenas of all places: mapped, and what runs of n samples of this mean make resident. */
void dt_policy_arenas_get(const dt_policy *p, const double *mean, uint64_t n, uint64_t *mapped, uint64_t *resident);
void dt_policy_destroy(dt_policy *p);
uint32_t dt_policy_n_places(const dt_policy *p);
bool dt_policy_is_async(const dt_policy *p); /* it is on a device */
/* What one of its calls costs at these live sizes; false: there are no more. */
bool dt_policy_call_cost(const dt_policy *p, uint32_t call, const int64_t *size, dt_call_cost *out_p);
/* Does it read this field of the source? */
bool dt_policy_reads_field(const dt_policy *p, const char *field);
/* A named output of a place, NULL when nothing was recorded under the name. The address stays, its rows are those of
 * the last run. */
const dt_view *dt_policy_output(const dt_policy *p, uint32_t place, const char *name);
/* Step inputs as they are set now, for the runs that follow. Errors: DT_EPLUGIN (one that was never set). */
dt_status dt_policy_use_current_params(dt_policy *p) DT_NODISCARD;
/* The same with parameters and step inputs that stay as they are now, whatever the trainer learns, until the next begin
 * or hold; make_room before, once. Saved: bytes appended to out, without frozen parameters; loaded instead
 * of those of now. Errors: DT_ENOMEM, as begin; load: DT_EDATA (other parameters). */
dt_status dt_policy_allocate_frozen(dt_policy *p) DT_NODISCARD;
dt_status dt_policy_freeze_params(dt_policy *p) DT_NODISCARD;
dt_status dt_policy_save(const dt_policy *p, dt_str *out) DT_NODISCARD;
dt_status dt_policy_load(dt_policy *p, const void *data, size_t size) DT_NODISCARD;
/* The values that runs read now, of all parameters: [floats of dt_policy_n_params]. */
size_t dt_policy_n_params(const dt_policy *p);
/* target network: with its values in the place of those of the models that it follows; NULL: none. Errors: DT_ECONFIG
 * (there is no such target network, or it does not hold the controller). */
dt_status dt_policy_copy_params(const dt_policy *p, const char *target, float *to) DT_NODISCARD;
dt_status dt_policy_check_target(const dt_policy *p, const char *target) DT_NODISCARD; /* the same errors */
/* Of such values what training changes, but for target networks: their number, appended to out, and back from as many.
 * Hands back where these end. */
uint64_t dt_policy_n_trained(const dt_policy *p);
void dt_policy_pack_params(const dt_policy *p, const float *values, dt_str *out);
const char *dt_policy_unpack_params(const dt_policy *p, const char *at, float *to);
/* Runs of this place read these values instead, which stay where and as they are until the next choose, begin or hold.
 * version names them: never 0, never the same for others. On a device a hold comes before, and nothing is under way. */
dt_status dt_policy_override_params(dt_policy *p, uint32_t place, const float *values, uint64_t version) DT_NODISCARD;
/* One piece at once. size: live rows per symbol, "B" last; field: as the source orders them, NULL where the policy
 * reads nothing. */
dt_status dt_policy_run(dt_policy *p, uint32_t place, const int64_t *size, void *const *field) DT_NODISCARD;

/* A device. Where fields of piece i of n can be written, so that put need not copy them; field[fields of the source]:
 * NULL where it has to, or where the policy reads nothing. */
void dt_policy_input_buffers(dt_policy *p, uint32_t place, uint32_t i, uint32_t n, void **field);
/* Piece i of n; the place's last run was waited for. */
dt_status dt_policy_write_input(dt_policy *p, uint32_t place, uint32_t i, uint32_t n, const int64_t *size,
                                void *const *field) DT_NODISCARD;
/* ask: begins the run of the n pieces that were put; returns at once. answer: waits for it, and for no other; the
 * outputs are those of all its pieces, row after row. */
dt_status dt_policy_start_run(dt_policy *p, uint32_t place, uint32_t n) DT_NODISCARD;
dt_status dt_policy_wait_for_run(dt_policy *p, uint32_t place) DT_NODISCARD;

#endif
