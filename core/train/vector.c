/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters as one vector, and losses over all samples: what a phase needs that moves parameters itself. The samples
 * are cut into the shards of a batch that holds all of them, in their order, and summed in the same tree as a step's.
 * On the CPU in f32, also where steps run on a device, in half precision or send halves: differences of gradients need
 * the digits.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/graph/select.h"

#include <math.h>
#include <string.h>

/* One kind of run over all samples: some losses, with the gradient of their sum or without. */
struct dt_pass {
    char *names; /* separated by spaces */
    dt_compiled c;
    dt_samples source; /* without the fields that are not read */
    bool has_gradient;
};

typedef struct place { /* where a worker reads a micro-batch */
    uint64_t *index, *key;
    char *arena;
} place;

struct dt_passes {
    struct dt_pass **pass; /* each stays where it is */
    uint32_t n;
    place *place; /* [threads] */
    uint32_t n_places;
    size_t arena_bytes;
};

/* ---- the vector -------------------------------------------------------------------------------------------------- */

static bool is_in_vector(const dt_trainer *t, uint32_t i)
{
    const dt_param *p = &t->d.params->param[i];
    return t->state.external != NULL ? t->state.external[i] : !p->frozen && !p->is_statistic;
}

uint64_t dt_trainer_vector_size(const dt_trainer *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        if (is_in_vector(t, i)) {
            n += (uint64_t)t->d.params->param[i].count;
        }
    }
    return n;
}

uint64_t dt_trainer_vector_offset(const dt_trainer *t, uint32_t i)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < i; k++) {
        if (is_in_vector(t, k)) {
            at += (uint64_t)t->d.params->param[k].count;
        }
    }
    return is_in_vector(t, i) ? at : UINT64_MAX;
}

static void gather_params(const dt_trainer *t, const float *arena, float *out)
{
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        const dt_param *p = &t->d.params->param[i];
        if (is_in_vector(t, i)) {
            memcpy(out, arena + p->offset, (size_t)p->count * sizeof(*out));
            out += p->count;
        }
    }
}

dt_status dt_trainer_vector_get(dt_trainer *t, float *out)
{
    DT_TRY(dt_trainer_synchronize(t));
    gather_params(t, t->state.params, out);
    return DT_OK;
}

dt_status dt_trainer_vector_set(dt_trainer *t, const float *in)
{
    DT_TRY(dt_trainer_synchronize(t));
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        const dt_param *p = &t->d.params->param[i];
        if (is_in_vector(t, i)) {
            memcpy(t->state.params + p->offset, in, (size_t)p->count * sizeof(*in));
            in += p->count;
        }
    }
    t->state.params_version++;
    t->state.vector_updates++;
    return DT_OK;
}

dt_status dt_trainer_constant_get(dt_trainer *t, uint32_t i, float *out)
{
    const dt_param *p = &t->d.params->param[i];
    DT_TRY(dt_trainer_synchronize(t));
    memcpy(out, t->state.params + p->offset, (size_t)p->count * sizeof(*out));
    return DT_OK;
}

dt_status dt_trainer_constant_set(dt_trainer *t, uint32_t i, const float *in)
{
    const dt_param *p = &t->d.params->param[i];
    DT_TRY(dt_trainer_synchronize(t));
    memcpy(t->state.params + p->offset, in, (size_t)p->count * sizeof(*in));
    t->state.params_version++;
    return DT_OK;
}

/* ---- what is run ------------------------------------------------------------------------------------------------- */

static void pass_destroy(struct dt_pass *p)
{
    if (p != NULL) {
        dt_compiled_fini(&p->c);
        dt_free(p->names);
        dt_free(p);
    }
}

void dt_passes_destroy(struct dt_passes *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        pass_destroy(p->pass[i]);
    }
    if (p->place != NULL) {
        for (uint32_t i = 0; i < p->n_places; i++) {
            dt_free(p->place[i].index);
            dt_free(p->place[i].key);
            dt_arena_unmap(p->place[i].arena, p->arena_bytes);
        }
    }
    dt_free(p->place);
    dt_free(p->pass);
    dt_free(p);
}

static dt_status create_vector_places(const dt_trainer *t, struct dt_passes *p)
{
    const dt_samples *s = t->d.source;
    const uint64_t cap = (uint64_t)s->slice_cap[s->n_symbols];
    p->arena_bytes = dt_samples_slice_bytes(s);
    p->place = dt_alloc_n(t->c.threads, sizeof(*p->place));
    if (p->place == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u readers", t->c.threads);
    }
    p->n_places = t->c.threads;
    for (uint32_t i = 0; i < p->n_places; i++) {
        void *arena = NULL;
        p->place[i].index = dt_alloc_n(cap, sizeof(uint64_t));
        p->place[i].key = dt_alloc_n(cap, sizeof(uint64_t)); /* zeros: nothing is augmented */
        if (p->place[i].index == NULL || p->place[i].key == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u readers", t->c.threads);
        }
        DT_TRY(dt_arena_map(p->arena_bytes, &arena));
        p->place[i].arena = arena;
    }
    return DT_OK;
}

static dt_status get_loss_passes(dt_trainer *t, struct dt_passes **out_p)
{
    if (t->passes == NULL) {
        struct dt_passes *p = dt_alloc(sizeof(*p));
        if (p == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for runs over all samples");
        }
        const dt_status st = create_vector_places(t, p);
        if (st < 0) {
            dt_passes_destroy(p);
            return st;
        }
        t->passes = p;
    }
    *out_p = t->passes;
    return DT_OK;
}

static dt_status compile_pass(dt_trainer *t, const char *const *loss, uint32_t n, struct dt_pass *p)
{
    p->source = *t->d.source;
    DT_TRY(dt_record_graph(t, &p->source, DT_FOR_EVALUATION, NULL, &p->c));
    DT_TRY(dt_graph_select_losses(p->c.graph, loss, n));
    const dt_plan_desc d = {.kernels = DT_KERNELS_CPU,
                            .training = p->has_gradient,
                            .reuse = t->c.reuse,
                            .poison = t->c.poison,
                            .fuse = t->c.fuse,
                            .recompute = t->c.recompute,
                            .cap = p->source.slice_cap};
    DT_TRY(dt_compile_plan(&d, t->c.threads, &p->c));
    if (p->source.is_live) {
        dt_mark_unread_fields(&p->source, p->c.plan);
    }
    return DT_OK;
}

static char *join_names(const char *const *loss, uint32_t n)
{
    dt_str s = {0};
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(&s, "%s%s", i > 0 ? " " : "", loss[i]);
    }
    char *text = dt_strdup(dt_str_text(&s));
    dt_str_fini(&s);
    return text;
}

/* names: taken over. */
static dt_status add_loss_pass(dt_trainer *t, struct dt_passes *all, const char *const *loss, uint32_t n, char *names,
                               bool has_gradient)
{
    struct dt_pass *p = dt_alloc(sizeof(*p));
    struct dt_pass **grown = dt_realloc(all->pass, (all->n + 1) * sizeof(*grown));
    all->pass = grown != NULL ? grown : all->pass;
    if (p == NULL || grown == NULL) {
        dt_free(names);
        dt_free(p);
        return DT_FAIL(DT_ENOMEM, "out of memory for runs over all samples");
    }
    p->names = names;
    p->has_gradient = has_gradient;
    const dt_status st = compile_pass(t, loss, n, p);
    if (st < 0) {
        pass_destroy(p);
        return st;
    }
    all->pass[all->n++] = p;
    return DT_OK;
}

static dt_status find_loss_pass(dt_trainer *t, const char *const *loss, uint32_t n, bool has_gradient,
                                struct dt_pass **out)
{
    struct dt_passes *all = NULL;
    DT_TRY(get_loss_passes(t, &all));
    char *names = join_names(loss, n);
    if (names == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for runs over all samples");
    }
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->pass[i]->has_gradient == has_gradient && strcmp(all->pass[i]->names, names) == 0) {
            dt_free(names);
            *out = all->pass[i];
            return DT_OK;
        }
    }
    DT_TRY(add_loss_pass(t, all, loss, n, names, has_gradient));
    *out = all->pass[all->n - 1];
    return DT_OK;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct run {
    dt_trainer *t;
    struct dt_pass *pass;
    double seed[DT_GRAPH_MAX_LOSSES];
    uint32_t n_losses;
} run;

static dt_status run_pass_shard(const run *r, uint32_t worker, uint32_t shard, float *grad)
{
    dt_trainer *t = r->t;
    const struct dt_pass *p = r->pass;
    const place *at = &t->passes->place[worker];
    const uint64_t end = dt_shard_begin(p->source.count, t->c.shards, shard + 1);
    const dt_kernel_run how = {.seed = t->c.seed, .step = t->state.step, .phase = t->c.phase, .training = 0};
    double *loss = t->scratch.shard_loss[shard - t->workers.shard_begin];
    memset(loss, 0, sizeof(t->scratch.shard_loss[0]));
    if (grad != NULL) {
        memset(grad, 0, t->state.grad_bytes);
    }
    for (uint64_t i = dt_shard_begin(p->source.count, t->c.shards, shard); i < end;) {
        dt_micro_batch s = {.index = at->index};
        const uint64_t cap = (uint64_t)p->source.slice_cap[p->source.n_symbols];
        const uint32_t most = (uint32_t)(end - i < cap ? end - i : cap);
        uint32_t take = 0;
        size_t used = 0;
        for (uint32_t k = 0; k < most; k++) {
            at->index[k] = i + k;
        }
        DT_TRY(dt_samples_cut_micro_batch(&p->source, s.index, most, &take, s.size));
        DT_TRY(dt_samples_read(&p->source, s.index, at->key, take, s.size, at->arena, t->passes->arena_bytes, s.field,
                               &used));
        const dt_exec_feed feed = {.size = s.size,
                                   .field = s.field,
                                   .step_input = p->c.step_input,
                                   .params = t->state.params,
                                   .grads = grad,
                                   .loss_seed = r->seed,
                                   .loss = loss,
                                   .run = &how,
                                   .params_version = t->state.params_version};
        DT_TRY(dt_exec_run(p->c.exec[worker], &feed));
        i += take;
    }
    return DT_OK;
}

static dt_status run_and_sum_shard(void *user, uint32_t worker, uint32_t i)
{
    const run *r = user;
    dt_trainer *t = r->t;
    dt_grad *grad = r->pass->has_gradient ? dt_grad_acquire(t) : NULL;
    DT_TRY(run_pass_shard(r, worker, t->workers.shard_begin + i, grad != NULL ? grad->data : NULL));
    if (grad != NULL) {
        dt_grad_reduce(t, t->workers.shard_begin + i, grad, 0);
    }
    return DT_OK;
}

/* What each loss is divided by: the live size of its symbol in all samples together. */
static dt_status compute_divisors(const dt_trainer *t, const struct dt_pass *p, double *norm)
{
    const dt_samples *s = &p->source;
    const uint64_t cap = (uint64_t)s->slice_cap[s->n_symbols];
    uint64_t *index = t->passes->place[0].index;
    int64_t total[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    for (uint64_t i = 0; i < s->count; i += cap) {
        const uint32_t n = (uint32_t)(s->count - i < cap ? s->count - i : cap);
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
        for (uint32_t k = 0; k < n; k++) {
            index[k] = i + k;
        }
        DT_TRY(s->ops->sizes(s->self, index, n, size));
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            total[k] += size[k];
        }
    }
    total[s->n_symbols] = (int64_t)s->count;
    dt_compute_loss_divisors(s, &p->c, total, norm);
    return DT_OK;
}

/* Sums losses, and gradients where the pass has them, over all samples; values go to value[n_losses]. */
static dt_status run_loss_pass(dt_trainer *t, struct dt_pass *p, double *value)
{
    const dt_graph_loss *loss = NULL;
    run r = {.t = t, .pass = p};
    double norm[DT_GRAPH_MAX_LOSSES];
    r.n_losses = dt_graph_losses(p->c.graph, &loss);
    DT_TRY(dt_trainer_synchronize(t));
    DT_TRY(dt_bind_step_inputs(t, &p->c));
    DT_TRY(compute_divisors(t, p, norm));
    for (uint32_t i = 0; i < r.n_losses; i++) {
        r.seed[i] = 1 / norm[i];
    }
    t->state.params_version++; /* they may have been set since */
    DT_TRY(dt_grads_reset(t, p->has_gradient, DT_HALF_NONE, UINT32_MAX));
    DT_TRY(dt_fetch_shards(t, &p->source));
    /* a rank that failed must report it before the others wait for its sums */
    const dt_status mine = dt_run_shards(t, t->workers.active, run_and_sum_shard, &r);
    DT_TRY(dt_comm_agree(t->d.comm, mine));
    DT_TRY(dt_reduce_losses(t, r.n_losses, value));
    for (uint32_t i = 0; i < r.n_losses; i++) {
        value[i] /= norm[i];
    }
    DT_TRY(p->has_gradient ? dt_reduce_gradient(t, false) : DT_OK);
    return p->has_gradient ? dt_trainer_gather_gradient(t) : DT_OK;
}

dt_status dt_trainer_compile_losses(dt_trainer *t, const char *const *loss, uint32_t n, bool has_gradient)
{
    struct dt_pass *unused = NULL;
    DT_TRY(has_gradient ? dt_grads_create(t) : DT_OK);
    return find_loss_pass(t, loss, n, has_gradient, &unused);
}

void dt_passes_arenas_get(const dt_trainer *t, const double *mean, dt_trainer_memory *mapped,
                          dt_trainer_memory *resident)
{
    const struct dt_passes *all = t->passes;
    if (all != NULL) {
        for (uint32_t i = 0; i < all->n; i++) {
            const struct dt_pass *p = all->pass[i];
            uint64_t most = 0, likely = 0;
            dt_compute_activation_bytes(&p->c, mean, p->source.count / t->c.shards + 1, &most, &likely);
            mapped->evaluation += most * p->c.n_exec;
            resident->evaluation += likely * (t->workers.active < p->c.n_exec ? t->workers.active : p->c.n_exec);
        }
    }
    if (all != NULL) {
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
        dt_trainer_typical_sizes(t->d.source, mean, t->d.source->count / t->c.shards + 1, size);
        mapped->inputs += dt_arena_bytes(all->arena_bytes) * all->n_places;
        const uint64_t samples = (uint64_t)size[t->d.source->n_symbols];
        resident->inputs +=
            dt_arena_touched(all->arena_bytes, dt_compute_input_bytes(t->d.source, mean, samples)) * t->workers.active;
    }
}

dt_status dt_trainer_gradient(dt_trainer *t, const char *loss, float *out, double *value_p)
{
    struct dt_pass *p = NULL;
    double value[DT_GRAPH_MAX_LOSSES];
    DT_TRY(find_loss_pass(t, &loss, 1, true, &p));
    DT_TRY(run_loss_pass(t, p, value));
    gather_params(t, t->scratch.gradient, out);
    *value_p = value[0];
    return DT_OK;
}

dt_status dt_trainer_losses(dt_trainer *t, const char *const *loss, uint32_t n, double *out)
{
    struct dt_pass *p = NULL;
    double value[DT_GRAPH_MAX_LOSSES];
    if (n == 0 || n > DT_GRAPH_MAX_LOSSES) {
        return DT_FAIL(DT_EINVAL, "%u losses are requested; 1 to %d are possible", n, DT_GRAPH_MAX_LOSSES);
    }
    DT_TRY(find_loss_pass(t, loss, n, false, &p));
    DT_TRY(run_loss_pass(t, p, value));
    memcpy(out, value, n * sizeof(*out));
    return DT_OK;
}
