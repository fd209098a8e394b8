/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment's spec, understood and checked once: what its ports mean, and where each part of dt_env_io is in
 * an instance's record, one block of memory that may be shared with another process. Threads: [any] after init.
 */
#ifndef DTRAIN_CORE_RL_ENV_LAYOUT_H
#define DTRAIN_CORE_RL_ENV_LAYOUT_H

#include "dtrain/plugin.h"

#include <stdbool.h>

typedef struct dt_obs_port {
    const dt_port *port;
    int32_t symbol;   /* its rows: 0 "A", 1.. a ragged symbol of the spec */
    int32_t plus;     /* 1: SYMBOL+1, row pointers; of "A": of each place's own list */
    int32_t index_of; /* values count rows of this symbol, -1: plain values */
    uint32_t item_bytes;
    int64_t row_items, cap; /* of a row; most rows, plus included */
    int64_t steps;          /* DT_PORT_STEPS: of a row, each of row_items / steps; else 0 */
    size_t row_bytes, offset;
    bool is_edges; /* columns of a graph, next to its row pointers: models attend to each, so no -1 */
    bool is_plain; /* f32 of dims "A D": may be normalised, may have a history */
} dt_obs_port;

typedef struct dt_layout {
    dt_env_spec spec; /* with memory of its own */
    dt_obs_port obs[DT_ENV_MAX_OBS];
    uint32_t lists[1 + DT_ENV_MAX_SYMBOLS]; /* by symbol: 1 + the port "A+1" that assigns its rows to agents; 0: none */
    uint32_t n_choices;                     /* of all heads */
    size_t size, alive, reward, cost, terminated, truncated, metric; /* offsets in a record; observations come first */
    size_t mask, act_i, act_f;
    size_t out_bytes; /* zeroed before a call: from the start of the record */
    size_t record_bytes;
    void *memory; /* after spec */
} dt_layout;

/* Checks a spec and copies it. id names the environment in errors: DT_EPLUGIN (what is wrong, where), DT_ENOMEM. */
dt_status dt_layout_init(dt_layout *l, const char *id, const dt_env_spec *spec) DT_NODISCARD;
void dt_layout_fini(dt_layout *l);
/* Is another instance's spec, or the same one's after a reset, this one? Errors: DT_EPLUGIN names what differs. */
dt_status dt_layout_compare(const dt_layout *l, const dt_env_spec *spec) DT_NODISCARD;
/* The same of another environment, whose difference is said bare: "2 metrics instead of 1". */
dt_status dt_layout_compare_env(const dt_layout *l, const dt_env_spec *spec) DT_NODISCARD;
/* The same, except for places past the last one that spec has. */
dt_status dt_layout_compare_fewer_places(const dt_layout *l, const dt_env_spec *spec) DT_NODISCARD;
/* Does a port hold row pointers "A+1", of a list that each place has of its own? */
static inline bool dt_obs_is_lists(const dt_obs_port *o)
{
    return o->symbol == 0 && o->plus != 0;
}
/* Rows that a port has in a record. size: live rows of the spec's symbols. */
int64_t dt_layout_count_rows(const dt_layout *l, const dt_obs_port *o, const int64_t *size);
uint32_t dt_layout_team_of(const dt_layout *l, uint32_t place); /* that a place is of */
/* The arrays of a record, as an environment sees them; reset has no actions. obs: [n_obs] addresses, filled in. */
void dt_layout_get_io(const dt_layout *l, char *record, void **obs, dt_env_io *io);
/* Most rows of symbol k (0: "A"), and its name. */
int64_t dt_layout_max_rows(const dt_layout *l, int32_t symbol);
const char *dt_layout_symbol_name(const dt_layout *l, int32_t symbol);

#endif
