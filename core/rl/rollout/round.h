/* SPDX-License-Identifier: Apache-2.0
 *
 * What a collected round contains: counts, and numbers of the episodes that ended in it. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_ROUND_H
#define DTRAIN_CORE_RL_ROLLOUT_ROUND_H

#include "rl/buffer/buffer.h"
#include "rl/rollout/returns.h"

/* Episodes that ended and have a return: a learning agent was in them. */
uint64_t dt_round_count_episodes(const dt_buffer *b);
uint32_t dt_round_count_ends(const dt_buffer *b, uint8_t how); /* DT_DONE_* */
uint64_t dt_round_count_rows(const dt_buffer *b);              /* of agents that acted */
/* Steps in which an agent acted; resets are none. */
uint64_t dt_round_count_env_steps(const dt_buffer *b);
/* Samples in which an agent acted, in order, to sample [all of a round]; how many. */
uint64_t dt_round_list_acted(const dt_buffer *b, uint64_t *sample);
/* Marks the last step of the agents that continue: what follows it is of the next round. */
void dt_round_mark_unfinished(dt_buffer *b);
void dt_round_summarise(const dt_buffer *b, const dt_returns *x, dt_rollout_report *out);

/* Mean and deviation (n - 1) of x[i * stride], i < n; NAN ones do not count. done [n]: nor do those of steps that ended
 * no episode, or did with one of the flags `without`; NULL: all are counted. std_p may be NULL. */
double dt_episode_mean(const double *x, size_t stride, size_t n, const uint8_t *done, uint8_t without, double *std_p);

enum { DT_ROUND_MOST_PARTS = 16 }; /* entries of a mix, places of agents: of more, the first ones are reported */
/* Of the episodes of instances k, k + stride, ...: how many ended and have a return, and the means of their returns and
 * of lengths, NAN without one. */
typedef struct dt_round_part {
    uint64_t episodes;
    double episode_return, episode_length;
} dt_round_part;
dt_round_part dt_round_summarise_part(const dt_buffer *b, uint32_t k, uint32_t stride);
/* Mean reward of the steps in which the agent at a place acted, NAN without one; as it is in the buffer by now. */
double dt_round_mean_reward(const dt_buffer *b, uint32_t place);

#endif
