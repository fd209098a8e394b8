/* SPDX-License-Identifier: Apache-2.0
 *
 * Electric fence around host memory (after Perens 1987): once installed, every block of dt_alloc has pages of its own,
 * ends at an inaccessible page, and is not reused after it was freed. So writes past the end, before the start or after
 * the release are detected where they happen.
 *
 * For short processes that test foreign code (plugin/trial/trial.h): addresses are never reused. At most 20,000 blocks
 * are fenced. Alignment leaves up to 63 bytes after a block; they hold a pattern that is checked when the block is
 * freed and by dt_fence_check. Threads: installed by [main] before other threads start.
 */
#ifndef DTRAIN_CORE_BASE_FENCE_H
#define DTRAIN_CORE_BASE_FENCE_H

/* broken: receives one sentence that describes the access; must not return, may be called in a signal handler. */
void dt_fence_install(void (*broken)(const char *what));
void dt_fence_check(void); /* patterns of all live blocks */

#endif
