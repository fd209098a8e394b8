/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for libnccl.so.2 between processes that each have an emulated GPU: its work is done by the streams of the
 * emulated device, as late as these are, and moves through memory that the processes share. What NCCL's documentation
 * forbids ends the program with what it was: calls on a communicator that is not ready, finalized, aborted or
 * destroyed; groups that are not ended; sends and receipts that do not match; buffers of the host, or that overlap;
 * collectives that ranks call in another order; a communicator destroyed before it was finalized, or with work under
 * way.
 *
 *   DT_NCCL_FAULT=KIND:N:RANK   in the N-th group of that rank, from 1: "error" an asynchronous error, "hang" nothing
 *                               arrives any more, "die" the process ends in the middle, "refuse" the call fails;
 *                               in "init" (N is not looked at) the others never come
 *   DT_NCCL_VERSION             what the library says it is (22107)
 *   DT_NCCL_DIR=FOLDER          where the memory that processes share has its file, until all have left (/dev/shm)
 *   DT_NCCL_LOG=FILE            a line for each communicator: what it moved, and how many groups of that began to move
 *                               while other streams had work to do
 */
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <atomic>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum result {
    SUCCESS,
    CUDA_ERROR,
    SYSTEM_ERROR,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    INVALID_USAGE,
    REMOTE_ERROR,
    IN_PROGRESS
};

struct unique_id {
    char internal[128];
};

struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

namespace
{

enum : size_t { MOST_RANKS = 8, WAY = 1 << 16 };

[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "NCCL's stand-in (process %d): ", (int)getpid());
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

/* ---- the emulated device ----------------------------------------------------------------------------------------- */

struct device {
    void (*enqueue)(void *stream, bool (*go_on)(void *user), void *user);
    void (*touch)(const void *p, size_t bytes, bool is_write);
    bool (*is_beside)(void *stream);
};

int find_module(dl_phdr_info *info, size_t, void *user)
{
    if (strstr(info->dlpi_name, "backend_cuda.so") != nullptr) {
        *(std::string *)user = info->dlpi_name;
    }
    return 0;
}

const device &gpu()
{
    static device d;
    if (d.enqueue == nullptr) {
        std::string path;
        dl_iterate_phdr(find_module, &path);
        void *so = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
        void *enqueue = so != nullptr ? dlsym(so, "dt_emulated_enqueue") : nullptr;
        void *touch = so != nullptr ? dlsym(so, "dt_emulated_touch") : nullptr;
        void *is_beside = so != nullptr ? dlsym(so, "dt_emulated_is_beside") : nullptr;
        if (enqueue == nullptr || touch == nullptr || is_beside == nullptr) {
            die("there is no emulated GPU in this process");
        }
        memcpy(&d.enqueue, &enqueue, sizeof(enqueue));
        memcpy(&d.touch, &touch, sizeof(touch));
        memcpy(&d.is_beside, &is_beside, sizeof(is_beside));
    }
    return d;
}

/* ---- what processes share ---------------------------------------------------------------------------------------- */

struct way { /* bytes from one rank to another */
    std::atomic<uint64_t> in, out;
    char data[WAY];
};

struct hall {
    std::atomic<uint32_t> joined, left;
    std::atomic<int> ranks;
    std::atomic<bool> has_come[MOST_RANKS];
    way between[MOST_RANKS][MOST_RANKS];
};

struct head { /* of a message */
    uint64_t group, bytes, kind;
};

struct move { /* a message, on its way out or in */
    int peer;
    bool is_out;
    char *data;
    head h, seen;
    size_t done; /* bytes, those of the head first */
};

struct comm {
    hall *shared;
    std::string path;
    int rank, ranks;
    bool is_ready, is_finalized, is_aborted;
    int error;
    uint64_t groups, under_way, moved, beside;
    std::vector<void *> registered;
};

struct group { /* what was asked for between start and end */
    comm *c;
    void *stream;
    std::vector<move> moves;
    std::vector<std::vector<float>> room; /* where sums come in */
    struct sum {
        float *to;
        const float *mine;
        size_t n;
        std::vector<size_t> rooms;
    };
    std::vector<sum> sums;
    bool hangs, dies, is_checked;
};

int depth;
std::vector<std::unique_ptr<group>> asked; /* one a communicator and stream */
std::vector<comm *> all;

const char *fault_of(const comm *c, uint64_t group)
{
    static char kind[16];
    unsigned long n = 0;
    int rank = 0;
    const char *text = getenv("DT_NCCL_FAULT");
    if (text == nullptr || sscanf(text, "%15[a-z]:%lu:%d", kind, &n, &rank) != 3 || rank != c->rank ||
        (n != group && strcmp(kind, "init") != 0)) {
        return "";
    }
    return kind;
}

comm *known(void *handle, const char *call)
{
    for (comm *c : all) {
        if (c == handle) {
            return c;
        }
    }
    die("%s: a communicator that does not exist, or was destroyed or aborted", call);
}

/* For calls that may be made only when nothing of the communicator is pending. */
comm *usable(void *handle, const char *call)
{
    comm *c = known(handle, call);
    if (!c->is_ready) {
        die("%s before the communicator is ready: ncclCommGetAsyncError says when", call);
    }
    if (c->is_finalized) {
        die("%s after ncclCommFinalize", call);
    }
    return c;
}

void drop(comm *c)
{
    for (size_t i = 0; i < all.size(); i++) {
        if (all[i] == c) {
            all.erase(all.begin() + (long)i);
        }
    }
    if (c->shared->left.fetch_add(1) + 1 == (uint32_t)c->ranks) {
        unlink(c->path.c_str());
    }
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* As many bytes of [from, to) as there is room for, or as are there. Returns how many. */
size_t pass(way *w, char *data, size_t bytes, bool is_out)
{
    const uint64_t in = w->in.load(std::memory_order_acquire), out = w->out.load(std::memory_order_acquire);
    const size_t most = is_out ? WAY - (size_t)(in - out) : (size_t)(in - out);
    const size_t n = bytes < most ? bytes : most;
    for (size_t i = 0; i < n; i++) {
        char *at = &w->data[((is_out ? in : out) + i) % WAY];
        *(is_out ? at : data + i) = *(is_out ? data + i : at);
    }
    (is_out ? w->in : w->out).store((is_out ? in : out) + n, std::memory_order_release);
    return n;
}

/* Messages of a pair come one after the other, as they were asked for. */
bool go_on_with(const comm *c, move *m)
{
    way *w = m->is_out ? &c->shared->between[c->rank][m->peer] : &c->shared->between[m->peer][c->rank];
    if (m->done < sizeof(head)) {
        char *at = (char *)(m->is_out ? &m->h : &m->seen) + m->done;
        m->done += pass(w, at, sizeof(head) - m->done, m->is_out);
        if (m->done < sizeof(head)) {
            return false;
        }
        if (!m->is_out && (m->seen.bytes != m->h.bytes || m->seen.kind != m->h.kind)) {
            die("rank %d expects %llu bytes of kind %llu from rank %d, which sends %llu of kind %llu", c->rank,
                (unsigned long long)m->h.bytes, (unsigned long long)m->h.kind, m->peer,
                (unsigned long long)m->seen.bytes, (unsigned long long)m->seen.kind);
        }
    }
    m->done += pass(w, m->data + (m->done - sizeof(head)), m->h.bytes - (m->done - sizeof(head)), m->is_out);
    return m->done == sizeof(head) + m->h.bytes;
}

bool is_blocked_by_another(const group *g, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        const move &m = g->moves[k];
        if (m.peer == g->moves[i].peer && m.is_out == g->moves[i].is_out && m.done < sizeof(head) + m.h.bytes) {
            return true;
        }
    }
    return false;
}

/* Of the device, and written where they are sent, by now: work before this one in the stream is done. */
void check_buffers(group *g)
{
    if (g->is_checked) {
        return;
    }
    g->is_checked = true;
    g->c->beside += gpu().is_beside(g->stream);
    for (const move &m : g->moves) {
        bool is_room = false;
        for (const std::vector<float> &r : g->room) {
            is_room = is_room || (const void *)r.data() == (const void *)m.data;
        }
        if (!is_room) {
            gpu().touch(m.data, m.h.bytes, !m.is_out);
        }
    }
    for (const group::sum &s : g->sums) {
        gpu().touch(s.mine, s.n * sizeof(float), false);
        gpu().touch(s.to, s.n * sizeof(float), true);
    }
}

/* Work of a stream: true when all has been moved. */
bool go_on(void *user)
{
    group *g = (group *)user;
    comm *c = g->c;
    bool is_done = true;
    if (!c->is_aborted) {
        if (g->hangs || c->error != SUCCESS) { /* until it is aborted */
            return false;
        }
        check_buffers(g);
        for (size_t i = 0; i < g->moves.size(); i++) {
            is_done = !is_blocked_by_another(g, i) && go_on_with(c, &g->moves[i]) && is_done;
            if (g->dies && g->moves[i].done > 0) {
                _exit(9);
            }
        }
        for (const move &m : g->moves) {
            is_done = is_done && m.done == sizeof(head) + m.h.bytes;
        }
        if (!is_done) {
            return false;
        }
        for (const group::sum &s : g->sums) { /* an order of its own: the others backwards, then mine */
            std::vector<float> total(s.n, 0);
            for (size_t k = s.rooms.size(); k > 0; k--) {
                for (size_t i = 0; i < s.n; i++) {
                    total[i] += g->room[s.rooms[k - 1]][i];
                }
            }
            for (size_t i = 0; i < s.n; i++) {
                total[i] += s.mine[i];
            }
            memcpy(s.to, total.data(), s.n * sizeof(float));
        }
        for (const move &m : g->moves) {
            c->moved += m.is_out ? m.h.bytes : 0;
        }
    }
    c->under_way--;
    if (c->is_aborted && c->under_way == 0) {
        delete c;
    }
    delete g;
    return true;
}

group *group_of(comm *c, void *stream, const char *call)
{
    if (depth == 0) {
        die("%s outside of a group", call); /* which is allowed, and not what is wanted here */
    }
    for (const std::unique_ptr<group> &g : asked) {
        if (g->c == c && g->stream == stream) {
            return g.get();
        }
        if (g->c == c) {
            die("%s: one group with two streams", call);
        }
    }
    asked.emplace_back(new group{});
    asked.back()->c = c;
    asked.back()->stream = stream;
    return asked.back().get();
}

void add(group *g, int peer, bool is_out, void *data, size_t n, uint64_t kind)
{
    if (peer < 0 || peer >= g->c->ranks || peer == g->c->rank) {
        die("rank %d moves data %s rank %d of %d", g->c->rank, is_out ? "to" : "from", peer, g->c->ranks);
    }
    g->moves.push_back({peer, is_out, (char *)data, {0, n * sizeof(float), kind}, {}, 0});
}

size_t room_for(group *g, size_t n)
{
    g->room.emplace_back(n);
    return g->room.size() - 1;
}

enum kind : uint64_t { SENT = 1, REDUCED, SCATTERED, GATHERED };

} // namespace

/* ---- the interface ----------------------------------------------------------------------------------------------- */

EXPORT int ncclGetVersion(int *version)
{
    const char *text = getenv("DT_NCCL_VERSION");
    *version = text != nullptr ? atoi(text) : 22107;
    return SUCCESS;
}

EXPORT const char *ncclGetErrorString(int e)
{
    static const char *const text[] = {"no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a network error",
                                       "NCCL operation in progress"};
    return e >= 0 && e <= IN_PROGRESS ? text[e] : "unknown result code";
}

EXPORT const char *ncclGetLastError(void *)
{
    return "as DT_NCCL_FAULT wants it";
}

EXPORT int ncclGetUniqueId(unique_id *id)
{
    *id = {};
    const char *folder = getenv("DT_NCCL_DIR");
    snprintf(id->internal, sizeof(id->internal), "%s/nccl-%d-XXXXXX", folder != nullptr ? folder : "/dev/shm",
             (int)getpid());
    const int f = mkstemp(id->internal);
    if (f < 0 || ftruncate(f, sizeof(hall)) != 0) {
        return SYSTEM_ERROR;
    }
    close(f);
    return SUCCESS;
}

EXPORT int ncclCommInitRankConfig(void **out, int ranks, unique_id id, int rank, config *how)
{
    if (how->magic != 0xcafebeef || how->size < sizeof(config) || how->blocking != 0) {
        die("ncclCommInitRankConfig: a configuration of %zu bytes, magic %x, blocking %d", how->size, how->magic,
            how->blocking);
    }
    const int f = open(id.internal, O_RDWR);
    void *p = f >= 0 ? mmap(nullptr, sizeof(hall), PROT_READ | PROT_WRITE, MAP_SHARED, f, 0) : MAP_FAILED;
    if (p == MAP_FAILED || ranks < 1 || ranks > (int)MOST_RANKS || rank < 0 || rank >= ranks) {
        return INVALID_ARGUMENT;
    }
    close(f);
    comm *c = new comm{};
    c->shared = (hall *)p;
    c->path = id.internal;
    c->rank = rank;
    c->ranks = ranks;
    if (c->shared->has_come[rank].exchange(true)) {
        die("ncclCommInitRankConfig: rank %d came twice", rank);
    }
    all.push_back(c);
    *out = c;
    if (strcmp(fault_of(c, 0), "init") != 0) {
        c->shared->joined++;
    }
    return IN_PROGRESS;
}

EXPORT int ncclCommGetAsyncError(void *handle, int *error)
{
    comm *c = known(handle, "ncclCommGetAsyncError");
    c->is_ready = c->is_ready || c->shared->joined.load() == (uint32_t)c->ranks;
    *error = c->error != SUCCESS ? c->error : c->is_ready ? SUCCESS : IN_PROGRESS;
    return SUCCESS;
}

EXPORT int ncclCommFinalize(void *handle)
{
    comm *c = usable(handle, "ncclCommFinalize");
    if (c->error != SUCCESS) {
        return c->error;
    }
    if (depth > 0 || !c->registered.empty()) {
        die("ncclCommFinalize inside a group, or with buffers that are still registered");
    }
    c->is_finalized = true;
    return c->under_way == 0 ? SUCCESS : IN_PROGRESS;
}

EXPORT int ncclCommDestroy(void *handle)
{
    comm *c = known(handle, "ncclCommDestroy");
    const char *log = getenv("DT_NCCL_LOG");
    if (!c->is_finalized || c->under_way > 0) {
        die("ncclCommDestroy %s", c->is_finalized ? "with work under way" : "before ncclCommFinalize");
    }
    if (FILE *f = log != nullptr ? fopen(log, "a") : nullptr) {
        fprintf(f, "rank %d of %d: %llu groups, %llu bytes, %llu beside other work\n", c->rank, c->ranks,
                (unsigned long long)c->groups, (unsigned long long)c->moved, (unsigned long long)c->beside);
        fclose(f);
    }
    drop(c);
    delete c;
    return SUCCESS;
}

EXPORT int ncclCommAbort(void *handle)
{
    comm *c = known(handle, "ncclCommAbort");
    c->is_aborted = true;
    drop(c);
    if (c->under_way == 0) {
        delete c;
    }
    return SUCCESS;
}

EXPORT int ncclCommRegister(void *handle, void *p, size_t bytes, void **out)
{
    comm *c = usable(handle, "ncclCommRegister");
    if (c->error != SUCCESS) {
        return c->error;
    }
    if (p == nullptr || bytes == 0) {
        die("ncclCommRegister of nothing");
    }
    c->registered.push_back(p);
    *out = p;
    return SUCCESS;
}

EXPORT int ncclCommDeregister(void *handle, void *p)
{
    comm *c = usable(handle, "ncclCommDeregister");
    for (size_t i = 0; i < c->registered.size(); i++) {
        if (c->registered[i] == p) {
            c->registered.erase(c->registered.begin() + (long)i);
            return SUCCESS;
        }
    }
    die("ncclCommDeregister: %p is not registered", p);
}

EXPORT int ncclGroupStart()
{
    depth++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd()
{
    if (depth == 0) {
        die("ncclGroupEnd without ncclGroupStart");
    }
    if (--depth > 0) {
        return SUCCESS;
    }
    int result = SUCCESS;
    for (std::unique_ptr<group> &owned : asked) {
        comm *c = owned->c;
        const std::string fault = fault_of(c, ++c->groups);
        if (fault == "refuse") {
            result = c->error = INVALID_USAGE;
            continue;
        }
        owned->hangs = fault == "hang";
        owned->dies = fault == "die";
        c->error = fault == "error" ? REMOTE_ERROR : c->error;
        c->under_way++;
        group *g = owned.release();
        gpu().enqueue(g->stream, go_on, g);
    }
    asked.clear();
    return result;
}

EXPORT int ncclSend(const void *from, size_t n, int type, int peer, void *handle, void *stream)
{
    comm *c = usable(handle, "ncclSend");
    if (c->error != SUCCESS) {
        return c->error;
    }
    if (type != 7 || n == 0) {
        die("ncclSend of %zu of type %d", n, type);
    }
    add(group_of(c, stream, "ncclSend"), peer, true, (void *)from, n, SENT);
    return SUCCESS;
}

EXPORT int ncclRecv(void *to, size_t n, int type, int peer, void *handle, void *stream)
{
    comm *c = usable(handle, "ncclRecv");
    if (c->error != SUCCESS) {
        return c->error;
    }
    if (type != 7 || n == 0) {
        die("ncclRecv of %zu of type %d", n, type);
    }
    add(group_of(c, stream, "ncclRecv"), peer, false, to, n, SENT);
    return SUCCESS;
}

EXPORT int ncclReduce(const void *from, void *to, size_t n, int, int, int root, void *handle, void *stream)
{
    comm *c = usable(handle, "ncclReduce");
    if (c->error != SUCCESS) {
        return c->error;
    }
    group *g = group_of(c, stream, "ncclReduce");
    if (c->rank != root) {
        add(g, root, true, (void *)from, n, REDUCED);
        return SUCCESS;
    }
    group::sum s = {(float *)to, (const float *)from, n, {}};
    for (int r = 0; r < c->ranks; r++) {
        if (r != root) {
            s.rooms.push_back(room_for(g, n));
            add(g, r, false, g->room.back().data(), n, REDUCED);
        }
    }
    g->sums.push_back(s);
    return SUCCESS;
}

EXPORT int ncclReduceScatter(const void *from, void *to, size_t n, int, int, void *handle, void *stream)
{
    comm *c = usable(handle, "ncclReduceScatter");
    if (c->error != SUCCESS) {
        return c->error;
    }
    group *g = group_of(c, stream, "ncclReduceScatter");
    const float *all_of_mine = (const float *)from;
    const float *end = all_of_mine + n * (size_t)c->ranks;
    if (to != all_of_mine + n * (size_t)c->rank && (float *)to < end && (float *)to + n > all_of_mine) {
        die("ncclReduceScatter: buffers overlap, and not as they do in place");
    }
    group::sum s = {(float *)to, all_of_mine + n * (size_t)c->rank, n, {}};
    for (int r = 0; r < c->ranks; r++) {
        if (r != c->rank) {
            add(g, r, true, (void *)(all_of_mine + n * (size_t)r), n, SCATTERED);
            s.rooms.push_back(room_for(g, n));
            add(g, r, false, g->room.back().data(), n, SCATTERED);
        }
    }
    g->sums.push_back(s);
    return SUCCESS;
}

EXPORT int ncclAllGather(const void *from, void *to, size_t n, int, void *handle, void *stream)
{
    comm *c = usable(handle, "ncclAllGather");
    if (c->error != SUCCESS) {
        return c->error;
    }
    group *g = group_of(c, stream, "ncclAllGather");
    float *vector = (float *)to, *mine = vector + n * (size_t)c->rank;
    if (from != mine) {
        die("ncclAllGather: not in place, which is not wanted here");
    }
    for (int r = 0; r < c->ranks; r++) {
        if (r != c->rank) {
            add(g, r, true, mine, n, GATHERED);
            add(g, r, false, vector + n * (size_t)r, n, GATHERED);
        }
    }
    return SUCCESS;
}
