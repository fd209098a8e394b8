/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes dtrain.cfg(5) to standard output: every key of the host's sections and of the plugins that were just built,
 * from the tables that the program parses by. It runs while dtrain is built, as the store of the demo recording is
 * made then, and is located next to dtrain, because that is where a build tree's plugins are looked for.
 */
#include <config.h>

#include "base/err.h"
#include "cli/built_plugins.h"
#include "cli/plugin_verbs.h"
#include "cli/roff.h"
#include "config/options.h"
#include "config/schema.h"
#include "config/tree.h"
#include "plugin/loader/loader.h"
#include "plugin/service/stage.h"

#include <stdio.h>
#include <string.h>

/* ---- options ---------------------------------------------------------------------------------------------------- */

static const char *sentence_of_flags(uint32_t flags)
{
    if ((flags & DT_OPT_CODE) != 0) {
        return " Runs code or writes files: not read from a run's own configuration.";
    }
    return (flags & DT_OPT_TRAINING) != 0 ? " Training only: evaluations use the default." : "";
}

static dt_status write_option(const dt_option *o)
{
    dt_str accepts = {0};
    dt_option_accepts(o, &accepts);
    printf(".TP\n.B ");
    dt_roff(o->name);
    printf("\n");
    dt_roff(o->help != NULL ? o->help : "");
    printf("; ");
    dt_roff(dt_str_text(&accepts));
    if (o->unit != NULL && o->unit[0] != '\0' && strcmp(o->unit, "1") != 0) {
        printf(", in ");
        dt_roff(o->unit);
    }
    if (o->dfl != NULL && o->dfl[0] != '\0') {
        printf("; default ");
        dt_roff(o->dfl);
    }
    printf("%s.%s\n", o->dfl == NULL ? "; required" : "", sentence_of_flags(o->flags));
    const dt_status st = dt_str_status(&accepts);
    dt_str_fini(&accepts);
    return st;
}

static dt_status write_table(const dt_option *table)
{
    for (const dt_option *o = table; o != NULL && o->name != NULL; o++) {
        DT_TRY(write_option(o));
    }
    return DT_OK;
}

static dt_status write_section(const dt_config *c, const char *section)
{
    dt_option_view v;
    for (uint32_t i = 0; dt_config_option_at(c, -1, section, i, &v) == DT_OK; i++) {
        DT_TRY(write_option(v.option));
    }
    return DT_OK;
}

/* ---- what is between them ----------------------------------------------------------------------------------- */

static void write_page_head(void)
{
    printf(".TH DTRAIN.CFG 5 \"\" \"dtrain %s\" \"File Formats\"\n", PACKAGE_VERSION);
    puts(".nh\n.ad l\n.SH NAME\ndtrain.cfg \\- configuration of dtrain\n.SH SYNOPSIS\n"
         ".B dtrain \\-\\-config\n.I FILE\n[\\fB\\-\\-set\\fR \\fISECTION.KEY=VALUE\\fR]\n.SH DESCRIPTION\n"
         "A configuration is a text file in libconfig format: sections contain keys, and each key has one value.\n"
         "A section is dtrain's own or has the id of a plugin. Every key may also be set by\n"
         ".B \\-\\-set\nor in the environment, as\n.BR DTRAIN__SECTION__KEY .\n"
         "Later ones override earlier ones: built-in, plugin, profile, files in order, environment,\n.BR \\-\\-set .\n"
         ".B dtrain show\n.I SECTION\nprints each value and its origin. Unknown keys are rejected.\n.PP\n"
         "A key that belongs to no section:");
}

static void write_example(void)
{
    puts(".SH EXAMPLE\n.nf\nseed = 7;\ntraining = { learning_rate = 5e\\-4; };\nphases = (\n"
         "    { plugin = \"phase1_world_model\"; stop = { epochs = 20; }; },\n"
         "    { plugin = \"phase2_ppo\"; env = { id = \"env_traffic\"; };\n"
         "      models = { controller = \"controller_influence\"; };\n"
         "      stop = { iterations = 400; }; }\n);\n.fi\n"
         ".SH SEE ALSO\n.BR dtrain (1),\n.BR libdtrain\\-policy (3)");
}

/* ---- dtrain's own sections -------------------------------------------------------------------------------------- */

static dt_status write_phases(void)
{
    puts(".SH PHASES\n"
         ".B phases\n"
         "is a list; each entry is a phase, trained after the one before. In addition to these keys an\n"
         "entry may contain any section below, for this phase alone. So may the section of a phase's plugin,\n"
         "for all phases of that plugin.");
    DT_TRY(write_table(dt_schema_phase));
    puts(".SS stop\nIn an entry: the first of these conditions ends the phase.");
    return write_table(dt_schema_stop);
}

static dt_status write_verb_sections(const dt_config *c, const dt_verb *v)
{
    for (const dt_verb_section *s = v->sections; s != NULL && s->name != NULL; s++) {
        printf(".SS %s\nRead by\n.B dtrain %s\nalone.\n", s->name, v->name);
        DT_TRY(write_section(c, s->name));
    }
    return DT_OK;
}

static dt_status write_sections(const dt_config *c)
{
    const char *section = NULL;
    puts(".SH SECTIONS");
    for (uint32_t i = 0; (section = dt_config_host_section(i)) != NULL; i++) {
        printf(".SS %s\n", section);
        DT_TRY(write_section(c, section));
    }
    for (int i = 0; dt_builtin_plugins[i] != NULL; i++) {
        const dt_verb *const *v = dt_builtin_plugins[i]->extension(DT_EXT_VERBS);
        for (; v != NULL && *v != NULL; v++) {
            DT_TRY(write_verb_sections(c, *v));
        }
    }
    return DT_OK;
}

static dt_status write_host_sections(void)
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
        write_page_head();
        st = write_section(c, "");
    }
    if (st == DT_OK) {
        st = write_phases();
    }
    if (st == DT_OK) {
        st = write_sections(c);
    }
    dt_config_destroy(c);
    dt_loader_destroy(l);
    return st;
}

/* ---- plugins ---------------------------------------------------------------------------------------------------- */

static void write_defaults(const dt_component *d)
{
    const char *const *set = d->extension != NULL ? d->extension(DT_EXT_DEFAULTS) : NULL;
    if (d->kind != DT_KIND_PHASE || set == NULL || *set == NULL) {
        return;
    }
    printf(" Defaults for other sections: ");
    for (const char *between = ""; *set != NULL; set++, between = ", ") {
        printf("%s", between);
        dt_roff(*set);
    }
    printf(".");
}

static dt_status write_component(const dt_component *d)
{
    printf(".SS ");
    dt_roff(d->id);
    printf("\n%s%s%s: ", dt_kind_name(d->kind), d->role != NULL ? ", role " : "", d->role != NULL ? d->role : "");
    dt_roff(d->summary != NULL ? d->summary : "");
    printf(".");
    write_defaults(d);
    printf("%s\n", d->options == NULL || d->options->name == NULL ? " No options." : "");
    return write_table(d->options);
}

static dt_status write_plugins(void)
{
    dt_host host;
    dt_loader *l = NULL;
    dt_status st = dt_load_built(&host, &l);
    puts(".SH PLUGINS\nPlugins that ship with dtrain. For others,\n.B dtrain show\n.I ID\nprints the same.");
    for (uint32_t i = 0; st == DT_OK && i < dt_loader_count(l); i++) {
        st = write_component(&dt_loader_at(l, i)->desc);
    }
    dt_loader_destroy(l);
    return st;
}

int main(void)
{
    dt_status st = write_host_sections();
    if (st == DT_OK) {
        st = write_plugins();
    }
    write_example();
    if (st == DT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        st = DT_FAIL(DT_EIO, "cannot write to standard output");
    }
    if (st < 0) {
        fprintf(stderr, "cfg_doc: %s\n", dt_error_text());
    }
    return st == DT_OK ? 0 : 1;
}
