/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks. Never a source of randomness or of training decisions other than --max-time. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_CLOCK_H
#define DTRAIN_CORE_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

double dt_clock_s(void);                    /* monotonic seconds */
void dt_clock_utc(char *out, size_t bytes); /* "2026-11-20T23:59:59Z", at least 21 bytes */
uint64_t dt_rss_bytes(void);                /* resident memory of this process now, 0 when unknown */
/* Of another process: resident memory of its own, and what it shares with others, such as code and files; 0: unknown */
uint64_t dt_private_bytes_of(int pid, uint64_t *shared_p);
uint64_t dt_rss_peak_bytes(void); /* most at once since the last reset, 0 when unknown */
bool dt_rss_peak_reset(void);     /* false where the system has no such thing: it counts from the start */

#endif
