/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/layers.h"

#include "base/err.h"
#include "run/profiles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sources {
    const dt_args *args;
    const char *resumed_config;
} sources;

static dt_status read_profile(const sources *from, dt_config *c)
{
    dt_str path = {0};
    if (from->args->profile == NULL) {
        return DT_OK;
    }
    dt_status st = dt_profile_find(from->args->profile, &path);
    if (st == DT_OK) {
        st = dt_config_read_file(c, DT_FROM_PROFILE, dt_str_text(&path));
    }
    dt_str_fini(&path);
    return st;
}

static dt_status read_resumed_run(const sources *from, dt_config *c)
{
    return from->resumed_config != NULL ? dt_config_read_file(c, DT_FROM_RUN, from->resumed_config) : DT_OK;
}

/* DTRAIN_CONFIG replaces --config; a resumed run has its configuration already. */
static dt_status read_files(const sources *from, dt_config *c)
{
    const dt_args *a = from->args;
    const char *in_env = getenv("DTRAIN_CONFIG");
    if (a->n_config == 0 && from->resumed_config == NULL && in_env != NULL && in_env[0] != '\0') {
        return dt_config_read_file(c, DT_FROM_FILE, in_env);
    }
    for (uint32_t i = 0; i < a->n_config; i++) {
        DT_TRY(dt_config_read_file(c, DT_FROM_FILE, a->config[i]));
    }
    return DT_OK;
}

static dt_status read_environment(const sources *from, dt_config *c)
{
    return dt_config_collect_error(c, dt_config_read_env(c, environ));
}

static dt_status read_set_options(const sources *from, dt_config *c)
{
    for (uint32_t i = 0; i < from->args->n_set; i++) {
        DT_TRY(dt_config_collect_error(c, dt_config_set(c, from->args->set[i])));
    }
    return DT_OK;
}

/* Options of the command line that are short for a key. */
static dt_status read_short_options(const sources *from, dt_config *c)
{
    const dt_args *a = from->args;
    const struct {
        const char *option, *key, *value;
    } row[] = {{"--seed", "seed", a->seed},
               {"--env", "env.id", a->env},
               {"--episodes", "evaluation.episodes", a->episodes},
               {"--seeds", "evaluation.seeds", a->seeds},
               {"--check-sync", "comm.check_every", a->check_sync},
               {"--threads", "engine.threads", a->threads},
               {"--device", "engine.device", a->device},
               {"--no-graphs", "engine.graphs", a->no_graphs ? "false" : NULL}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        if (row[i].value != NULL) {
            DT_TRY(dt_config_collect_error(c, dt_config_set_option(c, row[i].key, row[i].value, row[i].option)));
        }
    }
    return DT_OK;
}

/* A file is recorded by its absolute path: the run may be resumed from another folder. */
static dt_status read_plugin(const sources *from, dt_config *c)
{
    const char *plugin = from->args->plugin;
    if (plugin == NULL) {
        return DT_OK;
    }
    char *absolute = strchr(plugin, '/') != NULL ? realpath(plugin, NULL) : NULL;
    const dt_status st = dt_config_use_plugin(c, absolute != NULL ? absolute : plugin, "--plugin");
    free(absolute);
    return st;
}

dt_status dt_layers_read(const dt_args *a, const char *resumed_config, dt_config *c)
{
    static dt_status (*const layers[])(const sources *, dt_config *) = {
        read_profile,     read_resumed_run,   read_files, read_environment, /* lowest first */
        read_set_options, read_short_options, read_plugin};
    const sources from = {.args = a, .resumed_config = resumed_config};
    if (a->trust_plugins) {
        dt_config_trust_code(c);
    }
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        DT_TRY(layers[i](&from, c));
    }
    return DT_OK;
}
