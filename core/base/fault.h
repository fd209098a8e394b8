/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault points, for tests only: DTRAIN_FAULT="name:N[,name:N...]" makes the N-th visit (1-based) of the named point
 * fail; "name:N-M" the N-th to the M-th, as a disk that is freed again; "name:N+" makes it fail from then on;
 * "name:N!" kills the process (SIGKILL) there; "name:N@FILE" creates FILE, continues when it was removed, and does
 * not fail: so a test synchronises with that place. Points are named <room>.<what>, e.g. alloc, fs.open, fs.write,
 * fs.fsync, fs.rename, ckpt.commit, data.read, run.stop (a request to stop), train.step, and env.step in the worker
 * processes of environments; a name in the specification may be a pattern ("fs.*" counts the visits of every file
 * system point together). Without the variable a visit is one predictable branch. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_FAULT_H
#define DTRAIN_CORE_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

bool dt_fault(const char *point); /* true: the caller must fail now, as if the system call had failed */
/* Tests: replace the specification (NULL clears) and the counters. false: a malformed part, which is reported on
 * standard error and ignored. */
bool dt_fault_reset(const char *spec);
uint64_t dt_fault_count(void); /* injected since the last reset: a test that fails call 1, 2, 3... ends at 0 */

#endif
