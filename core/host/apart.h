/* SPDX-License-Identifier: Apache-2.0
 *
 * Something that may crash or never return, tried in a forked copy of this process, which goes on whatever happens
 * there. For code of others that is looked at, not used: what it changes in memory is gone with the copy.
 * Threads: [main], and no others at the time of the fork.
 */
#ifndef DTRAIN_CORE_HOST_APART_H
#define DTRAIN_CORE_HOST_APART_H

#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct dt_apart { /* shared by both */
    atomic_uint beat;     /* the copy adds to it as often as it is alive: it has timeout_s from beat to beat */
    uint32_t count[4];    /* for the caller's own use */
    int fd;               /* of the copy, to the other side */
} dt_apart;

/* Does work in the copy; what that says is appended to out as it comes. count_p takes the counts it left. Errors:
 * DT_EIO when it did not return: killed by a signal, ended early, or too slow, which dt_error_text() tells as in "it
 * was killed by signal 11, Segmentation fault"; DT_EUNSUPPORTED when there is no second process to be had. */
dt_status dt_apart_do(void (*work)(void *user, dt_apart *a), void *user, double timeout_s, dt_str *out,
                      uint32_t count_p[4]) DT_NODISCARD;
/* In the copy: text for out. */
void dt_apart_say(dt_apart *a, const char *text, size_t bytes);

#endif
