/* SPDX-License-Identifier: Apache-2.0 */
#include "detect.h"
#include "signal.h"

#include <string.h>

/* The entry of a lane in lanes [n], appended where it is new. */
static int32_t find_or_append(int32_t *lanes, int32_t *n, int32_t lane)
{
    int32_t i = 0;
    while (i < *n && lanes[i] != lane) {
        i++;
    }
    lanes[i] = lane;
    *n += i == *n;
    return i;
}

static dt_status allocate(detectors *d, const sim *s, size_t n_letters, size_t n_phases)
{
    const dt_host *h = s->h;
    const size_t n_links = (size_t)s->net.n_links + 1, n_lanes = (size_t)s->net.n_lanes + 1;
    const size_t n_signals = (size_t)s->net.n_signals + 1;
    d->shape = h->alloc(h, n_signals * sizeof(*d->shape));
    d->first_lane = h->alloc(h, n_signals * sizeof(*d->first_lane));
    d->first_out = h->alloc(h, n_signals * sizeof(*d->first_out));
    d->lane_id = h->alloc(h, n_links * sizeof(*d->lane_id));
    d->out_id = h->alloc(h, n_links * sizeof(*d->out_id));
    d->lane = h->alloc(h, n_links * sizeof(*d->lane));
    d->halting_before = h->alloc(h, n_links * sizeof(*d->halting_before));
    d->halting_after = h->alloc(h, n_links * sizeof(*d->halting_after));
    d->link = h->alloc(h, n_links * sizeof(*d->link));
    d->entry = h->alloc(h, n_lanes * sizeof(*d->entry));
    d->reach_m = h->alloc(h, n_lanes * sizeof(*d->reach_m));
    d->watched = h->alloc(h, n_lanes * sizeof(*d->watched));
    d->letters = h->alloc(h, n_letters + 1);
    d->conflicts = h->alloc(h, (n_phases + 1) * sizeof(*d->conflicts));
    if (d->shape == NULL || d->first_lane == NULL || d->first_out == NULL || d->lane_id == NULL || d->out_id == NULL ||
        d->lane == NULL || d->halting_before == NULL || d->halting_after == NULL || d->link == NULL ||
        d->entry == NULL || d->reach_m == NULL || d->watched == NULL || d->letters == NULL || d->conflicts == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for the detectors of %d signals", (int)s->net.n_signals);
    }
    return DT_OK;
}

/* What the phases of signal k show, out of letters and conflicts, which advance. */
static void make_shape(detectors *d, const sim *s, int32_t k, uint8_t **letters, uint32_t **conflicts)
{
    const net_junction *j = &s->net.junction[k];
    int32_t *lane = d->lane_id + d->first_lane[k], *out = d->out_id + d->first_out[k], n_lanes = 0, n_out = 0;
    for (int32_t i = 0; i < j->n_links; i++) {
        (void)find_or_append(lane, &n_lanes, s->net.link[j->link + i].from);
        (void)find_or_append(out, &n_out, s->net.link[j->link + i].to);
    }
    const size_t n_phases = (size_t)j->n_phases, n_links = (size_t)j->n_links;
    uint8_t *letter = *letters, *green = letter + n_phases * n_links, *leads = green + n_phases * (size_t)n_lanes;
    *letters = leads + n_phases * (size_t)n_out;
    for (int32_t p = 0; p < j->n_phases; p++) {
        (*conflicts)[p] = (uint32_t)j->conflicts[p];
        for (int32_t i = 0; i < j->n_links; i++) {
            const net_link *l = &s->net.link[j->link + i];
            letter[p * j->n_links + i] = (uint8_t)net_letter_of(j, p, i);
            if (net_has(&j->phase[p].green, i)) {
                green[p * n_lanes + find_or_append(lane, &n_lanes, l->from)] = 1;
                leads[p * n_out + find_or_append(out, &n_out, l->to)] = 1;
            }
        }
    }
    d->shape[k] = (signal_shape){.n_links = (uint32_t)j->n_links,
                                 .n_phases = (uint32_t)j->n_phases,
                                 .n_lanes = (uint32_t)n_lanes,
                                 .n_out = (uint32_t)n_out,
                                 .letter = letter,
                                 .best = j->best,
                                 .green_lane = green,
                                 .out_lane = leads,
                                 .conflicts = *conflicts};
    *conflicts += j->n_phases;
    d->first_lane[k + 1] = d->first_lane[k] + n_lanes;
    d->first_out[k + 1] = d->first_out[k] + n_out;
}

/* Shortest ways to a stop line, backwards from the approach lanes until nothing becomes shorter. */
static void measure_reach(detectors *d, const sim *s)
{
    const net *n = &s->net;
    for (int32_t lane = 0; lane < n->n_lanes; lane++) {
        d->reach_m[lane] = d->entry[lane] != NET_NONE ? 0 : INFINITY;
    }
    for (bool changes = true; changes;) {
        changes = false;
        for (int32_t k = 0; k < n->n_links; k++) {
            const net_link *l = &n->link[k];
            const double after = d->reach_m[l->to] + n->lane[l->to].length;
            const int32_t last = l->via != NET_NONE ? l->via : l->from; /* that leads to the lane */
            if (after < s->c->detector_m && after < d->reach_m[last]) {
                d->reach_m[last] = after;
                changes = true;
            }
            const double via = l->via != NET_NONE ? d->reach_m[l->via] + n->lane[l->via].length : INFINITY;
            if (via < s->c->detector_m && via < d->reach_m[l->from]) {
                d->reach_m[l->from] = via;
                changes = true;
            }
        }
    }
    for (int32_t lane = 0; lane < n->n_lanes; lane++) {
        if (d->reach_m[lane] < s->c->detector_m) {
            d->watched[d->n_watched++] = lane;
        }
    }
}

dt_status detect_init(detectors *d, const sim *s)
{
    size_t n_letters = 0, n_phases = 0;
    *d = (detectors){.h = s->h};
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        const net_junction *j = &s->net.junction[k];
        n_letters += 3 * (size_t)j->n_phases * (size_t)j->n_links; /* no more lanes than links */
        n_phases += (size_t)j->n_phases;
    }
    DT_TRY_H(allocate(d, s, n_letters, n_phases));
    uint8_t *letters = d->letters;
    uint32_t *conflicts = d->conflicts;
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        d->entry[lane] = NET_NONE;
    }
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        make_shape(d, s, k, &letters, &conflicts);
        for (int32_t i = d->first_lane[k]; i < d->first_lane[k + 1]; i++) {
            d->entry[d->lane_id[i]] = i;
        }
    }
    measure_reach(d, s);
    return DT_OK;
}

void detect_fini(detectors *d)
{
    void *const owned[] = {d->shape,   d->first_lane,     d->first_out,     d->lane_id,  d->out_id,
                           d->lane,    d->halting_before, d->halting_after, d->link,     d->entry,
                           d->reach_m, d->watched,        d->letters,       d->conflicts};
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]) && d->h != NULL; k++) {
        d->h->release(d->h, owned[k]);
    }
    *d = (detectors){.h = NULL};
}

/* The approach lane over which the vehicle in slot p of a lane comes to its next signal, within detector_m; NET_NONE.
 * *way_p: to the line; *next_p: the lane it takes there. */
static int32_t find_approach(const detectors *d, const sim *s, int32_t lane, int32_t p, double *way_p, int32_t *next_p)
{
    const vehicle *w = &s->vehicle[s->who[p]];
    int32_t edges = 0, next = w->next;
    double way = s->net.lane[lane].length - s->x[p];
    while (d->entry[lane] == NET_NONE && next >= 0 && way <= s->c->detector_m) {
        lane = next;
        way += s->net.lane[lane].length;
        const int32_t via_of = s->net.lane[lane].via_of;
        if (w->trip != NET_NONE) {
            edges += via_of == NET_NONE;
            next = place_next_lane(s, w, lane, edges);
        } else { /* where it turns is drawn once it is on its last edge */
            next = via_of != NET_NONE ? s->net.link[via_of].to : NET_NONE;
        }
    }
    *way_p = way;
    *next_p = next;
    return way <= s->c->detector_m && next != NET_EXIT ? d->entry[lane] : NET_NONE;
}

static void detect_lane(detectors *d, const sim *s, int32_t lane)
{
    const lane_state *l = &s->lane[lane];
    const double from = s->net.lane[lane].length + d->reach_m[lane] - s->c->detector_m;
    for (int32_t p = slot_front(l); p <= slot_back(l) && s->x[p] >= from; p++) {
        double way;
        int32_t next;
        const int32_t k = find_approach(d, s, lane, p, &way, &next);
        if (k == NET_NONE) {
            continue;
        }
        signal_link *link = NULL;
        if (next >= 0) {
            const net_lane *n = &s->net.lane[next];
            link = n->via_of != NET_NONE ? &d->link[n->via_of] : NULL;
        }
        const double stood_s = p == slot_front(l) ? l->stood_s : 0;
        signal_detect(&d->lane[k], link, way > 0 ? way : 0, s->v[p], stood_s, s->c->near_m, s->c->action_s);
    }
}

static uint32_t count_halting(const sim *s, int32_t lane)
{
    const lane_state *l = &s->lane[lane];
    uint32_t n = 0;
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        n += s->v[p] < HALTING_MPS;
    }
    return n;
}

void detect_read(detectors *d, const sim *s)
{
    const int32_t n_lanes = d->first_lane[s->net.n_signals], n_out = d->first_out[s->net.n_signals];
    memset(d->lane, 0, (size_t)n_lanes * sizeof(*d->lane));
    memset(d->link, 0, (size_t)s->net.n_links * sizeof(*d->link));
    for (int32_t i = 0; i < d->n_watched; i++) {
        detect_lane(d, s, d->watched[i]);
    }
    for (int32_t i = 0; i < n_lanes; i++) {
        d->halting_before[i] = count_halting(s, d->lane_id[i]);
    }
    for (int32_t i = 0; i < n_out; i++) {
        d->halting_after[i] = count_halting(s, d->out_id[i]);
    }
}

void detect_write_phases(const detectors *d, const sim *s, int32_t k, float *out)
{
    const net_junction *j = &s->net.junction[k];
    const signal_state *g = &s->signal[k];
    uint8_t shown[NET_MAX_LINKS], allowed[NET_MAX_PHASES];
    for (int32_t i = 0; i < j->n_links; i++) {
        shown[i] = (uint8_t)net_letter(&s->net, j, &g->show, i);
    }
    for (int32_t p = 0; p < j->n_phases; p++) {
        allowed[p] = (uint8_t)signal_is_legal(s, k, p);
    }
    const signal_now now = {.lane = d->lane + d->first_lane[k],
                            .link = d->link + j->link,
                            .halting_before = d->halting_before + d->first_lane[k],
                            .halting_after = d->halting_after + d->first_out[k],
                            .red_s = s->red_s + j->link,
                            .shown = shown,
                            .allowed = allowed,
                            .phase = (uint32_t)g->phase,
                            .program = (uint32_t)signal_program(s, k),
                            .green_s = g->stage == STAGE_GREEN ? g->stage_s : -1,
                            .detection_m = s->c->detector_m};
    signal_write_phases(&d->shape[k], &now, (uint32_t)s->net.most_phases, out);
}
