/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of programs for traffic that dtrain replaces, as extension dtrain/ext/keys.h: the guides' YAML files and
 * sumo-rl.
 */
#include <config.h>

#include "traffic/guide_keys.h"

#include <stddef.h>

static const dt_key_row rows[] = {
#define GUIDE(key, phases, act, target, words, note) {key, phases, DT_KEYS_##act, 0, target, words, note},
#include "traffic/guide_keys.def"
#undef GUIDE
    {NULL, NULL, DT_KEYS_NONE, 0, NULL, NULL, NULL}};

/* sumo-rl */
static const char *const synonyms[] = {"net_file=env_sumo.sumocfg",
                                       "route_file=env_sumo.sumocfg",
                                       "cfg_file=env_sumo.sumocfg",
                                       "num_seconds=env_sumo.end_s",
                                       "begin_time=env_sumo.begin_s",
                                       "delta_time=env_sumo.decision_s",
                                       "yellow_time=env_sumo.yellow_s",
                                       "min_green=env_sumo.min_green_s",
                                       "max_green=shield_barrier.starvation_s",
                                       "max_green_s=shield_barrier.starvation_s",
                                       "max_green_time=shield_barrier.starvation_s",
                                       "reward_fn=env_sumo.reward",
                                       "reward_weights=env_sumo.reward",
                                       "observation_class=env_sumo.observation",
                                       "fixed_ts=models.controller",
                                       "time_to_teleport=env_sumo.teleport_s",
                                       "max_depart_delay=env_sumo.teleport_s",
                                       "additional_sumo_cmd=env_sumo.sumo_options",
                                       "sumo_seed=seed",
                                       NULL};

const dt_keys_ext dt_guide_keys = {
    .struct_size = sizeof(dt_keys_ext),
    .phase = {"phase1_world_model", "phase2_ppo", "phase3_constrained"},
    .rows = rows,
    .roles = "risk_gnn=perception gnn=perception perception=perception world_model=world "
             "progressive_world_model=world world_lstm=world world=world controller=controller "
             "influence_driven_controller=controller safety_shield=shield shield=shield",
    .groups = "constraints=3 rllib=2 ray=2 sumo=2",
    .synonyms = synonyms};
