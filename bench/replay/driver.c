/* SPDX-License-Identifier: Apache-2.0
 *
 * What a draw costs: 10 million transitions of one agent with 3 observations and one continuous action, the size of
 * Pendulum, all fields kept; 256 samples are drawn, uniformly and by priority, and packed into one slice as a worker
 * reads it. Every row that was read is compared with what its number says, so that nothing is left out. Usage:
 * bench_replay [SAMPLES]
 */
#include <config.h>

#include "worlds.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "rl/replay/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 2000, DRAW = 256, STEPS = 500, INSTANCES = 100 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The same round again and again: what is in it does not matter to what a draw costs. */
static double fill(const world *w, uint64_t samples)
{
    const tiny *s = w->phase;
    dt_rollout_report r = {.struct_size = sizeof(r)};
    assert_done(s->rollout->collect(s->r, s->t, &r));
    const double from = dt_clock_s();
    while (s->replay->count(s->p) < samples) {
        s->p->rounds = 0;
        assert_done(s->replay->add(s->p));
    }
    return (dt_clock_s() - from) / (double)s->p->added;
}

/* Rows are of the world, field by field: see worlds.h, torque. */
static void check(const dt_samples *s, void *const *field, const int64_t *size)
{
    const float *state = NULL, *next = NULL, *executed = NULL, *reward = NULL;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        const char *name = s->field[f].name;
        state = strcmp(name, "state") == 0 ? field[f] : state;
        next = strcmp(name, "next_state") == 0 ? field[f] : next;
        executed = strcmp(name, "executed") == 0 ? field[f] : executed;
        reward = strcmp(name, "reward") == 0 ? field[f] : reward;
    }
    assert_int_equal(size[0], DRAW);
    for (int64_t i = 0; i < size[0]; i++) {
        assert_true(next[3 * i] == state[3 * i] + 1 && reward[i] == 50 * executed[i]);
    }
}

static void measure(uint64_t samples, const char *alpha, const char *name)
{
    static double us[DRAWS], draw_us[DRAWS];
    static uint64_t index[DRAW], key[DRAW];
    char capacity[64], how[32];
    snprintf(capacity, sizeof(capacity), "tiny.replay=%llu", (unsigned long long)samples);
    snprintf(how, sizeof(how), "tiny.alpha=%s", alpha);
    const char *const settings[] = {"env.id=torque",
                                    "tiny.transitions=2",
                                    capacity,
                                    how,
                                    "env.instances=100",
                                    "tiny.steps=500",
                                    "tiny.draw=256",
                                    "data.batch=256",
                                    "engine.slice_rows=4096",
                                    NULL};
    world w;
    world_open(&w, settings, NULL);
    world_start(&w);
    const double add_s = fill(&w, samples);
    const tiny *p = w.phase;
    const dt_samples *s = world_source(&w);
    const size_t bytes = dt_samples_bytes_max(s, DRAW);
    char *arena = malloc(bytes);
    void *field[DT_SAMPLES_MAX_FIELDS];
    assert_non_null(arena);
    for (uint64_t i = 0; i < DRAW; i++) {
        index[i] = i;
    }
    for (int d = 0; d < DRAWS; d++) {
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
        uint32_t taken = 0;
        size_t used = 0;
        const double from = dt_clock_s();
        assert_done(p->replay->draw(p->p));
        const double drawn = dt_clock_s();
        assert_done(dt_samples_cut_micro_batch(s, index, DRAW, &taken, size));
        assert_done(dt_samples_read(s, index, key, taken, size, arena, bytes, field, &used));
        us[d] = (dt_clock_s() - from) * 1e6;
        draw_us[d] = (drawn - from) * 1e6;
        assert_int_equal(taken, DRAW);
        check(s, field, size);
    }
    qsort(us, DRAWS, sizeof(*us), by_size);
    qsort(draw_us, DRAWS, sizeof(*draw_us), by_size);
    printf(
        "%s: %llu samples of %zu bytes, added in %.2f us each; draw %.1f us, draw and read %.1f us (median of %d; 99th "
        "in 100: %.1f us)\n",
        name, (unsigned long long)p->replay->count(p->p), p->p->stride, add_s * 1e6, draw_us[DRAWS / 2], us[DRAWS / 2],
        DRAWS, us[DRAWS * 99 / 100]);
    printf("value replay_%s %.1f us target 100 at most\n", name, us[DRAWS / 2]);
    free(arena);
    world_close(&w);
}

int main(int argc, char **argv)
{
    const uint64_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    dt_log_level_set(DT_LOG_ERROR);
    measure(samples, "0", "uniform");
    measure(samples, "0.6", "priority");
    return 0;
}
