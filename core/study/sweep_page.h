/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a sweep as one HTML file, in the style of a report (telemetry/report/page.h): the best trials, and all
 * trials as parallel coordinates (Inselberg 1985). Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_SWEEP_PAGE_H
#define DTRAIN_CORE_STUDY_SWEEP_PAGE_H

#include "dtrain/status.h"

/* Whole, or not at all. Errors: those of dt_sweep_results_read, DT_EIO, DT_ENOMEM. */
dt_status dt_sweep_write_page(const char *folder, const char *path) DT_NODISCARD;

#endif
