/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: one tree of groups, lists and values, where every value has its origin.
 *
 * Layers, weakest first: built-in < plugin < profile < resumed run < files in order < environment < command line. A
 * value replaces one of the same or a weaker layer, whatever the order of the calls, so a plugin's defaults may be
 * added after the files were read (they are known only then). A list replaces a list whole; groups merge key by key. Of
 * the phases of a resumed run the sections stay below those of the phases that replace them, the n-th of a plugin with
 * the n-th: they hold what plugins and profiles gave them when the run began, which values outside phases must not
 * beat.
 *
 * The configuration of a run (DT_FROM_RUN) is not trusted as the user's: it includes no files, and what makes code
 * run (DT_OPT_CODE) is not taken from it unless the user trusts it (dt_config_trust_code).
 *
 * Keys are paths: "training.epochs", "phases.0.init". A section is a top-level group with a table of options: the
 * host's own (schema.h) or a component's, under its id. Inside a phase's group any section may be overridden for that
 * phase; there the stronger layer wins and, between equals, the phase's own value: `--set training.epochs=3` beats
 * an override in a file.
 *
 * Under the id of a phase's plugin are the plugin's own options and, as groups, sections as they hold in every phase
 * of that plugin: phase2_ppo = { iterations = 200; data = { batch = 128; }; stop = { time = 60.0; }; }. Between equals
 * they rank above the section for all phases and below the phase's own entry. So one file, a profile, speaks of every
 * phase there is, whichever of them run.
 *
 * Life: create, read the layers, then read sections (options.h) as components become known, then check, which refuses
 * everything that no table knows. Reading a section checks that section alone. Strings handed out live as long as the
 * configuration. Only config.c's reader knows libconfig. Threads: [main].
 *
 * Errors are DT_ECONFIG unless said, and read like "training.epochs = "ten" at run.cfg:7: expected an integer in
 * [1, 1000000]". All mistakes are reported in one run: check continues after an error and reports all together, and
 * the reader of the layers may add its own (keep).
 */
#ifndef DTRAIN_CORE_CONFIG_CONFIG_H
#define DTRAIN_CORE_CONFIG_CONFIG_H

#include "base/str.h"

typedef enum dt_layer {
    DT_FROM_BUILTIN,
    DT_FROM_PLUGIN,
    DT_FROM_PROFILE,
    DT_FROM_RUN, /* the effective configuration of a run: another user may have written it */
    DT_FROM_FILE,
    DT_FROM_ENV,
    DT_FROM_SET
} dt_layer;

typedef struct dt_origin {
    dt_layer layer;
    const char *name; /* plugin id, file, variable, or the option of the command line; NULL for built-in */
    int line;         /* in a file, else 0 */
} dt_origin;

typedef struct dt_config dt_config;

dt_status dt_config_create(dt_config **out_p) DT_NODISCARD; /* with the host's sections and their defaults */
void dt_config_destroy(dt_config *c);
/* The table of other programs' keys (dtrain/ext/keys.h) for messages about unknown keys; the first one counts. */
struct dt_keys_ext;
void dt_config_set_keys(dt_config *c, const struct dt_keys_ext *keys);
const struct dt_keys_ext *dt_config_keys(const dt_config *c); /* NULL: none */

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* What a run's own configuration specifies about code is accepted; before it is read. */
void dt_config_trust_code(dt_config *c);

/* A libconfig file; layer is DT_FROM_PROFILE, DT_FROM_RUN or DT_FROM_FILE. @include is relative to the file that has
 * it. Integers that do not fit 32 bits without the suffix L, and numbers that overflow, are refused: libconfig would
 * truncate them. DT_ENOTFOUND or DT_EIO when it cannot be read. */
dt_status dt_config_read_file(dt_config *c, dt_layer layer, const char *path) DT_NODISCARD;

/* Every DTRAIN__SECTION__KEY=value of a NULL-terminated environment. */
dt_status dt_config_read_env(dt_config *c, char *const *environment) DT_NODISCARD;

/* "section.key=value", as --set takes it. value is plain text, read by the option's type; one that begins with [, ( or
 * { is libconfig's list or group. */
dt_status dt_config_set(dt_config *c, const char *assignment) DT_NODISCARD;

/* The same for an option of the command line that sets a key: ("seed", "7", "--seed"). */
dt_status dt_config_set_option(dt_config *c, const char *path, const char *value, const char *option) DT_NODISCARD;

/* A plugin's defaults for host sections, "section.key=value" ..., NULL; they hold in this phase only. */
dt_status dt_config_add_defaults(dt_config *c, int64_t phase, const char *plugin, const char *const *assignments)
    DT_NODISCARD;

/* `--plugin X`: run one phase. The entry of phases that names X is kept (paths and .so do not matter for the
 * comparison), or else one that names no plugin, and the others go; without one, phases becomes ( { plugin = X } ).
 * What would go unseen is rejected, kept for check to report: keys of the others from the environment or the command
 * line and, where no entry names X, those from files too. */
dt_status dt_config_use_plugin(dt_config *c, const char *plugin, const char *option) DT_NODISCARD;

/* The groups below a phase's plugin become that phase's own sections, where it has no stronger value; id: of the
 * plugin, declared (options.h). Once per phase, after the layers that hold them. */
dt_status dt_config_distribute_groups(dt_config *c, int64_t phase, const char *id) DT_NODISCARD;

/* ---- checking -------------------------------------------------------------------------------------------------- */

/* How check finds the sections of components. id names a top-level group not declared yet: declare it
 * (options.h) and return DT_OK, or return DT_ENOTFOUND when there is no such component. role_p: its role or NULL. */
typedef struct dt_config_lookup {
    dt_status (*component)(void *user, dt_config *c, const char *id, const char **role_p);
    /* For "did you mean": ids known by now, ends with NULL; asked after component, which may add to it. May be NULL. */
    const char *const *(*ids)(void *user);
    void *user;
} dt_config_lookup;

/* DT_ECONFIG becomes DT_OK, and its text is kept for check to report; any other status passes. */
dt_status dt_config_collect_error(dt_config *c, dt_status st) DT_NODISCARD;
/* What is kept so far as one error, for callers that do not check; nothing is kept any more. */
dt_status dt_config_check_errors(dt_config *c) DT_NODISCARD;

/* Everything at once, after all layers: unknown sections and keys, types, ranges, what this version cannot honour. All
 * errors become one, a line each, after those that were kept; of more than 20 the rest is counted.
 * Overrides of a phase that lose against a stronger value are dropped. lookup may be NULL: then only declared
 * sections are known. */
dt_status dt_config_check(dt_config *c, const dt_config_lookup *lookup) DT_NODISCARD;

/* ---- looking --------------------------------------------------------------------------------------------------- */

int64_t dt_config_n_phases(const dt_config *c);

/* The plugin that a phase's entry names, "" when it names none. */
const char *dt_config_plugin(const dt_config *c, int64_t phase);
/* True: only the configuration of a run names that plugin, and it is not trusted. where (may be NULL): the file
 * and line. */
bool dt_config_plugin_is_foreign(const dt_config *c, int64_t phase, dt_str *where);

/* How many values of a layer hold in a phase, id, in its sections and those of what it is wired to; after the check. */
uint32_t dt_config_count_values(const dt_config *c, int64_t phase, const char *id, dt_layer layer);
/* Sections with values of a layer that do not concern the phase, as "a, b"; empty where one is the phase's own: then
 * the layer knows it, and has the others for other phases. */
void dt_config_list_unused(const dt_config *c, int64_t phase, const char *id, dt_layer layer, dt_str *out);

/* Every role that models may name, each once: the host's own, those that plugins wire by their defaults, and those that
 * some phase was given a model for. Returns how many. */
enum { DT_CONFIG_MAX_ROLES = 32 };
uint32_t dt_config_roles(const dt_config *c, const char *role[DT_CONFIG_MAX_ROLES]);
bool dt_config_has_role(const dt_config *c, const char *name);
void dt_config_role_names(const dt_config *c, dt_str *out); /* "perception, world, ..." */

/* The component id wired to a role in a phase (models.<role>), "" when none; -1 = outside any phase. */
const char *dt_config_model(const dt_config *c, int64_t phase, const char *role);

/* The effective text and origin of one value, as the phase sees it. DT_ENOTFOUND. */
dt_status dt_config_get(const dt_config *c, int64_t phase, const char *path, const char **value_p, dt_origin *origin_p)
    DT_NODISCARD;

void dt_origin_text(const dt_origin *o, dt_str *out); /* "run.cfg:7", "plugin phase1_world_model", "--set" ... */

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* The effective configuration as libconfig text; read back as a file it gives the same values. Paths are absolute. */
dt_status dt_config_write(const dt_config *c, dt_str *out) DT_NODISCARD;

/* The origin that a run recorded of a value before it was resumed; NULL: none. */
typedef const char *dt_earlier_origin(void *user, const char *path);
/* One JSON object: {"training.epochs": {"value": 50, "origin": "run.cfg:7"}, ...}. earlier: asked about values that
 * come from the run itself, whose own config.cfg would be named otherwise; NULL: nothing was recorded. */
dt_status dt_config_write_origin(const dt_config *c, dt_earlier_origin *earlier, void *user, dt_str *out) DT_NODISCARD;

/* SHA-256 over the effective values that influence results: not threads, communicator, checkpoints, nor paths (what
 * they point at has hashes of its own). 64 hexadecimal digits and NUL. */
dt_status dt_config_hash(const dt_config *c, char out[65]) DT_NODISCARD;
/* Of what one phase sees: other phases' groups, and the sections of their plugins, are left out. */
dt_status dt_config_hash_phase(const dt_config *c, int64_t phase, char out[65]) DT_NODISCARD;
/* Paths of options that influence the weights of a step, and differ from the file of an earlier run, separated by ",
 * "; "" for none. Options that no phase has a use for do not count, such as amp.dtype without amp.enabled. Errors:
 * those of dt_config_read_file. */
dt_status dt_config_list_differences(const dt_config *c, const char *earlier, dt_str *out) DT_NODISCARD;

#endif
