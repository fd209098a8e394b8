/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a phase held against the machine and against memory.target_gb, before its first step: what cannot be is
 * refused with DT_ECONFIG, what may work but badly is warned of. What counts: the planned peak of this process without
 * the pages of recordings, which the system drops when it needs them, and processes of environments; arenas at most
 * where the address space is limited; files and processes that environments need. For the target recordings count too,
 * as they do in what it is compared with while running (memory_watch.h). A device's trainer looks for itself whether
 * its memory is enough.
 *
 * A refusal names the keys that reduce the plan. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_FIT_H
#define DTRAIN_CORE_PLAN_FIT_H

#include "plan/forecast.h"
#include "plan/machine/limits.h"

typedef struct dt_fit {
    dt_limits room;
    bool is_known;    /* the system reports available memory */
    uint64_t held;    /* bytes of what is planned that this process and its workers hold by now */
    uint32_t alike;   /* processes of the run on this machine, each of which takes as much */
    double target_gb; /* 0: none */
} dt_fit;

/* What there is now, for the stage that f was made for. Errors: DT_ECONFIG. */
dt_status dt_fit_measure(const dt_stage *s, const dt_forecast *f, dt_fit *out) DT_NODISCARD;
/* DT_ECONFIG with the reason. A warning is logged where it may work: into swap, close to the
 * limit, many more processes than cores. */
dt_status dt_fit_check(const dt_fit *fit, const dt_forecast *f, bool may_log) DT_NODISCARD;
/* Both for a stage that f was made for. Where it is too much because it is unknown how much an environment in a process
 * shows, one is tried and f is made again. is_beyond_p: refused for what there is; dt_fit_advise adds the remedy. */
dt_status dt_fit_stage(dt_stage *s, uint64_t max_steps, dt_forecast *f, bool may_log, bool *is_beyond_p) DT_NODISCARD;
/* st is a refusal of dt_fit_check, or DT_ENOMEM of making the phase where a device computes or the address space is
 * limited: adds which keys to lower, and gives DT_ECONFIG. Any other status is returned unchanged, with its message. */
dt_status dt_fit_advise(const dt_stage_desc *d, dt_status st);

/* One line for people, members of an object for scripts. */
void dt_fit_text(const dt_fit *fit, const dt_forecast *f, dt_str *out);
void dt_fit_json(const dt_fit *fit, const dt_forecast *f, dt_json_out *o);

#endif
