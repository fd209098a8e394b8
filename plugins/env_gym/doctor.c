/* SPDX-License-Identifier: Apache-2.0
 *
 * Which Python env_gym uses by default, for `dtrain doctor`. The interpreter that env_gym.interpreter names is checked
 * by the training itself. Findings warn: other environments need no Python.
 */
#include "env_gym.h"

enum { MAX_TEXT = 1024 };

typedef struct reason {
    char text[MAX_TEXT];
} reason;

static dt_status record_reason(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    reason *r = h->priv;
    (void)where;
    snprintf(r->text, sizeof(r->text), "%s", msg);
    return st;
}

static void check_python(const dt_host *h, const dt_doctor_report *report)
{
    static const config by_default = {.id = "",
                                      .kwargs = "",
                                      .wrappers = "",
                                      .interpreter = "",
                                      .path = "",
                                      .costs = "",
                                      .metrics = "",
                                      .teams = "",
                                      .startup_s = 10};
    reason why = {""};
    dt_host own = *h;
    char finding[MAX_TEXT];
    bool has_gymnasium = false;
    own.priv = &why;
    own.fail = record_reason;
    if (python_describe(&own, &by_default, finding, sizeof(finding), &has_gymnasium) != DT_OK) {
        report->add_finding(report, DT_DOCTOR_WARN, "Python", why.text,
                            "needed by env_gym only; other environments need no Python");
        return;
    }
    report->add_finding(report, DT_DOCTOR_PASS, "Python", finding,
                        has_gymnasium ? ""
                                      : "for ids such as CartPole-v1, install gymnasium in a virtual environment and "
                                        "set env_gym.interpreter to its folder");
}

const dt_doctor_api gym_doctor = {.struct_size = sizeof(dt_doctor_api), .check = check_python};
