/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored rollouts read as the samples of a replay; see stored.h. Files are foreign: each is checked whole, against the
 * environment and against itself, before a sample of it is learnt from. Every rank reads all of them, takes its own
 * samples, and so finds the same errors as the others.
 */
#include <config.h>

#include "experience/stored.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/trace.h"
#include "rollout/buffer_internal.h"

#include <math.h>
#include <string.h>

typedef struct file {
    const char *path;
    dt_safetensors *s;
    const dt_st_tensor *column[DT_BUFFER_MAX_FIELDS]; /* of the fields that files have */
    const dt_st_tensor *sizes, *step, *instance;
    uint64_t samples, episodes;
} file;

static dt_status is_wrong(const file *f, const char *what, const char *why)
{
    return DT_FAIL(DT_EDATA, "%s: %s %s", f->path, what, why);
}

/* ---- what files have --------------------------------------------------------------------------------------------- */

bool dt_stored_has(const dt_replay *p, uint32_t i)
{
    const dt_replay_kind kind = p->field[i].kind;
    return kind != DT_REPLAY_KEY && kind != DT_REPLAY_DISCOUNT && kind != DT_REPLAY_WEIGHT;
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

static dt_status check_text(const file *f, const char *key, const char *wanted)
{
    const char *has = dt_safetensors_metadata(f->s, key);
    return has != NULL && strcmp(has, wanted) == 0
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: its metadata say %s \"%s\"; expected \"%s\"", f->path, key,
                         has != NULL ? has : "", wanted);
}

static dt_status read_head(const dt_replay *p, file *f)
{
    int64_t episodes = -1;
    DT_TRY(check_text(f, "format", DT_STORED_FORMAT));
    DT_TRY(check_text(f, "version", DT_STORED_VERSION));
    DT_TRY(check_text(f, "environment", dt_bind_env_id(p->r->env)));
    const char *text = dt_safetensors_metadata(f->s, "episodes");
    if (text == NULL || !dt_parse_whole(text, &episodes) || episodes < 0) {
        return is_wrong(f, "its metadata", "do not say how many episodes ended in it (episodes)");
    }
    f->episodes = (uint64_t)episodes;
    return DT_OK;
}

static void add_dims(dt_str *to, const int64_t *dim, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(to, ", %lld", (long long)dim[i]);
    }
    dt_str_add(to, "]");
}

static dt_status is_other(const file *f, const char *name, const dt_st_tensor *t, dt_st_dtype dtype, const int64_t *dim,
                          uint32_t n)
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
static dt_status find(const file *f, const char *name, dt_st_dtype dtype, const int64_t *dim, uint32_t n,
                      const dt_st_tensor **out_p)
{
    const dt_st_tensor *t = dt_safetensors_find(f->s, name);
    if (t == NULL) {
        return is_wrong(f, name, "is not in it, and the environment has it");
    }
    if (t->dtype != dtype || t->n_dims != n + 1 || (n > 0 && memcmp(t->dim + 1, dim, n * sizeof(*dim)) != 0)) {
        return is_other(f, name, t, dtype, dim, n);
    }
    *out_p = t;
    return DT_OK;
}

static bool is_expected(const dt_replay *p, const char *name)
{
    bool is = strcmp(name, DT_STORED_SIZES) == 0 || strcmp(name, DT_STORED_STEP) == 0 ||
              strcmp(name, DT_STORED_INSTANCE) == 0;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        is = is || (dt_stored_has(p, i) && strcmp(name, p->port[i].name) == 0);
    }
    return is;
}

static dt_status find_tensors(const dt_replay *p, file *f)
{
    int64_t dim[DT_MAX_DIMS] = {p->n_sizes};
    DT_TRY(find(f, DT_STORED_SIZES, DT_ST_I32, dim, 1, &f->sizes));
    DT_TRY(find(f, DT_STORED_STEP, DT_ST_I32, NULL, 0, &f->step));
    DT_TRY(find(f, DT_STORED_INSTANCE, DT_ST_I32, NULL, 0, &f->instance));
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (dt_stored_has(p, i)) {
            const uint32_t n = dt_stored_dims(p, i, dim);
            DT_TRY(find(f, p->port[i].name, dt_stored_dtype(p, i), dim, n, &f->column[i]));
        }
    }
    for (uint32_t i = 0; i < dt_safetensors_count(f->s); i++) {
        const char *name = dt_safetensors_at(f->s, i)->name;
        if (!is_expected(p, name)) {
            return is_wrong(f, name, "is in it, and the environment does not have it");
        }
    }
    f->samples = (uint64_t)f->sizes->dim[0];
    return f->step->dim[0] == f->sizes->dim[0] && f->instance->dim[0] == f->sizes->dim[0]
               ? DT_OK
               : is_wrong(f, DT_STORED_STEP " or " DT_STORED_INSTANCE, "is not of as many samples as " DT_STORED_SIZES);
}

static int32_t number(const dt_st_tensor *t, uint64_t i)
{
    int32_t x;
    memcpy(&x, (const char *)t->data + i * sizeof(x), sizeof(x));
    return x;
}

/* Samples rise by step, then instance. */
static dt_status check_order(const file *f)
{
    int64_t step = -1, instance = -1;
    for (uint64_t i = 0; i < f->samples; i++) {
        const int64_t s = number(f->step, i), k = number(f->instance, i);
        if (s < 0 || k < 0 || s < step || (s == step && k <= instance)) {
            return DT_FAIL(
                DT_EDATA, "%s, sample %llu: it is of step %lld and instance %lld, behind step %lld and instance %lld",
                f->path, (unsigned long long)i, (long long)s, (long long)k, (long long)step, (long long)instance);
        }
        step = s;
        instance = k;
    }
    return DT_OK;
}

static void sizes_of(const dt_replay *p, const file *f, uint64_t i, int32_t *size)
{
    memcpy(size, (const char *)f->sizes->data + i * p->n_sizes * sizeof(*size), p->n_sizes * sizeof(*size));
}

static uint64_t rows_of(const dt_replay_field *f, const int32_t *size)
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
        sizes_of(p, f, i, size);
        DT_TRY(dt_replay_check_sizes(p, i, size));
        for (uint32_t k = 0; k < p->n_fields; k++) {
            rows[k] += rows_of(&p->field[k], size);
        }
    }
    for (uint32_t k = 0; k < p->n_fields; k++) {
        if (dt_stored_has(p, k) && rows[k] != (uint64_t)f->column[k]->dim[0]) {
            return DT_FAIL(DT_EDATA, "%s: %s has %lld rows, and by " DT_STORED_SIZES " its samples have %llu", f->path,
                           p->port[k].name, (long long)f->column[k]->dim[0], (unsigned long long)rows[k]);
        }
    }
    return DT_OK;
}

static dt_status open_file(dt_replay *p, const char *path, file *f)
{
    *f = (file){.path = path};
    DT_TRY(dt_safetensors_open(path, &f->s));
    DT_TRY(read_head(p, f));
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
    const float *mask, *executed, *terminated;
    const int32_t *action, *place;
} sample;

static dt_status is_wrong_in(const sample *x, const char *what, const char *why)
{
    return DT_FAIL(DT_EDATA, "%s, sample %llu: %s %s", x->f->path, (unsigned long long)x->number, what, why);
}

static bool are_flags(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] != 0 && x[i] != 1) {
            return false;
        }
    }
    return true;
}

static dt_status check_flags(const dt_replay *p, const sample *x, const size_t *at)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const uint32_t kind = p->r->all->field[p->field[i].of].kind;
        const bool is_flag = kind == FIELD_TERMINATED || kind == FIELD_TRUNCATED || kind == FIELD_NEXT_PRESENT ||
                             kind == FIELD_MASK || kind == FIELD_NEXT_MASK;
        const size_t n = rows_of(&p->field[i], x->size) * p->field[i].row_bytes / sizeof(float);
        if (is_flag && !are_flags((const float *)(const void *)(x->record + at[i]), n)) {
            return is_wrong_in(x, p->port[i].name, "is neither 0 nor 1");
        }
    }
    return DT_OK;
}

/* Every drawn choice was allowed, and what was executed lies within the environment's bounds. */
static dt_status check_actions(const dt_replay *p, const sample *x)
{
    const dt_env_spec *e = &p->r->all->l->spec;
    for (int32_t row = 0; row < x->size[0]; row++) {
        size_t from = (size_t)row * p->r->all->l->n_choices;
        for (uint32_t i = 0; i < e->n_heads; from += (size_t)e->choices[i], i++) {
            if (x->mask[from + (size_t)x->action[(size_t)row * e->n_heads + i]] != 1) {
                return is_wrong_in(x, "action_i", "is a choice that mask forbids");
            }
        }
        for (uint32_t i = 0; i < e->n_continuous; i++) {
            const float a = x->executed[(size_t)row * e->n_continuous + i];
            if (a < e->low[i] || a > e->high[i]) {
                return is_wrong_in(x, "executed", "is outside the bounds of the environment's actions");
            }
        }
        if (row > 0 && x->place[row] <= x->place[row - 1]) {
            return is_wrong_in(x, "place", "does not rise from row to row");
        }
    }
    return DT_OK;
}

static void find_fields(const dt_replay *p, const size_t *at, sample *x)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const void *data = x->record + at[i];
        switch (p->r->all->field[p->field[i].of].kind) {
        case FIELD_MASK:
            x->mask = data;
            break;
        case FIELD_EXECUTED:
            x->executed = data;
            break;
        case FIELD_TERMINATED:
            x->terminated = data;
            break;
        case FIELD_ACTION_I:
            x->action = data;
            break;
        case FIELD_PLACE:
            x->place = data;
            break;
        default:
            break;
        }
    }
}

/* What a record has beside fields of files: keys, discounts, and where nothing follows. */
static void fill_made(const dt_replay *p, const size_t *at, const sample *x)
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
        if (dt_stored_has(p, i)) {
            const uint64_t n = rows_of(f, x->size);
            memcpy(x->record + at[i], (const char *)x->f->column[i]->data + row[i] * f->row_bytes, n * f->row_bytes);
            row[i] += n;
        }
    }
}

/* ---- what all of it is ------------------------------------------------------------------------------------------- */

static void sum_up(dt_replay *p, const sample *x, const size_t *at)
{
    const size_t rows = (size_t)x->size[0], K = p->r->all->l->spec.n_costs;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const float *v = (const float *)(const void *)(x->record + at[i]);
        for (size_t j = 0; j < rows && p->field[i].kind == DT_REPLAY_REWARD; j++) {
            p->told.reward += (double)v[j];
            p->told.reward_squares += (double)v[j] * (double)v[j];
        }
        for (size_t j = 0; j < rows * K && p->field[i].kind == DT_REPLAY_COST; j++) {
            p->told.cost[j % K] += (double)v[j];
            p->told.cost_squares[j % K] += (double)v[j] * (double)v[j];
        }
    }
    for (size_t j = 0; j < rows; j++) {
        p->told.terminated += x->terminated[j] != 0;
    }
    p->told.rows += rows;
    p->told.samples++;
}

/* Observations are normalised by the statistics of all that there are. */
static void learn_observations(const dt_replay *p, const sample *x, const size_t *at, const uint8_t *every)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        dt_moments *m = &p->r->obs[p->field[i].port];
        if (p->field[i].kind == DT_REPLAY_OBS && m->columns > 0) {
            dt_moments_add(m, (const float *)(const void *)(x->record + at[i]), every, (size_t)x->size[0]);
        }
    }
}

static dt_status read_sample(dt_replay *p, sample *x, uint64_t *row, const uint8_t *every)
{
    size_t at[DT_BUFFER_MAX_FIELDS] = {0};
    const uint64_t slot = p->added;
    const size_t bytes = dt_replay_bytes(p, x->size, at);
    memset(x->record, 0, bytes);
    memcpy(x->record, x->size, p->n_sizes * sizeof(*x->size));
    find_fields(p, at, x);
    copy_fields(p, at, x, row);
    fill_made(p, at, x);
    DT_TRY(dt_replay_check(p, x->number, x->record));
    DT_TRY(check_flags(p, x, at));
    DT_TRY(check_actions(p, x));
    sum_up(p, x, at);
    learn_observations(p, x, at, every);
    memcpy(p->stored_size + slot * p->n_sizes, x->size, p->n_sizes * sizeof(*x->size));
    p->digest += dt_replay_digest(slot, x->record, bytes);
    if (dt_replay_owner(p, slot) == p->rank) {
        memcpy(dt_replay_at(p, slot), x->record, bytes);
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
        return is_wrong(f, "it", "has more samples than when it was counted");
    }
    for (x.number = 0; x.number < f->samples; x.number++) {
        sizes_of(p, f, x.number, x.size);
        DT_TRY(read_sample(p, &x, row, every));
    }
    p->told.episodes += f->episodes;
    return DT_OK;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

typedef dt_status each_file(dt_replay *p, const file *f, void *user);

static dt_status with_file(dt_replay *p, const char *path, each_file *each, void *user)
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

static dt_status with_named(dt_replay *p, const char *folder, const char *name, each_file *each, void *user)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", folder, name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = with_file(p, dt_str_text(&path), each, user);
    }
    dt_str_fini(&path);
    return st;
}

static bool is_round(const char *name)
{
    const size_t n = strlen(name), end = strlen(DT_STORED_SUFFIX);
    return n > end && strcmp(name + n - end, DT_STORED_SUFFIX) == 0;
}

/* The file, or those of the folder by name. */
static dt_status with_all(dt_replay *p, const char *path, each_file *each, void *user)
{
    char **name = NULL;
    size_t n = 0;
    if (!dt_fs_is_dir(path)) {
        return with_file(p, path, each, user);
    }
    DT_TRY(dt_fs_list(path, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        st = is_round(name[i]) ? with_named(p, path, name[i], each, user) : DT_OK;
    }
    dt_fs_list_free(name, n);
    return st;
}

static dt_status count_one(dt_replay *p, const file *f, void *user)
{
    uint64_t *n = user;
    (void)p;
    *n += f->samples; /* of fewer than 2^31 rows in a file each */
    return DT_OK;
}

dt_status dt_stored_count(dt_replay *p, const char *path, uint64_t *samples_p)
{
    uint64_t n = 0;
    DT_TRY(with_all(p, path, count_one, &n));
    if (n == 0) {
        return DT_FAIL(DT_EDATA,
                       "%s has no sample of stored rollouts; name a folder RUN/rollouts/PHASE of a run with "
                       "rollouts.keep, or a file of it",
                       path);
    }
    *samples_p = n;
    return DT_OK;
}

static dt_status read_one(dt_replay *p, const file *f, void *user)
{
    return read_samples(p, f, user);
}

dt_status dt_stored_read(dt_replay *p, const char *path)
{
    const size_t agents = (size_t)p->r->all->l->spec.n_agents;
    DT_TRACE("rollout", "read stored rollouts");
    p->told = (dt_replay_told){.n_costs = p->r->all->l->spec.n_costs};
    p->stored_size = dt_alloc_n((size_t)p->d.capacity, p->n_sizes * sizeof(*p->stored_size));
    uint8_t *every = dt_alloc_n(agents, 1);
    dt_status st = p->stored_size != NULL && every != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
    if (st == DT_OK) {
        memset(every, 1, agents);
        st = with_all(p, path, read_one, every);
    }
    dt_free(every);
    if (st == DT_OK && p->added != p->d.capacity) {
        st = DT_FAIL(DT_EDATA, "%s has fewer samples than when they were counted", path);
    }
    return st;
}
