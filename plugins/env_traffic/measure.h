/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities of signals for the user's formulas (plugins/signals/quantities.def), from the simulation. Kept where there
 * are formulas alone. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_MEASURE_H
#define DTRAIN_ENV_TRAFFIC_MEASURE_H

#include "formula.h"
#include "sim.h"

typedef struct measured {   /* a vehicle, by its entry in sim.vehicle */
    uint64_t key, decision; /* decision: number of the last one at which it headed for the junction */
    double stood_s;         /* without a break */
    int32_t junction, reserved;
} measured;

typedef struct measured_signal {
    formula_values now;
    double lost_s, brakes, waiting_before_s; /* lost_s, brakes: in this step */
    int32_t phase_before, heading_before;
} measured_signal;

typedef struct measure { /* zeros: nothing is kept */
    const dt_host *h;
    measured *vehicle;       /* [max_vehicles] */
    measured_signal *signal; /* [n_signals] */
    uint64_t decision;
} measure;

dt_status measure_init(measure *m, const sim *s); /* DT_ENOMEM */
void measure_fini(measure *m);
void measure_advance(measure *m, const sim *s); /* after each step of the simulation */
/* At a decision; cost [n_signals, SIM_COSTS]: of the step, NULL after a reset. */
void measure_decide(measure *m, const sim *s, const float *cost);

#endif
