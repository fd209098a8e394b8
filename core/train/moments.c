/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimizer's moments. One rank has them with the table's offsets, as the parameters, up to the target networks,
 * which have none. One of several ranks has its
 * slices alone, one after the other; to be saved or loaded they are opened: whole, in buffers of gradients, which hold
 * nothing between steps.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

uint32_t dt_trainer_n_moments(const dt_trainer *t)
{
    return dt_optim_n_moments(t->c.optim.kind);
}

float *dt_trainer_moment(dt_trainer *t, uint32_t which)
{
    if (which >= 2 || t->state.moment[which] == NULL) {
        return NULL;
    }
    return dt_comm_size(t->d.comm) == 1 ? t->state.moment[which] : t->state.whole[which];
}

dt_status dt_moments_create(dt_trainer *t)
{
    const int64_t n = dt_comm_size(t->d.comm) == 1 ? t->d.params->base_total : t->reduce.n_own;
    t->state.moment_bytes = (size_t)(n > 0 ? n : 1) * sizeof(float);
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        void *p = NULL;
        DT_TRY(dt_arena_map(t->state.moment_bytes, &p));
        t->state.moment[i] = p;
    }
    return DT_OK;
}

static void release_whole(dt_trainer *t)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (t->state.is_whole_mapped[i]) {
            dt_arena_unmap(t->state.whole[i], t->state.grad_bytes);
        }
        t->state.whole[i] = NULL;
        t->state.is_whole_mapped[i] = false;
    }
}

void dt_moments_destroy(dt_trainer *t)
{
    release_whole(t);
    for (uint32_t i = 0; i < 2; i++) {
        dt_arena_unmap(t->state.moment[i], t->state.moment_bytes);
        t->state.moment[i] = NULL;
    }
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static dt_status allocate_whole(dt_trainer *t)
{
    DT_TRY(dt_trainer_synchronize(t));
    release_whole(t);
    t->scratch.gradient = NULL; /* its buffer is used */
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        if (i < t->workers.n_grads) {
            t->state.whole[i] = t->workers.grad[i].data;
            continue;
        }
        DT_TRY(dt_map_float_arena(t->state.grad_bytes, &t->state.whole[i]));
        t->state.is_whole_mapped[i] = true;
    }
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        memset(t->state.whole[i], 0, t->state.grad_bytes);
    }
    return DT_OK;
}

/* This rank's slices, from one into the other. */
static void copy_own_slices(dt_trainer *t, uint32_t which, bool to_whole)
{
    for (uint32_t i = 0; i < t->reduce.n_pieces; i++) {
        const dt_piece *p = &t->reduce.piece[i];
        float *whole = t->state.whole[which] + p->at.begin, *own = t->state.moment[which] + p->moment;
        memcpy(to_whole ? whole : own, to_whole ? own : whole, (size_t)(p->at.end - p->at.begin) * sizeof(float));
    }
}

dt_status dt_trainer_open_moments(dt_trainer *t, bool is_gathered)
{
    if (dt_comm_size(t->d.comm) == 1) {
        return DT_OK;
    }
    const dt_status st = allocate_whole(t);
    if (!is_gathered) {
        return st;
    }
    DT_TRY(dt_comm_agree(t->d.comm, st));
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        copy_own_slices(t, i, true);
        DT_TRY(dt_reduce_all_gather(t, t->state.whole[i], true));
    }
    return DT_OK;
}

void dt_trainer_close_moments(dt_trainer *t, bool is_changed)
{
    if (dt_comm_size(t->d.comm) == 1 || t->state.whole[0] == NULL) {
        return;
    }
    for (uint32_t i = 0; i < dt_trainer_n_moments(t) && is_changed; i++) {
        copy_own_slices(t, i, false);
    }
    release_whole(t);
}
