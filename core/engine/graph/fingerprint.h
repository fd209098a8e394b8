/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as text that is equal for equal graphs alone: its lines (graph.h), and the bits of every number in it.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_FINGERPRINT_H
#define DTRAIN_CORE_ENGINE_GRAPH_FINGERPRINT_H

#include "engine/graph/graph.h"

void dt_graph_fingerprint(const dt_graph *g, dt_str *out);

#endif
