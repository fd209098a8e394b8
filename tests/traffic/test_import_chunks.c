/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import_chunks.c: recordings of chunks, bad ones with their place and reason,
 * statistics that contradict them; what is reported of a store; and imports that are interrupted, of tables too.
 */
#include "import_rig.h"

#define VEHICLE(id, x)     "{\"id\":" id ",\"x\":" x ",\"y\":0,\"heading\":0,\"speed\":8,\"length\":4.5}"
#define FRAME(t, vehicles) "{\"t\":" t ",\"vehicles\":[" vehicles "]}"
#define SAMPLE(id, frames) "{\"id\":\"" id "\",\"scene\":\"g\",\"site\":\"grid\",\"frames\":[" frames "]}"
#define METADATA(chunks)                                                                                               \
    "{\"format\":\"dtrain-chunks\",\"version\":1,\"frame_rate_hz\":5.0,"                                               \
    "\"units\":{\"length\":\"m\",\"speed\":\"m/s\",\"angle\":\"rad\"},\"sites\":[\"grid\"],\"chunks\":[" chunks "]}"
#define ONE_CHUNK  METADATA("{\"file\":\"chunks/chunk_000.json\",\"samples\":1}")
#define TWO_FRAMES FRAME("0.0", VEHICLE("12", "1")) "," FRAME("0.2", VEHICLE("12", "2.6"))
#define GOOD       "{\"samples\":[" SAMPLE("s1", TWO_FRAMES) "]}"

static void put_folder(const char *metadata, const char *chunk, const char *statistics)
{
    assert_ok(dt_fs_remove_tree(at("r")));
    assert_ok(dt_fs_mkdirs(at("r/chunks")));
    put("r/metadata.json", metadata);
    put("r/chunks/chunk_000.json", chunk);
    if (statistics != NULL) {
        put("r/statistics.json", statistics);
    }
}

static void refuse_folder(const char *metadata, const char *chunk, const char *statistics, const char *words)
{
    close_all();
    uint64_t live = dt_alloc_live_bytes();
    put_folder(metadata, chunk, statistics);
    assert_fails(import_with("r", NULL), DT_EDATA, words);
    close_all();
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
}

static void test_chunks(void **state)
{
    put_folder(ONE_CHUNK, GOOD, NULL);
    const dt_store_view *v = import("r", NULL);
    assert_int_equal(v->n_rows, 2);
    assert_int_equal(v->n_tracks, 1);
    assert_string_equal(v->scene[0], "g#s1");
    assert_string_equal(v->site[0], "grid");
    assert_true(v->node[7] == 200 && isnan(v->motion[3]) && v->pose[3] == 2.6);
    assert_non_null(strstr(dt_str_text(&report), "no statistics.json"));
    /* ids: integers of 64 bits, or any text; a byte order mark */
    put_folder(
        "\xef\xbb\xbf" ONE_CHUNK,
        "\xef\xbb\xbf{\"samples\":[" SAMPLE(
            "s1", FRAME("0.0", VEHICLE("1500000000000000001", "1") "," VEHICLE("\"veh-7\"", "20") "," VEHICLE(
                                   "1500000000000000002",
                                   "30") "," VEHICLE("12.0", "40")) "," FRAME("0.2",
                                                                              VEHICLE("\"veh-7\"", "21") "," VEHICLE(
                                                                                  "\"12\"", "41"))) "]}",
        NULL);
    v = import("r", NULL);
    assert_int_equal(v->n_rows, 6);
    assert_int_equal(v->n_tracks, 4);
    assert_true(v->row_track[4] == v->row_track[1] && v->row_track[5] == v->row_track[3]);
    assert_true(dt_store_track_ids(store)[0] == 1500000000000000001);
    /* any order of keys, null where values may be missing, keys of later versions, no chunks/ and no list */
    assert_ok(dt_fs_remove_tree(at("r")));
    assert_ok(dt_fs_mkdirs(at("r")));
    put("r/metadata.json", "{\"version\":1,\"frame_rate_hz\":2,\"format\":\"dtrain-chunks\",\"new\":[{}]}");
    put("r/chunk_001.json", "{\"samples\":[{\"frames\":[{\"vehicles\":[{\"accel\":null,\"width\":null,\"new\":{},"
                            "\"stop_distance\":null,\"controlled\":true,\"speed\":1,\"heading\":0,\"y\":1,\"x\":2,"
                            "\"length\":3,\"id\":1}],\"t\":7}],\"id\":\"only\"}]}");
    put("r/chunk_000.json", "{\"samples\":[]}");
    v = import("r", NULL);
    assert_int_equal(v->n_rows, 1);
    assert_string_equal(v->scene[0], "only");
    assert_string_equal(v->site[0], "unknown");
    assert_true(v->node[8] == 1 && v->frame_time[0] == 7);
    assert_true(v->frame_rate_hz == 2);
}

static void test_bad_chunks(void **state)
{
    static const struct {
        const char *chunk, *words;
    } bad[] = {
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("12", "1"))), "chunk_000.json:1:"}, /* cut */
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", "{\"id\":12,\"x\":NaN")), "chunk_000.json:1:"},
        {"{\"samples\":[\n" SAMPLE("s1", FRAME("0.0", VEHICLE("12", "\"1\""))) "]}",
         "chunk_000.json:2:"}, /* the line is reported */
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("12", "\"1\""))) "]}",
         "x must be a number, but is a string"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("12", "null"))) "]}", "x must be a number, but is null"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("1.5", "1"))) "]}",
         "id must be an integer or a string, but is 1.5"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("\"\"", "1"))) "]}", "id is an empty string"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("[1]", "1"))) "]}", "or a string, but is an array"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("1", "2e7"))) "]}", "x 2e+07 is outside"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.2", VEHICLE("1", "2")) "," FRAME("0.0", VEHICLE("1", "2"))) "]}",
         "time goes backwards: t 0 comes after t 0.2"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.2", VEHICLE("1", "2")) "," FRAME("0.2", VEHICLE("1", "2"))) "]}",
         "time goes backwards"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("1", "2")) "," FRAME("0.3", VEHICLE("1", "2"))) "]}",
         "t 0.3 is 1.500 frames of 5 Hz"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("1", "2")) "," FRAME("9.0", VEHICLE("1", "2"))) "]}",
         "t 9 comes 9 s after the frame before, the limit is 5 s"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", VEHICLE("1", "2") "," VEHICLE("1", "9"))) "]}",
         "frame t 0: vehicle 1 is in the frame twice"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", "{\"id\":1,\"x\":1,\"y\":1,\"heading\":0,\"speed\":1}")) "]}",
         "the vehicle has no length"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0.0", "{\"x\":1,\"y\":1,\"heading\":0,\"speed\":1,\"length\":4}")) "]}",
         "the vehicle has no id"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0", "{\"id\":1,\"x\":1,\"x\":1}")) "]}", "x is given twice"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0", "{\"id\":1,\"id\":2}")) "]}", "id is given twice"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0", "{\"controlled\":true,\"controlled\":false}")) "]}",
         "controlled is given twice"},
        {"{\"samples\":[" SAMPLE("s1", "{\"t\":0,\"t\":1}") "]}", "t is given twice"},
        {"{\"samples\":[" SAMPLE("s1", "{\"vehicles\":[],\"vehicles\":[]}") "]}", "vehicles is given twice"},
        {"{\"samples\":[{\"id\":\"a\",\"id\":\"b\"}]}", "id is given twice"},
        {"{\"samples\":[{\"site\":\"grid\",\"site\":\"grid\"}]}", "site is given twice"},
        {"{\"samples\":[],\"samples\":[]}", "samples is given twice"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0", "{\"id\":1,\"length\":-2}")) "]}", "length -2 is outside [0, 100]"},
        {"{\"samples\":[" SAMPLE("s1", "{\"t\":0}") "]}", "the frame has no vehicles"},
        {"{\"samples\":[" SAMPLE("s1", "{\"vehicles\":[]}") "]}", "the frame has no t"},
        {"{\"samples\":[" SAMPLE("s1", "") "]}", "sample s1 has no frames"},
        {"{\"samples\":[" SAMPLE("s1", FRAME("0", "")) "]}", "scene g#s1 has no vehicles"},
        {"{\"samples\":[" SAMPLE("a#b", FRAME("0", VEHICLE("1", "1"))) "]}", "has a '#'"},
        {"{\"samples\":[{\"site\":\"moon\"}]}", "site \"moon\" is not among the sites"},
        {"{\"samples\":[]}", "chunk_000.json has 0 samples, metadata.json announces 1"},
        {"{\"samples\":[3]}", "a sample must be an object, but is a number"},
        {"[]", "a chunk must be an object, but is an array"},
        {GOOD "x", "chunk_000.json:1:"},
        {"", "is empty"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_folder(ONE_CHUNK, bad[i].chunk, NULL, bad[i].words);
    }
}

static void test_bad_metadata(void **state)
{
    static const struct {
        const char *metadata, *words;
    } bad[] = {
        {"{\"format\":\"dtrain-chunks\",\"version\":2}", "version 2, this program reads version 1"},
        {"{\"format\":\"other\",\"version\":1,\"frame_rate_hz\":5}", "format is \"other\""},
        {"{\"format\":\"dtrain-chunks\",\"version\":1}", "and frame_rate_hz"},
        {"{\"format\":\"dtrain-chunks\",\"version\":1,\"frame_rate_hz\":0}", "frame_rate_hz 0 is outside"},
        {"{\"format\":\"dtrain-chunks\",\"version\":1,\"frame_rate_hz\":\"5\"}", "must be a number"},
        {"{\"units\":{\"length\":\"ft\"}}", "the unit of length is \"ft\", this layout supports only \"m\""},
        {METADATA(""), "contains no data: there is no chunk"},
        {METADATA("{\"file\":\"../x.json\"}"), "not a name inside the folder"},
        {METADATA("{\"file\":\"chunks/chunk_009.json\"}"), "chunk_009.json is missing"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_folder(bad[i].metadata, GOOD, NULL, bad[i].words);
    }
    put_folder(ONE_CHUNK, GOOD, NULL);
    assert_int_equal(unlink(at("r/metadata.json")), 0);
    assert_fails(import_with("r", NULL), DT_EDATA, "has no metadata.json");
    put_folder(ONE_CHUNK, GOOD, NULL);
    assert_fails(import_with("r", &(dt_import_options){.frame_rate_hz = 10}), DT_EINVAL, "differs from 5 Hz");
    close_all();
}

/* Looked at in memory, by the same rules. */
static void test_checks(void **state)
{
    static const char table[] = COMMONROAD "a,0,5,car,4.5,2,1,2,0,10,\n",
                      bad[] = COMMONROAD "a,0,5,car,4.5,2,1,2,0,inf,\n";
    static const dt_import_options none = {0};
    assert_ok(dt_table_check(table, sizeof(table) - 1, "t", &none));
    assert_fails(dt_table_check(bad, sizeof(bad) - 1, "t", &none), DT_EDATA, "t:2: speed_mps is \"inf\"");
    assert_ok(dt_chunks_check(ONE_CHUNK, strlen(ONE_CHUNK), GOOD, strlen(GOOD)));
    assert_ok(dt_chunks_check(ONE_CHUNK, strlen(ONE_CHUNK), NULL, 0));
    assert_fails(dt_chunks_check("[]", 2, NULL, 0), DT_EDATA, "metadata.json:1:1");
    assert_fails(dt_chunks_check(ONE_CHUNK, strlen(ONE_CHUNK), GOOD, strlen(GOOD) / 2), DT_EDATA, "chunk:1:");

    char *deep = dt_alloc(100001); /* nesting has an end */
    memset(deep, '[', 100000);
    assert_fails(dt_chunks_check(ONE_CHUNK, strlen(ONE_CHUNK), deep, 100000), DT_EDATA, "chunk:1:1");
    dt_free(deep);
    const size_t head = strlen("{\"x\":");
    char *skipped = dt_alloc(100001);
    memset(skipped, '[', 100000);
    memcpy(skipped, "{\"x\":", head);
    assert_fails(dt_chunks_check(ONE_CHUNK, strlen(ONE_CHUNK), skipped, 100000), DT_EDATA, "chunk:1:");
    dt_free(skipped);
}

/* Speeds and headings are compared with positions as in tables; what is unknown is counted. */
static void test_motion(void **state)
{
    static const struct {
        const char *vehicle;
        double speed, heading;
    } all[] = {{"\"heading\":0,\"speed\":8", 0, 0},
               {"\"heading\":0,\"speed\":16", 100, 0},
               {"\"heading\":1.5708,\"speed\":8", 0, 100},
               {"\"heading\":0,\"speed\":-8", 0, 100}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        dt_str chunk = {0};
        dt_str_add(&chunk, "{\"samples\":[{\"id\":\"s1\",\"site\":\"grid\",\"frames\":[");
        for (int f = 0; f < 40; f++) {
            dt_str_addf(&chunk, "%s{\"t\":%g,\"vehicles\":[{\"id\":3,\"x\":%g,\"y\":0,\"length\":4,%s}]}",
                        f > 0 ? "," : "", 0.2 * f, 1.6 * f, all[k].vehicle);
        }
        dt_str_add(&chunk, "]}]}");
        put_folder(ONE_CHUNK, dt_str_text(&chunk), NULL);
        dt_str_fini(&chunk);
        assert_int_equal(import("r", NULL)->n_rows, 40);
        assert_true(share_off(&report, "speed") == all[k].speed);
        assert_true(share_off(&report, "heading") == all[k].heading);
        assert_non_null(strstr(dt_str_text(&report), "40 rows without a width"));
        assert_non_null(strstr(dt_str_text(&report), "40 rows without an acceleration"));
        assert_null(strstr(dt_str_text(&report), "without a length"));
    }
}

/* A vehicle's motion ends with its scene: elsewhere in the next one, it has not jumped there. */
static void test_motion_of_scenes(void **state)
{
    dt_str chunk = {0};
    dt_str_add(&chunk, "{\"samples\":[" SAMPLE("s1", FRAME("0", VEHICLE("1", "0"))) ",");
    dt_str_add(&chunk, "{\"id\":\"s2\",\"frames\":[" FRAME("0", VEHICLE("2", "0")));
    for (int f = 1; f < 40; f++) {
        dt_str_addf(&chunk, "," FRAME("%g", VEHICLE("1", "%g")), 0.2 * f, 1000 + 1.6 * f);
    }
    dt_str_add(&chunk, "]}]}");
    put_folder(METADATA("{\"file\":\"chunks/chunk_000.json\"}"), dt_str_text(&chunk), NULL);
    dt_str_fini(&chunk);
    assert_int_equal(import("r", NULL)->n_rows, 41);
    assert_true(share_off(&report, "speed") == 0);
}

static void test_statistics(void **state)
{
    put_folder(ONE_CHUNK, GOOD,
               "{\"x\":{\"min\":1,\"max\":2.6,\"mean\":1.8,\"std\":0.8,\"count\":2},"
               "\"speed\":{\"min\":8,\"max\":8,\"mean\":8,\"std\":0,\"count\":2},"
               "\"accel\":{\"min\":null,\"max\":null,\"mean\":null,\"std\":null,\"count\":0},"
               "\"cos_heading\":{\"mean\":1}}");
    import("r", NULL);
    put_folder(ONE_CHUNK, GOOD, "{\"x\":{\"std\":1.1314}}"); /* of the sample */
    import("r", NULL);
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"mean\":1.9}}", "mean of x is 1.9, but the chunks give 1.8");
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"min\":0}}", "min of x is 0, but the chunks give 1");
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"max\":3}}", "max of x is 3");
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"std\":0.9}}", "std of x is 0.9");
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"count\":3}}", "count of x is 3, but the chunks hold 2 values");
    put_folder(ONE_CHUNK, GOOD, "{\"spede\":{\"count\":2}}");
    import("r", NULL);
    assert_non_null(
        strstr(dt_str_text(&report), "1 features that are not known, as \"spede\", did you mean \"speed\"?"));
    refuse_folder(ONE_CHUNK, GOOD, "{\"x\":{\"mean\":\"1\"}}", "mean must be a number");
}

static void test_inspect(void **state)
{
    put_folder(ONE_CHUNK, GOOD, NULL);
    import("r", NULL);
    dt_str out = {0};
    assert_ok(dt_data_inspect(at("s"), true, &out));
    assert_non_null(strstr(dt_str_text(&out), "\"rows\":2"));
    assert_non_null(strstr(dt_str_text(&out), "\"vehicles\":1"));
    assert_non_null(strstr(dt_str_text(&out), "\"prevalence\":null")); /* the recording is too short to know of any */
    assert_non_null(
        strstr(dt_str_text(&out), "\"longitudinal_gap\":{\"min\":null,\"max\":null,\"mean\":null,\"std\":null}"));
    assert_non_null(strstr(dt_str_text(&out), "\"speed\":{\"min\":8,\"max\":8,\"mean\":8,\"std\":0}"));
    dt_str_clear(&out);
    assert_ok(dt_data_inspect(at("s"), false, &out));
    assert_non_null(strstr(dt_str_text(&out), "scenes 1, frames 2, vehicles 1, rows 2, edges 2, 0.2 s recorded"));
    dt_str_fini(&out);
    assert_fails(dt_data_inspect(at("r"), false, &out), DT_EDATA, "not a store");
    close_all();
}

static void test_interruptions(void **state)
{
    put("t.csv", COMMONROAD "A_B-1,0,1,car,4,2,0,0,0,5,0\nA_B-1,1,1,car,4,2,0,0,0,5,0\n");
    put_folder(ONE_CHUNK, GOOD, "{\"x\":{\"count\":2}}");
    for (int folder = 0; folder < 2; folder++) {
        for (int n = 1;; n++) {
            close_all();
            assert_ok(dt_fs_remove_tree(at("s")));
            uint64_t live = dt_alloc_live_bytes();
            char spec[32];
            snprintf(spec, sizeof(spec), "alloc:%d", n);
            dt_fault_reset(spec);
            dt_status st = dt_data_import(&(const char *){at(folder == 0 ? "t.csv" : "r")}, 1, at("s"), NULL, &report);
            dt_fault_reset(NULL);
            dt_str_fini(&report);
            assert_int_equal(dt_alloc_live_bytes(), live);
            if (st == DT_OK) {
                assert_true(n > 20);
                break;
            }
            assert_int_equal(st, DT_ENOMEM);
            assert_false(dt_fs_is_dir(at("s.partial")));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chunks, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_chunks, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_metadata, begin, finish),
        cmocka_unit_test_setup_teardown(test_checks, begin, finish),
        cmocka_unit_test_setup_teardown(test_motion, begin, finish),
        cmocka_unit_test_setup_teardown(test_motion_of_scenes, begin, finish),
        cmocka_unit_test_setup_teardown(test_statistics, begin, finish),
        cmocka_unit_test_setup_teardown(test_inspect, begin, finish),
        cmocka_unit_test_setup_teardown(test_interruptions, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
