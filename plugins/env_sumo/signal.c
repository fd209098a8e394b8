/* SPDX-License-Identifier: Apache-2.0 */
#include "signal.h"

#include <math.h>
#include <string.h>

bool signal_is_phase(const char *state)
{
    bool has_green = false;
    for (const char *c = state; *c != '\0'; c++) {
        if (strchr("rsGg", *c) == NULL) {
            return false;
        }
        has_green |= signal_is_green(*c);
    }
    return has_green;
}

const char *signal_find_wrong_state(const sumo_signal *s)
{
    for (uint32_t i = 0; i < s->n_states; i++) {
        if (strlen(s->state[i]) != s->n_links) {
            return s->state[i];
        }
    }
    return NULL;
}

uint32_t signal_phases(const sumo_signal *s, uint32_t *state_of_phase, uint32_t *phase_of_state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_states; i++) {
        phase_of_state[i] = SUMO_NONE;
        if (!signal_is_phase(s->state[i])) {
            continue;
        }
        uint32_t p = 0;
        while (p < n && strcmp(s->state[state_of_phase[p]], s->state[i]) != 0) {
            p++;
        }
        if (p == n) {
            state_of_phase[n++] = i;
        }
        phase_of_state[i] = p;
    }
    for (uint32_t i = 2 * s->n_states; n > 0 && i-- > 0;) { /* what follows a state that is no phase, round the cycle */
        const uint32_t here = i % s->n_states, then = (i + 1) % s->n_states;
        phase_of_state[here] = phase_of_state[here] == SUMO_NONE ? phase_of_state[then] : phase_of_state[here];
    }
    return n;
}

bool signal_yellow(const char *from, const char *to, char *out)
{
    bool ends = false;
    for (; *from != '\0'; from++, to++, out++) {
        const bool is_end = signal_is_green(*from) && !signal_is_green(*to);
        *out = is_end ? 'y' : *from;
        ends |= is_end;
    }
    *out = '\0';
    return ends;
}

int signal_parse_letter(char c)
{
    switch (c) {
    case 'G':
    case 'O':
        return SIGNAL_GO;
    case 'g':
    case 'o':
        return SIGNAL_YIELD;
    case 's':
        return SIGNAL_STOP;
    default:
        return SIGNAL_RED;
    }
}

uint32_t signal_conflicts(const sumo_signal *s, const char *state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_links; i++) {
        for (uint32_t j = 0; j < i && state[i] == 'G'; j++) {
            const size_t one = (size_t)i * s->n_links + j, other = (size_t)j * s->n_links + i;
            const bool has_priority = s->responds[one] != s->responds[other];
            n += state[j] == 'G' && s->foe[one] != 0 && s->from[i] != s->from[j] &&
                 !(has_priority && signal_merge(s, i, j));
        }
    }
    return n;
}

uint32_t signal_program_phase(const sumo_signal *s, const uint32_t *phase_of_state, double since_s)
{
    double cycle_s = 0;
    for (uint32_t i = 0; i < s->n_states; i++) {
        cycle_s += s->duration_s[i];
    }
    uint32_t i = s->first_state;
    if (cycle_s > 0 && since_s >= s->first_s) {
        since_s = fmod(since_s - s->first_s, cycle_s);
        for (i = (i + 1) % s->n_states; since_s >= s->duration_s[i]; i = (i + 1) % s->n_states) {
            since_s -= s->duration_s[i];
        }
    }
    return phase_of_state[i];
}
