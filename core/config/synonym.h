/* SPDX-License-Identifier: Apache-2.0
 *
 * Suggestions for keys that are not known: the names that other programs (Stable-Baselines3, CleanRL, RLlib, PyTorch,
 * Lightning) give a setting, and keys that another section has. Only messages use them. Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_SYNONYM_H
#define DTRAIN_CORE_CONFIG_SYNONYM_H

#include "config/tree.h"

/* What key of section (NULL: a key outside any) probably means, as "a.b" or "a.b, c.d"; nothing is added where there is
 * no such key. Sections are those that are declared. */
void dt_synonym_suggest(const dt_config *c, const dt_section *section, const char *key, dt_str *out);

#endif
