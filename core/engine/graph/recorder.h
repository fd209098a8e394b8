/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of a graph being recorded, for the files of this room only.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_RECORDER_H
#define DTRAIN_CORE_ENGINE_GRAPH_RECORDER_H

#include "base/err.h"
#include "engine/graph/ir.h"

enum { DT_GRAPH_MAX_SCOPE = 64 };

struct dt_tensor { /* the handle of a value */
    struct dt_recorder *recorder;
    int32_t value;
};

typedef struct dt_recorder {
    struct dt_graph face; /* first: a dt_graph * is a dt_recorder * */
    dt_graph_desc desc;
    dt_ir ir;
    dt_tensor **tensor; /* per value, made when first handed out */
    int32_t n_tensors;
    char scope[DT_GRAPH_MAX_SCOPE];
    const char *source; /* dt_graph_set_source, NULL: none */
    const char *target; /* of the model that is being recorded, NULL: itself */
    dt_graph_loss loss[DT_GRAPH_MAX_LOSSES];
    int32_t n_regions;
    uint32_t n_step_inputs, n_dropouts;
    bool in_region;
    dt_error error; /* the first one */
} dt_recorder;

#endif
