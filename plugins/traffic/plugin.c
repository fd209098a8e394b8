/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin "traffic", linked into the program: recordings of traffic (stores, importers, maps, features) as services
 * for other plugins, the verb `dtrain data`, panels of reports on predictions, foresight for policies, and keys of
 * earlier systems for `dtrain config import`. It has no components; data_trajectory, env_traffic and env_sumo are
 * plugins of their own.
 */
#include <config.h>

#include "plugin/loader/loader.h"
#include "traffic/foresight/foresight.h"
#include "traffic/guide_keys.h"
#include "traffic/panels/panels.h"
#include "traffic/services.h"
#include "traffic/verbs/data.h"

#include <string.h>

static const dt_verb *const verbs[] = {&dt_data_verb, NULL};

static const void *extension(const char *id)
{
    if (strcmp(id, DT_EXT_VERBS) == 0) {
        return verbs;
    }
    if (strcmp(id, DT_EXT_PANELS) == 0) {
        return &dt_traffic_panels;
    }
    if (strcmp(id, DT_EXT_FORESIGHT) == 0) {
        return &dt_traffic_foresight;
    }
    if (strcmp(id, DT_EXT_KEYS) == 0) {
        return &dt_guide_keys;
    }
    return strcmp(id, DT_EXT_SERVICES) == 0 ? dt_traffic_services : NULL;
}

static const dt_plugin traffic = {DT_PLUGIN_PREFIX,   .name = "traffic",       .version = "1.0",
                                  .vendor = "dtrain", .license = "Apache-2.0", .extension = extension};

const dt_plugin *const dt_builtin_plugins[] = {&traffic, NULL};
