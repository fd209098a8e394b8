/* SPDX-License-Identifier: Apache-2.0
 *
 * What a phase will take, predicted before its first step: memory by what it is for, time, processes, disk and files.
 * The host's arenas are known exactly: no run maps more. Resident memory is a forecast: what is resident already, and
 * what the run will touch of its arenas and recordings, with the sizes that the data has, or that an environment on
 * trial showed.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_FORECAST_H
#define DTRAIN_CORE_PLAN_FORECAST_H

#include "base/json.h"
#include "rl/experience/service.h"

enum { DT_FORECAST_PARTS = 16 };

typedef struct dt_forecast_part {
    const char *name;
    uint64_t mapped, resident; /* at most; likely. Of all ranks of this process */
} dt_forecast_part;

typedef struct dt_forecast {
    dt_forecast_part part[DT_FORECAST_PARTS]; /* arenas of the host */
    uint32_t n_parts;
    uint64_t arenas;       /* sum of mapped: never exceeded */
    uint64_t base;         /* resident already: program, libraries, plugins; and what a run adds to them */
    uint64_t plugins;      /* what plugins asked for and did not touch yet (plugin_memory.h) */
    uint64_t recordings;   /* stores, mapped: the system may drop what is not read just then */
    uint64_t environments; /* in this process */
    uint64_t resident;     /* planned peak of this process */
    uint64_t processes;    /* planned peak of environments in processes of their own */
    uint64_t device;       /* of the device, planned peak; 0: the CPU computes */
    dt_trainer_memory on_device;
    dt_rollout_need rollout; /* zeros without environments */
    dt_replay_need replay;   /* the same, without one */
    uint64_t checkpoint;     /* bytes of one, with all that a replay has room for */
    uint64_t disk;           /* of all that are kept, and one being written */
    uint32_t kept;
    int64_t iterations, eval_interval; /* 0: the phase counts epochs alone; only at the end */
    uint64_t round;                    /* steps of environments that an iteration collects, on all ranks; 0: none */
    int64_t round_asked;               /* what the phase's train_batch requires; 0: it has no such option */
    uint64_t episode_steps;            /* of the longest episode, where it is longer than what a round has; else 0 */
    uint64_t round_steps, phase_steps; /* of each instance, in a round and in all of them (0: not known) */
    dt_stop_opts stop;
    dt_checkpoint_opts saving;
} dt_forecast;

/* Of a started stage that makes at most so many steps, 0: all it has. Compiles what evaluation and acting will need.
 * Errors: what that reports. */
dt_status dt_forecast_create(dt_stage *s, uint64_t max_steps, dt_forecast *out) DT_NODISCARD;

/* Warns where the disk of a folder, which need not exist yet, has no room for a checkpoint. */
void dt_forecast_warn_disk(const dt_forecast *f, const char *run_dir);
/* A few lines for people; an object's members for scripts. */
void dt_forecast_log(const dt_forecast *f); /* one line */
void dt_forecast_text(const dt_stage *s, const dt_forecast *f, dt_str *out);
void dt_forecast_json(const dt_stage *s, const dt_forecast *f, dt_json_out *o);

/* The environment in a plan: which one, the options that were set, how long its episodes are in steps and simulated
 * seconds, and how many of them the rounds hold. Threads: [main]. */
/* Nothing for a phase without an environment. prefix stands before each line. */
void dt_forecast_append_env_text(const dt_stage *s, const dt_forecast *f, const char *prefix, dt_str *out);
void dt_forecast_env_json(const dt_stage *s, const dt_forecast *f, dt_json_out *o);

#endif
