/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1" (dtrain/svc/replay.h): life, rounds that come in, and draws. See replay.h.
 */
#include <config.h>

#include "rl/replay/replay.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/trace.h"

#include <math.h>
#include <string.h>

enum { STREAM_DRAW = 0x64726177, MOST_RANKS = 256, PAGE = 4096 }; /* "draw"; parts that a checkpoint has */
enum { LOGS = 64 << 10 };                                         /* bytes */
enum { BESIDES = 5 << 20 };                /* bytes: 4 MiB that a checkpoint leaves free, and a run's first records */
#define MOST_BYTES ((size_t)1 << 46)       /* of a rank: half of what a process can address */
static const double least_priority = 1e-6; /* epsilon of Schaul et al. 2016, section 3.3: no sample is never drawn */

/* ---- create ------------------------------------------------------------------------------------------------------ */

static dt_status check_bounds(const dt_replay_desc *d)
{
    const struct {
        const char *name;
        double value, most;
    } given[] = {{"gamma", d->gamma, 1}, {"beta", d->beta, 1}, {"alpha", d->alpha, 16}};
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        if (!(given[i].value >= 0 && given[i].value <= given[i].most)) {
            return DT_FAIL(DT_ECONFIG, "a replay's %s is %g; expected 0 to %g", given[i].name, given[i].value,
                           given[i].most);
        }
    }
    if (d->capacity < 1 || d->capacity > INT64_MAX || d->draw > INT32_MAX) {
        return DT_FAIL(
            DT_ECONFIG,
            "a replay of %llu samples that draws %llu; expected at least 1 sample, and less than 2^31 a draw",
            (unsigned long long)d->capacity, (unsigned long long)d->draw);
    }
    return DT_OK;
}

static dt_status check_desc(dt_replay *p)
{
    const dt_rollout *r = p->r;
    DT_TRY(check_bounds(&p->d));
    if (p->d.n_fields > 0 && p->d.field == NULL) {
        return DT_FAIL(DT_EPLUGIN, "a replay keeps %u fields, but their list is NULL; pass the list, or 0 for all",
                       p->d.n_fields);
    }
    for (uint32_t i = 0; i < p->d.n_fields; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, p->d.field[i], "field %u that a replay keeps",
                             i));
    }
    if (p->ranks > MOST_RANKS) {
        return DT_FAIL(DT_ECONFIG, "a replay on %u ranks; at most %d are possible", p->ranks, MOST_RANKS);
    }
    if (r->d.transitions < 2) {
        return DT_FAIL(DT_EPLUGIN, "a replay is made of a rollout whose transitions are %u; set them to 2 or 3",
                       r->d.transitions);
    }
    if (p->d.n_step > 1 && dt_buffer_is_joined(r->all)) {
        return DT_FAIL(DT_ECONFIG,
                       "a replay adds up n_step = %u steps, and its samples have graphs of the step after the first "
                       "alone (transitions = 3); set n_step = 1, or choose models that read rows of agents",
                       p->d.n_step);
    }
    if (p->d.n_step > r->d.steps) {
        return DT_FAIL(DT_ECONFIG,
                       "a replay adds up n_step = %u steps and its rollout has %u in a round; lower the first or raise "
                       "the second",
                       p->d.n_step, r->d.steps);
    }
    const dt_sections *o = &r->stage->opts;
    p->is_draw_chosen = p->d.draw == 0;
    p->d.draw = p->d.draw > 0 ? p->d.draw : (uint64_t)o->data.batch * (uint64_t)o->training.accumulation;
    return DT_OK;
}

static bool needs_backing_file(const dt_replay *p)
{
    const dt_stage *s = p->r->stage;
    return s->d.run_dir != NULL && (double)p->ring_bytes > s->opts.data.replay_mb * 1e6;
}

static dt_status map_file(const dt_replay *p, void **out)
{
    const dt_stage_desc *s = &p->r->stage->d;
    dt_str path = {0};
    dt_str_addf(&path, "%s/replay-%lld-%u.tmp", s->run_dir, (long long)s->index, p->rank);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_fs_map_scratch(dt_str_text(&path), p->ring_bytes, out);
    }
    dt_str_fini(&path);
    return st < 0 ? DT_CONTEXT(st, "a replay of more than data.replay_mb; raise that, or take a smaller capacity") : st;
}

/* What a rank keeps of it: how many bytes can be addressed, and what there is room for. */
static dt_status compute_ring_bytes(dt_replay *p)
{
    const uint64_t own = (p->d.capacity + p->ranks - 1) / p->ranks;
    const bool fits = own <= SIZE_MAX && dt_mul_size((size_t)own, p->stride, &p->ring_bytes);
    if (!fits || p->ring_bytes > MOST_BYTES) {
        return DT_FAIL(DT_ECONFIG,
                       "a replay of %llu samples of up to %zu bytes each takes %.3g TB on each of %u ranks; at most "
                       "%.3g TB are possible: lower its capacity to %llu",
                       (unsigned long long)p->d.capacity, p->stride, (double)own * (double)p->stride * 1e-12, p->ranks,
                       (double)MOST_BYTES * 1e-12, (unsigned long long)(MOST_BYTES / p->stride * p->ranks));
    }
    return DT_OK;
}

/* Each rank compares what all of its machine take with what there is, and finds the same: no rank has taken any yet.
 * Files end with a page, and a first checkpoint fits next to them. */
static dt_status check_file_fits(const dt_replay *p)
{
    const dt_stage_desc *s = &p->r->stage->d;
    if (!p->is_in_file) {
        return DT_OK;
    }
    const uint64_t files = dt_comm_local_size(s->comm), room = dt_fs_free_bytes(s->run_dir);
    const uint64_t own = (room > BESIDES ? room - BESIDES : 0) / files / PAGE * PAGE;
    if (p->ring_bytes <= own) {
        return DT_OK;
    }
    const uint64_t advised = own > LOGS ? own - LOGS : 0; /* the next run's logs may take more than these did */
    return DT_FAIL(DT_ECONFIG,
                   "a replay of %llu samples of up to %zu bytes each takes %.3g GB in %llu file%s, and %s has room for "
                   "%.3g GB; lower its capacity to %llu, or free space",
                   (unsigned long long)p->d.capacity, p->stride, (double)p->ring_bytes * (double)files * 1e-9,
                   (unsigned long long)files, files == 1 ? "" : "s", s->run_dir, (double)room * 1e-9,
                   (unsigned long long)(advised / p->stride * p->ranks));
}

static dt_status map_ring(dt_replay *p)
{
    void *ring = NULL;
    p->is_in_file = needs_backing_file(p);
    DT_TRY(p->is_in_file ? DT_OK : dt_arena_map(p->ring_bytes, &ring));
    p->ring = ring;
    return DT_OK;
}

static dt_status allocate_file(dt_replay *p)
{
    void *ring = NULL;
    if (!p->is_in_file) {
        return DT_OK;
    }
    DT_TRY(map_file(p, &ring));
    p->ring = ring;
    p->crc = dt_alloc_n(p->ring_bytes / p->stride, sizeof(*p->crc));
    return p->crc != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the checksums of a replay");
}

static void unmap_ring(dt_replay *p)
{
    if (p->is_in_file) {
        dt_fs_unmap_scratch(p->ring, p->ring_bytes);
    } else {
        dt_arena_unmap(p->ring, p->ring_bytes);
    }
}

static dt_status allocate_scale(dt_replay *p)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        const size_t columns = p->r->stats.port[i].columns;
        if (columns > 0) {
            p->held[i] = dt_alloc_n(2 * columns, sizeof(float));
            if (p->held[i] == NULL) {
                return DT_FAIL(DT_ENOMEM, "out of memory for the statistics of a replay");
            }
        }
    }
    return DT_OK;
}

static dt_status check_stored(dt_replay *p)
{
    const dt_replay_desc *d = &p->d;
    if (d->capacity != 0 || d->n_fields != 0 || d->n_step != 1 || p->r->d.transitions != 2) {
        return DT_FAIL(DT_EPLUGIN,
                       "a replay of stored rollouts is described with a capacity of %llu, %u fields, %u steps and "
                       "transitions %u; expected 0, 0, 1 and 2",
                       (unsigned long long)d->capacity, d->n_fields, d->n_step, p->r->d.transitions);
    }
    p->is_stored = true;
    p->d.capacity = 1; /* until they are counted */
    return DT_OK;
}

/* An evaluation plays, and learns from nothing. */
static bool reads_stored_rollouts(const dt_replay *p)
{
    return p->is_stored && p->r->stage->d.trained_on == NULL;
}

/* What is as long as a draw. */
static dt_status allocate_draw(dt_replay *p)
{
    const size_t draw = (size_t)p->d.draw;
    p->slot = dt_alloc_n(draw, sizeof(*p->slot));
    p->size = dt_alloc_n(draw, p->n_sizes * sizeof(*p->size));
    p->weight = dt_alloc_n(draw, sizeof(*p->weight));
    p->record = dt_alloc_n(draw, sizeof(*p->record));
    p->below = dt_alloc_n(draw, sizeof(*p->below));
    p->sizes_of_ranks = p->ranks > 1 ? dt_alloc_n(draw * p->ranks, p->n_sizes * sizeof(*p->sizes_of_ranks)) : NULL;
    const bool has_all = p->slot != NULL && p->size != NULL && p->weight != NULL && p->record != NULL &&
                         p->below != NULL && (p->ranks == 1 || p->sizes_of_ranks != NULL);
    return has_all ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a replay that draws %zu samples", draw);
}

static void free_draw(dt_replay *p)
{
    dt_free(p->slot);
    dt_free(p->size);
    dt_free(p->weight);
    dt_free(p->record);
    dt_free(p->below);
    dt_free(p->sizes_of_ranks);
    p->slot = NULL;
    p->size = p->sizes_of_ranks = NULL;
    p->weight = NULL;
    p->record = NULL;
    p->below = NULL;
}

/* Of a trainer that reads the draws. An evaluation apart from training plays on other instances, and learns nothing:
 * there a draw is made large enough. */
static dt_status accept_step(dt_data *data, uint64_t step)
{
    dt_replay *p = data->source.self;
    const bool is_training = p->r->stage->d.trained_on == NULL;
    if (p->d.draw % step == 0) {
        p->is_draw_chosen = false;
        return DT_OK;
    }
    if (is_training && !p->is_draw_chosen) {
        return DT_FAIL(DT_ECONFIG,
                       "a replay draws %llu samples, which is not a multiple of the samples of a step: %llu (the batch "
                       "of the trainer that reads it, times training.accumulation); let it draw a multiple of that",
                       (unsigned long long)p->d.draw, (unsigned long long)step);
    }
    const uint64_t draw = is_training ? step : (p->d.draw + step - 1) / step * step;
    if (draw > INT32_MAX) {
        return DT_FAIL(DT_ECONFIG, "a step of %llu samples of a replay; expected less than 2^31",
                       (unsigned long long)step);
    }
    p->is_draw_chosen = false;
    p->d.draw = draw;
    data->source.count = draw;
    free_draw(p);
    return allocate_draw(p);
}

static dt_status init_replay(dt_replay *p, const dt_replay_desc *d, const dt_replay_store *store)
{
    DT_TRY(d->stored != NULL ? check_stored(p) : DT_OK);
    DT_TRY(check_desc(p));
    const size_t samples = (size_t)p->r->d.steps * p->r->split.instances;
    DT_TRY(dt_replay_plan_record(p, d, &dt_replay_data_ops));
    DT_TRY(reads_stored_rollouts(p) ? store->count(p, d->stored, &p->d.capacity) : DT_OK);
    DT_TRY(compute_ring_bytes(p));
    DT_TRY(map_ring(p));
    DT_TRY(allocate_scale(p));
    DT_TRY(allocate_draw(p));
    p->data.accept_step = accept_step;
    p->sample = dt_alloc_n(samples, sizeof(*p->sample));
    p->scratch = dt_alloc(p->stride);
    if (p->sample == NULL || p->scratch == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a replay of rounds of %zu samples", samples);
    }
    p->most = 1;
    DT_TRY(p->d.alpha > 0 ? dt_sum_tree_init(&p->tree, p->d.capacity) : DT_OK);
    DT_TRY(dt_replay_exchange_init(p));
    return reads_stored_rollouts(p) ? store->read(p, d->stored) : DT_OK;
}

void dt_replay_destroy(dt_replay *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_free(p->held[i]);
    }
    dt_replay_exchange_fini(p);
    dt_sum_tree_fini(&p->tree);
    unmap_ring(p);
    free_draw(p);
    dt_free(p->sample);
    dt_free(p->scratch);
    dt_free(p->stored_size);
    dt_free(p->crc);
    dt_free(p);
}

dt_status dt_replay_create(const dt_host *h, dt_rollout *r, const dt_replay_desc *d, const dt_replay_store *store,
                           dt_replay **out)
{
    const dt_stage *s = dt_stage_of(h);
    if (r == NULL || d == NULL || out == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a replay without %s", s->d.phase->desc.id,
                       r == NULL   ? "a rollout"
                       : d == NULL ? "a description"
                                   : "a place for its handle");
    }
    if (r->replay != NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a second replay; one per phase is possible", s->d.phase->desc.id);
    }
    dt_replay *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a replay");
    }
    p->r = r;
    p->ranks = dt_comm_size(s->d.comm);
    p->rank = dt_comm_rank(s->d.comm);
    memcpy(&p->d, d, d->struct_size < sizeof(*d) ? d->struct_size : sizeof(*d));
    p->d.n_step = p->d.n_step > 0 ? p->d.n_step : 1;
    const dt_status st = init_replay(p, &p->d, store);
    p->d.field = NULL; /* the caller's */
    p->d.stored = NULL;
    if (st < 0) {
        dt_replay_destroy(p);
        return st;
    }
    r->replay = p;
    r->destroy_replay = dt_replay_destroy;
    *out = p;
    return DT_OK;
}

dt_data *dt_replay_data(dt_replay *p)
{
    return &p->data;
}

/* ---- add --------------------------------------------------------------------------------------------------------- */

/* No reader while we write. */
static void replace_trainer_samples(const dt_replay *p)
{
    dt_stage_discard_prefetched(p->r->stage);
}

/* number: of the sample, since the beginning */
static dt_status write_samples(dt_replay *p, uint64_t number, const uint64_t *sample, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t slot = (number + i) % p->d.capacity;
        if (dt_replay_slot_owner(p, slot) == p->rank) {
            DT_TRY(dt_replay_write_record(p, sample[i], dt_replay_slot_at(p, slot)));
            dt_replay_seal_slot(p, slot);
        }
        if (p->d.alpha > 0) {
            dt_sum_tree_set(&p->tree, slot, p->most);
        }
    }
    return DT_OK;
}

static dt_status gather_and_write(dt_replay *p, uint64_t number, const uint64_t *sample, uint64_t n)
{
    DT_TRY(p->ranks > 1 ? dt_replay_exchange_round(p, number, sample, n) : DT_OK);
    return write_samples(p, number, sample, n);
}

/* As they were seen: they are normalised when they are read. */
static dt_status write_raw_samples(dt_replay *p, uint64_t number, const uint64_t *sample, uint64_t n)
{
    dt_rollout *r = p->r;
    dt_buffer_scale scale[DT_ENV_MAX_OBS];
    dt_exchange_begin_raw(&r->exchange, scale);
    const dt_status st = gather_and_write(p, number, sample, n);
    dt_exchange_end_raw(&r->exchange, scale);
    return st;
}

static dt_status add_collected_round(dt_replay *p)
{
    const dt_rollout *r = p->r;
    if (p->is_stored) {
        return DT_FAIL(DT_EPLUGIN, "a replay of stored rollouts cannot add a round");
    }
    if (!r->all->is_filled || p->rounds == r->collects) {
        return DT_FAIL(DT_EPLUGIN, "a replay cannot add a round %s",
                       r->all->is_filled ? "that it has; collect the next one first" : "before one was collected");
    }
    DT_TRACE_N("rollout", "add to the replay", "round", r->collects);
    replace_trainer_samples(p);
    p->is_drawn = false;
    const uint64_t all = dt_round_list_acted(r->all, p->sample);
    const uint64_t n = all < p->d.capacity ? all : p->d.capacity; /* the last ones, as many as there is room for */
    const dt_status st = write_raw_samples(p, p->added + all - n, p->sample + (all - n), n);
    p->rounds = r->collects;
    p->added += all;
    return st;
}

dt_status dt_replay_add_round(dt_replay *p)
{
    return dt_comm_agree(p->r->stage->d.comm, add_collected_round(p));
}

/* ---- draw -------------------------------------------------------------------------------------------------------- */

static uint64_t multiply_upper_half(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

static uint64_t random_bits(const dt_rng_stream *stream, uint64_t i)
{
    uint32_t w[4];
    dt_rng_stream_block(stream, i, 0, w);
    return (uint64_t)w[0] << 32 | w[1];
}

static void draw_uniformly(dt_replay *p, const dt_rng_stream *stream)
{
    const uint64_t n = dt_replay_size(p), first = p->added - n;
    for (uint64_t i = 0; i < p->d.draw; i++) {
        p->slot[i] = (first + multiply_upper_half(random_bits(stream, i), n)) % p->d.capacity;
        p->weight[i] = 1;
    }
}

/* One of each of `draw` equal parts of the sum (appendix B.2.1); P(i) = p_i^alpha over it, w_i = (N P(i))^-beta over
 * the greatest (section 3.4). */
static void draw_by_priority(dt_replay *p, const dt_rng_stream *stream)
{
    const double all = dt_sum_tree_total(&p->tree), part = all / (double)p->d.draw, n = (double)dt_replay_size(p);
    double most = 0;
    for (uint64_t i = 0; i < p->d.draw; i++) {
        const double u = (double)(random_bits(stream, i) >> 11) * 0x1p-53, at = ((double)i + u) * part;
        p->below[i] = at < all ? at : nextafter(all, 0);
    }
    dt_sum_tree_find(&p->tree, p->below, p->d.draw, p->slot);
    for (uint64_t i = 0; i < p->d.draw; i++) {
        const double w = pow(n * dt_sum_tree_get(&p->tree, p->slot[i]) / all, -p->d.beta);
        p->weight[i] = (float)w;
        most = w > most ? w : most;
    }
    for (uint64_t i = 0; i < p->d.draw; i++) {
        p->weight[i] = (float)((double)p->weight[i] / most);
    }
}

static dt_status check_drawn(const dt_replay *p)
{
    for (uint64_t i = 0; i < p->d.draw && p->crc != NULL; i++) {
        DT_TRY(p->record[i] != NULL ? dt_replay_check_seal(p, p->slot[i]) : DT_OK);
    }
    return DT_OK;
}

static dt_status read_sizes(dt_replay *p)
{
    dt_replay_find_records(p);
    const dt_status whole = check_drawn(p);
    DT_TRY(p->is_in_file && p->ranks > 1 ? dt_comm_agree(p->r->stage->d.comm, whole) : whole);
    for (uint64_t i = 0; i < p->d.draw && p->is_stored; i++) {
        memcpy(p->size + i * p->n_sizes, p->stored_size + p->slot[i] * p->n_sizes, p->n_sizes * sizeof(*p->size));
    }
    if (p->is_stored) {
        return DT_OK;
    }
    memset(p->size, 0, (size_t)p->d.draw * p->n_sizes * sizeof(*p->size));
    for (uint64_t i = 0; i < p->d.draw; i++) {
        if (p->record[i] != NULL) {
            memcpy(p->size + i * p->n_sizes, p->record[i], p->n_sizes * sizeof(*p->size));
        }
    }
    return p->ranks > 1 ? dt_replay_exchange_sizes(p) : DT_OK;
}

/* Statistics as they are now, until the next draw. */
static void freeze_scale(dt_replay *p)
{
    p->is_held = false;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments *m = &p->r->stats.port[i];
        if (m->columns > 0 && m->n > 0) {
            dt_moments_apply(m);
            memcpy(p->held[i], m->shift, m->columns * sizeof(float));
            memcpy(p->held[i] + m->columns, m->scale, m->columns * sizeof(float));
            p->is_held = true;
        }
    }
}

dt_status dt_replay_draw_samples(dt_replay *p)
{
    const dt_stage_desc *s = &p->r->stage->d;
    dt_rng_stream stream;
    if (p->added == 0) {
        return DT_FAIL(DT_EPLUGIN, "a replay cannot draw before anything was added");
    }
    DT_TRACE_N("rollout", "draw from the replay", "draw", p->draws + 1);
    replace_trainer_samples(p);
    const dt_rng_key key = {.seed = s->seed, .phase = (uint32_t)s->index, .op = STREAM_DRAW, .step = p->draws};
    dt_rng_stream_init(&stream, &key);
    if (p->d.alpha > 0) {
        draw_by_priority(p, &stream);
    } else {
        draw_uniformly(p, &stream);
    }
    p->draws++;
    freeze_scale(p);
    DT_TRY(read_sizes(p));
    p->is_drawn = true;
    return DT_OK;
}

/* ---- priorities -------------------------------------------------------------------------------------------------- */

static dt_status check_errors(const dt_replay *p, const float *error, uint64_t n)
{
    uint64_t rows = 0;
    if (p->d.alpha <= 0 || !p->is_drawn) {
        return DT_FAIL(DT_EPLUGIN, "priorities cannot be set in a replay %s",
                       p->d.alpha > 0 ? "of samples that it has not drawn; draw first"
                                      : "and draws uniformly (alpha = 0)");
    }
    for (uint64_t i = 0; i < p->d.draw; i++) {
        rows += (uint64_t)p->size[i * p->n_sizes];
    }
    if (rows != n) {
        return DT_FAIL(DT_EINVAL, "a replay got %llu priorities, but %llu rows were drawn", (unsigned long long)n,
                       (unsigned long long)rows);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(error[i])) {
            return DT_FAIL(DT_EDIVERGED, "the error for the priority of row %llu is %g", (unsigned long long)i,
                           (double)error[i]);
        }
    }
    return DT_OK;
}

dt_status dt_replay_set_priorities(dt_replay *p, const float *error, uint64_t n)
{
    DT_TRY(check_errors(p, error, n));
    for (uint64_t i = 0; i < p->d.draw; i++) {
        double most = 0;
        for (int32_t row = 0; row < p->size[i * p->n_sizes]; row++, error++) {
            most = fabs((double)*error) > most ? fabs((double)*error) : most;
        }
        const double leaf = pow(most + least_priority, p->d.alpha);
        dt_sum_tree_set(&p->tree, p->slot[i], leaf);
        p->most = leaf > p->most ? leaf : p->most;
    }
    return DT_OK;
}

/* ---- as others know it ------------------------------------------------------------------------------------------- */

uint64_t dt_replay_count(const dt_replay *p)
{
    return dt_replay_size(p);
}

uint64_t dt_replay_draw_size(const dt_replay *p)
{
    return p->d.draw;
}

dt_status dt_replay_describe(const dt_replay *p, dt_replay_stats *out)
{
    const uint32_t bytes = out->struct_size < sizeof(*out) ? out->struct_size : sizeof(*out);
    if (!p->is_stored) {
        return DT_FAIL(DT_EPLUGIN, "a replay without stored rollouts cannot describe them");
    }
    memcpy(out, &p->totals, bytes);
    out->struct_size = bytes;
    return DT_OK;
}

uint64_t dt_replay_count_draws(const dt_replay *p)
{
    return p->draws;
}

const dt_samples *dt_rollout_replay_source(const dt_rollout *r)
{
    return r->replay != NULL ? &r->replay->data.source : NULL;
}

/* Of a record with samples of this mean. */
static size_t expected_record_bytes(const dt_replay *p, const double *mean)
{
    int32_t size[DT_REPLAY_MAX_SIZES];
    for (uint32_t k = 0; k < p->n_sizes; k++) {
        size[k] = (int32_t)ceil(mean[k] * (k > 0 && dt_buffer_is_joined(p->r->all) ? 2 : 1));
    }
    return dt_replay_record_bytes(p, size, NULL);
}

void dt_rollout_replay_need(const dt_rollout *r, const double *mean, uint64_t *mapped, uint64_t *resident)
{
    const dt_replay *p = r->replay;
    if (p == NULL) {
        return;
    }
    const double used = (double)expected_record_bytes(p, mean) / (double)p->stride;
    const uint64_t own = (p->d.capacity + p->ranks - 1) / p->ranks, pages = p->stride > 4096;
    if (p->is_in_file) { /* what of it is resident can be released */
        *mapped += p->tree.bytes;
        *resident += p->tree.bytes;
        return;
    }
    *mapped += dt_arena_bytes(p->ring_bytes) + p->tree.bytes;
    *resident += (uint64_t)((double)own * (double)p->stride * (pages ? used : 1)) + p->tree.bytes;
}

void dt_rollout_replay_plan(const dt_rollout *r, const double *mean, dt_replay_need *out)
{
    const dt_replay *p = r->replay;
    *out = (dt_replay_need){0};
    if (p == NULL) {
        return;
    }
    *out = (dt_replay_need){.samples = p->d.capacity,
                            .bytes = (uint64_t)p->ring_bytes * p->ranks,
                            .each = p->stride,
                            .saved = p->d.capacity * expected_record_bytes(p, mean),
                            .is_in_file = p->is_in_file};
}

dt_status dt_rollout_check_room(const dt_rollout *r)
{
    return r != NULL && r->replay != NULL ? check_file_fits(r->replay) : DT_OK;
}

dt_status dt_rollout_allocate_replay(dt_rollout *r)
{
    return r != NULL && r->replay != NULL ? allocate_file(r->replay) : DT_OK;
}

bool dt_rollout_has_replay(const dt_rollout *r)
{
    return r->replay != NULL;
}

bool dt_rollout_has_replay_memory(const dt_rollout *r)
{
    return r->replay != NULL && (r->replay->ring != NULL || r->replay->is_stored);
}

dt_status dt_rollout_prepare_replay(dt_rollout *r)
{
    return r->replay != NULL ? dt_replay_prepare_checkpoint(r->replay) : DT_OK;
}

dt_status dt_rollout_save_replay(const dt_rollout *r, dt_str *state)
{
    return dt_replay_save(r->replay, state);
}

uint64_t dt_rollout_replay_bytes(const dt_rollout *r)
{
    return dt_replay_own_bytes(r->replay);
}

dt_status dt_rollout_write_replay(const dt_rollout *r, dt_status (*put)(void *to, const void *p, size_t bytes),
                                  void *to)
{
    return dt_replay_write_own(r->replay, put, to);
}

dt_status dt_rollout_load_replay(dt_rollout *r, uint32_t version, const dt_rollout_bytes *state,
                                 const dt_rollout_bytes *records, uint32_t n_records)
{
    return dt_replay_load(r->replay, version, state, records, n_records);
}
