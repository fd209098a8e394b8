/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's own sections: every key with its default, unit, range and meaning, and the rules across keys.
 * Defaults are those of the systems replaced (training for 50 epochs of a global batch of 64 with AdamW at 1e-3).
 */
#include <config.h>

#include "config/schema.h"
#include "config/tree.h"
#include "base/err.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct models_opts {
    const char *perception, *world, *controller, *shield;
} models_opts;

static const char *const optimizers[] = {DT_OPTIMIZERS(DT_CHOICE_WORD) NULL};
static const char *const schedulers[] = {DT_SCHEDULES(DT_CHOICE_WORD) NULL};
static const char *const reductions[] = {"exact", "fast", NULL};
static const char *const backends[] = {"auto", "null", "sim", "mpi", "nccl", NULL};
static const char *const wires[] = {DT_HALVES(DT_CHOICE_WORD) NULL};
static const char *const amp_dtypes[] = {"bf16", "fp16", NULL};
static const char *const amp_scalings[] = {"auto", "none", "static", "dynamic", NULL};
static const char *const amp_hysteresis[] = {"consecutive", "until_growth", NULL};
static const char *const samplings[] = {DT_SAMPLINGS(DT_CHOICE_WORD) NULL};
static const char *const handed_on[] = {"last", "best", NULL};
static const char *const isolations[] = {"auto", "thread", "process", NULL};

/* 2^200: beyond any gradient in fp32, so that an overflow can be brought about */
#define LARGEST_SCALE 0x1p200

/* clang-format off */
#define ROW(T, member, type, flags, dfl, unit, min, max, choices, help)                                               \
    { #member, dfl, unit, help, choices, min, max, DT_OPT_##type, flags, (uint32_t)offsetof(T, member),               \
      (uint32_t)sizeof(((T *)0)->member), NULL }

static const dt_option root_table[] = {
    ROW(dt_root_opts, seed, I64, 0, "42", "1", 0, 9007199254740992.0, NULL, "seed of every random number of the run"),
    DT_OPTION_END};

static const dt_option models_table[] = {
    ROW(models_opts, perception, STR, 0, "", NULL, 0, 0, NULL,
        "model that turns observations into embeddings; empty = none"),
    ROW(models_opts, world, STR, 0, "", NULL, 0, 0, NULL, "model that predicts future states; empty = none"),
    ROW(models_opts, controller, STR, 0, "", NULL, 0, 0, NULL, "model that proposes actions; empty = none"),
    ROW(models_opts, shield, STR, 0, "", NULL, 0, 0, NULL, "model that keeps actions safe; empty = none"),
    DT_OPTION_END};

static const dt_option data_table[] = {
    ROW(dt_data_opts, store, PATH, 0, "", NULL, 0, 0, NULL,
        "store made by `dtrain data import`; empty = the recording that comes with dtrain"),
    ROW(dt_data_opts, source, STR, 0, "", NULL, 0, 0, NULL,
        "id of the data component that reads the store"),
    ROW(dt_data_opts, batch, I64, DT_OPT_AUTO, "64", "samples", 1, 1048576, NULL,
        "global batch of one optimizer step, all ranks together; auto = what fits into memory when the run begins, a "
        "number from then on"),
    ROW(dt_data_opts, batch_max, I64, DT_OPT_NEUTRAL, "1024", "samples", 1, 1048576, NULL,
        "the largest batch that auto takes"),
    ROW(dt_data_opts, shards, I64, 0, "8", "1", 1, 4096, NULL,
        "shards that the batch is split into and summed over in exact mode; a power of two"),
    ROW(dt_data_opts, prefetch, I64, DT_OPT_NEUTRAL, "2", "batches", 0, 64, NULL,
        "batches read ahead of training; 0 = none"),
    ROW(dt_data_opts, workers, I64, DT_OPT_NEUTRAL, "1", "threads", 1, 64, NULL,
        "threads that read ahead; more help if samples cost more to prepare than to train on"),
    ROW(dt_data_opts, sampling, ENUM, 0, "shuffled", NULL, 0, 0, samplings,
        "order of samples: each once per epoch, shuffled or in sequence; weighted: drawn by the weights of the data "
        "component, as many as there are samples"),
    ROW(dt_data_opts, drop_last, BOOL, 0, "true", NULL, 0, 0, NULL,
        "drop the incomplete last batch of an epoch; false = train on it as a smaller batch"),
    ROW(dt_data_opts, replay_mb, F64, DT_OPT_NEUTRAL, "4096", "MB", 0, 1e9, NULL,
        "a replay buffer that is larger on a rank is kept in a file of the run directory during the run"),
    ROW(dt_data_opts, stream, PATH, 0, "", NULL, 0, 0, NULL,
        "folder of stores 000000, 000001, ... that grows during training; data.store is then used for evaluations; "
        "empty = train on data.store"),
    ROW(dt_data_opts, window, I64, 0, "4096", "samples", 1, 1e12, NULL,
        "stream: samples per epoch, shuffled among themselves; it starts when all of them have arrived"),
    ROW(dt_data_opts, stream_timeout, F64, DT_OPT_NEUTRAL, "3600", "s", 0, 1e9, NULL,
        "stream: fail if the next store has not arrived after this time; 0 = wait forever"),
    ROW(dt_data_opts, stream_room, F64, 0, "2", "1", 1, 1000, NULL,
        "stream: largest sample, as a multiple of the largest one of data.store"),
    DT_OPTION_END};

static const dt_option training_table[] = {
    ROW(dt_training_opts, epochs, I64, 0, "50", "epochs", 1, 1000000, NULL, "passes over the training data"),
    ROW(dt_training_opts, learning_rate, F64, 0, "1e-3", "1", 0, 1000, NULL, "peak step size of the optimizer"),
    ROW(dt_training_opts, weight_decay, F64, 0, "1e-4", "1", 0, 1000, NULL,
        "weight decay; decoupled in adamw, added to the gradient in adam and sgd"),
    ROW(dt_training_opts, gradient_clip, F64, 0, "1.0", "1", 0, INFINITY, NULL,
        "maximum global norm of the gradient; 0 = no clipping"),
    ROW(dt_training_opts, warmup_epochs, I64, 0, "5", "epochs", 0, 1000000, NULL,
        "epochs over which the learning rate rises linearly"),
    ROW(dt_training_opts, eval_interval, I64, 0, "10", "epochs", 0, 1000000, NULL,
        "epochs between evaluations; one follows at the end; 0 = never"),
    ROW(dt_training_opts, save_interval, I64, DT_OPT_NEUTRAL, "5", "epochs", 0, 1000000, NULL,
        "epochs between checkpoints; 0 = only at the end"),
    ROW(dt_training_opts, retries, I64, DT_OPT_NEUTRAL, "1", "1", 0, 1000, NULL,
        "maximum restarts of a failed phase from its last checkpoint: after a lost worker or peer, lack of memory, "
        "an error of files or of a plugin, or divergence"),
    ROW(dt_training_opts, accumulation, I64, 0, "1", "batches", 1, 65536, NULL,
        "batches whose gradients are added up before one update"),
    ROW(dt_training_opts, optimizer, ENUM, 0, "adamw", NULL, 0, 0, optimizers,
        "update rule (AdamW: Loshchilov & Hutter 2019; Adam: Kingma & Ba 2015)"),
    ROW(dt_training_opts, beta1, F64, 0, "0.9", "1", 0, 0.9999999, NULL,
        "decay of the gradient's mean in adam and adamw"),
    ROW(dt_training_opts, beta2, F64, 0, "0.999", "1", 0, 0.9999999, NULL,
        "decay of the gradient's square in adam and adamw"),
    ROW(dt_training_opts, eps, F64, 0, "1e-8", "1", 1e-30, 1, NULL,
        "added to the root of the square in adam and adamw"),
    ROW(dt_training_opts, momentum, F64, 0, "0.9", "1", 0, 0.9999999, NULL, "momentum of sgd"),
    ROW(dt_training_opts, scheduler, ENUM, 0, "cosine", NULL, 0, 0, schedulers,
        "learning rate over time, after warm-up"),
    ROW(dt_training_opts, t_max, I64, 0, "0", "epochs", 0, 1000000, NULL,
        "epoch at which cosine and linear reach eta_min; 0 = the last one"),
    ROW(dt_training_opts, eta_min, F64, 0, "1e-6", "1", 0, 1000, NULL, "lowest learning rate of cosine and linear"),
    ROW(dt_training_opts, step_size, I64, 0, "30", "epochs", 1, 1000000, NULL,
        "epochs between two drops of the learning rate by the scheduler step"),
    ROW(dt_training_opts, step_gamma, F64, 0, "0.1", "1", 0, 1, NULL, "factor of each of these drops"),
    ROW(dt_training_opts, freeze, WORDS, 0, "", NULL, 0, 0, NULL,
        "roles or patterns over <role>.<parameter> that are not trained"),
    ROW(dt_training_opts, freeze_loaded, WORDS, 0, "", NULL, 0, 0, NULL,
        "roles that are not trained if the phase starts from weights that contain them"),
    DT_OPTION_END};

static const dt_option amp_table[] = {
    ROW(dt_amp_opts, enabled, BOOL, 0, "false", NULL, 0, 0, NULL,
        "mixed precision: matrix products in half precision, on a GPU also values between operations; sums in fp32"),
    ROW(dt_amp_opts, dtype, ENUM, 0, "bf16", NULL, 0, 0, amp_dtypes, "half-precision type"),
    ROW(dt_amp_opts, scaling, ENUM, 0, "auto", NULL, 0, 0, amp_scalings,
        "loss scaling; auto = dynamic with fp16, none with bf16"),
    ROW(dt_amp_opts, initial_scale, F64, 0, "65536", "1", 0, LARGEST_SCALE, NULL, "first loss scale; a power of two"),
    ROW(dt_amp_opts, static_scale, F64, 0, "8192", "1", 0, LARGEST_SCALE, NULL, "loss scale of static; a power of two"),
    ROW(dt_amp_opts, min_scale, F64, 0, "1", "1", 0, LARGEST_SCALE, NULL, "lowest loss scale; a power of two"),
    ROW(dt_amp_opts, max_scale, F64, 0, "16777216", "1", 0, LARGEST_SCALE, NULL, "highest loss scale; a power of two"),
    ROW(dt_amp_opts, growth_factor, F64, 0, "2", "1", 1, 65536, NULL,
        "factor by which the loss scale grows; a power of two"),
    ROW(dt_amp_opts, backoff_factor, F64, 0, "0.5", "1", 0, 1, NULL,
        "factor by which the loss scale shrinks; a power of two"),
    ROW(dt_amp_opts, growth_interval, I64, 0, "2000", "steps", 1, 1e15, NULL,
        "steps in a row without overflow, before the loss scale grows"),
    ROW(dt_amp_opts, hysteresis, I64, 0, "2", "steps", 1, 1000000, NULL, "overflows before the loss scale shrinks"),
    ROW(dt_amp_opts, hysteresis_mode, ENUM, 0, "consecutive", NULL, 0, 0, amp_hysteresis,
        "which overflows count: those in a row (Apex), or all until the scale grows (Megatron)"),
    ROW(dt_amp_opts, max_skips, I64, 0, "50", "steps", 1, 1e15, NULL,
        "the run fails after this many skipped steps in a row"),
    DT_OPTION_END};

static const dt_option checkpoint_table[] = {
    ROW(dt_checkpoint_opts, every_steps, I64, DT_OPT_NEUTRAL, "0", "steps", 0, 1e15, NULL,
        "steps between checkpoints; 0 = not by steps"),
    ROW(dt_checkpoint_opts, every_seconds, I64, DT_OPT_NEUTRAL, "60", "s", 0, 1e9, NULL,
        "seconds between checkpoints; 0 = not by time"),
    ROW(dt_checkpoint_opts, mirror_seconds, I64, DT_OPT_NEUTRAL, "5", "s", 0, 1e9, NULL,
        "several processes: seconds between copies of the state in memory, from which a restart continues; "
        "0 = none"),
    ROW(dt_checkpoint_opts, keep_last, I64, DT_OPT_NEUTRAL, "5", "1", 1, 1000000, NULL,
        "checkpoints kept, not counting the best and the ends of phases"),
    ROW(dt_checkpoint_opts, wait_s, I64, DT_OPT_NEUTRAL, "600", "s", 0, 1e9, NULL,
        "how long the end of a phase or run waits for space on a full disk before it fails (10 s when asked to stop); "
        "during a phase training continues, and saves again later"),
    ROW(dt_checkpoint_opts, shard_mb, F64, DT_OPT_NEUTRAL, "8", "MB", 0, 1e6, NULL,
        "minimum size of a shard of the optimizer's state; each rank writes one, and any number of ranks reads them; "
        "0 = rank 0 writes all"),
    ROW(dt_checkpoint_opts, best_by, STR, DT_OPT_NEUTRAL, "", NULL, 0, 0, NULL,
        "evaluation metric that selects the best checkpoint: the largest value, with the prefix min: the smallest"),
    ROW(dt_checkpoint_opts, hand_on, ENUM, 0, "last", NULL, 0, 0, handed_on,
        "checkpoint of this phase from which later ones continue: its last one, or the best by best_by"),
    DT_OPTION_END};

static const dt_option engine_table[] = {
    ROW(dt_engine_opts, threads, I64, DT_OPT_NEUTRAL, "0", "threads", 0, 4096, NULL,
        "workers; 0 = one per core this process may use"),
    ROW(dt_engine_opts, slice_rows, I64, 0, "0", "rows", 0, 65536, NULL,
        "rows of data that a worker processes together; gradients are summed over them first; 0 = 512, which fits "
        "into a cache"),
    ROW(dt_engine_opts, reuse, BOOL, DT_OPT_NEUTRAL, "true", NULL, 0, 0, NULL,
        "let values with disjoint lifetimes share memory"),
    ROW(dt_engine_opts, poison, BOOL, DT_OPT_NEUTRAL, "false", NULL, 0, 0, NULL,
        "fill dead memory with NaN, to find reads of it"),
    ROW(dt_engine_opts, recompute, BOOL, DT_OPT_NEUTRAL, "false", NULL, 0, 0, NULL,
        "recompute marked parts of models in the backward pass: less memory, more time, same result"),
    ROW(dt_engine_opts, recompute_roles, WORDS, DT_OPT_NEUTRAL, "", NULL, 0, 0, NULL,
        "roles whose models engine.recompute is for; empty = all"),
    ROW(dt_engine_opts, reduction, ENUM, 0, "exact", NULL, 0, 0, reductions,
        "exact: gradients are summed in one fixed tree, with the same result on any number of threads and ranks; "
        "fast: by the communication library, with fewer bytes if the number of ranks is not a power of two, but "
        "results depend on that number"),
    ROW(dt_engine_opts, device, STR, DT_OPT_NEUTRAL, "auto", NULL, 0, 0, NULL,
        "where to compute: auto, cpu, cuda, cuda:N or cuda:GPU-<uuid>; auto takes a GPU when one can be used"),
    ROW(dt_engine_opts, graphs, BOOL, DT_OPT_NEUTRAL, "true", NULL, 0, 0, NULL,
        "GPU: capture a step once and replay it; false launches kernel by kernel"),
    ROW(dt_engine_opts, synchronous, BOOL, DT_OPT_NEUTRAL, "false", NULL, 0, 0, NULL,
        "GPU: wait for every kernel, so that a failure is reported where it happened"),
    ROW(dt_engine_opts, in_flight, I64, DT_OPT_NEUTRAL, "2", "batches", 1, 8, NULL,
        "GPU: batches of observations in flight: a policy computes actions for one while other environments step; "
        "results are unchanged"),
    ROW(dt_engine_opts, tf32, BOOL, 0, "false", NULL, 0, 0, NULL, "GPU: matrix products round their inputs to TF32"),
    ROW(dt_engine_opts, micro_shards, I64, DT_OPT_NEUTRAL, "0", "shards", 0, 4096, NULL,
        "micro-batch: shards of a batch computed simultaneously, a power of two; 0 = as many as fit into memory, on "
        "the CPU one per worker; results are unchanged"),
    DT_OPTION_END};

static const dt_option memory_table[] = {
    ROW(dt_memory_opts, target_gb, F64, DT_OPT_NEUTRAL, "0", "GB", 0, 1e6, NULL,
        "memory that this process and its workers may use; a run that would use more computes fewer shards of a "
        "batch simultaneously, and is rejected if that is not enough; 0 = what the machine has"),
    ROW(dt_memory_opts, vram_gb, F64, DT_OPT_NEUTRAL, "0", "GB", 0, 1e6, NULL,
        "the same on a GPU, for a phase's activations and inputs; 0 = what is free there"),
    ROW(dt_memory_opts, warn_fraction, F64, DT_OPT_NEUTRAL, "0.75", "1", 0, 1, NULL,
        "warn when this share of target_gb is in use; 0 = never"),
    ROW(dt_memory_opts, shed_fraction, F64, DT_OPT_NEUTRAL, "0.875", "1", 0, 1, NULL,
        "release memory above this share of target_gb: caches, then prefetched data, then shards computed "
        "simultaneously; results are unchanged; 0 = never"),
    ROW(dt_memory_opts, watch_s, F64, DT_OPT_NEUTRAL, "1", "s", 0.001, 1e6, NULL,
        "time between two checks of the memory in use"),
    DT_OPTION_END};

static const dt_option comm_table[] = {
    ROW(dt_comm_opts, backend, ENUM, DT_OPT_NEUTRAL, "auto", NULL, 0, 0, backends,
        "auto: mpi if mpirun or srun started several processes, else null, and for gradients nccl if each has a "
        "GPU and the library is installed; null: one rank; sim: several virtual ranks in one process; mpi: one rank "
        "per process, by MPI; nccl: the same, and gradients travel from GPU to GPU by NCCL"),
    ROW(dt_comm_opts, ranks, I64, DT_OPT_NEUTRAL, "1", "ranks", 1, 256, NULL,
        "virtual ranks of sim; the number of processes is set by --nproc, mpirun or srun"),
    ROW(dt_comm_opts, timeout_s, F64, DT_OPT_NEUTRAL, "120", "s", 0.1, 1e6, NULL,
        "timeout of a rank that waits for the others; then the run fails and reports what it waited for"),
    ROW(dt_comm_opts, check_every, I64, DT_OPT_NEUTRAL, "0", "steps", 0, 1000000000, NULL,
        "steps between comparisons of the parameters of all ranks: they are equal unless memory or a processor "
        "fails; 0 = never"),
    ROW(dt_comm_opts, bucket_mb, F64, DT_OPT_NEUTRAL, "4", "MB", 0.004, 1024, NULL,
        "size of a gradient bucket that ranks sum; results of exact sums are unchanged"),
    ROW(dt_comm_opts, wire, ENUM, 0, "fp32", NULL, 0, 0, wires,
        "type in which ranks send gradients: bf16 and fp16 take half of the bytes. Shards and partial sums are "
        "rounded to it, also on one rank: results differ from fp32, but not with the number of ranks. fp16 holds "
        "numbers up to 65504"),
    ROW(dt_comm_opts, shard_weights, WORDS, DT_OPT_NEUTRAL, "", NULL, 0, 0, NULL,
        "weights by which data.shards are distributed to ranks of unequal speed: a whole number per rank, as in "
        "2,1,1, by largest remainders; empty = evenly; results are unchanged"),
    DT_OPTION_END};

static const dt_option env_table[] = {
    ROW(dt_env_opts, id, STR, 0, "", NULL, 0, 0, NULL, "id of the environment"),
    ROW(dt_env_opts, mix, WORDS, 0, "", NULL, 0, 0, NULL,
        "several environments to train in, separated by commas: instance i uses entry i modulo their number. An entry "
        "is id or id:option=value;option=value; evaluations use env.id. Empty = env.id alone"),
    ROW(dt_env_opts, instances, I64, 0, "12", "1", 1, 65536, NULL, "environments stepped together"),
    ROW(dt_env_opts, isolation, ENUM, DT_OPT_NEUTRAL, "auto", NULL, 0, 0, isolations,
        "where environments run; auto = threads for built-in ones, processes for third-party ones"),
    ROW(dt_env_opts, workers, I64, DT_OPT_NEUTRAL, "0", "1", 0, 65536, NULL,
        "threads that step environments while the policy acts, 0 = the training threads step them; in processes the "
        "number of processes that share the instances, 0 = engine.threads. An environment that allows one instance "
        "per process always has a process for each"),
    ROW(dt_env_opts, timeout_s, F64, DT_OPT_NEUTRAL, "300", "s", 0.01, 1e6, NULL,
        "timeout of a call of an environment in a process, after which the process is restarted"),
    ROW(dt_env_opts, startup_timeout_s, F64, DT_OPT_NEUTRAL, "0", "s", 0, 1e6, NULL,
        "timeout of the creation of an environment in a process; 0 = env.timeout_s"),
    ROW(dt_env_opts, ring_mb, F64, DT_OPT_NEUTRAL, "4096", "MB", 0.001, 1e6, NULL,
        "maximum memory that a process of environments shares with the host for calls and observations"),
    ROW(dt_env_opts, restarts, I64, DT_OPT_NEUTRAL, "3", "1", 0, 1000000, NULL,
        "maximum restarts of the process of an instance before the run fails"),
    DT_OPTION_END};

static const dt_option opponents_table[] = {
    ROW(dt_opponents_opts, pool, I64, 0, "8", "snapshots", 0, 256, NULL,
        "self-play, in environments with several teams: number of past snapshots of the policy that play the teams "
        "which do not learn; a new one replaces the oldest. 0: the policy plays all teams, and learns from all"),
    ROW(dt_opponents_opts, every, I64, 0, "10", "rounds", 1, 1e9, NULL,
        "rounds of collecting samples and training from one snapshot to the next"),
    ROW(dt_opponents_opts, latest, F64, 0, "0.5", "1", 0, 1, NULL,
        "share of episodes against the current policy; in the others snapshots are drawn uniformly"),
    ROW(dt_opponents_opts, learner, I64, 0, "0", NULL, 0, DT_ENV_MAX_TEAMS - 1, NULL, "number of the team that learns"),
    ROW(dt_opponents_opts, target, STR, 0, "", NULL, 0, 0, NULL,
        "in place of the pool: a target network of the phase, such as target of phase_ddpg; empty = the pool"),
    DT_OPTION_END};

static const dt_option rollouts_table[] = {
    ROW(dt_rollouts_opts, keep, I64, DT_OPT_NEUTRAL, "0", "samples", 0, 1e12, NULL,
        "number of most recent environment steps that a phase keeps in RUN/rollouts for offline learning, in whole "
        "rounds; 0: none"),
    DT_OPTION_END};

static const char *const evaluation_folds[] = {"auto", "held", "all", NULL};

static const dt_option evaluation_table[] = {
    ROW(dt_evaluation_opts, seeds, STR, DT_OPT_NEUTRAL, "1001,1002,1003,1004,1005", NULL, 0, 0, NULL,
        "seeds of the episodes that a policy is evaluated on, separated by commas"),
    ROW(dt_evaluation_opts, episodes, I64, DT_OPT_NEUTRAL, "2", "episodes", 1, 1000000, NULL, "episodes per seed"),
    ROW(dt_evaluation_opts, max_steps, I64, DT_OPT_NEUTRAL, "10000", "env steps", 1, 1e9, NULL,
        "steps after which an evaluated episode is truncated, if the environment has no limit of its own"),
    ROW(dt_evaluation_opts, greedy, BOOL, DT_OPT_NEUTRAL, "true", NULL, 0, 0, NULL,
        "take the most likely action instead of sampling one"),
    ROW(dt_evaluation_opts, folds, ENUM, DT_OPT_NEUTRAL, "auto", NULL, 0, 0, evaluation_folds,
        "data that dtrain eval uses: held = the part that training held out; all = the whole store; auto = held, but "
        "all of a store that the checkpoint was not trained on"),
    ROW(dt_evaluation_opts, baselines, STR, DT_OPT_NEUTRAL, "auto", NULL, 0, 0, NULL,
        "controllers to compare with at the end of a phase, separated by commas; auto = those that the environment "
        "names"),
    ROW(dt_evaluation_opts, env, WORDS, DT_OPT_NEUTRAL, "", NULL, 0, 0, NULL,
        "options of the environment for evaluations only, option=value separated by commas; training-only options "
        "have their defaults there, whatever training uses"),
    DT_OPTION_END};

static const dt_option metrics_table[] = {
    ROW(dt_metrics_opts, tensorboard, BOOL, DT_OPT_NEUTRAL, "true", NULL, 0, 0, NULL,
        "write event files for TensorBoard into tensorboard/ of the run directory"),
    ROW(dt_metrics_opts, histogram_every, I64, DT_OPT_NEUTRAL, "10", "epochs", 0, 1000000, NULL,
        "epochs between histograms of parameters and gradients in event files; 0 = none"),
    ROW(dt_metrics_opts, device_every_s, F64, DT_OPT_NEUTRAL, "2", "s", 0, 1e6, NULL,
        "GPU: time between two readings of its memory in use, utilisation and temperature; 0 = never"),
    DT_OPTION_END};

static const dt_option log_table[] = {
    ROW(dt_log_opts, max_mb, F64, DT_OPT_NEUTRAL, "64", "MB", 0, 1e6, NULL,
        "rotate train.log and error.log when they reach this size; 0 = never"),
    ROW(dt_log_opts, keep, I64, DT_OPT_NEUTRAL, "3", "files", 0, 1000, NULL,
        "older logs that are kept; train.log.1 is the newest of them"),
    ROW(dt_log_opts, every, I64, DT_OPT_NEUTRAL, "1", "iterations", 1, 1e15, NULL,
        "record every Nth iteration (a step of phase 1, a round of phases 2 and 3) in metrics.jsonl and for "
        "TensorBoard; the first, the last and evaluated ones always"),
    DT_OPTION_END};

static const dt_option report_table[] = {
    ROW(dt_report_opts, enabled, BOOL, DT_OPT_NEUTRAL, "true", NULL, 0, 0, NULL,
        "write report.html into the run directory when the run ends"),
    DT_OPTION_END};

const dt_option dt_schema_phase[] = {
    ROW(dt_phase_opts, plugin, STR, DT_OPT_REQUIRED, NULL, NULL, 0, 0, NULL, "file or id of the phase"),
    ROW(dt_phase_opts, init, STR, 0, "", NULL, 0, 0, NULL,
        "initial weights of the phase: random, previous (each role from the newest earlier phase that has it), "
        "a run, a checkpoint or a .safetensors file; empty = previous, random where that has nothing"),
    ROW(dt_phase_opts, freeze, WORDS, 0, "", NULL, 0, 0, NULL,
        "roles or patterns over <role>.<parameter> that are not trained"),
    ROW(dt_phase_opts, fresh, WORDS, 0, "", NULL, 0, 0, NULL,
        "roles that start from random weights, whatever init is"),
    DT_OPTION_END};

const dt_option dt_schema_stop[] = {
    ROW(dt_stop_opts, epochs, I64, 0, "0", "epochs", 0, 1000000, NULL,
        "maximum epochs of the phase; 0 = no limit"),
    ROW(dt_stop_opts, iterations, I64, 0, "0", "1", 0, 1e15, NULL,
        "maximum iterations of the phase; 0 = no limit"),
    ROW(dt_stop_opts, steps, I64, 0, "0", "steps", 0, 1e15, NULL,
        "maximum optimizer steps of the phase; 0 = no limit"),
    ROW(dt_stop_opts, time, F64, 0, "0", "s", 0, 1e9, NULL, "maximum seconds of the phase; 0 = no limit"),
    ROW(dt_stop_opts, metric, STR, 0, "", NULL, 0, 0, NULL,
        "evaluation metric, such as return/mean, that ends the phase by above, below or patience; with "
        "train/ before it one that training records, such as train/charts/episodic_return, checked after every epoch "
        "or round"),
    ROW(dt_stop_opts, above, F64, 0, "0", "1", -INFINITY, INFINITY, NULL,
        "end the phase when the metric is this or more; not given = never"),
    ROW(dt_stop_opts, below, F64, 0, "0", "1", -INFINITY, INFINITY, NULL,
        "end the phase when the metric is this or less; not given = never"),
    ROW(dt_stop_opts, patience, I64, 0, "0", "evaluations", 0, 1000000, NULL,
        "end the phase after this number of evaluations (with train/: epochs, or rounds) in a row without an "
        "improvement of the metric: a larger value, with min: before its name a smaller one; 0 = never"),
    ROW(dt_stop_opts, min_delta, F64, 0, "0", NULL, 0, 1e300, NULL,
        "of patience: the best value must change by more than this to count as an improvement"),
    DT_OPTION_END};
/* clang-format on */

static const struct {
    const char *name;
    const dt_option *table;
} sections[] = {
    {"", root_table},
    {"models", models_table},
    {"data", data_table},
    {"training", training_table},
    {"amp", amp_table},
    {"checkpoint", checkpoint_table},
    {"engine", engine_table},
    {"memory", memory_table},
    {"comm", comm_table},
    {"env", env_table},
    {"opponents", opponents_table},
    {"rollouts", rollouts_table},
    {"evaluation", evaluation_table},
    {"metrics", metrics_table},
    {"report", report_table},
    {"log", log_table},
};

dt_status dt_schema_declare(dt_config *c)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        DT_TRY(dt_config_declare(c, sections[i].name, sections[i].table, NULL));
    }
    return DT_OK;
}

bool dt_config_is_host_section(const char *name)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (strcmp(sections[i].name, name) == 0) {
            return true;
        }
    }
    return strcmp(name, "phases") == 0 || dt_option_find(root_table, name) != NULL ||
           dt_option_find(dt_schema_phase, name) != NULL || strcmp(name, "stop") == 0;
}

const char *dt_config_host_section(uint32_t i)
{
    const size_t n = sizeof(sections) / sizeof(sections[0]) - 1; /* the first one has no name */
    return i < n ? sections[i + 1].name : NULL;
}

/* Refuse the value of a key for a reason that its range cannot express. */
static dt_status reject_key(const dt_config *c, int64_t phase, const char *section, const char *key, const char *why)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s.%s", section, key);
    dt_status st = dt_node_fail(dt_config_effective(c, phase, section, key), dt_str_text(&path), "%s", why);
    dt_str_fini(&path);
    return st;
}

dt_status dt_config_root(dt_config *c, dt_root_opts *out_p)
{
    return dt_config_section(c, -1, "", NULL, 0, out_p, sizeof(*out_p));
}

dt_status dt_config_data(dt_config *c, int64_t phase, dt_data_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "data", NULL, 0, out_p, sizeof(*out_p)));
    if ((out_p->shards & (out_p->shards - 1)) != 0) {
        return reject_key(c, phase, "data", "shards", "expected a power of two: 1, 2, 4, 8, ... 4096");
    }
    return DT_OK;
}

dt_status dt_config_training(dt_config *c, int64_t phase, dt_training_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "training", NULL, 0, out_p, sizeof(*out_p)));
    const bool is_falling = out_p->scheduler == DT_SCHEDULE_COSINE || out_p->scheduler == DT_SCHEDULE_LINEAR;
    /* by default or not: a configuration that was written gives every value */
    if (is_falling && out_p->eta_min > out_p->learning_rate) {
        return reject_key(c, phase, "training", "eta_min",
                          "the rate cannot fall to more than training.learning_rate; lower it, or choose the scheduler "
                          "constant");
    }
    return DT_OK;
}

dt_status dt_config_amp(dt_config *c, int64_t phase, dt_amp_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "amp", NULL, 0, out_p, sizeof(*out_p)));
    const dt_amp_opts *o = out_p;
    const struct {
        const char *key;
        double value;
    } power[] = {{"initial_scale", o->initial_scale}, {"static_scale", o->static_scale},
                 {"min_scale", o->min_scale},         {"max_scale", o->max_scale},
                 {"growth_factor", o->growth_factor}, {"backoff_factor", o->backoff_factor}};
    for (size_t i = 0; i < sizeof(power) / sizeof(power[0]); i++) {
        int exponent = 0;
        if (frexp(power[i].value, &exponent) != 0.5) {
            return reject_key(
                c, phase, "amp", power[i].key,
                "expected a power of two (0.5, 2, 8192, ...): dividing by any other number loses precision");
        }
    }
    if (o->initial_scale < o->min_scale || o->initial_scale > o->max_scale) {
        return reject_key(c, phase, "amp", "initial_scale", "is outside amp.min_scale .. amp.max_scale");
    }
    if (o->growth_factor < 2) {
        return reject_key(c, phase, "amp", "growth_factor", "must be above 1");
    }
    if (o->backoff_factor > 0.5) {
        return reject_key(c, phase, "amp", "backoff_factor", "must be below 1");
    }
    if (o->scaling == DT_AMP_SCALING_AUTO) {
        out_p->scaling = o->dtype == DT_AMP_FP16 ? DT_AMP_SCALING_DYNAMIC : DT_AMP_SCALING_NONE;
    }
    return DT_OK;
}

dt_status dt_config_checkpoint(dt_config *c, int64_t phase, dt_checkpoint_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "checkpoint", NULL, 0, out_p, sizeof(*out_p)));
    if (out_p->hand_on == DT_HAND_ON_BEST && out_p->best_by[0] == '\0') {
        return reject_key(c, phase, "checkpoint", "hand_on", "checkpoint.best_by selects the best checkpoint; set it");
    }
    return DT_OK;
}

dt_status dt_config_engine(dt_config *c, int64_t phase, dt_engine_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "engine", NULL, 0, out_p, sizeof(*out_p)));
    if ((out_p->micro_shards & (out_p->micro_shards - 1)) != 0) {
        return reject_key(c, phase, "engine", "micro_shards", "expected 0 or a power of two: 1, 2, 4, 8, ... 4096");
    }
    return DT_OK;
}

dt_status dt_config_memory(dt_config *c, int64_t phase, dt_memory_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "memory", NULL, 0, out_p, sizeof(*out_p)));
    if (out_p->warn_fraction > 0 && out_p->shed_fraction > 0 && out_p->warn_fraction > out_p->shed_fraction) {
        return reject_key(c, phase, "memory", "warn_fraction", "must be below memory.shed_fraction");
    }
    return DT_OK;
}

static bool parse_weight(const char *word, uint32_t *out_p)
{
    enum { LARGEST = 1000000 };
    int64_t n = 0;
    if (!dt_parse_whole(word, &n) || n < 1 || n > LARGEST) {
        return false;
    }
    *out_p = (uint32_t)n;
    return true;
}

void dt_comm_list_weights(const dt_comm_opts *o, uint32_t *out)
{
    for (uint32_t i = 0; i < o->n_weights; i++) {
        (void)parse_weight(o->shard_weights[i], &out[i]);
    }
}

dt_status dt_config_comm(dt_config *c, int64_t phase, dt_comm_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "comm", NULL, 0, out_p, sizeof(*out_p)));
    if (out_p->backend != DT_COMM_SIM && out_p->ranks != 1) {
        return reject_key(
            c, phase, "comm", "ranks",
            "virtual ranks need comm.backend = \"sim\"; processes are started by --nproc, mpirun or srun");
    }
    for (uint32_t weight = 0; out_p->shard_weights[out_p->n_weights] != NULL; out_p->n_weights++) {
        if (!parse_weight(out_p->shard_weights[out_p->n_weights], &weight)) {
            char why[128];
            snprintf(why, sizeof(why), "\"%.20s\": expected whole numbers from 1 to 1000000, one per rank",
                     out_p->shard_weights[out_p->n_weights]);
            return reject_key(c, phase, "comm", "shard_weights", why);
        }
    }
    return DT_OK;
}

/* "1, 2, 3" into seed; false where it is not that. */
static bool parse_seeds(const char *at, uint64_t *seed, uint32_t *n_p)
{
    for (*n_p = 0; *n_p < DT_EVALUATION_MAX_SEEDS; at++) {
        char *end = NULL;
        errno = 0;
        seed[(*n_p)++] = strtoull(at, &end, 10);
        const bool is_number = end != at && errno == 0 && memchr(at, '-', (size_t)(end - at)) == NULL;
        at = end + strspn(end, " ");
        if (!is_number || (*at != ',' && *at != '\0')) {
            return false;
        }
        if (*at == '\0') {
            return true;
        }
    }
    return false;
}

dt_status dt_config_evaluation(dt_config *c, int64_t phase, dt_evaluation_opts *out_p)
{
    DT_TRY(dt_config_section(c, phase, "evaluation", NULL, 0, out_p, sizeof(*out_p)));
    if (!parse_seeds(out_p->seeds, out_p->seed, &out_p->n_seeds)) {
        char text[96];
        snprintf(text, sizeof(text), "expected up to %d whole numbers with commas between, such as \"1,2,3\"",
                 DT_EVALUATION_MAX_SEEDS);
        return reject_key(c, phase, "evaluation", "seeds", text);
    }
    return DT_OK;
}

dt_status dt_config_metrics(dt_config *c, dt_metrics_opts *out_p)
{
    return dt_config_section(c, -1, "metrics", NULL, 0, out_p, sizeof(*out_p));
}

dt_status dt_config_log(dt_config *c, dt_log_opts *out_p)
{
    return dt_config_section(c, -1, "log", NULL, 0, out_p, sizeof(*out_p));
}

dt_status dt_config_report(dt_config *c, dt_report_opts *out_p)
{
    return dt_config_section(c, -1, "report", NULL, 0, out_p, sizeof(*out_p));
}

dt_status dt_config_env(dt_config *c, int64_t phase, dt_env_opts *out_p)
{
    return dt_config_section(c, phase, "env", NULL, 0, out_p, sizeof(*out_p));
}

static dt_status read_opponents(dt_config *c, int64_t phase, dt_opponents_opts *out_p)
{
    return dt_config_section(c, phase, "opponents", NULL, 0, out_p, sizeof(*out_p));
}

static dt_status read_rollouts(dt_config *c, int64_t phase, dt_rollouts_opts *out_p)
{
    return dt_config_section(c, phase, "rollouts", NULL, 0, out_p, sizeof(*out_p));
}

bool dt_config_is_measured_metric(const char *name)
{
    static const char *const group[] = {"time/", "mem/", "gpu/", "ranks/", "charts/SPS"}, rate[] = "_per_s";
    const size_t n = strlen(name), tail = sizeof(rate) - 1;
    for (size_t i = 0; i < sizeof(group) / sizeof(group[0]); i++) {
        if (strncmp(group[i], name, strlen(group[i])) == 0) {
            return true;
        }
    }
    const bool is_simulated = strncmp(name, "env/", 4) == 0 || strncmp(name, "costs/", 6) == 0;
    return !is_simulated && n >= tail && strcmp(name + n - tail, rate) == 0;
}

/* "train/loss": recorded while training, and no result of evaluations. What depends on the machine would end the phase
 * at another step in every run. */
static dt_status move_training_metric(const dt_node *stop, const char *path, dt_stop_opts *out_p)
{
    static const char prefix[] = "train/";
    if (strncmp(out_p->metric, prefix, sizeof(prefix) - 1) != 0) {
        return DT_OK;
    }
    out_p->training_metric = out_p->metric + sizeof(prefix) - 1;
    out_p->metric = "";
    return out_p->training_metric[0] != '\0' && !dt_config_is_measured_metric(out_p->training_metric)
               ? DT_OK
               : dt_node_fail(stop, path,
                              "metric = \"train/%s\": expected what training records and what is the same in every "
                              "run, such as train/loss or train/charts/episodic_return",
                              out_p->training_metric);
}

/* A target needs both: what is looked at, and the value that it has to reach. */
static dt_status read_stop(dt_config *c, const dt_node *phase, int64_t number, dt_stop_opts *out_p)
{
    char path[64];
    const dt_node *stop = dt_node_find(phase, "stop");
    snprintf(path, sizeof(path), "phases.%lld.stop", (long long)number);
    DT_TRY(dt_group_read(c, dt_schema_stop, stop, path, out_p, sizeof(*out_p)));
    out_p->has_above = dt_node_find(stop, "above") != NULL;
    out_p->has_below = dt_node_find(stop, "below") != NULL;
    const bool has_rule = out_p->has_above || out_p->has_below || out_p->patience > 0;
    out_p->is_min = strncmp(out_p->metric, "min:", 4) == 0;
    if (out_p->is_min) {
        out_p->metric += 4;
    }
    out_p->training_metric = "";
    if (out_p->metric[0] != '\0' && !has_rule) {
        return dt_node_fail(stop, path,
                            "metric needs above, below or patience: { metric = \"return/mean\"; above = -150.0; }");
    }
    if (out_p->metric[0] == '\0' && has_rule) {
        return dt_node_fail(stop, path,
                            "above, below and patience need metric: { metric = \"return/mean\"; above = -150.0; }");
    }
    if (out_p->patience == 0 && dt_node_find(stop, "min_delta") != NULL) {
        return dt_node_fail(stop, path, "min_delta needs patience: { metric = \"return/mean\"; patience = 5; }");
    }
    return move_training_metric(stop, path, out_p);
}

/* A word of fresh that is no role, nor one that models wires in some phase, is a slip of the hand. */
static dt_status check_fresh(const dt_config *c, const dt_node *phase, int64_t number, const char *const *fresh)
{
    const char *names[DT_CONFIG_MAX_ROLES + 1] = {NULL};
    names[dt_config_roles(c, names)] = NULL;
    for (; fresh != NULL && *fresh != NULL; fresh++) {
        if (!dt_config_has_role(c, *fresh)) {
            char path[64];
            dt_str roles = {0};
            dt_config_role_names(c, &roles);
            snprintf(path, sizeof(path), "phases.%lld.fresh", (long long)number);
            const char *near = dt_suggest_word(*fresh, names);
            const dt_status st = dt_node_fail(dt_node_find(phase, "fresh"), path, "\"%s\" is not a role (%s)%s%s%s",
                                              *fresh, dt_str_text(&roles), near != NULL ? "; did you mean \"" : "",
                                              near != NULL ? near : "", near != NULL ? "\"?" : "");
            dt_str_fini(&roles);
            return st;
        }
    }
    return DT_OK;
}

static dt_status check_entry(dt_config *c, const dt_node *phase, int64_t number)
{
    dt_phase_opts p;
    dt_stop_opts stop;
    DT_TRY(dt_config_collect_error(c, read_stop(c, phase, number, &stop)));
    if (dt_node_find(phase, "fresh") == NULL || dt_node_find(phase, "plugin") == NULL) {
        return DT_OK; /* an entry without a plugin is reported elsewhere */
    }
    char path[64];
    snprintf(path, sizeof(path), "phases.%lld", (long long)number);
    const dt_status st = dt_group_read(c, dt_schema_phase, phase, path, &p, sizeof(p));
    return dt_config_collect_error(c, st == DT_OK ? check_fresh(c, phase, number, p.fresh) : st);
}

dt_status dt_config_phase(dt_config *c, int64_t phase, dt_phase_opts *out_p, dt_stop_opts *stop_p)
{
    dt_node *group = dt_config_phase_node(c, phase);
    if (group == NULL) {
        return DT_FAIL(DT_EINVAL, "there is no phase %lld", (long long)phase);
    }
    char path[64];
    snprintf(path, sizeof(path), "phases.%lld", (long long)phase);
    DT_TRY(dt_group_read(c, dt_schema_phase, group, path, out_p, sizeof(*out_p)));
    return read_stop(c, group, phase, stop_p);
}

dt_status dt_config_sections(dt_config *c, int64_t phase, dt_sections *out_p)
{
    DT_TRY(dt_config_data(c, phase, &out_p->data));
    DT_TRY(dt_config_training(c, phase, &out_p->training));
    DT_TRY(dt_config_amp(c, phase, &out_p->amp));
    DT_TRY(dt_config_engine(c, phase, &out_p->engine));
    DT_TRY(dt_config_memory(c, phase, &out_p->memory));
    DT_TRY(dt_config_comm(c, phase, &out_p->comm));
    DT_TRY(dt_config_env(c, phase, &out_p->env));
    DT_TRY(read_opponents(c, phase, &out_p->opponents));
    DT_TRY(read_rollouts(c, phase, &out_p->rollouts));
    DT_TRY(dt_config_evaluation(c, phase, &out_p->evaluation));
    DT_TRY(dt_config_checkpoint(c, phase, &out_p->checkpoint));
    return dt_config_phase(c, phase, &out_p->phase, &out_p->stop);
}

dt_status dt_schema_check(dt_config *c, int64_t phase)
{
    const dt_node *group = phase >= 0 ? dt_config_phase_node(c, phase) : NULL;
    dt_sections o; /* read for their errors */
    DT_TRY(dt_config_collect_error(c, dt_config_data(c, phase, &o.data)));
    DT_TRY(dt_config_collect_error(c, dt_config_training(c, phase, &o.training)));
    DT_TRY(dt_config_collect_error(c, dt_config_amp(c, phase, &o.amp)));
    DT_TRY(dt_config_collect_error(c, dt_config_engine(c, phase, &o.engine)));
    DT_TRY(dt_config_collect_error(c, dt_config_memory(c, phase, &o.memory)));
    DT_TRY(dt_config_collect_error(c, dt_config_comm(c, phase, &o.comm)));
    DT_TRY(dt_config_collect_error(c, dt_config_checkpoint(c, phase, &o.checkpoint)));
    DT_TRY(group != NULL ? check_entry(c, group, phase) : DT_OK);
    DT_TRY(dt_config_collect_error(c, dt_config_evaluation(c, phase, &o.evaluation)));
    DT_TRY(dt_config_collect_error(c, read_opponents(c, phase, &o.opponents)));
    DT_TRY(dt_config_collect_error(c, read_rollouts(c, phase, &o.rollouts)));
    return dt_config_collect_error(c, dt_config_env(c, phase, &o.env));
}
