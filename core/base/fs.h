/* SPDX-License-Identifier: Apache-2.0
 *
 * File system calls that the rest of the host uses for anything that must survive a crash: every call checks its
 * result, names the path in its error, and is a fault point (fault.h: fs.mkdir fs.open fs.write fs.fsync fs.close
 * fs.rename fs.unlink fs.read fs.map fs.list). An injected fs.write leaves half of the bytes, like a full disk.
 * Errors: DT_ENOTFOUND when a file to read does not exist, DT_EINVAL when one to create does, DT_EDATA when a file has
 * the wrong kind or size or beneath.h rejects it, DT_ENOMEM, otherwise DT_EIO. Every path is opened through beneath.h.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_FS_H
#define DTRAIN_CORE_BASE_FS_H

#include "dtrain/status.h"
#include "base/str.h"

#include <stdio.h>

dt_status dt_fs_mkdirs(const char *path) DT_NODISCARD; /* like mkdir -p */
dt_status dt_fs_mkdir(const char *path) DT_NODISCARD;  /* one, in an existing folder; no error if it exists */
/* Flags of open(2), for what the calls below do not do: logs, locks, readers that follow a file. O_RDONLY alone opens a
 * plain file only, which is never waited for. */
dt_status dt_fs_open(const char *path, int flags, int *fd_p) DT_NODISCARD;
dt_status dt_fs_open_stream(const char *path, int flags, const char *mode, FILE **out_p)
    DT_NODISCARD; /* fdopen's mode */
/* A name of a file or folder for any text: letters, digits, '.', '_', '+', '-' and bytes above 127 are themselves, but
 * for a '.' or '-' at the begin; every other byte is "%XX", an empty text "%". Different texts have different names:
 * one that would be longer than DT_FS_NAME_BYTES is cut, and ends with "%~" and a hash of the whole. */
enum { DT_FS_NAME_BYTES = 200 };
void dt_fs_encode_name(const char *text, dt_str *out);
/* A line of foreign text: at most max bytes of it are kept in *line (dt_free; grown as needed, NUL-terminated), the
 * rest is skipped. bytes: of the whole line, with its newline, where it has one; 0: the stream has ended. Errors:
 * DT_ENOMEM. */
typedef struct dt_fs_line {
    char *text;
    size_t cap, kept;
    uint64_t bytes;
    bool is_whole; /* it ends with a newline, and all of it was kept */
    bool has_end;  /* it ends with a newline */
} dt_fs_line;
dt_status dt_fs_read_line(FILE *f, size_t max, dt_fs_line *line) DT_NODISCARD;
/* Advice on a failed write, by the reason at the end of its message; NULL: none known. */
const char *dt_fs_write_advice(const char *message);
void dt_fs_try_remove(const char *path);                            /* a file, if it exists; no error, errno stays */
void dt_fs_try_remove_folder(const char *path);                     /* the same of a folder, if it is empty */
void dt_fs_try_move(const char *from, const char *to);              /* replaces the target; the same */
dt_status dt_fs_create(const char *path, int *out_fd) DT_NODISCARD; /* new file, fails when it exists */
dt_status dt_fs_write(int fd, const char *path, const void *p, size_t bytes) DT_NODISCARD; /* all of it */
/* Appends after *size_p bytes of an open file, all or nothing: a partial write is truncated again, at the latest by the
 * next call. false with errno; no error text, so that logs may use it. */
bool dt_fs_append(int fd, uint64_t *size_p, const void *p, size_t bytes);
/* What other programs did to a file of `bytes` bytes that is open for appending: nothing; removed or replaced it;
 * truncated it. */
typedef enum dt_fs_fate { DT_FS_KEPT, DT_FS_GONE, DT_FS_CUT } dt_fs_fate;
dt_fs_fate dt_fs_check_appended(int fd, const char *path, uint64_t bytes);
/* Bytes up to the end of the last whole line; all of them where the file cannot be read. */
uint64_t dt_fs_whole_lines_bytes(int fd);
dt_status dt_fs_sync_close(int fd, const char *path) DT_NODISCARD; /* fsync then close; closes in any case */
dt_status dt_fs_sync_dir(const char *path) DT_NODISCARD;
void dt_fs_set_flush(bool is_real); /* tests: false makes fsync a name only; calls still fail and kill on demand */
/* Over a file, a link to one, or an empty folder; DT_ECONFIG where a pipe, a socket or a device is. */
dt_status dt_fs_rename(const char *from, const char *to) DT_NODISCARD;
/* Exchange two names in one step (Linux). Fault point fs.rename. */
dt_status dt_fs_swap(const char *a, const char *b) DT_NODISCARD;
/* Temporary file, fsync, rename, fsync of the folder. */
dt_status dt_fs_write_atomic(const char *path, const void *p, size_t bytes) DT_NODISCARD;
/* The same of strings: DT_ENOMEM where building one of them failed. */
dt_status dt_fs_write_text(const dt_str *path, const dt_str *text) DT_NODISCARD;
/* Of a plain file. NUL-terminated; free with dt_free. */
dt_status dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p) DT_NODISCARD;
/* The same; outside of guarded folders also a pipe or a device, such as <(...) of a shell. */
dt_status dt_fs_read_any(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p) DT_NODISCARD;
/* Read-only mmap; an empty file is DT_EDATA. */
dt_status dt_fs_map(const char *path, const void **out_p, size_t *bytes_p) DT_NODISCARD;
void dt_fs_unmap(const void *p, size_t bytes);
/* Memory in a new file at path: zeros; the file is unlinked, so that it ends with the process, and its disk space is
 * reserved. DT_EIO. Released by dt_fs_unmap_scratch. */
dt_status dt_fs_map_scratch(const char *path, size_t bytes, void **out_p) DT_NODISCARD;
void dt_fs_unmap_scratch(void *p, size_t bytes);
/* Can a file of so many bytes be written in a folder, or in the first one above it that exists? Tried with an unlinked
 * file. DT_EIO. */
dt_status dt_fs_check_free(const char *folder, size_t bytes) DT_NODISCARD;
/* Free bytes of the file system of a folder, which need not exist yet; UINT64_MAX: unknown. */
uint64_t dt_fs_free_bytes(const char *folder);
dt_status dt_fs_remove_tree(const char *path) DT_NODISCARD; /* missing is fine; links are removed, not followed */
bool dt_fs_is_dir(const char *path);
bool dt_fs_is_file(const char *path);
/* DT_EIO where this user may not access path, so that "not found" would be wrong; DT_OK otherwise. */
dt_status dt_fs_check_access(const char *path) DT_NODISCARD;
/* Kind of path itself: links are not followed. Inaccessible paths are DT_FS_NOTHING. */
typedef enum dt_fs_kind { DT_FS_NOTHING, DT_FS_FILE, DT_FS_FOLDER, DT_FS_LINK, DT_FS_OTHER } dt_fs_kind;
dt_fs_kind dt_fs_kind_of(const char *path);
/* Folder of the running program; of a build tree its top, without .libs of libtool. */
dt_status dt_fs_program_dir(dt_str *out) DT_NODISCARD;
/* A folder of the installation: at the same place relative to the program as `configured` to the configured bindir,
 * where that exists (moved, or installed with DESTDIR); else configured itself. */
dt_status dt_fs_installed_dir(const char *configured, dt_str *out) DT_NODISCARD;
/* The former for a program in program_dir; out is empty where that is no bindir. */
void dt_fs_relocate(const char *configured, const char *bindir, const char *program_dir, dt_str *out);
/* Tests: a call for every change that succeeded, in order, from which states after a power loss are made up. to: of a
 * rename or swap, else NULL; p, bytes: of a write. A flush of a folder is a DT_FS_FLUSH too; a tree goes as one. */
typedef enum dt_fs_change {
    DT_FS_MKDIR,
    DT_FS_CREATE,
    DT_FS_WRITE,
    DT_FS_FLUSH,
    DT_FS_RENAME,
    DT_FS_SWAP,
    DT_FS_REMOVE
} dt_fs_change;
typedef void dt_fs_tracer(void *user, dt_fs_change what, const char *path, const char *to, const void *p, size_t bytes);
void dt_fs_set_tracer(dt_fs_tracer *tracer, void *user); /* NULL stops it */

/* Sorted names in a folder, without . and ..; free each and the array with dt_free. */
dt_status dt_fs_list(const char *path, char ***out_p, size_t *n_p) DT_NODISCARD;
void dt_fs_list_free(char **names, size_t n);

#endif
