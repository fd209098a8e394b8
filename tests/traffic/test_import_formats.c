/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what imports accept: separators, encodings, ids, times, classes of road users, repeated rows; of whether
 * quantities of a recording are compared with each other; and that the advice of a message, when it is followed, works.
 */
#include "import_rig.h"

#include "base/log.h"
#include "traffic/text/values.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void test_road_users(void **state)
{
    static const struct {
        const char *name;
        dt_road_user user;
    } known[] = {{"car", DT_USER_VEHICLE},
                 {"truck_bus", DT_USER_VEHICLE},
                 {"Truck", DT_USER_VEHICLE},
                 {"motorcycle", DT_USER_VEHICLE},
                 {"motorcyclist", DT_USER_VEHICLE},
                 {"vehicle.bus.bendy", DT_USER_VEHICLE},
                 {"bicycle", DT_USER_BICYCLE},
                 {"vehicle.bicycle", DT_USER_BICYCLE},
                 {"riderless_bicycle", DT_USER_BICYCLE},
                 {"TYPE_CYCLIST", DT_USER_BICYCLE},
                 {"DEFAULT_BIKETYPE", DT_USER_BICYCLE},
                 {"DEFAULT_VEHTYPE", DT_USER_VEHICLE},
                 {"pedestrian/bicycle", DT_USER_PEDESTRIAN},
                 {"human.pedestrian.adult", DT_USER_PEDESTRIAN},
                 {"DEFAULT_PEDTYPE", DT_USER_PEDESTRIAN},
                 {"parkedVehicle", DT_USER_VEHICLE},
                 {"static", DT_USER_OBJECT},
                 {"constructionZone", DT_USER_OBJECT},
                 {"unknown", DT_USER_UNKNOWN},
                 {"", DT_USER_UNKNOWN},
                 {"carpet", DT_USER_UNKNOWN}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (dt_road_user_of(known[i].name) != known[i].user) {
            fail_msg("\"%s\" is of class %d, not %d", known[i].name, (int)dt_road_user_of(known[i].name),
                     (int)known[i].user);
        }
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        double want; /* NAN: no time */
    } times[] = {{"12.5", 12.5},         {"00:00:10", 10},    {"1:02:03.25", 3723.25},
                 {"2:00:00:01", 172801}, {"25:00:00", 90000}, {"1:60:00", NAN},
                 {"1::2", NAN},          {"a:b", NAN},        {"1:2:3:4:5", NAN},
                 {"-0:00:01", -1},       {":10", NAN},        {"1.5:00:00", NAN}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        double got = NAN;
        const bool is_time = dt_value_parse_time(times[i].text, &got);
        if (is_time != !isnan(times[i].want) || (is_time && got != times[i].want)) {
            fail_msg("\"%s\" gave %d, %g", times[i].text, is_time, got);
        }
    }
}

/* Different texts never get one number. */
static void test_ids(void **state)
{
    static const char *const texts[] = {"0",
                                        "1500000000000000001",
                                        "1500000000000000002",
                                        "-9223372036854775808",
                                        "a3",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "-9223372036854775807",
                                        "b",
                                        "12e4",
                                        "120000",
                                        "x"};
    enum { N = sizeof(texts) / sizeof(texts[0]) };
    for (int first = 0; first < N; first++) {
        dt_ids ids = {.kind = DT_IDS_UNDECIDED};
        int64_t id[N], again = 0;
        for (int i = 0; i < N; i++) {
            assert_ok(dt_ids_get(&ids, texts[(first + i) % N], &id[i]));
            for (int k = 0; k < i; k++) {
                assert_true(id[k] != id[i]);
            }
        }
        assert_ok(dt_ids_get(&ids, texts[first], &again));
        assert_true(again == id[0]);
        dt_ids_fini(&ids);
    }
    int64_t id = 0;
    assert_true(dt_value_parse_id("007", &id) && id == 7);
    assert_true(dt_value_parse_id("12.0", &id) && id == 12);
    assert_false(dt_value_parse_id("12.5", &id) || dt_value_parse_id("0x12", &id) || dt_value_parse_id("", &id));
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const dt_import_options at_10_hz = {.frame_rate_hz = 10};

static void test_separators(void **state)
{
    static const char *const same[] = {
        "id,frame,x,y,speed\n1,0,1.5,0,5\n1,1,2.0,0,5\n",
        "id;frame;x;y;speed\n1;0;1.5;0;5\n1;1;2.0;0;5\n",
        "id;frame;x;y;speed\n1;0;1,5;0;5\n1;1;2,0;0;5\n",
        "id\tframe\tx\ty\tspeed\n1\t0\t1.5\t0\t5\n1\t1\t2.0\t0\t5\n",
        "id|frame|x|y|speed\n1|0|1.5|0|5\n1|1|2.0|0|5\n",
        "sep=;\nid;frame;x;y;speed\n1;0;1,5;0;5\n1;1;2;0;5\n",
        "# a comment, with commas\n#another one\nid,frame,x,y,speed\n1,0,1.5,0,5\n1,1,2.0,0,5\n",
        "# id, frame, x, y, speed\n1,0,1.5,0,5\n1,1,2.0,0,5\n",
        "\xef\xbb\xbfid;frame;x;y;speed\r\n1;0;1,5;0;5\r\n1;1;2;0;5\r\n",
        "\xef\xbb\xbf# a comment\nid,frame,x,y,speed\n1,0,1.5,0,5\n1,1,2.0,0,5\n",
        "id,frame,x,y,vx,vy\n1,0,1.5,0,5,0\n1,1,2.0,0,5,0\n",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const dt_store_view *v = import_text(same[i], &at_10_hz);
        assert_int_equal(v->n_rows, 2);
        assert_true(v->pose[0] == 1.5 && v->pose[3] == 2 && v->motion[0] == 5);
    }
    refuse_text("id;frame;x;y;speed\n1;0;1,5;0;5\n1;1;2.0;0;5\n", &at_10_hz, DT_EDATA, "t.csv:3: x is \"2.0\"");
    refuse_text("id;frame;x;y;speed\n1;0;1.5;0;5\n1;1;2,0;0;5\n", &at_10_hz, DT_EDATA, "t.csv:3: x is \"2,0\"");
    put_bytes("t.csv", "\xff\xfei\0d\0,\0", 8);
    assert_fails(import_with("t.csv", &at_10_hz), DT_EDATA, "UTF-16");
}

/* Advice of refusals: the command of the message, and then the import. */
static void test_advice_of_tables(void **state)
{
    static const struct {
        const char *text, *command;
        int64_t rows;
    } tables[] = {{"id frame x y speed\n1 0 1.5 0 5\n1 1  2.0 0 5\n", "s/^ *//; s/ *$//; s/  */,/g", 2},
                  {"1,0,1.5,0,5\n1,1,2.0,0,5\n", "1i id,frame,x,y,speed", 2}};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        char line[3000];
        refuse_text(tables[i].text, &at_10_hz, DT_EDATA, tables[i].command);
        put("t.csv", tables[i].text);
        snprintf(line, sizeof(line), "sed -i '%s' %s", tables[i].command, at("t.csv"));
        assert_int_equal(system(line), 0);
        assert_int_equal(import("t.csv", &at_10_hz)->n_rows, tables[i].rows);
    }
}

static void test_ids_of_tables(void **state)
{
    const dt_store_view *v =
        import_text("id,frame,x,y,speed\n1500000000000000001,0,0,0,5\n1500000000000000002,0,9,0,5\n"
                    "-9007199254740993,0,19,0,5\n",
                    &at_10_hz);
    assert_int_equal(v->n_tracks, 3);
    assert_true(v->pose[0] == 19 && v->pose[3] == 0 && v->pose[6] == 9); /* by id */
    v = import_text("id,frame,x,y,speed\n8f3a-11,0,0,0,5\n0007,0,9,0,5\n7,0,19,0,5\n8f3a-11,1,1,0,5\n", &at_10_hz);
    assert_int_equal(v->n_tracks, 3);
    assert_true(v->pose[0] == 0 && v->pose[3] == 9); /* as they appear */
}

/* Rows that say the same once more; those that contradict are refused. */
static void test_repeats(void **state)
{
    assert_int_equal(
        import_text("id,frame,x,y,heading,speed\n1,0,0,0,,5\n1,0,0,0,,5\n1,1,0,0,0,5\n", &at_10_hz)->n_rows, 2);
    assert_non_null(strstr(dt_str_text(&report), "1 rows that repeat another: left out"));
    refuse_text("id,frame,x,y,heading,speed\n1,0,0,0,,5\n1,0,0,0,1,5\n", &at_10_hz, DT_EDATA, "twice");
}

/* What a file does not say is counted, and said; the same of one part and of several. */
static void test_unknown_values(void **state)
{
    static const char *const words[] = {"3 rows without a length", "4 rows without a width",
                                        "4 rows without an acceleration", "4 rows without a heading",
                                        "3 rows of vehicles whose heading is unknown"};
    put("a.csv", "id,frame,x,y,speed,length\n1,0,0,0,5,4\n1,1,2,0,5,\n");
    put("b.csv", "id,frame,x,y,speed,length\n1,0,0,0,0,\n1,1,0,0,0,\n");
    for (uint64_t part_bytes = 0; part_bytes < 2; part_bytes++) {
        const dt_import_options opt = {.frame_rate_hz = 10, .part_bytes = part_bytes << 20};
        close_all();
        assert_ok(dt_fs_remove_tree(at("s")));
        const char *both[] = {at("a.csv"), at("b.csv")};
        assert_ok(dt_data_import(both, 2, at("s"), &opt, &report));
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (strstr(dt_str_text(&report), words[i]) == NULL) {
                fail_msg("\"%s\" is not in: %s", words[i], dt_str_text(&report));
            }
        }
    }
}

/* Headings that no source gives are unknown: of all layouts but those whose road is along an axis. */
static void test_unknown_headings(void **state)
{
#define NGSIM_HEAD "Vehicle_ID,Frame_ID,Global_Time,Local_X,Local_Y,v_Vel,v_Acc,v_Length,v_Width"
    static const struct {
        const char *name, *text;
        double heading, y; /* of the first row */
    } row[] = {{"no column", "id,frame,x,y,speed,length\n1,0,3,7,0,4\n1,1,3,7,0,4\n", NAN, 7},
               {"vx and vy", "id,frame,x,y,vx,vy\n1,0,3,7,0.1,0\n1,1,3,7,0,0.1\n", NAN, 7},
               {"SUMO", "timestep_time,vehicle_id,vehicle_x,vehicle_y,vehicle_speed\n0,a,3,7,0\n0.1,a,3,7,0\n", NAN, 7},
               {"freeway", NGSIM_HEAD "\n1,1,100,0,10,0,0,10,6\n", M_PI / 2, 5 * 0.3048},
               {"us-101", NGSIM_HEAD ",Location\n1,1,100,0,10,0,0,10,6,us-101\n", M_PI / 2, 5 * 0.3048},
               {"peachtree", NGSIM_HEAD ",Location\n1,1,100,0,10,0,0,10,6,peachtree\n", NAN, 10 * 0.3048}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        put("t.csv", row[i].text);
        assert_ok(import_with("t.csv", i < 2 ? &at_10_hz : NULL));
        assert_ok(dt_store_open(at("s"), &store));
        const dt_store_view *v = dt_store_view_of(store);
        const bool is_unknown = isnan(row[i].heading);
        if (isnan(v->pose[2]) != is_unknown || (!is_unknown && fabs(v->pose[2] - row[i].heading) > 1e-12) ||
            fabs(v->pose[1] - row[i].y) > 1e-9) {
            fail_msg("%s: heading %g, y %g", row[i].name, v->pose[2], v->pose[1]);
        }
        assert_true((strstr(dt_str_text(&report), "whose heading is unknown") != NULL) == is_unknown);
        assert_int_equal(dt_store_unknown(store, DT_UNKNOWN_HEADING), is_unknown ? v->n_rows : 0);
    }
    dt_str text = {0};
    assert_ok(dt_data_inspect(at("s"), true, &text));
    assert_non_null(strstr(dt_str_text(&text), "\"unknown\":{\"heading\":1,\"acceleration\":0"));
    dt_str_clear(&text);
    assert_ok(dt_data_inspect(at("s"), false, &text));
    assert_non_null(strstr(dt_str_text(&text), "unknown: heading in 1 rows\n"));
    dt_str_fini(&text);
}

/* What rows say of their time is the frame rate, where nothing else does. */
static void test_rates_of_times(void **state)
{
    static const struct {
        const char *first, *second, *third;
        double rate;
    } times[] = {{"0", "0.1", "0.2", 10},
                 {"0.033", "0.067", "0.1", 30},
                 {"5", "5.5", "7", 2},
                 {"00:00:01", "00:00:02", "0:0:3", 1},
                 {"1.12e9", "1120000000.04", "1120000000.08", 25}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        dt_str t = {0};
        dt_str_addf(&t, "id,time,x,y,speed\n1,%s,0,0,5\n1,%s,1,0,5\n1,%s,2,0,5\n", times[i].first, times[i].second,
                    times[i].third);
        assert_true(import_text(dt_str_text(&t), NULL)->frame_rate_hz == times[i].rate);
        dt_str_fini(&t);
    }
    refuse_text("id,time,x,y,speed\n1,0,0,0,5\n2,0,0,0,5\n", NULL, DT_EINVAL, "import.frame_rate_hz");
    refuse_text("id,frame,x,y,speed\n1,0,0,0,5\n", NULL, DT_EINVAL, "import.frame_rate_hz");
    /* milliseconds, and the advice for them */
    static const char ms[] = "id,time,x,y,speed\n1,0,0,0,5\n1,10000,1,0,5\n1,20000,2,0,5\n";
    static const char us[] = "id,time,x,y,speed\n1,0,0,0,5\n1,40000,.2,0,5\n1,80000,.4,0,5\n";
    static const char ms_map[] = "time=time*0.001,id=id,x=x,y=y,speed=speed";
    static const char us_map[] = "time=time*1e-06,id=id,x=x,y=y,speed=speed";
    refuse_text(ms, NULL, DT_EINVAL, ms_map);
    assert_true(import_text(ms, &(dt_import_options){.columns = ms_map})->frame_rate_hz == 0.1);
    refuse_text(us, NULL, DT_EINVAL, us_map);
    assert_true(import_text(us, &(dt_import_options){.columns = us_map})->frame_rate_hz == 25);
}

/* Classes: in a column, and in an accompanying table. */
static void test_classes(void **state)
{
    assert_int_equal(import_text("id,frame,x,y,speed,kind\n1,0,0,0,5,car\n2,0,9,0,5,cyclist\n3,0,9,9,1,pedestrian\n"
                                 "4,0,9,20,5,spaceship\n5,0,9,30,0,barrier\n",
                                 &at_10_hz)
                         ->n_rows,
                     2);
    assert_non_null(strstr(dt_str_text(&report), "2 rows of people on foot and on bicycles: left out"));
    assert_non_null(strstr(dt_str_text(&report), "1 rows of objects"));
    assert_non_null(strstr(dt_str_text(&report), "\"spaceship\""));
    put("07_tracks.csv",
        "recordingId,trackId,frame,trackLifetime,xCenter,yCenter,heading,width,length,xVelocity,"
        "yVelocity,xAcceleration,yAcceleration,lonVelocity,latVelocity,lonAcceleration,latAcceleration\n"
        "7,0,0,0,10,-20,90,1.9,4.6,0,5,0,1,5,0,1,0\n7,1,0,0,3,4,270,0.6,1.8,0,-1,0,0,1,0,0,0\n");
    put("07_recordingMeta.csv", "recordingId,locationId,frameRate,speedLimit\n7,1,25,13.88\n");
    assert_int_equal(import("07_tracks.csv", NULL)->n_rows, 2); /* nothing says what is a bicycle, and that is said */
    assert_non_null(strstr(dt_str_text(&report), "no NN_tracksMeta.csv"));
    assert_null(strstr(dt_str_text(&report), "bicycles: left out"));
    put("07_tracksMeta.csv", "recordingId,trackId,initialFrame,class\n7,0,0,car\n7,1,0,bicycle\n");
    assert_int_equal(import("07_tracks.csv", NULL)->n_rows, 1);
    assert_non_null(strstr(dt_str_text(&report), "1 rows of people on foot and on bicycles: left out"));
}

static void test_maps(void **state)
{
    static const struct {
        const char *columns;
        double x, speed, heading;
    } maps[] = {{"id=car,frame=f,x=X,y=Y,speed=speed km/h/3.6,heading=H*deg", 36, 10, M_PI / 6},
                {"id=car,frame=f,x=X-36,y=Y,speed=speed km/h*km/h,heading=H*compass", 0, 10, M_PI / 3},
                {"id=car,frame=f,x=X*ft,y=Y,speed=|speed km/h|/3.6,heading=H*-0.0174532925199433+1.5707963267948966",
                 36 * 0.3048, 10, M_PI / 3},
                {"id=car,frame=f,x=X/2+1,y=Y,speed=speed km/h,heading=H*compass_rad", 19, 36, M_PI_2 - 30}};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        const dt_store_view *v = import_text("car,f,X,Y,speed km/h,H\n1,0,36,0,36,30\n",
                                             &(dt_import_options){.columns = maps[i].columns, .frame_rate_hz = 10});
        assert_true(fabs(v->pose[0] - maps[i].x) < 1e-9 && fabs((double)v->motion[0] - maps[i].speed) < 1e-5);
        assert_true(fabs(remainder(v->pose[2] - maps[i].heading, 2 * M_PI)) < 1e-9);
    }
    refuse_text("car,f,X,Y,V\n1,0,0,0,1\n",
                &(dt_import_options){.columns = "id=car,frame=f,x=X,y=Y,speed=V*furlong", .frame_rate_hz = 10},
                DT_EINVAL, "factor \"furlong\"");
}

/* Tables as other programs write them: read, or rejected with what helps. */
static void test_tables_of_others(void **state)
{
    static const struct {
        const char *text, *rejected; /* NULL: read, 2 rows of a vehicle */
    } row[] = {{"frame,id,x,y,speed\n0,1,0,0,5,\n1,1,.5,0,5,,\n", NULL},
               {"frame,id,x,y,speed\n0,1,0,0,5,6\n", "6 cells, the header has 5"},
               {"frame,id,x,y,speed\n0,1,0,0,5\n# more\n1,1,.5,0,5\n# end\n", NULL},
               {"frame,id,x,y,speed,heading\n0,1,0,0,5,-\n1,1,.5,0,5,#N/A\n", NULL},
               {"frame,id,x,y,speed\n0,1,0,0,-\n", "speed is \"-\""},
               {"frame,id,x,X,y,speed\n0,1,0,7,0,5\n1,1,.5,7,0,5\n", NULL}, /* x as it is written */
               {"frame,id,x,x,y,speed\n0,1,0,7,0,5\n", "several columns are called \"x\""},
               {"frame,id,X,X,y,speed\n0,1,0,7,0,5\n", "several columns are called \"x\""},
               {"frame,id,x,y,speed,scene\n0,1,0,0,5,a\x1b[2J\n", "t.csv:2: the name of the scene"},
               {"frame,id,x,y,speed,site\n0,1,0,0,5,a\x7f\n", "has control characters"},
               {"track_id; type; traveled_d; avg_speed; lat; lon; speed\n1; Car; 4; 9; 3; 2; 4\n", "pNEUMA"},
               {"time,id,x,y,speed\n23:59:59.9,1,0,0,5\n00:00:00.0,1,.5,0,5\n", NULL},
               {"time,id,x,y,speed\n2024-02-29T23:59:59.9Z,1,0,0,5\n2024-03-01 01:00:00.0+01:00,1,.5,0,5\n", NULL},
               {"time,id,x,y,speed\n2024-02-29T23:59:59.9Z,1,0,0,5\n2024-03-01T00:00:00.0,1,.5,0,5\n", "a time zone"},
               {"time,id,x,y,speed\n2024-13-29T23:59:59.9Z,1,0,0,5\n", "not a finite number"}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const dt_import_options *opt = strstr(row[i].text, "time,") == row[i].text ? NULL : &at_10_hz;
        if (row[i].rejected != NULL) {
            refuse_text(row[i].text, opt, DT_EDATA, row[i].rejected);
            continue;
        }
        const dt_store_view *v = import_text(row[i].text, opt);
        if (v->n_rows != 2 || v->n_tracks != 1 || v->frame_rate_hz != 10 || v->pose[0] != 0 || v->pose[3] != 0.5) {
            fail_msg("%s: %d rows, %g Hz, x %g and %g", row[i].text, (int)v->n_rows, v->frame_rate_hz, v->pose[0],
                     v->pose[3]);
        }
    }
}

/* Frames below 0: a vehicle there is the same one from frame to frame. */
static void test_negative_frames(void **state)
{
    const dt_store_view *v =
        import_text("frame,id,x,y,speed\n-3,1,0,0,20\n-2,1,0,2,20\n-1,1,0,4,20\n0,1,0,6,20\n", &at_10_hz);
    assert_int_equal(v->n_tracks, 1);
    assert_true(isnan(v->pose[2]) && fabs(v->pose[5] - M_PI_2) < 1e-12 && fabs(v->pose[8] - M_PI_2) < 1e-12);
    refuse_text("frame,id,x,y,speed\n-3,1,0,0,20\n-3,1,0,2,20\n", &at_10_hz, DT_EDATA, "in frame -3 of scene t twice");
    refuse_text("frame,id,x,y,speed\n-2,1,0,0,20\n-3,1,0,2,20\n", &at_10_hz, DT_EDATA, "time goes backwards");
}

/* ---- quantities against each other ------------------------------------------------------------------------------- */

static dt_str said;

static void hear(void *user, int level, const char *line)
{
    dt_str_addf(&said, "%s\n", line);
}

typedef struct wrong { /* what a table is wrong by */
    const char *name, *header;
    double position, speed, turn, offset, accel, vx, vy;
    bool is_signed, is_swapped;
    const char *words; /* of the warning; NULL: there is none */
    bool is_advised;
} wrong;

/* Vehicles on an arc and on straights in several directions, that brake and speed up, at 10 Hz. size: of lengths and
 * widths, where the header has them; is_turned: one for the other. */
static void write_table(const wrong *w, double size, bool is_turned, dt_str *t)
{
    const double dt = 0.1;
    const bool has_velocity = strstr(w->header, "vx") != NULL, has_size = strstr(w->header, "length") != NULL;
    dt_str_addf(t, "%s\n", w->header);
    for (int id = 0; id < 4; id++) {
        double x = 0, y = 40.0 * id, h = 0.3 + 1.7 * id, v = 12;
        for (int f = 0; f < 100; f++) {
            const double a = 2 * sin(0.1 * f + id), sign = w->is_signed && cos(h) < 0 ? -1 : 1;
            const double vx = v * cos(h) * w->vx, vy = v * sin(h) * w->vy;
            const double ax = a * cos(h) * (w->vx < 0 ? -w->accel : w->accel);
            const double ay = a * sin(h) * (w->vy < 0 ? -w->accel : w->accel);
            dt_str_addf(t, "%d,%d,%.7g,%.7g,", id, f, x * w->position, y * w->position);
            if (has_velocity) {
                dt_str_addf(t, "%.5f,%.5f", w->is_swapped ? vy : vx, w->is_swapped ? vx : vy);
            } else {
                dt_str_addf(t, "%.6f,%.5f,%.5f", h * w->turn + w->offset, sign * v * w->speed, a * w->accel);
            }
            if (strstr(w->header, "ax") != NULL) {
                dt_str_addf(t, ",%.5f,%.5f", w->is_swapped ? ay : ax, w->is_swapped ? ax : ay);
            }
            dt_str_addf(t, has_size ? ",%g,%g\n" : "\n", (is_turned ? 1.8 : 4.5) * size,
                        (is_turned ? 4.5 : 1.8) * size);
            x += v * cos(h) * dt;
            y += v * sin(h) * dt;
            v += a * dt;
            h += id == 3 ? 0.02 : 0;
        }
    }
}

/* The map that the last warning advises. */
static bool advised(char *map, size_t bytes)
{
    static const char begin[] = "import.columns=";
    const char *at = NULL;
    for (const char *p = dt_str_text(&said); (p = strstr(p, begin)) != NULL; p += strlen(begin)) {
        at = p + strlen(begin);
    }
    if (at != NULL) {
        snprintf(map, bytes, "%.*s", (int)strcspn(at, "'\n"), at);
    }
    return at != NULL;
}

static void check_against_truth(const dt_store_view *v)
{
    for (int64_t r = 0; r < v->n_rows; r++) {
        const double h = v->pose[3 * r + 2];
        const int id = v->row_track[r]; /* all appear in the first frame */
        if (id < 3) {                   /* on a straight */
            const double want = remainder(h - (0.3 + 1.7 * id), 2 * M_PI);
            assert_true(fabs(want) < 0.01);
        }
        assert_true(v->motion[4 * r] > 0 && v->motion[4 * r] < 60);
        assert_true(isnan(v->motion[4 * r + 2]) || fabs(v->motion[4 * r + 2] - 4.5) < 0.01);
        assert_true(isnan(v->motion[4 * r + 3]) || fabs(v->motion[4 * r + 3] - 1.8) < 0.01);
    }
}

enum { FOLLOWED_MOST = 3 }; /* two doubts may hide a third */

/* What is advised is followed, until nothing is. */
static void check_table(const wrong *w, double size, bool is_turned)
{
    dt_str t = {0};
    char map[1000] = "";
    write_table(w, size, is_turned, &t);
    dt_str_clear(&said);
    dt_log_sink_set(hear, NULL);
    import_text(dt_str_text(&t), &at_10_hz);
    if ((w->words == NULL) != (said.bytes == 0) || (w->words != NULL && strstr(dt_str_text(&said), w->words) == NULL) ||
        w->is_advised != advised(map, sizeof(map))) {
        fail_msg("%s: %s", w->name, dt_str_text(&said));
    }
    if (w->is_advised) {
        const dt_store_view *v = NULL;
        for (int i = 0; i < FOLLOWED_MOST && (i == 0 || advised(map, sizeof(map))); i++) {
            dt_str_clear(&said);
            v = import_text(dt_str_text(&t), &(dt_import_options){.columns = map, .frame_rate_hz = 10});
        }
        if (said.bytes > 0) {
            fail_msg("%s, after import.columns=%s: %s", w->name, map, dt_str_text(&said));
        }
        check_against_truth(v);
    }
    dt_log_sink_set(NULL, NULL);
    dt_str_fini(&t);
}

static void test_consistency(void **state)
{
#define H "id,frame,x,y,heading,speed,accel"
#define V "id,frame,x,y,vx,vy"
#define A V ",ax,ay"
#define S ",length,width"
    static const double deg = 180 / M_PI, ft = 1 / 0.3048;
    const wrong tables[] = {
        {"right", H, 1, 1, 1, 0, 1, 1, 1, false, false, NULL, false},
        {"right velocities", V, 1, 1, 1, 0, 1, 1, 1, false, false, NULL, false},
        {"km/h", H, 1, 3.6, 1, 0, 1, 1, 1, false, false, "in km/h", true},
        {"mph", H, 1, 2.2369363, 1, 0, 1, 1, 1, false, false, "in mph", true},
        {"knots", H, 1, 1.9438445, 1, 0, 1, 1, 1, false, false, "in knots", true},
        {"ft/s", H, 1, ft, 1, 0, 1, 1, 1, false, false, "in ft/s", true},
        {"frames in twos", H, 1, 2, 1, 0, 1, 1, 1, false, false, "import.frame_rate_hz=20", false},
        {"feet", H, ft, 1, 1, 0, 1, 1, 1, false, false, "in feet", true},
        {"kilometres", H, 1e-3, 1, 1, 0, 1, 1, 1, false, false, "in km", true},
        {"10 % off", H, 1, 1.1, 1, 0, 1, 1, 1, false, false, "speed is inconsistent", false},
        {"all in feet", H, ft, ft, 1, 0, ft, 1, 1, false, false, "gain more than 5 m/s in a second", true},
        {"20 degrees off", H, 1, 1, 1, 20 / deg, 1, 1, 1, false, false, "headings are off by 20.0 degrees", true},
        {"10 degrees off", H, 1, 1, 1, -10 / deg, 1, 1, 1, false, false, "headings are off by -10.0 degrees", true},
        {"3 degrees off", H, 1, 1, 1, 3 / deg, 1, 1, 1, false, false, NULL, false},
        {"degrees", H, 1, 1, deg, 0, 1, 1, 1, false, false, "in degrees", true},
        {"compass", H, 1, 1, -deg, 90, 1, 1, 1, false, false, "compass bearings in degrees", true},
        {"compass radians", H, 1, 1, -1, M_PI_2, 1, 1, 1, false, false, "compass bearings in radians", true},
        {"a quarter off", H, 1, 1, 1, M_PI_2, 1, 1, 1, false, false, "a quarter turn", true},
        {"degrees, a quarter off", H, 1, 1, deg, -90, 1, 1, 1, false, false, "a quarter turn", true},
        {"half a turn off", H, 1, 1, 1, M_PI, 1, 1, 1, false, false, "backwards", true},
        {"mirrored", H, 1, 1, -1, 0, 1, 1, 1, false, false, "the other way", true},
        {"signed speeds", H, 1, 1, 1, 0, 1, 1, 1, true, false, "negative", true},
        {"km/h and compass", H, 1, 3.6, -deg, 90, 1, 1, 1, false, false, "compass", true},
        {"brakes as positive", H, 1, 1, 1, 0, -1, 1, 1, false, false, "the other sign", true},
        {"brakes as positive, ft/s^2", H, 1, 1, 1, 0, -ft, 1, 1, false, false, "in ft/s^2, with the other", true},
        {"brakes as positive, cm/s^2, mph", H, 1, 2.2369363, 1, M_PI, -100, 1, 1, false, false, "in cm/s^2, with",
         true},
        {"all speeds negative", H, 1, -1, 1, 0, 1, 1, 1, false, false, "negative", true},
        {"all speeds and brakes negative", H, 1, -1, 1, 0, -1, 1, 1, false, false, "the other sign", true},
        {"all backwards", H, 1, -1, 1, M_PI, 1, 1, 1, false, false, "drive backwards", true},
        {"all backwards, compass, km/h", H, 1, -3.6, -deg, 90, 1, 1, 1, false, false, "in degrees", true},
        {"miles", H, 1 / 1609.344, 1, 1, 0, 1, 1, 1, false, false, "in miles", true},
        {"inches", H, 1 / 0.0254, 1, 1, 0, 1, 1, 1, false, false, "in inches", true},
        {"accelerations in g", H, 1, 1, 1, 0, 1 / 9.80665, 1, 1, false, false, "in g", true},
        {"velocity against motion", V, 1, 1, 1, 0, 1, -1, -1, false, false, "velocity", true},
        {"vy mirrored", V, 1, 1, 1, 0, 1, 1, -1, false, false, "velocity", true},
        {"vx mirrored", V, 1, 1, 1, 0, 1, -1, 1, false, false, "velocity", true},
        {"axes swapped", V, 1, 1, 1, 0, 1, 1, 1, false, true, "velocity", true},
        {"velocities in km/h", V, 1, 1, 1, 0, 1, 3.6, 3.6, false, false, "in km/h", true},
        /* two at a time */
        {"vx and ax mirrored", A, 1, 1, 1, 0, 1, -1, 1, false, false, "velocity", true},
        {"axes of all swapped", A, 1, 1, 1, 0, 1, 1, 1, false, true, "velocity", true},
        {"vy and ay mirrored, g", A, 1, 1, 1, 0, 1 / 9.80665, 1, -1, false, false, "in g", true},
        {"swapped, km/h", A, 1, 1, 1, 0, 1, 3.6, 3.6, false, true, "in km/h", true},
        {"signed, degrees", H, 1, 1, deg, 0, 1, 1, 1, true, false, "in degrees", true},
        {"signed, compass, mph", H, 1, 2.2369363, -deg, 90, 1, 1, 1, true, false, "compass", true},
        {"knots, km", H, 1e-3, 1.9438445, 1, 0, 1, 1, 1, false, false, "in knots and positions were in km", true},
        {"km/h, cm", H, 100, 3.6, 1, 0, 1, 1, 1, false, false, "in km/h and positions were in cm", true},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        check_table(&tables[i], 1, false);
    }
    dt_str_fini(&said);
}

static void test_sizes(void **state)
{
    static const double ft = 1 / 0.3048;
    static const struct {
        wrong w;
        double size;
        bool is_turned;
    } tables[] = {
        {{"right", H S, 1, 1, 1, 0, 1, 1, 1, false, false, NULL, false}, 1, false},
        {{"feet, and sizes", H S, ft, 1, 1, 0, 1, 1, 1, false, false, "in feet", true}, ft, false},
        {{"feet, but sizes", H S, ft, 1, 1, 0, 1, 1, 1, false, false, "in feet", true}, 1, false},
        {{"all in feet, and sizes", H S, ft, ft, 1, 0, ft, 1, 1, false, false, "in feet", true}, ft, false},
        {{"all in feet, but sizes", H S, ft, ft, 1, 0, ft, 1, 1, false, false, "in feet", true}, 1, false},
        {{"km, and sizes", H S, 1e-3, 1, 1, 0, 1, 1, 1, false, false, "in km", true}, 1e-3, false},
        {{"sizes in km", H S, 1, 1, 1, 0, 1, 1, 1, false, false, "0.0045 m long", true}, 1e-3, false},
        {{"width for length", H S, 1, 1, 1, 0, 1, 1, 1, false, false, "swapped", true}, 1, true},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        check_table(&tables[i].w, tables[i].size, tables[i].is_turned);
    }
    dt_str_fini(&said);
}

/* No vehicle has a length or width of 0: it is not known. */
static void test_no_size(void **state)
{
    const dt_store_view *v =
        import_text("id,frame,x,y,speed,length,width\n1,0,0,0,5,0,0\n1,1,.5,0,5,0.0,0\n", &at_10_hz);
    assert_int_equal(v->n_rows, 2);
    for (int64_t r = 0; r < v->n_rows; r++) {
        assert_true(isnan(v->motion[4 * r + 2]) && isnan(v->motion[4 * r + 3]));
    }
}

/* Traffic on four lanes at 10 m/s that never brakes: in feet its lanes alone are too wide. */
static void test_lanes_in_feet(void **state)
{
    static const struct {
        double scale, lane_m;
        bool is_warned;
    } row[] = {{1 / 0.3048, 3.6, true}, {1, 3.6, false}, {1, 12, true}, {1 / 0.3048, 2.7, false}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        dt_str t = {0};
        char map[1000] = "";
        dt_str_add(&t, "id,frame,x,y,speed,heading\n");
        for (int f = 0; f < 60; f++) {
            for (int id = 0; id < 24; id++) {
                dt_str_addf(&t, "%d,%d,%.3f,%.3f,%.3f,0\n", id, f, (f - 20.0 * (id / 4)) * row[i].scale,
                            row[i].lane_m * (id % 4) * row[i].scale, 10 * row[i].scale);
            }
        }
        dt_str_clear(&said);
        dt_log_sink_set(hear, NULL);
        import_text(dt_str_text(&t), &at_10_hz);
        if ((strstr(dt_str_text(&said), "side by side") != NULL) != row[i].is_warned ||
            advised(map, sizeof(map)) != row[i].is_warned) {
            fail_msg("lanes of %g m: %s", row[i].lane_m, dt_str_text(&said));
        }
        if (row[i].is_warned && row[i].scale > 1) {
            dt_str_clear(&said);
            const dt_store_view *v =
                import_text(dt_str_text(&t), &(dt_import_options){.columns = map, .frame_rate_hz = 10});
            assert_int_equal(said.bytes, 0);
            assert_true(fabs((double)v->motion[0] - 10) < 1e-3);
        }
        dt_log_sink_set(NULL, NULL);
        dt_str_fini(&t);
    }
    dt_str_fini(&said);
}

/* Units measure what their column is; others are rejected, and those that fit are named. */
static void test_units_of_columns(void **state)
{
    static const struct {
        const char *item, *rejected; /* in place of a column; NULL: it is read */
    } row[] = {{"x=X*cm", NULL},
               {"x=X*in", NULL},
               {"speed=V*cm/s", NULL},
               {"speed=V*ft", NULL},
               {"accel=A*ft/s^2", NULL},
               {"x=X*furlong", "nor a unit of it: m, ft, in, yd, mi, km, dm, cm, mm"},
               {"x=X*ms", "factor \"ms\" of x"},
               {"speed=V*deg", "nor a unit of it: m/s, km/h"},
               {"heading=A*m", "nor a unit of it: rad, deg, compass"},
               {"frame=f*s", "and it has no unit"}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        dt_str map = {0};
        dt_str_addf(&map, "id=id,frame=f,x=X,y=X,speed=V,%s", row[i].item);
        const dt_import_options opt = {.columns = dt_str_text(&map), .frame_rate_hz = 10};
        if (row[i].rejected != NULL) {
            refuse_text("id,f,X,V,A\n1,0,1,1,1\n", &opt, DT_EINVAL, row[i].rejected);
        } else {
            import_text("id,f,X,V,A\n1,0,1,1,1\n", &opt);
        }
        dt_str_fini(&map);
    }
}

/* A wrong frame rate, and the one that is advised; a jump is no unit. */
static void test_rates_and_jumps(void **state)
{
    const wrong right = {"right", H, 1, 1, 1, 0, 1, 1, 1, false, false, NULL, false};
    dt_str t = {0}, jump = {0};
    write_table(&right, 1, false, &t);
    dt_log_sink_set(hear, NULL);
    import_text(dt_str_text(&t), &(dt_import_options){.frame_rate_hz = 4});
    const char *rate = strstr(dt_str_text(&said), "import.frame_rate_hz=");
    assert_non_null(rate);
    assert_true(fabs(strtod(rate + strlen("import.frame_rate_hz="), NULL) - 10) < 0.05);
    dt_str_clear(&said);
    dt_str_add(&jump, dt_str_text(&t));
    dt_str_add(&jump, "0,100,900000,0,0,12,0\n");
    import_text(dt_str_text(&jump), &at_10_hz);
    assert_non_null(strstr(dt_str_text(&said), "line 402"));
    assert_null(strstr(dt_str_text(&said), "as if"));
    assert_null(strstr(dt_str_text(&said), "import.columns"));
    dt_log_sink_set(NULL, NULL);
    dt_str_fini(&said);
    dt_str_fini(&t);
    dt_str_fini(&jump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_road_users),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_ids),
        cmocka_unit_test_setup_teardown(test_separators, begin, finish),
        cmocka_unit_test_setup_teardown(test_advice_of_tables, begin, finish),
        cmocka_unit_test_setup_teardown(test_ids_of_tables, begin, finish),
        cmocka_unit_test_setup_teardown(test_repeats, begin, finish),
        cmocka_unit_test_setup_teardown(test_unknown_values, begin, finish),
        cmocka_unit_test_setup_teardown(test_unknown_headings, begin, finish),
        cmocka_unit_test_setup_teardown(test_rates_of_times, begin, finish),
        cmocka_unit_test_setup_teardown(test_classes, begin, finish),
        cmocka_unit_test_setup_teardown(test_tables_of_others, begin, finish),
        cmocka_unit_test_setup_teardown(test_negative_frames, begin, finish),
        cmocka_unit_test_setup_teardown(test_maps, begin, finish),
        cmocka_unit_test_setup_teardown(test_consistency, begin, finish),
        cmocka_unit_test_setup_teardown(test_no_size, begin, finish),
        cmocka_unit_test_setup_teardown(test_sizes, begin, finish),
        cmocka_unit_test_setup_teardown(test_lanes_in_feet, begin, finish),
        cmocka_unit_test_setup_teardown(test_units_of_columns, begin, finish),
        cmocka_unit_test_setup_teardown(test_rates_and_jumps, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
