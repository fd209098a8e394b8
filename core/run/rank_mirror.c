/* SPDX-License-Identifier: Apache-2.0
 *
 * Mirrors: between checkpoints, ranks that a launcher supervises write their state to <run>/mirror every few seconds,
 * in the form of a checkpoint but without a flush to the disk. It stays in the memory of the system, which outlives the
 * processes: what is lost with a rank is what followed the last mirror. After a power failure the checkpoints remain,
 * and a mirror that is not whole is passed over. See rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "comm/processes.h"

static const double MOST_SHARE = 0.05; /* of the time that mirrors take */

static dt_status find_folder(const char *run, dt_str *out)
{
    dt_str_addf(out, "%s/mirror", run);
    return dt_str_status(out);
}

bool dt_rank_mirror_is_due(const dt_rank *k)
{
    const double every_s = (double)k->checkpoint.mirror_seconds, least_s = k->mirror.took_s / MOST_SHARE;
    const double last_s = k->mirror.at_s > k->last_save_s ? k->mirror.at_s : k->last_save_s;
    if (every_s <= 0 || k->mirror.is_off || k->r->d->processes == NULL ||
        dt_rank_global_step(k) == k->last_saved_step) {
        return false;
    }
    return dt_fault("run.mirror") || dt_clock_s() - last_s >= (every_s > least_s ? every_s : least_s);
}

static dt_status write_mirror(dt_rank *k, dt_snapshot_desc *d)
{
    if (!dt_rank_is_first(k)) {
        return dt_snapshot_is_shared(k->stage, d) ? dt_snapshot_save_shard(k->stage, d) : DT_OK;
    }
    const dt_ckpt_keep keep = {.last = 1};
    DT_TRY(dt_fs_mkdir(d->run_dir));
    DT_TRY(dt_snapshot_save(k->stage, d, NULL));
    return dt_ckpt_prune(d->run_dir, &keep);
}

/* A mirror that fails costs nothing but itself: checkpoints continue. */
static void disable(dt_rank *k)
{
    k->mirror.is_off = true;
    dt_log(DT_LOG_WARN, "no mirrors of the state any more, a lost process costs what followed the last checkpoint: %s",
           dt_error_text());
    dt_error_clear();
}

dt_status dt_rank_mirror(dt_rank *k)
{
    const double begin_s = dt_clock_s();
    dt_str folder = {0};
    uint32_t is_due = true;
    DT_TRACE_N("run", "mirror", "step", dt_rank_global_step(k));
    DT_TRY(dt_rank_open_state(k, &is_due));
    dt_status st = find_folder(dt_rundir_path(k->r->d->dir), &folder);
    if (st == DT_OK) {
        dt_snapshot_desc d = dt_rank_describe_snapshot(k);
        d.run_dir = dt_str_text(&folder);
        dt_fs_set_flush(false);
        st = write_mirror(k, &d);
        dt_fs_set_flush(true);
    }
    dt_rank_close_state(k);
    dt_str_fini(&folder);
    k->mirror.at_s = dt_clock_s();
    k->mirror.took_s = k->mirror.at_s - begin_s;
    if (st < 0 && st != DT_EPEER && st != DT_ECOMM && st != DT_EDIVERGED && dt_rank_is_first(k)) {
        disable(k);
        st = DT_OK;
    }
    return dt_comm_agree(k->comm, st);
}

bool dt_mirror_find(const char *run, dt_str *out)
{
    dt_ckpt_info *info = dt_alloc_n(2, sizeof(*info));
    bool is_newer = info != NULL && find_folder(run, out) == DT_OK && dt_fs_is_dir(dt_str_text(out)) &&
                    dt_ckpt_inspect(dt_str_text(out), &info[0]) == DT_OK && dt_ckpt_inspect(run, &info[1]) == DT_OK &&
                    info[0].step > info[1].step;
    dt_free(info);
    dt_error_clear();
    return is_newer;
}

static void remove_folder(const char *folder)
{
    if (dt_fs_is_dir(folder) && dt_fs_remove_tree(folder) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
    }
    dt_error_clear();
}

void dt_mirror_remove(const char *run)
{
    dt_str folder = {0};
    if (find_folder(run, &folder) == DT_OK) {
        remove_folder(dt_str_text(&folder));
    }
    dt_str_fini(&folder);
}

void dt_mirror_remove_later(const char *run, uint64_t step)
{
    dt_str folder = {0};
    dt_ckpt_info *info = dt_alloc(sizeof(*info));
    if (info != NULL && find_folder(run, &folder) == DT_OK && dt_fs_is_dir(dt_str_text(&folder)) &&
        (dt_ckpt_inspect(dt_str_text(&folder), info) < 0 || info->step > step)) {
        remove_folder(dt_str_text(&folder));
    }
    dt_error_clear();
    dt_str_fini(&folder);
    dt_free(info);
}
