/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds "counter", "liar" and "torque" of worlds.h.
 */
#include <config.h>

#include "worlds.h"

#include "dtrain/helpers.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct counter_config {
    const char *lie; /* what to do at step lie_step of episode 1 */
    int64_t lie_step, lie_episode;
} counter_config;

typedef struct counter {
    const dt_host *h;
    counter_config config;
    uint64_t seed;
    int64_t step, length, episodes;
    uint64_t n_before; /* io->episode of the last reset */
    int32_t last;
    bool is_liar, is_wide;
} counter;

static dt_status counter_create(void *self, const dt_host *h, const void *config)
{
    counter *s = self;
    s->h = h;
    if (config != NULL) {
        s->config = *(const counter_config *)config;
    }
    return DT_OK;
}

/* Each instance adds a byte to a file; all but the first wait for the sixth, so they must be made side by side. */
static dt_status meet(const dt_host *h, const char *path)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat file = {0};
    const bool has_written = fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &file) == 0;
    for (int ms = 0; has_written && file.st_size > 1 && file.st_size < 6 && ms < 20000; ms++) {
        usleep(1000);
        (void)fstat(fd, &file);
    }
    close(fd);
    return file.st_size == 1 || file.st_size >= 6 ? DT_OK : (h->fail)(h, DT_EIO, NULL, "nobody else came");
}

/* Everything that a worker shares with its host, written over. */
static void scribble(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        const unsigned long begin = strtoul(line, NULL, 16), end = strtoul(strchr(line, '-') + 1, NULL, 16);
        if (strstr(line, "dtrain-env") != NULL) {
            memset((void *)begin, 0x7f, end - begin); /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static void go_on_for_ever(void)
{
    volatile int turn = 1;
    while (turn != 0) {
    }
}

/* What a worker does to the host, not the environment to the agents; false: nothing of the kind. */
static bool misbehave(const char *what)
{
    static const char words[] = "la la la la la la la la la la la la la la la la la la la la\n";
    if (strcmp(what, "crash") == 0) {
        fprintf(stderr, "the world ends with a bang\n");
        raise(SIGABRT); /* sanitizers have a handler of their own for SIGSEGV */
    } else if (strcmp(what, "hang") == 0) {
        fprintf(stderr, "the world ends with a whimper\n");
        sleep(1000);
    } else if (strcmp(what, "leave") == 0) {
        _exit(0);
    } else if (strcmp(what, "loop") == 0) {
        go_on_for_ever();
    } else if (strcmp(what, "stop") == 0) {
        raise(SIGSTOP);
    } else if (strcmp(what, "scribble") == 0) {
        scribble();
    } else if (strcmp(what, "close") == 0) {
        for (int fd = 3; fd < 64; fd++) {
            close(fd);
        }
        go_on_for_ever();
    } else if (strcmp(what, "shrink") == 0) {
        (void)!ftruncate(4, 0);
    } else if (strcmp(what, "babble") == 0) {
        for (;;) {
            (void)!write(1, words, sizeof(words) - 1);
        }
    } else if (strcmp(what, "drip") == 0) { /* a byte of an answer now and then */
        for (;; usleep(20000)) {
            (void)!send(3, "", 1, MSG_NOSIGNAL);
        }
    } else if (strcmp(what, "nonsense") == 0) {
        (void)!send(3, words, 40, MSG_NOSIGNAL);
        sleep(1000);
    } else {
        return false;
    }
    return true;
}

/* Adds a byte to a file; how many it had: what happened before, in whatever process. */
static int64_t visit(const char *path)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat file = {0};
    const bool is_added = fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &file) == 0;
    close(fd);
    return is_added ? (int64_t)file.st_size - 1 : 0;
}

/* "WHAT PATH": PATH, or NULL. */
static const char *path_of(const char *lie, const char *what)
{
    const size_t n = strlen(what);
    return strncmp(lie, what, n) == 0 && lie[n] == ' ' ? lie + n + 1 : NULL;
}

static bool exists(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0;
}

static dt_status liar_create(void *self, const dt_host *h, const void *config)
{
    ((counter *)self)->is_liar = true;
    if (strcmp(((const counter_config *)config)->lie, "create") == 0) {
        return (h->fail)(h, DT_ENOTFOUND, NULL, "the world is not installed");
    }
    if (strncmp(((const counter_config *)config)->lie, "create ", 7) == 0) {
        (void)misbehave(((const counter_config *)config)->lie + 7);
    }
    const char *window = path_of(((const counter_config *)config)->lie, "window");
    if (window != NULL && exists(window) && visit(window) < 3) {
        raise(SIGABRT); /* two replacements are lost while they start */
    }
    if (strncmp(((const counter_config *)config)->lie, "meet ", 5) == 0) {
        DT_TRY(meet(h, ((const counter_config *)config)->lie + 5));
    }
    return counter_create(self, h, config);
}

static dt_status counter_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const int32_t choices[] = {3};
    static const char *const costs[] = {"hits"}, *const metrics[] = {"score"};
    const counter *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->costs = costs;
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = s->is_wide ? 0 : 1;
    out->max_steps = s->is_liar && strcmp(s->config.lie, "open") == 0 ? 0 : 7;
    return DT_OK;
}

static void counter_look(const counter *s, const dt_env_io *io)
{
    float *x = io->obs[0];
    x[0] = (float)s->step;
    x[1] = (float)(s->seed % 100);
    x[2] = (float)s->last;
    io->mask[1] = s->step != 1; /* choice 1 is forbidden in the second step */
}

static bool lies(const counter *s, const char *what)
{
    return s->is_liar && strcmp(s->config.lie, what) == 0;
}

static bool is_deserted(const counter *s)
{
    return lies(s, "nobody") || (lies(s, "deserted") && s->seed % 2 != 0);
}

static dt_status counter_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    counter *s = self;
    s->seed = seed;
    s->step = 0;
    s->length = s->is_liar && strcmp(s->config.lie, "ends") == 0 ? 7 : 3 + (int64_t)(seed % 5);
    s->last = -1;
    s->episodes++;
    s->n_before = io->episode;
    io->alive[0] = !is_deserted(s);
    counter_look(s, io);
    s->is_wide = s->is_liar && s->episodes == s->config.lie_episode && strcmp(s->config.lie, "spec") == 0;
    return DT_OK;
}

static dt_status lie(counter *s, const dt_env_io *io)
{
    if (lies(s, "nan")) {
        ((float *)io->obs[0])[1] = NAN;
    } else if (lies(s, "reward")) {
        io->reward[0] = INFINITY;
    } else if (lies(s, "cost")) {
        io->cost[0] = -1;
    } else if (lies(s, "gone")) {
        io->alive[0] = 0;
        io->terminated[0] = io->truncated[0] = 0;
    } else if (lies(s, "undead")) {
        io->alive[0] = io->terminated[0] = 1;
    } else if (lies(s, "mask")) {
        io->alive[0] = 1;
        io->terminated[0] = io->truncated[0] = 0;
        memset(io->mask, 0, 3);
    } else if (lies(s, "endless")) {
        io->alive[0] = 1;
        io->terminated[0] = io->truncated[0] = 0;
        return DT_DONE;
    } else if (lies(s, "fail")) {
        return (s->h->fail)(s->h, DT_EIO, NULL, "the disk of the world is full");
    } else if (lies(s, "code")) {
        return (dt_status)5;
    } else if (lies(s, "interrupted")) {
        return DT_EINTERRUPTED; /* which is the host's to say */
    }
    (void)misbehave(s->config.lie);
    return DT_OK;
}

/* In the second step of some episode, in whatever process: once, or each time. */
static dt_status lie_once(const counter *s, const dt_env_io *io)
{
    const char *once = path_of(s->config.lie, "once"), *broken = path_of(s->config.lie, "broken"),
               *drift = path_of(s->config.lie, "drift"), *window = path_of(s->config.lie, "window");
    const char *crash = once != NULL ? once : drift != NULL ? drift : window;
    if (drift != NULL && exists(drift)) {
        ((float *)io->obs[0])[1] += 1;
    }
    if (s->step != s->config.lie_step || s->seed % 3 != 0) {
        return DT_OK;
    }
    if (crash != NULL && !exists(crash) && visit(crash) == 0) {
        raise(SIGABRT);
    }
    if (broken != NULL && !exists(broken) && visit(broken) == 0) {
        return (s->h->fail)(s->h, DT_EBROKEN, NULL, "its simulator is gone");
    }
    if (strcmp(s->config.lie, "doomed") == 0) {
        raise(SIGABRT);
    }
    return DT_OK;
}

static dt_status counter_step(void *self, const dt_env_io *io)
{
    counter *s = self;
    s->step++;
    s->last = io->act_i[0];
    io->reward[0] = 1 + (float)s->last;
    io->cost[0] = (float)s->last;
    const bool is_endless = s->is_liar && (lies(s, "undying") || lies(s, "open"));
    const bool over = s->step == s->length && !is_endless;
    io->alive[0] = !over;
    io->terminated[0] = over && s->seed % 2 == 0 && !lies(s, "ends");
    io->truncated[0] = over && !io->terminated[0];
    io->metric[0] = lies(s, "unsaid") && s->seed % 2 != 0 ? NAN : 10.0 * (double)(s->seed % 100);
    if (lies(s, "episode")) {
        io->metric[0] = (double)s->n_before;
    } else if (lies(s, "both")) {
        io->terminated[0] = io->truncated[0] = over;
    } else if (lies(s, "debt") && s->step == 1 && s->seed % 64 == 5) {
        io->reward[0] = -1000;
    }
    if (is_deserted(s)) {
        io->alive[0] = io->terminated[0] = io->truncated[0] = 0;
        io->reward[0] = io->cost[0] = 0;
    }
    counter_look(s, io);
    if (s->is_liar) {
        DT_TRY(lie_once(s, io));
    }
    if (s->is_liar && s->episodes == s->config.lie_episode && s->step == s->config.lie_step) {
        const dt_status st = lie(s, io);
        if (st != DT_OK) {
            return st;
        }
    }
    return over ? DT_DONE : DT_OK;
}

void counter_roads(const void *self, dt_scene_roads *out)
{
    for (out->n = 0; out->n < 3; out->n++) {
        if (out->n < out->cap) {
            out->point[out->n] = (dt_scene_point){.x = (float)out->n, .y = 1, .width = 3, .lane = out->n / 2};
        }
    }
}

static void counter_scene(const void *self, dt_scene *out)
{
    const counter *s = self;
    if (s->is_liar && strcmp(s->config.lie, "look") == 0 && s->step == s->config.lie_step) {
        _exit(3);
    }
    out->time_s = (double)s->step;
    for (out->n_vehicles = 0; out->n_vehicles < s->step + 17; out->n_vehicles++) {
        if (out->n_vehicles < out->cap_vehicles) {
            out->vehicle[out->n_vehicles] = (dt_scene_vehicle){
                .x = (float)s->step, .length = 4, .risk = 0.25F, .id = (int32_t)out->n_vehicles, .agent = -1};
        }
    }
    out->n_signals = 1;
    if (out->cap_signals > 0) {
        out->signal[0] = (dt_scene_signal){.width = 3, .state = DT_SCENE_GREEN, .agent = 0};
    }
}

static const void *counter_extension(const char *id)
{
    static const dt_scene_api scene = {.struct_size = sizeof(scene), .roads = counter_roads, .capture = counter_scene};
    return strcmp(id, DT_EXT_SCENE) == 0 ? &scene : NULL;
}

static const dt_env_ops counter_ops = {.struct_size = sizeof(dt_env_ops),
                                       .create = counter_create,
                                       .spec = counter_spec,
                                       .reset = counter_reset,
                                       .step = counter_step,
                                       .destroy = no_destroy};
static const dt_env_ops liar_ops = {.struct_size = sizeof(dt_env_ops),
                                    .create = liar_create,
                                    .spec = counter_spec,
                                    .reset = counter_reset,
                                    .step = counter_step,
                                    .destroy = no_destroy};
static const dt_option liar_options[] = {
    DT_OPTION(counter_config, lie, DT_OPT_STR, "", NULL, 0, 0, NULL, "what to do wrong"),
    DT_OPTION(counter_config, lie_step, DT_OPT_I64, "2", "steps", 1, 100, NULL, "in which step of the episode"),
    DT_OPTION(counter_config, lie_episode, DT_OPT_I64, "2", "1", 1, 1000000, NULL, "in which episode, from 1"),
    DT_OPTION_END};
const dt_component counter_env = {.struct_size = sizeof(dt_component),
                                  .kind = DT_KIND_ENV,
                                  .id = "counter",
                                  .summary = "counts",
                                  .reference = "none",
                                  .state_size = sizeof(counter),
                                  .config_size = sizeof(counter_config),
                                  .ops = &counter_ops,
                                  .extension = counter_extension};
const dt_component liar_env = {.struct_size = sizeof(dt_component),
                               .kind = DT_KIND_ENV,
                               .id = "liar",
                               .summary = "counts until it lies",
                               .reference = "none",
                               .state_size = sizeof(counter),
                               .config_size = sizeof(counter_config),
                               .options = liar_options,
                               .ops = &liar_ops,
                               .extension = counter_extension};

const dt_component steady_env = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_ENV,
                                 .id = "steady",
                                 .summary = "a liar that is declared deterministic",
                                 .reference = "none",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .state_size = sizeof(counter),
                                 .config_size = sizeof(counter_config),
                                 .options = liar_options,
                                 .ops = &liar_ops,
                                 .extension = counter_extension};

/* ---- torque ------------------------------------------------------------------------------------------------------ */

static dt_status torque_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const float low[] = {-1}, high[] = {1};
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->low = low;
    out->high = high;
    out->n_continuous = 1;
    return DT_OK;
}

static dt_status torque_look(const counter *s, const dt_env_io *io)
{
    float *x = io->obs[0];
    x[0] = 100 + (float)s->step; /* far from 0, so that normalising matters */
    x[1] = (float)(s->seed % 7) * 0.01f;
    x[2] = 1;
    io->alive[0] = s->step < 6;
    io->truncated[0] = s->step == 6;
    return s->step == 6 ? DT_DONE : DT_OK;
}

static dt_status torque_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    counter *s = self;
    s->seed = seed;
    s->step = 0;
    return torque_look(s, io);
}

static dt_status torque_step(void *self, const dt_env_io *io)
{
    counter *s = self;
    s->step++;
    io->reward[0] = 50 * io->act_f[0];
    return torque_look(s, io);
}

static dt_status torque_step_many(void *const *self, uint32_t n, const dt_env_io *io, dt_status *status)
{
    for (uint32_t i = 0; i < n; i++) {
        void *obs[] = {(float *)io->obs[0] + 3 * (size_t)i};
        const dt_env_io one = {.struct_size = sizeof(one),
                               .n_obs = 1,
                               .obs = obs,
                               .alive = io->alive + i,
                               .act_f = io->act_f + i,
                               .reward = io->reward + i,
                               .truncated = io->truncated + i};
        status[i] = torque_step(self[i], &one);
    }
    return DT_OK;
}

static const dt_env_ops torque_ops = {.struct_size = sizeof(dt_env_ops),
                                      .step_many = torque_step_many,
                                      .create = counter_create,
                                      .spec = torque_spec,
                                      .reset = torque_reset,
                                      .step = torque_step,
                                      .destroy = no_destroy};
const dt_component torque_env = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_ENV,
                                 .id = "torque",
                                 .summary = "pushes",
                                 .reference = "none",
                                 .state_size = sizeof(counter),
                                 .config_size = sizeof(counter_config),
                                 .ops = &torque_ops};

static dt_status torque_open_spec(const void *self, dt_env_spec *out)
{
    static const float high[] = {INFINITY};
    const dt_status st = torque_spec(self, out);
    out->high = high;
    return st;
}

static const dt_env_ops torque_open_ops = {.struct_size = sizeof(dt_env_ops),
                                           .create = counter_create,
                                           .spec = torque_open_spec,
                                           .reset = torque_reset,
                                           .step = torque_step,
                                           .destroy = no_destroy};
const dt_component torque_open_env = {.struct_size = sizeof(dt_component),
                                      .kind = DT_KIND_ENV,
                                      .id = "torque_open",
                                      .summary = "pushes without an upper bound",
                                      .reference = "none",
                                      .state_size = sizeof(counter),
                                      .config_size = sizeof(counter_config),
                                      .ops = &torque_open_ops};
