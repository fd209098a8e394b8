/* SPDX-License-Identifier: Apache-2.0
 *
 * stubborn: an environment that does not let go, as plugins do not that nobody here wrote. One agent on a line of five
 * places; an episode has `length` steps. What the options say goes wrong at the `turn`-th reset with seed `seed`, or in
 * any reset where seed is 0, as often as that is asked; a line in the file `mark` says that it has begun.
 *
 *   where = create | reset | step   hangs there while the file `hold` exists, and for ever where hold is empty
 *   how = loop | sleep | stop       computing, asleep, or stopped (SIGSTOP)
 *   child = true                    has a process of its own, which ignores what can be ignored
 *
 * create writes its own id and its child's to the file `ids`.
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

typedef struct config {
    const char *where, *how, *hold, *mark, *ids;
    int64_t seed, turn, length;
    uint8_t child, endless;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    int64_t step;
    int is_bad; /* this episode */
    int32_t at;
} state;

static const dt_option options[] = {
    DT_OPTION(config, where, DT_OPT_STR, "", NULL, 0, 0, NULL, "create, reset, step, or nowhere"),
    DT_OPTION(config, how, DT_OPT_STR, "loop", NULL, 0, 0, NULL, "loop, sleep, or stop"),
    DT_OPTION(config, hold, DT_OPT_STR, "", NULL, 0, 0, NULL, "a file: only while it exists"),
    DT_OPTION(config, mark, DT_OPT_STR, "", NULL, 0, 0, NULL, "a file: gets a line when it begins"),
    DT_OPTION(config, ids, DT_OPT_STR, "", NULL, 0, 0, NULL, "a file: gets the ids of processes"),
    DT_OPTION(config, seed, DT_OPT_I64, "0", "1", 0, 1e18, NULL, "of the episodes that count, 0: all"),
    DT_OPTION(config, turn, DT_OPT_I64, "1", "1", 1, 1e9, NULL, "which of them, by the lines of mark"),
    DT_OPTION(config, length, DT_OPT_I64, "8", "env steps", 1, 1e9, NULL, "of an episode"),
    DT_OPTION(config, child, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "starts a process"),
    DT_OPTION(config, endless, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "episodes never end, whatever length says"),
    DT_OPTION_END};

/* A line more; how many there are now. */
static int64_t add_line(const char *path, const char *text)
{
    struct stat file = {0};
    const int fd = path[0] != '\0' ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    const size_t bytes = strlen(text);
    if (fd >= 0) {
        (void)!write(fd, text, bytes);
        (void)fstat(fd, &file);
        close(fd);
    }
    return (int64_t)((size_t)file.st_size / bytes);
}

static void hang(const config *c)
{
    if (strcmp(c->how, "stop") == 0) {
        raise(SIGSTOP);
    }
    while (c->hold[0] == '\0' || access(c->hold, F_OK) == 0) {
        if (strcmp(c->how, "loop") != 0) {
            usleep(10000);
        }
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    static char shell[] = "sh", flag[] = "-c", text[] = "trap '' HUP INT TERM; while :; do sleep 1000; done";
    char *const argv[] = {shell, flag, text, NULL};
    state *s = self;
    char line[64];
    pid_t child = 0;
    s->h = h;
    s->config = *(const config *)cfg;
    if (s->config.child && posix_spawnp(&child, shell, NULL, NULL, argv, environ) != 0) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "no process");
    }
    snprintf(line, sizeof(line), "%d %d\n", (int)getpid(), (int)child);
    add_line(s->config.ids, line);
    if (strcmp(s->config.where, "create") == 0) {
        add_line(s->config.mark, "x\n");
        hang(&s->config);
    }
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 2", DT_F32, 0}};
    static const int32_t choices[] = {3};
    const state *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = (uint32_t)s->config.length;
    return DT_OK;
}

static void observe(const state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    obs[0] = (float)s->at / 4;
    obs[1] = (float)s->step / (float)s->config.length;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->at = (int32_t)dt_random_below(&r, 5);
    s->step = 0;
    s->is_bad = 0;
    if (s->config.where[0] != '\0' && (s->config.seed == 0 || (uint64_t)s->config.seed == seed)) {
        s->is_bad = add_line(s->config.mark, "x\n") == s->config.turn || s->config.mark[0] == '\0';
    }
    if (s->is_bad && strcmp(s->config.where, "reset") == 0) {
        hang(&s->config);
    }
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    s->step++;
    if (s->is_bad && s->step == 2 && strcmp(s->config.where, "step") == 0) {
        hang(&s->config);
    }
    s->at += io->act_i[0] - 1;
    s->at = s->at < 0 ? 0 : s->at > 4 ? 4 : s->at;
    io->reward[0] = s->at == 4 ? 1.0F : 0.0F;
    io->truncated[0] = s->step >= s->config.length && !s->config.endless;
    io->alive[0] = !io->truncated[0];
    observe(s, io);
    return io->truncated[0] ? DT_DONE : DT_OK;
}

static void destroy(void *self) {}

static const dt_env_ops ops = {.struct_size = sizeof(dt_env_ops),
                               .create = create,
                               .spec = spec,
                               .reset = reset,
                               .step = step,
                               .destroy = destroy};
static const dt_component env = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_ENV,
                                 .id = "stubborn",
                                 .summary = "does not let go",
                                 .reference = "none",
                                 .state_size = sizeof(state),
                                 .config_size = sizeof(config),
                                 .options = options,
                                 .ops = &ops};
DT_PLUGIN_DEFINE_ONE(env, "stubborn", "1.0", "tests", "Apache-2.0");
