/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives env_ipp by its two rules, without a learner: joint steps (of all UAVs) per second of one core, and what the
 * rules reach with the published reward, compared with what another implementation of the same rules measured.
 *   bench_env_ipp [EPISODES] [key=value ...]
 * Run in the build folder, or with DT_BUILDDIR naming it.
 */
#include "mock/mock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SETTINGS = 32, UAVS = 8, MOVES = 6, COLUMNS = 2, METRICS = 10, ROUNDS = 5 };

typedef struct rig {
    mock_host host;
    const dt_env_ops *ops;
    void *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs[DT_ENV_MAX_OBS];
    size_t obs_bytes;
    float moves[UAVS][MOVES][COLUMNS], reward[UAVS], cost[UAVS];
    int32_t act[UAVS], agent_state[UAVS];
    int64_t size[1];
    uint8_t alive[UAVS], terminated[UAVS], truncated[UAVS], mask[UAVS][MOVES];
    double metric[METRICS];
} rig;

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL) {
        fputs("bench_env_ipp: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void must(const rig *r, bool is_well)
{
    if (!is_well) {
        fprintf(stderr, "bench_env_ipp: %s\n", r->host.message);
        exit(1);
    }
}

/* processor time: what a core can do, whatever else the machine does */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void open_rig(rig *r, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    const dt_component *c = mock_load("plugins", "env_ipp", "env_ipp");
    if (c == NULL) {
        exit(1);
    }
    void *config = mock_config(c, set);
    r->ops = c->ops;
    r->self = room(c->state_size);
    must(r, c->check(&r->host.host, config) == DT_OK);
    must(r, r->ops->create(r->self, &r->host.host, config) == DT_OK);
    free(config);
    r->spec.struct_size = sizeof(r->spec);
    must(r, r->ops->spec(r->self, &r->spec) == DT_OK);
    r->obs_bytes = r->spec.n_agents * strtoul(r->spec.obs[0].dims + 2, NULL, 10) * sizeof(float);
    r->obs[0] = room(r->obs_bytes);
    r->obs[1] = r->moves;
    r->obs[2] = r->spec.n_obs > 2 ? room(strtoul(r->spec.obs[2].dims + 2, NULL, 10) * sizeof(float)) : NULL;
    r->obs[3] = r->agent_state;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs,
                        .size = r->size,
                        .alive = r->alive,
                        .mask = &r->mask[0][0],
                        .reward = r->reward,
                        .cost = r->cost,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
}

static void close_rig(rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->obs[0]);
    free(r->obs[2]);
}

static void clear(rig *r)
{
    memset(r->obs[0], 0, r->obs_bytes);
    memset(r->moves, 0, sizeof(r->moves));
    memset(r->mask, 1, sizeof(r->mask));
    memset(r->cost, 0, sizeof(r->cost));
}

static double play(rig *r, uint64_t seed, int column)
{
    double sum = 0;
    dt_status st = DT_OK;
    clear(r);
    r->io.act_i = NULL;
    must(r, r->ops->reset(r->self, &r->io, seed) == DT_OK);
    r->io.act_i = r->act;
    while (st == DT_OK) {
        for (uint32_t i = 0; i < r->spec.n_agents; i++) {
            r->act[i] = -1;
            for (int32_t m = 0; m < MOVES; m++) {
                if (r->mask[i][m] && (r->act[i] < 0 || r->moves[i][m][column] > r->moves[i][r->act[i]][column])) {
                    r->act[i] = m;
                }
            }
        }
        clear(r);
        st = r->ops->step(r->self, &r->io);
        must(r, st >= 0);
        sum += (double)r->reward[0];
    }
    return sum;
}

typedef struct rule {
    const char *name;
    int column;
    double mean, deviation; /* elsewhere, of 50 episodes */
} rule;

static void run(const rule *by, uint64_t episodes, const char *const *set, bool is_published)
{
    rig r;
    double best = 0, sum = 0, square = 0, metric[METRICS] = {0};
    open_rig(&r, set);
    for (int round = 0; round < ROUNDS; round++) { /* the fastest is the least disturbed */
        const double start = now_s();
        sum = square = 0;
        memset(metric, 0, sizeof(metric));
        for (uint64_t seed = 0; seed < episodes; seed++) {
            const double got = play(&r, seed, by->column);
            sum += got;
            square += got * got;
            for (int k = 0; k < METRICS; k++) {
                metric[k] += r.metric[k] / (double)episodes;
            }
        }
        best = fmax(best, (double)episodes * r.spec.max_steps / (now_s() - start));
    }
    const double n = (double)episodes, mean = sum / n, deviation = sqrt(square / n - mean * mean);
    printf("%-7s return %6.2f +- %.2f", by->name, mean, deviation);
    if (is_published) {
        printf(", elsewhere %.2f +- %.2f: %.1f standard errors", by->mean, by->deviation,
               (mean - by->mean) / sqrt(deviation * deviation / n + by->deviation * by->deviation / 50));
    }
    putchar('\n');
    for (uint32_t k = 0; k < r.spec.n_metrics; k++) {
        printf("        %-18s %.3f\n", r.spec.metrics[k], metric[k]);
    }
    printf("value env_ipp/%s %.0f joint_steps/s target 10000\n", by->name, best);
    close_rig(&r);
}

int main(int argc, char **argv)
{
    static const rule rules[] = {{"random", 1, -2.50, 2.10}, {"greedy", 0, 8.84, 3.54}};
    const char *set[MAX_SETTINGS + 2] = {"rewarded=before"};
    const uint64_t episodes = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
    if (episodes < 1 || argc > MAX_SETTINGS) {
        fputs("usage: bench_env_ipp [EPISODES] [key=value ...]\n", stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        set[i - 1] = argv[i];
    }
    for (int i = 0; i < 2; i++) {
        run(&rules[i], episodes, set, argc <= 2);
    }
    return 0;
}
