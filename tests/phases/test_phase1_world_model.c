/* SPDX-License-Identifier: Apache-2.0
 *
 * phase1_world_model in a fake host: what it binds and records, the progressive horizon, and the figures of an
 * evaluation against values computed by hand.
 */
#include "phase1_host.h"

static const char *const at_1_hz[] = {"rate_hz=1",         "history_s=2",      "horizon_s=5",
                                      "horizon_start_s=1", "horizon_epochs=4", NULL};

static void test_binds_by_role_and_size(void **test)
{
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_string_equal(w->overrides, "split=train history_s=2 horizon_s=5 rate_hz=1 "
                                      "split=eval history_s=2 horizon_s=5 rate_hz=1 ");
    assert_string_equal(
        w->wants, "perception: nodes[N 9] rowptr[N+1] col[E] edges[E 4] row_key[N] ->embedding[N H] ->risk[N]\n"
                  "world: H=64 T=2 F=5 dt_ms=1000 history[2 S 64] latest[S 64] motion[2 S 6] present[2 S] seq_key[S] "
                  "->future[S 5 2] ->spread[S 5 2]\n");
    phase_close(&p);
}

static void test_records_three_losses_and_three_outputs(void **test)
{
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_losses, 3);
    assert_string_equal(w->graph.loss[0].name, "nll");
    assert_string_equal(w->graph.loss[0].symbol, "S");
    assert_string_equal(w->graph.loss[2].name, "risk");
    assert_string_equal(w->graph.loss[2].symbol, "N");
    assert_int_equal(w->graph.loss[0].value->op, DT_OP_GAUSSIAN_NLL);
    assert_string_equal(w->graph.loss[0].value->in[2]->name, "target");
    assert_int_equal(w->graph.loss[2].value->op, DT_OP_BCE_LOGITS);
    assert_string_equal(w->graph.loss[1].name, "position");
    assert_int_equal(w->graph.loss[1].value->op, DT_OP_MSE);
    assert_int_equal(w->graph.n_outputs, 3);
    p.ops->stop(p.self);
    assert_null(w->train.desc.record);
    phase_close(&p);
}

/* The sum over vehicles of roots, each weighted; in place of the squares. */
static void test_distances_are_learnt_where_they_are_asked_for(void **test)
{
    static const char *const set[] = {"rate_hz=1",         "history_s=2",       "horizon_s=5",
                                      "position_weight=0", "distance_weight=3", NULL};
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_losses, 3);
    assert_string_equal(w->graph.loss[1].name, "distance");
    assert_string_equal(w->graph.loss[1].symbol, "S");
    assert_true(w->graph.loss[1].weight == 3);
    const dt_tensor *sum = w->graph.loss[1].value;
    assert_int_equal(sum->op, DT_OP_SUM);
    assert_int_equal(sum->in[0]->op, DT_OP_BINARY);
    assert_int_equal(sum->in[0]->in[0]->op, DT_OP_UNARY);
    p.ops->stop(p.self);
    phase_close(&p);
}

static void test_horizon_grows_and_weights_sum_to_one(void **test)
{
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_int_equal(out.step, 1);
    assert_int_equal(out.steps, 100);
    assert_int_equal(out.samples, 64);
    assert_true(out.loss == 1.5 && out.grad_norm == 0.25 && out.learning_rate == 1e-3);
    assert_string_equal(w->reports, "charts/horizon_s=1\n");
    w->reports[0] = '\0';
    assert_float_equal(w->horizon[0], 1.0, 1e-6); /* epoch 0: the first second alone */
    assert_float_equal(w->horizon[1], 0.0, 1e-6);
    assert_true(mock_names(w->host.log, "1 5 4"));
    w->host.log[0] = '\0';
    w->step = 15; /* epoch 1.5 of 4: 1 + 4 * 1.5 / 4 = 2.5 s */
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_float_equal(w->horizon[0], 0.4, 1e-6);
    assert_float_equal(w->horizon[1], 0.4, 1e-6);
    assert_float_equal(w->horizon[2], 0.2, 1e-6);
    assert_float_equal(w->horizon[3], 0.0, 1e-6);
    assert_string_equal(w->reports, "charts/horizon_s=2.5\n");
    w->reports[0] = '\0';
    w->step = 99;
    assert_int_equal(p.ops->iterate(p.self, &out), DT_DONE);
    assert_float_equal(w->horizon[4], 0.2, 1e-6);
    assert_string_equal(w->host.log, "");                    /* it is said once */
    assert_string_equal(w->reports, "charts/horizon_s=5\n"); /* of the last step too */
    w->reports[0] = '\0';
    w->step_status = DT_EDIVERGED;
    assert_int_equal(p.ops->iterate(p.self, &out), DT_EDIVERGED);
    assert_string_equal(w->reports, ""); /* of a step that failed nothing is */
    phase_close(&p);
}

static void test_horizon_that_stays_short_is_reported(void **test)
{
    static const char *const slow[] = {"history_s=2",       "horizon_s=5",       "rate_hz=1",
                                       "horizon_start_s=1", "horizon_epochs=20", NULL};
    for (int is_slow = 0; is_slow < 2; is_slow++) { /* 10 epochs are planned */
        world_init();
        phase p;
        assert_int_equal(phase_open(&p, is_slow ? slow : at_1_hz), DT_OK);
        assert_int_equal(p.ops->start(p.self), DT_OK);
        dt_progress out = {.struct_size = sizeof(out)};
        assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
        const char *warning = strstr(w->host.log, "phase1_world_model.horizon_epochs");
        assert_true((warning != NULL) == is_slow && (warning == NULL || mock_names(w->host.log, "10 3 5")));
        phase_close(&p);
    }
}

static void test_evaluation_figures(void **test)
{
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    for (int round = 0; round < 2; round++) { /* the second one starts from zero again */
        w->n_reports = 0;
        w->reports[0] = '\0';
        assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
        assert_int_equal(out.evaluated, 1);
        assert_string_equal(w->reports,
                            "horizon_s rmse_m displacement_m cv_rmse_m cv_displacement_m nll risk_auroc samples "
                            "rmse_over_cv risk_prevalence risk_samples coverage_50 coverage_80 coverage_95 "
                            "reliability/level reliability/share min_ade_1 min_fde_1 miss_rate_1 min_ade_6 min_fde_6 "
                            "miss_rate_6 cv_ade cv_miss_rate ");
        for (int i = 0; i < 5; i++) {
            assert_float_equal(w->value[0][i], i + 1, 1e-9);
            assert_float_equal(w->value[1][i], sqrt(16.0 / 2), 1e-6);
            assert_float_equal(w->value[2][i], 2.0, 1e-6);
            assert_float_equal(w->value[3][i], sqrt(9.0 / 2), 1e-6);
            assert_float_equal(w->value[4][i], 1.5, 1e-6);
            assert_float_equal(w->value[8][i], 4.0 / 3.0, 1e-6);
        }
        /* sigma 1: log(2 pi) per step, and 16/2 for vehicle 1 */
        assert_float_equal(w->value[5][0], log(2 * 3.14159265358979) + 4.0, 1e-6);
        /* scores: negative 0.1, positive 0.5, negative 0.5: one win, one tie */
        assert_float_equal(w->value[6][0], 0.75, 1e-9);
        assert_float_equal(w->value[7][0], 2, 1e-9);
        assert_float_equal(w->value[9][0], 1.0 / 3.0, 1e-9);
        assert_float_equal(w->value[10][0], 3, 1e-9);
        /* one future: in the middle of all ellipses, or 4 sigma off; half of the windows are missed */
        for (int i = 11; i < 14; i++) {
            assert_float_equal(w->value[i][0], 0.5, 1e-9);
            assert_float_equal(w->value[i][4], 0.5, 1e-9);
        }
        static const double rest[] = {2, 2, 0.5, 2, 2, 0.5, 1.5, 0.5};
        for (int i = 0; i < 8; i++) {
            assert_float_equal(w->value[16 + i][0], rest[i], 1e-6);
        }
    }
    phase_close(&p);
}

/* Value of a report by its key, in the order of reports. */
static double reported(const char *key, uint32_t at)
{
    char text[64];
    snprintf(text, sizeof(text), "%s ", key);
    uint32_t n = 0;
    for (const char *c = w->reports; *c != '\0'; c = strchr(c, ' ') + 1, n++) {
        if (strncmp(c, text, strlen(text)) == 0) {
            return w->value[n][at];
        }
    }
    fail_msg("nothing is reported as %s", key);
    return NAN;
}

/* Vehicle 0: 10, 0 and 1 m off across, by falling probability; vehicle 1: 3 m off at the end alone, then worse. */
static void set_futures(void)
{
    static const float off[2][K] = {{10, 0, 1}, {3, 7, 8}}, probability[2][K] = {{0.5F, 0.2F, 0.3F}, {0.6F, 0.4F, 0}};
    w->has_futures = true;
    for (int v = 0; v < 2; v++) {
        for (int k = 0; k < K; k++) {
            w->probability[v][k] = probability[v][k];
            for (int f = 0; f < F; f++) {
                w->futures[v][k][f][0] = w->target[v][f][0];
                w->futures[v][k][f][1] = w->target[v][f][1] + (v == 0 || f == F - 1 ? off[v][k] : 0);
            }
        }
    }
}

static void test_figures_of_several_futures(void **test)
{
    world_init();
    set_futures();
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_outputs, 6);
    assert_string_equal(w->graph.loss[0].name, "nll");
    assert_int_equal(w->graph.loss[0].value->op, DT_OP_SUM); /* of the mixture */
    assert_int_equal(w->graph.loss[1].value->op, DT_OP_MSE);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("min_ade_1", 0), (10 + 0.6) / 2, 1e-6);
    assert_float_equal(reported("min_fde_1", 0), (10 + 3) / 2.0, 1e-6);
    assert_float_equal(reported("miss_rate_1", 0), 1, 1e-9);
    assert_float_equal(reported("min_ade_6", 0), (0 + 0.6) / 2, 1e-6);
    assert_float_equal(reported("min_fde_6", 0), (0 + 3) / 2.0, 1e-6);
    assert_float_equal(reported("miss_rate_6", 0), 0.5, 1e-9);
    phase_close(&p);

    world_init();
    set_futures();
    w->futures_dims = "S 3 4 2";
    assert_int_equal(phase_open(&p, at_1_hz), DT_ESHAPE);
    assert_true(mock_names(w->host.message, "futures 3 phase1_world_model 8"));
    phase_close(&p);

    world_init();
    set_futures();
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    w->has_futures = false; /* the graph has them, the rows do not */
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EPLUGIN);
    assert_true(mock_names(w->host.message, "futures"));
    phase_close(&p);
}

/* Shares of windows in ellipses: sqrt(-2 log(1 - level)) sigma far, and by site. */
static void test_coverage_and_sites(void **test)
{
    world_init();
    for (int f = 0; f < F; f++) {
        w->future[0][f][0] = w->target[0][f][0] + 1.17F; /* 50 %: 1.1774 */
        w->future[1][f][0] = w->target[1][f][0] + 1.80F; /* 80 %: 1.7941, 95 %: 2.4477 */
    }
    w->has_sites = true;
    w->site[1] = 3;
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("coverage_50", 2), 0.5, 1e-9);
    assert_float_equal(reported("coverage_80", 2), 0.5, 1e-9);
    assert_float_equal(reported("coverage_95", 2), 1, 1e-9);
    assert_float_equal(reported("reliability/level", 4), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 3), 0, 1e-9);
    assert_float_equal(reported("reliability/share", 4), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 8), 1, 1e-9);
    assert_float_equal(reported("sites/0/samples", 0), 1, 1e-9);
    assert_float_equal(reported("sites/0/rmse_m", 0), 1.17, 1e-5);
    assert_float_equal(reported("sites/3/rmse_m", 4), 1.80, 1e-5);
    assert_float_equal(reported("sites/3/coverage_80", 4), 0, 1e-9);
    phase_close(&p);

    world_init();
    w->has_sites = true;
    w->site[0] = w->site[1] = 3; /* of one site alone the figures are those of all */
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_null(strstr(w->reports, "sites/"));
    phase_close(&p);
}

static void test_evaluation_without_windows_says_so(void **test)
{
    world_init();
    memset(w->complete, 0, sizeof(w->complete));
    memset(w->risk_state, 3, sizeof(w->risk_state));
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_true(isnan(w->value[1][0]) && isnan(w->value[6][0]));
    assert_true(mock_names(w->host.log, "2 5"));
    phase_close(&p);
}

static void test_evaluation_refuses_what_is_not_finite(void **test)
{
    dt_progress out = {.struct_size = sizeof(out)};
    phase p;
    world_init();
    w->future[0][4][1] = NAN;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EDIVERGED);
    assert_true(mock_names(w->host.message, "5 finite"));
    phase_close(&p);

    world_init();
    w->risk[1] = INFINITY;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EDIVERGED);
    assert_true(mock_names(w->host.message, "risk inf"));
    phase_close(&p);

    world_init();
    w->absent = "spread";
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EPLUGIN);
    assert_true(mock_names(w->host.message, "spread"));
    phase_close(&p);
}

static void test_refusals_before_training(void **test)
{
    const struct {
        const char *set[6];
        const char *missing, *text;
        uint64_t n_samples;
        dt_status st;
    } bad[] = {
        {{"rate_hz=3", NULL}, NULL, "rate_hz 3 333.333", 7, DT_ECONFIG},
        {{"rate_hz=1", "history_s=0.1", NULL}, NULL, "history_s 0.1 horizon_s 5", 7, DT_ECONFIG},
        {{"nll_weight=0", "position_weight=0", "risk_weight=0", NULL},
         NULL,
         "nll_weight position_weight distance_weight risk_weight",
         7,
         DT_ECONFIG},
        {{"rate_hz=1", "history_s=3", NULL}, NULL, "2 3 5 phase1_world_model", 7, DT_ESHAPE},
        {{"rate_hz=1", "history_s=2", NULL}, "target_weight", "target_weight", 7, DT_ESHAPE},
        {{"rate_hz=1", "history_s=2", NULL}, NULL, "train", 0, DT_EDATA},
    };
    for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        phase p;
        world_init();
        w->missing = bad[i].missing;
        w->n_samples = bad[i].n_samples;
        assert_int_equal(phase_open(&p, bad[i].set), bad[i].st);
        assert_true(mock_names(w->host.message, bad[i].text));
        phase_close(&p);
    }
}

static dt_status open_and_evaluate(phase *p)
{
    dt_progress out = {.struct_size = sizeof(out)};
    DT_TRY_H(phase_open(p, at_1_hz));
    DT_TRY_H(p->ops->start(p->self));
    return p->ops->evaluate(p->self, &out);
}

static void test_every_failed_allocation_leaves_nothing_behind(void **test)
{
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        phase p;
        world_init();
        w->host.fail_alloc = n;
        const dt_status st = open_and_evaluate(&p);
        failed = w->host.fail_alloc == 0;
        assert_int_equal(st, failed ? DT_ENOMEM : DT_OK);
        assert_true(!failed || strstr(w->host.message, "memory") != NULL);
        phase_close(&p);
    }
}

static void test_defaults_of_host_sections(void **test)
{
    const dt_component *c = mock_load("phases", "phase1_world_model", "phase1_world_model");
    assert_non_null(c);
    const char *const *d = c->extension(DT_EXT_DEFAULTS);
    static const char *const want[] = {"data.batch=64",
                                       "training.epochs=50",
                                       "training.learning_rate=1e-3",
                                       "training.warmup_epochs=5",
                                       "training.weight_decay=1e-4",
                                       "training.gradient_clip=1.0",
                                       "training.eta_min=1e-6",
                                       "training.eval_interval=10",
                                       "training.save_interval=5"};
    for (uint32_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint32_t k = 0;
        while (d[k] != NULL && strcmp(d[k], want[i]) != 0) {
            k++;
        }
        if (d[k] == NULL) {
            fail_msg("no default %s", want[i]);
        }
    }
    assert_null(c->extension("dtrain.defaults/2"));
}

/* The temperature is that of deviations which make what was recorded most likely: at the end of an epoch alone. */
static void test_temperature_is_fitted(void **test)
{
    static const char *const set[] = {"rate_hz=1", "history_s=2", "horizon_s=5", "calibration_folds=4", NULL};
    world_init();
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, set), DT_ECONFIG);
    assert_true(mock_names(w->host.message, "temperature calibration_folds 4"));
    phase_close(&p);

    world_init();
    w->has_temperature = true;
    for (int v = 0; v < 2; v++) {
        for (int f = 0; f < F; f++) { /* sigma is 1; sqrt(2) of the best one along x, 0 along y */
            w->future[v][f][0] = w->target[v][f][0] + (float)(sqrt(2) * exp(0.4));
            w->temperature[f][1] = 0.1F * (float)f;
        }
    }
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_non_null(strstr(w->overrides, "split=train history_s=2 horizon_s=5 rate_hz=1 calibration_folds=4 "));
    assert_non_null(strstr(w->overrides, "split=eval history_s=2 horizon_s=5 rate_hz=1 split=calibration"));
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_true(w->temperature[0][0] == 0);
    w->epoch_end = true;
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    for (int f = 0; f < F; f++) {
        assert_float_equal(w->temperature[f][0], 0.4, 1e-6);
        assert_float_equal(w->temperature[f][1], 0.4 + 0.1 * f, 1e-6);
    }
    /* the mean of 0.4 and 0.4 .. 0.8 */
    assert_non_null(strstr(w->reports, "calibration/temperature=0.5\n"));
    memset(w->complete, 0, sizeof(w->complete)); /* nothing to fit it to: it stays */
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_float_equal(w->temperature[0][0], 0.4, 1e-6);
    phase_close(&p);
}

/* Radii of one class: of two vehicles, one 3 deviations off and one 7. Regions of 60 % and less hold one of two, which
 * no factor does; evaluation is by them, and reports them. */
static void test_radii_are_fitted(void **test)
{
    static const char *const set[] = {"rate_hz=1", "history_s=2", "horizon_s=5", "calibration_folds=4", NULL};
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    world_init();
    w->has_temperature = true;
    w->regions_dims = "149";
    assert_int_equal(phase_open(&p, set), DT_ESHAPE);
    assert_true(mock_names(w->host.message, "regions [149] [150]"));
    phase_close(&p);

    world_init();
    w->has_temperature = true;
    w->regions_dims = "150";
    for (int f = 0; f < F; f++) {
        w->future[0][f][0] = w->target[0][f][0] + 3;
        w->future[1][f][0] = w->target[1][f][0] + 7;
    }
    w->epoch_end = true;
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_non_null(strstr(w->reports, "calibration/windows=2\n"));
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("coverage_50", 0), 1, 1e-9); /* rank 2 of 2 */
    assert_float_equal(reported("reliability/share", 2), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 9), 1, 1e-9);
    assert_true(reported("regions/steady", 0) >= 3 && reported("regions/steady", 0) < 3 * 1.014);
    assert_true(reported("regions/steady", 9) >= 7 && reported("regions/steady", 9) < 7 * 1.014);
    for (int i = 0; i < 150; i++) { /* the same in every class: the others have none of their own */
        assert_float_equal(w->regions[i], w->regions[i % 50], 1e-5);
    }
    phase_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binds_by_role_and_size),
        cmocka_unit_test(test_records_three_losses_and_three_outputs),
        cmocka_unit_test(test_distances_are_learnt_where_they_are_asked_for),
        cmocka_unit_test(test_horizon_grows_and_weights_sum_to_one),
        cmocka_unit_test(test_horizon_that_stays_short_is_reported),
        cmocka_unit_test(test_evaluation_figures),
        cmocka_unit_test(test_figures_of_several_futures),
        cmocka_unit_test(test_coverage_and_sites),
        cmocka_unit_test(test_evaluation_without_windows_says_so),
        cmocka_unit_test(test_evaluation_refuses_what_is_not_finite),
        cmocka_unit_test(test_temperature_is_fitted),
        cmocka_unit_test(test_radii_are_fitted),
        cmocka_unit_test(test_refusals_before_training),
        cmocka_unit_test(test_every_failed_allocation_leaves_nothing_behind),
        cmocka_unit_test(test_defaults_of_host_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
