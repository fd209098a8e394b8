/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain --complete KIND PREFIX`, which the completions of shells call: ids, keys, values, profiles, runs and verbs, a
 * line each. Keys come in two steps: sections, and the keys of the one that was typed.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/plugin_verbs.h"
#include "cli/tools.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/print.h"
#include "config/options.h"
#include "config/schema.h"
#include "run/profiles.h"
#include "run/rundir.h"
#include "run/session.h"

#include <stdio.h>
#include <string.h>

typedef struct offer {
    const char *prefix;
    dt_str out;
} offer;

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void offer_word(offer *o, const char *before, const char *text, const char *after)
{
    dt_str whole = {0};
    dt_str_addf(&whole, "%s%s%s", before, text, after);
    if (has_prefix(dt_str_text(&whole), o->prefix)) {
        dt_str_addf(&o->out, "%s\n", dt_str_text(&whole));
    }
    dt_str_fini(&whole);
}

/* ---- components -------------------------------------------------------------------------------------------------- */

/* kind 0: of any; role NULL: of any. */
static void offer_ids(dt_loader *l, uint32_t kind, const char *role, const char *before, offer *o)
{
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        const dt_component *c = &dt_loader_at(l, i)->desc;
        if ((kind == 0 || c->kind == kind) && (role == NULL || (c->role != NULL && strcmp(c->role, role) == 0))) {
            offer_word(o, before, c->id, "");
        }
    }
}

/* ---- keys and values --------------------------------------------------------------------------------------------- */

static void offer_section(const char *section, offer *o)
{
    char text[160];
    snprintf(text, sizeof(text), "%s%s", section, section[0] != '\0' ? "." : "");
    offer_word(o, "", text, "");
}

static void offer_verb_section(void *user, const dt_verb_section *s)
{
    offer_section(s->name, user);
}

static void offer_sections(dt_loader *l, offer *o)
{
    const char *section = NULL;
    for (uint32_t i = 0; (section = dt_config_host_section(i)) != NULL; i++) {
        offer_section(section, o);
    }
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        const dt_component *c = &dt_loader_at(l, i)->desc;
        if (c->options != NULL && c->options->name != NULL) {
            offer_section(c->id, o);
        }
    }
    dt_plugin_verbs_sections(l, offer_verb_section, o);
}

typedef void visit(void *user, const char *section, const dt_option *option);

static void visit_keys(const dt_config *c, dt_loader *l, const char *section, visit *fn, void *user)
{
    dt_option_view v;
    for (uint32_t i = 0; dt_config_option_at(c, -1, section, i, &v) == DT_OK; i++) {
        fn(user, section, v.option);
    }
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        const dt_component *d = &dt_loader_at(l, i)->desc;
        for (const dt_option *p = d->options; strcmp(d->id, section) == 0 && p != NULL && p->name != NULL; p++) {
            fn(user, section, p);
        }
    }
    dt_error_clear();
}

static void offer_key(void *user, const char *section, const dt_option *option)
{
    char key[160];
    snprintf(key, sizeof(key), "%s%s%s", section, section[0] != '\0' ? "." : "", option->name);
    offer_word(user, "", key, "=");
}

typedef struct wanted {
    const char *name;
    const dt_option *found;
} wanted;

static void find_key(void *user, const char *section, const dt_option *option)
{
    wanted *w = user;
    w->found = strcmp(option->name, w->name) == 0 ? option : w->found;
}

/* What names a component, by the key that holds it. */
static void offer_components(dt_loader *l, const char *section, const char *name, const char *before, offer *o)
{
    if (strcmp(section, "models") == 0) {
        offer_ids(l, DT_KIND_MODEL, name, before, o);
    } else if (strcmp(section, "env") == 0 && strcmp(name, "id") == 0) {
        offer_ids(l, DT_KIND_ENV, NULL, before, o);
    } else if (strcmp(section, "data") == 0 && strcmp(name, "source") == 0) {
        offer_ids(l, DT_KIND_DATA, NULL, before, o);
    } else if (strcmp(section, "evaluation") == 0 && strcmp(name, "baselines") == 0) {
        offer_ids(l, DT_KIND_MODEL, "controller", before, o);
    }
}

static void offer_values(const dt_config *c, dt_loader *l, const char *section, const char *name, offer *o)
{
    char before[200];
    wanted w = {.name = name};
    snprintf(before, sizeof(before), "%s%s%s=", section, section[0] != '\0' ? "." : "", name);
    visit_keys(c, l, section, find_key, &w);
    if (w.found != NULL && w.found->type == DT_OPT_BOOL) {
        offer_word(o, before, "true", "");
        offer_word(o, before, "false", "");
    }
    for (uint32_t i = 0; w.found != NULL && w.found->choices != NULL && w.found->choices[i] != NULL; i++) {
        offer_word(o, before, w.found->choices[i], "");
    }
    offer_components(l, section, name, before, o);
}

static dt_status offer_set_keys(dt_loader *l, offer *o)
{
    char section[80], name[80];
    dt_config *c = NULL;
    const char *equals = strchr(o->prefix, '='), *end = equals != NULL ? equals : o->prefix + strlen(o->prefix);
    const char *dot = memchr(o->prefix, '.', (size_t)(end - o->prefix));
    const char *first = dot != NULL ? dot + 1 : o->prefix;
    snprintf(section, sizeof(section), "%.*s", dot != NULL ? (int)(dot - o->prefix) : 0, o->prefix);
    snprintf(name, sizeof(name), "%.*s", (int)(end - first), first);
    DT_TRY(dt_config_create(&c));
    const dt_status st = dt_plugin_verbs_declare(l, c);
    if (st == DT_OK && equals != NULL) {
        offer_values(c, l, section, name, o);
    } else if (st == DT_OK) {
        visit_keys(c, l, section, offer_key, o);
        if (dot == NULL) {
            offer_sections(l, o);
        }
    }
    dt_config_destroy(c);
    return st;
}

/* ---- profiles and runs ------------------------------------------------------------------------------------------- */

static dt_status offer_profiles(offer *o)
{
    dt_str names = {0};
    DT_TRY(dt_profiles_list("\n", &names));
    char *rest = names.text, *name;
    while ((name = strsep(&rest, "\n")) != NULL) {
        offer_word(o, "", name, "");
    }
    dt_str_fini(&names);
    return DT_OK;
}

/* Of the folder that new runs are made in. */
static dt_status offer_runs(offer *o)
{
    char **name = NULL;
    size_t n = 0;
    const char *base = dt_rundir_base_folder();
    DT_TRY(dt_fs_is_dir(base) ? dt_fs_list(base, &name, &n) : DT_OK);
    for (size_t i = 0; i < n; i++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", base, name[i]);
        if (dt_str_status(&path) == DT_OK && strpbrk(name[i], "\n\r") == NULL && dt_rundir_is_run(dt_str_text(&path))) {
            offer_word(o, "", dt_str_text(&path), "");
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(name, n);
    return DT_OK;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static void offer_verb_word(void *user, const char *word)
{
    offer_word(user, "", word, "");
}

static dt_status offer_verbs(offer *o)
{
    dt_cli_visit_words(NULL, offer_verb_word, o);
    return DT_OK;
}

static dt_status offer_all_ids(dt_loader *l, offer *o)
{
    offer_ids(l, 0, NULL, "", o);
    return DT_OK;
}

static dt_status offer_phases(dt_loader *l, offer *o)
{
    offer_ids(l, DT_KIND_PHASE, NULL, "", o);
    return DT_OK;
}

static dt_status offer_envs(dt_loader *l, offer *o)
{
    offer_ids(l, DT_KIND_ENV, NULL, "", o);
    return DT_OK;
}

typedef struct offered_kind {
    const char *name;
    dt_status (*add)(offer *o);
    dt_status (*add_of_plugins)(dt_loader *l, offer *o); /* with all plugins opened */
} offered_kind;

static const offered_kind kinds[] = {{"ids", NULL, offer_all_ids}, {"phases", NULL, offer_phases},
                                     {"envs", NULL, offer_envs},   {"profiles", offer_profiles, NULL},
                                     {"runs", offer_runs, NULL},   {"set", NULL, offer_set_keys},
                                     {"verbs", offer_verbs, NULL}};

static dt_status offer_with_plugins(const offered_kind *k, offer *o)
{
    dt_session s;
    dt_str refused = {0};
    dt_status st = dt_session_open_loader(&s);
    if (st >= 0) {
        st = dt_loader_scan(s.loader, &refused);
    }
    if (st >= 0) {
        st = k->add_of_plugins(s.loader, o);
    }
    dt_str_fini(&refused);
    dt_session_close(&s);
    return st;
}

static dt_status offer_kind(const char *name, offer *o)
{
    static const char of_verb[] = "verb:";
    if (has_prefix(name, of_verb)) {
        dt_cli_visit_words(name + sizeof(of_verb) - 1, offer_verb_word, o);
        return DT_OK;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].add != NULL ? kinds[i].add(o) : offer_with_plugins(&kinds[i], o);
        }
    }
    return DT_FAIL(DT_ECONFIG, "--complete %s: expected ids, phases, envs, profiles, runs, set, verbs or verb:NAME",
                   name);
}

dt_status dt_cli_complete(const char *kind, const char *prefix)
{
    offer o = {.prefix = prefix};
    dt_log_mute(true);
    dt_status st = offer_kind(kind, &o);
    dt_log_mute(false);
    if (st == DT_OK) {
        st = dt_str_status(&o.out);
    }
    dt_print_text(dt_str_text(&o.out));
    dt_str_fini(&o.out);
    return st;
}
