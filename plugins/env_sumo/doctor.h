/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dtrain doctor` checks of SUMO. Threads: [main].
 */
#ifndef DTRAIN_ENV_SUMO_DOCTOR_H
#define DTRAIN_ENV_SUMO_DOCTOR_H

#include "dtrain/ext/doctor.h"

extern const dt_doctor_api sumo_doctor;

#endif
