/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the command line: verbs, options, exit codes, environment, files. cli.c parses and helps by them;
 * cli_doc.c, a program of the build machine, writes the manual page and the completion from them. Static, because the
 * second is linked with nothing of dtrain.
 */
#ifndef DTRAIN_CORE_CLI_CLI_TABLE_H
#define DTRAIN_CORE_CLI_CLI_TABLE_H

#include "cli/cli.h"

#include <stddef.h>

enum {
    V_RUN = 1,
    V_EVAL = 2,
    V_LIST = 4,
    V_SHOW = 8,
    V_CHECK = 16,
    V_NEW = 32,
    V_DATA = 64,
    V_CKPT = 128,
    V_DOCTOR = 256,
    V_RUNS = 512,
    V_REPORT = 1024,
    V_WATCH = 2048,
    V_EXPORT = 4096,
    V_RENDER = 8192,
    V_BENCH = 16384,
    V_CONFIG = 32768,
    V_ALL = 65535
};
enum { A_FLAG, A_VALUE, A_REPEAT, A_OPTIONAL };

typedef struct verb {
    const char *name;
    uint32_t bit;
    const char *words, *summary, *examples;
} verb;

static const verb verbs[] = {
    {"run", V_RUN, "", "train the phases of a configuration, or one plugin",
     "  dtrain --plugin phase1_world_model.so\n"
     "  dtrain --plugin phase1_world_model --set data.store=stores/ngsim --set training.epochs=20\n"
     "  dtrain --config hybrid.cfg --run-dir runs/first\n"
     "  dtrain run --resume runs/first\n"
     "  dtrain --config hybrid.cfg --run-dir runs/job --resume auto\n"
     "  dtrain --plugin phase1_world_model --set models.world=world_gru --dry-run\n"},
    {"eval", V_EVAL, "", "evaluate a checkpoint on held-out data",
     "  dtrain eval --plugin phase1_world_model --checkpoint runs/first --json\n"
     "  dtrain eval --plugin phase1_world_model --checkpoint runs/first --set data.store=stores/other\n"},
    {"export", V_EXPORT, "", "the trained models of a checkpoint as one file, for programs without dtrain",
     "  dtrain export --checkpoint runs/first --out policy.safetensors\n"
     "  dtrain export --checkpoint runs/first --format onnx --out policy.onnx\n"
     "  dtrain export --checkpoint runs/hybrid --phase 2 --json\n"},
    {"list", V_LIST, "", "the plugins that can be found", "  dtrain list\n  dtrain list --json\n"},
    {"show", V_SHOW, "ID|FILE", "a component: options with value, origin, range and unit; ports; source",
     "  dtrain show risk_gnn\n  dtrain show ./my_phase.so\n  dtrain show phase1_world_model --set training.epochs=5\n"},
    {"check", V_CHECK, "FILE", "check a plugin: descriptor, options, a life cycle on zero or embedded data",
     "  dtrain check ./my_phase.so\n  dtrain check ./my_controller.so --env env_traffic\n"},
    {"new", V_NEW, "phase|policy|model|env|data NAME DIR",
     "write a plugin project that builds with pkg-config dtrain alone; policy: a phase that learns by acting",
     "  dtrain new model my_world ./my_world && make -C my_world\n"
     "  dtrain new policy my_a2c ./my_a2c\n"
     "  dtrain new env my_game ./my_game --language c++\n"},
    {"data", V_DATA,
     "import SRC... | inspect STORE | export STORE FILE | merge STORE... | split STORE | sample STORE | cut STORE",
     "recordings into stores, what a store holds, a store as one csv table or HDF5 file, and stores out of stores",
     "  dtrain data import recording/ --out stores/mine\n"
     "  dtrain data import states.csv.xz --out stores/ngsim\n"
     "  dtrain data import a_tracks.csv b_tracks.csv --out stores/both --jobs 2\n"
     "  dtrain show import                       every import.KEY, for --set; so show split, show cut\n"
     "  dtrain data inspect stores/ngsim --json\n"
     "  dtrain data inspect stores/ngsim --out scene.svg\n"
     "  dtrain data export stores/ngsim ngsim.csv     a table; .h5: HDF5\n"
     "  dtrain data merge stores/a stores/b --out stores/both\n"
     "  dtrain data split stores/both --out parts --set split.by=site\n"
     "  dtrain data sample stores/both --out small --set sample.scenes=10 --set sample.seconds=60\n"
     "  dtrain data cut stores/town --out regions --set cut.regions=4\n"},
    {"config", V_CONFIG, "import FILE.yaml | template [PHASE] | keys",
     "configurations: one from a YAML file of the guides, one with every key to begin with, which key is which",
     "  dtrain config import config_phase2.yaml --out phase2.cfg\n"
     "  dtrain config import config_max.yaml --phase 3 | less\n"
     "  dtrain config template phase1_world_model --out mine.cfg\n"
     "  dtrain config keys                       the guides' keys and ours\n"},
    {"ckpt", V_CKPT, "list RUN | inspect CHECKPOINT | verify RUN|CHECKPOINT",
     "the checkpoints of a run; verify reads every byte of all of them: 4 where one is damaged",
     "  dtrain ckpt list runs/first\n  dtrain ckpt inspect runs/first --json\n"
     "  dtrain ckpt verify runs/first\n"},
    {"doctor", V_DOCTOR, "[STORE...]", "is this machine fit to train on: PASS, WARN or FAIL a line, and what to do",
     "  dtrain doctor\n  dtrain doctor stores/mine\n  dtrain doctor --run-dir /scratch/runs --json\n"},
    {"runs", V_RUNS, "[DIR]",
     "the runs below a folder, at any depth: running, interrupted, stopped, done or failed, how far, how good",
     "  dtrain runs\n  dtrain runs /scratch/runs --json\n"},
    {"report", V_REPORT, "RUN...", "one HTML file of a run, or of several side by side",
     "  dtrain report runs/first\n  dtrain report runs/first runs/second --out compared.html\n"},
    {"render", V_RENDER, "RUN|CHECKPOINT", "an evaluated episode from above: an HTML file that plays it, or SVG files",
     "  dtrain render runs/first\n"
     "  dtrain render runs/first --phase phase2_ppo --seeds 7 --every 0.5 --out merge.html\n"
     "  dtrain render runs/first --out pictures --every 10\n"},
    {"watch", V_WATCH, "RUN", "a run live on the terminal: progress, and every number with its course",
     "  dtrain watch runs/first\n  dtrain watch runs/first --json\n"},
    {"bench", V_BENCH, "comm | gpu",
     "latency and bandwidth between processes, and what a step would take on more of them, or takes on a GPU at least",
     "  dtrain bench comm --nproc 2\n"
     "  dtrain bench comm --nproc 4 --parameters 1.2 --step-time 0.35\n"
     "  mpirun -n 8 --hostfile hosts dtrain bench comm --json\n"
     "  dtrain bench gpu --predict H100 --plugin phase1_world_model --set amp.enabled=true\n"},
};

typedef struct later {
    const char *verb, *text;
} later;

static const later later_verbs[] = {
    {"launch", "starting several processes is not built into this version"},
};

typedef struct option {
    const char *name;
    char letter;
    int kind;
    uint32_t verbs;
    size_t member, count; /* offsets in dt_args */
    const char *value, *help;
} option;

#define MEMBER(m) offsetof(dt_args, m)
static const option options[] = {
    {"plugin", 0, A_VALUE, V_RUN | V_EVAL | V_EXPORT | V_RENDER | V_BENCH, MEMBER(plugin), 0, "FILE_OR_ID",
     "the phase to run: phase2_ppo.so, ./x/y.so or an id"},
    {"config", 'c', A_REPEAT, V_ALL, MEMBER(config), MEMBER(n_config), "FILE",
     "configuration (libconfig); repeatable, later wins"},
    {"set", 's', A_REPEAT, V_ALL, MEMBER(set), MEMBER(n_set), "KEY=VALUE",
     "one value, e.g. models.world=world_gru; repeatable"},
    {"profile", 0, A_VALUE, V_RUN | V_EVAL | V_SHOW | V_EXPORT | V_RENDER | V_BENCH, MEMBER(profile), 0, "NAME|FILE",
     "a shipped profile below the files"},
    {"phase", 0, A_VALUE, V_RUN | V_EVAL | V_EXPORT | V_RENDER | V_BENCH | V_CONFIG, MEMBER(phase), 0, "all|N|NAME",
     "only this phase of the configuration; config import: which one the file is of, 1, 2 or 3"},
    {"jobs", 'j', A_VALUE, V_DATA, MEMBER(jobs), 0, "N",
     "data import: parts that are made at once; default: as many as there are cores to use"},
    {"run-dir", 0, A_VALUE, V_RUN | V_DOCTOR, MEMBER(run_dir), 0, "DIR",
     "use DIR itself instead of runs/<name>-<time>"},
    {"name", 0, A_VALUE, V_RUN, MEMBER(name), 0, "NAME", "name of the run"},
    {"resume", 0, A_OPTIONAL, V_RUN, MEMBER(resume), MEMBER(has_resume), "[RUN|CHECKPOINT|auto]",
     "go on where a run stopped; without a name, the newest; auto: in --run-dir or of --name, and begin where none is"},
    {"init-from", 0, A_VALUE, V_RUN, MEMBER(init_from), 0, "FILE",
     "start from the weights of a checkpoint or safetensors file"},
    {"trust-plugins", 0, A_FLAG, V_RUN | V_EVAL | V_EXPORT | V_RENDER, MEMBER(trust_plugins), 0, NULL,
     "run the code that the configuration in a run or checkpoint names by a path (docs/explanation/security.md)"},
    {"checkpoint", 0, A_VALUE, V_EVAL | V_EXPORT, MEMBER(checkpoint), 0, "RUN|CHECKPOINT",
     "what to evaluate or export"},
    {"format", 0, A_VALUE, V_EXPORT, MEMBER(format), 0, "safetensors|onnx",
     "safetensors: for libdtrain-policy and any safetensors reader; onnx: for runtimes of ONNX"},
    {"device", 0, A_VALUE, V_RUN | V_EVAL | V_RENDER, MEMBER(device), 0, "auto|cpu|cuda[:i]", "where to compute"},
    {"no-graphs", 0, A_FLAG, V_RUN, MEMBER(no_graphs), 0, NULL,
     "GPU: launch every kernel of a step instead of replaying it"},
    {"nproc", 0, A_VALUE, V_RUN | V_BENCH, MEMBER(nproc), 0, "N",
     "processes to train with, or to measure between, started by mpirun; same results"},
    {"max-restarts", 0, A_VALUE, V_RUN, MEMBER(max_restarts), 0, "N",
     "with --nproc: how often a run that lost a process goes on from its last checkpoint, 3 without it"},
    {"hostfile", 0, A_VALUE, V_RUN | V_BENCH, MEMBER(hostfile), 0, "FILE",
     "with --nproc: mpirun's list of machines, each with its processes"},
    {"check-sync", 0, A_VALUE, V_RUN, MEMBER(check_sync), 0, "N",
     "compare the parameters of all ranks every N steps; a difference ends the run and is named"},
    {"threads", 't', A_VALUE, V_RUN | V_EVAL | V_RENDER | V_BENCH, MEMBER(threads), 0, "N",
     "worker threads; the result does not depend on it"},
    {"seed", 0, A_VALUE, V_RUN, MEMBER(seed), 0, "N", "seed of everything random"},
    {"max-steps", 0, A_VALUE, V_RUN, MEMBER(max_steps), 0, "N", "stop after N steps of this phase, exit code 0"},
    {"max-time", 0, A_VALUE, V_RUN, MEMBER(max_time), 0, "S|5m|2h", "save and leave with 75 after this time"},
    {"profile-steps", 0, A_VALUE, V_RUN, MEMBER(profile_steps), 0, "A:B",
     "where the time of steps A to B goes: trace.json in the run directory, for Perfetto"},
    {"dry-run", 0, A_FLAG, V_RUN, MEMBER(dry_run), 0, NULL,
     "print the plan (parameters, memory, steps), touch nothing"},
    {"print-graph", 0, A_VALUE, V_RUN, MEMBER(print_graph), 0, "plan",
     "with --dry-run: the compiled plan, call by call"},
    {"language", 0, A_VALUE, V_NEW, MEMBER(language), 0, "c|c++", "what the source is written in, c without it"},
    {"env", 0, A_VALUE, V_EVAL | V_RENDER | V_CHECK, MEMBER(env), 0, "ID",
     "evaluate on an environment; check: try controllers and shields in it"},
    {"episodes", 0, A_VALUE, V_EVAL, MEMBER(episodes), 0, "N", "episodes per seed"},
    {"seeds", 0, A_VALUE, V_EVAL | V_RENDER, MEMBER(seeds), 0, "1,2,3", "seeds of the environment"},
    {"out", 'o', A_VALUE, V_DATA | V_REPORT | V_EXPORT | V_RENDER | V_CONFIG, MEMBER(out), 0, "PATH",
     "data: folder of the store or stores to make; report, export, config: the file; render: FILE.html, or a folder; "
     "never standard output"},
    {"every", 0, A_VALUE, V_RENDER, MEMBER(every), 0, "S", "seconds between two moments, 1 without it"},
    {"parameters", 0, A_VALUE, V_BENCH, MEMBER(parameters), 0, "MILLIONS",
     "of the model that is reckoned with, 15 without it"},
    {"step-time", 0, A_VALUE, V_BENCH, MEMBER(step_time), 0, "S",
     "what a step computes on one rank (time/step of a run), 0.1 without it"},
    {"predict", 0, A_VALUE, V_BENCH, MEMBER(predict), 0, "H100|H200|A100|4090",
     "gpu: for this GPU, which need not be there, by calculation from the plan and the figures of its maker"},
    {"json", 0, A_FLAG, V_ALL, MEMBER(json), 0, NULL, "answer in JSON on standard output"},
    {"quiet", 'q', A_FLAG, V_ALL, MEMBER(quiet), 0, NULL, "warnings and errors only"},
    {"verbose", 'v', A_FLAG, V_ALL, MEMBER(verbose), 0, NULL, "more"},
    {"help", 'h', A_FLAG, V_ALL, MEMBER(help), 0, NULL, "this text"},
};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]), N_OPTIONS = sizeof(options) / sizeof(options[0]) };

static const later exit_codes[] = {
    {"0", "done"},
    {"1", "the run failed"},
    {"2", "usage or configuration"},
    {"3", "plugin refused"},
    {"4", "data refused"},
    {"5", "environment or device missing"},
    {"6", "a peer lost, or a collective out of time"},
    {"7", "training diverged"},
    {"75", "interrupted, state saved: run again with --resume"},
    {"128+n", "killed by signal n"},
};

static const later variables[] = {
    {"DTRAIN_PLUGIN_PATH", "folders to look for plugins in, first of all, with ':' between them"},
    {"DTRAIN_CONFIG", "configuration files below those of --config"},
    {"DTRAIN_RUN_DIR", "folder of new run directories instead of runs/"},
    {"DTRAIN_LOG_LEVEL", "what reaches standard error"},
    {"DTRAIN__SECTION__KEY", "one value, above files and below --set"},
    {"NO_COLOR", "no colours, whatever its value"},
};

static const later files[] = {
    {"runs/NAME-TIME-ID/",
     "a run: config.cfg, config.origin.json, meta.json, progress.json, metrics.jsonl, train.log, error.log"},
    {"runs/NAME-TIME-ID/report.html", "every curve and result of a run that ended, in one file"},
    {"runs/NAME-TIME-ID/trace.json", "with --profile-steps: spans of all threads for Perfetto and chrome://tracing"},
    {"runs/NAME-TIME-ID/tensorboard/", "the same numbers for TensorBoard, a folder a phase"},
    {"runs/NAME-TIME-ID/rollouts/", "what a phase did in its environment, where rollouts.keep is set"},
    {"runs/NAME-TIME-ID/checkpoints/", "checkpoints; model.safetensors of each opens in any safetensors reader"},
};

#endif
