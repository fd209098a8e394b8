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
#include "host/handover.h"
#include "host/run.h"
#include "host/session.h"

#include <stdio.h>
#include <string.h>

/* Every role of the phase as its newest checkpoint has it, where what is named has one of this phase. */
static dt_status load_weights(dt_stage *stage, const char *path)
{
    dt_handover *from = NULL;
    dt_status st = dt_handover_open(path, stage->d.phase->desc.id, &from);
    if (st == DT_OK) {
        st = dt_handover_load(from, stage, NULL, DT_HANDOVER_WHOLE);
    }
    dt_handover_close(from);
    return st;
}

static dt_status evaluate(const dt_args *a, dt_session *s)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    dt_progress p;
    dt_str text = {0};
    DT_TRY(dt_comm_null(&comm));
    const dt_stage_desc d = {.config = s->config,
                             .loader = s->loader,
                             .comm = comm,
                             .phase = s->phase[s->first],
                             .demo_store = s->demo_store,
                             .index = s->first,
                             .seed = s->seed,
                             .threads = s->threads,
                             .device_ops = s->device_ops,
                             .device = s->device,
                             .config_lock = &lock};
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        st = dt_stage_start(stage);
    }
    if (st == DT_OK && a->checkpoint != NULL && stage->params.n > 0) {
        st = load_weights(stage, a->checkpoint);
    }
    if (st == DT_OK) {
        st = dt_stage_evaluate(stage, &p);
    }
    if (st == DT_OK) {
        if (a->json) {
            dt_report_json(stage, &text);
            dt_str_add(&text, "\n");
        } else {
            dt_report_text(stage, &text);
        }
        st = dt_str_status(&text);
        fputs(dt_str_text(&text), stdout);
    }
    dt_str_fini(&text);
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
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
