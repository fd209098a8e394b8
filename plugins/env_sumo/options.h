/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds an option of SUMO in options.def, for the environment and for the module that is linked with SUMO (C and C++).
 * Threads: [any].
 */
#ifndef DTRAIN_ENV_SUMO_OPTIONS_H
#define DTRAIN_ENV_SUMO_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef enum sumo_option_class {
    SUMO_OPTION_INPUT,
    SUMO_OPTION_PASSED,
    SUMO_OPTION_OUTPUT,
    SUMO_OPTION_DETAIL,
    SUMO_OPTION_IGNORED,
    SUMO_OPTION_REFUSED
} sumo_option_class;

typedef struct sumo_option_row {
    const char *names;
    sumo_option_class what;
    const char *reason; /* NULL: none */
} sumo_option_row;

/* Is a name of `bytes` letters one of a list separated by any of the letters of `between`? A word that ends in *
 * matches for all names that begin with what is before it. */
static inline bool sumo_option_is_in(const char *list, const char *between, const char *name, size_t bytes)
{
    for (const char *word = list; *word != '\0'; word += strspn(word, between)) {
        const size_t n = strcspn(word, between);
        const bool is_family = n > 0 && word[n - 1] == '*';
        if (is_family ? bytes >= n && strncmp(word, name, n - 1) == 0 : bytes == n && strncmp(word, name, n) == 0) {
            return true;
        }
        word += n;
    }
    return false;
}

/* An option that no row has, as of a later SUMO: does a word of its name show that it writes files or connects? */
static inline bool sumo_option_acts_outside(const char *name)
{
    static const char *const words = "output outputs out file files log logs save dump write record prefix dir path "
                                     "port clients server socket address host url script python command exec gui";
    for (; *name != '\0'; name += strspn(name, ".-")) {
        const size_t n = strcspn(name, ".-");
        if (sumo_option_is_in(words, " ", name, n)) {
            return true;
        }
        name += n;
    }
    return false;
}

static inline sumo_option_row sumo_option_find(const char *name)
{
    static const sumo_option_row rows[] = {
#define SUMO_OPTION(names, what, reason) {names, SUMO_OPTION_##what, reason},
#include "options.def"
#undef SUMO_OPTION
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (sumo_option_is_in(rows[i].names, " ", name, strlen(name))) {
            return rows[i];
        }
    }
    const sumo_option_row other = {name, sumo_option_acts_outside(name) ? SUMO_OPTION_OUTPUT : SUMO_OPTION_PASSED,
                                   NULL};
    return other;
}

#endif
