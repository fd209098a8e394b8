/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of CUDA threads as coroutines. One coroutine runs thread after thread; only when its thread waits does
 * another one go on, so that kernels without barriers need no more than one. See cuda_runtime.h.
 */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

extern "C" char __start_dt_shared[] __attribute__((weak));
extern "C" char __stop_dt_shared[] __attribute__((weak));

namespace
{

enum { MAX_THREADS = 1024, SHARED_MAX = 227 * 1024, STACK = 128 * 1024, VALUE_BYTES = 16 };
enum state { NEW, RUNNING, AT_BARRIER, IN_WARP, READY, DONE };

struct coroutine {
    ucontext_t at;
    char *stack;
};

struct cuda_thread {
    state is;
    coroutine *by;
    unsigned mask; /* of the warp operation it waits in */
    int from, predicate;
    char value[VALUE_BYTES], result[VALUE_BYTES];
    unsigned votes;
};

coroutine all[MAX_THREADS], *idle[MAX_THREADS], *starting;
int n_coroutines, n_idle;
cuda_thread threads[MAX_THREADS];
ucontext_t scheduler;
const std::function<void()> *body;
const char *kernel_name;
int n_threads, next_thread, n_done, n_at_barrier, any, any_result, current;
bool is_reverse;
alignas(1024) char shared_memory[SHARED_MAX];

[[noreturn]] void give_up(const char *why)
{
    fprintf(stderr, "emulated kernel %s, block (%u,%u,%u), thread %d: %s\n", kernel_name, blockIdx.x, blockIdx.y,
            blockIdx.z, current, why);
    abort();
}

void enter(int t)
{
    current = t;
    threads[t].is = RUNNING;
    threadIdx.x = (unsigned)t % blockDim.x;
    threadIdx.y = (unsigned)t / blockDim.x % blockDim.y;
    threadIdx.z = (unsigned)t / (blockDim.x * blockDim.y);
}

/* all threads that live have come: on they go */
void open_barrier()
{
    if (n_at_barrier > 0 && n_at_barrier == n_threads - n_done) {
        for (int t = 0; t < n_threads; t++) {
            threads[t].is = threads[t].is == AT_BARRIER ? READY : threads[t].is;
        }
        n_at_barrier = 0;
        any_result = any;
        any = 0;
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
            enter(t);
            (*body)();
            threads[t].is = DONE;
            n_done++;
            open_barrier();
        }
        idle[n_idle++] = me;
        swapcontext(&me->at, &scheduler);
    }
}

void wait_as(state s)
{
    const int t = current;
    threads[t].is = s;
    swapcontext(&threads[t].by->at, &scheduler);
    enter(t);
}

coroutine *create()
{
    coroutine *c = &all[n_coroutines++];
    c->stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->stack == MAP_FAILED) {
        give_up("no memory for its stack");
    }
    getcontext(&c->at);
    c->at.uc_stack.ss_sp = c->stack;
    c->at.uc_stack.ss_size = STACK;
    c->at.uc_link = nullptr;
    makecontext(&c->at, run_threads, 0);
    return c;
}

bool resume_ready()
{
    bool found = false;
    for (int i = 0; i < n_threads; i++) {
        const int t = is_reverse ? n_threads - 1 - i : i;
        if (threads[t].is == READY) {
            found = true;
            swapcontext(&scheduler, &threads[t].by->at);
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
    next_thread = n_done = n_at_barrier = any = 0;
    while (n_done < n_threads) {
        if (next_thread < n_threads) {
            starting = n_idle > 0 ? idle[--n_idle] : create();
            swapcontext(&scheduler, &starting->at);
        } else if (!resume_ready()) {
            give_up("all threads wait and none can go on: not all of them reach the same barrier");
        }
    }
}

/* A warp operation is complete when all lanes of its mask wait in one of the same mask. */
void warp_operation(unsigned mask)
{
    const int first = current / 32 * 32, lane = current % 32;
    if ((mask >> lane & 1) == 0) {
        give_up("a warp operation without the lane itself in its mask");
    }
    threads[current].mask = mask;
    threads[current].is = IN_WARP;
    bool complete = true;
    for (int i = 0; i < 32; i++) {
        if ((mask >> i & 1) != 0) {
            if (first + i >= n_threads || threads[first + i].is == DONE) {
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
    return shared_memory;
}

int dt_emulate_lane()
{
    return current % 32;
}

void __syncthreads()
{
    n_at_barrier++;
    threads[current].is = AT_BARRIER;
    open_barrier();
    if (threads[current].is == AT_BARRIER) {
        wait_as(AT_BARRIER);
    } else {
        threads[current].is = RUNNING;
    }
}

int __syncthreads_or(int predicate)
{
    any |= predicate != 0;
    __syncthreads();
    return any_result;
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
    t->from = current % 32;
    t->predicate = predicate;
    warp_operation(mask);
    return t->votes;
}

void __syncwarp(unsigned mask)
{
    (void)__ballot_sync(mask, 0);
}

static void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread)
{
    const char *order = getenv("DT_EMULATE_ORDER");
    is_reverse = order != nullptr && strcmp(order, "reverse") == 0;
    kernel_name = name;
    body = &thread;
    gridDim = grid;
    blockDim = block;
    n_threads = (int)(block.x * block.y * block.z);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++) {
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
                memset(shared_memory, 0xff, shared);
                run_block();
            }
        }
    }
}

void dt_emulate_launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t s,
                       std::function<void()> thread)
{
    const size_t n = (size_t)block.x * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
        n == 0 || n > MAX_THREADS || block.z > 64) {
        dt_emulate_refuse(cudaErrorInvalidConfiguration);
        return;
    }
    if (shared > SHARED_MAX) {
        dt_emulate_refuse(cudaErrorInvalidValue);
        return;
    }
    dt_emulate_enqueue(s, [=] { run_grid(name, grid, block, shared, thread); });
}
