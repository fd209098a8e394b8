/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps per second of an environment that computes nothing, without a policy: what the host itself costs per step.
 * In threads, rounds of all instances that threads share (env.workers) and one thread per group (the training threads);
 * in worker processes, rounds of all instances.
 *
 *   bench_env_speed [instances [seconds [us]]]
 *
 * us: what a step computes, in microseconds of a processor (0: nothing). Each row has the fastest and the median of
 * many windows: shared machines change speed from second to second.
 */
#include <config.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "dtrain/helpers.h"
#include "plugin/service/env_worker.h"
#include "rl/env/process.h"
#include "rl/env/vector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WINDOWS = 20000, MAX_THREADS = 16, EPISODE = 200 };
#define WORK_VARIABLE "DTRAIN_BENCH_WORK" /* worker processes read it */

/* ---- the environment --------------------------------------------------------------------------------------------- */

typedef struct empty {
    int32_t step;
} empty;

static long work; /* multiplications of a step, one after another */

static float compute(float x, long n)
{
    for (long i = 0; i < n; i++) {
        x = x * 0.999f + 0.001f;
    }
    return x;
}

/* Multiplications of a microsecond: of the fastest of many tries, in which no other process ran. */
static double work_per_us(void)
{
    enum { TRIES = 200, EACH = 20000 };
    static volatile float x = 1; /* volatile: nothing is moved over the clock */
    double best = 1;
    for (int i = 0; i < TRIES; i++) {
        const double from = dt_clock_s();
        x = compute(x, EACH);
        const double took = dt_clock_s() - from;
        best = took < best ? took : best;
    }
    return EACH / (best * 1e6);
}

static dt_status empty_create(void *self, const dt_host *h, const void *config)
{
    return DT_OK;
}

static dt_status empty_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 4", DT_F32, 0}};
    static const int32_t choices[] = {2};
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = EPISODE;
    return DT_OK;
}

static dt_status empty_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    ((empty *)self)->step = 0;
    io->alive[0] = 1;
    return DT_OK;
}

static dt_status step_at(empty *s, const dt_env_io *io, uint32_t i)
{
    const bool is_over = ++s->step == EPISODE;
    ((float *)io->obs[0])[4 * (size_t)i] = compute((float)s->step, work);
    io->reward[i] = (float)io->act_i[i];
    io->truncated[i] = is_over;
    io->alive[i] = !is_over;
    return is_over ? DT_DONE : DT_OK;
}

static dt_status empty_step(void *self, const dt_env_io *io)
{
    return step_at(self, io, 0);
}

static dt_status empty_step_many(void *const *self, uint32_t n, const dt_env_io *io, dt_status *status)
{
    for (uint32_t i = 0; i < n; i++) {
        status[i] = step_at(self[i], io, i);
    }
    return DT_OK;
}

static void empty_destroy(void *self) {}

DT_ENV_DEFINE(empty_env, "empty", "computes nothing", "none", empty, empty, NULL,
              DT_OPS(DT_SET(create, empty_create), DT_SET(spec, empty_spec), DT_SET(reset, empty_reset),
                     DT_SET(step, empty_step), DT_SET(destroy, empty_destroy)),
              DT_SET(flags, DT_COMP_DETERMINISTIC));
DT_ENV_DEFINE(many_env, "many", "computes nothing, many instances in a call", "none", empty, empty, NULL,
              DT_OPS(DT_SET(create, empty_create), DT_SET(spec, empty_spec), DT_SET(reset, empty_reset),
                     DT_SET(step, empty_step), DT_SET(destroy, empty_destroy), DT_SET(step_many, empty_step_many)),
              DT_SET(flags, DT_COMP_DETERMINISTIC));
static const dt_component *const components[] = {&empty_env, &many_env};
static const dt_plugin plugin = {DT_PLUGIN_PREFIX,        .name = "empty",   .version = "1",          .vendor = "bench",
                                 .license = "Apache-2.0", .n_components = 2, .components = components};

/* ---- windows ----------------------------------------------------------------------------------------------------- */

typedef struct bench {
    dt_layout layout;
    dt_vector_kind kind;
    void **self;
    uint32_t n;
    double seconds;
    atomic_uint n_restarts, n_lost;
} bench;

static uint64_t seed_of(void *user, uint32_t number, uint64_t episode)
{
    return number + episode;
}

static void must(dt_status st)
{
    if (st < 0) {
        fprintf(stderr, "%s\n", dt_error_text());
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *how, uint32_t n, double *speed, int windows)
{
    qsort(speed, (size_t)windows, sizeof(*speed), compare);
    printf("%-34s %6u instances  %7.3f M steps/s at best  %7.3f M in the median of %d\n", how, n,
           speed[windows - 1] / 1e6, speed[windows / 2] / 1e6, windows);
    fflush(stdout);
}

static dt_vector *make_vector(bench *b, uint32_t workers, uint32_t groups)
{
    const dt_vector_desc d = {.kind = &b->kind,
                              .n_kinds = 1,
                              .layout = &b->layout,
                              .self = b->self,
                              .n = b->n,
                              .workers = workers,
                              .groups = groups,
                              .seed = seed_of};
    dt_vector *v = NULL;
    must(dt_vector_create(&d, &v));
    must(dt_vector_step(v));
    return v;
}

/* Rounds of all instances. */
static void measure_rounds(bench *b, const char *how, uint32_t workers)
{
    static double speed[MAX_WINDOWS];
    int windows = 0;
    dt_vector *v = make_vector(b, workers, 2);
    const int rounds = work > 0 ? 1 : (int)(4000 / b->n) + 1;
    const double begin = dt_clock_s();
    while (windows < MAX_WINDOWS && dt_clock_s() < begin + b->seconds) {
        const double from = dt_clock_s();
        for (int i = 0; i < rounds; i++) {
            must(dt_vector_step(v));
        }
        speed[windows++] = rounds * (double)b->n / (dt_clock_s() - from);
    }
    dt_vector_destroy(v);
    print_row(how, b->n, speed, windows);
}

typedef struct track {
    dt_vector *v;
    uint32_t group;
    int rounds;
    pthread_t thread;
} track;

static void *run_track(void *arg)
{
    const track *t = arg;
    for (int i = 0; i < t->rounds; i++) {
        dt_vector_begin_step(t->v, t->group);
        must(dt_vector_wait(t->v, t->group));
    }
    return NULL;
}

/* A thread for each group, as training threads step theirs. */
static void measure_tracks(bench *b, const char *how, uint32_t threads)
{
    static double speed[MAX_WINDOWS];
    int windows = 0;
    dt_vector *v = make_vector(b, 0, threads);
    track t[MAX_THREADS];
    const int rounds = (int)((work > 0 ? 10000 : 100000) / b->n) + 1;
    const double begin = dt_clock_s();
    while (windows < MAX_WINDOWS && dt_clock_s() < begin + b->seconds) {
        const double from = dt_clock_s();
        for (uint32_t i = 0; i < threads; i++) {
            t[i] = (track){.v = v, .group = i, .rounds = rounds};
            if (pthread_create(&t[i].thread, NULL, run_track, &t[i]) != 0) {
                exit(1);
            }
        }
        for (uint32_t i = 0; i < threads; i++) {
            pthread_join(t[i].thread, NULL);
        }
        speed[windows++] = rounds * (double)b->n / (dt_clock_s() - from);
    }
    dt_vector_destroy(v);
    print_row(how, b->n, speed, windows);
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static void in_threads(bench *b, const dt_env_ops *ops, const char *how)
{
    printf("%s\n", how);
    for (uint32_t i = 0; i < b->n; i++) {
        b->self[i] = dt_alloc(sizeof(empty));
    }
    b->kind = (dt_vector_kind){.id = "empty", .ops = ops, .max_steps = EPISODE};
    measure_rounds(b, "rounds, 1 thread", 0);
    measure_rounds(b, "rounds, 2 threads", 1);
    measure_tracks(b, "own groups, 1 thread", 1);
    measure_tracks(b, "own groups, 2 threads", 2);
    for (uint32_t i = 0; i < b->n; i++) {
        dt_free(b->self[i]);
    }
}

static void in_processes(bench *b, bool many, uint32_t workers)
{
    static const char requests[2][32] = {"\0empty\0"
                                         "0\0"
                                         "0",
                                         "\0many\0"
                                         "0\0"
                                         "0"};
    const dt_process_desc d = {.id = "empty",
                               .request = requests[many],
                               .request_bytes = many ? 10 : 11,
                               .places = (b->n + workers - 1) / workers,
                               .timeout_s = 60,
                               .startup_s = 60,
                               .ring_bytes = UINT32_MAX,
                               .n_restarts = &b->n_restarts,
                               .n_lost = &b->n_lost,
                               .is_deterministic = true};
    char how[64];
    snprintf(how, sizeof(how), "%u worker process%s", workers, workers == 1 ? "" : "es");
    for (uint32_t i = 0; i < b->n; i++) {
        dt_process_instance *x = NULL;
        if (i < workers) {
            must(dt_process_start(&d, &x));
            must(dt_process_receive_spec(x));
            must(dt_process_attach(x, &b->layout));
        } else {
            x = dt_process_begin_instance(b->self[i - workers]);
            must(dt_process_finish_instance(x));
        }
        b->self[i] = x;
    }
    b->kind = (dt_vector_kind){.id = "empty", .ops = &dt_process_ops, .async = &dt_process_async, .max_steps = EPISODE};
    measure_rounds(b, how, 0);
    for (uint32_t i = 0; i < b->n; i++) {
        dt_process_ops.destroy(b->self[i]);
    }
}

int main(int argc, char **argv)
{
    const char *inherited = getenv(WORK_VARIABLE);
    if (argc == 2 && strcmp(argv[1], DT_PROCESS_VERB) == 0) {
        work = inherited != NULL ? atol(inherited) : 0;
        return dt_env_run_worker(&plugin);
    }
    static bench b;
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    b.n = argc > 1 ? (uint32_t)atoi(argv[1]) : 64;
    b.seconds = argc > 2 ? atof(argv[2]) : 2;
    if (argc > 3) {
        char text[32];
        work = (long)(atof(argv[3]) * work_per_us());
        snprintf(text, sizeof(text), "%ld", work);
        setenv(WORK_VARIABLE, text, 1);
    }
    must(empty_spec(NULL, &spec));
    must(dt_layout_init(&b.layout, "empty", &spec));
    b.self = dt_alloc_n(b.n, sizeof(*b.self));
    in_threads(&b, &empty_env_ops_, "step");
    in_processes(&b, false, 1);
    in_processes(&b, false, 2);
    if (work == 0) {
        in_processes(&b, false, b.n);
    }
    in_threads(&b, &many_env_ops_, "step_many");
    in_processes(&b, true, 1);
    in_processes(&b, true, 2);
    return 0;
}
