/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored rollouts read as the samples of a replay; see stored.h. Files are foreign: each is checked whole, against the
 * environment and against itself, before a sample of it is used. Every rank reads all of them, takes its own
 * samples, and so finds the same errors as the others.
 */
#include <config.h>

#include "rl/offline/stored.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/trace.h"
#include "rl/offline/metadata.h"
#include "rl/buffer/buffer_internal.h"

#include <math.h>
#include <string.h>

typedef struct file {
    const char *path;
    dt_safetensors *s;
    const dt_st_tensor *column[DT_BUFFER_MAX_FIELDS]; /* of the fields that files have */
    const dt_st_tensor *sizes, *step, *instance;
    uint64_t samples;
    dt_stored_head head;
} file;

static dt_status fail_file(const file *f, const char *what, const char *why)
{
    return DT_FAIL(DT_EDATA, "%s: %s %s", f->path, what, why);
}

/* ---- what files have --------------------------------------------------------------------------------------------- */

bool dt_stored_is_in_files(const dt_replay *p, uint32_t i)
{
    const dt_replay_kind kind = p->field[i].kind;
    return kind != DT_REPLAY_KEY && kind != DT_REPLAY_DISCOUNT && !dt_replay_is_made(kind);
}

dt_st_dtype dt_stored_dtype(const dt_replay *p, uint32_t i)
{
    switch (p->port[i].dtype) {
    case DT_F32:
        return DT_ST_F32;
    case DT_I32:
        return DT_ST_I32;
    case DT_I64:
        return DT_ST_I64;
    default:
        return DT_ST_U8;
    }
}

uint32_t dt_stored_dims(const dt_replay *p, uint32_t i, int64_t *dim)
{
    const dt_field_shape *s = &p->data.source.shape[i];
    uint32_t at = 0, n = 0;
    while (at < s->rank && s->symbol[at] < 0) {
        at++;
    }
    for (at++; at < s->rank; at++) {
        dim[n++] = s->number[at];
    }
    return n;
}

/* ---- a file's tensors -------------------------------------------------------------------------------------------- */

static void add_dims(dt_str *to, const int64_t *dim, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(to, ", %lld", (long long)dim[i]);
    }
    dt_str_add(to, "]");
}

static dt_status fail_shape(const file *f, const char *name, const dt_st_tensor *t, dt_st_dtype dtype,
                            const int64_t *dim, uint32_t n)
{
    dt_str has = {0}, wanted = {0};
    dt_str_addf(&has, "%s [rows", dt_st_dtype_name(t->dtype));
    add_dims(&has, t->dim + 1, t->n_dims > 0 ? t->n_dims - 1 : 0);
    dt_str_addf(&wanted, "%s [rows", dt_st_dtype_name(dtype));
    add_dims(&wanted, dim, n);
    const dt_status st = DT_FAIL(DT_EDATA, "%s: %s is %s, and the environment has %s", f->path, name, dt_str_text(&has),
                                 dt_str_text(&wanted));
    dt_str_fini(&has);
    dt_str_fini(&wanted);
    return st;
}

/* The tensor of this name, if its rows are like that. */
static dt_status find_tensor(const file *f, const char *name, dt_st_dtype dtype, const int64_t *dim, uint32_t n,
                             const dt_st_tensor **out_p)
{
    const dt_st_tensor *t = dt_safetensors_find(f->s, name);
    if (t == NULL) {
        return fail_file(f, name, "is not in it, and the environment has it");
    }
    if (t->dtype != dtype || t->n_dims != n + 1 || (n > 0 && memcmp(t->dim + 1, dim, n * sizeof(*dim)) != 0)) {
        return fail_shape(f, name, t, dtype, dim, n);
    }
    *out_p = t;
    return DT_OK;
}

static bool is_expected_tensor(const dt_replay *p, const char *name)
{
    bool is = strcmp(name, DT_STORED_SIZES) == 0 || strcmp(name, DT_STORED_STEP) == 0 ||
              strcmp(name, DT_STORED_INSTANCE) == 0;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        is = is || (dt_stored_is_in_files(p, i) && strcmp(name, p->port[i].name) == 0);
    }
    return is;
}

static dt_status find_tensors(const dt_replay *p, file *f)
{
    int64_t dim[DT_MAX_DIMS] = {p->n_sizes};
    DT_TRY(find_tensor(f, DT_STORED_SIZES, DT_ST_I32, dim, 1, &f->sizes));
    DT_TRY(find_tensor(f, DT_STORED_STEP, DT_ST_I32, NULL, 0, &f->step));
    DT_TRY(find_tensor(f, DT_STORED_INSTANCE, DT_ST_I32, NULL, 0, &f->instance));
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (dt_stored_is_in_files(p, i)) {
            const uint32_t n = dt_stored_dims(p, i, dim);
            DT_TRY(find_tensor(f, p->port[i].name, dt_stored_dtype(p, i), dim, n, &f->column[i]));
        }
    }
    for (uint32_t i = 0; i < dt_safetensors_count(f->s); i++) {
        const char *name = dt_safetensors_at(f->s, i)->name;
        if (!is_expected_tensor(p, name)) {
            return fail_file(f, name, "is in it, and the environment does not have it");
        }
    }
    f->samples = (uint64_t)f->sizes->dim[0];
    return f->step->dim[0] == f->sizes->dim[0] && f->instance->dim[0] == f->sizes->dim[0]
               ? DT_OK
               : fail_file(f, DT_STORED_STEP " or " DT_STORED_INSTANCE,
                           "is not of as many samples as " DT_STORED_SIZES);
}

static int32_t read_number(const dt_st_tensor *t, uint64_t i)
{
    int32_t x;
    memcpy(&x, (const char *)t->data + i * sizeof(x), sizeof(x));
    return x;
}

/* Samples rise by step, then instance, and are of the round. */
static dt_status check_order(const file *f)
{
    int64_t step = -1, instance = -1;
    for (uint64_t i = 0; i < f->samples; i++) {
        const int64_t s = read_number(f->step, i), k = read_number(f->instance, i);
        if (s < 0 || k < 0 || s < step || (s == step && k <= instance)) {
            return DT_FAIL(
                DT_EDATA, "%s, sample %llu: it is of step %lld and instance %lld, after step %lld and instance %lld",
                f->path, (unsigned long long)i, (long long)s, (long long)k, (long long)step, (long long)instance);
        }
        if ((uint64_t)s >= f->head.steps || (uint64_t)k >= f->head.instances) {
            return DT_FAIL(DT_EDATA,
                           "%s, sample %llu: it is of step %lld and instance %lld, and by its metadata the round has "
                           "%llu steps of %llu instances",
                           f->path, (unsigned long long)i, (long long)s, (long long)k,
                           (unsigned long long)f->head.steps, (unsigned long long)f->head.instances);
        }
        step = s;
        instance = k;
    }
    return DT_OK;
}

static void read_sizes_of_sample(const dt_replay *p, const file *f, uint64_t i, int32_t *size)
{
    memcpy(size, (const char *)f->sizes->data + i * p->n_sizes * sizeof(*size), p->n_sizes * sizeof(*size));
}

static uint64_t count_rows_of_field(const dt_replay_field *f, const int32_t *size)
{
    return (uint64_t)f->lead * ((uint64_t)size[f->symbol] + f->plus);
}

/* Sizes are within what the environment can have, and add up to the rows that there are. */
static dt_status check_sizes(dt_replay *p, const file *f)
{
    uint64_t rows[DT_BUFFER_MAX_FIELDS] = {0};
    int32_t size[DT_REPLAY_MAX_SIZES];
    p->origin = f->path;
    for (uint64_t i = 0; i < f->samples; i++) {
        read_sizes_of_sample(p, f, i, size);
        DT_TRY(dt_replay_check_sizes(p, i, size));
        for (uint32_t k = 0; k < p->n_fields; k++) {
            rows[k] += count_rows_of_field(&p->field[k], size);
        }
    }
    for (uint32_t k = 0; k < p->n_fields; k++) {
        if (dt_stored_is_in_files(p, k) && rows[k] != (uint64_t)f->column[k]->dim[0]) {
            return DT_FAIL(DT_EDATA, "%s: %s has %lld rows, and by " DT_STORED_SIZES " its samples have %llu", f->path,
                           p->port[k].name, (long long)f->column[k]->dim[0], (unsigned long long)rows[k]);
        }
    }
    return DT_OK;
}

static dt_status check_seal(const file *f)
{
    bool has_seal = false;
    DT_TRY(dt_safetensors_check_seal(f->s, &has_seal));
    return has_seal || !f->head.is_sealed ? DT_OK
                                          : fail_file(f, "its metadata " DT_ST_SEAL,
                                                      "is missing, and a file of version " DT_STORED_VERSION " has it");
}

static dt_status open_file(dt_replay *p, const char *path, file *f)
{
    *f = (file){.path = path};
    DT_TRY(dt_safetensors_open(path, &f->s));
    DT_TRY(dt_stored_head_read(p->r, f->s, path, &f->head));
    DT_TRY(check_seal(f));
    DT_TRY(find_tensors(p, f));
    DT_TRY(check_order(f));
    return check_sizes(p, f);
}

/* ---- a sample ---------------------------------------------------------------------------------------------------- */

/* Where fields of a sample lie in its record, NULL where the environment has none of it. */
typedef struct sample {
    const file *f;
    uint64_t number; /* in the file */
    int32_t size[DT_REPLAY_MAX_SIZES];
    char *record;
    const float *terminated;
    const int32_t *place;
} sample;

static void find_sample_fields(const dt_replay *p, const size_t *at, sample *x)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const void *data = x->record + at[i];
        switch (p->r->all->field[p->field[i].of].kind) {
        case FIELD_TERMINATED:
            x->terminated = data;
            break;
        case FIELD_PLACE:
            x->place = data;
            break;
        default:
            break;
        }
    }
}

/* What a record has in addition to fields of files: keys, discounts, and where nothing follows. */
static void fill_derived_fields(const dt_replay *p, const size_t *at, const sample *x)
{
    dt_replay_note *note = (dt_replay_note *)(void *)(x->record + p->n_sizes * sizeof(int32_t));
    for (uint32_t i = 0; i < p->n_fields; i++) {
        int64_t *key = (int64_t *)(void *)(x->record + at[i]);
        float *discount = (float *)(void *)(x->record + at[i]);
        for (int32_t row = 0; row < x->size[0]; row++) {
            if (p->field[i].kind == DT_REPLAY_KEY) {
                key[row] = x->place[row];
            } else if (p->field[i].kind == DT_REPLAY_DISCOUNT) {
                discount[row] = x->terminated[row] != 0 ? 0 : (float)p->r->d.gamma;
            }
        }
    }
    for (int32_t row = 0; row < x->size[0]; row++) {
        note[row] = (dt_replay_note){.is_ended = x->terminated[row] != 0};
    }
}

/* row: of each field, the first one of the sample; moved on. */
static void copy_fields(const dt_replay *p, const size_t *at, const sample *x, uint64_t *row)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const dt_replay_field *f = &p->field[i];
        if (dt_stored_is_in_files(p, i)) {
            const uint64_t n = count_rows_of_field(f, x->size);
            memcpy(x->record + at[i], (const char *)x->f->column[i]->data + row[i] * f->row_bytes, n * f->row_bytes);
            row[i] += n;
        }
    }
}

/* ---- what all of it is ------------------------------------------------------------------------------------------- */

static void add_reward_sums(dt_replay *p, const sample *x, const size_t *at)
{
    const size_t rows = (size_t)x->size[0], K = p->r->all->l->spec.n_costs;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const float *v = (const float *)(const void *)(x->record + at[i]);
        for (size_t j = 0; j < rows && p->field[i].kind == DT_REPLAY_REWARD; j++) {
            p->totals.reward += (double)v[j];
            p->totals.reward_squares += (double)v[j] * (double)v[j];
        }
        for (size_t j = 0; j < rows * K && p->field[i].kind == DT_REPLAY_COST; j++) {
            p->totals.cost[j % K] += (double)v[j];
            p->totals.cost_squares[j % K] += (double)v[j] * (double)v[j];
        }
    }
    for (size_t j = 0; j < rows; j++) {
        p->totals.terminated += x->terminated[j] != 0;
    }
    p->totals.rows += rows;
    p->totals.samples++;
}

/* Observations are normalised by the statistics of all that there are. */
static void add_observations(const dt_replay *p, const sample *x, const size_t *at, const uint8_t *every)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        dt_moments *m = &p->r->stats.port[p->field[i].port];
        if (p->field[i].kind == DT_REPLAY_OBS && m->columns > 0) {
            dt_moments_add(m, (const float *)(const void *)(x->record + at[i]), every, (size_t)x->size[0]);
        }
    }
}

static dt_status read_sample(dt_replay *p, sample *x, uint64_t *row, const uint8_t *every)
{
    size_t at[DT_BUFFER_MAX_FIELDS] = {0};
    const uint64_t slot = p->added;
    const size_t bytes = dt_replay_record_bytes(p, x->size, at);
    memset(x->record, 0, bytes);
    memcpy(x->record, x->size, p->n_sizes * sizeof(*x->size));
    find_sample_fields(p, at, x);
    copy_fields(p, at, x, row);
    fill_derived_fields(p, at, x);
    DT_TRY(dt_stored_check_sample(p, x->number, x->record,
                                  (uint64_t)read_number(x->f->step, x->number) + 1 == x->f->head.steps));
    add_reward_sums(p, x, at);
    add_observations(p, x, at, every);
    memcpy(p->stored_size + slot * p->n_sizes, x->size, p->n_sizes * sizeof(*x->size));
    p->digest += dt_replay_digest_record(slot, x->record, bytes);
    if (dt_replay_slot_owner(p, slot) == p->rank) {
        memcpy(dt_replay_slot_at(p, slot), x->record, bytes);
        dt_replay_seal_slot(p, slot);
    }
    if (p->d.alpha > 0) {
        dt_sum_tree_set(&p->tree, slot, p->most);
    }
    p->added++;
    return DT_OK;
}

static dt_status read_samples(dt_replay *p, const file *f, const uint8_t *every)
{
    uint64_t row[DT_BUFFER_MAX_FIELDS] = {0};
    sample x = {.f = f, .record = p->scratch};
    if (f->samples > p->d.capacity - p->added) {
        return fail_file(f, "it", "has more samples than when it was counted");
    }
    for (x.number = 0; x.number < f->samples; x.number++) {
        read_sizes_of_sample(p, f, x.number, x.size);
        DT_TRY(read_sample(p, &x, row, every));
    }
    p->totals.episodes += f->head.episodes;
    return DT_OK;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

typedef dt_status each_file(dt_replay *p, const file *f, void *user);

static dt_status visit_file(dt_replay *p, const char *path, each_file *each, void *user)
{
    file f;
    dt_status st = open_file(p, path, &f);
    if (st == DT_OK) {
        st = each(p, &f, user);
    }
    p->origin = NULL;
    dt_safetensors_close(f.s);
    return st;
}

static dt_status visit_file_in_folder(dt_replay *p, const char *folder, const char *name, each_file *each, void *user)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", folder, name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = visit_file(p, dt_str_text(&path), each, user);
    }
    dt_str_fini(&path);
    return st;
}

static bool is_round_name(const char *name)
{
    const size_t n = strlen(name), end = strlen(DT_STORED_SUFFIX);
    return n > end && strcmp(name + n - end, DT_STORED_SUFFIX) == 0;
}

/* The file, or those of the folder by name. */
static dt_status visit_files(dt_replay *p, const char *path, each_file *each, void *user)
{
    char **name = NULL;
    size_t n = 0;
    if (!dt_fs_is_dir(path)) {
        return visit_file(p, path, each, user);
    }
    DT_TRY(dt_fs_list(path, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        st = is_round_name(name[i]) ? visit_file_in_folder(p, path, name[i], each, user) : DT_OK;
    }
    dt_fs_list_free(name, n);
    return st;
}

/* ---- each round once --------------------------------------------------------------------------------------------- */

typedef struct counted {
    uint64_t samples;
    uint64_t *round; /* [n] of the files before */
    char **path;     /* [n] */
    size_t n, cap;
    size_t n_files, n_unsealed; /* all; those without a checksum */
    bool has_warned;
} counted;

static void free_counted(counted *c)
{
    for (size_t i = 0; i < c->n; i++) {
        dt_free(c->path[i]);
    }
    dt_free(c->path);
    dt_free(c->round);
}

static dt_status reserve_path(counted *c)
{
    const size_t cap = c->cap > 0 ? 2 * c->cap : 16;
    if (c->n < c->cap) {
        return DT_OK;
    }
    uint64_t *round = dt_alloc_n(cap, sizeof(*round));
    char **path = dt_alloc_n(cap, sizeof(*path));
    if (round == NULL || path == NULL) {
        dt_free(round);
        dt_free(path);
        return DT_FAIL(DT_ENOMEM, "out of memory for the names of stored rollouts");
    }
    if (c->n > 0) {
        memcpy(round, c->round, c->n * sizeof(*round));
        memcpy(path, c->path, c->n * sizeof(*path));
    }
    dt_free(c->round);
    dt_free(c->path);
    c->round = round;
    c->path = path;
    c->cap = cap;
    return DT_OK;
}

static bool have_same_tensors(const dt_safetensors *a, const dt_safetensors *b)
{
    bool are = dt_safetensors_count(a) == dt_safetensors_count(b);
    for (uint32_t i = 0; are && i < dt_safetensors_count(a); i++) {
        const dt_st_tensor *x = dt_safetensors_at(a, i), *y = dt_safetensors_at(b, i);
        are = strcmp(x->name, y->name) == 0 && x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
    }
    return are;
}

/* Rounds of several runs may lie in one folder, with equal numbers; the same samples may not, be it by a copy or a
 * link. */
static dt_status check_file_is_new(const file *f, const counted *c)
{
    for (size_t i = 0; i < c->n; i++) {
        dt_safetensors *other = NULL;
        if (c->round[i] != f->head.round) {
            continue;
        }
        DT_TRY(dt_safetensors_open(c->path[i], &other));
        const bool is_again = have_same_tensors(f->s, other);
        dt_safetensors_close(other);
        if (is_again) {
            return DT_FAIL(DT_EDATA,
                           "%s: it is round %llu and repeats the samples of %s; keep each round in the folder once",
                           f->path, (unsigned long long)f->head.round, c->path[i]);
        }
    }
    return DT_OK;
}

static dt_status count_file(dt_replay *p, const file *f, void *user)
{
    counted *c = user;
    DT_TRY(check_file_is_new(f, c));
    DT_TRY(reserve_path(c));
    c->path[c->n] = dt_strdup(f->path);
    if (c->path[c->n] == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the names of stored rollouts");
    }
    c->round[c->n++] = f->head.round;
    c->n_unsealed += !f->head.is_sealed && dt_safetensors_metadata(f->s, DT_ST_SEAL) == NULL;
    c->samples += f->samples; /* of fewer than 2^31 rows in a file each */
    c->has_warned = c->has_warned || dt_stored_warn_of_options(p->r, f->s, f->path);
    return DT_OK;
}

static dt_status count_samples(dt_replay *p, const char *path, uint64_t *samples_p)
{
    counted c = {0};
    const dt_status st = visit_files(p, path, count_file, &c);
    c.n_files = c.n;
    free_counted(&c);
    DT_TRY(st);
    if (c.samples == 0) {
        return DT_FAIL(DT_EDATA,
                       "%s has no sample of stored rollouts; name a folder RUN/rollouts/PHASE of a run with "
                       "rollouts.keep, or a file of it",
                       path);
    }
    if (c.n_unsealed > 0 && dt_comm_rank(p->r->stage->d.comm) == 0) {
        dt_log(DT_LOG_WARN,
               "%s: %zu of %zu files have no checksum (metadata " DT_ST_SEAL "): damage in them is not detected", path,
               c.n_unsealed, c.n_files);
    }
    *samples_p = c.samples;
    return DT_OK;
}

static dt_status read_file(dt_replay *p, const file *f, void *user)
{
    return read_samples(p, f, user);
}

static dt_status read_rounds(dt_replay *p, const char *path)
{
    const size_t agents = (size_t)p->r->all->l->spec.n_agents;
    DT_TRACE("rollout", "read stored rollouts");
    p->totals = (dt_replay_stats){.n_costs = p->r->all->l->spec.n_costs};
    p->stored_size = dt_alloc_n((size_t)p->d.capacity, p->n_sizes * sizeof(*p->stored_size));
    uint8_t *every = dt_alloc_n(agents, 1);
    dt_status st = p->stored_size != NULL && every != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
    if (st == DT_OK) {
        memset(every, 1, agents);
        st = visit_files(p, path, read_file, every);
    }
    dt_free(every);
    if (st == DT_OK && p->added != p->d.capacity) {
        st = DT_FAIL(DT_EDATA, "%s has fewer samples than when they were counted", path);
    }
    return st;
}

const dt_replay_store dt_stored_store = {.count = count_samples, .read = read_rounds};
