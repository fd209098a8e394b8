/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of every communicator, and the one of a single rank. See comm.h.
 */
#include <config.h>

#include "comm/comm_impl.h"
#include "base/call_watch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <stdio.h>
#include <string.h>

/* What a rank sends to the others in an agreement. */
typedef struct message {
    dt_status status;
    uint32_t is_join; /* not an agreement within a part of the run, but the one at the part's end */
    char text[504];
} message;

dt_status dt_comm_init(dt_comm *c, const dt_comm_ops *ops, uint32_t rank, uint32_t size)
{
    c->ops = ops;
    c->rank = rank;
    c->size = size;
    c->n_local = c->n_inside = size;
    c->timeout_s = DT_COMM_TIMEOUT_S;
    c->agreement = dt_alloc_n(size + (size_t)1, sizeof(message));
    if (c->agreement == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator of %u ranks", size);
    }
    return DT_OK;
}

void dt_comm_fini(dt_comm *c)
{
    dt_free(c->agreement);
    c->agreement = NULL;
}

void dt_comm_destroy(dt_comm *c)
{
    if (c != NULL) {
        c->ops->destroy(c);
    }
}

uint32_t dt_comm_rank(const dt_comm *c)
{
    return c->rank;
}

uint32_t dt_comm_size(const dt_comm *c)
{
    return c->size;
}

uint32_t dt_comm_local_size(const dt_comm *c)
{
    return c->n_local;
}

uint32_t dt_comm_process_size(const dt_comm *c)
{
    return c->n_inside;
}

void dt_comm_timeout_set(dt_comm *c, double timeout_s)
{
    c->timeout_s = timeout_s;
}

double dt_comm_waited_s(const dt_comm *c)
{
    return c->waited_s;
}

uint64_t dt_comm_sent_bytes(const dt_comm *c)
{
    return c->sent;
}

const char *dt_comm_op_name(dt_comm_op op)
{
    static const char *const names[] = {[DT_COMM_ALL_GATHER] = "all_gather",
                                        [DT_COMM_ALL_TO_ALL] = "all_to_all",
                                        [DT_COMM_BROADCAST] = "broadcast",
                                        [DT_COMM_BARRIER] = "barrier",
                                        [DT_COMM_REDUCE_SCATTER] = "reduce_scatter"};
    return names[op];
}

void dt_comm_describe_call(uint32_t rank, const dt_comm_call *call, char out[DT_COMM_CALL_BYTES])
{
    const bool has_bytes = call->op != DT_COMM_ALL_TO_ALL && call->op != DT_COMM_BARRIER;
    int n = snprintf(out, DT_COMM_CALL_BYTES, "rank %u called %s", rank, dt_comm_op_name(call->op));
    if (has_bytes) {
        n += snprintf(out + n, DT_COMM_CALL_BYTES - (size_t)n, " of %zu bytes", call->bytes);
    }
    if (call->op == DT_COMM_BROADCAST) {
        snprintf(out + n, DT_COMM_CALL_BYTES - (size_t)n, " from rank %u", call->root);
    }
}

/* ---- requests ---- */

/* What this rank sends for it, as comm.h counts: sums as the least that any way of summing needs. */
static uint64_t count_sent(const dt_comm *c, const dt_comm_call *call)
{
    uint64_t sent = 0;
    switch (call->op) {
    case DT_COMM_ALL_GATHER:
        return (uint64_t)call->bytes * (c->size - 1);
    case DT_COMM_ALL_TO_ALL:
        for (uint32_t r = 0; r < c->size; r++) {
            if (r != c->rank) {
                sent += call->out[r].bytes;
            }
        }
        return sent;
    case DT_COMM_BROADCAST:
        return c->rank == call->root ? (uint64_t)call->bytes * (c->size - 1) : 0;
    case DT_COMM_REDUCE_SCATTER:
        return (uint64_t)call->bytes - call->n[c->rank] * sizeof(float);
    default:
        return 0;
    }
}

/* A request's number: its collective's, and the slot in the last digits. */
static dt_status start_call(dt_comm *c, const dt_comm_call *call, dt_comm_request *out_p)
{
    uint32_t k = 0;
    *out_p = (dt_comm_request){0};
    while (k < DT_COMM_IN_FLIGHT && c->slot[k].sequence != 0) {
        k++;
    }
    if (k == DT_COMM_IN_FLIGHT) {
        return DT_FAIL(DT_EINVAL, "%s starts with %d collectives in flight, which is the limit: wait for some",
                       dt_comm_op_name(call->op), DT_COMM_IN_FLIGHT);
    }
    c->has_agreed = false;
    c->sequence++;
    dt_call_pulse();
    c->slot[k] = (dt_comm_slot){.sequence = c->sequence, .timeout_s = c->timeout_s, .since = -1, .call = *call};
    const dt_status st = c->ops->start(c, k);
    if (st < 0) {
        c->slot[k].sequence = 0;
        return st;
    }
    c->sent += count_sent(c, call);
    out_p->id = c->sequence * DT_COMM_IN_FLIGHT + k;
    return DT_OK;
}

static dt_status poll_request(dt_comm *c, dt_comm_request *r, bool waits, bool *done_p)
{
    const uint32_t k = (uint32_t)(r->id % DT_COMM_IN_FLIGHT);
    *done_p = r->id == 0;
    if (*done_p) {
        return DT_OK;
    }
    if (c->slot[k].sequence != r->id / DT_COMM_IN_FLIGHT) {
        return DT_FAIL(DT_EINVAL,
                       "request %llu is not in flight: it was waited for, or belongs to another communicator",
                       (unsigned long long)r->id);
    }
    const double begin = dt_clock_s();
    dt_call_wait_set(waits && c->size > 1);
    const dt_status st = c->ops->poll(c, k, waits, done_p);
    dt_call_wait_set(false);
    c->waited_s += dt_clock_s() - begin;
    if (st < 0 || *done_p) {
        c->slot[k].sequence = 0;
        *r = (dt_comm_request){0};
    }
    return st;
}

dt_status dt_comm_wait(dt_comm *c, dt_comm_request *r)
{
    bool is_done = false;
    if (c->size == 1) {
        return poll_request(c, r, true, &is_done);
    }
    DT_TRACE("ranks", "wait for others");
    return poll_request(c, r, true, &is_done);
}

dt_status dt_comm_test(dt_comm *c, dt_comm_request *r, bool *done_p)
{
    return poll_request(c, r, false, done_p);
}

void dt_comm_abort(dt_comm *c, const char *why)
{
    c->ops->abort(c, why != NULL && why[0] != '\0' ? why : "it gave no reason");
}

dt_status dt_comm_check_peers(dt_comm *c, const char *what, double since_s)
{
    return c->ops->watch != NULL ? c->ops->watch(c, what, since_s) : DT_OK;
}

/* ---- collectives ---- */

dt_status dt_comm_start_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all, dt_comm_request *out_p)
{
    return start_call(c, &(dt_comm_call){.op = DT_COMM_ALL_GATHER, .bytes = bytes, .from = mine, .to = all}, out_p);
}

dt_status dt_comm_start_all_to_all(dt_comm *c, const dt_comm_out *out, const dt_comm_in *in, dt_comm_request *out_p)
{
    if (out[c->rank].bytes != in[c->rank].bytes) {
        return DT_FAIL(DT_EINVAL, "rank %u sends itself %zu bytes and expects %zu", c->rank, out[c->rank].bytes,
                       in[c->rank].bytes);
    }
    return start_call(c, &(dt_comm_call){.op = DT_COMM_ALL_TO_ALL, .out = out, .in = in}, out_p);
}

dt_status dt_comm_start_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes, dt_comm_request *out_p)
{
    if (root >= c->size) {
        return DT_FAIL(DT_EINVAL, "broadcast from rank %u, there are ranks 0 to %u", root, c->size - 1);
    }
    return start_call(c, &(dt_comm_call){.op = DT_COMM_BROADCAST, .root = root, .bytes = bytes, .to = data}, out_p);
}

dt_status dt_comm_start_barrier(dt_comm *c, dt_comm_request *out_p)
{
    return start_call(c, &(dt_comm_call){.op = DT_COMM_BARRIER}, out_p);
}

dt_status dt_comm_start_reduce_scatter(dt_comm *c, const float *all, const uint32_t *n, float *mine,
                                       dt_comm_request *out_p)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < c->size; r++) {
        sum += n[r];
    }
    if (sum > DT_COMM_MOST_SUMMED) {
        return DT_FAIL(DT_EINVAL, "a sum of %llu floats, at most %d at a time are possible", (unsigned long long)sum,
                       DT_COMM_MOST_SUMMED);
    }
    return start_call(
        c,
        &(dt_comm_call){
            .op = DT_COMM_REDUCE_SCATTER, .bytes = (size_t)sum * sizeof(float), .from = all, .to = mine, .n = n},
        out_p);
}

dt_status dt_comm_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all)
{
    dt_comm_request r;
    DT_TRY(dt_comm_start_all_gather(c, mine, bytes, all, &r));
    return dt_comm_wait(c, &r);
}

dt_status dt_comm_all_to_all(dt_comm *c, const dt_comm_out *out, const dt_comm_in *in)
{
    dt_comm_request r;
    DT_TRY(dt_comm_start_all_to_all(c, out, in, &r));
    return dt_comm_wait(c, &r);
}

dt_status dt_comm_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes)
{
    dt_comm_request r;
    DT_TRY(dt_comm_start_broadcast(c, root, data, bytes, &r));
    return dt_comm_wait(c, &r);
}

dt_status dt_comm_barrier(dt_comm *c)
{
    dt_comm_request r;
    DT_TRY(dt_comm_start_barrier(c, &r));
    return dt_comm_wait(c, &r);
}

void dt_comm_abandon(dt_comm *c, const char *why)
{
    if (!c->has_agreed) { /* to fail: all know, and all leave */
        c->ops->abandon(c, why != NULL && why[0] != '\0' ? why : "it gave no reason");
    }
}

/* The messages of all ranks, that of this one from mine and its error record. */
static dt_status exchange_status(dt_comm *c, dt_status mine, bool is_join)
{
    message *all = c->agreement, *own = all + c->size;
    memset(own, 0, sizeof(*own));
    own->status = mine;
    own->is_join = is_join;
    if (mine < 0) {
        snprintf(own->text, sizeof(own->text), "%s", dt_error_text());
    }
    dt_error why;
    dt_error_save(&why, mine);
    const dt_comm_call call = {.op = DT_COMM_ALL_GATHER,
                               .bytes = sizeof(*own),
                               .from = own,
                               .to = all,
                               .status = mine < 0 ? mine : DT_OK,
                               .why = own->text};
    dt_comm_request r;
    dt_status st = start_call(c, &call, &r);
    if (st == DT_OK) {
        st = dt_comm_wait(c, &r);
    }
    return st < 0 && mine < 0 ? dt_error_restore(&why) : st; /* the reason of this rank is more specific */
}

/* One round of an agreement. *is_early_p: this rank joins while others agree within the part that it has ended. */
static dt_status agree_once(dt_comm *c, dt_status mine, bool is_join, bool *is_early_p)
{
    const message *all = c->agreement;
    uint32_t worst = 0, joins = 0, joined = 0, inside = 0;
    *is_early_p = false;
    DT_TRY(exchange_status(c, mine, is_join));
    for (uint32_t r = 0; r < c->size; r++) {
        worst = all[r].status < all[worst].status ? r : worst;
        joins += all[r].is_join;
        joined = all[r].is_join ? r : joined;
        inside = all[r].is_join ? inside : r;
    }
    const bool is_apart = joins > 0 && joins < c->size;
    const dt_status st = all[worst].status;
    *is_early_p = is_apart && is_join;
    c->has_agreed = st < 0;
    if (st >= 0 && is_apart) {
        return DT_FAIL(DT_ECOMM,
                       "rank %u agrees with others within a part of the run that rank %u has ended: every rank has to "
                       "make the same collective calls of the host",
                       inside, joined);
    }
    return st < 0 && mine > st ? DT_FAIL(st, "rank %u: %s", worst, all[worst].text) : st;
}

dt_status dt_comm_agree(dt_comm *c, dt_status mine)
{
    bool is_early = false;
    return c->size == 1 ? mine : agree_once(c, mine, false, &is_early);
}

dt_status dt_comm_join(dt_comm *c, dt_status mine)
{
    bool is_early = c->size > 1;
    while (is_early) {
        mine = agree_once(c, mine, true, &is_early);
    }
    return mine;
}

/* ---- one rank ---- */

static void copy_unless_same(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != from) {
        memcpy(to, from, bytes);
    }
}

static dt_status start_null_call(dt_comm *c, uint32_t slot)
{
    const dt_comm_call *k = &c->slot[slot].call;
    if (k->op == DT_COMM_ALL_GATHER || k->op == DT_COMM_REDUCE_SCATTER) {
        copy_unless_same(k->to, k->from, k->bytes);
    } else if (k->op == DT_COMM_ALL_TO_ALL) {
        copy_unless_same(k->in->data, k->out->data, k->out->bytes);
    }
    return DT_OK;
}

static dt_status poll_null_call(dt_comm *c, uint32_t slot, bool waits, bool *done_p)
{
    *done_p = true;
    return DT_OK;
}

static void abort_null_comm(dt_comm *c, const char *why) {}

static void destroy_null_comm(dt_comm *c)
{
    dt_comm_fini(c);
    dt_free(c);
}

dt_status dt_comm_create_null(dt_comm **out_p)
{
    static const dt_comm_ops ops = {"null", start_null_call,  poll_null_call, abort_null_comm, abort_null_comm,
                                    NULL,   destroy_null_comm};
    dt_comm *c = dt_alloc(sizeof(*c));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator");
    }
    dt_status st = dt_comm_init(c, &ops, 0, 1);
    if (st != DT_OK) {
        dt_free(c);
        return st;
    }
    *out_p = c;
    return DT_OK;
}

/* ---- the first of several, alone ---- */

static dt_status refuse_planned_call(dt_comm *c, uint32_t slot)
{
    return DT_FAIL(DT_ECOMM, "%s of %u ranks on a communicator that only plans", dt_comm_op_name(c->slot[slot].call.op),
                   c->size);
}

dt_status dt_comm_create_planned(uint32_t ranks, uint32_t inside, uint32_t local, dt_comm **out_p)
{
    static const dt_comm_ops ops = {"imagined", refuse_planned_call, poll_null_call, abort_null_comm, abort_null_comm,
                                    NULL,       destroy_null_comm};
    if (ranks == 1) {
        return dt_comm_create_null(out_p);
    }
    dt_comm *c = dt_alloc(sizeof(*c));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator");
    }
    dt_status st = dt_comm_init(c, &ops, 0, ranks);
    if (st != DT_OK) {
        dt_free(c);
        return st;
    }
    c->n_inside = inside;
    c->n_local = local;
    *out_p = c;
    return DT_OK;
}
