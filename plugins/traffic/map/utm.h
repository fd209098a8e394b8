/* SPDX-License-Identifier: Apache-2.0
 *
 * Latitude and longitude of WGS 84 to the Universal Transverse Mercator grid (NGA.SIG.0012): series of Krueger to the
 * 6th order in the third flattening, Karney, "Transverse Mercator with an accuracy of a few nanometers", Journal of
 * Geodesy 85 (2011), equations 7 to 12 and 35. Of the standard zones alone: none of those around Norway. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_UTM_H
#define DTRAIN_PLUGINS_TRAFFIC_UTM_H

#define DT_UTM_LATITUDE_MAX  84.0
#define DT_UTM_FROM_ZONE_MAX 30.0 /* degrees of longitude from the middle of a zone */
#define DT_UTM_SOUTH_M       1e7  /* northings of the south begin there */

int dt_utm_zone(double longitude); /* 1 to 60; degrees in [-180, 180] */
/* Degrees to metres: easting with its 500 km, northing from the equator, below 0 in the south. The latitude is in
 * [-84, 84], the longitude at most 30 degrees from the middle of the zone: within 3 degrees, 1 um. */
void dt_utm_project(double latitude, double longitude, int zone, double xy[2]);

#endif
