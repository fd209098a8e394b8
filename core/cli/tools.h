/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at plugins and helping to write them: what the verbs list, show and new do, apart from the command
 * line. Each writes its answer, ready for standard output, into a string; verb_*.c print it. Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_TOOLS_H
#define DTRAIN_CORE_CLI_TOOLS_H

#include "base/json.h"
#include "config/config.h"
#include "plugin/loader/loader.h"

/* `dtrain list [--json]`: every component of every plugin on the search path, and the files that were refused. */
dt_status dt_tools_list(dt_loader *l, bool json, dt_str *out) DT_NODISCARD;

/* `dtrain show ID [--json]`: a component, or a section of the host: options with value, origin, range, unit and help;
 * ports of a model, what an environment offers. phase: whose overrides count, -1 for none. DT_ENOTFOUND. */
dt_status dt_tools_show(dt_config *c, dt_loader *l, int64_t phase, const char *id, bool json, dt_str *out) DT_NODISCARD;

/* show_env.c: as text into out, or where json is not NULL into that. Ports of one side; what an environment offers with
 * these options, by a trial instance, of which one that cannot be made shows nothing but its columns. */
void dt_show_ports(const char *side, const dt_port *port, uint32_t n, dt_json_out *json, dt_str *out);
void dt_show_env(const dt_loaded *comp, const void *config, dt_json_out *json, dt_str *out);
/* Columns of observations that the environment has with other options, or with the files that it needs. s: NULL where
 * no instance could be made. */
void dt_show_other_columns(const dt_loaded *comp, const dt_env_spec *s, dt_json_out *json, dt_str *out);

/* The configuration with one phase, of this plugin, as its defaults and the layers make it. */
dt_status dt_tools_enter_phase(dt_config *c, const dt_loaded *comp) DT_NODISCARD;

/* `dtrain new phase|policy|model|env|data NAME DIR`: a project that builds with pkg-config alone. language: "c", "c++",
 * NULL: the first. DT_ECONFIG: DIR exists, NAME is no legal name, unknown kind or language. */
dt_status dt_tools_new(const char *kind, const char *name, const char *dir, const char *language, dt_str *out)
    DT_NODISCARD;

#endif
