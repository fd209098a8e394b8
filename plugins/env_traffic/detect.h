/* SPDX-License-Identifier: Apache-2.0
 *
 * What signals detect: vehicles within detector_m of a stop line, on its lane and on the roads before it from which
 * their way leads there without another signal between. One pass over these lanes per observation. Threads: one.
 */
#ifndef DTRAIN_ENV_TRAFFIC_DETECT_H
#define DTRAIN_ENV_TRAFFIC_DETECT_H

#include "sim.h"
#include "table.h"

typedef struct detectors {
    const dt_host *h;
    signal_shape *shape;                      /* [n_signals] */
    int32_t *first_lane, *first_out;          /* [n_signals + 1] of each in the arrays by approach lane, by exit lane */
    int32_t *lane_id, *out_id;                /* lanes of the net */
    signal_lane *lane;                        /* by approach lane */
    uint32_t *halting_before, *halting_after; /* by approach lane, by exit lane */
    signal_link *link;                        /* [n_links] of the net */
    int32_t *entry;                           /* [n_lanes] of an approach lane in the arrays above, or NET_NONE */
    double *reach_m;                          /* [n_lanes] from its end to the nearest stop line; 0: that is there */
    int32_t *watched, n_watched;              /* lanes where reach_m is less than detector_m */
    uint8_t *letters;                         /* of the shapes */
    uint32_t *conflicts;
} detectors;

/* For the net of s; detect_fini after any result. DT_ENOMEM. */
dt_status detect_init(detectors *d, const sim *s);
void detect_fini(detectors *d);
/* Looks at all vehicles, now. */
void detect_read(detectors *d, const sim *s);
/* The rows of signal k, after detect_read: out [most_phases, N_SIGNAL_COLUMNS]. */
void detect_write_phases(const detectors *d, const sim *s, int32_t k, float *out);

#endif
