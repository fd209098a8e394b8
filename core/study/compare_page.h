/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as one HTML file, in the style of a report (telemetry/report/page.h). Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_COMPARE_PAGE_H
#define DTRAIN_CORE_STUDY_COMPARE_PAGE_H

#include "study/compare.h"

/* Whole, or not at all. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_compare_write_page(const dt_compare *c, const char *path) DT_NODISCARD;

#endif
