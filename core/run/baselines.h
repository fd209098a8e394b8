/* SPDX-License-Identifier: Apache-2.0
 *
 * What a policy is compared with: controllers that need no learning, evaluated once a phase is over, in the same
 * environment on the same seeds (evaluation.baselines). The phase is made again with one of them as its controller and
 * without other models; nothing of it is trained. Results go into the run directory, next to the policy's own last
 * ones:
 *
 *   evaluation/<n>-<phase>.baselines.json   {"phase":...,"number":n,"results":[{"controller":...,"learnt":true,
 *                                           "result":{as `dtrain eval --json` prints it}}, ...]}
 *
 * Threads: [main] of every rank.
 */
#ifndef DTRAIN_CORE_RUN_BASELINES_H
#define DTRAIN_CORE_RUN_BASELINES_H

#include "plugin/service/stage.h"

enum { DT_BASELINES_MAX = 8 };

typedef struct dt_baseline_names {
    char *id[DT_BASELINES_MAX];
    uint32_t n;
    bool is_auto;
} dt_baseline_names;

/* Those of a phase; "auto": what its environment names by the extension dtrain.baselines/1 (plugin.h), of which those
 * count that fit what agents do and see. Each is found, and its options are known from here on. Errors: DT_ECONFIG (no
 * such controller, too many). */
dt_status dt_baseline_names_get(dt_config *c, dt_loader *l, int64_t phase, dt_baseline_names *out) DT_NODISCARD;
void dt_baseline_names_fini(dt_baseline_names *b);

typedef struct dt_policy_result { /* the policy's last evaluation: what is left of its stage */
    dt_result result[DT_STAGE_MAX_RESULTS];
    uint32_t n;
    dt_str json;
    char controller[128];
} dt_policy_result;

/* From a stage that is about to go; NULL in out_p: it evaluated no policy in an environment. Errors: DT_ENOMEM. */
dt_status dt_policy_result_capture(dt_stage *s, dt_policy_result **out_p) DT_NODISCARD;
void dt_policy_result_free(dt_policy_result *p);

/* [collective] d: as the phase's own stage was made. run_dir: of rank 0, NULL elsewhere. Prints a table and writes the
 * file; what goes wrong with one of them is a warning. Errors: DT_EPEER, DT_ECOMM, DT_EINTERRUPTED: they are pending.
 * */
dt_status dt_baselines_run(const dt_stage_desc *d, const dt_policy_result *policy, const char *run_dir) DT_NODISCARD;
/* The same of an evaluation on its own, in one process: a table, or a JSON array of the baselines alone, appended. */
dt_status dt_baselines_compare(const dt_stage_desc *d, const dt_policy_result *policy, bool is_json, dt_str *out)
    DT_NODISCARD;
/* Were those of a phase begun, and not finished? While they run evaluation/<n>-<phase>.baselines.pending exists. */
bool dt_baselines_are_pending(const char *run_dir, int64_t index, const char *phase);

#endif
