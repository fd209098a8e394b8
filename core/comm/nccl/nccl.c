/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/nccl/nccl.h"

#include "comm/nccl/abi.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SUCCESS = DT_NCCL_SUCCESS,
    IN_PROGRESS = DT_NCCL_IN_PROGRESS,
    FLOAT32 = DT_NCCL_FLOAT32,
    SUM = DT_NCCL_SUM,
    MOST_REGISTERED = 8
};

typedef dt_nccl_library library;

typedef struct dt_device_transport dt_nccl;

struct dt_device_transport {
    const library *lib;
    dt_comm *comm;
    void *handle; /* NULL: not made, or aborted */
    void *registered[MOST_REGISTERED];
    uint32_t n_registered;
    bool is_failed;
};

/* ---- the library ------------------------------------------------------------------------------------------------- */

static const struct symbol {
    const char *name;
    size_t at;
    bool is_needed;
} symbols[] = {
    {"ncclGetVersion", offsetof(library, get_version), true},
    {"ncclGetUniqueId", offsetof(library, get_unique_id), true},
    {"ncclCommInitRankConfig", offsetof(library, init), true},
    {"ncclCommFinalize", offsetof(library, finalize), true},
    {"ncclCommDestroy", offsetof(library, destroy), true},
    {"ncclCommAbort", offsetof(library, abort), true},
    {"ncclCommGetAsyncError", offsetof(library, async_error), true},
    {"ncclGetErrorString", offsetof(library, error_string), true},
    {"ncclGroupStart", offsetof(library, group_start), true},
    {"ncclGroupEnd", offsetof(library, group_end), true},
    {"ncclSend", offsetof(library, send), true},
    {"ncclRecv", offsetof(library, receive), true},
    {"ncclReduce", offsetof(library, reduce), true},
    {"ncclReduceScatter", offsetof(library, reduce_scatter), true},
    {"ncclAllGather", offsetof(library, all_gather), true},
    {"ncclCommRegister", offsetof(library, register_buffer), false},
    {"ncclCommDeregister", offsetof(library, deregister_buffer), false},
    {"ncclGetLastError", offsetof(library, last_error), false},
};

/* Opened once, and never closed: it keeps threads of its own. */
static dt_status open_library_under_lock(const library **out_p)
{
    static library lib;
    static bool is_open;
    if (is_open) {
        *out_p = &lib;
        return DT_OK;
    }
    void *so = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (so == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "NCCL cannot be loaded: %s; install it (pip install nvidia-nccl-cu12, or the package libnccl2) "
                       "where LD_LIBRARY_PATH or ldconfig finds it, or set comm.backend = \"mpi\"",
                       dlerror());
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *p = dlsym(so, symbols[i].name);
        if (p == NULL && symbols[i].is_needed) {
            return DT_FAIL(DT_EUNSUPPORTED,
                           "libnccl.so.2 has no %s: install NCCL 2.17 or later, or set comm.backend = "
                           "\"mpi\"",
                           symbols[i].name);
        }
        memcpy((char *)&lib + symbols[i].at, &p, sizeof(p));
    }
    is_open = true;
    *out_p = &lib;
    return DT_OK;
}

/* Ranks of one process may ask at the same time. */
static dt_status open_library(const library **out_p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const dt_status st = open_library_under_lock(out_p);
    pthread_mutex_unlock(&lock);
    return st;
}

static dt_status query_version(uint32_t *version_p)
{
    const library *lib = NULL;
    int version = 0;
    DT_TRY(open_library(&lib));
    const int e = lib->get_version(&version);
    if (e != SUCCESS || version <= 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "libnccl.so.2 does not report its version: %s", lib->error_string(e));
    }
    *version_p = (uint32_t)version;
    return DT_OK;
}

/* ---- failure ----------------------------------------------------------------------------------------------------- */

/* Work that is under way ends, whatever the others do. */
static void abort_handle(dt_nccl *n)
{
    if (n->handle != NULL) {
        (void)n->lib->abort(n->handle);
    }
    n->handle = NULL;
    n->is_failed = true;
}

/* The library's error; it is sent to the other ranks. */
static dt_status fail_nccl_call(dt_nccl *n, int e, const char *call)
{
    const char *more = n->lib->last_error != NULL && n->handle != NULL ? n->lib->last_error(n->handle) : "";
    const dt_status st = DT_FAIL(DT_ECOMM, "NCCL, %s: %s%s%.200s", call, n->lib->error_string(e),
                                 more != NULL && more[0] != '\0' ? ": " : "", more != NULL ? more : "");
    dt_error why;
    dt_error_save(&why, st);
    abort_handle(n);
    dt_comm_abort(n->comm, why.text);
    return dt_error_restore(&why);
}

static dt_status poll_errors(dt_nccl *n, double since_s)
{
    int e = SUCCESS;
    if (n->handle == NULL) {
        return DT_FAIL(DT_ECOMM, "NCCL was aborted before");
    }
    const int asked = n->lib->async_error(n->handle, &e);
    if (asked != SUCCESS || (e != SUCCESS && e != IN_PROGRESS)) {
        return fail_nccl_call(n, asked != SUCCESS ? asked : e, "while it worked");
    }
    const dt_status st = dt_comm_check_peers(n->comm, "moved data between GPUs by NCCL", since_s);
    if (st < 0) {
        dt_error why;
        dt_error_save(&why, st);
        abort_handle(n);
        return dt_error_restore(&why);
    }
    return DT_OK;
}

/* A call that may have begun something: until the library is ready for the next one. */
static dt_status wait_until_ready(dt_nccl *n, int e, const char *call)
{
    const double begin = dt_clock_s();
    const struct timespec nap = {.tv_nsec = 50000};
    if (e != SUCCESS && e != IN_PROGRESS) {
        return fail_nccl_call(n, e, call);
    }
    while (e == IN_PROGRESS) {
        int now = SUCCESS;
        const int asked = n->lib->async_error(n->handle, &now);
        if (asked != SUCCESS || (now != SUCCESS && now != IN_PROGRESS)) {
            return fail_nccl_call(n, asked != SUCCESS ? asked : now, call);
        }
        e = now;
        if (e == IN_PROGRESS) {
            DT_TRY(poll_errors(n, begin));
            nanosleep(&nap, NULL);
        }
    }
    return DT_OK;
}

static void destroy_nccl(dt_nccl *n);

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status create_id(const library *lib, dt_nccl_id *id)
{
    const int e = lib->get_unique_id(id);
    return e == SUCCESS ? DT_OK : DT_FAIL(DT_ECOMM, "NCCL, ncclGetUniqueId: %s", lib->error_string(e));
}

static dt_status init_handle(dt_nccl *n, dt_nccl_id id)
{
    dt_nccl_config c = {.size = sizeof(c),
                        .magic = DT_NCCL_MAGIC,
                        .version = DT_NCCL_CONFIG_VERSION,
                        .blocking = 0,
                        .cga_cluster_size = DT_NCCL_UNDEFINED,
                        .min_ctas = DT_NCCL_UNDEFINED,
                        .max_ctas = DT_NCCL_UNDEFINED,
                        .split_share = DT_NCCL_UNDEFINED};
    const int e = n->lib->init(&n->handle, (int)dt_comm_size(n->comm), id, (int)dt_comm_rank(n->comm), &c);
    if (n->handle == NULL) {
        return fail_nccl_call(n, e, "ncclCommInitRankConfig");
    }
    return wait_until_ready(n, e, "ncclCommInitRankConfig");
}

static dt_status create_parts(dt_comm *c, dt_nccl **out_p, dt_nccl_id *id)
{
    const library *lib = NULL;
    dt_nccl *n = dt_alloc(sizeof(*n));
    if (n == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for NCCL");
    }
    *out_p = n;
    DT_TRY(open_library(&lib));
    n->lib = lib;
    n->comm = c;
    return dt_comm_rank(c) == 0 ? create_id(lib, id) : DT_OK;
}

static dt_status connect_ranks(dt_nccl *n, dt_nccl_id *id)
{
    DT_TRY(dt_comm_broadcast(n->comm, 0, id, sizeof(*id)));
    return init_handle(n, *id);
}

static dt_status create_nccl(dt_comm *c, dt_nccl **out_p)
{
    dt_nccl_id id = {{0}};
    dt_nccl *n = NULL;
    const dt_status made = create_parts(c, &n, &id);
    dt_status st = dt_comm_agree(c, made);
    if (st == DT_OK) {
        st = connect_ranks(n, &id);
    }
    if (st < 0) {
        destroy_nccl(n);
        return st;
    }
    *out_p = n;
    return DT_OK;
}

/* What is under way was waited for by now, where all went well. */
static void destroy_nccl(dt_nccl *n)
{
    if (n == NULL) {
        return;
    }
    for (uint32_t i = 0; n->handle != NULL && i < n->n_registered; i++) {
        (void)n->lib->deregister_buffer(n->handle, n->registered[i]);
    }
    if (n->handle != NULL && !n->is_failed &&
        wait_until_ready(n, n->lib->finalize(n->handle), "ncclCommFinalize") == DT_OK) {
        (void)n->lib->destroy(n->handle);
        n->handle = NULL;
    }
    if (n->handle != NULL) {
        abort_handle(n);
    }
    dt_free(n);
}

static dt_status register_memory(dt_nccl *n, void *device, size_t bytes)
{
    if (n->lib->register_buffer == NULL || n->lib->deregister_buffer == NULL || n->n_registered == MOST_REGISTERED ||
        bytes == 0) {
        return DT_OK;
    }
    void *handle = NULL;
    DT_TRY(wait_until_ready(n, n->lib->register_buffer(n->handle, device, bytes, &handle), "ncclCommRegister"));
    if (handle != NULL) {
        n->registered[n->n_registered++] = handle;
    }
    return DT_OK;
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Every group that was begun is ended, whatever its calls returned: the first failure is reported. */
static dt_status end_group(dt_nccl *n, int e, const char *call)
{
    const int end = n->lib->group_end();
    const bool is_bad = e != SUCCESS && e != IN_PROGRESS;
    return wait_until_ready(n, is_bad ? e : end, is_bad ? call : "ncclGroupEnd");
}

static dt_status begin_group(dt_nccl *n)
{
    if (n->handle == NULL) {
        return DT_FAIL(DT_ECOMM, "NCCL was aborted before");
    }
    const int e = n->lib->group_start();
    return e == SUCCESS ? DT_OK : fail_nccl_call(n, e, "ncclGroupStart");
}

static dt_status all_to_all(dt_nccl *n, const dt_comm_out *out, const dt_comm_in *in, uint32_t k, void *stream)
{
    const uint32_t ranks = dt_comm_size(n->comm), me = dt_comm_rank(n->comm);
    int e = SUCCESS;
    DT_TRY(begin_group(n));
    for (uint32_t i = 0; i < k * ranks && (e == SUCCESS || e == IN_PROGRESS); i++) {
        const uint32_t peer = i % ranks;
        if (peer != me && out[i].bytes > 0) {
            e = n->lib->send(out[i].data, out[i].bytes / sizeof(float), FLOAT32, (int)peer, n->handle, stream);
        }
        if (peer != me && in[i].bytes > 0 && (e == SUCCESS || e == IN_PROGRESS)) {
            e = n->lib->receive(in[i].data, in[i].bytes / sizeof(float), FLOAT32, (int)peer, n->handle, stream);
        }
    }
    return end_group(n, e, "ncclSend, ncclRecv");
}

/* Parts of one length, one after the other, are what the library has a call for. */
static bool are_parts_equal(const int64_t *at, uint32_t ranks)
{
    bool is_equal = at[1] > at[0];
    for (uint32_t r = 1; r < ranks; r++) {
        is_equal = is_equal && at[r + 1] - at[r] == at[1] - at[0];
    }
    return is_equal;
}

static dt_status reduce_scatter(dt_nccl *n, float *vector, const int64_t *at, void *stream)
{
    const uint32_t ranks = dt_comm_size(n->comm), me = dt_comm_rank(n->comm);
    int e = SUCCESS;
    DT_TRY(begin_group(n));
    if (are_parts_equal(at, ranks)) {
        e = n->lib->reduce_scatter(vector + at[0], vector + at[me], (size_t)(at[1] - at[0]), FLOAT32, SUM, n->handle,
                                   stream);
        return end_group(n, e, "ncclReduceScatter");
    }
    for (uint32_t r = 0; r < ranks && (e == SUCCESS || e == IN_PROGRESS); r++) {
        if (at[r + 1] > at[r]) {
            float *part = vector + at[r];
            e = n->lib->reduce(part, part, (size_t)(at[r + 1] - at[r]), FLOAT32, SUM, (int)r, n->handle, stream);
        }
    }
    return end_group(n, e, "ncclReduce");
}

static dt_status all_gather(dt_nccl *n, float *vector, const int64_t *at, void *stream)
{
    const uint32_t ranks = dt_comm_size(n->comm), me = dt_comm_rank(n->comm);
    const int64_t own = at[me + 1] - at[me];
    int e = SUCCESS;
    DT_TRY(begin_group(n));
    if (are_parts_equal(at, ranks)) {
        e = n->lib->all_gather(vector + at[me], vector + at[0], (size_t)own, FLOAT32, n->handle, stream);
        return end_group(n, e, "ncclAllGather");
    }
    for (uint32_t r = 0; r < ranks && (e == SUCCESS || e == IN_PROGRESS); r++) {
        const int64_t theirs = at[r + 1] - at[r];
        if (r != me && own > 0) {
            e = n->lib->send(vector + at[me], (size_t)own, FLOAT32, (int)r, n->handle, stream);
        }
        if (r != me && theirs > 0 && (e == SUCCESS || e == IN_PROGRESS)) {
            e = n->lib->receive(vector + at[r], (size_t)theirs, FLOAT32, (int)r, n->handle, stream);
        }
    }
    return end_group(n, e, "ncclSend, ncclRecv");
}

const dt_device_transport_ops dt_nccl_transport = {.name = "NCCL",
                                                   .query_version = query_version,
                                                   .create = create_nccl,
                                                   .destroy = destroy_nccl,
                                                   .register_buffer = register_memory,
                                                   .all_to_all = all_to_all,
                                                   .reduce_scatter = reduce_scatter,
                                                   .all_gather = all_gather,
                                                   .poll = poll_errors};
