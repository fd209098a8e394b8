/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a store's large arrays, wherever they are: the view's own memory, or of a packed store a copy in the caller's
 * room. Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_SLICES_H
#define DTRAIN_DATA_TRAJECTORY_SLICES_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/store.h"

typedef struct slices {
    const dt_host *h;
    const dt_store_api *api;
    const dt_store_view *v;
} slices;

/* Rows [from, from + n): *out_p [n,9], [n,4], [n]; room: for as many. Errors: DT_EDATA, DT_ENOMEM. */
static inline dt_status slices_node(const slices *s, int64_t from, int64_t n, float *room, const float **out_p)
{
    *out_p = s->v->node != NULL ? s->v->node + 9 * from : room;
    return s->v->node != NULL ? DT_OK : s->api->read(s->h, s->v, DT_STORE_NODE, from, n, room);
}

static inline dt_status slices_edge(const slices *s, int64_t from, int64_t n, float *room, const float **out_p)
{
    *out_p = s->v->edge != NULL ? s->v->edge + 4 * from : room;
    return s->v->edge != NULL ? DT_OK : s->api->read(s->h, s->v, DT_STORE_EDGE, from, n, room);
}

static inline dt_status slices_source(const slices *s, int64_t from, int64_t n, int32_t *room, const int32_t **out_p)
{
    *out_p = s->v->edge_src != NULL ? s->v->edge_src + from : room;
    return s->v->edge_src != NULL ? DT_OK : s->api->read(s->h, s->v, DT_STORE_EDGE_SRC, from, n, room);
}

#endif
