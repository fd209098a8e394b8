/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the emulated GPU: one range of addresses, in which blocks never touch each other and addresses come
 * back late. Next to it lies what is known of every byte (held, written) and of every two (who touched them last in this
 * launch). The compiler calls __asan_* before each load and store of the module's code. See cuda_runtime.h.
 */
#include "machine.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sys/mman.h>

namespace
{

enum : size_t { TOTAL = (size_t)1 << 30, APART = 256, PAGE = 4096, ROUND_TRIP = (size_t)64 << 20, UNIT = 2 };
enum : size_t { LARGE = (size_t)1 << 20 }; /* blocks whose pages go back when they are freed */
enum : uint8_t { NOBODYS = 0, HELD, WRITTEN }; /* of a byte */

struct touch { /* of a UNIT of bytes: launch << 24 | block, 0: nobody */
    uint64_t writer, reader;
};

enum : uint64_t { MANY = 0xffffff }; /* blocks */

char *memory;
uint8_t *state;
touch *touched;
std::map<size_t, size_t> blocks; /* offset -> bytes */
std::map<const char *, size_t> pinned;
size_t in_use, next_free = APART;
uint64_t launch;

void *reserve(size_t bytes, int protection)
{
    void *p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        dt_emulate_die("no addresses for its memory");
    }
    return p;
}

void begin()
{
    if (memory == nullptr) {
        memory = (char *)reserve(TOTAL, PROT_READ | PROT_WRITE);
        state = (uint8_t *)reserve(TOTAL, PROT_READ | PROT_WRITE);
        touched = (touch *)reserve(TOTAL / UNIT * sizeof(touch), PROT_READ | PROT_WRITE);
    }
}

/* Where `bytes` fit behind `from`, before `end`; TOTAL: nowhere. */
size_t gap(size_t from, size_t end, size_t bytes)
{
    auto after = blocks.upper_bound(from);
    from = (from + APART - 1) / APART * APART;
    if (after != blocks.begin()) {
        const auto before = std::prev(after);
        const size_t behind = (before->first + before->second + APART + APART - 1) / APART * APART;
        from = behind > from ? behind : from;
    }
    for (; after != blocks.end() && from + bytes + APART > after->first; ++after) {
        from = (after->first + after->second + APART + APART - 1) / APART * APART;
    }
    return from + bytes + APART <= end ? from : TOTAL;
}

/* The block that holds p; blocks.end(): none does. */
std::map<size_t, size_t>::iterator block_of(const void *p)
{
    const size_t at = (size_t)((const char *)p - memory);
    auto after = memory == nullptr || at >= TOTAL ? blocks.begin() : blocks.upper_bound(at);
    if (after == blocks.begin() || at >= std::prev(after)->first + std::prev(after)->second) {
        return blocks.end();
    }
    return std::prev(after);
}

bool is_in_range(const void *p)
{
    return memory != nullptr && (size_t)((const char *)p - memory) < TOTAL;
}

/* Pages go back, so that they are not kept for every address that was ever used. */
void forget(char *base, size_t from, size_t bytes)
{
    const size_t first = (from + PAGE - 1) / PAGE * PAGE, last = (from + bytes) / PAGE * PAGE;
    if (first >= last || bytes < LARGE) {
        memset(base + from, 0, bytes);
        return;
    }
    memset(base + from, 0, first - from);
    memset(base + last, 0, from + bytes - last);
    (void)madvise(base + first, last - first, MADV_DONTNEED);
}

bool is_pinned(const void *p, size_t bytes)
{
    const auto after = pinned.upper_bound((const char *)p);
    return after != pinned.begin() && (const char *)p + bytes <= std::prev(after)->first + std::prev(after)->second;
}

void check_range(const void *p, size_t bytes, const char *who)
{
    if (bytes > 0 && !dt_emulate_is_device(p, bytes)) {
        dt_emulate_die("%s: %zu bytes at %p are not inside one block of the device's memory", who, bytes, p);
    }
}

/* Blocks of one launch have no order: what one writes no other may touch. */
void check_blocks(size_t at, size_t bytes, bool is_write)
{
    const uint64_t mine = launch << 24 | (dt_emulate_block() & MANY);
    for (size_t w = at / UNIT; w <= (at + bytes - 1) / UNIT; w++) {
        touch *t = &touched[w];
        const bool other_wrote = t->writer >> 24 == launch && t->writer != mine;
        const bool other_read = t->reader >> 24 == launch && t->reader != mine;
        if (other_wrote || (is_write && other_read)) {
            const uint64_t other = (other_wrote ? t->writer : t->reader) & MANY;
            dt_emulate_die("%s %p, which block %lld of the same launch %s", is_write ? "writes" : "reads",
                           (void *)(memory + at), other == MANY ? -1LL : (long long)other,
                           other_wrote ? "writes" : "reads");
        }
        if (is_write) {
            t->writer = mine;
        } else {
            t->reader = t->reader >> 24 == launch && t->reader != mine ? (launch << 24 | MANY) : mine;
        }
    }
}

void check_not_local(const void *p, size_t bytes, bool is_write)
{
    if (!is_in_range(p)) {
        if (dt_emulate_is_inside() && !is_pinned(p, bytes)) {
            dt_emulate_die("%s host memory at %p", is_write ? "writes" : "reads", p);
        }
        return;
    }
    const size_t at = (size_t)((const char *)p - memory);
    if (!dt_emulate_is_inside()) {
        dt_emulate_die("the host %s the device's memory at %p", is_write ? "writes" : "reads", p);
    }
    const bool is_power = (bytes & (bytes - 1)) == 0;
    if (bytes <= 16 && (is_power ? (at & (bytes - 1)) : at % bytes) != 0) {
        dt_emulate_die("%s of %zu bytes at %p, which is not a multiple of that", is_write ? "store" : "load", bytes, p);
    }
    if (state[at] == NOBODYS || state[at + bytes - 1] == NOBODYS) {
        dt_emulate_die("%s %zu bytes at %p, beyond what is held there", is_write ? "writes" : "reads", bytes, p);
    }
    if (!is_write && (state[at] != WRITTEN || state[at + bytes - 1] != WRITTEN)) {
        dt_emulate_die("reads %zu bytes at %p, which nobody wrote", bytes, p);
    }
    if (is_write) {
        memset(state + at, WRITTEN, bytes);
    }
    check_blocks(at, bytes, is_write);
}

/* A load or store of the module's code. */
inline void check(const void *p, size_t bytes, bool is_write)
{
    if (!dt_emulate_is_local(p)) {
        check_not_local(p, bytes, is_write);
    }
}

} // namespace

/* ---- who else asks ----------------------------------------------------------------------------------------------- */

bool dt_emulate_has_memory()
{
    return !blocks.empty();
}

bool dt_emulate_is_device(const void *p, size_t bytes)
{
    const auto b = block_of(p);
    return b != blocks.end() && (size_t)((const char *)p - memory) + bytes <= b->first + b->second;
}

void dt_emulate_reads(const void *p, size_t bytes, const char *who)
{
    check_range(p, bytes, who);
    const void *fresh = bytes > 0 ? memchr(state + ((const char *)p - memory), HELD, bytes) : nullptr;
    if (fresh != nullptr) {
        dt_emulate_die("%s: reads the device's memory at %p, which nobody wrote", who,
                       (void *)(memory + ((const uint8_t *)fresh - state)));
    }
}

void dt_emulate_writes(void *p, size_t bytes, const char *who)
{
    check_range(p, bytes, who);
    memset(state + ((char *)p - memory), WRITTEN, bytes);
}

void dt_emulate_open_memory(bool is_open)
{
    static const bool is_guarded = dt_emulate_has_seed() && dt_emulate_draw(4) == 0; /* it takes its time */
    begin();
    if (is_guarded && mprotect(memory, TOTAL, is_open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
        dt_emulate_die("cannot open its memory");
    }
}

void dt_emulate_new_launch()
{
    launch++;
}

void dt_emulate_atomic(void *p, size_t bytes)
{
    if (is_in_range(p)) {
        const size_t at = (size_t)((char *)p - memory);
        if (at % bytes != 0 || state[at] != WRITTEN || state[at + bytes - 1] != WRITTEN) {
            dt_emulate_die("an atomic of %zu bytes at %p: not aligned, not held or not written before", bytes, p);
        }
    }
}

#define DT_EMULATED_ACCESS(n)                                                                                          \
    extern "C" void __asan_load##n##_noabort(const void *p)                                                            \
    {                                                                                                                  \
        check(p, n, false);                                                                                            \
    }                                                                                                                  \
    extern "C" void __asan_store##n##_noabort(void *p)                                                                 \
    {                                                                                                                  \
        check(p, n, true);                                                                                             \
    }
DT_EMULATED_ACCESS(1)
DT_EMULATED_ACCESS(2)
DT_EMULATED_ACCESS(4)
DT_EMULATED_ACCESS(8)
DT_EMULATED_ACCESS(16)
#undef DT_EMULATED_ACCESS

extern "C" void __asan_loadN_noabort(const void *p, size_t bytes)
{
    if (bytes > 0) {
        check(p, bytes, false);
    }
}

extern "C" void __asan_storeN_noabort(void *p, size_t bytes)
{
    if (bytes > 0) {
        check(p, bytes, true);
    }
}

extern "C" void __asan_handle_no_return() {}

/* what -fsanitize=alignment calls */
extern "C" void __ubsan_handle_type_mismatch_v1(const void *, const void *p)
{
    dt_emulate_die("an access at %p, which is not aligned for its type", p);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    cudaError_t e = dt_emulate_unless_capturing();
    e = e == cudaSuccess ? dt_emulate_count("cudaMalloc") : e;
    if (e != cudaSuccess || bytes == 0) {
        *p = nullptr;
        return e;
    }
    begin();
    size_t at = gap(next_free < ROUND_TRIP ? next_free : (size_t)APART, TOTAL, bytes);
    at = at < TOTAL ? at : gap(APART, TOTAL, bytes);
    if (at == TOTAL) {
        return dt_emulate_fail(cudaErrorMemoryAllocation);
    }
    blocks[at] = bytes;
    memset(state + at, HELD, bytes);
    dt_emulate_open_memory(true);
    memset(memory + at, 0xff, bytes);
    dt_emulate_open_memory(false);
    next_free = at + bytes;
    in_use += bytes;
    *p = memory + at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    const cudaError_t e = dt_emulate_unless_capturing();
    if (e != cudaSuccess || p == nullptr) {
        return e;
    }
    const auto b = block_of(p);
    if (b == blocks.end() || memory + b->first != p) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    forget((char *)state, b->first, b->second);
    if (b->second >= LARGE) {
        dt_emulate_open_memory(true);
        forget(memory, b->first, b->second);
        dt_emulate_open_memory(false);
        forget((char *)touched, b->first * (sizeof(touch) / UNIT), (b->second + UNIT - 1) / UNIT * sizeof(touch));
    }
    in_use -= b->second;
    blocks.erase(b);
    return cudaSuccess;
}

/* Filled like the device's: who allocates it writes it. */
cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    cudaError_t e = dt_emulate_unless_capturing();
    e = e == cudaSuccess ? dt_emulate_count("cudaMallocHost") : e;
    if (e != cudaSuccess) {
        return e;
    }
    *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (*p == nullptr) {
        return dt_emulate_fail(cudaErrorMemoryAllocation);
    }
    memset(*p, 0xff, bytes);
    pinned[(const char *)*p] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    const cudaError_t e = dt_emulate_unless_capturing();
    if (e != cudaSuccess || p == nullptr) {
        return e;
    }
    const auto b = pinned.find((const char *)p);
    if (b == pinned.end()) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    memset(p, 0xff, b->second);
    pinned.erase(b);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *total = TOTAL;
    *left = TOTAL - in_use;
    return cudaSuccess;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static cudaError_t set(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t s)
{
    if (width > pitch) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (!dt_emulate_is_device(p, (height - 1) * pitch + width)) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    dt_emulate_enqueue(s, {{}, [=] {
                               for (size_t i = 0; i < height; i++) {
                                   dt_emulate_writes((char *)p + i * pitch, width, "cudaMemset");
                                   memset((char *)p + i * pitch, value, width);
                               }
                           }});
    return cudaSuccess;
}

/* Does not wait, though its name does not say so. */
cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    const cudaError_t e = dt_emulate_unless_capturing();
    return e != cudaSuccess ? e : set(p, bytes, value, bytes, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    return set(p, bytes, value, bytes, 1, s);
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t s)
{
    return set(p, pitch, value, width, height, s);
}

static void copy_now(void *to, const void *from, size_t bytes, bool is_to_device, bool is_from_device)
{
    if (is_from_device) {
        dt_emulate_reads(from, bytes, "cudaMemcpy");
    }
    if (is_to_device) {
        dt_emulate_writes(to, bytes, "cudaMemcpy");
    }
    memmove(to, from, bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (bytes == 0) {
        return cudaSuccess;
    }
    if ((to_device ? !dt_emulate_is_device(to, bytes) : is_in_range(to)) ||
        (from_device ? !dt_emulate_is_device(from, bytes) : is_in_range(from))) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    const cudaError_t refused = dt_emulate_count("cudaMemcpyAsync");
    if (refused != cudaSuccess) {
        return refused;
    }
    dt_emulated_work work;
    if (!to_device) {
        work.ask = [=] { memset(to, 0xff, bytes); };
    }
    const void *host = !to_device ? to : !from_device ? from : nullptr;
    const bool was_pinned = host != nullptr && is_pinned(host, bytes);
    work.run = [=] {
        if (was_pinned && !is_pinned(host, bytes)) {
            dt_emulate_die("pinned memory at %p was freed before it was copied", host);
        }
        copy_now(to, from, bytes, to_device, from_device);
    };
    dt_emulate_enqueue(s, std::move(work));
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    cudaError_t e = dt_emulate_unless_capturing();
    e = e != cudaSuccess ? e : cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return e != cudaSuccess ? e : cudaStreamSynchronize(nullptr);
}
