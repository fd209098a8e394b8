/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per minor version of the plugin ABI; tests/abi holds the golden sizes and offsets of each.
 *
 * 1.0  2026-11  descriptor, options, phases, models, data; environments provisional. Services: dtrain.graph/1,
 *               dtrain.bind/1, dtrain.train/1, dtrain.metrics/1, dtrain.comm/1, dtrain.rng/1, dtrain.store/1,
 *               dtrain.features/1. Extensions: dtrain.defaults/1.
 */
#ifndef DTRAIN_ABI_LOG_H
#define DTRAIN_ABI_LOG_H
#endif
