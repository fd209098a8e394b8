/* SPDX-License-Identifier: Apache-2.0
 *
 * core/export: what is taken out of a recorded graph, its file, the library that acts by it, and what is refused. The
 * graphs are small enough to know their results by hand.
 */
#include <config.h>

#include "dtrain/policy.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"
#include "export/onnx.h"
#include "export/policy_file.h"
#include "engine/graph/graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { D = 2, CHOICES = 3, PLACES = 4, WINDOW = 2 };
enum { F_OBS, F_NEXT, F_HISTORY, F_PRESENT, F_ACTION, F_KEY, N_FIELDS };

static const dt_port field[N_FIELDS] = {{"obs", "A 2", DT_F32, 0},           {"next", "A 1", DT_I32, 0},
                                        {"obs_history", "2 A 2", DT_F32, 0}, {"present", "2 A", DT_F32, 0},
                                        {"action_i", "A 1", DT_I32, 0},      {"row_key", "A", DT_I64, 0}};
static const char *const symbol[] = {"A", "B"};
static const int64_t most[] = {PLACES, 1};
static const int32_t choices[] = {CHOICES};
static const float low[] = {-1}, high[] = {2};
static const float mean[] = {1, 10}, scale[] = {2, 0.5f};
static char path[256];

typedef struct recorder { /* a phase in small: a graph, its parameters, how its fields are fed */
    dt_param_table params;
    dt_graph *graph;
    float *values;
    dt_bundle_field how[N_FIELDS];
    bool is_squashed;
    const float *bias; /* [2], what the step input bias was set to; NULL: it was not */
} recorder;

static const float *step_of(const void *user, const char *name, uint32_t *n_p)
{
    const recorder *r = user;
    *n_p = strcmp(name, "bias") == 0 ? D : 0;
    return *n_p > 0 ? r->bias : NULL;
}

static void begin(recorder *r)
{
    const int64_t w[2] = {CHOICES, D}, bias[1] = {CHOICES};
    memset(r, 0, sizeof(*r));
    assert_int_equal(dt_param_table_add(&r->params, "controller", "w", w, 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&r->params, "controller", "b", bias, 1, DT_INIT_ZERO, 0), DT_OK);
    r->values = dt_alloc_n((size_t)r->params.total, sizeof(float));
    static const float weight[] = {1, 0, 0, 1, 0, 0}; /* logits: x_0, x_1, and what the bias says */
    memcpy(r->values, weight, sizeof(weight));
    for (int f = 0; f < N_FIELDS; f++) {
        r->how[f] = (dt_bundle_field){.kind = DT_BUNDLE_GIVEN, .index_of = f == F_NEXT ? 0 : -1};
    }
    r->how[F_HISTORY].kind = DT_BUNDLE_HISTORY;
    r->how[F_HISTORY].of = F_OBS;
    r->how[F_PRESENT].kind = DT_BUNDLE_PRESENT;
    const dt_graph_desc d = {.symbol = symbol,
                             .n_symbols = 2,
                             .n_fields = N_FIELDS,
                             .field = field,
                             .params = &r->params,
                             .purpose = DT_FOR_ACTING};
    assert_int_equal(dt_graph_create(&d, &r->graph), DT_OK);
}

static void end(recorder *r)
{
    dt_graph_destroy(r->graph);
    dt_param_table_fini(&r->params);
    dt_free(r->values);
}

static dt_tensor *input(recorder *r, int f)
{
    return r->graph->api->input(r->graph, field[f].name);
}

static void output(recorder *r, const char *name, dt_tensor *t)
{
    assert_int_equal(r->graph->api->output(r->graph, name, t), DT_OK);
}

static dt_tensor *heads(recorder *r, dt_tensor *x)
{
    const dt_graph_api *api = r->graph->api;
    return dt_linear(r->graph, x, api->param(r->graph, "controller.w"), api->param(r->graph, "controller.b"));
}

static dt_status make(recorder *r, dt_bundle *out)
{
    const dt_bundle_desc d = {.graph = r->graph,
                              .field = field,
                              .how = r->how,
                              .n_fields = N_FIELDS,
                              .params = &r->params,
                              .values = r->values,
                              .most = most,
                              .actions = {.n_heads = 1,
                                          .n_continuous = 1,
                                          .window = WINDOW,
                                          .choices = choices,
                                          .low = low,
                                          .high = high,
                                          .is_squashed = r->is_squashed},
                              .step = step_of,
                              .user = r};
    return dt_bundle_make(&d, out);
}

static dt_policy *through_file(recorder *r)
{
    static const char *const pair[][2] = {
        {"phase", "a_phase"}, {"environment", "a_world"}, {"settings", "{\"a.b\":\"c\"}"}};
    dt_bundle b;
    dt_policy *p = NULL;
    char why[512] = "";
    assert_int_equal(make(r, &b), DT_OK);
    b.metadata = pair;
    b.n_metadata = 3;
    assert_int_equal(dt_policy_file_write(&b, path), DT_OK);
    dt_bundle_fini(&b);
    const dt_status st = dt_policy_load(path, &p, why, sizeof(why));
    assert_string_equal(why, "");
    assert_int_equal(st, DT_OK);
    return p;
}

/* logits, mean and log_std that follow the first column, with dropout and a loss that an export leaves out */
static dt_policy *plain(recorder *r, bool is_normalised)
{
    begin(r);
    if (is_normalised) {
        r->how[F_OBS].mean = mean;
        r->how[F_OBS].scale = scale;
        r->how[F_OBS].clip = 3;
    }
    dt_graph *g = r->graph;
    dt_tensor *x = dt_dropout(g, input(r, F_OBS), input(r, F_KEY), 0.5);
    dt_tensor *logits = heads(r, x);
    output(r, "logits", logits);
    output(r, "mean", dt_clamp(g, dt_slice(g, x, 0, 1), -INFINITY, 100));
    output(r, "log_std", dt_affine(g, dt_slice(g, x, 0, 1), 0, 0));
    dt_tensor *log_prob = dt_categorical(g, logits, input(r, F_ACTION), 0, NULL, NULL);
    assert_int_equal(g->api->loss(g, "policy", dt_sum(g, log_prob), 1, "A"), DT_OK);
    return through_file(r);
}

typedef struct step { /* rows of a step of the tests */
    float obs[PLACES * D];
    int32_t next[PLACES];
    uint8_t alive[PLACES], truncated[PLACES], mask[PLACES * CHOICES];
    const void *from[N_FIELDS];
    int32_t act_i[PLACES];
    float act_f[PLACES];
    uint8_t report[PLACES];
} step;

static dt_policy_io io_of(step *s, const dt_policy *p)
{
    const dt_policy_info *x = dt_policy_describe(p);
    for (uint32_t i = 0; i < x->n_obs; i++) {
        s->from[i] = strcmp(x->obs[i].name, "next") == 0 ? (const void *)s->next : s->obs;
    }
    memset(s->alive, 1, sizeof(s->alive));
    memset(s->mask, 1, sizeof(s->mask));
    return (dt_policy_io){.struct_size = sizeof(dt_policy_io),
                          .n_places = PLACES,
                          .obs = s->from,
                          .alive = s->alive,
                          .truncated = s->truncated,
                          .mask = s->mask,
                          .act_i = s->act_i,
                          .act_f = s->act_f,
                          .report = s->report};
}

static void act(dt_policy *p, const dt_policy_io *io)
{
    char why[512] = "";
    const dt_status st = dt_policy_act(p, io, why, sizeof(why));
    assert_string_equal(why, "");
    assert_int_equal(st, DT_OK);
}

static void refused(dt_policy *p, const dt_policy_io *io, dt_status want, const char *piece)
{
    char why[512] = "";
    assert_int_equal(dt_policy_act(p, io, why, sizeof(why)), want);
    if (strstr(why, piece) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", why, piece);
    }
    assert_int_equal(dt_policy_act(p, io, NULL, 0), want);
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

static void test_describe(void **state)
{
    recorder r;
    dt_policy *p = plain(&r, false);
    const dt_policy_info *x = dt_policy_describe(p);
    assert_string_equal(x->phase, "a_phase");
    assert_string_equal(x->environment, "a_world");
    assert_int_equal(x->n_settings, 1);
    assert_string_equal(x->settings[0].key, "a.b");
    assert_string_equal(x->settings[0].value, "c");
    assert_int_equal(x->n_obs, 1); /* neither keys nor actions */
    assert_string_equal(x->obs[0].dims, "A 2");
    assert_int_equal(x->n_choices, CHOICES);
    assert_int_equal(x->places, PLACES);
    assert_true(x->low[0] == -1 && x->high[0] == 2);
    dt_policy_free(p);
    end(&r);
}

/* Rows that do not act are left out and get zeros; bounds and masks hold. */
static void test_act(void **state)
{
    recorder r;
    dt_policy *p = plain(&r, false);
    step s = {.obs = {1, 2, 5, 4, -7, -8, 0.5f, -1}, .act_i = {9, 9, 9, 9}};
    dt_policy_io io = io_of(&s, p);
    s.alive[1] = 0;
    s.mask[1] = 0; /* place 0 may not choose 1 */
    act(p, &io);
    assert_memory_equal(s.act_i, ((int32_t[]){0, 0, 2, 0}), sizeof(s.act_i));
    assert_memory_equal(s.act_f, ((float[]){1, 0, -1, 0.5f}), sizeof(s.act_f));
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *logits = dt_policy_output(p, "logits", dim, &rank);
    assert_int_equal(rank, 2);
    assert_int_equal(dim[0], 3);
    assert_true(logits[CHOICES] == -7); /* the second row is place 2 */
    assert_null(dt_policy_output(p, "nothing", dim, &rank));

    memset(s.alive, 0, sizeof(s.alive)); /* nobody */
    act(p, &io);
    assert_memory_equal(s.act_i, ((int32_t[]){0, 0, 0, 0}), sizeof(s.act_i));
    assert_non_null(dt_policy_output(p, "logits", dim, &rank));
    assert_int_equal(dim[0], 0);

    io.alive = io.truncated = io.mask = NULL; /* all agents, everything */
    io.report = NULL;
    act(p, &io);
    assert_memory_equal(s.act_i, ((int32_t[]){1, 0, 2, 0}), sizeof(s.act_i));
    dt_policy_free(p);
    end(&r);
}

/* (x - mean) * scale within +- 3 comes before the first op. */
static void test_normalised(void **state)
{
    recorder r;
    dt_policy *p = plain(&r, true);
    step s = {.obs = {1.25f, 12, 100, -100, 0, 10, 1, 10}};
    dt_policy_io io = io_of(&s, p);
    act(p, &io);
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *logits = dt_policy_output(p, "logits", dim, &rank);
    const float want[] = {0.5f, 1, 0, 3, -3, 0, -2, 0, 0, 0, 0, 0};
    for (int i = 0; i < PLACES * CHOICES; i++) {
        assert_true(logits[i] == want[i]);
    }
    dt_policy_free(p);
    end(&r);
}

/* A step input is exported as it was set last. */
static void test_step_inputs(void **state)
{
    static const float bias[] = {0.5f, -4};
    recorder r;
    begin(&r);
    r.bias = bias;
    dt_graph *g = r.graph;
    dt_tensor *x = dt_add(g, input(&r, F_OBS), g->api->step_input(g, "bias", D));
    output(&r, "logits", heads(&r, x));
    output(&r, "mean", dt_slice(g, x, 0, 1));
    output(&r, "log_std", dt_affine(g, dt_slice(g, x, 0, 1), 0, 0));
    dt_policy *p = through_file(&r);
    step s = {.obs = {1, 2, 3, 4, 5, 6, 7, 8}};
    dt_policy_io io = io_of(&s, p);
    act(p, &io);
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *logits = dt_policy_output(p, "logits", dim, &rank);
    for (int i = 0; i < PLACES; i++) {
        assert_true(logits[CHOICES * i] == s.obs[D * i] + 0.5f && logits[CHOICES * i + 1] == s.obs[D * i + 1] - 4);
    }
    dt_policy_free(p);
    end(&r);
}

/* A shield cuts choices and moves actions, and is overruled where it permits nothing. */
static void test_shield(void **state)
{
    recorder r;
    begin(&r);
    dt_graph *g = r.graph;
    dt_tensor *x = input(&r, F_OBS), *first = dt_slice(g, x, 0, 1), *second = dt_slice(g, x, 1, 1);
    dt_tensor *const allow[] = {second, dt_affine(g, second, -1, 0), second};
    output(&r, "logits", dt_affine(g, dt_concat(g, allow, 3), 0, 0));
    output(&r, "mean", first);
    output(&r, "log_std", dt_affine(g, first, 0, 0));
    output(&r, "allow", dt_concat(g, allow, 3));
    output(&r, "low", second);
    output(&r, "high", dt_affine(g, second, 0, 0.5));
    dt_policy *p = through_file(&r);
    /* may: 0 and 2; 1; nothing; 0 and 2, of which the environment has none. actions: within 0.25 to 0.5; -1 to 0.5;
     * 0 to 0.5; nothing, so that the policy's own is taken */
    step s = {.obs = {0, 0.25f, -0.5f, -1, 9, 0, 1.5f, 1}};
    dt_policy_io io = io_of(&s, p);
    s.mask[3 * CHOICES] = s.mask[3 * CHOICES + 2] = 0;
    act(p, &io);
    assert_memory_equal(s.act_i, ((int32_t[]){0, 1, 0, 1}), sizeof(s.act_i));
    assert_memory_equal(s.act_f, ((float[]){0.25f, -0.5f, 0.5f, 1.5f}), sizeof(s.act_f));
    const uint8_t want[] = {DT_POLICY_CHANGED, DT_POLICY_CHANGED, DT_POLICY_CHANGED | DT_POLICY_INFEASIBLE,
                            DT_POLICY_INFEASIBLE};
    assert_memory_equal(s.report, want, sizeof(want));
    dt_policy_free(p);
    end(&r);
}

/* Squashed into the bounds, -1 and 2. */
static void test_squash(void **state)
{
    recorder r;
    begin(&r);
    dt_graph *g = r.graph;
    dt_tensor *x = input(&r, F_OBS), *first = dt_slice(g, x, 0, 1);
    dt_tensor *const all[] = {first, first, first};
    output(&r, "logits", dt_concat(g, all, 3));
    output(&r, "mean", first);
    output(&r, "log_std", dt_affine(g, first, 0, 0));
    r.is_squashed = true;
    dt_bundle b;
    assert_int_equal(make(&r, &b), DT_OK);
    assert_int_equal(dt_onnx_write(&b, path), DT_OK);
    dt_bundle_fini(&b);
    (void)unlink(path);
    dt_policy *p = through_file(&r);
    step s = {.obs = {0, 0, 1, 0, -50, 0, 0.25f, 0}};
    const dt_policy_io io = io_of(&s, p);
    act(p, &io);
    for (int i = 0; i < PLACES; i++) {
        assert_true(fabsf(s.act_f[i] - (0.5f + 1.5f * tanhf(s.obs[2 * i]))) < 1e-6f);
    }
    assert_true(s.act_f[2] == -1);
    dt_policy_free(p);
    end(&r);
}

/* Indices of places count rows; who was truncated has one, who is gone has not. */
static void test_index(void **state)
{
    recorder r;
    begin(&r);
    dt_graph *g = r.graph;
    dt_tensor *x = dt_merge(g, dt_gather(g, input(&r, F_OBS), input(&r, F_NEXT)));
    output(&r, "logits", heads(&r, x));
    output(&r, "mean", dt_slice(g, x, 0, 1));
    output(&r, "log_std", dt_affine(g, dt_slice(g, x, 0, 1), 0, 0));
    dt_policy *p = through_file(&r);
    step s = {.obs = {0.1f, 0, 0.2f, 0, 0.3f, 0, 0.4f, 0}, .next = {3, 0, 1, 2}};
    dt_policy_io io = io_of(&s, p);
    s.alive[1] = s.alive[2] = 0;
    s.truncated[2] = 1;
    act(p, &io);
    assert_memory_equal(s.act_f, ((float[]){0.4f, 0, 0, 0.3f}), sizeof(s.act_f));
    s.next[3] = 1; /* gone */
    act(p, &io);
    assert_memory_equal(s.act_f, ((float[]){0.4f, 0, 0, 0}), sizeof(s.act_f));
    s.next[3] = 4;
    refused(p, &io, DT_EINVAL, "observation next: element 3 is 4, expected -1 to 3");
    s.next[3] = -2;
    refused(p, &io, DT_EINVAL, "is -2");
    dt_policy_free(p);
    end(&r);
}

/* The observation before this one, zeros for who has just come; normalised where there is one. */
static void test_memory(void **state)
{
    recorder r;
    begin(&r);
    r.how[F_OBS].mean = mean;
    r.how[F_OBS].scale = scale;
    dt_graph *g = r.graph;
    dt_tensor *x = dt_step(g, input(&r, F_HISTORY), 0);
    output(&r, "logits", heads(&r, x));
    output(&r, "mean", dt_affine(g, dt_slice(g, x, 0, 1), 0.125, 0));
    output(&r, "log_std", dt_affine(g, dt_slice(g, x, 0, 1), 0, 0));
    dt_policy *p = through_file(&r);
    assert_int_equal(dt_policy_describe(p)->n_obs, 1);
    assert_int_equal(dt_policy_describe(p)->window, WINDOW);
    step s = {.obs = {2, 0, 3, 0, 4, 0, 5, 0}};
    dt_policy_io io = io_of(&s, p);
    s.alive[3] = 0;
    act(p, &io);
    assert_memory_equal(s.act_f, ((float[]){0, 0, 0, 0}), sizeof(s.act_f));
    for (int a = 0; a < PLACES; a++) {
        s.obs[a * D] += 1;
    }
    s.alive[3] = 1;
    s.alive[0] = 0;
    act(p, &io); /* place 3 has just come */
    assert_memory_equal(s.act_f, ((float[]){0, 0.5f, 0.75f, 0}), sizeof(s.act_f));
    s.alive[0] = 1;
    act(p, &io); /* place 0 holds a new agent */
    assert_memory_equal(s.act_f, ((float[]){0, 0.75f, 1, 1.25f}), sizeof(s.act_f));
    dt_policy_reset(p);
    act(p, &io);
    assert_memory_equal(s.act_f, ((float[]){0, 0, 0, 0}), sizeof(s.act_f));
    dt_policy_free(p);
    end(&r);
}

static void test_steady(void **state)
{
    recorder r;
    dt_policy *p = plain(&r, true);
    step s = {.obs = {1, 2, 3, 4, 5, 6, 7, 8}};
    dt_policy_io io = io_of(&s, p);
    act(p, &io);
    const uint64_t before = dt_alloc_calls();
    for (int i = 0; i < 100; i++) {
        s.alive[i % PLACES] ^= 1;
        act(p, &io);
    }
    assert_int_equal(dt_alloc_calls(), before);
    dt_policy_free(p);
    end(&r);
}

static void test_refused_steps(void **state)
{
    recorder r;
    dt_policy *p = plain(&r, false);
    step s = {.obs = {0}};
    dt_policy_io io = io_of(&s, p);
    io.n_places = PLACES + 1;
    refused(p, &io, DT_EINVAL, "n_places is 5, the policy was made for at most 4");
    io = io_of(&s, p);
    io.struct_size = 8;
    refused(p, &io, DT_EINVAL, "struct_size is 8");
    io = io_of(&s, p);
    io.act_f = NULL;
    refused(p, &io, DT_EINVAL, "act_f");
    io = io_of(&s, p);
    s.from[0] = NULL;
    refused(p, &io, DT_EINVAL, "observation obs is missing");
    io = io_of(&s, p);
    s.obs[2] = NAN;
    refused(p, &io, DT_EDIVERGED, "place 1");
    s.obs[2] = 0;
    memset(s.mask, 0, CHOICES);
    refused(p, &io, DT_EDIVERGED, "allows no choice");
    dt_policy_free(p);
    end(&r);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void unreadable(dt_status want, const char *piece)
{
    dt_policy *p = NULL;
    char why[512] = "";
    assert_int_equal(dt_policy_load(path, &p, why, sizeof(why)), want);
    assert_null(p);
    if (strstr(why, piece) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", why, piece);
    }
}

static void write_text(const char *text)
{
    const float x[] = {1, 2};
    const char *const pair[][2] = {{"dtrain.export", text}};
    const dt_st_tensor t = {.name = "controller.w", .dtype = DT_ST_F32, .n_dims = 1, .dim = {2}, .data = x};
    assert_int_equal(dt_safetensors_write_sealed(path, &t, 1, pair, text != NULL ? 1 : 0), DT_OK);
}

static void test_refused_files(void **state)
{
    (void)unlink(path);
    unreadable(DT_ENOTFOUND, path);
    assert_int_equal(dt_fs_write_atomic(path, "no header at all", 16), DT_OK);
    unreadable(DT_EDATA, path);
    write_text(NULL);
    unreadable(DT_EDATA, "not a file of dtrain export");
    write_text("{\"version\":3}");
    unreadable(DT_EDATA, "version 3 of the format; this library reads versions 1 and 2");
    write_text("{\"version\":1}");
    unreadable(DT_EDATA, "no graph with outputs");
    write_text("{\"version\":1,\"symbols\":[{\"name\":\"A\",\"most\":4}],\"inputs\":[{\"name\":\"x\",\"dims\":\"A 2\","
               "\"dtype\":\"f32\",\"kind\":\"given\"}],\"tensors\":[\"controller.v\"]}");
    unreadable(DT_EDATA, "tensor \"controller.v\" is not in the file");
#define HEAD                                                                                                           \
    "{\"version\":1,\"symbols\":[{\"name\":\"A\",\"most\":4}],\"inputs\":[{\"name\":\"x\",\"dims\":\"A 2\",\"dtype\":" \
    "\"f32\",\"kind\":\"given\"}],\"tensors\":[\"controller.w\"],\"nodes\":["
    write_text(HEAD "{\"op\":\"conv\",\"in\":[0]}]}");
    unreadable(DT_EDATA, "op \"conv\" is unknown to this version");
    write_text(HEAD "{\"op\":\"x\\n\\u001b[2J\",\"in\":[0]}]}"); /* the file drives no terminal */
    unreadable(DT_EDATA, "op \"x??[2J\" is unknown to this version");
    write_text(HEAD "{\"op\":\"affine\",\"in\":[2]}]}");
    unreadable(DT_EDATA, "2 is not a whole number in [0, 1]");
    write_text(HEAD "{\"op\":\"linear\",\"in\":[0,1]}]}");
    unreadable(DT_EDATA, "node 0: linear");
    write_text(HEAD "{\"op\":\"affine\",\"in\":[0],\"f\":[2]}],\"outputs\":[{\"name\":\"y\",\"value\":2}]}");
    unreadable(DT_EUNSUPPORTED, "without actions");
    write_text(HEAD
               "{\"op\":\"affine\",\"in\":[0],\"f\":[2]}],\"outputs\":[{\"name\":\"y\",\"value\":2}],\"heads\":[2]}");
    unreadable(DT_EDATA, "\"heads\" comes after the nodes");
}

/* Ops along an axis and of two tensors, in both formats. tests/peers/export_onnx.py has onnxruntime compute what is
 * left behind under DT_KEEP_ONNX, and compares with the formula that is written out below. */
static void test_axis_ops(void **state)
{
    recorder r;
    begin(&r);
    dt_graph *g = r.graph;
    dt_tensor *x = input(&r, F_OBS);
    dt_tensor *size = dt_sqrt(g, dt_affine(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, x, x)), 1, 1));
    dt_tensor *y = dt_div(g, x, size);
    dt_tensor *outer = dt_matmul(g, dt_split(g, x, 0), dt_split(g, y, 1), 0, 0); /* [A,D,D] */
    dt_tensor *z = dt_add(g, dt_stop(g, dt_reduce(g, DT_REDUCE_MEAN, outer)), dt_mul(g, dt_fill(g, x, 0.5), x));
    output(&r, "logits", heads(&r, z));
    output(&r, "mean", dt_slice(g, z, 0, 1));
    output(&r, "log_std", dt_affine(g, dt_slice(g, z, 0, 1), 0, 0));
    dt_bundle b;
    assert_int_equal(make(&r, &b), DT_OK);
    const char *keep = getenv("DT_KEEP_ONNX");
    (void)unlink(path);
    assert_int_equal(dt_onnx_write(&b, keep != NULL ? keep : path), DT_OK);
    dt_bundle_fini(&b);
    dt_policy *p = through_file(&r);
    step s = {.obs = {1, 2, 5, 4, -7, -8, 0.5f, -1}};
    dt_policy_io io = io_of(&s, p);
    act(p, &io);
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *logits = dt_policy_output(p, "logits", dim, &rank); /* the first two are z, by the weights of begin */
    for (int i = 0; i < PLACES; i++) {
        const double a = s.obs[2 * i], c = s.obs[2 * i + 1], length = sqrt(a * a + c * c + 1);
        assert_true(fabs(logits[CHOICES * i] - ((a + c) / 2 * a / length + a / 2)) < 1e-5);
        assert_true(fabs(logits[CHOICES * i + 1] - ((a + c) / 2 * c / length + c / 2)) < 1e-5);
    }
    dt_policy_free(p);
    end(&r);
}

/* Ops of maps and of choices, likewise, under DT_KEEP_ONNX_MAPS: a convolution of [A,2,2,2], its normal form, the
 * greatest numbers of a row, columns by running statistics. */
static void test_map_ops(void **state)
{
    enum { SIDE = 2, COLUMNS = SIDE + 1, OUT = 3, FLAT = 8, KERNEL = 12, SEEN = SIDE * COLUMNS * OUT };
    static const double number[KERNEL] = {0.5, -1, 2, 0.25, -0.75, 1.5, -0.5, 1, 3, -2, 0.125, -0.25};
    recorder r;
    begin(&r);
    dt_graph *g = r.graph;
    dt_tensor *x = input(&r, F_OBS), *again[] = {x, x, x, x}, *index = NULL;
    dt_tensor *row = dt_constant_row(g, number, FLAT), *flat = dt_mul(g, dt_concat(g, again, 4), row); /* [A,8] */
    dt_tensor *map = dt_split(g, dt_split(g, flat, SIDE), SIDE);
    dt_tensor *kernel = dt_split(g, dt_split(g, dt_split(g, dt_constant_row(g, number, KERNEL), OUT), 1), SIDE);
    dt_tensor *seen = dt_conv2d(g, map, kernel, NULL, 1, 0, 1, 1); /* [A,2,3,3] */
    dt_tensor *gamma = dt_constant_row(g, number, OUT), *normal = dt_group_norm_maps(g, seen, 1, gamma, gamma);
    dt_tensor *top = dt_top_k(g, flat, 2, &index);
    dt_tensor *wave = dt_select(g, dt_compare(g, DT_BIN_LESS, flat, row), dt_sin(g, flat), dt_cos(g, dt_abs(g, flat)));
    dt_tensor *chosen[] = {top, dt_cast(g, index), dt_add(g, wave, dt_one_hot(g, index, 1, FLAT)),
                           dt_reduce_columns(g, DT_REDUCE_MIN, flat)};
    output(&r, "logits", heads(&r, x));
    output(&r, "mean", dt_slice(g, x, 0, 1));
    output(&r, "log_std", dt_slice(g, x, 1, 1));
    dt_tensor *above = dt_merge(g, dt_slice(g, x, 0, 1)); /* rows with x_0 > 0 */
    output(&r, "columns", dt_batch_norm(g, flat, row, row, row, dt_mul(g, row, row), above, 0.1, 0.5));
    output(&r, "seen", dt_merge(g, dt_merge(g, seen)));
    output(&r, "normal", dt_merge(g, dt_merge(g, dt_permute_dims(g, normal, 312))));
    output(&r, "chosen", dt_concat(g, chosen, 4));
    dt_bundle b;
    assert_int_equal(make(&r, &b), DT_OK);
    const char *keep = getenv("DT_KEEP_ONNX_MAPS");
    (void)unlink(path);
    assert_int_equal(dt_onnx_write(&b, keep != NULL ? keep : path), DT_OK);
    dt_bundle_fini(&b);
    dt_policy *p = through_file(&r);
    step s = {.obs = {1, 2, 5, 4, -7, -8, 0.5f, -1}};
    dt_policy_io io = io_of(&s, p);
    act(p, &io);
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *y = dt_policy_output(p, "seen", dim, &rank);
    for (int i = 0; i < PLACES * SEEN; i++) {
        const int m = i % OUT, q = i / OUT % COLUMNS, h = i / (OUT * COLUMNS) % SIDE, place = i / SEEN;
        double sum = 0;
        for (int j = 0; j < SIDE; j++) {
            for (int c = 0; c < SIDE && q + j >= 1 && q + j <= SIDE; c++) {
                const int at = (h * SIDE + q + j - 1) * SIDE + c;
                sum += number[at] * s.obs[SIDE * place + at % SIDE] * number[(m * SIDE + j) * SIDE + c];
            }
        }
        assert_true(fabs(y[i] - sum) < 1e-5);
    }
    y = dt_policy_output(p, "columns", dim, &rank);
    for (int i = 0; i < PLACES * FLAT; i++) {
        const double n = number[i % FLAT], from = s.obs[i / FLAT * D + i % D] * n - n;
        const double want = s.obs[i / FLAT * D] > 0 ? n * from / sqrt(n * n + 0.5) + n : 0;
        assert_true(fabs(y[i] - want) < 1e-5);
    }
    dt_policy_free(p);
    end(&r);
}

/* What would be asked of a phase from step to step, and ops that ONNX has not; nothing is left half written. */
static void test_refused_exports(void **state)
{
    recorder r;
    dt_bundle b;
    begin(&r);
    dt_graph *g = r.graph;
    output(&r, "logits", dt_mul(g, input(&r, F_OBS), g->api->step_input(g, "mood", D)));
    assert_int_equal(make(&r, &b), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "step input mood"));
    end(&r);

    begin(&r);
    g = r.graph;
    dt_tensor *logits = heads(&r, input(&r, F_OBS));
    output(&r, "logits", logits);
    output(&r, "log_prob", dt_categorical(g, logits, input(&r, F_ACTION), 0, NULL, NULL));
    assert_int_equal(make(&r, &b), DT_OK);
    (void)unlink(path);
    assert_int_equal(dt_onnx_write(&b, path), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "op categorical has no equivalent in ONNX"));
    assert_false(dt_fs_is_file(path));
    assert_int_equal(dt_policy_file_write(&b, path), DT_OK); /* the other format has every op */
    dt_bundle_fini(&b);
    end(&r);
}

static int set_up(void **state)
{
    snprintf(path, sizeof(path), "test-policy-%d.safetensors", (int)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe),      cmocka_unit_test(test_act),
        cmocka_unit_test(test_normalised),    cmocka_unit_test(test_step_inputs),
        cmocka_unit_test(test_shield),        cmocka_unit_test(test_squash),
        cmocka_unit_test(test_index),         cmocka_unit_test(test_memory),
        cmocka_unit_test(test_steady),        cmocka_unit_test(test_refused_steps),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_axis_ops),
        cmocka_unit_test(test_map_ops),       cmocka_unit_test(test_refused_exports),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
