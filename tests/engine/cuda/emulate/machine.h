/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the emulator know of each other: draws, work in streams, accesses to memory. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_MACHINE_H
#define DTRAIN_TESTS_CUDA_EMULATE_MACHINE_H

#include "cuda_runtime.h"

#include <memory>
#include <vector>

/* ---- mistakes and chance (runtime.cc) ---------------------------------------------------------------------------- */

/* A mistake for which a GPU has no error code: says what it is and the seed, and ends the program. */
[[noreturn]] void dt_emulate_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns e, and keeps it for cudaGetLastError. */
cudaError_t dt_emulate_fail(cudaError_t e);
/* One more of these calls: cudaSuccess, or what it is refused with. DT_EMULATED_COUNTS=FILE: how often each was made is
 * written there at the end, a line for each. DT_EMULATED_REFUSE=CALL:N: the N-th of them is refused. */
cudaError_t dt_emulate_count(const char *call);
/* From the seed, below n; without a seed always 0. */
unsigned dt_emulate_draw(unsigned n);
bool dt_emulate_has_seed();
/* 10 * major + minor of the device, and of the code that would run on it, 0: there is none for it. */
int dt_emulate_arch();
int dt_emulate_code();
size_t dt_emulate_shared_max();

/* ---- work (stream.cc, graph.cc) ---------------------------------------------------------------------------------- */

struct dt_emulated_work {
    std::function<void()> ask; /* when it is handed to a stream, inside a graph when that is; may be empty */
    std::function<void()> run;
    cudaEvent_t event = nullptr; /* recorded by it, at every launch of the graph that it is in; may be NULL */
};

struct dt_emulated_node {
    dt_emulated_work work;
    std::vector<size_t> after;
};

/* What is being captured, or was. */
struct dt_emulated_graph {
    std::vector<dt_emulated_node> nodes;
    cudaStream_t origin;
    bool is_invalid;
    cudaStream_t last_stream; /* where it was launched last, and how far that stream then was */
    uint64_t last_number;
};

struct dt_emulated_event {
    bool is_timed, is_destroyed, is_recorded;
    cudaStream_t stream; /* reached when this stream has done `number` pieces of work */
    uint64_t number;
    double ms;
    dt_emulated_graph *capture; /* recorded while this was captured, behind these nodes */
    std::vector<size_t> nodes;
};

struct dt_emulated_queue;
struct dt_emulated_stream {
    bool is_blocking, is_destroyed;
    unsigned weight; /* how often it is chosen among others */
    uint64_t asked, done;
    dt_emulated_queue *queue;
    dt_emulated_graph *capture;
    std::vector<size_t> frontier; /* nodes that the next one comes after */
};

/* The stream itself, the legacy one for NULL; ends the program when it was destroyed. */
cudaStream_t dt_emulate_stream_of(cudaStream_t s);
/* Queue behind what the stream has, or record while it is captured. */
void dt_emulate_enqueue(cudaStream_t s, dt_emulated_work work);
/* What follows in s waits until `of` has done `number` pieces. */
void dt_emulate_queue_wait(cudaStream_t s, cudaStream_t of, uint64_t number);
/* In a call that the thread's captures forbid: they become invalid. Else cudaSuccess. */
cudaError_t dt_emulate_unless_capturing();
void dt_emulate_invalidate(dt_emulated_graph *g);        /* if it is still being captured */
void dt_emulate_end_capture(const dt_emulated_graph *g); /* no stream is captured into it any more */
cudaError_t dt_emulate_capture_wait(cudaStream_t s, dt_emulated_event *e);
void dt_emulate_capture_work(cudaStream_t s, dt_emulated_work work);

/* ---- memory (memory.cc) ------------------------------------------------------------------------------------------ */

bool dt_emulate_has_memory(); /* is any held? */
/* Is [p, p + bytes) inside one block of the device's memory? */
bool dt_emulate_is_device(const void *p, size_t bytes);
/* Before a copy or a product reads or writes the whole range; ends the program when it may not. */
void dt_emulate_reads(const void *p, size_t bytes, const char *who);
void dt_emulate_writes(void *p, size_t bytes, const char *who);
/* The device's memory may be touched: by work, not by the host's code in between. */
void dt_emulate_open_memory(bool is_open);
/* A new launch: accesses of its blocks are held against each other, not against those of others. */
void dt_emulate_new_launch();

/* ---- threads (block.cc) ------------------------------------------------------------------------------------------ */

/* Is this a kernel's thread? Then its block among those of the launch. */
bool dt_emulate_is_inside();
uint64_t dt_emulate_block();
enum : size_t { DT_EMULATE_THREADS = 4096, DT_EMULATE_STACK = 128 * 1024 }; /* of a launch's cluster; of each */
extern char *dt_emulate_stacks;                                             /* NULL until one is wanted */
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden"))); /* of the module */
extern "C" const char _end[] __attribute__((visibility("hidden")));
/* May a kernel's thread use p, which is not in the device's memory: its stack, shared memory, constants? Asked for most
 * loads and stores of a kernel, so it is here. */
static inline bool dt_emulate_is_local(const void *p)
{
    const uintptr_t at = (uintptr_t)p, stacks = (uintptr_t)dt_emulate_stacks, module = (uintptr_t)__ehdr_start;
    return (stacks != 0 && at - stacks < DT_EMULATE_THREADS * DT_EMULATE_STACK) ||
           at - module < (uintptr_t)_end - module;
}
/* The kernel, block and thread that runs, in a static buffer; "" in none. */
const char *dt_emulate_where();

#endif
