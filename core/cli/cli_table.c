/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/cli_table.h"

#include <string.h>

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

enum {
    DT_VERB_RUN,
    DT_VERB_EVAL,
    DT_VERB_EXPORT,
    DT_VERB_LIST,
    DT_VERB_SHOW,
    DT_VERB_CHECK,
    DT_VERB_NEW,
    DT_VERB_CONFIG,
    DT_VERB_CKPT,
    DT_VERB_DOCTOR,
    DT_VERB_RUNS,
    DT_VERB_REPORT,
    DT_VERB_RENDER,
    DT_VERB_WATCH,
    DT_VERB_SEEDS,
    DT_VERB_SWEEP,
    DT_VERB_COMPARE,
    DT_VERB_BENCH,
    N_VERBS
};

_Static_assert((int)DT_VERB_RUN == (int)DT_CLI_RUN, "the default verb");

#define VERB(NAME, SUMMARY, EXAMPLES, ...)                                                                             \
    {                                                                                                                  \
        .name = NAME, .summary = SUMMARY, .examples = EXAMPLES, __VA_ARGS__                                            \
    }
dt_cli_verb dt_cli_verbs[DT_CLI_MAX_VERBS] = {
    [DT_VERB_RUN] = VERB("run", "train the phases of a configuration, or one plugin",
                         "  dtrain --plugin phase1_world_model\n"
                         "  dtrain --plugin phase1_world_model --set data.store=stores/ngsim\n"
                         "  dtrain --config hybrid.cfg --run-dir runs/first\n"
                         "  dtrain run --resume runs/first\n"
                         "  dtrain --config hybrid.cfg --run-dir runs/job --resume auto\n"
                         "  dtrain --plugin phase1_world_model --profile normal --dry-run\n",
                         .is_all = true),
    [DT_VERB_EVAL] = VERB("eval", "evaluate a checkpoint on held-out data, or in its environment",
                          "  dtrain eval --checkpoint runs/first --json\n"
                          "  dtrain eval --checkpoint runs/first --set data.store=stores/other\n"
                          "  dtrain eval --checkpoint runs/town --seeds 1,2,3 \\\n"
                          "      --set evaluation.baselines=controller_fixed\n", ),
    [DT_VERB_EXPORT] =
        VERB("export", "write the trained models of a checkpoint to one file, for programs without dtrain",
             "  dtrain export --checkpoint runs/first --out policy.safetensors\n"
             "  dtrain export --checkpoint runs/first --format onnx --out policy.onnx\n"
             "  dtrain export --checkpoint runs/hybrid --phase 2 --json\n", ),
    [DT_VERB_LIST] = VERB("list", "list the available plugins", "  dtrain list\n  dtrain list --json\n", ),
    [DT_VERB_SHOW] = VERB("show", "show a component: options with value, origin, range and unit; ports; source",
                          "  dtrain show risk_gnn\n"
                          "  dtrain show training\n"
                          "  dtrain show phase1_world_model --set training.epochs=5\n", ),
    [DT_VERB_CHECK] =
        VERB("check", "check a plugin: descriptor, options, a life cycle on zero or embedded data",
             "  dtrain check ./my_phase.so\n  dtrain check ./my_controller.so --env env_traffic\n", .is_free = true),
    [DT_VERB_NEW] = VERB("new", "write a plugin project that builds with only pkg-config dtrain",
                         "  dtrain new model my_world ./my_world && make -C my_world\n"
                         "  dtrain new policy my_a2c ./my_a2c\n"
                         "  dtrain new env my_game ./my_game --language c++\n", ),
    [DT_VERB_CONFIG] = VERB("config", "import a configuration, or write a template",
                            "  dtrain config import config_phase2.yaml --out phase2.cfg\n"
                            "  dtrain config import config_max.yaml --phase 3 | less\n"
                            "  dtrain config template phase1_world_model --out mine.cfg\n"
                            "  dtrain config keys\n", ),
    [DT_VERB_CKPT] = VERB("ckpt", "list, inspect and verify the checkpoints of a run",
                          "  dtrain ckpt list runs/first\n"
                          "  dtrain ckpt inspect runs/first --json\n"
                          "  dtrain ckpt verify runs/first\n", ),
    [DT_VERB_DOCTOR] = VERB("doctor", "check this machine for training: lines with PASS, WARN or FAIL, and the remedy",
                            "  dtrain doctor\n  dtrain doctor stores/mine\n"
                            "  dtrain doctor --run-dir /scratch/runs --json\n", ),
    [DT_VERB_RUNS] = VERB("runs", "list the runs in a folder: running, interrupted, stopped, done or failed",
                          "  dtrain runs\n  dtrain runs /scratch/runs --json\n", ),
    [DT_VERB_REPORT] = VERB("report", "write an HTML report of one run, of several side by side, or of a sweep",
                            "  dtrain report runs/first\n"
                            "  dtrain report runs/first runs/second --out compared.html\n"
                            "  dtrain report runs/sweep-cartpole\n", ),
    [DT_VERB_RENDER] = VERB("render", "draw an evaluated episode from above: an HTML animation, or SVG files",
                            "  dtrain render runs/first\n"
                            "  dtrain render runs/first --seeds 7 --every 0.5 --out merge.html\n"
                            "  dtrain render runs/first --out pictures --every 10\n", ),
    [DT_VERB_WATCH] = VERB("watch", "follow a run on the terminal: progress, and a curve of every metric",
                           "  dtrain watch runs/first\n  dtrain watch runs/first --json\n", ),
    [DT_VERB_SEEDS] = VERB("seeds", "train one configuration with several seeds in parallel, and summarise the results",
                           "  dtrain seeds 1..10 -- --config pole.cfg\n"
                           "  dtrain seeds 1..5,8 --run-dir pole --parallel 4 -- --config pole.cfg\n"
                           "  dtrain report pole\n",
                           .has_rest = true),
    [DT_VERB_SWEEP] = VERB("sweep", "search values of parameters: grid, random, Sobol points, successive halving",
                           "  dtrain sweep examples/sweeps/cartpole.cfg\n"
                           "  dtrain sweep mine.cfg --run-dir runs/mine --parallel 4 --json\n", ),
    [DT_VERB_COMPARE] = VERB("compare", "compare groups of runs: means with intervals, profiles, improvement",
                             "  dtrain compare pole wide\n"
                             "  dtrain compare ppo sac --metric return/mean --steps 100000 --out x.html\n"
                             "  dtrain compare runs/a runs/b --metric min:loss --json\n", ),
    [DT_VERB_BENCH] =
        VERB("bench", "measure communication between processes, or predict the minimum step time on a GPU",
             "  dtrain bench comm --nproc 2\n"
             "  dtrain bench comm --nproc 4 --parameters 1.2 --step-time 0.35\n"
             "  mpirun -n 8 --hostfile hosts dtrain bench comm --json\n"
             "  dtrain bench gpu --predict H100 --plugin phase1_world_model\n",
             .is_all = true),
};

int dt_cli_n_verbs = N_VERBS;

/* ---- forms ------------------------------------------------------------------------------------------------------- */

enum {
    DT_FORM_RUN,
    DT_FORM_EVAL,
    DT_FORM_EXPORT,
    DT_FORM_LIST,
    DT_FORM_SHOW,
    DT_FORM_CHECK,
    DT_FORM_NEW_PHASE,
    DT_FORM_NEW_POLICY,
    DT_FORM_NEW_MODEL,
    DT_FORM_NEW_ENV,
    DT_FORM_NEW_DATA,
    DT_FORM_CONFIG_IMPORT,
    DT_FORM_CONFIG_TEMPLATE,
    DT_FORM_CONFIG_KEYS,
    DT_FORM_CKPT_LIST,
    DT_FORM_CKPT_INSPECT,
    DT_FORM_CKPT_VERIFY,
    DT_FORM_DOCTOR,
    DT_FORM_RUNS,
    DT_FORM_REPORT,
    DT_FORM_RENDER,
    DT_FORM_WATCH,
    DT_FORM_SEEDS,
    DT_FORM_SWEEP,
    DT_FORM_COMPARE,
    DT_FORM_BENCH_COMM,
    DT_FORM_BENCH_GPU,
    N_FORMS
};

#define FORM(VERB, RUN, NAME, WORDS, HELP, LEAST, MOST, COMPLETE)                                                      \
    {                                                                                                                  \
        .verb = VERB, .run = RUN, .name = NAME, .words = WORDS, .help = HELP, .least = LEAST, .most = MOST,            \
        .complete = COMPLETE                                                                                           \
    }
dt_cli_form dt_cli_forms[DT_CLI_MAX_FORMS] = {
    [DT_FORM_RUN] = FORM(DT_VERB_RUN, dt_verb_run, "", "", "", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_EVAL] = FORM(DT_VERB_EVAL, dt_verb_eval, "", "", "", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_EXPORT] = FORM(DT_VERB_EXPORT, dt_verb_export, "", "", "", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_LIST] = FORM(DT_VERB_LIST, dt_verb_list, "", "", "", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_SHOW] = FORM(DT_VERB_SHOW, dt_verb_show, "", "ID|FILE", "id of a component, a plugin's file, or a section",
                          1, 1, DT_CLI_WORD_ID),
    [DT_FORM_CHECK] = FORM(DT_VERB_CHECK, dt_verb_check, "", "FILE", "file of the plugin", 1, 1, DT_CLI_WORD_FILE),
    [DT_FORM_NEW_PHASE] = FORM(DT_VERB_NEW, dt_verb_new, "phase", "NAME DIR", "a phase", 2, 2, DT_CLI_WORD_FOLDER),
    [DT_FORM_NEW_POLICY] = FORM(DT_VERB_NEW, dt_verb_new, "policy", "NAME DIR", "a reinforcement learning phase", 2, 2,
                                DT_CLI_WORD_FOLDER),
    [DT_FORM_NEW_MODEL] = FORM(DT_VERB_NEW, dt_verb_new, "model", "NAME DIR", "a model", 2, 2, DT_CLI_WORD_FOLDER),
    [DT_FORM_NEW_ENV] = FORM(DT_VERB_NEW, dt_verb_new, "env", "NAME DIR", "an environment", 2, 2, DT_CLI_WORD_FOLDER),
    [DT_FORM_NEW_DATA] =
        FORM(DT_VERB_NEW, dt_verb_new, "data", "NAME DIR", "a source of data", 2, 2, DT_CLI_WORD_FOLDER),
    [DT_FORM_CONFIG_IMPORT] = FORM(DT_VERB_CONFIG, dt_verb_config_import, "import", "FILE.yaml",
                                   "import a YAML file of the guides", 1, 1, DT_CLI_WORD_FILE),
    [DT_FORM_CONFIG_TEMPLATE] = FORM(DT_VERB_CONFIG, dt_verb_config_template, "template", "[PHASE]",
                                     "write every key, of one phase or of all", 0, 1, DT_CLI_WORD_PHASE),
    [DT_FORM_CONFIG_KEYS] = FORM(DT_VERB_CONFIG, dt_verb_config_keys, "keys", "",
                                 "list the guides' keys and their counterparts", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_CKPT_LIST] =
        FORM(DT_VERB_CKPT, dt_verb_ckpt_list, "list", "RUN", "list all checkpoints", 1, 1, DT_CLI_WORD_RUN),
    [DT_FORM_CKPT_INSPECT] = FORM(DT_VERB_CKPT, dt_verb_ckpt_inspect, "inspect", "RUN|CHECKPOINT",
                                  "describe one checkpoint, or the newest", 1, 1, DT_CLI_WORD_RUN),
    [DT_FORM_CKPT_VERIFY] = FORM(DT_VERB_CKPT, dt_verb_ckpt_verify, "verify", "RUN|CHECKPOINT",
                                 "read every byte; exit code 4 if one is damaged", 1, 1, DT_CLI_WORD_RUN),
    [DT_FORM_DOCTOR] = FORM(DT_VERB_DOCTOR, dt_verb_doctor, "", "[STORE...]", "stores to check as well", 0,
                            DT_CLI_MAX_WORDS, DT_CLI_WORD_FOLDER),
    [DT_FORM_RUNS] = FORM(DT_VERB_RUNS, dt_verb_runs, "", "[DIR]", "folder to search; default: where runs are created",
                          0, 1, DT_CLI_WORD_FOLDER),
    [DT_FORM_REPORT] =
        FORM(DT_VERB_REPORT, dt_verb_report, "", "RUN...", "runs to compare", 1, DT_CLI_MAX_WORDS, DT_CLI_WORD_RUN),
    [DT_FORM_RENDER] = FORM(DT_VERB_RENDER, dt_verb_render, "", "RUN|CHECKPOINT",
                            "run (its newest weights) or checkpoint that acts", 1, 1, DT_CLI_WORD_RUN),
    [DT_FORM_WATCH] = FORM(DT_VERB_WATCH, dt_verb_watch, "", "RUN", "the run", 1, 1, DT_CLI_WORD_RUN),
    [DT_FORM_SEEDS] = FORM(DT_VERB_SEEDS, dt_verb_seeds, "", "SEEDS",
                           "such as 1..10 or 1,2,5..7; the command after -- is that of one training, without its seed",
                           1, 1, DT_CLI_WORD_NONE),
    [DT_FORM_SWEEP] =
        FORM(DT_VERB_SWEEP, dt_verb_sweep, "", "FILE",
             "arguments, metric, search and parameters (libconfig; docs: experiments)", 1, 1, DT_CLI_WORD_FILE),
    [DT_FORM_COMPARE] =
        FORM(DT_VERB_COMPARE, dt_verb_compare, "", "FOLDER...",
             "each a group: a run, runs of dtrain seeds, the best trial of dtrain sweep, or a folder of runs", 1,
             DT_CLI_MAX_WORDS, DT_CLI_WORD_FOLDER),
    [DT_FORM_BENCH_COMM] = FORM(DT_VERB_BENCH, dt_verb_bench_comm, "comm", "",
                                "measure communication between processes", 0, 0, DT_CLI_WORD_NONE),
    [DT_FORM_BENCH_GPU] = FORM(DT_VERB_BENCH, dt_verb_bench_gpu, "gpu", "",
                               "predict the minimum step time on a GPU from the plan", 0, 0, DT_CLI_WORD_NONE),
};
int dt_cli_n_forms = N_FORMS;

/* ---- options ----------------------------------------------------------------------------------------------------- */

#define MEMBER(m)  offsetof(dt_args, m)
#define F(FORM)    (UINT64_C(1) << DT_FORM_##FORM)
#define F_PLUGIN   (DT_CLI_ALL_FORMS << N_FORMS) /* forms of verbs that plugins add */
#define F_NEW      (F(NEW_PHASE) | F(NEW_POLICY) | F(NEW_MODEL) | F(NEW_ENV) | F(NEW_DATA))
#define F_CONFIG   (F(CONFIG_IMPORT) | F(CONFIG_TEMPLATE) | F(CONFIG_KEYS))
#define F_EVALUATE (F(EVAL) | F(EXPORT) | F(RENDER))
#define F_CFG      (F(RUN) | F_EVALUATE | F(SHOW) | F(CHECK) | F_CONFIG | F(BENCH_GPU) | F_PLUGIN)
dt_cli_option dt_cli_options[DT_CLI_MAX_OPTIONS] = {
    {"plugin", 0, DT_CLI_VALUE, F(RUN) | F(BENCH_GPU), MEMBER(plugin), 0, "FILE_OR_ID",
     "the phase to train: an id such as phase2_ppo, or a plugin's file", DT_CLI_WORD_PHASE},
    {"plugin", 0, DT_CLI_VALUE, F_EVALUATE, MEMBER(plugin), 0, "FILE_OR_ID",
     "the phase: an id or a plugin's file; not needed with a run or checkpoint", DT_CLI_WORD_PHASE},
    {"config", 'c', DT_CLI_REPEAT, F_CFG, MEMBER(config), MEMBER(n_config), "FILE",
     "configuration (libconfig); repeatable, later ones override", DT_CLI_WORD_FILE},
    {"set", 's', DT_CLI_REPEAT, F_CFG & ~F_PLUGIN, MEMBER(set), MEMBER(n_set), "KEY=VALUE",
     "one value, such as models.world=world_gru; repeatable", DT_CLI_WORD_SET},
    {"set", 's', DT_CLI_REPEAT, F_PLUGIN, MEMBER(set), MEMBER(n_set), "KEY=VALUE",
     "one value of its sections, such as split.by=site (dtrain show split); repeatable", DT_CLI_WORD_SET},
    {"profile", 0, DT_CLI_VALUE, F(RUN) | F_EVALUATE | F(SHOW) | F(BENCH_GPU), MEMBER(profile), 0, "NAME|FILE",
     "a shipped profile; files and --set override it", DT_CLI_WORD_PROFILE},
    {"phase", 0, DT_CLI_VALUE, F(RUN) | F(BENCH_GPU), MEMBER(phase), 0, "all|N|ID|N-M",
     "train only these phases of the configuration: a number, an id, or a range such as 2-3", DT_CLI_WORD_PHASE},
    {"phase", 0, DT_CLI_VALUE, F_EVALUATE, MEMBER(phase), 0, "N|ID", "the phase of the run: a number or an id",
     DT_CLI_WORD_PHASE},
    {"phase", 0, DT_CLI_VALUE, F(CONFIG_IMPORT), MEMBER(phase), 0, "1|2|3", "phase of the file", DT_CLI_WORD_CHOICE},
    {"run-dir", 0, DT_CLI_VALUE, F(RUN), MEMBER(run_dir), 0, "DIR", "use DIR itself instead of runs/<name>-<time>",
     DT_CLI_WORD_FOLDER},
    {"run-dir", 0, DT_CLI_VALUE, F(SEEDS), MEMBER(run_dir), 0, "DIR",
     "folder of the runs; the same command continues in it; default: runs/seeds-HASH, by the command after --",
     DT_CLI_WORD_FOLDER},
    {"run-dir", 0, DT_CLI_VALUE, F(SWEEP), MEMBER(run_dir), 0, "DIR",
     "folder of the trials; the same command continues in it; default: runs/sweep-NAME, by the name of FILE",
     DT_CLI_WORD_FOLDER},
    {"parallel", 0, DT_CLI_VALUE, F(SEEDS) | F(SWEEP), MEMBER(parallel), 0, "N",
     "trainings at the same time; default: as many as cores and planned memory allow, one on a GPU; same results",
     DT_CLI_WORD_NONE},
    {"array", 0, DT_CLI_FLAG, F(SWEEP), MEMBER(is_array), 0, NULL,
     "share the folder with other processes of the same sweep, such as tasks of a job array", DT_CLI_WORD_NONE},
    {"metric", 0, DT_CLI_VALUE, F(SEEDS), MEMBER(metric), 0, "NAME",
     "result to compare, such as return/mean of evaluations or loss; default: what runs are ranked by",
     DT_CLI_WORD_NONE},
    {"metric", 0, DT_CLI_VALUE, F(COMPARE), MEMBER(metric), 0, "[min:]NAME",
     "what to compare, min: where less is better; default: what runs are ranked by", DT_CLI_WORD_NONE},
    {"steps", 0, DT_CLI_VALUE, F(COMPARE), MEMBER(steps), 0, "N",
     "compare after N environment steps, or training steps where a run does not count those; default: at the end",
     DT_CLI_WORD_NONE},
    {"run-dir", 0, DT_CLI_VALUE, F(DOCTOR), MEMBER(run_dir), 0, "DIR", "the folder for runs that is checked",
     DT_CLI_WORD_FOLDER},
    {"name", 0, DT_CLI_VALUE, F(RUN), MEMBER(name), 0, "NAME", "name of the run", DT_CLI_WORD_NONE},
    {"resume", 0, DT_CLI_OPTIONAL, F(RUN), MEMBER(resume), MEMBER(has_resume), "[RUN|CHECKPOINT|auto]",
     "resume a stopped run; without a name, the newest; auto: the run of --run-dir or --name, or start it",
     DT_CLI_WORD_RUN},
    {"init-from", 0, DT_CLI_VALUE, F(RUN), MEMBER(init_from), 0, "RUN|FILE",
     "start from the weights of a run, a checkpoint or a safetensors file", DT_CLI_WORD_RUN},
    {"trust-plugins", 0, DT_CLI_FLAG, F(RUN) | F_EVALUATE, MEMBER(trust_plugins), 0, NULL,
     "load plugins that the configuration in a run or checkpoint names by a path (docs: security)", DT_CLI_WORD_NONE},
    {"checkpoint", 0, DT_CLI_VALUE, F(EVAL) | F(EXPORT), MEMBER(checkpoint), 0, "RUN|CHECKPOINT",
     "the run, checkpoint or file of weights", DT_CLI_WORD_RUN},
    {"format", 0, DT_CLI_VALUE, F(EXPORT), MEMBER(format), 0, "safetensors|onnx",
     "safetensors: for libdtrain-policy and any safetensors reader; onnx: for runtimes of ONNX", DT_CLI_WORD_CHOICE},
    {"device", 0, DT_CLI_VALUE, F(RUN) | F(EVAL) | F(RENDER), MEMBER(device), 0, "auto|cpu|cuda[:i]",
     "where to compute", DT_CLI_WORD_CHOICE},
    {"no-graphs", 0, DT_CLI_FLAG, F(RUN), MEMBER(no_graphs), 0, NULL,
     "GPU: launch each kernel of a step instead of replaying a captured graph", DT_CLI_WORD_NONE},
    {"nproc", 0, DT_CLI_VALUE, F(RUN), MEMBER(nproc), 0, "N|MIN:MAX",
     "processes to train with, started by mpirun; same results. MIN:MAX: continues without lost ones, and with those "
     "that "
     "return",
     DT_CLI_WORD_NONE},
    {"nnodes", 0, DT_CLI_VALUE, F(RUN), MEMBER(nnodes), 0, "N|MIN:MAX",
     "with --hostfile: machines to train on; MIN:MAX as for --nproc, which by default is all slots of the machines",
     DT_CLI_WORD_NONE},
    {"nproc", 0, DT_CLI_VALUE, F(BENCH_COMM), MEMBER(nproc), 0, "N", "processes to measure between, started by mpirun",
     DT_CLI_WORD_NONE},
    {"max-restarts", 0, DT_CLI_VALUE, F(RUN), MEMBER(max_restarts), 0, "N",
     "with --nproc: how often a run that lost a process continues from its last checkpoint; default: 3",
     DT_CLI_WORD_NONE},
    {"hostfile", 0, DT_CLI_VALUE, F(RUN) | F(BENCH_COMM), MEMBER(hostfile), 0, "FILE",
     "with --nproc or --nnodes: mpirun's list of machines, each with its processes", DT_CLI_WORD_FILE},
    {"check-sync", 0, DT_CLI_VALUE, F(RUN), MEMBER(check_sync), 0, "N",
     "compare the parameters of all ranks every N steps; a difference is reported and ends the run", DT_CLI_WORD_NONE},
    {"threads", 't', DT_CLI_VALUE, F(RUN) | F(EVAL) | F(RENDER) | F(BENCH_GPU), MEMBER(threads), 0, "N",
     "worker threads; results do not depend on it", DT_CLI_WORD_NONE},
    {"seed", 0, DT_CLI_VALUE, F(RUN), MEMBER(seed), 0, "N", "seed of all random numbers", DT_CLI_WORD_NONE},
    {"max-steps", 0, DT_CLI_VALUE, F(RUN), MEMBER(max_steps), 0, "N", "stop after N steps of this phase, exit code 0",
     DT_CLI_WORD_NONE},
    {"max-time", 0, DT_CLI_VALUE, F(RUN), MEMBER(max_time), 0, "S|5m|2h", "save and exit with code 75 after this time",
     DT_CLI_WORD_NONE},
    {"profile-steps", 0, DT_CLI_VALUE, F(RUN), MEMBER(profile_steps), 0, "A:B",
     "profile steps A to B: trace.json in the run directory, for Perfetto", DT_CLI_WORD_NONE},
    {"dry-run", 0, DT_CLI_FLAG, F(RUN), MEMBER(dry_run), 0, NULL,
     "print the plan (parameters, memory, steps, time) and reject what the run would reject; writes nothing",
     DT_CLI_WORD_NONE},
    {"print-graph", 0, DT_CLI_VALUE, F(RUN), MEMBER(print_graph), 0, "plan",
     "with --dry-run: the compiled plan, call by call", DT_CLI_WORD_CHOICE},
    {"language", 0, DT_CLI_VALUE, F_NEW, MEMBER(language), 0, "c|c++", "language of the source; default: c",
     DT_CLI_WORD_CHOICE},
    {"env", 0, DT_CLI_VALUE, F(EVAL) | F(RENDER), MEMBER(env), 0, "ID", "the environment to evaluate in",
     DT_CLI_WORD_ENV},
    {"env", 0, DT_CLI_VALUE, F(CHECK), MEMBER(env), 0, "ID", "the environment to test controllers and shields in",
     DT_CLI_WORD_ENV},
    {"episodes", 0, DT_CLI_VALUE, F(EVAL), MEMBER(episodes), 0, "N", "episodes per seed", DT_CLI_WORD_NONE},
    {"seeds", 0, DT_CLI_VALUE, F(EVAL) | F(RENDER), MEMBER(seeds), 0, "1,2,3", "seeds of the environment",
     DT_CLI_WORD_NONE},
    {"out", 'o', DT_CLI_VALUE, F(REPORT) | F(EXPORT) | F_CONFIG, MEMBER(out), 0, "FILE", "the file to write",
     DT_CLI_WORD_FILE},
    {"out", 'o', DT_CLI_VALUE, F(COMPARE), MEMBER(out), 0, "FILE", "also write a page (HTML)", DT_CLI_WORD_FILE},
    {"out", 'o', DT_CLI_VALUE, F(RENDER), MEMBER(out), 0, "PATH", "FILE.html, or a folder for SVG files",
     DT_CLI_WORD_FILE},
    {"every", 0, DT_CLI_VALUE, F(RENDER), MEMBER(every), 0, "S",
     "simulated seconds between two frames; default: 1, or 2, 4 ... where an episode is too long for that",
     DT_CLI_WORD_NONE},
    {"parameters", 0, DT_CLI_VALUE, F(BENCH_COMM), MEMBER(parameters), 0, "MILLIONS",
     "parameters of the assumed model; default: 15", DT_CLI_WORD_NONE},
    {"step-time", 0, DT_CLI_VALUE, F(BENCH_COMM), MEMBER(step_time), 0, "S",
     "compute time of a step on one rank (time/step of a run); default: 0.1", DT_CLI_WORD_NONE},
    {"predict", 0, DT_CLI_VALUE, F(BENCH_GPU), MEMBER(predict), 0, "H100|H200|A100|4090",
     "predict for this GPU, which need not be present, from the plan and the vendor's figures", DT_CLI_WORD_CHOICE},
    {"json", 0, DT_CLI_FLAG, DT_CLI_ALL_FORMS & ~F_NEW, MEMBER(json), 0, NULL, "print JSON on standard output",
     DT_CLI_WORD_NONE},
    {"quiet", 'q', DT_CLI_FLAG, DT_CLI_ALL_FORMS, MEMBER(quiet), 0, NULL, "warnings and errors only", DT_CLI_WORD_NONE},
    {"verbose", 'v', DT_CLI_FLAG, DT_CLI_ALL_FORMS, MEMBER(verbose), 0, NULL, "more messages", DT_CLI_WORD_NONE},
    {"help", 'h', DT_CLI_FLAG, DT_CLI_ALL_FORMS, MEMBER(help), 0, NULL, "print this help", DT_CLI_WORD_NONE},
};

/* ---- plugins ----------------------------------------------------------------------------------------------------- */

static int completion_of_value(uint32_t complete)
{
    static const int kind[] = {[DT_COMPLETE_NONE] = DT_CLI_WORD_NONE,
                               [DT_COMPLETE_FILE] = DT_CLI_WORD_FILE,
                               [DT_COMPLETE_FOLDER] = DT_CLI_WORD_FOLDER,
                               [DT_COMPLETE_CHOICE] = DT_CLI_WORD_CHOICE};
    return complete < sizeof(kind) / sizeof(kind[0]) ? kind[complete] : DT_CLI_WORD_NONE;
}

/* Forms of a verb share a row where they have the same option. */
static void add_plugin_option(const dt_verb_option *o, int form_row, int first_row)
{
    const uint64_t bit = UINT64_C(1) << form_row;
    int i = first_row;
    for (; dt_cli_options[i].name != NULL; i++) {
        if (strcmp(dt_cli_options[i].name, o->name) == 0 && strcmp(dt_cli_options[i].help, o->help) == 0) {
            dt_cli_options[i].forms |= bit;
            return;
        }
    }
    if (i + 1 < DT_CLI_MAX_OPTIONS) { /* the last one has no name */
        dt_cli_options[i] = (dt_cli_option){.name = o->name,
                                            .letter = (char)o->letter,
                                            .kind = o->value != NULL ? DT_CLI_VALUE : DT_CLI_FLAG,
                                            .forms = bit,
                                            .member = DT_CLI_OF_PLUGIN,
                                            .value = o->value,
                                            .help = o->help,
                                            .complete = completion_of_value(o->complete)};
    }
}

void dt_cli_add_verb(const dt_verb *v)
{
    int first_option = 0;
    while (dt_cli_options[first_option].name != NULL) {
        first_option++;
    }
    bool is_taken = dt_cli_n_verbs == DT_CLI_MAX_VERBS;
    for (int i = 0; i < dt_cli_n_verbs; i++) {
        is_taken = is_taken || strcmp(dt_cli_verbs[i].name, v->name) == 0;
    }
    if (is_taken) {
        return;
    }
    for (const dt_verb_form *f = v->forms; f->run != NULL && dt_cli_n_forms < DT_CLI_MAX_FORMS; f++) {
        dt_cli_forms[dt_cli_n_forms] = (dt_cli_form){.verb = dt_cli_n_verbs,
                                                     .name = f->name,
                                                     .words = f->words,
                                                     .help = f->help,
                                                     .least = f->min_words,
                                                     .most = f->max_words,
                                                     .complete = completion_of_value(f->complete),
                                                     .of_plugin = f};
        for (const dt_verb_option *o = f->options; o != NULL && o->name != NULL; o++) {
            add_plugin_option(o, dt_cli_n_forms, first_option);
        }
        dt_cli_n_forms++;
    }
    dt_cli_verbs[dt_cli_n_verbs++] =
        (dt_cli_verb){.name = v->name, .summary = v->summary, .examples = v->examples != NULL ? v->examples : ""};
}

uint64_t dt_cli_forms_of(int v)
{
    uint64_t all = 0;
    for (int f = 0; f < dt_cli_n_forms; f++) {
        all |= dt_cli_forms[f].verb == v ? UINT64_C(1) << f : 0;
    }
    return all;
}

bool dt_cli_has_forms(int v)
{
    const uint64_t all = dt_cli_forms_of(v);
    return (all & (all - 1)) != 0;
}

/* ---- environment and files --------------------------------------------------------------------------------------- */

const dt_cli_pair dt_cli_variables[] = {
    {"DTRAIN_PLUGIN_PATH", "folders searched first for plugins, separated by ':'"},
    {"DTRAIN_CONFIG", "configuration files that those of --config override"},
    {"DTRAIN_RUN_DIR", "folder of new run directories instead of runs/"},
    {"DTRAIN_LOG_LEVEL", "lowest level of messages on standard error"},
    {"DTRAIN__SECTION__KEY", "one value: overrides files, overridden by --set"},
    {"NO_COLOR", "if set, no colours"},
    {NULL, NULL},
};

const dt_cli_pair dt_cli_files[] = {
    {"runs/NAME-TIME-ID/",
     "a run: config.cfg, config.origin.json, meta.json, progress.json, metrics.jsonl, train.log, error.log"},
    {"runs/NAME-TIME-ID/report.html", "every curve and result of a run that ended, in one file"},
    {"runs/NAME-TIME-ID/trace.json", "with --profile-steps: spans of all threads for Perfetto and chrome://tracing"},
    {"runs/NAME-TIME-ID/tensorboard/", "the same metrics for TensorBoard, one folder per phase"},
    {"runs/NAME-TIME-ID/rollouts/", "rollouts of a phase, if rollouts.keep is set"},
    {"runs/NAME-TIME-ID/checkpoints/", "checkpoints; model.safetensors of each opens in any safetensors reader"},
    {NULL, NULL},
};
