/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the op tests. See harness.h.
 */
#include "ops/harness.h"

/* clang-format off */
#define A0 {{0}, {0}}
#define FN(fn, f0) {{fn}, {f0}}
#define I2(i0, i1) {{i0, i1}, {0}}
#define I3(i0, i1, i2) {{i0, i1, i2}, {0}}
#define F2(f0, f1) {{0}, {f0, f1}}
#define UNARY_OF_Y {{DT_OPX_UNARY_BWD, "g o0", "f0"}}
#define UNARY_OF_X {{DT_OPX_UNARY_BWD, "g i0", "f0"}}
#define LINEAR_D {{DT_OPX_LINEAR_DX, "g i1", "f0"}, {DT_OPX_LINEAR_DW, "i0 g", "a1"}, {DT_OPX_COLSUM, "g", "a2"}}
#define LINEAR_D2 {{DT_OPX_LINEAR_DX, "g i1", "f0"}, {DT_OPX_LINEAR_DW, "i0 g", "a1"}}
#define NORM_D {{DT_OPX_LAYERNORM_BWD, "g i0 i1 i3 o1", "f0 a1 a2"}}
#define GAT_D {{DT_OPX_GAT_BWD, "g i0 i1 i2 i3 i4 i5 i6 o1", "f0 a1 a2 f3 a4"}}
#define GAT_D3 {{DT_OPX_GAT_BWD, "g i0 i1 i2 i3 i4 i5 i6 o1", "f0 a1 a2"}}
#define QK_D {{DT_OPX_GRAPH_QK_BWD, "g i0 i1 i2 i3 i4 i5 o1", "f0 f1 f2 f3"}}
#define QK_D3 {{DT_OPX_GRAPH_QK_BWD, "g i0 i1 i2 i3 i4 i5 o1", "f0 f1 f2"}}
#define LSTM_D {{DT_OPX_LSTM_BWD, "g o0 o1 o2 i1 i2", "f0 a1"}}
#define GRU_D {{DT_OPX_GRU_BWD, "g o0 o1 i1 i3", "f0 a1 a2"}}
#define NLL_D {{DT_OPX_GAUSSIAN_NLL_BWD, "g i0 i1 i2 i3", "f0 f1"}}
#define CHOICE_D {{DT_OPX_CATEGORICAL_BWD, "g g1 i0 i1 i2", "f0"}, {DT_OPX_CATEGORICAL_BWD, "g - i0 i1 i2", "f0"}, \
    {DT_OPX_CATEGORICAL_BWD, "- g1 i0 i1 i2", "f0"}}
#define NORMAL_D {{DT_OPX_GAUSSIAN_BWD, "g g1 i0 i1 i2", "f0 f1"}, {DT_OPX_GAUSSIAN_BWD, "g - i0 i1 i2", "f0 f1"}, \
    {DT_OPX_GAUSSIAN_BWD, "- g1 i0 i1 i2", "f0 f1"}}
#define NORMAL_D1 {{DT_OPX_GAUSSIAN_BWD, "g g1 i0 i1 i2", "f0 s1"}, {DT_OPX_GAUSSIAN_BWD, "g - i0 i1 i2", "f0 s1"}}
#define PPO_D {{DT_OPX_PPO_CLIP_BWD, "g g1 i0 i1 i2", "f0"}, {DT_OPX_PPO_CLIP_BWD, "g - i0 i1 i2", "f0"}, \
    {DT_OPX_PPO_CLIP_BWD, "- g1 i0 i1 i2", "f0"}}
#define VALUE_D {{DT_OPX_VALUE_LOSS_BWD, "g i0 i1 i2", "f0"}}
#define HOW(how, clip) {{how}, {clip}}
#define LOSS_D(op) {{op, "g i0 i1 i2", "f0"}}

const op_case op_cases[] = {
    {"linear", DT_OP_LINEAR, A0, {"x N5 7", "x 3 7", "x 3"}, {"f N5 3"}, NULL, LINEAR_D, 0, 0},
    {"linear without bias", DT_OP_LINEAR, A0, {"x 2 N3 9", "x 16 9", "-"}, {"f 2 N3 16"}, NULL, LINEAR_D2, 0, 0},
    {"linear one row", DT_OP_LINEAR, A0, {"x N1 33", "x 17 33", "x 17"}, {"f N1 17"}, NULL, LINEAR_D, 0, 0},
    {"linear no rows", DT_OP_LINEAR, A0, {"x N0 8", "x 4 8", "x 4"}, {"f N0 4"}, NULL, LINEAR_D, 0, 0},
    {"linear prime", DT_OP_LINEAR, A0, {"x N61 67", "x 71 67", "x 71"}, {"f N61 71"}, NULL, LINEAR_D, 0, 0},
    {"linear one output", DT_OP_LINEAR, A0, {"x N37 64", "x 1 64", "x 1"}, {"f N37 1"}, NULL, LINEAR_D, 0, 0},
    {"linear one input", DT_OP_LINEAR, A0, {"x N19 1", "x 5 1", "x 5"}, {"f N19 5"}, NULL, LINEAR_D, 0, 0},
    {"linear large", DT_OP_LINEAR, A0, {"x N203 256", "x 264 256", "x 264"}, {"f N203 264"}, NULL, LINEAR_D, 256, 0},
    {"linear long", DT_OP_LINEAR, A0, {"x N1031 40", "x 48 40", "x 48"}, {"f N1031 48"}, NULL, LINEAR_D, 1031, 0},
    {"linear deep", DT_OP_LINEAR, A0, {"x N13 1100", "x 20 1100", "x 20"}, {"f N13 20"}, NULL, LINEAR_D, 1100, 0},
    {"linear relu", DT_OP_LINEAR, FN(DT_FN_RELU, 0), {"x N13 9", "x 33 9", "x 33"}, {"f N13 33"}, NULL, {{0}}, 0, 0},
    {"linear elu", DT_OP_LINEAR, FN(DT_FN_ELU, 1), {"x N13 9", "x 33 9", "x 33"}, {"f N13 33"}, NULL, {{0}}, 0, 0},
    {"linear leaky", DT_OP_LINEAR, FN(DT_FN_LEAKY, 0.2), {"x N13 9", "x 33 9", "-"}, {"f N13 33"}, NULL, {{0}}, 0, 0},
    {"linear gelu", DT_OP_LINEAR, FN(DT_FN_GELU, 0), {"x N13 9", "x 33 9", "x 33"}, {"f N13 33"}, NULL, {{0}}, 0, 0},
    {"linear tanh", DT_OP_LINEAR, FN(DT_FN_TANH, 0), {"x N13 9", "x 33 9", "x 33"}, {"f N13 33"}, NULL, {{0}}, 0, 0},
    {"linear sigmoid", DT_OP_LINEAR, FN(DT_FN_SIGMOID, 0), {"x N3 9", "x 65 9", "x 65"},
     {"f N3 65"}, NULL, {{0}}, 0, 0},
    {"linear softplus", DT_OP_LINEAR, FN(DT_FN_SOFTPLUS, 0), {"x N3 9", "x 7 9", "x 7"}, {"f N3 7"}, NULL, {{0}}, 0, 0},
    {"linear exp", DT_OP_LINEAR, FN(DT_FN_EXP, 0), {"x N3 9", "x 7 9", "x 7"}, {"f N3 7"}, NULL, {{0}}, 0, 0},

    {"relu", DT_OP_UNARY, FN(DT_FN_RELU, 0), {"k N5 7"}, {"f N5 7"}, NULL, UNARY_OF_Y, 0, 1},
    {"leaky", DT_OP_UNARY, FN(DT_FN_LEAKY, 0.2), {"k N5 7"}, {"f N5 7"}, NULL, UNARY_OF_Y, 0, 1},
    {"elu", DT_OP_UNARY, FN(DT_FN_ELU, 1), {"k N11 13"}, {"f N11 13"}, NULL, UNARY_OF_Y, 0, 1},
    {"elu alpha", DT_OP_UNARY, FN(DT_FN_ELU, 0.7), {"k N5 7"}, {"f N5 7"}, NULL, UNARY_OF_Y, 0, 1},
    {"gelu", DT_OP_UNARY, FN(DT_FN_GELU, 0), {"x N11 13"}, {"f N11 13"}, NULL, UNARY_OF_X, 0, 1},
    {"tanh", DT_OP_UNARY, FN(DT_FN_TANH, 0), {"x N11 13"}, {"f N11 13"}, NULL, UNARY_OF_Y, 0, 1},
    {"sigmoid", DT_OP_UNARY, FN(DT_FN_SIGMOID, 0), {"x N11 13"}, {"f N11 13"}, NULL, UNARY_OF_Y, 0, 1},
    {"softplus", DT_OP_UNARY, FN(DT_FN_SOFTPLUS, 0), {"x N11 13"}, {"f N11 13"}, NULL, UNARY_OF_Y, 0, 1},
    {"exp", DT_OP_UNARY, FN(DT_FN_EXP, 0), {"x N11 13"}, {"f N11 13"}, NULL, UNARY_OF_Y, 0, 1},
    {"log", DT_OP_UNARY, FN(DT_FN_LOG, 0), {"p N11 13"}, {"f N11 13"}, NULL, UNARY_OF_X, 0, 1},
    {"unary nothing", DT_OP_UNARY, FN(DT_FN_TANH, 0), {"x N0 7"}, {"f N0 7"}, NULL, UNARY_OF_Y, 0, 1},
    {"affine", DT_OP_AFFINE, F2(-1.5, 0.25), {"x N5 7"}, {"f N5 7"}, NULL, {{0}}, 0, 1},
    {"clamp", DT_OP_CLAMP, F2(-0.5, 0.5), {"k N5 17"}, {"f N5 17"}, NULL, {{DT_OPX_CLAMP_BWD, "g i0", "f0"}}, 0, 1},

    {"add", DT_OP_BINARY, I2(DT_BIN_ADD, 0), {"x 3 N5 7", "x 3 N5 7"}, {"f 3 N5 7"}, NULL, {{0}}, 0, 1},
    {"sub row", DT_OP_BINARY, I2(DT_BIN_SUB, 0), {"x 3 N5 37", "x 37"}, {"f 3 N5 37"}, NULL, {{0}}, 0, 1},
    {"mul column", DT_OP_BINARY, I2(DT_BIN_MUL, 0), {"x 3 N5 37", "x 3 N5 1"}, {"f 3 N5 37"}, NULL, {{0}}, 0, 1},
    {"min", DT_OP_BINARY, I2(DT_BIN_MIN, 0), {"x N17", "x N17"}, {"f N17"}, NULL, {{0}}, 0, 1},
    {"max row", DT_OP_BINARY, I2(DT_BIN_MAX, 0), {"x N9 3", "x 3"}, {"f N9 3"}, NULL, {{0}}, 0, 1},
    {"mul one column", DT_OP_BINARY, I2(DT_BIN_MUL, 0), {"x N9 1", "x N9 1"}, {"f N9 1"}, NULL, {{0}}, 0, 1},
    {"mul one number", DT_OP_BINARY, I2(DT_BIN_MUL, 0), {"x N9 1", "x 1"}, {"f N9 1"}, NULL, {{0}}, 0, 1},
    {"add nothing", DT_OP_BINARY, I2(DT_BIN_ADD, 0), {"x N0 5", "x 5"}, {"f N0 5"}, NULL, {{0}}, 0, 1},

    {"concat", DT_OP_CONCAT, A0, {"x 2 N3 5", "x 2 N3 1", "x 2 N3 33"}, {"f 2 N3 39"}, NULL, {{0}}, 0, 0},
    {"concat by fours", DT_OP_CONCAT, A0, {"x N3 8", "x N3 4", "x N3 16", "x N3 4"}, {"f N3 32"}, NULL, {{0}}, 0, 0},
    {"slice by fours", DT_OP_SLICE, I3(4, 8, 20), {"x N5 20"}, {"f N5 8"}, NULL, {{DT_OPX_SLICE_BWD, "g", "f0"}}, 0, 0},
    {"slice", DT_OP_SLICE, I3(3, 4, 11), {"x N5 11"}, {"f N5 4"}, NULL, {{DT_OPX_SLICE_BWD, "g", "f0"}}, 0, 0},
    {"slice nothing", DT_OP_SLICE, I3(3, 4, 11), {"x N0 11"}, {"f N0 4"}, NULL, {{DT_OPX_SLICE_BWD, "g", "f0"}}, 0, 0},
    {"step", DT_OP_STEP, I2(1, 3), {"x 3 N5 7"}, {"f N5 7"}, NULL, {{DT_OPX_STEP_BWD, "g", "f0"}}, 0, 0},
    {"last step", DT_OP_STEP, I2(-1, 3), {"x 3 N5 7"}, {"f N5 7"}, NULL, {{DT_OPX_STEP_BWD, "g", "f0"}}, 0, 0},
    {"step by fours", DT_OP_STEP, I2(1, 3), {"x 3 N5 8"}, {"f N5 8"}, NULL, {{DT_OPX_STEP_BWD, "g", "f0"}}, 0, 0},
    {"step of sizes", DT_OP_STEP, I2(1, 3), {"x 3 N5"}, {"f N5"}, NULL, {{DT_OPX_STEP_BWD, "g", "f0"}}, 0, 0},
    {"step of nothing", DT_OP_STEP, I2(-1, 3), {"x 3 N0 7"}, {"f N0 7"}, NULL, {{DT_OPX_STEP_BWD, "g", "f0"}}, 0, 0},
    {"gather", DT_OP_GATHER, A0, {"x R5 7", "iR5 M3 4"},
     {"f M3 4 7"}, NULL, {{DT_OPX_GATHER_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"gather wide", DT_OP_GATHER, A0, {"x R5 67", "iR5 M31"},
     {"f M31 67"}, NULL, {{DT_OPX_GATHER_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"gather by fours", DT_OP_GATHER, A0, {"x R7 132", "iR7 2 M50"},
     {"f 2 M50 132"}, NULL, {{DT_OPX_GATHER_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"gather nothing", DT_OP_GATHER, A0, {"x R5 7", "iR5 M0"},
     {"f M0 7"}, NULL, {{DT_OPX_GATHER_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"segment mean", DT_OP_SEGMENT_MEAN, A0, {"x R23 37", "sR23 B5+1"}, {"f B5 37"}, NULL,
     {{DT_OPX_SEGMENT_MEAN_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"segment mean by fours", DT_OP_SEGMENT_MEAN, A0, {"x R41 40", "sR41 B6+1"}, {"f B6 40"}, NULL,
     {{DT_OPX_SEGMENT_MEAN_BWD, "g i1 s0", "f0"}}, 0, 0},
    {"segment mean of nothing", DT_OP_SEGMENT_MEAN, A0, {"x R0 3", "sR0 B2+1"}, {"f B2 3"}, NULL,
     {{DT_OPX_SEGMENT_MEAN_BWD, "g i1 s0", "f0"}}, 0, 0},

    {"layernorm", DT_OP_LAYERNORM, F2(1e-5, 0), {"x N5 7", "x 7", "x 7", "x N5 7"},
     {"f N5 7", "f N5 2"}, NULL, NORM_D, 0, 0},
    {"layernorm alone", DT_OP_LAYERNORM, F2(1e-5, 0), {"x 3 N2 67", "x 67", "x 67", "-"},
     {"f 3 N2 67", "f 3 N2 2"}, NULL, NORM_D, 0, 0},
    {"layernorm 256", DT_OP_LAYERNORM, F2(1e-5, 0), {"x N37 256", "x 256", "x 256", "x N37 256"},
     {"f N37 256", "f N37 2"}, NULL, NORM_D, 0, 0},
    {"layernorm nothing", DT_OP_LAYERNORM, F2(1e-5, 0), {"x N0 7", "x 7", "x 7", "x N0 7"},
     {"f N0 7", "f N0 2"}, NULL, NORM_D, 0, 0},
    {"softmax", DT_OP_SOFTMAX, A0, {"x N5 7"}, {"f N5 7"}, NULL, {{DT_OPX_SOFTMAX_BWD, "g o0", "f0"}}, 0, 1},
    {"softmax wide", DT_OP_SOFTMAX, A0, {"x N3 101"}, {"f N3 101"}, NULL, {{DT_OPX_SOFTMAX_BWD, "g o0", "f0"}}, 0, 1},

    {"gat", DT_OP_GAT, FN(2, 0.2), {"x N6 10", "x 10", "x 10", "x E17 4", "x 2 4", "rE17 N6+1", "cN6 E17"},
     {"f N6 10", "f E17 2"}, NULL, GAT_D, 0, 0},
    {"gat 3 edge features", DT_OP_GAT, FN(3, 0.2), {"x N5 39", "x 39", "x 39", "x E31 3", "x 3 3",
     "rE31 N5+1", "cN5 E31"},
     {"f N5 39", "f E31 3"}, NULL, GAT_D, 0, 0},
    {"gat without edges", DT_OP_GAT, FN(1, 0.1), {"x N9 5", "x 5", "x 5", "-", "-", "rE41 N9+1", "cN9 E41"},
     {"f N9 5", "f E41 1"}, NULL, GAT_D3, 0, 0},
    {"gat 8 x 32", DT_OP_GAT, FN(8, 0.2), {"x N29 256", "x 256", "x 256", "x E211 4", "x 8 4",
     "rE211 N29+1", "cN29 E211"},
     {"f N29 256", "f E211 8"}, NULL, GAT_D, 0, 0},
    {"gat 4 x 16", DT_OP_GAT, FN(4, 0.2), {"x N13 64", "x 64", "x 64", "x E53 4", "x 4 4", "rE53 N13+1", "cN13 E53"},
     {"f N13 64", "f E53 4"}, NULL, GAT_D, 0, 0},
    {"gat 1 x 132", DT_OP_GAT, FN(1, 0.2), {"x N5 132", "z 132", "z 132", "x E11 2", "x 1 2", "rE11 N5+1", "cN5 E11"},
     {"f N5 132", "f E11 1"}, NULL, GAT_D, 0, 0},
    {"gat 1 x 261", DT_OP_GAT, FN(1, 0.2), {"x N4 261", "z 261", "z 261", "x E7 2", "x 1 2", "rE7 N4+1", "cN4 E7"},
     {"f N4 261", "f E7 1"}, NULL, GAT_D, 0, 0},
    {"gat 40 x 2", DT_OP_GAT, FN(40, 0.2), {"x N9 80", "x 80", "x 80", "x E33 2", "x 40 2", "rE33 N9+1", "cN9 E33"},
     {"f N9 80", "f E33 40"}, NULL, GAT_D, 0, 0},
    {"gat nothing", DT_OP_GAT, FN(2, 0.2), {"x N0 10", "x 10", "x 10", "x E0 4", "x 2 4", "rE0 N0+1", "cN0 E0"},
     {"f N0 10", "f E0 2"}, NULL, GAT_D, 0, 0},
    {"gat no neighbours", DT_OP_GAT, FN(2, 0.2), {"x N3 10", "x 10", "x 10", "x E0 4", "x 2 4", "rE0 N3+1", "cN3 E0"},
     {"f N3 10", "f E0 2"}, NULL, GAT_D, 0, 0},
    {"graph qk", DT_OP_GRAPH_QK, I2(2, 0), {"x N6 10", "x N6 10", "x N6 10", "x E17 2", "rE17 N6+1", "cN6 E17"},
     {"f N6 10", "f E17 2"}, NULL, QK_D, 0, 0},
    {"graph qk without bias", DT_OP_GRAPH_QK, I2(3, 0), {"x N5 39", "x N5 39", "x N5 39", "-", "rE31 N5+1", "cN5 E31"},
     {"f N5 39", "f E31 3"}, NULL, QK_D3, 0, 0},
    {"graph qk 8 x 32", DT_OP_GRAPH_QK, I2(8, 0), {"x N29 256", "x N29 256", "x N29 256", "x E211 8",
     "rE211 N29+1", "cN29 E211"},
     {"f N29 256", "f E211 8"}, NULL, QK_D, 0, 0},
    {"graph qk 2 x 132", DT_OP_GRAPH_QK, I2(2, 0), {"x N5 264", "x N5 264", "x N5 264", "x E9 2", "rE9 N5+1", "cN5 E9"},
     {"f N5 264", "f E9 2"}, NULL, QK_D, 0, 0},
    {"graph qk 1 x 270", DT_OP_GRAPH_QK, I2(1, 0), {"x N4 270", "x N4 270", "x N4 270", "-", "rE7 N4+1", "cN4 E7"},
     {"f N4 270", "f E7 1"}, NULL, QK_D3, 0, 0},
    {"graph qk nothing", DT_OP_GRAPH_QK, I2(2, 0), {"x N0 10", "x N0 10", "x N0 10", "x E0 2", "rE0 N0+1", "cN0 E0"},
     {"f N0 10", "f E0 2"}, NULL, QK_D, 0, 0},

    {"lstm", DT_OP_LSTM, A0, {"x 4 S3 20", "x 20 5", "m 4 S3"},
     {"f 4 S3 5", "f 4 S3 20", "f 4 S3 5"}, "a", LSTM_D, 0, 0},
    {"lstm always present", DT_OP_LSTM, A0, {"x 3 S2 28", "x 28 7", "-"},
     {"f 3 S2 7", "f 3 S2 28", "f 3 S2 7"}, NULL, LSTM_D, 0, 0},
    {"lstm 64", DT_OP_LSTM, A0, {"x 7 S13 256", "x 256 64", "m 7 S13"},
     {"f 7 S13 64", "f 7 S13 256", "f 7 S13 64"}, "a", LSTM_D, 0, 0},
    {"lstm 37 sequences", DT_OP_LSTM, A0, {"x 3 S37 144", "x 144 36", "m 3 S37"},
     {"f 3 S37 36", "f 3 S37 144", "f 3 S37 36"}, "a", LSTM_D, 0, 0},
    {"lstm 96", DT_OP_LSTM, A0, {"x 3 S35 384", "x 384 96", "m 3 S35"},
     {"f 3 S35 96", "f 3 S35 384", "f 3 S35 96"}, "a", LSTM_D, 0, 0},
    {"lstm one step", DT_OP_LSTM, A0, {"x 1 S3 12", "x 12 3", "m 1 S3"},
     {"f 1 S3 3", "f 1 S3 12", "f 1 S3 3"}, "a", LSTM_D, 0, 0},
    {"lstm no sequences", DT_OP_LSTM, A0, {"x 4 S0 20", "x 20 5", "m 4 S0"},
     {"f 4 S0 5", "f 4 S0 20", "f 4 S0 5"}, "a", LSTM_D, 0, 0},
    {"gru", DT_OP_GRU, A0, {"x 4 S3 15", "x 15 5", "x 15", "m 4 S3"}, {"f 4 S3 5", "f 4 S3 20"}, "a", GRU_D, 0, 0},
    {"gru always present", DT_OP_GRU, A0, {"x 3 S2 21", "x 21 7", "x 21", "-"},
     {"f 3 S2 7", "f 3 S2 28"}, NULL, GRU_D, 0, 0},
    {"gru 64", DT_OP_GRU, A0, {"x 7 S13 192", "x 192 64", "x 192", "m 7 S13"},
     {"f 7 S13 64", "f 7 S13 256"}, "a", GRU_D, 0, 0},
    {"gru 37 sequences", DT_OP_GRU, A0, {"x 3 S37 99", "x 99 33", "x 99", "m 3 S37"},
     {"f 3 S37 33", "f 3 S37 132"}, "a", GRU_D, 0, 0},
    {"gru no sequences", DT_OP_GRU, A0, {"x 4 S0 15", "x 15 5", "x 15", "m 4 S0"},
     {"f 4 S0 5", "f 4 S0 20"}, "a", GRU_D, 0, 0},
    {"cumsum", DT_OP_CUMSUM, A0, {"x N3 5 2"}, {"f N3 5 2"}, NULL, {{DT_OPX_CUMSUM_BWD, "g", "f0"}}, 0, 1},
    {"cumsum wide", DT_OP_CUMSUM, A0, {"x N2 3 37"}, {"f N2 3 37"}, NULL, {{DT_OPX_CUMSUM_BWD, "g", "f0"}}, 0, 1},
    {"dropout", DT_OP_DROPOUT, {{77}, {0.3}}, {"x N9 37", "K N9"},
     {"f N9 37"}, NULL, {{DT_OP_DROPOUT, "g i1", "f0"}}, 0, 1},

    {"sum", DT_OP_SUM, A0, {"x N31 37"}, {"d 1"}, NULL, {{DT_OPX_SUM_BWD, "g s0", "f0"}}, 0, 0},
    {"sum of many", DT_OP_SUM, A0, {"x N1301 5"}, {"d 1"}, NULL, {{DT_OPX_SUM_BWD, "g s0", "f0"}}, 0, 0},
    {"sum of nothing", DT_OP_SUM, A0, {"x N0 37"}, {"d 1"}, NULL, {{DT_OPX_SUM_BWD, "g s0", "f0"}}, 0, 0},
    {"colsum", DT_OPX_COLSUM, A0, {"x N31 37"}, {"a 37"}, NULL, {{0}}, 0, 0},
    {"colsum of nothing", DT_OPX_COLSUM, A0, {"x N0 37"}, {"a 37"}, NULL, {{0}}, 0, 0},
    {"rowsum", DT_OPX_ROWSUM, A0, {"x 5 N7 37"}, {"f 5 N7 1"}, NULL, {{0}}, 0, 0},
    {"gaussian nll", DT_OP_GAUSSIAN_NLL, A0, {"x N5 3 2", "x N5 3 2", "x N5 3 2", "w N5 3"},
     {"d 1"}, "abc", NLL_D, 0, 0},
    {"gaussian nll scene", DT_OP_GAUSSIAN_NLL, A0, {"x N7 38", "x N7 38", "x N7 38", "w N7"},
     {"d 1"}, "abc", NLL_D, 0, 0},
    {"gaussian nll nothing", DT_OP_GAUSSIAN_NLL, A0, {"x N0 3 2", "x N0 3 2", "x N0 3 2", "w N0 3"},
     {"d 1"}, NULL, NLL_D, 0, 0},
    {"gaussian nll unweighted", DT_OP_GAUSSIAN_NLL, A0, {"x N4 2", "x N4 2", "x N4 2", "z N4"},
     {"d 1"}, "abc", NLL_D, 0, 0},
    {"bce", DT_OP_BCE_LOGITS, A0, {"x N53", "p N53", "w N53"}, {"d 1"}, "ab", LOSS_D(DT_OPX_BCE_LOGITS_BWD), 0, 0},
    {"bce nothing", DT_OP_BCE_LOGITS, A0, {"x N0", "p N0", "w N0"}, {"d 1"}, "ab", LOSS_D(DT_OPX_BCE_LOGITS_BWD), 0, 0},
    {"mse", DT_OP_MSE, A0, {"x N5 3 9", "x N5 3 9", "w N5 3"}, {"d 1"}, "ab", LOSS_D(DT_OPX_MSE_BWD), 0, 0},
    {"mse of many", DT_OP_MSE, A0, {"x N2003 4", "x N2003 4", "w N2003"}, {"d 1"}, "ab", LOSS_D(DT_OPX_MSE_BWD), 0, 0},
    {"huber", DT_OP_HUBER, F2(0.8, 0), {"x N5 3 9", "x N5 3 9", "w N5 3"},
     {"d 1"}, "ab", LOSS_D(DT_OPX_HUBER_BWD), 0, 0},

    {"categorical", DT_OP_CATEGORICAL, A0, {"x N37 5", "c5 N37 1", "-"}, {"f N37", "f N37"}, NULL, CHOICE_D, 0, 0},
    {"categorical masked", DT_OP_CATEGORICAL, I2(1, 0), {"x N41 5", "i6 N41 3", "m N41 5"},
     {"f N41", "f N41"}, "a", CHOICE_D, 0, 0},
    {"categorical of steps", DT_OP_CATEGORICAL, A0, {"x 3 N5 101", "c101 3 N5 1", "m 3 N5 101"},
     {"f 3 N5", "f 3 N5"}, NULL, CHOICE_D, 0, 0},
    {"categorical mostly forbidden", DT_OP_CATEGORICAL, A0, {"x N16 2", "c2 N16 1", "m N16 2"},
     {"f N16", "f N16"}, "a", CHOICE_D, 0, 0},
    {"categorical far apart", DT_OP_CATEGORICAL, A0, {"b N37 7", "c7 N37 1", "-"},
     {"f N37", "f N37"}, NULL, CHOICE_D, 0, 0},
    {"categorical one choice", DT_OP_CATEGORICAL, A0, {"x N9 1", "c1 N9 1", "-"},
     {"f N9", "f N9"}, NULL, CHOICE_D, 0, 0},
    {"categorical nothing", DT_OP_CATEGORICAL, A0, {"x N0 5", "c5 N0 1", "m N0 5"},
     {"f N0", "f N0"}, NULL, CHOICE_D, 0, 0},
    {"gaussian", DT_OP_GAUSSIAN, A0, {"x N37 3", "x N37 3", "x N37 3"}, {"f N37", "f N37"}, NULL, NORMAL_D, 0, 0},
    {"gaussian one width", DT_OP_GAUSSIAN, A0, {"x N37 3", "x 3", "x N37 3"},
     {"f N37", "f N37"}, NULL, NORMAL_D1, 0, 0},
    {"gaussian of steps", DT_OP_GAUSSIAN, A0, {"x 3 N5 1", "x 1", "x 3 N5 1"},
     {"f 3 N5", "f 3 N5"}, NULL, NORMAL_D1, 0, 0},
    {"gaussian wide and narrow", DT_OP_GAUSSIAN, A0, {"x N31 2", "b N31 2", "x N31 2"},
     {"f N31", "f N31"}, NULL, {{0}}, 0, 0},
    {"gaussian nothing", DT_OP_GAUSSIAN, A0, {"x N0 3", "x 3", "x N0 3"}, {"f N0", "f N0"}, NULL, NORMAL_D1, 0, 0},
    {"ppo clip", DT_OP_PPO_CLIP, F2(0.2, 0.3), {"x N67", "x N67", "x N67"},
     {"f N67", "f N67", "f N67"}, NULL, PPO_D, 0, 0},
    {"ppo clip of steps", DT_OP_PPO_CLIP, F2(0.9, 5), {"x 3 N5", "x 3 N5", "x 3 N5"},
     {"f 3 N5", "f 3 N5", "f 3 N5"}, NULL, PPO_D, 0, 0},
    {"ppo clip far apart", DT_OP_PPO_CLIP, F2(0.2, 0.2), {"b N67", "b N67", "x N67"},
     {"f N67", "f N67", "f N67"}, NULL, PPO_D, 0, 0},
    {"ppo clip nothing", DT_OP_PPO_CLIP, F2(0.2, 0.2), {"x N0", "x N0", "x N0"},
     {"f N0", "f N0", "f N0"}, NULL, PPO_D, 0, 0},
    {"value loss", DT_OP_VALUE_LOSS, HOW(DT_VALUE_PLAIN, 0), {"x N67", "x N67", "-"}, {"f N67"}, NULL, VALUE_D, 0, 0},
    {"value loss clip step", DT_OP_VALUE_LOSS, HOW(DT_VALUE_CLIP_STEP, 0.7), {"x 3 N17", "x 3 N17", "x 3 N17"},
     {"f 3 N17"}, NULL, VALUE_D, 0, 0},
    {"value loss clip error", DT_OP_VALUE_LOSS, HOW(DT_VALUE_CLIP_ERROR, 1.5), {"x N67", "x N67", "-"},
     {"f N67"}, NULL, VALUE_D, 0, 0},
    {"value loss nothing", DT_OP_VALUE_LOSS, HOW(DT_VALUE_CLIP_STEP, 1), {"x N0", "x N0", "x N0"},
     {"f N0"}, NULL, VALUE_D, 0, 0},
};
/* clang-format on */
const int n_op_cases = sizeof(op_cases) / sizeof(op_cases[0]);
