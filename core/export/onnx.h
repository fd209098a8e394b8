/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle as an ONNX model (opset 18, IR version 8, standard ops alone), for any runtime that reads such.
 *
 * Inputs are the bundle's, dimensions by their symbols ("A", "E", "N_plus_1"); outputs those of the graph and, of a
 * policy, what it does: action_i [A,heads] i32, the first of the most likely choices that mask and shield permit, and
 * action_f [A,continuous] f32, the mean within the bounds of shield and environment (core/rl/buffer/dist.h, greedy).
 * mask [A,choices] f32 is one more input then, > 0 where the environment allows the choice; where mask and shield
 * together leave nothing of a head, those that the mask leaves and the shield gives the greatest value. Edges of graphs
 * are in CSR, as everywhere in dtrain: the model itself makes what scattering needs. Recurrent layers are unrolled
 * over their steps, so that a held state (present = 0) is exact. Threads: [any].
 */
#ifndef DTRAIN_CORE_EXPORT_ONNX_H
#define DTRAIN_CORE_EXPORT_ONNX_H

#include "export/bundle.h"

/* Written whole or not at all. Errors: DT_EINVAL naming an op that has no spelling in ONNX, or a model beyond the 2 GiB
 * of its format; DT_EIO, DT_ENOMEM. */
dt_status dt_onnx_write(const dt_bundle *b, const char *path) DT_NODISCARD;

#endif
