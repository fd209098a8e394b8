/* SPDX-License-Identifier: Apache-2.0
 *
 * File system calls that the rest of the host uses for anything that must survive a crash: every call checks its
 * result, names the path in its error, and is a fault point (fault.h: fs.mkdir fs.open fs.write fs.fsync fs.close
 * fs.rename fs.unlink fs.read fs.map fs.list). An injected fs.write leaves half of the bytes, like a full disk.
 * Errors: DT_ENOTFOUND when what is to be read is not there, DT_EINVAL when what is to be created exists,
 * DT_EDATA when a file is not of the kind or size asked for, or beneath.h refuses it, DT_ENOMEM, otherwise DT_EIO.
 * Every path goes through beneath.h: what lies in a run, a checkpoint or a store leads nowhere else.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_FS_H
#define DTRAIN_CORE_BASE_FS_H

#include "dtrain/status.h"
#include "base/str.h"

#include <stdio.h>

dt_status dt_fs_mkdirs(const char *path) DT_NODISCARD; /* like mkdir -p */
dt_status dt_fs_mkdir(const char *path) DT_NODISCARD;  /* one, in a folder that is there; fine where it is itself */
/* Flags of open(2), for what the calls below do not do: logs, locks, readers that follow a file. O_RDONLY alone opens a
 * plain file only, which is never waited for. */
dt_status dt_fs_open(const char *path, int flags, int *fd_p) DT_NODISCARD;
dt_status dt_fs_stream(const char *path, int flags, const char *mode, FILE **out_p) DT_NODISCARD; /* fdopen's mode */
/* A name of a file or folder for any text: letters, digits, '.', '_', '+', '-' and bytes above 127 are themselves, but
 * for a '.' or '-' at the begin; every other byte is "%XX", an empty text "%". Different texts have different names:
 * one that would be longer than DT_FS_NAME_BYTES is cut, and ends with "%~" and a hash of the whole. */
enum { DT_FS_NAME_BYTES = 200 };
void dt_fs_name_of(const char *text, dt_str *out);
/* A line of foreign text: at most max bytes of it are kept in *line (dt_free; grown as it is needed, NUL-terminated),
 * the rest is passed over. bytes: all of the line, with its newline, where it has one; 0: the stream has ended. Errors:
 * DT_ENOMEM. */
typedef struct dt_fs_line {
    char *text;
    size_t cap, kept;
    uint64_t bytes;
    bool is_whole; /* it ends with a newline, and all of it was kept */
    bool has_end;  /* it ends with a newline */
} dt_fs_line;
dt_status dt_fs_line_read(FILE *f, size_t max, dt_fs_line *line) DT_NODISCARD;
/* What helps against a failed write, from the reason that its message ends with; NULL where that is not known. */
const char *dt_fs_remedy(const char *message);
void dt_fs_discard(const char *path);              /* a file of ours, if it is there; no error, errno stays */
void dt_fs_discard_folder(const char *path);       /* the same of a folder, if it is empty */
void dt_fs_move(const char *from, const char *to); /* over what is there; the same */
dt_status dt_fs_create(const char *path, int *out_fd) DT_NODISCARD; /* new file, fails when it exists */
dt_status dt_fs_write(int fd, const char *path, const void *p, size_t bytes) DT_NODISCARD; /* all of it */
/* Behind *size_p bytes of an open file, whole or not at all: what a full disk took of it is cut off again, at the
 * latest when the next piece comes. false with errno; no error text, so that logs may use it. */
bool dt_fs_append(int fd, uint64_t *size_p, const void *p, size_t bytes);
/* What others did to a file of `bytes` bytes that is open for appending: nothing; removed it or put another one in its
 * place; cut it. */
typedef enum dt_fs_fate { DT_FS_KEPT, DT_FS_GONE, DT_FS_CUT } dt_fs_fate;
dt_fs_fate dt_fs_fate_of(int fd, const char *path, uint64_t bytes);
/* Bytes up to the end of the last whole line; all of them where the file cannot be read. */
uint64_t dt_fs_whole_lines(int fd);
dt_status dt_fs_sync_close(int fd, const char *path) DT_NODISCARD; /* fsync then close; closes in any case */
dt_status dt_fs_sync_dir(const char *path) DT_NODISCARD;
void dt_fs_flush_set(bool is_real); /* tests: false makes fsync a name only; calls still fail and kill on demand */
/* Over a file, a link to one, or an empty folder; DT_ECONFIG where a pipe, a socket or a device is. */
dt_status dt_fs_rename(const char *from, const char *to) DT_NODISCARD;
/* Exchange two names in one step (Linux). Fault point fs.rename. */
dt_status dt_fs_swap(const char *a, const char *b) DT_NODISCARD;
/* Written aside, flushed, renamed, folder flushed. */
dt_status dt_fs_write_atomic(const char *path, const void *p, size_t bytes) DT_NODISCARD;
/* The same of a path and a text as they were put together: DT_ENOMEM where one of them could not be. */
dt_status dt_fs_write_text(const dt_str *path, const dt_str *text) DT_NODISCARD;
/* Of a plain file. NUL-terminated; free with dt_free. */
dt_status dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p) DT_NODISCARD;
/* The same; outside of guarded folders also a pipe or a device, which is waited for: what the user names as <(...). */
dt_status dt_fs_read_any(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p) DT_NODISCARD;
/* Read-only mmap; an empty file is DT_EDATA. */
dt_status dt_fs_map(const char *path, const void **out_p, size_t *bytes_p) DT_NODISCARD;
void dt_fs_unmap(const void *p, size_t bytes);
/* Memory that lies in a file: zeros, in a new one at path, which is nameless afterwards and gone with the process. Its
 * room on the disk is taken. DT_EIO says what is missing. Given back by unmap_room. */
dt_status dt_fs_map_room(const char *path, size_t bytes, void **out_p) DT_NODISCARD;
void dt_fs_unmap_room(void *p, size_t bytes);
/* Can a file of so many bytes be written in a folder, or in the first one above it that exists? A nameless file tries
 * it. DT_EIO. */
dt_status dt_fs_try_room(const char *folder, size_t bytes) DT_NODISCARD;
/* Bytes that may still be written below a folder, which need not be there yet; UINT64_MAX where nobody says. */
uint64_t dt_fs_room(const char *folder);
dt_status dt_fs_remove_tree(const char *path) DT_NODISCARD; /* missing is fine; links are removed, not followed */
bool dt_fs_is_dir(const char *path);
bool dt_fs_is_file(const char *path);
/* Before it is said that nothing is at path: DT_EIO where this user may not look there, DT_OK otherwise. */
dt_status dt_fs_check_reach(const char *path) DT_NODISCARD;
/* What lies at path itself: a link is a link wherever it leads. What nobody lets us see is DT_FS_NOTHING. */
typedef enum dt_fs_kind { DT_FS_NOTHING, DT_FS_FILE, DT_FS_FOLDER, DT_FS_LINK, DT_FS_OTHER } dt_fs_kind;
dt_fs_kind dt_fs_look(const char *path);
/* Folder of the running program: where a build tree begins. What libtool hides in .libs counts as above it. */
dt_status dt_fs_program_dir(dt_str *out) DT_NODISCARD;
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
void dt_fs_trace_set(dt_fs_tracer *tracer, void *user); /* NULL stops it */

/* Sorted names in a folder, without . and ..; free each and the array with dt_free. */
dt_status dt_fs_list(const char *path, char ***out_p, size_t *n_p) DT_NODISCARD;
void dt_fs_list_free(char **names, size_t n);

#endif
