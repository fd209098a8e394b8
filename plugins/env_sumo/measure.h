/* SPDX-License-Identifier: Apache-2.0
 *
 * What an episode is measured by, from SUMO's trip information (unfinished vehicles included) and the vehicles that
 * were due and never let in.
 *
 *   strict delay  mean over all vehicles of the demand that were due before the end: time lost on the road + delay of
 *                 the departure; for one never let in: end - when it was due
 *   RESCO delay   the same by the rule of RESCO's scripts (Ault & Sharon 2021; readXML.py): of those never let in it
 *                 counts only <vehicle> elements (not trips) due after the last one that did enter
 *   travel time   mean over all vehicles that were due of the time from then to arrival, or to the end of the episode:
 *                 the average travel time of CityFlow
 *   trip time, waiting, time loss, depart delay   means over the vehicles that entered
 * Threads: [any].
 */
#ifndef DTRAIN_ENV_SUMO_MEASURE_H
#define DTRAIN_ENV_SUMO_MEASURE_H

#include "sumo.h"

typedef struct measures {
    double travel_time_s;
    double strict_delay_s, resco_delay_s, trip_time_s, waiting_s, time_loss_s, depart_delay_s; /* NAN: no vehicle */
    double demand, finished, never_inserted, speed_mps; /* speed: way of all vehicles over their time */
} measures;

/* end_s: of the episode, simulated time */
void measure(const sumo_result *r, double end_s, measures *out);

#endif
