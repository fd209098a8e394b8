/* SPDX-License-Identifier: Apache-2.0
 *
 * What a replay refuses (svc/replay.h): descriptions and calls that cannot be, and every damage of a saved one.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/log.h"
#include "rl/replay/replay.h"
#include "state/snapshot/snapshot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAW = 36 };

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void refused(const char *more, const char *again, dt_status code, const char *text)
{
    const char *const settings[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100", more, again, NULL};
    world w;
    world_open(&w, settings, NULL);
    const dt_status st = world_create(&w);
    if (st != code || strstr(dt_error_text(), text) == NULL) {
        print_error("%d: %s\n", (int)st, dt_error_text());
    }
    assert_int_equal(st, code);
    assert_non_null(strstr(dt_error_text(), text));
    world_close(&w);
}

static void says(dt_status st, dt_status code, const char *text)
{
    if (st != code || strstr(dt_error_text(), text) == NULL) {
        print_error("%d: %s\n", (int)st, dt_error_text());
    }
    assert_int_equal(st, code);
    assert_non_null(strstr(dt_error_text(), text));
}

static void test_refused(void **state)
{
    refused("tiny.transitions=1", NULL, DT_EPLUGIN, "a rollout whose transitions are 1; set them to 2");
    refused("tiny.draw=35", NULL, DT_ECONFIG, "draws 35 samples, which is not a multiple of the samples of a step: 12");
    refused("tiny.draw=36", "training.accumulation=2", DT_ECONFIG, "not a multiple of the samples of a step: 24");
    refused("tiny.batch=24", NULL, DT_ECONFIG, "not a multiple of the samples of a step: 24 (the batch of the trainer");
    refused("tiny.batch=24", "tiny.draw=24", DT_OK, "");
    refused("tiny.batch=18", "tiny.draw=24", DT_ECONFIG, "not a multiple of the samples of a step: 18");
    refused("tiny.batch=9", "tiny.draw=27", DT_OK, "");
    refused("tiny.keep=Big H", NULL, DT_EPLUGIN, "field 0 that a replay keeps: its name \"Big H\"");
    refused("tiny.annotation=A 1", "tiny.note=Big H", DT_EPLUGIN, "tiny: annotation 0: its name \"Big H\"");
    refused("tiny.annotation=A 1", "tiny.note=", DT_EPLUGIN, "tiny: annotation 0: its name is empty");
    refused("tiny.annotation=A 1", "tiny.note=-", DT_EPLUGIN, "tiny: annotation 0: its name is NULL");
    refused("tiny.annotation=A  1", NULL, DT_EPLUGIN, "dims of annotation note are \"A  1\"");
    refused("tiny.annotation=A 1", "tiny.note=reward", DT_EPLUGIN, "two fields of the name reward; rename");
    refused("tiny.kept=2", NULL, DT_EPLUGIN, "twice [2] is not one");
    refused("tiny.replay=1000000000000000", NULL, DT_ECONFIG, "at most 70.4 TB are possible: lower its capacity to");
    refused("tiny.n_step=9", NULL, DT_ECONFIG, "adds up n_step = 9 steps and its rollout has 8 in a round");
    refused("tiny.alpha=-1", NULL, DT_ECONFIG, "a replay's alpha is -1; expected 0 to 16");
    refused("tiny.alpha=17", NULL, DT_ECONFIG, "a replay's alpha is 17; expected 0 to 16");
    refused("tiny.keep=nothing", NULL, DT_EPLUGIN, "the field nothing, which its rollout does not have");
    refused("tiny.keep=reward", NULL, DT_EPLUGIN, "the data has no field \"state\"");
    const char *const settings[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100", "tiny.alpha=0.5", NULL};
    float error[DRAW] = {0};
    world w;
    world_begin(&w, settings);
    const tiny *s = w.phase;
    dt_step_report r = {.struct_size = sizeof(r)};
    dt_replay *second = NULL;
    const dt_replay_desc d = {.struct_size = sizeof(d), .capacity = 10, .draw = 12};
    says(s->replay->create(s->h, s->r, &d, &second), DT_EPLUGIN, "tiny creates a second replay; one per phase");
    says(s->replay->add(s->p), DT_EPLUGIN, "before one was collected");
    says(s->replay->draw(s->p), DT_EPLUGIN, "cannot draw before anything was added");
    world_collect(&w);
    says(s->train->step(s->t, &r), DT_EPLUGIN, "read before anything was drawn");
    assert_done(s->replay->add(s->p));
    says(s->replay->add(s->p), DT_EPLUGIN, "that it has; collect the next one first");
    says(s->replay->priority(s->p, error, DRAW), DT_EPLUGIN, "that it has not drawn; draw first");
    assert_done(s->replay->draw(s->p));
    says(s->replay->priority(s->p, error, DRAW - 1), DT_EINVAL, "got 35 priorities, but 36 rows were drawn");
    error[4] = NAN;
    says(s->replay->priority(s->p, error, DRAW), DT_EDIVERGED, "the error for the priority of row 4 is nan");
    assert_done(s->train->step(s->t, &r));
    world_collect(&w);
    assert_done(s->replay->add(s->p));
    says(s->train->step(s->t, &r), DT_EPLUGIN, "or after something was added");
    world_close(&w);
    const char *const uniform[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100", NULL};
    world_begin(&w, uniform);
    world_collect(&w);
    assert_done(w.phase->replay->add(w.phase->p));
    assert_done(w.phase->replay->draw(w.phase->p));
    error[4] = 0;
    says(w.phase->replay->priority(w.phase->p, error, DRAW), DT_EPLUGIN, "draws uniformly (alpha = 0)");
    world_close(&w);
}

/* An output of state that no step gets is a mistake in a name. */
static void test_undeclared_state(void **state)
{
    static const char *const settings[] = {"env.id=relay", "tiny.carried=true", "tiny.also=carry/hh", NULL};
    static const char *const other[] = {"env.id=relay", "tiny.carried=true", "tiny.also=hh", NULL};
    world w;
    world_begin(&w, settings);
    dt_rollout_report r = {.struct_size = sizeof(r)};
    says(w.phase->rollout->collect(w.phase->r, w.phase->t, &r), DT_EPLUGIN,
         "records output \"carry/hh\", but carries no value \"hh\"; declare it");
    world_close(&w);
    world_begin(&w, other);
    world_collect(&w);
    world_close(&w);
}

/* ---- damaged checkpoints ----------------------------------------------------------------------------------------- */

typedef struct blobs {
    dt_str state;
    char *records;
    size_t n_records;
} blobs;

static const char *const foreign[] = {"env.id=crowd",   "tiny.transitions=2",      "tiny.replay=40",
                                      "tiny.alpha=0.5", "tiny.normalise_obs=true", NULL};

static dt_status put_bytes(void *to, const void *p, size_t bytes)
{
    blobs *b = to;
    memcpy(b->records + b->n_records, p, bytes);
    b->n_records += bytes;
    return DT_OK;
}

static void take_blobs(blobs *b)
{
    world w;
    memset(b, 0, sizeof(*b));
    world_begin(&w, foreign);
    world_collect(&w);
    assert_done(w.phase->replay->add(w.phase->p));
    assert_done(w.phase->replay->draw(w.phase->p));
    assert_done(dt_rollout_prepare_replay(w.stage->rollout));
    assert_done(dt_rollout_save_replay(w.stage->rollout, &b->state));
    b->records = malloc(dt_rollout_replay_bytes(w.stage->rollout) + 64);
    assert_done(dt_rollout_write_replay(w.stage->rollout, put_bytes, b));
    assert_int_equal(b->n_records, dt_rollout_replay_bytes(w.stage->rollout));
    world_close(&w);
}

static dt_status load_as(uint32_t version, const char *state, size_t bytes, const char *records, size_t n)
{
    const dt_rollout_bytes head = {state, bytes}, part = {records, n};
    world w;
    world_begin(&w, foreign);
    const dt_status st = dt_rollout_load_replay(w.stage->rollout, version, &head, &part, 1);
    world_close(&w);
    return st;
}

enum { DIGEST = 80 }; /* where it lies in the state */

static dt_status load_blobs(const char *state, size_t bytes, const char *records, size_t n)
{
    return load_as(2, state, bytes, records, n);
}

/* "None" is an index like others, but not for an edge. */
static void lead_an_edge_nowhere(const char *state, size_t bytes, const blobs *b)
{
    bool is_refused = false;
    for (size_t i = 0; i + sizeof(int32_t) <= b->n_records && !is_refused; i += sizeof(int32_t)) {
        int32_t was;
        const int32_t none = -1;
        memcpy(&was, b->records + i, sizeof(was));
        memcpy(b->records + i, &none, sizeof(none));
        is_refused = load_blobs(state, bytes, b->records, b->n_records) == DT_EDATA &&
                     strstr(dt_error_text(), "col points to a missing row") != NULL;
        memcpy(b->records + i, &was, sizeof(was));
    }
    assert_true(is_refused);
}

/* Every byte of what is saved, turned over: it is refused, or what is read of it is numbers within their bounds; and
 * nothing is read behind its end. */
static void test_foreign(void **state)
{
    blobs b;
    take_blobs(&b);
    const size_t n = b.state.bytes;
    char *text = malloc(n + 1);
    memcpy(text, dt_str_text(&b.state), n);
    assert_int_equal(load_blobs(text, n, b.records, b.n_records), DT_OK);
    for (size_t cut = 0; cut < n; cut += cut < 200 ? 1 : 97) {
        assert_int_equal(load_blobs(text, cut, b.records, b.n_records), DT_EDATA);
    }
    for (size_t cut = 0; cut < b.n_records; cut += 211) {
        assert_int_equal(load_blobs(text, n, b.records, cut), DT_EDATA);
    }
    says(load_blobs(text, n, b.records, b.n_records + 8), DT_EDATA, "has 8 bytes after its last record");
    dt_log_level_set(DT_LOG_ERROR); /* of another capacity or layout: it says so, and begins empty */
    for (size_t i = 0; i < n; i += i < 120 ? 1 : 61) {
        text[i] = (char)(text[i] ^ 0x80);
        const dt_status st = load_blobs(text, n, b.records, b.n_records);
        assert_true(st == DT_OK || st == DT_EDATA);
        text[i] = (char)(text[i] ^ 0x80);
    }
    dt_log_level_set(DT_LOG_INFO);
    uint64_t refused_ones = 0;
    for (size_t i = 0; i < b.n_records; i += 13) {
        b.records[i] = (char)(b.records[i] ^ 0xff);
        const dt_status st = load_blobs(text, n, b.records, b.n_records);
        assert_true(st == DT_OK || st == DT_EDATA);
        refused_ones += st != DT_OK;
        b.records[i] = (char)(b.records[i] ^ 0xff);
    }
    assert_int_equal(refused_ones, (b.n_records + 12) / 13); /* by the digest, where by nothing else */
    says(load_as(3, text, n, b.records, b.n_records), DT_EDATA,
         "has version 3 and 1 parts, this dtrain reads version 2");
    says(load_as(1, text, n, b.records, b.n_records), DT_EDATA,
         "has version 1 and 1 parts, this dtrain reads version 2");
    text[DIGEST] ^= 1;
    says(load_blobs(text, n, b.records, b.n_records), DT_EDATA, "other records than its state was saved with");
    text[DIGEST] ^= 1;
    lead_an_edge_nowhere(text, n, &b);
    free(text);
    free(b.records);
    dt_str_fini(&b.state);
}

/* What was drawn of no sample, as of a run that draws another number, which reads nothing of it. */
static void test_drawn_of_nothing(void **state)
{
    enum { DRAW_AT = 40, IS_DRAWN_AT = 48, HEAD = 88 }; /* where they lie in the state */
    static const uint64_t one = 1;
    static const char drawn[sizeof(uint64_t) + sizeof(float)]; /* a slot and its weight */
    dt_str saved = {0}, text = {0};
    world w;
    world_begin(&w, foreign);
    assert_done(dt_rollout_prepare_replay(w.stage->rollout));
    assert_done(dt_rollout_save_replay(w.stage->rollout, &saved));
    assert_int_equal(dt_rollout_replay_bytes(w.stage->rollout), 0);
    world_close(&w);
    assert_int_equal(load_blobs(saved.text, saved.bytes, NULL, 0), DT_OK);
    dt_str_add_n(&text, saved.text, HEAD);
    memcpy(text.text + DRAW_AT, &one, sizeof(one));
    memcpy(text.text + IS_DRAWN_AT, &one, sizeof(one));
    dt_str_add_n(&text, drawn, sizeof(drawn));
    dt_str_add_n(&text, saved.text + HEAD, saved.bytes - HEAD);
    says(load_blobs(text.text, text.bytes, NULL, 0), DT_EDATA, "contradicts itself");
    dt_str_fini(&text);
    dt_str_fini(&saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_undeclared_state),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_drawn_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
