/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of `dtrain config template`: each key in a comment below what it means, from the tables of options that
 * `dtrain show` and dtrain.cfg(5) are made from.
 */
#include <config.h>

#include "config/port/porting.h"

#include <string.h>

enum { WIDTH = 116 };

/* Its help, wrapped. */
static void write_option_help(const dt_option *o, int indent, dt_str *out)
{
    dt_str text = {0};
    dt_str_addf(&text, "%s; ", o->help != NULL ? o->help : "");
    dt_option_accepts(o, &text);
    if (o->unit != NULL && o->unit[0] != '\0' && strcmp(o->unit, "1") != 0) {
        dt_str_addf(&text, ", in %s", o->unit);
    }
    dt_str_add(&text, o->dfl == NULL ? "; required" : "");
    out->failed = out->failed || text.failed;
    size_t at = 0;
    for (const char *word = dt_str_text(&text); *word != '\0';) {
        const size_t bytes = strcspn(word, " ");
        if (at == 0 || at + 1 + bytes > WIDTH) {
            dt_str_addf(out, "%s%*s# ", at > 0 ? "\n" : "", indent, "");
            at = (size_t)indent + 2;
        } else {
            dt_str_add(out, " ");
            at++;
        }
        dt_str_add_n(out, word, bytes);
        at += bytes;
        word += bytes + strspn(word + bytes, " ");
    }
    dt_str_add(out, "\n");
    dt_str_fini(&text);
}

static void write_option(const dt_option *o, const char *value, int indent, dt_str *out)
{
    write_option_help(o, indent, out);
    dt_str_addf(out, "%*s#%s = ", indent, "", o->name);
    if (value == NULL || dt_option_write(o, value, out) != DT_OK) {
        dt_str_add(out, "\"\"");
    }
    dt_str_add(out, ";\n");
}

void dt_template_table(const dt_option *table, int indent, dt_str *out)
{
    for (const dt_option *o = table; o != NULL && o->name != NULL; o++) {
        write_option(o, o->dfl, indent, out);
    }
}

dt_status dt_template_section(const dt_config *c, int64_t phase, const char *section, dt_str *out)
{
    dt_option_view v;
    const bool is_free = *section == '\0';
    if (!is_free) {
        dt_str_addf(out, "%s = {\n", section);
    }
    for (uint32_t i = 0; dt_config_option_at(c, phase, section, i, &v) == DT_OK; i++) {
        write_option(v.option, v.value, is_free ? 0 : 4, out);
    }
    dt_str_add(out, is_free ? "" : "};\n");
    return dt_str_status(out);
}
