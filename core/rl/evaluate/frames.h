/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluated episode as it looks (dtrain/ext/scene.h), left as pictures (svc/metrics.h, "traffic"): at moments every
 * so many seconds; or a short film, DT_FRAMES_FILM moments a second apart (as far as the environment allows), of the
 * part with the most vehicles, risk and actions that the shield changed. Threads: the one that steps the environment.
 */
#ifndef DTRAIN_CORE_RL_EVALUATE_FRAMES_H
#define DTRAIN_CORE_RL_EVALUATE_FRAMES_H

#include "plugin/service/stage.h"
#include "rl/evaluate/risk.h"
#include "rl/buffer/buffer.h"

enum { DT_FRAMES_FILM = 60, DT_FRAMES_FILM_ROWS = 20000, DT_FRAMES_MAX_FRAMES = 2400 };

typedef struct dt_frames dt_frames;

/* Where the colours of vehicles come from (picture "traffic/colours"). */
enum {
    DT_FRAMES_SCENE,     /* the environment's risk */
    DT_FRAMES_PREDICTED, /* what perception predicts */
    DT_FRAMES_UNTRAINED  /* the environment's: perception was not trained */
};

/* every_s 0: a short film; below 0: the whole episode, -every_s apart, or twice, four times ... as far where it is too
 * long. risk_model: of perception, NULL where there is none; is_taught: its weights come from
 * somewhere. NULL in out_p where the environment does not show itself. One in a process of its own is seen between its
 * steps alone. Errors: DT_ENOMEM. */
dt_status dt_frames_open(const dt_env *e, double every_s, dt_risk *risk_model, bool is_taught, dt_frames **out_p)
    DT_NODISCARD;
void dt_frames_close(dt_frames *f);
/* The instance to record, just reset, and where what its agents do is kept: instance `number` of step 0 of b. */
dt_status dt_frames_begin(dt_frames *f, void *self, const dt_buffer *b, uint32_t number) DT_NODISCARD;
/* After each of its steps. */
dt_status dt_frames_step(dt_frames *f) DT_NODISCARD;
/* The episode is over: leaves the pictures. */
dt_status dt_frames_end(dt_frames *f, const dt_host *h) DT_NODISCARD;

#endif
