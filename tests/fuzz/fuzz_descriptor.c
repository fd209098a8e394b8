/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of plugins: whatever a loaded file may hand over within the rules of C. The input is a stream of choices
 * from which a dt_plugin, its components, options and tables of operations are made, each in a block as large as its
 * struct_size says (at least the members that say so), so that a member read behind it is seen. What the loader accepts
 * is used as a session uses it: its options are declared, set and stored in a struct of config_size.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/mem.h"
#include "config/options.h"
#include "plugin/loader/loader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMPONENTS = 3, MOST_OPTIONS = 4, MOST_CHOICES = 3, MOST_TEXT = 24, MOST_TABLE = 512, MOST_BLOCKS = 128 };

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static struct {
    const uint8_t *at, *end;
    void *block[MOST_BLOCKS];
    size_t n_blocks;
} input;

static uint8_t byte(void)
{
    return input.at < input.end ? *input.at++ : 0;
}

static uint64_t number(size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) {
        v = v << 8 | byte();
    }
    return v;
}

static void *block(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);
    fuzz_hold(p != NULL && input.n_blocks < MOST_BLOCKS);
    input.block[input.n_blocks++] = p;
    return p;
}

/* One of what is usual, or anything: NULL among it. */
static const char *text(const char *const *usual, size_t n_usual)
{
    const uint8_t kind = byte();
    if (kind < 0xc0) {
        return usual[kind % n_usual];
    }
    if (kind == 0xff) {
        return NULL;
    }
    const size_t n = kind % MOST_TEXT;
    char *copy = block(n + 1);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (char)byte();
    }
    return copy;
}
#define TEXT(...)                                                                                                      \
    text((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A table of so many bytes as its first member says, from a whole one. */
static void *table(const void *whole, size_t whole_bytes, size_t least, uint32_t *size_p)
{
    const uint8_t kind = byte();
    const uint32_t size = kind < 0xc0   ? (uint32_t)whole_bytes
                          : kind < 0xe0 ? number(2) % MOST_TABLE
                                        : (uint32_t)number(4);
    size_t bytes = size > MOST_TABLE ? MOST_TABLE : size;
    bytes = bytes < least ? least : bytes;
    char *p = block(bytes);
    memcpy(p, whole, bytes < whole_bytes ? bytes : whole_bytes);
    *size_p = size > MOST_TABLE ? (uint32_t)whole_bytes : size;
    return p;
}

/* ---- a plugin ---------------------------------------------------------------------------------------------------- */

static dt_status some_init(const dt_host *h)
{
    return DT_OK;
}
static dt_status failing_init(const dt_host *h)
{
    return DT_EIO;
}
static void some_fini(void) {}
static void some_op(void) {}

static const char *const *choices(void)
{
    const uint8_t kind = byte();
    if (kind >= 0xf0) {
        return NULL;
    }
    const char **list = block((MOST_CHOICES + 1) * sizeof(*list));
    for (size_t i = 0; i < kind % (MOST_CHOICES + 1); i++) {
        list[i] = TEXT("a", "gat", "none");
    }
    return list;
}

static double bound(double usual)
{
    const uint8_t kind = byte();
    double v = usual;
    const uint64_t bits = kind >= 0xe0 ? number(8) : 0;
    memcpy(&v, kind >= 0xe0 ? (const void *)&bits : &v, sizeof(v));
    return kind < 0x80 ? usual : kind < 0xe0 ? (double)(int8_t)byte() : v;
}

static const dt_option *options(void)
{
    static const uint32_t member[] = {0, 1, 8, 8, 8, 4, 8};
    const uint8_t kind = byte();
    if (kind >= 0xf0) {
        return NULL;
    }
    const size_t n = kind % (MOST_OPTIONS + 1);
    dt_option *o = block((n + 1) * sizeof(*o));
    for (size_t i = 0; i < n; i++) {
        const uint8_t type = byte();
        o[i].name = TEXT("hidden", "lr", "use_it", "kind", "file", "x");
        o[i].dfl = TEXT("1", "0.5", "true", "a", "", "gat", "-3", "1e300", "x/y");
        o[i].unit = TEXT("1", "s");
        o[i].help = TEXT("what it is");
        o[i].choices = choices();
        o[i].min = bound((double)-INFINITY);
        o[i].max = bound((double)INFINITY);
        o[i].type = type < 0xe0 ? type % 7 : (uint32_t)number(4);
        o[i].flags = byte() % 16;
        o[i].offset = type % 2 ? (uint32_t)(8 * i) : (uint32_t)number(4);
        o[i].size = byte() < 0xe0 && o[i].type < 7 ? member[o[i].type] : (uint32_t)number(4);
        if (o[i].name == NULL) {
            break; /* the end of the table */
        }
    }
    return o;
}

static const void *operations(uint32_t kind)
{
    static const size_t bytes[] = {64, sizeof(dt_phase_ops), sizeof(dt_model_ops), sizeof(dt_env_ops),
                                   sizeof(dt_data_ops)};
    char whole[MOST_TABLE] = {0};
    void (*op)(void) = some_op;
    uint32_t size = 0;
    const size_t n = bytes[kind <= DT_KIND_DATA ? kind : 0];
    const uint16_t missing = (uint16_t)(byte() < 0xc0 ? 0 : number(2));
    if (byte() >= 0xf8) {
        return NULL;
    }
    for (size_t at = 8; at + sizeof(op) <= n; at += sizeof(op)) {
        memcpy(whole + at, &op, missing >> (at / 8) % 16 & 1 ? 0 : sizeof(op));
    }
    void *p = table(whole, n, sizeof(size), &size);
    memcpy(p, &size, sizeof(size));
    return p;
}

static const void *defaults(const char *id)
{
    static const char *const list[] = {"training.epochs=3", "data.batch=16", "x", NULL};
    return strcmp(id, DT_EXT_DEFAULTS) == 0 ? list : NULL;
}

static const dt_component *component(void)
{
    dt_component whole = {.kind = DT_KIND_PHASE + byte() % 4u};
    uint32_t size = 0;
    if (byte() >= 0xf8) {
        return NULL;
    }
    whole.kind = byte() < 0xf0 ? whole.kind : (uint32_t)number(4);
    whole.id = TEXT("mine", "yours", "phase_x", "training");
    whole.summary = TEXT("a thing");
    whole.reference = TEXT("none");
    whole.role = TEXT("world", "controller");
    whole.flags = (uint32_t)number(1);
    whole.config_size = byte() < 0xe0 ? 64 : number(8);
    whole.state_size = byte() < 0xe0 ? 64 : number(8);
    whole.options = options();
    whole.ops = operations(whole.kind);
    whole.extension = byte() % 2 ? defaults : NULL;
    dt_component *c = table(&whole, sizeof(whole), 2 * sizeof(uint32_t), &size);
    c->struct_size = size;
    return c;
}

static const dt_plugin *plugin(void)
{
    dt_plugin whole = {DT_PLUGIN_PREFIX};
    uint32_t size = 0;
    whole.magic = byte() < 0xf0 ? DT_PLUGIN_MAGIC : (uint32_t)number(4);
    whole.abi_major = byte() < 0xf0 ? DT_ABI_MAJOR : (uint16_t)number(2);
    whole.abi_minor = byte() < 0xf0 ? DT_ABI_MINOR : (uint16_t)number(2);
    whole.need_minor = byte() < 0xf0 ? 0 : (uint16_t)number(2);
    whole.layout = TEXT(DT_LAYOUT);
    whole.name = TEXT("mine", "yours");
    whole.version = TEXT("1.0");
    whole.vendor = TEXT("who");
    whole.license = TEXT("what");
    whole.init = byte() < 0x80 ? NULL : byte() < 0xc0 ? some_init : failing_init;
    whole.fini = byte() < 0x80 ? NULL : some_fini;
    const uint8_t n = byte() % (MOST_COMPONENTS + 1);
    const dt_component **list = block(n * sizeof(*list)); /* of exactly as many as the plugin says */
    for (uint8_t i = 0; i < n; i++) {
        list[i] = component();
    }
    whole.n_components = n;
    whole.components = byte() < 0xf0 ? list : NULL;
    dt_plugin *p = table(&whole, sizeof(whole), 2 * sizeof(uint32_t), &size);
    p->struct_size = size;
    return p;
}

/* ---- its use ----------------------------------------------------------------------------------------------------- */

static void use(const dt_loaded *l, dt_config *c)
{
    const dt_component *d = &l->desc;
    fuzz_touch_text(d->id);
    fuzz_hold(dt_kind_name(d->kind)[0] != 'u');
    if (d->config_size > MOST_TABLE || d->options == NULL) {
        return;
    }
    if (dt_config_declare(c, d->id, d->options, l->plugin->desc.name) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        return;
    }
    void *config = block(d->config_size);
    const dt_setting over = {d->options[0].name, "1"};
    (void)!dt_config_section(c, -1, d->id, NULL, 0, config, d->config_size);
    (void)!dt_config_section(c, -1, d->id, &over, d->options[0].name != NULL, config, d->config_size);
    for (const dt_option *o = d->options; o->name != NULL; o++) {
        dt_str words = {0};
        dt_option_accepts(o, &words);
        fuzz_touch_text(dt_str_text(&words));
        fuzz_touch_text(dt_option_type_name(o));
        dt_str_fini(&words);
    }
}

DT_FUZZ(descriptor)
{
    static const dt_host host = {.struct_size = sizeof(dt_host)};
    const dt_loader_desc desc = {.host = &host, .program_dir = "/nowhere", .plugin_dir = "/nowhere"};
    dt_loader *l = NULL;
    dt_config *c = NULL;
    fuzz_begin();
    input.at = bytes;
    input.end = bytes + n;
    fuzz_hold(dt_loader_create(&desc, &l) == DT_OK);
    for (int i = 0; i < 2; i++) { /* the second may take ids of the first */
        if (dt_loader_add(l, plugin()) != DT_OK) {
            fuzz_hold(*dt_error_text() != '\0');
        }
    }
    if (dt_loader_count(l) > 0) {
        fuzz_hold(dt_config_create(&c) == DT_OK);
        for (uint32_t i = 0; i < dt_loader_count(l); i++) {
            const dt_loaded *found = NULL;
            fuzz_hold(dt_loader_find(l, 0, dt_loader_at(l, i)->desc.id, &found) == DT_OK);
            fuzz_hold(found == dt_loader_at(l, i));
            use(found, c);
        }
        dt_config_destroy(c);
        fuzz_accepted();
    }
    dt_loader_destroy(l);
    for (; input.n_blocks > 0; input.n_blocks--) {
        free(input.block[input.n_blocks - 1]);
    }
    fuzz_end();
    return 0;
}
