/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dtrain doctor` checks of SUMO: can the module that is linked with it be opened, and which version is it?
 */
#include "doctor.h"
#include "module.h"

#include "dtrain/helpers.h"

#include <stdio.h>

typedef struct reason {
    char text[1024];
} reason;

static dt_status record_reason(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    reason *r = h->priv;
    snprintf(r->text, sizeof(r->text), "%s", msg);
    return st;
}

static void check_installation(const dt_host *h, const dt_doctor_report *report)
{
    reason why = {""};
    dt_host own = *h;
    const sumo_api *sumo = NULL;
    own.priv = &why;
    own.fail = record_reason;
    if (module_open(&own, "", &sumo) == DT_OK) {
        report->add_finding(report, DT_DOCTOR_PASS, "SUMO", sumo->version(), "");
    } else {
        report->add_finding(report, DT_DOCTOR_WARN, "SUMO", why.text,
                            "needed by env_sumo only; other phases train without it");
    }
}

const dt_doctor_api sumo_doctor = {.struct_size = sizeof(dt_doctor_api), .check = check_installation};
