/* SPDX-License-Identifier: Apache-2.0 */
#include "signal.h"

#define TIME_TOL 1e-9 /* s, sums of steps against whole seconds */
#define LINE_M   1.0  /* before a line, for vehicles that stop at it */

static void show_signal(sim *s, int32_t junction)
{
    const net_junction *j = &s->net.junction[junction];
    signal_state *g = &s->signal[junction];
    const net_show *now = &j->phase[g->phase], *then = &j->phase[g->next];
    g->show = *now;
    if (g->stage != STAGE_GREEN) { /* what continues stays shown */
        g->show.green = net_common(now->green, then->green);
        g->show.minor = net_common(now->minor, then->green);
        g->show.stop = net_common(now->stop, net_union(then->stop, then->green));
        g->show.yellow = g->stage == STAGE_YELLOW ? net_without(now->green, then->green) : (net_links){0};
    }
}

void signal_reset(sim *s)
{
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        s->signal[k] = (signal_state){.stage = STAGE_GREEN};
        s->signal[k].phase = s->signal[k].next = signal_program(s, k);
        show_signal(s, k);
    }
}

int signal_is_legal(const sim *s, int32_t junction, int32_t p)
{
    const signal_state *g = &s->signal[junction];
    if (p < 0 || p >= s->net.junction[junction].n_phases) {
        return 0;
    }
    if (g->stage != STAGE_GREEN) {
        return p == g->next;
    }
    const double max = s->c->max_green_s;
    if (p == g->phase) {
        return max == 0 || g->stage_s < max - TIME_TOL || s->net.junction[junction].n_phases == 1;
    }
    return g->stage_s >= s->c->min_green_s - TIME_TOL;
}

static void start_green(sim *s, signal_state *g)
{
    g->phase = g->next;
    g->stage = STAGE_GREEN;
    g->stage_s = 0;
    g->served_s[g->phase] = 0;
}

int signal_request(sim *s, int32_t junction, int32_t p)
{
    signal_state *g = &s->signal[junction];
    if (!signal_is_legal(s, junction, p)) {
        return 0;
    }
    if (g->stage == STAGE_GREEN && p != g->phase) {
        g->next = p;
        g->stage_s = 0;
        g->stage = STAGE_YELLOW;
        if (s->c->yellow_s + s->c->all_red_s <= 0) {
            start_green(s, g);
        }
        show_signal(s, junction);
    }
    return 1;
}

/* Seconds since the current cycle of a program from a file began. It runs on the clock of the files; whole cycles
 * before the episode are dropped first, so that a late begin costs no precision. */
static double time_in_cycle(const sim *s, const net_junction *j, double cycle)
{
    const double since = j->starts_with_episode ? 0 : -sim_since_begin(s, j->start);
    const double t = fmod(s->elapsed_s + fmod(since, cycle) + TIME_TOL, cycle);
    return t < 0 ? t + cycle : t;
}

/* The step of a program from a file that is due. */
static const net_step *step_now(const sim *s, const net_junction *j)
{
    double cycle = 0;
    for (int32_t k = 0; k < j->n_steps; k++) {
        cycle += j->step[k].duration_s;
    }
    double t = time_in_cycle(s, j, cycle);
    const net_step *step = j->step;
    for (; step + 1 < j->step + j->n_steps && t >= step->duration_s; step++) {
        t -= step->duration_s;
    }
    return step;
}

int32_t signal_program(const sim *s, int32_t junction)
{
    const net_junction *j = &s->net.junction[junction];
    if (j->n_steps > 0) {
        return step_now(s, j)->phase;
    }
    const double between = s->c->yellow_s + s->c->all_red_s;
    double cycle = 0;
    for (int32_t p = 0; p < j->n_phases; p++) {
        cycle += j->green_s[p] + between;
    }
    double t = fmod(s->elapsed_s + TIME_TOL, cycle);
    int32_t p = 0;
    for (; p + 1 < j->n_phases && t >= j->green_s[p] + between; p++) {
        t -= j->green_s[p] + between;
    }
    return p;
}

/* Pairs of links that cross, that are shown green or yellow at once, and of which one phase does not determine which
 * yields. */
static int64_t count_conflicts(const net_junction *j, const signal_state *g)
{
    const net_links open = net_union(g->show.green, g->show.yellow);
    int64_t n = 0;
    for (int32_t a = 0; a < j->n_links; a++) {
        if (!net_has(&open, a)) {
            continue;
        }
        for (int32_t b = a + 1; b < j->n_links; b++) {
            if (!net_has(&open, b) || !net_has(&j->crosses[a], b)) {
                continue;
            }
            int together = 0; /* permitted: a turn that yields to oncoming traffic of its own phase */
            for (int32_t p = 0; p < j->n_phases; p++) {
                together |= net_has(&j->phase[p].green, a) && net_has(&j->phase[p].green, b);
            }
            n += !together;
        }
    }
    return n;
}

/* The program of a file, letter by letter. */
static void show_step(sim *s, int32_t junction)
{
    const net_step *now = step_now(s, &s->net.junction[junction]);
    signal_state *g = &s->signal[junction];
    const net_junction *j = &s->net.junction[junction];
    const int is_phase = !net_any(now->show.yellow) && net_equal(now->show.green, j->phase[now->phase].green);
    const int32_t stage = is_phase ? STAGE_GREEN : net_any(now->show.yellow) ? STAGE_YELLOW : STAGE_ALL_RED;
    if (stage != g->stage || (is_phase && now->phase != g->phase)) {
        g->stage_s = 0;
    }
    g->stage = stage;
    g->next = now->phase;
    g->phase = is_phase ? now->phase : g->phase;
    g->show = now->show;
}

/* The vehicle that stands first at its line waits for the best that a phase gives its link: a turn that has an arrow of
 * its own waits for that also while it may go if there is a gap, until a vehicle finds one. Once it counts it counts
 * on, also while the queue moves up, until there is none, or its green. */
static void count_red(sim *s, const net_junction *j, const signal_state *g)
{
    for (int32_t bit = 0; bit < j->n_links; bit++) {
        const net_link *link = &s->net.link[j->link + bit];
        const lane_state *l = &s->lane[link->from];
        double *red_s = &s->red_s[j->link + bit];
        const int letter = net_letter(&s->net, j, &g->show, bit);
        const int32_t first = l->n > 0 ? s->who[slot_front(l)] : NET_NONE;
        if (letter >= j->best[bit] || first == NET_NONE || s->vehicle[first].next != link->via ||
            (letter > NET_RED && first != l->front)) {
            *red_s = 0;
        } else if (*red_s > 0 || s->v[slot_front(l)] < HALTING_MPS) {
            *red_s += s->c->dt_s;
            s->sum.red_s = most(s->sum.red_s, *red_s);
        }
    }
}

/* Does the first vehicle of a lane wait for a light that shows red? */
static int waits_at_red(const sim *s, int32_t vid)
{
    const int32_t next = s->vehicle[vid].next;
    if (next < 0 || s->net.lane[next].via_of == NET_NONE) {
        return 0;
    }
    const net_link *l = &s->net.link[s->net.lane[next].via_of];
    if (l->junction == NET_NONE || l->junction >= s->net.n_signals) {
        return 0;
    }
    const net_show *show = &s->signal[l->junction].show;
    return !net_has(&show->green, l->bit) && !net_has(&show->yellow, l->bit) && !net_has(&show->stop, l->bit);
}

void signal_step(sim *s)
{
    const double dt = s->c->dt_s;
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        const net_junction *j = &s->net.junction[k];
        signal_state *g = &s->signal[k];
        const int is_fixed = s->c->control == CONTROL_VEHICLES || s->c->baseline;
        if (is_fixed && j->n_steps == 0) {
            (void)signal_request(s, k, signal_program(s, k));
        }
        const net_links open = net_union(g->show.green, g->show.yellow);
        if (!net_equal(g->counted, open)) {
            g->counted = open;
            g->n_conflicts = (int32_t)count_conflicts(j, g);
        }
        s->sum.conflicting += g->n_conflicts;
        count_red(s, j, g);
        g->stage_s += dt;
        for (int32_t p = 0; p < j->n_phases; p++) {
            g->served_s[p] = g->stage == STAGE_GREEN && p == g->phase ? 0 : g->served_s[p] + dt;
        }
        if (is_fixed && j->n_steps > 0) {
            show_step(s, k);
            continue;
        }
        if (g->stage == STAGE_YELLOW && g->stage_s >= s->c->yellow_s - TIME_TOL) {
            g->stage = STAGE_ALL_RED;
            g->stage_s = 0;
        }
        if (g->stage == STAGE_ALL_RED && g->stage_s >= s->c->all_red_s - TIME_TOL) {
            start_green(s, g);
        }
        show_signal(s, k);
    }
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        lane_state *l = &s->lane[lane];
        const int32_t first = l->n > 0 ? s->who[slot_front(l)] : NET_NONE;
        const int stands = first != NET_NONE && first == l->front && s->v[slot_front(l)] < HALTING_MPS;
        l->stood_s = stands ? l->stood_s + dt : 0;
        l->is_stuck = stands && l->is_stuck;
        if (l->halted != first || first == NET_NONE) {
            const int is_at_line = stands && s->net.lane[lane].length - s->x[slot_front(l)] <= LINE_M;
            l->halted = is_at_line ? first : NET_NONE;
        }
        if (l->stood_s >= STUCK_S - TIME_TOL && !l->is_stuck && !waits_at_red(s, first)) {
            l->is_stuck = 1;
            s->sum.stuck++;
        }
        l->front = first;
    }
}
