/* SPDX-License-Identifier: Apache-2.0
 *
 * This program as a child process: in a process group of its own, so that Ctrl-C reaches the parent alone, and asked to
 * save and stop (SIGTERM) when the parent ends, however that ends. Threads: [main], whose end is the parent's.
 */
#ifndef DTRAIN_CORE_STUDY_CHILD_H
#define DTRAIN_CORE_STUDY_CHILD_H

#include "study/words.h"

#include <sys/types.h>

/* out_fd, err_fd: its standard output and error; -1: the parent's. Errors: DT_EIO. */
dt_status dt_child_start(const dt_words *command, int out_fd, int err_fd, pid_t *pid_p) DT_NODISCARD;
/* Has it ended? Then code_p is its exit code, 128 + n after signal n. Waits where `waits` is set. */
bool dt_child_ended(pid_t pid, bool waits, int *code_p);

#endif
