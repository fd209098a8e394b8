/* SPDX-License-Identifier: Apache-2.0
 *
 * See buffer.h: how many rows samples have together, what indices count in them, and rows of several steps.
 */
#include <config.h>

#include "rl/buffer/buffer_internal.h"

#include <string.h>

/* ---- how many ---------------------------------------------------------------------------------------------------- */

/* A terminated agent has none in the step after. */
int64_t dt_reader_list_length(const dt_buffer_reader *r, uint32_t k, size_t at, bool is_after)
{
    const dt_buffer *b = r->b;
    if ((b->row[at] & r->which) == 0) {
        return 0;
    }
    if (!is_after) {
        return b->length[k][at];
    }
    const bool goes_on = (b->flag[at] & DT_STEP_ACTED) != 0 && (b->flag[at] & DT_STEP_TERMINATED) == 0;
    return goes_on ? b->length[k][at + (size_t)b->d.instances * b->l->spec.n_agents] : 0;
}

int64_t dt_reader_list_rows(const dt_buffer_reader *r, size_t slot, uint32_t k, bool is_after)
{
    const size_t A = r->b->l->spec.n_agents;
    int64_t rows = 0;
    for (size_t at = slot * A; at < (slot + 1) * A; at++) {
        rows += dt_reader_list_length(r, k, at, is_after);
    }
    return rows;
}

void dt_buffer_get_sizes(const dt_buffer *b, uint32_t which, const uint64_t *index, uint32_t n, int64_t *size)
{
    const dt_buffer_reader r = {.b = b, .index = index, .n = n, .which = which, .first = dt_buffer_slot(b, 0, 0)};
    memset(size, 0, (b->l->spec.n_symbols + 1) * sizeof(*size));
    for (uint32_t j = 0; j < n; j++) {
        const size_t slot = dt_reader_slot(&r, j);
        const int32_t places = dt_reader_places(&r, slot);
        size[0] += places;
        if (places > 0) {
            dt_reader_add_own(&r, slot, size);
            dt_reader_add_next(&r, slot, size);
        }
    }
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

/* Rows of places counted from the first of the slice; -1 for agents without a row. */
static void list_rows_of_places(const dt_buffer_reader *r, size_t slot, int32_t before, int32_t *v, int64_t n)
{
    const uint32_t A = r->b->l->spec.n_agents;
    for (int64_t i = 0; i < n; i++) {
        const int32_t place = v[i];
        int32_t row = before;
        v[i] = -1;
        if (place >= 0) {
            for (uint32_t a = 0; a < A; a++) {
                if ((r->b->row[slot * A + a] & r->which) == 0) {
                    continue;
                }
                if ((int32_t)a == place) {
                    v[i] = row;
                    break;
                }
                row++;
            }
        }
    }
}

void dt_reader_shift_indices(const dt_buffer_reader *r, size_t slot, int32_t symbol, const int64_t *before, void *rows,
                             int64_t n)
{
    int32_t *v = rows;
    if (symbol == 0) {
        list_rows_of_places(r, slot, (int32_t)before[0], v, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (v[i] >= 0) {
            v[i] += (int32_t)before[symbol];
        }
    }
}

/* ---- rows of several steps --------------------------------------------------------------------------------------- */

char *dt_reader_copy_steps(const dt_buffer_reader *r, const dt_obs_port *o, uint32_t port, size_t first, int64_t rows,
                           size_t stride, char *out)
{
    const dt_buffer *b = r->b;
    const size_t bytes = o->row_bytes / (size_t)o->steps;
    for (size_t at = first; at < first + (size_t)rows; at++) {
        if (o->symbol == 0 && (b->row[at] & r->which) == 0) {
            continue;
        }
        for (size_t t = 0; t < (size_t)o->steps; t++) {
            memcpy(out + t * stride, b->obs[port] + at * o->row_bytes + t * bytes, bytes);
        }
        out += bytes;
    }
    return out;
}
