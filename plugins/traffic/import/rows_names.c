/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of scenes, sites and maps by names of files and by benchmark ids. See rows.h.
 */
#include <config.h>

#include "traffic/import/rows.h"

#include <string.h>

dt_status dt_rows_stem(const char *path, dt_str *out)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    size_t n = strlen(name);
    for (int i = 0; i < 2; i++) { /* .gz, then .csv */
        const char *dot = memrchr(name, '.', n);
        if (dot == NULL || dot == name) {
            break;
        }
        const size_t bytes = n - (size_t)(dot - name);
        const bool is_packed = bytes == 3 && (memcmp(dot, ".gz", 3) == 0 || memcmp(dot, ".xz", 3) == 0);
        n -= bytes;
        if (!is_packed) {
            break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        dt_str_add_n(out, name[i] == '#' ? "_" : name + i, 1); /* '#' begins a part of a scene */
    }
    return dt_str_status(out);
}

void dt_rows_site_of_benchmark(const char *id, char *out, size_t bytes)
{
    const char *from = strchr(id, '_');
    from = from == NULL ? id : from + 1;
    size_t n = strcspn(from, "-");
    n = n < bytes ? n : bytes - 1;
    memcpy(out, from, n);
    out[n] = '\0';
}

void dt_rows_map_of_benchmark(const char *id, char *out, size_t bytes)
{
    const char *first = strchr(id, '_'), *second = first == NULL ? NULL : strchr(first + 1, '_');
    size_t n = second == NULL ? strlen(id) : (size_t)(second - id);
    n = n < bytes ? n : bytes - 1;
    memcpy(out, id, n);
    out[n] = '\0';
}
