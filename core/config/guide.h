/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-up in the tables of other programs' keys that a plugin provides (dtrain/ext/keys.h), for imports and for
 * messages about unknown keys. keys may be NULL: an empty table. Threads: any.
 */
#ifndef DTRAIN_CORE_CONFIG_GUIDE_H
#define DTRAIN_CORE_CONFIG_GUIDE_H

#include "base/str.h"
#include "dtrain/ext/keys.h"

/* The row of a key in a phase (0: next to the phases, -1: in any), NULL: none. */
const dt_key_row *dt_guide_find(const dt_keys_ext *keys, const char *key, int phase);
/* Adds the counterpart of a key, or those of a group of keys, to a message about an unknown key. False, and nothing
 * added: the tables have no such key. */
bool dt_guide_explain(const dt_keys_ext *keys, const char *key, dt_str *out);
/* Is it a group of their keys, such as "amp" or "amp.loss_scale"? */
bool dt_guide_is_group(const dt_keys_ext *keys, const char *key);

/* "@" in targets of a row: the plugin of its phase. */
static inline const char *dt_guide_plugin(const dt_keys_ext *keys, const dt_key_row *row)
{
    return keys->phase[row->phases[0] == '3' ? 2 : 1];
}

#endif
