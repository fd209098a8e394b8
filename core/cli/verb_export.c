/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain export`: the trained models of a checkpoint as one file, for use without dtrain's plugins.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/print.h"
#include "export/onnx.h"
#include "export/policy_file.h"
#include "run/evaluate.h"
#include "run/session.h"
#include "export/from_stage.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct format {
    const char *name, *ending;
    dt_status (*write)(const dt_bundle *b, const char *path);
} format;

static const format formats[] = {{"safetensors", "safetensors", dt_policy_file_write}, {"onnx", "onnx", dt_onnx_write}};

/* ---- what was written -------------------------------------------------------------------------------------------- */

static int64_t count_parameters(const dt_bundle *b)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        int64_t n = 1;
        for (uint32_t k = 0; k < b->tensor[i].n_dims; k++) {
            n *= b->tensor[i].dim[k];
        }
        sum += n;
    }
    return sum;
}

static void write_json_ports(dt_json_out *o, const char *key, const dt_bundle *b, bool is_input)
{
    dt_json_arr(o, key);
    for (uint32_t i = 0; i < (is_input ? b->n_inputs : b->ir.n_outputs); i++) {
        dt_json_str(o, NULL, is_input ? b->input[i].name : b->ir.output[i].name);
    }
    dt_json_end(o, ']');
}

static dt_status print_result(const dt_args *a, const format *f, const char *path, const dt_stage *s,
                              const dt_bundle *b)
{
    struct stat file = {.st_size = 0};
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    (void)stat(path, &file);
    if (!a->json) {
        dt_print("%s: %s of phase %s, %lld parameters, %.2f MB; inputs, outputs and actions are described in %s.json\n",
                 path, f->name, s->d.phase->desc.id, (long long)count_parameters(b), (double)file.st_size / 1e6, path);
        return DT_OK;
    }
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "file", path);
    dt_json_str(&o, "format", f->name);
    dt_json_str(&o, "phase", s->d.phase->desc.id);
    dt_json_i64(&o, "parameters", count_parameters(b));
    dt_json_i64(&o, "bytes", (int64_t)file.st_size);
    write_json_ports(&o, "inputs", b, true);
    write_json_ports(&o, "outputs", b, false);
    dt_json_end(&o, '}');
    const dt_status st = dt_str_status(&text);
    dt_print_line(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

/* ---- from a checkpoint ------------------------------------------------------------------------------------------- */

/* The newest checkpoint of a phase, where path is a run of several; a checkpoint itself and a lone file are taken as
 * they are. phase -1: any, the newest of all. has_info_p: false for a lone file. */
static dt_status find_checkpoint(const char *path, int64_t phase, dt_ckpt_info *info, bool *has_info_p)
{
    dt_ckpt_info *all = NULL;
    uint32_t n = 0;
    *has_info_p = dt_fs_is_dir(path);
    if (!*has_info_p) {
        return DT_OK;
    }
    DT_TRY(dt_ckpt_inspect(path, info));
    if (phase < 0 || info->phase_index == phase) {
        return DT_OK;
    }
    dt_status st = dt_ckpt_list(path, &all, &n);
    const dt_ckpt_info *found = NULL;
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        found = all[i].valid && all[i].phase_index == phase ? &all[i] : found;
    }
    if (st == DT_OK && found != NULL) {
        *info = *found;
    } else if (st == DT_OK) {
        st = DT_FAIL(DT_ENOTFOUND, "%s holds no checkpoint of phase %lld, the newest is of phase %s", path,
                     (long long)phase + 1, info->phase);
    }
    dt_free(all);
    return st;
}

/* Next to the file, under its name and .json: what it reads and writes, which the file's metadata has, too. */
static dt_status write_interface(const char *path, const dt_str *text)
{
    char name[DT_CKPT_PATH_BYTES];
    if ((size_t)snprintf(name, sizeof(name), "%s.json", path) >= sizeof(name)) {
        return DT_FAIL(DT_ECONFIG, "--out %s: the name is too long", path);
    }
    return dt_fs_write_atomic(name, dt_str_text(text), text->bytes);
}

static dt_status write_stage(const dt_args *a, const format *f, dt_stage *s, dt_ckpt_info *info)
{
    dt_stage_export t;
    char path[DT_CKPT_PATH_BYTES];
    DT_TRY(dt_stage_start(s));
    DT_TRY(dt_eval_load_weights(s, a->checkpoint, info)); /* the same weights that dtrain eval takes */
    DT_TRY(dt_export_from_stage(s, info, &t));
    const bool acts = t.bundle.actions.n_heads + t.bundle.actions.n_continuous > 0;
    snprintf(path, sizeof(path), "%s.%s", acts ? "policy" : "model", f->ending);
    const char *out = a->out != NULL ? a->out : path;
    dt_status st = f->write(&t.bundle, out);
    if (st == DT_OK) {
        st = write_interface(out, &t.interface);
    }
    if (st == DT_OK) {
        st = print_result(a, f, out, s, &t.bundle);
    }
    dt_stage_export_fini(&t);
    return st;
}

static dt_status export_phase(const dt_args *a, const format *f, dt_session *s)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_ckpt_info info;
    bool has_info = false;
    int64_t index = 0;
    DT_TRY(dt_eval_find_phase(s, a->checkpoint, &index));
    DT_TRY(find_checkpoint(a->checkpoint, s->n_phases > 1 ? index : -1, &info, &has_info));
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    DT_TRY(dt_comm_create_null(&comm));
    dt_stage_desc d = dt_session_describe_stage(s, index, comm, &lock);
    d.threads = 1;
    d.device_ops = NULL; /* nothing is computed */
    d.device = NULL;
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        st = write_stage(a, f, stage, has_info ? &info : NULL);
    }
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
    return st;
}

static dt_status find_format(const dt_args *a, const format **out_p)
{
    const char *name = a->format != NULL ? a->format : formats[0].name;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *out_p = &formats[i];
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG, "--format %s: expected safetensors or onnx", name);
}

dt_status dt_verb_export(const dt_args *a, int *code_p)
{
    dt_args mine = *a;
    const format *f = NULL;
    dt_session s;
    DT_TRY(find_format(a, &f));
    DT_TRY(a->out != NULL ? dt_cli_check_out(a->out) : DT_OK);
    if (a->checkpoint == NULL) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain export --checkpoint RUN_OR_CHECKPOINT [--format safetensors|onnx] "
                                   "[--out FILE] [--phase N]");
    }
    if (mine.n_set + 1 < DT_CLI_MAX_REPEAT) { /* numbers are taken out as they are; no device is needed for that */
        mine.set[mine.n_set++] = "engine.device=cpu";
        mine.set[mine.n_set++] = "amp.enabled=false";
    }
    DT_TRY(dt_eval_open(&mine, &s));
    const dt_status st = export_phase(a, f, &s);
    dt_session_close(&s);
    return st;
}
