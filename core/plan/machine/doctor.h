/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain doctor`: is this machine fit to train on, and what would help? One line per check: PASS, WARN (training goes
 * on, with less than there could be) or FAIL (it does not), with a remedy. Groups of checks: the machine
 * (doctor_machine.c), where runs and recordings lie (doctor_files.c), devices with a quick self-test each
 * (doctor_device.c), what surrounds GPUs (doctor_gpu.c), the product itself (verb_doctor.c). Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_MACHINE_DOCTOR_H
#define DTRAIN_CORE_PLAN_MACHINE_DOCTOR_H

#include "base/json.h"
#include "engine/device/device.h"

typedef enum dt_verdict { DT_VERDICT_PASS, DT_VERDICT_WARN, DT_VERDICT_FAIL, DT_VERDICT_END } dt_verdict;

typedef struct dt_doctor {
    dt_str *out;
    dt_json_out *json; /* NULL: lines for people */
    const char *root;  /* in front of /proc, /sys and /dev: "" but in tests */
    const char *nvml;  /* NULL but in tests: library of engine/device/nvml.h */
    const char *nccl;  /* NULL but in tests: NCCL's */
    bool is_quiet;     /* lines for people: of warnings and failures alone */
    uint32_t n[DT_VERDICT_END];
} dt_doctor;

/* One line, in which foreign words cannot drive a terminal. check: a word or two; remedy: what to do, "" when there is
 * nothing. */
void dt_doctor_add_line(dt_doctor *d, dt_verdict v, const char *check, const char *remedy, const char *fmt, ...)
    DT_PRINTF(5, 6);

/* Processor, cores, memory, limits, shared memory, load, DTRAIN_ variables. */
void dt_doctor_check_machine(dt_doctor *d);
/* Can a run write below path (which need not exist yet), and how fast? A file of 1 MiB comes and goes. */
void dt_doctor_check_disk(dt_doctor *d, const char *path);
/* On which kind of file system is the store in this folder, and how fast is it read? Up to 64 MiB of its largest file
 * are read, after the page cache was asked to forget it. */
void dt_doctor_check_reading(dt_doctor *d, const char *path);
/* Programs that some runs start: MPI. */
void dt_doctor_check_tools(dt_doctor *d);
/* CPU kernels against the reference, and their speed. */
void dt_doctor_check_cpu(dt_doctor *d);
/* The module for NVIDIA GPUs, and what it finds. */
void dt_doctor_check_cuda(dt_doctor *d);
/* Every device of an opened module. */
void dt_doctor_check_devices(dt_doctor *d, const dt_device_ops *ops);

/* Its parts: the driver compared with what the module was built with; clocks, memory errors and other programs of an
 * opened GPU, named as in gpu; which of n GPUs reach each other's memory; NCCL; and a machine without a driver (ops:
 * NULL without a module either). */
void dt_doctor_check_libraries(dt_doctor *d, const dt_device_ops *ops);
void dt_doctor_check_nvml(dt_doctor *d, const char *gpu, const dt_device_info *info);
void dt_doctor_check_peers(dt_doctor *d, const dt_device_ops *ops, uint32_t n);
void dt_doctor_check_nccl(dt_doctor *d, uint32_t n_gpus);
/* refused: why the module that is there is not open; NULL: there is none, or it is. */
void dt_doctor_report_no_driver(dt_doctor *d, const dt_device_ops *ops, const char *refused);

#endif
