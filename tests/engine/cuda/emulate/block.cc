/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of CUDA threads, or a cluster of blocks, as coroutines. One coroutine runs thread after thread; only when its
 * thread waits does another one go on, so that kernels without barriers need no more than one. See cuda_runtime.h.
 */
#include "cooperative_groups.h"
#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <sys/mman.h>
#if !defined(__x86_64__)
#    include <ucontext.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
char *dt_emulate_stacks;

extern "C" char __start_dt_shared[] __attribute__((weak));
extern "C" char __stop_dt_shared[] __attribute__((weak));

#if defined(__x86_64__)
/* swapcontext without its two system calls: what a call preserves goes to the stack, and the stack is changed */
extern "C" __attribute__((visibility("hidden"))) void dt_emulate_switch(void **from, void **to);
asm(".text\n"
    ".type dt_emulate_switch, @function\n"
    "dt_emulate_switch:\n"
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, (%rdi)\n"
    "mov (%rsi), %rsp\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    "ret\n"
    ".size dt_emulate_switch, . - dt_emulate_switch\n");
#endif

namespace
{

enum { MAX_BLOCK = 1024, MAX_CLUSTER = 8 };
enum { SHARED_MAX = 227 * 1024, VALUE_BYTES = 16 };
enum state { NEW, RUNNING, AT_BARRIER, AT_CLUSTER, IN_WARP, READY, DONE };

#if defined(__x86_64__)
typedef void *context; /* top of its stack */

void switch_to(context *from, context *to)
{
    dt_emulate_switch(from, to);
}

/* entry() begins at the next switch to c, with a stack aligned as after a call */
void prepare(context *c, char *stack, size_t bytes, void (*entry)())
{
    void **top = (void **)(void *)(stack + bytes) - 2;
    *top = (void *)entry;
    *c = top - 6;
}
#else
typedef ucontext_t context;

void switch_to(context *from, context *to)
{
    swapcontext(from, to);
}

void prepare(context *c, char *stack, size_t bytes, void (*entry)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = bytes;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}
#endif

struct coroutine {
    context at;
};

struct cuda_thread {
    state is;
    bool is_inside; /* the kernel's own code, not what calls it */
    coroutine *by;
    unsigned mask; /* of the warp operation it waits in */
    int from, predicate;
    char value[VALUE_BYTES], result[VALUE_BYTES];
    unsigned votes;
};

coroutine all[DT_EMULATE_THREADS], *idle[DT_EMULATE_THREADS], *starting;
int n_coroutines, n_idle;
cuda_thread threads[DT_EMULATE_THREADS];
context scheduler;
const std::function<void()> *body;
int n_threads, n_block; /* of all blocks of the cluster, of one */
int next_thread, n_done, n_at_cluster, current;
unsigned first_block;                 /* of the cluster, along x */
bool is_running, is_inside, is_asked; /* asked: for its bounds */
unsigned asked_bounds;
const char *asked_name;
struct barrier {
    int n_done, n_waiting, any, any_result;
} barriers[MAX_CLUSTER];
bool is_reverse;
alignas(1024) char shared_memory[MAX_CLUSTER][SHARED_MAX];

[[noreturn]] void give_up(const char *why)
{
    dt_emulate_die("%s", why);
}

void enter(int t)
{
    /* called for every thread and every wait: no divisions where there is one block, and its threads are a row */
    const unsigned block = n_threads == n_block ? 0 : (unsigned)(t / n_block);
    const unsigned i = (unsigned)t - block * (unsigned)n_block;
    current = t;
    threads[t].is = RUNNING;
    is_inside = threads[t].is_inside;
    blockIdx.x = first_block + block;
    if (blockDim.x == (unsigned)n_block) {
        threadIdx = {i, 0, 0};
        return;
    }
    threadIdx.x = i % blockDim.x;
    threadIdx.y = i / blockDim.x % blockDim.y;
    threadIdx.z = i / (blockDim.x * blockDim.y);
}

/* all threads that live have come: on they go */
void open_barrier(int block)
{
    barrier *b = &barriers[block];
    if (b->n_waiting > 0 && b->n_waiting == n_block - b->n_done) {
        for (int t = block * n_block; t < (block + 1) * n_block; t++) {
            threads[t].is = threads[t].is == AT_BARRIER ? READY : threads[t].is;
        }
        b->n_waiting = 0;
        b->any_result = b->any;
        b->any = 0;
    }
}

void open_cluster()
{
    if (n_at_cluster > 0 && n_at_cluster == n_threads - n_done) {
        for (int t = 0; t < n_threads; t++) {
            threads[t].is = threads[t].is == AT_CLUSTER ? READY : threads[t].is;
        }
        n_at_cluster = 0;
    }
}

void run_threads()
{
    coroutine *const me = starting;
    for (;;) {
        while (next_thread < n_threads) {
            const int t = is_reverse ? n_threads - 1 - next_thread : next_thread;
            next_thread++;
            threads[t].by = me;
            threads[t].is_inside = false;
            enter(t);
            (*body)();
            is_inside = false;
            threads[t].is = DONE;
            n_done++;
            barriers[t / n_block].n_done++;
            open_barrier(t / n_block);
            open_cluster();
        }
        idle[n_idle++] = me;
        switch_to(&me->at, &scheduler);
    }
}

void wait_as(state s)
{
    const int t = current;
    threads[t].is = s;
    threads[t].is_inside = is_inside;
    switch_to(&threads[t].by->at, &scheduler);
    enter(t);
}

coroutine *create()
{
    if (dt_emulate_stacks == nullptr) {
        void *p = mmap(nullptr, DT_EMULATE_THREADS * DT_EMULATE_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            give_up("no addresses for stacks");
        }
        dt_emulate_stacks = (char *)p;
    }
    coroutine *c = &all[n_coroutines];
    /* tops of stacks at equal distances would share a few lines of the cache */
    const size_t spread = (size_t)(n_coroutines % 64) * 192;
    char *const stack = dt_emulate_stacks + (size_t)n_coroutines++ * DT_EMULATE_STACK;
    prepare(&c->at, stack, DT_EMULATE_STACK - spread, run_threads);
    return c;
}

bool resume_ready()
{
    bool found = false;
    for (int i = 0; i < n_threads; i++) {
        const int t = is_reverse ? n_threads - 1 - i : i;
        if (threads[t].is == READY) {
            found = true;
            switch_to(&scheduler, &threads[t].by->at);
        }
    }
    return found;
}

void run_block()
{
    if (__start_dt_shared != nullptr) {
        memset(__start_dt_shared, 0xff, (size_t)(__stop_dt_shared - __start_dt_shared));
    }
    for (int t = 0; t < n_threads; t++) {
        threads[t].is = NEW;
    }
    next_thread = n_done = n_at_cluster = 0;
    memset(barriers, 0, sizeof(barriers));
    while (n_done < n_threads) {
        if (next_thread < n_threads) {
            starting = n_idle > 0 ? idle[--n_idle] : create();
            switch_to(&scheduler, &starting->at);
        } else if (!resume_ready()) {
            give_up("all threads wait and none can go on: not all of them reach the same barrier");
        }
    }
}

/* A warp operation is complete when all lanes of its mask wait in one of the same mask. */
void warp_operation(unsigned mask)
{
    const int in_block = current % n_block, lane = in_block % 32, first = current - lane;
    if ((mask >> lane & 1) == 0) {
        give_up("a warp operation without the lane itself in its mask");
    }
    threads[current].mask = mask;
    threads[current].is = IN_WARP;
    bool complete = true;
    for (int i = 0; i < 32; i++) {
        if ((mask >> i & 1) != 0) {
            if (in_block - lane + i >= n_block || threads[first + i].is == DONE) {
                give_up("a warp operation with a lane that is not there");
            }
            if (threads[first + i].is == IN_WARP && threads[first + i].mask != mask) {
                give_up("a warp operation in which lanes have different masks");
            }
            complete = complete && threads[first + i].is == IN_WARP;
        }
    }
    if (!complete) {
        wait_as(IN_WARP);
        return;
    }
    unsigned votes = 0;
    for (int i = 0; i < 32; i++) {
        if ((mask >> i & 1) != 0 && threads[first + i].predicate) {
            votes |= 1u << i;
        }
    }
    for (int i = 0; i < 32; i++) {
        if ((mask >> i & 1) != 0) {
            cuda_thread *t = &threads[first + i];
            if ((mask >> t->from & 1) == 0) {
                give_up("a shuffle from a lane that is not in the mask");
            }
            memcpy(t->result, threads[first + t->from].value, VALUE_BYTES);
            t->votes = votes;
            t->is = READY;
        }
    }
    threads[current].is = RUNNING;
}

} // namespace

void *dt_emulate_shared()
{
    return shared_memory[current / n_block];
}

int dt_emulate_lane()
{
    return current % n_block % 32;
}

/* Wait, unless the barrier opened with this thread. */
static void wait_if_closed(state s)
{
    if (threads[current].is == s) {
        wait_as(s);
    } else {
        threads[current].is = RUNNING;
    }
}

void __syncthreads()
{
    barriers[current / n_block].n_waiting++;
    threads[current].is = AT_BARRIER;
    open_barrier(current / n_block);
    wait_if_closed(AT_BARRIER);
}

int __syncthreads_or(int predicate)
{
    barriers[current / n_block].any |= predicate != 0;
    __syncthreads();
    return barriers[current / n_block].any_result;
}

void cooperative_groups::cluster_group::sync() const
{
    n_at_cluster++;
    threads[current].is = AT_CLUSTER;
    open_cluster();
    wait_if_closed(AT_CLUSTER);
}

unsigned cooperative_groups::cluster_group::block_rank() const
{
    return (unsigned)(current / n_block);
}

unsigned cooperative_groups::cluster_group::num_blocks() const
{
    return (unsigned)(n_threads / n_block);
}

char *cooperative_groups::cluster_group::address(const void *p, unsigned rank) const
{
    const ptrdiff_t at = (const char *)p - shared_memory[current / n_block];
    if (at < 0 || at >= SHARED_MAX || rank >= num_blocks()) {
        give_up("shared memory of another block by an address that is not in this one's");
    }
    return shared_memory[rank] + at;
}

void dt_emulate_shuffle(unsigned mask, const void *value, void *result, size_t bytes, int from)
{
    cuda_thread *t = &threads[current];
    if (bytes > VALUE_BYTES) {
        give_up("a shuffle of a large value");
    }
    memcpy(t->value, value, bytes);
    t->from = from % 32;
    t->predicate = 0;
    warp_operation(mask);
    memcpy(result, t->result, bytes);
}

unsigned __ballot_sync(unsigned mask, int predicate)
{
    cuda_thread *t = &threads[current];
    t->from = dt_emulate_lane();
    t->predicate = predicate;
    warp_operation(mask);
    return t->votes;
}

void __syncwarp(unsigned mask)
{
    (void)__ballot_sync(mask, 0);
}

void __trap()
{
    give_up("__trap()");
}

/* ---- what memory.cc asks ----------------------------------------------------------------------------------------- */

bool dt_emulate_is_inside()
{
    return is_inside;
}

uint64_t dt_emulate_block()
{
    return ((uint64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

const char *dt_emulate_where()
{
    static char text[256];
    snprintf(text, sizeof(text), " kernel %s, block (%u,%u,%u), thread %d", asked_name, blockIdx.x, blockIdx.y,
             blockIdx.z, n_block > 0 ? current % n_block : 0);
    return is_running ? text : "";
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

bool dt_emulate_enter(unsigned max_threads, const char *name)
{
    if (is_asked) {
        asked_bounds = max_threads;
        asked_name = name;
        return true;
    }
    is_inside = true;
    return false;
}

/* The blocks, or the first of each cluster, in the order in which they run. */
static std::vector<uint64_t> order_of(uint64_t n, bool reverse)
{
    std::vector<uint64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    if (reverse) {
        std::reverse(order.begin(), order.end());
    } else if (dt_emulate_has_seed()) {
        for (uint64_t i = n; i > 1; i--) {
            std::swap(order[i - 1], order[dt_emulate_draw((unsigned)i)]);
        }
    }
    return order;
}

static void run_grid(const char *name, dim3 grid, dim3 block, unsigned cluster, size_t shared,
                     const std::function<void()> &thread)
{
    const char *wish = getenv("DT_EMULATE_ORDER");
    is_reverse = wish != nullptr ? strcmp(wish, "reverse") == 0 : dt_emulate_draw(2) != 0;
    asked_name = name;
    body = &thread;
    gridDim = grid;
    blockDim = block;
    n_block = (int)(block.x * block.y * block.z);
    n_threads = n_block * (int)cluster;
    dt_emulate_new_launch();
    is_running = true;
    const uint64_t n_x = grid.x / cluster;
    for (const uint64_t i : order_of(n_x * grid.y * grid.z, wish != nullptr && is_reverse)) {
        first_block = (unsigned)(i % n_x) * cluster;
        blockIdx = {first_block, (unsigned)(i / n_x % grid.y), (unsigned)(i / n_x / grid.y)};
        for (unsigned k = 0; k < cluster; k++) {
            memset(shared_memory[k], 0xff, shared);
        }
        run_block();
    }
    is_running = false;
}

static std::map<const void *, size_t> allowed_shared;

enum : size_t { USUAL_SHARED = 48 * 1024, UNBOUND_THREADS = 256 };

cudaError_t dt_emulate_allow_shared(const void *kernel, int bytes)
{
    if (bytes < 0 || (size_t)bytes > dt_emulate_shared_max()) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    allowed_shared[kernel] = (size_t)bytes;
    return cudaSuccess;
}

static int active_clusters()
{
    const char *n = getenv("DT_EMULATED_CLUSTERS");
    return n != nullptr ? atoi(n) : 1;
}

cudaError_t dt_emulate_active_clusters(const void *kernel, unsigned cluster, size_t shared, int *n)
{
    const char *wish = getenv("DT_EMULATED_CLUSTERS");
    const auto allowed = allowed_shared.find(kernel);
    const size_t most =
        allowed != allowed_shared.end() && allowed->second > USUAL_SHARED ? allowed->second : (size_t)USUAL_SHARED;
    *n = 0;
    if (dt_emulate_arch() < 90 || cluster > MAX_CLUSTER) {
        return dt_emulate_fail(cudaErrorInvalidClusterSize);
    }
    if (shared > most || (wish != nullptr && strcmp(wish, "error") == 0)) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    *n = active_clusters();
    return cudaSuccess;
}

static cudaError_t check_launch(const void *kernel, dim3 grid, dim3 block, unsigned cluster, size_t shared)
{
    const size_t n = (size_t)block.x * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
        n == 0 || n > MAX_BLOCK || block.z > 64) {
        return cudaErrorInvalidConfiguration;
    }
    if (cluster > 0 && dt_emulate_arch() < 90) {
        return cudaErrorNotSupported;
    }
    if (cluster > MAX_CLUSTER || (cluster > 0 && grid.x % cluster != 0) || n * cluster > DT_EMULATE_THREADS) {
        return cudaErrorInvalidClusterSize;
    }
    if (cluster > 0 && active_clusters() == 0) {
        return cudaErrorLaunchOutOfResources;
    }
    const auto allowed = allowed_shared.find(kernel);
    const size_t opted = allowed != allowed_shared.end() ? allowed->second : 0;
    if (shared > (opted > USUAL_SHARED ? opted : (size_t)USUAL_SHARED)) {
        return cudaErrorInvalidValue;
    }
    if (dt_emulate_code() == 0) {
        return cudaErrorNoKernelImageForDevice;
    }
    return n > (asked_bounds > 0 ? (size_t)asked_bounds : (size_t)UNBOUND_THREADS) ? cudaErrorLaunchOutOfResources
                                                                                   : cudaSuccess;
}

cudaError_t dt_emulate_launch(const void *kernel, dim3 grid, dim3 block, unsigned cluster, size_t shared,
                              cudaStream_t s, std::function<void()> thread)
{
    is_asked = true;
    thread();
    is_asked = false;
    cudaError_t e = check_launch(kernel, grid, block, cluster, shared);
    e = e == cudaSuccess ? dt_emulate_count("kernel") : e;
    if (e != cudaSuccess) {
        return dt_emulate_fail(e);
    }
    const char *name = asked_name;
    const unsigned blocks = cluster > 0 ? cluster : 1;
    dt_emulate_enqueue(s, {{}, [=] { run_grid(name, grid, block, blocks, shared, thread); }});
    return cudaSuccess;
}
