/* SPDX-License-Identifier: Apache-2.0
 *
 * Choice of the CPU build. See isa.h.
 */
#include <config.h>

#include "engine/backend/cpu/isa.h"
#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef DT_HAVE_CPU_AMX_BF16
#    include <cpuid.h>
#    include <sys/syscall.h>
#    include <unistd.h>
#endif

static const char *const isa_name[DT_CPU_ISA_END] = {[DT_CPU_ISA_BASE] = "base",
                                                     [DT_CPU_ISA_AVX2] = "avx2",
                                                     [DT_CPU_ISA_AVX512] = "avx512",
                                                     [DT_CPU_ISA_AVX512_BF16] = "avx512_bf16",
                                                     [DT_CPU_ISA_AMX_BF16] = "amx_bf16"};

static pthread_once_t isa_once = PTHREAD_ONCE_INIT;
static dt_cpu_isa_id isa_in_use;
static dt_error isa_error; /* status DT_OK when DTRAIN_CPU_ISA was fine */

/* The processor has tiles, and the system lets this process use them: it saves their 8 KB of state only for those that
 * ask (Linux, Documentation/arch/x86/xstate.rst). */
static bool can_use_amx(void)
{
#ifdef DT_HAVE_CPU_AMX_BF16
    enum { LEAF_FEATURES = 7, EDX_AMX_BF16 = 1 << 22, EDX_AMX_TILE = 1 << 24 };
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (d & EDX_AMX_BF16) != 0 &&
           (d & EDX_AMX_TILE) != 0 && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

dt_cpu_isa_id dt_cpu_isa_best(void)
{
#if defined(__x86_64__)
#    ifdef DT_HAVE_CPU_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
#        ifdef DT_HAVE_CPU_BF16
        if (__builtin_cpu_supports("avx512bf16")) {
            return can_use_amx() ? DT_CPU_ISA_AMX_BF16 : DT_CPU_ISA_AVX512_BF16;
        }
#        endif
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
    return DT_FAIL(DT_ECONFIG, "DTRAIN_CPU_ISA is \"%s\"; known are base, avx2, avx512, avx512_bf16 and amx_bf16",
                   name);
}

static void choose_isa(void)
{
    const char *name = getenv("DTRAIN_CPU_ISA");
    isa_in_use = dt_cpu_isa_best();
    if (name != NULL && *name != '\0') {
        dt_error_save(&isa_error, dt_cpu_isa_parse(name, &isa_in_use));
    }
}

dt_status dt_cpu_isa_check(void)
{
    pthread_once(&isa_once, choose_isa);
    return isa_error.status == DT_OK ? DT_OK : dt_error_restore(&isa_error);
}

dt_cpu_isa_id dt_cpu_isa_index(void)
{
    pthread_once(&isa_once, choose_isa);
    return isa_in_use;
}

const char *dt_cpu_isa(void)
{
    const dt_cpu_isa_id isa = dt_cpu_isa_index();
    return isa_name[isa < DT_CPU_ISA_AVX512 ? isa : DT_CPU_ISA_AVX512];
}

const char *dt_cpu_arithmetic_class(void)
{
#if defined(__x86_64__)
    if (dt_cpu_isa_index() >= DT_CPU_ISA_AVX2) {
        return "fma";
    }
    /* as the C library decides for exp, log, pow and others */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "base+libm_fma" : "base";
#elif defined(__aarch64__)
    return "arm64";
#else
    return "other";
#endif
}

const char *dt_cpu_bf16_isa(void)
{
    return dt_cpu_isa_index() >= DT_CPU_ISA_AVX512_BF16 ? isa_name[dt_cpu_isa_index()] : "none";
}

dt_status dt_cpu_bf16_check(void)
{
    if (dt_cpu_isa_index() < DT_CPU_ISA_AVX512_BF16) {
        const char *name = getenv("DTRAIN_CPU_ISA");
        return DT_FAIL(DT_EUNSUPPORTED, "bf16 on the CPU needs AVX512-BF16 or AMX; %s %s",
                       name != NULL && *name != '\0' ? "DTRAIN_CPU_ISA allows" : "this processor and build offer",
                       isa_name[isa_in_use]);
    }
    return DT_OK;
}
