/* SPDX-License-Identifier: Apache-2.0 */
#include "imagine.h"

#include "dtrain/svc/graph.h"

#include <math.h>
#include <string.h>

enum {
    SPEED,
    GAP,
    LEADER_SPEED,
    FOLLOWER_GAP,
    FOLLOWER_SPEED,
    DESIRED_SPEED,
    DISTANCE_TO_END,
    ACCEL,
    CAR_FOLLOWING,
    EGO
};
#define FAR_M 200.0 /* value of gaps and distances of ego without an object */
#define SHARP 1e3   /* slope of a step from 0 to 1 */

dt_status imagine_check(const dt_host *h, const imagine_config *c, const dt_wiring *w, const char *phase)
{
    if (c->weight <= 0) {
        return DT_OK;
    }
    if (w->F == 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.imagine_weight = %g: branches use the predictions of a world model; set foresight = "
                         "true and models.world, or imagine_weight = 0",
                         phase, c->weight);
    }
    if (c->is_scaled) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.imagine_weight = %g: branches use metres and seconds; set normalise_obs = false", phase,
                         c->weight);
    }
    const dt_env_spec *e = w->spec;
    if (strcmp(w->own->name, "ego") != 0 || strcmp(w->own->dims, "A 9") != 0 || e->n_continuous != 1 ||
        e->n_heads != 0) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "%s.imagine_weight = %g: branches require agents that see \"ego\" [A 9] and choose only an "
                         "acceleration; those of %s see \"%s\" [%s] and have %u continuous and %u discrete actions",
                         phase, c->weight, w->env_id, w->own->name, w->own->dims, e->n_continuous, e->n_heads);
    }
    const double steps = e->step_s * 1000 / (double)w->dt_ms, all = steps * (double)c->steps;
    if (steps < 1 - 1e-6 || fabs(steps - round(steps)) > 1e-6 || all > (double)w->F + 1e-6) {
        return DT_FAIL_H(
            h, DT_ECONFIG,
            "%s.imagine_steps = %lld: %lld actions of %g s must end within the horizon of %lld steps of %lld "
            "ms, each a whole number of them",
            phase, (long long)c->steps, (long long)c->steps, e->step_s, (long long)w->F, (long long)w->dt_ms);
    }
    return DT_OK;
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

typedef struct branch {
    dt_tensor *ego;   /* [A,9] */
    dt_tensor *alive; /* [A,1], 1 until a collision with the leader */
} branch;

static dt_tensor *slice_column(dt_graph *g, dt_tensor *x, int64_t k)
{
    return dt_slice(g, x, k, 1);
}

/* `yes` where the mask is 1, `no` where it is 0 */
static dt_tensor *select_where(dt_graph *g, dt_tensor *is, dt_tensor *yes, dt_tensor *no)
{
    return dt_add(g, dt_mul(g, is, yes), dt_mul(g, dt_affine(g, is, -1.0, 1.0), no));
}

/* Mask of distances below FAR_M. */
static dt_tensor *record_near(dt_graph *g, dt_tensor *way)
{
    return dt_clamp(g, dt_affine(g, way, -SHARP, SHARP * FAR_M), 0.0, 1.0);
}

/* The predicted position of the leader after `at` steps, 0 now. */
static dt_tensor *predicted_position(const dt_policy_tensors *p, dt_graph *g, int64_t at)
{
    return at > 0 ? slice_column(g, p->foreseen, at - 1) : dt_affine(g, slice_column(g, p->foreseen, 0), 0.0, 0.0);
}

/* Step i of a branch under acceleration a [A,1]. */
static void record_step(const dt_wiring *w, const dt_policy_tensors *p, dt_graph *g, int64_t i, dt_tensor *a, branch *b)
{
    const double tau = w->spec->step_s, dt_s = (double)w->dt_ms / 1000;
    const int64_t n = llround(tau / dt_s), end = (i + 1) * n;
    dt_tensor *v = slice_column(g, b->ego, SPEED), *gap = slice_column(g, b->ego, GAP),
              *back = slice_column(g, b->ego, FOLLOWER_GAP);
    dt_tensor *behind = slice_column(g, b->ego, FOLLOWER_SPEED), *way = slice_column(g, b->ego, DISTANCE_TO_END);
    a = dt_clamp(g, a, (double)w->spec->low[0], (double)w->spec->high[0]);
    dt_tensor *v1 = dt_relu(g, dt_add(g, v, dt_affine(g, a, tau, 0.0)));
    dt_tensor *d = dt_affine(g, dt_add(g, v, v1), 0.5 * tau, 0.0);

    dt_tensor *its = dt_sub(g, predicted_position(p, g, end), predicted_position(p, g, end - n));
    dt_tensor *speed =
        dt_affine(g, dt_sub(g, predicted_position(p, g, end), predicted_position(p, g, end - 1)), 1 / dt_s, 0.0);
    dt_tensor *is_ahead = record_near(g, gap), *is_behind = record_near(g, back), *has_end = record_near(g, way);
    dt_tensor *gap1 = select_where(g, is_ahead, dt_sub(g, dt_add(g, gap, its), d), gap);
    dt_tensor *back1 = select_where(g, is_behind, dt_sub(g, dt_add(g, back, d), dt_affine(g, behind, tau, 0.0)), back);
    b->alive = dt_mul(g, b->alive, dt_clamp(g, dt_affine(g, gap1, SHARP, 0.0), 0.0, 1.0));

    dt_tensor *first[] = {v1,
                          dt_clamp(g, gap1, 0.0, FAR_M),
                          select_where(g, is_ahead, speed, v1),
                          dt_clamp(g, back1, 0.0, FAR_M),
                          select_where(g, is_behind, behind, v1),
                          slice_column(g, b->ego, DESIRED_SPEED),
                          dt_clamp(g, select_where(g, has_end, dt_sub(g, way, d), way), 0.0, FAR_M),
                          a};
    dt_tensor *both[] = {dt_concat(g, first, 8), slice_column(g, b->ego, CAR_FOLLOWING)};
    b->ego = dt_concat(g, both, 2);
}

/* An output of the controller for a state: "value" or "mean". */
static dt_status record_controller(const dt_wiring *w, dt_graph *g, dt_tensor *ego, const char *name, dt_tensor **out_p)
{
    const dt_named in[] = {{"obs", ego}, {"ego", ego}};
    dt_named out = {name, NULL};
    DT_TRY_H(g->api->model(g, w->controller, in, 2, &out, 1));
    *out_p = out.tensor;
    return DT_OK;
}

/* Q of a first action [A,1], [A,1]. */
static dt_status record_branch_value(const imagine_config *c, const dt_wiring *w, const dt_policy_tensors *p,
                                     dt_graph *g, dt_tensor *a, dt_tensor **out_p)
{
    dt_tensor *ego = g->api->input(g, w->own->name), *value = NULL;
    branch b = {.ego = ego, .alive = dt_affine(g, slice_column(g, ego, SPEED), 0.0, 1.0)};
    for (int64_t i = 0; i < c->steps; i++) {
        if (i > 0) {
            DT_TRY_H(record_controller(w, g, b.ego, "mean", &a));
        }
        record_step(w, p, g, i, a, &b);
    }
    DT_TRY_H(record_controller(w, g, b.ego, "value", &value));
    *out_p = dt_affine(g, dt_mul(g, dt_split(g, value, 0), b.alive), pow(c->gamma, (double)c->steps), 0.0);
    return DT_OK;
}

dt_status imagine_record(const imagine_config *c, const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p,
                         dt_tensor *real, dt_tensor **out_p)
{
    dt_tensor *drawn = g->api->input(g, "action_f"), *here = NULL, *there = NULL;
    dt_tensor *mirrored = dt_sub(g, dt_affine(g, p->mean, 2.0, 0.0), drawn);
    DT_TRY_H(record_branch_value(c, w, p, g, drawn, &here));
    DT_TRY_H(record_branch_value(c, w, p, g, mirrored, &there));
    dt_tensor *unit = g->api->step_input(g, "advantage_unit", 1);
    dt_tensor *imagined = dt_affine(g, dt_mul(g, dt_sub(g, here, there), unit), 0.5 * c->weight, 0.0);
    *out_p = dt_merge(g, dt_add(g, dt_affine(g, dt_split(g, real, 0), 1 - c->weight, 0.0), imagined));
    return g->api->status(g);
}
