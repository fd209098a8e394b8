/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated world, where what several ranks do is proved: up to 1024 virtual ranks with a communicator each, of which
 * one runs at a time, the next chosen by a seed; a clock of its own, on which only messages and dt_world_work take
 * time; links with latency, bandwidth and loss (links.h); and ranks that are slow, stop, go on, are cut off, give up or
 * die at a chosen place. Everything follows from the seed: the same description gives the same trace.
 *
 * Only what ranks do between calls of their communicator happens at once; so it may not wait for another rank. A
 * collective takes place when the last rank has begun it, and is done at each rank when the links say so: when a rank
 * dies, those that were done go on, and those that were not are not.
 */
#ifndef DTRAIN_CORE_COLLECTIVE_WORLD_H
#define DTRAIN_CORE_COLLECTIVE_WORLD_H

#include "base/err.h"
#include "links.h"

typedef enum dt_fate_kind {
    DT_FATE_SLOW,  /* seconds pass at every point from this one on, and work takes so much longer each time */
    DT_FATE_STOPS, /* seconds pass once (INFINITY: until all others have ended), then it goes on as if nothing was */
    DT_FATE_CUT,   /* none of its messages arrives any more, and none reaches it */
    DT_FATE_FAILS, /* the call fails with DT_EDATA, as a program that finds something wrong, and says so */
    DT_FATE_DIES,  /* it does nothing any more and says nothing: others hear of it after detect_s */
    DT_FATE_KINDS
} dt_fate_kind;

/* Where: in the visits of points, from 1, that its rank makes. A call visits three to four: before it begins, when it
 * has begun; before it waits (and, where it has to wait, inside), and when it is done. */
typedef struct dt_fate {
    dt_fate_kind kind;
    uint32_t rank;
    uint64_t visit; /* at the earliest */
    uint32_t where; /* a point, or DT_WORLD_POINTS: at any */
    double seconds;
    bool is_struck; /* what comes out: whether that place was reached, which point it is, and when */
    uint32_t point;
    double at_s;
} dt_fate;

enum { DT_WORLD_PHASES = 5, DT_WORLD_POINTS = DT_WORLD_PHASES * 5 };
const char *dt_world_point(uint32_t point); /* "all_gather.started" */

typedef struct dt_world_desc {
    uint64_t seed;
    uint32_t ranks;
    double timeout_s; /* of the communicators, simulated */
    double detect_s;  /* until others hear that a rank has died; INFINITY: never, their time limit expires */
    dt_links_desc links;
    dt_fate *fate; /* [n_fates] */
    uint32_t n_fates;
    void (*notify)(void *user, const char *line); /* NULL, or hears what happens */
    void *user;
} dt_world_desc;

typedef struct dt_world_end { /* of a rank */
    dt_error error;           /* what body returned, with its record */
    double at_s;
} dt_world_end;

typedef struct dt_world_report {
    double seconds;    /* simulated, until the last rank ended */
    uint64_t events;   /* what happened */
    uint64_t trace;    /* hash of all of it, in order */
    dt_world_end *end; /* [ranks], the caller's */
} dt_world_report;

typedef dt_status dt_world_body(dt_comm *c, void *user);
/* Runs body on every rank, each in a thread, and returns when all have ended. A rank whose body fails leaves with what
 * it says. Errors: DT_EINVAL (a value of the description), DT_ENOMEM, DT_EIO (no thread): nothing ran then. */
dt_status dt_world_run(const dt_world_desc *d, dt_world_body *body, void *user, dt_world_report *out) DT_NODISCARD;
/* In a body: this rank computes so long. Not a communicator of a world: nothing. DT_EPEER: this rank is dead. */
dt_status dt_world_work(dt_comm *c, double seconds) DT_NODISCARD;
/* In a body: seconds on the world's clock; 0 elsewhere. */
double dt_world_now(const dt_comm *c);

#endif
