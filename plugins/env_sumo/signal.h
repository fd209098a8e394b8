/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases of one signal, from the program in its file: which greens there are, how one gives way to another, which
 * greens may not be shown together. Text alone, no simulation.
 *
 * A state has a letter per link (SUMO's manual, "Traffic Lights"): G green, g green that yields, y yellow, r red, s
 * red that may be passed after a stop. A phase is a state of the program with some green and no yellow; equal ones are
 * one phase, numbered in the order of the file. Threads: [any].
 */
#ifndef DTRAIN_ENV_SUMO_SIGNAL_H
#define DTRAIN_ENV_SUMO_SIGNAL_H

#include "sumo.h"
#include "letters.h"

#include <stdbool.h>

static inline bool signal_is_green(char c)
{
    return c == 'G' || c == 'g';
}

/* Is a state a phase? */
bool signal_is_phase(const char *state);
/* A state of the program that has not one letter for each link, or NULL: then all may be read by link. */
const char *signal_find_wrong_state(const sumo_signal *s);

/* Phases of the program: phase [n_states] numbers of states, phase_of_state [n_states] the phase that every state is or
 * leads to (SUMO_NONE where there is none). Returns how many. */
uint32_t signal_phases(const sumo_signal *s, uint32_t *state_of_phase, uint32_t *phase_of_state);
/* What is shown between two states: yellow where a green ends, else what was there before; green that continues stays.
 * out [n_links + 1]. Returns false where nothing ends: no yellow is needed. */
bool signal_yellow(const char *from, const char *to, char *out);
/* What a letter lets a link do: SIGNAL_RED to SIGNAL_GO (letters.h). */
int signal_parse_letter(char c);
/* Do the ways of two links come together in one lane? Else those of foes cross. */
static inline bool signal_merge(const sumo_signal *s, uint32_t i, uint32_t j)
{
    return s->to[i] == s->to[j];
}
/* Pairs of links that have G although their ways cross; or merge, and the net does not determine which one of the two
 * yields. (g yields, so it may.) Links from one lane never conflict. */
uint32_t signal_conflicts(const sumo_signal *s, const char *state);
/* The phase that the file's own program shows, or leads to, `since_s` after the simulation began. */
uint32_t signal_program_phase(const sumo_signal *s, const uint32_t *phase_of_state, double since_s);

#endif
