/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "dtrain/traffic/labels.h"

#include <math.h>
#include <string.h>

static const double SIGHT_M = 200; /* of a vehicle, for the time to collision */

/* ---- roads ------------------------------------------------------------------------------------------------------- */

/* The net is drawn from an open simulation; between two episodes one is opened for it. */
static bool read_roads(const state *s, sumo_roads *out)
{
    const sumo_net *net = NULL;
    if (s->api->roads(out) == 0) {
        return true;
    }
    if (s->has_episode || s->api->open(&s->file, 1, &net) != 0) {
        return false;
    }
    const bool is_read = s->api->roads(out) == 0;
    s->api->close();
    return is_read;
}

static void draw_roads(const void *self, dt_scene_roads *out)
{
    const state *s = self;
    sumo_roads r;
    out->n = 0;
    if (!read_roads(s, &r)) {
        dt_logf(s->h, 2, "%s cannot be drawn: %s", s->config.sumocfg, s->api->error());
        return;
    }
    for (uint32_t i = 0; i < r.n_points; i++, out->n++) {
        const sumo_point *p = &r.point[i];
        if (out->n < out->cap) {
            out->point[out->n] = (dt_scene_point){.x = (float)(p->x - s->net->x),
                                                  .y = (float)(p->y - s->net->y),
                                                  .width = (float)p->width,
                                                  .lane = p->lane};
        }
    }
}

/* ---- a moment ---------------------------------------------------------------------------------------------------- */

static int32_t find_agent(const state *s, const sumo_vehicle *v)
{
    const drivers *d = &s->drivers;
    if (s->config.control != CONTROL_VEHICLES || v->number >= d->next || d->place_of[v->number] == 0) {
        return -1;
    }
    const uint32_t k = d->place_of[v->number] - 1;
    return d->place[k].state == PLACE_ENDED ? -1 : (int32_t)k;
}

/* The vehicle in the graph that agents saw last. */
static uint32_t find_node(const state *s, int64_t number)
{
    for (uint32_t i = 0; i < s->n_frame; i++) {
        if (s->frame[i].id == number) {
            return i + 1;
        }
    }
    return 0;
}

static float collision_risk(const state *s, const sumo_vehicle *v)
{
    sumo_near ahead;
    const bool is_read = s->api->ahead(v->number, SIGHT_M, &ahead) == 0;
    return !is_read ? NAN : isfinite(ahead.gap) ? dt_scene_risk(ahead.gap, v->speed - ahead.speed) : 0;
}

static void draw_vehicles(state *s, dt_scene *out)
{
    out->n_vehicles = 0;
    if (s->api->vehicles(&s->vehicle, &s->n_vehicles) != 0) {
        s->n_vehicles = 0; /* the step that follows reports the reason */
    }
    for (uint32_t i = 0; i < s->n_vehicles; i++, out->n_vehicles++) {
        const sumo_vehicle *v = &s->vehicle[i];
        if (i < out->cap_vehicles) {
            out->vehicle[i] = (dt_scene_vehicle){.x = (float)(v->x - s->net->x),
                                                 .y = (float)(v->y - s->net->y),
                                                 .heading = (float)v->heading,
                                                 .length = (float)v->length,
                                                 .width = (float)v->width,
                                                 .speed = (float)v->speed,
                                                 .risk = collision_risk(s, v),
                                                 .id = (int32_t)v->number,
                                                 .agent = find_agent(s, v),
                                                 .node = find_node(s, v->number)};
        }
    }
}

/* What a lane is shown: the best of what its links are. */
static uint32_t lane_signal_state(const sumo_signal *g, const char *letters, uint32_t lane)
{
    static const char *const shown[] = {
        [DT_SCENE_RED] = "", [DT_SCENE_YELLOW] = "yY", [DT_SCENE_GREEN] = "GO", [DT_SCENE_YIELD] = "go"};
    static const uint32_t best_first[] = {DT_SCENE_GREEN, DT_SCENE_YIELD, DT_SCENE_YELLOW};
    for (size_t k = 0; k < sizeof(best_first) / sizeof(best_first[0]); k++) {
        for (uint32_t i = 0; i < g->n_links; i++) {
            if (g->from[i] == lane && letters[i] != '\0' && strchr(shown[best_first[k]], letters[i]) != NULL) {
                return best_first[k];
            }
        }
    }
    return DT_SCENE_RED;
}

static bool is_first_of_lane(const sumo_signal *g, uint32_t link)
{
    for (uint32_t i = 0; i < link; i++) {
        if (g->from[i] == g->from[link]) {
            return false;
        }
    }
    return g->from[link] != SUMO_NONE;
}

static void draw_signal(const state *s, uint32_t number, const sumo_line *line, dt_scene *out)
{
    const sumo_signal *g = &s->net->signal[number];
    if (s->api->get_state(number, s->picture.letters) != 0) {
        return;
    }
    const bool acts = s->config.control == CONTROL_SIGNALS && s->agent_of_signal[number] != SUMO_NONE;
    for (uint32_t i = 0; i < g->n_links; i++) {
        if (!is_first_of_lane(g, i) || !(line[g->from[i]].width > 0)) {
            continue;
        }
        const sumo_line *l = &line[g->from[i]];
        if (out->n_signals < out->cap_signals) {
            out->signal[out->n_signals] =
                (dt_scene_signal){.x = (float)(l->x - s->net->x),
                                  .y = (float)(l->y - s->net->y),
                                  .heading = (float)l->heading,
                                  .width = (float)l->width,
                                  .state = lane_signal_state(g, s->picture.letters, g->from[i]),
                                  .agent = acts ? (int32_t)s->agent_of_signal[number] : -1};
        }
        out->n_signals++;
    }
}

static bool has_letters(state *s)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->net->n_signals; i++) {
        most = s->net->signal[i].n_links > most ? s->net->signal[i].n_links : most;
    }
    s->picture.letters = s->picture.letters != NULL ? s->picture.letters : s->h->alloc(s->h, most + 1);
    return s->picture.letters != NULL;
}

static void draw_current_moment(state *s, dt_scene *out)
{
    sumo_roads r;
    out->time_s = s->time_s - s->begin_s;
    out->n_signals = 0;
    draw_vehicles(s, out);
    if (has_letters(s) && s->api->roads(&r) == 0) {
        for (uint32_t i = 0; i < s->net->n_signals; i++) {
            draw_signal(s, i, r.line, out);
        }
    }
}

static void copy_last_scene(const state *s, dt_scene *out)
{
    const dt_scene *last = &s->picture.last;
    out->time_s = last->time_s;
    out->n_vehicles = last->n_vehicles;
    out->n_signals = last->n_signals;
    for (uint32_t i = 0; i < last->n_vehicles && i < out->cap_vehicles; i++) {
        out->vehicle[i] = last->vehicle[i];
    }
    for (uint32_t i = 0; i < last->n_signals && i < out->cap_signals; i++) {
        out->signal[i] = last->signal[i];
    }
}

static void draw_scene(const void *self, dt_scene *out)
{
    state *s = (state *)(uintptr_t)self;
    s->picture.is_drawn = true;
    if (s->has_episode) {
        draw_current_moment(s, out);
    } else {
        copy_last_scene(s, out);
    }
}

static void set_watcher(void *self, void (*each)(void *user), void *user)
{
    state *s = self;
    s->picture.each = each;
    s->picture.user = user;
}

/* ---- the end of an episode --------------------------------------------------------------------------------------- */

static void free_last_scene(state *s)
{
    s->h->release(s->h, s->picture.last.vehicle);
    s->h->release(s->h, s->picture.last.signal);
    s->picture.last = (dt_scene){.struct_size = sizeof(dt_scene)};
}

dt_status scene_record(state *s)
{
    dt_scene *last = &s->picture.last;
    if (!s->picture.is_drawn) {
        return DT_OK;
    }
    free_last_scene(s);
    draw_current_moment(s, last);
    last->cap_vehicles = last->n_vehicles;
    last->cap_signals = last->n_signals;
    DT_TRY_H(env_reserve(s, &last->vehicle, last->cap_vehicles, sizeof(*last->vehicle)));
    DT_TRY_H(env_reserve(s, &last->signal, last->cap_signals, sizeof(*last->signal)));
    draw_current_moment(s, last);
    return DT_OK;
}

void scene_forget(state *s)
{
    free_last_scene(s);
    s->h->release(s->h, s->picture.letters);
    s->picture.letters = NULL;
}

const dt_scene_api scene_api = {.struct_size = sizeof(dt_scene_api),
                                .roads = draw_roads,
                                .capture = draw_scene,
                                .set_observer = set_watcher,
                                .labels = &dt_traffic_labels};
