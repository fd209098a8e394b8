/* SPDX-License-Identifier: Apache-2.0
 *
 * An electric fence around host memory (after Perens 1987): once it is raised, every block of dt_alloc lies in pages of
 * its own, its end against a page that nobody may touch, and a block that was freed is never used again. So a write
 * behind the end, in front of the beginning, or after the release is found where it happens, not where it hurts.
 *
 * For a process in which foreign code is on trial and which ends soon (plugin/trial/trial.h): no address is given back.
 * At most 20,000 blocks are fenced, what comes later is not; alignment leaves up to 63 bytes behind a block, which hold
 * a pattern that is looked at when it is freed and by dt_fence_look. Threads: raised by [main] before there are others.
 */
#ifndef DTRAIN_CORE_BASE_FENCE_H
#define DTRAIN_CORE_BASE_FENCE_H

/* broken: told in one sentence what somebody did; it must not return, and may be called in a signal's handler. */
void dt_fence_raise(void (*broken)(const char *what));
void dt_fence_look(void); /* at all blocks that live */

#endif
