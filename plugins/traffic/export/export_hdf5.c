/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/export/export_hdf5.h"
#include "traffic/hdf5/hdf5_file.h"
#include "traffic/hdf5/hdf5_roads.h"
#include "traffic/store/cut.h"
#include "traffic/store/staging.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { STOP = 7, CONTROLLED = 8, PIECE_ROWS = 1 << 14, SMALL_CHUNK = 4096 };

typedef struct writing {
    const dt_hdf5_ops *ops;
    dt_hdf5 *file;
    const dt_store *s;
    int gzip;
    int64_t row_chunk, edge_chunk;
    unsigned char *room; /* [PIECE_ROWS, 9] f32 */
} writing;

typedef struct array {
    const char *name;
    uint32_t dtype;
    int64_t width, rows;
    const void *data;
} array;

static dt_status write_array(const writing *w, const array *a)
{
    const int64_t chunk = a->rows == dt_store_view_of(w->s)->n_rows ? w->row_chunk : SMALL_CHUNK;
    DT_TRY(w->ops->make(w->file, a->name, a->dtype, a->width, a->rows, chunk, w->gzip));
    DT_TRY(w->ops->write(w->file, a->name, a->dtype, a->width, 0, a->rows, a->data));
    dt_store_release_pages(w->s);
    return DT_OK;
}

/* One of the arrays that may be packed. */
static dt_status write_slices(const writing *w, uint32_t which, const char *name, uint32_t dtype, int64_t width,
                              int64_t rows, int64_t chunk)
{
    const int64_t piece = chunk < PIECE_ROWS ? PIECE_ROWS / chunk * chunk : PIECE_ROWS;
    DT_TRY(w->ops->make(w->file, name, dtype, width, rows, chunk, w->gzip));
    for (int64_t r = 0; r < rows; r += piece) {
        const int64_t n = rows - r < piece ? rows - r : piece;
        DT_TRY(dt_store_read(w->s, which, r, n, w->room));
        DT_TRY(w->ops->write(w->file, name, dtype, width, r, n, w->room));
        dt_store_release_pages(w->s);
    }
    return DT_OK;
}

/* What features show of a recording besides pose and motion. */
static dt_status write_recorded(const writing *w, float *stop, unsigned char *controlled, float *node)
{
    const int64_t rows = dt_store_view_of(w->s)->n_rows;
    const float *exact = dt_store_stop_distance(w->s);
    for (int64_t r = 0; r < rows; r += PIECE_ROWS) {
        const int64_t n = rows - r < PIECE_ROWS ? rows - r : PIECE_ROWS;
        DT_TRY(dt_store_read(w->s, DT_STORE_NODE, r, n, node));
        for (int64_t i = 0; i < n; i++) {
            stop[r + i] = exact != NULL ? exact[r + i] : node[i * DT_NODE_FEATURES + STOP];
            controlled[r + i] = node[i * DT_NODE_FEATURES + CONTROLLED] != 0;
        }
    }
    DT_TRY(write_array(w, &(array){"stop_distance", DT_F32, 0, rows, stop}));
    return write_array(w, &(array){"controlled", DT_U8, 0, rows, controlled});
}

static dt_status write_arrays(const writing *w)
{
    const dt_store_view *v = dt_store_view_of(w->s);
    const array plain[] = {{"scene_frame", DT_I64, 0, v->n_scenes + 1, v->scene_frame},
                           {"scene_site", DT_I32, 0, v->n_scenes, v->scene_site},
                           {"frame_row", DT_I64, 0, v->n_frames + 1, v->frame_row},
                           {"frame_time", DT_F64, 0, v->n_frames, v->frame_time},
                           {"pose", DT_F64, 3, v->n_rows, v->pose},
                           {"motion", DT_F32, 4, v->n_rows, v->motion},
                           {"row_track", DT_I32, 0, v->n_rows, v->row_track},
                           {"track_ptr", DT_I64, 0, v->n_tracks + 1, v->track_ptr},
                           {"track_row", DT_I64, 0, v->n_rows, v->track_row},
                           {"track_id", DT_I64, 0, v->n_tracks, dt_store_track_ids(w->s)},
                           {"edge_ptr", DT_I64, 0, v->n_rows + 1, v->edge_ptr},
                           {"risk", DT_U8, 0, v->n_rows, v->risk},
                           {"accel_centred", DT_F32, 0, v->n_rows, v->accel_centred}};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (plain[i].data != NULL) {
            DT_TRY(write_array(w, &plain[i]));
        }
    }
    const dt_packed_errors *e = &dt_store_packed(w->s)->errors; /* zeros of what is kept as it is */
    DT_TRY(write_array(w, &(array){"node_error", DT_F64, 0, DT_NODE_FEATURES, e->node}));
    DT_TRY(write_array(w, &(array){"edge_error", DT_F64, 0, DT_EDGE_FEATURES, e->edge}));
    DT_TRY(dt_hdf5_roads_write(w->ops, w->file, v, SMALL_CHUNK, w->gzip));
    DT_TRY(write_slices(w, DT_STORE_NODE, "node", DT_F32, DT_NODE_FEATURES, v->n_rows, w->row_chunk));
    DT_TRY(write_slices(w, DT_STORE_EDGE, "edge", DT_F32, DT_EDGE_FEATURES, v->n_edges, w->edge_chunk));
    DT_TRY(write_slices(w, DT_STORE_EDGE_SRC, "edge_src", DT_I32, 0, v->n_edges, w->edge_chunk));
    DT_TRY(w->ops->put_texts(w->file, "scene", v->scene, v->n_scenes));
    DT_TRY(w->ops->put_texts(w->file, "site", v->site, v->n_sites));
    DT_TRY(w->ops->put_number(w->file, "format", DT_HDF5_VERSION));
    return w->ops->put_number(w->file, "frame_rate_hz", v->frame_rate_hz);
}

static dt_status write_all(writing *w)
{
    const int64_t rows = dt_store_view_of(w->s)->n_rows;
    float *stop = dt_alloc_n((size_t)rows, sizeof(*stop));
    unsigned char *controlled = dt_alloc_n((size_t)rows, 1);
    w->room = dt_alloc_n(PIECE_ROWS, DT_NODE_FEATURES * sizeof(float));
    dt_status st = stop != NULL && controlled != NULL && w->room != NULL
                       ? write_arrays(w)
                       : DT_FAIL(DT_ENOMEM, "no memory to write %" PRId64 " rows", rows);
    if (st == DT_OK) {
        st = write_recorded(w, stop, controlled, (float *)(void *)w->room);
    }
    dt_free(stop);
    dt_free(controlled);
    dt_free(w->room);
    return st;
}

/* How long a sample takes to be read again: the first chunk of each second. */
static dt_status time_reading(const writing *w, const char *file, double *ms_p)
{
    const dt_store_view *v = dt_store_view_of(w->s);
    const int64_t n = w->row_chunk < v->n_rows ? w->row_chunk : v->n_rows;
    float *room = dt_alloc_n((size_t)n, DT_NODE_FEATURES * sizeof(*room));
    dt_hdf5 *f = NULL;
    int64_t n_read = 0;
    dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to read %s", file) : w->ops->open(file, &f);
    const double begin = dt_clock_s();
    for (int64_t r = 0; st == DT_OK && r + n <= v->n_rows && dt_clock_s() - begin < 0.1; r += n, n_read++) {
        st = w->ops->read(f, "node", DT_F32, DT_NODE_FEATURES, r, n, room);
    }
    *ms_p = n_read > 0 ? 1e3 * (dt_clock_s() - begin) / (double)n_read : 0;
    if (f != NULL) {
        (void)!w->ops->close(f);
    }
    dt_free(room);
    return st;
}

/* libhdf5 does not wait for the disk. */
static dt_status flush_file(const char *file, struct stat *out)
{
    int fd = -1;
    DT_TRY(dt_fs_open(file, O_RDONLY, &fd));
    const bool is_known = fstat(fd, out) == 0;
    DT_TRY(dt_fs_sync_close(fd, file));
    return is_known ? DT_OK : DT_FAIL(DT_EIO, "cannot examine %s", file);
}

static dt_status write_staged(writing *w, dt_staging *to, dt_str *notes)
{
    const char *aside = dt_staging_path(to);
    double ms = 0;
    struct stat sb;
    const double begin = dt_clock_s();
    DT_TRY(w->ops->create(aside, &w->file));
    dt_status st = write_all(w);
    const dt_status closed = w->ops->close(w->file);
    DT_TRY(st);
    DT_TRY(closed);
    const double s = dt_clock_s() - begin;
    DT_TRY(time_reading(w, aside, &ms));
    DT_TRY(flush_file(aside, &sb));
    DT_TRY(dt_staging_commit(to));
    dt_str_addf(notes,
                "%s: gzip %d, chunks of %" PRId64 " vehicles and %" PRId64
                " edges: %.1f MB of %.1f MB, written in %.2f s, "
                "%.2f ms to read the vehicles of a chunk\n",
                dt_staging_out(to), w->gzip, w->row_chunk, w->edge_chunk, 1e-6 * (double)sb.st_size,
                1e-6 * (double)dt_store_bytes(w->s), s, ms);
    return DT_OK;
}

/* Rows of so many seconds, on average. */
static int64_t rows_of_sample(const dt_store_view *v, int64_t rows)
{
    const double n = rint((double)rows / (double)v->n_frames * v->frame_rate_hz * DT_HDF5_SAMPLE_S);
    return n < 1 ? 1 : n < (double)(1 << 20) ? (int64_t)n : 1 << 20;
}

dt_status dt_hdf5_export(const char *store, const char *file, const dt_hdf5_options *opt, dt_str *notes)
{
    writing w = {.gzip = opt->gzip};
    dt_store *s = NULL;
    dt_staging *aside = NULL;
    if (opt->gzip < 0 || opt->gzip > 9 || opt->chunk_rows < 0) {
        return DT_FAIL(DT_EINVAL, "gzip %d is outside [0, 9], or chunks of %" PRId64 " rows", opt->gzip,
                       opt->chunk_rows);
    }
    DT_TRY(dt_staging_check(file, DT_STAGING_FILE));
    DT_TRY(dt_hdf5_open_module(&w.ops));
    DT_TRY(dt_store_open(store, &s));
    const dt_store_view *v = dt_store_view_of(s);
    w.s = s;
    w.row_chunk = opt->chunk_rows > 0 ? opt->chunk_rows : rows_of_sample(v, v->n_rows);
    w.edge_chunk = opt->chunk_rows > 0 ? opt->chunk_rows : rows_of_sample(v, v->n_edges);
    dt_status st = dt_cut_check_whole(s, "export");
    if (st == DT_OK) {
        st = dt_staging_open(file, DT_STAGING_FILE, &aside);
    }
    if (st == DT_OK) {
        st = write_staged(&w, aside, notes);
    }
    dt_staging_close(aside);
    dt_store_close(s);
    return st;
}
