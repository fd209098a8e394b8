/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps until a cost, by hand: over ends of agents, over the end of the rollout, for places next to each other.
 */
#include <config.h>

#include "rl/buffer/time_to_cost.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STEPS = 8 };
enum { L = DT_STEP_ACTED, DIES = L | DT_STEP_TERMINATED, LEAVES = L | DT_STEP_TRUNCATED };
static const float never = DT_ROLLOUT_NEVER;

typedef struct life {
    float cost[STEPS];
    uint8_t flag[STEPS];
    float want[STEPS];
} life;

static const life lives[] = {
    {{0, 0, 3, 0, 0, 0.5f, 0, 0}, {L, L, L, L, L, L, L, L}, {2, 1, 0, 2, 1, 0, -2, -1}},
    {{0, 0, 0, 9, 0, 1, 0, 0}, {L, L, DIES, 0, L, L, L, L}, {never, never, never, 0, 1, 0, -2, -1}},
    {{0, 0, 9, 0, 0, 0, 0, 0}, {L, LEAVES, 0, L, L, L, L, L}, {-2, -1, 0, -5, -4, -3, -2, -1}},
    {{0, 0, 1, 0, 0, 0, 0, 2}, {L, L, DIES, 0, 0, L, L, L}, {2, 1, 0, 0, 0, 2, 1, 0}},
};
enum { LIVES = sizeof(lives) / sizeof(lives[0]) };

static void test_one_place(void **state)
{
    for (int i = 0; i < LIVES; i++) {
        float out[STEPS];
        dt_compute_steps_to_cost(lives[i].cost, lives[i].flag, STEPS, 1, out);
        for (int t = 0; t < STEPS; t++) {
            assert_true(out[t] == lives[i].want[t]);
        }
    }
}

static void test_places_are_apart(void **state)
{
    float cost[STEPS * LIVES], out[STEPS * LIVES];
    uint8_t flag[STEPS * LIVES];
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < LIVES; i++) {
            cost[t * LIVES + i] = lives[i].cost[t];
            flag[t * LIVES + i] = lives[i].flag[t];
        }
    }
    dt_compute_steps_to_cost(cost, flag, STEPS, LIVES, out);
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < LIVES; i++) {
            assert_true(out[t * LIVES + i] == lives[i].want[t]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_place),
        cmocka_unit_test(test_places_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
