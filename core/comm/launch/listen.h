/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from the standard error of mpirun: lines of the processes pass; what mpirun prints itself, between lines
 * of dashes, is kept back and read for the process that was lost. Threads: one.
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_LISTEN_H
#define DTRAIN_CORE_COMM_LAUNCH_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dt_listen {
    int rank, signal; /* that mpirun named as lost, -1: none; what ended it, 0: it ended by itself */
    char node[64];    /* that mpirun has lost the connection to, "": none */
    bool is_inside;   /* between two lines of dashes */
    size_t n;
    char line[1024], block[4096];
    size_t n_block;
    char kept[4096]; /* the first of what was kept back */
    size_t n_kept;
    void (*also)(void *user, const char *bytes, size_t n); /* receives all of it; NULL: none */
    void *user;
} dt_listen;

void dt_listen_add(dt_listen *l, const char *bytes, size_t n);
/* No more comes: what began without an end is passed on. */
void dt_listen_end(dt_listen *l);

#endif
