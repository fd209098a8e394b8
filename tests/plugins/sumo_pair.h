/* SPDX-License-Identifier: Apache-2.0
 *
 * env_sumo on the net of two signals that netconvert makes in the folder of a test: an environment that is open,
 * episodes played by random actions, and the texts of that folder.
 */
#ifndef DTRAIN_TESTS_PLUGINS_SUMO_PAIR_H
#define DTRAIN_TESTS_PLUGINS_SUMO_PAIR_H

#include "sumo_folder.h"

enum { AGENTS = 2, PHASES = 2, ROW = 17, MAX_ROW = 256, MAX_NODES = 300, BEGIN = 100, END = 400 };
enum { SIGNAL, PHASE_TABLE, NEIGHBOUR, NODES, ROWPTR, COL, EDGES, AGENT_NODE };
enum {
    STRICT,
    RESCO,
    TRIP,
    WAITING,
    LOSS,
    DEPART,
    QUEUE,
    DEMAND,
    FINISHED,
    NEVER,
    CONFLICT = 14,
    LONGEST = 15,
    STUCK = 17,
    TRAVEL = 20
};

typedef struct rig {
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs[9];
    float signal[AGENTS * MAX_ROW], phases[AGENTS * PHASES * ROW], service[AGENTS * PHASES * 5], node[MAX_NODES * 9],
        edge[MAX_NODES * 16 * 4];
    int32_t neighbour[AGENTS * 4], rowptr[MAX_NODES + 1], col[MAX_NODES * 16], agent_node[AGENTS], action[AGENTS];
    int64_t size[2];
    uint8_t alive[AGENTS], mask[AGENTS * PHASES], terminated[AGENTS], truncated[AGENTS];
    float reward[AGENTS], cost[AGENTS * 4];
    double metric[DT_ENV_MAX_METRICS], episode_return, costs[4];
} rig;

/* DT_OK or what create said; settings follow sumocfg=<scenario> */
static inline dt_status rig_try(rig *r, const char *scenario, const char *const *more)
{
    static char cfg[2 * TEXT];
    const char *set[16] = {cfg};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_FEATURES, &features);
    r->component = mock_load("plugins", "env_sumo", "env_sumo");
    assert_non_null(r->component);
    snprintf(cfg, sizeof(cfg), "sumocfg=%s/%s", folder, scenario);
    for (int i = 0; more != NULL && more[i] != NULL; i++) {
        set[i + 1] = more[i];
    }
    r->ops = r->component->ops;
    r->config = mock_config(r->component, set);
    r->self = calloc(1, r->component->state_size);
    const dt_status st = r->component->check(&r->host.host, r->config);
    return st != DT_OK ? st : r->ops->create(r->self, &r->host.host, r->config);
}

static inline void rig_close(rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

/* what it gives has places to go to */
static inline void rig_lend(rig *r)
{
    void *const obs[9] = {r->signal, r->phases, r->neighbour,  r->node,   r->rowptr,
                          r->col,    r->edge,   r->agent_node, r->service};
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    memcpy(r->obs, obs, sizeof(obs));
    r->obs[r->spec.n_obs - 1] = r->service;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs,
                        .size = r->size,
                        .alive = r->alive,
                        .mask = r->mask,
                        .reward = r->reward,
                        .cost = r->cost,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
}

static inline void rig_open(rig *r, const char *const *more)
{
    if (rig_try(r, "pair.sumocfg", more) != DT_OK) {
        print_error("%s\n", r->host.message);
    }
    assert_int_equal(r->host.status, DT_OK);
    rig_lend(r);
    assert_int_equal(r->spec.n_agents, AGENTS);
    assert_int_equal(r->spec.choices[0], PHASES);
}

static inline void rig_clear(rig *r)
{
    memset(r->signal, 0, sizeof(r->signal));
    memset(r->phases, 0, sizeof(r->phases));
    memset(r->service, 0, sizeof(r->service));
    memset(r->reward, 0, sizeof(r->reward));
    memset(r->cost, 0, sizeof(r->cost));
    memset(r->mask, 1, sizeof(r->mask));
    memset(r->alive, 0, sizeof(r->alive));
    memset(r->terminated, 0, sizeof(r->terminated));
    memset(r->truncated, 0, sizeof(r->truncated));
}

static inline void rig_reset(rig *r, uint64_t seed)
{
    rig_clear(r);
    r->io.act_i = NULL;
    r->episode_return = 0;
    memset(r->costs, 0, sizeof(r->costs));
    if (r->ops->reset(r->self, &r->io, seed) != DT_OK) {
        print_error("%s\n", r->host.message);
        assert_true(false);
    }
    assert_true(r->alive[0] == 1 && r->alive[1] == 1);
}

static inline dt_status rig_act(rig *r, int32_t first, int32_t second)
{
    rig_clear(r);
    r->action[0] = first;
    r->action[1] = second;
    r->io.act_i = r->action;
    return r->ops->step(r->self, &r->io);
}

static inline bool rig_step(rig *r, int32_t first, int32_t second)
{
    const dt_status st = rig_act(r, first, second);
    if (st < 0) {
        print_error("%s\n", r->host.message);
    }
    assert_true(st == DT_OK || st == DT_DONE);
    for (int k = 0; k < AGENTS; k++) {
        assert_int_equal(r->terminated[k], 0);
        assert_int_equal(r->truncated[k], st == DT_DONE);
        assert_int_equal(r->alive[k], st == DT_OK);
        assert_true(isfinite(r->reward[k]));
        r->episode_return += (double)r->reward[k];
        for (int c = 0; c < 4; c++) {
            r->costs[c] += (double)r->cost[k * 4 + c];
        }
    }
    return st == DT_DONE;
}

/* one episode under random actions that the mask allows; a number that differs where any bit differs */
static inline uint64_t play(rig *r, uint64_t seed, uint64_t actions, int *n_steps)
{
    dt_random random;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    bool is_over = false;
    dt_random_init(&random, actions, 0);
    *n_steps = 0;
    for (rig_reset(r, seed); !is_over; ++*n_steps) {
        int32_t action[AGENTS];
        for (int k = 0; k < AGENTS; k++) {
            action[k] = (int32_t)dt_random_below(&random, PHASES);
            if (r->mask[k * PHASES + action[k]] == 0) {
                action[k] = 1 - action[k];
            }
        }
        is_over = rig_step(r, action[0], action[1]);
        const struct {
            const void *p;
            size_t n;
        } seen[] = {{r->signal, sizeof(r->signal)},     {r->phases, sizeof(r->phases)},
                    {r->reward, sizeof(r->reward)},     {r->cost, sizeof(r->cost)},
                    {r->node, (size_t)r->size[0] * 36}, {r->col, (size_t)r->size[1] * 4},
                    {r->edge, (size_t)r->size[1] * 16}};
        for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
            for (size_t b = 0; b < seen[i].n; b++) {
                hash = (hash ^ ((const uint8_t *)seen[i].p)[b]) * UINT64_C(1099511628211);
            }
        }
    }
    for (size_t b = 0; b < r->spec.n_metrics * sizeof(double); b++) {
        hash = (hash ^ ((const uint8_t *)r->metric)[b]) * UINT64_C(1099511628211);
    }
    return hash;
}

/* ---- the net ----------------------------------------------------------------------------------------------------- */

static inline char *read_text(const char *name)
{
    char path[2 * TEXT];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 22);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 22) - 1, f) > 0);
    fclose(f);
    return text;
}

static inline void write_text(const char *name, const char *text)
{
    char path[2 * TEXT];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The value of an attribute of the element that begins there; out: 64 bytes. */
static inline void attribute(const char *element, const char *name, char *out)
{
    char key[32];
    snprintf(key, sizeof(key), " %s=\"", name);
    const char *at = strstr(element, key);
    assert_non_null(at);
    at += strlen(key);
    snprintf(out, 64, "%.*s", (int)strcspn(at, "\""), at);
}

static inline int make_net(void **state)
{
    const char *source = getenv("DT_SRCDIR");
    source = source != NULL ? source : ".";
    return shell("cp %s/tests/fixtures/sumo/pair.* '%s' && chmod u+w '%s'/* && cd '%s' && netconvert -n pair.nod.xml "
                 "-e pair.edg.xml -o pair.net.xml --no-turnarounds --xml-validation never >netconvert.log 2>&1",
                 source, folder, folder, folder);
}

#endif
