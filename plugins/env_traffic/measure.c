/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

dt_status measure_init(measure *m, const sim *s)
{
    *m = (measure){.h = s->h, .decision = 1};
    m->vehicle = s->h->alloc(s->h, (uint64_t)s->max_vehicles * sizeof(*m->vehicle));
    m->signal = s->h->alloc(s->h, (uint64_t)s->net.n_signals * sizeof(*m->signal));
    if (m->vehicle == NULL || m->signal == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory to measure %d vehicles at %d signals", (int)s->max_vehicles,
                         (int)s->net.n_signals);
    }
    return DT_OK;
}

void measure_fini(measure *m)
{
    if (m->h != NULL) {
        m->h->release(m->h, m->vehicle);
        m->h->release(m->h, m->signal);
    }
}

/* Of the vehicle in slot p; an entry of the table is used again by other vehicles. */
static measured *measured_entry(measure *m, const sim *s, int32_t p)
{
    const int32_t w = s->who[p];
    measured *v = &m->vehicle[w];
    if (v->key != s->vehicle[w].key || v->decision == 0) {
        *v = (measured){.key = s->vehicle[w].key, .junction = NET_NONE, .decision = m->decision};
    }
    return v;
}

static double waiting_outside(const sim *s, int32_t edge)
{
    double n = 0;
    for (int32_t i = 0; i < s->n_sources; i++) {
        const source *q = &s->source[i];
        if (q->edge == edge) {
            n += q->arrived - q->taken;
        }
    }
    return n;
}

static void count_lane(const sim *s, int32_t lane, measured_signal *g)
{
    const lane_state *l = &s->lane[lane];
    const double emergency = most(EMERGENCY_MPS2, EMERGENCY_SHARE * s->driver.b);
    g->lost_s += l->lost * s->c->dt_s;
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        g->brakes += s->a[p] < -emergency;
    }
}

void measure_advance(measure *m, const sim *s)
{
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        const net_junction *j = &s->net.junction[k];
        measured_signal *g = &m->signal[k];
        for (int32_t i = 0; i < j->n_links; i++) {
            count_lane(s, s->net.link[j->link + i].via, g);
        }
        for (int a = 0; a < j->n_arms; a++) {
            const net_edge *e = &s->net.edge[j->arm[a]];
            g->lost_s += waiting_outside(s, j->arm[a]) * s->c->dt_s;
            for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
                const lane_state *l = &s->lane[lane];
                count_lane(s, lane, g);
                for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
                    measured *v = measured_entry(m, s, p);
                    v->stood_s = s->v[p] < HALTING_MPS ? v->stood_s + s->c->dt_s : 0;
                }
            }
        }
    }
}

/* Vehicles on the lanes that lead to junction k; returns how many were there at the decision before. */
static int32_t measure_arms(measure *m, const sim *s, int32_t k, double *q, int32_t *heading_p)
{
    const net_junction *j = &s->net.junction[k];
    int32_t heading = 0, stayed = 0;
    for (int a = 0; a < j->n_arms; a++) {
        const net_edge *e = &s->net.edge[j->arm[a]];
        q[SIGNAL_PENDING] += waiting_outside(s, j->arm[a]);
        for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
            const lane_state *l = &s->lane[lane];
            const double from = s->net.lane[lane].length - s->c->detector_m;
            for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
                measured *v = measured_entry(m, s, p);
                heading++;
                stayed += v->junction == k && v->decision + 1 == m->decision;
                v->junction = k;
                v->decision = m->decision;
                q[SIGNAL_QUEUE] += s->v[p] < HALTING_MPS;
                if (s->x[p] >= from) {
                    q[SIGNAL_VEHICLES]++;
                    q[SIGNAL_WAITING] += v->stood_s;
                    q[SIGNAL_LONGEST] = most(q[SIGNAL_LONGEST], v->stood_s);
                    q[SIGNAL_SPEED] += s->v[p];
                    if (s->want[p] > 0) {
                        q[SIGNAL_RELATIVE_SPEED] += s->v[p] / s->want[p];
                    }
                }
            }
        }
    }
    *heading_p = heading;
    return stayed;
}

static double standing_after(const sim *s, const net_junction *j)
{
    double n = 0;
    for (int32_t i = 0; i < j->n_links; i++) {
        const int32_t to = s->net.link[j->link + i].to;
        bool is_counted = false;
        for (int32_t b = 0; b < i; b++) {
            is_counted |= s->net.link[j->link + b].to == to;
        }
        const lane_state *l = &s->lane[to];
        for (int32_t p = slot_front(l); p <= slot_back(l) && !is_counted; p++) {
            n += s->v[p] < HALTING_MPS;
        }
    }
    return n;
}

void measure_decide(measure *m, const sim *s, const float *cost)
{
    m->decision++;
    if (cost == NULL) { /* numbers of vehicles begin again */
        memset(m->vehicle, 0, (size_t)s->max_vehicles * sizeof(*m->vehicle));
    }
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        const net_junction *j = &s->net.junction[k];
        const signal_state *light = &s->signal[k];
        measured_signal *g = &m->signal[k];
        double *q = g->now.signal;
        int32_t heading = 0;
        memset(q, 0, sizeof(g->now.signal));
        const int32_t stayed = measure_arms(m, s, k, q, &heading);
        const double n = q[SIGNAL_VEHICLES];
        q[SIGNAL_SPEED] /= n > 0 ? n : 1;
        q[SIGNAL_RELATIVE_SPEED] = n > 0 ? q[SIGNAL_RELATIVE_SPEED] / n : 1;
        q[SIGNAL_EXIT_QUEUE] = standing_after(s, j);
        q[SIGNAL_PRESSURE] = q[SIGNAL_QUEUE] - q[SIGNAL_EXIT_QUEUE];
        q[SIGNAL_SHOWN] = light->stage == STAGE_GREEN ? light->stage_s : 0;
        if (cost != NULL) {
            const float *row = cost + (size_t)k * SIM_COSTS;
            q[SIGNAL_DELAY] = g->lost_s;
            q[SIGNAL_DIFF_WAITING] = g->waiting_before_s - q[SIGNAL_WAITING];
            q[SIGNAL_THROUGHPUT] = g->heading_before - stayed;
            q[SIGNAL_CHANGED_PHASE] = light->phase != g->phase_before;
            q[SIGNAL_COLLISIONS] = (double)row[COST_COLLISIONS];
            q[SIGNAL_EMERGENCY_BRAKES] = g->brakes;
            q[SIGNAL_CONFLICTS] = (double)row[COST_CONFLICTING_GREENS];
            q[SIGNAL_STARVATION] = (double)row[COST_STARVATION];
        }
        g->waiting_before_s = q[SIGNAL_WAITING];
        g->heading_before = heading;
        g->phase_before = light->phase;
        g->lost_s = g->brakes = 0;
    }
}
