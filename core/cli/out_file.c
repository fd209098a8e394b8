/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that --out names. See cli.h.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"

#include <string.h>

dt_status dt_cli_check_out(const char *path)
{
    const char *slash = strrchr(path, '/');
    const int n = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    dt_str folder = {0};
    dt_str_addf(&folder, "%.*s", n, path);
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK && n > 0 && !dt_fs_is_dir(dt_str_text(&folder))) {
        st = DT_FAIL(DT_ECONFIG, "--out %s: there is no folder %s; make it first, or name another place", path,
                     dt_str_text(&folder));
    } else if (st == DT_OK && dt_fs_is_dir(path)) {
        st = DT_FAIL(DT_ECONFIG, "--out %s is a folder; name a file in it", path);
    }
    dt_str_fini(&folder);
    return st;
}
