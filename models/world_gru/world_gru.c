/* SPDX-License-Identifier: Apache-2.0
 *
 * world_gru, role world: as world_lstm with gated recurrent units, three gates instead of four. Ports: traffic/ports.h;
 * how a future is composed: world_net.h.
 *
 *   x_t = [embedding_t, motion_t]    h_t = GRU(h_{t-1}, x_t), held where the vehicle is absent    head([h_T, x_T])
 *
 * Source: Cho et al. 2014, in the form of cuDNN and PyTorch (the reset gate acts after the recurrent product).
 * Parameters: gru.<i>.x.w [3 hidden, in], gru.<i>.x.b [3 hidden], gru.<i>.h.w [3 hidden, hidden], gru.<i>.h.b [3
 * hidden] (gates r z n), head.0.w, head.0.b, head.1.w, head.1.b.
 */
#include "world_net.h"

static dt_status params(void *self, dt_params *reg)
{
    const world_net *w = self;
    char name[WORLD_TEXT];
    for (int64_t i = 0; i < w->layers; i++) {
        snprintf(name, sizeof(name), "gru.%lld.x", (long long)i);
        DT_TRY_H(world_add(reg, name, 3 * w->hidden, world_net_width(w, i), w->hidden, 1));
        snprintf(name, sizeof(name), "gru.%lld.h", (long long)i);
        DT_TRY_H(world_add(reg, name, 3 * w->hidden, w->hidden, w->hidden, 1));
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
        snprintf(name, sizeof(name), "gru.%lld.x", (long long)i);
        g->api->recompute_begin(g);
        dt_tensor *xw = world_linear(g, x, name); /* all steps in one product */
        snprintf(name, sizeof(name), "gru.%lld.h.w", (long long)i);
        dt_tensor *wh = g->api->param(g, name);
        snprintf(name, sizeof(name), "gru.%lld.h.b", (long long)i);
        x = dt_gru(g, xw, wh, g->api->param(g, name), in[WORLD_IN_PRESENT]);
        g->api->recompute_end(g);
    }
    return world_head(w, g, x, in, scaled, out);
}

WORLD_NET_PLUGIN("world_gru", "future of each vehicle from its history by GRU layers", "Cho et al. 2014");
