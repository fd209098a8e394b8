/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per minor version of the plugin ABI; tests/abi holds the golden sizes and offsets of each.
 *
 * 1.0  2026-11  descriptor, options, phases, models, data; environments provisional. Services: dtrain.graph/1,
 *               dtrain.bind/1, dtrain.train/1, dtrain.metrics/1, dtrain.comm/1, dtrain.rng/1, dtrain.store/1,
 *               dtrain.features/1. Extensions: dtrain.defaults/1.
 * 1.1  2026-11  environments final: spec after create (what a world offers may depend on the files it read), episodes
 *               seeded by reset, ragged observations with live sizes, alive, metrics; no save and load (the host
 *               repeats an episode by its actions). bind: env, env_spec, env_id, env_instances. train: epochs of a
 *               phase, seek; parameters as a vector that a phase moves itself, gradients and values of losses over
 *               all samples, stored data beside a rollout's. dt_progress: iterations. Service dtrain.rollout/1.
 *               DT_COMP_PROCESS, DT_PORT_INDEX, DT_INIT_ORTHO. Headers random.h, motion.h. graph: result; ops
 *               categorical, gaussian, ppo_clip, value_loss. Extension dtrain.baselines/1. metrics: picture.
 *               DT_PORT_STEPS. Extension dtrain.scene/1. graph: kept; rollout: kept columns, outputs for
 *               pictures. features: pairs.
 * 1.2  2026-11  DT_OPT_CODE. dt_store_view: accel_centred, roads, regions; DT_LANE_*. rollout: of what a shield forbids
 *               the least harm is left.
 *               Extension dtrain.program/1. DT_OPT_TRAINING. rollout: ahead. graph: ops stop, fill, noise, reduce,
 *               transpose, matmul, pick, unfold; sqrt, div; derivatives of min and max. dt_env_io: episode.
 *               rollout: transitions = 2, squash, annotations, returns. Services dtrain.wiring/1,
 *               dtrain.rounds/1, dtrain.replay/1. train: groups, step_groups, shadows, shadow_copy; graph: model_as,
 *               purpose. DT_SET, for C and C++ alike. store: open_packed, read. dt_env_spec: team. dt_data_ops:
 *               weights. bind: own_data, env_learners; train: parameter, refill; comm: broadcast, reduce;
 *               DT_RANKS_*. replay: stored, told.
 *               Lists of each agent's own: DT_PORT_INDEX of "A+1". Fields of data: DT_PORT_INDEX, DT_PORT_PLAIN.
 *               DT_INIT_CONSTANT; dt_data_ops: statistics; bind: data_statistics; train: constant_get, constant_set;
 *               dt_train_param: is_constant. Header normalise.h.
 *               DT_COMP_OWN_BATCH. dt_phase_ops: finish. Extension dtrain.results/1. dt_scene: delay_s. dt_column;
 *               dt_env_spec: columns, places, choices_shown. Extension dtrain.columns/1. Extensions
 *               dtrain.verbs/1, dtrain.doctor/1, dtrain.panels/1.
 */
#ifndef DTRAIN_ABI_LOG_H
#define DTRAIN_ABI_LOG_H
#endif
