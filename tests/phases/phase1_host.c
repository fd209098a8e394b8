/* SPDX-License-Identifier: Apache-2.0 */
#include "phase1_host.h"

world *w;

static void append(char text[MOCK_TEXT], const char *fmt, ...) DT_PRINTF(2, 3);
static void append(char text[MOCK_TEXT], const char *fmt, ...)
{
    const size_t n = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, MOCK_TEXT - n, fmt, ap);
    va_end(ap);
}

/* ---- fake services ----------------------------------------------------------------------------------------------- */

static dt_status bind_model(const dt_host *h, const dt_model_request *want, dt_model **out)
{
    append(w->wants, "%s:", want->role);
    for (uint32_t i = 0; i < want->n_dims; i++) {
        append(w->wants, " %s=%lld", want->dims[i].name, (long long)want->dims[i].size);
    }
    for (uint32_t i = 0; i < want->n_offers; i++) {
        append(w->wants, " %s[%s]", want->offers[i].name, want->offers[i].dims);
    }
    for (uint32_t i = 0; i < want->n_needs; i++) {
        append(w->wants, " ->%s[%s]", want->needs[i].name, want->needs[i].dims);
    }
    append(w->wants, "\n");
    *out = &w->model[strcmp(want->role, "world") == 0];
    (*out)->role = want->role;
    return DT_OK;
}

static const dt_port *bind_model_output(const dt_model *m, const char *name)
{
    static const dt_port embedding = {"embedding", "N 64", DT_F32, 0}, probability = {"probability", "S 3", DT_F32, 0};
    static dt_port futures = {"futures", NULL, DT_F32, 0};
    static const dt_port temperature = {"temperature", "10", DT_F32, 0};
    if (strcmp(m->role, "world") == 0 && strcmp(name, "temperature") == 0) {
        return w->has_temperature ? &temperature : NULL;
    }
    static dt_port regions = {"regions", NULL, DT_F32, 0};
    if (strcmp(m->role, "world") == 0 && strcmp(name, "regions") == 0) {
        regions.dims = w->regions_dims;
        return regions.dims != NULL ? &regions : NULL;
    }
    if (strcmp(m->role, "world") == 0) {
        futures.dims = w->futures_dims;
        return !w->has_futures ? NULL : strcmp(name, "probability") == 0 ? &probability : &futures;
    }
    assert_string_equal(m->role, "perception");
    assert_string_equal(name, "embedding");
    return &embedding;
}

static int64_t bind_port_dim(const dt_port *p, uint32_t i)
{
    const char *at = p->dims;
    for (; i > 0; i--) {
        at = strchr(at, ' ') + 1;
    }
    return *at >= '0' && *at <= '9' ? strtoll(at, NULL, 10) : -1;
}

static dt_status bind_data(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out)
{
    *out = &w->data[0];
    for (uint32_t i = 0; i < n; i++) {
        append(w->overrides, "%s=%s ", overrides[i].key, overrides[i].value);
        if (strcmp(overrides[i].key, "split") == 0 && strcmp(overrides[i].value, "train") != 0) {
            *out = &w->data[1];
            (*out)->is_eval = true;
        }
    }
    return DT_OK;
}

static const dt_port *bind_data_field(const dt_data *d, const char *name)
{
    static const dt_port seq_row = {"seq_row", "2 S", DT_I32, 0}, target = {"target", "S 5 2", DT_F32, 0};
    if (w->missing != NULL && strcmp(name, w->missing) == 0) {
        return NULL;
    }
    if (strncmp(name, "lane", 4) == 0 || strncmp(name, "near_", 5) == 0 || strcmp(name, "path") == 0) {
        return NULL; /* without roads */
    }
    return strcmp(name, "seq_row") == 0 ? &seq_row : &target;
}

static uint64_t bind_data_count(const dt_data *d)
{
    return w->n_samples;
}

static dt_status train_create(const dt_host *h, const dt_train_desc *desc, dt_train **out)
{
    w->train.desc = *desc;
    assert_false(desc->data->is_eval);
    mock_graph_init(&w->graph, NULL);
    DT_TRY_H(desc->record(desc->user, &w->graph.graph));
    *out = &w->train;
    return DT_OK;
}

static void train_destroy(dt_train *t)
{
    t->desc.record = NULL;
}

static dt_status train_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_string_equal(name, "horizon_weight");
    assert_int_equal(n, F);
    memcpy(w->horizon, value, sizeof(w->horizon));
    return DT_OK;
}

static dt_status train_step(dt_train *t, dt_step_report *out)
{
    if (w->step_status < 0) {
        return w->step_status;
    }
    w->step++;
    out->step = w->step;
    out->steps = 100;
    out->epoch = w->step / 10;
    out->loss = 1.5;
    out->grad_norm = 0.25;
    out->learning_rate = 1e-3;
    out->samples = 64;
    out->epoch_end = w->epoch_end;
    return w->step == 100 ? DT_DONE : DT_OK;
}

static dt_status train_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    assert_true(d->is_eval);
    return each(user, &w->rows);
}

static const void *train_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    const struct {
        const char *name;
        const void *at;
    } all[] = {{"motion", w->motion},
               {"target", w->target},
               {"future", w->future},
               {"spread", w->spread},
               {"risk", w->risk},
               {"seq_row", w->seq_row},
               {"complete", w->complete},
               {"risk_state", w->risk_state},
               {"futures", w->has_futures ? w->futures : NULL},
               {"spreads", w->has_futures ? w->spreads : NULL},
               {"probability", w->has_futures ? w->probability : NULL},
               {"site", w->has_sites ? w->site : NULL},
               {"sample_of_seq", w->sample_of_seq}};
    *rank = 1;
    dim[0] = strcmp(name, "complete") == 0 ? r->S : 0;
    dim[1] = strcmp(name, "futures") == 0 ? K : 0;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(name, all[i].name) == 0 && (w->absent == NULL || strcmp(name, w->absent) != 0)) {
            return all[i].at;
        }
    }
    return NULL;
}

static dt_status train_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch)
{
    *step = w->step;
    *steps = 100;
    *steps_per_epoch = 10;
    return DT_OK;
}

static uint64_t train_vector_size(const dt_train *t)
{
    assert_string_equal(t->desc.manual_loss, "temperature");
    return F * 2 + (w->regions_dims != NULL ? 150 : 0);
}

static dt_status train_vector_get(dt_train *t, float *out)
{
    memcpy(out, w->temperature, sizeof(w->temperature));
    if (w->regions_dims != NULL) {
        memcpy(out + F * 2, w->regions, sizeof(w->regions));
    }
    return DT_OK;
}

static dt_status train_vector_set(dt_train *t, const float *in)
{
    memcpy(w->temperature, in, sizeof(w->temperature));
    if (w->regions_dims != NULL) {
        memcpy(w->regions, in + F * 2, sizeof(w->regions));
    }
    return DT_OK;
}

static const uint64_t *train_samples(const dt_rows *r, uint32_t *n)
{
    static const uint64_t sample[1] = {0};
    *n = 1;
    return sample;
}

static void metrics_scalar(const dt_host *h, const char *name, double value)
{
    append(w->reports, "%s=%g\n", name, value);
}

static void metrics_report(const dt_host *h, const char *key, const double *value, uint32_t n)
{
    append(w->reports, "%s ", key);
    assert_true(w->n_reports < 128 && n <= 16);
    memcpy(w->value[w->n_reports++], value, (n > 0 ? n : 1) * sizeof(*value));
}

static const dt_bind_api bind_api = {.struct_size = sizeof(dt_bind_api),
                                     .model = bind_model,
                                     .model_output = bind_model_output,
                                     .port_dim = bind_port_dim,
                                     .data = bind_data,
                                     .data_field = bind_data_field,
                                     .data_count = bind_data_count};
/* A model without parameters. */
static dt_status train_parameter(const dt_train *t, uint64_t i, dt_train_param *out)
{
    return DT_ENOTFOUND;
}

static const dt_train_api train_api = {.struct_size = sizeof(dt_train_api),
                                       .create = train_create,
                                       .destroy = train_destroy,
                                       .set = train_set,
                                       .step = train_step,
                                       .evaluate = train_evaluate,
                                       .rows = train_rows,
                                       .samples = train_samples,
                                       .vector_size = train_vector_size,
                                       .vector_get = train_vector_get,
                                       .vector_set = train_vector_set,
                                       .position = train_position,
                                       .parameter = train_parameter};
static const dt_metrics_api metrics_api = {
    .struct_size = sizeof(dt_metrics_api), .scalar = metrics_scalar, .report = metrics_report};

/* ---- a phase ----------------------------------------------------------------------------------------------------- */

void world_init(void)
{
    w = calloc(1, sizeof(*w));
    assert_non_null(w);
    mock_host_init(&w->host);
    mock_host_serve(&w->host, DT_SVC_BIND, &bind_api);
    mock_host_serve(&w->host, DT_SVC_TRAIN, &train_api);
    mock_host_serve(&w->host, DT_SVC_METRICS, &metrics_api);
    w->n_samples = 7;
    w->rows.S = S;
    w->futures_dims = "S 3 5 2";
    for (int64_t v = 0; v < S; v++) {
        w->motion[T - 1][v][4] = 2.0F; /* m/s: constant velocity says x = 2, 4, 6, 8, 10 */
        w->seq_row[T - 1][v] = (int32_t)(v + 1);
        w->seq_row[0][v] = -1;
        w->complete[v] = v < 2;
        w->risk_state[v + 1] = v == 3 ? 2 : v == 1;
        for (int64_t f = 0; f < F; f++) {
            w->target[v][f][0] = 2.0F * (float)(f + 1);
            w->target[v][f][1] = v == 0 ? 0.0F : 3.0F;                 /* constant velocity is 3 m off for vehicle 1 */
            w->future[v][f][0] = w->target[v][f][0] + 4.0F * (float)v; /* the model: exact for 0, 4 m off for 1 */
            w->future[v][f][1] = w->target[v][f][1];
        }
    }
    w->risk[1] = 0.1F; /* negative */
    w->risk[2] = 0.5F; /* positive */
    w->risk[3] = 0.5F; /* negative, a tie */
    w->risk[4] = 9.0F; /* positive already: left out */
}

dt_status phase_open(phase *p, const char *const *set)
{
    memset(p, 0, sizeof(*p));
    p->c = mock_load("phases", "phase1_world_model", "phase1_world_model");
    assert_non_null(p->c);
    p->ops = p->c->ops;
    p->config = mock_config(p->c, set);
    p->self = calloc(1, p->c->state_size);
    assert_true(p->config != NULL && p->self != NULL);
    DT_TRY_H(p->c->check(&w->host.host, p->config));
    return p->ops->create(p->self, &w->host.host, p->config);
}

void phase_close(phase *p)
{
    p->ops->destroy(p->self);
    assert_int_equal(w->host.n_live, 0);
    free(p->self);
    free(p->config);
    free(w);
    w = NULL;
}
