/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of env_gym share: options, and a Python process that serves instances (python.c). Threads: a process
 * serves one thread at a time (python_lock); everything else as dt_env_ops.
 */
#ifndef DTRAIN_ENV_GYM_H
#define DTRAIN_ENV_GYM_H

#include "dtrain/ext/doctor.h"
#include "dtrain/helpers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct config {
    const char *id, *kwargs, *wrappers, *interpreter, *path, *costs, *metrics, *teams;
    uint32_t ports, bounds;
    int64_t per_process;
    double timeout_s, startup_s;
} config;

/* Where the arrays of an instance are in its part of the shared memory. */
typedef struct gym_map {
    uint64_t stride, reward, cost, alive, terminated, truncated, mask, metric, act_i, act_f, status;
    uint64_t obs[DT_ENV_MAX_OBS];
} gym_map;

enum { GYM_MOST_SLOTS = 1024, GYM_TAIL = 1024 };

typedef struct python {  /* a process; it ends with its last instance */
    struct python *next; /* in the list of all */
    const dt_host *h;
    uint32_t number, n_used; /* number: the order in which several are locked */
    uint8_t used[GYM_MOST_SLOTS];
    char *key; /* options of its instances */
    size_t key_bytes;
    pthread_mutex_t lock;
    int pid, socket, memory, life, output; /* descriptors; -1: none */
    bool has_group, has_gymnasium;
    char tail[GYM_TAIL]; /* end of what it wrote to its standard output and error */
    size_t tail_bytes;
    char program[512], versions[128];
    char *reply; /* the last message: texts, one after another */
    size_t reply_bytes;

    /* of its instances, once the first is created; in memory of its own */
    bool has_spec;
    dt_env_spec spec;
    char *spec_text;
    void *spec_memory;
    size_t port_bytes[DT_ENV_MAX_OBS];
    uint32_t n_choices;
    gym_map m;
    char *map;
    size_t map_bytes;
} python;

/* A place in a process for an instance with these options; the process is started where none has room. Errors:
 * DT_EUNSUPPORTED (no interpreter), DT_ECONFIG, DT_EPLUGIN (what Python reports of the environment). */
dt_status python_acquire(const dt_host *h, const config *c, python **p_p, uint32_t *slot_p);
void python_release(python *p, uint32_t slot);
/* "PROGRAM, Python 3.11.2, ..." of an interpreter that starts and ends. Errors: DT_EUNSUPPORTED, DT_ENOMEM. */
dt_status python_describe(const dt_host *h, const config *c, char *out, size_t bytes, bool *has_gymnasium_p);
/* A call: request begins with kind and n. The answer is in reply. Errors: DT_EBROKEN (it ended or is late; killed). */
dt_status python_send(python *p, uint32_t kind, uint32_t n, const void *payload, size_t bytes);
dt_status python_receive(python *p, double timeout_s, const char *what);
/* Why the call of an instance failed, by the reply, as this thread's error. */
dt_status python_error(const dt_host *h, const python *p, uint32_t slot);
void python_log_notes(const python *p); /* other notes of the reply, to the log */

enum { GYM_CREATE = 1, GYM_MAP, GYM_STEP, GYM_RESET, GYM_CLOSE };
enum { GYM_OK, GYM_DONE, GYM_FAILED }; /* status of an instance */

/* find.c: the program that an option means, "python3" on PATH, a file, or the folder of a virtual environment; and the
 * file of the worker. Errors: DT_EUNSUPPORTED. */
dt_status find_interpreter(const dt_host *h, const char *option, char *out, size_t bytes);
dt_status find_worker(const dt_host *h, char *out, size_t bytes);
/* "": it is a program of this machine, as far as its first bytes show; else what it is. */
void describe_program(const char *path, char *out, size_t bytes);

extern const dt_doctor_api gym_doctor; /* doctor.c */

/* spec.c: the answer to the first CREATE as a spec. Errors: DT_EPLUGIN, DT_ENOMEM. */
dt_status spec_read(python *p);

#endif
