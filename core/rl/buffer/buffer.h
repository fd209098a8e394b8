/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rollout keeps: rows of every instance at every step, first written while the policy acts, then read as samples
 * of a data set (svc/rollout.h lists its fields). Rows of places ("A") have a fixed place; rows of ragged symbols lie
 * packed one after another; of lists that each agent has of its own, the rows of agents that are present. Memory is
 * mapped once at its bound and touched as it is used.
 *
 * A slot is one instance at one step: slot(t, i) = (t + window - 1) * instances + i, t from 1 - window (history) to
 * steps (what the last step returned). Sample n of the data is slot(0, 0) + n, n < steps * instances.
 *
 * Of several ranks each has a buffer of its own instances; one without what is wide, of all instances; and one of the
 * samples that it learns from next, each as an instance (rl/rollout/exchange.c). Wide is what grows with the
 * observation: observations, masks, and what acting computed.
 * Threads: written by [main]; read by [worker] while no one writes.
 */
#ifndef DTRAIN_CORE_RL_BUFFER_BUFFER_H
#define DTRAIN_CORE_RL_BUFFER_BUFFER_H

#include "dtrain/svc/rollout.h"
#include "rl/buffer/gae.h"
#include "rl/env/layout.h"

enum { DT_BUFFER_MAX_FIELDS = 64 }; /* bits of a mask of fields */
/* An agent acts; it has a value (it acts, or was truncated just now); an opponent acts, which is neither of both: it is
 * no row of the data, and it is not used for learning. */
enum { DT_ROW_ACTS = 1u, DT_ROW_SEEN = 2u, DT_ROW_OPPONENT = 4u };

/* A step ended the episode; it was the host that did (vector.h); no learning agent was in it, so that it has no
 * return, and counts as none. */
enum { DT_DONE_ENDED = 1u, DT_DONE_CUT = 2u, DT_DONE_UNPLAYED = 4u };

typedef struct dt_buffer_desc {
    const dt_layout *layout;                  /* outlives the buffer */
    uint32_t steps, instances, first, window; /* first: number of its first instance; window at least 1 */
    uint32_t all;                             /* instances of all ranks; 0: these */
    bool is_narrow;                           /* without what is wide */
    uint32_t transitions;                     /* svc/rollout.h: 1: fields of what comes after a row; 2, 3: and more */
    double gamma;                             /* of the field discount */
    uint32_t n_kept;
    const dt_port *kept; /* fields of what acting computed, the last ones: svc/rollout.h; outlives the buffer */
    uint32_t n_annotations;
    const dt_port *annotation;  /* fields that the phase makes itself; outlives the buffer */
    const uint8_t *is_opponent; /* [n_agents] of the places that opponents have; NULL: none; outlives the buffer */
    uint32_t n_carried;
    bool has_last_action;
    const dt_port *carried; /* state that acting carries on: svc/rollout.h; outlives the buffer */
} dt_buffer_desc;
enum { DT_BUFFER_MAX_CARRIED = DT_ROLLOUT_MAX_CARRIED + 1 }; /* and the last action */

typedef struct dt_buffer_scale { /* of a plain port: (x - mean) * scale, within +- clip; NULL: as they are */
    const float *mean, *scale;
    float clip; /* 0: no bound */
} dt_buffer_scale;

typedef struct dt_buffer_field {
    uint32_t kind, port; /* of the observations */
    char name[48], dims[64];
} dt_buffer_field;

typedef struct dt_buffer_array { /* one array with a row per slot, for copying between ranks */
    void *data;
    size_t slot_bytes;
} dt_buffer_array;

typedef struct dt_buffer {
    dt_buffer_desc d;
    const dt_layout *l;
    size_t n_slots, n_places; /* places: slots * agents */
    bool is_filled;           /* before, every sample counts as large as it can be */

    uint8_t *row;                            /* [places] DT_ROW_* */
    uint8_t *flag;                           /* [places] DT_STEP_* of the step made at this slot */
    uint16_t *age;                           /* [places] steps since the agent came */
    int32_t *n_acts, *n_seen, *n_opponents;  /* [slots] rows */
    char *obs[DT_ENV_MAX_OBS];               /* "A": [places, row]; ragged: packed rows; "A+1": NULL */
    int64_t *at[DT_ENV_MAX_OBS];             /* ragged: [slots] first row */
    int64_t used[DT_ENV_MAX_OBS];            /* ragged: rows */
    int32_t *size;                           /* [slots, n_symbols] */
    int32_t *length[1 + DT_ENV_MAX_SYMBOLS]; /* [places] of lists, by symbol; NULL: its rows are in none */
    uint8_t *mask;                           /* [places, n_choices] */
    int32_t *act_i;                          /* [places, n_heads] drawn */
    float *act_f, *executed_f;               /* [places, n_continuous] drawn, executed */
    float *log_prob, *value, *reward, *advantage, *target;   /* [places] */
    float *cost_value, *cost, *cost_advantage, *cost_target; /* [n_costs, places] */
    float *cost_in;                                          /* [n_costs, places] time_to_cost.h; with transitions */
    uint8_t *report;                                         /* [places] DT_REPORT_* */
    uint8_t *done;                                           /* [slots] DT_DONE_* or-ed, 0: the episode continues */
    double *episode; /* [slots, 2 + n_costs + n_metrics] of the episode that ended: return, length, ... */
    uint32_t episode_items;
    uint64_t key_base;     /* of row_key: slots collected before, of all ranks */
    const uint32_t *place; /* sample n is the one of instance place[n] at step 0; NULL: as above */

    dt_buffer_scale scale[DT_ENV_MAX_OBS];
    dt_buffer_field field[DT_BUFFER_MAX_FIELDS];
    dt_port port[DT_BUFFER_MAX_FIELDS];
    uint32_t n_fields;
    const char *symbol[1 + DT_ENV_MAX_SYMBOLS];
    void *map;
    size_t map_bytes;
    float *annotation[DT_ROLLOUT_MAX_ANNOTATIONS]; /* [places, columns] */
    size_t annotation_columns[DT_ROLLOUT_MAX_ANNOTATIONS];
    float *kept[DT_ROLLOUT_MAX_KEPT]; /* [places, columns]; NULL until dt_buffer_allocate_kept */
    size_t kept_columns[DT_ROLLOUT_MAX_KEPT];
    /* [places, columns] what acting at the slot before left for this one, of no meaning where age is 0: desc.carried,
     * then the last action */
    float *carried[DT_BUFFER_MAX_CARRIED];
    size_t carried_columns[DT_BUFFER_MAX_CARRIED];
    uint32_t n_carried; /* arrays */
    void *arena[DT_ENV_MAX_OBS];
    size_t arena_bytes[DT_ENV_MAX_OBS];
} dt_buffer;
/* What the shield did; the round ended after this step, which ended nothing. */
enum { DT_REPORT_CHANGED = 1u, DT_REPORT_INFEASIBLE = 2u, DT_REPORT_OPEN = 4u };

/* Errors: DT_ENOMEM, DT_EPLUGIN (more fields than a data set may have, two of one name, kept or annotated ports that
 * are not "A D" f32). */
dt_status dt_buffer_init(dt_buffer *b, const dt_buffer_desc *d) DT_NODISCARD;
/* Room for desc.kept[k]; until then its rows read as zeros. Errors: DT_ENOMEM. */
dt_status dt_buffer_allocate_kept(dt_buffer *b, uint32_t k) DT_NODISCARD;
void dt_buffer_fini(dt_buffer *b);

/* A new round: what the last step of the round in `last` left becomes the first, with its history. last may be b, or a
 * buffer of the same desc. */
void dt_buffer_begin_round(dt_buffer *b, const dt_buffer *last);
/* Takes slot (t, i) from an instance's record: its observation, which agents act, the mask; and, for t > 0, what the
 * step before earned and which agents it ended. */
void dt_buffer_store(dt_buffer *b, uint32_t t, uint32_t i, const char *record);
/* The action of a place (slot * agents + a) becomes the last action of the next slot. */
void dt_buffer_carry_action(dt_buffer *b, size_t at, const int32_t *drawn_i, const float *executed_f);
static inline size_t dt_buffer_slot(const dt_buffer *b, uint32_t t, uint32_t i)
{
    return (size_t)(t + b->d.window - 1) * b->d.instances + i;
}

/* Do samples of the data have the ragged rows of the step after after their own? */
static inline bool dt_buffer_is_joined(const dt_buffer *b)
{
    return b->d.transitions > 2;
}
/* Most rows of a symbol (0: "A") that a sample of the data has. */
static inline int64_t dt_buffer_max_rows(const dt_buffer *b, int32_t symbol)
{
    return dt_layout_max_rows(b->l, symbol) * (dt_buffer_is_joined(b) && symbol > 0 ? 2 : 1);
}

/* As a data set: index n is sample n. which chooses rows of "A": DT_ROW_ACTS, as data, DT_ROW_SEEN or DT_ROW_OPPONENT,
 * for acting. size: "A" and the spec's ragged symbols. want: fields to write (bit f); key may be NULL. */
void dt_buffer_get_sizes(const dt_buffer *b, uint32_t which, const uint64_t *index, uint32_t n, int64_t *size);
void dt_buffer_pack_samples(const dt_buffer *b, uint32_t which, const uint64_t *index, const uint64_t *key, uint32_t n,
                            uint64_t want, void *const *out);
/* Rows [rows, D] of a plain port as they are read. */
void dt_buffer_scale_rows(const dt_buffer_scale *s, float *x, int64_t rows, int64_t D);
/* Is field f known when an action is chosen? */
bool dt_buffer_is_observed(const dt_buffer *b, uint32_t f);
extern const dt_data_ops dt_buffer_data; /* self is the buffer */

/* What acting leaves of a slot, without what is wide. */
enum { DT_BUFFER_MAX_ARRAYS = 16 + DT_ENV_MAX_SYMBOLS + 2 * DT_ENV_MAX_COSTS };
uint32_t dt_buffer_list_arrays(const dt_buffer *b, dt_buffer_array *out);
/* What is made of it afterwards: advantages, targets, steps to a cost, annotations. */
enum { DT_BUFFER_MAX_DERIVED = 2 + 3 * DT_ENV_MAX_COSTS + DT_ROLLOUT_MAX_ANNOTATIONS };
uint32_t dt_buffer_list_derived_arrays(const dt_buffer *b, dt_buffer_array *out);
/* What is wide of a slot: a row per place, or packed ones. */
typedef struct dt_buffer_wide {
    char *data;
    size_t row_bytes;
    int32_t symbol; /* > 0: as many rows as its size, from at[slot] on */
    int64_t *at;
    uint64_t fields;        /* of the data, that read it (bit f) */
    uint64_t before, after; /* those that read it window - 1 steps before, too; a step after */
} dt_buffer_wide;
enum { DT_BUFFER_MAX_WIDE = 1 + DT_ENV_MAX_OBS + DT_ROLLOUT_MAX_KEPT + DT_BUFFER_MAX_CARRIED };
uint32_t dt_buffer_list_wide_arrays(const dt_buffer *b, dt_buffer_wide *out);

#endif
