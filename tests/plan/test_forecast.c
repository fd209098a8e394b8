/* SPDX-License-Identifier: Apache-2.0
 *
 * core/plan/forecast.c on the tiny phase of tests/rl/buffer/worlds.h: the disk that its checkpoints take, and
 * sums of memory.
 */
#include "plan/forecast.h"

#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static dt_forecast forecast(const char *more, uint64_t *checkpoint_p)
{
    const char *const settings[] = {"env.id=counter", "checkpoint.keep_last=3", more, NULL};
    dt_forecast f;
    world w;
    world_begin(&w, settings);
    assert_done(dt_forecast_create(w.stage, 0, &f));
    const uint64_t moments = (uint64_t)w.stage->params.base_total * dt_trainer_n_moments(w.stage->trainer);
    *checkpoint_p = ((uint64_t)w.stage->params.total + moments) * sizeof(float);
    world_close(&w);
    return f;
}

static void test_disk(void **state)
{
    uint64_t checkpoint = 0;
    dt_forecast f = forecast(NULL, &checkpoint);
    assert_int_equal(f.checkpoint, checkpoint);
    assert_int_equal(f.kept, 3 + 1); /* the last ones, and the phase's end */
    assert_int_equal(f.disk, checkpoint * (3 + 1 + 1));
    f = forecast("checkpoint.best_by=return/mean", &checkpoint);
    assert_int_equal(f.kept, 3 + 1 + 1);
    assert_int_equal(f.disk, checkpoint * (3 + 1 + 1 + 1));
    f = forecast("checkpoint.keep_last=1", &checkpoint);
    assert_int_equal(f.kept, 1 + 1);
}

static void test_memory(void **state)
{
    uint64_t unused = 0, mapped = 0;
    const dt_forecast f = forecast(NULL, &unused);
    assert_true(f.n_parts > 0);
    for (uint32_t i = 0; i < f.n_parts; i++) {
        mapped += f.part[i].mapped;
    }
    assert_int_equal(f.arenas, mapped);
    assert_true(f.resident >= f.base && f.device == 0 && f.processes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_disk), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
