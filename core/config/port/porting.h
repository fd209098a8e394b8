/* SPDX-License-Identifier: Apache-2.0
 *
 * Coming from elsewhere, and beginning: a YAML file of the systems before this one as a configuration of ours, the
 * table of their keys, and a file with every key to begin with. Texts for people; the verb `config` prints them.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_PORT_PORTING_H
#define DTRAIN_CORE_CONFIG_PORT_PORTING_H

#include "config/options.h"
#include "dtrain/ext/keys.h"

/* What became of the keys of a file. */
typedef struct dt_ported {
    int taken, same, none, wrong, unknown; /* same: is so always, or said twice */
} dt_ported;

/* path: the YAML file. phase: 1, 2 or 3; 0: as the file states. known: a configuration in which every section is
 * declared that targets of keys name; values are checked by its options, and taken unchecked where one is missing.
 * out: libconfig's language; every key of the file is in it, as a value or in a comment that gives the reason. A file
 * is foreign: what is wrong with it is DT_ECONFIG "FILE:LINE:COLUMN: why". As dt_yaml_read otherwise. */
dt_status dt_porting_import(const char *path, int phase, const dt_keys_ext *keys, const dt_config *known, dt_str *out,
                            dt_ported *ported_p) DT_NODISCARD;

/* The table of keys, for docs/reference/guide-keys.md: rows of Markdown; or one JSON array. */
dt_status dt_porting_keys(const dt_keys_ext *keys, bool json, dt_str *out) DT_NODISCARD;

/* Sections of a template. c: declared, its values are those that a phase (-1: none) has. Every key is in a comment
 * that begins with # and no blank, below its help. */
void dt_template_table(const dt_option *table, int depth, dt_str *out); /* of its defaults */
dt_status dt_template_section(const dt_config *c, int64_t phase, const char *section, dt_str *out) DT_NODISCARD;

#endif
