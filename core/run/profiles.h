/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that ship with dtrain, and the profiles among them and among plugins. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_PROFILES_H
#define DTRAIN_CORE_RUN_PROFILES_H

#include "base/str.h"
#include "dtrain/status.h"

/* The path of a shipped file or folder: below the program in a build tree, else below the installed data folder. */
dt_status dt_find_shipped(const char *in_build, const char *installed, dt_str *out) DT_NODISCARD;
/* The file of --profile NAME: a shipped profile, a plugin's, a file of the current folder, or a path, which has a
 * slash. Errors: DT_ECONFIG with the names of all profiles. */
dt_status dt_profile_find(const char *name, dt_str *out) DT_NODISCARD;
/* Names of all profiles. Errors: those of listing their folders. */
dt_status dt_profiles_list(const char *separator, dt_str *out) DT_NODISCARD;

#endif
