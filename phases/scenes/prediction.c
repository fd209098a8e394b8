/* SPDX-License-Identifier: Apache-2.0 */
#include "prediction.h"
#include "radii.h"

#include <math.h>
#include <string.h>

enum { MOTION = 6, AXES = 2, PATH_COLUMNS = 4, TEXT = 48 };
#define HALF_LOG_2PI     0.91893853320467274178
#define MIXTURE_STEPS    5.0   /* n of prediction.h */
#define MIN_PROBABILITY  1e-12 /* before a logarithm */
#define POSITION_NOISE_M 0.05  /* of recordings */

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static int64_t count_steps(double seconds, double rate_hz)
{
    return llround(seconds * rate_hz);
}

dt_status prediction_check(const dt_host *h, const char *phase, const prediction_config *c)
{
    const double dt_ms = 1000.0 / c->rate_hz;
    if (fabs(dt_ms - round(dt_ms)) > 1e-6) {
        return DT_FAIL_H(h, DT_ECONFIG, "%s.rate_hz %g: a step of %g ms is not a whole number of ms", phase, c->rate_hz,
                         dt_ms);
    }
    if (count_steps(c->history_s, c->rate_hz) < 1 || count_steps(c->horizon_s, c->rate_hz) < 1) {
        return DT_FAIL_H(h, DT_ECONFIG, "%s: history_s %g and horizon_s %g must each hold a step at rate_hz %g", phase,
                         c->history_s, c->horizon_s, c->rate_hz);
    }
    if (c->nll_weight <= 0 && c->position_weight <= 0 && c->distance_weight <= 0 && c->risk_weight <= 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s: nll_weight, position_weight, distance_weight and risk_weight are all 0: nothing "
                         "to train",
                         phase);
    }
    return DT_OK;
}

dt_status prediction_init(prediction *p, const dt_host *h, const dt_bind_api *bind, const char *phase,
                          const prediction_config *c)
{
    *p = (prediction){.h = h, .bind = bind, .phase = phase, .config = *c};
    p->T = count_steps(c->history_s, c->rate_hz);
    p->F = count_steps(c->horizon_s, c->rate_hz);
    p->weight = h->alloc(h, (uint64_t)p->F * sizeof(*p->weight));
    if (p->weight == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for the weights of %lld future steps", (long long)p->F);
    }
    return DT_OK;
}

void prediction_fini(prediction *p)
{
    if (p->h != NULL) {
        p->h->release(p->h, p->weight);
        p->weight = NULL;
    }
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

dt_status prediction_bind_data(prediction *p, const char *split, const dt_setting *more, uint32_t n, dt_data **out_p)
{
    char number[3][TEXT];
    snprintf(number[0], TEXT, "%.9g", p->config.history_s);
    snprintf(number[1], TEXT, "%.9g", p->config.horizon_s);
    snprintf(number[2], TEXT, "%.9g", p->config.rate_hz);
    dt_setting set[4 + PREDICTION_MORE] = {
        {"split", split}, {"history_s", number[0]}, {"horizon_s", number[1]}, {"rate_hz", number[2]}};
    dt_data *d = NULL;
    for (uint32_t i = 0; i < n && i < PREDICTION_MORE; i++) {
        set[4 + i] = more[i];
    }
    DT_TRY_H(p->bind->data(p->h, set, 4 + n, &d));

    static const char *const names[] = {"nodes",       "rowptr",        "col",      "edges",   "risk_label",
                                        "risk_weight", "risk_state",    "seq_row",  "present", "motion",
                                        "target",      "target_weight", "complete", "row_key", "seq_key"};
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (p->bind->data_field(d, names[i]) == NULL) {
            return DT_FAIL_H(p->h, DT_ESHAPE,
                             "the data has no field %s, which %s reads: set data.source to a component that gives "
                             "trajectory windows, such as data_trajectory",
                             names[i], p->phase);
        }
    }
    const int64_t T = p->bind->port_dim(p->bind->data_field(d, "seq_row"), 0);
    const int64_t F = p->bind->port_dim(p->bind->data_field(d, "target"), 1);
    if (T != p->T || F != p->F) {
        return DT_FAIL_H(p->h, DT_ESHAPE,
                         "split %s has windows of %lld + %lld steps, %s requested %lld + %lld (history_s %g, "
                         "horizon_s %g, rate_hz %g)",
                         split, (long long)T, (long long)F, p->phase, (long long)p->T, (long long)p->F,
                         p->config.history_s, p->config.horizon_s, p->config.rate_hz);
    }
    if (p->bind->data_count(d) == 0) {
        return DT_FAIL_H(
            p->h, DT_EDATA,
            "split %s of the data has no samples: give the store more scenes, or longer ones, as a window "
            "takes history_s + horizon_s = %g s of one; for a single recording set data_trajectory.eval_scenes "
            "= \"all\", which trains and evaluates on all of it",
            split, p->config.history_s + p->config.horizon_s);
    }
    const dt_port *lane = p->bind->data_field(d, "lane"), *path = p->bind->data_field(d, "path");
    if (lane != NULL && path != NULL) {
        p->R = p->bind->port_dim(lane, 1);
        p->P = p->bind->port_dim(path, 1);
    }
    *out_p = d;
    return DT_OK;
}

dt_status prediction_bind_perception(prediction *p)
{
    static const dt_port offers[] = {{"nodes", "N 9", DT_F32, 0},
                                     {"rowptr", "N+1", DT_I32, 0},
                                     {"col", "E", DT_I32, 0},
                                     {"edges", "E 4", DT_F32, 0},
                                     {"row_key", "N", DT_I64, 0}};
    static const dt_port needs[] = {{"embedding", "N H", DT_F32, 0}, {"risk", "N", DT_F32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .role = "perception",
                                   .offers = offers,
                                   .n_offers = 5,
                                   .needs = needs,
                                   .n_needs = 2};
    return p->bind->model(p->h, &want, &p->perception);
}

/* Does the world model have radii of its regions, in addition to a temperature? */
static dt_status find_regions(prediction *p)
{
    const dt_port *port = p->bind->model_output(p->world, "regions");
    if (port != NULL && (!p->has_temperature || p->bind->port_dim(port, 0) != RADII_SIZE)) {
        return DT_FAIL_H(p->h, DT_ESHAPE,
                         "the world model's output regions is [%s]; %s takes [%d], next to an output temperature",
                         port->dims, p->phase, RADII_SIZE);
    }
    p->has_regions = port != NULL;
    return DT_OK;
}

/* Does the world model predict several? */
static dt_status find_futures(prediction *p)
{
    static const char *const name[] = {"futures", "spreads", "probability"};
    const dt_port *port[3];
    for (int i = 0; i < 3; i++) {
        port[i] = p->bind->model_output(p->world, name[i]);
    }
    p->has_temperature = p->bind->model_output(p->world, "temperature") != NULL;
    DT_TRY_H(find_regions(p));
    if (port[0] == NULL) {
        return DT_OK;
    }
    const int64_t K = p->bind->port_dim(port[0], 1);
    char want[3][TEXT];
    snprintf(want[0], TEXT, "S %lld %lld %d", (long long)K, (long long)p->F, AXES);
    snprintf(want[1], TEXT, "%s", want[0]);
    snprintf(want[2], TEXT, "S %lld", (long long)K);
    for (int i = 0; i < 3; i++) {
        if (K < 2 || K > PREDICTION_MAX_FUTURES || port[i] == NULL || strcmp(port[i]->dims, want[i]) != 0) {
            return DT_FAIL_H(p->h, DT_ESHAPE,
                             "the world model's output %s is [%s]; %s takes 2 to %d futures, futures and spreads "
                             "[S k %lld %d] with probability [S k]",
                             name[i], port[i] != NULL ? port[i]->dims : "", p->phase, PREDICTION_MAX_FUTURES,
                             (long long)p->F, AXES);
        }
    }
    p->K = K;
    return DT_OK;
}

dt_status prediction_bind_world(prediction *p, uint32_t flags)
{
    const int64_t H =
        p->perception == NULL ? 0 : p->bind->port_dim(p->bind->model_output(p->perception, "embedding"), 1);
    const dt_dim dims[] = {{"H", H},    {"T", p->T}, {"F", p->F}, {"dt_ms", llround(1000.0 / p->config.rate_hz)},
                           {"R", p->R}, {"P", p->P}}; /* the last two where roads are known */
    char text[7][TEXT];
    snprintf(text[0], TEXT, "%lld S %d", (long long)p->T, MOTION);
    snprintf(text[1], TEXT, "%lld S", (long long)p->T);
    snprintf(text[2], TEXT, "S %lld %d", (long long)p->F, AXES);
    snprintf(text[3], TEXT, "%lld S %lld", (long long)p->T, (long long)H);
    snprintf(text[4], TEXT, "S %lld", (long long)H);
    snprintf(text[5], TEXT, "S %lld", (long long)p->R);
    snprintf(text[6], TEXT, "S %lld %d", (long long)p->P, PATH_COLUMNS);
    const dt_port offers[] = {{"history", text[3], DT_F32, 0}, /* the first two are of perception */
                              {"latest", text[4], DT_F32, 0},  {"motion", text[0], DT_F32, 0},
                              {"present", text[1], DT_F32, 0}, {"seq_key", "S", DT_I64, 0},
                              {"lane", text[5], DT_F32, 0},    {"path", text[6], DT_F32, 0}};
    const uint32_t n_roads = p->R > 0 ? 2 : 0;
    const dt_port needs[] = {{"future", text[2], DT_F32, 0}, {"spread", text[2], DT_F32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .n_dims = 4 + n_roads,
                                   .role = "world",
                                   .dims = dims,
                                   .offers = H > 0 ? offers : offers + 2,
                                   .needs = needs,
                                   .n_offers = (H > 0 ? 5 : 3) + n_roads,
                                   .n_needs = 2,
                                   .flags = flags};
    DT_TRY_H(p->bind->model(p->h, &want, &p->world));
    p->has_roads = n_roads > 0; /* the data was bound before it */
    return find_futures(p);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Outputs of the world model. */
enum { FUTURE, SPREAD, FUTURES, SPREADS, PROBABILITY, TEMPERATURE, REGIONS, N_OUTPUTS };

static bool has_output(const prediction *p, uint32_t i)
{
    return i <= SPREAD || (i == TEMPERATURE ? p->has_temperature : i == REGIONS ? p->has_regions : p->K > 0);
}

/* Node rows [N,H] -> one sequence per vehicle [T,S,H] -> futures; embedding NULL: motion alone. */
static dt_status record_world(const prediction *p, dt_graph *g, dt_tensor *embedding, dt_named outputs[N_OUTPUTS])
{
    const dt_graph_api *api = g->api;
    dt_named past[7] = {{"motion", api->input(g, "motion")},
                        {"present", api->input(g, "present")},
                        {"seq_key", api->input(g, "seq_key")}};
    uint32_t n = 3;
    if (embedding != NULL) {
        dt_tensor *history = dt_gather(g, embedding, api->input(g, "seq_row"));
        past[n++] = (dt_named){"history", history};
        past[n++] = (dt_named){"latest", dt_step(g, history, -1)};
    }
    if (p->has_roads) {
        past[n++] = (dt_named){"lane", api->input(g, "lane")};
        past[n++] = (dt_named){"path", api->input(g, "path")};
    }
    dt_named out[N_OUTPUTS];
    uint32_t from[N_OUTPUTS], n_out = 0;
    for (uint32_t i = 0; i < N_OUTPUTS; i++) {
        if (has_output(p, i)) {
            from[n_out] = i;
            out[n_out++] = outputs[i];
        }
    }
    DT_TRY_H(api->model(g, p->world, past, n, out, n_out));
    for (uint32_t i = 0; i < n_out; i++) {
        outputs[from[i]] = out[i];
    }
    return DT_OK;
}

/* x [S,D] for each of K futures: [S,K,D] */
static dt_tensor *repeat_futures(dt_graph *g, dt_tensor *x, int64_t K)
{
    dt_tensor *part[PREDICTION_MAX_FUTURES];
    for (int64_t j = 0; j < K; j++) {
        part[j] = x;
    }
    return dt_split(g, dt_concat(g, part, (uint32_t)K), K);
}

/* Logarithms of deviations without the model's temperature. */
static dt_tensor *untempered_spread(const prediction *p, dt_graph *g, const dt_named outputs[N_OUTPUTS],
                                    dt_tensor *spread)
{
    return p->has_temperature ? dt_split(g, dt_sub(g, dt_merge(g, spread), outputs[TEMPERATURE].tensor), p->F) : spread;
}

/* nll of the mixture, summed over vehicles; target [S,F,2], weight [S,F] */
static dt_tensor *mixture_nll(const prediction *p, dt_graph *g, const dt_named outputs[N_OUTPUTS], dt_tensor *target,
                              dt_tensor *weight)
{
    const double n = MIXTURE_STEPS;
    dt_tensor *both[AXES] = {dt_split(g, weight, p->F), dt_split(g, weight, p->F)};
    dt_tensor *w = repeat_futures(g, dt_merge(g, dt_concat(g, both, AXES)), p->K),
              *q = repeat_futures(g, dt_merge(g, target), p->K);
    dt_tensor *m = dt_merge(g, outputs[FUTURES].tensor),
              *u = dt_merge(g, untempered_spread(p, g, outputs, outputs[SPREADS].tensor)); /* [S,K,2F] */
    dt_tensor *e = dt_mul(g, dt_sub(g, q, m), dt_unary(g, DT_FN_EXP, dt_affine(g, u, -1.0, 0.0), 0.0));
    dt_tensor *axis = dt_add(g, dt_affine(g, dt_mul(g, e, e), 0.5, HALF_LOG_2PI), u);
    dt_tensor *nll = dt_merge(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, axis, w))); /* [S,K] */

    /* log sum_j exp(a_j), a = log p - n nll, from the greatest: a future that is next to impossible learns nothing */
    dt_tensor *probability = dt_clamp(g, outputs[PROBABILITY].tensor, MIN_PROBABILITY, 1.0);
    dt_tensor *a = dt_add(g, dt_unary(g, DT_FN_LOG, probability, 0.0), dt_affine(g, nll, -n, 0.0));
    dt_tensor *most = dt_stop(g, dt_reduce_columns(g, DT_REDUCE_MAX, a));
    dt_tensor *sum = dt_reduce_columns(g, DT_REDUCE_SUM, dt_unary(g, DT_FN_EXP, dt_sub(g, a, most), 0.0));
    dt_tensor *log_sum = dt_add(g, dt_unary(g, DT_FN_LOG, sum, 0.0), most);
    return dt_sum(g, dt_affine(g, log_sum, -1.0 / n, 0.0));
}

/* The mean temperature, summed over vehicles, plus 0 times the regions, so that the loss depends on them as well. */
static dt_tensor *mean_temperature(const prediction *p, dt_graph *g, const dt_named outputs[N_OUTPUTS])
{
    dt_tensor *share = dt_fill(g, dt_merge(g, outputs[SPREAD].tensor), 1.0 / (double)(AXES * p->F)); /* [S,2F] */
    dt_tensor *part = dt_mul(g, share, outputs[TEMPERATURE].tensor);
    if (p->has_regions) {
        dt_tensor *none = dt_fill(g, dt_slice(g, share, 0, 1), 0.0); /* [S,1] */
        part = dt_add(g, part, dt_mul(g, none, dt_slice(g, outputs[REGIONS].tensor, 0, 1)));
    }
    return dt_sum(g, part);
}

/* sqrt(d^2 + POSITION_NOISE_M^2), summed over vehicles; d: distance of target and future [S,F,2], weight [S,F] */
static dt_tensor *distance_loss(dt_graph *g, dt_tensor *future, dt_tensor *target, dt_tensor *weight)
{
    dt_tensor *e = dt_sub(g, target, future);
    dt_tensor *square = dt_merge(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, e, e))); /* [S,F] */
    dt_tensor *d = dt_sqrt(g, dt_affine(g, square, 1.0, POSITION_NOISE_M * POSITION_NOISE_M));
    return dt_sum(g, dt_mul(g, d, weight));
}

static dt_status record_risk(const prediction *p, dt_graph *g, dt_tensor *risk)
{
    const dt_graph_api *api = g->api;
    if (p->config.risk_weight > 0) {
        dt_tensor *bce = dt_bce_logits(g, risk, api->input(g, "risk_label"), api->input(g, "risk_weight"));
        DT_TRY_H(api->loss(g, "risk", bce, p->config.risk_weight, "N"));
    }
    return api->output(g, "risk", risk);
}

dt_status prediction_record(const prediction *p, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    dt_named outputs[N_OUTPUTS] = {{"future", NULL},      {"spread", NULL},      {"futures", NULL}, {"spreads", NULL},
                                   {"probability", NULL}, {"temperature", NULL}, {"regions", NULL}};
    dt_named view[] = {{"embedding", NULL}, {"risk", NULL}};
    if (p->perception != NULL) {
        const dt_named seen[] = {{"nodes", api->input(g, "nodes")},
                                 {"rowptr", api->input(g, "rowptr")},
                                 {"col", api->input(g, "col")},
                                 {"edges", api->input(g, "edges")},
                                 {"row_key", api->input(g, "row_key")}};
        DT_TRY_H(api->model(g, p->perception, seen, 5, view, 2));
    }
    DT_TRY_H(record_world(p, g, view[0].tensor, outputs));
    dt_tensor *future = outputs[FUTURE].tensor, *spread = outputs[SPREAD].tensor;

    dt_tensor *target = api->input(g, "target");
    dt_tensor *horizon = api->step_input(g, "horizon_weight", p->F);
    dt_tensor *weight = dt_mul(g, api->input(g, "target_weight"), horizon); /* [S,F] times [F] */
    if (p->config.nll_weight > 0) {
        dt_tensor *nll = p->K > 0
                             ? mixture_nll(p, g, outputs, target, weight)
                             : dt_gaussian_nll(g, future, untempered_spread(p, g, outputs, spread), target, weight);
        DT_TRY_H(api->loss(g, "nll", nll, p->config.nll_weight, "S"));
    }
    if (p->config.position_weight > 0) {
        dt_tensor *square = dt_mse(g, future, target, weight);
        DT_TRY_H(api->loss(g, "position", square, p->config.position_weight, "S"));
    }
    if (p->config.distance_weight > 0) {
        DT_TRY_H(api->loss(g, "distance", distance_loss(g, future, target, weight), p->config.distance_weight, "S"));
    }
    if (p->perception != NULL) {
        DT_TRY_H(record_risk(p, g, view[1].tensor));
    }
    if (p->calibrates) {
        DT_TRY_H(api->loss(g, "temperature", mean_temperature(p, g, outputs), 0.0, "S"));
    }
    DT_TRY_H(api->output(g, "future", future));
    DT_TRY_H(api->output(g, "spread", spread));
    if (p->K > 0) {
        DT_TRY_H(api->output(g, "futures", outputs[FUTURES].tensor));
        DT_TRY_H(api->output(g, "spreads", outputs[SPREADS].tensor));
        DT_TRY_H(api->output(g, "probability", outputs[PROBABILITY].tensor));
    }
    return api->status(g);
}

dt_status prediction_set_horizon(prediction *p, const dt_train_api *train, dt_train *t, double seconds,
                                 double *seconds_p)
{
    const double steps = fmin(fmax(seconds * p->config.rate_hz, 1.0), (double)p->F);
    for (int64_t f = 0; f < p->F; f++) {
        p->weight[f] = (float)(fmin(fmax(steps - (double)f, 0.0), 1.0) / steps);
    }
    if (seconds_p != NULL) {
        *seconds_p = steps / p->config.rate_hz;
    }
    return train->set(t, "horizon_weight", p->weight, (uint32_t)p->F);
}
