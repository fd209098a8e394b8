/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase, an environment and a controller that are good as they stand, and break one rule of the contract for each
 * value of option `fault`: what `dtrain check` and a run must say. The phase sharpens its policy by a step input,
 * "coldness", that is 1 in start and pi from the first iteration on. For tests alone.
 */
#include "dtrain/helpers.h"
#include "dtrain/random.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rounds.h"

#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "faulty"

static int counter;      /* what no plugin may have */
static float last_begin; /* nor this: of whatever instance was reset last */

/* An environment variable picks the faults of opening, where there are no options yet. */
__attribute__((constructor)) static void on_open(void)
{
    const char *fault = getenv("FAULTY_OPEN");
    if (fault != NULL && strcmp(fault, "rounding") == 0) {
        fesetround(FE_UPWARD);
    }
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

enum {
    HANDLER = 1,
    STDOUT,
    FOLDER,
    LOCALE,
    ROUNDING,
    LIMIT,
    MASK,
    VARIABLE,
    TIMER,
    ROUNDING_IN_STEP,
    LEAK,
    MANY,
    CODE_ADDRESS,
    SHARED,
    SILENT
};
static const char *const env_faults[] = {"none",  "handler", "stdout",   "folder", "locale", "rounding",
                                         "limit", "mask",    "variable", "timer",  "step",   "leak",
                                         "many",  "address", "shared",   "silent", NULL};

typedef struct env_config {
    uint32_t fault;
} env_config;

typedef struct env_state {
    env_config config;
    float at, to;
    int step;
} env_state;

static const dt_option env_options[] = {
    DT_OPTION(env_config, fault, DT_OPT_ENUM, "none", NULL, 0, 0, env_faults, "rule to break"), DT_OPTION_END};

static void disturb(uint32_t fault)
{
    const struct rlimit files = {64, 64};
    switch (fault) {
    case HANDLER:
        signal(SIGTERM, SIG_IGN);
        break;
    case STDOUT:
        printf("hello");
        break;
    case FOLDER:
        (void)!chdir("/");
        break;
    case LOCALE:
        setlocale(LC_ALL, "C.UTF-8");
        break;
    case ROUNDING:
        fesetround(FE_UPWARD);
        break;
    case LIMIT:
        setrlimit(RLIMIT_NOFILE, &files);
        break;
    case MASK:
        umask(0);
        break;
    case VARIABLE:
        setenv("FAULTY", "1", 1);
        break;
    case TIMER:
        alarm(1000);
        break;
    default:
        break;
    }
}

static dt_status env_create(void *self, const dt_host *h, const void *cfg)
{
    env_state *s = self;
    s->config = *(const env_config *)cfg;
    disturb(s->config.fault);
    return DT_OK;
}

static dt_status env_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 3", DT_F32, 0}, {"marks", "V 2", DT_F32, 0}};
    static const dt_dim symbols[] = {{"V", 2}};
    static const int32_t choices[] = {2};
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 2;
    out->symbols = symbols;
    out->n_symbols = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = 8;
    return DT_OK;
}

static void observe(const env_state *s, const dt_env_io *io)
{
    float *obs = io->obs[0], *marks = io->obs[1];
    obs[0] = s->at;
    obs[1] = s->to;
    obs[2] = (float)s->step / 8;
    marks[0] = s->at;
    marks[1] = s->to;
    io->size[0] = 1;
}

static dt_status env_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    env_state *s = self;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->at = (float)dt_random_between(&r, -1, 1);
    s->to = (float)dt_random_between(&r, -1, 1);
    s->step = 0;
    last_begin = s->at;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status env_step(void *self, const dt_env_io *io)
{
    env_state *s = self;
    if (s->config.fault == ROUNDING_IN_STEP) {
        fesetround(FE_UPWARD);
    }
    if (s->config.fault == LEAK) {
        volatile char *p = malloc((size_t)64 << 20);
        for (size_t i = 0; p != NULL && i < (size_t)64 << 20; i += 4096) {
            p[i] = 1;
        }
    }
    s->at += io->act_i[0] == 0 ? -0.25F : 0.25F;
    s->step++;
    io->reward[0] = -(s->at - s->to) * (s->at - s->to);
    if (s->config.fault == CODE_ADDRESS) { /* the same in every instance of a process */
        io->reward[0] += (float)(((uintptr_t)&counter >> 12) % 65536);
    }
    if (s->config.fault == SHARED) { /* right as long as instances play one after another */
        io->reward[0] += last_begin;
    }
    if (s->config.fault == SILENT && s->step == 3) {
        return DT_EINVAL;
    }
    io->terminated[0] = s->step == 8;
    io->alive[0] = s->step < 8;
    observe(s, io);
    return s->step < 8 ? DT_OK : DT_DONE;
}

static dt_status env_step_many(void *const *self, uint32_t n, const dt_env_io *io, dt_status *status)
{
    for (uint32_t i = 0; i < n; i++) {
        void *obs[] = {(float *)io->obs[0] + 3 * (size_t)i, (float *)io->obs[1] + 4 * (size_t)i};
        const dt_env_io one = {.struct_size = sizeof(one),
                               .n_obs = 2,
                               .obs = obs,
                               .size = io->size + i,
                               .alive = io->alive + i,
                               .act_i = io->act_i + i,
                               .reward = io->reward + i,
                               .terminated = io->terminated + i};
        status[i] = env_step(self[i], &one);
        io->reward[i] += ((const env_state *)self[i])->config.fault == MANY;
    }
    return DT_OK;
}

DT_ENV_DEFINE(env, "faulty_env", "a point on a line", "none", env_config, env_state, env_options,
              DT_OPS(.create = env_create, .spec = env_spec, .reset = env_reset, .step = env_step, .destroy = dt_no_op,
                     .step_many = env_step_many),
              .flags = DT_COMP_DETERMINISTIC);

/* ---- the controller ---------------------------------------------------------------------------------------------- */

enum { RANDOM = 1, COUNTING, KEPT, WIDE };
static const char *const model_faults[] = {"none", "random", "counting", "kept", "wide", NULL};

typedef struct model_config {
    uint32_t fault;
} model_config;

typedef struct model_state {
    model_config config;
    int64_t D;
    int calls;
    dt_tensor *kept;
} model_state;

static const dt_option model_options[] = {
    DT_OPTION(model_config, fault, DT_OPT_ENUM, "none", NULL, 0, 0, model_faults, "rule to break"), DT_OPTION_END};

static dt_status model_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n)
{
    model_state *s = self;
    (void)h, (void)dims, (void)n;
    s->config = *(const model_config *)cfg;
    return DT_OK;
}

static const dt_port *model_inputs(const void *self, uint32_t *n_p)
{
    static const dt_port in[] = {{"obs", "A 3", DT_F32, 0}, {"marks", "V 2", DT_F32, DT_PORT_OPTIONAL}};
    *n_p = 2;
    return in;
}

static const dt_port *model_outputs(const void *self, uint32_t *n_p)
{
    static const dt_port out[] = {{"logits", "A 2", DT_F32, 0}, {"value", "A", DT_F32, 0}};
    *n_p = 2;
    return out;
}

static dt_status model_params(void *self, dt_params *reg)
{
    static const int64_t weight[] = {3, 3}, bias[] = {3};
    DT_TRY_H(reg->add(reg, "weight", weight, 2, DT_INIT_XAVIER, 1));
    return reg->add(reg, "bias", bias, 1, DT_INIT_ZERO, 0);
}

static dt_status model_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    model_state *s = self;
    dt_tensor *y = dt_linear(g, in[0], g->api->param(g, "weight"), g->api->param(g, "bias"));
    s->calls++;
    if (s->config.fault == RANDOM) {
        y = dt_affine(g, y, 1 + rand() * 1e-9, 0);
    }
    if (s->config.fault == COUNTING) {
        y = dt_affine(g, y, 1 + ++counter, 0);
    }
    if (s->config.fault == KEPT && s->kept != NULL) {
        y = dt_add(g, y, s->kept);
    }
    if (s->config.fault == KEPT) {
        s->kept = y;
    }
    for (int i = 0; s->config.fault == WIDE && i < 12; i++) {
        dt_tensor *eight[8] = {y, y, y, y, y, y, y, y};
        y = dt_concat(g, eight, 8);
    }
    out[0] = dt_slice(g, y, 0, 2);
    out[1] = dt_merge(g, dt_slice(g, y, 2, 1));
    return g->api->status(g);
}

DT_MODEL_DEFINE(model, "faulty_model", "a linear layer", "none", model_config, model_state, model_options,
                DT_OPS(.create = model_create, .inputs = model_inputs, .outputs = model_outputs, .params = model_params,
                       .forward = model_forward, .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC);

/* ---- the phase --------------------------------------------------------------------------------------------------- */

enum {
    DECLARES = 1,
    RESETS,
    UNSET,
    FORGETS,
    STATIC,
    GRAPH,
    STUCK,
    AGAIN,
    INVALID,
    PHASE_ROUNDING,
    ADDRESS,
    COARSE,
    TYPO,
    METRIC
};
static const char *const phase_faults[] = {"none",   "declares", "resets", "unset",   "forgets",  "static",
                                           "graph",  "stuck",    "again",  "invalid", "rounding", "address",
                                           "coarse", "typo",     "metric", NULL};

typedef struct phase_config {
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    uint32_t fault;
} phase_config;

typedef struct phase_state {
    phase_config config;
    dt_wiring *wiring;
    dt_rounds *rounds;
    const dt_host *h;
    const dt_metrics_api *metrics;
    int64_t round;
    int records;
} phase_state;

static const dt_option phase_options[] = {
    DT_ROUNDS_OPTIONS(phase_config, rounds, "6"), DT_WIRING_OPTIONS(phase_config, wiring),
    DT_OPTION(phase_config, fault, DT_OPT_ENUM, "none", NULL, 0, 0, phase_faults, "rule to break"), DT_OPTION_END};

static dt_status set_coldness(const phase_state *s, bool is_acting, float value)
{
    const float both[] = {value, value};
    const dt_train_api *train = s->rounds->train;
    return (is_acting ? train->set_acting : train->set)(s->rounds->trainer, "coldness", both, 2);
}

static dt_status set_scale(const phase_state *s, float value)
{
    return s->rounds->train->set(s->rounds->trainer, "scale", &value, 1);
}

static dt_status record(void *user, dt_graph *g, const dt_policy_tensors *p)
{
    phase_state *s = user;
    const dt_graph_api *api = g->api;
    dt_policy_tensors q = *p;
    dt_tensor *log_prob = NULL, *entropy = NULL;
    q.logits = dt_mul(g, p->logits, api->step_input(g, "coldness", 2));
    if (s->config.fault == GRAPH && ++s->records % 2 == 0) {
        q.logits = dt_affine(g, q.logits, 2, 0);
    }
    DT_TRY_H(api->output(g, "logits", q.logits));
    DT_TRY_H(api->output(g, "value", p->value));
    DT_TRY_H(s->wiring->api->action_log_prob(s->wiring, g, &q, &log_prob, &entropy));
    dt_tensor *gain = dt_mul(g, log_prob, api->input(g, "advantage"));
    gain = dt_mul(g, dt_split(g, gain, 0), api->step_input(g, "scale", 1));
    dt_tensor *error = dt_value_loss(g, p->value, api->input(g, "target"), NULL, DT_VALUE_PLAIN, 0);
    DT_TRY_H(api->loss(g, "policy_loss", dt_sum(g, gain), -1.0, "A"));
    return api->loss(g, "value_loss", dt_sum(g, error), 0.5, "A");
}

static dt_status phase_create(void *self, const dt_host *h, const void *cfg)
{
    phase_state *s = self;
    const dt_wiring_api *wiring = NULL;
    const dt_rounds_api *rounds = NULL;
    s->config = *(const phase_config *)cfg;
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    DT_SERVICE_H(h, rounds, DT_SVC_ROUNDS, ID);
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, ID);
    s->h = h;
    if (s->config.fault == COARSE && s->config.rounds.train_batch < 64) { /* legal */
        return DT_FAIL_H(h, DT_ECONFIG, ID ".train_batch must be at least 64");
    }
    dt_wiring_desc w = DT_WIRING_DESC(ID, &s->config.wiring);
    w.flags = DT_WIRING_NO_OUTPUTS;
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    const dt_rounds_desc r = DT_ROUNDS_DESC(ID, &s->config.rounds, s->wiring, s, record);
    return rounds->create(h, &r, &s->rounds);
}

static dt_status phase_start(void *self)
{
    const phase_state *s = self;
    DT_TRY_H(s->rounds->api->start(s->rounds));
    DT_TRY_H(s->config.fault == DECLARES ? set_coldness(s, true, 1.5F) : DT_OK);
    DT_TRY_H(set_scale(s, 1));
    return s->config.fault == UNSET ? DT_OK : set_coldness(s, false, 1);
}

static dt_status phase_iterate(void *self, dt_progress *out)
{
    phase_state *s = self;
    const uint32_t fault = s->config.fault;
    if (fault == STUCK || fault == AGAIN || fault == INVALID) {
        out->step = 1;
        out->samples = 64;
        return fault == AGAIN ? DT_AGAIN : fault == INVALID ? 55 : DT_OK;
    }
    if (fault == PHASE_ROUNDING) {
        fesetround(FE_UPWARD);
    }
    s->round++;
    counter++;
    DT_TRY_H(set_coldness(s, false, 3.14159265F));
    if (fault == TYPO) {
        const float value = 2;
        DT_TRY_H(s->rounds->train->set(s->rounds->trainer, "scal", &value, 1));
    }
    if (fault == METRIC) {
        s->metrics->scalar(s->h, "charts/two\nlines", 1);
    }
    DT_TRY_H(set_scale(s, fault == FORGETS   ? (float)s->round
                          : fault == STATIC  ? (float)counter
                          : fault == ADDRESS ? 1 + (float)((uintptr_t)s->rounds % 65536)
                                             : 1));
    return s->rounds->api->iterate(s->rounds, out);
}

static dt_status phase_evaluate(void *self, dt_progress *out)
{
    const phase_state *s = self;
    DT_TRY_H(s->config.fault == RESETS ? set_coldness(s, false, 0.5F) : DT_OK);
    DT_TRY_H(s->rounds->api->evaluate(s->rounds, out));
    return s->config.fault == RESETS ? set_coldness(s, false, 3.14159265F) : DT_OK;
}

static dt_status phase_save(void *self, dt_writer *w)
{
    const phase_state *s = self;
    const int64_t round = s->config.fault == FORGETS ? 0 : s->round;
    return w->write(w, &round, sizeof(round));
}

static dt_status phase_load(void *self, dt_reader *r, uint32_t version)
{
    phase_state *s = self;
    return r->read(r, &s->round, sizeof(s->round));
}

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=faulty_model", "env.id=faulty_env",
                   "env.instances=4", ID ".train_batch=64", ID ".fragment=8", ID ".sgd_epochs=1", "data.batch=16",
                   "data.shards=4", "training.optimizer=adam", "training.learning_rate=1e-2", "training.weight_decay=0",
                   "training.scheduler=constant", "training.warmup_epochs=0", "training.eval_interval=1",
                   "training.save_interval=1");
DT_PHASE_DEFINE(phase, ID, "policy gradient with a temperature", "none", phase_config, phase_state, phase_options,
                DT_OPS(.create = phase_create, .start = phase_start, .iterate = phase_iterate,
                       .evaluate = phase_evaluate, .stop = dt_no_op, .destroy = dt_no_op, .save = phase_save,
                       .load = phase_load),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .extension = extension);
DT_PLUGIN_DEFINE_OF(ID, "0.1", "tests", "Apache-2.0", &phase, &env, &model);
