/* SPDX-License-Identifier: Apache-2.0
 *
 * A YAML file of the guides, as dtrain config import reads it. What came of one is a configuration that can be read,
 * whatever stands in the file; one that is refused has a reason with its place.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/port/porting.h"
#include "traffic/guide_keys.h"

#include <string.h>

static void check_written(const dt_str *text)
{
    dt_config *again = NULL;
    fuzz_no_files();
    fuzz_file("/run/imported.cfg", dt_str_text(text), text->bytes);
    fuzz_hold(dt_config_create(&again) == DT_OK);
    fuzz_hold(dt_config_read_file(again, DT_FROM_FILE, "/run/imported.cfg") == DT_OK);
    fuzz_hold(dt_config_n_phases(again) >= 1);
    dt_config_destroy(again);
}

static void import(const dt_config *known, int phase, const uint8_t *bytes, size_t n)
{
    dt_str out = {0};
    dt_ported ported = {0};
    fuzz_no_files();
    fuzz_file("/run/guide.yaml", bytes, n);
    const dt_status st = dt_porting_import("/run/guide.yaml", phase, &dt_guide_keys, known, &out, &ported);
    fuzz_hold(st == DT_OK || *dt_error_text() != '\0');
    if (st == DT_OK) {
        fuzz_touch_text(dt_str_text(&out));
        check_written(&out);
        fuzz_accepted();
    }
    if (st == DT_EUNSUPPORTED) { /* built without libyaml: nothing is read, and that is said */
        fuzz_accepted();
    }
    dt_str_fini(&out);
}

DT_FUZZ(yaml)
{
    dt_config *known = NULL;
    fuzz_begin();
    import(NULL, 0, bytes, n);
    if (fuzz_is_chosen(bytes, n)) {
        fuzz_hold(dt_config_create(&known) == DT_OK);
        import(known, 0, bytes, n);
        import(known, 3, bytes, n);
        dt_config_destroy(known);
    }
    fuzz_end();
    return 0;
}
