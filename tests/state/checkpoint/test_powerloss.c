/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints after a power loss. The changes that saving and pruning make to the disk are recorded; for every prefix
 * of them many disks are made up that the power loss may have left, by the weakest promises of POSIX (Pillai et al.,
 * OSDI 2014, "All file systems are not created equal"):
 *   - bytes of a file are there for sure only when the file was flushed after they were written; otherwise each block
 *     of 512 bytes may be there, be zero, or be rubbish, and the file may be shorter;
 *   - a name is there (or gone, or moved) for sure only when its folder was flushed after the change; otherwise each
 *     change may or may not have reached the disk, in any combination.
 * What loads from such a disk must be a checkpoint that was committed, bit by bit. That the game finds losses at all is
 * shown by playing it with the flushes taken out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "state/checkpoint/checkpoint.h"

enum { MAX_CHANGES = 400, MAX_INODES = 200, NAME_BYTES = 64, STATES_PER_PREFIX = 40, BLOCK = 512, FILE_BYTES = 8192 };

static char run_dir[128], crash_dir[128];

/* ---- the record ---- */

typedef struct change {
    dt_fs_change what;
    char path[256], to[256]; /* relative to checkpoints/, "" is that folder itself */
    uint8_t *bytes;
    size_t n_bytes;
} change;

static change changes[MAX_CHANGES];
static size_t n_changes;

static void relative(const char *path, char out[256])
{
    char prefix[160];
    snprintf(prefix, sizeof(prefix), "%s/checkpoints", run_dir);
    const size_t n = strlen(prefix);
    assert_memory_equal(path, prefix, n);
    snprintf(out, 256, "%s", path[n] == '/' ? path + n + 1 : "");
}

static void record(void *user, dt_fs_change what, const char *path, const char *to, const void *p, size_t bytes)
{
    if (strstr(path, "/checkpoints") == NULL) {
        return; /* the run directory itself */
    }
    assert_true(n_changes < MAX_CHANGES);
    change *c = &changes[n_changes++];
    c->what = what;
    relative(path, c->path);
    c->to[0] = '\0';
    if (to != NULL) {
        relative(to, c->to);
    }
    c->n_bytes = bytes;
    c->bytes = NULL;
    if (bytes > 0) {
        c->bytes = dt_alloc(bytes);
        memcpy(c->bytes, p, bytes);
    }
}

/* ---- the disk ---- */

typedef struct inode {
    bool is_dir;
    uint8_t bytes[FILE_BYTES];
    size_t n, n_flushed;
} inode;

typedef enum entry_kind { ENTRY_ADD, ENTRY_REMOVE, ENTRY_MOVE, ENTRY_SWAP } entry_kind;

/* A change of names in one folder. */
typedef struct entry {
    entry_kind kind;
    int dir, child, child2;
    char name[NAME_BYTES], name2[NAME_BYTES];
    bool is_flushed;
} entry;

static inode inodes[MAX_INODES];
static int n_inodes;
static entry entries[MAX_CHANGES];
static size_t n_entries;

typedef struct listing {
    char name[32][NAME_BYTES];
    int child[32];
    int n;
} listing;

static void listing_remove(listing *l, const char *name)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->name[i], name) == 0) {
            l->n--;
            memmove(l->name[i], l->name[l->n], NAME_BYTES);
            l->child[i] = l->child[l->n];
            return;
        }
    }
}

static void listing_add(listing *l, const char *name, int child)
{
    listing_remove(l, name);
    assert_true(l->n < 32);
    snprintf(l->name[l->n], NAME_BYTES, "%s", name);
    l->child[l->n++] = child;
}

/* The names in a folder: of what was not flushed, each change with the chance (0, 1/2 or 1). r: random bits. */
static void list_dir(int dir, int chance, uint64_t r, listing *l)
{
    l->n = 0;
    for (size_t i = 0; i < n_entries; i++) {
        const entry *e = &entries[i];
        if (e->dir != dir) {
            continue;
        }
        r = r * 6364136223846793005u + 1442695040888963407u;
        if (!e->is_flushed && (chance == 0 || (chance == 1 && (r >> 40 & 1) == 0))) {
            continue;
        }
        switch (e->kind) {
        case ENTRY_ADD:
            listing_add(l, e->name, e->child);
            break;
        case ENTRY_REMOVE:
            listing_remove(l, e->name);
            break;
        case ENTRY_MOVE:
            listing_remove(l, e->name);
            listing_add(l, e->name2, e->child);
            break;
        case ENTRY_SWAP:
            listing_add(l, e->name, e->child2);
            listing_add(l, e->name2, e->child);
            break;
        }
    }
}

static int find(int dir, const char *name)
{
    listing l;
    list_dir(dir, 2, 0, &l);
    for (int i = 0; i < l.n; i++) {
        if (strcmp(l.name[i], name) == 0) {
            return l.child[i];
        }
    }
    return -1;
}

/* "a" or "a/b" as a folder and a last name. */
static int split(const char *path, char name[NAME_BYTES])
{
    const char *slash = strchr(path, '/');
    snprintf(name, NAME_BYTES, "%s", slash != NULL ? slash + 1 : path);
    if (slash == NULL) {
        return 0;
    }
    char dir[NAME_BYTES];
    snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
    return find(0, dir);
}

static int inode_of(const char *path)
{
    char name[NAME_BYTES];
    if (path[0] == '\0') {
        return 0;
    }
    int dir = split(path, name);
    return find(dir, name);
}

static void add_entry(entry_kind kind, int dir, const char *name, int child, const char *name2, int child2)
{
    assert_true(n_entries < MAX_CHANGES && dir >= 0);
    entry *e = &entries[n_entries++];
    *e = (entry){.kind = kind, .dir = dir, .child = child, .child2 = child2};
    snprintf(e->name, sizeof(e->name), "%s", name);
    snprintf(e->name2, sizeof(e->name2), "%s", name2);
}

static int new_inode(bool is_dir)
{
    assert_true(n_inodes < MAX_INODES);
    inodes[n_inodes] = (inode){.is_dir = is_dir};
    return n_inodes++;
}

static void flush(int id)
{
    inodes[id].n_flushed = inodes[id].n;
    for (size_t i = 0; inodes[id].is_dir && i < n_entries; i++) {
        entries[i].is_flushed |= entries[i].dir == id;
    }
}

static void apply(const change *c, bool with_flushes)
{
    char name[NAME_BYTES], name2[NAME_BYTES];
    int dir = split(c->path, name), id = inode_of(c->path);
    listing inner;
    switch (c->what) {
    case DT_FS_MKDIR:
    case DT_FS_CREATE:
        if (c->path[0] != '\0') {
            add_entry(ENTRY_ADD, dir, name, new_inode(c->what == DT_FS_MKDIR), "", 0);
        }
        break;
    case DT_FS_WRITE:
        assert_true(id > 0 && inodes[id].n + c->n_bytes <= sizeof(inodes[id].bytes));
        memcpy(inodes[id].bytes + inodes[id].n, c->bytes, c->n_bytes);
        inodes[id].n += c->n_bytes;
        break;
    case DT_FS_FLUSH:
        assert_true(id >= 0);
        if (with_flushes) {
            flush(id);
        }
        break;
    case DT_FS_RENAME:
        assert_int_equal(split(c->to, name2), dir);
        add_entry(ENTRY_MOVE, dir, name, id, name2, 0);
        break;
    case DT_FS_SWAP:
        assert_int_equal(split(c->to, name2), dir);
        add_entry(ENTRY_SWAP, dir, name, id, name2, find(dir, name2));
        break;
    case DT_FS_REMOVE:
        if (id < 0) {
            break; /* there was none */
        }
        list_dir(id, 2, 0, &inner);
        for (int i = 0; i < inner.n; i++) {
            add_entry(ENTRY_REMOVE, id, inner.name[i], 0, "", 0);
        }
        add_entry(ENTRY_REMOVE, dir, name, 0, "", 0);
        break;
    }
}

/* ---- after the power loss ---- */

static uint64_t random_bits(uint64_t state, uint64_t i)
{
    const dt_rng_key key = {.seed = 77, .step = state};
    uint32_t r[4];
    dt_philox(&key, i, r);
    return (uint64_t)r[0] << 32 | r[1];
}

/* What is left of a file; returns its bytes' number. */
static size_t file_after(const inode *f, int chance, uint64_t r, uint8_t bytes[FILE_BYTES])
{
    size_t n = chance == 0 ? f->n_flushed : f->n;
    if (chance == 1 && f->n > f->n_flushed && (r >> 8) % 3 == 0) {
        n = f->n_flushed + (r >> 16) % (f->n - f->n_flushed + 1); /* shorter */
    }
    memcpy(bytes, f->bytes, n);
    for (size_t at = f->n_flushed / BLOCK * BLOCK; chance == 1 && at < n; at += BLOCK) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        size_t begin = at < f->n_flushed ? f->n_flushed : at, end = at + BLOCK < n ? at + BLOCK : n;
        if ((r >> 60) < 8 && begin < end) {
            memset(bytes + begin, (r >> 59 & 1) != 0 ? 0 : (int)(r >> 32), end - begin);
        }
    }
    return n;
}

/* The folder as it was left. Returns a hash of all names and bytes; with is_real it is also made, at path. */
static uint64_t make_disk(int dir, const char *path, int chance, uint64_t state, bool is_real)
{
    static uint8_t bytes[FILE_BYTES];
    uint64_t hash = 0;
    listing l;
    if (is_real) {
        assert_int_equal(mkdir(path, 0777), 0);
    }
    list_dir(dir, chance, random_bits(state, (uint64_t)dir), &l);
    for (int i = 0; i < l.n; i++) {
        char inner[512];
        const int child = l.child[i];
        snprintf(inner, sizeof(inner), "%s/%s", path, l.name[i]);
        uint64_t part = dt_hash64(l.name[i], strlen(l.name[i]), (uint64_t)inodes[child].is_dir);
        if (inodes[child].is_dir) {
            part = dt_hash64(&part, sizeof(part), make_disk(child, inner, chance, state, is_real));
        } else {
            size_t n = file_after(&inodes[child], chance, random_bits(state, (uint64_t)child), bytes);
            part = dt_hash64(bytes, n, part);
            int fd = is_real ? open(inner, O_WRONLY | O_CREAT | O_EXCL, 0666) : -1;
            assert_true(!is_real || (fd >= 0 && write(fd, bytes, n) == (ssize_t)n));
            if (is_real) {
                close(fd);
            }
        }
        hash += part; /* whatever the order of names */
    }
    return hash;
}

/* ---- the run ---- */

enum { N = 5 };
static const int64_t dim[1] = {N};

static void values_at(uint64_t step, float w[N])
{
    for (int i = 0; i < N; i++) {
        w[i] = (float)(step * 10) + (float)i;
    }
}

static void save_step(uint64_t step)
{
    float w[N];
    values_at(step, w);
    const dt_ckpt_tensor t = {"w", dim, 1, w};
    char text[32];
    snprintf(text, sizeof(text), "{\"step\":%llu}", (unsigned long long)step);
    const dt_ckpt_save_desc d = {.run_dir = run_dir,
                                 .info = {.step = step},
                                 .model = &t,
                                 .n_model = 1,
                                 .optim = &t,
                                 .n_optim = 1,
                                 .state_json = text,
                                 .config = "x = 1;\n"};
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
}

/* The step that loads from the disk, 0 for none; what loads is checked to be whole. */
static uint64_t loads(void)
{
    dt_ckpt *c = NULL;
    dt_status st = dt_ckpt_open(crash_dir, false, NULL, &c);
    if (st != DT_OK) {
        assert_true(st == DT_ENOTFOUND || st == DT_EDATA);
        return 0;
    }
    uint64_t step = dt_ckpt_info_get(c)->step;
    float want[N], model[N] = {0}, optim[N] = {0};
    values_at(step, want);
    const dt_ckpt_tensor m = {"w", dim, 1, model}, o = {"w", dim, 1, optim};
    assert_int_equal(dt_ckpt_load_model(c, &m, 1, DT_LOAD_EXACT), DT_OK);
    assert_int_equal(dt_ckpt_load_optim(c, &o, 1, DT_LOAD_EXACT), DT_OK);
    assert_memory_equal(model, want, sizeof(want));
    assert_memory_equal(optim, want, sizeof(want));
    char text[32];
    size_t bytes = 0;
    snprintf(text, sizeof(text), "{\"step\":%llu}", (unsigned long long)step);
    const char *state = dt_ckpt_state(c, &bytes);
    assert_true(bytes == strlen(text) && memcmp(state, text, bytes) == 0);
    dt_ckpt_close(c);
    return step;
}

/* Disks that were tried already, and what loads from them. */
typedef struct tried {
    uint64_t hash, step;
} tried;
static tried seen[20000];
static size_t n_seen;

static uint64_t try_disk(int chance, uint64_t state)
{
    const uint64_t hash = make_disk(0, crash_dir, chance, state, false);
    for (size_t i = 0; i < n_seen; i++) {
        if (seen[i].hash == hash) {
            return seen[i].step;
        }
    }
    (void)make_disk(0, crash_dir, chance, state, true);
    const uint64_t step = loads();
    assert_int_equal(dt_fs_remove_tree(crash_dir), DT_OK);
    assert_true(n_seen < sizeof(seen) / sizeof(seen[0]));
    seen[n_seen++] = (tried){.hash = hash, .step = step};
    return step;
}

typedef struct outcome {
    size_t n_states, n_lost; /* lost: nothing loads, or less than `least` */
    size_t n_loaded[4];      /* by step */
} outcome;

/* Play all prefixes from `from` on. A disk must give at least step `least`, and step `last` when all is done.
 * Without the flushes: only until it is clear that something gets lost. */
static outcome play(size_t from, uint64_t least, uint64_t last, bool with_flushes)
{
    outcome out = {.n_states = 0};
    n_inodes = 0;
    n_entries = 0;
    n_seen = 0;
    (void)new_inode(true);
    for (size_t k = 0; k <= n_changes; k++) {
        if (k == from) { /* what was there before is on the disk for good */
            for (int i = 0; i < n_inodes; i++) {
                flush(i);
            }
        }
        for (uint64_t s = 0; k >= from && s < STATES_PER_PREFIX && (with_flushes || out.n_lost < 3); s++) {
            const int chance = s == 0 ? 0 : s == 1 ? 2 : 1; /* nothing more, everything, anything */
            uint64_t step = try_disk(chance, k * 1000 + s);
            assert_true(step < 4);
            out.n_states++;
            out.n_loaded[step]++;
            out.n_lost += step < least || (k == n_changes && step != last);
        }
        if (k < n_changes) {
            apply(&changes[k], with_flushes);
        }
    }
    return out;
}

static int begin(void **state)
{
    dt_log_level_set(-1);
    dt_fs_set_flush(false);
    snprintf(run_dir, sizeof(run_dir), "test_powerloss.%ld.tmp", (long)getpid());
    assert_int_equal(dt_fs_mkdir(run_dir), DT_OK);
    snprintf(crash_dir, sizeof(crash_dir), "test_powerloss.%ld.disk.tmp", (long)getpid());
    n_changes = 0;
    dt_fs_set_tracer(record, NULL);
    return 0;
}

static int end(void **state)
{
    dt_fs_set_tracer(NULL, NULL);
    for (size_t i = 0; i < n_changes; i++) {
        dt_free(changes[i].bytes);
    }
    return dt_fs_remove_tree(run_dir) != DT_OK || dt_fs_remove_tree(crash_dir) != DT_OK;
}

static void test_saving_and_pruning(void **state)
{
    save_step(1);
    const size_t from = n_changes;
    save_step(2);
    const dt_ckpt_keep keep = {.last = 1};
    assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_OK);
    dt_fs_set_tracer(NULL, NULL);
    outcome out = play(from, 1, 2, true);
    assert_int_equal(out.n_lost, 0);
    assert_true(out.n_states > 1000 && out.n_loaded[1] > 100 && out.n_loaded[2] > 100);
    assert_true(n_seen > 100); /* different disks */
    out = play(from, 1, 2, false);
    assert_true(out.n_lost >= 3); /* without the flushes checkpoints do get lost here */
}

static void test_replacing_the_same_step(void **state)
{
    save_step(2);
    const size_t from = n_changes;
    save_step(2);
    dt_fs_set_tracer(NULL, NULL);
    outcome out = play(from, 2, 2, true);
    assert_int_equal(out.n_lost, 0);
    assert_int_equal(out.n_loaded[2], out.n_states);
    out = play(from, 2, 2, false);
    assert_true(out.n_lost >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_saving_and_pruning, begin, end),
        cmocka_unit_test_setup_teardown(test_replacing_the_same_step, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
