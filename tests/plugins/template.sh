#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A third party's first hour: `dtrain new` writes a phase, a model and an environment, they build with pkg-config dtrain
# alone, pass `dtrain check`, train, and swap into a shipped phase. Then the template is broken in one way at a time,
# and `dtrain check` must say so.
set -u
dtrain=$DT_BUILDDIR/dtrain
PKG_CONFIG_PATH=$DT_BUILDDIR
export PKG_CONFIG_PATH
cc=${CC:-cc} # "ccache gcc" is one, too
cxx=${CXX:-g++}
command -v pkg-config >/dev/null && command -v "${cc%% *}" >/dev/null || { echo "skipped: no pkg-config or cc"; exit 77; }
work=$(mktemp -d ./template-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# expect CODE TEXT COMMAND...: the exit code, and a piece of what was said
expect() {
    code=$1 text=$2
    shift 2
    "$@" >"$work/said" 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$text" "$work/said"; then
        echo "FAIL: exit code $got (expected $code), expected \"$text\": $*"
        sed 's/^/    /' "$work/said" | tail -n 20
        failed=1
    fi
}
make_in() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$@"; }
build() { make_in "$1" CFLAGS="-O1 -Wall -Wextra -Werror"; }

expect 0 "make && dtrain check ./fit.so" "$dtrain" new phase fit "$work/fit"
expect 0 "drive.c, Makefile, README.md" "$dtrain" new model drive "$work/drive"
expect 0 "robot.c, Makefile, README.md" "$dtrain" new env robot "$work/robot"
expect 2 "exists; name a new folder" "$dtrain" new model drive "$work/drive"
expect 2 "usage: dtrain new phase NAME DIR" "$dtrain" new phase fit
build "$work/fit" || { echo "FAIL: the phase does not build"; exit 1; }
build "$work/drive" || { echo "FAIL: the model does not build"; exit 1; }

build "$work/robot" || { echo "FAIL: the environment does not build"; exit 1; }
expect 0 "swing.c, Makefile, README.md" "$dtrain" new data swing "$work/swing"
expect 0 "critic.c, Makefile, README.md" "$dtrain" new policy critic "$work/critic"
build "$work/swing" || { echo "FAIL: the data source does not build"; exit 1; }
build "$work/critic" || { echo "FAIL: the phase that acts does not build"; exit 1; }

expect 0 "PASS fit: 19 passed, 0 failed, 0 skipped" "$dtrain" check "$work/fit/fit.so"
expect 0 "PASS drive: 10 passed, 0 failed, 0 skipped" "$dtrain" check "$work/drive/drive.so"
expect 0 "PASS robot: 8 passed, 0 failed, 0 skipped" "$dtrain" check "$work/robot/robot.so"
expect 0 "PASS swing: 6 passed, 0 failed, 0 skipped" "$dtrain" check "$work/swing/swing.so"
expect 0 "PASS critic: 5 passed, 0 failed, 0 skipped" "$dtrain" check "$work/critic/critic.so"
expect 0 "32 started" "$dtrain" check "$work/robot/robot.so" --set robot.battery=9 \
    --set robot.cells=999
# controllers and shields by acting in an environment, those of others in addition to this plugin as well
expect 0 "iterated 4 times" "$dtrain" check controller_mlp \
    --env cartpole
expect 0 "PASS shield_barrier: 4 passed" "$dtrain" check shield_barrier --env env_traffic
expect 3 "this environment has choices 2, continuous 0" "$dtrain" check controller_influence --env cartpole
expect 3 "no phase can train it in cartpole" "$dtrain" check "$work/drive/drive.so" --env cartpole
expect 2 '--env nowhere: no environment "nowhere" in the plugins of' "$dtrain" check controller_mlp --env nowhere
# what the user gives is no fault of the plugin's
expect 2 'bad = "1" from --set' "$dtrain" check "$work/fit/fit.so" --set bad=1
expect 2 'robot.cells = ' "$dtrain" check "$work/robot/robot.so" --set robot.cells=-3
expect 2 'did you mean "battery"' "$dtrain" check "$work/robot/robot.so" --set robot.batery=3
expect 0 "PASS model ipp_greedy: " "$dtrain" check ipp_greedy
expect 2 "a phase phase2_ppo exists already" "$dtrain" new policy phase2_ppo "$work/taken"
expect 2 "a model ipp_greedy exists already" "$dtrain" new model ipp_greedy "$work/taken"
[ ! -e "$work/taken" ] || { echo "FAIL: a refused name left a folder"; failed=1; }
DTRAIN_PLUGIN_PATH=$work/fit:$work/drive:$work/robot
export DTRAIN_PLUGIN_PATH
expect 0 "fit_model" "$dtrain" list
expect 0 "frequency = 3.0" "$dtrain" show fit_data
expect 0 "1 place" "$dtrain" show robot
expect 0 '"choices":[3],"continuous":[],"costs":["worn"],"metrics":["charged"]' "$dtrain" show robot --json

# a plugin named by a relative path is found from every folder later on
(cd "$work/fit" && "$dtrain" --plugin ./fit.so --max-steps 1 --run-dir ../near -q) >/dev/null 2>&1
expect 0 "rmse" env DTRAIN_PLUGIN_PATH= "$dtrain" eval --checkpoint "$work/near" --trust-plugins
expect 0 "stopped after --max-steps 2" env DTRAIN_PLUGIN_PATH= "$dtrain" run --resume "$work/near" --trust-plugins --max-steps 2
# a phase that moves parameters by hand alone: each iteration is a step, with a checkpoint of its own, exactly resumed
"$dtrain" new phase mover "$work/mover" >/dev/null
sed -i 's|dt_train_iterate(s->train, s->trainer, out)|move(s, out)|; s|^static dt_status iterate(|static dt_status move(const state *s, dt_progress *out)\
{\
    float v[4096];\
    const uint64_t n = s->train->vector_size(s->trainer);\
    DT_TRY_H(n <= 4096 ? s->train->vector_get(s->trainer, v) : DT_ENOMEM);\
    for (uint64_t i = 0; i < n; i++) {\
        v[i] *= 0.75f;\
    }\
    out->loss = 0.0;\
    return s->train->vector_set(s->trainer, v);\
}\
\
&|' "$work/mover/mover.c"
build "$work/mover" || { echo "FAIL: the phase that moves does not build"; failed=1; }
moves() { # DIR STEPS [options]
    dir=$1 steps=$2
    shift 2
    expect 0 "stopped after --max-steps" "$dtrain" --plugin "$work/mover/mover.so" --max-steps "$steps" --threads 1 \
        --set checkpoint.every_steps=1 --set checkpoint.keep_last=9 --set checkpoint.every_seconds=0 "$@"
    [ "$("$dtrain" ckpt list "$dir" | awk '{ print $1 }' | tr '\n' ' ')" = "$(seq -s ' ' "$steps") " ] ||
        { echo "FAIL: moved by hand, $steps steps: $("$dtrain" ckpt list "$dir")"; failed=1; }
    [ "$("$dtrain" ckpt list "$dir" --json | grep -o '"weights_hash":"[0-9a-f]*"' | sort -u | wc -l)" -eq "$steps" ] ||
        { echo "FAIL: moved by hand: checkpoints hold the same"; failed=1; }
}
moves "$work/moved" 4 --run-dir "$work/moved"
moves "$work/halted" 2 --run-dir "$work/halted"
moves "$work/halted" 4 --resume "$work/halted"
[ "$("$dtrain" ckpt inspect "$work/moved" --json | grep -o '"state_hash":"[0-9a-f]*"')" = \
    "$("$dtrain" ckpt inspect "$work/halted" --json | grep -o '"state_hash":"[0-9a-f]*"')" ] ||
    { echo "FAIL: moved by hand and resumed: other bits"; failed=1; }

# it learns: the curve's own root mean square is 0.74
expect 0 "Training completed" "$dtrain" --plugin "$work/fit/fit.so" --run-dir "$work/run" --threads 2 \
    --set checkpoint.every_seconds=0
expect 0 '{"rmse":0.0' "$dtrain" eval --plugin fit --checkpoint "$work/run" --json
# what learns by acting: the same from one thread, from two ranks, and stopped and gone on with; a random policy has 22
acts() { # DIR OPTION...
    dir=$1
    shift
    expect 0 "${end:-Training completed}" "$dtrain" --plugin "$work/critic/critic.so" --run-dir "$work/$dir" --set critic.iterations=60 \
        --set env.instances=8 --set training.eval_interval=0 --set checkpoint.every_seconds=0 "$@"
}
hash_of() { "$dtrain" ckpt inspect "$work/$1" --json | grep -o '"state_hash":"[0-9a-f]*"'; }
acts act --threads 1
acts act2 --threads 2 --set comm.backend=sim --set comm.ranks=2
end="stopped after --max-steps 100"
acts act3 --threads 3 --max-steps 100
end=
expect 0 "Training completed" "$dtrain" run --plugin "$work/critic/critic.so" --resume "$work/act3"
[ "$(hash_of act)" = "$(hash_of act2)" ] || { echo "FAIL: acting on 2 ranks: other bits"; failed=1; }
[ "$(hash_of act)" = "$(hash_of act3)" ] || { echo "FAIL: acting, stopped and resumed: other bits"; failed=1; }
value=$("$dtrain" eval --plugin "$work/critic/critic.so" --checkpoint "$work/act" --seeds 7,8 --episodes 5 --json \
    2>/dev/null | sed -n 's/.*"return":{"mean":\([0-9]*\)[.,].*/\1/p')
[ "${value:-0}" -ge 100 ] || { echo "FAIL: after 60 rounds the return is '$value'"; failed=1; }
[ "$(wc -l <"$work/critic/critic.c")" -le 120 ] || { echo "FAIL: it takes more than 120 lines"; failed=1; }

# each in C++, too, of two standards, without a warning
if command -v "${cxx%% *}" >/dev/null; then
    for kind in phase policy model env data; do
        expect 0 "plus_$kind.cpp, Makefile" "$dtrain" new "$kind" "plus_$kind" "$work/plus_$kind" --language c++
        for standard in c++20 c++17; do
            sed -i "s/-std=c++[0-9]*/-std=$standard/" "$work/plus_$kind/Makefile"
            rm -f "$work/plus_$kind/plus_$kind.so"
            make_in "$work/plus_$kind" CXX="${CXX:-g++}" CXXFLAGS="-O0 -Wall -Wextra -pedantic -Werror" ||
                { echo "FAIL: $kind does not build as $standard"; failed=1; }
        done
        expect 0 " 0 failed, 0 skipped" "$dtrain" check "$work/plus_$kind/plus_$kind.so"
    done
fi
# behind three shipped phases it is one entry more, and a second one goes on from its weights
cat >"$work/five.cfg" <<'END'
risk_gnn = { hidden = 16; heads = 2; layers = 1; };
world_lstm = { hidden = 16; layers = 1; };
training = { eval_interval = 0; save_interval = 0; };
env = { id = "env_traffic"; instances = 2; };
env_traffic = { episode_s = 60.0; action_s = 5.0; };
phase2_ppo = { train_batch = 32; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 32; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; data = { batch = 16; }; stop = { steps = 2; }; },
           { plugin = "phase2_ppo"; data = { batch = 16; }; stop = { iterations = 1; }; },
           { plugin = "phase3_constrained"; data = { batch = 16; }; stop = { iterations = 1; }; },
           { plugin = "fit"; stop = { epochs = 2; }; },
           { plugin = "fit"; init = "previous"; stop = { epochs = 1; }; } );
END
expect 0 "Training completed" "$dtrain" --config "$work/five.cfg" --run-dir "$work/five" --threads 2
expect 0 "end of fit" cat "$work/five/train.log"
expect 0 "tensors from $work/five/checkpoints/step-000000000004, end of phase2_ppo" cat "$work/five/train.log"
expect 0 "ends phase 5 (fit): nothing is left to do" "$dtrain" run --resume "$work/five"
expect 0 "(phase3_constrained)" "$dtrain" run --phase 4- \
    --resume "$work/five/checkpoints/step-000000000006"

# what a plugin asks for counts in the plan before it is touched
"$dtrain" new phase greedy "$work/greedy" >/dev/null || exit 1
sed -i '/^static dt_status create(void \*self, const dt_host \*h, const void \*cfg)/,/^}/s/^{/{\n    (void)!h->alloc(h, 900000000);/' \
    "$work/greedy/greedy.c"
make_in "$work/greedy" CFLAGS="-O0 -w" || { echo "FAIL: greedy does not build"; failed=1; }
expect 0 "plugins, not yet used" "$dtrain" --plugin "$work/greedy/greedy.so" --dry-run --set memory.target_gb=2
expect 2 "memory.target_gb" "$dtrain" --plugin "$work/greedy/greedy.so" --dry-run --set memory.target_gb=0.5

expect 2 "world_lstm is a model for the role world" "$dtrain" --plugin fit --set models.curve=world_lstm --dry-run
expect 2 'did you mean "hidden"?' "$dtrain" --plugin fit --set fit_model.hiden=3 --dry-run
expect 0 "drive" "$dtrain" --plugin phase1_world_model --set models.world=drive --dry-run

ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 # one of the broken ones leaks, and check says so itself
export ASAN_OPTIONS

# change CODE KIND NAME TEXT SED-SCRIPT...: the template with one change, and what check says of it
change() {
    code=$1 kind=$2 name=$3 text=$4
    shift 4
    rm -rf "$work/b"
    "$dtrain" new "$kind" "$name" "$work/b" >/dev/null || exit 1
    sed "$@" "$work/b/$name.c" >"$work/b/changed" || exit 1
    if cmp -s "$work/b/changed" "$work/b/$name.c"; then
        echo "FAIL: nothing to change for \"$text\""
        failed=1
    fi
    mv "$work/b/changed" "$work/b/$name.c"
    make_in "$work/b" CFLAGS="-O0 -w" || { echo "FAIL: does not build for \"$text\""; failed=1; }
    expect "$code" "$text" "$dtrain" check "$work/b/$name.so"
}
break_it() { change 3 "$@"; }
break_it model m1 "forward: output future is [S 4 2 f32], its port is [S 4 3 f32]" 's/"S %lld 2"/"S %lld 3"/'
break_it model m2 "running on zeros: output spread is -inf" 's/SIGMA_FLOOR_M), 0.0)/0.0), 0.0)/; s/dt_unary(g, DT_FN_SOFTPLUS, grow, 0.0)/grow/'
break_it model m3 "destroy leaves 2 blocks of host memory" 's/s->config = \*(const [a-z0-9_]* \*)cfg;/&\n    h->alloc(h, 8);/'
break_it model m4 "params: " 's/"hidden.b", b/"hidden.w", b/'
break_it model m5 "forward: " 's/api->param(g, "along.w")/api->param(g, "alone.w")/'
break_it model m6 "create: m6 needs the dimensions" 's/"dt_ms") . 1000.0/"dt_us") \/ 1000.0/'
break_it model m7 "summary or reference is empty" 's/"constant velocity with a learned correction"/""/'
break_it model m8 "option hidden has no help" 's/"width of the hidden layer"/NULL/'
break_it model m9 "ports: output spread: " 's/"spread", s->text\[1\]/"spread", "S Q 2"/'
break_it phase p1 "its defaults: phases.0.training.epoch = \"20\" by default of plugin p1: unknown key" 's/training.epochs=20/training.epoch=20/'
break_it phase p2 "read writes past the end of y" 's/y\[i\] = /y[i + 1] = /'
break_it phase p3 "twice gives different bytes" 's/weight\[i\] = 1.0F/static float n; weight[i] = n++/'
break_it phase p4 "lacks the operation iterate" 's/ DT_SET(iterate, iterate),//'
break_it phase p5 "life cycle: starting p5: the data has no field " 's/api->input(g, "y")/api->input(g, "z")/'
break_it phase p7 "with keys, for augmentation: reading the same samples twice" \
    's/^    (void)key;/    static float turn;/; s/weight\[i\] = 1.0F/weight[i] = key[i] != 0 ? turn++ : 1.0F/'
break_it phase p8 "sizes returns for 3 samples 4 of N together, but 6 one by one" \
    -e 's/dt_no_symbols/letters/; s/dt_no_sizes/wrong/; s/^DT_DATA_DEFINE(/static const char *const letter[] = {"N"};\
static const char *const *letters(const void *self, uint32_t *n_p)\
{\
    (void)self;\
    *n_p = 1;\
    return letter;\
}\
static dt_status wrong(const void *self, const uint64_t *index, uint32_t n, int64_t *size)\
{\
    (void)self, (void)index;\
    size[0] = (int64_t)n * (n + 1) \/ (n > 1 ? 3 : 1);\
    return DT_OK;\
}\
&/'
# statistics are looked at where a data component keeps some
stat() { # NAME BODY: sed's commands that let it say so of x
    cat <<END
s/DT_SET(symbols, dt_no_symbols)/DT_SET(statistics, $1), &/; s/^DT_DATA_DEFINE(/static dt_status $1(void *self, const char *field, dt_field_stat *out, uint32_t n)\\
{\\
    (void)self, (void)field, (void)n;\\
    $2\\
    return DT_OK;\\
}\\
&/
END
}
break_it phase p9 "column 0 of x: 2 values, least 0, greatest 1, mean 3, deviation 0; these are inconsistent" \
    "$(stat far 'out[0].n = 2; out[0].max = 1; out[0].mean = 3;')"
break_it phase p10 "statistics of field x differ from one time to the next" \
    "$(stat other 'static double turn; out[0].n = ++turn;')"
break_it phase p6 "fields and symbols: field x: " 's/{"x", "B 1", DT_F32, 0}, {"y"/{"x", "Q 1", DT_F32, 0}, {"y"/'

break_it env e1 "spec: e1: port obs has dims \"B 3\"" 's/"A 3", DT_F32/"B 3", DT_F32/'
break_it env e2 "seed 1, step 0: reset writes past the end of obs" 's/    obs\[2\] = /    obs[3] = /'
break_it env e3 "writes into a buffer of an earlier call" \
    's/^    float \*obs = (float \*)io->obs\[0\];/    static float *obs;\n    obs = obs != 0 ? obs : io->obs[0];/'
break_it env e4 "is marked alive" 's/^    io->alive\[0\] = !.*/    io->alive[0] = 1;/'
break_it env e5 "marked neither terminated nor truncated" 's/io->truncated\[0\] = .*/io->truncated[0] = 0;/; s/io->alive\[0\] ? DT_OK/s->battery > 0 ? DT_OK/'
break_it env e6 "obs [A 3], row 0, item 2 is inf" 's/    obs\[2\] = /    obs[2] = s->battery < 50 ? 1.0F \/ 0.0F : /'
break_it env e7 "limits it to 60 steps (max_steps)" 's/&& s->battery == 0 ?/\&\& s->battery == -5 ?/'
break_it env e8 "reset, step 0: obs differs from what another instance gave" \
    's/dt_random_init(&r, seed, 0);/static int turn;\n    dt_random_init(\&r, seed + turn++, 0);/'
break_it env e9 "destroy leaves 2 blocks of host memory" 's/^    s->h = h;/&\n    h->alloc(h, 8);/'
break_it env e10 "cost worn of agent 0 is -1" 's/io->cost\[0\] = .*/io->cost[0] = -1;/'
break_it env e11 "forbids all 3 choices" 's/io->mask\[LEFT\] = .*/io->mask[LEFT] = io->mask[STAY] = io->mask[RIGHT] = 0;/; s/    io->mask\[RIGHT\] = .*//'
break_it env e12 "step returns DT_AGAIN, expected DT_OK or DT_DONE" 's/io->alive\[0\] ? DT_OK/io->alive[0] ? DT_AGAIN/'
break_it env e13 "step 0: the world is closed" 's/^    s->battery = s->config.battery;/    return DT_FAIL_H(s->h, DT_EIO, "the world is closed");/'
# code that never returns, or writes where there is nothing to write: check names what it was asked, and goes on
also() { # TEXT...: what else was said
    for text in "$@"; do
        grep -qF -- "$text" "$work/said" || { echo "FAIL: check does not say \"$text\""; cat "$work/said"; failed=1; }
    done
}
break_it env e17 "playing: it was killed by signal 6, Aborted (in step)" -e 's/^    s->battery--;/    __builtin_abort();/'
also "SKIP environment e17: playing again: not tried" "PASS environment e17: destroyed, no blocks are left"
break_it env e18 "playing: it ended the process with code 0; a plugin returns a status instead" \
    -e 's/^    s->battery--;/    exit(0);/' -e 's/^#include <dtrain.random.h>/&\n#include <stdlib.h>/'
break_it env e20 "playing: it accessed memory past the end of a block of" 's/^    s->battery--;/    ((volatile char *)s)[4096] = 1;/'
# what is written in front of a buffer, marks and numbers that are none, threads and processes that stay
break_it env e21 "seed 1, step 0: reset writes before the start of obs" 's/^    obs\[2\] = /    obs[-1] = 1.0F;\n&/'
break_it env e22 "seed 1, step 0: alive[0] is 7; it is 0 or 1" 's/^    io->alive\[0\] = 1;/    io->alive[0] = 7;/'
break_it env e23 "metric charged of an episode is inf" 's/^    io->metric\[0\] = .*/    io->metric[0] = 1.0 \/ 0.0;/'
break_it env e24 "destroy leaves 2 threads running" \
    -e 's/^#include <dtrain.random.h>/&\n#include <pthread.h>\n#include <unistd.h>\nstatic void *wait_on(void *p)\n{\n    for (;;) {\n        pause();\n    }\n    return p;\n}/' \
    -e 's/^    s->h = h;/&\n    pthread_t thread;\n    pthread_create(\&thread, 0, wait_on, 0);/'
break_it phase p14 "FAIL phase p14: iterate: it forked, and the child process returned" \
    -e 's/^#include <math.h>/&\n#include <unistd.h>/' -e '/^static dt_status iterate/,/^}/s/^{/{\n    (void)!fork();/'
break_it phase p15 "count: 18446744073709551615 samples, expected at most 2^40" 's/^    \*n_p = .*/    *n_p = UINT64_MAX;/'
break_it phase p16 "field y [B 1], item 0 is nan" 's/y\[i\] = .*/y[i] = (float)NAN;/'
break_it phase p17 "read writes before the start of x" 's/^    for (uint32_t i = 0; i < n; i++) {/    x[-1] = 1.0F;\n&/'
offsets='s/{"weight", "B", DT_F32, 0}/&, {"first", "B+1", DT_I32, 0}/'
break_it phase p18 "field first [B+1], item 1 is -1: starts of rows must rise from 0" -e "$offsets" \
    -e 's/^    for (uint32_t i = 0; i < n; i++) {/    for (uint32_t i = 0; i <= n; i++) {\n        ((int32_t *)out[3])[i] = -(int32_t)i;\n    }\n&/'
break_it model m10 "forward: it was killed by signal 6" '/^static dt_status forward/,/^}/s/^{/{\n    __builtin_abort();/'
break_it model m11 "create: it wrote past the end of a block of" 's/s->config = \*(const [a-z0-9_]* \*)cfg;/&\n    ((volatile char *)(s + 1))[0] = 1;/'
break_it phase p9 "iterate: it was killed by signal 6" '/^static dt_status iterate/,/^}/s/^{/{\n    __builtin_abort();/'
break_it phase p12 "evaluate: it was killed by signal 6" '/^static dt_status evaluate/,/^}/s/^{/{\n    __builtin_abort();/'
break_it phase p10 "read: it was killed by signal 6" '/^static dt_status data_read/,/^}/s/^{/{\n    __builtin_abort();/'
also "PASS phase p10: created, started, " "PASS data p10_data: destroyed, no blocks are left"
break_it model m12 "opening it, in its constructors: it was killed by signal 6" '$a __attribute__((constructor)) static void start(void) { __builtin_abort(); }'
late() { # KIND NAME TEXT SED-SCRIPT: one that never answers
    "$dtrain" new "$1" "$2" "$work/late-$2" >/dev/null || exit 1
    sed -i "$4" "$work/late-$2/$2.c"
    make_in "$work/late-$2" CFLAGS="-O0 -w" || { echo "FAIL: $2 does not build"; failed=1; }
    expect 3 "env.timeout_s" "$dtrain" check "$work/late-$2/$2.so" --set env.timeout_s=3
}
loop='for (volatile int i = 1; i != 0;) {}'
# one plugin, several callbacks that each end the process in another way: each is a finding, whatever came before
include='s/^#include <dtrain.helpers.h>/&\n#include <stdlib.h>/'
break_it phase p13 "FAIL phase p13: iterate: it was killed by signal 6" -e "$include" \
    -e '/^static dt_status iterate/,/^}/s/^{/{\n    __builtin_abort();/; /^static dt_status evaluate/,/^}/s/^{/{\n    exit(0);/' \
    -e '/^static dt_status data_read/,/^}/s/^{/{\n    ((volatile char *)self)[4096] = 1;/' \
    -e 's/DT_SET(stop, stop)/DT_SET(stop, leave)/; s/^DT_STOP_DEFINE/static void leave(void *self)\n{\n    exit(0);\n}\n&/'
also "FAIL phase p13: evaluate: it ended the process with code 0" "FAIL phase p13: stop: it ended the process with code 0" \
    "PASS phase p13: created, started" "PASS model p13_model: destroyed" \
    "FAIL data p13_data: read: it accessed memory past the end of" "PASS data p13_data: destroyed" " 4 failed, 0 skipped"
break_it phase p21 "FAIL model p21_model: params: it ended the process with code 3" -e "$include" \
    -e '/^static dt_status data_count/,/^}/s/^{/{\n    *(volatile int *)(sizeof(int)) = 1;/' \
    -e '/^static dt_status model_params/,/^}/s/^{/{\n    exit(3);/'
also "SKIP model p21_model: forward: not tried" "FAIL data p21_data: count: it was killed by signal 11" \
    "SKIP data p21_data: read: not tried" "FAIL phase p21: create: it was killed" "SKIP phase p21: nothing else"
# check() of one value: the life of the component is still tried
break_it model m13 "check: it was killed by signal 6, Aborted (in check of hidden = 1)" \
    's/^DT_MODEL_DEFINE(/static dt_status check(const dt_host *h, const void *config)\n{\n    if (((const m13_config *)config)->hidden == 1) {\n        __builtin_abort();\n    }\n    return DT_OK;\n}\n&/
    s/DT_SET(role, /DT_SET(check, check), &/'
also "PASS model m13: runs forward and backward" "1 failed, 0 skipped"
# init and fini of the plugin; save and load of a phase
ends='s/^DT_PLUGIN_DEFINE_OF.*/static const dt_component *const all[] = {\&phase, \&model, \&data};\
static dt_status first(const dt_host *h)\n{\n    FIRST\n}\nstatic void last(void)\n{\n    LAST\n}\
static const dt_plugin own = {DT_PLUGIN_PREFIX, .name = "NAME", .n_components = 3, .components = all, .init = first, .fini = last};\
DT_PLUGIN_DEFINE(own);/'
break_it phase p14 "opening it, in init: it was killed by signal 6" -e "$ends" -e 's/FIRST/__builtin_abort();/; s/LAST//; s/NAME/p14/'
break_it phase p15 "FAIL p15: fini: it was killed by signal 6" -e "$ends" -e 's/FIRST/return DT_OK;/; s/LAST/__builtin_abort();/; s/NAME/p15/'
saves='s/^DT_PHASE_DEFINE(/static dt_status save(void *self, dt_writer *w)\n{\n    static char n;\n    SAVE\n    return w->write(w, \&n, 1);\n}\
static dt_status load(void *self, dt_reader *r, uint32_t version)\n{\n    char n[2];\n    LOAD\n}\n&/
    s/DT_SET(stop, stop)/DT_SET(save, save), DT_SET(load, load), &/'
change 0 phase p16 "iterated 4 times, saved and loaded, stopped, destroyed" -e "$saves" -e 's/SAVE//; s/LOAD/return r->read(r, n, 1);/'
break_it phase p17 "save writes other bytes than those that were loaded" -e "$saves" -e 's/SAVE/n++;/; s/LOAD/return r->read(r, n, 1);/'
break_it phase p18 "load reads 2 bytes, but 1 are left" -e "$saves" -e 's/SAVE//; s/LOAD/return r->read(r, n, 2);/'
break_it phase p19 "load leaves 1 of the 1 bytes" -e "$saves" -e 's/SAVE//; s/LOAD/return DT_OK;/'
break_it phase p20 "load: it was killed by signal 6" -e "$saves" -e 's/SAVE//; s/LOAD/__builtin_abort();/'
late env e19 playing "s/^    s->battery--;/    $loop/"
late phase p11 iterate "/^static dt_status iterate/,/^}/s/^{/{\n    $loop/"
expect 3 '{"verdict":"FAIL","text":"phase p11: iterate: it did not return' "$dtrain" check "$work/late-p11/p11.so" --json \
    --set env.timeout_s=3
# a verdict is reported as soon as it is known, whatever comes next
for json in "" --json; do
    "$dtrain" check "$work/late-e19/e19.so" --set env.timeout_s=1000 $json >"$work/out" 2>&1 &
    pid=$! tries=0
    until grep -q "its spec is legal" "$work/out" || [ $tries -gt 600 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    kill -0 $pid 2>/dev/null && [ $tries -le 600 ] || { echo "FAIL: check tells nothing before its end $json"; failed=1; }
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
done
# in a run it does not choose the exit code of dtrain
"$dtrain" new phase leaver "$work/leaver" >/dev/null || exit 1
sed -i '/^static dt_status iterate/,/^}/s/^{/{\n    exit(0);/; s/^#include <dtrain.helpers.h>/&\n#include <stdlib.h>/' "$work/leaver/leaver.c"
make_in "$work/leaver" CFLAGS="-O0 -w" || { echo "FAIL: leaver does not build"; failed=1; }
expect 3 "a plugin ended the process by exit()" "$dtrain" --plugin "$work/leaver/leaver.so" --max-steps 2 --run-dir "$work/left"
# not here, and says so; and one that may be in a process once
change 0 env e14 "SKIP environment e14: create: no simulator" 's/^    s->h = h;/&\n    return DT_FAIL_H(h, DT_ENOTFOUND, "no simulator");/'
once='s/^    s->h = h;/&\n    if (n_alive++ > 0) { return DT_FAIL_H(h, DT_EIO, "two of us"); }/
    s/^static dt_status create/static int n_alive;\nstatic void leave(void *self)\n{\n    (void)self;\n    n_alive--;\n}\n&/
    s/dt_no_op/leave/'
break_it env e15 "a second instance: two of us" "$once"
change 0 env e16 "PASS e16: 8 passed" "$once; s/DT_COMP_DETERMINISTIC/&|DT_COMP_PROCESS/"

[ $failed -eq 0 ] && echo "template: all is well"
exit $failed
