/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/text/values.h"
#include "base/err.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- ids --------------------------------------------------------------------------------------------------------- */

/* Integers below are entered as texts: numbers of texts begin at INT64_MIN. */
static const int64_t least_integer = INT64_MIN + DT_NAMES_MOST + 1;

bool dt_value_parse_id(const char *text, int64_t *out_p)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (digits[strspn(digits, "0123456789")] == '\0') {
        return dt_parse_i64(text, out_p); /* whole, and within 64 bits */
    }
    /* as programs write floating-point numbers; "12e4" may be a hexadecimal token */
    const size_t whole = strspn(digits, "0123456789");
    const char *rest = digits + whole;
    const bool is_float = whole > 0 && (rest[0] == '.' || ((rest[0] == 'e' || rest[0] == 'E') && rest[1] == '+'));
    return is_float && rest[strspn(rest, "0123456789.eE+")] == '\0' && dt_parse_whole(text, out_p);
}

dt_status dt_ids_get(dt_ids *ids, const char *text, int64_t *out_p)
{
    int64_t integer = 0;
    int32_t number = 0;
    bool is_new = false;
    const bool is_integer = dt_value_parse_id(text, &integer);
    if (ids->kind == DT_IDS_UNDECIDED) {
        ids->kind = is_integer ? DT_IDS_INTEGERS : DT_IDS_TEXTS;
    }
    if (ids->kind == DT_IDS_INTEGERS && is_integer && integer >= least_integer) {
        *out_p = integer;
        return DT_OK;
    }
    DT_TRY(dt_names_add(&ids->texts, text, &number, &is_new));
    *out_p = ids->kind == DT_IDS_TEXTS ? number : INT64_MIN + number;
    return DT_OK;
}

void dt_ids_fini(dt_ids *ids)
{
    dt_names_fini(&ids->texts);
    ids->kind = DT_IDS_UNDECIDED;
}

/* ---- times and truth values -------------------------------------------------------------------------------------- */

bool dt_value_parse_time(const char *text, double *out_p)
{
    static const double most[] = {60, 60, 24, 1e7}, seconds[] = {1, 60, 3600, 86400};
    enum { PARTS = 4, PART_BYTES = 32 };
    double part[PARTS], sum = 0;
    int n = 0;
    if (dt_parse_f64(text, out_p)) {
        return true;
    }
    const bool is_negative = *text == '-';
    for (const char *at = text + is_negative;; n++) {
        char piece[PART_BYTES] = "";
        const size_t bytes = strcspn(at, ":");
        if (n == PARTS || bytes == 0 || bytes >= PART_BYTES || *at < '0' || *at > '9') {
            return false;
        }
        memcpy(piece, at, bytes);
        if (!dt_parse_f64(piece, &part[n]) || (at[bytes] == ':' && part[n] != floor(part[n]))) {
            return false;
        }
        if (at[bytes] == '\0') {
            n++;
            break;
        }
        at += bytes + 1;
    }
    for (int i = 0; i < n; i++) { /* from the seconds up */
        const double value = part[n - 1 - i];
        if (!(value < most[i] || (i == n - 1 && value < 1e7))) {
            return false;
        }
        sum += value * seconds[i];
    }
    *out_p = is_negative ? -sum : sum;
    return n >= 2;
}

/* Days from 1970-01-01 (H. Hinnant, days_from_civil). */
static int64_t days_from_civil(int year, int month, int day)
{
    const int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool dt_value_parse_date(const char *text, double *out_p, bool *has_zone_p)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    double second = 0, zone_s = 0;
    const size_t n = sizeof(shape) - 1;
    for (size_t i = 0; i < n; i++) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == 'd' ? !is_digit : text[i] != shape[i] && !(shape[i] == 'T' && text[i] == ' ')) {
            return false; /* also at the end of the text */
        }
    }
    const int year = atoi(text), month = atoi(text + 5), day = atoi(text + 8), hour = atoi(text + 11),
              minute = atoi(text + 14);
    const size_t digits = text[n] == '.' ? 1 + strspn(text + n + 1, "0123456789") : 0;
    const char *zone = text + n + digits;
    char seconds[32] = "";
    memcpy(seconds, text + n - 2, digits + 2 < sizeof(seconds) ? digits + 2 : sizeof(seconds) - 1);
    *has_zone_p = *zone != '\0';
    if (*zone == '+' || *zone == '-') {
        int h = 0, m = 0, end = 0;
        if ((sscanf(zone + 1, "%2d:%2d%n", &h, &m, &end) != 2 && sscanf(zone + 1, "%2d%2d%n", &h, &m, &end) != 2 &&
             sscanf(zone + 1, "%2d%n", &h, &end) != 1) ||
            zone[1 + end] != '\0' || h > 23 || m > 59) {
            return false;
        }
        zone_s = (*zone == '-' ? -60.0 : 60.0) * (60 * h + m);
    } else if (*zone != '\0' && strcmp(zone, "Z") != 0) {
        return false;
    }
    if (!dt_parse_f64(seconds, &second) || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
        second >= 61) {
        return false;
    }
    *out_p = 86400.0 * (double)days_from_civil(year, month, day) + 3600 * hour + 60 * minute - zone_s + second;
    return true;
}

bool dt_value_parse_bool(const char *text, bool *out_p)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"true", true}, {"yes", true}, {"false", false}, {"no", false}};
    double number = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i].word) == 0) {
            *out_p = words[i].value;
            return true;
        }
    }
    if (!dt_parse_f64(text, &number) || number < 0) {
        return false;
    }
    *out_p = number > 0;
    return true;
}

/* ---- road users -------------------------------------------------------------------------------------------------- */

static const struct word {
    const char *name;
    dt_road_user user;
} words[] = {
    {"pedestrian", DT_USER_PEDESTRIAN},
    {"pedestrians", DT_USER_PEDESTRIAN},
    {"ped", DT_USER_PEDESTRIAN},
    {"pedtype", DT_USER_PEDESTRIAN},
    {"person", DT_USER_PEDESTRIAN},
    {"people", DT_USER_PEDESTRIAN},
    {"human", DT_USER_PEDESTRIAN},
    {"walker", DT_USER_PEDESTRIAN},
    {"wheelchair", DT_USER_PEDESTRIAN},
    {"stroller", DT_USER_PEDESTRIAN},
    {"bicycle", DT_USER_BICYCLE},
    {"bicycles", DT_USER_BICYCLE},
    {"bicyclist", DT_USER_BICYCLE},
    {"cyclist", DT_USER_BICYCLE},
    {"cyclists", DT_USER_BICYCLE},
    {"cycle", DT_USER_BICYCLE},
    {"bike", DT_USER_BICYCLE},
    {"biker", DT_USER_BICYCLE},
    {"biketype", DT_USER_BICYCLE},
    {"scooter", DT_USER_BICYCLE},
    {"escooter", DT_USER_BICYCLE},
    {"skater", DT_USER_BICYCLE},
    {"static", DT_USER_OBJECT},
    {"background", DT_USER_OBJECT},
    {"construction", DT_USER_OBJECT},
    {"constructionzone", DT_USER_OBJECT},
    {"barrier", DT_USER_OBJECT},
    {"trafficcone", DT_USER_OBJECT},
    {"cone", DT_USER_OBJECT},
    {"debris", DT_USER_OBJECT},
    {"animal", DT_USER_OBJECT},
    {"building", DT_USER_OBJECT},
    {"pillar", DT_USER_OBJECT},
    {"roadboundary", DT_USER_OBJECT},
    {"container", DT_USER_OBJECT},
    {"median", DT_USER_OBJECT},
    {"car", DT_USER_VEHICLE},
    {"cars", DT_USER_VEHICLE},
    {"auto", DT_USER_VEHICLE},
    {"automobile", DT_USER_VEHICLE},
    {"vehicle", DT_USER_VEHICLE},
    {"vehicles", DT_USER_VEHICLE},
    {"veh", DT_USER_VEHICLE},
    {"vehtype", DT_USER_VEHICLE},
    {"truck", DT_USER_VEHICLE},
    {"trucks", DT_USER_VEHICLE},
    {"lorry", DT_USER_VEHICLE},
    {"bus", DT_USER_VEHICLE},
    {"coach", DT_USER_VEHICLE},
    {"van", DT_USER_VEHICLE},
    {"taxi", DT_USER_VEHICLE},
    {"trailer", DT_USER_VEHICLE},
    {"motorcycle", DT_USER_VEHICLE},
    {"motorcyclist", DT_USER_VEHICLE},
    {"motorbike", DT_USER_VEHICLE},
    {"motor", DT_USER_VEHICLE},
    {"moped", DT_USER_VEHICLE},
    {"mopedtype", DT_USER_VEHICLE},
    {"passenger", DT_USER_VEHICLE},
    {"private", DT_USER_VEHICLE},
    {"hov", DT_USER_VEHICLE},
    {"evehicle", DT_USER_VEHICLE},
    {"emergency", DT_USER_VEHICLE},
    {"authority", DT_USER_VEHICLE},
    {"army", DT_USER_VEHICLE},
    {"vip", DT_USER_VEHICLE},
    {"delivery", DT_USER_VEHICLE},
    {"tram", DT_USER_VEHICLE},
    {"train", DT_USER_VEHICLE},
    {"parkedvehicle", DT_USER_VEHICLE},
    {"priorityvehicle", DT_USER_VEHICLE},
    {"taxitype", DT_USER_VEHICLE},
    {"rail", DT_USER_VEHICLE},
    {"railtype", DT_USER_VEHICLE},
};

static dt_road_user user_of_word(const char *word, size_t bytes)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].name) == bytes && strncasecmp(words[i].name, word, bytes) == 0) {
            return words[i].user;
        }
    }
    return DT_USER_UNKNOWN;
}

dt_road_user dt_road_user_of(const char *name)
{
    static const int rank[DT_N_USERS] = {[DT_USER_UNKNOWN] = 0,
                                         [DT_USER_VEHICLE] = 1,
                                         [DT_USER_OBJECT] = 2,
                                         [DT_USER_BICYCLE] = 3,
                                         [DT_USER_PEDESTRIAN] = 4};
    static const char between[] = " _-./:|,;";
    dt_road_user found = DT_USER_UNKNOWN;
    for (const char *at = name; *at != '\0';) {
        const size_t bytes = strcspn(at, between);
        const dt_road_user user = user_of_word(at, bytes);
        found = rank[user] > rank[found] ? user : found;
        at += bytes;
        at += strspn(at, between);
    }
    return found;
}

bool dt_road_user_is_vehicle(dt_road_user user)
{
    return user == DT_USER_UNKNOWN || user == DT_USER_VEHICLE;
}

void dt_users_add(dt_users *u, dt_road_user user, const char *name)
{
    if (user == DT_USER_UNKNOWN && u->n[user] == 0) {
        snprintf(u->unknown, sizeof(u->unknown), "%s", name);
    }
    u->n[user]++;
}

void dt_users_report(const dt_users *u, const char *what, dt_str *notes)
{
    const int64_t persons = u->n[DT_USER_PEDESTRIAN] + u->n[DT_USER_BICYCLE];
    if (persons > 0) {
        dt_str_addf(notes,
                    "%" PRId64 " %speople on foot and on bicycles: left out (%" PRId64 " on foot, %" PRId64
                    " on bicycles)\n",
                    persons, what, u->n[DT_USER_PEDESTRIAN], u->n[DT_USER_BICYCLE]);
    }
    if (u->n[DT_USER_OBJECT] > 0) {
        dt_str_addf(notes, "%" PRId64 " %sobjects that do not drive: left out\n", u->n[DT_USER_OBJECT], what);
    }
    if (u->n[DT_USER_UNKNOWN] > 0) {
        dt_str_addf(notes, "%" PRId64 " %sroad users of a class that is not known (\"", u->n[DT_USER_UNKNOWN], what);
        for (const char *p = u->unknown; *p != '\0'; p++) {
            dt_str_add_n(notes, (unsigned char)*p < ' ' || *p == 127 ? "?" : p, 1);
        }
        dt_str_add(notes, "\"): read as vehicles\n");
    }
}
