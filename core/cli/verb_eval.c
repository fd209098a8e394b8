/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain eval`: evaluate a checkpoint on held-out data.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/log.h"
#include "base/print.h"
#include "run/evaluate.h"
#include "run/run.h"
#include "run/session.h"

#include <stdio.h>
#include <string.h>

static dt_status evaluate(const dt_args *a, dt_session *s)
{
    dt_eval e;
    dt_str text = {0};
    int64_t index = 0;
    DT_TRY(dt_eval_phase(s, a->checkpoint, &index));
    DT_TRY(dt_session_enter(s, index));
    dt_status st = dt_eval_run(s, index, a->checkpoint, 0, &e);
    if (st == DT_OK && a->checkpoint == NULL && e.stage->params.n > 0) {
        dt_log(DT_LOG_WARN, "no --checkpoint: these are the results of untrained weights");
    }
    if (st == DT_OK) {
        if (a->json) {
            dt_result_json(e.stage, &text);
            dt_str_add(&text, "\n");
        } else {
            dt_result_text(e.stage, &text);
        }
        st = dt_str_status(&text);
        dt_print_text(dt_str_text(&text));
    }
    dt_str_fini(&text);
    dt_eval_close(&e);
    return st;
}

dt_status dt_verb_eval(const dt_args *a)
{
    dt_session s;
    DT_TRY(dt_eval_open(a, &s));
    const dt_status st = evaluate(a, &s);
    dt_session_close(&s);
    return st;
}
