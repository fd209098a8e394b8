/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices of the configuration that the engine implements: one list each, in the order of the configuration's words.
 * The enum and the words follow from it, so that a choice reaches the code that implements it without being translated.
 * A switch over one of these enums has no default: the compiler then finds the choice that was forgotten (-Wswitch).
 */
#ifndef DTRAIN_CORE_BASE_CHOICES_H
#define DTRAIN_CORE_BASE_CHOICES_H

#define DT_OPTIMIZERS(X) X(DT_OPTIMIZER_ADAMW, "adamw") X(DT_OPTIMIZER_ADAM, "adam") X(DT_OPTIMIZER_SGD, "sgd")
#define DT_SCHEDULES(X)                                                                                                \
    X(DT_SCHEDULE_CONSTANT, "constant")                                                                                \
    X(DT_SCHEDULE_COSINE, "cosine")                                                                                    \
    X(DT_SCHEDULE_STEP, "step")                                                                                        \
    X(DT_SCHEDULE_LINEAR, "linear")
/* In which values ranks send gradients. */
#define DT_HALVES(X) X(DT_HALF_NONE, "fp32") X(DT_HALF_BF16, "bf16") X(DT_HALF_FP16, "fp16")
/* In which order stored samples are drawn. */
#define DT_SAMPLINGS(X)                                                                                                \
    X(DT_SAMPLING_SHUFFLED, "shuffled")                                                                                \
    X(DT_SAMPLING_SEQUENTIAL, "sequential")                                                                            \
    X(DT_SAMPLING_WEIGHTED, "weighted")

#define DT_CHOICE_MEMBER(member, word) member,
#define DT_CHOICE_WORD(member, word)   word,

typedef enum dt_optimizer { DT_OPTIMIZERS(DT_CHOICE_MEMBER) } dt_optimizer;
typedef enum dt_schedule_kind { DT_SCHEDULES(DT_CHOICE_MEMBER) } dt_schedule_kind;
typedef enum dt_half { DT_HALVES(DT_CHOICE_MEMBER) } dt_half;
typedef enum dt_sampling { DT_SAMPLINGS(DT_CHOICE_MEMBER) } dt_sampling;

#endif
