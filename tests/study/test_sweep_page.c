/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of a sweep: values that are unknown stay so, foreign texts become no markup and lead to no other place, and
 * large and damaged tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "study/sweep_page.h"
#include "study/sweep_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD                                                                                                           \
    "{\"metric\":\"return/mean\",\"goal\":\"max\",\"search\":\"random\",\"seeds\":[1,2],\"space\":["                   \
    "{\"key\":\"training.lr\",\"scale\":\"log\",\"min\":1e-4,\"max\":1},"                                              \
    "{\"key\":\"mlp.act\",\"scale\":\"values\",\"values\":[\"tanh\",\"relu\"]}],\"trials\":["

static char folder[64], page[128];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "test-sweep-page-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(page, sizeof(page), "%s/report.html", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void add_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void add_folder(const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0777), 0);
}

static char *write_page(const char *table)
{
    char *text = NULL;
    size_t bytes = 0;
    add_file("summary.json", table);
    assert_int_equal(dt_sweep_write_page(folder, page), DT_OK);
    assert_int_equal(dt_fs_read_all(page, 64 << 20, &text, &bytes), DT_OK);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        n++;
    }
    return n;
}

static const char table[] =
    HEAD "{\"trial\":2,\"state\":\"done\",\"steps\":90,\"value\":7.5,\"seed_values\":[5,10],"
         "\"parameters\":{\"training.lr\":\"0.01\",\"mlp.act\":\"relu\"}},"
         "{\"trial\":1,\"state\":\"done\",\"steps\":90,\"value\":-3,\"seed_values\":[-3,-3],"
         "\"parameters\":{\"training.lr\":\"1\",\"mlp.act\":\"tanh\"}},"
         "{\"trial\":3,\"state\":\"failed (7)\",\"steps\":0,\"value\":null,\"seed_values\":[null,4],"
         "\"parameters\":{\"training.lr\":\"0.0001\",\"mlp.act\":\"relu\"}},"
         "{\"trial\":4,\"state\":\"waiting\",\"steps\":0,\"value\":null,\"seed_values\":[null,null],"
         "\"parameters\":{\"training.lr\":\"0.1\",\"mlp.act\":\"tanh\"}}]}";

static void test_results(void **state)
{
    dt_sweep_results r;
    add_file("summary.json", table);
    assert_int_equal(dt_sweep_results_read(folder, &r), DT_OK);
    assert_int_equal(r.n_trials, 4);
    assert_int_equal(r.n_ranked, 2);
    assert_int_equal(r.n_seeds, 2);
    assert_int_equal(r.space.n, 2);
    assert_true(r.space.parameter[0].is_log && r.space.parameter[1].n_values == 2);
    assert_true(r.trial[0].trial == 2 && r.trial[0].value == 7.5 && isnan(r.trial[2].value));
    assert_string_equal(r.trial[3].text[0], "0.1");
    const dt_iqm known = dt_sweep_results_interval(&r, 0), failed = dt_sweep_results_interval(&r, 2);
    assert_true(known.value == 7.5 && known.low == 5 && known.high == 10);
    assert_true(isnan(failed.value) && isnan(failed.low));
    dt_sweep_results_fini(&r);
}

/* A line of each trial; without a value it is dashed, and ends below the metric's axis (y = 290). */
static void test_unknown(void **state)
{
    add_folder("trial-0002");
    add_folder("trial-0002/seed-1");
    add_file("trial-0002/seed-1/report.html", "");
    char *text = write_page(table);
    assert_int_equal(count(text, "<polyline points="), 4);
    assert_int_equal(count(text, "<g class=\"none\">"), 2);
    assert_int_equal(count(text, ",316.0\"/>"), 2);
    assert_non_null(strstr(text, "<polyline points=\"60.0,171.0 ")); /* 0.01, in the middle of 1e-4 to 1 */
    assert_non_null(strstr(text, "<b>7.5</b> <span class=\"soft\">[5, 10]</span>"));
    assert_int_equal(count(text, "<td><b>\xe2\x80\x93</b></td>"), 2);
    assert_int_equal(count(text, "<a href="), 1);
    assert_non_null(strstr(text, "<a href=\"trial-0002/seed-1/report.html\">"));
    assert_non_null(strstr(text, "1 failed, 1 waiting"));
    dt_free(text);
    /* in another place no link would work */
    char *other = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_sweep_write_page(folder, "test-sweep-page.html"), DT_OK);
    assert_int_equal(dt_fs_read_all("test-sweep-page.html", 1 << 20, &other, &bytes), DT_OK);
    assert_int_equal(count(other, "<a href="), 0);
    dt_free(other);
    unlink("test-sweep-page.html");
}

static void test_foreign(void **state)
{
#define EVIL "<script>x</script>\\\"'&\\u202e"
    char *text =
        write_page("{\"metric\":\"" EVIL "\",\"goal\":\"min\",\"search\":\"" EVIL "\",\"seeds\":[1e300,-1,\"" EVIL
                   "\"],\"space\":[{\"key\":\"" EVIL "/a.b\",\"scale\":\"log\",\"min\":-1e300,\"max\":null}],"
                   "\"trials\":[{\"trial\":1e99,\"state\":\"" EVIL "\",\"steps\":\"" EVIL "\",\"value\":1e300,"
                   "\"seed_values\":[-1e300,1e300],\"folder\":\"javascript:x\",\"parameters\":{\"" EVIL "/a.b\":\"" EVIL
                   "\"}},{\"trial\":1,\"value\":-1e300,\"state\":\"done\",\"folder\":"
                   "\"../../..\",\"parameters\":{\"other\":\"1\"}}]}");
    assert_int_equal(count(text, "<script>"), 1); /* the page's own */
    assert_null(strstr(text, "javascript:"));
    assert_null(strstr(text, "\"../"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    dt_free(text);
    /* a table of an earlier version has no space */
    text = write_page("{\"metric\":\"m\",\"goal\":\"max\",\"trials\":[{\"trial\":1,\"state\":\"done\",\"steps\":1,"
                      "\"value\":0,\"parameters\":{\"a\":\"1\",\"b\":\"x\"}}]}");
    assert_int_equal(count(text, "<polyline points="), 1);
    dt_free(text);
}

static void test_large(void **state)
{
    enum { TRIALS = 10000, PARAMETERS = 21 };
    dt_str s = {0};
    dt_str_add(&s, "{\"metric\":\"m\",\"goal\":\"max\",\"trials\":[");
    for (int i = 0; i < TRIALS; i++) {
        dt_str_addf(&s, "%s{\"trial\":%d,\"state\":\"done\",\"steps\":5,\"value\":%d,\"parameters\":{",
                    i > 0 ? "," : "", i + 1, TRIALS - i);
        for (int k = 0; k < PARAMETERS; k++) {
            dt_str_addf(&s, "%s\"k%d\":\"v%d\"", k > 0 ? "," : "", k, i);
        }
        dt_str_add(&s, "}}");
    }
    dt_str_add(&s, "]}");
    assert_int_equal(dt_str_status(&s), DT_OK);
    char *text = write_page(dt_str_text(&s));
    assert_true(strlen(text) < 4 << 20);
    assert_true(count(text, "<polyline points=") <= 2100);
    assert_int_equal(count(text, "<tr>"), 1000 + 2);
    dt_free(text);
    dt_str_fini(&s);
}

static void test_damaged(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"trials\":[]}",
        "{\"trials\":[{\"trial\":1}]}",
        HEAD "]}",
        HEAD "{\"trial\":1",
        "{\"space\":[1,2,{\"key\":\"a\"}],\"trials\":[{\"trial\":1,\"parameters\":{\"a\":\"1\"}}]}",
        "{\"trials\":{\"0\":{\"trial\":1,\"parameters\":{\"a\":\"1\"}},\"4294967295\":{\"trial\":1}}}",
        "{\"trials\":{\"0\":{\"trial\":1,\"parameters\":{\"a\":\"1\"}},\"99999999999999999999\":{\"trial\":1}}}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        add_file("summary.json", bad[i]);
        assert_int_equal(dt_sweep_write_page(folder, page), DT_EDATA);
        assert_false(dt_fs_is_file(page));
    }
    char path[160];
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    unlink(path);
    assert_int_equal(dt_sweep_write_page(folder, page), DT_ECONFIG);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(dt_sweep_write_page(folder, page), DT_EDATA);
    assert_null(strstr(dt_error_text(), "root"));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {CASE(test_results), CASE(test_unknown), CASE(test_foreign), CASE(test_large),
                                       CASE(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
