/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that plugins add (dtrain/ext/verbs.h). Plugins are opened when a word is no verb of the host, and for the list
 * in `dtrain --help`. Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_PLUGIN_VERBS_H
#define DTRAIN_CORE_CLI_PLUGIN_VERBS_H

#include "config/config.h"
#include "dtrain/ext/verbs.h"
#include "plugin/loader/loader.h"
#include "run/args.h"

/* Opens all plugins once and calls each with every verb. Errors of single plugins are left to `dtrain list`. */
typedef void dt_plugin_verb_fn(void *user, const dt_verb *v);
void dt_plugin_verbs_each(dt_plugin_verb_fn *fn, void *user);
void dt_plugin_verbs_close(void); /* before the program ends */

/* Calls a form; words and options fit it. Errors: DT_ECONFIG, and those of the form. */
dt_status dt_plugin_verb_call(const dt_args *a, const dt_verb_form *f, int *code_p) DT_NODISCARD;

/* Declares the sections of all verbs of a loader's plugins. Errors: DT_EPLUGIN (a table that is not legal, a name that
 * is taken). */
dt_status dt_plugin_verbs_declare(dt_loader *l, dt_config *c) DT_NODISCARD;
/* Calls fn with every section of them. */
typedef void dt_plugin_section_fn(void *user, const dt_verb_section *s);
void dt_plugin_verbs_sections(const dt_loader *l, dt_plugin_section_fn *fn, void *user);

#endif
