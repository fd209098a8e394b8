/* SPDX-License-Identifier: Apache-2.0
 *
 * A small, real training problem for the trainer's tests: ragged samples of rows, y = a two-layer network of x, squared
 * error, with dropout. Every sample depends on its index alone.
 *
 * Or a pair: an actor a(x) = tanh(W x + b), and a critic Q(x, a), a two-layer network, with a target network "target"
 * of each and a target network "past" of the actor:
 *   losses  critic  (Q(x, y) - (y_1 + 0.5 Q'(x, a'(x))))^2     Q', a': by target networks
 *           actor   -Q(x, a(x))
 */
#ifndef DTRAIN_TESTS_TRAIN_TOY_H
#define DTRAIN_TESTS_TRAIN_TOY_H

#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

typedef struct toy {
    dt_data_ops ops;
    dt_samples source;
    dt_param_table params;
    dt_trainer_config config;
    dt_comm *comm;
    dt_trainer *trainer;
    uint64_t count;
    int64_t poison_sample; /* its x is NAN; -1: none */
    int64_t broken_sample; /* reading it fails; -1: none */
    double dropout;
    bool has_constant;   /* the first parameter is a constant: x counts times net.constant.unit [x], ones at first */
    bool has_batch_norm; /* of x, under net.bn.*, of rows whose x0 is above -0.5; of a pair, of what the critic reads */
    double momentum;     /* of it: 0.1 */
    int64_t hidden;      /* units of the hidden layer: 24, or more where parameters are to be many */
    bool is_live;        /* the source is read by who runs a leaf, and only what is needed of it */
    bool is_parted;      /* samples are read seven to a part, and a read of two parts fails */
    atomic_bool is_keyless; /* the last read was not asked for keys */
    const char *freeze;     /* pattern; NULL: nothing */
    struct toy *stored;     /* mixed into this one, which is live: another toy, initialised; NULL: none */
    uint64_t n_stored;
    bool is_pair;              /* an actor and a critic */
    int64_t pair_hidden;       /* units of the critic's hidden layer: 12, or more where parameters are to be many */
    dt_target_rule target[3];  /* of a pair: target of the actor, of the critic, past of the actor */
    bool is_grouped;           /* a pair's losses move their own role alone: groups critic and actor */
    dt_trainer_group group[2]; /* these, as toy_init made them, or changed */
    uint32_t n_groups;
    bool is_crowded;      /* the groups' parameters are not kept apart */
    const uint32_t *turn; /* [n_turns] groups of each step, again and again; NULL: all */
    uint32_t n_turns;
    bool is_valued_by_target;        /* a pair's actor, and not by the critic */
    const char *as;                  /* target network that the pair's loss of the critic asks for in place of target */
    const char *apart;               /* "hidden", a second loss, the mean of the hidden layer; NULL: there is none */
    const dt_device_ops *device_ops; /* NULL: the CPU */
    dt_device *device;
} toy;

/* Its first steps overflow and are skipped. */
extern const dt_scaler_config toy_overflowing;

/* Does the last error mention this? */
void assert_error_has(const char *part);

/* Fills config with defaults that callers may change before toy_start. */
void toy_init(toy *t);
void toy_start(toy *t); /* comm NULL: one rank */
dt_status toy_try_start(toy *t);
void toy_fini(toy *t);
dt_status toy_step(toy *t, dt_step_report *r);

#endif
