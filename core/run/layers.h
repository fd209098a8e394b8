/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of a configuration, lowest first: profile, the run that is resumed, files, environment, options of the
 * command line. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_LAYERS_H
#define DTRAIN_CORE_RUN_LAYERS_H

#include "config/config.h"
#include "run/args.h"

/* resumed_config: config.cfg of the run that is resumed; NULL: none. Values that are wrong are collected, for
 * dt_config_check or dt_config_check_errors. Errors: files that cannot be read. */
dt_status dt_layers_read(const dt_args *a, const char *resumed_config, dt_config *c) DT_NODISCARD;

#endif
