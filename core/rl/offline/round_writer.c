/* SPDX-License-Identifier: Apache-2.0
 *
 * rollouts.keep: rounds that a phase collects as files of stored rollouts (stored.h), written by the first rank. A
 * round's file has its number for a name, so that a run that continues from a checkpoint, and plays a round again,
 * writes the same file again. The oldest one leaves when there are as many samples as are kept.
 */
#include <config.h>

#include "rl/offline/stored.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/trace.h"
#include "rl/offline/metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct dt_round_writer {
    dt_replay p;           /* its plan alone: which fields, and a sample as bytes */
    uint64_t rounds;       /* that are kept */
    uint64_t *sample;      /* [samples of a round] those in which an agent acted */
    dt_samples_part *part; /* [ranks] */
    dt_str folder, path;
    dt_str column[DT_BUFFER_MAX_FIELDS]; /* of the round: each field of all samples, one after another */
    dt_str sizes, step, instance;
    dt_stored_metadata metadata;
    bool is_begun; /* files of rounds to come, of a run that was cut off, are gone */
} dt_round_writer;

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status check_kept_rounds(const dt_rollout *r, int64_t keep)
{
    const uint64_t round = (uint64_t)r->d.steps * r->split.instances;
    if (dt_buffer_is_joined(r->all)) {
        return DT_FAIL(DT_ECONFIG,
                       "rollouts.keep = %lld, and samples of %s have graphs of two steps, which stored rollouts do not "
                       "have; set rollouts.keep = 0, or choose models that read rows of agents",
                       (long long)keep, r->stage->d.phase->desc.id);
    }
    return (uint64_t)keep >= round
               ? DT_OK
               : DT_FAIL(DT_ECONFIG,
                         "rollouts.keep = %lld samples is less than one round of %s, %u steps of %u instances: set it "
                         "to at least %llu, or to 0",
                         (long long)keep, r->stage->d.phase->desc.id, r->d.steps, r->split.instances,
                         (unsigned long long)round);
}

static dt_status choose_folder_name(dt_round_writer *k)
{
    const dt_stage_desc *s = &k->p.r->stage->d;
    dt_str_addf(&k->folder, "%s/rollouts/%s-%lld", s->run_dir, s->phase->desc.id, (long long)s->index + 1);
    return dt_str_status(&k->folder);
}

static dt_status init_writer(dt_round_writer *k, int64_t keep)
{
    dt_rollout *r = k->p.r;
    const uint64_t samples = (uint64_t)r->d.steps * r->split.instances;
    const dt_replay_desc plan = {.n_step = 1, .gamma = r->d.gamma};
    DT_TRY(check_kept_rounds(r, keep));
    k->rounds = (uint64_t)keep / samples;
    k->p.is_stored = true;
    k->p.d = plan;
    DT_TRY(dt_replay_plan_record(&k->p, &plan, &dt_replay_data_ops));
    k->p.scratch = dt_alloc(k->p.stride);
    k->sample = dt_alloc_n((size_t)samples, sizeof(*k->sample));
    k->part = dt_alloc_n(k->p.ranks, sizeof(*k->part));
    if (k->p.scratch == NULL || k->sample == NULL || k->part == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the rounds that are kept (rollouts.keep)");
    }
    DT_TRY(dt_stored_metadata_make(r, &k->metadata));
    return choose_folder_name(k);
}

static void destroy_writer(void *self);
static dt_status write_collected_round(void *self);

dt_status dt_round_writer_create(dt_rollout *r)
{
    const dt_stage_desc *s = &r->stage->d;
    const int64_t keep = r->stage->opts.rollouts.keep;
    if (keep == 0 || s->run_dir == NULL || s->trained_on != NULL) {
        return DT_OK;
    }
    dt_round_writer *k = dt_alloc(sizeof(*k));
    if (k == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the rounds that are kept (rollouts.keep)");
    }
    k->p.r = r;
    k->p.ranks = dt_comm_size(s->comm);
    k->p.rank = dt_comm_rank(s->comm);
    const dt_status st = init_writer(k, keep);
    if (st < 0) {
        destroy_writer(k);
        return st;
    }
    r->listener = (dt_round_listener){.self = k, .collected = write_collected_round, .destroy = destroy_writer};
    return DT_OK;
}

static void destroy_writer(void *self)
{
    dt_round_writer *k = self;
    for (uint32_t i = 0; i < DT_BUFFER_MAX_FIELDS; i++) {
        dt_str_fini(&k->column[i]);
    }
    dt_str_fini(&k->sizes);
    dt_str_fini(&k->step);
    dt_str_fini(&k->instance);
    dt_str_fini(&k->folder);
    dt_str_fini(&k->path);
    dt_stored_metadata_fini(&k->metadata);
    dt_free(k->p.scratch);
    dt_free(k->sample);
    dt_free(k->part);
    dt_free(k);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const char *path_of_round(dt_round_writer *k, uint64_t round)
{
    dt_str_clear(&k->path);
    dt_str_addf(&k->path, "%s/round-%012" PRIu64 DT_STORED_SUFFIX, dt_str_text(&k->folder), round);
    return dt_str_text(&k->path);
}

/* The number in a name that path_of_round makes; 0: it is none of those. */
static uint64_t round_of_name(const char *name)
{
    enum { DIGITS = 12 };
    char *end = NULL;
    if (strncmp(name, "round-", 6) != 0 || strspn(name + 6, "0123456789") != DIGITS) {
        return 0;
    }
    const uint64_t round = strtoull(name + 6, &end, 10);
    return strcmp(end, DT_STORED_SUFFIX) == 0 ? round : 0;
}

/* Before the first file: rounds after this one, which a run played that is continued from before them, and those
 * that are too old. */
static dt_status remove_other_rounds(dt_round_writer *k, uint64_t round)
{
    char **name = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_mkdirs(dt_str_text(&k->folder)));
    DT_TRY(dt_fs_list(dt_str_text(&k->folder), &name, &n));
    for (size_t i = 0; i < n; i++) {
        const uint64_t number = round_of_name(name[i]);
        if (number > 0 && (number > round || number + k->rounds <= round)) {
            dt_fs_try_remove(path_of_round(k, number));
        }
    }
    dt_fs_list_free(name, n);
    k->is_begun = true;
    return DT_OK;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static void append_i32(dt_str *to, uint64_t x)
{
    const int32_t v = (int32_t)x;
    dt_str_add_n(to, (const char *)&v, sizeof(v));
}

static dt_status add_sample(dt_round_writer *k, uint64_t sample)
{
    const dt_replay *p = &k->p;
    size_t at[DT_BUFFER_MAX_FIELDS];
    DT_TRY(dt_replay_write_record(&k->p, sample, p->scratch));
    const int32_t *size = (const int32_t *)(const void *)p->scratch;
    (void)dt_replay_record_bytes(p, size, at);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        if (dt_stored_is_in_files(p, i)) {
            const size_t rows = f->lead * ((size_t)size[f->symbol] + f->plus);
            dt_str_add_n(&k->column[i], p->scratch + at[i], rows * f->row_bytes);
        }
    }
    dt_str_add_n(&k->sizes, (const char *)size, p->n_sizes * sizeof(*size));
    append_i32(&k->step, sample / p->r->split.instances);
    append_i32(&k->instance, sample % p->r->split.instances);
    return DT_OK;
}

static void clear_columns(dt_round_writer *k)
{
    for (uint32_t i = 0; i < k->p.n_fields; i++) {
        dt_str_clear(&k->column[i]);
    }
    dt_str_clear(&k->sizes);
    dt_str_clear(&k->step);
    dt_str_clear(&k->instance);
}

static dt_status add_samples(dt_round_writer *k, uint64_t n)
{
    dt_status st = DT_OK;
    clear_columns(k);
    for (uint64_t i = 0; i < n && st == DT_OK; i++) {
        st = add_sample(k, k->sample[i]);
    }
    DT_TRY(st);
    for (uint32_t i = 0; i < k->p.n_fields; i++) {
        DT_TRY(dt_str_status(&k->column[i]));
    }
    DT_TRY(dt_str_status(&k->sizes));
    DT_TRY(dt_str_status(&k->step));
    return dt_str_status(&k->instance);
}

static dt_st_tensor describe_tensor(const char *name, const dt_str *data)
{
    return (dt_st_tensor){
        .name = name, .dtype = DT_ST_I32, .n_dims = 1, .data = data->bytes > 0 ? dt_str_text(data) : ""};
}

static uint32_t list_tensors(const dt_round_writer *k, uint64_t n, dt_st_tensor *t)
{
    const dt_replay *p = &k->p;
    uint32_t m = 0;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (dt_stored_is_in_files(p, i)) {
            t[m] = describe_tensor(p->port[i].name, &k->column[i]);
            t[m].dtype = dt_stored_dtype(p, i);
            t[m].dim[0] = (int64_t)(k->column[i].bytes / p->field[i].row_bytes);
            t[m].n_dims = 1 + dt_stored_dims(p, i, t[m].dim + 1);
            m++;
        }
    }
    t[m] = describe_tensor(DT_STORED_SIZES, &k->sizes);
    t[m].dim[0] = (int64_t)n;
    t[m].dim[1] = (int64_t)p->n_sizes;
    t[m++].n_dims = 2;
    t[m] = describe_tensor(DT_STORED_STEP, &k->step);
    t[m++].dim[0] = (int64_t)n;
    t[m] = describe_tensor(DT_STORED_INSTANCE, &k->instance);
    t[m++].dim[0] = (int64_t)n;
    return m;
}

static dt_status write_file(dt_round_writer *k, uint64_t n)
{
    const dt_rollout *r = k->p.r;
    const dt_stored_head h = {.round = r->collects,
                              .episodes = dt_round_count_episodes(r->all),
                              .steps = r->d.steps,
                              .instances = r->split.instances};
    dt_st_tensor t[DT_BUFFER_MAX_FIELDS + 3];
    dt_stored_metadata_number(&k->metadata, &h);
    const uint32_t m = list_tensors(k, n, t);
    return dt_safetensors_write_sealed(path_of_round(k, r->collects), t, m, k->metadata.pair, k->metadata.n_pairs);
}

static dt_status write_round(dt_round_writer *k, uint64_t n)
{
    const uint64_t round = k->p.r->collects;
    DT_TRY(add_samples(k, n));
    DT_TRY(k->is_begun ? DT_OK : remove_other_rounds(k, round));
    DT_TRY(write_file(k, n));
    if (round > k->rounds) {
        dt_fs_try_remove(path_of_round(k, round - k->rounds));
    }
    return DT_OK;
}

/* Observations as they were seen, not as the policy normalises them. */
static dt_status gather_and_write(dt_round_writer *k, uint64_t n)
{
    dt_rollout *r = k->p.r;
    for (uint32_t i = 0; i < k->p.ranks; i++) {
        k->part[i] = (dt_samples_part){.index = k->sample, .n = i == 0 ? n : 0};
    }
    DT_TRY(k->p.ranks > 1 ? dt_exchange_fetch_samples(&r->exchange, k->p.unread, k->part) : DT_OK);
    return k->p.rank == 0 ? write_round(k, n) : DT_OK;
}

static dt_status write_collected_round(void *self)
{
    dt_round_writer *k = self;
    dt_rollout *r = k->p.r;
    dt_buffer_scale scale[DT_ENV_MAX_OBS];
    DT_TRACE_N("rollout", "keep the round", "round", r->collects);
    dt_exchange_begin_raw(&r->exchange, scale);
    const dt_status st = gather_and_write(k, dt_round_list_acted(r->all, k->sample));
    dt_exchange_end_raw(&r->exchange, scale);
    clear_columns(k);
    return dt_comm_agree(r->stage->d.comm, st);
}
