/* SPDX-License-Identifier: Apache-2.0 */
#include "pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 2, MOTION = 6, MOTION_SPEED = 4, POSE = 4, PATH = 4 };
/* Scenes shown, as shares of those that are better: a typical one, good, bad, and the worst. */
static const double shown[PICTURES_SHOWN] = {0.25, 0.5, 0.9, 1.0};

static int64_t vehicle_size(const pictures *s)
{
    return POSE + AXES * (s->T + 3 * s->F + s->K * s->F + s->P) + s->K + 1;
}

void pictures_begin(pictures *s, const dt_host *h, int64_t T, int64_t F, double step_s, uint64_t n_samples)
{
    s->h = h;
    s->T = T;
    s->F = F;
    s->step_s = step_s;
    s->n_samples = n_samples;
    s->K = s->P = 0;
    s->n_scenes = s->n_vehicles = 0;
}

void pictures_free(pictures *s)
{
    if (s->h != NULL) {
        s->h->release(s->h, s->scene);
        s->h->release(s->h, s->number);
    }
    memset(s, 0, sizeof(*s));
}

static dt_status grow_vehicles(pictures *s)
{
    if (s->n_vehicles < s->cap_vehicles) {
        return DT_OK;
    }
    const uint32_t cap = s->cap_vehicles > 0 ? 2 * s->cap_vehicles : 64;
    const uint64_t bytes = (uint64_t)vehicle_size(s) * sizeof(float);
    uint32_t *scene = s->h->alloc(s->h, cap * sizeof(*scene));
    float *number = s->h->alloc(s->h, cap * bytes);
    if (scene == NULL || number == NULL) {
        s->h->release(s->h, scene);
        s->h->release(s->h, number);
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for the %u vehicles of pictures", cap);
    }
    if (s->n_vehicles > 0) {
        memcpy(scene, s->scene, s->n_vehicles * sizeof(*scene));
        memcpy(number, s->number, s->n_vehicles * bytes);
    }
    s->h->release(s->h, s->scene);
    s->h->release(s->h, s->number);
    s->scene = scene;
    s->number = number;
    s->cap_vehicles = cap;
    return DT_OK;
}

/* One sample in so many is kept: the k-th of them is the first at or after k / PICTURES_KEPT of all. */
static int is_kept_sample(const pictures *s, uint64_t sample)
{
    if (s->n_samples <= PICTURES_KEPT) {
        return 1;
    }
    return sample == 0 || sample * PICTURES_KEPT / s->n_samples != (sample - 1) * PICTURES_KEPT / s->n_samples;
}

/* Position of a point in the vehicle's frame. */
static void to_world_frame(const float pose[POSE], double x, double y, float out[AXES])
{
    out[0] = (float)(pose[0] + x * cos((double)pose[2]) - y * sin((double)pose[2]));
    out[1] = (float)(pose[1] + x * sin((double)pose[2]) + y * cos((double)pose[2]));
}

/* Futures, their probabilities, and the lane ahead; hands back what follows them. */
static float *store_futures(const pictures *s, const pictures_batch *z, int64_t v, float *out)
{
    const float *pose = z->pose + v * POSE;
    for (int64_t i = 0; i < s->K * s->F; i++, out += AXES) {
        const float *at = z->futures + (v * s->K * s->F + i) * AXES;
        to_world_frame(pose, at[0], at[1], out);
    }
    for (int64_t k = 0; k < s->K; k++) {
        *out++ = z->probability[v * s->K + k];
    }
    double x = 0, y = 0;
    for (int64_t i = 0; i < s->P; i++, out += AXES) {
        const float *piece = z->path + (v * s->P + i) * PATH;
        x += piece[0];
        y += piece[1];
        to_world_frame(pose, x, y, out);
    }
    return out;
}

static void store_vehicle(pictures *s, const pictures_batch *z, int64_t v)
{
    float *out = s->number + (int64_t)s->n_vehicles * vehicle_size(s);
    const float *pose = z->pose + v * POSE;
    const float *future = z->target + v * s->F * AXES, *predicted = z->future + v * s->F * AXES;
    const double speed = z->motion[((s->T - 1) * z->S + v) * MOTION + MOTION_SPEED];
    const double dx = predicted[(s->F - 1) * AXES] - future[(s->F - 1) * AXES];
    const double dy = predicted[(s->F - 1) * AXES + 1] - future[(s->F - 1) * AXES + 1];
    memcpy(out, pose, POSE * sizeof(*out));
    out += POSE;
    for (int64_t t = 0; t < s->T; t++, out += AXES) {
        const float *m = z->motion + (t * z->S + v) * MOTION;
        to_world_frame(pose, m[0] - speed * (double)(s->T - 1 - t) * s->step_s, m[1], out);
    }
    for (int64_t f = 0; f < s->F; f++, out += AXES) {
        to_world_frame(pose, future[f * AXES], future[f * AXES + 1], out);
    }
    for (int64_t f = 0; f < s->F; f++, out += AXES) {
        to_world_frame(pose, predicted[f * AXES], predicted[f * AXES + 1], out);
    }
    for (int64_t f = 0; f < s->F * AXES; f++) {
        *out++ = expf(z->spread[v * s->F * AXES + f]);
    }
    out = store_futures(s, z, v, out);
    *out = (float)speed;
    s->square[s->n_scenes - 1] += dx * dx + dy * dy;
    s->n[s->n_scenes - 1]++;
    s->scene[s->n_vehicles++] = s->n_scenes - 1;
}

dt_status pictures_add(pictures *s, const pictures_batch *z)
{
    if (s->n_vehicles == 0) {
        s->K = z->futures != NULL ? z->K : 0;
        s->P = z->path != NULL ? z->P : 0;
    }
    for (int64_t v = 0; v < z->S; v++) {
        const uint64_t sample = z->sample[z->sample_of_seq[v]];
        if (!z->complete[v] || !is_kept_sample(s, sample)) {
            continue;
        }
        if (s->n_scenes == 0 || s->last != sample) {
            if (s->n_scenes == PICTURES_KEPT) {
                return DT_OK;
            }
            s->square[s->n_scenes] = 0;
            s->n[s->n_scenes++] = 0;
            s->last = sample;
        }
        if (s->n[s->n_scenes - 1] < PICTURES_VEHICLES) {
            DT_TRY_H(grow_vehicles(s));
            store_vehicle(s, z, v);
        }
    }
    return DT_OK;
}

static double scene_rmse(const pictures *s, uint32_t scene)
{
    return sqrt(s->square[scene] / s->n[scene]);
}

static void report_vehicle(const pictures *s, const dt_metrics_api *m, uint32_t i, uint32_t j, const float *number)
{
    const struct {
        const char *name;
        int64_t rows;
    } part[] = {{"history", s->T}, {"future", s->F}, {"predicted", s->F}, {"spread", s->F}};
    const float *pose = number, *speed = number + vehicle_size(s) - 1;
    char key[96];
    float end[AXES];
    snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/pose", i, j);
    m->picture(s->h, key, pose, 0, POSE);
    number += POSE;
    for (size_t k = 0; k < sizeof(part) / sizeof(part[0]); k++) {
        snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/%s", i, j, part[k].name);
        m->picture(s->h, key, number, (uint32_t)part[k].rows, AXES);
        number += part[k].rows * AXES;
    }
    for (int64_t k = 0; k < s->K; k++, number += s->F * AXES) {
        snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/futures/%lld", i, j, (long long)k);
        m->picture(s->h, key, number, (uint32_t)s->F, AXES);
    }
    if (s->K > 0) {
        snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/probability", i, j);
        m->picture(s->h, key, number, 0, (uint32_t)s->K);
        number += s->K;
    }
    if (s->P > 0) {
        snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/lane", i, j);
        m->picture(s->h, key, number, (uint32_t)s->P, AXES);
    }
    to_world_frame(pose, *speed * (double)s->F * s->step_s, 0, end);
    snprintf(key, sizeof(key), "trajectories/%u/vehicle/%u/constant", i, j);
    m->picture(s->h, key, end, 1, AXES);
}

static void report_scene(const pictures *s, const dt_metrics_api *m, uint32_t i, uint32_t scene, uint32_t rank)
{
    const float rmse = (float)scene_rmse(s, scene);
    const float share = s->n_scenes > 1 ? (float)rank / (float)(s->n_scenes - 1) : 0;
    char key[96];
    uint32_t j = 0;
    snprintf(key, sizeof(key), "trajectories/%u/rmse_m", i);
    m->picture(s->h, key, &rmse, 0, 1);
    snprintf(key, sizeof(key), "trajectories/%u/share", i);
    m->picture(s->h, key, &share, 0, 1);
    for (uint32_t v = 0; v < s->n_vehicles; v++) {
        if (s->scene[v] == scene) {
            report_vehicle(s, m, i, j++, s->number + (int64_t)v * vehicle_size(s));
        }
    }
}

void pictures_report(pictures *s, const dt_metrics_api *m, const uint32_t *step, uint32_t n)
{
    uint32_t order[PICTURES_KEPT], last = PICTURES_KEPT;
    float marked[8];
    if (s->n_scenes == 0 || n > sizeof(marked) / sizeof(marked[0])) {
        return;
    }
    for (uint32_t i = 0; i < s->n_scenes; i++) { /* by insertion: equal ones stay in the order of samples */
        uint32_t k = i;
        for (; k > 0 && scene_rmse(s, order[k - 1]) > scene_rmse(s, i); k--) {
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        marked[i] = (float)step[i];
    }
    m->picture(s->h, "trajectories/horizon", marked, 0, n);
    for (uint32_t i = 0, n_reported = 0; i < PICTURES_SHOWN; i++) {
        const uint32_t rank = (uint32_t)lround(shown[i] * (double)(s->n_scenes - 1));
        if (rank != last) {
            report_scene(s, m, n_reported++, order[rank], rank);
        }
        last = rank;
    }
}
