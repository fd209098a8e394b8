/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/round.h"

#include <math.h>
#include <string.h>

static size_t count_slots(const dt_buffer *b)
{
    return (size_t)b->d.steps * b->d.instances;
}

static bool is_counted(uint8_t done, uint8_t without)
{
    return done != 0 && (done & without) == 0;
}

/* Episodes whose length and metrics do not count either: games of opponents alone. Of other episodes without an agent
 * the environment knows them. */
static uint8_t not_counted(const dt_buffer *b)
{
    return b->d.is_opponent != NULL ? DT_DONE_UNPLAYED : 0;
}

double dt_episode_mean(const double *x, size_t stride, size_t n, const uint8_t *done, uint8_t without, double *std_p)
{
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        if ((done == NULL || is_counted(done[i], without)) && !isnan(x[i * stride])) {
            count++;
            sum += x[i * stride];
        }
    }
    const double mean = count > 0 ? sum / count : NAN;
    for (size_t i = 0; i < n; i++) {
        if ((done == NULL || is_counted(done[i], without)) && !isnan(x[i * stride])) {
            squares += (x[i * stride] - mean) * (x[i * stride] - mean);
        }
    }
    if (std_p != NULL) {
        *std_p = count > 1 ? sqrt(squares / (count - 1)) : (double)NAN;
    }
    return mean;
}

uint64_t dt_round_count_episodes(const dt_buffer *b)
{
    const uint8_t *done = b->done + dt_buffer_slot(b, 0, 0);
    uint64_t n = 0;
    for (size_t i = 0; i < count_slots(b); i++) {
        n += is_counted(done[i], DT_DONE_UNPLAYED);
    }
    return n;
}

uint32_t dt_round_count_ends(const dt_buffer *b, uint8_t how)
{
    const uint8_t *done = b->done + dt_buffer_slot(b, 0, 0);
    uint32_t n = 0;
    for (size_t i = 0; i < count_slots(b); i++) {
        n += (done[i] & how) != 0;
    }
    return n;
}

uint64_t dt_round_count_rows(const dt_buffer *b)
{
    const int32_t *n_acts = b->n_acts + dt_buffer_slot(b, 0, 0);
    uint64_t n = 0;
    for (size_t i = 0; i < count_slots(b); i++) {
        n += (uint64_t)n_acts[i];
    }
    return n;
}

uint64_t dt_round_list_acted(const dt_buffer *b, uint64_t *sample)
{
    const int32_t *n_acts = b->n_acts + dt_buffer_slot(b, 0, 0);
    uint64_t n = 0;
    for (uint64_t i = 0; i < count_slots(b); i++) {
        if (n_acts[i] > 0) {
            sample[n++] = i;
        }
    }
    return n;
}

uint64_t dt_round_count_env_steps(const dt_buffer *b)
{
    const int32_t *n_acts = b->n_acts + dt_buffer_slot(b, 0, 0);
    uint64_t n = 0;
    for (size_t i = 0; i < count_slots(b); i++) {
        n += n_acts[i] > 0;
    }
    return n;
}

void dt_round_mark_unfinished(dt_buffer *b)
{
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents;
    const size_t end = (dt_buffer_slot(b, 0, 0) + count_slots(b)) * b->l->spec.n_agents;
    for (size_t i = end - places; i < end; i++) {
        b->report[i] |= DT_REPORT_OPEN;
    }
}

void dt_round_summarise(const dt_buffer *b, const dt_returns *x, dt_rollout_report *out)
{
    const dt_env_spec *s = &b->l->spec;
    const size_t first = dt_buffer_slot(b, 0, 0), slots = count_slots(b), stride = b->episode_items;
    const size_t at = first * s->n_agents, n = slots * s->n_agents;
    const double *episode = b->episode + first * stride;
    const uint8_t *done = b->done + first, without = not_counted(b);
    double changed = 0, infeasible = 0;
    dt_rollout_report all = {.struct_size = out->struct_size,
                             .n_costs = s->n_costs,
                             .n_metrics = s->n_metrics,
                             .env_steps = dt_round_count_env_steps(b),
                             .agent_steps = dt_round_count_rows(b),
                             .episodes = dt_round_count_episodes(b)};
    for (size_t i = at; i < at + n; i++) {
        const bool acted = (b->flag[i] & DT_STEP_ACTED) != 0;
        changed += acted && (b->report[i] & DT_REPORT_CHANGED) != 0;
        infeasible += acted && (b->report[i] & DT_REPORT_INFEASIBLE) != 0;
    }
    const double rows = all.agent_steps > 0 ? (double)all.agent_steps : (double)NAN;
    all.interventions = changed / rows;
    all.infeasible = infeasible / rows;
    all.episode_return = dt_episode_mean(episode, stride, slots, done, DT_DONE_UNPLAYED, &all.episode_return_std);
    all.episode_length = dt_episode_mean(episode + 1, stride, slots, done, without, NULL);
    for (uint32_t k = 0; k < s->n_costs; k++) {
        all.episode_cost[k] =
            dt_episode_mean(episode + 2 + k, stride, slots, done, DT_DONE_UNPLAYED, &all.episode_cost_std[k]);
        all.cost_advantage_std[k] = x->deviation[1 + k];
    }
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        all.metric[m] = dt_episode_mean(episode + 2 + s->n_costs + m, stride, slots, done, without, &all.metric_std[m]);
    }
    all.advantage_std = x->deviation[0];
    all.explained_variance = dt_gae_explained_variance(b->flag + at, n, b->target + at, b->value + at);
    memcpy(out, &all, out->struct_size < sizeof(all) ? out->struct_size : sizeof(all));
}

dt_round_part dt_round_summarise_part(const dt_buffer *b, uint32_t k, uint32_t stride)
{
    dt_round_part out = {0};
    double total = 0, length = 0, n_lengths = 0;
    for (uint32_t t = 0; t < b->d.steps; t++) {
        for (uint32_t i = k; i < b->d.instances; i += stride) {
            const size_t slot = dt_buffer_slot(b, t, i);
            const double *episode = b->episode + slot * b->episode_items;
            if (is_counted(b->done[slot], DT_DONE_UNPLAYED)) {
                out.episodes++;
                total += episode[0];
            }
            if (is_counted(b->done[slot], not_counted(b))) {
                n_lengths++;
                length += episode[1];
            }
        }
    }
    out.episode_return = out.episodes > 0 ? total / (double)out.episodes : (double)NAN;
    out.episode_length = n_lengths > 0 ? length / n_lengths : (double)NAN;
    return out;
}

double dt_round_mean_reward(const dt_buffer *b, uint32_t place)
{
    const size_t A = b->l->spec.n_agents, first = dt_buffer_slot(b, 0, 0), end = first + count_slots(b);
    double sum = 0;
    uint64_t n = 0;
    for (size_t at = first * A + place; at < end * A; at += A) {
        if ((b->flag[at] & DT_STEP_ACTED) != 0) {
            sum += (double)b->reward[at];
            n++;
        }
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}
