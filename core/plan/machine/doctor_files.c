/* SPDX-License-Identifier: Apache-2.0
 *
 * What doctor checks of file systems: where runs are written and recordings are read. See doctor.h. Sources:
 * statvfs(3), statfs(2), posix_fadvise(2), linux/magic.h.
 */
#include <config.h>

#include "plan/machine/doctor.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MIB = 1 << 20, READ_MIB = 64 };

/* Below these a run of the shipped presets does not fit, or has little room. */
#define DISK_FAIL    (128.0 * MIB)
#define DISK_WARN    (2048.0 * MIB)
#define SLOW_WRITE_S 1.0
#define SLOW_READ    100.0 /* MB/s: less than any local disk, more than a Windows drive seen from WSL 2 */

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

typedef struct kind {
    long magic;
    const char *name;
    const char *remedy; /* NULL: nothing is wrong with it */
} kind;

static const char copy[] =
    "copy it to a local file system; inside WSL 2 that is the Linux one (below /home), not a drive "
    "of Windows (below /mnt)";

static const kind kinds[] = {
    {0xef53, "ext4", NULL},
    {0x58465342, "XFS", NULL},
    {(long)0x9123683e, "Btrfs", NULL},
    {0x2fc12fc1, "ZFS", NULL},
    {(long)0xf2f52010, "F2FS", NULL},
    {0x01021994, "tmpfs, in memory", NULL},
    {0x794c7630, "overlay of a container", NULL},
    {0x6969, "NFS", NULL},
    {0x0bd00bd0, "Lustre", NULL},
    {0x01021997, "9p, another system's drive", copy},
    {0x65735546, "FUSE", NULL},
    {(long)0xff534d42, "SMB", copy},
    {(long)0xfe534d42, "SMB", copy},
};

static const kind *find_kind(long magic)
{
    static const kind other = {0, "another file system", NULL};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].magic == magic) {
            return &kinds[i];
        }
    }
    return &other;
}

/* ---- where runs are written -------------------------------------------------------------------------------------- */

/* The folder at path, or the nearest above it that exists. */
static void find_nearest_existing(const char *path, dt_str *out)
{
    dt_str_clear(out);
    dt_str_add(out, path);
    while (out->bytes > 0 && !dt_fs_is_dir(dt_str_text(out))) {
        const char *slash = strrchr(dt_str_text(out), '/');
        const size_t keep = slash != NULL ? (size_t)(slash - dt_str_text(out)) : 0;
        const bool is_root = slash != NULL && keep == 0;
        dt_str parent = {0};
        dt_str_add_n(&parent, is_root ? "/" : dt_str_text(out), is_root ? 1 : keep);
        dt_str_fini(out);
        *out = parent;
    }
    if (out->bytes == 0) {
        dt_str_add(out, ".");
    }
}

/* How long 1 MiB takes to the disk; negative: it did not get there. */
static double measure_write_time(const char *dir)
{
    dt_str file = {0};
    char *block = dt_alloc(MIB);
    dt_str_addf(&file, "%s/.dtrain-doctor-%ld", dir, (long)getpid());
    const double before = dt_clock_s();
    const dt_status st = block != NULL && dt_str_status(&file) == DT_OK
                             ? dt_fs_write_atomic(dt_str_text(&file), block, MIB)
                             : DT_FAIL(DT_ENOMEM, "no memory for a block of 1 MiB");
    const double took = dt_clock_s() - before;
    dt_fs_try_remove(dt_str_text(&file));
    dt_free(block);
    dt_str_fini(&file);
    return st < 0 ? -1 : took;
}

void dt_doctor_check_disk(dt_doctor *d, const char *path)
{
    static const char remedy[] = "choose another place by --run-dir or DTRAIN_RUN_DIR, or make room";
    static const char faster[] = "a faster disk makes checkpoints cheaper; checkpoint.every_seconds spaces them";
    dt_str dir = {0};
    struct statvfs room;
    struct statfs fs;
    find_nearest_existing(path, &dir);
    if (statvfs(dt_str_text(&dir), &room) != 0 || statfs(dt_str_text(&dir), &fs) != 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "disk", remedy, "%s: %s", dt_str_text(&dir), strerror(errno));
        dt_str_fini(&dir);
        return;
    }
    const double left = (double)room.f_bavail * (double)room.f_frsize, took = measure_write_time(dt_str_text(&dir));
    const kind *k = find_kind((long)fs.f_type);
    if (took < 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "disk", remedy, "%s", dt_error_text());
    } else {
        const bool is_small = left<DISK_WARN, is_slow = took> SLOW_WRITE_S;
        dt_doctor_add_line(d,
                           left < DISK_FAIL                           ? DT_VERDICT_FAIL
                           : is_small || is_slow || k->remedy != NULL ? DT_VERDICT_WARN
                                                                      : DT_VERDICT_PASS,
                           "disk",
                           is_small            ? remedy
                           : k->remedy != NULL ? k->remedy
                           : is_slow           ? faster
                                               : "",
                           "%.1f GiB free in %s, 1 MiB written and flushed in %.0f ms, %s", left / 0x1p30,
                           dt_str_text(&dir), took * 1e3, k->name);
    }
    dt_str_fini(&dir);
}

/* ---- where recordings are read ----------------------------------------------------------------------------------- */

/* 0: no file, or not to be opened. */
static uint64_t read_file_size(const char *path)
{
    int fd = -1;
    struct stat st;
    if (!dt_fs_is_file(path) || dt_fs_open(path, O_RDONLY, &fd) != DT_OK) {
        dt_error_clear();
        return 0;
    }
    const bool is_known = fstat(fd, &st) == 0;
    (void)close(fd);
    return is_known ? (uint64_t)st.st_size : 0;
}

/* The largest file right below a folder; 0 and no name: there is none. */
static uint64_t find_largest_file(const char *dir, dt_str *out)
{
    char **names = NULL;
    size_t n = 0;
    uint64_t most = 0;
    dt_str path = {0};
    if (dt_fs_list(dir, &names, &n) != DT_OK) {
        dt_error_clear();
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/%s", dir, names[i]);
        const uint64_t bytes = dt_str_status(&path) == DT_OK ? read_file_size(dt_str_text(&path)) : 0;
        if (bytes > most) {
            most = bytes;
            dt_str_clear(out);
            dt_str_add(out, dt_str_text(&path));
        }
    }
    dt_fs_list_free(names, n);
    dt_str_fini(&path);
    return most;
}

/* MB/s of a file that the page cache was asked to forget, 0: it cannot be read. */
static double measure_read_rate(const char *path, uint64_t *bytes_p)
{
    int fd = -1;
    uint64_t bytes = 0;
    char *block = dt_alloc(MIB);
    if (block == NULL || dt_fs_open(path, O_RDONLY, &fd) != DT_OK) {
        dt_free(block);
        dt_error_clear();
        return 0;
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    const double begin = dt_clock_s();
    ssize_t got = read(fd, block, MIB);
    while (got > 0 && bytes < (uint64_t)READ_MIB * MIB) {
        bytes += (uint64_t)got;
        got = read(fd, block, MIB);
    }
    const double took = dt_clock_s() - begin;
    (void)close(fd);
    dt_free(block);
    *bytes_p = bytes;
    return got < 0 || bytes == 0 ? 0 : (double)bytes / 1e6 / (took > 1e-9 ? took : 1e-9);
}

void dt_doctor_check_reading(dt_doctor *d, const char *path)
{
    dt_str file = {0};
    struct statfs fs;
    uint64_t bytes = 0;
    if (statfs(path, &fs) != 0 || find_largest_file(path, &file) == 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "reading", "name the folder of a store: dtrain doctor STORE",
                           "%s: not a folder with files in it", path);
        dt_str_fini(&file);
        return;
    }
    const kind *k = find_kind((long)fs.f_type);
    const double rate = measure_read_rate(dt_str_text(&file), &bytes);
    if (rate == 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "reading", "check its permissions", "%s cannot be read",
                           dt_str_text(&file));
    } else {
        const bool is_slow = rate < SLOW_READ && bytes >= MIB; /* of less, only opening it is measured */
        dt_doctor_add_line(d, is_slow || k->remedy != NULL ? DT_VERDICT_WARN : DT_VERDICT_PASS, "reading",
                           k->remedy != NULL ? k->remedy
                           : is_slow         ? copy
                                             : "",
                           "%s: %s, %.0f MB/s over %.1f MB", path, k->name, rate, (double)bytes / 1e6);
    }
    dt_str_fini(&file);
}
