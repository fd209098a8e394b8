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
#define DT_LAYOUT       "lp64le;dims8" /* properties that would otherwise break silently between builds */

/* ---- values ------------------------------------------------------------------------------------------------- */

enum { DT_F32 = 1, DT_F64, DT_I32, DT_I64, DT_U8, DT_F16, DT_BF16 }; /* dtypes; F16 and BF16 are reserved for AMP */

/* A named slot of data. dims is a list of tokens separated by one blank: a number, a ragged symbol whose live size
 * changes from slice to slice (roles.h: N nodes, E edges, S sequences, B samples), or SYMBOL+1 (CSR row pointers).
 * Example: { "rowptr", "N+1", DT_I32, 0 }. */
typedef struct dt_port {
    const char *name, *dims;
    uint32_t dtype, flags;
} dt_port;
enum { DT_PORT_OPTIONAL = 1u };
/* Names of ports and fields are [a-z][a-z0-9_]*, each once in its list. A symbol begins with a capital letter and is
 * shorter than 16 bytes, without blanks or '+'; "B", samples, is the host's, and an environment's "A" too. */
/* Observations of environments whose rows are sequences: the first number of dims counts steps, and a phase gets them
 * step by step, "S 15 6" as "15 S 6". */
enum { DT_PORT_STEPS = 2u };
/* Observations of environments: values that count rows of symbol k (0: "A", 1: the first of the spec) within the
 * instance; the host adds the rows before it when it packs several. Row pointers ("G+1") may not count rows of "A";
 * an index per row of "A" that counts rows of G is equivalent. -1 means none, and is refused in one place: of a
 * graph in CSR, where rowptr [N+1] counts edges and col [E] counts nodes (N, or another symbol), every edge leads to
 * one. */
/* Lists that each agent has of its own: a port "A+1" i32, DT_PORT_INDEX(k), means that rows v[a] up to
 * v[a+1] - 1 of symbol k are the list of the agent at place a; v rises from v[0] = 0 to v[places] = all rows. The host
 * hands lists on with their agents: pointers of agents that have a row in the slice, and their rows alone, one list
 * after another; those of other places are left out. So no other port may count rows of k, and k has no row pointers
 * (k+1). What its rows hold is as of other symbols: steps, and indices that count rows of others ("A": -1 of agents
 * without a row).
 */
#define DT_PORT_INDEX(k) ((uint32_t)((k) + 1) << 8)
/* Fields of data: integers (i32) that count rows of symbol k of the data (0: "B", samples; 1: the first of
 * its symbols) within what one read gives are declared by DT_PORT_INDEX(k), negative ones count none; row pointers
 * "N+1" are among them. Those that count nothing, such as a class, are DT_PORT_PLAIN. Where every i32 field has one of
 * both the host can put samples of several stores of a stream together, which a GPU needs. */
enum { DT_PORT_PLAIN = 4u };

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
/* Types of these members: bool as uint8_t, int64_t, double, const char * (never NULL), uint32_t (index into
 * choices), const char * (made absolute against the file that set it). */
/* Flags. PER_RANK: may differ between ranks and does not change results. RUNTIME: does not change what an environment
 * simulates; stored rollouts do not record it. */
enum { DT_OPT_REQUIRED = 1u, DT_OPT_PER_RANK = 2u, DT_OPT_RUNTIME = 4u };
/* The value causes code to be loaded or run, or files to be written, such as a module or a command line. The host takes
 * it from the user, and from the configuration saved in a run only if the user trusts that run. */
enum { DT_OPT_CODE = 16u };
/* Of environments: a training aid that changes what an episode measures, such as removing stuck objects. Evaluations
 * use the default unless evaluation.env sets it. */
enum { DT_OPT_TRAINING = 32u };
/* Of data, at most one option each. The host sets STORE to the path of data.store, and FOLDS to "held" or "all" when it
 * evaluates without training. A phase sets SPLIT to the part that it binds: "train", which data.stream replaces,
 * "eval", or "calibration", a part of the training data that a stream does not keep. WEIGHTS changes what weights
 * returns: a value that the user sets is rejected unless data.sampling is "weighted". */
enum { DT_OPT_STORE = 64u, DT_OPT_FOLDS = 128u, DT_OPT_SPLIT = 256u, DT_OPT_WEIGHTS = 512u };
/* Of phases, at most one option: a folder of stored rollouts. `dtrain check` sets it to a few of its own where the user
 * sets none. */
enum { DT_OPT_ROLLOUTS = 1024u };

typedef struct dt_option {
    const char *name;           /* [a-z][a-z0-9_]*; "clip_eps": config key, --set phase2_ppo.clip_eps=0.1 */
    const char *dfl;            /* default as text */
    const char *unit, *help;    /* "1", "s", "env steps"; one sentence, then the source */
    const char *const *choices; /* DT_OPT_ENUM: ends with NULL */
    double min, max;            /* inclusive; -INFINITY / INFINITY when open */
    uint32_t type, flags, offset, size;
    /* NULL, or a bool option of the same table: where it is false this option has no effect, and the host rejects a
     * value that the user sets (DT_ECONFIG). */
    const char *needs;
} dt_option;

/* A row: DT_OPTION(cfg, hidden, DT_OPT_I64, "256", "1", 1, 8192, NULL, "hidden width"). The second form has flags
 * (DT_OPT_*) and needs too. */
/* clang-format off */
#define DT_OPTION(T, member, type, dfl, unit, min, max, choices, help)                                                 \
    DT_OPTION_WITH(T, member, type, dfl, unit, min, max, choices, help, 0, NULL)
#define DT_OPTION_WITH(T, member, type, dfl, unit, min, max, choices, help, flags, needs)                              \
    {                                                                                                                  \
        #member, dfl, unit, help, choices, min, max, type, flags, (uint32_t)offsetof(T, member),                       \
            (uint32_t)sizeof(((T *)0)->member), needs                                                                  \
    }
#define DT_OPTION_END                                                                                                  \
    {                                                                                                                  \
        NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL                                                           \
    }
/* clang-format on */

/* ---- the host's table ------------------------------------------------------------------------------------------ */

typedef struct dt_host dt_host;
struct dt_host {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    void *priv;
    /* [any] records the reason of an error and returns st; where: "file:line" or NULL */
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
    uint8_t epoch_end;                     /* this call finished an epoch, or a round: training.eval_interval and
                                            * save_interval count those, and saving waits for one */
    uint8_t evaluated;                     /* this call evaluated */
    uint8_t reserved2[6];
    uint64_t iterations; /* calls done in this phase, of all runs of it; 0: one per step */
} dt_progress;

typedef struct dt_phase_ops { /* the host owns the loop; the phase is stepped */
    uint32_t struct_size, reserved;
    /* [main] bind models and data, check what can be checked. config is read-only from here on. */
    dt_status (*create)(void *self, const dt_host *h, const void *config);
    dt_status (*start)(void *self); /* [main][collective] graphs, arenas, first broadcast */
    /* [main][collective] One iteration; DT_DONE ends the phase. 1,000 calls in a row without a step or an iteration end
     * the run with code 3. */
    dt_status (*iterate)(void *self, dt_progress *out);
    dt_status (*evaluate)(void *self, dt_progress *out); /* [main][collective] optional; results through metrics */
    void (*stop)(void *self);                            /* [main] */
    void (*destroy)(void *self);                         /* [main] once per create, even a failed one */
    dt_status (*save)(void *self, dt_writer *w);         /* [main] optional */
    /* [main] optional; after start, in a resumed run, and before evaluate or an export of a checkpoint: weights, step
     * inputs (svc/train.h) and position are loaded by then */
    dt_status (*load)(void *self, dt_reader *r, uint32_t version);
    /* optional [main][collective]: the phase is over, by DT_DONE or by a rule of section stop. An error fails the run,
     * whose state is saved: DT_ECONFIG if a required property, such as a limit, was never evaluated. */
    dt_status (*finish)(void *self);
} dt_phase_ops;

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct dt_model_ops {
    uint32_t struct_size, reserved;
    /* [main] dims: sizes the phase fixes by name, e.g. {"D",9} node features, {"T",15} steps; see ports in roles.h */
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
    DT_INIT_EYE,     /* a where row and column agree, 0 elsewhere; a matrix, square or not */
    DT_INIT_ORTHO,   /* a times a matrix of dim[0] rows whose shorter side is orthonormal, Saxe et al. 2014 */
    /* Flag: a constant of the model. It is saved in checkpoints and exports like other parameters, but no step
     * trains it: no gradient, no weight decay. A phase may set it (svc/train.h: constant_set). Its name begins
     * with "constant."; no other name does. */
    DT_INIT_CONSTANT = 256,
    /* Flag: a running statistic of DT_OP_BATCH_NORM. Updates of its group move it, whatever the optimizer: no decay, no
     * learning rate, no part in gradient norms. It is saved, copied to target networks, and frozen as other
     * parameters are. */
    DT_INIT_STATISTIC = 512
};
/* The shape of a vector (bias) has no fan_in: use DT_INIT_UNIFORM. Values depend on (seed, name) only. */
struct dt_params {
    uint32_t struct_size, reserved;
    void *priv;
    /* [main] name: [a-z0-9_.]+, unique in the model; the checkpoint calls it <role>.<name>. dim: 1 to 4 of them. */
    dt_status (*add)(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init, double a);
};

/* ---- data -------------------------------------------------------------------------------------------------------- */

typedef struct dt_field_stat { /* of a column of a field over n values; all 0 if n is 0 */
    double n, min, max, mean;
    double std; /* population deviation: divided by n */
} dt_field_stat;

/* Samples are ragged: symbols names what varies ("N", "E", "S"), sizes reports how much of each a set of samples takes
 * packed together, read packs them. Sample order and content depend on index alone. */
typedef struct dt_data_ops {
    uint32_t struct_size, reserved;
    dt_status (*create)(void *self, const dt_host *h, const void *config);                  /* [main] */
    const dt_port *(*fields)(const void *self, uint32_t *n_p);                              /* [any] what read writes */
    const char *const *(*symbols)(const void *self, uint32_t *n_p);                         /* [any] at most 8 */
    dt_status (*count)(const void *self, uint64_t *n_p);                                    /* [any] samples */
    dt_status (*sizes)(const void *self, const uint64_t *index, uint32_t n, int64_t *size); /* [any] sum per symbol */
    /* [worker] out: one host buffer per field, exactly as large as sizes reports. key: [n] numbers that name the use of
     * each sample (epoch and position), the seed of augmentation; 0 = do not augment. */
    dt_status (*read)(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out);
    void (*destroy)(void *self);
    /* [main] Optional. Relative frequencies of the n = count samples if data.sampling is "weighted": not negative,
     * finite, not all 0. */
    dt_status (*weights)(void *self, double *out, uint64_t n);
    /* [main] Optional. Statistics of each of the n columns (last number of dims) of an f32 field over all samples, as
     * read writes them without augmentation; values shared by several samples count once. DT_EUNSUPPORTED: not of this
     * field. */
    dt_status (*statistics)(void *self, const char *field, dt_field_stat *out, uint32_t n);
} dt_data_ops;

/* ---- environments ------------------------------------------------------------------------------------------------ */

/* An environment is one simulated world with places for n_agents agents that act at the same time, once per step. It
 * writes into buffers of the host and keeps no pointer to them; many instances live side by side, in threads or in
 * worker processes of their own.
 *
 * An episode: reset writes the first observation; each step takes the actions of the agents that are alive, and writes
 * what they earned and the next observation. A trajectory of an agent ends by `terminated` (nothing follows: the value
 * of what comes after is 0) or by `truncated` (time is over, or the agent left: its last observation has a value).
 * The observation written by the step that ended an agent is its true last one; the place is not alive in it. From the
 * step after that the place may hold a new agent. step returns DT_DONE when it ended the whole episode; every agent
 * still alive is then marked terminated or truncated, and the host resets before it steps again (the "next step"
 * reset of Gymnasium 1.0, Towers et al. 2024).
 *
 * Same configuration, same seed and number (episode) of reset, same actions: same bits, whatever else the instance did
 * before. A host that resumes a run repeats the episode from its seed and number by the actions it has kept.
 *
 * An instance that cannot continue, such as one whose own simulator process is gone, returns DT_EBROKEN from reset or
 * step (DT_EIO means the same there), with a reason. The host destroys it and creates it again, as it replaces a worker
 * process that crashed, at most env.restarts times; then it is an error of the run. A component with
 * DT_COMP_DETERMINISTIC in its flags keeps the promise above also in another process: in worker processes a lost
 * episode is repeated from its actions up to the step that failed, and results stay the same. Otherwise, and where a
 * repeated episode differs, the episode counts as truncated before that step. Other errors end the phase. */
/* What n columns of an observation hold: first, first + stride, ... of the last number of its port's dims. For people
 * and for programs that make the observation elsewhere: `dtrain show` and exported policies include it. */
typedef struct dt_column {
    const char *port, *name, *unit, *meaning; /* meaning: one sentence */
    double low, high;                         /* of the values; infinite where open */
    uint32_t first, n, stride, reserved;      /* n and stride at least 1 */
} dt_column;

typedef struct dt_env_spec {        /* what an instance has; pointers live as long as the instance */
    uint32_t struct_size, n_agents; /* places, at least 1 */
    const dt_port *obs;         /* dims begin with "A" (a row per place) or with a ragged symbol, also as SYMBOL+1 */
    const dt_dim *symbols;      /* ragged symbols, not "A" or "B", and the most rows each may have; the host numbers
                                 * them 1, 2, ..., "A" is 0 */
    const int32_t *choices;     /* [n_heads] choices of each discrete action; several: multi-discrete */
    const float *low, *high;    /* [n_continuous] bounds of continuous actions; infinite where open */
    const char *const *costs;   /* [n_costs] names, [a-z][a-z0-9_]* */
    const char *const *metrics; /* [n_metrics] names of what an episode is measured by, the same alphabet */
    uint32_t n_obs, n_symbols, n_heads, n_continuous, n_costs, n_metrics;
    uint32_t max_steps; /* steps of the longest episode, 0: open */
    uint32_t reserved;
    double step_s;        /* simulated time of a step, s; 0: none */
    const uint32_t *team; /* [n_agents] number of the team that each place is of, below DT_ENV_MAX_TEAMS; NULL: all are
                           * of one. One team learns, and opponents play the others (section opponents). */
    /* Descriptions, all optional */
    const dt_column *columns;         /* [n_columns] described columns */
    const char *const *places;        /* [n_agents] name of each place; "": unknown */
    const char *const *choices_shown; /* [n_agents, sum of choices] meaning of a choice there;
                                       * "": unknown. At most DT_ENV_MAX_CHOICES_SHOWN of them */
    uint32_t n_columns, reserved2;
} dt_env_spec;
enum {
    DT_ENV_MAX_OBS = 16,
    DT_ENV_MAX_SYMBOLS = 4,
    DT_ENV_MAX_HEADS = 16,
    DT_ENV_MAX_COSTS = 16,
    DT_ENV_MAX_METRICS = 32,
    DT_ENV_MAX_TEAMS = 16,
    DT_ENV_MAX_COLUMNS = 1024,
    DT_ENV_MAX_CHOICES_SHOWN = 16384
};

typedef struct dt_env_io { /* rows of host-owned arrays; "out" ones are zeroed before the call unless said */
    uint32_t struct_size, n_obs;
    void *const *obs;     /* out, per port; a ragged port has room for its capacity and only live rows are read */
    int64_t *size;        /* out [n_symbols] live rows */
    uint8_t *alive;       /* out [n_agents] 1: an agent here acts in the next step */
    uint8_t *mask;        /* out [n_agents, sum of choices] 1: allowed in the next step; ones before the call */
    const int32_t *act_i; /* in [n_agents, n_heads]; NULL in reset; rows of places not alive are 0 */
    const float *act_f;   /* in [n_agents, n_continuous], within the bounds */
    float *reward;        /* out [n_agents] */
    float *cost;          /* out [n_agents, n_costs], the safety signal, at least 0, never folded into reward */
    uint8_t *terminated, *truncated; /* out [n_agents] */
    double *metric;                  /* out [n_metrics], read when step returns DT_DONE; NAN: none this time */
    uint64_t episode; /* in, of reset: number of earlier episodes of the instance in this phase, including those before
                       * a resume; 0 in evaluations */
} dt_env_io;

typedef struct dt_env_ops {
    uint32_t struct_size, reserved;
    dt_status (*create)(void *self, const dt_host *h, const void *config); /* [worker] services: rng, features */
    dt_status (*spec)(const void *self, dt_env_spec *out);                 /* [worker] after create */
    dt_status (*reset)(void *self, const dt_env_io *io, uint64_t seed);    /* [worker] */
    dt_status (*step)(void *self, const dt_env_io *io);                    /* [worker] DT_DONE: the episode is over */
    void (*destroy)(void *self);                                           /* [worker] once per create */
    /* [worker] Optional: a step of n instances of one configuration in one call, with the same bits as n calls of step.
     * Every array of io is contiguous: [n, ...] of what step has, instance by instance, n * n_symbols sizes and n times
     * a ragged port's capacity among them; outputs are zeroed and masks ones before, as for step. status: out [n], what
     * step returns of each. Returns DT_OK, or the error of all. */
    dt_status (*step_many)(void *const *self, uint32_t n, const dt_env_io *io, dt_status *status);
} dt_env_ops;

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

enum { DT_KIND_PHASE = 1, DT_KIND_MODEL, DT_KIND_ENV, DT_KIND_DATA };
enum { DT_COMP_NEEDS_CUDA = 1u, DT_COMP_DETERMINISTIC = 2u, DT_COMP_PROCESS = 4u /* one instance per process */ };
/* Of phases: data.batch follows from options of the phase, so that the host must not choose it ("auto"). */
enum { DT_COMP_OWN_BATCH = 8u };

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
    dt_status (*init)(const dt_host *h);      /* [main] optional, once */
    void (*fini)(void);                       /* [main] optional, once */
    const void *(*extension)(const char *id); /* [any] optional; what belongs to no component, such as ext/verbs.h */
} dt_plugin;

/* Ids for dt_plugin.extension and dt_component.extension, explained below; those with a header of their own are in
 * ext/. */
#define DT_EXT_DEFAULTS  "dtrain.defaults/1"
#define DT_EXT_BASELINES "dtrain.baselines/1"
#define DT_EXT_PROGRAM   "dtrain.program/1"
#define DT_EXT_SERVICES  "dtrain.services/1"
#define DT_EXT_RESULTS   "dtrain.results/1"
#define DT_EXT_COLUMNS   "dtrain.columns/1"

/* Extension "dtrain.defaults/1" of a phase: const char *const *, "section.key=value" ..., NULL. Its defaults for host
 * sections (training, data, checkpoint); they rank above the built-in ones and below every file and option.
 *
 * Extension "dtrain.baselines/1" of an environment: const char *const *, ids of controllers that need no
 * learning, NULL. A policy learned in it is compared with those of them whose ports fit (evaluation.baselines).
 *
 * Extension "dtrain.program/1": of a controller, not NULL where it leaves the environment to the program
 * that this has of its own; of an environment, const char *const *, "key=value" ..., NULL: its options for that. They
 * hold where both have it; a program is then followed between two actions as well. Elsewhere the controller acts as
 * any other.
 *
 * Extension "dtrain.services/1" of a plugin or a component: const dt_provided *, {NULL, NULL} at the end: services that
 * it provides to other plugins by dt_host.service, under ids that do not begin with "dtrain.".
 *
 * Extension "dtrain.results/1" of a phase or an environment: const char *const *, NULL at the end: what the
 * numbers of an evaluation are, a row "KEY|GROUP|UNIT|BETTER|TEXT" each. KEY is as it is reported, without /mean, and
 * may have * for any text ("metrics/delay_s", "costs/x"); GROUP is the title above it; BETTER is "higher", "lower" or
 * nothing; each part may be empty. The first row that fits counts, those of the phase before the environment's.
 *
 * Extension "dtrain.columns/1" of an environment: const dt_column *, port == NULL at the end: what its observations
 * hold when no instance exists, for `dtrain show`; dt_env_spec.columns describes an instance. */

typedef struct dt_provided {
    const char *id; /* "traffic.store/1" */
    const void *table;
} dt_provided;

/* Fills the prefix: { DT_PLUGIN_PREFIX, .name = "mine", ... } */
#define DT_PLUGIN_PREFIX                                                                                               \
    .magic = DT_PLUGIN_MAGIC, .struct_size = (uint32_t)sizeof(dt_plugin), .abi_major = DT_ABI_MAJOR,                   \
    .abi_minor = DT_ABI_MINOR, .need_minor = 0, .layout = DT_LAYOUT

/* A component in one statement: static const dt_component NAME, with its table of operations:
 *
 *   DT_MODEL_DEFINE(model, "mine", "what it is", "paper", config, state, options,
 *                   DT_OPS(DT_SET(create, create), DT_SET(inputs, inputs), DT_SET(outputs, outputs),
 *                          DT_SET(params, params), DT_SET(forward, forward), DT_SET(destroy, destroy)),
 *                   DT_SET(role, "world"), DT_SET(flags, DT_COMP_DETERMINISTIC));
 *   DT_PLUGIN_DEFINE_ONE(model, "mine", "1.0", "who", "licence");
 *
 * CONFIG and STATE are types, OPTIONS is a table or NULL. After the operations: any other members of dt_component,
 * flags at least. DT_SET(member, value) serves C and C++; in C, .member = value is the same. Operations
 * that do nothing and those that answer with a table are in helpers.h. */
#define DT_OPS(...) __VA_ARGS__
#define DT_PHASE_DEFINE(NAME, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, OPS, ...)                                \
    DT_TABLE_(dt_phase_ops, NAME##_ops_, OPS);                                                                         \
    DT_COMPONENT_(NAME, DT_KIND_PHASE, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, __VA_ARGS__)
#define DT_MODEL_DEFINE(NAME, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, OPS, ...)                                \
    DT_TABLE_(dt_model_ops, NAME##_ops_, OPS);                                                                         \
    DT_COMPONENT_(NAME, DT_KIND_MODEL, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, __VA_ARGS__)
#define DT_ENV_DEFINE(NAME, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, OPS, ...)                                  \
    DT_TABLE_(dt_env_ops, NAME##_ops_, OPS);                                                                           \
    DT_COMPONENT_(NAME, DT_KIND_ENV, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, __VA_ARGS__)
#define DT_DATA_DEFINE(NAME, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, OPS, ...)                                 \
    DT_TABLE_(dt_data_ops, NAME##_ops_, OPS);                                                                          \
    DT_COMPONENT_(NAME, DT_KIND_DATA, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, __VA_ARGS__)
#define DT_COMPONENT_(NAME, KIND, ID, SUMMARY, REFERENCE, CONFIG, STATE, OPTIONS, ...)                                 \
    DT_TABLE_(dt_component, NAME,                                                                                      \
              DT_OPS(DT_SET(kind, KIND), DT_SET(id, ID), DT_SET(summary, SUMMARY), DT_SET(reference, REFERENCE),       \
                     DT_SET(config_size, sizeof(CONFIG)), DT_SET(state_size, sizeof(STATE)), DT_SET(options, OPTIONS), \
                     DT_SET(ops, &NAME##_ops_), __VA_ARGS__))
/* static const T NAME, a table that begins with struct_size, from what DT_OPS lists. */
#ifdef __cplusplus
#    define DT_SET(MEMBER, VALUE) dt_o_.MEMBER = VALUE
#    define DT_TABLE_(T, NAME, ...)                                                                                    \
        static const T NAME = [] {                                                                                     \
            T dt_o_ = {};                                                                                              \
            dt_o_.struct_size = static_cast<uint32_t>(sizeof(T));                                                      \
            __VA_ARGS__;                                                                                               \
            return dt_o_;                                                                                              \
        }()
/* A value of T to initialise one with, likewise; inside a function. */
#    define DT_DESC_(T, ...)                                                                                           \
        [&] {                                                                                                          \
            T dt_o_ = {};                                                                                              \
            dt_o_.struct_size = static_cast<uint32_t>(sizeof(T));                                                      \
            __VA_ARGS__;                                                                                               \
            return dt_o_;                                                                                              \
        }()
#    define DT_EXTERN_C_ extern "C"
#else
#    define DT_SET(MEMBER, VALUE)   .MEMBER = VALUE
#    define DT_TABLE_(T, NAME, ...) static const T NAME = {.struct_size = (uint32_t)sizeof(T), __VA_ARGS__}
#    define DT_DESC_(T, ...)                                                                                           \
        {                                                                                                              \
            .struct_size = (uint32_t)sizeof(T), __VA_ARGS__                                                            \
        }
#    define DT_EXTERN_C_
#endif

/* The one exported function, in C++ outside of any namespace. The <name>_LTX_ prefix keeps preloaded plugins apart
 * (libtool's dlpreopen). Build with -DDT_PLUGIN_NAME=<file name without .so>; without it the plain name is used. */
#define DT_CAT_(a, b) a##b
#define DT_CAT(a, b)  DT_CAT_(a, b)
#ifdef DT_PLUGIN_NAME
#    define DT_PLUGIN_ENTRY DT_CAT(DT_PLUGIN_NAME, _LTX_dt_plugin_entry)
#else
#    define DT_PLUGIN_ENTRY dt_plugin_entry
#endif
#define DT_PLUGIN_DEFINE(desc)                                                                                         \
    DT_EXTERN_C_ DT_EXPORT const dt_plugin *DT_PLUGIN_ENTRY(void);                                                     \
    const dt_plugin *DT_PLUGIN_ENTRY(void)                                                                             \
    {                                                                                                                  \
        return &(desc);                                                                                                \
    }                                                                                                                  \
    struct dt_plugin_define_needs_a_semicolon
/* A plugin with more than components: after DT_OPS of them, other members of dt_plugin, such as extension and init.
 *   DT_PLUGIN_DEFINE_WITH("mine", "1.0", "who", "licence", DT_OPS(&phase, &model), DT_SET(extension, extension)); */
#define DT_PLUGIN_DEFINE_WITH(NAME, VERSION, VENDOR, LICENSE, COMPONENTS, ...)                                         \
    static const dt_component *const dt_plugin_components_[] = {COMPONENTS};                                           \
    DT_TABLE_(                                                                                                         \
        dt_plugin, dt_plugin_of_,                                                                                      \
        DT_OPS(DT_SET(magic, DT_PLUGIN_MAGIC), DT_SET(abi_major, DT_ABI_MAJOR), DT_SET(abi_minor, DT_ABI_MINOR),       \
               DT_SET(layout, DT_LAYOUT), DT_SET(name, NAME), DT_SET(version, VERSION), DT_SET(vendor, VENDOR),        \
               DT_SET(license, LICENSE),                                                                               \
               DT_SET(n_components, (uint32_t)(sizeof(dt_plugin_components_) / sizeof(dt_plugin_components_[0]))),     \
               DT_SET(components, dt_plugin_components_), __VA_ARGS__));                                               \
    DT_PLUGIN_DEFINE(dt_plugin_of_)
/* A plugin of several components: DT_PLUGIN_DEFINE_OF("mine", "1.0", "who", "licence", &phase, &model, &data); */
#define DT_PLUGIN_DEFINE_OF(NAME, VERSION, VENDOR, LICENSE, ...)                                                       \
    DT_PLUGIN_DEFINE_WITH(NAME, VERSION, VENDOR, LICENSE, DT_OPS(__VA_ARGS__), DT_SET(flags, 0))
/* The usual one, of a single component: DT_PLUGIN_DEFINE_ONE(component, "mine", "1.0", "who", "licence"); */
#define DT_PLUGIN_DEFINE_ONE(component, NAME, VERSION, VENDOR, LICENSE)                                                \
    DT_PLUGIN_DEFINE_OF(NAME, VERSION, VENDOR, LICENSE, &(component))

#ifdef __cplusplus
}
#endif
#endif
