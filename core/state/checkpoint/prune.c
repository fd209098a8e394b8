/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoints of a run stay, and how the others go. See checkpoint.h.
 */
#include <config.h>

#include "state/checkpoint/checkpoint.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* True when fewer than keep->best valid checkpoints of its phase are better by the same metric; of equals the newer
 * is. */
static bool is_among_best(const dt_ckpt_info *list, uint32_t n, uint32_t i, const dt_ckpt_keep *keep)
{
    if (!list[i].valid || isnan(list[i].metric)) {
        return false;
    }
    uint32_t n_better = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!list[k].valid || isnan(list[k].metric) || k == i || list[k].phase_index != list[i].phase_index ||
            strcmp(list[k].metric_name, list[i].metric_name) != 0) {
            continue;
        }
        const bool is_min = (keep->min >> (list[i].phase_index % 32) & 1) != 0;
        double gain = is_min ? list[i].metric - list[k].metric : list[k].metric - list[i].metric;
        n_better += gain > 0 || (gain == 0 && k > i);
    }
    return n_better < keep->best;
}

/* First out of sight in one step, so that no half-deleted folder has a checkpoint's name, then away. */
static dt_status delete_checkpoint(const char *folder, const char *path)
{
    dt_str trash = {0};
    dt_str_addf(&trash, "%s/trash.%s.%ld", folder, strrchr(path, '/') + 1, (long)getpid());
    dt_status st = dt_str_status(&trash);
    if (st == DT_OK) {
        st = dt_fs_rename(path, trash.text);
    }
    if (st == DT_OK) {
        st = dt_fs_sync_dir(folder);
    }
    if (st == DT_OK) {
        st = dt_fs_remove_tree(trash.text);
    }
    dt_str_fini(&trash);
    return st;
}

static dt_status delete_leftovers(const char *folder)
{
    char **names = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_list(folder, &names, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (dt_glob_match("step-*.tmp.*", names[i]) || dt_glob_match("trash.*", names[i]) ||
            dt_glob_match("LATEST.tmp.*", names[i])) {
            dt_str path = {0};
            dt_str_addf(&path, "%s/%s", folder, names[i]);
            st = dt_str_status(&path);
            if (st == DT_OK) {
                st = dt_fs_remove_tree(path.text);
            }
            dt_str_fini(&path);
        }
    }
    dt_fs_list_free(names, n);
    return st;
}

dt_status dt_ckpt_prune(const char *run_dir, const dt_ckpt_keep *keep)
{
    if (keep->last == 0) {
        return DT_FAIL(DT_EINVAL, "keep_last 0 would delete every checkpoint; must be at least 1");
    }
    dt_str folder = {0};
    dt_ckpt_info *list = NULL;
    uint32_t n = 0, n_newer = 0;
    dt_str_addf(&folder, "%s/checkpoints", run_dir);
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK) {
        st = dt_ckpt_list(folder.text, &list, &n);
    }
    for (uint32_t i = n; i-- > 0 && st == DT_OK;) { /* newest first */
        bool is_kept = !list[i].valid || list[i].phase_end || n_newer < keep->last || is_among_best(list, n, i, keep);
        n_newer += list[i].valid;
        if (!is_kept) {
            st = delete_checkpoint(folder.text, list[i].path);
        }
    }
    if (st == DT_OK) {
        st = delete_leftovers(folder.text);
    }
    dt_free(list);
    dt_str_fini(&folder);
    return st;
}
