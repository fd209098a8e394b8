/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin contract of dtrain: what a shared object must export and what it is given.
 *
 * One exported function returns one dt_plugin: data first (descriptor, options, ports), code second. The host reads
 * the frozen prefix before anything else, allocates configuration and state, hands every service in, and calls
 * back. A plugin links with no undefined symbols and includes nothing but include/dtrain.
 *
 * Compatibility: within a major version members are only appended; struct_size comes first everywhere; what a third
 * party compiled against one minor loads in every later minor of the same major (abi_log.h has a line per minor).
 * Plugins keep no mutable statics, never exit, abort, fork, install signal handlers or print to standard output, and
 * are never unloaded.
 *
 * Thread roles, written on every member: [main] the rank's training thread; [worker] a pool thread, one instance
 * never in two at once; [any]; [collective] called in the same order on every rank.
 */
#ifndef DTRAIN_PLUGIN_H
#define DTRAIN_PLUGIN_H

#include "dtrain/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_ABI_MAJOR    1 /* a member moved, shrank or changed meaning */
#define DT_ABI_MINOR    0 /* members appended, service or extension ids added */
#define DT_PLUGIN_MAGIC UINT32_C(0x4e525444)
#define DT_MAX_DIMS     8
#define DT_LAYOUT       "lp64le;dims8" /* what would break silently between builds */

/* ---- values ------------------------------------------------------------------------------------------------- */

enum { DT_F32 = 1, DT_F64, DT_I32, DT_I64, DT_U8, DT_F16, DT_BF16 }; /* dtypes; F16 and BF16 are reserved for AMP */

/* A named slot of data. dims is a list of tokens separated by one blank: a number, a ragged symbol whose live size
 * changes from slice to slice (shapes.h: N nodes, E edges, S sequences, B samples), or SYMBOL+1 (CSR row pointers).
 * Example: { "rowptr", "N+1", DT_I32, 0 }. */
typedef struct dt_port {
    const char *name, *dims;
    uint32_t dtype, flags;
} dt_port;
enum { DT_PORT_OPTIONAL = 1u };

typedef struct dt_dim {
    const char *name;
    int64_t size;
} dt_dim;

/* A configuration value as text, read by the same parser as user input. */
typedef struct dt_setting {
    const char *key, *value;
} dt_setting;

/* ---- options ------------------------------------------------------------------------------------------------- */

enum { DT_OPT_BOOL = 1, DT_OPT_I64, DT_OPT_F64, DT_OPT_STR, DT_OPT_ENUM, DT_OPT_PATH };
/* Member types behind them: bool as uint8_t, int64_t, double, const char * (never NULL), uint32_t (index into
 * choices), const char * (made absolute against the file that set it). */
enum { DT_OPT_REQUIRED = 1u, DT_OPT_PER_RANK = 2u, DT_OPT_RUNTIME = 4u, DT_OPT_DEPRECATED = 8u };

typedef struct dt_option {
    const char *name;           /* "clip_eps": config key, --set phase2_ppo.clip_eps=0.1 */
    const char *dfl;            /* default as text */
    const char *unit, *help;    /* "1", "s", "env steps"; one sentence, then the source */
    const char *const *choices; /* DT_OPT_ENUM: ends with NULL */
    double min, max;            /* inclusive; -INFINITY / INFINITY when open */
    uint32_t type, flags, offset, size;
} dt_option;

/* A row: DT_OPTION(cfg, hidden, DT_OPT_I64, "256", "1", 1, 8192, NULL, "hidden width"). */
/* clang-format off */
#define DT_OPTION(T, member, type, dfl, unit, min, max, choices, help)                                                 \
    {                                                                                                                  \
        #member, dfl, unit, help, choices, min, max, type, 0, (uint32_t)offsetof(T, member),                           \
            (uint32_t)sizeof(((T *)0)->member)                                                                         \
    }
#define DT_OPTION_END                                                                                                  \
    {                                                                                                                  \
        NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0                                                                 \
    }
/* clang-format on */

/* ---- what the host gives --------------------------------------------------------------------------------------- */

typedef struct dt_host dt_host;
struct dt_host {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    void *priv;
    /* [any] record the reason of an error, returns st; where is "file:line" or NULL */
    dt_status (*fail)(const dt_host *h, dt_status st, const char *where, const char *msg);
    void (*log)(const dt_host *h, int32_t level, const char *msg); /* [any] 0 error 1 warning 2 info 3 debug */
    void *(*alloc)(const dt_host *h, uint64_t bytes);              /* [any] zeroed, 64-byte aligned, NULL when out */
    void (*release)(const dt_host *h, void *p);                    /* [any] NULL is fine */
    const void *(*service)(const dt_host *h, const char *id);      /* [any] "dtrain.graph/1"; NULL when unknown */
};

/* Opaque, given by the host. */
typedef struct dt_graph dt_graph;   /* svc/graph.h: records ops */
typedef struct dt_tensor dt_tensor; /* svc/graph.h: a value in a graph, a handle, never data */
typedef struct dt_params dt_params; /* where a model registers its parameters */
typedef struct dt_writer dt_writer;
typedef struct dt_reader dt_reader;

/* Plugin state that is not in registered parameters, inside a checkpoint. */
struct dt_writer {
    uint32_t struct_size, reserved;
    void *priv;
    dt_status (*write)(dt_writer *w, const void *p, uint64_t bytes); /* [main] */
};
struct dt_reader {
    uint32_t struct_size, reserved;
    void *priv;
    uint64_t bytes_left;
    dt_status (*read)(dt_reader *r, void *p, uint64_t bytes); /* [main] exactly bytes, else DT_EDATA */
};

/* ---- phases ------------------------------------------------------------------------------------------------------ */

typedef struct dt_progress {
    uint32_t struct_size, reserved;
    uint64_t step, steps;                  /* done and planned in this phase; steps 0 = open */
    uint64_t epoch, epochs;                /* epoch being worked on, from 0 */
    uint64_t samples;                      /* consumed by this call, all ranks together */
    double loss, grad_norm, learning_rate; /* NAN when there is none */
    uint8_t epoch_end;                     /* this call finished an epoch */
    uint8_t evaluated;                     /* this call evaluated */
    uint8_t reserved2[6];
} dt_progress;

typedef struct dt_phase_ops { /* the host owns the loop; the phase is stepped */
    uint32_t struct_size, reserved;
    /* [main] bind models and data, check what can be checked. config is read-only from here on. */
    dt_status (*create)(void *self, const dt_host *h, const void *config);
    dt_status (*start)(void *self);                      /* [main][collective] graphs, arenas, first broadcast */
    dt_status (*iterate)(void *self, dt_progress *out);  /* [main][collective] one iteration; DT_DONE ends the phase */
    dt_status (*evaluate)(void *self, dt_progress *out); /* [main][collective] optional; results through metrics */
    void (*stop)(void *self);                            /* [main] */
    void (*destroy)(void *self);                         /* [main] once per create, even a failed one */
    dt_status (*save)(void *self, dt_writer *w);         /* [main] optional */
    dt_status (*load)(void *self, dt_reader *r, uint32_t version); /* [main] optional; after start */
} dt_phase_ops;

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct dt_model_ops {
    uint32_t struct_size, reserved;
    /* [main] dims: sizes the phase fixes by name, e.g. {"D",9} node features, {"T",15} steps; see ports in shapes.h */
    dt_status (*create)(void *self, const dt_host *h, const void *config, const dt_dim *dims, uint32_t n_dims);
    const dt_port *(*inputs)(const void *self, uint32_t *n_p);  /* [any] after create */
    const dt_port *(*outputs)(const void *self, uint32_t *n_p); /* [any] after create */
    dt_status (*params)(void *self, dt_params *reg);            /* [main] names, shapes, initialisers */
    /* [main] records ops; the host differentiates. in follows inputs (NULL for an absent optional one), out outputs. */
    dt_status (*forward)(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out);
    void (*destroy)(void *self);
} dt_model_ops;

enum {
    DT_INIT_ZERO = 0,
    DT_INIT_CONST,   /* all equal to a */
    DT_INIT_UNIFORM, /* U(-a, a) */
    DT_INIT_NORMAL,  /* N(0, a^2) */
    DT_INIT_XAVIER,  /* U(-l, l), l = a * sqrt(6 / (fan_in + fan_out)), Glorot & Bengio 2010; shape [out, in] */
    DT_INIT_FAN_IN,  /* U(-l, l), l = a / sqrt(fan_in), PyTorch's Linear and LSTM default with a = 1; shape [out, in] */
    DT_INIT_EYE      /* a where row and column agree, 0 elsewhere; a matrix, square or not */
};
/* fan_in of a vector (bias) is not known from its shape: use DT_INIT_UNIFORM. Values depend on (seed, name) alone. */
struct dt_params {
    uint32_t struct_size, reserved;
    void *priv;
    /* [main] name: [a-z0-9_.]+, unique in the model; the checkpoint calls it <role>.<name>. dim: 1 to 4 of them. */
    dt_status (*add)(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init, double a);
};

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Samples are ragged: symbols names what varies ("N", "E", "S"), sizes says how much of each a set of samples takes
 * packed together, read packs them. Sample order and content depend on index alone. */
typedef struct dt_data_ops {
    uint32_t struct_size, reserved;
    dt_status (*create)(void *self, const dt_host *h, const void *config);                  /* [main] */
    const dt_port *(*fields)(const void *self, uint32_t *n_p);                              /* [any] what read writes */
    const char *const *(*symbols)(const void *self, uint32_t *n_p);                         /* [any] at most 8 */
    dt_status (*count)(const void *self, uint64_t *n_p);                                    /* [any] samples */
    dt_status (*sizes)(const void *self, const uint64_t *index, uint32_t n, int64_t *size); /* [any] sum per symbol */
    /* [worker] out: one host buffer per field, exactly as large as sizes says. key: [n] numbers that name the use of
     * each sample (epoch and position), the seed of augmentation; 0 = do not augment. */
    dt_status (*read)(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out);
    void (*destroy)(void *self);
} dt_data_ops;

/* ---- environments: provisional until the first environment ships ------------------------------------------------- */

typedef struct dt_buffer {
    void *data;
    int64_t dim[DT_MAX_DIMS];
    uint32_t n_dims, dtype;
} dt_buffer;

typedef struct dt_env_spec {
    uint32_t struct_size, n_obs;
    const dt_port *obs;
    uint32_t n_agents, n_actions_i, n_actions_f, n_costs;
    const char *const *cost_names;
} dt_env_spec;

typedef struct dt_env_io { /* slices of host-owned contiguous batches, all [n_agents, ...] */
    uint32_t struct_size, reserved;
    const dt_buffer *obs;
    uint32_t n_obs, reserved2;
    const int32_t *act_i;
    const float *act_f;
    float *reward, *cost; /* cost: [n_agents, n_costs], the safety signal, never folded into reward */
    uint8_t *terminated, *truncated, *act_mask;
} dt_env_io;

typedef struct dt_env_ops {
    uint32_t struct_size, reserved;
    dt_status (*spec)(const void *config, dt_env_spec *out);                              /* [any] */
    dt_status (*create)(void *self, const dt_host *h, const void *config, uint64_t seed); /* [main] */
    dt_status (*reset)(void *self, const dt_env_io *io);                                  /* [worker] */
    dt_status (*step)(void *self, const dt_env_io *io);                                   /* [worker] */
    void (*destroy)(void *self);
    dt_status (*save)(void *self, dt_writer *w);
    dt_status (*load)(void *self, dt_reader *r, uint32_t version);
} dt_env_ops;

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

enum { DT_KIND_PHASE = 1, DT_KIND_MODEL, DT_KIND_ENV, DT_KIND_DATA };
enum { DT_COMP_NEEDS_CUDA = 1u, DT_COMP_DETERMINISTIC = 2u };

typedef struct dt_component {
    uint32_t struct_size, kind;
    const char *id, *summary, *reference; /* id [a-z][a-z0-9_]*; reference = paper, book or specification */
    const char *role;                     /* models: perception, world, controller, shield; else NULL */
    uint32_t flags, state_version;
    uint64_t config_size, state_size;                         /* the host allocates both, zeroed */
    const dt_option *options;                                 /* ends with name == NULL; NULL when there are none */
    dt_status (*check)(const dt_host *h, const void *config); /* [main] cross-field rules, no side effects; optional */
    const void *ops;                                          /* dt_<kind>_ops */
    const void *(*extension)(const char *id);                 /* [any] optional */
} dt_component;

typedef struct dt_plugin {
    uint32_t magic, struct_size;                          /* frozen prefix: these members keep their */
    uint16_t abi_major, abi_minor, need_minor, reserved0; /* places in every major */
    const char *layout;
    const char *name, *version, *vendor, *license;
    uint32_t n_components, flags;
    const dt_component *const *components;
    dt_status (*init)(const dt_host *h); /* [main] optional, once */
    void (*fini)(void);                  /* [main] optional, once */
} dt_plugin;

/* Extension "dtrain.defaults/1" of a phase: const char *const *, "section.key=value" ..., NULL. Its defaults for host
 * sections (training, data, checkpoint); they rank above the built-in ones and below every file and option. */

/* Fills the prefix: { DT_PLUGIN_PREFIX, .name = "mine", ... } */
#define DT_PLUGIN_PREFIX                                                                                               \
    .magic = DT_PLUGIN_MAGIC, .struct_size = (uint32_t)sizeof(dt_plugin), .abi_major = DT_ABI_MAJOR,                   \
    .abi_minor = DT_ABI_MINOR, .need_minor = 0, .layout = DT_LAYOUT

/* The one exported function. The <name>_LTX_ prefix keeps preloaded plugins apart (libtool's dlpreopen). Build with
 * -DDT_PLUGIN_NAME=<file name without .so>; without it the plain name is used. */
#define DT_CAT_(a, b) a##b
#define DT_CAT(a, b)  DT_CAT_(a, b)
#ifdef DT_PLUGIN_NAME
#    define DT_PLUGIN_ENTRY DT_CAT(DT_PLUGIN_NAME, _LTX_dt_plugin_entry)
#else
#    define DT_PLUGIN_ENTRY dt_plugin_entry
#endif
#define DT_PLUGIN_DEFINE(desc)                                                                                         \
    DT_EXPORT const dt_plugin *DT_PLUGIN_ENTRY(void);                                                                  \
    const dt_plugin *DT_PLUGIN_ENTRY(void)                                                                             \
    {                                                                                                                  \
        return &(desc);                                                                                                \
    }                                                                                                                  \
    struct dt_plugin_define_needs_a_semicolon

#ifdef __cplusplus
}
#endif
#endif
