/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/evaluate/frames.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "dtrain/ext/scene.h"
#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"
#include "rl/env/process_scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROAD_COLUMNS = 4, VEHICLE_COLUMNS = 9, SIGNAL_COLUMNS = 7 };
enum { RISK = 7 }; /* column of a vehicle */
enum { MARK_NONE, MARK_AGENT, MARK_CHANGED };
static const double CHANGE_WEIGHT = 2; /* of an action that the shield changed, compared with one vehicle of risk 1 */

typedef struct frame {
    double time_s, delay_s, score;
    float *vehicle, *signal; /* rows */
    uint32_t n_vehicles, n_signals;
} frame;

struct dt_frames {
    const dt_scene_api *api;
    void *self;
    const dt_buffer *buffer;
    uint32_t number;
    double every_s, next_s;
    bool thins; /* every_s doubles where the pictures of an episode do not suffice for it */
    dt_scene_roads road;
    dt_scene now;
    frame *frame; /* [n_frames] */
    uint32_t n_frames, cap;
    bool is_film;
    frame *best; /* [n_best] of a film: the best part so far; frame is the one under way */
    uint32_t n_best;
    double best_score;
    dt_risk *risk_model; /* NULL: colours are the environment's */
    int colours;         /* DT_FRAMES_* */
    const float *risk;   /* [n_risks] by rows of the observation that the scene speaks of */
    uint32_t n_risks;
    bool has_risk;       /* of the step under way */
    uint32_t *first_row; /* [vehicles] of the first frame, which is taken before anything is predicted */
    dt_status status;    /* of what happened in a call of the environment */
};

static const dt_scene_api *scene_api_of(const dt_env *e)
{
    const void *(*extension)(const char *id) = e->comp->desc.extension;
    const dt_scene_api *api = extension != NULL ? extension(DT_EXT_SCENE) : NULL;
    if (!DT_HAS(api, roads) || !DT_HAS(api, capture)) {
        return NULL;
    }
    return e->in_process ? &dt_process_scene : api;
}

static dt_status fail_no_memory(void)
{
    return DT_FAIL(DT_ENOMEM, "out of memory for pictures of an episode");
}

dt_status dt_frames_open(const dt_env *e, double every_s, dt_risk *risk_model, bool is_taught, dt_frames **out_p)
{
    const dt_scene_api *api = scene_api_of(e);
    *out_p = NULL;
    if (api == NULL) {
        return DT_OK;
    }
    dt_frames *f = dt_alloc(sizeof(*f));
    if (f == NULL) {
        return fail_no_memory();
    }
    f->api = api;
    f->is_film = every_s == 0;
    f->thins = every_s < 0;
    f->every_s = f->is_film ? 1 : fabs(every_s);
    f->risk_model = is_taught ? risk_model : NULL;
    f->colours = f->risk_model != NULL ? DT_FRAMES_PREDICTED
                 : risk_model != NULL  ? DT_FRAMES_UNTRAINED
                                       : DT_FRAMES_SCENE;
    f->now.struct_size = sizeof(f->now);
    f->road.struct_size = sizeof(f->road);
    *out_p = f;
    return DT_OK;
}

static void free_frame(frame *m)
{
    dt_free(m->vehicle);
    dt_free(m->signal);
    *m = (frame){0};
}

static void free_frames(frame *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free_frame(&list[i]);
    }
    dt_free(list);
}

void dt_frames_close(dt_frames *f)
{
    if (f == NULL) {
        return;
    }
    if (f->self != NULL && DT_HAS(f->api, set_observer)) {
        f->api->set_observer(f->self, NULL, NULL);
    }
    free_frames(f->frame, f->n_frames);
    free_frames(f->best, f->n_best);
    dt_free(f->road.point);
    dt_free(f->first_row);
    dt_free(f->now.vehicle);
    dt_free(f->now.signal);
    dt_free(f);
}

/* ---- a moment ---------------------------------------------------------------------------------------------------- */

static float risk_of_row(const dt_frames *f, uint32_t row)
{
    return row > 0 && row <= f->n_risks ? f->risk[row - 1] : NAN;
}

/* From perception, where requested. */
static void set_predicted_risk(dt_frames *f)
{
    if (f->risk_model != NULL) {
        for (uint32_t i = 0; i < f->now.n_vehicles; i++) {
            f->now.vehicle[i].risk = risk_of_row(f, f->now.vehicle[i].node);
        }
    }
}

static dt_status read_scene(dt_frames *f)
{
    dt_scene *s = &f->now;
    for (;;) {
        s->delay_s = NAN;
        f->api->capture(f->self, s);
        if (s->n_vehicles <= s->cap_vehicles && s->n_signals <= s->cap_signals) {
            set_predicted_risk(f);
            return DT_OK;
        }
        const uint32_t vehicles = 2 * s->n_vehicles + 16, signals = 2 * s->n_signals + 16;
        void *grown = dt_realloc(s->vehicle, vehicles * sizeof(*s->vehicle));
        s->vehicle = grown != NULL ? grown : s->vehicle;
        void *more = grown != NULL ? dt_realloc(s->signal, signals * sizeof(*s->signal)) : NULL;
        if (more == NULL) {
            return fail_no_memory();
        }
        s->signal = more;
        s->cap_vehicles = vehicles;
        s->cap_signals = signals;
    }
}

static int mark_of_agent(const dt_frames *f, int32_t agent)
{
    const dt_buffer *b = f->buffer;
    const uint32_t n = b->l->spec.n_agents;
    if (agent < 0 || (uint32_t)agent >= n) {
        return MARK_NONE;
    }
    const size_t at = dt_buffer_slot(b, 0, f->number) * n + (uint32_t)agent;
    const bool acts = (b->row[at] & DT_ROW_ACTS) != 0;
    return acts && (b->report[at] & DT_REPORT_CHANGED) != 0 ? MARK_CHANGED : MARK_AGENT;
}

static double score_of_part(const dt_frames *f)
{
    double score = 0;
    for (uint32_t i = 0; i < f->now.n_vehicles; i++) {
        const dt_scene_vehicle *v = &f->now.vehicle[i];
        if (isfinite(v->risk)) {
            score += v->risk;
        }
        if (mark_of_agent(f, v->agent) == MARK_CHANGED) {
            score += CHANGE_WEIGHT;
        }
    }
    int32_t last = -1; /* a signal has a row for every lane, one after another */
    for (uint32_t i = 0; i < f->now.n_signals; i++) {
        const int32_t agent = f->now.signal[i].agent;
        if (agent != last && mark_of_agent(f, agent) == MARK_CHANGED) {
            score += CHANGE_WEIGHT;
        }
        last = agent;
    }
    return score;
}

static dt_status copy_frame(const dt_frames *f, frame *m)
{
    const dt_scene *s = &f->now;
    const frame copy = {.time_s = s->time_s,
                        .delay_s = s->delay_s,
                        .score = f->is_film ? s->n_vehicles + score_of_part(f) : 0,
                        .vehicle = dt_alloc_n((size_t)s->n_vehicles * VEHICLE_COLUMNS + 1, sizeof(float)),
                        .signal = dt_alloc_n((size_t)s->n_signals * SIGNAL_COLUMNS + 1, sizeof(float)),
                        .n_vehicles = s->n_vehicles,
                        .n_signals = s->n_signals};
    free_frame(m);
    *m = copy;
    if (copy.vehicle == NULL || copy.signal == NULL) {
        return fail_no_memory();
    }
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        const dt_scene_vehicle *v = &s->vehicle[i];
        const float row[VEHICLE_COLUMNS] = {(float)v->id, v->x,      v->y,
                                            v->heading,   v->length, v->width,
                                            v->speed,     v->risk,   (float)mark_of_agent(f, v->agent)};
        memcpy(m->vehicle + (size_t)i * VEHICLE_COLUMNS, row, sizeof(row));
    }
    for (uint32_t i = 0; i < s->n_signals; i++) {
        const dt_scene_signal *v = &s->signal[i];
        const float row[SIGNAL_COLUMNS] = {
            v->x, v->y, v->heading, v->width, (float)v->state, (float)mark_of_agent(f, v->agent), (float)v->agent};
        memcpy(m->signal + (size_t)i * SIGNAL_COLUMNS, row, sizeof(row));
    }
    return DT_OK;
}

/* ---- an episode -------------------------------------------------------------------------------------------------- */

/* A part of a film is complete: it is kept if it is the best so far. */
static void finish_part(dt_frames *f)
{
    double score = 0;
    for (uint32_t i = 0; i < f->n_frames; i++) {
        score += f->frame[i].score / f->n_frames;
    }
    if (f->best == NULL || score > f->best_score) {
        free_frames(f->best, f->n_best);
        f->best = f->frame;
        f->n_best = f->n_frames;
        f->best_score = score;
    } else {
        free_frames(f->frame, f->n_frames);
    }
    f->frame = NULL;
    f->n_frames = f->cap = 0;
}

static bool is_part_complete(const dt_frames *f)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < f->n_frames; i++) {
        rows += f->frame[i].n_vehicles + f->frame[i].n_signals;
    }
    return f->n_frames == DT_FRAMES_FILM || rows >= DT_FRAMES_FILM_ROWS;
}

/* Every second picture is kept, from the first. */
static void thin_out_frames(dt_frames *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_frames; i++) {
        if (i % 2 == 0) {
            f->frame[n++] = f->frame[i];
        } else {
            free_frame(&f->frame[i]);
        }
    }
    f->n_frames = n;
    f->every_s *= 2;
}

static dt_status add_frame(dt_frames *f)
{
    if (f->is_film && is_part_complete(f)) {
        finish_part(f);
    }
    if (f->n_frames == DT_FRAMES_MAX_FRAMES) {
        return DT_OK;
    }
    if (f->n_frames == f->cap) {
        const uint32_t cap = f->cap > 0 ? 2 * f->cap : 64;
        frame *grown = dt_realloc(f->frame, cap * sizeof(*grown));
        if (grown == NULL) {
            return fail_no_memory();
        }
        f->frame = grown;
        f->cap = cap;
    }
    f->frame[f->n_frames] = (frame){0};
    return copy_frame(f, &f->frame[f->n_frames++]);
}

/* What perception predicts from the observation at step t of the buffer: the one before the step under way, or the one
 * after it. */
static dt_status predict_risk(dt_frames *f, uint32_t t)
{
    if (f->risk_model == NULL) {
        return DT_OK;
    }
    const uint64_t index = (uint64_t)t * f->buffer->d.instances + f->number;
    DT_TRY(dt_risk_predict(f->risk_model, f->buffer, index, &f->risk, &f->n_risks));
    f->has_risk = true;
    if (t == 0 && f->n_frames > 0 && f->first_row != NULL) {
        for (uint32_t i = 0; i < f->frame[0].n_vehicles; i++) {
            f->frame[0].vehicle[(size_t)i * VEHICLE_COLUMNS + RISK] = risk_of_row(f, f->first_row[i]);
        }
    }
    return DT_OK;
}

/* Called by the environment while it steps, or by us. */
static void record_frame_callback(void *user)
{
    dt_frames *f = user;
    if (f->status < 0) {
        return;
    }
    f->status = f->has_risk || f->n_frames == 0 ? DT_OK : predict_risk(f, 0);
    f->status = f->status == DT_OK ? read_scene(f) : f->status;
    if (f->status == DT_OK && f->now.time_s >= f->next_s - 1e-6) {
        if (f->thins && f->n_frames == DT_FRAMES_MAX_FRAMES) {
            thin_out_frames(f);
        }
        f->next_s += f->every_s * (1 + floor((f->now.time_s - f->next_s + 1e-6) / f->every_s));
        f->status = add_frame(f);
    }
}

static dt_status read_roads(dt_frames *f)
{
    dt_scene_roads *r = &f->road;
    f->api->roads(f->self, r);
    r->point = dt_alloc_n((size_t)r->n + 1, sizeof(*r->point));
    if (r->point == NULL) {
        return fail_no_memory();
    }
    r->cap = r->n;
    f->api->roads(f->self, r);
    r->n = r->n < r->cap ? r->n : r->cap;
    return DT_OK;
}

static dt_status record_first_rows(dt_frames *f)
{
    f->first_row = dt_alloc_n((size_t)f->now.n_vehicles + 1, sizeof(*f->first_row));
    if (f->first_row != NULL) {
        for (uint32_t i = 0; i < f->now.n_vehicles; i++) {
            f->first_row[i] = f->now.vehicle[i].node;
        }
    }
    return f->first_row != NULL ? DT_OK : fail_no_memory();
}

dt_status dt_frames_begin(dt_frames *f, void *self, const dt_buffer *b, uint32_t number)
{
    f->self = self;
    f->buffer = b;
    f->number = number;
    DT_TRY(read_roads(f));
    /* a film is made while training continues, where workers step: no model is run in them */
    if (DT_HAS(f->api, set_observer) && (!f->is_film || f->risk_model == NULL)) {
        f->api->set_observer(self, record_frame_callback, f);
    }
    record_frame_callback(f);
    return f->status == DT_OK ? record_first_rows(f) : f->status;
}

dt_status dt_frames_step(dt_frames *f)
{
    DT_TRY(f->status);
    if (!f->has_risk) {
        DT_TRY(predict_risk(f, 0)); /* the first frame's */
    }
    DT_TRY(predict_risk(f, 1));
    record_frame_callback(f); /* where the environment does not call itself, or not at the very end */
    const bool is_now = f->status == DT_OK && f->frame[f->n_frames - 1].time_s >= f->now.time_s;
    return is_now ? copy_frame(f, &f->frame[f->n_frames - 1]) : f->status; /* taken before it was observed */
}

static dt_status report_roads(const dt_frames *f, const dt_host *h, const dt_metrics_api *m)
{
    const uint32_t n = f->road.n;
    float *row = dt_alloc_n((size_t)n * ROAD_COLUMNS + 1, sizeof(*row));
    if (row == NULL) {
        return fail_no_memory();
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_scene_point *p = &f->road.point[i];
        const float values[ROAD_COLUMNS] = {(float)p->lane, p->x, p->y, p->width};
        memcpy(row + (size_t)i * ROAD_COLUMNS, values, sizeof(values));
    }
    m->picture(h, "traffic/road", row, n, ROAD_COLUMNS);
    dt_free(row);
    return DT_OK;
}

static void report_frame(const dt_host *h, const dt_metrics_api *m, uint32_t i, const frame *k)
{
    const float time_s = (float)k->time_s;
    char key[64];
    snprintf(key, sizeof(key), "traffic/moment/%u/time", i);
    m->picture(h, key, &time_s, 0, 1);
    if (isfinite(k->delay_s)) {
        const float delay_s = (float)k->delay_s;
        snprintf(key, sizeof(key), "traffic/moment/%u/delay", i);
        m->picture(h, key, &delay_s, 0, 1);
    }
    if (k->n_vehicles > 0) {
        snprintf(key, sizeof(key), "traffic/moment/%u/vehicle", i);
        m->picture(h, key, k->vehicle, k->n_vehicles, VEHICLE_COLUMNS);
    }
    if (k->n_signals > 0) {
        snprintf(key, sizeof(key), "traffic/moment/%u/signal", i);
        m->picture(h, key, k->signal, k->n_signals, SIGNAL_COLUMNS);
    }
}

dt_status dt_frames_end(dt_frames *f, const dt_host *h)
{
    const dt_metrics_api *m = h->service(h, DT_SVC_METRICS);
    DT_TRY(f->status);
    if (DT_HAS(f->api, set_observer)) { /* what the instance plays next is not recorded */
        f->api->set_observer(f->self, NULL, NULL);
    }
    if (!f->is_film && !f->thins && f->n_frames == DT_FRAMES_MAX_FRAMES) {
        dt_log(DT_LOG_WARN, "the recording ends at %g s of %g s, after %d pictures; use a longer interval (--every)",
               f->frame[f->n_frames - 1].time_s, f->now.time_s, DT_FRAMES_MAX_FRAMES);
    }
    DT_TRY(report_roads(f, h, m));
    const float colours = (float)f->colours;
    m->picture(h, "traffic/colours", &colours, 0, 1);
    if (f->is_film && (f->best == NULL || is_part_complete(f))) { /* one that is cut short by the end counts alone */
        finish_part(f);
    }
    const uint32_t n = f->is_film ? f->n_best : f->n_frames;
    for (uint32_t i = 0; i < n; i++) {
        report_frame(h, m, i, f->is_film ? &f->best[i] : &f->frame[i]);
    }
    return DT_OK;
}
