/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/actor.h"

#include "base/err.h"

_Static_assert((int)DT_POLICY_MAX_PLACES == (int)DT_ACTOR_PLACES, "places of a policy, and of its caller");

const char *const dt_rollout_output[DT_ROLLOUT_OUTPUTS + 1] = {
    [DT_OUT_LOGITS] = "logits",         [DT_OUT_MEAN] = "mean", [DT_OUT_LOG_STD] = "log_std", [DT_OUT_VALUE] = "value",
    [DT_OUT_COST_VALUE] = "cost_value", [DT_OUT_LOW] = "low",   [DT_OUT_HIGH] = "high",       [DT_OUT_ALLOW] = "allow",
};

void dt_actor_find_outputs(const dt_policy *p, uint32_t place, dt_answer *out)
{
    for (uint32_t o = 0; o < DT_ROLLOUT_OUTPUTS; o++) {
        out->view[o] = dt_policy_output(p, place, dt_rollout_output[o]);
    }
}

static const float *floats_of_view(const dt_view *v)
{
    return v != NULL ? v->data : NULL;
}

static void set_outputs(dt_actor *a, const dt_answer *x)
{
    a->logits = floats_of_view(x->view[DT_OUT_LOGITS]);
    a->mean = floats_of_view(x->view[DT_OUT_MEAN]);
    a->log_std = floats_of_view(x->view[DT_OUT_LOG_STD]);
    a->value = floats_of_view(x->view[DT_OUT_VALUE]);
    a->cost_value = floats_of_view(x->view[DT_OUT_COST_VALUE]);
    a->low = floats_of_view(x->view[DT_OUT_LOW]);
    a->high = floats_of_view(x->view[DT_OUT_HIGH]);
    a->allow = floats_of_view(x->view[DT_OUT_ALLOW]);
    for (uint32_t i = 0; i < DT_ROLLOUT_MAX_KEPT; i++) {
        a->kept[i] = floats_of_view(x->kept[i]);
    }
    for (uint32_t i = 0; i < DT_ROLLOUT_MAX_CARRIED; i++) {
        a->carried[i] = floats_of_view(x->carried[i]);
    }
}

dt_status dt_actor_run_policy(dt_actor *a, const int64_t *size)
{
    DT_TRY(dt_policy_run(a->policy, a->number, size, a->field));
    set_outputs(a, &a->answer[0]);
    return DT_OK;
}

void *const *dt_actor_piece_fields(dt_actor *a, uint32_t place, uint32_t i, uint32_t n)
{
    dt_policy_input_buffers(a->policy, place, i, n, a->room);
    for (uint32_t f = 0; f < DT_BUFFER_MAX_FIELDS; f++) {
        a->room[f] = a->room[f] != NULL ? a->room[f] : a->field[f];
    }
    return a->room;
}

dt_status dt_actor_submit_piece(dt_actor *a, uint32_t place, uint32_t i, uint32_t n, const int64_t *size)
{
    return dt_policy_write_input(a->policy, place, i, n, size, a->room);
}

dt_status dt_actor_start_policy(dt_actor *a, uint32_t place, uint32_t n)
{
    return dt_policy_start_run(a->policy, place, n);
}

dt_status dt_actor_wait_for_policy(dt_actor *a, uint32_t place)
{
    DT_TRY(dt_policy_wait_for_run(a->policy, place));
    set_outputs(a, &a->answer[place]);
    return DT_OK;
}
