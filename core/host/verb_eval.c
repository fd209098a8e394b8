/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain eval`: evaluate a checkpoint on held-out data.
 */
#include <config.h>

#include "host/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/eval.h"
#include "host/run.h"
#include "host/session.h"

#include <stdio.h>
#include <string.h>

static dt_status evaluate(const dt_args *a, const dt_session *s)
{
    dt_eval e;
    dt_str text = {0};
    dt_status st = dt_eval_run(s, s->first, a->checkpoint, 0, &e);
    if (st == DT_OK) {
        if (a->json) {
            dt_report_json(e.stage, &text);
            dt_str_add(&text, "\n");
        } else {
            dt_report_text(e.stage, &text);
        }
        st = dt_str_status(&text);
        fputs(dt_str_text(&text), stdout);
    }
    dt_str_fini(&text);
    dt_eval_close(&e);
    return st;
}

dt_status dt_verb_eval(const dt_args *a)
{
    dt_session s;
    dt_str config = {0};
    dt_session_config_beside(a->checkpoint, &config);
    dt_status st = dt_session_open(a, config.bytes > 0 ? dt_str_text(&config) : NULL, &s);
    dt_str_fini(&config);
    DT_TRY(st);
    if (s.last - s.first > 1) {
        st =
            DT_FAIL(DT_ECONFIG, "the configuration has %lld phases; say which one to evaluate with --phase or --plugin",
                    (long long)s.n_phases);
    } else if (a->checkpoint == NULL) {
        dt_log(DT_LOG_WARN, "no --checkpoint: evaluating untrained weights");
    }
    if (st == DT_OK) {
        st = evaluate(a, &s);
    }
    dt_session_close(&s);
    return st;
}
