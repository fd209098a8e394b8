/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives an environment plugin, such as env_traffic, for one episode by an exported policy: what a program of your own
 * does with libdtrain-policy (dtrain/policy.h) and the public contract of environments (dtrain/plugin.h).
 *
 *   cc -o drive_env_traffic drive_env_traffic.c $(pkg-config --cflags --libs dtrain-policy) -ldl
 *   ./drive_env_traffic $(pkg-config --variable=plugindir dtrain-policy)/env_traffic.so policy.safetensors 7
 *
 * It prints return, costs and metrics of the episode; they are those of `dtrain eval --checkpoint RUN --seeds 7
 * --episodes 1`, where RUN is what the policy was exported from (of more episodes eval prints means). With a fourth
 * word it leaves a trace in that file, one JSON object a step: observations, alive, truncated, mask, and what the
 * policy computed and did, to try other runtimes on.
 */
#include "dtrain/policy.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world { /* one instance of an environment, and the arrays it writes */
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs[DT_ENV_MAX_OBS];
    uint32_t n_choices;
    int32_t *act_i;
    float *act_f;
} world;

/* Names from a policy's file are foreign text: they drive no terminal and begin no line. */
static void print_masked(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        fputc((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7F ? '?' : *p, stderr);
    }
}

static void stop(const char *what, const char *why)
{
    fputs("drive_env_traffic: ", stderr);
    print_masked(what);
    fputs(": ", stderr);
    print_masked(why);
    fputc('\n', stderr);
    exit(1);
}

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n > 0 ? n : 1, bytes > 0 ? bytes : 1);
    if (p == NULL) {
        stop("memory", "there is none left");
    }
    return p;
}

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

/* The component of this id in a plugin's file. */
static const dt_component *find_component(const char *file, const char *id)
{
    char symbol[128];
    snprintf(symbol, sizeof(symbol), "%s_LTX_dt_plugin_entry", id);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        stop(file, dlerror());
    }
    const dt_plugin *(*entry)(void) = NULL;
    *(void **)(void *)&entry = dlsym(library, symbol);
    const dt_plugin *plugin = entry != NULL ? entry() : NULL;
    if (plugin == NULL || plugin->magic != DT_PLUGIN_MAGIC || plugin->abi_major != DT_ABI_MAJOR ||
        plugin->need_minor > DT_ABI_MINOR || strcmp(plugin->layout, DT_LAYOUT) != 0) {
        stop(file, "not a plugin of this version that holds the environment which the policy was trained in");
    }
    for (uint32_t i = 0; i < plugin->n_components; i++) {
        if (plugin->components[i]->kind == DT_KIND_ENV && strcmp(plugin->components[i]->id, id) == 0) {
            return plugin->components[i];
        }
    }
    stop(file, "it holds no environment of the policy's");
    return NULL;
}

/* An option's text into its member; DT_OPT_* say what stands there. */
static void set_option(const dt_option *o, const char *text, void *config)
{
    void *member = (char *)config + o->offset;
    switch (o->type) {
    case DT_OPT_BOOL:
        *(uint8_t *)member = strcmp(text, "true") == 0;
        break;
    case DT_OPT_I64:
        *(int64_t *)member = strtoll(text, NULL, 10);
        break;
    case DT_OPT_F64:
        *(double *)member = strtod(text, NULL);
        break;
    case DT_OPT_ENUM:
        for (uint32_t i = 0; o->choices[i] != NULL; i++) {
            if (strcmp(o->choices[i], text) == 0) {
                *(uint32_t *)member = i;
            }
        }
        break;
    default:
        *(const char **)member = text;
        break;
    }
}

/* The environment as the policy knows it: its options are kept with the policy. */
static void configure(world *w, const dt_policy_info *p)
{
    const size_t n = strlen(w->component->id);
    w->config = room(1, w->component->config_size);
    for (const dt_option *o = w->component->options; o != NULL && o->name != NULL; o++) {
        const char *text = o->dfl != NULL ? o->dfl : "";
        for (uint32_t i = 0; i < p->n_settings; i++) {
            const char *key = p->settings[i].key; /* "env_traffic.scenario" */
            if (strncmp(key, w->component->id, n) == 0 && key[n] == '.' && strcmp(key + n + 1, o->name) == 0) {
                text = p->settings[i].value;
            }
        }
        set_option(o, text, w->config);
    }
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

/* Most rows of a port: its dims begin with "A", or with a ragged symbol, perhaps as SYMBOL+1; and bytes of a row. */
static size_t port_rows(const dt_env_spec *s, const dt_port *p, size_t *row_bytes)
{
    const char *rest = p->dims + strcspn(p->dims, " ");
    const size_t n = strcspn(p->dims, " +");
    size_t rows = s->n_agents;
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        if (strncmp(s->symbols[k].name, p->dims, n) == 0 && s->symbols[k].name[n] == '\0') {
            rows = (size_t)s->symbols[k].size + (p->dims[n] == '+');
        }
    }
    *row_bytes = p->dtype == DT_U8 ? 1 : p->dtype == DT_I64 || p->dtype == DT_F64 ? 8 : 4;
    for (char *end = NULL; *rest != '\0'; rest = end) {
        *row_bytes *= strtoul(rest, &end, 10);
    }
    return rows;
}

static void make_world(world *w, const dt_host *host)
{
    if (w->component->check != NULL && w->component->check(host, w->config) < 0) {
        stop("options", dt_policy_host_error());
    }
    w->ops = w->component->ops;
    w->self = room(1, w->component->state_size);
    w->spec.struct_size = sizeof(w->spec);
    if (w->ops->create(w->self, host, w->config) < 0 || w->ops->spec(w->self, &w->spec) < 0) {
        stop(w->component->id, dt_policy_host_error());
    }
    const dt_env_spec *s = &w->spec;
    const size_t A = s->n_agents;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        w->n_choices += (uint32_t)s->choices[h];
    }
    for (uint32_t i = 0; i < s->n_obs; i++) {
        size_t row_bytes = 0;
        const size_t rows = port_rows(s, &s->obs[i], &row_bytes);
        w->obs[i] = room(rows, row_bytes);
    }
    w->act_i = room(A * s->n_heads, sizeof(*w->act_i));
    w->act_f = room(A * s->n_continuous, sizeof(*w->act_f));
    w->io = (dt_env_io){.struct_size = sizeof(w->io),
                        .n_obs = s->n_obs,
                        .obs = w->obs,
                        .size = room(s->n_symbols, sizeof(int64_t)),
                        .alive = room(A, 1),
                        .mask = room(A * w->n_choices, 1),
                        .act_i = w->act_i,
                        .act_f = w->act_f,
                        .reward = room(A, sizeof(float)),
                        .cost = room(A * s->n_costs, sizeof(float)),
                        .terminated = room(A, 1),
                        .truncated = room(A, 1),
                        .metric = room(s->n_metrics, sizeof(double))};
}

/* What the environment writes is zero before it does, but for the mask. */
static void clear_outputs(world *w)
{
    const size_t A = w->spec.n_agents;
    for (uint32_t i = 0; i < w->spec.n_obs; i++) {
        size_t row_bytes = 0;
        const size_t rows = port_rows(&w->spec, &w->spec.obs[i], &row_bytes);
        memset(w->obs[i], 0, rows * row_bytes);
    }
    memset(w->io.alive, 0, A);
    memset(w->io.mask, 1, A * w->n_choices);
    memset(w->io.reward, 0, A * sizeof(float));
    memset(w->io.cost, 0, A * w->spec.n_costs * sizeof(float));
    memset(w->io.terminated, 0, A);
    memset(w->io.truncated, 0, A);
    memset(w->io.metric, 0, w->spec.n_metrics * sizeof(double));
}

static void end_world(world *w)
{
    w->ops->destroy(w->self);
    for (uint32_t i = 0; i < w->spec.n_obs; i++) {
        free(w->obs[i]);
    }
    free(w->io.size);
    free(w->io.alive);
    free(w->io.mask);
    free(w->io.reward);
    free(w->io.cost);
    free(w->io.terminated);
    free(w->io.truncated);
    free(w->io.metric);
    free(w->act_i);
    free(w->act_f);
    free(w->self);
    free(w->config);
}

/* ---- the policy in it -------------------------------------------------------------------------------------------- */

typedef struct driver {
    dt_policy *policy;
    const dt_policy_info *info;
    const void *obs[DT_ENV_MAX_OBS]; /* the world's arrays, in the policy's order */
    int64_t size[DT_ENV_MAX_SYMBOLS];
    uint32_t symbol[DT_ENV_MAX_SYMBOLS]; /* the policy's symbols among the world's */
    dt_policy_io io;
} driver;

static void join(driver *d, world *w)
{
    const dt_env_spec *s = &w->spec;
    const dt_policy_info *p = d->info;
    if (p->n_heads != s->n_heads || p->n_continuous != s->n_continuous || p->n_choices != w->n_choices ||
        p->places < s->n_agents) {
        stop("policy", "its actions are not those of the environment");
    }
    for (uint32_t i = 0; i < p->n_obs; i++) {
        for (uint32_t k = 0; k < s->n_obs; k++) {
            const int same = strcmp(p->obs[i].name, s->obs[k].name) == 0 &&
                             strcmp(p->obs[i].dims, s->obs[k].dims) == 0 && p->obs[i].dtype == s->obs[k].dtype;
            d->obs[i] = same ? w->obs[k] : d->obs[i];
        }
        if (d->obs[i] == NULL) {
            stop(p->obs[i].name, "the environment does not show it, or in other dims");
        }
    }
    for (uint32_t i = 0; i < p->n_symbols; i++) {
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            d->symbol[i] = strcmp(p->symbols[i].name, s->symbols[k].name) == 0 ? k : d->symbol[i];
        }
    }
    d->io = (dt_policy_io){.struct_size = sizeof(d->io),
                           .n_places = s->n_agents,
                           .obs = d->obs,
                           .size = d->size,
                           .alive = w->io.alive,
                           .truncated = w->io.truncated,
                           .mask = w->io.mask,
                           .act_i = w->act_i,
                           .act_f = w->act_f};
}

static void act(driver *d, const world *w)
{
    char why[512];
    for (uint32_t i = 0; i < d->info->n_symbols; i++) {
        d->size[i] = w->io.size[d->symbol[i]];
    }
    if (dt_policy_act(d->policy, &d->io, why, sizeof(why)) != DT_OK) {
        stop("policy", why);
    }
}

/* ---- trace ------------------------------------------------------------------------------------------------------- */

static void put(FILE *f, const char *name, uint32_t dtype, const void *data, size_t n)
{
    fprintf(f, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        const char *comma = i > 0 ? "," : "";
        if (dtype == DT_F32) {
            fprintf(f, "%s%.9g", comma, (double)((const float *)data)[i]);
        } else {
            fprintf(f, "%s%d", comma, dtype == DT_U8 ? ((const uint8_t *)data)[i] : ((const int32_t *)data)[i]);
        }
    }
    fputc(']', f);
}

static void trace(FILE *f, const driver *d, const world *w)
{
    static const char *const output[] = {"logits", "mean", "log_std", "value", "cost_value", "low", "high", "allow"};
    const size_t A = w->spec.n_agents;
    fputs("{\"obs\":{", f);
    for (uint32_t i = 0; i < d->info->n_obs; i++) {
        const dt_port *p = &d->info->obs[i];
        size_t row_bytes = 0, rows = port_rows(&w->spec, p, &row_bytes);
        for (uint32_t k = 0; k < d->info->n_symbols; k++) { /* live rows */
            const size_t n = strcspn(p->dims, " +");
            if (strncmp(d->info->symbols[k].name, p->dims, n) == 0 && d->info->symbols[k].name[n] == '\0') {
                rows = (size_t)d->size[k] + (p->dims[n] == '+');
            }
        }
        fputs(i > 0 ? "," : "", f);
        put(f, p->name, p->dtype, d->obs[i], rows * row_bytes / (p->dtype == DT_U8 ? 1 : 4));
    }
    fputs("},", f);
    put(f, "alive", DT_U8, w->io.alive, A);
    fputc(',', f);
    put(f, "truncated", DT_U8, w->io.truncated, A);
    fputc(',', f);
    put(f, "mask", DT_U8, w->io.mask, A * w->n_choices);
    fputs(",\"output\":{", f);
    for (size_t i = 0, n = 0; i < sizeof(output) / sizeof(output[0]); i++) {
        int64_t dim[DT_MAX_DIMS];
        uint32_t rank = 0;
        const float *x = dt_policy_output(d->policy, output[i], dim, &rank);
        if (x != NULL) {
            fputs(n++ > 0 ? "," : "", f);
            put(f, output[i], DT_F32, x, (size_t)(dim[0] * (rank > 1 ? dim[1] : 1)));
        }
    }
    fputs("},", f);
    put(f, "act_i", DT_I32, w->act_i, A * w->spec.n_heads);
    fputc(',', f);
    put(f, "act_f", DT_F32, w->act_f, A * w->spec.n_continuous);
    fputs("}\n", f);
}

/* ---- an episode -------------------------------------------------------------------------------------------------- */

static void drive(world *w, driver *d, uint64_t seed, FILE *file)
{
    const dt_env_spec *s = &w->spec;
    const size_t A = s->n_agents;
    double sum = 0, cost[DT_ENV_MAX_COSTS] = {0};
    uint8_t *acted = room(A, 1);
    unsigned long steps = 0;
    dt_env_io io = w->io;
    io.act_i = NULL;
    io.act_f = NULL;
    clear_outputs(w);
    dt_policy_reset(d->policy);
    dt_status st = w->ops->reset(w->self, &io, seed);
    while (st == DT_OK) {
        act(d, w);
        if (file != NULL) {
            trace(file, d, w);
        }
        memcpy(acted, w->io.alive, A);
        clear_outputs(w);
        st = w->ops->step(w->self, &w->io);
        steps++;
        for (size_t a = 0; a < A; a++) {
            if (acted[a]) {
                sum += (double)w->io.reward[a];
            }
            for (uint32_t k = 0; k < s->n_costs; k++) {
                cost[k] += acted[a] ? (double)w->io.cost[a * s->n_costs + k] : 0;
            }
        }
    }
    if (st < 0) {
        stop(w->component->id, dt_policy_host_error());
    }
    printf("seed %llu, %lu steps\n", (unsigned long long)seed, steps);
    printf("%-24s %.17g\n", "return", sum);
    for (uint32_t k = 0; k < s->n_costs; k++) {
        printf("%-24s %.17g\n", s->costs[k], cost[k]);
    }
    for (uint32_t k = 0; k < s->n_metrics; k++) {
        if (!isnan(w->io.metric[k])) {
            printf("%-24s %.17g\n", s->metrics[k], w->io.metric[k]);
        }
    }
    free(acted);
}

int main(int argc, char **argv)
{
    world w = {.n_choices = 0};
    driver d = {.policy = NULL};
    char why[512];
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: drive_env_traffic PLUGIN.so POLICY.safetensors [SEED [TRACE.jsonl]]\n");
        return 2;
    }
    if (dt_policy_load(argv[2], &d.policy, why, sizeof(why)) != DT_OK) {
        stop("policy", why);
    }
    d.info = dt_policy_describe(d.policy);
    w.component = find_component(argv[1], d.info->environment);
    FILE *file = argc > 4 ? fopen(argv[4], "w") : NULL;
    if (argc > 4 && file == NULL) {
        stop(argv[4], "cannot be written");
    }
    configure(&w, d.info);
    make_world(&w, dt_policy_host());
    join(&d, &w);
    drive(&w, &d, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, file);
    if (file != NULL && fclose(file) != 0) {
        stop(argv[4], "cannot be written");
    }
    end_world(&w);
    dt_policy_free(d.policy);
    return 0;
}
