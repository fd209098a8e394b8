/* SPDX-License-Identifier: Apache-2.0
 *
 * Timeline of a program on the GPU, nodes of graphs included, for machines without nsys: a library that the CUDA driver
 * loads into the program, and that records every kernel, copy and memset by CUPTI.
 *
 *   CUDA_INJECTION64_PATH=libcupti_trace.so DT_TRACE_CSV=out.csv program...
 *
 * trace_report.py summarises the table. Records are written when CUPTI hands over a buffer and when the program exits;
 * a program that is killed loses what was not handed over, and its last line may be incomplete.
 */
#include <cupti.h>
#include <cxxabi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The records of CUDA 11.8: later versions of CUPTI append members and keep these types. */
typedef CUpti_ActivityKernel8 kernel_record;
typedef CUpti_ActivityMemcpy5 memcpy_record;
typedef CUpti_ActivityMemset4 memset_record;

enum { BUFFER_BYTES = 8 << 20, NAME_MAX_CHARS = 220 };

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long n_records, n_dropped;

static void CUPTIAPI provide_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = (uint8_t *)aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer != NULL ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void write_name(const char *name)
{
    int status = 1;
    char *plain = name != NULL ? abi::__cxa_demangle(name, NULL, NULL, &status) : NULL;
    const char *text = status == 0 ? plain : name != NULL ? name : "?";
    for (int i = 0; text[i] != '\0' && i < NAME_MAX_CHARS; i++) {
        fputc(text[i] == ',' ? ';' : text[i] < ' ' ? '?' : text[i], out);
    }
    fputc('\n', out);
    free(plain);
}

static void write_span(char kind, uint64_t start, uint64_t end, uint32_t stream, uint32_t graph, uint64_t node)
{
    fprintf(out, "%c,%llu,%llu,%u,%u,%llu,", kind, (unsigned long long)start, (unsigned long long)end, stream, graph,
            (unsigned long long)node);
}

static void write_record(const CUpti_Activity *a)
{
    n_records++;
    if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const kernel_record *k = (const kernel_record *)a;
        write_span('k', k->start, k->end, k->streamId, k->graphId, k->graphNodeId);
        fprintf(out, "%dx%dx%d,%dx%dx%d,%u,%d,%d,%u,", k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ,
                k->registersPerThread, k->staticSharedMemory, k->dynamicSharedMemory, k->localMemoryPerThread);
        write_name(k->name);
    } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const memcpy_record *m = (const memcpy_record *)a;
        write_span('c', m->start, m->end, m->streamId, m->graphId, m->graphNodeId);
        fprintf(out, "%llu,,,,,,memcpy kind %u\n", (unsigned long long)m->bytes, m->copyKind);
    } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const memset_record *m = (const memset_record *)a;
        write_span('m', m->start, m->end, m->streamId, m->graphId, m->graphNodeId);
        fprintf(out, "%llu,,,,,,memset\n", (unsigned long long)m->bytes);
    }
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *a = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&lock);
    while (out != NULL && valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &a) == CUPTI_SUCCESS) {
        write_record(a);
    }
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) {
        n_dropped += dropped;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void finish(void)
{
    cuptiActivityFlushAll(1);
    pthread_mutex_lock(&lock);
    if (out != NULL) {
        fclose(out);
        out = NULL;
    }
    pthread_mutex_unlock(&lock);
    fprintf(stderr, "cupti_trace: %llu records, %llu dropped\n", n_records, n_dropped);
}

static bool check(CUptiResult r, const char *what)
{
    const char *text = "unknown error";
    if (r != CUPTI_SUCCESS) {
        cuptiGetResultString(r, &text);
        fprintf(stderr, "cupti_trace: %s: %s\n", what, text);
    }
    return r == CUPTI_SUCCESS;
}

/* Called by the driver, once for each copy of it in the process. Returns 1 on success. */
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void)
{
    static bool is_started;
    if (is_started) {
        return 1;
    }
    is_started = true;
    const char *path = getenv("DT_TRACE_CSV");
    if (path == NULL || (out = fopen(path, "w")) == NULL) {
        fprintf(stderr, "cupti_trace: DT_TRACE_CSV must name a file that can be written\n");
        return 0;
    }
    fputs("kind,start,end,stream,graph,node,grid,block,registers,static,dynamic,local,name\n", out);
    const bool is_on = check(cuptiActivityRegisterCallbacks(provide_buffer, take_buffer), "callbacks") &&
                       check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "kernels") &&
                       check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "copies") &&
                       check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), "memsets");
    atexit(finish);
    return is_on;
}
