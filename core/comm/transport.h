/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports: how the host requests libraries to move between ranks. dt_transport_ops is for host memory, implemented
 * by a module (mpi/module.c); dt_device_transport_ops for device memory, implemented by nccl/nccl.c. The host knows no
 * header of either library. Every call starts an operation and returns; test or poll reports whether it is done or has
 * failed, so that the host can give up in time. Collectives start in the same order on all ranks, and many may be in
 * flight. Threads: the one that opened it.
 */
#ifndef DTRAIN_CORE_COMM_TRANSPORT_H
#define DTRAIN_CORE_COMM_TRANSPORT_H

#include "comm/comm.h"
#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>

#define DT_TRANSPORT_ENTRY "dt_transport_module" /* dt_transport_module_fn, the one symbol a module exports */
enum { DT_TRANSPORT_VERSION = 3 };
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
    /* Errors: DT_ECOMM, the library's error. Once a process. */
    dt_status (*open)(dt_transport_info *out_p);
    /* At most DT_TRANSPORT_PIECE bytes; messages between two ranks with the same tag keep their order. */
    dt_status (*send)(uint32_t to, const void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p);
    dt_status (*receive)(uint32_t from, void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p);
    /* mine may be its own place in all. */
    dt_status (*all_gather)(const void *mine, uint64_t bytes, void *all, dt_transport_request *out_p);
    dt_status (*broadcast)(uint32_t root, void *data, uint64_t bytes, dt_transport_request *out_p);
    dt_status (*barrier)(dt_transport_request *out_p);
    /* Sums in the library's order; at most 2^31 - 1 floats. n: [size], stays until it is done. */
    dt_status (*reduce_scatter)(const float *all, const uint32_t *n, float *mine, dt_transport_request *out_p);
    /* word[i] becomes the largest of all ranks'. A kind of its own: it may run in parallel with one of those above. */
    dt_status (*largest)(uint64_t word[2], dt_transport_request *out_p);
    /* Are all of them done? Errors: DT_ECOMM (the library's; another size than was waited for). */
    dt_status (*test)(dt_transport_request *request, uint32_t n, bool *done_p);
    /* A message to all ranks, which none waits for; at most 511 characters. And the first one that arrived. */
    void (*notify)(const char *text);
    bool (*received)(uint32_t *from_p, char *text, size_t bytes);
    void (*close)(void); /* waits for all ranks */
} dt_transport_ops;

/* ---- device memory ---- */

/* The ranks of a communicator, each with a device. The communicator outlives it, carries what is small, and notices
 * that ranks leave or do not come. Calls queue work into a stream of the device (dt_device_stream) and return; nothing
 * waits for the device. Lists are read before a call returns. Data is f32. */
typedef struct dt_device_transport dt_device_transport;

typedef struct dt_device_transport_ops {
    const char *name; /* "NCCL" */
    /* Is the library here? version_p: 22107 is 2.21.7. Errors: DT_EUNSUPPORTED, with the reason and a remedy. */
    dt_status (*query_version)(uint32_t *version_p);
    /* [collective] Each rank on the device that is current in this thread. Errors: DT_EUNSUPPORTED (a rank has no
     * library), DT_ECOMM (the library's), those of c. All ranks get the same. */
    dt_status (*create)(dt_comm *c, dt_device_transport **out_p);
    void (*destroy)(dt_device_transport *t); /* NULL is fine; what failed, or is in flight, is aborted */
    /* A buffer that is used for long: the library may move it without copies. Nothing where the version cannot. */
    dt_status (*register_buffer)(dt_device_transport *t, void *device, size_t bytes);
    /* As dt_comm_all_to_all, but for pieces of this rank itself, which are left alone. n_lists lists, one after the
     * other, of one entry a rank, which travel together. */
    dt_status (*all_to_all)(dt_device_transport *t, const dt_comm_out *out, const dt_comm_in *in, uint32_t n_lists,
                            void *stream);
    /* at [size + 1]: rank r has the elements [at[r], at[r + 1]) of vector. reduce_scatter: its part of the sum of all
     * ranks' lands in them, in the library's order of summation, and the rest is undefined. all_gather: its part goes
     * to all. */
    dt_status (*reduce_scatter)(dt_device_transport *t, float *vector, const int64_t *at, void *stream);
    dt_status (*all_gather)(dt_device_transport *t, float *vector, const int64_t *at, void *stream);
    /* While this rank waits since since_s: is all well? It is aborted when it is not, so that the stream's work ends.
     * Errors: DT_ECOMM (the library's; the time limit), DT_EPEER. */
    dt_status (*poll)(dt_device_transport *t, double since_s);
} dt_device_transport_ops;

/* [collective] Do all ranks have this library, in one version? is_required: a rank without it is an error; else it is
 * logged, and no rank uses it. Errors: DT_EUNSUPPORTED, DT_ECONFIG (other versions). */
dt_status dt_device_transport_negotiate(const dt_device_transport_ops *ops, dt_comm *c, bool is_required,
                                        bool *is_available_p, uint32_t *version_p) DT_NODISCARD;

typedef const dt_transport_ops *dt_transport_module_fn(const dt_transport_host *host);

#endif
