/* SPDX-License-Identifier: Apache-2.0
 *
 * See doctor.h: a verdict, for people or for scripts.
 */
#include <config.h>

#include "plan/machine/doctor.h"

#include <stdarg.h>

static const char *const verdict_name[DT_VERDICT_END] = {
    [DT_VERDICT_PASS] = "PASS", [DT_VERDICT_WARN] = "WARN", [DT_VERDICT_FAIL] = "FAIL"};

void dt_doctor_add(dt_doctor *d, dt_verdict v, const char *check, const char *remedy, const char *fmt, ...)
{
    dt_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    if (text.text != NULL) {
        dt_mask(text.text, true);
    }
    d->n[v]++;
    if (d->json != NULL) {
        dt_json_obj(d->json, NULL);
        dt_json_str(d->json, "check", check);
        dt_json_str(d->json, "verdict", verdict_name[v]);
        dt_json_str(d->json, "text", dt_str_text(&text));
        dt_json_str(d->json, "remedy", remedy);
        dt_json_end(d->json, '}');
    } else if (v != DT_VERDICT_PASS || !d->is_quiet) {
        dt_str_addf(d->out, "%s  %-14s %s\n", verdict_name[v], check, dt_str_text(&text));
        if (*remedy != '\0') {
            dt_str_addf(d->out, "%21s-> %s\n", "", remedy);
        }
    }
    dt_str_fini(&text);
}
