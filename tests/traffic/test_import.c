/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import.c and import_table.c: every layout of a table that is recognised, column maps,
 * and bad input with its place and reason.
 */
#include "import_rig.h"

#include "base/log.h"

#include <sys/stat.h>

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void test_commonroad(void **state)
{
    const dt_store_view *v = import_text(COMMONROAD "USA_Lanker-2_1_T-1,0,5,car,4.5,2,1,2,0,10,\n"
                                                    "USA_Lanker-2_1_T-1,0,6,car,4,2,21,2,0,5,0.5\n"
                                                    "USA_Lanker-2_1_T-1,1,5,car,4.5,2,2,2,0,9.5,\n"
                                                    "USA_US101-8_1_T-1,0,5,car,4.5,,0,0,-1.5,3,-1\n",
                                         NULL);
    assert_true(v->frame_rate_hz == 10);
    assert_int_equal(v->n_scenes, 2);
    assert_int_equal(v->n_rows, 4);
    assert_int_equal(v->n_tracks, 3);
    assert_string_equal(v->scene[0], "USA_Lanker-2_1_T-1");
    assert_string_equal(v->site[v->scene_site[0]], "Lanker");
    assert_string_equal(v->site[v->scene_site[1]], "US101");
    assert_true(fabs(v->motion[4 * 2 + 1] + 5) < 1e-5); /* empty cell: (9.5 - 10) / 0.1 */
    assert_true(v->motion[4 * 1 + 1] == 0.5f && isnan(v->motion[4 * 0 + 1]));
    assert_true(isnan(v->motion[4 * 3 + 3])); /* no width */
    assert_true(v->edge[4 * 1] == 20 - 4.25f);
    assert_non_null(strstr(dt_str_text(&report), "columns not used: type"));
    assert_non_null(strstr(dt_str_text(&report), "2 vehicles are seen in one frame alone"));
}

/* Feet, front centres, sorted by vehicle, headings from the motion, a hole that splits the scene. */
static void test_ngsim(void **state)
{
    dt_str t = {0};
    dt_str_add(&t, "Vehicle_ID,Frame_ID,Total_Frames,Global_Time,Local_X,Local_Y,v_Length,v_Width,v_Class,v_Vel,v_Acc,"
                   "Lane_ID,Location\n");
    for (int id = 2; id <= 3; id++) {
        for (int f = 0; f < 4; f++) { /* along +y at 10 ft a frame; the first frame id of vehicle 3 is later */
            int frame = f + id;
            dt_str_addf(&t, "%d,%d,4,%lld,%d,%d,10,6,2,100,-1,1,us-101\n", id, frame, 1118846980000ll + 100 * frame,
                        10 * id, 100 + 10 * f);
        }
    }
    dt_str_add(&t, "4,100,1,1118847980000,50,50,10,6,2,0,0,1,us-101\n"); /* a thousand seconds later */
    dt_import_options opt = {.memory_bytes = 300};                       /* three rows: sorted on disk */
    const dt_store_view *v = import_text(dt_str_text(&t), &opt);
    assert_int_equal(v->n_rows, 9);
    assert_int_equal(v->n_scenes, 2);
    assert_string_equal(v->scene[0], "us-101");
    assert_string_equal(v->scene[1], "us-101#2");
    assert_string_equal(v->site[0], "us-101");
    assert_int_equal(v->scene_frame[1], 5); /* frames 2..6 */
    assert_int_equal(v->frame_row[2] - v->frame_row[1], 2);
    const double ft = 0.3048;
    assert_true(fabs(v->pose[0] - 20 * ft) < 1e-9);
    assert_true(fabs(v->pose[1] - (100 * ft - 5 * ft)) < 1e-9); /* half of 10 ft behind the front */
    assert_true(fabs(v->pose[2] - M_PI / 2) < 1e-9);
    assert_true(fabs(v->motion[0] - 100 * ft) < 1e-5 && fabs(v->motion[1] + ft) < 1e-6);
    assert_true(fabs(v->motion[2] - 10 * ft) < 1e-5 && fabs(v->motion[3] - 6 * ft) < 1e-5);
    assert_non_null(strstr(dt_str_text(&report), "sorted on disk in 3 runs"));
    assert_non_null(strstr(dt_str_text(&report), "rows without a heading"));
    dt_str_fini(&t);
}

/* The 18 columns as the recordings' own files have them, without a site. */
static void test_ngsim_files(void **state)
{
    const dt_store_view *v = import_text(
        "Vehicle_ID,Frame_ID,Total_Frames,Global_Time,Local_X,Local_Y,Global_X,Global_Y,v_Length,v_Width,v_Class,"
        "v_Vel,v_Acc,Lane_ID,Preceding,Following,Space_Headway,Time_Headway\n"
        "2,13,2,1118846980200,16.467,35.381,6451137.641,1873344.962,14.5,4.9,2,40.00,0.00,2,0,0,0.00,9999.99\n"
        "2,14,2,1118846980300,16.447,39.381,6451140.329,1873342.000,14.5,4.9,2,40.00,0.00,2,0,0,0.00,9999.99\n",
        &(dt_import_options){.site = "us-101"});
    assert_int_equal(v->n_rows, 2);
    assert_int_equal(v->scene_frame[1], 2);
    assert_string_equal(v->site[0], "us-101");
    assert_true(fabs(v->pose[0] - 16.467 * 0.3048) < 1e-9);
    assert_true(fabs(v->pose[1] - (35.381 - 7.25) * 0.3048) < 1e-9);
    assert_true(fabs(v->motion[0] - 40 * 0.3048) < 1e-5 && fabs(v->motion[2] - 14.5 * 0.3048) < 1e-5);
    assert_non_null(strstr(dt_str_text(&report), "columns: ngsim, 10 Hz"));
}

#define PORTAL                                                                                                         \
    "Vehicle_ID,Frame_ID,Total_Frames,Global_Time,Local_X,Local_Y,Global_X,Global_Y,v_length,v_Width,v_Class,v_Vel,"   \
    "v_Acc,Lane_ID,O_Zone,D_Zone,Int_ID,Section_ID,Direction,Movement,Preceding,Following,Space_Headway,"              \
    "Time_Headway,Location\n"

/* The portal's 25 columns: several sites in one table, thousands separators in quotes, rows twice. */
static void test_ngsim_portal(void **state)
{
    static const char row[] =
        "515,\"2,331\",\"1,123\",\"1,118,848,075,000\",30.034,188.062,\"6,451,203.729\",\"1,873,252.549\",13,6.9,2,"
        "23.31,-1.5,3,,,,,,,500,523,119.1,5.11,us-101\n";
    dt_str t = {0};
    dt_str_addf(&t,
                PORTAL "%s%s"
                       "515,2332,1123,1118848075100,30.034,\"1,188.062\",0,0,13.0,6.9,2,23.31,,3,,,,,,,500,523,119.10,"
                       "5.11,us-101\n"
                       "33,9,7,1113433135300,50,0,0,0,14,5,2,10,0,1,101,203,0,1,2,1,0,0,0,0,i-80\n",
                row, row);
    const dt_store_view *v = import_text(dt_str_text(&t), NULL);
    assert_int_equal(v->n_rows, 3);
    assert_int_equal(v->n_scenes, 2);
    assert_string_equal(v->site[v->scene_site[0]], "us-101");
    assert_string_equal(v->site[v->scene_site[1]], "i-80");
    assert_true(fabs(v->pose[0] - 30.034 * 0.3048) < 1e-9);
    assert_true(fabs(v->motion[0] - 23.31 * 0.3048) < 1e-5 && fabs(v->motion[1] + 1.5 * 0.3048) < 1e-6);
    assert_true(fabs(v->pose[4] - v->pose[1] - 1000 * 0.3048) < 1e-6);
    assert_non_null(strstr(dt_str_text(&report), "1 rows that repeat another: left out"));
    dt_str_fini(&t);

    /* the same vehicle at the same time elsewhere is no repeat, and commas elsewhere are no number */
    refuse_text(PORTAL
                "1,1,1,1000,1,1,0,0,9,6,2,1,0,1,,,,,,,0,0,0,0,x\n1,1,1,1000,2,1,0,0,9,6,2,1,0,1,,,,,,,0,0,0,0,x\n",
                NULL, DT_EDATA, "vehicle 1 is in frame 0 of scene x twice");
    refuse_text(PORTAL "1,1,1,1000,\"1,22\",1,0,0,9,6,2,1,0,1,,,,,,,0,0,0,0,x\n", NULL, DT_EDATA,
                "Local_X is \"1,22\", not a finite number");
    refuse_text(PORTAL "1,1,1,\"1000,000\",1,1,0,0,9,6,2,1,0,1,,,,,,,0,0,0,0,x\n", NULL, DT_EDATA,
                "Global_Time is \"1000,000\", not a finite number");
    refuse_text("id,frame,x,y,speed\n1,0,\"1,000\",0,0\n", &(dt_import_options){.frame_rate_hz = 10}, DT_EDATA,
                "x is \"1,000\", not a finite number");
}

static void test_us101_single(void **state)
{
    const dt_store_view *v = import_text(
        "vehicle_id,frame,epoch_ms,local_x_m,local_y_m,speed_mps,accel_mps2,space_headway_m,time_headway_s\n"
        "11,244,1118847866400,8.3,15.3,4.4,0,24.9,5.7\n"
        "11,245,1118847866500,9.9,15.7,4.4,0,9.8,2.2\n"
        "12,244,1118847866400,3,15,4,0,0,0\n",
        NULL);
    assert_int_equal(v->n_scenes, 2); /* each vehicle its own, without neighbours */
    assert_int_equal(v->n_edges, 3);
    assert_string_equal(v->site[0], "US101");
    assert_true(v->pose[5] == M_PI / 2 && isnan(v->motion[2]) && v->node[6] == 4.5f);
}

#define HIGHD                                                                                                          \
    "frame,id,x,y,width,height,xVelocity,yVelocity,xAcceleration,yAcceleration,frontSightDistance,backSightDistance,"  \
    "dhw,thw,ttc,precedingXVelocity,precedingId,followingId,leftPrecedingId,leftAlongsideId,leftFollowingId,"          \
    "rightPrecedingId,rightAlongsideId,rightFollowingId,laneId\n"
#define HIGHD_META                                                                                                     \
    "id,frameRate,locationId,speedLimit,month,weekDay,startTime,duration,totalDrivenDistance,totalDrivenTime,"         \
    "numVehicles,numCars,numTrucks,upperLaneMarkings,lowerLaneMarkings\n"

/* Corners of boxes, y down, both directions of a motorway. */
static void test_highd(void **state)
{
    static const char rest[] = ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,2\n";
    dt_str t = {0};
    dt_str_add(&t, HIGHD);
    dt_str_addf(&t, "1,1,100,20,4,2,30,0.3,1,0%s", rest);
    dt_str_addf(&t, "2,1,101.2,20.012,4,2,30,0.3,1,0%s", rest);
    dt_str_addf(&t, "1,2,200,8,10,2.5,-20,0,-0.5,0%s", rest);
    dt_str_addf(&t, "2,2,199.2,8,10,2.5,-20,0,-0.5,0%s", rest);
    dt_str_addf(&t, "3,2,199.19,8,10,2.5,-0.25,0,-0.5,0%s", rest); /* nearly stands: it has not turned round */
    put("01_tracks.csv", dt_str_text(&t));
    dt_str_fini(&t);
    assert_fails(import_with("01_tracks.csv", NULL), DT_EDATA, "01_recordingMeta.csv");
    put("01_recordingMeta.csv", HIGHD_META "1,25,4,-1,9.2017,Tue,08:38,900,1,1,2,1,1,3;7,12;16;21\n");
    const dt_store_view *v = import("01_tracks.csv", &(dt_import_options){.smooth_s = 0});
    assert_true(v->frame_rate_hz == 25);
    assert_int_equal(v->n_rows, 5);
    assert_string_equal(v->scene[0], "location-4/01_tracks");
    assert_string_equal(v->site[0], "location-4");
    const double *first = v->pose, *second = v->pose + 3;
    assert_true(fabs(first[0] - 102) < 1e-9 && fabs(first[1] + 21) < 1e-9);
    assert_true(fabs(first[2] - atan2(-0.3, 30)) < 1e-9);
    assert_true(fabs(second[0] - 205) < 1e-9 && fabs(second[1] + 9.25) < 1e-9 && fabs(second[2] - M_PI) < 1e-9);
    assert_true(fabs(v->pose[3 * 4 + 2] - M_PI) < 1e-9);
    assert_true(fabs(v->motion[0] - hypot(30, 0.3)) < 1e-4 && v->motion[4] == 20 && v->motion[4 * 4] == 0.25f);
    assert_true(fabs(v->motion[1] - 1) < 1e-3 &&
                v->motion[5] == 0.5f); /* -0.5 along x is more speed for who drives to -x */
    assert_true(v->motion[2] == 4 && v->motion[3] == 2 && v->motion[6] == 10 && v->motion[7] == 2.5f);
    assert_string_equal(import("01_tracks.csv", &(dt_import_options){.site = "highD"})->site[0], "highD-4");
    assert_fails(import_with("01_tracks.csv", &(dt_import_options){.frame_rate_hz = 10}), DT_EINVAL,
                 "recorded at 25 Hz, import.frame_rate_hz is 10");

    v = import("01_tracks.csv", NULL); /* its lanes lie between the lines */
    assert_int_equal(v->n_maps, 1);
    assert_int_equal(v->scene_map[0], 0);
    assert_string_equal(v->map[0], "01_tracks");
    const double xy[] = {210, -5, 100, -5, 100, -14, 210, -14, 100, -18.5, 210, -18.5};
    const float width[] = {4, 4, 4, 4, 5, 5};
    const int64_t id[] = {2, 4, 5};
    const int32_t left[] = {-1, -1, 1}, right[] = {-1, 2, -1};
    assert_int_equal(v->n_lanes, 3);
    for (int i = 0; i < 12; i++) {
        assert_true(fabs(v->lane_xy[i] - xy[i]) < 1e-9);
    }
    assert_memory_equal(v->lane_width, width, sizeof(width));
    assert_memory_equal(v->lane_id, id, sizeof(id));
    assert_memory_equal(v->lane_left, left, sizeof(left));
    assert_memory_equal(v->lane_right, right, sizeof(right));
    assert_true(v->lane_kind[0] == DT_LANE_HIGHWAY && v->lane_limit[2] == 0); /* -1: no limit */
    assert_non_null(strstr(dt_str_text(&report), "3 lanes between lane markings: map 01_tracks"));
    put("01_recordingMeta.csv", "id,frameRate,locationId,speedLimit,upperLaneMarkings,lowerLaneMarkings\n"
                                "1,25,4,36.11,3.00;7.00;10.50,\n");
    v = import("01_tracks.csv", NULL);
    assert_int_equal(v->n_lanes, 2);
    assert_true(v->lane_left[0] == 1 && v->lane_left[1] == -1 && v->lane_right[1] == 0 && v->lane_right[0] == -1);
    assert_true(v->lane_id[1] == 3 && v->lane_limit[0] == 36.11f);

    static const char *const bad[][2] = {
        {"id,frameRate,locationId,upperLaneMarkings\n1,25,4,3;7;7\n",
         "upperLaneMarkings is \"3;7;7\", not at most 32 rising numbers up to 1000 between ';'"},
        {"id,frameRate,locationId,lowerLaneMarkings\n1,25,4,3;x\n", "lowerLaneMarkings is \"3;x\""},
        {"id,frameRate,locationId,lowerLaneMarkings\n1,25,4,3;;5\n", "lowerLaneMarkings is \"3;;5\""},
        {"id,frameRate,locationId,lowerLaneMarkings\n1,25,4,3\n", "is \"3\", only one line: a lane needs two"},
        {"id,frameRate,locationId,speedLimit,upperLaneMarkings\n1,25,4,500,3;7\n",
         "speedLimit is \"500\", not a number in [-1, 150]"},
        {"", "contains no data: not even a header"},
        {"id,frameRate\n1,25\n", "01_recordingMeta.csv:1: there is no column \"locationId\""},
        {"frameRate,locationId\n", "a header and no row"},
        {"frameRate,locationId\n25\n", "01_recordingMeta.csv:2: 1 cells, the header has 2"},
        {"frameRate,locationId\nnan,1\n", "01_recordingMeta.csv:2: frameRate is \"nan\", not a number in [0.1, 1000]"},
        {"frameRate,locationId\n25,-1\n", "locationId is \"-1\", not a number in [0, 1e+09]"},
        {"frameRate,locationId\n25,0.5\n", "locationId is 0.5, not an integer"},
        {"id,frameRate,locationId\n2,25,4\n", "it is of recording 2, but the file name has 1"},
        {"recordingId,frameRate,locationId\n10,25,4\n", "it is of recording 10, but the file name has 1"},
        {"id,frameRate,locationId\nx,25,4\n", "recordingId is \"x\", not a number in [0, 1e+09]"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put("01_recordingMeta.csv", bad[i][0][0] == '\0' ? "\n" : bad[i][0]);
        assert_fails(import_with("01_tracks.csv", NULL), DT_EDATA, bad[i][1]);
        assert_false(dt_fs_is_dir(at("s")));
    }
    assert_ok(dt_fs_remove_tree(at("01_recordingMeta.csv")));
    v = import("01_tracks.csv", &(dt_import_options){.frame_rate_hz = 25});
    assert_string_equal(v->site[0], "unknown");
}

#define IND                                                                                                            \
    "recordingId,trackId,frame,trackLifetime,xCenter,yCenter,heading,width,length,xVelocity,yVelocity,xAcceleration,"  \
    "yAcceleration,lonVelocity,latVelocity,lonAcceleration,latAcceleration\n"

/* Centres, degrees, people without a size; two recordings of two places at once. */
static void test_ind(void **state)
{
    put("07_tracks.csv", IND "7,0,0,0,10,-20,90,1.9,4.6,0,5,0,1,5,0,1,0\n"
                             "7,0,1,1,10,-19.8,90,1.9,4.6,0,5,0,1,5,0,1,0\n"
                             "7,1,0,0,3,4,270,0,0,0,-1.5,0,0,1.5,0,0,0\n");
    put("07_recordingMeta.csv", "recordingId,locationId,frameRate,speedLimit\n7,1,25.0,13.88\n");
    put("18_tracks.csv", IND "18,0,5,0,1,2,359,2.5,12,-3,0,0,0,-3,0,0,0\n");
    put("18_recordingMeta.csv", "recordingId,locationId,frameRate,speedLimit\n18,2,25,13.88\n");
    const char *both[] = {at("07_tracks.csv"), at("18_tracks.csv")};
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_ok(dt_data_import(both, 2, at("s"), &(dt_import_options){.site = "inD"}, &report));
    assert_ok(dt_store_open(at("s"), &store));
    const dt_store_view *v = dt_store_view_of(store);
    assert_true(v->frame_rate_hz == 25);
    assert_int_equal(v->n_rows, 3);
    assert_string_equal(v->scene[0], "inD-1/07_tracks");
    assert_string_equal(v->scene[1], "inD-2/18_tracks");
    assert_string_equal(v->site[v->scene_site[1]], "inD-2");
    assert_true(v->pose[0] == 10 && v->pose[1] == -20 && fabs(v->pose[2] - M_PI / 2) < 1e-12);
    assert_true(v->motion[0] == 5 && v->motion[1] == 1 && v->motion[3] == 1.9f);
    assert_true(fabs(v->motion[2] - 4.6) < 1e-6);
    assert_true(v->motion[4 * 2] == -3 && v->motion[4 * 2 + 2] == 12); /* backwards */
    assert_non_null(strstr(dt_str_text(&report), "columns: inD, 25 Hz"));
    assert_non_null(strstr(dt_str_text(&report), "1 rows without a size, as people on foot have"));
    assert_non_null(strstr(dt_str_text(&report), "no NN_tracksMeta.csv"));
    put("07_tracks.csv", IND "7,0,0,0,10,-20,90,1.9,4.6,0,5,0,1,5,0,1,0\n7,0,1,1,10,");
    assert_fails(import_with("07_tracks.csv", NULL), DT_EDATA, "07_tracks.csv:3: 6 cells, the header has 17");
}

#define INTERACTION "track_id,frame_id,timestamp_ms,agent_type,x,y,vx,vy,psi_rad,length,width\n"

static void test_interaction(void **state)
{
    assert_ok(dt_fs_mkdirs(at("DR_X")));
    put("DR_X/vehicle_tracks_000.csv", INTERACTION "1,1,100,car,1000,990,3,4,0.9272952180016122,4.5,1.8\n"
                                                   "1,2,200,car,1000.3,990.4,3,4,0.9272952180016122,4.5,1.8\n"
                                                   "2,2,200,car,1010,990,-1,0,0,4,1.7\n"
                                                   "P1,2,200,pedestrian/bicycle,1,1,0,0,,,\n");
    const dt_store_view *v = import("DR_X/vehicle_tracks_000.csv", NULL);
    assert_true(v->frame_rate_hz == 10);
    assert_int_equal(v->n_rows, 3);
    assert_string_equal(v->scene[0], "DR_X/vehicle_tracks_000");
    assert_string_equal(v->site[0], "DR_X");
    assert_true(fabs(v->motion[0] - 5) < 1e-6 && fabs(v->pose[2] - atan2(4, 3)) < 1e-12);
    assert_true(v->motion[4 * 2] == -1 && v->pose[3 * 2 + 2] == 0); /* backwards */
    assert_non_null(strstr(dt_str_text(&report), "1 rows of people"));

    put("DR_X/cases.csv", "case_id,track_id,frame_id,timestamp_ms,agent_type,x,y,vx,vy,psi_rad,length,width\n"
                          "1.0,1,1,100,car,0,0,3,0,0,4.5,1.8\n2.0,1,1,100,car,0,0,3,0,0,4.5,1.8\n");
    v = import("DR_X/cases.csv", &(dt_import_options){.site = "here"});
    assert_int_equal(v->n_scenes, 2);
    assert_string_equal(v->scene[1], "here/cases/2.0");
    assert_string_equal(v->site[0], "here");
    put("DR_X/t.csv", INTERACTION "1,1,100,car,0,0,300,4,0,4.5,1.8\n");
    assert_fails(import_with("DR_X/t.csv", NULL), DT_EDATA, "t.csv:2: vx = 300 is 300, outside [-150, 150] of vx");
    put("DR_X/t.csv", INTERACTION "1,1,100,car,0,0,3,4,0,4.5,1.8\n1,2,230,car,0,0,3,4,0,4.5,1.8\n");
    assert_fails(import_with("DR_X/t.csv", NULL), DT_EDATA, "t.csv:3: timestamp_ms = 230 is 1.300 frames of 10 Hz");
    put("DR_X/t.csv", INTERACTION "P1,2,200,pedestrian/bicycle,1,1,0,0,,,\n");
    assert_fails(import_with("DR_X/t.csv", NULL), DT_EDATA, "contains no data");
}

static void test_headings_from_motion(void **state)
{
    const dt_store_view *v = import_text("frame,id,x,y,heading,speed\n"
                                         "0,1,0,0,,5\n" /* not a metre yet: unknown */
                                         "1,1,0,0.9,,5\n"
                                         "2,1,0,1.1,,5\n"
                                         "3,1,0,1.1,0.3,5\n" /* given */
                                         "4,1,-5,1.1,,5\n",
                                         &(dt_import_options){.frame_rate_hz = 5, .site = "here"});
    const double want[] = {NAN, NAN, M_PI / 2, 0.3, M_PI};
    assert_true(isnan(v->pose[2]) && isnan(v->pose[5]));
    for (int i = 2; i < 5; i++) {
        assert_true(fabs(v->pose[3 * i + 2] - want[i]) < 1e-12);
    }
    assert_string_equal(v->site[0], "here");
    assert_string_equal(v->scene[0], "t"); /* the file's name */
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static dt_str said;

static void hear(void *user, int level, const char *line)
{
    dt_str_addf(&said, "%d %s\n", level, line);
}

/* Two vehicles on a road along +y for 10 s at 10 Hz, 20 m/s and 4.5 m long, in these units. */
static const char *hear_units(const char *header, double position, double speed, double length, double turn,
                              const char *map)
{
    dt_str t = {0};
    dt_str_addf(&t, "%s\n", header);
    for (int f = 0; f <= 100; f++) {
        for (int id = 0; id < 2; id++) {
            const double noise = 0.1 * ((f * 7 + id) % 5 - 2); /* cameras are not exact */
            dt_str_addf(&t, "%d,%d,%.3f,%.3f,%.4f,%.2f,%.2f\n", f, id, 3.0 * id * position,
                        (2.0 * f + noise) * position, M_PI_2 * turn, 20 * speed, 4.5 * length);
        }
    }
    const dt_import_options opt = {.columns = map, .frame_rate_hz = 10};
    dt_str_clear(&said);
    dt_log_sink_set(hear, NULL);
    import_text(dt_str_text(&t), &opt);
    dt_log_sink_set(NULL, NULL);
    dt_str_fini(&t);
    return dt_str_text(&said);
}

static void hears(const char *text, const char *first, const char *last)
{
    if (strstr(text, first) == NULL || strstr(text, last) == NULL) {
        fail_msg("\"%s\" and \"%s\" are not in: %s", first, last, text);
    }
}

#define OWN  "frame,id,x,y,heading,speed,length"
#define FEET "x=x*0.3048,y=y*0.3048"

static void test_units_in_doubt(void **state)
{
    const double ft = 1 / 0.3048, degrees = 180 / M_PI;
    assert_string_equal(hear_units(OWN, 1, 1, 1, 1, NULL), "");
    hears(hear_units(OWN, 1, 3.6, 1, 1, NULL),
          "t.csv: speeds are 3.60 times those of the positions, as if speeds were in km/h\n",
          "--set 'import.columns=frame=frame,id=id,x=x,y=y,heading=heading,speed=speed/3.6,length=length'\n");
    hears(hear_units(OWN, 1, 1 / 0.44704, 1, 1, NULL), "as if speeds were in mph\n", "speed=speed*0.44704,");
    hears(hear_units(OWN, 1, ft, 1, 1, NULL), "as if speeds were in ft/s\n", "speed=speed*0.3048,");
    hears(hear_units(OWN, ft, 1, 1, 1, NULL),
          "speeds are 0.30 times those of the positions, as if positions were in feet\n", FEET);
    hears(hear_units(OWN, ft, 1 / 0.44704, 1, 1, NULL), "as if speeds were in mph and positions were in feet\n", FEET);
    hears(hear_units(OWN, ft, ft, ft, 1, NULL), "vehicles are 14.8 m long on average, as if they were in feet\n",
          "=frame=frame,id=id," FEET ",heading=heading,speed=speed*0.3048,length=length*0.3048'\n");
    hears(hear_units(OWN, ft, ft, 1, 1, NULL),
          "what moves has 65.6 m/s on average, as if speeds and positions were in feet\n", FEET);
    hears(hear_units(OWN, 1, 1, 1, degrees, NULL),
          "headings reach 90, and a turn is 6.283 rad: as if they were in degrees\n", "heading=heading*0.0174533,");
    hears(hear_units(OWN, 1, 2.5, 1, 1, NULL),
          "speeds are 2.5 times those of the positions at 10 Hz: is import.frame_rate_hz right", "");
    /* a map of one's own, with the column's names; what it converts is in no doubt */
    hears(hear_units("f,car,X,Y,H,V,L", 1, 3.6, 1, degrees, "frame=f,id=car,x=X,y=Y,heading=H,speed=V"), "km/h\n",
          "import.columns=frame=f,id=car,x=X,y=Y,heading=H*0.0174533,speed=V/3.6'\n");
    assert_string_equal(hear_units("f,car,X,Y,H,V,L", 1, 3.6, 1, degrees,
                                   "frame=f,id=car,x=X,y=Y,heading=H*0.0174533,speed=V*0.277778"),
                        "");
    hears(hear_units("f,car,X,Y,H,V,L", ft, ft, ft, 1, "frame=f,id=car,x=X*0.3048,y=Y*0.3048,speed=V*0.3048,length=L"),
          "14.8 m long", "x=X*0.3048,y=Y*0.3048,speed=V*0.3048,length=L*0.3048'\n");
    dt_str_fini(&said);
}

/* Vehicles whose speed changes by 7.5 m/s in a second: brakes do that, no engine. */
static const char *hear_change(double first_mps, double change)
{
    dt_str t = {0};
    dt_str_add(&t, OWN "\n");
    for (int f = 0; f <= 20; f++) {
        for (int id = 0; id < 20; id++) {
            const double s = 0.1 * f;
            dt_str_addf(&t, "%d,%d,%.4f,%d,0,%.4f,4.5\n", f, id, first_mps * s + change * s * s / 2, 20 * id,
                        first_mps + change * s);
        }
    }
    dt_str_clear(&said);
    dt_log_sink_set(hear, NULL);
    import_text(dt_str_text(&t), &(dt_import_options){.frame_rate_hz = 10});
    dt_log_sink_set(NULL, NULL);
    dt_str_fini(&t);
    return dt_str_text(&said);
}

static void test_steep_gains(void **state)
{
    assert_string_equal(hear_change(20, -7.5), "");
    assert_string_equal(hear_change(5, 4), "");
    hears(hear_change(5, 7.5), "gain more than 5 m/s", FEET);
    dt_str_fini(&said);
}

/* What a table's rows say of their frame rate. */
static void test_frame_rate_in_rows(void **state)
{
    static const char text[] = "frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,25\n1,1,0.2,0,5,25\n";
    assert_true(import_text(text, NULL)->frame_rate_hz == 25);
    assert_non_null(strstr(dt_str_text(&report), "columns: dtrain, 25 Hz"));
    assert_true(import_text(text, &(dt_import_options){.frame_rate_hz = 50})->frame_rate_hz == 50);
    assert_true(import_text("f,car,X,Y,V,fps\n0,1,0,0,5,29.97\n",
                            &(dt_import_options){.columns = "frame=f,id=car,x=X,y=Y,speed=V,frame_rate_hz=fps"})
                    ->frame_rate_hz == 29.97);
    refuse_text("frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,25\n1,1,0.2,0,5,10\n", NULL, DT_EDATA,
                "t.csv:3: frame_rate_hz = 10, but rows before are of 25 Hz");
    refuse_text("frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,\n", NULL, DT_EDATA, "frame_rate_hz is empty");
    refuse_text("frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,0\n", NULL, DT_EDATA, "outside [0.1, 1000]");
}

static void test_column_map(void **state)
{
    static const char text[] = "when;,car,X,Y,V\n0,7,10,20,36\n0.2,7,20,20,36\n0.6,7,40,20,36\n";
    dt_import_options opt = {.columns = "time=when;,id=car,x=X*0.5,y=Y,speed=V*0.27777777777777779",
                             .frame_rate_hz = 5};
    const dt_store_view *v = import_text(text, &opt);
    assert_int_equal(v->n_rows, 3);
    assert_int_equal(v->n_frames, 4); /* a hole of one frame */
    assert_true(v->pose[3] == 10 && fabs(v->motion[0] - 10) < 1e-5);
    opt.frame_rate_hz = 0; /* times say it */
    assert_true(import_text(text, &opt)->frame_rate_hz == 5);
    opt.frame_rate_hz = 4;
    refuse_text(text, &opt, DT_EDATA, "t.csv:3: when; = 0.2 is 0.800 frames of 4 Hz after the first row");
    opt.columns = "time=when;,id=car,x=X,y=Y,speed=Vel";
    refuse_text(text, &opt, DT_EDATA, "t.csv:1: there is no column \"Vel\" for speed, did you mean \"V\"?");
    opt.columns = "time=when;,id=car,x=X,y=Y";
    refuse_text(text, &opt, DT_EDATA, "t.csv:1: no column for speed");
    opt.columns = "id=car,x=X,y=Y,speed=V";
    refuse_text(text, &opt, DT_EDATA, "no column for frame or time");
    refuse_text(text, &opt, DT_EDATA, "speed=V,frame=COLUMN or time=COLUMN'");
    opt.columns = "spede=V";
    refuse_text(text, &opt, DT_EINVAL, "no role \"spede\", did you mean \"speed\"?");
    opt.columns = "x=X*0";
    refuse_text(text, &opt, DT_EINVAL, "factor \"0\"");
    opt.columns = "x";
    refuse_text(text, &opt, DT_EINVAL, "\"x\" is not role=column");
    refuse_text(text, NULL, DT_EDATA, "t.csv:1: unknown columns \"when;,car,X,Y,V\"");
    refuse_text("id,frame,x,y\n1,0,0,0\n", NULL, DT_EDATA, "t.csv:1: no column for speed, and none for vx and vy");
}

static void test_order_of_rows(void **state)
{
    dt_import_options opt = {.frame_rate_hz = 5};
    refuse_text("frame,id,x,y,speed\n0,1,0,0,5\n2,1,0,0,5\n1,1,0,0,5\n", &opt, DT_EDATA,
                "t.csv:4: time goes backwards: vehicle 1 of scene t is in frame 1 here and in frame 2 before (line 3)");
    refuse_text("frame,id,x,y,speed\n0,1,0,0,5\n0,2,9,0,5\n0,1,0,1,5\n", &opt, DT_EDATA,
                "t.csv:4: vehicle 1 is in frame 0 of scene t twice (before in line 2)");
    opt.is_unordered = true;
    assert_int_equal(import_text("frame,id,x,y,speed\n0,1,0,0,5\n2,1,0,0,5\n1,1,0,0,5\n", &opt)->n_rows, 3);
}

/* Several files at once: vehicles of one are no vehicles of another, whatever their numbers. */
static void test_several_files(void **state)
{
    const dt_import_options opt = {.frame_rate_hz = 5, .part_bytes = 1 << 20};
    put("a.csv", "frame,id,x,y,speed\n0,1,0,0,5\n1,1,1,0,5\n");
    put("b.part.csv", "id,frame,x,y,speed,site\n1,7,0,0,5,hill\n");
    put("rate.csv", "frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,10\n");
    put("named.csv", "scene,frame,id,x,y,speed\na,0,1,0,0,5\n");
    const char *both[] = {at("a.csv"), at("b.part.csv")};
    close_all();
    assert_ok(dt_data_import(both, 2, at("s"), &opt, &report));
    assert_ok(dt_store_open(at("s"), &store));
    const dt_store_view *v = dt_store_view_of(store);
    assert_int_equal(v->n_scenes, 2);
    assert_int_equal(v->n_rows, 3);
    assert_int_equal(v->n_tracks, 2);
    assert_string_equal(v->scene[0], "a");
    assert_string_equal(v->scene[1], "b.part");
    assert_string_equal(v->site[v->scene_site[1]], "hill");
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    const char *rates[] = {at("a.csv"), at("rate.csv")};
    assert_fails(dt_data_import(rates, 2, at("s"), &(dt_import_options){0}, &report), DT_EINVAL,
                 "import.frame_rate_hz");
    const char *other[] = {at("rate.csv"), at("a.csv")};
    assert_fails(dt_data_import(other, 2, at("s"), &(dt_import_options){0}, &report), DT_EINVAL,
                 "import.frame_rate_hz");
    put("five.csv", "frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,5\n");
    const char *differ[] = {at("rate.csv"), at("five.csv")};
    assert_fails(dt_data_import(differ, 2, at("s"), NULL, &report), DT_EDATA, "five.csv of 5 Hz: a store has one");
    const char *twice[] = {at("a.csv"), at("named.csv")};
    assert_fails(dt_data_import(twice, 2, at("s"), &opt, &report), DT_EDATA, "named.csv:2: scene a is in ");
    const char *folder[] = {at("a.csv"), top};
    assert_fails(dt_data_import(folder, 2, at("s"), &opt, &report), DT_EINVAL, "a folder is imported alone");
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
}

typedef struct seen {
    uint64_t done[2], total[2];
    int n[2];
    bool is_wrong;
} seen;

static void see(void *user, const dt_import_progress *p)
{
    seen *s = user;
    const int stage = p->is_storing;
    s->is_wrong |= p->done < s->done[stage] || p->done > p->total || (s->n[stage] > 0 && p->total != s->total[stage]) ||
                   (stage == 0 && s->n[1] > 0) || p->is_chunks;
    s->done[stage] = p->done;
    s->total[stage] = p->total;
    s->n[stage]++;
}

/* Bytes of all files first, then rows; both to the end. */
static void test_progress(void **state)
{
    dt_str t = {0};
    uint64_t bytes = 0;
    dt_str_add(&t, "frame,id,x,y,speed\n");
    for (int f = 0; f < 20000; f++) {
        dt_str_addf(&t, "%d,1,%d,0,5\n", f, f);
    }
    put("a.csv", dt_str_text(&t));
    put("b.csv", dt_str_text(&t));
    bytes = 2 * t.bytes;
    dt_str_fini(&t);
    seen s = {.is_wrong = false};
    const dt_import_options opt = {.frame_rate_hz = 5, .part_bytes = 1 << 20, .progress = see, .progress_user = &s};
    close_all();
    assert_ok(dt_data_import((const char *[]){at("a.csv"), at("b.csv")}, 2, at("s"), &opt, &report));
    assert_false(s.is_wrong);
    assert_true(s.n[0] >= 2 * 4 && s.n[1] >= 2);
    assert_int_equal(s.done[0], bytes);
    assert_int_equal(s.total[0], bytes);
    assert_int_equal(s.done[1], 40000);
    assert_int_equal(s.total[1], 40000);
}

static void test_bad_cells(void **state)
{
    static const struct {
        const char *row, *words;
    } bad[] = {
        {"A_B-1,0,1,car,4,2,nan,0,0,5,0", "t.csv:2: x_m is \"nan\", not a finite number"},
        {"A_B-1,0,1,car,4,2,inf,0,0,5,0", "x_m is \"inf\""},
        {"A_B-1,0,1,car,4,2,1e999,0,0,5,0", "x_m is \"1e999\""},
        {"A_B-1,0,1,car,4,2,12m,0,0,5,0", "x_m is \"12m\""},
        {"A_B-1,0,1,car,-4,2,0,0,0,5,0", "length_m = -4 is -4, outside [0, 100] of length"},
        {"A_B-1,0,1,car,4,-2,0,0,0,5,0", "width_m = -2"},
        {"A_B-1,0,1,car,4,2,0,0,0,500,0", "speed_mps = 500 is 500, outside [-150, 150] of speed"},
        {"A_B-1,0,1,car,4,2,0,0,0,,0", "speed_mps is empty, but speed is needed"},
        {"A_B-1,,1,car,4,2,0,0,0,5,0", "frame is empty"},
        {"A_B-1,0.5,1,car,4,2,0,0,0,5,0", "frame is \"0.5\", not an integer"},
        {"A_B-1,0,,car,4,2,0,0,0,5,0", "vehicle_id is empty, but id is needed"},
        {"A_B-1,0,1,car,4,2,0,0,0,5,-2000", "accel_mps2 = -2000"},
        {",0,1,car,4,2,0,0,0,5,0", "the scene's name \"\" is empty"},
        {"A#1,0,1,car,4,2,0,0,0,5,0", "has a '#'"},
        {"A_B-1,0,1,car,4,2,0,0,0,5", "t.csv:2: 10 cells, the header has 11"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_str t = {0};
        dt_str_addf(&t, "%s%s\n", COMMONROAD, bad[i].row);
        refuse_text(dt_str_text(&t), NULL, DT_EDATA, bad[i].words);
        dt_str_fini(&t);
    }
    refuse_text(COMMONROAD, NULL, DT_EDATA, "t.csv contains no data: a header and no row");
    refuse_text("\n\n", NULL, DT_EDATA, "contains no data: not even a header");
    refuse_text("", NULL, DT_EDATA, "t.csv is empty");
    assert_fails(import_with("gone", NULL), DT_ENOTFOUND, "there is no recording at");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_fails(import_with("pipe", NULL), DT_EDATA, "is a pipe, a socket or a device");
    put("s", "taken");
    put("t.csv", COMMONROAD "A_B-1,0,1,car,4,2,0,0,0,5,0\n");
    assert_fails(dt_data_import(&(const char *){at("t.csv")}, 1, at("s"), NULL, &report), DT_EINVAL, "exists already");
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commonroad, begin, finish),
        cmocka_unit_test_setup_teardown(test_ngsim, begin, finish),
        cmocka_unit_test_setup_teardown(test_ngsim_files, begin, finish),
        cmocka_unit_test_setup_teardown(test_ngsim_portal, begin, finish),
        cmocka_unit_test_setup_teardown(test_units_in_doubt, begin, finish),
        cmocka_unit_test_setup_teardown(test_steep_gains, begin, finish),
        cmocka_unit_test_setup_teardown(test_frame_rate_in_rows, begin, finish),
        cmocka_unit_test_setup_teardown(test_us101_single, begin, finish),
        cmocka_unit_test_setup_teardown(test_highd, begin, finish),
        cmocka_unit_test_setup_teardown(test_ind, begin, finish),
        cmocka_unit_test_setup_teardown(test_interaction, begin, finish),
        cmocka_unit_test_setup_teardown(test_headings_from_motion, begin, finish),
        cmocka_unit_test_setup_teardown(test_column_map, begin, finish),
        cmocka_unit_test_setup_teardown(test_order_of_rows, begin, finish),
        cmocka_unit_test_setup_teardown(test_progress, begin, finish),
        cmocka_unit_test_setup_teardown(test_several_files, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_cells, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
