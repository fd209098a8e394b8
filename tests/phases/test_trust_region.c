/* SPDX-License-Identifier: Apache-2.0
 *
 * The step of the trust region over a real trainer, against dense linear algebra in double that shares nothing with it:
 * products with the Hessian of the divergence against the Fisher matrix of the samples, for a softmax and for a narrow
 * and a wide normal policy; multipliers and the step against the closed form over the dense inverse; every outcome of
 * the line search.
 */
#include "../../phases/phase3_constrained/trust_region.h"

#include "unit.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/trainer.h"

enum { ROWS = 1500, D = 3, CHOICES = 3, K = 2 };
enum { N = (CHOICES + 1) * (D + 1) + 1 }; /* w [4, D], b [4], log_std: logits 0 .. 2, mean */
static const double damping = 0.1;

static float obs[ROWS][D], action_f[ROWS], old[ROWS], advantage[ROWS], cost_advantage[ROWS][K];
static int32_t action_i[ROWS];
static double score[ROWS][N]; /* gradients of log probabilities */

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static double draw(uint32_t stream, uint64_t i) /* U(0,1) */
{
    const dt_rng_key key = {.seed = 9, .op = stream};
    return dt_rng_uniform(&key, i);
}

static double normal(uint32_t stream, uint64_t i)
{
    return sqrt(-2 * log(1 - draw(stream, 2 * i))) * cos(2 * M_PI * draw(stream, 2 * i + 1));
}

static double output(const float *w, int row, int o)
{
    double y = (double)w[(CHOICES + 1) * D + o];
    for (int d = 0; d < D; d++) {
        y += (double)w[o * D + d] * (double)obs[row][d];
    }
    return y;
}

/* d(log p)/d(output o) to the parameters behind it */
static void spread(int row, int o, double slope)
{
    for (int d = 0; d < D; d++) {
        score[row][o * D + d] += slope * (double)obs[row][d];
    }
    score[row][(CHOICES + 1) * D + o] += slope;
}

/* Actions as the policy w draws them, with log probabilities and their gradients. */
static void make_samples(const float *w)
{
    memset(score, 0, sizeof(score));
    for (int i = 0; i < ROWS; i++) {
        double e[CHOICES], sum = 0, u = draw(1, (uint64_t)i);
        for (int d = 0; d < D; d++) {
            obs[i][d] = (float)(2 * draw(2, (uint64_t)(i * D + d)) - 1);
        }
        for (int j = 0; j < CHOICES; j++) {
            sum += e[j] = exp(output(w, i, j));
        }
        action_i[i] = u < e[0] / sum ? 0 : u < (e[0] + e[1]) / sum ? 1 : 2;
        const double s = exp((double)w[N - 1]), mean = output(w, i, CHOICES);
        action_f[i] = (float)(mean + s * normal(3, (uint64_t)i));
        const double z = ((double)action_f[i] - mean) / s;
        old[i] = (float)(log(e[action_i[i]] / sum) - 0.5 * z * z - log(s * sqrt(2 * M_PI)));
        for (int j = 0; j < CHOICES; j++) {
            spread(i, j, (j == action_i[i]) - e[j] / sum);
        }
        spread(i, CHOICES, z / s);
        score[i][N - 1] = z * z - 1;
        advantage[i] = (float)(action_i[i] == 0) + (float)(0.3 * z) + obs[i][0] * (float)(action_i[i] == 1);
        cost_advantage[i][0] = (float)(action_i[i] == 0) + (float)(0.1 * normal(4, (uint64_t)i));
        cost_advantage[i][1] = -(float)(z * 0.5);
    }
}

static const dt_port *fields(const void *self, uint32_t *n)
{
    static const dt_port f[] = {{"obs", "A 3", DT_F32, 0},      {"action_i", "A 1", DT_I32, 0},
                                {"action_f", "A 1", DT_F32, 0}, {"log_prob", "A", DT_F32, 0},
                                {"advantage", "A", DT_F32, 0},  {"cost_advantage", "A 2", DT_F32, 0}};
    *n = 6;
    return f;
}

static const char *const *symbols(const void *self, uint32_t *n)
{
    static const char *const s[] = {"A"};
    *n = 1;
    return s;
}

static dt_status count(const void *self, uint64_t *n)
{
    *n = ROWS;
    return DT_OK;
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    size[0] = n;
    return DT_OK;
}

static dt_status read_rows(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t r = index[i];
        memcpy((float *)out[0] + (size_t)i * D, obs[r], sizeof(obs[r]));
        ((int32_t *)out[1])[i] = action_i[r];
        ((float *)out[2])[i] = action_f[r];
        ((float *)out[3])[i] = old[r];
        ((float *)out[4])[i] = advantage[r];
        memcpy((float *)out[5] + (size_t)i * K, cost_advantage[r], sizeof(cost_advantage[r]));
    }
    return DT_OK;
}

static const dt_data_ops data_ops = {.struct_size = sizeof(dt_data_ops),
                                     .fields = fields,
                                     .symbols = symbols,
                                     .count = count,
                                     .sizes = sizes,
                                     .read = read_rows};

/* ---- the trainer, as the service shows it ------------------------------------------------------------------------ */

static dt_status record(void *user, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    dt_tensor *kl = NULL, *parts[2], *sum = NULL;
    dt_graph_set_scope(g, "net");
    dt_tensor *y = dt_linear(g, api->input(g, "obs"), api->param(g, "w"), api->param(g, "b"));
    dt_tensor *log_std = api->param(g, "log_std");
    dt_graph_set_scope(g, "");
    dt_tensor *discrete = dt_categorical(g, dt_slice(g, y, 0, CHOICES), api->input(g, "action_i"), 0, NULL, NULL);
    dt_tensor *continuous = dt_gaussian(g, dt_slice(g, y, CHOICES, 1), log_std, api->input(g, "action_f"), NULL);
    parts[0] = dt_split(g, api->input(g, "advantage"), 0);
    parts[1] = api->input(g, "cost_advantage");
    dt_tensor *mixed = dt_mul(g, dt_concat(g, parts, 2), api->step_input(g, "advantage_mix", 1 + K));
    for (int i = 0; i <= K; i++) {
        dt_tensor *one = dt_slice(g, mixed, i, 1);
        sum = sum == NULL ? one : dt_add(g, sum, one);
    }
    dt_tensor *loss = dt_ppo_clip(g, dt_add(g, discrete, continuous), api->input(g, "log_prob"), dt_merge(g, sum),
                                  0.999999, 1e30, &kl, NULL);
    api->loss(g, "policy_loss", dt_sum(g, loss), 0, "A");
    api->loss(g, "approx_kl", dt_sum(g, kl), 0, "A");
    return api->status(g);
}

static dt_trainer *trainer_of(const dt_train *t)
{
    return (dt_trainer *)(uintptr_t)t;
}

static uint64_t vector_size(const dt_train *t)
{
    return dt_trainer_vector_size(trainer_of(t));
}

static dt_status vector_get(dt_train *t, float *out)
{
    return dt_trainer_vector_get(trainer_of(t), out);
}

static dt_status vector_set(dt_train *t, const float *in)
{
    return dt_trainer_vector_set(trainer_of(t), in);
}

static dt_status gradient(dt_train *t, const char *loss, float *out, double *value)
{
    return dt_trainer_gradient(trainer_of(t), loss, out, value);
}

static dt_status losses(dt_train *t, const char *const *name, uint32_t n, double *out)
{
    return dt_trainer_losses(trainer_of(t), name, n, out);
}

static dt_status expect(dt_train *t, const char *const *name, uint32_t n, uint8_t has_gradient)
{
    return dt_trainer_compile_losses(trainer_of(t), name, n, has_gradient != 0);
}

static dt_status set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    return dt_trainer_step_input_set(trainer_of(t), name, value, n);
}

static const dt_train_api api = {.struct_size = sizeof(dt_train_api),
                                 .set = set,
                                 .vector_size = vector_size,
                                 .vector_get = vector_get,
                                 .vector_set = vector_set,
                                 .gradient = gradient,
                                 .losses = losses,
                                 .plan_losses = expect};

static int allocations_left;

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    return allocations_left-- > 0 ? dt_alloc(bytes) : NULL;
}

static void host_release(const dt_host *h, void *p)
{
    dt_free(p);
}

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *text)
{
    return DT_FAIL(st, "%s", text);
}

static const dt_host host = {
    .struct_size = sizeof(dt_host), .alloc = host_alloc, .release = host_release, .fail = host_fail};

typedef struct rig {
    dt_samples source;
    dt_param_table params;
    dt_comm *comm;
    dt_trainer *trainer;
    trust_region region;
    float start[N];
} rig;

static void open_rig(rig *r, double log_std, double max_kl, int64_t cg_iterations)
{
    static const int64_t w[] = {CHOICES + 1, D}, b[] = {CHOICES + 1}, one[] = {1};
    const dt_trainer_config config = {.seed = 3, .threads = 2, .shards = 4, .batch = 100, .epochs = 1, .reuse = true};
    const trust_region_config c = {.max_kl = max_kl,
                                   .damping = damping,
                                   .backtrack = 0.8,
                                   .cg_iterations = cg_iterations,
                                   .line_search_steps = 10};
    memset(r, 0, sizeof(*r));
    for (int i = 0; i < N; i++) {
        r->start[i] = (float)(draw(5, (uint64_t)i) - 0.5);
    }
    r->start[N - 1] = (float)log_std;
    make_samples(r->start);
    assert_int_equal(dt_comm_create_null(&r->comm), DT_OK);
    assert_int_equal(dt_samples_open(&r->source, &data_ops, NULL, 64), DT_OK);
    assert_int_equal(dt_param_table_add(&r->params, "net", "w", w, 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&r->params, "net", "b", b, 1, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&r->params, "net", "log_std", one, 1, DT_INIT_ZERO, 0), DT_OK);
    const dt_trainer_desc d = {.config = &config,
                               .params = &r->params,
                               .source = &r->source,
                               .comm = r->comm,
                               .record = record,
                               .apart = "policy_loss"};
    assert_int_equal(dt_trainer_create(&d, &r->trainer), DT_OK);
    dt_train *t = (dt_train *)(void *)r->trainer;
    assert_int_equal(vector_set(t, r->start), DT_OK);
    allocations_left = 1000;
    assert_int_equal(set(t, "advantage_mix", (const float[]){1, 0, 0}, 1 + K), DT_OK);
    assert_int_equal(trust_region_init(&r->region, &host, &api, t, &c, K), DT_OK);
    assert_int_equal(r->region.n, N);
}

static void close_rig(rig *r)
{
    trust_region_fini(&r->region);
    dt_trainer_destroy(r->trainer);
    dt_param_table_fini(&r->params);
    dt_comm_destroy(r->comm);
}

/* ---- dense algebra ----------------------------------------------------------------------------------------------- */

typedef double matrix[N][N];

static void fisher(matrix f, double diagonal)
{
    memset(f, 0, sizeof(matrix));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            for (int r = 0; r < ROWS; r++) {
                f[i][j] += score[r][i] * score[r][j] / ROWS;
            }
        }
        f[i][i] += diagonal;
    }
}

/* Gaussian elimination; a is symmetric, positive definite. */
static void invert(matrix a, const double *right, double *x)
{
    matrix m;
    memcpy(m, a, sizeof(matrix));
    memcpy(x, right, N * sizeof(*x));
    for (int i = 0; i < N; i++) {
        for (int j = i + 1; j < N; j++) {
            const double factor = m[j][i] / m[i][i];
            for (int k = i; k < N; k++) {
                m[j][k] -= factor * m[i][k];
            }
            x[j] -= factor * x[i];
        }
    }
    for (int i = N - 1; i >= 0; i--) {
        for (int k = i + 1; k < N; k++) {
            x[i] -= m[i][k] * x[k];
        }
        x[i] /= m[i][i];
    }
}

/* Gradient of the mean of ratio a at the start. */
static void slope_of(const float *a, int stride, double *g)
{
    memset(g, 0, N * sizeof(*g));
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < N; i++) {
            g[i] += (double)a[r * stride] * score[r][i] / ROWS;
        }
    }
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < N; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_products_are_those_of_the_fisher_matrix(void **state)
{
    static const double log_std[] = {0, -3, 1.5}; /* curvature of the mean: 1, 400, 0.05 */
    for (int s = 0; s < 6; s++) {
        rig r;
        matrix f;
        double worst = 0;
        open_rig(&r, log_std[s % 3], 0.01, 10);
        fisher(f, damping);
        assert_int_equal(vector_get(r.region.trainer, r.region.origin), DT_OK);
        r.region.move = s < 3 ? 1e-2 : 1; /* of which much is too far: the first product finds out */
        for (uint32_t trial = 0; trial < 8; trial++) {
            double v[N], got[N], error = 0, size = 0;
            for (int i = 0; i < N; i++) {
                v[i] = pow(10, trial) * 1e-4 * (draw(6 + trial, (uint64_t)i) - 0.5); /* its length must not matter */
            }
            assert_int_equal(trust_region_hessian_product(&r.region, v, got), DT_OK);
            for (int i = 0; i < N; i++) {
                const double want = dot(f[i], v);
                error += (got[i] - want) * (got[i] - want);
                size += want * want;
            }
            worst = fmax(worst, sqrt(error / size));
        }
        if (!(worst < 3e-3)) {
            fail_msg("log_std %g: products are off by %g", log_std[s % 3], worst);
        }
        double zero[N] = {0}, image[N];
        assert_int_equal(trust_region_hessian_product(&r.region, zero, image), DT_OK);
        assert_true(dot(image, image) == 0);
        close_rig(&r);
    }
}

/* The step of the dense problem in the samples' own gradients. excess: c as a share of what a step that only raises
 * the cost would add; c_p: c. */
static trust_region_solution dense(double excess, double delta, double *c_p, double *x)
{
    matrix f;
    double g[N], b[N], u[N], w[N];
    fisher(f, damping);
    slope_of(advantage, 1, g);
    slope_of(&cost_advantage[0][0], K, b);
    invert(f, g, u);
    invert(f, b, w);
    *c_p = excess * sqrt(2 * delta * dot(b, w));
    const trust_region_numbers n = {.q = dot(g, u), .r = dot(g, w), .s = dot(b, w), .c = *c_p, .delta = delta};
    const trust_region_solution s = trust_region_solve_dual(&n);
    for (int i = 0; i < N; i++) {
        x[i] = s.along_g * u[i] + s.along_b * w[i];
    }
    return s;
}

static void test_step_is_the_dense_one(void **state)
{
    static const double excess[] = {-0.2, 0.5, -10, 1.5};
    static const int kind[] = {TRUST_REGION_BOUND, TRUST_REGION_BOUND, TRUST_REGION_FREE, TRUST_REGION_RECOVER};
    const double delta = 1e-3; /* small: the surrogates are nearly linear */
    for (int i = 0; i < 4; i++) {
        rig r;
        trust_region_report got;
        double x[N], error = 0, cost = 0, c = 0;
        float now[N];
        open_rig(&r, -0.5, delta, 3 * N);
        const trust_region_solution want = dense(excess[i], delta, &c, x);
        const double over[K] = {c, NAN};
        assert_int_equal(want.kind, kind[i]);
        assert_int_equal(trust_region_step(&r.region, over, 0, &got), DT_OK);
        assert_int_equal(got.solution.kind, want.kind);
        assert_true(fabs(got.solution.lambda / want.lambda - 1) < 0.01);
        assert_true(want.kind != TRUST_REGION_BOUND || fabs(got.solution.nu / want.nu - 1) < 0.01);
        assert_true(got.kl <= delta && got.share > 0.3);
        assert_true(got.kl > 0.4 * got.share * got.share * delta); /* damping takes its part */
        assert_int_equal(vector_get(r.region.trainer, now), DT_OK);
        for (int j = 0; j < N; j++) {
            const double moved = (double)now[j] - (double)r.start[j];
            error += (moved - got.share * x[j]) * (moved - got.share * x[j]);
        }
        assert_true(sqrt(error / dot(x, x)) < 0.01);
        /* what the step does to the cost, by the surrogate itself */
        const float mix[1 + K] = {0, -1, 0};
        assert_int_equal(set(r.region.trainer, "advantage_mix", mix, 1 + K), DT_OK);
        double after = 0, before = 0;
        static const char *const name[] = {"policy_loss"};
        assert_int_equal(losses(r.region.trainer, name, 1, &after), DT_OK);
        assert_int_equal(vector_set(r.region.trainer, r.start), DT_OK);
        assert_int_equal(losses(r.region.trainer, name, 1, &before), DT_OK);
        cost = after - before;
        assert_true(cost <= fmax(-c, 0) + 1e-7);
        assert_true(excess[i] <= 0 ? got.gain > 0 : cost < 0);
        close_rig(&r);
    }
}

/* A second cost, under its limit by nothing, must not rise, and one without a limit may. */
static void test_other_costs_stop_the_search(void **state)
{
    trust_region_report got;
    float now[N];
    for (int is_limited = 0; is_limited < 2; is_limited++) {
        rig r;
        const double over[K] = {is_limited ? 0 : NAN, -10};
        open_rig(&r, 0, 0.01, 10);
        assert_int_equal(trust_region_step(&r.region, over, 1, &got), DT_OK);
        assert_int_equal(got.solution.kind, TRUST_REGION_FREE);
        assert_true(is_limited ? got.share == 0 : got.share > 0);
        assert_int_equal(vector_get(r.region.trainer, now), DT_OK);
        assert_int_equal(memcmp(now, r.start, sizeof(now)) == 0, is_limited);
        assert_true(!is_limited || (got.kl == 0 && got.gain == 0));
        close_rig(&r);
    }
}

/* Advantages of a narrower normal: the divergence grows faster than its quadratic model, the whole step exceeds the
 * limit, and the search goes back. */
static void test_step_keeps_the_divergence(void **state)
{
    static const double max_kl[] = {0.02, 0.2};
    for (int k = 0; k < 2; k++) {
        rig r;
        trust_region_report got;
        const double over[K] = {NAN, NAN};
        float now[N];
        double kl = 0;
        open_rig(&r, 0, max_kl[k], 3 * N);
        r.region.config.damping = 1e-6;
        for (int i = 0; i < ROWS; i++) {
            const double z = (double)action_f[i] - output(r.start, i, CHOICES);
            advantage[i] = (float)(1 - z * z);
        }
        assert_int_equal(trust_region_step(&r.region, over, -1, &got), DT_OK);
        assert_int_equal(got.solution.kind, TRUST_REGION_FREE);
        assert_true(got.share > 0 && got.share < 1 && got.kl <= max_kl[k]);
        assert_int_equal(vector_get(r.region.trainer, now), DT_OK);
        for (int i = 0; i < ROWS; i++) { /* from densities: the mean of ratio - 1 - log ratio (Schulman 2020) */
            double sum = 0, e[CHOICES];
            for (int j = 0; j < CHOICES; j++) {
                sum += e[j] = exp(output(now, i, j));
            }
            const double s = exp((double)now[N - 1]), z = ((double)action_f[i] - output(now, i, CHOICES)) / s;
            const double log_ratio = log(e[action_i[i]] / sum) - 0.5 * z * z - log(s * sqrt(2 * M_PI)) - (double)old[i];
            kl += (exp(log_ratio) - 1 - log_ratio) / ROWS;
        }
        assert_true(fabs(kl - got.kl) < 1e-3 * kl);
        close_rig(&r);
    }
}

/* An advantage that a small shift of the normal raises and a large one lowers: the whole step would lose. */
static void test_step_gains(void **state)
{
    rig r;
    trust_region_report got;
    const double over[K] = {NAN, NAN};
    float now[N];
    double gain = 0;
    open_rig(&r, 0, 1.2, 3 * N);
    r.region.config.damping = 1e-6;
    for (int i = 0; i < ROWS; i++) {
        const double z = (double)action_f[i] - output(r.start, i, CHOICES);
        advantage[i] = (float)(fabs(z) < 1.5 ? z : -0.7 * z); /* odd: the deviation stays */
    }
    assert_int_equal(trust_region_step(&r.region, over, -1, &got), DT_OK);
    assert_true(got.share > 0 && got.share < 1 && got.gain >= 0);
    assert_int_equal(vector_get(r.region.trainer, now), DT_OK);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, e[CHOICES];
        for (int j = 0; j < CHOICES; j++) {
            sum += e[j] = exp(output(now, i, j));
        }
        const double s = exp((double)now[N - 1]), z = ((double)action_f[i] - output(now, i, CHOICES)) / s;
        const double log_ratio = log(e[action_i[i]] / sum) - 0.5 * z * z - log(s * sqrt(2 * M_PI)) - (double)old[i];
        gain += (exp(log_ratio) - 1) * (double)advantage[i] / ROWS;
    }
    assert_true(fabs(gain - got.gain) < 1e-3);
    close_rig(&r);
}

/* As many iterations as parameters solve for a narrow normal, too, whose curvatures differ by orders of magnitude. */
static void test_conjugate_gradients_of_a_narrow_policy(void **state)
{
    rig r;
    trust_region_report got;
    double x[N], error = 0, c = 0;
    float now[N];
    open_rig(&r, -2.5, 1e-3, N);
    const trust_region_solution want = dense(-10, 1e-3, &c, x);
    const double over[K] = {c, NAN};
    assert_int_equal(want.kind, TRUST_REGION_FREE);
    assert_int_equal(trust_region_step(&r.region, over, 0, &got), DT_OK);
    assert_true(fabs(got.solution.lambda / want.lambda - 1) < 0.01);
    assert_int_equal(vector_get(r.region.trainer, now), DT_OK);
    for (int j = 0; j < N; j++) {
        const double moved = (double)now[j] - (double)r.start[j];
        error += (moved - got.share * x[j]) * (moved - got.share * x[j]);
    }
    assert_true(sqrt(error / dot(x, x)) < 0.02);
    close_rig(&r);
}

/* Above its limit a cost that pays is lowered, though the reward falls with it. */
static void test_a_step_towards_the_limit_may_lose(void **state)
{
    rig r;
    trust_region_report got;
    double x[N], c = 0;
    open_rig(&r, -0.5, 1e-3, 3 * N);
    for (int i = 0; i < ROWS; i++) {
        cost_advantage[i][0] = advantage[i] + 0.2F * cost_advantage[i][0];
    }
    const trust_region_solution want = dense(0.9, 1e-3, &c, x);
    assert_true(want.kind == TRUST_REGION_BOUND && want.gain < 0);
    assert_int_equal(trust_region_step(&r.region, (const double[K]){c, NAN}, 0, &got), DT_OK);
    assert_true(got.share > 0 && got.gain < 0);
    close_rig(&r);
}

static void test_no_cost_yet(void **state)
{
    rig r;
    trust_region_report got;
    const double over[K] = {NAN, NAN};
    open_rig(&r, 0, 0.01, 10);
    assert_int_equal(trust_region_step(&r.region, over, -1, &got), DT_OK);
    assert_true(got.solution.kind == TRUST_REGION_FREE && got.share > 0 && got.gain > 0 && got.kl <= 0.01);
    close_rig(&r);
}

static void test_out_of_memory(void **state)
{
    rig r;
    open_rig(&r, 0, 0.01, 10);
    for (int n = 0; n < 12; n++) {
        trust_region t = {0};
        allocations_left = n;
        assert_int_equal(trust_region_init(&t, &host, &api, (dt_train *)(void *)r.trainer, &r.region.config, K),
                         DT_ENOMEM);
        assert_non_null(strstr(dt_error_text(), "17"));
        trust_region_fini(&t);
    }
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_those_of_the_fisher_matrix),
        cmocka_unit_test(test_step_is_the_dense_one),
        cmocka_unit_test(test_other_costs_stop_the_search),
        cmocka_unit_test(test_step_keeps_the_divergence),
        cmocka_unit_test(test_step_gains),
        cmocka_unit_test(test_conjugate_gradients_of_a_narrow_policy),
        cmocka_unit_test(test_a_step_towards_the_limit_may_lose),
        cmocka_unit_test(test_no_cost_yet),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
