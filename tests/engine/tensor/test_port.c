/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports that plugins hand over: each kind of mistake has a message of its own, with whose port it is.
 */
#include <config.h>

#include "engine/tensor/port.h"

#include "../../refused.h"

static dt_status check_port(const char *name, const char *dims, uint32_t dtype)
{
    const dt_port port[] = {{"first", "A 1", DT_F32, 0}, {name, dims, dtype, 0}};
    return dt_ports_check(DT_EPLUGIN, "mine", "input", port, 2, false);
}

static void test_ports(void **state)
{
    static const char *const bad[] = {"A  2", " A", "A ", "A 0", "A -1", "A 1.5", "A+2", "1 1 1 1 1 1 1 1 1", "A,2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        REFUSED(check_port("x", bad[i], DT_F32), "mine: dims of input x are", "at most 8 tokens");
    }
    REFUSED(check_port(NULL, "A 1", DT_F32), "mine: input 1", "NULL");
    REFUSED(check_port("x", NULL, DT_F32), "dims of input x", "NULL");
    REFUSED(check_port("x", "A 1", 99), "input x has the dtype 99");
    REFUSED(check_port("first", "A 1", DT_F32), "inputs 0 and 1 are both named first");
    REFUSED(dt_ports_check(DT_EPLUGIN, "mine", "input", NULL, 2, false), "2 inputs", "NULL");
    assert_int_equal(dt_ports_check(DT_EPLUGIN, "mine", "input", NULL, 0, false), DT_OK);
    assert_int_equal(check_port("x", "A+1", DT_I32), DT_OK);
    assert_int_equal(check_port("x", "15 Nodes 6", DT_F32), DT_OK);
    assert_int_equal(check_port("x", "", DT_F32), DT_OK);
    const dt_port none = {"x", "A 0", DT_F32, DT_PORT_OPTIONAL};
    assert_int_equal(dt_ports_check(DT_EPLUGIN, "mine", "input", &none, 1, false), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
