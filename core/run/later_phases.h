/* SPDX-License-Identifier: Apache-2.0
 *
 * Later phases are made and planned once, and released, before the first one begins: what they cannot read of their
 * configuration, what is more than the machine has, and weights of the phases before whose shapes differ, are better
 * known now than after hours. What else is missing may be there when they are due: a warning. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_LATER_PHASES_H
#define DTRAIN_CORE_RUN_LATER_PHASES_H

#include "run/args.h"
#include "run/session.h"

/* run_dir: of the run, or where its folder will be; resume: NULL, or what it continues from. Errors: those with exit
 * code 2 of making and planning a phase. */
dt_status dt_later_phases_check(const dt_args *a, const dt_session *s, const char *run_dir, const char *resume)
    DT_NODISCARD;

#endif
