/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/film_page.h"

#include "telemetry/report/html.h"
#include "telemetry/report/page.h"

#include <math.h>

/* As wide as the page, or as the height of a screen lets it be. */
static double width_of_film(const dt_film *s)
{
    return fmin(1088, 640 * (s->high[0] - s->low[0]) / (s->high[1] - s->low[1]));
}

static void write_head(const dt_film_page *p, dt_str *out)
{
    dt_str_add(out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>"
                    "<meta charset=\"utf-8\"/>"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
                    "<meta name=\"generator\" content=\"dtrain " PACKAGE_VERSION "\"/><title>");
    dt_html_escape(out, p->title);
    dt_str_addf(out, "</title>\n<style>\n%s%s%s</style></head><body><main>\n", dt_page_palette, dt_page_style,
                dt_page_film_style);
    dt_str_add(out, "<header><p class=\"kind\">dtrain render</p><h1>");
    dt_html_escape(out, p->title);
    dt_str_add(out, "</h1><p class=\"note\">");
    dt_html_escape(out, p->note);
    dt_str_add(out, "</p></header>\n");
}

/* Shown once the script runs. */
static void write_player(uint32_t n, bool is_page, dt_str *out)
{
    static const char *const rates[] = {"1", "2", "5", "10", "20", "50"};
    dt_str_addf(
        out,
        "<div class=\"player\" hidden=\"hidden\"><button class=\"play\" type=\"button\">Play</button>"
        "<input class=\"slider\" type=\"range\" min=\"0\" max=\"%u\" step=\"any\" value=\"0\" aria-label=\"time\"/>"
        "<output class=\"time\"></output><label>speed <select class=\"speed\">",
        n - 1);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        dt_str_addf(out, "<option value=\"%s\">%s\xc3\x97</option>", rates[i], rates[i]);
    }
    dt_str_addf(
        out,
        "</select></label><span class=\"zoom\"><button class=\"farther\" type=\"button\" aria-label=\"zoom out\">"
        "\xe2\x88\x92</button><button class=\"closer\" type=\"button\" aria-label=\"zoom in\">+</button>"
        "<button class=\"whole\" type=\"button\" aria-label=\"show the whole scene\">Fit</button></span>"
        "<span class=\"numbers\"></span>%s</div>\n",
        is_page ? "<span class=\"note\">Space plays, arrow keys step. The wheel, two fingers or the keys + and "
                  "\xe2\x88\x92 zoom, 0 shows all; drag, or Shift with arrow keys, to move.</span>"
                : "");
}

void dt_film_write(const dt_film *s, double wide_px, bool is_page, bool has_legend, dt_str *out)
{
    dt_str_addf(out, "<div class=\"film%s\"><figure class=\"scene\">", is_page ? "" : " small");
    dt_film_write_svg(s, 0, wide_px, NULL, out);
    dt_str_add(out, "</figure>\n");
    write_player(s->n_frames, is_page, out);
    if (has_legend) {
        dt_film_write_legend(s, out);
    }
    dt_str_add(out, "<script type=\"application/json\" class=\"film-data\">");
    dt_film_write_json(s, out);
    dt_str_add(out, "</script></div>\n");
}

dt_status dt_film_page_build(const dt_film_page *p, dt_str *out)
{
    write_head(p, out);
    dt_film_write(p->film, width_of_film(p->film), true, true, out);
    dt_str_addf(out, "</main>\n<script>\n//<![CDATA[\n%s//]]>\n</script></body></html>\n", dt_page_film_script);
    return dt_str_status(out);
}

void dt_film_page_write_svg(const dt_film *s, uint32_t frame, dt_str *out)
{
    dt_str style = {0};
    dt_str_addf(&style, "%s%s", dt_page_palette, dt_page_film_style);
    dt_str_add(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    dt_film_write_svg(s, frame, width_of_film(s), dt_str_text(&style), out);
    dt_str_add(out, "\n");
    dt_str_fini(&style);
}
