/* SPDX-License-Identifier: Apache-2.0
 *
 * One small plugin, built many times: good as it stands, and wrong in one way for each -DBAD_x. Only the loader's tests
 * open it.
 */
#include "dtrain/helpers.h"
#include "dtrain/plugin.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#ifdef DT_PLUGIN_NAME
#    define NAME TEXT(DT_PLUGIN_NAME)
#else
#    define NAME "good_plain"
#endif
#define ID(suffix) NAME suffix
#define SPARE      __attribute__((unused)) /* some variants leave it out */

/* ---- a model, a phase and a data source that do nothing ---- */

typedef struct config {
    int64_t hidden;
    int32_t narrow;
} config;

static const dt_option options[] = {
#if defined(BAD_OPTION_SIZE)
    DT_OPTION(config, narrow, DT_OPT_I64, "1", "1", 0, 9, NULL, "an int behind a 64-bit option"),
#elif defined(BAD_DEFAULT)
    DT_OPTION(config, hidden, DT_OPT_I64, "many", "1", 1, 64, NULL, "width"),
#else
    DT_OPTION(config, hidden, DT_OPT_I64, "8", "1", 1, 64, NULL, "width"),
#endif
    DT_OPTION_END,
};

static dt_status model_create(void *self, const dt_host *h, const void *c, const dt_dim *dims, uint32_t n)
{
    return DT_OK;
}
static const dt_port *no_ports(const void *self, uint32_t *n_p)
{
    *n_p = 0;
    return NULL;
}
static dt_status no_params(void *self, dt_params *reg)
{
    return DT_OK;
}
SPARE static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    return DT_OK;
}
static void nothing(void *self) {}
static const dt_model_ops model_ops = {
#ifdef BAD_OPS_SIZE
    .struct_size = 16,
#else
    .struct_size = sizeof(dt_model_ops),
#endif
    .create = model_create,
    .inputs = no_ports,
    .outputs = no_ports,
    .params = no_params,
#ifndef BAD_OP
    .forward = forward,
#endif
    .destroy = nothing,
};

static dt_status phase_create(void *self, const dt_host *h, const void *c)
{
    return DT_OK;
}
static dt_status phase_start(void *self)
{
    return DT_OK;
}
static dt_status iterate(void *self, dt_progress *out)
{
    return DT_DONE;
}
#ifdef BAD_SAVE
static dt_status save(void *self, dt_writer *w)
{
    return DT_OK;
}
#endif
SPARE static const dt_phase_ops phase_ops = {
#ifdef SMALLER
    .struct_size = offsetof(dt_phase_ops, finish), /* as before finish was appended */
    .finish = phase_start,
#else
    .struct_size = sizeof(dt_phase_ops),
#endif
    .create = phase_create,
    .start = phase_start,
    .iterate = iterate,
    .stop = nothing,
    .destroy = nothing,
#ifdef BAD_SAVE
    .save = save,
#endif
};

#ifdef BAD_LAZY
void undefined_symbol(void);
static const void *extension(const char *id)
{
    undefined_symbol();
    return NULL;
}
#endif

/* ---- descriptors ---- */

SPARE static const dt_component model = {
#ifdef BAD_COMPONENT_SIZE
    .struct_size = 24,
#else
    .struct_size = sizeof(dt_component),
#endif
#ifdef BAD_KIND
    .kind = 9,
#else
    .kind = DT_KIND_MODEL,
#endif
#if defined(BAD_ID)
    .id = "Bad Id",
#elif defined(BAD_RESERVED)
    .id = "training",
#elif defined(BAD_TAKEN)
    .id = "good_model",
#else
    .id = ID("_model"),
#endif
    .summary = "does nothing",
    .reference = "none",
#ifndef BAD_ROLE
    .role = "world",
#endif
    .config_size = sizeof(config),
    .options = options,
    .ops = &model_ops,
#ifdef BAD_LAZY
    .extension = extension,
#endif
};

SPARE static const dt_component phase = {
    .struct_size = sizeof(dt_component),
    .kind = DT_KIND_PHASE,
#ifdef BAD_DUPLICATE
    .id = ID("_model"),
#else
    .id = NAME,
#endif
    .summary = "ends at once",
#ifndef BAD_NO_OPS
    .ops = &phase_ops,
#endif
};

#if defined(GOOD_ENV)
static dt_status env_create(void *self, const dt_host *h, const void *c)
{
    return DT_OK;
}
static dt_status env_spec(const void *self, dt_env_spec *out)
{
    return DT_OK;
}
static dt_status env_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    return DT_OK;
}
static dt_status env_step(void *self, const dt_env_io *io)
{
    return DT_DONE;
}
static const dt_env_ops env_ops = {.struct_size = sizeof(dt_env_ops),
                                   .create = env_create,
                                   .spec = env_spec,
                                   .reset = env_reset,
                                   .step = env_step,
                                   .destroy = nothing};
static const dt_component env = {
    .struct_size = sizeof(dt_component), .kind = DT_KIND_ENV, .id = ID("_world"), .summary = "empty", .ops = &env_ops};
static const dt_component *const components[] = {&env, &model};
#elif defined(TWO_PHASES)
static const dt_component second = {
    .struct_size = sizeof(dt_component), .kind = DT_KIND_PHASE, .id = "second_phase", .ops = &phase_ops};
static const dt_component third = {
    .struct_size = sizeof(dt_component), .kind = DT_KIND_PHASE, .id = "third_phase", .ops = &phase_ops};
static const dt_component *const components[] = {&second, &third};
#elif defined(MODEL_ONLY)
static const dt_component *const components[] = {&model};
#else
static const dt_component *const components[] = {&phase, &model};
#endif

static dt_status init(const dt_host *h)
{
#ifdef BAD_INIT
    return DT_FAIL_H(h, DT_EIO, "the licence server is asleep");
#else
    return h != NULL ? DT_OK : DT_EINVAL;
#endif
}

/* a table from the future: the same beginning, more members behind it */
typedef struct newer {
    dt_plugin plugin;
    uint64_t more[4];
} newer;

SPARE static const newer desc = {.plugin = {
#ifdef BAD_MAGIC
                                     .magic = 0x12345678,
#else
                                     .magic = DT_PLUGIN_MAGIC,
#endif
#if defined(BAD_SIZE)
                                     .struct_size = 12,
#elif defined(BAD_SHORT)
                                     .struct_size = 64,
#elif defined(NEWER)
                                     .struct_size = sizeof(newer),
#else
                                     .struct_size = sizeof(dt_plugin),
#endif
#if defined(BAD_MAJOR)
                                     .abi_major = DT_ABI_MAJOR + 1,
#elif defined(OLD_MAJOR)
                                     .abi_major = 0,
#else
                                     .abi_major = DT_ABI_MAJOR,
#endif
#if defined(NEWER) || defined(BAD_MINOR)
                                     .abi_minor = DT_ABI_MINOR + 7,
#else
                                     .abi_minor = DT_ABI_MINOR,
#endif
#ifdef BAD_MINOR
                                     .need_minor = DT_ABI_MINOR + 7,
#endif
#ifdef BAD_LAYOUT
                                     .layout = "ilp32be;dims4",
#else
                                     .layout = DT_LAYOUT,
#endif
#ifdef BAD_NAME
                                     .name = "someone_else",
#else
                                     .name = NAME,
#endif
                                     .version = "1.2",
                                     .vendor = "tests",
                                     .license = "Apache-2.0",
#ifndef BAD_EMPTY
                                     .n_components = sizeof(components) / sizeof(components[0]),
#endif
                                     .components = components,
                                     .init = init,
                                 }};

#if defined(BAD_NULL)
DT_EXPORT const dt_plugin *DT_PLUGIN_ENTRY(void);
const dt_plugin *DT_PLUGIN_ENTRY(void)
{
    return NULL;
}
#elif !defined(BAD_NO_ENTRY)
DT_PLUGIN_DEFINE(desc.plugin);
#endif

#ifdef BAD_NO_ENTRY
/* exports a function of the lender, so that the library is linked in */
const void *lent(void);
DT_EXPORT const void *nothing_to_see_LTX(void);
const void *nothing_to_see_LTX(void)
{
    return desc.plugin.name != NULL ? lent() : NULL;
}
#endif
