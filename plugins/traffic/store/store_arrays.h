/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of a store's arrays, A_scene_frame and on in the order of arrays.def, for the files that write and read it.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_ARRAYS_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_ARRAYS_H

enum {
#define DT_ARRAY(name, dtype, width, count, plus) A_##name,
#include "traffic/store/arrays.def"
#undef DT_ARRAY
    N_ARRAYS
};

#endif
