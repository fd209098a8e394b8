/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for NCCL as far as `dtrain doctor` asks it: for its version, which is what FAKE_NCCL says.
 */
#include <config.h>

#include "dtrain/plugin.h"

#include <stdlib.h>
#include <string.h>

int ncclGetVersion(int *version);

DT_EXPORT int ncclGetVersion(int *version)
{
    const char *said = getenv("FAKE_NCCL");
    if (said == NULL || strcmp(said, "fails") == 0) {
        return 1;
    }
    *version = (int)strtol(said, NULL, 10);
    return 0;
}
