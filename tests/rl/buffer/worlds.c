/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "worlds.h"

#include "rl/experience/service.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const dt_component *const components[] = {&counter_env,     &liar_env,  &steady_env, &torque_env,
                                                 &torque_open_env, &crowd_env, &relay_env,  &herd_env,
                                                 &herd_model,      &tiny_net,  &tiny_phase};
const dt_plugin worlds_plugin = {DT_PLUGIN_PREFIX,        .name = "worlds",
                                 .version = "1",          .vendor = "dtrain",
                                 .license = "Apache-2.0", .n_components = sizeof(components) / sizeof(components[0]),
                                 .components = components};

/* ---- a stage around it ------------------------------------------------------------------------------------------- */

static dt_status declare(void *user, dt_config *c, const char *id, const char **role_p)
{
    const dt_loaded *l = NULL;
    if (dt_loader_find(user, 0, id, &l) != DT_OK) {
        return DT_ENOTFOUND;
    }
    *role_p = l->desc.role;
    return l->desc.options != NULL ? dt_config_declare(c, id, l->desc.options, "worlds") : DT_OK;
}

#define assert_ok(expr)                                                                                                \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ != DT_OK) {                                                                                            \
            print_error("%s\n", dt_error_text());                                                                      \
        }                                                                                                              \
        assert_int_equal(st_, DT_OK);                                                                                  \
    } while (0)

void world_open(world *w, const char *const *settings, dt_comm *comm)
{
    static const char *const defaults[] = {"env.instances=6",
                                           "data.batch=12",
                                           "data.shards=4",
                                           "models.controller=tiny_net",
                                           "models.perception=",
                                           "models.world=",
                                           "training.optimizer=adam",
                                           "training.learning_rate=0.02",
                                           "training.warmup_epochs=0",
                                           NULL};
    memset(w, 0, sizeof(*w));
    dt_host_init(&w->host);
    pthread_mutex_init(&w->lock, NULL);
    const dt_loader_desc ld = {.host = &w->host, .program_dir = "/no/build", .plugin_dir = "/no/where"};
    assert_ok(dt_loader_create(&ld, &w->loader));
    assert_ok(dt_loader_add(w->loader, &worlds_plugin));
    assert_ok(dt_config_create(&w->config));
    assert_ok(dt_config_use_plugin(w->config, "tiny", "--plugin"));
    for (size_t i = 0; defaults[i] != NULL; i++) {
        assert_ok(dt_config_set(w->config, defaults[i]));
    }
    for (size_t i = 0; settings[i] != NULL; i++) {
        assert_ok(dt_config_set(w->config, settings[i]));
    }
    static const char *const known[] = {"tiny", "liar", "steady", "crowd", "relay", "herd"};
    const char *role = NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_ok(declare(w->loader, w->config, known[i], &role));
    }
    if (comm == NULL) {
        assert_ok(dt_comm_create_null(&comm));
    }
    w->comm = comm;
}

dt_status world_create(world *w)
{
    const dt_loaded *phase = NULL;
    assert_ok(dt_loader_find(w->loader, DT_KIND_PHASE, "tiny", &phase));
    const dt_stage_desc d = {.config = w->config,
                             .loader = w->loader,
                             .comm = w->comm,
                             .phase = phase,
                             .demo_store = "",
                             .run_dir = w->run_dir,
                             .seed = 77,
                             .threads = w->threads > 0 ? w->threads : 2,
                             .device_ops = w->device_ops,
                             .device = w->device,
                             .rollouts = &dt_experience,
                             .config_lock = &w->lock};
    DT_TRY(dt_stage_create(&d, &w->stage));
    w->phase = w->stage->self;
    DT_TRY(dt_stage_start(w->stage));
    return dt_rollout_allocate_replay(w->stage->rollout);
}

void world_start(world *w)
{
    assert_ok(world_create(w));
}

void world_begin(world *w, const char *const *settings)
{
    world_open(w, settings, NULL);
    world_start(w);
}

void world_begin_env(world *w, const char *env, const char *more)
{
    char id[64];
    snprintf(id, sizeof(id), "env.id=%s", env);
    const char *const settings[] = {id, more, NULL};
    world_begin(w, settings);
}

void world_collect(const world *w)
{
    const tiny *s = w->phase;
    dt_rollout_report r = {.struct_size = sizeof(r)};
    assert_done(s->rollout->collect(s->r, s->t, &r));
}

void world_close(world *w)
{
    dt_stage_destroy(w->stage);
    dt_config_destroy(w->config);
    dt_loader_destroy(w->loader);
    dt_comm_destroy(w->comm);
    pthread_mutex_destroy(&w->lock);
}

dt_status world_iterate(world *w)
{
    dt_progress p;
    return dt_stage_iterate(w->stage, &p);
}

const dt_samples *world_source(const world *w)
{
    const tiny *s = w->phase;
    return s->p != NULL ? &s->replay->data(s->p)->source : &s->rollout->data(s->r)->source;
}

void world_keep(const world *w, float *params, dt_rollout_report *r)
{
    assert_true(w->stage->params.total <= 2048);
    memcpy(params, dt_trainer_params(w->stage->trainer), (size_t)w->stage->params.total * sizeof(float));
    *r = w->phase->report;
    r->env_s = r->policy_s = r->wait_s = r->total_s = 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

uint32_t field_of(const world *w, const char *name)
{
    const dt_samples *s = world_source(w);
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (strcmp(s->field[f].name, name) == 0) {
            return f;
        }
    }
    fail_msg("no field %s", name);
    return 0;
}

void read_samples(const world *w, const uint64_t *index, uint32_t n, sample *out)
{
    const dt_samples *s = world_source(w);
    memset(out, 0, sizeof(*out));
    assert_done(s->ops->sizes(s->self, index, n, out->size));
    out->size[s->n_symbols] = n;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        out->at[f] = calloc(1, dt_samples_field_bytes(s, f, out->size) + 1);
    }
    const uint64_t key[64] = {0};
    assert_done(s->ops->read(s->self, index, key, n, (void *const *)out->at));
}

void drop_sample(const world *w, sample *s)
{
    for (uint32_t f = 0; f < world_source(w)->n_fields; f++) {
        free(s->at[f]);
    }
}

float f32(const world *w, const sample *s, const char *field, int64_t i)
{
    return ((const float *)(const void *)s->at[field_of(w, field)])[i];
}

int32_t i32(const world *w, const sample *s, const char *field, int64_t i)
{
    return ((const int32_t *)(const void *)s->at[field_of(w, field)])[i];
}

void mean_and_deviation(const double *x, int n, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] / n;
    }
    for (int i = 0; i < n; i++) {
        squares += (x[i] - sum) * (x[i] - sum);
    }
    *mean = sum;
    *deviation = sqrt(squares / (n - 1));
}

void assert_close(double is, double want)
{
    if (!(fabs(is - want) <= 1e-9 * (1 + fabs(want)))) {
        fail_msg("%.12g in place of %.12g", is, want);
    }
}
