/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables (dt_option, include/dtrain/plugin.h): from a section of the configuration into a C struct.
 *
 * One parser reads defaults, files, the environment and --set. Members: bool as uint8_t, int64_t, double, const char *
 * (never NULL), uint32_t (index into choices). Ranges are inclusive. A path is made absolute against the folder of the
 * file that set it, otherwise against the current folder; "" stays "". Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_OPTIONS_H
#define DTRAIN_CORE_CONFIG_OPTIONS_H

#include "config/config.h"
#include "dtrain/plugin.h"

/* Beyond the ABI, for the host's own sections only. */
enum {
    DT_OPT_WORDS = 64,         /* const char *const *, ends with NULL: a list, or words separated by commas */
    DT_OPT_NEUTRAL = 1u << 16, /* flag: does not influence results, stays out of dt_config_hash */
    DT_OPT_AUTO = 1u << 17     /* flag of an integer: the word auto is taken, too, and is 0 in the struct */
};

const dt_option *dt_option_find(const dt_option *table, const char *name);   /* NULL when there is none */
const dt_option *dt_option_find_flag(const dt_option *table, uint32_t flag); /* the first one with it, or NULL */

/* Is this table sound: names legal and unique, types known, sizes fit, members inside config_bytes, bounds ordered,
 * choices present, every default parses and is in its range, needs names a bool. table may be NULL (no options).
 * Errors: DT_EPLUGIN, naming the option. */
dt_status dt_option_table_check(const dt_option *table, uint64_t config_bytes) DT_NODISCARD;

/* Make section known and put its defaults into the tree, as built-in ones of the host (plugin NULL) or of a plugin.
 * Declaring the same table twice is fine; another table under the same name is DT_EINVAL. The table must outlive c. */
dt_status dt_config_declare(dt_config *c, const char *section, const dt_option *table, const char *plugin) DT_NODISCARD;

/* The same for the section of a phase's plugin: it may hold groups (config.h). table may be NULL. */
dt_status dt_config_declare_phase(dt_config *c, const char *section, const dt_option *table, const char *plugin)
    DT_NODISCARD;

/* Read a declared section as a phase sees it (-1 = outside any phase) into out, zeroed first. over: values that rank
 * above everything else, or NULL. Required options must have been set. Checks this section's keys, types, ranges. */
dt_status dt_config_section(dt_config *c, int64_t phase, const char *section, const dt_setting *over, uint32_t n_over,
                            void *out, uint64_t bytes) DT_NODISCARD;

/* One row of a declared section for people: the option, its effective text and origin. Ends with DT_ENOTFOUND. */
typedef struct dt_option_view {
    const dt_option *option;
    const char *value; /* NULL: required, and not set */
    dt_origin origin;
} dt_option_view;
dt_status dt_config_option_at(const dt_config *c, int64_t phase, const char *section, uint32_t i, dt_option_view *out_p)
    DT_NODISCARD;

/* "an integer in [1, 8192]", "one of gat, transformer": what an option accepts. */
void dt_option_accepts(const dt_option *o, dt_str *out);
/* An effective text as a member of an object, by its type. */
struct dt_json_out;
void dt_option_json(const dt_option *o, const char *value, const char *key, struct dt_json_out *out);
/* A text as a value of this option in libconfig's language, as a configuration would be written that it was set in.
 * DT_ECONFIG: the option does not accept it. A path stays as it is. */
dt_status dt_option_write(const dt_option *o, const char *text, dt_str *out) DT_NODISCARD;
/* Any text as one of libconfig's strings. */
void dt_config_write_string(const char *text, dt_str *out);
const char *dt_option_type_name(const dt_option *o); /* "bool" "integer" "number" "text" "choice" "path" */

#endif
