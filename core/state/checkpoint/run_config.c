/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of the run that a checkpoint belongs to. See checkpoint.h.
 */
#include <config.h>

#include "state/checkpoint/checkpoint.h"

#include "base/beneath.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void dt_ckpt_run_config(const char *checkpoint, dt_str *out)
{
    static const int places[] = {0, 2, 1}; /* folders above it */
    char *full = checkpoint != NULL && dt_fs_is_dir(checkpoint) ? realpath(checkpoint, NULL) : NULL;
    if (full != NULL) {
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            size_t bytes = strlen(full);
            for (int up = places[i]; up > 0 && bytes > 0; up--) {
                while (bytes > 0 && full[--bytes] != '/') {
                }
            }
            dt_str_clear(out);
            dt_str_add_n(out, full, bytes);
            char *folder = dt_strdup(dt_str_text(out));
            dt_str_add(out, "/config.cfg");
            struct stat info;
            /* the file itself, or a link to one: that one is refused where it is read, not passed over here */
            const bool is_there = folder != NULL && folder[0] != '\0' && dt_beneath_guard(folder) == DT_OK &&
                                  dt_beneath_stat(dt_str_text(out), &info) == 0 && !S_ISDIR(info.st_mode);
            if (!is_there && folder != NULL) {
                dt_beneath_unguard(folder);
            }
            dt_free(folder);
            if (is_there) {
                free(full);
                return;
            }
        }
    }
    free(full);
    dt_str_clear(out);
}
