/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin held against the contract, promise by promise, whatever it does: what `dtrain check` prints. Threads:
 * [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_CHECK_H
#define DTRAIN_CORE_PLUGIN_TRIAL_CHECK_H

#include "config/config.h"
#include "plugin/loader/loader.h"
#include "plugin/trial/trial.h"

typedef struct dt_check_desc {
    dt_loader *loader;
    dt_config *config; /* options of components as set by the user; NULL = their defaults */
    double timeout_s;  /* whatever the plugin is asked, it has so long for an answer; 0: any time */
    bool has_workers;  /* the program serves worker processes of environments (DT_PROCESS_VERB) */
    const char *store; /* value of a data source's option with DT_OPT_STORE; NULL: its default */
    /* Bind, start, run two steps, stop and destroy a phase; note_p lists what was done ("": nothing), t what comes
     * next, and what is to be left out. NULL = phases are not run. A failure for lack of data, DT_ENOTFOUND or
     * DT_ECONFIG, counts as skipped. */
    dt_status (*run_phase)(void *user, const dt_loaded *phase, dt_trial *t, dt_str *note_p);
    /* The same of a phase that learns by acting in an environment, with a controller or a shield in its role. NULL =
     * models are tried on zeros alone. */
    dt_status (*run_model)(void *user, const dt_loaded *model, dt_trial *t, dt_str *note_p);
    /* The configuration that was given, before anything is tried, where the plugin is known: no fault of the plugin's.
     * NULL = it is good. */
    dt_status (*check_config)(void *user, const dt_loaded_plugin *p);
    /* A verdict, without its line end, as soon as it is known. */
    void (*report)(void *user, const char *verdict);
    void *user; /* of all of these */
} dt_check_desc;
/* `dtrain check FILE`: one PASS, SKIP or FAIL line per promise of the contract, whatever the plugin does; the last is
 * the sum. DT_EPLUGIN when a promise is broken, the loader's errors when the file is refused, and those of
 * check_config. file: a path, a plugin's name, or the id of a component. */
dt_status dt_check_plugin(const dt_check_desc *d, const char *file) DT_NODISCARD;

#endif
