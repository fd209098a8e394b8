/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of service "dtrain.replay/1" share: replay.c (life, add, draw), record.c (a sample as
 * bytes), exchange.c (several ranks), checkpoint.c (what a checkpoint keeps).
 *
 * Samples are numbered as they come; number g is in slot g % capacity, and slot s on rank s % ranks, so that every
 * rank has about as many, and knows without asking which rank has which. A slot is a record of fixed length:
 *
 *   sizes [n_sizes] i32: agents, then ragged symbols;  a row_note for each agent;  the fields that are kept, each at a
 *   multiple of its item, as the rollout packs the sample alone: raw observations, indices counted in the sample
 *
 * and zeros after them: equal samples are equal bytes.
 */
#ifndef DTRAIN_CORE_RL_REPLAY_REPLAY_H
#define DTRAIN_CORE_RL_REPLAY_REPLAY_H

#include "state/checkpoint/safetensors.h"
#include "dtrain/svc/replay.h"
#include "rl/rollout/rollout.h"
#include "rl/replay/checkpoint.h"
#include "rl/replay/sum_tree.h"

enum { DT_REPLAY_MAX_SIZES = 1 + DT_ENV_MAX_SYMBOLS };

typedef enum dt_replay_kind {
    DT_REPLAY_PLAIN,
    DT_REPLAY_OBS,        /* a plain port, normalised when it is read */
    DT_REPLAY_HISTORY,    /* the same, of steps that the agent saw */
    DT_REPLAY_NEXT,       /* the same, of the step after, where there is one */
    DT_REPLAY_NEXT_PLAIN, /* of the step after; not normalised */
    DT_REPLAY_INDEX,      /* of rows; row pointers */
    DT_REPLAY_LISTS,      /* row pointers "A+1", where rows of the step after follow those of lists */
    DT_REPLAY_NEXT_LISTS, /* the same, of the step after */
    DT_REPLAY_KEY,        /* row_key */
    DT_REPLAY_REWARD,
    DT_REPLAY_COST,
    DT_REPLAY_END, /* terminated, truncated, next_present: of the last of several steps */
    DT_REPLAY_DISCOUNT,
    DT_REPLAY_WEIGHT,
    DT_REPLAY_TEAM_ROWS
} dt_replay_kind;

/* Made when it is read, and not in records. */
static inline bool dt_replay_is_made(dt_replay_kind kind)
{
    return kind == DT_REPLAY_WEIGHT || kind == DT_REPLAY_TEAM_ROWS;
}

typedef struct dt_replay_field {
    dt_replay_kind kind;
    uint32_t of;      /* field of the rollout */
    uint32_t port;    /* of the environment, of observations */
    int32_t symbol;   /* its rows are of */
    size_t lead;      /* steps, which come before rows */
    size_t row_bytes; /* of a row at one of them */
    uint32_t plus;    /* 1: row pointers */
    uint32_t item_bytes;
} dt_replay_field;

typedef struct dt_replay_note { /* of a row */
    uint8_t is_ended, reserved; /* no agent follows: next_P is zeros */
    uint16_t age;               /* steps since the agent came, at most those of a history before this one */
} dt_replay_note;

struct dt_replay {
    dt_rollout *r;
    dt_replay_desc d;
    dt_data data;
    uint32_t ranks, rank, n_sizes;
    dt_port port[DT_BUFFER_MAX_FIELDS];
    dt_replay_field field[DT_BUFFER_MAX_FIELDS];
    uint32_t n_fields, place; /* place: 1 + the field that counts the places of rows; 0: there is none */
    uint64_t unread;          /* fields of the rollout that are not kept, as bits */
    bool is_stored; /* its samples are those of stored rollouts (stored.h): fields that these have, and no others */
    int32_t *stored_size;                /* [capacity, n_sizes] of those, on every rank */
    dt_replay_stats totals;              /* of those */
    const char *origin;                  /* where records that are checked come from; NULL: the checkpoint */
    uint32_t lists[DT_REPLAY_MAX_SIZES]; /* by symbol: 1 + the field DT_REPLAY_LISTS of its rows; 0: there is none */
    const char *symbol[DT_REPLAY_MAX_SIZES];

    char *ring; /* [own slots, stride]; NULL until it is taken */
    size_t stride, ring_bytes;
    bool is_in_file; /* the ring */
    uint32_t *crc;   /* [own slots] then, of what each slot holds; else NULL */
    uint64_t added;  /* samples so far */
    uint64_t rounds; /* of the rollout, when one was added last */
    uint64_t draws;
    dt_sum_tree tree; /* of priorities to the power of alpha; prioritised alone */
    double most;      /* the greatest priority so far, to that power: what a sample comes with */

    bool is_draw_chosen; /* d.draw is to be that of the first trainer that reads it */
    bool is_drawn;
    uint64_t *slot;              /* [draw] */
    int32_t *size;               /* [draw, n_sizes] */
    float *weight;               /* [draw] */
    double *below;               /* [draw] scratch: sums of priorities */
    const char **record;         /* [draw] where it is; NULL: on another rank */
    float *held[DT_ENV_MAX_OBS]; /* shift and scale of plain ports, when it was drawn */
    bool is_held;

    uint64_t *sample; /* [samples of a round] scratch: those that come in */
    char *scratch;    /* a record */
    uint64_t *wanted; /* [ranks, samples of a round] scratch: what each rank reads of them */
    uint32_t *mark;   /* [samples of a round] scratch: which ranks need them */
    char *in, *out;   /* of several ranks: arenas of records on their way */
    size_t in_bytes, out_bytes;
    dt_comm_out *to;         /* [ranks] */
    dt_comm_in *from;        /* [ranks] */
    dt_samples_part *part;   /* [ranks] */
    int32_t *sizes_of_ranks; /* [ranks, draw, n_sizes] */
    uint64_t digest;         /* of all records, for a checkpoint */
};

static inline const int32_t *dt_replay_record_sizes(const char *record) /* [n_sizes] it begins with them */
{
    return (const void *)record;
}
static inline uint64_t dt_replay_size(const dt_replay *p) /* samples in it */
{
    return p->added < p->d.capacity ? p->added : p->d.capacity;
}
static inline uint32_t dt_replay_slot_owner(const dt_replay *p, uint64_t slot)
{
    return (uint32_t)(slot % p->ranks);
}
static inline char *dt_replay_slot_at(const dt_replay *p, uint64_t slot) /* on its owner */
{
    return p->ring + slot / p->ranks * p->stride;
}

/* replay.c */
/* What it draws, as data; NULL: there is no replay. */
const dt_samples *dt_rollout_replay_source(const dt_rollout *r);
/* Adds what it takes, mapped and likely to be touched, with samples of this mean. */
void dt_rollout_replay_need(const dt_rollout *r, const double *mean, uint64_t *mapped, uint64_t *resident);
typedef struct dt_replay_store { /* stored rollouts, for dt_replay_desc.stored; p is planned */
    dt_status (*count)(dt_replay *p, const char *path, uint64_t *samples_p);
    dt_status (*read)(dt_replay *p, const char *path);
} dt_replay_store;
void dt_replay_destroy(dt_replay *p);
dt_status dt_replay_create(const dt_host *h, dt_rollout *r, const dt_replay_desc *d, const dt_replay_store *store,
                           dt_replay **out) DT_NODISCARD;
/* After a record was written to a slot of this rank, and before it is read: what is in a file is what was written.
 * Errors: DT_EDATA. */
void dt_replay_seal_slot(dt_replay *p, uint64_t slot);
dt_status dt_replay_check_seal(const dt_replay *p, uint64_t slot) DT_NODISCARD;
dt_data *dt_replay_data(dt_replay *p);
dt_status dt_replay_add_round(dt_replay *p);
dt_status dt_replay_draw_samples(dt_replay *p);
dt_status dt_replay_set_priorities(dt_replay *p, const float *error, uint64_t n);
uint64_t dt_replay_count(const dt_replay *p);
uint64_t dt_replay_count_draws(const dt_replay *p);
uint64_t dt_replay_draw_size(const dt_replay *p);
dt_status dt_replay_describe(const dt_replay *p, dt_replay_stats *out);
/* record.c: what a record is made of; stride is what it takes at most; ops: how it is read. */
dt_status dt_replay_plan_record(dt_replay *p, const dt_replay_desc *d, const dt_data_ops *ops) DT_NODISCARD;
/* Bytes of a record of these sizes; where its fields begin goes to at, or NULL. */
size_t dt_replay_record_bytes(const dt_replay *p, const int32_t *size, size_t *at);
/* Sample of the round, whose wide rows are here, into a record. */
dt_status dt_replay_write_record(dt_replay *p, uint64_t sample, char *record) DT_NODISCARD;
uint32_t dt_replay_count_steps(const dt_replay *p, size_t slot, size_t place); /* that a row adds up */
/* Rows of symbol k, of those that have lists, that are of the sample's own step; at: where its fields begin. */
int32_t dt_replay_own_rows(const dt_replay *p, const char *record, const size_t *at, int32_t k);
/* Is a record from elsewhere one? Errors: DT_EDATA. */
dt_status dt_replay_check_sizes(const dt_replay *p, uint64_t slot, const int32_t *size) DT_NODISCARD;
dt_status dt_replay_check_record(const dt_replay *p, uint64_t slot, const char *record)
    DT_NODISCARD; /* its sizes are */
/* read.c */
extern const dt_data_ops dt_replay_data_ops; /* self is the replay */
/* exchange.c */
dt_status dt_replay_exchange_init(dt_replay *p) DT_NODISCARD;
void dt_replay_exchange_fini(dt_replay *p);
void dt_replay_find_records(dt_replay *p);                     /* the records that this rank has of what was drawn */
dt_status dt_replay_exchange_sizes(dt_replay *p) DT_NODISCARD; /* [collective] of what was drawn, to all */
/* [collective] Samples of the round, numbered from `number` on, to where they will be, with those that their agents'
 * steps end in. */
dt_status dt_replay_exchange_round(dt_replay *p, uint64_t number, const uint64_t *sample, uint64_t n) DT_NODISCARD;
uint64_t dt_replay_digest_record(uint64_t slot, const char *record, size_t bytes); /* of a record */
/* checkpoint.c; open: [collective] before a checkpoint is written. */
dt_status dt_replay_prepare_checkpoint(dt_replay *p) DT_NODISCARD;
dt_status dt_replay_save(const dt_replay *p, dt_str *out) DT_NODISCARD;
uint64_t dt_replay_own_bytes(const dt_replay *p);
dt_status dt_replay_write_own(const dt_replay *p, dt_status (*put)(void *to, const void *bytes, size_t n), void *to)
    DT_NODISCARD;
dt_status dt_replay_load(dt_replay *p, uint32_t version, const dt_rollout_bytes *state, const dt_rollout_bytes *records,
                         uint32_t n_records) DT_NODISCARD;

#endif
