/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/phase_trial.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "run/evaluate.h"
#include "run/progress.h"
#include "state/snapshot/snapshot.h"
#include "train/record_again.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HALF = 2, ITERATIONS = 2 * HALF }; /* a checkpoint is between the halves */

typedef struct life { /* of one instance of the phase */
    pthread_mutex_t lock;
    dt_comm *comm;
    dt_stage *stage;
} life;

typedef struct trial {
    const dt_session *s;
    const dt_args *a;
    const char *model;
    dt_trial *t;
    dt_str *note;
    const char *folder;
    const char *search; /* DTRAIN_PLUGIN_PATH of other processes; NULL, "": that of this one */
    char hash[17];      /* of the weights after all iterations */
    uint64_t steps;     /* of training by then; 0: no checkpoint was possible */
    bool is_whole;      /* all iterations were done */
    bool has_rollout;
} trial;

static void append_note(const trial *x, const char *what)
{
    dt_str_addf(x->note, "%s%s", x->note->bytes > 0 ? ", " : "", what);
}

/* ---- one instance ------------------------------------------------------------------------------------------------ */

static dt_status lifecycle_create(life *l, const trial *x)
{
    *l = (life){.comm = NULL};
    pthread_mutex_init(&l->lock, NULL);
    DT_TRY(dt_comm_create_null(&l->comm));
    const dt_stage_desc d = dt_session_describe_stage(x->s, x->s->first, l->comm, &l->lock);
    return dt_stage_create(&d, &l->stage);
}

static void lifecycle_end(life *l)
{
    dt_stage_destroy(l->stage);
    dt_comm_destroy(l->comm);
    pthread_mutex_destroy(&l->lock);
    *l = (life){.comm = NULL};
}

/* Iterations until the phase is over; n_p: how many. */
static dt_status iterate(dt_stage *stage, int n, int *n_p, dt_progress *p)
{
    dt_status st = DT_OK;
    *n_p = 0;
    while (st == DT_OK && *n_p < n) {
        st = dt_stage_iterate(stage, p);
        *n_p += st >= 0;
    }
    return st;
}

/* ---- its own state ----------------------------------------------------------------------------------------------- */

typedef struct blob { /* what a phase saves */
    dt_str bytes;
    size_t at; /* of it was read */
} blob;

static dt_status write_blob(dt_writer *w, const void *p, uint64_t bytes)
{
    blob *b = w->priv;
    dt_str_add_n(&b->bytes, p, bytes);
    return dt_str_status(&b->bytes);
}

static dt_status read_blob(dt_reader *r, void *p, uint64_t bytes)
{
    blob *b = r->priv;
    if (bytes > r->bytes_left) {
        return DT_FAIL(DT_EDATA, "load reads %llu bytes, but %llu are left of what save wrote",
                       (unsigned long long)bytes, (unsigned long long)r->bytes_left);
    }
    memcpy(p, dt_str_text(&b->bytes) + b->at, bytes);
    b->at += bytes;
    r->bytes_left -= bytes;
    return DT_OK;
}

static dt_status save_state(const dt_stage *stage, blob *b)
{
    dt_writer w = {.struct_size = sizeof(w), .priv = b, .write = write_blob};
    const dt_status st = stage->d.phase->ops.phase.save(stage->self, &w);
    return st > 0 ? DT_OK : st;
}

/* What save wrote, and again what save writes then: the same bytes. */
static dt_status load_state(const dt_stage *stage, blob *b)
{
    const dt_loaded *phase = stage->d.phase;
    dt_reader r = {.struct_size = sizeof(r), .priv = b, .bytes_left = b->bytes.bytes, .read = read_blob};
    DT_TRY_PLUGIN(phase->ops.phase.load(stage->self, &r, phase->desc.state_version), "load");
    if (r.bytes_left > 0) {
        return DT_FAIL(DT_EPLUGIN, "load leaves %llu of the %zu bytes that save wrote",
                       (unsigned long long)r.bytes_left, b->bytes.bytes);
    }
    blob again = {.at = 0};
    dt_status st = save_state(stage, &again);
    if (st == DT_OK && (again.bytes.bytes != b->bytes.bytes ||
                        memcmp(dt_str_text(&again.bytes), dt_str_text(&b->bytes), b->bytes.bytes) != 0)) {
        st = DT_FAIL(DT_EPLUGIN, "after load, save writes other bytes than those that were loaded; a resumed run would "
                                 "continue differently");
    }
    dt_str_fini(&again.bytes);
    return st;
}

static dt_status save_and_load(const trial *x, const dt_stage *stage)
{
    const dt_phase_ops *ops = &stage->d.phase->ops.phase;
    blob b = {.at = 0};
    dt_status st = DT_OK;
    bool is_saved = false;
    if (ops->save != NULL && dt_trial_begin_step(x->t, "save")) {
        st = save_state(stage, &b);
        is_saved = st == DT_OK;
    }
    if (is_saved && ops->load != NULL && dt_trial_begin_step(x->t, "load")) {
        st = load_state(stage, &b);
        if (st == DT_OK) {
            append_note(x, "saved and loaded");
        }
    }
    dt_str_fini(&b.bytes);
    return st;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static dt_status save_checkpoint(const trial *x, dt_stage *stage, const char *name, dt_ckpt_info *info)
{
    char folder[96];
    snprintf(folder, sizeof(folder), "%s/%s", x->folder, name);
    DT_TRY(dt_fs_mkdirs(folder));
    const dt_snapshot_desc d = {.run_dir = folder, .comm = stage->d.comm, .ranks = 1, .n_shards = 1};
    return dt_snapshot_save(stage, &d, info);
}

/* The weights after all iterations, from a checkpoint in the middle. */
static dt_status resume(const trial *x, const char *dir, char hash[17])
{
    life l;
    dt_ckpt *c = NULL;
    dt_ckpt_info info = {0};
    dt_progress p = {.struct_size = sizeof(p)};
    int n = 0;
    dt_status st = lifecycle_create(&l, x);
    if (st >= 0) {
        st = dt_stage_start(l.stage);
    }
    if (st >= 0 && dir != NULL) {
        st = dt_ckpt_open(dir, false, NULL, &c);
    }
    if (st >= 0 && c != NULL) {
        st = dt_snapshot_load(l.stage, c);
    }
    dt_ckpt_close(c);
    if (st >= 0) {
        st = iterate(l.stage, dir != NULL ? HALF : ITERATIONS, &n, &p);
    }
    if (st >= 0) {
        st = save_checkpoint(x, l.stage, dir != NULL ? "resumed" : "again", &info);
    }
    memcpy(hash, info.weights_hash, sizeof(info.weights_hash));
    lifecycle_end(&l);
    return st > 0 ? DT_OK : st;
}

/* "" without an environment; else results of third-party ones come from processes, at addresses of their own. */
static const char *list_env_causes(const trial *x, char out[160])
{
    out[0] = '\0';
    if (x->has_rollout) {
        snprintf(out, 160, ", or the environment, whose results must not differ between processes: dtrain check %s",
                 x->s->opts[x->s->first].env.id);
    }
    return out;
}

/* Without a checkpoint the same weights, or not? Then that is the reason. */
static dt_status diagnose_resume_mismatch(const trial *x)
{
    char hash[17], causes[160];
    DT_TRY(resume(x, NULL, hash));
    return strcmp(hash, x->hash) != 0
               ? DT_FAIL(DT_EPLUGIN,
                         "a second instance of the phase in this process ends %d iterations in other weights than the "
                         "first: static variables that change, a record or forward that differs from call to call, "
                         "random numbers that are not those of the seed%s",
                         ITERATIONS, list_env_causes(x, causes))
               : DT_FAIL(DT_EPLUGIN,
                         "%d iterations, save, load and %d more end in other weights than %d without a stop: save "
                         "leaves out state that iterations depend on, or load does not restore it",
                         HALF, HALF, ITERATIONS);
}

static dt_status try_resume(const trial *x, const char *dir)
{
    char hash[17];
    DT_TRY(resume(x, dir, hash));
    if (strcmp(hash, x->hash) != 0) {
        return diagnose_resume_mismatch(x);
    }
    append_note(x, "resumed to the same weights");
    return DT_OK;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

static dt_status compare_inputs(const dt_trainer *in_run, const dt_trainer *loaded)
{
    const char *name = NULL;
    const float *then = NULL;
    uint32_t n = 0, n_now = 0;
    for (uint32_t i = 0; (then = dt_trainer_evaluated_input(in_run, i, &name, &n)) != NULL; i++) {
        const float *now = dt_trainer_acting_input(loaded, name, &n_now);
        if (now == NULL || n_now != n || memcmp(now, then, n * sizeof(float)) != 0) {
            return DT_FAIL(
                DT_EPLUGIN,
                "the evaluation computes with %g in step input %s, and an export of the checkpoint would act "
                "with %g; declare the value of evaluations by set_acting (dtrain/svc/train.h)",
                (double)then[0], name, now != NULL ? (double)now[0] : 0.0);
        }
    }
    return DT_OK;
}

static dt_status try_acting(const trial *x, const dt_stage *in_run, const char *dir)
{
    life l;
    dt_status st = lifecycle_create(&l, x);
    if (st >= 0) {
        st = dt_stage_start(l.stage);
    }
    if (st >= 0) {
        st = dt_eval_load_weights(l.stage, dir, NULL);
    }
    if (st >= 0) {
        for (uint32_t i = 0; st >= 0 && i < in_run->n_trains; i++) {
            st = compare_inputs(in_run->train[i].trainer, l.stage->train[i].trainer);
        }
    }
    lifecycle_end(&l);
    return st > 0 ? DT_OK : st;
}

/* ---- another process --------------------------------------------------------------------------------------------- */

enum { MOST_WORDS = 2 * (2 * DT_CLI_MAX_REPEAT) + 60 };

/* dtrain run with the configuration of a, and n words more. */
static void list_command_words(const dt_args *a, const char *const *more, size_t n_more, const char *word[MOST_WORDS])
{
    uint32_t n = 0;
    word[n++] = "dtrain";
    word[n++] = "run";
    word[n++] = "--quiet";
    for (uint32_t i = 0; i < a->n_config; i++) {
        word[n++] = "--config";
        word[n++] = a->config[i];
    }
    for (uint32_t i = 0; i < a->n_set; i++) {
        word[n++] = "--set";
        word[n++] = a->set[i];
    }
    static const char *const plain[] = {"--set", "report.enabled=false",     "--set", "metrics.tensorboard=false",
                                        "--set", "training.eval_interval=0", "--set", "checkpoint.every_seconds=0"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        word[n++] = plain[i];
    }
    for (size_t i = 0; i < n_more; i++) {
        word[n++] = more[i];
    }
    word[n] = NULL;
}

enum { APART_S = 120, SAID_BYTES = 512 }; /* of a run in a process of its own: time, end of its messages */

/* Waits, with a sign of life; -1: it did not end. */
static int wait_for_child(const trial *x, pid_t pid, const char *ranks)
{
    enum { PER_S = 20 };
    int status = -1;
    for (int i = 0; i < APART_S * PER_S; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return status;
        }
        dt_trial_report_call(x->t, "a run in a process of its own, %s", ranks);
        (void)poll(NULL, 0, 1000 / PER_S);
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return -1;
}

/* The last line that the run wrote, without its level. */
static void read_last_line(int fd, char out[SAID_BYTES])
{
    char text[SAID_BYTES];
    const off_t end = lseek(fd, 0, SEEK_END), from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
    ssize_t n = end > 0 ? pread(fd, text, sizeof(text) - 1, from) : 0;
    for (; n > 0 && text[n - 1] == '\n'; n--) {
    }
    text[n > 0 ? n : 0] = '\0';
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    if (strncmp(line, "error ", 6) == 0) {
        line += 6;
    }
    snprintf(out, SAID_BYTES, "%s", line[0] != '\0' ? line : "without a message");
}

static dt_status check_exit_status(const char *ranks, int status, const char *said)
{
    if (status == -1) {
        return DT_FAIL(DT_EPLUGIN, "a run with %s did not end within %d s", ranks, APART_S);
    }
    if (WIFSIGNALED(status)) {
        return DT_FAIL(DT_EPLUGIN, "a run with %s was ended by signal %d (%s): %s", ranks, WTERMSIG(status),
                       strsignal(WTERMSIG(status)), said);
    }
    return WEXITSTATUS(status) == DT_EXIT_DONE
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN, "a run with %s ended with code %d: %s", ranks, WEXITSTATUS(status), said);
}

static void exec_run(const trial *x, const char *const *word, int said)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    (void)dup2(said, STDERR_FILENO);
    if (x->search != NULL && x->search[0] != '\0') {
        (void)setenv("DTRAIN_PLUGIN_PATH", x->search, 1);
    }
    execv("/proc/self/exe", (char *const *)(uintptr_t)word);
    _exit(127);
}

/* what: of the run, for messages; what it writes goes into FOLDER.txt. */
static dt_status run_command(const trial *x, const char *what, const char *const *word, const char *folder)
{
    char text[200], said[SAID_BYTES];
    int fd = -1;
    snprintf(text, sizeof(text), "%s.txt", folder);
    DT_TRY(dt_fs_open(text, O_RDWR | O_CREAT | O_TRUNC, &fd));
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        exec_run(x, word, fd);
    }
    const int status = pid > 0 ? wait_for_child(x, pid, what) : 0;
    dt_status st = pid > 0 ? DT_OK : DT_FAIL(DT_EUNSUPPORTED, "cannot start a process: %s", strerror(errno));
    read_last_line(fd, said);
    close(fd);
    if (st == DT_OK) {
        st = check_exit_status(what, status, said);
    }
    return st;
}

static dt_status run_in_own_process(const trial *x, const char *ranks, char hash[17])
{
    const char *word[MOST_WORDS];
    char folder[192], steps[24];
    dt_ckpt_info info = {0};
    snprintf(folder, sizeof(folder), "%s/%s-%s", x->folder, x->model != NULL ? x->model : "phase", ranks);
    snprintf(steps, sizeof(steps), "%llu", (unsigned long long)x->steps);
    const char *const more[] = {"--plugin", x->a->plugin, "--run-dir",        folder,  "--max-steps",
                                steps,      "--set",      "comm.backend=sim", "--set", ranks};
    list_command_words(x->a, more, sizeof(more) / sizeof(more[0]), word);
    DT_TRY(run_command(x, ranks, word, folder));
    DT_TRY(dt_ckpt_inspect(folder, &info));
    memcpy(hash, info.weights_hash, sizeof(info.weights_hash));
    return DT_OK;
}

/* Each rank needs a shard, and an instance of the environment where there is one. */
static bool has_work_for_two(const trial *x)
{
    const dt_sections *o = &x->s->opts[x->s->first];
    const bool has_shards = o->data.shards >= 2, has_instances = !x->has_rollout || o->env.instances >= 2;
    if (!has_shards || !has_instances) {
        append_note(x, has_shards ? "not tried on 2 ranks, as env.instances is 1"
                                  : "not tried on 2 ranks, as data.shards is 1");
    }
    return has_shards && has_instances;
}

static dt_status try_in_own_process(const trial *x)
{
    char two[17], one[17], causes[160];
    const bool has_two = has_work_for_two(x);
    DT_TRY(has_two ? run_in_own_process(x, "comm.ranks=2", two) : DT_OK);
    if (has_two && strcmp(two, x->hash) == 0) {
        append_note(x, "the same weights in another process on 2 ranks");
        return DT_OK;
    }
    DT_TRY(run_in_own_process(x, "comm.ranks=1", one));
    if (strcmp(one, x->hash) != 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "%d iterations in another process end in other weights: something depends on addresses, the "
                       "time, or the process%s",
                       ITERATIONS, list_env_causes(x, causes));
    }
    return !has_two ? DT_OK
                    : DT_FAIL(DT_EPLUGIN,
                              "%d iterations on 2 virtual ranks end in other weights than on 1: ranks must compute the "
                              "same, or agree by dtrain.comm/1",
                              ITERATIONS);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status require_model(const trial *x, const dt_stage *stage)
{
    for (uint32_t i = 0; i < stage->n_models && x->model != NULL; i++) {
        if (strcmp(stage->model[i].comp->desc.id, x->model) == 0) {
            return DT_OK;
        }
    }
    return x->model == NULL ? DT_OK
                            : DT_FAIL(DT_ECONFIG, "%s does not use a model of this role here", stage->d.phase->desc.id);
}

static dt_status try_evaluating(trial *x, dt_stage *stage)
{
    dt_progress unused;
    if (stage->d.phase->ops.phase.evaluate == NULL || !dt_trial_begin_step(x->t, "evaluate")) {
        return DT_OK;
    }
    DT_TRY(dt_stage_evaluate(stage, &unused));
    append_note(x, "evaluated");
    return DT_OK;
}

/* Four iterations, with an evaluation and a checkpoint in the middle; info: of that. */
static dt_status run_iterations(trial *x, dt_stage *stage, dt_ckpt_info *info, bool *has_checkpoint_p)
{
    dt_progress p = {.struct_size = sizeof(p)};
    dt_progress_mark first;
    dt_ckpt_info end = {0};
    int n = 0, n_more = 0;
    if (!dt_trial_begin_step(x->t, "iterate")) { /* it failed in a process before: the rest is tried without it */
        DT_TRY(try_evaluating(x, stage));
        return save_and_load(x, stage);
    }
    dt_status st = iterate(stage, 1, &n, &p);
    dt_progress_mark_capture(&first, stage, &p);
    if (st == DT_OK) {
        st = iterate(stage, HALF - 1, &n_more, &p);
        n += n_more;
        n_more = 0;
    }
    DT_TRY_DONE(st);
    DT_TRY(try_evaluating(x, stage));
    *has_checkpoint_p = st == DT_OK && stage->trainer != NULL && dt_trial_begin_step(x->t, "a checkpoint");
    DT_TRY(*has_checkpoint_p ? save_checkpoint(x, stage, "half", info) : DT_OK);
    if (st == DT_OK && dt_trial_begin_step(x->t, "iterate")) {
        st = iterate(stage, HALF, &n_more, &p);
        DT_TRY_DONE(st);
    }
    dt_str_addf(x->note, "%siterated %d times", x->note->bytes > 0 ? ", " : "", n + n_more);
    if (st != DT_DONE && !dt_progress_mark_differs(&first, stage, &p)) {
        return DT_FAIL(DT_EPLUGIN,
                       "iterate: %d calls advanced neither step, epoch nor iterations of dt_progress, nor "
                       "the trainer or an environment; a run would never end",
                       n + n_more);
    }
    x->is_whole = n + n_more == ITERATIONS;
    if (*has_checkpoint_p && x->is_whole) {
        DT_TRY(save_checkpoint(x, stage, "whole", &end));
        memcpy(x->hash, end.weights_hash, sizeof(x->hash));
        x->steps = dt_trainer_step_number(stage->trainer);
    }
    return save_and_load(x, stage); /* last: load changes what iterations depend on */
}

/* Graphs are recorded when they are needed: later ones must be the same. */
static dt_status try_recording_of(dt_trainer *t)
{
    dt_str one = {0}, two = {0};
    dt_status st = dt_trainer_record_again(t, &one);
    if (st >= 0) {
        st = dt_trainer_record_again(t, &two);
    }
    if (st >= 0 && strcmp(dt_str_text(&one), dt_str_text(&two)) != 0) {
        st = DT_FAIL(DT_EPLUGIN, "record records another graph when it is called again: a graph depends on options and "
                                 "sizes alone, not on static variables, earlier calls, or random numbers");
    }
    dt_str_fini(&one);
    dt_str_fini(&two);
    return st;
}

static dt_status try_recording(const dt_stage *stage)
{
    for (uint32_t i = 0; i < stage->n_trains; i++) {
        DT_TRY(try_recording_of(stage->train[i].trainer));
    }
    return DT_OK;
}

static dt_status try_first_process(trial *x, dt_ckpt_info *info, bool *has_checkpoint_p)
{
    life l;
    if (!dt_trial_begin_step(x->t, "create")) {
        return DT_OK;
    }
    dt_status st = lifecycle_create(&l, x);
    if (st >= 0) {
        st = require_model(x, l.stage);
    }
    if (st < 0) {
        lifecycle_end(&l);
        return st;
    }
    append_note(x, "created");
    if (dt_trial_begin_step(x->t, "start")) {
        st = dt_stage_start(l.stage);
        if (st >= 0) {
            append_note(x, "started");
            st = l.stage->trainer != NULL && dt_trial_begin_step(x->t, "record again") ? try_recording(l.stage) : DT_OK;
        }
        if (st >= 0) {
            st = run_iterations(x, l.stage, info, has_checkpoint_p);
        }
    }
    x->has_rollout = l.stage->rollout != NULL;
    const bool has_evaluated = st >= 0 && *has_checkpoint_p && l.stage->d.phase->ops.phase.evaluate != NULL;
    if (has_evaluated && dt_trial_begin_step(x->t, "evaluating a checkpoint")) {
        st = try_acting(x, l.stage, info->path);
    }
    if (dt_trial_begin_step(x->t, "stop")) {
        dt_stage_stop(l.stage);
        append_note(x, "stopped");
        if (dt_trial_begin_step(x->t, "destroy")) {
            lifecycle_end(&l);
            append_note(x, "destroyed");
        }
    }
    return st == DT_ECONFIG || st == DT_ENOTFOUND || st == DT_EUNSUPPORTED ? DT_CONTEXT(DT_EPLUGIN, "after create")
                                                                           : st;
}

static dt_status try_all(trial *x)
{
    dt_ckpt_info info = {0};
    bool has_checkpoint = false;
    DT_TRY(try_first_process(x, &info, &has_checkpoint));
    if (x->steps > 0 && dt_trial_begin_step(x->t, "resuming")) {
        DT_TRY(try_resume(x, info.path));
    }
    if (x->steps > 0 && dt_trial_begin_step(x->t, "another process")) {
        DT_TRY(try_in_own_process(x));
    }
    return DT_OK;
}

dt_status dt_phase_trial(const dt_session *s, const dt_args *a, const char *folder, const char *model, dt_trial *t,
                         dt_str *note_p)
{
    trial x = {.s = s, .a = a, .folder = folder, .model = model, .t = t, .note = note_p};
    return try_all(&x);
}

dt_status dt_phase_trial_collect(const dt_args *a, const char *env, const char *search, const char *folder, dt_trial *t,
                                 dt_str *out)
{
    const trial x = {.folder = folder, .search = search, .t = t};
    const char *word[MOST_WORDS];
    dt_str run = {0}, of_env = {0};
    dt_str_addf(&run, "%s/collected", folder);
    dt_str_addf(&of_env, "env.id=%s", env);
    dt_str_addf(out, "%s/rollouts/phase2_ppo-1", dt_str_text(&run));
    const char *const more[] = {"--plugin",  "phase2_ppo",
                                "--run-dir", dt_str_text(&run),
                                "--set",     dt_str_text(&of_env),
                                "--set",     "rollouts.keep=100000",
                                "--set",     "data.batch=16",
                                "--set",     "phase2_ppo.iterations=2",
                                "--set",     "phase2_ppo.train_batch=256",
                                "--set",     "phase2_ppo.fragment=32",
                                "--set",     "phase2_ppo.sgd_epochs=1"};
    dt_status st = run.failed || of_env.failed ? DT_FAIL(DT_ENOMEM, "out of memory for a command") : dt_str_status(out);
    if (st == DT_OK) {
        list_command_words(a, more, sizeof(more) / sizeof(more[0]), word);
        st = run_command(&x, "phase2_ppo", word, dt_str_text(&run));
    }
    dt_str_fini(&run);
    dt_str_fini(&of_env);
    return st < 0 ? DT_CONTEXT(DT_EUNSUPPORTED, "no rollouts to learn from") : DT_OK;
}
