/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of stored rollouts, read as the samples of a replay. Of the first byte bit 0 says whether the environment has
 * a continuous action, too, bit 1 whether the rest is the whole file; else it changes one that is right: six bytes are
 * the number of a word of its tensors and what is written there. What was accepted is read as it is learnt from: every
 * number is finite, and every index points at a row of its sample.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/options.h"
#include "rl/offline/stored.h"
#include "rl/offline/metadata.h"
#include "rl/buffer/buffer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 3, NODES = 4, EDGES = 4, SAMPLES = 3, SYMBOLS = 3, PATCH = 6, MOST_SAMPLES = 64 };

#define FILE_NAME "rollouts.safetensors"

typedef struct world { /* what a phase has that learns from files, without a trainer */
    dt_config *config;
    dt_loaded comp;
    dt_stage stage;
    dt_env env;
    dt_layout layout;
    dt_rollout r;
    dt_replay p,
        planned; /* of an input; before one: plans are made once, since the configuration keeps what it reports */
    dt_str file; /* that is right */
    size_t head; /* bytes of it before tensors */
} world;

/* ---- an environment ---------------------------------------------------------------------------------------------- */

typedef struct env_config {
    int64_t length;
    const char *map;
} env_config;

static const dt_option options[] = {DT_OPTION(env_config, length, DT_OPT_I64, "5", "1", 1, 100, NULL, "steps"),
                                    DT_OPTION(env_config, map, DT_OPT_PATH, "", "", 0, 0, NULL, "a file"),
                                    DT_OPTION_END};

static void describe(dt_env_spec *s, bool is_continuous)
{
    static const dt_dim symbols[] = {{"N", NODES}, {"E", EDGES}};
    static const dt_port obs[] = {{"own", "A 2", DT_F32, 0},
                                  {"node", "A", DT_I32, DT_PORT_INDEX(1)},
                                  {"nodes", "N 2", DT_F32, 0},
                                  {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)},
                                  {"col", "E", DT_I32, DT_PORT_INDEX(1)},
                                  {"driver", "N", DT_I32, DT_PORT_INDEX(0)}};
    static const int32_t choices[] = {3, 2};
    static const float low[] = {-1}, high[] = {2};
    static const char *const costs[] = {"near"};
    *s = (dt_env_spec){.struct_size = sizeof(*s),
                       .n_agents = PLACES,
                       .obs = obs,
                       .n_obs = sizeof(obs) / sizeof(obs[0]),
                       .symbols = symbols,
                       .n_symbols = SYMBOLS - 1,
                       .choices = choices,
                       .n_heads = 2,
                       .low = low,
                       .high = high,
                       .n_continuous = is_continuous,
                       .costs = costs,
                       .n_costs = 1};
}

/* ---- a file that is right ---------------------------------------------------------------------------------------- */

static const int32_t sizes[SAMPLES][SYMBOLS] = {{2, 2, 1}, {1, 2, 1}, {2, 2, 1}};
static const int32_t steps[SAMPLES] = {0, 0, 1}, instances[SAMPLES] = {0, 1, 0};

/* Item `item` of row `row` of a sample, as a word. */
static uint32_t word_of(const dt_replay *p, uint32_t field, uint32_t sample, size_t row)
{
    const float one = 1;
    uint32_t w = 0;
    switch (p->r->all->field[p->field[field].of].kind) {
    case FIELD_MASK:
    case FIELD_NEXT_MASK:
    case FIELD_NEXT_PRESENT:
        memcpy(&w, &one, sizeof(w));
        return w;
    case FIELD_TRUNCATED: /* the last step of the round */
        memcpy(&w, &one, sizeof(w));
        return steps[sample] == 1 ? w : 0;
    case FIELD_PLACE:
        return (uint32_t)row;
    case FIELD_OBS:
        return strcmp(p->port[field].name, "rowptr") == 0 && row == (size_t)sizes[sample][1] ? 1 : 0;
    default:
        return 0;
    }
}

static dt_st_tensor make_tensor(const dt_replay *p, uint32_t i, dt_str *data)
{
    const dt_replay_field *f = &p->field[i];
    dt_st_tensor t = {.name = p->port[i].name, .dtype = dt_stored_dtype(p, i)};
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const size_t rows = (size_t)sizes[s][f->symbol] + f->plus;
        for (size_t k = 0; k < rows * f->row_bytes / sizeof(uint32_t); k++) {
            const uint32_t w = word_of(p, i, s, k / (f->row_bytes / sizeof(uint32_t)));
            dt_str_add_n(data, (const char *)&w, sizeof(w));
        }
        t.dim[0] += (int64_t)rows;
    }
    t.n_dims = 1 + dt_stored_dims(p, i, t.dim + 1);
    t.data = dt_str_text(data);
    return t;
}

static dt_status take(void *user, const void *p, size_t n)
{
    dt_str_add_n(user, p, n);
    return dt_str_status(user);
}

static void make_file(const dt_replay *p, dt_str *out)
{
    const dt_stored_head h = {.round = 1, .episodes = 1, .steps = 2, .instances = 2};
    dt_stored_metadata m = {0};
    dt_str data[DT_BUFFER_MAX_FIELDS] = {{0}};
    dt_st_tensor t[DT_BUFFER_MAX_FIELDS + 3];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (dt_stored_is_in_files(p, i)) {
            t[n] = make_tensor(p, i, &data[n]);
            n++;
        }
    }
    t[n++] = (dt_st_tensor){DT_STORED_SIZES, DT_ST_I32, 2, {SAMPLES, SYMBOLS}, sizes, 0};
    t[n++] = (dt_st_tensor){DT_STORED_STEP, DT_ST_I32, 1, {SAMPLES}, steps, 0};
    t[n++] = (dt_st_tensor){DT_STORED_INSTANCE, DT_ST_I32, 1, {SAMPLES}, instances, 0};
    fuzz_hold(dt_stored_metadata_make(p->r, &m) == DT_OK);
    dt_stored_metadata_number(&m, &h);
    for (uint32_t i = 0; i < m.n_pairs; i++) { /* without a seal, which no patched file would pass */
        if (strcmp(m.pair[i][0], "version") == 0) {
            m.pair[i][1] = DT_STORED_UNSEALED;
        }
    }
    fuzz_hold(dt_safetensors_write_to(t, n, m.pair, m.n_pairs, take, out) == DT_OK);
    dt_stored_metadata_fini(&m);
    for (uint32_t i = 0; i < DT_BUFFER_MAX_FIELDS; i++) {
        dt_str_fini(&data[i]);
    }
}

/* ---- a replay ---------------------------------------------------------------------------------------------------- */

static void build(world *w, bool is_continuous)
{
    dt_env_spec spec;
    describe(&spec, is_continuous);
    fuzz_hold(dt_config_create(&w->config) == DT_OK && dt_comm_create_null(&w->stage.d.comm) == DT_OK);
    fuzz_hold(dt_config_declare(w->config, "fuzz_env", options, NULL) == DT_OK);
    fuzz_hold(dt_config_check(w->config, NULL) == DT_OK && dt_layout_init(&w->layout, "fuzz_env", &spec) == DT_OK);
    w->comp.desc.id = "fuzz_env";
    w->env.comp = &w->comp;
    w->stage.d.config = w->config;
    w->stage.d.index = -1;
    const dt_buffer_desc d = {
        .layout = &w->layout, .steps = 2, .instances = 2, .window = 1, .transitions = 2, .gamma = 0.9};
    fuzz_hold(dt_buffer_init(&w->r.buffer, &d) == DT_OK);
    w->r.stage = &w->stage;
    w->r.env = &w->env;
    w->r.all = &w->r.buffer;
    w->r.split = (dt_partition){.comm = w->stage.d.comm, .instances = 2, .last = 2};
    w->r.d.steps = 2;
    w->r.d.transitions = 2;
    w->r.d.gamma = 0.9;
    w->p = (dt_replay){.r = &w->r, .ranks = 1, .is_stored = true, .d = {.n_step = 1, .gamma = 0.9}};
    fuzz_hold(dt_replay_plan_record(&w->p, &w->p.d, &dt_replay_data_ops) == DT_OK);
    w->planned = w->p;
    make_file(&w->p, &w->file);
    uint64_t header;
    memcpy(&header, dt_str_text(&w->file), sizeof(header));
    w->head = sizeof(header) + (size_t)header;
}

/* For all inputs; it stays. */
static world *world_of(bool is_continuous)
{
    static world w[2];
    if (w[is_continuous].config == NULL) {
        dt_log_level_set(DT_LOG_ERROR);
        build(&w[is_continuous], is_continuous);
    }
    return &w[is_continuous];
}

static void take_room(dt_replay *p, uint64_t n)
{
    p->d.capacity = n;
    p->d.draw = n;
    p->ring = dt_alloc_n((size_t)n, p->stride);
    p->scratch = dt_alloc(p->stride);
    p->slot = dt_alloc_n((size_t)n, sizeof(*p->slot));
    p->size = dt_alloc_n((size_t)n, p->n_sizes * sizeof(*p->size));
    p->weight = dt_alloc_n((size_t)n, sizeof(*p->weight));
    p->record = dt_alloc_n((size_t)n, sizeof(*p->record));
    fuzz_hold(p->ring != NULL && p->scratch != NULL && p->slot != NULL && p->size != NULL && p->weight != NULL &&
              p->record != NULL);
}

static void drop_room(dt_replay *p)
{
    dt_free(p->ring);
    dt_free(p->scratch);
    dt_free(p->slot);
    dt_free(p->size);
    dt_free(p->weight);
    dt_free(p->record);
    dt_free(p->stored_size);
}

/* ---- what was accepted ------------------------------------------------------------------------------------------- */

static void look_at(const dt_replay *p, uint32_t i, const void *data, size_t bytes, const int64_t *size)
{
    const dt_obs_port *o = &p->r->all->l->obs[p->field[i].port];
    fuzz_touch(data, bytes);
    for (size_t k = 0; p->port[i].dtype == DT_F32 && k < bytes / sizeof(float); k++) {
        fuzz_hold(isfinite(((const float *)data)[k]));
    }
    for (size_t k = 0; p->field[i].kind == DT_REPLAY_INDEX && k < bytes / sizeof(int32_t); k++) {
        const int64_t at = ((const int32_t *)data)[k];
        fuzz_hold(at >= -1 && at < size[o->index_of] + o->plus);
    }
}

/* Samples [first, first + n) as one slice. */
static void read_slice(dt_replay *p, uint64_t first, uint32_t n)
{
    uint64_t index[MOST_SAMPLES];
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    void *out[DT_BUFFER_MAX_FIELDS] = {NULL};
    for (uint32_t j = 0; j < n; j++) {
        index[j] = first + j;
    }
    fuzz_hold(p->data.source.ops->sizes(p, index, n, size) == DT_OK);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        out[i] = dt_alloc(dt_samples_field_bytes(&p->data.source, i, size));
        fuzz_hold(out[i] != NULL);
    }
    fuzz_hold(p->data.source.ops->read(p, index, NULL, n, out) == DT_OK);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        look_at(p, i, out[i], dt_samples_field_bytes(&p->data.source, i, size), size);
        dt_free(out[i]);
    }
}

static void use(dt_replay *p)
{
    const uint32_t n = p->added < MOST_SAMPLES ? (uint32_t)p->added : MOST_SAMPLES;
    fuzz_hold(p->totals.samples == p->added && p->totals.rows >= p->totals.samples &&
              p->totals.terminated <= p->totals.rows);
    for (uint64_t i = 0; i < p->added; i++) {
        p->slot[i] = i;
        p->weight[i] = 1;
        memcpy(p->size + i * p->n_sizes, p->stored_size + i * p->n_sizes, p->n_sizes * sizeof(*p->size));
    }
    dt_replay_find_records(p);
    p->is_drawn = true;
    read_slice(p, 0, n);
    for (uint32_t j = 0; j < n; j++) {
        read_slice(p, j, 1);
    }
    fuzz_accepted();
}

static bool read_file(world *w)
{
    dt_replay *p = &w->p;
    uint64_t n = 0;
    *p = w->planned;
    dt_status st = dt_stored_store.count(p, FILE_NAME, &n);
    if (st == DT_OK) {
        take_room(p, n);
        st = dt_stored_store.read(p, FILE_NAME);
    }
    if (st == DT_OK) {
        use(p);
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    drop_room(p);
    return st == DT_OK;
}

static void patch(const world *w, uint8_t *file, const uint8_t *bytes, size_t n)
{
    const size_t words = (w->file.bytes - w->head) / sizeof(uint32_t);
    for (; n >= PATCH; n -= PATCH, bytes += PATCH) {
        const size_t at = ((size_t)bytes[0] | (size_t)bytes[1] << 8) % words;
        memcpy(file + w->head + at * sizeof(uint32_t), bytes + 2, sizeof(uint32_t));
    }
}

DT_FUZZ(rollouts)
{
    const uint8_t first = n > 0 ? bytes[0] : 0;
    const bool is_whole = (first & 2) != 0;
    world *w = world_of((first & 1) != 0);
    const size_t file_bytes = is_whole ? n - 1 : w->file.bytes;
    fuzz_begin();
    uint8_t *file = malloc(file_bytes > 0 ? file_bytes : 1);
    fuzz_hold(file != NULL);
    memcpy(file, is_whole ? bytes + 1 : (const uint8_t *)dt_str_text(&w->file), file_bytes);
    if (!is_whole && n > 0) {
        patch(w, file, bytes + 1, n - 1);
    }
    fuzz_file(FILE_NAME, file, file_bytes);
    const bool is_read = read_file(w);
    fuzz_hold(is_read || is_whole || n > PATCH);
    fuzz_end();
    free(file);
    return 0;
}
