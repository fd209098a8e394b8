/* SPDX-License-Identifier: Apache-2.0
 *
 * The lanelets of a scenario of CommonRoad, its signs and its intersections: what import_commonroad.c shows to it,
 * element by element. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_COMMONROAD_MAP_H
#define DTRAIN_PLUGINS_TRAFFIC_COMMONROAD_MAP_H

#include "traffic/map/lane_builder.h"
#include "traffic/text/xml_reader.h"

typedef struct dt_commonroad_map dt_commonroad_map;

/* is_2018: of version 2018b, whose bounds have as many points on either side. path stays the caller's. DT_ENOMEM. */
dt_status dt_commonroad_map_create(const char *path, bool is_2018, dt_commonroad_map **out_p) DT_NODISCARD;
/* Every element below the root and its end; what is no road is passed over. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_commonroad_map_begin(dt_commonroad_map *m, const dt_xml *x) DT_NODISCARD;
dt_status dt_commonroad_map_end(dt_commonroad_map *m, const dt_xml *x) DT_NODISCARD;
/* All is read. *roads_p: the map, sealed, m's; NULL: the scenario has no lanelet. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_commonroad_map_close(dt_commonroad_map *m, const dt_roads **roads_p) DT_NODISCARD;
/* What is worth knowing of it, a line each. */
void dt_commonroad_map_report(const dt_commonroad_map *m, dt_str *notes);
void dt_commonroad_map_destroy(dt_commonroad_map *m); /* NULL is fine */

#endif
