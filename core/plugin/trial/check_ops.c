/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of a plugin (dtrain/ext/ops.h) on trial: registered, then each in a process of its own. See checker.h.
 */
#include <config.h>

#include "plugin/trial/checker.h"

#include "base/err.h"
#include "dtrain/ext/dataset.h"
#include "dtrain/ext/ops.h"
#include "dtrain/ext/scene.h"
#include "engine/graph/op_user.h"

#include <math.h>

typedef struct ops_trial {
    dt_checker *k;
    const char *plugin;
    const dt_user_op *op;
} ops_trial;

static void try_op(void *user, dt_trial *t)
{
    const ops_trial *o = user;
    dt_str line = {0};
    (void)dt_trial_begin_step(t, o->op->name);
    const dt_status st = dt_user_op_verify(dt_user_op_find(o->op->name));
    const char *what = o->op->backward != NULL ? "writes its outputs, its derivative is that of central differences"
                                               : "writes its outputs; it has no derivative";
    dt_str_addf(&line, "%s %s: op %s: %s\n", st == DT_OK ? "PASS" : "FAIL", o->plugin, o->op->name,
                st == DT_OK ? what : dt_error_text());
    dt_trial_report(t, dt_str_text(&line), line.bytes);
    dt_str_fini(&line);
}

static void append_output(void *user, const char *text, size_t bytes)
{
    const ops_trial *o = user;
    dt_str_add_n(&o->k->out, text, bytes);
    dt_check_print_complete_lines(o->k);
}

typedef struct ops_check {
    dt_checker *k;
    const dt_loaded_plugin *plugin;
} ops_check;

static void check_list(void *user, const void *table, const dt_loaded_plugin *p, const dt_loaded *component)
{
    const ops_check *x = user;
    dt_checker *k = x->k;
    for (const dt_user_op *const *op = table; p == x->plugin && *op != NULL; op++) {
        ops_trial o = {.k = k, .plugin = p->desc.name, .op = *op};
        dt_trial_result r;
        if (dt_user_op_register(*op, p->desc.name) < 0) {
            dt_str_addf(&k->out, "FAIL %s\n", dt_error_text());
            dt_check_print_complete_lines(k);
        } else if (dt_trial_execute(try_op, append_output, &o, k->desc->timeout_s > 0 ? k->desc->timeout_s : INFINITY,
                                    &r) < 0) {
            dt_str_addf(&k->out, "FAIL %s: op %s: %s\n", p->desc.name, (*op)->name, dt_error_text());
            dt_check_print_complete_lines(k);
        }
    }
}

void dt_check_ops(dt_checker *k, const dt_loaded_plugin *p)
{
    dt_loader_visit_extensions(k->desc->loader, DT_EXT_OPS, check_list, &(ops_check){k, p});
}

/* ---- extensions where the host does not look for them ------------------------------------------------------------ */

typedef struct misplaced {
    dt_checker *k;
    const dt_loaded_plugin *plugin;
    const char *id, *expected;
    uint32_t places;
} misplaced;

enum { OF_PLUGIN = 1u, OF_PHASE = 2u, OF_MODEL = 4u, OF_ENV = 8u, OF_DATA = 16u };

static void report_misplaced(void *user, const void *table, const dt_loaded_plugin *p, const dt_loaded *component)
{
    const misplaced *m = user;
    static const uint32_t bits[] = {
        [DT_KIND_PHASE] = OF_PHASE, [DT_KIND_MODEL] = OF_MODEL, [DT_KIND_ENV] = OF_ENV, [DT_KIND_DATA] = OF_DATA};
    const uint32_t place = component != NULL ? bits[component->desc.kind] : OF_PLUGIN;
    if (p == m->plugin && (place & m->places) == 0) {
        dt_str_addf(&m->k->out,
                    "FAIL %s: extension %s is returned by the %s %s, where it has no effect; return it from %s\n",
                    p->desc.name, m->id, component != NULL ? dt_kind_name(component->desc.kind) : "plugin",
                    component != NULL ? component->desc.id : p->desc.name, m->expected);
        dt_check_print_complete_lines(m->k);
    }
}

void dt_check_extensions(dt_checker *k, const dt_loaded_plugin *p)
{
    static const struct {
        const char *id, *expected;
        uint32_t places;
    } known[] = {{DT_EXT_DEFAULTS, "a phase", OF_PHASE},
                 {DT_EXT_BASELINES, "an environment", OF_ENV},
                 {DT_EXT_PROGRAM, "an environment or a controller", OF_ENV | OF_MODEL},
                 {DT_EXT_RESULTS, "a phase or an environment", OF_PHASE | OF_ENV},
                 {DT_EXT_COLUMNS, "an environment", OF_ENV},
                 {DT_EXT_SCENE, "an environment", OF_ENV},
                 {DT_EXT_DATASET, "a data source", OF_DATA}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        misplaced m = {
            .k = k, .plugin = p, .id = known[i].id, .expected = known[i].expected, .places = known[i].places};
        dt_loader_visit_extensions(k->desc->loader, known[i].id, report_misplaced, &m);
    }
}
