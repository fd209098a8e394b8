/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per minor version of the plugin ABI; tests/abi holds the golden sizes and offsets of each.
 *
 * 1.0  2026-11  descriptor, options, phases, models, environments, data. Services bind, comm, features, graph, metrics,
 *               replay, rng, rollout, rounds, store, train, wiring. Extensions baselines, columns, defaults, doctor,
 *               isolated, keys, ops, panels, program, results, scene, verbs. Headers random.h, traffic/labels.h,
 *               traffic/motion.h, traffic/normalise.h.
 */
#ifndef DTRAIN_ABI_LOG_H
#define DTRAIN_ABI_LOG_H
#endif
