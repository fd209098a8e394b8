/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of SUMO for tests: the corner of tests/fixtures/sumo, pieces of it replaced, and what is refused then, with
 * file and line. Threads: one.
 */
#ifndef DTRAIN_TESTS_ENV_TRAFFIC_FILES_H
#define DTRAIN_TESTS_ENV_TRAFFIC_FILES_H

#include "rig.h"

#include <stdio.h>
#include <unistd.h>

enum { TEXT = 512, FILE_MAX = 32768 };

static char folder[TEXT]; /* scratch, in the build folder */
static char net_text[FILE_MAX], routes_text[FILE_MAX];

static inline void load(const char *name, char *text)
{
    char path[TEXT];
    const char *tree = getenv("DT_SRCDIR");
    snprintf(path, sizeof(path), "%s/tests/fixtures/sumo/%s", tree != NULL ? tree : ".", name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    text[fread(text, 1, FILE_MAX - 1, in)] = '\0';
    fclose(in);
}

static inline void store(const char *name, const char *text)
{
    char path[2 * TEXT];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static inline int make_folder(void **test)
{
    const char *build = getenv("DT_BUILDDIR");
    snprintf(folder, sizeof(folder), "%s/tests/env_traffic/net-XXXXXX", build != NULL ? build : ".");
    load("corner.net.xml", net_text);
    load("corner.rou.xml", routes_text);
    return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **test)
{
    char command[2 * TEXT];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

/* The line on which a text begins. */
static inline int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++) {
        line += *text == '\n';
    }
    return line;
}

/* Replaces one piece of a file; returns its line. */
static inline int replace(const char *text, const char *from, const char *to, char *out)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(out, FILE_MAX, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return line_of(text, at);
}

static char setting[2][2 * TEXT];

/* Settings of the files in the folder, and more; NULL ends. */
static inline const char *const *settings(const char *const *more)
{
    static const char *set[16];
    int n = 0;
    snprintf(setting[0], sizeof(setting[0]), "net_file=%s/corner.net.xml", folder);
    snprintf(setting[1], sizeof(setting[1]), "routes_file=%s/corner.rou.xml", folder);
    set[n++] = "scenario=net";
    set[n++] = setting[0];
    set[n++] = setting[1];
    set[n++] = "begin_s=100";
    set[n++] = "episode_s=600";
    for (; more != NULL && *more != NULL; more++) {
        set[n++] = *more;
    }
    set[n] = NULL;
    return set;
}

static inline dt_status try_files(const char *net_xml, const char *routes_xml, char *message)
{
    mock_host host;
    sim s = {0};
    store("corner.net.xml", net_xml);
    store("corner.rou.xml", routes_xml);
    mock_host_init(&host);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    traffic_config *config = mock_config(c, settings(NULL));
    *config = scenario_resolve(config);
    const dt_status st = sim_create(&s, &host.host, config);
    snprintf(message, MOCK_TEXT, "%s", st != DT_OK ? host.message : host.log);
    sim_destroy(&s);
    free(config);
    assert_int_equal(host.n_live, 0);
    return st;
}

typedef struct bad_file {
    const char *from, *to, *says;
    dt_status status;
} bad_file;

static inline void refuse_all(const bad_file *bad, size_t n, int is_net)
{
    static char changed[FILE_MAX];
    for (size_t k = 0; k < n; k++) {
        char message[MOCK_TEXT], where[64];
        const int line = replace(is_net ? net_text : routes_text, bad[k].from, bad[k].to, changed);
        const dt_status st = try_files(is_net ? changed : net_text, is_net ? routes_text : changed, message);
        snprintf(where, sizeof(where), "corner.%s.xml:%d: ", is_net ? "net" : "rou", line);
        if (st != bad[k].status || strstr(message, bad[k].says) == NULL || strstr(message, where) == NULL) {
            print_error("%s: \"%s\", not \"%s%s\"\n", bad[k].to, message, where, bad[k].says);
        }
        assert_int_equal(st, bad[k].status);
        assert_non_null(strstr(message, bad[k].says));
        assert_non_null(strstr(message, where));
    }
}

#endif
