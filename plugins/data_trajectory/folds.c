/* SPDX-License-Identifier: Apache-2.0
 *
 * See folds.h. Overlap is found by sampled fingerprints of motion (Broder 1997, shingles modulo a number): a stretch of
 * STRETCH frames of a moving vehicle is hashed by speed, acceleration and length, which stay the same however a source
 * shifts or turns a scene; one hash in SAMPLE is kept, by its value, so two scenes keep the same ones.
 */
#include "folds.h"
#include "dtrain/helpers.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRETCH = 8, /* rows; recorded speeds are rounded, fewer rows agree by chance */
    SAMPLE = 8,
    SHARED_MIN = 3 /* kept fingerprints in common that make two scenes one: about 3 s of one vehicle */
};
#define MOVING_MPS 1.0f

typedef struct print {
    uint64_t hash;
    int64_t scene;
} print;

typedef struct scene {
    const char *name;
    int64_t index;
    int32_t site;
} scene;

typedef struct group {
    int64_t head; /* its first scene */
    int64_t rows;
    int32_t site;
} group;

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int64_t head_of_scene(const int64_t *parent, int64_t s)
{
    while (parent[s] != s) {
        s = parent[s];
    }
    return s;
}

/* The smaller scene becomes the head, so the outcome does not depend on the order of pairs. */
static void unite_scene_groups(int64_t *parent, int64_t a, int64_t b)
{
    a = head_of_scene(parent, a);
    b = head_of_scene(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

static int compare_fingerprints(const void *pa, const void *pb)
{
    const print *a = pa, *b = pb;
    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    return (a->scene > b->scene) - (a->scene < b->scene);
}

/* FNV-1a over the site and the bits of the motion of STRETCH rows, mixed again at the end; 0 where the vehicle
 * hardly moves or keeps its speed, because then it moves like any other. */
static uint64_t fingerprint(const dt_store_view *v, int32_t site, const int64_t *row)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)site;
    int changes = 0;
    for (int k = 0; k < STRETCH; k++) {
        const float *m = v->motion + 4 * row[k]; /* speed, acceleration, length */
        if (m[0] < MOVING_MPS) {
            return 0;
        }
        changes += k > 0 && m[0] != v->motion[4 * row[k - 1]];
        for (int d = 0; d < 3; d++) {
            uint32_t bits;
            memcpy(&bits, &m[d], sizeof(bits));
            hash = (hash ^ bits) * UINT64_C(0x100000001b3);
        }
    }
    return changes < STRETCH / 2 ? 0 : (hash ^ (hash >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Kept fingerprints of all tracks; count alone where out is NULL. */
static uint64_t list_fingerprints(const dt_store_view *v, print *out)
{
    uint64_t n = 0;
    for (int64_t s = 0; s < v->n_scenes; s++) {
        const int64_t row = v->frame_row[v->scene_frame[s]], end = v->frame_row[v->scene_frame[s + 1]];
        if (row == end) {
            continue;
        }
        /* tracks of a scene are numbered together */
        int32_t first = v->row_track[row], last = first;
        for (int64_t r = row; r < end; r++) {
            first = v->row_track[r] < first ? v->row_track[r] : first;
            last = v->row_track[r] > last ? v->row_track[r] : last;
        }
        for (int64_t t = first; t <= last; t++) {
            for (int64_t p = v->track_ptr[t]; p + STRETCH <= v->track_ptr[t + 1]; p++) {
                const uint64_t hash = fingerprint(v, v->scene_site[s], v->track_row + p);
                if (hash == 0 || (hash >> 32) % SAMPLE != 0) {
                    continue;
                }
                if (out != NULL) {
                    out[n] = (print){hash, s};
                }
                n++;
            }
        }
    }
    return n;
}

/* Pairs of scenes with a kept fingerprint in common, once for each, into pair (hash: the first scene); returns how
 * many. A fingerprint that one scene has twice proves nothing: simulated vehicles often start alike. */
static uint64_t list_pairs(const print *list, uint64_t n, print *pair)
{
    uint64_t n_pairs = 0;
    for (uint64_t begin = 0, end; begin < n; begin = end) {
        int is_repeated = 0;
        for (end = begin + 1; end < n && list[end].hash == list[begin].hash; end++) {
            is_repeated |= list[end].scene == list[end - 1].scene;
        }
        for (uint64_t i = begin + 1; i < end && !is_repeated; i++) {
            pair[n_pairs++] = (print){(uint64_t)list[i - 1].scene, list[i].scene};
        }
    }
    return n_pairs;
}

/* Scenes of one site with SHARED_MIN or more fingerprints in common become one group. first: the first two that were
 * not one before; as it was where there are none. */
static dt_status unite_overlaps(const dt_host *h, const dt_store_view *v, int64_t *parent, int64_t first[2])
{
    const uint64_t n = list_fingerprints(v, NULL);
    if (n == 0) {
        return DT_OK;
    }
    print *list = h->alloc(h, n * sizeof(*list));
    print *pair = h->alloc(h, n * sizeof(*pair));
    if (list == NULL || pair == NULL) {
        h->release(h, list);
        h->release(h, pair);
        return DT_FAIL_H(h, DT_ENOMEM, "no memory to compare %lld scenes", (long long)v->n_scenes);
    }
    list_fingerprints(v, list);
    qsort(list, n, sizeof(*list), compare_fingerprints);
    const uint64_t n_pairs = list_pairs(list, n, pair);
    qsort(pair, n_pairs, sizeof(*pair), compare_fingerprints);
    for (uint64_t i = 0, run = 0; i < n_pairs; i++) {
        run = i > 0 && compare_fingerprints(&pair[i - 1], &pair[i]) == 0 ? run + 1 : 1;
        const int64_t a = (int64_t)pair[i].hash, b = pair[i].scene;
        if (run == SHARED_MIN && head_of_scene(parent, a) != head_of_scene(parent, b)) {
            if (first[0] < 0) {
                first[0] = a;
                first[1] = b;
            }
            unite_scene_groups(parent, a, b);
        }
    }
    h->release(h, list);
    h->release(h, pair);
    return DT_OK;
}

static int compare_scenes(const void *pa, const void *pb)
{
    const scene *a = pa, *b = pb;
    if (a->site != b->site) {
        return a->site < b->site ? -1 : 1;
    }
    const int by_name = strcmp(a->name, b->name);
    return by_name != 0 ? by_name : (a->index > b->index) - (a->index < b->index);
}

static int is_same_recording(const scene *a, const scene *b)
{
    const size_t n = strcspn(a->name, "#");
    return a->site == b->site && n == strcspn(b->name, "#") && memcmp(a->name, b->name, n) == 0;
}

static dt_status unite_recordings(const dt_host *h, const dt_store_view *v, int64_t *parent)
{
    scene *list = h->alloc(h, (uint64_t)v->n_scenes * sizeof(*list));
    if (list == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory to group %lld scenes", (long long)v->n_scenes);
    }
    for (int64_t s = 0; s < v->n_scenes; s++) {
        list[s] = (scene){v->scene[s], s, v->scene_site[s]};
    }
    qsort(list, (size_t)v->n_scenes, sizeof(*list), compare_scenes);
    for (int64_t i = 1; i < v->n_scenes; i++) {
        if (is_same_recording(&list[i - 1], &list[i])) {
            unite_scene_groups(parent, list[i - 1].index, list[i].index);
        }
    }
    h->release(h, list);
    return DT_OK;
}

/* ---- dealing ----------------------------------------------------------------------------------------------------- */

/* By site, then the largest first. */
static int compare_groups(const void *pa, const void *pb)
{
    const group *a = pa, *b = pb;
    if (a->site != b->site) {
        return a->site < b->site ? -1 : 1;
    }
    if (a->rows != b->rows) {
        return a->rows > b->rows ? -1 : 1;
    }
    return (a->head > b->head) - (a->head < b->head);
}

static uint64_t list_groups(const dt_store_view *v, const int64_t *parent, group *out)
{
    for (int64_t s = 0; s < v->n_scenes; s++) {
        out[s] = (group){.head = s, .site = v->scene_site[s]};
    }
    for (int64_t s = 0; s < v->n_scenes; s++) {
        out[head_of_scene(parent, s)].rows += v->frame_row[v->scene_frame[s + 1]] - v->frame_row[v->scene_frame[s]];
    }
    uint64_t n = 0;
    for (int64_t s = 0; s < v->n_scenes; s++) {
        if (head_of_scene(parent, s) == s) {
            out[n++] = out[s];
        }
    }
    qsort(out, n, sizeof(*out), compare_groups);
    return n;
}

/* The fold of every group into fold_of [n_scenes], by head. */
static void deal_groups(const group *g, uint64_t n, int64_t *load, int64_t n_folds, int64_t *fold_of)
{
    for (uint64_t i = 0; i < n; i++) {
        if (i == 0 || g[i].site != g[i - 1].site) {
            memset(load, 0, (size_t)n_folds * sizeof(*load));
        }
        int64_t least = 0;
        for (int64_t k = 1; k < n_folds; k++) {
            least = load[k] < load[least] ? k : least;
        }
        load[least] += g[i].rows;
        fold_of[g[i].head] = least;
    }
}

/* parent [n_scenes]: scenes that must stay together have one head. first: see unite_overlaps. */
static dt_status unite_scenes(const dt_host *h, const dt_store_view *v, int64_t *parent, int64_t first[2])
{
    for (int64_t s = 0; s < v->n_scenes; s++) {
        parent[s] = s;
    }
    DT_TRY_H(unite_recordings(h, v, parent));
    return unite_overlaps(h, v, parent, first);
}

dt_status folds_deal(const dt_host *h, const dt_store_view *v, int64_t n_folds, int64_t fold, uint8_t *is_held)
{
    const uint64_t n = (uint64_t)v->n_scenes;
    int64_t *parent = h->alloc(h, n * sizeof(*parent));
    int64_t *fold_of = h->alloc(h, n * sizeof(*fold_of));
    int64_t *load = h->alloc(h, (uint64_t)n_folds * sizeof(*load));
    group *list = h->alloc(h, n * sizeof(*list));
    dt_status st = DT_OK;
    if (parent == NULL || fold_of == NULL || load == NULL || list == NULL) {
        st = DT_FAIL_H(h, DT_ENOMEM, "no memory to deal %lld scenes", (long long)v->n_scenes);
    } else {
        int64_t first[2] = {-1, -1};
        st = unite_scenes(h, v, parent, first);
    }
    if (st == DT_OK) {
        deal_groups(list, list_groups(v, parent, list), load, n_folds, fold_of);
        for (uint64_t s = 0; s < n; s++) {
            is_held[s] = fold_of[head_of_scene(parent, (int64_t)s)] == fold;
        }
    }
    h->release(h, parent);
    h->release(h, fold_of);
    h->release(h, load);
    h->release(h, list);
    return st;
}

dt_status folds_find_shared(const dt_host *h, const dt_store_view *v, int64_t first[2])
{
    int64_t *parent = h->alloc(h, (uint64_t)v->n_scenes * sizeof(*parent));
    if (parent == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory to group %lld scenes", (long long)v->n_scenes);
    }
    first[0] = first[1] = -1;
    const dt_status st = unite_scenes(h, v, parent, first);
    h->release(h, parent);
    return st;
}

static dt_status check_site(const dt_host *h, const dt_store_view *v, const char *name)
{
    for (uint32_t i = 0; i < v->n_sites; i++) {
        if (strcmp(v->site[i], name) == 0) {
            return DT_OK;
        }
    }
    char list[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < v->n_sites && used + 1 < sizeof(list); i++) {
        int n = snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : ", ", v->site[i]);
        if (n > 0) {
            used += (size_t)n;
        }
    }
    return DT_FAIL_H(h, DT_ECONFIG, "data_trajectory.eval_site \"%s\" is not among the store's sites: %s", name, list);
}

dt_status folds_of_site(const dt_host *h, const dt_store_view *v, const char *site, uint8_t *is_held)
{
    DT_TRY_H(check_site(h, v, site));
    for (int64_t s = 0; s < v->n_scenes; s++) {
        is_held[s] = strcmp(v->site[v->scene_site[s]], site) == 0;
    }
    return DT_OK;
}
