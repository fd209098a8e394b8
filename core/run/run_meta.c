/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/run_meta.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "engine/backend/kernel.h"
#include "telemetry/report/flat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define BEGINNING "began_with"

void dt_run_meta_text(const dt_run_meta *m, const dt_session *session, int exit_code, dt_str *out)
{
    const dt_loader *l = session->loader;
    dt_json_out o = {.s = out};
    struct utsname host;
    memset(&host, 0, sizeof(host));
    uname(&host);
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "version", PACKAGE_VERSION);
    dt_json_arr(&o, "plugins");
    for (uint32_t i = 0; i < dt_loader_count_plugins(l); i++) {
        const dt_loaded_plugin *p = dt_loader_plugin_at(l, i);
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "name", p->desc.name);
        dt_json_str(&o, "version", p->desc.version);
        dt_json_str(&o, "path", p->path);
        dt_json_str(&o, "sha256", p->sha256);
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, ']');
    dt_json_obj(&o, "host");
    dt_json_str(&o, "name", host.nodename);
    dt_json_str(&o, "system", host.sysname);
    dt_json_str(&o, "release", host.release);
    dt_json_str(&o, "machine", host.machine);
    dt_json_end(&o, '}');
    dt_json_str(&o, "device", session->device.text);
    dt_json_str(&o, "cpu_isa", dt_cpu_isa());
    dt_json_i64(&o, "threads", session->threads);
    dt_json_i64(&o, "ranks", session->n_processes > 1 ? session->n_processes : session->ranks);
    dt_json_i64(&o, "seed", (int64_t)session->seed);
    dt_json_arr(&o, "argv");
    for (int i = 0; i < m->argc; i++) {
        dt_json_str(&o, NULL, m->argv[i]);
    }
    dt_json_end(&o, ']');
    dt_json_obj(&o, BEGINNING);
    if (m->phase != NULL) {
        dt_json_str(&o, "phase", m->phase);
    }
    if (m->init_from != NULL) {
        dt_json_str(&o, "init_from", m->init_from);
    }
    dt_json_end(&o, '}');
    dt_json_str(&o, "start", m->start);
    if (m->mark >= 0) {
        dt_json_i64(&o, DT_RUN_META_MARK, m->mark);
    }
    if (exit_code >= 0) {
        char now[32];
        dt_clock_utc(now, sizeof(now));
        dt_json_str(&o, "end", now);
        dt_json_i64(&o, "exit_code", exit_code);
    }
    dt_json_end(&o, '}');
    dt_str_add(out, "\n");
}

int64_t dt_run_meta_number(const char *folder, const char *key, int64_t missing)
{
    dt_str path = {0};
    dt_flat meta = {0};
    int64_t value = missing;
    dt_str_addf(&path, "%s/meta.json", folder);
    if (dt_str_status(&path) == DT_OK && dt_flat_read(dt_str_text(&path), &meta) == DT_OK) {
        value = (int64_t)dt_flat_number(&meta, key, (double)missing);
    } else {
        dt_error_clear();
    }
    dt_flat_fini(&meta);
    dt_str_fini(&path);
    return value;
}

/* The end is what meta.json closes with (dt_run_meta_text). */
static dt_status copy_without_end(const char *meta, dt_str *out)
{
    static const char begin[] = ",\"end\":\"";
    char *text = NULL;
    size_t bytes = 0;
    enum { MAX_BYTES = 1 << 20 };
    DT_TRY(dt_fs_read_all(meta, MAX_BYTES, &text, &bytes));
    char *end = NULL;
    for (char *p = strstr(text, begin); p != NULL; p = strstr(p + 1, begin)) {
        end = p;
    }
    if (end != NULL) {
        *end = '\0';
        dt_str_addf(out, "%s}\n", text);
    }
    dt_free(text);
    return dt_str_status(out);
}

dt_status dt_run_meta_clear_end(const char *run)
{
    dt_str path = {0}, text = {0};
    dt_str_addf(&path, "%s/meta.json", run);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = copy_without_end(dt_str_text(&path), &text);
    }
    if (st == DT_OK && text.bytes > 0) {
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

/* A text of meta.json; NULL when it is not there. */
static dt_status copy_text(const dt_flat *meta, const char *path, char **out_p)
{
    const dt_flat_item *item = dt_flat_find(meta, path);
    *out_p = item != NULL ? dt_strdup(item->text) : NULL;
    return item == NULL || *out_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
}

static dt_status copy_start_options(const dt_str *name, dt_flat *meta, char **phase_p, char **init_from_p)
{
    DT_TRY(dt_str_status(name));
    DT_TRY(dt_flat_read(dt_str_text(name), meta));
    DT_TRY(copy_text(meta, BEGINNING "/phase", phase_p));
    return copy_text(meta, BEGINNING "/init_from", init_from_p);
}

dt_status dt_run_meta_read_beginning(const char *path, char **phase_p, char **init_from_p)
{
    dt_str name = {0};
    dt_flat meta = {0};
    dt_str_addf(&name, "%s/meta.json", path);
    const dt_status st = copy_start_options(&name, &meta, phase_p, init_from_p);
    dt_flat_fini(&meta);
    dt_str_fini(&name);
    return st;
}
