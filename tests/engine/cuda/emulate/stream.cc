/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events on a CPU. A stream is a queue, and nothing in it is done before a caller waits for it, or the seed
 * says so: then any stream may go on that can, each with a weight of its own, so that some lag far behind. The legacy
 * stream waits for blocking ones and they for it; non-blocking ones know nothing of it. See cuda_runtime.h.
 */
#include "machine.h"

#include <ctime>
#include <deque>
#include <unistd.h>

namespace
{

struct piece { /* of work, or a wait for another stream, where run is empty */
    std::function<void()> run;
    cudaStream_t after;
    uint64_t number;
    std::function<bool()> attempt; /* work that other processes have a part in: done when it says so */
};

std::vector<cudaStream_t> streams; /* [0]: the legacy one; destroyed ones stay, what they have may still be done */

} // namespace

struct dt_emulated_queue {
    std::deque<piece> pieces;
};

namespace
{

struct temper { /* in sixteenths: how likely another stream than the one waited for goes on, or one unasked */
    unsigned stray, haste;
};

temper draw_temper()
{
    static const unsigned often[] = {0, 1, 4, 12};
    temper t = {0, 0};
    t.stray = often[dt_emulate_draw(4)];
    t.haste = often[dt_emulate_draw(4)];
    return t;
}

cudaStream_t create(bool is_blocking)
{
    cudaStream_t s = new dt_emulated_stream{};
    s->is_blocking = is_blocking;
    s->weight = 1u << dt_emulate_draw(6);
    s->queue = new dt_emulated_queue;
    streams.push_back(s);
    return s;
}

bool is_ready(const dt_emulated_stream *s)
{
    std::deque<piece> &q = s->queue->pieces;
    if (!q.empty() && q.front().attempt) {
        dt_emulate_open_memory(true);
        if (q.front().attempt()) {
            q.front().attempt = {}; /* it is done, once */
        }
        dt_emulate_open_memory(false);
    }
    return !q.empty() && !q.front().attempt &&
           (q.front().after == nullptr || q.front().after->done >= q.front().number);
}

void go_on(cudaStream_t s)
{
    const piece p = s->queue->pieces.front();
    s->queue->pieces.pop_front();
    if (p.run) {
        dt_emulate_open_memory(true);
        p.run();
        dt_emulate_open_memory(false);
    }
    s->done++;
}

/* one that can go on, by weight; NULL: none */
cudaStream_t any()
{
    unsigned total = 0;
    for (const cudaStream_t s : streams) {
        total += is_ready(s) ? s->weight : 0;
    }
    unsigned at = dt_emulate_draw(total);
    for (const cudaStream_t s : streams) {
        if (is_ready(s)) {
            if (at < s->weight) {
                return s;
            }
            at -= s->weight;
        }
    }
    return nullptr;
}

/* What has to go on for s to go on; NULL: that is up to another process. */
cudaStream_t wanted_by(cudaStream_t s)
{
    while (s != nullptr && !is_ready(s)) {
        s = s->queue->pieces.front().after;
    }
    return s;
}

void wait_for(cudaStream_t s, uint64_t number)
{
    static const temper how = draw_temper();
    while (s->done < number) {
        cudaStream_t next = dt_emulate_draw(16) < how.stray ? any() : nullptr;
        next = next == nullptr ? wanted_by(s) : next;
        next = next == nullptr ? any() : next;
        if (next == nullptr) {
            usleep(50);
            continue;
        }
        go_on(next);
    }
}

void maybe_go_on()
{
    static const temper how = draw_temper();
    while (dt_emulate_has_seed() && dt_emulate_draw(16) < how.haste) {
        const cudaStream_t s = any();
        if (s == nullptr) {
            break;
        }
        go_on(s);
    }
}

void push(cudaStream_t s, piece p)
{
    s->queue->pieces.push_back(std::move(p));
    s->asked++;
}

/* the legacy stream and blocking ones wait for each other */
void order_with_legacy(cudaStream_t s)
{
    const cudaStream_t legacy = streams[0];
    if (s != legacy && s->is_blocking) {
        dt_emulate_queue_wait(s, legacy, legacy->asked);
    }
    for (size_t i = 1; i < streams.size() && s == legacy; i++) {
        if (streams[i]->is_blocking) {
            dt_emulate_queue_wait(s, streams[i], streams[i]->asked);
        }
    }
}

} // namespace

cudaStream_t dt_emulate_stream_of(cudaStream_t s)
{
    if (streams.empty()) {
        (void)create(true);
    }
    if (s != nullptr && s->is_destroyed) {
        dt_emulate_die("a stream is used that was destroyed");
    }
    return s != nullptr ? s : streams[0];
}

void dt_emulate_queue_wait(cudaStream_t s, cudaStream_t of, uint64_t number)
{
    if (of->done < number && of != s) {
        push(s, {{}, of, number, {}});
    }
}

void dt_emulate_enqueue(cudaStream_t handle, dt_emulated_work work)
{
    const cudaStream_t s = dt_emulate_stream_of(handle);
    if (s->capture != nullptr) {
        dt_emulate_capture_work(s, std::move(work));
        return;
    }
    order_with_legacy(s);
    if (work.ask) {
        work.ask();
    }
    push(s, {std::move(work.run), nullptr, 0, {}});
    if (work.event != nullptr) {
        work.event->is_recorded = true;
        work.event->stream = s;
        work.event->number = s->asked;
    }
    maybe_go_on();
}

void dt_emulate_end_capture(const dt_emulated_graph *g)
{
    for (const cudaStream_t s : streams) {
        s->capture = s->capture == g ? nullptr : s->capture;
    }
}

/* ---- work of other libraries (nccl/nccl.cc) ---------------------------------------------------------------------- */

extern "C" __attribute__((visibility("default"))) void dt_emulated_enqueue(void *handle, bool (*attempt)(void *user),
                                                                           void *user)
{
    const cudaStream_t s = dt_emulate_stream_of((cudaStream_t)handle);
    if (s->capture != nullptr) {
        dt_emulate_die("work with other processes is captured");
    }
    order_with_legacy(s);
    push(s, {{}, nullptr, 0, [=] { return attempt(user); }});
    maybe_go_on();
}

/* Is there work in another stream that could go on now? */
extern "C" __attribute__((visibility("default"))) bool dt_emulated_is_beside(void *handle)
{
    for (const cudaStream_t s : streams) {
        const bool has_work = s != (cudaStream_t)handle && !s->queue->pieces.empty();
        const piece *p = has_work ? &s->queue->pieces.front() : nullptr;
        if (p != nullptr && !p->attempt && (p->after == nullptr || p->after->done >= p->number)) {
            return true;
        }
    }
    return false;
}

extern "C" __attribute__((visibility("default"))) void dt_emulated_touch(const void *p, size_t bytes, bool is_write)
{
    if (is_write) {
        dt_emulate_writes((void *)p, bytes, "NCCL");
    } else {
        dt_emulate_reads(p, bytes, "NCCL");
    }
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    if (flags > cudaStreamNonBlocking) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    (void)dt_emulate_stream_of(nullptr);
    *s = create(flags != cudaStreamNonBlocking);
    return cudaSuccess;
}

/* What is in it is still done, some time. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    if (s == nullptr) {
        return dt_emulate_fail(cudaErrorInvalidResourceHandle);
    }
    if (dt_emulate_stream_of(s)->capture != nullptr) {
        s->capture->is_invalid = true;
    }
    s->is_destroyed = true;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    const cudaStream_t s = dt_emulate_stream_of(handle);
    cudaError_t e = dt_emulate_unless_capturing();
    e = e == cudaSuccess ? dt_emulate_count("cudaStreamSynchronize") : e;
    if (e == cudaSuccess) {
        wait_for(s, s->asked);
    }
    return e;
}

cudaError_t cudaDeviceSynchronize()
{
    const cudaError_t e = dt_emulate_unless_capturing();
    for (size_t i = 0; i < streams.size() && e == cudaSuccess; i++) {
        wait_for(streams[i], streams[i]->asked);
    }
    return e;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned flags)
{
    const cudaStream_t s = dt_emulate_stream_of(handle);
    if (flags != 0 || e == nullptr || e->is_destroyed) {
        return dt_emulate_fail(flags != 0 ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    if (s->capture != nullptr || e->capture != nullptr) {
        return dt_emulate_capture_wait(s, e);
    }
    if (e->is_recorded) {
        dt_emulate_queue_wait(s, e->stream, e->number);
        maybe_go_on();
    }
    return cudaSuccess;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    *e = new dt_emulated_event{};
    (*e)->is_timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
}

/* stays, for what is queued may still write it */
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    if (e == nullptr || e->is_destroyed) {
        return dt_emulate_fail(cudaErrorInvalidResourceHandle);
    }
    e->is_destroyed = true;
    return cudaSuccess;
}

static dt_emulated_work recording(cudaEvent_t e)
{
    return {{},
            [=] {
                timespec now;
                clock_gettime(CLOCK_MONOTONIC, &now);
                e->ms = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
            },
            e};
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle)
{
    const cudaStream_t s = dt_emulate_stream_of(handle);
    if (e == nullptr || e->is_destroyed) {
        return dt_emulate_fail(cudaErrorInvalidResourceHandle);
    }
    e->capture = s->capture;
    if (s->capture != nullptr) {
        e->nodes = s->frontier;
    } else {
        dt_emulate_enqueue(handle, recording(e));
    }
    return cudaSuccess;
}

/* An external record is a node: the event is outside of the graph, and each launch records it. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t handle, unsigned flags)
{
    if (flags == cudaEventRecordDefault) {
        return cudaEventRecord(e, handle);
    }
    const cudaStream_t s = dt_emulate_stream_of(handle);
    if (flags != cudaEventRecordExternal || s->capture == nullptr) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    if (e == nullptr || e->is_destroyed) {
        return dt_emulate_fail(cudaErrorInvalidResourceHandle);
    }
    e->capture = nullptr;
    dt_emulate_capture_work(s, recording(e));
    return cudaSuccess;
}

static cudaError_t check_event(cudaEvent_t e)
{
    if (e == nullptr || e->is_destroyed) {
        return dt_emulate_fail(cudaErrorInvalidResourceHandle);
    }
    if (e->capture != nullptr) {
        dt_emulate_invalidate(e->capture);
        return dt_emulate_fail(cudaErrorCapturedEvent);
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    const cudaError_t bad = check_event(e);
    if (bad != cudaSuccess) {
        return bad;
    }
    const cudaError_t refused = dt_emulate_count("cudaEventSynchronize");
    if (refused == cudaSuccess && e->is_recorded) {
        (void)dt_emulate_count(e->number == e->stream->asked ? "event, nothing behind it" : "event, more behind it");
        wait_for(e->stream, e->number);
    }
    return refused;
}

static bool is_open(cudaEvent_t e)
{
    return e->is_recorded && e->stream->done < e->number;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    const cudaError_t bad = check_event(e);
    if (bad != cudaSuccess) {
        return bad;
    }
    maybe_go_on();
    const cudaStream_t next = is_open(e) ? wanted_by(e->stream) : nullptr;
    if (next != nullptr && dt_emulate_draw(4) == 0) { /* who asks often enough gets there */
        go_on(next);
    }
    return is_open(e) ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    for (const cudaEvent_t e : {from, to}) {
        const cudaError_t bad = check_event(e);
        if (bad != cudaSuccess) {
            return bad;
        }
        if (!e->is_timed || !e->is_recorded) {
            return dt_emulate_fail(cudaErrorInvalidResourceHandle);
        }
        if (e->stream->done < e->number) {
            return cudaErrorNotReady;
        }
    }
    *ms = (float)(to->ms - from->ms);
    return cudaSuccess;
}
