/* SPDX-License-Identifier: Apache-2.0
 *
 * See env_worker.h; env_request.c documents the format of a request.
 */
#include <config.h>

#include "plugin/service/env_worker.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "base/str.h"
#include "rl/env/process_scene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker { /* what lives as long as the worker */
    dt_stage stage;
    dt_host bare;
    const dt_plugin *extra;
    const dt_loaded *comp;
    void *config;
} maker;

static const char *next_request_text(const char **at, const char *end)
{
    const char *s = *at;
    *at = s < end ? s + strnlen(s, (size_t)(end - s)) + 1 : end;
    return s < end ? s : "";
}

static dt_status load_environment(maker *m, const char **at, const char *end)
{
    const dt_loader_desc d = {.host = &m->bare, .plugin_path = getenv("DTRAIN_PLUGIN_PATH")};
    const dt_loaded_plugin *unused = NULL;
    int64_t seed = 0;
    DT_TRY(dt_loader_create(&d, &m->stage.d.loader));
    if (m->extra != NULL) {
        DT_TRY(dt_loader_add(m->stage.d.loader, m->extra));
    }
    const char *path = next_request_text(at, end), *id = next_request_text(at, end);
    if (path[0] != '\0') {
        DT_TRY(dt_loader_open(m->stage.d.loader, path, &unused));
    }
    DT_TRY(dt_loader_find(m->stage.d.loader, DT_KIND_ENV, id, &m->comp));
    m->stage.d.seed = dt_parse_i64(next_request_text(at, end), &seed) ? (uint64_t)seed : 0;
    (void)dt_parse_i64(next_request_text(at, end), &m->stage.d.index);
    return DT_OK;
}

static dt_status read_worker_options(maker *m, const char *at, const char *end)
{
    const dt_component *c = &m->comp->desc;
    dt_config *config = NULL;
    DT_TRY(dt_config_create(&config));
    m->stage.d.config = config;
    m->config = dt_alloc(c->config_size > 0 ? c->config_size : 1);
    if (m->config == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for environment %s", c->id);
    }
    if (c->options == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_config_declare(config, c->id, c->options, m->comp->plugin->desc.name));
    while (at < end) {
        const char *key = next_request_text(&at, end), *value = next_request_text(&at, end);
        DT_TRY(dt_config_set_option(config, key, value, "the host"));
    }
    return dt_config_section(config, -1, c->id, NULL, 0, m->config, c->config_size);
}

static dt_status prepare_environment(void *user, const char *request, size_t bytes, const dt_env_ops **ops_p,
                                     size_t *state_bytes_p)
{
    maker *m = user;
    const char *at = request, *end = request + bytes;
    DT_TRY(load_environment(m, &at, end));
    DT_TRY(read_worker_options(m, at, end));
    *ops_p = &m->comp->ops.env;
    *state_bytes_p = m->comp->desc.state_size;
    return DT_OK;
}

static dt_status create_environment(void *user, void *self)
{
    const maker *m = user;
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, m->comp->desc.id, "create", m->comp->ops.env.create(self, &m->stage.host, m->config));
    return st;
}

static void answer_query(void *user, void *self, uint32_t what, dt_str *out)
{
    const maker *m = user;
    const void *(*extension)(const char *id) = m->comp->desc.extension;
    const dt_scene_api *scene = extension != NULL ? extension(DT_EXT_SCENE) : NULL;
    if (scene != NULL) {
        dt_process_scene_write(scene, self, what, out);
    }
}

int dt_env_run_worker(const dt_plugin *extra)
{
    static maker m; /* ends with the process */
    const dt_process_worker w = {
        .user = &m, .prepare = prepare_environment, .create = create_environment, .query = answer_query};
    /* the host decides when to stop; without one a stopped worker gets SIGHUP, and one that writes SIGPIPE, before it
     * can end what it started */
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        signal(ignored[i], SIG_IGN);
    }
    m.extra = extra;
    dt_host_init(&m.bare);
    dt_services_init(&m.stage);
    return dt_process_run_worker(&w);
}
