/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the recorded games in tests/fixtures/snakes (ORIGIN.md there). A record that is not as it should be fails the
 * test. Include after cmocka.h. Threads: one.
 */
#ifndef DTRAIN_TESTS_ENV_SNAKES_RECORDS_H
#define DTRAIN_TESTS_ENV_SNAKES_RECORDS_H

#include "../../plugins/env_snakes/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_LINE = 512 };

typedef struct records {
    FILE *f;
    char line[RECORDS_LINE], *at;
    int number; /* of the line */
} records;

static inline void records_open(records *r, const char *name)
{
    const char *source = getenv("DT_SRCDIR");
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/fixtures/snakes/%s", source != NULL ? source : ".", name);
    *r = (records){.f = fopen(path, "r")};
    assert_non_null(r->f);
}

/* The next line, read on behind its first word. */
static inline bool records_next(records *r)
{
    if (fgets(r->line, sizeof(r->line), r->f) == NULL) {
        return false;
    }
    r->number++;
    r->at = r->line + strcspn(r->line, " \n");
    return true;
}

static inline bool records_is(const records *r, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(r->line, word, n) == 0 && strchr(" \n", r->line[n]) != NULL;
}

static inline long records_number(records *r, int base)
{
    char *end = r->at;
    const long value = strtol(r->at, &end, base);
    assert_true(end != r->at);
    r->at = end;
    return value;
}

static inline double records_real(records *r)
{
    char *end = r->at;
    const double value = strtod(r->at, &end);
    assert_true(end != r->at);
    r->at = end;
    return value;
}

static inline void records_digits(records *r, uint8_t *out, uint32_t n)
{
    r->at += strspn(r->at, " ");
    for (uint32_t i = 0; i < n; i++, r->at++) {
        assert_in_range(*r->at, '0', '3');
        out[i] = (uint8_t)(*r->at - '0');
    }
}

/* Six snakes and the beans. */
static inline void records_board(records *r, board *b)
{
    memset(b, 0, sizeof(*b));
    for (uint32_t i = 0; i <= BOARD_SNAKES; i++) {
        uint8_t cell[CELLS];
        assert_true(records_next(r) && records_is(r, i < BOARD_SNAKES ? "snake" : "beans"));
        const uint32_t direction = i < BOARD_SNAKES ? (uint32_t)records_number(r, 10) : 0;
        const uint32_t n = (uint32_t)records_number(r, 10);
        assert_in_range(n, 1, i < BOARD_SNAKES ? CELLS - 1 : BOARD_BEANS);
        for (uint32_t k = 0; k < n; k++) {
            cell[k] = (uint8_t)records_number(r, 10);
        }
        if (i < BOARD_SNAKES) {
            board_place(b, i, cell, n, direction);
        }
        for (uint32_t k = 0; i == BOARD_SNAKES && k < n; k++) {
            board_add_bean(b, cell[k]);
        }
    }
}

#endif
