/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of recorded numbers, derived from their names: "time/step" is in seconds, and so is whatever ends in _s.
 * Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_UNIT_H
#define DTRAIN_CORE_TELEMETRY_REPORT_UNIT_H

/* "s", "m/s"; "" where the number has no unit, or its name does not show it. */
const char *dt_unit_of(const char *name);

#endif
