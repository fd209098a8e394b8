/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic lights. A junction shows one green phase; to change it, the controller requests the next one, and the light
 * itself shows yellow to the links that lose green, then red to all that will change, then the new phase. So a
 * conflicting or a skipped yellow cannot be asked for. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_SIGNAL_H
#define DTRAIN_ENV_TRAFFIC_SIGNAL_H

#include "sim.h"

void signal_reset(sim *s);
/* May phase p be asked for now: the one shown before max_green, others after min_green, in a transition its target. */
int signal_is_legal(const sim *s, int32_t junction, int32_t p);
/* Requests; what is not legal is refused (0) and changes nothing. */
int signal_request(sim *s, int32_t junction, int32_t p);
/* The phase of the fixed program now. */
int32_t signal_program(const sim *s, int32_t junction);
/* Time passes by one step; counts conflicting greens, how long queues wait, and how long for which green. */
void signal_step(sim *s);

#endif
