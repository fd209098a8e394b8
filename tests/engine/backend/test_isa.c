/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/backend/cpu/isa.c: what DTRAIN_CPU_ISA does. The choice is made once per process, so each case
 * asks in a child of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/backend/cpu/isa.h"
#include "base/err.h"

/* exit status of fn in a child process with DTRAIN_CPU_ISA set (NULL: unset) */
static int in_child(const char *isa, int (*fn)(void))
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (isa != NULL) {
            setenv("DTRAIN_CPU_ISA", isa, 1);
        } else {
            unsetenv("DTRAIN_CPU_ISA");
        }
        _exit(fn());
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int best_is_used(void)
{
    return dt_cpu_isa_check() == DT_OK && dt_cpu_isa_index() == dt_cpu_isa_best() ? 0 : 1;
}

static int base_is_used(void)
{
    return dt_cpu_isa_check() == DT_OK && strcmp(dt_cpu_isa(), "base") == 0 &&
                   dt_kernel_find(DT_OPX_LINEAR, DT_KERNELS_CPU) == dt_kernel_find_cpu(DT_OPX_LINEAR, DT_CPU_ISA_BASE)
               ? 0
               : 1;
}

static int class_is_base(void)
{
    return strncmp(dt_cpu_arithmetic_class(), "fma", 3) != 0 ? 0 : 1;
}

static int class_is_fma(void)
{
    return strcmp(dt_cpu_arithmetic_class(), "fma") == 0 ? 0 : 1;
}

static int bf16_is_refused(void)
{
    return dt_cpu_bf16_check() == DT_EUNSUPPORTED && strcmp(dt_cpu_bf16_isa(), "none") == 0 &&
                   strstr(dt_error_text(), "DTRAIN_CPU_ISA allows base") != NULL &&
                   dt_kernel_find(DT_OPX_LINEAR, DT_KERNELS_CPU_BF16) == NULL
               ? 0
               : 1;
}

static int vectors_are_used(void)
{
    return dt_cpu_bf16_check() == DT_OK && strcmp(dt_cpu_bf16_isa(), "avx512_bf16") == 0 &&
                   strcmp(dt_cpu_isa(), "avx512") == 0 &&
                   dt_kernel_find(DT_OPX_LINEAR, DT_KERNELS_CPU_BF16) ==
                       dt_kernel_find_cpu(DT_OPX_LINEAR, DT_CPU_ISA_AVX512_BF16) &&
                   dt_kernel_find(DT_OPX_LINEAR, DT_KERNELS_CPU) == dt_kernel_find_cpu(DT_OPX_LINEAR, DT_CPU_ISA_AVX512)
               ? 0
               : 1;
}

static int unknown_is_refused(void)
{
    return dt_cpu_isa_check() == DT_ECONFIG && strstr(dt_error_text(), "\"sse9\"") != NULL &&
                   strstr(dt_error_text(), "base, avx2, avx512, avx512_bf16 and amx_bf16") != NULL
               ? 0
               : 1;
}

static void test_default_is_the_best(void **state)
{
    assert_int_equal(in_child(NULL, best_is_used), 0);
    assert_int_equal(in_child("", best_is_used), 0);
}

static void test_it_can_be_lowered(void **state)
{
    assert_int_equal(in_child("base", base_is_used), 0);
    assert_int_equal(in_child("base", bf16_is_refused), 0);
    if (dt_cpu_isa_best() >= DT_CPU_ISA_AVX512_BF16) {
        assert_int_equal(in_child("avx512_bf16", vectors_are_used), 0);
    }
}

/* Vectors of any width are one class, base is another one. */
static void test_class(void **state)
{
    static const char *const names[] = {"avx2", "avx512", "avx512_bf16", "amx_bf16"};
    assert_int_equal(in_child("base", class_is_base), 0);
    for (int i = 0; i < (int)dt_cpu_isa_best(); i++) {
        assert_int_equal(in_child(names[i], class_is_fma), 0);
    }
}

static void test_unknown_names_are_refused(void **state)
{
    assert_int_equal(in_child("sse9", unknown_is_refused), 0);
}

static void test_names(void **state)
{
    static const char *const names[] = {"base", "avx2", "avx512", "avx512_bf16", "amx_bf16"};
    for (int i = 0; i < DT_CPU_ISA_END; i++) {
        dt_cpu_isa_id isa = DT_CPU_ISA_END;
        const dt_status st = dt_cpu_isa_parse(names[i], &isa);
        if (i <= (int)dt_cpu_isa_best()) {
            assert_int_equal(st, DT_OK);
            assert_int_equal(isa, i);
        } else {
            assert_int_equal(st, DT_EUNSUPPORTED);
            assert_non_null(strstr(dt_error_text(), "offer at most"));
            assert_int_equal(isa, DT_CPU_ISA_END);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_the_best),
        cmocka_unit_test(test_it_can_be_lowered),
        cmocka_unit_test(test_class),
        cmocka_unit_test(test_unknown_names_are_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
