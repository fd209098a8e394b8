/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of env_ipp share: its options, one instance, the lattice and the positions on it. The rules are at
 * the top of env_ipp.c. Threads: as dt_env_ops.
 */
#ifndef DTRAIN_ENV_IPP_H
#define DTRAIN_ENV_IPP_H

#include "belief.h"
#include "field.h"

#include "dtrain/ext/scene.h"
#include "dtrain/helpers.h"
#include "dtrain/random.h"

enum {
    IPP_UAVS = FIELD_MAX_VIEWS,
    IPP_MOVES = 6,
    IPP_PLANES = 7,
    IPP_MAX_POINTS = 33,
    IPP_TEXT = 32,
    IPP_MOST_COLUMNS = 24
};
enum { IPP_EAST, IPP_WEST, IPP_NORTH, IPP_SOUTH, IPP_UP, IPP_DOWN };
enum { IPP_GAIN, IPP_CHANCE, IPP_COLUMNS };          /* of the port moves */
enum { IPP_STATE_PLANES = 3, IPP_STATE_OF_UAV = 3 }; /* of the port state */
enum { IPP_HALF_PLANE, IPP_PATCHES };
enum { IPP_AFTER, IPP_BEFORE };
enum { IPP_VIEW_FIELD, IPP_VIEW_OWN };
enum { IPP_THIRDS = 3 };

typedef struct ipp_config {
    int64_t uavs, budget, cells, stride;
    double field_m, step_m, fov_deg, noise_low, noise_middle, noise_high, communication_m, covered_min, covered_max;
    double patch_m, reward_scale, reward_offset;
    uint32_t truth, rewarded, view;
    uint8_t state, lookahead, reserved[2];
} ipp_config;

typedef struct ipp_place { /* point of the lattice, level 0 is the lowest */
    int32_t x, y, level;
} ipp_place;

typedef struct ipp_episode { /* what it is measured by */
    int64_t n_at_level[FIELD_LEVELS], n_collisions;
    double entropy[IPP_THIRDS], f1[IPP_THIRDS];
} ipp_episode;

typedef struct ipp {
    const dt_host *h;
    ipp_config config;
    int32_t points;                   /* of the lattice in a row */
    int64_t moves;                    /* of an episode */
    double step_cells;                /* from a point of the lattice to the next */
    uint32_t n_beliefs, observes_all; /* all: the one that receives all, n_beliefs where none does */
    field_level level[FIELD_LEVELS];
    field field;
    belief_tables tables;
    belief belief[IPP_UAVS + 1];
    field_view view[IPP_UAVS];
    ipp_place place[IPP_UAVS];
    float heading[IPP_UAVS];
    uint64_t seed;
    int64_t step;
    double pending; /* reward of the measurement before the step to come */
    dt_random chance;
    ipp_episode episode;
    dt_port obs[4];
    dt_column column[IPP_MOST_COLUMNS]; /* described */
    uint32_t n_columns;
    char obs_text[IPP_TEXT], state_text[IPP_TEXT];
    dt_dim symbols[1];
} ipp;

/* place.c. Where a move leads; false where that is outside. */
bool ipp_target(const ipp *s, const ipp_place *from, int32_t move, ipp_place *to_p);
/* Which other UAV than i is there; their number: none. */
uint32_t ipp_occupant(const ipp *s, uint32_t i, const ipp_place *at);
bool ipp_receives(const ipp *s, uint32_t i, uint32_t j);
field_rect ipp_footprint(const ipp *s, const ipp_place *at);
/* The belief of UAV i. */
static inline const belief *ipp_belief(const ipp *s, uint32_t i)
{
    return &s->belief[s->observes_all == 0 ? 0 : i];
}
static inline uint32_t ipp_n(const ipp *s)
{
    return (uint32_t)s->config.uavs;
}

/* observe.c: all ports, masks and which are alive. */
int64_t ipp_obs_columns(const ipp *s);
int64_t ipp_state_columns(const ipp *s);
void ipp_observe(ipp *s, const dt_env_io *io, bool is_alive);

/* scene.c */
extern const dt_scene_api ipp_scene;
/* rule.c: controllers that read the port moves */
extern const dt_component ipp_greedy, ipp_random;

#endif
