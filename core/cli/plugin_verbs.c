/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/plugin_verbs.h"

#include "base/err.h"
#include "base/log.h"
#include "base/name.h"
#include "base/plugin_call.h"
#include "base/print.h"
#include "base/signals.h"
#include "config/options.h"
#include "config/schema.h"
#include "plan/machine/limits.h"
#include "telemetry/metrics/progress.h"
#include "run/session.h"

#include <string.h>

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static dt_session opened; /* of the program: plugins stay open until dt_plugin_verbs_close */
static bool is_open;

static dt_loader *load_all_plugins(void)
{
    if (!is_open) {
        dt_str refused = {0};
        dt_log_mute(true);
        dt_status st = dt_session_open_loader(&opened);
        if (st >= 0) {
            st = dt_loader_scan(opened.loader, &refused);
        }
        dt_log_mute(false);
        dt_str_fini(&refused);
        dt_error_clear();
        is_open = true;
    }
    return opened.loader;
}

void dt_plugin_verbs_close(void)
{
    if (is_open) {
        dt_session_close(&opened);
        is_open = false;
    }
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

enum { MOST_TEXT = 4095 };

static dt_status check_verb_option(const char *id, const char *verb, const dt_verb_option *o)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    const size_t n = strlen(o->name);
    if (n == 0 || n > DT_NAME_MOST_WORD || strspn(o->name, letters) != n) {
        return DT_FAIL(DT_EPLUGIN, "%s: verb %s: an option is named \"%.40s\"; expected 1 to %d letters, digits and -",
                       id, verb, o->name, DT_NAME_MOST_WORD);
    }
    return dt_text_check(DT_EPLUGIN, MOST_TEXT, o->help, "%s: verb %s: the help of option %s", id, verb, o->name);
}

static dt_status check_form(const char *id, const char *verb, const dt_verb_form *f, uint32_t i)
{
    DT_TRY(dt_text_check(DT_EPLUGIN, DT_NAME_MOST_WORD, f->name, "%s: verb %s: the name of form %u", id, verb, i));
    DT_TRY(dt_text_check(DT_EPLUGIN, MOST_TEXT, f->words, "%s: verb %s: the words of form %u", id, verb, i));
    DT_TRY(dt_text_check(DT_EPLUGIN, MOST_TEXT, f->help, "%s: verb %s: the help of form %u", id, verb, i));
    for (const dt_verb_option *o = f->options; o != NULL && o->name != NULL; o++) {
        DT_TRY(check_verb_option(id, verb, o));
    }
    return DT_OK;
}

/* What a plugin declares, before any of it is shown or looked up. */
static dt_status check_verb(const dt_loaded_plugin *p, const dt_verb *v)
{
    const char *id = p->desc.name;
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, v->name, "%s: a verb", id));
    DT_TRY(dt_text_check(DT_EPLUGIN, MOST_TEXT, v->summary, "%s: the summary of verb %s", id, v->name));
    if (v->forms == NULL || v->forms[0].run == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: verb %s has no form with a function run; it needs at least one", id, v->name);
    }
    for (uint32_t i = 0; v->forms[i].run != NULL; i++) {
        DT_TRY(check_form(id, v->name, &v->forms[i], i));
    }
    for (const dt_verb_section *s = v->sections; s != NULL && s->name != NULL; s++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, s->name, "%s: a section of verb %s", id,
                             v->name));
    }
    return DT_OK;
}

static bool is_sound(const dt_loaded_plugin *p, const dt_verb *v)
{
    if (check_verb(p, v) == DT_OK) {
        return true;
    }
    dt_log(DT_LOG_WARN, "%s; the verb is left out", dt_error_text());
    dt_error_clear();
    return false;
}

typedef struct visit {
    dt_plugin_verb_fn *fn;
    void *user;
} visit;

static void visit_verbs(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    const visit *w = user;
    for (const dt_verb *const *v = table; *v != NULL; v++) {
        if (is_sound(plugin, *v)) {
            w->fn(w->user, *v);
        }
    }
}

void dt_plugin_verbs_each(dt_plugin_verb_fn *fn, void *user)
{
    dt_loader *l = load_all_plugins();
    if (l != NULL) {
        dt_loader_visit_extensions(l, DT_EXT_VERBS, visit_verbs, &(visit){fn, user});
    }
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct declaring {
    dt_config *config;
    dt_status st;
} declaring;

static dt_status declare_section(const dt_verb_section *s, const dt_verb *v, const dt_loaded_plugin *p, dt_config *c)
{
    if (dt_config_is_host_section(s->name)) {
        return DT_FAIL(DT_EPLUGIN, "%s: verb %s has a section %s, a name of the host's; choose another", p->path,
                       v->name, s->name);
    }
    DT_TRY(dt_option_table_check(s->options, UINT32_MAX));
    return dt_config_declare(c, s->name, s->options, p->desc.name);
}

static void declare_sections(void *user, const void *table, const dt_loaded_plugin *p, const dt_loaded *component)
{
    declaring *d = user;
    for (const dt_verb *const *v = table; *v != NULL; v++) {
        const bool is_left_out = check_verb(p, *v) != DT_OK; /* visit_verbs reports it */
        for (const dt_verb_section *s = is_left_out ? NULL : (*v)->sections;
             d->st == DT_OK && s != NULL && s->name != NULL; s++) {
            d->st = declare_section(s, *v, p, d->config);
            if (d->st != DT_OK) {
                d->st = DT_CONTEXT(DT_EPLUGIN, "%s: section %s of verb %s", p->path, s->name, (*v)->name);
            }
        }
    }
}

dt_status dt_plugin_verbs_declare(dt_loader *l, dt_config *config)
{
    declaring d = {.config = config};
    dt_loader_visit_extensions(l, DT_EXT_VERBS, declare_sections, &d);
    return d.st;
}

typedef struct visit_section {
    dt_plugin_section_fn *fn;
    void *user;
} visit_section;

static void visit_sections(void *user, const void *table, const dt_loaded_plugin *p, const dt_loaded *component)
{
    const visit_section *w = user;
    for (const dt_verb *const *v = table; *v != NULL; v++) {
        const bool is_left_out = check_verb(p, *v) != DT_OK;
        for (const dt_verb_section *s = is_left_out ? NULL : (*v)->sections; s != NULL && s->name != NULL; s++) {
            w->fn(w->user, s);
        }
    }
}

void dt_plugin_verbs_sections(const dt_loader *l, dt_plugin_section_fn *fn, void *user)
{
    dt_loader_visit_extensions(l, DT_EXT_VERBS, visit_sections, &(visit_section){fn, user});
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

typedef struct call {
    dt_verb_call view; /* first: the plugin has a pointer to it */
    const dt_args *args;
    dt_config *config;
    dt_screen *screen; /* opened when there is something to show */
} call;

static const call *as_plugin_call(const dt_verb_call *c)
{
    return c->priv;
}

static const char *read_call_option(const dt_verb_call *c, const char *name)
{
    const dt_args *a = as_plugin_call(c)->args;
    for (uint32_t i = a->n_extra; name != NULL && i-- > 0;) {
        if (strcmp(a->extra[i].name, name) == 0) {
            return a->extra[i].value;
        }
    }
    return NULL;
}

static dt_status read_call_section(const dt_verb_call *c, const char *name, void *out, uint64_t bytes)
{
    DT_TRY(dt_name_given(name, "section"));
    return dt_config_section(as_plugin_call(c)->config, -1, name, NULL, 0, out, bytes);
}

static void print_call_output(const dt_verb_call *c, const char *text)
{
    dt_print_text(text != NULL ? text : "");
}

static void show_progress(const dt_verb_call *c, const char *text, double left_s)
{
    call *own = c->priv;
    if (text == NULL) {
        dt_screen_close(own->screen);
        own->screen = NULL;
        return;
    }
    if (own->screen == NULL && dt_screen_open(own->args->quiet, &own->screen) != DT_OK) {
        dt_error_clear();
        return;
    }
    dt_screen_show_activity(own->screen, text, left_s);
}

static void set_stoppable(const dt_verb_call *c, uint8_t is_on)
{
    dt_signals_set_nothing_to_save(is_on == 0);
    dt_signals_install();
}

static int32_t read_stop_request(const dt_verb_call *c)
{
    return dt_signals_stop();
}

static dt_status read_config(call *c)
{
    const dt_args *a = c->args;
    DT_TRY(dt_config_create(&c->config));
    DT_TRY(dt_plugin_verbs_declare(load_all_plugins(), c->config));
    for (uint32_t i = 0; i < a->n_config; i++) {
        DT_TRY(dt_config_read_file(c->config, DT_FROM_FILE, a->config[i]));
    }
    for (uint32_t i = 0; i < a->n_set; i++) {
        DT_TRY(dt_config_set(c->config, a->set[i]));
    }
    return dt_config_check(c->config, NULL);
}

static dt_status check_required(const dt_args *a, const dt_verb_form *f)
{
    for (const dt_verb_option *o = f->options; o != NULL && o->name != NULL; o++) {
        bool is_given = (o->flags & DT_VERB_OPTION_REQUIRED) == 0;
        for (uint32_t i = 0; i < a->n_extra; i++) {
            is_given = is_given || strcmp(a->extra[i].name, o->name) == 0;
        }
        if (!is_given) {
            return DT_FAIL(DT_ECONFIG, "dtrain %s %s needs --%s %s; see dtrain %s --help", a->verb, f->name, o->name,
                           o->value != NULL ? o->value : "", a->verb);
        }
    }
    return DT_OK;
}

dt_status dt_plugin_verb_call(const dt_args *a, const dt_verb_form *f, int *code_p)
{
    DT_TRY(check_required(a, f));
    const uint32_t skip = f->name[0] != '\0';
    call c = {.args = a};
    c.view = (dt_verb_call){.struct_size = sizeof(dt_verb_call),
                            .n_words = a->n_words - skip,
                            .priv = &c,
                            .word = a->word + skip,
                            .form = f->name,
                            .json = a->json,
                            .quiet = a->quiet,
                            .verbose = a->verbose,
                            .cores = dt_limits_count_cores(""),
                            .option = read_call_option,
                            .section = read_call_section,
                            .print = print_call_output,
                            .progress = show_progress,
                            .catch_signals = set_stoppable,
                            .stop = read_stop_request};
    dt_status st = read_config(&c);
    if (st == DT_OK) {
        DT_CALL_PLUGIN(st, a->verb, f->name[0] != '\0' ? f->name : "the verb", f->run(&opened.host, &c.view));
        *code_p = st < 0 && st != DT_EINTERRUPTED && dt_signals_stop() != 0 ? 128 + dt_signals_stop() : 0;
    }
    dt_screen_close(c.screen);
    dt_config_destroy(c.config);
    return st < 0 ? st : DT_OK;
}
