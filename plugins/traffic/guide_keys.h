/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.keys/1" of the plugin traffic. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_GUIDE_KEYS_H
#define DTRAIN_PLUGINS_TRAFFIC_GUIDE_KEYS_H

#include "dtrain/ext/keys.h"

extern const dt_keys_ext dt_guide_keys;

#endif
