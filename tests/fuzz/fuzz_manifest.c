/* SPDX-License-Identifier: Apache-2.0
 *
 * MANIFEST.json of a checkpoint. What was accepted names plain files, and is the same once it was printed and read
 * again.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/str.h"
#include "state/checkpoint/manifest.h"

#include <string.h>

/* Twice the size of a page table's worth: cleared in part, as much as a manifest says it has. */
static dt_manifest first, second;

static void clear(dt_manifest *m)
{
    memset(m, 0, sizeof(*m));
}

DT_FUZZ(manifest)
{
    fuzz_begin();
    clear(&first);
    if (dt_manifest_parse((const char *)bytes, n, "input", &first) == DT_OK) {
        dt_str text = {0}, text_again = {0};
        for (uint32_t i = 0; i < first.n_files; i++) {
            const dt_manifest_file *f = &first.file[i];
            fuzz_hold(strchr(f->name, '/') == NULL && f->name[0] != '.' && f->name[0] != '\0');
            fuzz_hold(dt_manifest_find(&first, f->name) != NULL);
            fuzz_touch(f->crc, f->n_crc * sizeof(*f->crc));
        }
        dt_manifest_print(&first, &text);
        clear(&second);
        fuzz_hold(dt_manifest_parse(dt_str_text(&text), text.bytes, "again", &second) == DT_OK);
        dt_manifest_print(&second, &text_again);
        fuzz_hold(strcmp(dt_str_text(&text), dt_str_text(&text_again)) == 0);
        dt_manifest_fini(&second);
        dt_str_fini(&text);
        dt_str_fini(&text_again);
        dt_manifest_fini(&first);
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
