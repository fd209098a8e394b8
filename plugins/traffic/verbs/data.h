/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain data import|inspect|export|merge|split|sample|cut` (dtrain/ext/verbs.h). Threads: [main].
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_VERBS_DATA_H
#define DTRAIN_PLUGINS_TRAFFIC_VERBS_DATA_H

#include "dtrain/ext/verbs.h"

extern const dt_verb dt_data_verb;

#endif
