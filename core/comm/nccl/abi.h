/* SPDX-License-Identifier: Apache-2.0
 *
 * What is used of NCCL's interface, as it has been since 2.17 (its documentation, "NCCL API"), so that no header of it
 * is needed: a configuration names its own size and version, and newer libraries take it as it was.
 * tests/comm/nccl_header.sh holds this against the headers that are there. Not for callers: nccl.c includes it.
 */
#ifndef DTRAIN_CORE_COMM_NCCL_ABI_H
#define DTRAIN_CORE_COMM_NCCL_ABI_H

#include <limits.h>
#include <stddef.h>

#define DT_NCCL_MAGIC 0xcafebeefu
enum {
    DT_NCCL_SUCCESS = 0,
    DT_NCCL_IN_PROGRESS = 7,
    DT_NCCL_FLOAT32 = 7,
    DT_NCCL_SUM = 0,
    DT_NCCL_CONFIG_VERSION = 21700,
    DT_NCCL_UNDEFINED = INT_MIN
};

typedef struct dt_nccl_id {
    char internal[128];
} dt_nccl_id;

typedef struct dt_nccl_config { /* ncclConfig_v21700 */
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
} dt_nccl_config;

typedef struct dt_nccl_library { /* comm: ncclComm_t; stream: cudaStream_t; type, op, result: int-sized enumerations */
    int (*get_version)(int *version);
    int (*get_unique_id)(dt_nccl_id *id);
    int (*init)(void **comm, int ranks, dt_nccl_id id, int rank, dt_nccl_config *c);
    int (*finalize)(void *comm);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *error);
    const char *(*error_string)(int result);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);
    int (*receive)(void *to, size_t n, int type, int peer, void *comm, void *stream);
    int (*reduce)(const void *from, void *to, size_t n, int type, int op, int root, void *comm, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
    int (*all_gather)(const void *from, void *to, size_t n, int type, void *comm, void *stream);
    /* NULL where the version has none */
    int (*register_buffer)(void *comm, void *buffer, size_t bytes, void **handle);
    int (*deregister_buffer)(void *comm, void *handle);
    const char *(*last_error)(void *comm);
} dt_nccl_library;

#endif
