/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of docs/reference/recording-files.md for tests: each row of them is tested, and what is tested is in them.
 * A table is known by the heading before it; a cell of elements has one or more of them, separated by ';'. And a number
 * made of all that a store holds.
 */
#ifndef DTRAIN_TESTS_DATA_DOCUMENTED_H
#define DTRAIN_TESTS_DATA_DOCUMENTED_H

#include "fixture.h"

#include "traffic/store/store.h"

typedef struct documented {
    char title[160], element[160], outcome[16];
    bool is_tested;
} documented;

enum { DOCUMENTED_MOST = 1000 };

static const char *documented_tree(void)
{
    const char *tree = getenv("DT_SRCDIR");
    return tree != NULL ? tree : ".";
}

/* An element as it is written, without the signs of code. */
static void documented_copy(char *out, size_t bytes, const char *from, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k + 1 < bytes; i++) {
        if (from[i] != '`') {
            out[k++] = from[i];
        }
    }
    while (k > 0 && out[k - 1] == ' ') {
        k--;
    }
    out[k] = '\0';
}

static void documented_row(documented *page, int *n, const char *title, const char *line)
{
    const char *second = strstr(line + 2, " | ");
    assert_non_null(second);
    for (const char *p = line + 2; p < second;) {
        const size_t left = (size_t)(second - p), bytes = strcspn(p, ";") < left ? strcspn(p, ";") : left;
        documented *d = &page[(*n)++];
        assert_true(*n < DOCUMENTED_MOST);
        documented_copy(d->title, sizeof(d->title), title, strlen(title));
        documented_copy(d->element, sizeof(d->element), p, bytes);
        documented_copy(d->outcome, sizeof(d->outcome), second + 3, strcspn(second + 3, " :"));
        p += bytes + 1;
        p += strspn(p, " ");
    }
}

/* All rows, ended by one without a title; freed by documented_finish. */
static documented *documented_read(void)
{
    char path[1100], line[2000], title[160] = "";
    int n = 0;
    documented *page = dt_alloc_n(DOCUMENTED_MOST, sizeof(*page));
    snprintf(path, sizeof(path), "%s/docs/reference/recording-files.md", documented_tree());
    FILE *in = fopen(path, "r");
    assert_non_null(page);
    assert_non_null(in);
    while (fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "## ", 3) == 0) {
            snprintf(title, sizeof(title), "%.150s", line + 3);
        } else if (strncmp(line, "| ", 2) == 0 && strncmp(line, "| element |", 11) != 0) {
            documented_row(page, &n, title, line);
        }
    }
    fclose(in);
    assert_true(n > 0);
    return page;
}

/* A test of this element of this table says what happens. */
__attribute__((unused)) static void documented_mark(documented *page, const char *title, const char *element,
                                                    const char *outcome)
{
    for (documented *d = page; d->title[0] != '\0'; d++) {
        if (!d->is_tested && strcmp(d->title, title) == 0 && strcmp(d->element, element) == 0 &&
            strcmp(d->outcome, outcome) == 0) {
            d->is_tested = true;
            return;
        }
    }
    fail_msg("docs/reference/recording-files.md, %s: no row says that %s is %s", title, element, outcome);
}

/* No row of a table is without a test; title NULL: of all that elements.txt can have, which are no binary files. */
static void documented_finish(documented *page, const char *title)
{
    int n = 0;
    for (const documented *d = page; d->title[0] != '\0'; d++) {
        const bool is_binary = strcmp(d->title, "numpy arrays") == 0 || strcmp(d->title, "HDF5") == 0;
        const bool is_here = title == NULL ? !is_binary : strcmp(d->title, title) == 0;
        n += is_here;
        if (is_here && !d->is_tested) {
            fail_msg("docs/reference/recording-files.md, %s: no test of %s, which is %s", d->title, d->element,
                     d->outcome);
        }
    }
    assert_true(n > 0);
    dt_free(page);
}

static uint64_t documented_mix(uint64_t h, const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) { /* FNV-1a */
        h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211u;
    }
    return h;
}

/* Of everything that a store holds but where it came from. */
static uint64_t documented_print(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    const struct {
        const void *p;
        int64_t n;
        size_t bytes;
    } arrays[] = {{&v->frame_rate_hz, 1, 8},
                  {v->scene_frame, v->n_scenes + 1, 8},
                  {v->frame_row, v->n_frames + 1, 8},
                  {v->frame_time, v->n_frames, 8},
                  {v->pose, v->n_rows, 24},
                  {v->motion, v->n_rows, 16},
                  {v->node, v->n_rows, 36},
                  {v->row_track, v->n_rows, 4},
                  {dt_store_track_ids(s), v->n_tracks, 8},
                  {v->scene_map, v->n_maps > 0 ? v->n_scenes : 0, 4},
                  {v->lane_point, v->n_maps > 0 ? v->n_lanes + 1 : 0, 8},
                  {v->lane_xy, v->n_lane_points, 16},
                  {v->lane_width, v->n_lane_points, 4},
                  {v->lane_kind, v->n_lanes, 4},
                  {v->lane_limit, v->n_lanes, 4},
                  {v->lane_id, v->n_lanes, 8},
                  {v->lane_next_ptr, v->n_maps > 0 ? v->n_lanes + 1 : 0, 8},
                  {v->lane_next, v->n_lane_links, 4},
                  {v->lane_left, v->n_lanes, 4},
                  {v->lane_right, v->n_lanes, 4}};
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        h = documented_mix(h, arrays[i].p, (size_t)arrays[i].n * arrays[i].bytes);
    }
    for (int64_t i = 0; i < v->n_scenes; i++) {
        const char *site = v->site[v->scene_site[i]];
        h = documented_mix(h, v->scene[i], strlen(v->scene[i]) + 1);
        h = documented_mix(h, site, strlen(site) + 1);
    }
    for (int64_t i = 0; i < v->n_maps; i++) {
        h = documented_mix(h, v->map[i], strlen(v->map[i]) + 1);
    }
    return h;
}

#endif
