/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/board.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x647472626f617231ull

typedef struct head {
    uint64_t magic, nonce;
    uint32_t n;
    _Atomic uint32_t has_saved;
    double made_s; /* dt_clock_s, which all processes of a machine share */
    _Atomic uint32_t has_run, resize, has_advanced, most_ranks;
    char run[PATH_MAX];
} head;

typedef struct slot {
    _Atomic int state; /* dt_board_state; NEVER, HERE or LEFT */
    int process, code;
    uint64_t started_ticks; /* of the process, in the system's ticks: a number may be given to another one */
    _Atomic uint64_t n_calls;
    dt_board_call call[DT_BOARD_CALLS];
} slot;

struct dt_board {
    head *head; /* followed by the slots */
    slot *slot; /* [n] */
    size_t bytes;
    uint32_t n;
    int fd; /* of the creator, -1: opened */
    char path[DT_BOARD_PATH_BYTES];
};

enum { RESIZE_NONE, RESIZE_REQUESTED, RESIZE_DONE };
enum { PAGE = 4096, HEAD_BYTES = (sizeof(head) + PAGE - 1) / PAGE * PAGE };

static size_t board_bytes(uint32_t n)
{
    return HEAD_BYTES + (size_t)n * sizeof(slot);
}

static dt_status map_shared_memory(dt_board *b, int fd, uint32_t n)
{
    b->bytes = board_bytes(n);
    void *p = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return DT_FAIL(DT_ENOMEM, "cannot map %zu bytes of shared memory: %s", b->bytes, strerror(errno));
    }
    b->head = p;
    b->slot = (slot *)(void *)((char *)p + HEAD_BYTES);
    b->n = n;
    return DT_OK;
}

static dt_status create_shared_memory(dt_board *b, uint32_t n)
{
    b->fd = memfd_create("dtrain-board", MFD_CLOEXEC);
    if (b->fd < 0 || ftruncate(b->fd, (off_t)board_bytes(n)) != 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "cannot make shared memory for %u ranks: %s", n, strerror(errno));
    }
    DT_TRY(map_shared_memory(b, b->fd, n));
    b->head->magic = MAGIC;
    b->head->n = n;
    b->head->made_s = dt_clock_s();
    if (getrandom(&b->head->nonce, sizeof(b->head->nonce), 0) != (ssize_t)sizeof(b->head->nonce)) {
        b->head->nonce = (uint64_t)getpid() << 32 ^ (uint64_t)(dt_clock_s() * 1e9);
    }
    snprintf(b->path, sizeof(b->path), "%016llx:/proc/%ld/fd/%d", (unsigned long long)b->head->nonce, (long)getpid(),
             b->fd);
    return DT_OK;
}

dt_status dt_board_create(uint32_t n, dt_board **out_p)
{
    dt_board *b = dt_alloc(sizeof(*b));
    if (b == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the messages of %u ranks", n);
    }
    b->fd = -1;
    const dt_status st = create_shared_memory(b, n);
    if (st < 0) {
        dt_board_close(b);
        return st;
    }
    *out_p = b;
    return DT_OK;
}

/* Is it the one that was meant, and whole? The path may be that of another process of another machine by now. */
static dt_status map_checked_board(dt_board *b, int fd, uint64_t nonce)
{
    struct stat st;
    head h;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
        h.magic != MAGIC || h.nonce != nonce || h.n == 0 || (size_t)st.st_size != board_bytes(h.n)) {
        return DT_FAIL(DT_ENOTFOUND, "%s is not the shared memory of this job", b->path);
    }
    return map_shared_memory(b, fd, h.n);
}

dt_status dt_board_open(const char *path, dt_board **out_p)
{
    dt_board *b = dt_alloc(sizeof(*b));
    char *colon = NULL;
    const uint64_t nonce = strtoull(path, &colon, 16);
    if (b == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the messages of ranks");
    }
    b->fd = -1;
    snprintf(b->path, sizeof(b->path), "%s", path);
    const bool is_path = *colon == ':' && strncmp(colon, ":/proc/", strlen(":/proc/")) == 0;
    const int fd = is_path ? open(colon + 1, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1; /* of a process: below no guard */
    dt_status st = fd >= 0 ? map_checked_board(b, fd, nonce) : DT_FAIL(DT_ENOTFOUND, "%s is not here", path);
    if (fd >= 0) {
        close(fd);
    }
    if (st < 0) {
        dt_board_close(b);
        return st;
    }
    *out_p = b;
    return DT_OK;
}

void dt_board_close(dt_board *b)
{
    if (b == NULL) {
        return;
    }
    if (b->head != NULL) {
        munmap(b->head, b->bytes);
    }
    if (b->fd >= 0) {
        close(b->fd);
    }
    dt_free(b);
}

const char *dt_board_path(const dt_board *b)
{
    return b->path;
}

void dt_board_clear(dt_board *b)
{
    for (uint32_t r = 0; r < b->n; r++) {
        slot *s = &b->slot[r];
        if (atomic_exchange(&s->state, DT_BOARD_NEVER) != DT_BOARD_NEVER) { /* else it was never touched */
            atomic_store(&s->n_calls, 0);
        }
    }
    atomic_store(&b->head->has_run, 0);
    atomic_store(&b->head->resize, RESIZE_NONE);
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

/* Of a process: when it began, and 'T' among its states; 0: there is none. */
static uint64_t read_process_start(int process, char *state_p)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *p = strrchr(text, ')'); /* through a name chosen by another user */
    if (p == NULL || p[1] != ' ') {
        return 0;
    }
    *state_p = p[2];
    for (int field = 2; field < 22 && p != NULL; field++) {
        p = strchr(p + 1, ' ');
    }
    return p != NULL ? strtoull(p + 1, NULL, 10) : 0;
}

static slot *find_slot(dt_board *b, uint32_t rank)
{
    return b != NULL && rank < b->n ? &b->slot[rank] : NULL;
}

void dt_board_mark_joined(dt_board *b, uint32_t rank)
{
    slot *s = find_slot(b, rank);
    char state = 0;
    if (s != NULL) {
        s->process = (int)getpid();
        s->started_ticks = read_process_start(s->process, &state);
        s->code = 0;
        atomic_store(&s->state, DT_BOARD_HERE);
    }
}

void dt_board_call_begin(dt_board *b, uint32_t rank, const dt_board_call *call)
{
    slot *s = find_slot(b, rank);
    if (s != NULL) {
        dt_board_call *c = &s->call[(call->number - 1) % DT_BOARD_CALLS];
        *c = *call;
        c->begin_s = dt_clock_s();
        c->end_s = 0;
        atomic_store_explicit(&s->n_calls, call->number, memory_order_release);
    }
}

void dt_board_call_end(dt_board *b, uint32_t rank, uint64_t number)
{
    slot *s = find_slot(b, rank);
    if (s == NULL || number == 0) {
        return;
    }
    dt_board_call *c = &s->call[(number - 1) % DT_BOARD_CALLS];
    c->end_s = c->number == number ? dt_clock_s() : c->end_s;
}

void dt_board_mark_left(dt_board *b, uint32_t rank, int code)
{
    slot *s = find_slot(b, rank);
    if (s != NULL) {
        s->code = code;
        atomic_store(&s->state, DT_BOARD_LEFT);
    }
}

void dt_board_resize_set(dt_board *b, bool is_requested)
{
    uint32_t was = is_requested ? RESIZE_NONE : RESIZE_REQUESTED;
    atomic_compare_exchange_strong(&b->head->resize, &was, is_requested ? RESIZE_REQUESTED : RESIZE_NONE);
}

bool dt_board_resize_is_requested(const dt_board *b)
{
    return b != NULL && atomic_load(&b->head->resize) == RESIZE_REQUESTED;
}

void dt_board_mark_resized(dt_board *b)
{
    if (b != NULL) {
        atomic_store(&b->head->resize, RESIZE_DONE);
    }
}

bool dt_board_was_resized(const dt_board *b)
{
    return b != NULL && atomic_load(&b->head->resize) == RESIZE_DONE;
}

double dt_board_age_s(const dt_board *b)
{
    return b != NULL ? dt_clock_s() - b->head->made_s : 0;
}

void dt_board_mark_advanced(dt_board *b)
{
    if (b != NULL) {
        atomic_store(&b->head->has_advanced, 1);
    }
}

bool dt_board_has_advanced(const dt_board *b)
{
    return b != NULL && atomic_load(&b->head->has_advanced) != 0;
}

void dt_board_mark_saved(dt_board *b)
{
    if (b != NULL) {
        atomic_store(&b->head->has_saved, 1);
    }
}

bool dt_board_has_saved(const dt_board *b)
{
    return b != NULL && atomic_load(&b->head->has_saved) != 0;
}

void dt_board_limit_ranks(dt_board *b, uint32_t most)
{
    if (b != NULL) {
        atomic_store(&b->head->most_ranks, most);
    }
}

uint32_t dt_board_max_ranks(const dt_board *b)
{
    return b != NULL ? atomic_load(&b->head->most_ranks) : 0;
}

void dt_board_run_dir_set(dt_board *b, const char *run_dir)
{
    if (b != NULL) {
        snprintf(b->head->run, sizeof(b->head->run), "%s", run_dir);
        atomic_store(&b->head->has_run, 1);
    }
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

void dt_board_read_rank(const dt_board *b, uint32_t rank, dt_board_rank *out)
{
    *out = (dt_board_rank){.state = DT_BOARD_NEVER};
    if (rank >= b->n) {
        return;
    }
    slot *s = &b->slot[rank];
    out->state = (dt_board_state)atomic_load(&s->state);
    if (out->state == DT_BOARD_NEVER) {
        return;
    }
    char state = 0;
    out->process = s->process;
    out->code = s->code;
    if (out->state == DT_BOARD_HERE) {
        const bool is_same = read_process_start(s->process, &state) == s->started_ticks;
        out->state = is_same && state != 'Z' && state != 'X' ? DT_BOARD_HERE : DT_BOARD_GONE;
        out->is_stopped = is_same && (state == 'T' || state == 't');
    }
    out->has_called = dt_board_list_calls(b, rank, 1, &out->last) == 1;
}

uint32_t dt_board_list_calls(const dt_board *b, uint32_t rank, uint32_t most, dt_board_call *out)
{
    if (rank >= b->n) {
        return 0;
    }
    slot *s = &b->slot[rank];
    const uint64_t n = atomic_load_explicit(&s->n_calls, memory_order_acquire);
    most = most < DT_BOARD_CALLS ? most : DT_BOARD_CALLS;
    const uint32_t got = n < most ? (uint32_t)n : most;
    for (uint32_t i = 0; i < got; i++) {
        out[i] = s->call[(n - got + i) % DT_BOARD_CALLS];
        out[i].op[DT_BOARD_OP_BYTES - 1] = '\0';
    }
    return got;
}

const char *dt_board_run_dir(const dt_board *b)
{
    return atomic_load(&b->head->has_run) != 0 ? b->head->run : "";
}

uint32_t dt_board_kill_processes(const dt_board *b)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < b->n; r++) {
        slot *s = &b->slot[r];
        char state = 0;
        if (atomic_load(&s->state) != DT_BOARD_NEVER && read_process_start(s->process, &state) == s->started_ticks &&
            state != 'Z' && kill(s->process, SIGKILL) == 0) {
            n++;
        }
    }
    return n;
}

void dt_board_describe_call(const dt_board_call *call, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%s", call->op);
    if (call->bytes > 0 && (size_t)n < bytes) {
        n += snprintf(out + n, bytes - (size_t)n, " of %llu bytes", (unsigned long long)call->bytes);
    }
    if (call->root != UINT32_MAX && (size_t)n < bytes) {
        snprintf(out + n, bytes - (size_t)n, " from rank %u", call->root);
    }
}
