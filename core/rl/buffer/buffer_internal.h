/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of buffer.h share: buffer.c fills a buffer, buffer_read.c reads samples out of it; how many rows a
 * slice of them has, and how they are counted, is in buffer_rows.c, and rows of lists that each agent has of its own in
 * buffer_lists.c. Threads: any.
 */
#ifndef DTRAIN_CORE_RL_BUFFER_BUFFER_INTERNAL_H
#define DTRAIN_CORE_RL_BUFFER_BUFFER_INTERNAL_H

#include "rl/buffer/buffer.h"

/* Of a field of the data, dt_buffer_field.kind. */
enum {
    FIELD_OBS,
    FIELD_STEPS,
    FIELD_HISTORY,
    FIELD_PRESENT,
    FIELD_ACTION_I,
    FIELD_ACTION_F,
    FIELD_MASK,
    FIELD_LOG_PROB,
    FIELD_VALUE,
    FIELD_ADVANTAGE,
    FIELD_TARGET,
    FIELD_COST_VALUE,
    FIELD_COST_ADVANTAGE,
    FIELD_COST_TARGET,
    FIELD_ROW_KEY,
    FIELD_CARRIED,
    FIELD_CARRIED_HISTORY,
    FIELD_NEXT,
    FIELD_NEXT_INDEX,
    FIELD_NEXT_PRESENT,
    FIELD_COST_IN,
    FIELD_REWARD,
    FIELD_COST,
    FIELD_TERMINATED,
    FIELD_TRUNCATED,
    FIELD_EXECUTED,
    FIELD_PLACE,
    FIELD_NEXT_MASK,
    FIELD_OTHERS,
    FIELD_OTHERS_F,
    FIELD_DISCOUNT,
    FIELD_WEIGHT,
    FIELD_TEAM_ROWS,
    FIELD_ANNOTATION,
    FIELD_KEPT
};

typedef struct dt_buffer_reader { /* one pack */
    const dt_buffer *b;
    const uint64_t *index, *key;
    uint32_t n, which;
    size_t first; /* slot of sample 0 */
} dt_buffer_reader;

static inline size_t dt_reader_slot(const dt_buffer_reader *r, uint32_t j)
{
    return r->first + (r->b->place != NULL ? r->b->place[r->index[j]] : r->index[j]);
}

static inline int32_t dt_reader_places(const dt_buffer_reader *r, size_t slot)
{
    const dt_buffer *b = r->b;
    return (r->which == DT_ROW_ACTS ? b->n_acts : r->which == DT_ROW_SEEN ? b->n_seen : b->n_opponents)[slot];
}

/* Does the slice have the ragged rows of the step after as well? */
static inline bool dt_reader_is_joined(const dt_buffer_reader *r)
{
    return dt_buffer_is_joined(r->b) && r->which == DT_ROW_ACTS;
}

/* buffer_rows.c: rows of symbol k that the list at a place (slot * agents + a) has, or that of the same agent in the
 * step after; those of all lists of a slot. */
int64_t dt_reader_list_length(const dt_buffer_reader *r, uint32_t k, size_t at, bool is_after);
int64_t dt_reader_list_rows(const dt_buffer_reader *r, size_t slot, uint32_t k, bool is_after);

/* Rows of ragged symbol k (1..) that a slot with an agent in it has. */
static inline int64_t dt_reader_own_rows(const dt_buffer_reader *r, size_t slot, uint32_t k)
{
    const dt_buffer *b = r->b;
    return b->length[k] != NULL ? dt_reader_list_rows(r, slot, k, false) : b->size[slot * b->l->spec.n_symbols + k - 1];
}

/* Of the step after it; none where the sample is its own step alone, or not observed. */
static inline int64_t dt_reader_next_rows(const dt_buffer_reader *r, size_t slot, uint32_t k)
{
    const dt_buffer *b = r->b;
    const size_t after = slot + b->d.instances;
    if (!dt_reader_is_joined(r) || b->n_seen[after] == 0) {
        return 0;
    }
    return b->length[k] != NULL ? dt_reader_list_rows(r, slot, k, true) : b->size[after * b->l->spec.n_symbols + k - 1];
}

/* The same of all symbols, to before[k]. */
static inline void dt_reader_add_own(const dt_buffer_reader *r, size_t slot, int64_t *before)
{
    for (uint32_t k = 1; k <= r->b->l->spec.n_symbols; k++) {
        before[k] += dt_reader_own_rows(r, slot, k);
    }
}

static inline void dt_reader_add_next(const dt_buffer_reader *r, size_t slot, int64_t *before)
{
    for (uint32_t k = 1; k <= r->b->l->spec.n_symbols; k++) {
        before[k] += dt_reader_next_rows(r, slot, k);
    }
}

/* Indices count rows within the instance; the slice holds those of the samples before, too. */
void dt_reader_shift_indices(const dt_buffer_reader *r, size_t slot, int32_t symbol, const int64_t *before, void *rows,
                             int64_t n);
/* Rows from `first` on, step by step: those of a step are `stride` bytes after those of the step
 * before. */
char *dt_reader_copy_steps(const dt_buffer_reader *r, const dt_obs_port *o, uint32_t port, size_t first, int64_t rows,
                           size_t stride, char *out);

/* buffer_lists.c: a field of rows of lists: own ones of all samples of the slice, then those of the steps after. */
void dt_buffer_read_lists(const dt_buffer_reader *r, uint32_t port, char *out);
/* The port "A+1" itself: where the lists begin in what dt_buffer_read_lists gives. */
void dt_buffer_read_list_pointers(const dt_buffer_reader *r, uint32_t port, bool is_after, int32_t *out);
/* Takes the lists of all agents that are present out of a record; after the slot's rows are known. */
void dt_buffer_store_lists(dt_buffer *b, size_t slot, const char *record);
/* Rows of port o, whose symbol has lists, to where the buffer keeps them. */
void dt_buffer_store_list_rows(const dt_buffer *b, size_t slot, const dt_obs_port *o, const char *record, char *to);

#endif
