/* SPDX-License-Identifier: Apache-2.0
 *
 * options_doc KIND: writes docs/reference/options-KIND.md to standard output, from the tables that the program parses
 * by. KIND is host (the sections of dtrain itself) or a kind of component: phase, model, environment, data. It is
 * located next to dtrain, because that is where a build tree's plugins are looked for. `make options` renews the pages,
 * tests/docs/names.sh compares them.
 */
#include <config.h>

#include "base/err.h"
#include "cli/built_plugins.h"
#include "cli/plugin_verbs.h"
#include "config/options.h"
#include "config/schema.h"
#include "config/tree.h"
#include "plugin/loader/loader.h"
#include "plugin/service/stage.h"

#include <stdio.h>
#include <string.h>

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static void write_text(const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '<') {
            fputs("&lt;", stdout);
        } else {
            printf("%s%c", strchr("|*[\\", *text) != NULL ? "\\" : "", *text);
        }
    }
}

static dt_status write_option(const dt_option *o)
{
    dt_str accepts = {0};
    dt_option_accepts(o, &accepts);
    printf("| `%s` | ", o->name);
    write_text(dt_str_text(&accepts));
    printf(" | ");
    write_text(o->unit != NULL && strcmp(o->unit, "1") != 0 ? o->unit : "");
    printf(" | ");
    write_text(o->dfl == NULL ? "required" : *o->dfl == '\0' ? "empty" : o->dfl);
    printf(" | ");
    write_text(o->help);
    printf("%s%s |\n",
           (o->flags & DT_OPT_CODE) != 0 ? ". Runs code or writes files: not taken from a run's own file" : "",
           (o->flags & DT_OPT_TRAINING) != 0 ? ". Training only: evaluations use the default" : "");
    const dt_status st = dt_str_status(&accepts);
    dt_str_fini(&accepts);
    return st;
}

static void write_table_head(void)
{
    puts("\n| key | value | unit | default | description |\n|---|---|---|---|---|");
}

static dt_status write_table(const dt_option *table)
{
    if (table == NULL || table->name == NULL) {
        puts("\nNo options.");
        return DT_OK;
    }
    write_table_head();
    for (const dt_option *o = table; o->name != NULL; o++) {
        DT_TRY(write_option(o));
    }
    return DT_OK;
}

/* ---- sections of the host --------------------------------------------------------------------------------------- */

static dt_status write_section(const dt_config *c, const char *section)
{
    dt_option_view v;
    if (*section != '\0') {
        printf("\n## %s\n", section);
    }
    write_table_head();
    for (uint32_t i = 0; dt_config_option_at(c, -1, section, i, &v) == DT_OK; i++) {
        DT_TRY(write_option(v.option));
    }
    return DT_OK;
}

static dt_status write_sections(const dt_config *c)
{
    const char *section = NULL;
    DT_TRY(write_section(c, ""));
    puts("\n## phases\n\nA list; each entry is one phase. An entry may also hold any section below, for this phase "
         "alone.");
    DT_TRY(write_table(dt_schema_phase));
    puts("\n### stop\n\nIn an entry of `phases`: the first of these conditions ends the phase.");
    DT_TRY(write_table(dt_schema_stop));
    for (uint32_t i = 0; (section = dt_config_host_section(i)) != NULL; i++) {
        DT_TRY(write_section(c, section));
    }
    for (int i = 0; dt_builtin_plugins[i] != NULL; i++) { /* read by their verbs alone */
        const dt_verb *const *v = dt_builtin_plugins[i]->extension(DT_EXT_VERBS);
        for (const dt_verb_section *s = v != NULL && *v != NULL ? (*v)->sections : NULL; s != NULL && s->name != NULL;
             s++) {
            DT_TRY(write_section(c, s->name));
        }
    }
    return DT_OK;
}

static dt_status write_host(void)
{
    dt_config *c = NULL;
    dt_host host;
    dt_loader *l = NULL;
    dt_status st = dt_load_built(&host, &l);
    if (st == DT_OK) {
        st = dt_config_create(&c);
    }
    if (st == DT_OK) {
        st = dt_plugin_verbs_declare(l, c);
    }
    if (st == DT_OK) {
        st = write_sections(c);
    }
    dt_config_destroy(c);
    dt_loader_destroy(l);
    return st;
}

/* ---- plugins ---------------------------------------------------------------------------------------------------- */

static dt_status write_component(const dt_component *d)
{
    const char *const *set = d->extension != NULL ? d->extension(DT_EXT_DEFAULTS) : NULL;
    printf("\n## %s\n\n", d->id);
    if (d->role != NULL) {
        printf("Role `%s`: ", d->role);
    }
    write_text(d->summary);
    printf(".");
    for (const char *before = " Defaults for other sections: "; d->kind == DT_KIND_PHASE && set != NULL && *set != NULL;
         set++, before = ", ") {
        printf("%s`%s`%s", before, *set, set[1] == NULL ? "." : "");
    }
    puts("");
    return write_table(d->options);
}

static dt_status write_plugins(const char *kind)
{
    dt_host host;
    dt_loader *l = NULL;
    dt_status st = dt_load_built(&host, &l);
    for (uint32_t i = 0; st == DT_OK && i < dt_loader_count(l); i++) {
        const dt_component *d = &dt_loader_at(l, i)->desc;
        if (strcmp(dt_kind_name(d->kind), kind) == 0) {
            st = write_component(d);
        }
    }
    dt_loader_destroy(l);
    return st;
}

int main(int argc, char **argv)
{
    static const char *const titles[][2] = {{"host", "the host"},
                                            {"phase", "phases"},
                                            {"model", "models"},
                                            {"environment", "environments"},
                                            {"data", "data sources"}};
    const char *kind = argc == 2 ? argv[1] : "", *title = NULL;
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        title = strcmp(kind, titles[i][0]) == 0 ? titles[i][1] : title;
    }
    if (title == NULL) {
        fputs("usage: options_doc host|phase|model|environment|data\n", stderr);
        return 2;
    }
    printf("# Options of %s\n\nGenerated by `make options` from the tables that the program parses by.\n", title);
    puts("[Configuration](configuration.md) explains how values are set.\n"
         "`dtrain show NAME` prints the same tables with current values and their origins.");
    dt_status st = strcmp(kind, "host") == 0 ? write_host() : write_plugins(kind);
    if (st == DT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        st = DT_FAIL(DT_EIO, "cannot write to standard output");
    }
    if (st < 0) {
        fprintf(stderr, "options_doc: %s\n", dt_error_text());
    }
    return st == DT_OK ? 0 : 1;
}
