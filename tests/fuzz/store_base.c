/* SPDX-License-Identifier: Apache-2.0
 *
 * See store.h.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/store.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "traffic/store/cut.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCENES = 3, FRAMES = 7, CARS = 4, PATH_BYTES = 128 };
#define RATE_HZ  5.0
#define RADIUS_M 40.0

static char folder[PATH_BYTES / 2]; /* where stores are written, and from where they are read at once */

static const char *in_folder(const char *name, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/%.60s", folder, name);
    return out;
}

/* ---- a recording ------------------------------------------------------------------------------------------------- */

/* Two lanes next to each other, and one that follows the first. */
static int32_t make_map(dt_store_writer *w)
{
    static const double right[] = {-100, 0, 60, 0}, left[] = {-100, 4, 60, 4}, on[] = {60, 0, 90, 5, 300, 8};
    static const double width[] = {3.5, 3.5, 3};
    const dt_road_lane lane[3] = {{.id = 7, .kind = DT_LANE_ROAD, .limit = 14, .xy = right, .width = width, .n = 2},
                                  {.id = 8, .kind = DT_LANE_BUS, .xy = left, .n = 2},
                                  {.id = -9, .kind = DT_LANE_RAMP, .xy = on, .width = width, .n = 3}};
    dt_roads roads = {.n_lanes = 0};
    int32_t number = 0, map = -1;
    for (int i = 0; i < 3; i++) {
        fuzz_hold(dt_roads_lane(&roads, "a lane", &lane[i], &number) == DT_OK);
    }
    roads.left[0] = 1;
    roads.right[1] = 0;
    fuzz_hold(dt_roads_link(&roads, 0, 2) == DT_OK && dt_roads_seal(&roads) == DT_OK);
    fuzz_hold(dt_store_map(w, "map", &roads, &map) == DT_OK);
    dt_roads_fini(&roads);
    return map;
}

/* Cars in two lanes; one comes late, one goes early, one brakes, and nobody is in frame 3. */
static uint32_t make_frame(int scene, int frame, dt_vehicle v[CARS])
{
    uint32_t n = 0;
    for (int c = 0; c < CARS - scene % 2; c++) {
        const double t = frame / RATE_HZ, speed = 12 - 2.5 * c - (c == 1 ? 4 * t : 0);
        if (frame != 3 && !(c == 2 && frame < 2) && !(c == 3 && frame > 4)) {
            v[n++] = (dt_vehicle){.id = 10 * scene + c,
                                  .x = 11.0 * c + speed * t,
                                  .y = 4 * (c % 2) + 0.1 * scene,
                                  .heading = c == 3 ? M_PI : 0.05 * c,
                                  .speed = speed,
                                  .accel = NAN,
                                  .length = 4 + 0.5 * c,
                                  .width = c == 0 ? NAN : 1.9,
                                  .stop_distance = c == 1 ? 33 : NAN,
                                  .controlled = c == 0};
        }
    }
    return n;
}

static void write_store(const char *name, double smooth_s, bool has_roads, const dt_packing *packing)
{
    static const char *const scene[SCENES] = {"one", "two", "one#2"}, *const site[SCENES] = {"here", "there", "here"};
    const dt_store_meta meta = {.frame_rate_hz = RATE_HZ,
                                .radius_m = RADIUS_M,
                                .k_max = 3,
                                .smooth_s = smooth_s,
                                .source = "a recording",
                                .packing = *packing};
    char path[PATH_BYTES];
    dt_store_writer *w = NULL;
    fuzz_hold(dt_store_create(in_folder(name, path), &meta, &w) == DT_OK);
    const int32_t map = has_roads ? make_map(w) : -1;
    for (int s = 0; s < SCENES; s++) {
        fuzz_hold(dt_store_scene_begin(w) == DT_OK);
        fuzz_hold(dt_store_scene_map(w, s == 1 ? -1 : map) == DT_OK);
        for (int f = 0; f < FRAMES; f++) {
            dt_vehicle v[CARS];
            fuzz_hold(dt_store_frame(w, f, f / RATE_HZ, v, make_frame(s, f, v)) == DT_OK);
        }
        fuzz_hold(dt_store_scene_end(w, scene[s], site[s]) == DT_OK);
    }
    fuzz_hold(dt_store_commit(w) == DT_OK);
    dt_store_destroy(w);
}

static void write_base(uint32_t which, const char *name)
{
    const uint32_t zstd = dt_blocks_has_zstd() ? DT_CODEC_ZSTD : DT_CODEC_NONE;
    const dt_packing packing[STORE_BASES] = {[STORE_F16] = {.features = DT_KEPT_F16},
                                             [STORE_I8] = {.features = DT_KEPT_I8},
                                             [STORE_ZSTD] = {.codec = zstd},
                                             [STORE_I8_ZSTD] = {.features = DT_KEPT_I8, .codec = zstd}};
    char path[PATH_BYTES], out[PATH_BYTES];
    if (which != STORE_REGIONS) {
        write_store(name, which == STORE_PLAIN ? 0.5 : 0, which <= STORE_I8, &packing[which]);
        return;
    }
    const dt_cut_options cut = {.tile_m = 200, .halo_m = 170, .halo_s = 3}; /* as far as lanes are reported */
    dt_str notes = {0};
    write_store("whole", 0, true, &packing[which]);
    fuzz_hold(dt_data_cut(in_folder("whole", path), in_folder(name, out), &cut, &notes) == DT_OK);
    dt_str_fini(&notes);
}

/* ---- as files in memory ------------------------------------------------------------------------------------------ */

static void read_files(const char *name, store_files *out)
{
    char path[PATH_BYTES], **names = NULL;
    size_t n = 0;
    fuzz_hold(dt_fs_list(in_folder(name, path), &names, &n) == DT_OK && n <= STORE_FILES_MOST);
    for (size_t i = 0; i < n; i++) {
        store_file *f = &out->file[out->n++];
        char from[2 * PATH_BYTES], *text = NULL;
        snprintf(from, sizeof(from), "%s/%s", path, names[i]);
        snprintf(f->name, sizeof(f->name), "%s/%.36s", STORE_PATH, names[i]);
        fuzz_hold(dt_fs_read_all(from, 1 << 20, &text, &f->n) == DT_OK);
        f->bytes = malloc(f->n);
        fuzz_hold(f->bytes != NULL);
        memcpy(f->bytes, text, f->n);
        dt_free(text);
    }
    dt_fs_list_free(names, n);
}

const store_files *store_base(uint32_t which)
{
    static store_files base[STORE_BASES];
    if (base[which].n == 0) {
        snprintf(folder, sizeof(folder), "fuzz_store.%ld.tmp", (long)getpid());
        fuzz_real_files(1);
        fuzz_hold(dt_fs_mkdirs(folder) == DT_OK);
        write_base(which, "store");
        read_files("store", &base[which]);
        fuzz_hold(dt_fs_remove_tree(folder) == DT_OK);
        fuzz_real_files(0);
    }
    return &base[which];
}

void store_copy(const store_files *from, store_files *to)
{
    *to = *from;
    for (uint32_t i = 0; i < from->n; i++) {
        to->file[i].bytes = malloc(from->file[i].n);
        fuzz_hold(to->file[i].bytes != NULL);
        memcpy(to->file[i].bytes, from->file[i].bytes, from->file[i].n);
    }
}

void store_free(store_files *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        free(f->file[i].bytes);
    }
    f->n = 0;
}
