/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number after name=" within one element; 0 where it is missing. */
static double read_attribute(const char *element, const char *end, const char *name)
{
    const size_t n = strlen(name);
    for (const char *c = element; c + n + 3 < end; c++) {
        if (c[0] == ' ' && strncmp(c + 1, name, n) == 0 && c[n + 1] == '=' && c[n + 2] == '"') {
            return strtod(c + n + 3, NULL);
        }
    }
    return 0;
}

void measure(const sumo_result *r, double end_s, measures *out)
{
    static const char open[] = "<tripinfo ";
    double n = 0, way = 0, lost = 0, late = 0, resco = 0, n_resco = 0;
    double last_entry = -INFINITY, last_due = -INFINITY; /* of the vehicle that entered last */
    memset(out, 0, sizeof(*out));
    for (const char *e = strstr(r->tripinfo, open); e != NULL; e = strstr(e + 1, open)) {
        const char *end = strchr(e, '>');
        end = end != NULL ? end : e + strlen(e);
        const double depart = read_attribute(e, end, "depart"), delay = read_attribute(e, end, "departDelay");
        out->trip_time_s += read_attribute(e, end, "duration");
        way += read_attribute(e, end, "routeLength");
        out->waiting_s += read_attribute(e, end, "waitingTime");
        out->finished += read_attribute(e, end, "arrival") >= 0;
        lost += read_attribute(e, end, "timeLoss");
        late += delay;
        n++;
        if (depart > last_entry) {
            last_entry = depart;
            last_due = depart - delay;
        }
    }
    double outside = 0;
    for (uint32_t i = 0; i < r->n_late; i++) {
        const double wait = end_s - r->late[i].depart_s;
        outside += wait;
        if (r->late[i].is_vehicle != 0 && r->late[i].depart_s > last_due) {
            resco += wait;
            n_resco++;
        }
    }
    out->never_inserted = r->n_late;
    out->demand = n + out->never_inserted;
    out->strict_delay_s = (lost + late + outside) / out->demand;
    out->travel_time_s = (out->trip_time_s + late + outside) / out->demand;
    out->resco_delay_s = (lost + late + resco) / (n + n_resco);
    out->speed_mps = way / out->trip_time_s;
    out->trip_time_s /= n; /* NAN without vehicles */
    out->waiting_s /= n;
    out->time_loss_s = lost / n;
    out->depart_delay_s = late / n;
}
