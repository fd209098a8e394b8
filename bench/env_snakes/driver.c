/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast plugins/env_snakes plays, in joint steps (all six snakes once) per second of one core:
 *
 *   rules         the game alone, random actions that were drawn before
 *   greedy        both teams by the greedy rule
 *   <kind>        the greedy rule against random actions, and what three snakes are shown
 *
 * Games have 200 steps and start again. The best of several samples counts: other work only takes time away.
 */
#include "../../plugins/env_snakes/observe.h"
#include "../../plugins/env_snakes/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 9, STEPS = 200, GAMES = 64, DRAWN = 4096, MOST = 1400 };
#define SAMPLE_S 0.2
#define TARGET   1.0 /* million joint steps per second, of the rules */

typedef struct bench {
    const char *name;
    bool is_greedy[2];
    bool is_shown;
    observe_kind view;
} bench;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Steps made; what was seen is added up, so that no compiler leaves it out. */
static uint64_t play(const bench *k, uint64_t seed, const uint8_t *drawn, double *sum_p)
{
    static float row[3 * MOST];
    board b;
    dt_random r;
    uint64_t steps = 0;
    dt_random_init(&r, seed, 1);
    board_begin(&b, seed);
    for (; steps < STEPS && !b.is_over; steps++) {
        uint8_t action[BOARD_SNAKES];
        memcpy(action, drawn + (steps * BOARD_SNAKES + seed * 7) % (DRAWN - BOARD_SNAKES), sizeof(action));
        for (uint32_t team = 0; team < 2; team++) {
            if (k->is_greedy[team]) {
                rival_act(RIVAL_L2, &b, team, &r, action + (size_t)team * BOARD_TEAM);
            }
        }
        board_step(&b, action, NULL);
        if (k->is_shown) {
            memset(row, 0, 3 * observe_width(&k->view) * sizeof(*row));
            observe_team(&k->view, &b, 0, row);
            *sum_p += (double)row[steps % 26];
        }
    }
    *sum_p += board_team_score(&b, 0);
    return steps;
}

static double measure(const bench *k, const uint8_t *drawn, double *sum_p)
{
    double best = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const double begin = now_s();
        uint64_t steps = 0;
        for (uint64_t seed = 0; now_s() - begin < SAMPLE_S; seed++) {
            for (uint64_t g = 0; g < GAMES / 8; g++) {
                steps += play(k, seed * GAMES + g, drawn, sum_p);
            }
        }
        const double rate = (double)steps / (now_s() - begin) / 1e6;
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void)
{
    static const bench all[] = {
        {.name = "rules"},
        {.name = "greedy", .is_greedy = {true, true}},
        {.name = "numbers26", .is_greedy = {false, true}, .is_shown = true, .view = {OBSERVE_26, 0, 0, STEPS}},
        {.name = "numbers30", .is_greedy = {false, true}, .is_shown = true, .view = {OBSERVE_30, 0, 0, STEPS}},
        {.name = "planes", .is_greedy = {false, true}, .is_shown = true, .view = {OBSERVE_PLANES, 10, 20, STEPS}},
        {.name = "paths", .is_greedy = {false, true}, .is_shown = true, .view = {OBSERVE_PATHS, 0, 0, STEPS}},
    };
    uint8_t drawn[DRAWN];
    double sum = 0;
    dt_random r;
    dt_random_init(&r, 1, 0);
    for (int i = 0; i < DRAWN; i++) {
        drawn[i] = (uint8_t)dt_random_below(&r, CELLS_DIRECTIONS);
    }
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        const double rate = measure(&all[k], drawn, &sum);
        if (k == 0) {
            printf("value env_snakes/%s %.2f Msteps/s target %g\n", all[k].name, rate, TARGET);
        } else {
            printf("env_snakes/%s %.2f Msteps/s\n", all[k].name, rate);
        }
        fflush(stdout);
    }
    return sum == 0.5; /* it is not: the sum is used */
}
