/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/vector.h"

#include "base/call_watch.h"
#include "base/clock.h"
#include "base/plugin_call.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "rl/env/batch.h"
#include "rl/env/check.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SPINS = 2000, GROUPS = 2 }; /* spins: about 5 us, shorter than a wake-up */
enum { LINE = 64 };                /* bytes that processors hand over together: instances share none that they write */

typedef struct group {
    uint32_t begin, end, chunk; /* instances taken at once */
    atomic_uint next;           /* instance to take; end: none left */
    atomic_uint left;           /* instances not yet stepped */
    uint32_t failed_at;         /* lowest instance that failed, end: none */
    dt_error error;             /* its reason; both under the lock */
} group;

struct dt_vector {
    dt_vector_desc d;
    dt_instance *instance;
    char *counted; /* [n, counted_bytes] what instances earned, and then which agents act in the step to come */
    size_t counted_bytes, acted_at;
    char *record; /* [n] */
    char *kept;   /* [n] the same before a step; NULL: no kind is restarted */
    size_t record_bytes;
    group *group;
    uint32_t n_groups;
    bool is_async;
    dt_call_slot *caller; /* of the thread that made it, for which the others work; NULL: it is not watched */

    /* where the kind has step_many, [n]: the instances of a chunk that are stepped in one call */
    void **stepped;
    char **stepped_record;
    dt_status *result;
    char *batch;
    size_t batch_bytes;

    pthread_t *thread;
    uint32_t n_threads;
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    atomic_uint n_sleeping, n_waiting; /* changed under the lock */
    atomic_bool quit;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void *worker_main(void *arg);

static bool keeps_records(const dt_vector_desc *d)
{
    for (uint32_t i = 0; i < d->n_kinds; i++) {
        if (d->kind[i].restart != NULL) {
            return true;
        }
    }
    return false;
}

static bool steps_in_batches(const dt_vector_desc *d)
{
    return d->n_kinds == 1 && d->kind->async == NULL && d->kind->ops->step_many != NULL && d->n > 1;
}

size_t dt_vector_bytes(const dt_vector_desc *d, uint32_t *arenas_p)
{
    *arenas_p = 1 + keeps_records(d) + steps_in_batches(d);
    return (d->n > 0 ? d->n : 1) * d->layout->record_bytes;
}

static dt_status allocate_batch(dt_vector *v, uint32_t n)
{
    void *batch = NULL;
    v->stepped = dt_alloc_n(n, sizeof(*v->stepped));
    v->stepped_record = dt_alloc_n(n, sizeof(*v->stepped_record));
    v->result = dt_alloc_n(n, sizeof(*v->result));
    if (v->stepped == NULL || v->stepped_record == NULL || v->result == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", v->d.n);
    }
    v->batch_bytes = v->record_bytes;
    DT_TRY(dt_arena_map(v->batch_bytes, &batch));
    v->batch = batch;
    return DT_OK;
}

static dt_status allocate_vector(dt_vector *v)
{
    const dt_env_spec *s = &v->d.layout->spec;
    const uint32_t n = v->d.n > 0 ? v->d.n : 1;
    void *record = NULL;
    v->instance = dt_alloc_n(n, sizeof(*v->instance));
    v->acted_at = (2 + s->n_costs + s->n_metrics) * sizeof(double);
    v->counted_bytes = (v->acted_at + s->n_agents + LINE - 1) / LINE * LINE;
    v->counted = dt_alloc_n(n, v->counted_bytes);
    v->group = dt_alloc_n(v->d.groups > GROUPS ? v->d.groups : GROUPS, sizeof(*v->group));
    v->thread = dt_alloc_n(v->d.workers + 1, sizeof(*v->thread));
    if (v->instance == NULL || v->counted == NULL || v->group == NULL || v->thread == NULL ||
        !dt_mul_size(n, v->d.layout->record_bytes, &v->record_bytes)) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", v->d.n);
    }
    DT_TRY(dt_arena_map(v->record_bytes, &record));
    v->record = record;
    const bool keeps = keeps_records(&v->d);
    DT_TRY(keeps ? dt_arena_map(v->record_bytes, &record) : DT_OK);
    v->kept = keeps ? record : NULL;
    return steps_in_batches(&v->d) ? allocate_batch(v, n) : DT_OK;
}

static void make_groups(dt_vector *v)
{
    const uint32_t n = v->d.n, threads = v->d.workers + 1;
    const uint32_t least = v->d.workers > 0 ? GROUPS : 1, n_wanted = v->d.groups > least ? v->d.groups : least;
    v->n_groups = n_wanted < n ? n_wanted : n > 0 ? n : 1;
    for (uint32_t g = 0; g < v->n_groups; g++) {
        group *p = &v->group[g];
        p->begin = n * g / v->n_groups;
        p->end = n * (g + 1) / v->n_groups;
        p->chunk = (p->end - p->begin) / (2 * threads) + 1;
        p->failed_at = p->end;
        atomic_store(&p->next, p->end);
    }
}

static dt_status start_workers(dt_vector *v)
{
    for (uint32_t i = 0; i < v->d.workers; i++) {
        if (pthread_create(&v->thread[i], NULL, worker_main, v) != 0) {
            return DT_FAIL(DT_EUNSUPPORTED,
                           "the system refused to start thread %u of %u for environments; lower "
                           "env.workers",
                           i, v->d.workers);
        }
        v->n_threads++;
    }
    return DT_OK;
}

dt_status dt_vector_create(const dt_vector_desc *d, dt_vector **out_p)
{
    dt_vector *v = dt_alloc(sizeof(*v));
    if (v == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", d->n);
    }
    v->d = *d;
    v->is_async = d->kind->async != NULL;
    v->caller = dt_call_here;
    v->d.workers = v->is_async ? 0 : d->workers;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->go, NULL);
    pthread_cond_init(&v->done, NULL);
    dt_status st = allocate_vector(v);
    for (uint32_t i = 0; i < d->n && st == DT_OK; i++) {
        dt_instance *x = &v->instance[i];
        x->self = d->self[i];
        x->kind = &d->kind[(d->first + i) % d->n_kinds];
        x->record = v->record + i * d->layout->record_bytes;
        x->kept = v->kept != NULL ? v->kept + i * d->layout->record_bytes : NULL;
        x->number = d->first + i;
        x->is_over = true;
        x->earned = (double *)(void *)(v->counted + i * v->counted_bytes);
        dt_layout_get_io(d->layout, x->record, x->obs, &x->io);
    }
    if (st == DT_OK) {
        make_groups(v);
        st = start_workers(v);
    }
    if (st < 0) {
        dt_vector_destroy(v);
        return st;
    }
    *out_p = v;
    return DT_OK;
}

void dt_vector_destroy(dt_vector *v)
{
    if (v == NULL) {
        return;
    }
    atomic_store(&v->quit, true);
    pthread_mutex_lock(&v->lock);
    pthread_cond_broadcast(&v->go);
    pthread_mutex_unlock(&v->lock);
    for (uint32_t i = 0; i < v->n_threads; i++) {
        pthread_join(v->thread[i], NULL);
    }
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->go);
    pthread_cond_destroy(&v->done);
    dt_arena_unmap(v->batch, v->batch_bytes);
    dt_free(v->result);
    dt_free(v->stepped_record);
    dt_free(v->stepped);
    dt_arena_unmap(v->kept, v->record_bytes);
    dt_arena_unmap(v->record, v->record_bytes);
    dt_free(v->thread);
    dt_free(v->group);
    dt_free(v->counted);
    dt_free(v->instance);
    dt_free(v);
}

uint32_t dt_vector_size(const dt_vector *v)
{
    return v->d.n;
}

dt_instance *dt_vector_instance(dt_vector *v, uint32_t i)
{
    return &v->instance[i];
}

uint32_t dt_vector_count_groups(const dt_vector *v)
{
    return v->n_groups;
}

void dt_vector_group_range(const dt_vector *v, uint32_t g, uint32_t *begin_p, uint32_t *end_p)
{
    *begin_p = v->group[g].begin;
    *end_p = v->group[g].end;
}

/* ---- one step of one instance ------------------------------------------------------------------------------------ */

static void clear_outputs(const dt_vector *v, dt_instance *x)
{
    const dt_layout *l = v->d.layout;
    memset(x->record, 0, l->out_bytes);
    memset(x->record + l->mask, 1, (size_t)l->spec.n_agents * l->n_choices);
}

/* An instance that reports that it is broken, created again where it may be: DT_OK. */
static dt_status restart_instance(dt_instance *x, dt_status st)
{
    const dt_vector_restart *r = x->kind->restart;
    while (st == DT_EBROKEN || st == DT_EIO) {
        if (x->restarts == r->most) {
            return DT_CONTEXT(st, "it was restarted %u times before, which is all env.restarts allows", x->restarts);
        }
        x->restarts++;
        atomic_fetch_add(r->n_restarts, 1);
        atomic_fetch_add(r->n_lost, 1);
        dt_log(DT_LOG_WARN,
               "environment %s, instance %u: %s. Its episode counts as truncated, a new instance begins the next one "
               "(restart %u of %u); from now on the run is not reproducible",
               x->kind->id, x->number, dt_error_text(), x->restarts, r->most);
        st = r->create(r->user, x->number, x->self);
    }
    return st;
}

static bool is_broken(const dt_instance *x, dt_status st)
{
    return (st == DT_EBROKEN || st == DT_EIO) && x->kind->restart != NULL;
}

static dt_env_io reset_io(const dt_vector *v, const dt_instance *x)
{
    dt_env_io io = x->io;
    io.act_i = NULL;
    io.act_f = NULL;
    io.episode = v->d.passes_episode ? x->episode : 0;
    return io;
}

static void begin_reset(dt_vector *v, dt_instance *x)
{
    const dt_layout *l = v->d.layout;
    x->episode = x->episodes++;
    x->episode_step = 0;
    x->is_learnt_from = false;
    memset(x->earned, 0, (2 + l->spec.n_costs + l->spec.n_metrics) * sizeof(double));
    if (x->kind->async != NULL) {
        const dt_env_io io = reset_io(v, x);
        x->kind->async->begin_reset(x->self, &io, v->d.seed(v->d.user, x->number, x->episode));
    }
}

static dt_status call_reset(dt_vector *v, dt_instance *x)
{
    const dt_env_io io = reset_io(v, x);
    if (x->kind->async != NULL) {
        return x->kind->async->finish(x->self, &io);
    }
    const uint64_t seed = v->d.seed(v->d.user, x->number, x->episode);
    for (;;) {
        dt_status st = DT_OK;
        clear_outputs(v, x);
        DT_CALL_PLUGIN(st, x->kind->id, "reset", x->kind->ops->reset(x->self, &io, seed));
        if (!is_broken(x, st)) {
            return st;
        }
        DT_TRY(restart_instance(x, st));
    }
}

static dt_status finish_reset(dt_vector *v, dt_instance *x)
{
    const dt_layout *l = v->d.layout;
    dt_status st = call_reset(v, x);
    if (st != DT_OK) {
        return st < 0 ? st : DT_FAIL(DT_EPLUGIN, "reset returned %d", (int)st);
    }
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    DT_CALL_PLUGIN(st, x->kind->id, "spec", x->kind->ops->spec(x->self, &spec));
    DT_TRY_PLUGIN(st, "spec");
    DT_TRY(dt_layout_compare(l, &spec));
    DT_TRY(dt_check_record(l, x->record, NULL, false));
    x->is_over = false;
    return DT_OK;
}

static void add_earned_rewards(const dt_vector *v, dt_instance *x, const uint8_t *acted)
{
    const dt_env_spec *s = &v->d.layout->spec;
    x->earned[1] += 1;
    for (uint32_t a = 0; a < s->n_agents; a++) {
        if (acted[a] != 0 && (v->d.is_opponent == NULL || v->d.is_opponent[a] == 0)) {
            x->is_learnt_from = true;
            x->earned[0] += (double)x->io.reward[a];
            for (uint32_t k = 0; k < s->n_costs; k++) {
                x->earned[2 + k] += (double)x->io.cost[a * s->n_costs + k];
            }
        }
    }
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        x->earned[2 + s->n_costs + m] = x->io.metric[m];
    }
}

/* The episode ends here, whatever the environment thinks of it: as if time were over. */
static void truncate_episode(const dt_vector *v, dt_instance *x, const uint8_t *acted)
{
    const dt_env_spec *s = &v->d.layout->spec;
    for (uint32_t a = 0; a < s->n_agents; a++) {
        x->io.truncated[a] = x->io.truncated[a] != 0 || (acted[a] != 0 && x->io.terminated[a] == 0);
    }
    memset(x->io.alive, 0, s->n_agents);
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        x->io.metric[m] = NAN;
    }
    x->is_over = x->has_ended = x->is_cut = true;
    if (v->d.n_cut != NULL && atomic_fetch_add(v->d.n_cut, 1) == 0) {
        dt_log(DT_LOG_WARN,
               "environment %s, instance %u: episode %llu continues past step %u, the last one by %s; it is truncated "
               "there, and so are others from now on",
               x->kind->id, x->number, (unsigned long long)x->episode, x->kind->max_steps, v->d.max_steps_from);
    }
}

static void begin_step(dt_vector *v, dt_instance *x, uint8_t *acted)
{
    memcpy(acted, x->io.alive, v->d.layout->spec.n_agents);
    x->episode_step++;
    if (x->kept != NULL) {
        memcpy(x->kept, x->record, v->d.layout->record_bytes);
    }
    if (x->kind->async != NULL) {
        x->kind->async->begin_step(x->self, &x->io);
    }
}

static dt_status call_step(const dt_vector *v, dt_instance *x)
{
    if (x->kind->async != NULL) {
        return x->kind->async->finish(x->self, &x->io);
    }
    const dt_layout *l = v->d.layout;
    dt_status st = x->result;
    if (x->is_stepped) {
        x->is_stepped = false;
    } else {
        clear_outputs(v, x);
        DT_CALL_PLUGIN(st, x->kind->id, "step", x->kind->ops->step(x->self, &x->io));
    }
    if (!is_broken(x, st)) {
        return st;
    }
    DT_TRY(restart_instance(x, st));
    dt_truncate_record(l, x->kept, x->record);
    return DT_DONE;
}

static dt_status finish_step(dt_vector *v, dt_instance *x, const uint8_t *acted)
{
    const dt_status st = call_step(v, x);
    if (st != DT_OK && st != DT_DONE) {
        return st < 0 ? st : DT_FAIL(DT_EPLUGIN, "step returned %d", (int)st);
    }
    x->is_over = st == DT_DONE;
    x->has_ended = x->is_over;
    if (x->kind->async == NULL) {
        DT_TRY(dt_check_record(v->d.layout, x->record, acted, x->is_over));
    }
    if (!x->is_over && x->kind->max_steps > 0 && x->episode_step >= x->kind->max_steps) {
        truncate_episode(v, x, acted);
    }
    add_earned_rewards(v, x, acted);
    return DT_OK;
}

static uint8_t *acted_flags(const dt_vector *v, uint32_t i)
{
    return (uint8_t *)v->counted + i * v->counted_bytes + v->acted_at;
}

static void begin_instance(dt_vector *v, uint32_t i)
{
    dt_instance *x = &v->instance[i];
    x->has_ended = x->is_cut = false;
    if (x->is_idle || x->is_begun) {
        return;
    }
    x->is_begun = true;
    if (x->is_over) {
        begin_reset(v, x);
    } else {
        begin_step(v, x, acted_flags(v, i));
    }
}

static dt_status finish_instance(dt_vector *v, uint32_t i)
{
    dt_instance *x = &v->instance[i];
    const bool is_reset = x->is_over;
    if (!x->is_begun) {
        return DT_OK;
    }
    x->is_begun = false;
    const dt_status st = is_reset ? finish_reset(v, x) : finish_step(v, x, acted_flags(v, i));
    if (st >= 0) {
        return DT_OK;
    }
    if (is_reset) {
        return DT_CONTEXT(st, "environment %s, instance %u, reset of episode %llu", x->kind->id, x->number,
                          (unsigned long long)x->episode);
    }
    return DT_CONTEXT(st, "environment %s, instance %u, episode %llu, step %llu", x->kind->id, x->number,
                      (unsigned long long)x->episode, (unsigned long long)x->episode_step);
}

/* Calls of instances that run elsewhere are on their way. */
static void flush_calls(dt_vector *v, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        const dt_instance *x = &v->instance[i];
        if (x->is_begun && x->kind->async != NULL) {
            x->kind->async->flush(x->self);
        }
    }
}

dt_status dt_vector_step_instance(dt_vector *v, uint32_t i)
{
    begin_instance(v, i);
    flush_calls(v, i, i + 1);
    return finish_instance(v, i);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void record_error(dt_vector *v, group *g, uint32_t i, dt_status st)
{
    pthread_mutex_lock(&v->lock);
    if (i < g->failed_at) {
        g->failed_at = i;
        dt_error_save(&g->error, st);
    }
    pthread_mutex_unlock(&v->lock);
}

/* Those of a chunk that are stepped, and not reset, in one call. */
static void step_batch(dt_vector *v, uint32_t begin, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = begin; i < end; i++) {
        dt_instance *x = &v->instance[i];
        begin_instance(v, i);
        x->is_stepped = x->is_begun && !x->is_over;
        if (x->is_stepped) {
            v->stepped[begin + n] = x->self;
            v->stepped_record[begin + n++] = x->record;
        }
    }
    if (n == 0) {
        return;
    }
    dt_batch_step(v->d.kind->id, v->d.layout, v->d.kind->ops, n, v->stepped + begin, v->stepped_record + begin,
                  v->batch + begin * v->d.layout->record_bytes, v->result + begin);
    for (uint32_t i = begin, k = begin; i < end; i++) {
        if (v->instance[i].is_stepped) {
            v->instance[i].result = v->result[k++];
        }
    }
}

/* Steps some instances of a group; false when none are left to take. */
static bool step_chunk(dt_vector *v, group *g)
{
    if (atomic_load_explicit(&g->next, memory_order_relaxed) >= g->end) {
        return false;
    }
    const uint32_t begin = atomic_fetch_add(&g->next, g->chunk);
    if (begin >= g->end) {
        return false;
    }
    const uint32_t end = g->end - begin < g->chunk ? g->end : begin + g->chunk;
    DT_TRACE_N("env", "environments", "instances", end - begin);
    dt_call_pulse(); /* instances in processes, too */
    const double from = dt_clock_s();
    if (v->batch != NULL && end - begin > 1) {
        dt_call_instances_set(v->instance[begin].number, end - begin);
        step_batch(v, begin, end);
    }
    for (uint32_t i = begin; i < end; i++) {
        dt_call_instances_set(v->instance[i].number, 1);
        begin_instance(v, i); /* unless that, or post, did */
        const dt_status st = finish_instance(v, i);
        if (st < 0) {
            record_error(v, g, i, st);
        }
    }
    dt_call_instances_set(0, 0);
    v->instance[begin].env_s += dt_clock_s() - from;
    if (atomic_fetch_sub(&g->left, end - begin) == end - begin && atomic_load(&v->n_waiting) > 0) {
        pthread_mutex_lock(&v->lock);
        pthread_cond_signal(&v->done);
        pthread_mutex_unlock(&v->lock);
    }
    return true;
}

static bool step_any_group(dt_vector *v)
{
    for (uint32_t g = 0; g < v->n_groups; g++) {
        if (step_chunk(v, &v->group[g])) {
            return true;
        }
    }
    return false;
}

static bool has_posted_work(const dt_vector *v)
{
    for (uint32_t g = 0; g < v->n_groups; g++) {
        if (atomic_load(&v->group[g].next) < v->group[g].end) {
            return true;
        }
    }
    return atomic_load(&v->quit);
}

static void *worker_main(void *arg)
{
    dt_vector *v = arg;
    dt_call_slot calls = {.helper = NULL};
    dt_trace_thread("environments", 0);
    dt_call_help_begin(&calls, v->caller);
    while (!atomic_load(&v->quit)) {
        bool found = step_any_group(v);
        for (int i = 0; i < SPINS && !found; i++) {
            found = has_posted_work(v);
        }
        if (!found) {
            pthread_mutex_lock(&v->lock);
            atomic_fetch_add(&v->n_sleeping, 1);
            while (!has_posted_work(v)) {
                pthread_cond_wait(&v->go, &v->lock);
            }
            atomic_fetch_sub(&v->n_sleeping, 1);
            pthread_mutex_unlock(&v->lock);
        }
    }
    dt_call_help_end(v->caller);
    return NULL;
}

/* A thread that takes an instance sees what was written before: next is stored last, and taken from. A worker that goes
 * to sleep counts itself before it looks for work, which is stored before sleepers are counted: one sees the other. So
 * do those that wait. */
void dt_vector_begin_step(dt_vector *v, uint32_t g)
{
    group *p = &v->group[g];
    p->failed_at = p->end;
    if (v->is_async) {
        for (uint32_t i = p->begin; i < p->end; i++) {
            begin_instance(v, i);
        }
        flush_calls(v, p->begin, p->end);
    }
    atomic_store(&p->left, p->end - p->begin);
    atomic_store(&p->next, p->begin);
    if (atomic_load(&v->n_sleeping) > 0) {
        pthread_mutex_lock(&v->lock);
        pthread_cond_broadcast(&v->go);
        pthread_mutex_unlock(&v->lock);
    }
}

dt_status dt_vector_wait(dt_vector *v, uint32_t g)
{
    group *p = &v->group[g];
    while (step_chunk(v, p)) {
    }
    for (int i = 0; i < SPINS && atomic_load(&p->left) > 0; i++) {
    }
    if (atomic_load(&p->left) > 0) {
        pthread_mutex_lock(&v->lock);
        atomic_fetch_add(&v->n_waiting, 1);
        while (atomic_load(&p->left) > 0) {
            pthread_cond_wait(&v->done, &v->lock);
        }
        atomic_fetch_sub(&v->n_waiting, 1);
        pthread_mutex_unlock(&v->lock);
    }
    return p->failed_at < p->end ? dt_error_restore(&p->error) : DT_OK;
}

void dt_vector_drain(dt_vector *v, uint32_t begin, uint32_t end)
{
    for (uint32_t g = begin; g < end; g++) {
        const dt_status st = dt_vector_wait(v, g);
        (void)st; /* another error is reported */
    }
}

dt_status dt_vector_step(dt_vector *v)
{
    dt_status st = DT_OK;
    for (uint32_t g = 0; g < v->n_groups; g++) {
        dt_vector_begin_step(v, g);
    }
    for (uint32_t g = v->n_groups; g-- > 0;) { /* the first group's reason is reported last, and kept */
        const dt_status mine = dt_vector_wait(v, g);
        st = mine < 0 ? mine : st;
    }
    return st;
}
