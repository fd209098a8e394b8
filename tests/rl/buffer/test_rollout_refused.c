/* SPDX-License-Identifier: Apache-2.0
 *
 * What rollouts refuse, and in which words: environments that lie, in this process and in one of their own, mixtures of
 * environments that do not fit, fields that nobody can keep, and rounds that are too large to be counted.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "rl/buffer/buffer.h"
#include "rl/env/process.h"
#include "plugin/service/env_worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void refused_with(const char *const *settings, dt_status code, const char *text)
{
    world w;
    world_open(&w, settings, NULL);
    dt_status st = world_create(&w);
    if (st == DT_OK) {
        st = world_iterate(&w);
    }
    if (st != code || strstr(dt_error_text(), text) == NULL) {
        print_error("%s: %d, %s\n", settings[2], (int)st, dt_error_text());
    }
    assert_int_equal(st, code);
    assert_non_null(strstr(dt_error_text(), text));
    world_close(&w);
}

static void refused(const char *env, const char *more, dt_status code, const char *text)
{
    char id[64];
    snprintf(id, sizeof(id), "env.id=%s", env);
    const char *const settings[] = {id, "tiny.steps=20", more, NULL};
    refused_with(settings, code, text);
}

static void refused_in_process(const char *lie, dt_status code, const char *text)
{
    const char *const settings[] = {"env.id=liar",    "tiny.steps=20",   lie, "env.isolation=process",
                                    "env.restarts=0", "env.timeout_s=2", NULL};
    refused_with(settings, code, text);
}

static void refused_mix(const char *mix, dt_status code, const char *text)
{
    const char *const settings[] = {"env.id=counter", "tiny.steps=20", mix, NULL};
    refused_with(settings, code, text);
}

static void test_mix_refused(void **state)
{
    refused_mix("env.mix=counter,crowd", DT_ECONFIG, "env.mix: crowd must match counter, the first one: 4 places");
    refused_mix("env.mix=torque,torque_open", DT_ECONFIG,
                "continuous action 0 has the bounds -1 and inf instead of -1 and 1");
    refused_mix("env.mix=torque", DT_ECONFIG, "env.id = counter, which evaluations are in, must match torque");
    refused_mix("env.mix=counter,nowhere", DT_ENOTFOUND, "env.mix, entry 2, \"nowhere\"");
    refused_mix("env.mix=counter,liar,liar,liar,liar,liar,liar", DT_ECONFIG, "env.mix names 7 environments");
    refused_mix("env.mix=counter,liar:lie", DT_ECONFIG, "\"lie\" is not option=value");
    refused_mix("env.mix=counter,liar:lie=nan;lie=ends", DT_ECONFIG, "sets lie twice");
    refused_mix("env.mix=counter,liar:lie_step=soon", DT_ECONFIG, "env.mix.lie_step = \"soon\"");
    refused_mix("env.mix=counter,liar:lies=nan", DT_ECONFIG, "env.mix.lies");
    refused_mix("env.mix=counter,counter:lie=nan", DT_ECONFIG, "env.mix.lie");
    refused_mix("env.mix=counter,liar:lie=nan", DT_EPLUGIN, "environment liar, instance ");
}

static void test_refused(void **state)
{
    refused("", "tiny.window=1", DT_ECONFIG, "env.id is empty");
    refused("nowhere", "tiny.window=1", DT_ENOTFOUND, "nowhere");
    refused("counter", "tiny.kept=A", DT_EPLUGIN, "a rollout keeps at most 4 values of rows, [A D] f32; twice [A]");
    refused("counter", "tiny.kept=N 3", DT_EPLUGIN, "twice [N 3] is not one");
    refused("counter", "tiny.kept=A 4", DT_EPLUGIN, "the field is A 4 f32 and the value A 3 f32");
    refused("counter", "tiny.leak=advantage", DT_EPLUGIN, "computed from the field advantage");
    refused("crowd", "crowd.lie=column", DT_EPLUGIN, "step 3: observation col [E], row 1 is -1, but there are ");
    refused("crowd", "crowd.lie=column", DT_EPLUGIN, " rows of N (an edge leads to one of them)");
    refused("crowd", "crowd.lie=spot", DT_EPLUGIN,
            "observation to_spot [E], row 2 is -1, but there are 2 rows of M (an edge leads to one of them)");
    refused("liar", "liar.lie=create", DT_ENOTFOUND, "the world is not installed");
    refused("liar", "liar.lie=nan", DT_EPLUGIN,
            "environment liar, instance 3, episode 1, step 2: observation state [A 3], row 0, item 1 is nan");
    refused("liar", "liar.lie=reward", DT_EPLUGIN, "the reward of agent 0 is inf");
    refused("liar", "liar.lie=cost", DT_EPLUGIN, "cost hits of agent 0 is -1; costs are at least 0");
    refused("liar", "liar.lie=gone", DT_EPLUGIN, "agent 0 is gone, but is marked neither terminated nor truncated");
    refused("liar", "liar.lie=undead", DT_EPLUGIN, "agent 0 was terminated by this step and is marked alive");
    refused("liar", "liar.lie=mask", DT_EPLUGIN, "the mask of agent 0 forbids all 3 choices of action 0");
    refused("liar", "liar.lie=endless", DT_EPLUGIN, "acted in the last step of the episode");
    refused("liar", "liar.lie=fail", DT_EIO, "step 2: the disk of the world is full");
    refused("liar", "liar.lie=code", DT_EPLUGIN, "step returned 5");
    refused_in_process("liar.lie=create", DT_ENOTFOUND, "the world is not installed");
    refused_in_process("liar.lie=crash", DT_EIO, "was killed by signal 6");
    refused_in_process("liar.lie=crash", DT_EIO, "it wrote: the world ends with a bang");
    refused_in_process("liar.lie=hang", DT_EIO, "did not answer within 2 s (env.timeout_s); it wrote: the world ends");
    refused_in_process("liar.lie=nan", DT_EIO, "item 1 is nan; it was restarted 0 times before");
    refused_in_process("liar.lie=spec", DT_EPLUGIN, "its spec has changed: 0 metrics instead of 1");
    refused("liar", "liar.lie=spec", DT_EPLUGIN, "reset of episode 1: its spec has changed: 0 metrics");
}

/* Steps and history are counted in more bits than each of them has. */
static void test_round_without_end(void **state)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const int32_t choices[] = {2};
    const dt_env_spec spec = {
        .struct_size = sizeof(spec), .n_agents = 1, .n_obs = 1, .obs = obs, .n_heads = 1, .choices = choices};
    dt_layout l;
    dt_buffer b;
    assert_int_equal(dt_layout_init(&l, "endless", &spec), DT_OK);
    dt_buffer_desc d = {.layout = &l, .steps = UINT32_MAX, .instances = 1, .window = 1};
    assert_int_equal(dt_buffer_init(&b, &d), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "2^31"));
    dt_buffer_fini(&b);
    d = (dt_buffer_desc){.layout = &l, .steps = UINT32_MAX, .instances = UINT32_MAX, .window = UINT32_MAX};
    assert_int_equal(dt_buffer_init(&b, &d), DT_ECONFIG);
    dt_buffer_fini(&b);
    dt_layout_fini(&l);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], DT_PROCESS_VERB) == 0) { /* a worker of these tests */
        return dt_env_run_worker(&worlds_plugin);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_without_end),
        cmocka_unit_test(test_mix_refused),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
