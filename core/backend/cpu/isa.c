/* SPDX-License-Identifier: Apache-2.0
 *
 * Choice of the CPU build. See isa.h.
 */
#include <config.h>

#include "backend/cpu/isa.h"
#include "base/err.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_name[DT_CPU_ISA_END] = {"base", "avx2", "avx512"};

static pthread_once_t isa_once = PTHREAD_ONCE_INIT;
static dt_cpu_isa_id isa_in_use;
static dt_error isa_error; /* status DT_OK when DTRAIN_CPU_ISA was fine */

dt_cpu_isa_id dt_cpu_isa_best(void)
{
#if defined(__x86_64__)
#    ifdef DT_HAVE_CPU_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
        return DT_CPU_ISA_AVX512;
    }
#    endif
#    ifdef DT_HAVE_CPU_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return DT_CPU_ISA_AVX2;
    }
#    endif
#endif
    return DT_CPU_ISA_BASE;
}

dt_status dt_cpu_isa_parse(const char *name, dt_cpu_isa_id *isa_p)
{
    const dt_cpu_isa_id best = dt_cpu_isa_best();
    for (int i = 0; i < DT_CPU_ISA_END; i++) {
        if (strcmp(name, isa_name[i]) == 0) {
            if (i > (int)best) {
                return DT_FAIL(DT_EUNSUPPORTED, "DTRAIN_CPU_ISA is %s, but this machine and build offer at most %s",
                               name, isa_name[best]);
            }
            *isa_p = (dt_cpu_isa_id)i;
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG, "DTRAIN_CPU_ISA is \"%s\"; known are base, avx2 and avx512", name);
}

/* The matrix library must not choose better instructions than we do, or a run could not be repeated elsewhere. */
static void isa_choose(void)
{
    const char *name = getenv("DTRAIN_CPU_ISA");
    isa_in_use = dt_cpu_isa_best();
    if (name != NULL && *name != '\0') {
        dt_status st = dt_cpu_isa_parse(name, &isa_in_use);
        if (st != DT_OK) {
            dt_error_take(&isa_error, st);
            return;
        }
    }
    static const dnnl_cpu_isa_t library_isa[DT_CPU_ISA_END] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                                               dnnl_cpu_isa_avx512_core};
    (void)dnnl_set_max_cpu_isa(library_isa[isa_in_use]); /* refused when it already ran; then it keeps its own */
}

dt_status dt_cpu_check(void)
{
    pthread_once(&isa_once, isa_choose);
    return isa_error.status == DT_OK ? DT_OK : dt_error_put(&isa_error);
}

dt_cpu_isa_id dt_cpu_isa_index(void)
{
    pthread_once(&isa_once, isa_choose);
    return isa_in_use;
}

const char *dt_cpu_isa(void)
{
    return isa_name[dt_cpu_isa_index()];
}

/* oneDNN is built with OpenMP (weak: or with something else, then there is nothing to set). Each worker runs whole
 * plans by itself; with a team of one, no barrier is ever entered and none can spin. */
void omp_set_num_threads(int n) __attribute__((weak));

void dt_cpu_thread_init(void)
{
    if (omp_set_num_threads != NULL) {
        omp_set_num_threads(1);
    }
}
