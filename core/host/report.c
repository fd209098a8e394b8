/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluation's result: a table for people on standard error, a JSON object for scripts.
 */
#include <config.h>

#include "host/run.h"

#include "base/json.h"
#include "base/log.h"
#include "host/stage.h"

#include <math.h>
#include <stdio.h>

void dt_report_print(const dt_stage *s)
{
    const dt_report *r = NULL;
    const uint32_t n = dt_stage_reports(s, &r);
    for (uint32_t i = 0; i < n; i++) {
        char line[512];
        int at = snprintf(line, sizeof(line), "  %-18s", r[i].key);
        for (uint32_t j = 0; j < r[i].n && at > 0 && (size_t)at < sizeof(line) - 24; j++) {
            at += snprintf(line + at, sizeof(line) - (size_t)at, " %9.4g", r[i].value[j]);
        }
        dt_log(DT_LOG_INFO, "%s", line);
    }
}

void dt_report_json(const dt_stage *s, dt_str *out)
{
    const dt_report *r = NULL;
    const uint32_t n = dt_stage_reports(s, &r);
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (!r[i].is_list) {
            const double v = r[i].value[0];
            if (v == floor(v) && fabs(v) < 9e15) {
                dt_json_i64(&o, r[i].key, (int64_t)v);
            } else {
                dt_json_f64(&o, r[i].key, v);
            }
            continue;
        }
        dt_json_arr(&o, r[i].key);
        for (uint32_t j = 0; j < r[i].n; j++) {
            dt_json_f64(&o, NULL, r[i].value[j]);
        }
        dt_json_end(&o, ']');
    }
    dt_json_end(&o, '}');
}
