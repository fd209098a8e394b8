/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain data import|inspect|export`.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/tools.h"

#include "base/err.h"
#include "base/print.h"
#include "config/options.h"
#include "data/export_table.h"
#include "data/import.h"
#include "data/smooth.h"

#include <stdio.h>
#include <string.h>

/* ---- options of an import: the section "import" of a configuration --------------------------------------------- */

typedef struct import_opts {
    const char *columns, *site, *types;
    double frame_rate_hz, radius_m, smooth_s;
    int64_t neighbours, memory_mb;
    uint8_t unordered;
} import_opts;

static const dt_option import_table[] = {
    DT_OPTION(import_opts, columns, DT_OPT_STR, "", "", 0, 0, NULL,
              "column map of a table: \"id=car,frame=f,x=X*0.3048,...\"; empty: recognise the header"),
    DT_OPTION(import_opts, site, DT_OPT_STR, "", "", 0, 0, NULL, "site of a table without a site column"),
    DT_OPTION(import_opts, types, DT_OPT_STR, "", "", 0, 0, NULL,
              "file of SUMO with vType elements: how long the vehicles of its floating-car output are"),
    DT_OPTION(import_opts, frame_rate_hz, DT_OPT_F64, "0", "1/s", 0, 1000, NULL,
              "frame rate of a recording that does not say it by its layout, in a column or in its times; 0: it does"),
    DT_OPTION(import_opts, radius_m, DT_OPT_F64, "50", "m", 1, 1000, NULL, "neighbourhood of a vehicle"),
    DT_OPTION(
        import_opts, smooth_s, DT_OPT_F64, "0.5", "s", 0, DT_SMOOTH_MAX_S, NULL,
        "accelerations are made from speeds and averaged with this width (Thiemann et al. 2008): over the past for "
        "models, on both sides for risk labels; 0: as recorded, for recordings of a simulator"),
    DT_OPTION(import_opts, neighbours, DT_OPT_I64, "16", "1", 1, 64, NULL,
              "edges of a vehicle at most, itself included"),
    DT_OPTION(import_opts, memory_mb, DT_OPT_I64, "64", "MiB", 1, 65536, NULL, "sort buffer of a table"),
    DT_OPTION(import_opts, unordered, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "accept a vehicle's rows in any order of time"),
    DT_OPTION_END};

dt_status dt_data_import_declare(dt_config *c)
{
    return dt_config_declare(c, "import", import_table, NULL);
}

static dt_status read_import_opts(const dt_args *a, dt_config *c, import_opts *out)
{
    DT_TRY(dt_data_import_declare(c));
    for (uint32_t i = 0; i < a->n_config; i++) {
        DT_TRY(dt_config_read_file(c, DT_FROM_FILE, a->config[i]));
    }
    for (uint32_t i = 0; i < a->n_set; i++) {
        DT_TRY(dt_config_set(c, a->set[i]));
    }
    DT_TRY(dt_config_check(c, NULL));
    return dt_config_section(c, -1, "import", NULL, 0, out, sizeof(*out));
}

static dt_status import_with(const dt_args *a, dt_config *c)
{
    import_opts o;
    dt_str notes = {0};
    DT_TRY(read_import_opts(a, c, &o));
    const dt_import_options io = {.columns = o.columns,
                                  .frame_rate_hz = o.frame_rate_hz,
                                  .site = o.site,
                                  .types = o.types,
                                  .is_unordered = o.unordered != 0,
                                  .radius_m = o.radius_m,
                                  .smooth_s = o.smooth_s,
                                  .k_max = (uint32_t)o.neighbours,
                                  .memory_bytes = (size_t)o.memory_mb << 20};
    dt_status st = dt_data_import((const char *const *)a->word + 1, a->n_words - 1, a->out, &io, &notes);
    if (st == DT_OK && !a->quiet) {
        dt_print_text(dt_str_text(&notes));
    }
    dt_str_fini(&notes);
    return st;
}

static dt_status import_store(const dt_args *a)
{
    dt_config *c = NULL;
    if (a->n_words < 2 || a->out == NULL) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data import SRC... --out STORE [--set import.KEY=VALUE]");
    }
    DT_TRY(dt_config_create(&c));
    dt_status st = import_with(a, c);
    dt_config_destroy(c);
    return st;
}

static dt_status inspect_store(const dt_args *a)
{
    dt_str out = {0};
    if (a->n_words != 2) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data inspect STORE [--json]");
    }
    dt_status st = dt_data_inspect(a->word[1], a->json, &out);
    if (st == DT_OK) {
        dt_print_text(dt_str_text(&out));
    }
    dt_str_fini(&out);
    return st;
}

static dt_status export_store(const dt_args *a)
{
    dt_str notes = {0};
    if (a->n_words != 3) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data export STORE FILE (a table, csv)");
    }
    dt_status st = dt_data_export(a->word[1], a->word[2], &notes);
    if (st == DT_OK && !a->quiet) {
        dt_print_text(dt_str_text(&notes));
    }
    dt_str_fini(&notes);
    return st;
}

dt_status dt_verb_data(const dt_args *a)
{
    dt_status st = DT_OK;
    if (a->n_words >= 1 && strcmp(a->word[0], "import") == 0) {
        st = import_store(a);
    } else if (a->n_words >= 1 && strcmp(a->word[0], "inspect") == 0) {
        st = inspect_store(a);
    } else if (a->n_words >= 1 && strcmp(a->word[0], "export") == 0) {
        st = export_store(a);
    } else {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain data import SRC... --out STORE | inspect STORE | export STORE FILE");
    }
    return st == DT_ENOTFOUND ? DT_EDATA : st; /* exit code 4 */
}
