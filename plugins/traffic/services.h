/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plugin traffic provides to others: stores (dtrain/traffic/store.h) and features of vehicles
 * (dtrain/traffic/features.h). Threads: as in those headers.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_SERVICES_H
#define DTRAIN_PLUGINS_TRAFFIC_SERVICES_H

#include "dtrain/traffic/store.h"

extern const dt_store_api dt_traffic_store;
extern const dt_provided dt_traffic_services[]; /* "dtrain.services/1" */

#endif
