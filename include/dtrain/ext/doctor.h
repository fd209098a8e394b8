/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.doctor/1" of a component: checks of `dtrain doctor`, such as a program or a file that the component
 * needs at run time. Threads: [main].
 */
#ifndef DTRAIN_EXT_DOCTOR_H
#define DTRAIN_EXT_DOCTOR_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_DOCTOR "dtrain.doctor/1"

/* WARN: training works with reduced functionality. FAIL: training does not work; doctor exits with code 5. */
enum { DT_DOCTOR_PASS, DT_DOCTOR_WARN, DT_DOCTOR_FAIL };

typedef struct dt_doctor_report dt_doctor_report;
struct dt_doctor_report {
    uint32_t struct_size, reserved;
    void *priv;
    const char *plugin_path; /* file of the plugin; "(built in)" when it is linked into the program */
    /* Adds one line. check: one or two words; finding: what was found; remedy: how to fix it, "": nothing to fix. */
    void (*add_finding)(const dt_doctor_report *r, uint32_t verdict, const char *check, const char *finding,
                        const char *remedy);
};

typedef struct dt_doctor_api {
    uint32_t struct_size, reserved;
    void (*check)(const dt_host *h, const dt_doctor_report *r); /* no side effects, at most a few seconds */
} dt_doctor_api;

#ifdef __cplusplus
}
#endif
#endif
