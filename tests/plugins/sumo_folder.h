/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of SUMO's files for the tests of env_sumo, and what these tests need of the machine and the host.
 */
#ifndef DTRAIN_TESTS_PLUGINS_SUMO_FOLDER_H
#define DTRAIN_TESTS_PLUGINS_SUMO_FOLDER_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traffic/features/features.h"
#include "dtrain/random.h"
#include "dtrain/traffic/features.h"

enum { TEXT = 512, SKIPPED = 77 };

static char folder[TEXT]; /* of the net */

static inline dt_status features_frame(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m,
                                       uint32_t k_max, float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    return dt_features_frame(NULL, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

static const dt_features_api features = {.struct_size = sizeof(features), .frame = features_frame};

static inline int shell(const char *format, ...) DT_PRINTF(1, 2);
static inline int shell(const char *format, ...)
{
    char command[4 * TEXT];
    va_list ap;
    va_start(ap, format);
    vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    return system(command);
}

static inline const char *build_folder(void)
{
    const char *build = getenv("DT_BUILDDIR");
    return build != NULL ? build : ".";
}

/* Says so where it is missing. */
static inline bool has_sumo(void)
{
    char module[TEXT];
    snprintf(module, sizeof(module), "%s/plugins/env_sumo/.libs/env_sumo_shim.so", build_folder());
    if (access(module, R_OK) != 0) {
        puts("skipped: built without SUMO (Debian: apt-get install sumo)");
        return false;
    }
    return true;
}

/* Makes the folder: 0, SKIPPED where SUMO or the module for it is missing, 1 when it cannot be made. */
static inline int make_folder(void)
{
    if (!has_sumo()) {
        return SKIPPED;
    }
    if (shell("command -v netconvert >/dev/null && command -v sumo >/dev/null") != 0) {
        puts("skipped: no netconvert to make a net with (Debian: apt-get install sumo)");
        return SKIPPED;
    }
    snprintf(folder, sizeof(folder), "%s/tests/plugins/sumo-XXXXXX", build_folder());
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    return 0;
}

static inline int remove_folder(void **state)
{
    return shell("rm -r '%s'", folder);
}

#endif
