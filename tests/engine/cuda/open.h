/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the CUDA module for a test: the emulated one, or the real one with DT_CHECK_GPU set. DT_EMULATED_MODULE:
 * another folder in tests/engine/cuda than emulated.
 */
#ifndef DTRAIN_TESTS_CUDA_OPEN_H
#define DTRAIN_TESTS_CUDA_OPEN_H

#include "base/err.h"
#include "engine/device/open.h"

#include <stdio.h>
#include <stdlib.h>

static inline bool cuda_is_emulated(void)
{
    return getenv("DT_CHECK_GPU") == NULL;
}

/* 0, or what the test leaves with: 77 where there is no GPU. */
static inline int cuda_open(const dt_device_ops **ops_p, dt_device **device_p)
{
    if (cuda_is_emulated()) {
        const char *build = getenv("DT_BUILDDIR"), *module = getenv("DT_EMULATED_MODULE");
        char path[4096];
        snprintf(path, sizeof(path), "%s/tests/engine/cuda/%s", build != NULL ? build : ".",
                 module != NULL ? module : "emulated");
        setenv("DTRAIN_PLUGIN_PATH", path, 1);
    }
    uint32_t n = 0;
    if (dt_device_module_open("cuda", ops_p) != DT_OK || (*ops_p)->count(&n) != DT_OK) {
        printf("skipped: %s\n", dt_error_text());
        return cuda_is_emulated() ? 1 : 77;
    }
    if ((*ops_p)->open(0, device_p) != DT_OK) {
        printf("%s\n", dt_error_text());
        return 1;
    }
    return 0;
}

#endif
