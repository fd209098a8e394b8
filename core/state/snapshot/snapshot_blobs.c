/* SPDX-License-Identifier: Apache-2.0
 *
 * See snapshot_state.h. A new blob is a row here and its name in checkpoint/load.c.
 */
#include <config.h>

#include "state/snapshot/snapshot_state.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "rl/experience/service.h"

#include <string.h>

/* ---- the phase's own --------------------------------------------------------------------------------------------- */

typedef struct memory_reader {
    dt_reader face;
    const char *at;
} memory_reader;

static dt_status read_bytes(dt_reader *r, void *p, uint64_t bytes)
{
    memory_reader *m = r->priv;
    if (bytes > r->bytes_left) {
        return DT_FAIL(DT_EDATA, "the phase's saved state has %llu bytes less than it reads",
                       (unsigned long long)(bytes - r->bytes_left));
    }
    memcpy(p, m->at, bytes);
    m->at += bytes;
    r->bytes_left -= bytes;
    return DT_OK;
}

static dt_status write_bytes(dt_writer *w, const void *p, uint64_t bytes)
{
    dt_str *out = w->priv;
    dt_str_add_n(out, p, bytes);
    return dt_str_status(out);
}

static bool has_phase_state(const dt_stage *s)
{
    return s->d.phase->ops.phase.save != NULL;
}

static dt_status save_phase(dt_stage *s, dt_str *out)
{
    dt_writer face = {.struct_size = sizeof(face), .priv = out, .write = write_bytes};
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, s->d.phase->desc.id, "save", s->d.phase->ops.phase.save(s->self, &face));
    DT_TRY_PLUGIN(dt_error_blame_plugin(st), "save");
    return DT_OK;
}

static dt_status load_phase(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    memory_reader m = {.at = blob->data};
    m.face = (dt_reader){.struct_size = sizeof(dt_reader), .priv = &m, .bytes_left = blob->bytes, .read = read_bytes};
    dt_status st = DT_OK;
    if (s->d.phase->ops.phase.load != NULL) {
        DT_CALL_PLUGIN(st, s->d.phase->desc.id, "load", s->d.phase->ops.phase.load(s->self, &m.face, blob->version));
    }
    return dt_error_blame_plugin(st);
}

/* ---- the rollout's ----------------------------------------------------------------------------------------------- */

static bool has_rollout(const dt_stage *s)
{
    return s->rollout != NULL;
}

static dt_status save_rollout(dt_stage *s, dt_str *out)
{
    return dt_rollout_save(s->rollout, out);
}

static dt_status load_rollout(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    return s->rollout != NULL ? dt_rollout_load(s->rollout, blob->data, blob->bytes) : DT_OK;
}

static dt_status save_normaliser(dt_stage *s, dt_str *out)
{
    return dt_rollout_save_normaliser(s->rollout, out);
}

static dt_status load_normaliser(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    return s->rollout != NULL ? dt_rollout_load_normaliser(s->rollout, blob->data, blob->bytes) : DT_OK;
}

static bool has_replay(const dt_stage *s)
{
    return s->rollout != NULL && dt_rollout_has_replay(s->rollout);
}

static dt_status save_replay(dt_stage *s, dt_str *out)
{
    return dt_rollout_save_replay(s->rollout, out);
}

static dt_status load_replay(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    dt_ckpt_blob part[DT_CKPT_MAX_SHARDS];
    dt_rollout_bytes records[DT_CKPT_MAX_SHARDS];
    if (s->rollout == NULL || !dt_rollout_has_replay_memory(s->rollout)) { /* a plan takes no room on the disk */
        return DT_OK;
    }
    const uint32_t n = dt_ckpt_parts_find(c, dt_ckpt_blob_name(DT_BLOB_RECORDS), part);
    if (n == 0) {
        return DT_FAIL(DT_EDATA, "the checkpoint has the state of a replay, and not all of its records");
    }
    for (uint32_t i = 0; i < n; i++) {
        records[i] = (dt_rollout_bytes){part[i].data, part[i].bytes};
    }
    const dt_rollout_bytes head = {blob->data, blob->bytes};
    return dt_rollout_load_replay(s->rollout, blob->version, &head, records, n);
}

static bool has_opponents(const dt_stage *s)
{
    return s->rollout != NULL && dt_rollout_has_opponent_pool(s->rollout);
}

static dt_status save_opponents(dt_stage *s, dt_str *out)
{
    return dt_rollout_save_opponent_pool(s->rollout, out);
}

static dt_status load_opponents(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    return s->rollout != NULL ? dt_rollout_load_opponent_pool(s->rollout, blob->data, blob->bytes) : DT_OK;
}

/* ---- step inputs ------------------------------------------------------------------------------------------------- */

static bool has_trainer(const dt_stage *s)
{
    return s->trainer != NULL;
}

static dt_status save_step_inputs(dt_stage *s, dt_str *out)
{
    for (uint32_t i = 0; i < s->n_trains; i++) {
        DT_TRY(dt_trainer_step_inputs_save(s->train[i].trainer, i, out));
    }
    return DT_OK;
}

static dt_status load_step_inputs(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob)
{
    for (uint32_t i = 0; i < s->n_trains; i++) {
        DT_TRY(dt_trainer_step_inputs_load(s->train[i].trainer, i, blob->data, blob->bytes));
    }
    return DT_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct row {
    dt_blob_set set;
    uint32_t version; /* that of the phase's own is its state_version */
    bool (*is_there)(const dt_stage *s);
    dt_status (*save)(dt_stage *s, dt_str *out);
    dt_status (*load)(dt_stage *s, const dt_ckpt *c, const dt_ckpt_blob *blob);
} row;

/* Parts of DT_BLOB_RECORDS are written and read piece by piece with the replay, without a row. An iteration that failed
 * and is repeated adds the same opponents again. */
static const row rows[] = {
    [DT_BLOB_PHASE] = {DT_BLOBS_BACKED_UP, 0, has_phase_state, save_phase, load_phase},
    [DT_BLOB_ROLLOUT] = {DT_BLOBS_BACKED_UP, 1, has_rollout, save_rollout, load_rollout},
    [DT_BLOB_NORMALISER] = {DT_BLOBS_BACKED_UP, 1, has_rollout, save_normaliser, load_normaliser},
    [DT_BLOB_REPLAY] = {DT_BLOBS_OTHER, DT_ROLLOUT_REPLAY_VERSION, has_replay, save_replay, load_replay},
    [DT_BLOB_OPPONENTS] = {DT_BLOBS_OTHER, 1, has_opponents, save_opponents, load_opponents},
    [DT_BLOB_STEP_INPUTS] = {DT_BLOBS_BACKED_UP, 1, has_trainer, save_step_inputs, load_step_inputs},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *name_of_blob(const dt_stage *s, uint32_t i)
{
    return i == DT_BLOB_PHASE ? s->d.phase->desc.id : dt_ckpt_blob_name(i);
}

dt_status dt_blobs_write(dt_stage *s, dt_blob_set set, dt_snapshot_backup *b)
{
    for (uint32_t i = 0; i < N_ROWS; i++) {
        if (rows[i].save != NULL && rows[i].set == set) {
            dt_str_clear(&b->blob[i]);
            DT_TRY(rows[i].is_there(s) ? rows[i].save(s, &b->blob[i]) : DT_OK);
        }
    }
    return DT_OK;
}

uint32_t dt_blobs_list(const dt_stage *s, const dt_snapshot_backup *backup, const dt_snapshot_backup *now,
                       dt_ckpt_blob *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_ROWS; i++) {
        const dt_str *bytes = rows[i].set == DT_BLOBS_BACKED_UP ? &backup->blob[i] : &now->blob[i];
        const bool is_empty = i == DT_BLOB_STEP_INPUTS && bytes->bytes == 0; /* as start sets them */
        if (rows[i].save != NULL && rows[i].is_there(s) && !is_empty) {
            out[n++] = (dt_ckpt_blob){.name = name_of_blob(s, i),
                                      .version = i == DT_BLOB_PHASE ? s->d.phase->desc.state_version : rows[i].version,
                                      .data = dt_str_text(bytes),
                                      .bytes = bytes->bytes};
        }
    }
    return n;
}

static dt_status load_blob(dt_stage *s, const dt_ckpt *c, uint32_t i)
{
    dt_ckpt_blob blob;
    return dt_ckpt_blob_find(c, name_of_blob(s, i), &blob) ? rows[i].load(s, c, &blob) : DT_OK;
}

/* Step inputs come first: load of the phase may set them. */
dt_status dt_blobs_load_acting(dt_stage *s, const dt_ckpt *c)
{
    DT_TRY(load_blob(s, c, DT_BLOB_STEP_INPUTS));
    return load_blob(s, c, DT_BLOB_PHASE);
}

dt_status dt_blobs_load(dt_stage *s, const dt_ckpt *c)
{
    DT_TRY(dt_blobs_load_acting(s, c));
    for (uint32_t i = 0; i < N_ROWS; i++) {
        const bool is_loaded = i == DT_BLOB_PHASE || i == DT_BLOB_STEP_INPUTS;
        DT_TRY(rows[i].load != NULL && !is_loaded ? load_blob(s, c, i) : DT_OK);
    }
    return DT_OK;
}

dt_status dt_snapshot_load_normaliser(dt_stage *s, const dt_ckpt *c, bool *is_there_p)
{
    dt_ckpt_blob blob;
    *is_there_p = s->rollout != NULL && dt_ckpt_blob_find(c, name_of_blob(s, DT_BLOB_NORMALISER), &blob);
    return *is_there_p ? load_normaliser(s, c, &blob) : DT_OK;
}
