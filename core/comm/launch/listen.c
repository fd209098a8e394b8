/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DASHES = 40 };

static void copy_to_user(const dt_listen *l, const char *bytes, size_t n)
{
    if (l->also != NULL) {
        l->also(l->user, bytes, n);
    }
}

static void forward_bytes(const dt_listen *l, const char *bytes, size_t n)
{
    copy_to_user(l, bytes, n);
    while (n > 0) {
        const ssize_t k = write(STDERR_FILENO, bytes, n);
        if (k <= 0) {
            return; /* the reader is gone */
        }
        bytes += k;
        n -= (size_t)k;
    }
}

static bool is_separator_line(const char *line, size_t n)
{
    size_t dashes = strspn(line, "-");
    return dashes >= DASHES && dashes + 1 >= n;
}

/* "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)."
 * "... process rank 2 with PID 7 on node x exiting improperly", "Process name: [[5,1],2]", "Exit code: 9" */
static void parse_notice(dt_listen *l)
{
    const char *rank = strstr(l->block, "process rank "), *name = strstr(l->block, "Process name: [["),
               *number = strstr(l->block, "exited on signal ");
    if (l->rank < 0 && rank != NULL) {
        l->rank = atoi(rank + strlen("process rank "));
    } else if (l->rank < 0 && name != NULL && strchr(name, ']') != NULL) {
        l->rank = atoi(strchr(name, ']') + 2);
    }
    if (l->signal == 0 && number != NULL) {
        l->signal = atoi(number + strlen("exited on signal "));
    }
}

/* "ORTE has lost communication with a remote daemon. ... Remote daemon: [[5,0],1] on node x" */
static void parse_lost_node(dt_listen *l)
{
    const char *lost = strstr(l->block, "lost communication with a remote daemon");
    const char *daemon = lost != NULL ? strstr(lost, "Remote daemon: ") : NULL;
    const char *node = daemon != NULL ? strstr(daemon, " on node ") : NULL;
    if (node != NULL && l->node[0] == '\0') {
        node += strlen(" on node ");
        snprintf(l->node, sizeof(l->node), "%.*s", (int)strcspn(node, " \n"), node);
    }
}

static bool is_mpirun_notice(const dt_listen *l)
{
    return strstr(l->block, "mpirun") != NULL || strstr(l->block, "Primary job") != NULL ||
           strstr(l->block, "lost communication with a remote daemon") != NULL;
}

static void buffer_notice(dt_listen *l)
{
    const size_t room = sizeof(l->kept) - 1 - l->n_kept, n = l->n_block < room ? l->n_block : room;
    copy_to_user(l, l->block, l->n_block);
    memcpy(l->kept + l->n_kept, l->block, n);
    l->n_kept += n;
    l->kept[l->n_kept] = '\0';
}

/* What mpirun prints about each signal that it forwards. */
static bool is_forwarding_notice(const char *line)
{
    static const char text[] = "mpirun: Forwarding signal ";
    return strncmp(line, text, sizeof(text) - 1) == 0;
}

/* Of a line without an end: may it still become what is kept back? */
static bool may_be_buffered(const dt_listen *l)
{
    static const char mpirun[] = "mpirun: ";
    const size_t n = l->n < sizeof(mpirun) - 1 ? l->n : sizeof(mpirun) - 1;
    return l->line[0] == '-' || memcmp(l->line, mpirun, n) == 0;
}

static void finish_notice(dt_listen *l)
{
    l->block[l->n_block] = '\0';
    parse_notice(l);
    parse_lost_node(l);
    if (!is_mpirun_notice(l)) { /* such as what it prints before anything runs: why it cannot */
        forward_bytes(l, l->block, l->n_block);
    } else {
        buffer_notice(l);
    }
    l->n_block = 0;
}

static void finish_line(dt_listen *l)
{
    l->line[l->n] = '\0';
    if (is_separator_line(l->line, l->n)) {
        if (l->is_inside) {
            finish_notice(l);
        }
        l->is_inside = !l->is_inside;
    } else if (l->is_inside) {
        const size_t room = sizeof(l->block) - 1 - l->n_block, n = l->n < room ? l->n : room;
        memcpy(l->block + l->n_block, l->line, n);
        l->n_block += n;
    } else if (!is_forwarding_notice(l->line)) {
        forward_bytes(l, l->line, l->n);
    }
    l->n = 0;
}

void dt_listen_add(dt_listen *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        l->line[l->n++] = bytes[i];
        if (bytes[i] == '\n' || l->n + 1 == sizeof(l->line)) {
            finish_line(l);
        }
    }
    if (!l->is_inside && l->n > 0 && !may_be_buffered(l)) { /* a line that is drawn again and again has no end */
        forward_bytes(l, l->line, l->n);
        l->n = 0;
    }
}

void dt_listen_end(dt_listen *l)
{
    if (l->n > 0) {
        finish_line(l);
    }
    if (l->is_inside) {
        finish_notice(l);
        l->is_inside = false;
    }
}
