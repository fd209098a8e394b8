/* SPDX-License-Identifier: Apache-2.0
 *
 * One part of an import: a folder that holds a part of a store (store.h), or nothing where its files have no row, and
 * next to the arrays
 *   part.json      frame rate, layout, numbers of rows, the scenes as their files name them
 *   notes.txt, warnings.txt   what an import of its files reports, if anything
 *   digest         the key, and a hash of all the others: written last
 * A part is finished when it has a digest, of the requested key: a part that was cut short, damaged, or made of
 * other files, options or another version, is none. Nothing here waits for the disk: the digest finds what a loss of
 * power took. Threads: any, one part, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_IMPORT_PART_H
#define DTRAIN_PLUGINS_TRAFFIC_IMPORT_PART_H

#include "traffic/import/import.h"
#include "traffic/text/names.h"
#include "traffic/import/rows.h"

enum { DT_PART_KEY_BYTES = 65, DT_PART_LAYOUT_BYTES = 512 };

/* SHA-256 in hexadecimal of the files' names, sizes and times of change, those of the files that an import reads
 * besides (maps, types of vehicles, the table next to a recording), and the options that a part's bytes depend on. The
 * way a store is packed is none of them, nor is the number of jobs. DT_ENOTFOUND, DT_EIO, DT_ENOMEM. */
dt_status dt_part_key(const char *const *src, uint32_t n_src, const dt_import_options *opt, char key[DT_PART_KEY_BYTES])
    DT_NODISCARD;

/* The rest of a part whose store is written, or is not there. DT_EIO, DT_ENOMEM. */
dt_status dt_part_seal(const char *folder, const char *key, const dt_rows *rows, const dt_rows_report *report,
                       const dt_str *notes) DT_NODISCARD;
/* Reads every byte. No error: what cannot be read is not finished. */
bool dt_part_is_finished(const char *folder, const char *key);

typedef struct dt_part_record { /* zeroed is empty */
    int64_t rows;               /* read; 0: there is no store */
    double rate_hz;
    char layout[DT_PART_LAYOUT_BYTES];
    dt_rows_report report;
    dt_names scenes;
    int32_t *file; /* [scenes.n] of the part's files */
    int32_t files_cap;
} dt_part_record;

/* Of a finished part; its notes are added to notes. DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_part_read(const char *folder, dt_part_record *out, dt_str *notes) DT_NODISCARD;
void dt_part_record_fini(dt_part_record *p);

#endif
