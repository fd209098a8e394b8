/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain doctor`: the checks of the product itself, and those of the machine. See doctor.h.
 */
#include <config.h>

#include "cli/cli.h"
#include "plan/machine/doctor.h"
#include "run/session.h"

#include "base/err.h"
#include "base/print.h"
#include "dtrain/ext/dataset.h"
#include "dtrain/ext/doctor.h"
#include "dtrain/helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the product ------------------------------------------------------------------------------------------------- */

static void check_plugins(dt_doctor *d, dt_loader *l)
{
    dt_str refused = {0};
    const dt_status st = dt_loader_scan(l, &refused);
    const uint32_t n = dt_loader_count_plugins(l);
    if (st != DT_OK) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "plugins", "", "%s", dt_error_text());
    } else if (n == 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "plugins", "make install, or name their folder in DTRAIN_PLUGIN_PATH",
                           "none found");
    } else if (refused.bytes > 0) {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "plugins", "build them again, or remove them from the folder",
                           "%u; refused: %.*s", n, (int)strcspn(dt_str_text(&refused), "\n"), dt_str_text(&refused));
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "plugins", "", "%u with %u components", n, dt_loader_count(l));
    }
    dt_str_fini(&refused);
}

typedef struct reader {
    const dt_host *host;
    const char *path;
    dt_status st;
} reader;

static void read_dataset(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    reader *r = user;
    const dt_dataset_ext *of = table;
    uint64_t digest = 0;
    if (DT_HAS(of, digest) && r->st != DT_OK) {
        r->st = of->digest(r->host, r->path, &digest);
    }
}

static void check_recording(dt_doctor *d, const dt_loader *l, const dt_host *host, const char *path)
{
    reader r = {.host = host, .path = path, .st = DT_ENOTFOUND};
    dt_loader_visit_extensions(l, DT_EXT_DATASET, read_dataset, &r);
    if (r.st != DT_OK) {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "recording",
                           "make install; or train on your own with --set data.store=...", "the built-in one: %s",
                           dt_error_text());
        return;
    }
    dt_doctor_add_line(d, DT_VERDICT_PASS, "recording", "", "the one that comes with dtrain, in %s", path);
}

static void report_for_component(const dt_doctor_report *r, uint32_t verdict, const char *check, const char *finding,
                                 const char *remedy)
{
    dt_doctor_add_line(r->priv, verdict <= DT_DOCTOR_FAIL ? (dt_verdict)verdict : DT_VERDICT_FAIL,
                       check != NULL ? check : "plugin", remedy != NULL ? remedy : "", "%s",
                       finding != NULL ? finding : "its check reports no finding (NULL)");
}

typedef struct patient {
    dt_doctor *doctor;
    const dt_host *host;
} patient;

/* What plugins check themselves (dtrain/ext/doctor.h). */
static void examine_plugin(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    const patient *p = user;
    const dt_doctor_api *own = table;
    if (DT_HAS(own, check)) {
        own->check(p->host, &(dt_doctor_report){.struct_size = sizeof(dt_doctor_report),
                                                .priv = p->doctor,
                                                .plugin_path = plugin->path,
                                                .add_finding = report_for_component});
    }
}

static void examine_machine(dt_doctor *d, dt_session *s, const dt_args *a)
{
    const char *run_dir = a->run_dir;
    const char *base = getenv("DTRAIN_RUN_DIR");
    dt_doctor_add_line(d, DT_VERDICT_PASS, "dtrain", "", "%s, plugin contract %d.%d", PACKAGE_VERSION, DT_ABI_MAJOR,
                       DT_ABI_MINOR);
    check_plugins(d, s->loader);
    check_recording(d, s->loader, &s->host, s->demo_store);
    dt_doctor_check_machine(d);
    dt_doctor_check_disk(d, run_dir != NULL ? run_dir : base != NULL && *base != '\0' ? base : "runs");
    for (uint32_t i = 0; i < a->n_words; i++) {
        dt_doctor_check_reading(d, a->word[i]);
    }
    if (a->n_words == 0) {
        dt_doctor_check_reading(d, s->demo_store);
    }
    dt_doctor_check_cpu(d);
    dt_doctor_check_cuda(d);
    dt_loader_visit_extensions(s->loader, DT_EXT_DOCTOR, examine_plugin, &(patient){d, &s->host});
    dt_doctor_check_tools(d);
}

dt_status dt_verb_doctor(const dt_args *a, int *code_p)
{
    dt_session s;
    dt_str out = {0};
    dt_json_out json = {.s = &out};
    dt_doctor d = {.out = &out, .json = a->json ? &json : NULL, .root = "", .is_quiet = a->quiet};
    dt_status st = dt_session_open_loader(&s);
    if (st < 0) {
        dt_session_close(&s);
        return st;
    }
    if (a->json) {
        dt_json_obj(&json, NULL);
        dt_json_str(&json, "version", PACKAGE_VERSION);
        dt_json_arr(&json, "checks");
    }
    examine_machine(&d, &s, a);
    const uint32_t n_pass = d.n[DT_VERDICT_PASS], n_warn = d.n[DT_VERDICT_WARN], n_fail = d.n[DT_VERDICT_FAIL];
    if (a->json) {
        dt_json_end(&json, ']');
        dt_json_i64(&json, "passed", n_pass);
        dt_json_i64(&json, "warned", n_warn);
        dt_json_i64(&json, "failed", n_fail);
        dt_json_end(&json, '}');
        dt_str_add(&out, "\n");
    } else if (!a->quiet) {
        dt_str_addf(&out, "%u passed, %u warned, %u failed\n", n_pass, n_warn, n_fail);
    }
    st = dt_str_status(&out);
    dt_print_text(dt_str_text(&out));
    dt_str_fini(&out);
    dt_session_close(&s);
    if (st == DT_OK && n_fail > 0) {
        st = DT_FAIL(DT_EUNSUPPORTED, "%u of %u checks failed; lines with FAIL state the remedy", n_fail,
                     n_pass + n_warn + n_fail);
    }
    return st;
}
