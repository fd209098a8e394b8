/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain render RUN|CHECKPOINT`: an evaluated episode of a policy from above, as one HTML file that plays it, or as
 * SVG files, one per frame.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "run/evaluate.h"
#include "telemetry/report/film_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dtrain render RUN|CHECKPOINT [--out FILE.html|FOLDER] [--seeds N] [--every S]; `dtrain runs` lists runs";

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Without --out: render.html next to the input. */
static void render_path(const dt_args *a, dt_str *out)
{
    if (a->out != NULL) {
        dt_str_add(out, a->out);
    } else {
        dt_str_addf(out, "%s%srender.html", dt_fs_is_dir(a->word[0]) ? a->word[0] : "",
                    dt_fs_is_dir(a->word[0]) ? "/" : "");
    }
}

/* One episode of one seed, on an instance that lives in this process, where it can be looked at. */
static dt_status fill_in_args(const dt_args *a, dt_args *out, double *every_p)
{
    static const char *const set[] = {"env.isolation=thread", "env.instances=1", "env.workers=0",
                                      "evaluation.episodes=1"};
    *out = *a;
    out->seeds = a->seeds != NULL ? a->seeds : "1001";
    if (strchr(out->seeds, ',') != NULL) {
        return DT_FAIL(DT_ECONFIG, "--seeds %s: an episode has one seed", out->seeds);
    }
    *every_p = -1;
    if (a->every != NULL && (!dt_parse_f64(a->every, every_p) || !(*every_p > 0) || *every_p > 1e6)) {
        return DT_FAIL(DT_ECONFIG, "--every %s: expected seconds between two frames, above 0", a->every);
    }
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        if (out->n_set == DT_CLI_MAX_REPEAT) {
            return DT_FAIL(DT_ECONFIG, "more than %d values by --set", DT_CLI_MAX_REPEAT - 4);
        }
        out->set[out->n_set++] = set[i];
    }
    return DT_OK;
}

/* Of several phases the last one with an environment. */
static dt_status choose_phase(const dt_session *s, int64_t *index_p)
{
    for (int64_t i = s->last - 1; i >= s->first; i--) {
        const char *env = NULL;
        dt_origin unused;
        if (dt_config_get(s->config, i, "env.id", &env, &unused) == DT_OK && *env != '\0') {
            *index_p = i;
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG, "no phase here acts in an environment: there is no episode to show");
}

static dt_status collect_frames(const dt_stage *stage, dt_film *film)
{
    for (uint32_t i = 0; i < stage->results.n_pictures; i++) {
        const dt_result *r = &stage->results.picture[i];
        DT_TRY(dt_film_add(film, r->key, r->value, r->n, r->columns));
    }
    const dt_loaded *env = stage->env.comp;
    film->labels =
        env != NULL && env->desc.extension != NULL ? dt_film_read_labels(env->desc.extension(DT_EXT_SCENE)) : NULL;
    dt_film_remove_invalid(film);
    if (film->n_frames == 0 || film->line.n == 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s cannot be drawn: it lacks the extension dtrain.scene/1",
                       stage->env.comp != NULL ? stage->env.comp->desc.id : stage->d.phase->desc.id);
    }
    return DT_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static dt_status write_html(const dt_args *a, const dt_stage *stage, const dt_film *film, const char *path)
{
    dt_str page = {0}, title = {0}, note = {0};
    char name[512];
    snprintf(name, sizeof(name), "%s", a->word[0]);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) {
        name[n - 1] = '\0';
    }
    dt_str_add(&title, strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name);
    dt_str_addf(&note, "%s in %s, seed %s", stage->d.phase->desc.id, stage->env.comp->desc.id, a->seeds);
    for (uint32_t i = 0; i < stage->n_models; i++) {
        dt_str_addf(&note, ", %s %s", stage->model[i].role, stage->model[i].comp->desc.id);
    }
    if (stage->env.n_differing > 0) {
        dt_str_add(&note, ", ");
        dt_env_describe_evaluation(&stage->env, &note);
    }
    const dt_film_page p = {.title = dt_str_text(&title), .note = dt_str_text(&note), .film = film};
    dt_status st = dt_film_page_build(&p, &page);
    if (st == DT_OK) {
        st = dt_fs_write_atomic(path, dt_str_text(&page), page.bytes);
    }
    dt_str_fini(&page);
    dt_str_fini(&title);
    dt_str_fini(&note);
    return st;
}

static dt_status write_series(const dt_film *film, const char *folder)
{
    dt_str text = {0}, path = {0};
    dt_status st = dt_fs_mkdirs(folder);
    for (uint32_t i = 0; i < film->n_frames && st == DT_OK; i++) {
        dt_str_clear(&text);
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/%05u.svg", folder, i);
        dt_film_page_write_svg(film, i, &text);
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

static dt_status print_result(const dt_args *a, const dt_stage *stage, const dt_film *film, const char *path)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    const double *mean = dt_stage_find_result(stage, "return/mean");
    if (a->json) {
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "render", path);
        dt_json_str(&o, "phase", stage->d.phase->desc.id);
        dt_json_str(&o, "env", stage->env.comp->desc.id);
        dt_json_i64(&o, "moments", film->n_frames);
        dt_json_f64(&o, "seconds", film->frame[film->n_frames - 1].time_s);
        dt_json_f64(&o, "return", mean != NULL ? *mean : (double)NAN);
        dt_json_end(&o, '}');
    } else {
        dt_str_add(&text, path);
    }
    const dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        dt_print_line(dt_str_text(&text));
    }
    dt_str_fini(&text);
    return st;
}

static dt_status draw_episode(const dt_args *a, dt_stage *stage, const dt_str *path, dt_film *film)
{
    const char *to = dt_str_text(path);
    DT_TRY(dt_str_status(path));
    DT_TRY(collect_frames(stage, film));
    DT_TRY(ends_with(to, ".html") ? write_html(a, stage, film, to) : write_series(film, to));
    return print_result(a, stage, film, to);
}

static dt_status render_episode(const dt_args *a, const dt_session *s, double every_s)
{
    dt_eval e;
    dt_film film = {0};
    dt_str path = {0};
    int64_t index = 0;
    DT_TRY(choose_phase(s, &index));
    render_path(a, &path);
    dt_status st = dt_eval_run(s, index, a->word[0], every_s, &e);
    if (st == DT_OK) {
        st = draw_episode(a, e.stage, &path, &film);
    }
    dt_film_fini(&film);
    dt_eval_close(&e);
    dt_str_fini(&path);
    return st;
}

dt_status dt_verb_render(const dt_args *a, int *code_p)
{
    dt_session s;
    dt_args full;
    dt_str config = {0};
    double every_s = 1;
    if (a->out != NULL && (ends_with(a->out, ".svg") || ends_with(a->out, ".png") || ends_with(a->out, ".mp4"))) {
        return DT_FAIL(DT_ECONFIG, "--out %s: an episode becomes FILE.html, or a folder of SVG files", a->out);
    }
    DT_TRY(a->out != NULL && ends_with(a->out, ".html") ? dt_cli_check_out(a->out) : DT_OK);
    DT_TRY(fill_in_args(a, &full, &every_s));
    dt_ckpt_run_config(a->word[0], &config);
    if (config.bytes == 0) {
        dt_str_fini(&config);
        DT_TRY(dt_fs_check_access(a->word[0]));
        return DT_FAIL(DT_ECONFIG, "%s is neither a run nor a checkpoint of one; %s", a->word[0], usage);
    }
    dt_status st = dt_session_open(&full, dt_str_text(&config), NULL, &s);
    dt_str_fini(&config);
    DT_TRY(st);
    st = dt_session_limit_counts(&s);
    if (st == DT_OK) {
        st = render_episode(&full, &s, every_s);
    }
    dt_session_close(&s);
    return st;
}
