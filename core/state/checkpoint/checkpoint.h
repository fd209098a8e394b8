/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: committed folders that hold everything a run needs to continue.
 *
 *   <run>/checkpoints/step-000000000123/
 *       model.safetensors  optim.safetensors  state.json  plugin-<name>.bin...  config.cfg
 *       MANIFEST.json      what, its creator, and of each file bytes, sha256 and a crc32c per MiB
 *                          (of a large optimizer, written by several processes: optim-00001-of-00004.safetensors ...,
 *                          and optim.safetensors.index.json; of a replay: plugin-<name>-00001-of-00004.bin ...)
 *       COMMIT             the 32 bytes sha256(MANIFEST.json): the last thing written
 *   <run>/checkpoints/LATEST                a hint for people; never trusted
 *   <run>/checkpoints/quarantine/           damaged checkpoints that a loader met
 *   <run>/checkpoints/superseded/           those after an older one that the run continued from
 *
 * A checkpoint is written to a temporary folder (step-*.tmp.*), every file and folder is flushed, then renamed into
 * place: a crash at any moment leaves the checkpoints that were there, or those and the new one. Nothing of a
 * checkpoint is used before all its bytes are verified. Steps are the run's global count, so that the highest number is
 * the newest. Host only; one process writes a run. Threads: [main].
 */
#ifndef DTRAIN_CORE_STATE_CHECKPOINT_CHECKPOINT_H
#define DTRAIN_CORE_STATE_CHECKPOINT_CHECKPOINT_H

#include "state/checkpoint/safetensors.h"

enum {
    DT_CKPT_MAX_PLUGINS = 32,
    DT_CKPT_MAX_PHASES = 16,
    DT_CKPT_MAX_SHARDS = 256,
    DT_CKPT_NAME_BYTES = 64,
    DT_CKPT_PATH_BYTES = 4096
};

/* Blobs of the host, in the order of files: that of the phase, which has the phase's id, comes first. */
enum {
    DT_BLOB_PHASE,
    DT_BLOB_ROLLOUT,
    DT_BLOB_NORMALISER,
    DT_BLOB_REPLAY,
    DT_BLOB_OPPONENTS,
    DT_BLOB_RECORDS,
    DT_BLOB_STEP_INPUTS,
    DT_CKPT_BLOBS
};
const char *dt_ckpt_blob_name(uint32_t blob); /* NULL: DT_BLOB_PHASE */

/* State of a plugin that is no tensor: opaque, with the plugin's own version. */
typedef struct dt_ckpt_blob {
    const char *name; /* letters, digits, _ . - */
    uint32_t version;
    const void *data;
    size_t bytes;
} dt_ckpt_blob;

/* A blob of which each of n processes has a part: files of their own, the numbers of process and processes after the
 * name where there are several. Parts are no part of state_hash: the saving process puts their digest into a blob. */
typedef dt_status dt_ckpt_put(void *to, const void *p, size_t bytes);
typedef struct dt_ckpt_part {
    const char *name; /* NULL: there is none */
    uint32_t version, index, n;
    uint64_t bytes; /* exactly what write puts, piece by piece */
    dt_status (*write)(void *user, dt_ckpt_put *put, void *to);
    void *user;
} dt_ckpt_part;

typedef struct dt_ckpt_plugin {
    char name[DT_CKPT_NAME_BYTES], version[32], abi[32];
} dt_ckpt_plugin;

/* What a checkpoint records about itself. Given by the saver up to `plugins`, the rest is computed. */
typedef struct dt_ckpt_info {
    char run[128];                        /* run id */
    char phase[DT_CKPT_NAME_BYTES];       /* plugin id of the phase */
    char config_hash[72], phase_hash[72]; /* of the whole configuration, of what the phase sees of it */
    char build[64];
    char cpu[48];                         /* the arithmetic class that computed it */
    char reduction[16];                   /* engine.reduction */
    char metric_name[DT_CKPT_NAME_BYTES]; /* "" when there is none */
    double metric;                        /* for keeping the best; NAN when there is none */
    uint64_t step, epoch;
    uint64_t phase_ms; /* spent on the phase until then */
    uint32_t phase_index;
    uint32_t leaves, ranks; /* S, and how many ranks saved */
    bool phase_end;         /* the last of its phase: always kept */
    uint32_t n_plugins;
    dt_ckpt_plugin plugins[DT_CKPT_MAX_PLUGINS];

    char path[DT_CKPT_PATH_BYTES]; /* the step folder */
    char wall_time[32];            /* UTC */
    char weights_hash[17];         /* of the model's tensors: equal hashes mean equal bits */
    char state_hash[17];           /* of the model, the optimizer, state.json and the plugins' blobs */
    uint64_t bytes;                /* of all files */
    bool valid;                    /* lists: manifest and sizes are in order */
    char why[256];                 /* lists: why not */
} dt_ckpt_info;

/* ---- saving ---- */

typedef struct dt_ckpt_save_desc {
    const char *run_dir; /* is there; checkpoints/ is made below it. DT_EIO: it is gone, and stays so */
    dt_ckpt_info info;
    const dt_ckpt_tensor *model, *optim;
    uint32_t n_model, n_optim, n_blobs;
    const char *state_json; /* only what resuming needs, no times: it is part of state_hash */
    const dt_ckpt_blob *blobs;
    const char *config; /* the effective configuration; NULL leaves config.cfg out */
    uint32_t n_shards;  /* files that the optimizer's tensors are spread over; 0 and 1: optim.safetensors alone */
    dt_ckpt_part part;  /* this process's */
} dt_ckpt_save_desc;

/* Write and commit. A checkpoint of the same step is replaced in one atomic swap. On failure the old ones are untouched
 * and nothing new can be loaded, except where the flush after the rename failed: then the new one may be there, whole.
 * info_p (may be NULL): the complete info. Errors: DT_EINVAL, DT_EIO (with what is missing when the disk is full),
 * DT_ENOMEM. */
dt_status dt_ckpt_save(const dt_ckpt_save_desc *d, dt_ckpt_info *info_p) DT_NODISCARD;
/* Has the disk of a folder room for a checkpoint of so many bytes? Errors: DT_EIO, with both numbers. */
dt_status dt_ckpt_check_space(const char *folder, uint64_t bytes) DT_NODISCARD;

/* Several processes that have the same tensors write one checkpoint: the first begins and sends the others its folder's
 * name, then the first writes the model and shard 0 (save_files) while others write a shard each (save_shard), and when
 * all are done it commits (save_end) with what they send. What is committed has the hashes that one process would have
 * given it, whatever the number of shards. Errors: as dt_ckpt_save. */
typedef struct dt_ckpt_shard { /* of a shard that was written */
    uint64_t bytes;
    char sha256[65];
    uint32_t n_crc;
    uint32_t *crc; /* [n_crc], one per MiB; dt_free */
} dt_ckpt_shard;
typedef struct dt_ckpt_saver dt_ckpt_saver;
dt_status dt_ckpt_saver_create(const dt_ckpt_save_desc *d, dt_ckpt_saver **out_p) DT_NODISCARD; /* d stays as it is */
const char *dt_ckpt_saver_folder_name(const dt_ckpt_saver *s); /* less than DT_CKPT_NAME_BYTES */
dt_status dt_ckpt_saver_write_files(dt_ckpt_saver *s) DT_NODISCARD;
/* Of d: run_dir, step, the tensors and n_shards. name: as the first process broadcast it. Fault point ckpt.shard. */
dt_status dt_ckpt_save_shard(const dt_ckpt_save_desc *d, const char *name, uint32_t shard, dt_ckpt_shard *out)
    DT_NODISCARD;
/* This process's part, where d has one of several; of the first save_files writes it. As save_shard. */
dt_status dt_ckpt_save_part(const dt_ckpt_save_desc *d, const char *name, dt_ckpt_shard *out) DT_NODISCARD;
/* Before save_end: those of other processes, [part.n - 1] from the second on; what they own is taken. */
void dt_ckpt_save_add_parts(dt_ckpt_saver *s, dt_ckpt_shard *others);
/* others: [n_shards - 1] from the second on; what they own is taken. s is gone afterwards. */
dt_status dt_ckpt_saver_commit(dt_ckpt_saver *s, dt_ckpt_shard *others, dt_ckpt_info *info_p) DT_NODISCARD;
void dt_ckpt_saver_abandon(dt_ckpt_saver *s); /* instead: nothing of it is left, nor is s; NULL is fine */

typedef struct dt_ckpt_keep {
    uint32_t last; /* newest ones to keep, at least 1 */
    uint32_t best; /* best ones of each phase by info.metric, 0 = none */
    uint32_t min;  /* bit i: in phase i the smallest metric is the best, else the largest */
} dt_ckpt_keep;
/* Delete what neither list keeps, except ends of phases and damaged ones; and what crashed saves left. */
dt_status dt_ckpt_prune(const char *run_dir, const dt_ckpt_keep *keep) DT_NODISCARD;

/* ---- loading ---- */

typedef struct dt_ckpt dt_ckpt;

/* Open the newest valid checkpoint of path, which is a run directory, a checkpoints folder, or one step folder. All
 * bytes that dtrain reads are verified here; files that a manifest lists besides are not read, whatever their size.
 * Damaged ones that are passed over are moved to quarantine/ when quarantine is true and path is not a step folder
 * itself; one that cannot be read stays where it is. skipped (may be NULL): a line with the reason for each of
 * the first DT_CKPT_MAX_SKIPS_LISTED, then how many more. Errors: DT_ENOTFOUND "no checkpoint in ...",
 * DT_EDATA "none of the n checkpoints ... is valid" or all of them lie in quarantine/, DT_EIO, DT_ENOMEM. */
enum { DT_CKPT_MAX_SKIPS_LISTED = 8 };
dt_status dt_ckpt_open(const char *path, bool quarantine, dt_str *skipped, dt_ckpt **out_p) DT_NODISCARD;
/* The same, without quarantine, for its weights alone: model, state, configuration and the blob "normaliser". What else
 * is in it is not read: of the optimizer there is nothing to load. */
dt_status dt_ckpt_open_weights(const char *path, dt_str *skipped, dt_ckpt **out_p) DT_NODISCARD;
/* One checkpoint, for what a policy acts with: the same, and the blobs of the phase and of its step inputs. */
dt_status dt_ckpt_open_acting(const char *dir, dt_ckpt **out_p) DT_NODISCARD;
void dt_ckpt_close(dt_ckpt *c);

const dt_ckpt_info *dt_ckpt_info_get(const dt_ckpt *c);
const dt_safetensors *dt_ckpt_model(const dt_ckpt *c);
/* Into place, by name; see dt_safetensors_load. */
dt_status dt_ckpt_load_model(const dt_ckpt *c, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags) DT_NODISCARD;
dt_status dt_ckpt_load_optim(const dt_ckpt *c, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags) DT_NODISCARD;
const char *dt_ckpt_state(const dt_ckpt *c, size_t *bytes_p); /* not NUL-terminated */
bool dt_ckpt_blob_find(const dt_ckpt *c, const char *name, dt_ckpt_blob *out_p);
/* All parts of a blob, in order, into out [DT_CKPT_MAX_SHARDS]; hands back their number, 0: it lacks one of them. */
uint32_t dt_ckpt_parts_find(const dt_ckpt *c, const char *name, dt_ckpt_blob *out);

/* The run continues from this step: later checkpoints do not belong to it any more and move to superseded/. n_p: how
 * many. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_ckpt_supersede_later(const char *run_dir, uint64_t step, uint32_t *n_p) DT_NODISCARD;

/* ---- looking ---- */

/* All checkpoints of a run directory or checkpoints folder, oldest first; manifests are checked, bytes are not. Free
 * with dt_free. A folder without any gives n = 0. DT_ENOTFOUND when there is no such folder. */
dt_status dt_ckpt_list(const char *path, dt_ckpt_info **out_p, uint32_t *n_p) DT_NODISCARD;
/* How many of a run there are, whatever their state, and how many lie in quarantine/. A folder without any is fine. */
dt_status dt_ckpt_count(const char *run_dir, uint32_t *steps_p, uint32_t *damaged_p) DT_NODISCARD;
/* The manifest of the newest valid-looking one below path (or of a step folder); its bytes are not read. */
dt_status dt_ckpt_inspect(const char *path, dt_ckpt_info *out_p) DT_NODISCARD;
/* Read and check every byte of one step folder. */
dt_status dt_ckpt_verify(const char *step_dir, dt_ckpt_info *out_p) DT_NODISCARD;

/* The configuration of the run that a checkpoint belongs to, so that its models are found again; "" when there is none.
 */
void dt_ckpt_run_config(const char *checkpoint, dt_str *out);

#endif
