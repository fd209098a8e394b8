/* SPDX-License-Identifier: Apache-2.0
 *
 * See plugin_verbs.h.
 */
#include <config.h>

#include "cli/plugin_verbs.h"

#include "base/err.h"
#include "base/log.h"
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

static dt_loader *all_plugins(void)
{
    if (!is_open) {
        dt_str refused = {0};
        dt_log_mute(true);
        dt_status st = dt_session_loader(&opened);
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

static const dt_verb *const *verbs_of(const dt_loaded *c)
{
    return c->desc.extension != NULL ? c->desc.extension(DT_EXT_VERBS) : NULL;
}

void dt_plugin_verbs_each(dt_plugin_verb_fn *fn, void *user)
{
    dt_loader *l = all_plugins();
    for (uint32_t i = 0; l != NULL && i < dt_loader_n(l); i++) {
        for (const dt_verb *const *v = verbs_of(dt_loader_at(l, i)); v != NULL && *v != NULL; v++) {
            fn(user, *v);
        }
    }
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static dt_status declare_sections(const dt_loaded *c, dt_config *config)
{
    for (const dt_verb *const *v = verbs_of(c); v != NULL && *v != NULL; v++) {
        for (const dt_verb_section *s = (*v)->sections; s != NULL && s->name != NULL; s++) {
            if (dt_config_is_host_section(s->name)) {
                return DT_FAIL(DT_EPLUGIN, "%s: verb %s has a section %s, a name of the host's; choose another",
                               c->plugin->path, (*v)->name, s->name);
            }
            dt_status st = dt_option_table_check(s->options, UINT32_MAX);
            if (st == DT_OK) {
                st = dt_config_declare(config, s->name, s->options, c->plugin->desc.name);
            }
            if (st != DT_OK) {
                return DT_CONTEXT(DT_EPLUGIN, "%s: section %s of verb %s", c->plugin->path, s->name, (*v)->name);
            }
        }
    }
    return DT_OK;
}

dt_status dt_plugin_verbs_declare(dt_loader *l, dt_config *config)
{
    for (uint32_t i = 0; i < dt_loader_n(l); i++) {
        DT_TRY(declare_sections(dt_loader_at(l, i), config));
    }
    return DT_OK;
}

bool dt_plugin_verbs_have_section(dt_loader *l, const char *section)
{
    for (uint32_t i = 0; i < dt_loader_n(l); i++) {
        for (const dt_verb *const *v = verbs_of(dt_loader_at(l, i)); v != NULL && *v != NULL; v++) {
            for (const dt_verb_section *s = (*v)->sections; s != NULL && s->name != NULL; s++) {
                if (strcmp(s->name, section) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

typedef struct call {
    dt_verb_call view; /* first: the plugin has a pointer to it */
    const dt_args *args;
    dt_config *config;
    dt_screen *screen; /* opened when there is something to show */
} call;

static const call *call_of(const dt_verb_call *c)
{
    return c->priv;
}

static const char *option_of(const dt_verb_call *c, const char *name)
{
    const dt_args *a = call_of(c)->args;
    for (uint32_t i = a->n_extra; i-- > 0;) {
        if (strcmp(a->extra[i].name, name) == 0) {
            return a->extra[i].value;
        }
    }
    return NULL;
}

static dt_status section_of(const dt_verb_call *c, const char *name, void *out, uint64_t bytes)
{
    return dt_config_section(call_of(c)->config, -1, name, NULL, 0, out, bytes);
}

static void print(const dt_verb_call *c, const char *text)
{
    (void)c;
    dt_print_text(text);
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
    dt_screen_say(own->screen, text, left_s);
}

static void stoppable(const dt_verb_call *c, uint8_t is_on)
{
    (void)c;
    dt_signals_nothing_to_save(is_on == 0);
    dt_signals_install();
}

static int32_t stop(const dt_verb_call *c)
{
    (void)c;
    return dt_signals_stop();
}

static dt_status read_config(call *c)
{
    const dt_args *a = c->args;
    DT_TRY(dt_config_create(&c->config));
    DT_TRY(dt_plugin_verbs_declare(all_plugins(), c->config));
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
                            .cores = dt_limits_cores(""),
                            .option = option_of,
                            .section = section_of,
                            .print = print,
                            .progress = show_progress,
                            .stoppable = stoppable,
                            .stop = stop};
    dt_status st = read_config(&c);
    if (st == DT_OK) {
        st = f->run(&opened.host, &c.view);
        *code_p = st < 0 && dt_signals_stop() != 0 ? 128 + dt_signals_stop() : 0;
    }
    dt_screen_close(c.screen);
    dt_config_destroy(c.config);
    return st < 0 ? st : DT_OK;
}
