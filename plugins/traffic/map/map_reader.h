/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that hold a map of roads and no recording, plain or packed by gzip or xz, distinguished by what is in them:
 *   lanelet2   XML of <osm>: relations of type lanelet between two ways (map_lanelet2.c)
 *   SUMO       XML of <net>: lanes and connections (map_sumo.c)
 *   Argoverse  JSON with lane_segments: two boundaries or a centre line each (map_argoverse.c)
 * Everything is checked, and what is wrong is DT_EDATA with file, line and what. Memory: the map. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_MAP_READER_H
#define DTRAIN_PLUGINS_TRAFFIC_MAP_READER_H

#include "traffic/map/roads.h"
#include "traffic/text/source.h"
#include "base/str.h"

/* Where positions of a recording are counted from, for maps in degrees. */
typedef struct dt_map_origin {
    bool is_given, is_utm;
    double at[2];     /* degrees of latitude and longitude; with is_utm: easting and northing, m, of the map's zone */
    double offset[2]; /* m that are added to the positions of any map when it is read */
} dt_map_origin;

/* "": none is given; "latitude,longitude" in degrees, or "utm:easting,northing". DT_EINVAL. */
dt_status dt_map_origin_parse(const char *text, dt_map_origin *out_p) DT_NODISCARD;
/* "": no offset; "DX,DY" in metres. DT_EINVAL. */
dt_status dt_map_offset_parse(const char *text, double offset[2]) DT_NODISCARD;
/* How near the positions of a recording reach at least to the lanes of a map that import.map names. */
#define DT_MAP_NEAR_M 50.0

/* notes gets lines for people. *out_p is sealed, and the caller's. DT_ENOTFOUND, DT_EDATA, DT_EINVAL (an origin for a
 * map that has none), DT_EIO, DT_ENOMEM. */
dt_status dt_map_read(const char *path, const dt_map_origin *origin, dt_str *notes, dt_roads *out_p) DT_NODISCARD;
/* The map of a scene in a folder: SCENE.osm, SCENE.net.xml, SCENE.json, log_map_archive_SCENE.json, or the last one in
 * a folder of the scene's name, as Argoverse 2 has it; a part "SCENE#2" has the map of SCENE. DT_ENOTFOUND, DT_EDATA
 * (two of them). */
dt_status dt_map_find(const char *folder, const char *scene, dt_str *path) DT_NODISCARD;
/* Reads a map in memory, and keeps nothing: for tests that read millions of them. */
dt_status dt_map_check(const void *bytes, size_t n_bytes, const char *name, const dt_map_origin *origin) DT_NODISCARD;

/* ---- for the readers of this room: of a source that was just opened ---------------------------------------------- */

dt_status dt_map_read_lanelet2(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                               dt_roads *out_p) DT_NODISCARD;
dt_status dt_map_read_sumo(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                           dt_roads *out_p) DT_NODISCARD;
dt_status dt_map_read_argoverse(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                                dt_roads *out_p) DT_NODISCARD;

#endif
