/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps per second of env_gym without a policy: step_many over CartPole-v1 with drawn actions, episodes reset as they
 * end, in one Python process and in several.
 *   bench_env_gym INTERPRETER [INSTANCES [SECONDS [PER_PROCESS]]]
 * Run in the build folder, or with DT_BUILDDIR naming it. Prints steps per second.
 */
#include "mock/mock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 4, CHOICES = 2 };

typedef struct rig {
    mock_host host;
    const dt_env_ops *ops;
    void **self;
    uint32_t n;
    float *obs, *reward;
    int32_t *act;
    uint8_t *alive, *terminated, *truncated, *mask;
    dt_status *status;
} rig;

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (p == NULL) {
        fputs("bench_env_gym: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void must(const rig *r, dt_status st)
{
    if (st < 0) {
        fprintf(stderr, "bench_env_gym: %s\n", r->host.message);
        exit(1);
    }
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Arrays from instance k on. */
static dt_env_io io_of(const rig *r, uint32_t k, void **obs)
{
    obs[0] = r->obs + k * COLUMNS;
    return (dt_env_io){.struct_size = sizeof(dt_env_io),
                       .n_obs = 1,
                       .obs = obs,
                       .alive = r->alive + k,
                       .mask = r->mask + k * CHOICES,
                       .act_i = r->act + k,
                       .reward = r->reward + k,
                       .terminated = r->terminated + k,
                       .truncated = r->truncated + k};
}

static void open_rig(rig *r, const char *const *set)
{
    mock_host_init(&r->host);
    const dt_component *c = mock_load("plugins", "env_gym", "env_gym");
    if (c == NULL) {
        exit(1);
    }
    void *config = mock_config(c, set);
    r->ops = c->ops;
    r->self = room(r->n, sizeof(*r->self));
    r->obs = room(r->n * COLUMNS, sizeof(*r->obs));
    r->reward = room(r->n, sizeof(*r->reward));
    r->act = room(r->n, sizeof(*r->act));
    r->alive = room(r->n, 1);
    r->terminated = room(r->n, 1);
    r->truncated = room(r->n, 1);
    r->mask = room(r->n * CHOICES, 1);
    r->status = room(r->n, sizeof(*r->status));
    for (uint32_t i = 0; i < r->n; i++) {
        r->self[i] = room(1, c->state_size);
        must(r, r->ops->create(r->self[i], &r->host.host, config));
    }
    free(config);
}

static void reset(const rig *r, uint32_t k, uint64_t seed)
{
    void *obs[1];
    dt_env_io io = io_of(r, k, obs);
    io.act_i = NULL;
    must(r, r->ops->reset(r->self[k], &io, seed));
}

static double measure(const rig *r, double seconds)
{
    void *obs[1];
    const dt_env_io io = io_of(r, 0, obs);
    uint64_t seed = 0, steps = 0;
    uint32_t drawn = 1;
    for (uint32_t k = 0; k < r->n; k++) {
        reset(r, k, seed++);
    }
    const double from = now_s();
    while (now_s() - from < seconds) {
        for (uint32_t k = 0; k < r->n; k++) {
            drawn = drawn * 1664525U + 1013904223U;
            r->act[k] = (int32_t)(drawn >> 31);
        }
        must(r, r->ops->step_many(r->self, r->n, &io, r->status));
        for (uint32_t k = 0; k < r->n; k++) {
            must(r, r->status[k]);
            if (r->status[k] == DT_DONE) {
                reset(r, k, seed++);
            }
        }
        steps += r->n;
    }
    return (double)steps / (now_s() - from);
}

int main(int argc, char **argv)
{
    rig r = {.n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 16};
    char interpreter[1024], share[64];
    if (argc < 2 || r.n < 1) {
        fputs("usage: bench_env_gym INTERPRETER [INSTANCES [SECONDS [PER_PROCESS]]]\n", stderr);
        return 2;
    }
    snprintf(interpreter, sizeof(interpreter), "interpreter=%s", argv[1]);
    snprintf(share, sizeof(share), "per_process=%s", argc > 4 ? argv[4] : "1024");
    const char *const set[] = {"id=CartPole-v1", interpreter, share, NULL};
    open_rig(&r, set);
    (void)measure(&r, 0.5); /* warm */
    printf("%.0f\n", measure(&r, argc > 3 ? strtod(argv[3], NULL) : 4));
    for (uint32_t i = 0; i < r.n; i++) {
        r.ops->destroy(r.self[i]);
        free(r.self[i]);
    }
    return 0;
}
