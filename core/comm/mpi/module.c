/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport over MPI (MPI 3.1; Open MPI 4 and 5): see transport.h. Collectives, messages, comparisons and farewells
 * have a communicator each, so that none can be taken for another.
 */
#include "comm/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#if defined(__GNUC__)
#    define EXPORT __attribute__((visibility("default")))
#else
#    define EXPORT
#endif

#define FAIL(...) host->fail(DT_ECOMM, __FILE__, __LINE__, __VA_ARGS__)

enum { TEXT_BYTES = 512, FAREWELL_TAG = 1, MAX_NOTICES = 8 };

static const dt_transport_host *host;
static MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL, comparisons = MPI_COMM_NULL,
                farewells = MPI_COMM_NULL;
static int n_ranks, own_rank;
static char farewell[MAX_NOTICES][TEXT_BYTES]; /* one that may still be under way is not written over soon */
static unsigned n_notices;

/* MPI_Request is a number or a pointer, by the library. */
typedef union request_word {
    uint64_t word;
    MPI_Request request;
} request_word;
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits into a word");

static dt_status fail_mpi_call(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "no reason given";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return FAIL("MPI: %s failed: %s", what, text);
}

static dt_status make_request(int code, const char *what, MPI_Request r, uint64_t bytes, dt_transport_request *out_p)
{
    request_word w = {.word = 0};
    if (code != MPI_SUCCESS) {
        return fail_mpi_call(code, what);
    }
    w.request = r;
    *out_p = (dt_transport_request){.word = w.word, .bytes = bytes};
    return DT_OK;
}

static int make_communicators(dt_transport_info *out)
{
    MPI_Comm *const all[] = {&collectives, &messages, &comparisons, &farewells};
    MPI_Comm here = MPI_COMM_NULL;
    int code = MPI_SUCCESS, size = 0, rank = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && code == MPI_SUCCESS; i++) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, all[i]);
        if (code == MPI_SUCCESS) {
            MPI_Comm_set_errhandler(*all[i], MPI_ERRORS_RETURN);
        }
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    }
    if (code == MPI_SUCCESS) {
        MPI_Comm_size(here, &size);
        MPI_Comm_rank(here, &rank);
        MPI_Comm_free(&here);
        out->local_size = (uint32_t)size;
        out->local_rank = (uint32_t)rank;
    }
    return code;
}

static dt_status open_library(dt_transport_info *out)
{
    int given = 0, n = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    if (code != MPI_SUCCESS || given < MPI_THREAD_FUNNELED) {
        return FAIL("MPI_Init failed (code %d, thread level %d)", code, given);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    out->size = (uint32_t)n_ranks;
    out->rank = (uint32_t)own_rank;
    if (MPI_Get_library_version(text, &n) == MPI_SUCCESS) {
        text[strcspn(text, ",\n")] = '\0';
        snprintf(out->library, sizeof(out->library), "%.*s", (int)sizeof(out->library) - 1, text);
    }
    code = make_communicators(out);
    return code == MPI_SUCCESS ? DT_OK : fail_mpi_call(code, "making communicators");
}

static dt_status start_send(uint32_t to, const void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, (int)tag, messages, &r);
    return make_request(code, "a send", r, UINT64_MAX, out_p);
}

static dt_status start_receive(uint32_t from, void *data, uint64_t bytes, uint32_t tag, dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, (int)tag, messages, &r);
    return make_request(code, "a receive", r, bytes, out_p);
}

static dt_status start_all_gather(const void *mine, uint64_t bytes, void *all, dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const bool is_there = mine == (const char *)all + (uint64_t)own_rank * bytes;
    const int code = MPI_Iallgather(is_there ? MPI_IN_PLACE : mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                                    collectives, &r);
    return make_request(code, "all_gather", r, UINT64_MAX, out_p);
}

static dt_status start_broadcast(uint32_t root, void *data, uint64_t bytes, dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Ibcast(data, (int)bytes, MPI_BYTE, (int)root, collectives, &r);
    return make_request(code, "broadcast", r, UINT64_MAX, out_p);
}

static dt_status start_barrier(dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    return make_request(MPI_Ibarrier(collectives, &r), "barrier", r, UINT64_MAX, out_p);
}

static dt_status start_reduce_scatter(const float *all, const uint32_t *n, float *mine, dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Ireduce_scatter(all, mine, (const int *)n, MPI_FLOAT, MPI_SUM, collectives, &r);
    return make_request(code, "reduce_scatter", r, UINT64_MAX, out_p);
}

static dt_status start_largest(uint64_t word[2], dt_transport_request *out_p)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Iallreduce(MPI_IN_PLACE, word, 2, MPI_UINT64_T, MPI_MAX, comparisons, &r);
    return make_request(code, "a comparison", r, UINT64_MAX, out_p);
}

static dt_status test_requests(dt_transport_request *request, uint32_t n, bool *done_p)
{
    for (uint32_t i = 0; i < n; i++) {
        request_word w = {.word = request[i].word};
        MPI_Status status;
        int is_done = 0, count = 0;
        if (request[i].word == 0) {
            continue;
        }
        const int code = MPI_Test(&w.request, &is_done, &status);
        if (code != MPI_SUCCESS) {
            request[i].word = 0;
            return fail_mpi_call(code, "a transfer");
        }
        if (!is_done) {
            *done_p = false;
            return DT_OK;
        }
        request[i].word = 0;
        if (request[i].bytes != UINT64_MAX) {
            MPI_Get_count(&status, MPI_BYTE, &count);
            if ((uint64_t)count != request[i].bytes) {
                return FAIL("rank %d sent %d bytes, expected %llu", status.MPI_SOURCE, count,
                            (unsigned long long)request[i].bytes);
            }
        }
    }
    *done_p = true;
    return DT_OK;
}

/* Small enough to leave at once; that it arrives is not waited for. */
static void send_notice(const char *text)
{
    char *word = farewell[n_notices++ % MAX_NOTICES];
    snprintf(word, TEXT_BYTES, "%s", text);
    for (int r = 0; r < n_ranks; r++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (r != own_rank &&
            MPI_Isend(word, TEXT_BYTES, MPI_BYTE, r, FAREWELL_TAG, farewells, &request) == MPI_SUCCESS) {
            MPI_Request_free(&request);
        }
    }
}

static bool receive_notice(uint32_t *from_p, char *text, size_t bytes)
{
    MPI_Status status;
    int is_there = 0;
    char got[TEXT_BYTES];
    if (MPI_Iprobe(MPI_ANY_SOURCE, FAREWELL_TAG, farewells, &is_there, &status) != MPI_SUCCESS || !is_there) {
        return false;
    }
    if (MPI_Recv(got, sizeof(got), MPI_BYTE, status.MPI_SOURCE, FAREWELL_TAG, farewells, &status) != MPI_SUCCESS) {
        return false;
    }
    got[sizeof(got) - 1] = '\0';
    *from_p = (uint32_t)status.MPI_SOURCE;
    snprintf(text, bytes, "%s", got);
    return true;
}

static void close_library(void)
{
    int is_over = 0;
    if (MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over) {
        MPI_Finalize();
    }
}

EXPORT dt_transport_module_fn dt_transport_module;

const dt_transport_ops *dt_transport_module(const dt_transport_host *h)
{
    static const dt_transport_ops ops = {.struct_size = sizeof(ops),
                                         .version = DT_TRANSPORT_VERSION,
                                         .open = open_library,
                                         .send = start_send,
                                         .receive = start_receive,
                                         .all_gather = start_all_gather,
                                         .broadcast = start_broadcast,
                                         .barrier = start_barrier,
                                         .reduce_scatter = start_reduce_scatter,
                                         .largest = start_largest,
                                         .test = test_requests,
                                         .notify = send_notice,
                                         .received = receive_notice,
                                         .close = close_library};
    host = h;
    return &ops;
}
