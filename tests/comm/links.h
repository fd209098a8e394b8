/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated links between virtual ranks: when would each of them be done with a collective? A message takes a rank's
 * way out, and then another's way in, for latency + bytes / bandwidth; a way has one message at a time. One that is
 * lost comes later, each time twice as late; one that meets a cut rank never comes. Collectives are the usual ones:
 * rings (all_gather, sums), R - 1 swaps (all_to_all), a binomial tree (broadcast), dissemination (barrier).
 * Everything follows from the seed. Threads: one at a time.
 */
#ifndef DTRAIN_CORE_COLLECTIVE_LINKS_H
#define DTRAIN_CORE_COLLECTIVE_LINKS_H

#include "comm/rendezvous.h"

typedef struct dt_links_desc {
    double latency_s;   /* of a message; at least 0 */
    double bytes_per_s; /* of a way; 0: no limit */
    double jitter;      /* a message takes up to so many latencies more */
    double loss;        /* 0 to 1: how often a message is lost; 1: all, for ever */
    double resend_s;    /* until it is sent again; above 0 where there is loss */
} dt_links_desc;

typedef struct dt_links {
    dt_links_desc d;
    uint64_t seed, draws;
    uint32_t size;
    double *out_free, *in_free; /* [size] when the ways are free again */
    double *now, *next;         /* [size] rounds of a collective */
    bool *is_cut;               /* [size] nothing goes in or out any more */
} dt_links;

/* Errors: DT_EINVAL (a value of the description), DT_ENOMEM. */
dt_status dt_links_init(dt_links *l, const dt_links_desc *d, uint32_t size, uint64_t seed) DT_NODISCARD;
void dt_links_fini(dt_links *l);
/* A number in [0, 1) from the seed. */
double dt_links_draw(dt_links *l);
/* begin[r]: when rank r began; done[r]: when it is done, INFINITY for never. */
void dt_links_carry(dt_links *l, const dt_rendezvous *m, const double *begin, double *done);

#endif
