/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of a plugin (dtrain/ext/ops.h) on trial: registered, then each in a process of its own. See checker.h.
 */
#include <config.h>

#include "plugin/trial/checker.h"

#include "base/err.h"
#include "engine/graph/op_user.h"
#include "plugin/service/user_ops.h"

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

void dt_check_ops(dt_checker *k, const dt_loaded_plugin *p)
{
    const dt_user_op *const *ops = p->desc.extension != NULL ? p->desc.extension(DT_EXT_OPS) : NULL;
    if (ops == NULL) {
        return;
    }
    if (dt_user_ops_register(p) < 0) {
        dt_str_addf(&k->out, "FAIL %s\n", dt_error_text());
        dt_check_print_complete_lines(k);
        return;
    }
    for (; *ops != NULL; ops++) {
        ops_trial o = {.k = k, .plugin = p->desc.name, .op = *ops};
        dt_trial_result r;
        if (dt_trial_execute(try_op, append_output, &o, k->desc->timeout_s > 0 ? k->desc->timeout_s : INFINITY, &r) <
            0) {
            dt_str_addf(&k->out, "FAIL %s: op %s: %s\n", p->desc.name, (*ops)->name, dt_error_text());
            dt_check_print_complete_lines(k);
        }
    }
}
