/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives env_sumo by simple rules over fixed seeds, without a learner: what the scenario's own program and the classic
 * rules reach, and how fast the environment steps. One line per seed, then mean and deviation.
 *   bench_sumo POLICY SEEDS SCENARIO.sumocfg [key=value ...]      SEEDS: 10 means 1 to 10
 *   policies: program (control=program), greedy (most vehicles within near_m), max_pressure, random
 * Run in the build folder, or with DT_BUILDDIR naming it.
 */
#include "traffic/features/features.h"
#include "mock/mock.h"

#include "dtrain/random.h"
#include "dtrain/traffic/features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SETTINGS = 32, PHASE_FEATURES = 17, NEAR = 5, PRESSURE = 2, SHOWN = 7 };

static dt_status features_frame(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    static dt_features_work work;
    return dt_features_frame(&work, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

static const dt_features_api features = {.struct_size = sizeof(features), .frame = features_frame};

typedef struct rig {
    mock_host host;
    const dt_env_ops *ops;
    void *self;
    dt_env_spec spec;
    dt_env_io io;
    uint32_t n_phases;
    int32_t *action;
    void *obs[DT_ENV_MAX_OBS];
    size_t obs_bytes[DT_ENV_MAX_OBS];
} rig;

/* processor time: what a core can do, whatever else the machine does (SUMO runs in one thread) */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);
    if (p == NULL) {
        fputs("bench_sumo: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static int64_t symbol_rows(const rig *r, const char *symbol, size_t n)
{
    for (uint32_t i = 0; i < r->spec.n_symbols; i++) {
        if (strncmp(r->spec.symbols[i].name, symbol, n) == 0 && r->spec.symbols[i].name[n] == '\0') {
            return r->spec.symbols[i].size;
        }
    }
    return 1;
}

static size_t port_bytes(const rig *r, const dt_port *p)
{
    const size_t head = strcspn(p->dims, " +");
    int64_t n = strncmp(p->dims, "A", head) == 0 ? r->spec.n_agents : symbol_rows(r, p->dims, head);
    n += p->dims[head] == '+';
    for (const char *d = strchr(p->dims, ' '); d != NULL; d = strchr(d + 1, ' ')) {
        n *= strtoll(d, NULL, 10);
    }
    return (size_t)n * 4;
}

static void check(const rig *r, dt_status st, const char *what)
{
    if (st < 0) {
        fprintf(stderr, "bench_sumo: %s: %s\n", what, r->host.message);
        exit(1);
    }
}

static void open_rig(rig *r, const char *const *set)
{
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_FEATURES, &features);
    const dt_component *c = mock_load("plugins", "env_sumo", "env_sumo");
    if (c == NULL) {
        exit(1);
    }
    r->ops = c->ops;
    r->self = room(c->state_size);
    const void *config = mock_config(c, set);
    check(r, c->check(&r->host.host, config), "check");
    check(r, r->ops->create(r->self, &r->host.host, config), "create");
    r->spec.struct_size = sizeof(r->spec);
    check(r, r->ops->spec(r->self, &r->spec), "spec");
    const uint32_t n = r->spec.n_agents;
    r->n_phases = (uint32_t)r->spec.choices[0];
    r->action = room(n * sizeof(*r->action));
    for (uint32_t i = 0; i < r->spec.n_obs; i++) {
        r->obs_bytes[i] = port_bytes(r, &r->spec.obs[i]);
        r->obs[i] = room(r->obs_bytes[i]);
    }
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs,
                        .size = room(8 * sizeof(int64_t)),
                        .alive = room(n),
                        .mask = room((size_t)n * r->n_phases),
                        .reward = room(n * sizeof(float)),
                        .cost = room((size_t)n * r->spec.n_costs * sizeof(float)),
                        .terminated = room(n),
                        .truncated = room(n),
                        .metric = room(r->spec.n_metrics * sizeof(double))};
}

static void clear(rig *r)
{
    const uint32_t n = r->spec.n_agents;
    memset(r->obs[0], 0, r->obs_bytes[0]);
    memset(r->obs[1], 0, r->obs_bytes[1]);
    memset(r->io.mask, 1, (size_t)n * r->n_phases);
    memset(r->io.reward, 0, n * sizeof(float));
    memset(r->io.cost, 0, (size_t)n * r->spec.n_costs * sizeof(float));
    memset(r->io.alive, 0, n);
    memset(r->io.terminated, 0, n);
    memset(r->io.truncated, 0, n);
}

/* The allowed phase with the most of one column of `phases`; of equal ones the shown, then the first. */
static int32_t best_phase(const rig *r, uint32_t k, int column)
{
    const float *row = (const float *)r->obs[1] + (size_t)k * r->n_phases * PHASE_FEATURES;
    const uint8_t *mask = r->io.mask + (size_t)k * r->n_phases;
    int32_t best = -1;
    double most = -INFINITY;
    for (uint32_t p = 0; p < r->n_phases; p++) {
        const double value = (double)row[p * PHASE_FEATURES + column] + 0.5 * (double)row[p * PHASE_FEATURES + SHOWN];
        if (mask[p] != 0 && value > most) {
            most = value;
            best = (int32_t)p;
        }
    }
    return best;
}

static int32_t random_phase(const rig *r, uint32_t k, dt_random *random)
{
    const uint8_t *mask = r->io.mask + (size_t)k * r->n_phases;
    uint32_t p;
    do {
        p = dt_random_below(random, r->n_phases);
    } while (mask[p] == 0);
    return (int32_t)p;
}

static void act(rig *r, const char *policy, dt_random *random)
{
    for (uint32_t k = 0; k < r->spec.n_agents; k++) {
        r->action[k] = strcmp(policy, "greedy") == 0         ? best_phase(r, k, NEAR)
                       : strcmp(policy, "max_pressure") == 0 ? best_phase(r, k, PRESSURE)
                       : strcmp(policy, "random") == 0       ? random_phase(r, k, random)
                                                             : 0;
    }
}

/* Writes the metrics; returns the processor time, s. */
static double run_episode(rig *r, const char *policy, uint64_t seed, double *episode_return, double *costs)
{
    dt_random random;
    dt_random_init(&random, seed, 77);
    const double from_s = now_s();
    *episode_return = 0;
    memset(costs, 0, r->spec.n_costs * sizeof(*costs));
    clear(r);
    r->io.act_i = NULL;
    check(r, r->ops->reset(r->self, &r->io, seed), "reset");
    r->io.act_i = r->action;
    dt_status st;
    do {
        act(r, policy, &random);
        clear(r);
        st = r->ops->step(r->self, &r->io);
        check(r, st, "step");
        for (uint32_t k = 0; k < r->spec.n_agents; k++) {
            *episode_return += (double)r->io.reward[k];
            for (uint32_t c = 0; c < r->spec.n_costs; c++) {
                costs[c] += (double)r->io.cost[k * r->spec.n_costs + c];
            }
        }
    } while (st != DT_DONE);
    return now_s() - from_s;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: bench_sumo program|greedy|max_pressure|random SEEDS SCENARIO.sumocfg [key=value ...]\n", stderr);
        return 2;
    }
    static rig r;
    char scenario[1100];
    const char *set[MAX_SETTINGS + 3] = {scenario};
    int n_set = 1;
    snprintf(scenario, sizeof(scenario), "sumocfg=%s", argv[3]);
    if (strcmp(argv[1], "program") == 0) {
        set[n_set++] = "control=program";
    }
    for (int i = 4; i < argc && n_set < MAX_SETTINGS; i++) {
        set[n_set++] = argv[i];
    }
    open_rig(&r, set);
    double sum[DT_ENV_MAX_METRICS] = {0}, square[DT_ENV_MAX_METRICS] = {0}, best_s = INFINITY, costs[DT_ENV_MAX_COSTS];
    const double n_seeds = strtod(argv[2], NULL), simulated_s = r.spec.max_steps * r.spec.step_s;
    for (uint64_t seed = 1; seed <= (uint64_t)n_seeds; seed++) {
        double episode_return;
        const double cpu_s = run_episode(&r, argv[1], seed, &episode_return, costs);
        best_s = fmin(best_s, cpu_s);
        printf("seed %2d: strict %.3f s, RESCO %.3f s, return %.1f, %.0f simulated s per s of a core; costs", (int)seed,
               r.io.metric[0], r.io.metric[1], episode_return, simulated_s / cpu_s);
        for (uint32_t c = 0; c < r.spec.n_costs; c++) {
            printf(" %g", costs[c]);
        }
        putchar('\n');
        for (uint32_t i = 0; i < r.spec.n_metrics; i++) {
            sum[i] += r.io.metric[i];
            square[i] += r.io.metric[i] * r.io.metric[i];
        }
    }
    for (uint32_t i = 0; i < r.spec.n_metrics; i++) {
        const double mean = sum[i] / n_seeds;
        printf("%-20s %10.3f +- %.3f\n", r.spec.metrics[i], mean, sqrt(fmax(0, square[i] / n_seeds - mean * mean)));
    }
    printf("value sumo_speed %.0f simulated_s/s/core\n", simulated_s / best_s);
    return 0;
}
