/* SPDX-License-Identifier: Apache-2.0
 *
 * How texts of recordings become values, for every reader: ids of vehicles, times, truth values, and the class of a
 * road user. Each rule exists once, here. Threads: any; one dt_ids, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_VALUES_H
#define DTRAIN_PLUGINS_TRAFFIC_VALUES_H

#include "traffic/text/names.h"
#include "base/str.h"

/* ---- ids --------------------------------------------------------------------------------------------------------- */

/* Ids of one file. Integers of 64 bits are themselves, whole numbers such as "12.0" too. Any other text (a token, a
 * UUID, a longer integer) gets a number: 0, 1, ... in the order of appearance where the first id of the file is a text,
 * since then every id of it is one; else from INT64_MIN upwards, where no integer id is itself. Different ids never get
 * the same number. */
typedef struct dt_ids { /* zeroed is empty */
    dt_names texts;
    enum { DT_IDS_UNDECIDED, DT_IDS_INTEGERS, DT_IDS_TEXTS } kind;
} dt_ids;

dt_status dt_ids_get(dt_ids *ids, const char *text, int64_t *out_p) DT_NODISCARD; /* DT_EDATA, DT_ENOMEM */
void dt_ids_fini(dt_ids *ids);
/* An id that must be an integer of 64 bits, as of OpenStreetMap; false: it is not. */
bool dt_value_parse_id(const char *text, int64_t *out_p);

/* ---- times and truth values -------------------------------------------------------------------------------------- */

/* Seconds: a number, or "[days:]hours:minutes:seconds" as SUMO writes with --human-readable-time. */
bool dt_value_parse_time(const char *text, double *out_p);
/* Seconds since 1970 in UTC of "2024-05-01T08:30:00.25+02:00"; also with a blank in place of T, without a fraction,
 * with Z or without a zone, which counts as UTC: *has_zone_p. */
bool dt_value_parse_date(const char *text, double *out_p, bool *has_zone_p);
/* "1", "0", "true", "false", "yes", "no", whatever their case; and other numbers above 0, which are true. */
bool dt_value_parse_bool(const char *text, bool *out_p);

/* ---- road users -------------------------------------------------------------------------------------------------- */

typedef enum dt_road_user {
    DT_USER_UNKNOWN, /* no class that is known: read as a vehicle, and counted */
    DT_USER_VEHICLE,
    DT_USER_BICYCLE,
    DT_USER_PEDESTRIAN,
    DT_USER_OBJECT, /* barriers, construction, animals, background */
    DT_N_USERS
} dt_road_user;

/* By the words of a class name: "car", "truck_bus", "pedestrian/bicycle", "vehicle.bicycle", "TYPE_CYCLIST",
 * "DEFAULT_BIKETYPE". Of several words the least protected road user wins: "vehicle.bicycle" is a bicycle. */
dt_road_user dt_road_user_of(const char *name);
/* How many there were of each, and a class that is not known. */
typedef struct dt_users { /* zeroed is empty */
    int64_t n[DT_N_USERS];
    char unknown[64];
} dt_users;
void dt_users_add(dt_users *u, dt_road_user user, const char *name);
/* A line for each kind that was left out, and one for what has no known class; what: "rows of ", "". */
void dt_users_report(const dt_users *u, const char *what, dt_str *notes);
/* Models of vehicles take vehicles, and what is of no known class. */
bool dt_road_user_is_vehicle(dt_road_user user);

#endif
