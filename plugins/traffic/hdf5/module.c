/* SPDX-License-Identifier: Apache-2.0
 *
 * The module of libhdf5: see hdf5_file.h. No call follows a link out of the file, and none reads what another
 * file or a filter besides shuffle, gzip and fletcher32 keeps.
 */
#include "traffic/hdf5/hdf5_file.h"

#include <hdf5.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(st, ...) (host->fail((st), __FILE__, __LINE__, __VA_ARGS__))
enum { RATIO_MOST = 1100 };      /* bytes that one packed by gzip can become */
enum { CHUNK_BYTES = 64 << 20 }; /* most of a chunk */

static const dt_hdf5_host *host;

struct dt_hdf5 {
    hid_t file, set; /* set: the array used last, -1: none */
    char *path, name[64];
    int is_new, is_broken; /* broken: a write failed */
};

static hid_t hdf5_type(uint32_t dtype)
{
    return dtype == DT_F32   ? H5T_IEEE_F32LE
           : dtype == DT_F64 ? H5T_IEEE_F64LE
           : dtype == DT_I32 ? H5T_STD_I32LE
           : dtype == DT_I64 ? H5T_STD_I64LE
                             : H5T_STD_U8LE;
}

static dt_status wrap_file(hid_t file, const char *path, int is_new, dt_hdf5 **out_p)
{
    if (file < 0) {
        return is_new ? FAIL(DT_EIO, "cannot write %s", path)
                      : FAIL(DT_EDATA, "%s: the HDF5 file is damaged, or not one", path);
    }
    dt_hdf5 *f = calloc(1, sizeof(*f));
    char *copy = strdup(path);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        H5Fclose(file);
        return FAIL(DT_ENOMEM, "no memory to open %s", path);
    }
    *f = (dt_hdf5){.file = file, .set = -1, .path = copy, .is_new = is_new};
    *out_p = f;
    return DT_OK;
}

static dt_status create_file(const char *path, dt_hdf5 **out_p)
{
    return wrap_file(H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), path, 1, out_p);
}

static dt_status open_file(const char *path, dt_hdf5 **out_p)
{
    return wrap_file(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), path, 0, out_p);
}

/* Closing an array writes what the library still holds of it. */
static void free_file(dt_hdf5 *f)
{
    if (f->set >= 0 && !f->is_broken) {
        f->is_broken = H5Dclose(f->set) < 0 && f->is_new;
    }
    f->set = -1;
    f->name[0] = '\0';
}

/* Once a write has failed, closing fails as well, and leaves the library a handle of memory that it has freed: such a
 * file is left open, for the few moments until the program ends (see the end of this file). */
static dt_status close_file(dt_hdf5 *f)
{
    free_file(f);
    if (f->is_new && !f->is_broken) {
        f->is_broken = H5Fflush(f->file, H5F_SCOPE_GLOBAL) < 0;
    }
    if (!f->is_broken) {
        f->is_broken = H5Fclose(f->file) < 0 && f->is_new;
    }
    const dt_status st =
        f->is_broken ? FAIL(DT_EIO, "cannot write %s: the disk is full, or a limit is reached", f->path) : DT_OK;
    free(f->path);
    free(f);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static dt_status make_set(dt_hdf5 *f, const char *name, hid_t type, int64_t width, int64_t rows, int64_t chunk_rows,
                          int gzip)
{
    const hsize_t dims[2] = {(hsize_t)rows, (hsize_t)width};
    const hsize_t chunk[2] = {(hsize_t)(chunk_rows < rows ? chunk_rows : rows), (hsize_t)width};
    const int n_dims = width == 0 ? 1 : 2;
    free_file(f);
    if (f->is_broken) {
        return FAIL(DT_EIO, "cannot write %s: the disk is full, or a limit is reached", f->path);
    }
    const hid_t space = H5Screate_simple(n_dims, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    herr_t ok = rows > 0 ? H5Pset_chunk(how, n_dims, chunk) : 0;
    if (ok >= 0 && rows > 0 && gzip > 0) {
        ok = H5Pset_shuffle(how);
    }
    if (ok >= 0 && rows > 0 && gzip > 0) {
        ok = H5Pset_deflate(how, (unsigned)gzip);
    }
    f->set = ok >= 0 && space >= 0 ? H5Dcreate2(f->file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT) : -1;
    H5Sclose(space);
    H5Pclose(how);
    f->is_broken = f->set < 0;
    if (f->is_broken) {
        return FAIL(DT_EIO, "cannot make %s in %s: gzip is missing from libhdf5, or the disk is full", name, f->path);
    }
    strncpy(f->name, name, sizeof(f->name) - 1);
    return DT_OK;
}

static dt_status make_array(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t rows,
                            int64_t chunk_rows, int gzip)
{
    return make_set(f, name, hdf5_type(dtype), width, rows, chunk_rows, gzip);
}

/* Rows [from, from + n) of the array that is open, in memory and in the file. */
static int select_rows(const dt_hdf5 *f, int64_t width, int64_t from, int64_t n, hid_t *memory_p, hid_t *space_p)
{
    const hsize_t begin[2] = {(hsize_t)from, 0}, count[2] = {(hsize_t)n, (hsize_t)width};
    *memory_p = H5Screate_simple(width == 0 ? 1 : 2, count, NULL);
    *space_p = H5Dget_space(f->set);
    return *memory_p >= 0 && *space_p >= 0 &&
           H5Sselect_hyperslab(*space_p, H5S_SELECT_SET, begin, NULL, count, NULL) >= 0;
}

static dt_status write_rows(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t from, int64_t n,
                            const void *data)
{
    hid_t memory = -1, space = -1;
    if (n == 0) {
        return DT_OK;
    }
    const int ok = strcmp(f->name, name) == 0 && select_rows(f, width, from, n, &memory, &space) &&
                   H5Dwrite(f->set, hdf5_type(dtype), memory, space, H5P_DEFAULT, data) >= 0;
    H5Sclose(memory);
    H5Sclose(space);
    f->is_broken = !ok;
    return ok ? DT_OK : FAIL(DT_EIO, "cannot write %s to %s: the disk is full, or it no longer exists", name, f->path);
}

static hid_t create_text_type(void)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, DT_HDF5_TEXT_BYTES);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static dt_status put_texts(dt_hdf5 *f, const char *name, const char *const *text, int64_t n)
{
    const hid_t type = create_text_type();
    dt_status st = make_set(f, name, type, 0, n, 64, 1);
    for (int64_t i = 0; i < n && st == DT_OK; i++) {
        char cell[DT_HDF5_TEXT_BYTES] = "";
        hid_t memory = -1, space = -1;
        strncpy(cell, text[i], sizeof(cell) - 1);
        if (!select_rows(f, 0, i, 1, &memory, &space) || H5Dwrite(f->set, type, memory, space, H5P_DEFAULT, cell) < 0) {
            st = FAIL(DT_EIO, "cannot write %s to %s", name, f->path);
            f->is_broken = 1;
        }
        H5Sclose(memory);
        H5Sclose(space);
    }
    H5Tclose(type);
    return st;
}

static dt_status put_number(dt_hdf5 *f, const char *name, double x)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t a = H5Acreate2(f->file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    const int ok = a >= 0 && H5Awrite(a, H5T_NATIVE_DOUBLE, &x) >= 0;
    if (a >= 0) {
        H5Aclose(a);
    }
    H5Sclose(space);
    f->is_broken = !ok;
    return ok ? DT_OK : FAIL(DT_EIO, "cannot write %s to %s", name, f->path);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Where the bytes of the array are and what packs them, before anything else is asked of it: of an array that is a view
 * of other files even its size opens those, whatever they are. */
static dt_status check_layout(const dt_hdf5 *f, const char *name)
{
    hsize_t chunk[H5S_MAX_RANK] = {0};
    const hid_t how = H5Dget_create_plist(f->set), type = H5Dget_type(f->set);
    const H5D_layout_t layout = H5Pget_layout(how);
    int is_ours =
        (layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) && H5Pget_external_count(how) == 0;
    const int n = layout == H5D_CHUNKED ? H5Pget_nfilters(how) : 0;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t n_values = 0;
        const H5Z_filter_t filter = H5Pget_filter2(how, (unsigned)i, &flags, &n_values, NULL, 0, NULL, &config);
        is_ours = is_ours &&
                  (filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_FLETCHER32);
    }
    const int n_dims = layout == H5D_CHUNKED ? H5Pget_chunk(how, H5S_MAX_RANK, chunk) : 0;
    double bytes = type >= 0 ? (double)H5Tget_size(type) : 0; /* of a chunk, which is unpacked as a whole */
    for (int i = 0; i < n_dims; i++) {
        bytes *= (double)chunk[i];
    }
    H5Pclose(how);
    H5Tclose(type);
    if (!is_ours) {
        return FAIL(DT_EDATA, "%s: %s is stored in external files, or compressed by another filter than gzip", f->path,
                    name);
    }
    if (n_dims > 0 && bytes > CHUNK_BYTES) {
        return FAIL(DT_EDATA, "%s: %s has chunks of %.0f bytes, more than %d: write it in smaller ones", f->path, name,
                    bytes, CHUNK_BYTES);
    }
    return DT_OK;
}

/* Its bytes are as many as it declares, except for its packing. */
static dt_status check_storage(const dt_hdf5 *f, const char *name, int64_t rows, size_t row_bytes)
{
    if ((double)rows * (double)row_bytes > (double)H5Dget_storage_size(f->set) * RATIO_MOST) {
        return FAIL(DT_EDATA, "%s: %s has %" PRId64 " rows, for which its %llu bytes cannot be enough", f->path, name,
                    rows, (unsigned long long)H5Dget_storage_size(f->set));
    }
    return DT_OK;
}

static int has_link(dt_hdf5 *f, const char *name)
{
    return H5Lexists(f->file, name, H5P_DEFAULT) > 0;
}

static dt_status enter_array(dt_hdf5 *f, const char *name)
{
    H5L_info_t link;
    H5O_info_t object;
    if (strcmp(f->name, name) == 0) {
        return DT_OK;
    }
    free_file(f);
    if (!has_link(f, name)) {
        return FAIL(DT_EDATA, "%s has no array %s", f->path, name);
    }
    if (H5Lget_info(f->file, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD ||
        H5Oget_info_by_name(f->file, name, &object, H5P_DEFAULT) < 0 || object.type != H5O_TYPE_DATASET) {
        return FAIL(DT_EDATA, "%s: %s is a link or a group, expected an array", f->path, name);
    }
    f->set = H5Dopen2(f->file, name, H5P_DEFAULT);
    if (f->set < 0) {
        return FAIL(DT_EDATA, "%s: the array %s is damaged", f->path, name);
    }
    const dt_status st = check_layout(f, name);
    if (st < 0) {
        free_file(f);
        return st;
    }
    strncpy(f->name, name, sizeof(f->name) - 1);
    return DT_OK;
}

/* The rows of an array of this class and size of values. */
static dt_status find_set(dt_hdf5 *f, const char *name, H5T_class_t class, size_t bytes, int64_t width, int64_t *rows_p)
{
    hsize_t dims[2] = {0, 0};
    const dt_status st = enter_array(f, name);
    if (st < 0) {
        return st;
    }
    const hid_t space = H5Dget_space(f->set), type = H5Dget_type(f->set);
    const int n_dims = H5Sget_simple_extent_ndims(space);
    const int is_right = n_dims == (width == 0 ? 1 : 2) && H5Sget_simple_extent_dims(space, dims, NULL) == n_dims &&
                         (width == 0 || dims[1] == (hsize_t)width) && H5Tget_class(type) == class &&
                         H5Tget_size(type) == bytes && !(class == H5T_STRING && H5Tis_variable_str(type) != 0);
    H5Sclose(space);
    H5Tclose(type);
    if (!is_right || dims[0] > (hsize_t)1 << 53) {
        return FAIL(DT_EDATA, "%s: %s has another type or shape than it should (rows of %" PRId64 ", %zu bytes each)",
                    f->path, name, width, bytes);
    }
    *rows_p = (int64_t)dims[0];
    return check_storage(f, name, *rows_p, bytes * (size_t)(width == 0 ? 1 : width));
}

static dt_status find_array(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t *rows_p)
{
    const hid_t type = hdf5_type(dtype);
    return find_set(f, name, H5Tget_class(type), H5Tget_size(type), width, rows_p);
}

static dt_status read_set(dt_hdf5 *f, const char *name, hid_t type, int64_t width, int64_t from, int64_t n, void *out)
{
    hid_t memory = -1, space = -1;
    const dt_status st = enter_array(f, name);
    if (st < 0 || n == 0) {
        return st;
    }
    const int ok =
        select_rows(f, width, from, n, &memory, &space) && H5Dread(f->set, type, memory, space, H5P_DEFAULT, out) >= 0;
    H5Sclose(memory);
    H5Sclose(space);
    return ok ? DT_OK
              : FAIL(DT_EDATA, "%s: rows %" PRId64 " to %" PRId64 " of %s are damaged", f->path, from, from + n, name);
}

static dt_status read_rows(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t from, int64_t n,
                           void *out)
{
    return read_set(f, name, hdf5_type(dtype), width, from, n, out);
}

static dt_status find_texts(dt_hdf5 *f, const char *name, int64_t *n_p)
{
    return find_set(f, name, H5T_STRING, DT_HDF5_TEXT_BYTES, 0, n_p);
}

static dt_status read_text(dt_hdf5 *f, const char *name, int64_t i, char out[DT_HDF5_TEXT_BYTES])
{
    const hid_t type = create_text_type();
    const dt_status st = read_set(f, name, type, 0, i, 1, out);
    H5Tclose(type);
    out[DT_HDF5_TEXT_BYTES - 1] = '\0';
    return st;
}

static dt_status read_number(dt_hdf5 *f, const char *name, double *out_p)
{
    int ok = 0;
    if (H5Aexists(f->file, name) > 0) {
        const hid_t a = H5Aopen(f->file, name, H5P_DEFAULT);
        const hid_t type = a >= 0 ? H5Aget_type(a) : -1, space = a >= 0 ? H5Aget_space(a) : -1;
        ok = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_FLOAT && H5Sget_simple_extent_npoints(space) == 1 &&
             H5Aread(a, H5T_NATIVE_DOUBLE, out_p) >= 0;
        H5Tclose(type);
        H5Sclose(space);
        H5Aclose(a);
    }
    return ok ? DT_OK : FAIL(DT_EDATA, "%s: the attribute %s is missing, or no number", f->path, name);
}

static const dt_hdf5_ops ops = {.version = DT_HDF5_VERSION,
                                .struct_size = sizeof(ops),
                                .create = create_file,
                                .make = make_array,
                                .write = write_rows,
                                .put_texts = put_texts,
                                .put_number = put_number,
                                .open = open_file,
                                .has = has_link,
                                .find = find_array,
                                .read = read_rows,
                                .find_texts = find_texts,
                                .read_text = read_text,
                                .number = read_number,
                                .close = close_file};

DT_EXPORT dt_hdf5_module_fn dt_hdf5_module;
const dt_hdf5_ops *dt_hdf5_module(const dt_hdf5_host *h)
{
    host = h;
    (void)!H5dont_atexit(); /* we close what we open; at exit the library would continue with what it could not write */
    if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0) { /* what went wrong is said by us */
        return NULL;
    }
    return &ops;
}
