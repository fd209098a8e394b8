/* SPDX-License-Identifier: Apache-2.0
 *
 * world_lstm, role world: a stack of LSTM layers over each vehicle's own history, then a two-layer head that gives all
 * future steps at once. Ports: traffic/ports.h; how a future is composed: world_net.h.
 *
 *   h_t = LSTM(h_{t-1}, x_t), held where the vehicle is absent; x_t and what the head sees: world_net.h
 *
 * Source: Hochreiter & Schmidhuber 1997; one encoder per vehicle as in Alahi et al. 2016 and Deo & Trivedi 2018, with
 * the neighbourhood in the embedding instead of a pooling grid.
 * Parameters: lstm.<i>.x.w [4 hidden, in], lstm.<i>.x.b [4 hidden], lstm.<i>.h.w [4 hidden, hidden] (gates i f g o, the
 * two bias vectors of PyTorch summed in one), head.0.w, head.0.b, head.1.w, head.1.b.
 */
#include "world_net.h"

static dt_status params(void *self, dt_params *reg)
{
    const world_net *w = self;
    char name[WORLD_TEXT];
    for (int64_t i = 0; i < w->layers; i++) {
        snprintf(name, sizeof(name), "lstm.%lld.x", (long long)i);
        DT_TRY_H(world_add(reg, name, 4 * w->hidden, world_net_width(w, i), w->hidden, 1));
        snprintf(name, sizeof(name), "lstm.%lld.h", (long long)i);
        DT_TRY_H(world_add(reg, name, 4 * w->hidden, w->hidden, w->hidden, 0));
    }
    return world_head_params(w, reg);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const world_net *w = self;
    char name[WORLD_TEXT];
    dt_tensor *scaled = world_scale_motion(g, in[WORLD_IN_MOTION]);
    dt_tensor *x = world_sequence(w, g, in[WORLD_IN_HISTORY], scaled);
    for (int64_t i = 0; i < w->layers; i++) {
        snprintf(name, sizeof(name), "lstm.%lld.x", (long long)i);
        g->api->recompute_begin(g);
        dt_tensor *xw = world_linear(g, x, name); /* all steps in one product */
        snprintf(name, sizeof(name), "lstm.%lld.h.w", (long long)i);
        x = dt_lstm(g, xw, g->api->param(g, name), in[WORLD_IN_PRESENT]);
        g->api->recompute_end(g);
    }
    return world_head(w, g, x, in, scaled, out);
}

WORLD_NET_PLUGIN("world_lstm", "future of each vehicle from its history by LSTM layers",
                 "Hochreiter & Schmidhuber 1997; Deo & Trivedi 2018");
