/* SPDX-License-Identifier: Apache-2.0
 *
 * The observation "phases" of a traffic signal (columns.def), from what detectors saw of its lanes and links: the same
 * code for every environment, so that a policy means the same by it in all of them. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_SIGNALS_TABLE_H
#define DTRAIN_PLUGINS_SIGNALS_TABLE_H

#include "formula.h"
#include "letters.h"

#define SIGNAL_HALTING_MPS 0.1 /* slower is standing; SUMO's waitingTime uses the same */

typedef struct signal_shape { /* of a signal; nothing of it changes while it runs */
    uint32_t n_links, n_phases, n_lanes, n_out;
    const uint8_t *letter;     /* [n_phases, n_links] SIGNAL_RED to SIGNAL_GO */
    const uint8_t *best;       /* [n_links] the most of these */
    const uint8_t *green_lane; /* [n_phases, n_lanes] 1: the phase gives green to a link of this approach lane */
    const uint8_t *out_lane;   /* [n_phases, n_out] 1: and one of these links leads to this lane */
    const uint32_t *conflicts; /* [n_phases] pairs of links with SIGNAL_GO whose ways conflict */
} signal_shape;

/* Vehicles within detection range of the stop line whose next signal this is, on the approach lane or on the roads
 * before it from which their way leads over that lane. */
typedef struct signal_lane {
    uint32_t n, near, standing, due; /* due: moving, at their speed at the line within a step */
    double speed;                    /* m/s, sum over n */
    double first_m, stood_s;         /* of the first, where n > 0: to the line; standing without a break */
} signal_lane;

typedef struct signal_link { /* those of them that take this link */
    uint32_t n, near;
} signal_link;

typedef struct signal_now {
    const signal_lane *lane;                        /* [n_lanes] */
    const signal_link *link;                        /* [n_links] */
    const uint32_t *halting_before, *halting_after; /* [n_lanes], [n_out] standing on the whole lane */
    const double *red_s;                            /* [n_links] how long the first at the line has gone without the
                                                       * green of its link */
    const uint8_t *shown, *allowed;                 /* [n_links] letters; [n_phases] action mask */
    uint32_t phase, program;                        /* shown, or shown before a transition; of the signal's program */
    double green_s;                                 /* since that phase is green; negative during a transition */
    double detection_m;
} signal_now;

/* One vehicle: metres to the line, m/s, how long it has been standing; near_m and step_s of the environment. */
static inline void signal_detect(signal_lane *lane, signal_link *link, double way_m, double speed, double stood_s,
                                 double near_m, double step_s)
{
    const uint32_t is_near = way_m <= near_m, stands = speed < SIGNAL_HALTING_MPS;
    if (link != NULL) {
        link->n++;
        link->near += is_near;
    }
    if (lane == NULL) {
        return;
    }
    if (lane->n == 0 || way_m < lane->first_m) {
        lane->first_m = way_m;
        lane->stood_s = stands ? stood_s : 0;
    }
    lane->n++;
    lane->near += is_near;
    lane->standing += stands;
    lane->due += !stands && way_m <= speed * step_s;
    lane->speed += speed;
}

/* out [P, N_SIGNAL_COLUMNS], P at least n_phases: the rest is zeros, and -1 in green_s. */
void signal_write_phases(const signal_shape *s, const signal_now *now, uint32_t P, float *out);

#endif
