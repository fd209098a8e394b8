/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture and graphs on a CPU. A node comes after those that its stream's last ones were when it was asked for; events
 * carry that to other streams. A launch puts the nodes into the stream in any order which the edges allow. See
 * cuda_runtime.h.
 */
#include "machine.h"

#include <algorithm>

namespace
{

std::vector<dt_emulated_graph *> captures; /* going on */

void invalidate_all()
{
    for (dt_emulated_graph *g : captures) {
        g->is_invalid = true;
    }
}

void add(std::vector<size_t> *to, const std::vector<size_t> &from)
{
    for (const size_t node : from) {
        if (std::find(to->begin(), to->end(), node) == to->end()) {
            to->push_back(node);
        }
    }
}

/* Does the origin's last node come after all others? */
bool is_joined(const dt_emulated_graph *g)
{
    std::vector<bool> reached(g->nodes.size());
    std::vector<size_t> next = g->origin->frontier;
    while (!next.empty()) {
        const size_t node = next.back();
        next.pop_back();
        if (!reached[node]) {
            reached[node] = true;
            next.insert(next.end(), g->nodes[node].after.begin(), g->nodes[node].after.end());
        }
    }
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

} // namespace

void dt_emulate_invalidate(dt_emulated_graph *g)
{
    if (std::find(captures.begin(), captures.end(), g) != captures.end()) {
        g->is_invalid = true;
    }
}

cudaError_t dt_emulate_unless_capturing()
{
    if (captures.empty()) {
        return cudaSuccess;
    }
    invalidate_all();
    return dt_emulate_fail(cudaErrorStreamCaptureUnsupported);
}

void dt_emulate_capture_work(cudaStream_t s, dt_emulated_work work)
{
    dt_emulated_graph *g = s->capture;
    g->nodes.push_back({std::move(work), s->frontier});
    s->frontier = {g->nodes.size() - 1};
}

cudaError_t dt_emulate_capture_wait(cudaStream_t s, dt_emulated_event *e)
{
    if (e->capture == nullptr) {
        s->capture->is_invalid = true;
        return dt_emulate_fail(cudaErrorStreamCaptureIsolation);
    }
    if (std::find(captures.begin(), captures.end(), e->capture) == captures.end()) {
        return dt_emulate_fail(cudaErrorCapturedEvent); /* of a capture that has ended */
    }
    if (s->capture != nullptr && s->capture != e->capture) {
        s->capture->is_invalid = e->capture->is_invalid = true;
        return dt_emulate_fail(cudaErrorStreamCaptureMerge);
    }
    s->capture = e->capture;
    add(&s->frontier, e->nodes);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    if (s == nullptr || dt_emulate_stream_of(s)->capture != nullptr) {
        return dt_emulate_fail(s == nullptr ? cudaErrorStreamCaptureUnsupported : cudaErrorInvalidValue);
    }
    dt_emulated_graph *g = new dt_emulated_graph{};
    g->origin = s;
    s->capture = g;
    s->frontier.clear();
    captures.push_back(g);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    const dt_emulated_graph *g = dt_emulate_stream_of(s)->capture;
    *status = g == nullptr   ? cudaStreamCaptureStatusNone
              : g->is_invalid ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    *out = nullptr;
    if (s == nullptr || dt_emulate_stream_of(s)->capture == nullptr) {
        return dt_emulate_fail(cudaErrorInvalidValue);
    }
    dt_emulated_graph *g = s->capture;
    if (g->origin != s) {
        g->is_invalid = true;
        return dt_emulate_fail(cudaErrorStreamCaptureUnmatched);
    }
    const cudaError_t e = g->is_invalid  ? cudaErrorStreamCaptureInvalidated
                          : is_joined(g) ? cudaSuccess
                                         : cudaErrorStreamCaptureUnjoined;
    captures.erase(std::find(captures.begin(), captures.end(), g));
    dt_emulate_end_capture(g);
    if (e != cudaSuccess) {
        delete g;
        return dt_emulate_fail(e);
    }
    *out = g;
    return cudaSuccess;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *, size_t *n)
{
    *n = g->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long)
{
    const cudaError_t refused = dt_emulate_count("cudaGraphInstantiate");
    if (refused != cudaSuccess) {
        return refused;
    }
    *exec = new dt_emulated_graph(*g);
    (*exec)->last_stream = nullptr;
    return cudaSuccess;
}

/* Launches of one graph run one after the other, whatever their streams. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
    const cudaStream_t s = dt_emulate_stream_of(handle);
    if (s->capture != nullptr) {
        s->capture->is_invalid = true; /* child graphs are not emulated */
        return dt_emulate_fail(cudaErrorStreamCaptureUnsupported);
    }
    const cudaError_t refused = dt_emulate_count("cudaGraphLaunch");
    if (refused != cudaSuccess) {
        return refused;
    }
    if (exec->last_stream != nullptr) {
        dt_emulate_queue_wait(s, exec->last_stream, exec->last_number);
    }
    std::vector<size_t> missing(exec->nodes.size()), ready;
    std::vector<std::vector<size_t>> before(exec->nodes.size());
    for (size_t i = 0; i < exec->nodes.size(); i++) {
        missing[i] = exec->nodes[i].after.size();
        for (const size_t k : exec->nodes[i].after) {
            before[k].push_back(i);
        }
        if (missing[i] == 0) {
            ready.push_back(i);
        }
    }
    while (!ready.empty()) {
        const size_t at = dt_emulate_draw((unsigned)ready.size()), next = ready[at];
        ready.erase(ready.begin() + (ptrdiff_t)at);
        for (const size_t i : before[next]) {
            if (--missing[i] == 0) {
                ready.push_back(i);
            }
        }
        dt_emulate_enqueue(handle, exec->nodes[next].work);
    }
    exec->last_stream = s;
    exec->last_number = s->asked;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

/* What was launched has its own copy. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}
