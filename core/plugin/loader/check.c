/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a plugin's descriptor, in the order of the contract. See loader.h and include/dtrain/plugin.h.
 *
 * Sizes: a member is read only where the struct_size of its table reaches; what a smaller table lacks stays zero in
 * the host's copy. A table must reach at least to the last member that every plugin of this major version has.
 */
#include <config.h>

#include "plugin/loader/inner.h"
#include "base/err.h"
#include "base/name.h"
#include "config/schema.h"

#include <inttypes.h>
#include <string.h>

/* up to and with this member */
#define BYTES_TO(T, member) ((uint32_t)(offsetof(T, member) + sizeof(((T *)0)->member)))

enum { LEAST_PLUGIN_BYTES = BYTES_TO(dt_plugin, fini), LEAST_COMPONENT_BYTES = BYTES_TO(dt_component, extension) };

const char *dt_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [DT_KIND_PHASE] = "phase", [DT_KIND_MODEL] = "model", [DT_KIND_ENV] = "environment", [DT_KIND_DATA] = "data"};
    return kind >= DT_KIND_PHASE && kind <= DT_KIND_DATA ? names[kind] : "unknown";
}

/* The smaller of both sizes into a zeroed whole. */
static void copy_smaller_table(void *whole, uint32_t whole_bytes, const void *raw, uint32_t raw_bytes)
{
    memset(whole, 0, whole_bytes);
    memcpy(whole, raw, raw_bytes < whole_bytes ? raw_bytes : whole_bytes);
}

/* Texts that only people read; check.c of the trial asks for them. */
static const char *text_or_none(const char *text)
{
    return text != NULL ? text : "";
}

/* The members that keep their places in every major version, then what must agree for the rest to be readable. */
static dt_status check_prefix(const dt_plugin *raw, const char *file)
{
    if (raw->magic != DT_PLUGIN_MAGIC) {
        return DT_FAIL(DT_EABI,
                       "%s: its descriptor begins with 0x%08" PRIx32 ", expected 0x%08" PRIx32 "; fill it with "
                       "DT_PLUGIN_PREFIX of dtrain/plugin.h and rebuild",
                       file, raw->magic, DT_PLUGIN_MAGIC);
    }
    if (raw->struct_size < BYTES_TO(dt_plugin, layout)) {
        return DT_FAIL(DT_EABI,
                       "%s: its descriptor has %" PRIu32 " bytes, expected at least %u; rebuild it with the "
                       "headers of this dtrain",
                       file, raw->struct_size, BYTES_TO(dt_plugin, layout));
    }
    if (raw->abi_major != DT_ABI_MAJOR) {
        return DT_FAIL(DT_EABI, "%s: built for plugin ABI %u.%u, this dtrain supports %d.%d; %s", file, raw->abi_major,
                       raw->abi_minor, DT_ABI_MAJOR, DT_ABI_MINOR,
                       raw->abi_major > DT_ABI_MAJOR ? "update dtrain, or use an older release of the plugin"
                                                     : "rebuild it with the headers of this dtrain");
    }
    if (raw->need_minor > DT_ABI_MINOR) {
        return DT_FAIL(DT_EABI, "%s: needs plugin ABI %u.%u, this dtrain supports %d.%d; update dtrain", file,
                       raw->abi_major, raw->need_minor, DT_ABI_MAJOR, DT_ABI_MINOR);
    }
    if (raw->layout == NULL || strcmp(raw->layout, DT_LAYOUT) != 0) {
        return DT_FAIL(DT_EABI,
                       "%s: built with layout \"%s\", expected \"%s\"; rebuild it for this machine with the "
                       "headers of this dtrain",
                       file, raw->layout != NULL ? raw->layout : "", DT_LAYOUT);
    }
    if (raw->struct_size < LEAST_PLUGIN_BYTES) {
        return DT_FAIL(DT_EABI, "%s: its descriptor has %" PRIu32 " bytes, version %d.0 has %u; rebuild it", file,
                       raw->struct_size, DT_ABI_MAJOR, LEAST_PLUGIN_BYTES);
    }
    return DT_OK;
}

dt_status dt_plugin_check(const dt_plugin *raw, const char *file, const char *name, dt_plugin *desc_p)
{
    if (raw == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: its entry point returns no descriptor", file);
    }
    DT_TRY(check_prefix(raw, file));
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, raw->name, "%s: the plugin", file));
    if (name != NULL && strcmp(raw->name, name) != 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: the plugin inside is called \"%s\", expected \"%s\" from the name of the file; "
                       "rename the file to %s.so",
                       file, raw->name, name, raw->name);
    }
    copy_smaller_table(desc_p, sizeof(*desc_p), raw, raw->struct_size);
    desc_p->version = text_or_none(desc_p->version);
    desc_p->vendor = text_or_none(desc_p->vendor);
    desc_p->license = text_or_none(desc_p->license);
    if ((raw->n_components == 0 || raw->components == NULL) && desc_p->extension == NULL) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: contains no components, expected at least one phase, model, environment or data source",
                       file);
    }
    return DT_OK;
}

/* ---- components ------------------------------------------------------------------------------------------------ */

typedef struct needed_op {
    const char *name;
    size_t offset; /* of a function pointer in the table */
} needed_op;

#define NEED(T, member)                                                                                                \
    {                                                                                                                  \
#        member, offsetof(T, member)                                                                                   \
    }
static const needed_op phase_needs[] = {NEED(dt_phase_ops, create),  NEED(dt_phase_ops, start),
                                        NEED(dt_phase_ops, iterate), NEED(dt_phase_ops, stop),
                                        NEED(dt_phase_ops, destroy), {NULL, 0}};
static const needed_op model_needs[] = {NEED(dt_model_ops, create),
                                        NEED(dt_model_ops, inputs),
                                        NEED(dt_model_ops, outputs),
                                        NEED(dt_model_ops, params),
                                        NEED(dt_model_ops, forward),
                                        NEED(dt_model_ops, destroy),
                                        {NULL, 0}};
static const needed_op env_needs[] = {NEED(dt_env_ops, spec), NEED(dt_env_ops, create),  NEED(dt_env_ops, reset),
                                      NEED(dt_env_ops, step), NEED(dt_env_ops, destroy), {NULL, 0}};
static const needed_op data_needs[] = {
    NEED(dt_data_ops, create), NEED(dt_data_ops, fields), NEED(dt_data_ops, symbols), NEED(dt_data_ops, count),
    NEED(dt_data_ops, sizes),  NEED(dt_data_ops, read),   NEED(dt_data_ops, destroy), {NULL, 0}};

static const struct {
    uint32_t least_bytes, bytes; /* with the required operations; now */
    const needed_op *needs;
} kinds[] = {
    [DT_KIND_PHASE] = {BYTES_TO(dt_phase_ops, load), sizeof(dt_phase_ops), phase_needs},
    [DT_KIND_MODEL] = {BYTES_TO(dt_model_ops, destroy), sizeof(dt_model_ops), model_needs},
    [DT_KIND_ENV] = {BYTES_TO(dt_env_ops, destroy), sizeof(dt_env_ops), env_needs},
    [DT_KIND_DATA] = {BYTES_TO(dt_data_ops, destroy), sizeof(dt_data_ops), data_needs},
};

static bool is_member_missing(const void *ops, size_t offset)
{
    void (*fn)(void) = NULL;
    memcpy(&fn, (const char *)ops + offset, sizeof(fn));
    return fn == NULL;
}

static dt_status check_ops(const dt_component *comp, const char *file, dt_loaded *out_p)
{
    if (comp->ops == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: component %s has no table of operations, expected dt_%s_ops", file, comp->id,
                       dt_kind_name(comp->kind));
    }
    uint32_t bytes = *(const uint32_t *)comp->ops; /* struct_size comes first everywhere */
    if (bytes < kinds[comp->kind].least_bytes) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: the operations of component %s have struct_size %" PRIu32
                       ", version %d.0 has at least %" PRIu32 "; set it to sizeof the table and rebuild",
                       file, comp->id, bytes, DT_ABI_MAJOR, kinds[comp->kind].least_bytes);
    }
    copy_smaller_table(&out_p->ops, kinds[comp->kind].bytes, comp->ops, bytes);
    for (const needed_op *need = kinds[comp->kind].needs; need->name != NULL; need++) {
        if (is_member_missing(&out_p->ops, need->offset)) {
            return DT_FAIL(DT_EPLUGIN, "%s: component %s lacks the operation %s, which every %s needs", file, comp->id,
                           need->name, dt_kind_name(comp->kind));
        }
    }
    const bool is_phase = comp->kind == DT_KIND_PHASE;
    if (is_phase && is_member_missing(&out_p->ops, offsetof(dt_phase_ops, save)) !=
                        is_member_missing(&out_p->ops, offsetof(dt_phase_ops, load))) {
        return DT_FAIL(DT_EPLUGIN, "%s: component %s has only one of save and load, expected both or none", file,
                       comp->id);
    }
    return DT_OK;
}

dt_status dt_component_check(const dt_component *raw, const dt_loaded_plugin *p, dt_loaded *out_p)
{
    const char *file = p->path;
    if (raw == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: a component is NULL; n_components counts too many", file);
    }
    if (raw->struct_size < LEAST_COMPONENT_BYTES) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: a component has struct_size %" PRIu32 ", version %d.0 has %d; set it to "
                       "sizeof(dt_component) and rebuild",
                       file, raw->struct_size, DT_ABI_MAJOR, LEAST_COMPONENT_BYTES);
    }
    copy_smaller_table(&out_p->desc, sizeof(out_p->desc), raw, raw->struct_size);
    const dt_component *comp = &out_p->desc;
    out_p->desc.summary = text_or_none(comp->summary);
    out_p->desc.reference = text_or_none(comp->reference);
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, comp->id, "%s: a component", file));
    if (dt_config_is_host_section(comp->id)) {
        return DT_FAIL(DT_EPLUGIN, "%s: the id \"%s\" is reserved in dtrain's configuration; choose another", file,
                       comp->id);
    }
    if (comp->kind < DT_KIND_PHASE || comp->kind > DT_KIND_DATA) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: component %s has kind %" PRIu32 ", known are %d to %d (DT_KIND_*); update dtrain, "
                       "or set another kind",
                       file, comp->id, comp->kind, DT_KIND_PHASE, DT_KIND_DATA);
    }
    if (comp->kind == DT_KIND_MODEL) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, comp->role,
                             "%s: the role of model %s (perception, world, controller, shield or another word)", file,
                             comp->id));
    }
    dt_status st = dt_option_table_check(comp->options, comp->config_size);
    if (st != DT_OK) {
        return DT_CONTEXT(st, "%s: component %s", file, comp->id);
    }
    return check_ops(comp, file, out_p);
}
