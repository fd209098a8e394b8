/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a checkpoint into a stage. See snapshot.h.
 */
#include <config.h>

#include "state/snapshot/mismatch.h"
#include "state/snapshot/snapshot.h"
#include "state/snapshot/snapshot_blobs.h"
#include "state/snapshot/snapshot_state.h"
#include "state/snapshot/snapshot_tensors.h"

#include "base/err.h"

#include <string.h>

static dt_status load_model(dt_stage *s, const dt_ckpt *c, const dt_tensor_list *l)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        DT_TRY(dt_mismatch_check_constants(s, &s->model[i], dt_ckpt_model(c), dt_ckpt_info_get(c)->path, c, ""));
    }
    const dt_status st = dt_ckpt_load_model(c, l->t, l->n, DT_LOAD_EXACT);
    return dt_mismatch_explain(st, s, c);
}

static dt_status load_tensors(dt_stage *s, const dt_ckpt *c)
{
    dt_tensor_list model = {0}, optim = {0};
    dt_status st = dt_trainer_open_moments(s->trainer, false);
    if (st == DT_OK) {
        st = dt_tensors_list_model(s, &model);
    }
    if (st == DT_OK) {
        st = dt_tensors_list_optim(s, &optim);
    }
    if (st == DT_OK) {
        st = load_model(s, c, &model);
    }
    if (st == DT_OK) {
        st = dt_ckpt_load_optim(c, optim.t, optim.n, DT_LOAD_EXACT);
    }
    dt_trainer_close_moments(s->trainer, st == DT_OK);
    dt_tensor_list_fini(&model);
    dt_tensor_list_fini(&optim);
    return st;
}

static dt_status load_all(dt_stage *s, const dt_ckpt *c, const dt_state *state)
{
    DT_TRY(load_tensors(s, c));
    DT_TRY(dt_state_apply(state, c, s));
    return dt_blobs_load(s, c);
}

dt_status dt_snapshot_load(dt_stage *s, const dt_ckpt *c)
{
    dt_state state;
    const dt_ckpt_info *info = dt_ckpt_info_get(c);
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer to load %s into", s->d.phase->desc.id, info->path);
    }
    if (strcmp(info->phase, s->d.phase->desc.id) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s belongs to phase %s, not to %s", info->path, info->phase, s->d.phase->desc.id);
    }
    dt_status st = dt_state_read(c, &state);
    if (st == DT_OK) {
        st = load_all(s, c, &state);
    }
    dt_state_fini(&state);
    return st < 0 ? DT_CONTEXT(st, "loading %s", info->path) : st;
}

static dt_status load_acting(dt_stage *s, const dt_ckpt *c)
{
    dt_snapshot_place place;
    DT_TRY(dt_snapshot_position(c, &place));
    dt_trainer_step_number_set(s->trainer, place.step);
    return dt_blobs_load_acting(s, c);
}

dt_status dt_snapshot_load_acting(dt_stage *s, const char *dir)
{
    dt_ckpt *c = NULL;
    DT_TRY(dt_ckpt_open_acting(dir, &c));
    const bool is_same = strcmp(dt_ckpt_info_get(c)->phase, s->d.phase->desc.id) == 0;
    const dt_status st = is_same && s->trainer != NULL ? load_acting(s, c) : DT_OK;
    dt_ckpt_close(c);
    return st < 0 ? DT_CONTEXT(st, "state of %s in %s", s->d.phase->desc.id, dir) : st;
}
