/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast plugins/env_traffic simulates, and what it measures at a signal.
 *
 *   bench_env_traffic                              vehicle updates per second and core, observations not included
 *   bench_env_traffic signal FLOW_VPH HOURS SEEDS  a fixed-time signal, Krauss: the numbers that sumo.py compares
 *   bench_env_traffic net NET ROUTES BEGIN_S END_S STEP_S SEEDS
 *                                                  files of SUMO under their own programs: the same numbers and more
 *
 * An update is one vehicle moved by one step of the simulation, with all that the step does.
 */
#include "../../plugins/env_traffic/sim.h"
#include "dtrain/helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 9 };
#define SAMPLE_S 0.2
#define WARM_S   600.0
#define TARGET   5.0 /* million updates per second */

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    fprintf(stderr, "%s: %s\n", where, msg);
    return st;
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    fprintf(stderr, "%s\n", msg);
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes) != 0) {
        return NULL;
    }
    return memset(p, 0, bytes);
}

static void host_release(const dt_host *h, void *p)
{
    free(p);
}

static const void *host_service(const dt_host *h, const char *id)
{
    return NULL;
}

static const dt_host host = {.struct_size = sizeof(host),
                             .abi_major = DT_ABI_MAJOR,
                             .abi_minor = DT_ABI_MINOR,
                             .fail = host_fail,
                             .log = host_log,
                             .alloc = host_alloc,
                             .release = host_release,
                             .service = host_service};

/* The defaults of env_traffic's options, as far as the simulation reads them. */
static const traffic_config base = {.vehicles = 22,
                                    .rows = 4,
                                    .cols = 4,
                                    .max_vehicles = 100000,
                                    .ramp_m = 250,
                                    .limit_mps = 13.89,
                                    .ramp_vph = 600,
                                    .left_share = 0.2,
                                    .right_share = 0.2,
                                    .dt_s = 0.5,
                                    .episode_s = 1e5,
                                    .headway_s = 1,
                                    .accel_mps2 = 1,
                                    .decel_mps2 = 1.5,
                                    .gap_m = 2,
                                    .vehicle_m = 5,
                                    .sigma = 0.5,
                                    .politeness = 0.2,
                                    .change_threshold = 0.1,
                                    .safe_decel_mps2 = 4,
                                    .green_s = 25,
                                    .left_green_s = 10,
                                    .yellow_s = 3,
                                    .all_red_s = 1,
                                    .min_green_s = 5,
                                    .detector_m = 50,
                                    .ttc_s = 1.5,
                                    .hard_mps2 = 3,
                                    .signals = 1};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* of a core, not of a busy machine */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, traffic_config c)
{
    sim s = {0};
    c = scenario_resolve(&c);
    if (sim_create(&s, &host, &c) != DT_OK) {
        exit(1);
    }
    sim_reset(&s, 1);
    while (s.elapsed_s < WARM_S) {
        sim_step(&s);
    }
    double rate[SAMPLES];
    for (int k = 0; k < SAMPLES; k++) {
        const int64_t before = s.sum.updates;
        const double start = now_s();
        double took = 0;
        while (took < SAMPLE_S) {
            for (int i = 0; i < 20; i++) {
                sim_step(&s);
            }
            took = now_s() - start;
        }
        rate[k] = 1e-6 * (double)(s.sum.updates - before) / took;
        if (s.elapsed_s > 0.8 * c.episode_s) { /* before the demand ends */
            sim_reset(&s, (uint64_t)k + 2);
            while (s.elapsed_s < WARM_S) {
                sim_step(&s);
            }
        }
    }
    qsort(rate, SAMPLES, sizeof(rate[0]), compare);
    fprintf(stderr, "%s: %d vehicles, %.1f to %.1f\n", name, (int)s.n_vehicles, rate[0], rate[SAMPLES - 1]);
    printf("value env_traffic/%s %.1f Mupdates/s target %g\n", name, rate[SAMPLES / 2], TARGET);
    sim_destroy(&s);
}

/* One line per seed. */
static int run_seeds(traffic_config c, int seeds)
{
    sim s = {0};
    c = scenario_resolve(&c);
    if (sim_create(&s, &host, &c) != DT_OK) {
        sim_destroy(&s);
        return 1;
    }
    for (int k = 0; k < seeds; k++) {
        const double start = now_s();
        sim_reset(&s, (uint64_t)k + 1);
        while (s.elapsed_s < c.episode_s - 1e-9) {
            sim_step(&s);
        }
        const tally *t = &s.sum;
        const double due = (double)(t->inserted + sim_waiting(&s)), hours = c.episode_s / 3600;
        printf("{\"due\": %.0f, \"flow_vph\": %.6g, \"speed_mps\": %.6g, \"delay_s\": %.6g, \"collisions\": %lld, "
               "\"trip_s\": %.6g, \"standing_s\": %.6g, \"finished\": %lld, \"waiting\": %lld, \"emergencies\": %lld, "
               "\"inserted\": %lld, \"stuck\": %lld, \"updates_per_s\": %.4g}\n",
               due, (double)t->finished / hours, t->speed_s / t->present_s, sim_delay(&s) / due,
               (long long)t->collisions, t->trip_s / (double)t->finished, t->waiting_s / (double)t->inserted,
               (long long)t->finished, (long long)sim_waiting(&s), (long long)t->emergencies, (long long)t->inserted,
               (long long)t->stuck, (double)t->updates / (now_s() - start));
    }
    sim_destroy(&s);
    return 0;
}

static int net_numbers(char **argv)
{
    traffic_config c = base;
    c.scenario = SCENARIO_NET;
    c.net_file = argv[0];
    c.routes_file = argv[1];
    c.begin_s = strtod(argv[2], NULL);
    c.episode_s = strtod(argv[3], NULL) - c.begin_s;
    c.dt_s = strtod(argv[4], NULL);
    return run_seeds(c, (int)strtol(argv[5], NULL, 10));
}

static int signal_numbers(double flow_vph, double hours, int seeds)
{
    traffic_config c = base;
    c.scenario = SCENARIO_INTERSECTION;
    c.model = MODEL_KRAUSS;
    c.lanes = 1;
    c.length_m = 400;
    c.left_share = c.right_share = 0;
    c.flow_vph = flow_vph;
    c.dt_s = 1;
    c.episode_s = 3600 * hours;
    c.accel_mps2 = 2.6;
    c.decel_mps2 = 4.5;
    c.gap_m = 2.5;
    c.green_s = 26;
    return run_seeds(c, seeds);
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "net") == 0) {
        return net_numbers(argv + 2);
    }
    if (argc == 5 && strcmp(argv[1], "signal") == 0) {
        return signal_numbers(strtod(argv[2], NULL), strtod(argv[3], NULL), (int)strtol(argv[4], NULL, 10));
    }
    traffic_config ring = base, merge = base, grid = base;
    ring.vehicles = 200;
    ring.length_m = 2500;
    merge.scenario = SCENARIO_MERGE;
    merge.limit_mps = 25;
    merge.length_m = 1000;
    grid.scenario = SCENARIO_GRID;
    measure("ring", ring);
    measure("merge", merge);
    measure("grid4x4", grid);
    return 0;
}
