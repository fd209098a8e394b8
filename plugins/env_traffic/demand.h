/* SPDX-License-Identifier: Apache-2.0
 *
 * Demand: vehicles that are due at the edges where the network begins. All times of an episode are drawn at its start.
 * A vehicle enters as soon as a lane gives it a safe gap; until then it waits, and its wait counts as delay.
 */
#ifndef DTRAIN_ENV_TRAFFIC_DEMAND_H
#define DTRAIN_ENV_TRAFFIC_DEMAND_H

#include "sim.h"

/* Room for the arrivals of every source. Errors: DT_ENOMEM. */
dt_status demand_create(sim *s);
void demand_destroy(sim *s);
void demand_reset(sim *s);
void demand_step(sim *s);

#endif
