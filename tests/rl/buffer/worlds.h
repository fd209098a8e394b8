/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny worlds whose every number is known in advance, a small model that acts in them, and a phase around both: what
 * the tests of rollouts run. All in one plugin, linked in.
 *
 *   counter  one agent; obs "state" "A 3": steps made, seed % 100, the last action (-1: none). Reward 1 + action, cost
 *            "hits" the action, metric "score" ten times the seed % 100. An episode has 3 + seed % 5 steps; it is
 *            terminated when seed % 2 is 0, truncated when it is 1. From above: a road of 3 points, steps made + 17
 *            vehicles, a signal
 *   crowd    4 places; agents come and go by the seed; nodes N, edges E between them, masks that change. From above:
 *            a vehicle for each node; the phase says that its risk is the logit 4 x - 2, the world that it is 1/8
 *   relay    3 places, one action of 3 choices each; obs "state" "A 3": place, steps since the agent came, seed % 100.
 *            The reward is ten times the place + the choice; choice (step % 3) is forbidden, and fails. At step s the
 *            agent at place (4 - s) % 4 leaves, terminated at place 1 and truncated elsewhere; two steps later another
 *            comes. An episode has 5 + seed % 3 steps; an even seed's terminates who is left, an odd one's truncates.
 *            With teams=two places 0 and 2 are of team 1 and place 1 of team 0; with teams=alone nobody is at place 1
 *   herd     4 places; agents come and go by the seed; "own" "A 5": place, steps since the agent came, step, length of
 *            its list, a number of the seed. Lists K (near_ptr "A+1") of 0 to 3 rows at every place, with an agent or
 *            not; at step % 4 == 2 all are empty, with lists=none always. Row i at place a: "near" a + 10 i and the
 *            step, "near_who" the place a + 1 + i, "near_node" the node a + i, each modulo how many there are;
 *            "near_steps" near plus 100 and plus 200. Nodes N are their number and the step. Its controller is herd_net
 *   torque   one agent, one continuous action in [-1, 1], reward its value, 6 steps, then truncated;
 *            torque_open: the same without an upper bound
 *   liar     counter until a step, then what its option `lie` says; "undying": none of its episodes ends, "open": and
 *            it says that they have no end, "ends": all are truncated after 7 steps; "both": who ends is terminated and
 *            truncated, "unsaid": an odd seed's metric is not known, "debt": few seeds' first reward is -1000,
 *            "episode": its metric is the number of the episode that its reset was given, "deserted": no agent acts
 *            in the episodes of odd seeds, "nobody": nor in others.
 *            Once, in any process: "once FILE" crashes, "broken FILE" returns DT_EBROKEN, "drift FILE" crashes and
 *            observes something else from then on, "window FILE" crashes and is lost twice while it starts. "doomed":
 *            crashes in some episodes, each time
 *   steady   liar, declared deterministic
 */
#ifndef DTRAIN_TESTS_ROLLOUT_WORLDS_H
#define DTRAIN_TESTS_ROLLOUT_WORLDS_H

#include "base/err.h"
#include "dtrain/ext/scene.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "plugin/service/stage.h"

extern const dt_plugin worlds_plugin;
extern const dt_component counter_env, liar_env, steady_env, torque_env, torque_open_env; /* counter.c */
extern const dt_component crowd_env;                                                      /* crowd.c */
extern const dt_component relay_env;                                                      /* relay.c */
extern const dt_component herd_env, herd_model;                                           /* herd.c */
extern const dt_component tiny_net, tiny_phase;                                           /* tiny.c */

dt_tensor *herd_input(dt_graph *g);                        /* of its controller: "A 12" */
void counter_roads(const void *self, dt_scene_roads *out); /* crowd has the same */

static inline void no_destroy(void *self) {}

typedef struct tiny { /* state of the phase "tiny", to look at */
    const dt_host *h;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_bind_api *bind;
    const dt_graph_api *graph;
    dt_env *env;
    dt_rollout *r;
    const dt_replay_api *replay;
    dt_replay *p; /* NULL: none */
    float error[4096];
    uint64_t n_errors;
    dt_train *t;
    dt_model *net;
    dt_rollout_report report;
    uint64_t iterations;
    dt_rollout_desc desc;
    int64_t epochs, most;
} tiny;

typedef struct world { /* a stage with a tiny phase in it */
    dt_config *config;
    dt_loader *loader;
    dt_host host;
    dt_comm *comm;
    pthread_mutex_t lock;
    const dt_device_ops *device_ops; /* between open and create; NULL: the CPU */
    dt_device *device;
    uint32_t threads;    /* between open and create; 0: 2 */
    const char *run_dir; /* the same; NULL: none */
    dt_stage *stage;
    tiny *phase;
} world;

/* settings: "key=value", ..., NULL; comm NULL: one rank. Nothing is started; failing asserts. */
void world_open(world *w, const char *const *settings, dt_comm *comm);
dt_status world_create(world *w);                                  /* stage create and start */
void world_start(world *w);                                        /* the same, failing asserts */
void world_begin(world *w, const char *const *settings);           /* opened alone, and started */
void world_begin_env(world *w, const char *env, const char *more); /* with one more setting, or NULL */
void world_begin_env(world *w, const char *env, const char *more); /* with one more setting, or NULL */
void world_collect(const world *w);                                /* a round */
dt_status world_iterate(world *w);                                 /* the phase once */
const dt_samples *world_source(const world *w);                    /* what its rollout collected, or was drawn of it */
/* Its parameters and the report of its last round, to compare. */
void world_keep(const world *w, float *params, dt_rollout_report *r);
void world_close(world *w);

/* With "A 2" as tiny.annotation every round's rows are annotated as "note": their returns of these values, with gamma
 * 0.5 and lambda 0.75, and the values. */
static inline float note_of_row(uint64_t row)
{
    return (float)(row % 7) - 2.5F;
}

typedef struct sample { /* some samples, all fields of them */
    int64_t size[8];
    char *at[64]; /* by field */
} sample;
uint32_t field_of(const world *w, const char *name);
void read_samples(const world *w, const uint64_t *index, uint32_t n, sample *out);
void drop_sample(const world *w, sample *s);
float f32(const world *w, const sample *s, const char *field, int64_t i);
int32_t i32(const world *w, const sample *s, const char *field, int64_t i);

#define assert_done(expr)                                                                                              \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ < 0) {                                                                                                 \
            print_error("%s\n", dt_error_text());                                                                      \
        }                                                                                                              \
        assert_true(st_ >= 0);                                                                                         \
    } while (0)

/* Mean, and deviation with n - 1, of numbers. */
void mean_and_deviation(const double *x, int n, double *mean, double *deviation);
void assert_close(double is, double want); /* within 1e-9 */

#endif
