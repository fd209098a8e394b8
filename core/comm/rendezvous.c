/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/rendezvous.h"

#include <stdio.h>
#include <string.h>

static bool is_same_call(const dt_rendezvous *m, const dt_comm_call *x, const dt_comm_call *y)
{
    return x->op == y->op && x->bytes == y->bytes && x->root == y->root &&
           (x->op != DT_COMM_REDUCE_SCATTER || memcmp(x->n, y->n, m->size * sizeof(*x->n)) == 0);
}

/* Every rank is sent as many bytes as it waits for. */
static bool do_pieces_match(const dt_rendezvous *m, char why[DT_RENDEZVOUS_TEXT])
{
    for (uint32_t to = 0; to < m->size; to++) {
        for (uint32_t from = 0; from < m->size; from++) {
            const size_t sent = m->call[from]->out[to].bytes, wanted = m->call[to]->in[from].bytes;
            if (sent != wanted) {
                snprintf(why, DT_RENDEZVOUS_TEXT,
                         "collective %llu does not match: rank %u sends rank %u %zu bytes, which expects %zu",
                         (unsigned long long)m->sequence, from, to, sent, wanted);
                return false;
            }
        }
    }
    return true;
}

/* Rank r calls something else than rank 0. */
static dt_status describe_mismatch(const dt_rendezvous *m, uint32_t r, char why[DT_RENDEZVOUS_TEXT])
{
    char a[DT_COMM_CALL_BYTES], b[DT_COMM_CALL_BYTES];
    for (uint32_t k = 0; k < m->size; k++) {
        if (m->call[k]->status < 0) {
            snprintf(why, DT_RENDEZVOUS_TEXT, "rank %u: %s", k, m->call[k]->why);
            return m->call[k]->status;
        }
    }
    dt_comm_describe_call(0, m->call[0], a);
    dt_comm_describe_call(r, m->call[r], b);
    snprintf(why, DT_RENDEZVOUS_TEXT, "collective %llu does not match: %s, %s%s", (unsigned long long)m->sequence, a, b,
             strcmp(strchr(a, 'c'), strchr(b, 'c')) == 0 ? ", cut differently" : "");
    return DT_ECOMM;
}

dt_status dt_rendezvous_check(const dt_rendezvous *m, char why[DT_RENDEZVOUS_TEXT])
{
    for (uint32_t r = 1; r < m->size; r++) {
        if (!is_same_call(m, m->call[r], m->call[0])) {
            return describe_mismatch(m, r, why);
        }
    }
    return m->call[0]->op != DT_COMM_ALL_TO_ALL || do_pieces_match(m, why) ? DT_OK : DT_ECOMM;
}

static void copy_unless_same(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != from) {
        memcpy(to, from, bytes);
    }
}

static void add_floats(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += x[i];
    }
}

/* The sum over all ranks of n floats from at on, in rank order. */
static void sum_ranks(const dt_rendezvous *m, size_t at, size_t n, float *sum)
{
    for (uint32_t r = 0; r < m->size; r++) {
        const dt_comm_call *k = m->call[r];
        const float *x = (const float *)k->from + at;
        if (r == 0) {
            memcpy(sum, x, n * sizeof(*sum));
        } else {
            add_floats(sum, x, n);
        }
    }
}

static void deliver_result_to(const dt_rendezvous *m, uint32_t rank)
{
    const dt_comm_call *k = m->call[rank];
    size_t at = 0;
    switch (k->op) {
    case DT_COMM_ALL_GATHER:
        for (uint32_t r = 0; r < m->size; r++) {
            copy_unless_same((char *)k->to + r * k->bytes, m->call[r]->from, k->bytes);
        }
        break;
    case DT_COMM_ALL_TO_ALL:
        for (uint32_t r = 0; r < m->size; r++) {
            copy_unless_same(k->in[r].data, m->call[r]->out[rank].data, k->in[r].bytes);
        }
        break;
    case DT_COMM_BROADCAST:
        copy_unless_same(k->to, m->call[k->root]->to, k->bytes);
        break;
    case DT_COMM_REDUCE_SCATTER:
        for (uint32_t r = 0; r < rank; r++) {
            at += k->n[r];
        }
        if (k->n[rank] > 0) {
            sum_ranks(m, at, k->n[rank], k->to);
        }
        break;
    default:
        break;
    }
}

void dt_rendezvous_execute(const dt_rendezvous *m)
{
    for (uint32_t r = 0; r < m->size; r++) {
        deliver_result_to(m, r);
    }
}
