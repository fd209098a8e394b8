/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: layers, lookup and the check of the whole. See config.h.
 */
#include <config.h>

#include "config/tree.h"
#include "config/guide.h"
#include "config/options.h"
#include "config/synonym.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 256 };

static const char env_prefix[] = "DTRAIN__";

dt_status dt_config_create(dt_config **out_p)
{
    dt_config *c = dt_alloc(sizeof(*c));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the configuration");
    }
    /* roles of models that come with the host, in addition to those that it wires itself: an option of one that no
     * phase of a run wires is no slip of the hand */
    static const char *const known[] = {"critic", "temperature"};
    c->root.kind = DT_NODE_GROUP;
    c->sections_end = &c->sections;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        c->wired[c->n_wired++] = known[i];
    }
    dt_status st = dt_schema_declare(c);
    if (st != DT_OK) {
        dt_config_destroy(c);
        return st;
    }
    *out_p = c;
    return DT_OK;
}

void dt_config_set_keys(dt_config *c, const dt_keys_ext *keys)
{
    c->keys = c->keys != NULL ? c->keys : keys;
}

const dt_keys_ext *dt_config_keys(const dt_config *c)
{
    return c->keys;
}

void dt_config_destroy(dt_config *c)
{
    if (c == NULL) {
        return;
    }
    dt_str_fini(&c->errors);
    dt_pool_fini(c);
    dt_free(c);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

void dt_config_trust_code(dt_config *c)
{
    c->is_trusted = true;
}

/* A phase's plugin by its path is looked for from the file that names it, as all paths are. */
static dt_status resolve_plugins(dt_config *c, const dt_node *fresh)
{
    const dt_node *phases = dt_node_find(fresh, "phases");
    for (const dt_node *p = phases != NULL ? phases->first : NULL; p != NULL; p = p->next) {
        dt_node *n = p->kind == DT_NODE_GROUP ? dt_node_find(p, "plugin") : NULL;
        if (n != NULL && n->text != NULL && strchr(n->text, '/') != NULL) {
            DT_TRY(dt_node_resolve_path(c, n));
        }
    }
    return DT_OK;
}

dt_status dt_config_read_file(dt_config *c, dt_layer layer, const char *path)
{
    dt_node fresh = {.kind = DT_NODE_GROUP};
    DT_TRY(dt_reader_file(c, layer, path, &fresh));
    DT_TRY(layer == DT_FROM_FILE ? resolve_plugins(c, &fresh) : DT_OK);
    for (dt_node *n = fresh.first, *next = NULL; n != NULL; n = next) {
        next = n->next;
        DT_TRY(dt_node_place(&c->root, n, ""));
    }
    return DT_OK;
}

static dt_status set_text_value(dt_config *c, const char *path, const char *value, const dt_origin *origin)
{
    dt_node *leaf = NULL;
    if (*value == '[' || *value == '(' || *value == '{') {
        DT_TRY(dt_reader_value(c, value, path, origin, &leaf));
    } else {
        DT_TRY(dt_node_new(c, DT_NODE_PLAIN, NULL, value, origin, &leaf));
    }
    return dt_config_place(c, path, leaf);
}

/* DTRAIN_SECTION_KEY, with one underscore, sets nothing. DTRAIN_CONFIGURE is quickstart's. */
static void warn_of_variable(const char *name, size_t bytes)
{
    static const char *const known[] = {"DTRAIN_CONFIG",    "DTRAIN_CONFIGURE", "DTRAIN_CPU_ISA",    "DTRAIN_FAULT",
                                        "DTRAIN_LOG_LEVEL", "DTRAIN_RUN_DIR",   "DTRAIN_PLUGIN_PATH"};
    if (bytes < 7 || strncmp(name, "DTRAIN_", 7) != 0 || strncmp(name, "DTRAIN_LAUNCH_", 14) == 0 ||
        strncmp(name, "DTRAIN_WORKER=", 14) == 0) { /* the last two: from dtrain to the processes that it starts */
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i]) == bytes && strncmp(known[i], name, bytes) == 0) {
            return;
        }
    }
    dt_log(
        DT_LOG_WARN,
        "the environment variable %.*s is not known, and is ignored; one that sets a key is DTRAIN__SECTION__KEY, with "
        "two underscores after DTRAIN and after the section",
        (int)bytes, name);
}

dt_status dt_config_read_env(dt_config *c, char *const *environment)
{
    for (; environment != NULL && *environment != NULL; environment++) {
        const char *equals = strchr(*environment, '=');
        if (equals == NULL || strncmp(*environment, env_prefix, strlen(env_prefix)) != 0) {
            if (equals != NULL) {
                warn_of_variable(*environment, (size_t)(equals - *environment));
            }
            continue;
        }
        const char *name = dt_pool_dup(c, *environment, (size_t)(equals - *environment));
        char *path =
            dt_pool_dup(c, *environment + strlen(env_prefix), (size_t)(equals - *environment) - strlen(env_prefix));
        if (name == NULL || path == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory while reading the environment");
        }
        /* SECTION__KEY is section.key */
        char *to = path;
        for (const char *from = path; *from != '\0'; from++) {
            bool is_dot = from[0] == '_' && from[1] == '_';
            *to++ = is_dot ? '.' : (char)tolower((unsigned char)*from);
            from += is_dot;
        }
        *to = '\0';
        dt_status st = set_text_value(c, path, equals + 1, &(dt_origin){DT_FROM_ENV, name, 0});
        if (st != DT_OK) {
            return strstr(dt_error_text(), name) != NULL ? st : DT_CONTEXT(st, "environment %s", name);
        }
    }
    return DT_OK;
}

/* "path=value" in two; the path is copied to the pool. */
static dt_status split_assignment(dt_config *c, const char *assignment, const char *who, const char **path_p,
                                  const char **value_p)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment) {
        return DT_FAIL(DT_ECONFIG, "%s %s: expected section.key=value", who, assignment);
    }
    size_t bytes = (size_t)(equals - assignment);
    while (bytes > 0 && assignment[bytes - 1] == ' ') {
        bytes--;
    }
    const char *value = equals + 1;
    value += strspn(value, " ");
    *path_p = dt_pool_dup(c, assignment, bytes);
    *value_p = value;
    return *path_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory while reading %s", assignment);
}

dt_status dt_config_set(dt_config *c, const char *assignment)
{
    const char *path = NULL, *value = NULL;
    DT_TRY(split_assignment(c, assignment, "--set", &path, &value));
    dt_status st = set_text_value(c, path, value, &(dt_origin){DT_FROM_SET, "--set", 0});
    if (st != DT_OK && strstr(dt_error_text(), "--set") == NULL) {
        return DT_CONTEXT(st, "--set %s", assignment);
    }
    return st;
}

dt_status dt_config_set_option(dt_config *c, const char *path, const char *value, const char *option)
{
    const char *name = dt_pool_dup(c, option, strlen(option));
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory while reading %s", option);
    }
    return set_text_value(c, path, value, &(dt_origin){DT_FROM_SET, name, 0});
}

static bool is_role_wired(const dt_config *c, const char *role)
{
    uint32_t i = 0;
    while (i < c->n_wired && strcmp(c->wired[i], role) != 0) {
        i++;
    }
    return i < c->n_wired;
}

/* Role of "models.critic": one that plugins wire; path is in the pool. */
static void mark_role_wired(dt_config *c, const char *path)
{
    static const char models[] = "models.";
    const char *role = path + sizeof(models) - 1;
    const dt_section *s = dt_section_find(c, "models");
    if (strncmp(path, models, sizeof(models) - 1) == 0 && (s == NULL || dt_option_find(s->table, role) == NULL) &&
        !is_role_wired(c, role) && c->n_wired < DT_CONFIG_MAX_ROLES) {
        c->wired[c->n_wired++] = role;
    }
}

dt_status dt_config_add_defaults(dt_config *c, int64_t phase, const char *plugin, const char *const *assignments)
{
    if (assignments == NULL) {
        return DT_OK;
    }
    if (dt_config_phase_node(c, phase) == NULL) {
        return DT_FAIL(DT_EINVAL, "there is no phase %lld", (long long)phase);
    }
    const char *name = dt_pool_dup(c, plugin, strlen(plugin));
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the defaults of %s", plugin);
    }
    for (; *assignments != NULL; assignments++) {
        const char *path = NULL, *value = NULL;
        char in_phase[PATH_BYTES];
        dt_status st = split_assignment(c, *assignments, "default", &path, &value);
        if (st == DT_OK) {
            snprintf(in_phase, sizeof(in_phase), "phases.%lld.%s", (long long)phase, path);
            mark_role_wired(c, path);
            st = set_text_value(c, in_phase, value, &(dt_origin){DT_FROM_PLUGIN, name, 0});
        }
        if (st != DT_OK) {
            return DT_CONTEXT(st == DT_ENOMEM ? st : DT_EPLUGIN, "defaults of plugin %s", plugin);
        }
    }
    return DT_OK;
}

/* The values below n that were set are rejected: `--plugin` would drop them with their entry, unseen. */
static dt_status reject_dropped_values(dt_config *c, const dt_node *n, const char *path, dt_layer from, const char *why)
{
    if (n->kind != DT_NODE_GROUP) {
        return n->origin.layer < from ? DT_OK : dt_config_collect_error(c, dt_node_fail(n, path, "%s", why));
    }
    for (const dt_node *child = n->first; child != NULL; child = child->next) {
        char own[PATH_BYTES];
        snprintf(own, sizeof(own), "%s.%s", path, child->key);
        /* a file's plugin alone gives way to --plugin: that is what it is for */
        if (strcmp(child->key, "plugin") != 0 || child->origin.layer > DT_FROM_FILE) {
            DT_TRY(reject_dropped_values(c, child, own, from, why));
        }
    }
    return DT_OK;
}

/* What a file sets for other phases than the selected one is kept for a run of them all; what is given by hand, or
 * for no phase that runs, is meant for this run. */
static dt_status reject_other_phases(dt_config *c, const dt_node *phases, const dt_node *kept, const char *plugin,
                                     const char *option)
{
    const dt_node *names = dt_node_find(kept, "plugin");
    const dt_layer from = names != NULL ? DT_FROM_ENV : DT_FROM_FILE;
    dt_str why = {0};
    int64_t own = 0, i = 0;
    for (const dt_node *n = phases->first; kept != NULL && n != NULL && n != kept; n = n->next) {
        own++;
    }
    dt_str_addf(&why, "%s %s runs only that phase, but this is given for another one", option, plugin);
    if (names != NULL) {
        dt_str_addf(&why, "; the entry of %s is phases.%lld", plugin, (long long)own);
    } else {
        dt_str_addf(&why, "; phases has no entry of %s: add it, or leave %s out", plugin, option);
    }
    dt_status st = dt_str_status(&why);
    for (const dt_node *n = phases->first; n != NULL && st == DT_OK; n = n->next, i++) {
        char path[32];
        snprintf(path, sizeof(path), "phases.%lld", (long long)i);
        st = n != kept ? reject_dropped_values(c, n, path, from, dt_str_text(&why)) : DT_OK;
    }
    dt_str_fini(&why);
    return st;
}

/* The entry of phases that names plugin; else one that names none, as --set phases.0.stop.steps=3 makes it. */
static dt_node *find_phase_entry(const dt_node *phases, const char *plugin)
{
    dt_node *unnamed = NULL;
    for (dt_node *n = phases->first; n != NULL; n = n->next) {
        const dt_node *names = n->kind == DT_NODE_GROUP ? dt_node_find(n, "plugin") : NULL;
        if (names != NULL && names->text != NULL && dt_same_plugin(names->text, plugin)) {
            return n;
        }
        unnamed = n->kind == DT_NODE_GROUP && names == NULL && unnamed == NULL ? n : unnamed;
    }
    return unnamed;
}

dt_status dt_config_use_plugin(dt_config *c, const char *plugin, const char *option)
{
    const char *name = dt_pool_dup(c, option, strlen(option));
    dt_node *phases = dt_node_find(&c->root, "phases"), *kept = NULL, *value = NULL;
    dt_origin origin = {DT_FROM_SET, name, 0};
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %s", option);
    }
    DT_TRY(dt_node_new(c, DT_NODE_TEXT, "plugin", plugin, &origin, &value));
    if (phases != NULL && phases->kind == DT_NODE_LIST) {
        kept = find_phase_entry(phases, plugin);
        DT_TRY(reject_other_phases(c, phases, kept, plugin, option));
    } else if (phases != NULL) {
        return dt_node_fail(phases->first != NULL ? phases->first : phases, "phases",
                            "expected a list; for the one phase of %s set phases.0.stop.steps=3", option);
    }
    if (kept == NULL) {
        DT_TRY(dt_node_new(c, DT_NODE_GROUP, NULL, NULL, &origin, &kept));
    }
    kept->next = NULL;
    DT_TRY(dt_node_place(kept, value, "phases.0"));
    if (phases == NULL) {
        DT_TRY(dt_node_new(c, DT_NODE_LIST, "phases", NULL, &origin, &phases));
        dt_node_append(&c->root, phases);
    }
    phases->kind = DT_NODE_LIST;
    phases->text = NULL;
    phases->first = phases->last = kept;
    return DT_OK;
}

/* A copy of what is below `from`, where `into` has nothing of its layer or a stronger one. */
static dt_status copy_missing_values(dt_config *c, const dt_node *from, dt_node *into)
{
    for (const dt_node *n = from->first; n != NULL; n = n->next) {
        dt_node *old = n->key != NULL ? dt_node_find(into, n->key) : NULL, *copy = NULL;
        if (old != NULL && n->kind == DT_NODE_GROUP && old->kind == DT_NODE_GROUP) {
            DT_TRY(copy_missing_values(c, n, old));
            continue;
        }
        if (old != NULL && old->origin.layer >= n->origin.layer) {
            continue;
        }
        DT_TRY(dt_node_new(c, n->kind, n->key, n->text, &n->origin, &copy));
        DT_TRY(copy_missing_values(c, n, copy));
        if (old != NULL) {
            dt_node_remove(into, old);
        }
        dt_node_append(into, copy);
    }
    return DT_OK;
}

dt_status dt_config_distribute_groups(dt_config *c, int64_t phase, const char *id)
{
    dt_node *own = dt_config_phase_node(c, phase), *group = dt_node_find(&c->root, id);
    dt_section *s = dt_section_find(c, id);
    if (s == NULL || !s->is_phase || own == NULL) {
        return DT_FAIL(DT_EINVAL, "%s is not a declared plugin of phase %lld", id, (long long)phase);
    }
    s->is_spread = true;
    for (const dt_node *n = group != NULL ? group->first : NULL; n != NULL; n = n->next) {
        if (n->kind == DT_NODE_GROUP) {
            dt_node only = *n;
            only.next = NULL;
            DT_TRY(copy_missing_values(c, &(dt_node){.kind = DT_NODE_GROUP, .first = &only}, own));
        }
    }
    return DT_OK;
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

int64_t dt_config_n_phases(const dt_config *c)
{
    const dt_node *phases = dt_node_find(&c->root, "phases");
    return phases != NULL && phases->kind == DT_NODE_LIST ? dt_node_count(phases) : 0;
}

const char *dt_config_plugin(const dt_config *c, int64_t phase)
{
    const dt_node *n = dt_node_find(dt_config_phase_node(c, phase), "plugin");
    return n != NULL && n->text != NULL ? n->text : "";
}

bool dt_config_plugin_is_foreign(const dt_config *c, int64_t phase, dt_str *where)
{
    const dt_node *n = dt_node_find(dt_config_phase_node(c, phase), "plugin");
    if (n == NULL || n->origin.layer != DT_FROM_RUN || c->is_trusted) {
        return false;
    }
    if (where != NULL) {
        dt_origin_text(&n->origin, where);
    }
    return true;
}

static dt_node *find_below(dt_node *from, const char *path)
{
    char words[PATH_BYTES];
    if (strlen(path) >= sizeof(words)) {
        return NULL;
    }
    memcpy(words, path, strlen(path) + 1);
    char *rest = words;
    for (char *word = strsep(&rest, "."); word != NULL && from != NULL; word = strsep(&rest, ".")) {
        from = from->kind == DT_NODE_LIST ? dt_node_at(from, strtoll(word, NULL, 10)) : dt_node_find(from, word);
    }
    return from;
}

const char *dt_config_model(const dt_config *c, int64_t phase, const char *role)
{
    const dt_node *n = dt_config_effective(c, phase, "models", role);
    return n != NULL && n->text != NULL ? n->text : "";
}

dt_status dt_config_get(const dt_config *c, int64_t phase, const char *path, const char **value_p, dt_origin *origin_p)
{
    dt_node *group = dt_config_phase_node(c, phase);
    const dt_node *n =
        dt_node_select_stronger(find_below((dt_node *)&c->root, path), group != NULL ? find_below(group, path) : NULL);
    if (n == NULL || n->text == NULL) {
        return DT_FAIL(DT_ENOTFOUND, "the configuration has no value %s", path);
    }
    *value_p = n->text;
    *origin_p = n->origin;
    return DT_OK;
}

/* ---- checking -------------------------------------------------------------------------------------------------- */

/* Names for "did you mean": the sections, the ids of components, and more. Returns a pool-owned list. */
static const char *const *list_known_names(dt_config *c, const dt_config_lookup *lookup, const char *const *more)
{
    static const char *const none[] = {NULL};
    const char *const *ids = lookup != NULL && lookup->ids != NULL ? lookup->ids(lookup->user) : none;
    size_t n = 1;
    for (const dt_section *s = c->sections; s != NULL; s = s->next) {
        n++;
    }
    for (const char *const *id = ids; *id != NULL; id++) {
        n++;
    }
    for (const char *const *m = more; *m != NULL; m++) {
        n++;
    }
    const char **names = dt_pool_alloc(c, n * sizeof(*names));
    if (names == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (const dt_section *s = c->sections; s != NULL; s = s->next) {
        if (*s->name != '\0') {
            names[used++] = s->name;
        }
    }
    for (const char *const *id = ids; *id != NULL; id++) {
        names[used++] = *id;
    }
    for (; *more != NULL; more++) {
        names[used++] = *more;
    }
    return names;
}

/* rllib = { lr = 0.1; }: what its keys are called here, or all that the section may hold where it has none of them. */
static dt_status reject_guide_section(const dt_config *c, const dt_node *n, const char *path)
{
    dt_str text = {0};
    int n_listed = 0;
    for (const dt_node *child = n->first; child != NULL && n_listed < 6; child = child->next) {
        char key[PATH_BYTES];
        snprintf(key, sizeof(key), "%s.%s", n->key, child->key != NULL ? child->key : "");
        const size_t before = text.bytes;
        dt_str_addf(&text, "; %s: ", key);
        if (dt_guide_explain(c->keys, key, &text)) {
            n_listed++;
        } else if (text.text != NULL) {
            text.bytes = before;
            text.text[before] = '\0';
        }
    }
    if (n_listed == 0) {
        dt_str_add(&text, "; ");
        (void)dt_guide_explain(c->keys, n->key, &text);
    }
    const dt_status st = dt_node_fail(n, path,
                                      "neither a section nor the id of a component%s. dtrain config import translates "
                                      "the guides' files",
                                      dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

static dt_status fail_unknown_section(dt_config *c, const dt_config_lookup *lookup, const dt_node *n, const char *path)
{
    static const char *const more[] = {"phases", "seed", NULL};
    if (dt_config_has_max_errors(c)) {
        return dt_node_fail(n, path, "neither a section nor the id of a component");
    }
    if (n->key != NULL && dt_guide_is_group(c->keys, n->key)) {
        return reject_guide_section(c, n, path);
    }
    const char *const *names = list_known_names(c, lookup, more);
    const char *near = names != NULL ? dt_suggest_word(n->key, names) : NULL;
    dt_str known = {0};
    if (strcmp(path, n->key) == 0 && (strcmp(path, "stop") == 0 || dt_option_find(dt_schema_phase, path) != NULL)) {
        const bool has_keys = n->kind == DT_NODE_GROUP && n->first != NULL;
        char own[PATH_BYTES];
        snprintf(own, sizeof(own), "%s%s%s", path, has_keys ? "." : "", has_keys ? n->first->key : "");
        return dt_node_fail(has_keys ? n->first : n, own, "%s belongs in an entry of phases: phases.0.%s", path, own);
    }
    for (const dt_section *s = c->sections; s != NULL; s = s->next) {
        if (*s->name != '\0' && s->plugin == NULL) {
            dt_str_addf(&known, "%s, ", s->name);
        }
    }
    dt_str meant = {0};
    if (n->kind != DT_NODE_GROUP) {
        dt_synonym_suggest(c, NULL, n->key, &meant);
    }
    if (meant.bytes == 0 && near != NULL) {
        dt_str_add(&meant, near);
    }
    dt_status st = dt_node_fail(n, path, "neither a section nor the id of a component; %s%s%ssections are %sphases",
                                meant.bytes > 0 ? "did you mean \"" : "", dt_str_text(&meant),
                                meant.bytes > 0 ? "\"? " : "", dt_str_text(&known));
    dt_str_fini(&known);
    dt_str_fini(&meant);
    return st;
}

static dt_status check_section(dt_config *c, const dt_config_lookup *lookup, dt_node *n, const char *path);
static dt_status check_values(dt_config *c, const dt_section *s, dt_node *group, const char *path);

static dt_status check_stop(dt_config *c, dt_node *n, const char *path)
{
    static const dt_section stop = {.name = "stop", .table = dt_schema_stop};
    return n->kind == DT_NODE_GROUP
               ? check_values(c, &stop, n, path)
               : dt_config_collect_error(c, dt_node_fail(n, path, "expected a group: stop = { epochs = 50; }"));
}

/* The groups below a phase's plugin; those of a phase that runs are checked there. */
static dt_status check_groups(dt_config *c, const dt_config_lookup *lookup, const dt_section *s, dt_node *group)
{
    for (dt_node *n = group->first; n != NULL && !s->is_spread; n = n->next) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s.%s", s->name, n->key);
        if (n->kind == DT_NODE_GROUP && strcmp(n->key, "stop") == 0) {
            DT_TRY(check_stop(c, n, path));
        } else if (n->kind == DT_NODE_GROUP) {
            DT_TRY(dt_config_collect_error(c, check_section(c, lookup, n, path)));
        }
    }
    return DT_OK;
}

/* Every value of a group, whatever is wrong with the one before. */
static dt_status check_values(dt_config *c, const dt_section *s, dt_node *group, const char *path)
{
    for (dt_node *n = group->first; n != NULL; n = n->next) {
        const bool is_apart = s->is_phase && n->kind == DT_NODE_GROUP && strcmp(path, s->name) == 0;
        if (!is_apart) {
            DT_TRY(dt_config_collect_error(c, dt_section_normalise_one(c, s, n, path)));
        }
    }
    return DT_OK;
}

/* models.<role>: a role that is not wired is right when the component that it names has it. */
static dt_status check_role(dt_config *c, const dt_config_lookup *lookup, const dt_section *s, dt_node *m,
                            const char *path)
{
    const char *role = NULL;
    if (dt_option_find(s->table, m->key) != NULL || m->text == NULL || lookup == NULL) {
        return dt_section_normalise_one(c, s, m, path);
    }
    const bool is_empty = *m->text == '\0';
    dt_status st = is_empty ? DT_ENOTFOUND : lookup->component(lookup->user, c, m->text, &role);
    if (st == DT_ENOTFOUND && !is_role_wired(c, m->key)) {
        return dt_section_normalise_one(c, s, m, path); /* the role is unknown, as far as can be known */
    }
    if (st == DT_OK && (role == NULL || strcmp(role, m->key) != 0)) {
        char own[PATH_BYTES];
        snprintf(own, sizeof(own), "%s.%s", path, m->key);
        return dt_node_fail(m, own, "%s is %s%s", m->text, role != NULL ? "a model for the role " : "no model",
                            role != NULL ? role : "");
    }
    m->kind = DT_NODE_TEXT; /* what is missing is reported where it is looked for */
    return st == DT_ENOTFOUND ? DT_OK : st;
}

/* One section's group, at the top or inside a phase. */
static dt_status check_section(dt_config *c, const dt_config_lookup *lookup, dt_node *n, const char *path)
{
    const dt_section *s = dt_section_find(c, n->key);
    if (s == NULL && lookup != NULL && n->kind == DT_NODE_GROUP) {
        const char *role = NULL;
        dt_status st = lookup->component(lookup->user, c, n->key, &role);
        if (st < 0 && st != DT_ENOTFOUND) {
            return st;
        }
        s = dt_section_find(c, n->key);
    }
    if (s == NULL) {
        return fail_unknown_section(c, lookup, n, path);
    }
    if (n->kind != DT_NODE_GROUP) {
        return dt_node_fail(n, path, "%s is a section: expected %s = { key = value; ... }", n->key, n->key);
    }
    if (s->is_phase && strcmp(path, s->name) == 0) {
        DT_TRY(check_groups(c, lookup, s, n));
    }
    if (strcmp(n->key, "models") != 0) {
        return check_values(c, s, n, path);
    }
    for (dt_node *m = n->first; m != NULL; m = m->next) {
        DT_TRY(dt_config_collect_error(c, check_role(c, lookup, s, m, path)));
    }
    return DT_OK;
}

static dt_status check_phase(dt_config *c, const dt_config_lookup *lookup, dt_node *phase, int64_t i)
{
    static const dt_section keys = {.name = "a phase", .table = dt_schema_phase};
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "phases.%lld", (long long)i);
    if (phase->kind != DT_NODE_GROUP) {
        return dt_node_fail(phase, path, "expected a group: { plugin = \"phase1_world_model\"; }");
    }
    if (dt_node_find(phase, "plugin") == NULL || *dt_config_plugin(c, i) == '\0') {
        DT_TRY(dt_config_collect_error(
            c, dt_node_fail(phase, path, "a phase needs its plugin: { plugin = \"phase1_world_model\"; }")));
    }
    for (dt_node *n = phase->first; n != NULL; n = n->next) {
        snprintf(path, sizeof(path), "phases.%lld", (long long)i);
        bool is_stop = strcmp(n->key, "stop") == 0;
        if (!is_stop && (n->kind != DT_NODE_GROUP || dt_option_find(dt_schema_phase, n->key) != NULL)) {
            DT_TRY(dt_config_collect_error(c, dt_section_normalise_one(c, &keys, n, path)));
            continue;
        }
        snprintf(path, sizeof(path), "phases.%lld.%s", (long long)i, n->key);
        DT_TRY(is_stop ? check_stop(c, n, path) : dt_config_collect_error(c, check_section(c, lookup, n, path)));
    }
    return DT_OK;
}

/* Drop a phase's overrides that a stronger value for all phases beats. */
static void remove_overridden_values(const dt_config *c, dt_node *phase)
{
    for (dt_node *group = phase->first; group != NULL; group = group->next) {
        const dt_node *common = group->kind == DT_NODE_GROUP ? dt_node_find(&c->root, group->key) : NULL;
        for (dt_node *n = common != NULL ? group->first : NULL, *next = NULL; n != NULL; n = next) {
            next = n->next;
            dt_node *for_all = dt_node_find(common, n->key);
            if (dt_node_select_stronger(for_all, n) == for_all) {
                dt_node_remove(group, n);
            }
        }
    }
}

/* Groups below phases' plugins have become the phases' own, or speak of phases that do not run. */
static void remove_phase_groups(dt_config *c)
{
    for (const dt_section *s = c->sections; s != NULL; s = s->next) {
        dt_node *group = s->is_phase ? dt_node_find(&c->root, s->name) : NULL;
        for (dt_node *n = group != NULL ? group->first : NULL, *next = NULL; n != NULL; n = next) {
            next = n->next;
            if (n->kind == DT_NODE_GROUP) {
                dt_node_remove(group, n);
            }
        }
    }
}

dt_status dt_config_check(dt_config *c, const dt_config_lookup *lookup)
{
    const dt_section *top = dt_section_find(c, "");
    dt_status st = DT_OK;
    for (dt_node *n = c->root.first; n != NULL; n = n->next) {
        if (dt_option_find(top->table, n->key) != NULL) {
            DT_TRY(dt_config_collect_error(c, dt_section_normalise_one(c, top, n, "")));
        } else if (strcmp(n->key, "phases") != 0) {
            DT_TRY(dt_config_collect_error(c, check_section(c, lookup, n, n->key)));
        } else if (n->kind != DT_NODE_LIST) {
            st = dt_node_fail(n, "phases", "expected a list: phases = ( { plugin = \"phase1_world_model\"; } )");
            DT_TRY(dt_config_collect_error(c, st));
        }
    }
    DT_TRY(dt_schema_check(c, -1));
    for (int64_t i = 0; i < dt_config_n_phases(c); i++) {
        dt_node *phase = dt_config_phase_node(c, i);
        DT_TRY(dt_config_collect_error(c, check_phase(c, lookup, phase, i)));
        if (phase->kind == DT_NODE_GROUP) { /* an element of a list has no key */
            remove_overridden_values(c, phase);
        }
        DT_TRY(dt_schema_check(c, i));
    }
    remove_phase_groups(c);
    return dt_config_check_errors(c);
}
