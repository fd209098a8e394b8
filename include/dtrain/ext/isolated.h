/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.isolated/1" of an environment, any table or text that is not NULL: it runs code of the user's. Its
 * instances are in worker processes like those of third parties, even if the plugin comes with dtrain, unless
 * env.isolation is "thread". A worker has several instances (DT_COMP_PROCESS: one). Threads: [main].
 */
#ifndef DTRAIN_EXT_ISOLATED_H
#define DTRAIN_EXT_ISOLATED_H

#include "dtrain/plugin.h"

#define DT_EXT_ISOLATED "dtrain.isolated/1"

#endif
