/* SPDX-License-Identifier: Apache-2.0
 *
 * See buffer.h: lists of rows that each agent has of its own (row pointers "A+1"). A slot keeps how long the list of
 * every place is, and the rows of agents that are present, one list after another; where lists begin follows from that,
 * for whichever agents a slice is read.
 */
#include <config.h>

#include "rl/buffer/buffer_internal.h"

#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static const int32_t *row_pointers_of(const dt_buffer *b, uint32_t k, const char *record)
{
    return (const int32_t *)(const void *)(record + b->l->obs[b->l->lists[k] - 1].offset);
}

void dt_buffer_store_lists(dt_buffer *b, size_t slot, const char *record)
{
    const size_t A = b->l->spec.n_agents, S = b->l->spec.n_symbols;
    for (uint32_t k = 1; k <= S; k++) {
        if (b->length[k] == NULL) {
            continue;
        }
        const int32_t *begin = row_pointers_of(b, k, record);
        int32_t *length = b->length[k] + slot * A, all = 0;
        for (size_t a = 0; a < A; a++) {
            length[a] = b->row[slot * A + a] != 0 ? begin[a + 1] - begin[a] : 0;
            all += length[a];
        }
        b->size[slot * S + k - 1] = all;
    }
}

void dt_buffer_store_list_rows(const dt_buffer *b, size_t slot, const dt_obs_port *o, const char *record, char *to)
{
    const uint32_t k = (uint32_t)o->symbol;
    const size_t A = b->l->spec.n_agents;
    const int32_t *begin = row_pointers_of(b, k, record), *length = b->length[k] + slot * A;
    for (size_t a = 0; a < A; a++) {
        const size_t bytes = (size_t)length[a] * o->row_bytes;
        memcpy(to, record + o->offset + (size_t)begin[a] * o->row_bytes, bytes);
        to += bytes;
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Of a sample. before: rows of the samples before, which indices count; stride: of rows with steps. */
static char *copy_lists(const dt_buffer_reader *r, uint32_t port, size_t slot, bool is_after, const int64_t *before,
                        size_t stride, char *out)
{
    const dt_buffer *b = r->b;
    const dt_obs_port *o = &b->l->obs[port];
    const uint32_t k = (uint32_t)o->symbol;
    const size_t A = b->l->spec.n_agents, from = is_after ? slot + b->d.instances : slot;
    size_t row = (size_t)b->at[port][from];
    char *const begin = out;
    for (size_t a = 0; a < A; a++) {
        const int64_t n = dt_reader_list_length(r, k, slot * A + a, is_after);
        if (n > 0 && o->steps > 0) {
            out = dt_reader_copy_steps(r, o, port, row, n, stride, out);
        } else if (n > 0) {
            memcpy(out, b->obs[port] + row * o->row_bytes, (size_t)n * o->row_bytes);
            out += (size_t)n * o->row_bytes;
        }
        row += (size_t)b->length[k][from * A + a];
    }
    if (o->index_of >= 0) {
        dt_reader_shift_indices(r, slot, o->index_of, before, begin, (out - begin) / (int64_t)sizeof(int32_t));
    }
    return out;
}

static char *copy_all_lists(const dt_buffer_reader *r, uint32_t port, bool is_after, size_t stride, char *out)
{
    int64_t before[1 + DT_ENV_MAX_SYMBOLS] = {0};
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        const int32_t places = dt_reader_places(r, slot);
        if (places == 0) {
            continue;
        }
        out = is_after ? out : copy_lists(r, port, slot, false, before, stride, out);
        dt_reader_add_own(r, slot, before);
        out = is_after ? copy_lists(r, port, slot, true, before, stride, out) : out;
        dt_reader_add_next(r, slot, before);
        before[0] += places;
    }
    return out;
}

void dt_buffer_read_lists(const dt_buffer_reader *r, uint32_t port, char *out)
{
    const dt_obs_port *o = &r->b->l->obs[port];
    int64_t size[1 + DT_ENV_MAX_SYMBOLS];
    size_t stride = 0;
    if (o->steps > 0) {
        dt_buffer_get_sizes(r->b, r->which, r->index, r->n, size);
        stride = (size_t)size[o->symbol] * (o->row_bytes / (size_t)o->steps);
    }
    out = copy_all_lists(r, port, false, stride, out);
    if (dt_reader_is_joined(r)) {
        copy_all_lists(r, port, true, stride, out);
    }
}

void dt_buffer_read_list_pointers(const dt_buffer_reader *r, uint32_t port, bool is_after, int32_t *out)
{
    const dt_buffer *b = r->b;
    const uint32_t k = (uint32_t)b->l->obs[port].index_of;
    const size_t A = b->l->spec.n_agents;
    int64_t first = 0;
    for (uint32_t j = 0; j < r->n && is_after; j++) {
        first += dt_reader_list_rows(r, dt_reader_slot(r, j), k, false);
    }
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) != 0) {
                *out++ = (int32_t)first;
                first += dt_reader_list_length(r, k, at, is_after);
            }
        }
    }
    *out = (int32_t)first;
}
