/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/exchange.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/tensor/dtype.h"

#include <string.h>

enum { ALIGN = 64 };

typedef struct received_output { /* an output of the micro-batch that is shown */
    const char *name;
    dt_view view;
} received_output;

struct dt_exchange {
    dt_comm *comm;
    uint64_t *bytes;  /* [ranks] */
    size_t *at, *end; /* [ranks] in all: what of each was not shown yet */
    dt_comm_out *out; /* [ranks] */
    dt_comm_in *in;   /* [ranks] */
    char *mine, *all;
    size_t mine_cap, all_cap;
    dt_exchange_from names; /* whose outputs have the names of all ranks' */
    received_output *output;
    uint32_t n_outputs, outputs_cap;
};

static size_t align_bytes(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

dt_status dt_exchange_create(dt_comm *c, dt_exchange **out_p)
{
    const uint32_t ranks = dt_comm_size(c);
    dt_exchange *x = dt_alloc(sizeof(*x));
    if (x == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for what %u ranks exchange", ranks);
    }
    x->comm = c;
    x->bytes = dt_alloc_n(ranks, sizeof(*x->bytes));
    x->at = dt_alloc_n(ranks, sizeof(*x->at));
    x->end = dt_alloc_n(ranks, sizeof(*x->end));
    x->out = dt_alloc_n(ranks, sizeof(*x->out));
    x->in = dt_alloc_n(ranks, sizeof(*x->in));
    if (x->bytes == NULL || x->at == NULL || x->end == NULL || x->out == NULL || x->in == NULL) {
        dt_exchange_destroy(x);
        return DT_FAIL(DT_ENOMEM, "out of memory for what %u ranks exchange", ranks);
    }
    *out_p = x;
    return DT_OK;
}

void dt_exchange_destroy(dt_exchange *x)
{
    if (x == NULL) {
        return;
    }
    dt_free(x->bytes);
    dt_free(x->at);
    dt_free(x->end);
    dt_free(x->out);
    dt_free(x->in);
    dt_free(x->mine);
    dt_free(x->all);
    dt_free(x->output);
    dt_free(x);
}

static dt_status reserve_buffer(char **p, size_t *cap, size_t bytes)
{
    if (bytes > *cap) {
        dt_free(*p);
        *cap = 0;
        *p = dt_alloc(bytes);
        if (*p == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %zu bytes that ranks exchange", bytes);
        }
        *cap = bytes;
    }
    return DT_OK;
}

/* Bytes of a view's data; false: it is none. */
static bool data_bytes(const dt_view *v, size_t *out_p)
{
    size_t n = dt_dtype_bytes((uint32_t)v->dtype);
    bool is_good = v->rank >= 0 && v->rank <= DT_MAX_DIMS && n > 0;
    for (int32_t i = 0; is_good && i < v->rank; i++) {
        is_good = v->dim[i] >= 0 && dt_mul_size(n, (size_t)v->dim[i], &n);
    }
    *out_p = n;
    return is_good;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Writes the outputs of n micro-batches one after the other, or, without a place, returns how long they are. */
static size_t serialize_outputs(const dt_exchange_from *from, uint32_t n, char *to)
{
    size_t at = 0;
    const char *name = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const dt_view *v = NULL;
        for (uint32_t k = 0; (v = from->output(from->self, i, k, &name)) != NULL; k++) {
            size_t bytes = 0;
            (void)data_bytes(v, &bytes);
            if (to != NULL) {
                memcpy(to + at, v, sizeof(*v));
                memcpy(to + at + align_bytes(sizeof(*v)), v->data, bytes);
            }
            at += align_bytes(sizeof(*v)) + align_bytes(bytes);
        }
    }
    return at;
}

/* Where each rank's message goes, once all lengths are known. */
static dt_status place_messages(dt_exchange *x)
{
    const uint32_t ranks = dt_comm_size(x->comm), me = dt_comm_rank(x->comm);
    size_t total = 0;
    for (uint32_t k = 0; k < ranks; k++) {
        x->at[k] = total;
        if (x->bytes[k] > SIZE_MAX / 2 - total) {
            return DT_FAIL(DT_EDATA, "ranks exchange more than fits in memory");
        }
        total += (size_t)x->bytes[k];
        x->end[k] = total;
    }
    DT_TRY(reserve_buffer(&x->all, &x->all_cap, total + 1));
    for (uint32_t k = 0; k < ranks; k++) {
        x->in[k] = (dt_comm_in){x->all + x->at[k], (size_t)x->bytes[k]};
        x->out[k] = (dt_comm_out){x->mine, (size_t)x->bytes[me]};
    }
    return DT_OK;
}

dt_status dt_exchange_run(dt_exchange *x, const dt_exchange_from *from, uint32_t n, dt_status mine)
{
    uint64_t bytes = 0;
    x->names = *from;
    if (mine == DT_OK) {
        bytes = serialize_outputs(from, n, NULL);
        mine = reserve_buffer(&x->mine, &x->mine_cap, (size_t)bytes + 1);
    }
    DT_TRY(dt_comm_agree(x->comm, mine));
    serialize_outputs(from, n, x->mine);
    DT_TRY(dt_comm_all_gather(x->comm, &bytes, sizeof(bytes), x->bytes));
    const dt_status placed = place_messages(x);
    DT_TRY(dt_comm_agree(x->comm, placed));
    return dt_comm_all_to_all(x->comm, x->out, x->in);
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static dt_status deserialize_output(dt_exchange *x, uint32_t rank, received_output *f)
{
    const size_t left = x->end[rank] - x->at[rank];
    size_t bytes = 0;
    if (left < align_bytes(sizeof(f->view))) {
        return DT_FAIL(DT_ECOMM, "rank %u sent too little of what it evaluated", rank);
    }
    memcpy(&f->view, x->all + x->at[rank], sizeof(f->view));
    if (!data_bytes(&f->view, &bytes) || bytes > left - align_bytes(sizeof(f->view)) ||
        align_bytes(bytes) > left - align_bytes(sizeof(f->view))) {
        return DT_FAIL(DT_ECOMM, "rank %u sent something other than what it evaluated", rank);
    }
    f->view.data = x->all + x->at[rank] + align_bytes(sizeof(f->view));
    x->at[rank] += align_bytes(sizeof(f->view)) + align_bytes(bytes);
    return DT_OK;
}

dt_status dt_exchange_next_micro_batch(dt_exchange *x, uint32_t rank)
{
    const char *name = NULL;
    for (x->n_outputs = 0; x->names.output(x->names.self, 0, x->n_outputs, &name) != NULL; x->n_outputs++) {
        if (x->n_outputs == x->outputs_cap) {
            received_output *grown = dt_realloc(x->output, (x->outputs_cap + 16) * sizeof(*grown));
            if (grown == NULL) {
                return DT_FAIL(DT_ENOMEM, "out of memory for what ranks exchange");
            }
            x->output = grown;
            x->outputs_cap += 16;
        }
        x->output[x->n_outputs].name = name;
        DT_TRY(deserialize_output(x, rank, &x->output[x->n_outputs]));
    }
    return DT_OK;
}

const dt_view *dt_exchange_output(const dt_exchange *x, const char *name)
{
    for (uint32_t i = 0; i < x->n_outputs; i++) {
        if (strcmp(x->output[i].name, name) == 0) {
            return &x->output[i].view;
        }
    }
    return NULL;
}
