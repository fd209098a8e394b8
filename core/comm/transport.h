/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator of processes asks a message-passing library to do, through a module of its own (mpi/module.c):
 * the host knows no header of MPI. Everything begins and returns; test says whether it is done, so that the host can
 * give up in time. Collectives are begun in the same order on all ranks, and many may be under way. Threads: the one
 * that opened it.
 */
#ifndef DTRAIN_CORE_COMM_TRANSPORT_H
#define DTRAIN_CORE_COMM_TRANSPORT_H

#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>

#define DT_TRANSPORT_ENTRY "dt_transport_module" /* dt_transport_module_fn, the one symbol a module exports */
enum { DT_TRANSPORT_VERSION = 2 };
enum { DT_TRANSPORT_PIECE = 1 << 30 /* bytes of a message at most */ };

typedef struct dt_transport_info {
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* among the ranks of this machine */
    char library[128];               /* "Open MPI v4.1.4" */
} dt_transport_info;

typedef struct dt_transport_request { /* of something that was begun; 0: of nothing */
    uint64_t word;
    uint64_t bytes; /* a receipt: the size that has to arrive; else UINT64_MAX */
} dt_transport_request;

typedef struct dt_transport_host { /* what the host lends to a module */
    uint32_t struct_size, reserved;
    dt_status (*fail)(dt_status st, const char *file, int line, const char *fmt, ...) DT_PRINTF(4, 5);
} dt_transport_host;

typedef struct dt_transport_ops {
    uint32_t struct_size, version; /* DT_TRANSPORT_VERSION */
    /* Errors: DT_ECOMM, what the library says. Once a process. */
    dt_status (*open)(dt_transport_info *out_p);
    /* At most DT_TRANSPORT_PIECE bytes; messages between two ranks with the same tag keep their order. */
    dt_status (*send)(uint32_t to, const void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p);
    dt_status (*receive)(uint32_t from, void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p);
    /* mine may be its own place in all. */
    dt_status (*all_gather)(const void *mine, uint64_t bytes, void *all, dt_transport_request *out_p);
    dt_status (*broadcast)(uint32_t root, void *data, uint64_t bytes, dt_transport_request *out_p);
    dt_status (*barrier)(dt_transport_request *out_p);
    /* Sums in the library's order; at most 2^31 - 1 floats. data: in place. n: [size], stays until it is done. */
    dt_status (*all_reduce)(float *data, uint64_t n, dt_transport_request *out_p);
    dt_status (*reduce_scatter)(const float *all, const uint32_t *n, float *mine, dt_transport_request *out_p);
    /* word[i] becomes the largest of all ranks'. A kind of its own: it may run beside one of those above. */
    dt_status (*largest)(uint64_t word[2], dt_transport_request *out_p);
    /* Are all of them done? Errors: DT_ECOMM (the library's; another size than was waited for). */
    dt_status (*test)(dt_transport_request *request, uint32_t n, bool *done_p);
    /* A word to everybody, which nobody waits for; at most 511 characters. And the first one that arrived. */
    void (*tell)(const char *text);
    bool (*heard)(uint32_t *from_p, char *text, size_t bytes);
    void (*close)(void); /* waits for all ranks */
} dt_transport_ops;

typedef const dt_transport_ops *dt_transport_module_fn(const dt_transport_host *host);

#endif
