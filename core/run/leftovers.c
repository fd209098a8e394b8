/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that were never finished; see leftovers.h.
 */
#include <config.h>

#include "run/leftovers.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/text.h"

static bool is_one_of(const char *name, const char *const *pattern)
{
    bool is = false;
    for (size_t i = 0; pattern[i] != NULL; i++) {
        is = is || dt_glob_match(pattern[i], name);
    }
    return is;
}

/* pattern: ends with NULL */
static dt_status drop_in(const char *folder, const char *const *pattern)
{
    char **name = NULL;
    size_t n = 0;
    dt_str file = {0};
    DT_TRY(dt_fs_list(folder, &name, &n));
    for (size_t i = 0; i < n; i++) {
        dt_str_clear(&file);
        dt_str_addf(&file, "%s/%s", folder, name[i]);
        if (is_one_of(name[i], pattern) && dt_str_status(&file) == DT_OK) {
            dt_fs_discard(dt_str_text(&file));
        }
    }
    dt_str_fini(&file);
    dt_fs_list_free(name, n);
    return DT_OK;
}

/* In each phase's folder of stored rollouts (rollouts.keep). */
static dt_status drop_in_rollouts(const char *rollouts)
{
    static const char *const of_rounds[] = {"round-*.safetensors.tmp.*", NULL};
    char **name = NULL;
    size_t n = 0;
    dt_str folder = {0};
    if (!dt_fs_is_dir(rollouts)) {
        return DT_OK;
    }
    DT_TRY(dt_fs_list(rollouts, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str_clear(&folder);
        dt_str_addf(&folder, "%s/%s", rollouts, name[i]);
        st = dt_str_status(&folder);
        if (st == DT_OK && dt_fs_is_dir(dt_str_text(&folder))) {
            st = drop_in(dt_str_text(&folder), of_rounds);
        }
    }
    dt_str_fini(&folder);
    dt_fs_list_free(name, n);
    return st;
}

dt_status dt_leftovers_drop(const char *run_dir)
{
    static const char *const of_run[] = {"config.cfg.tmp.*",
                                         "config.origin.json.tmp.*",
                                         "meta.json.tmp.*",
                                         "progress.json.tmp.*",
                                         "report.html.tmp.*",
                                         "trace.json.tmp.*",
                                         NULL};
    dt_str rollouts = {0};
    DT_TRY(drop_in(run_dir, of_run));
    dt_str_addf(&rollouts, "%s/rollouts", run_dir);
    dt_status st = dt_str_status(&rollouts);
    if (st == DT_OK) {
        st = drop_in_rollouts(dt_str_text(&rollouts));
    }
    dt_str_fini(&rollouts);
    return st;
}
