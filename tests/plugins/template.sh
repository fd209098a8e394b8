#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A third party's first hour: `dtrain new` writes a phase and a model, they build with pkg-config dtrain alone, pass
# `dtrain check`, train, and swap into a shipped phase. Then the template is broken in one way at a time, and `dtrain
# check` must say so.
set -u
dtrain=$DT_BUILDDIR/dtrain
PKG_CONFIG_PATH=$DT_BUILDDIR
export PKG_CONFIG_PATH
command -v pkg-config >/dev/null && command -v "${CC:-cc}" >/dev/null || { echo "skipped: no pkg-config or cc"; exit 77; }
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
expect 2 "exists; name a new folder" "$dtrain" new model drive "$work/drive"
expect 2 "expected dtrain new phase|model NAME DIR" "$dtrain" new phase fit
build "$work/fit" || { echo "FAIL: the phase does not build"; exit 1; }
build "$work/drive" || { echo "FAIL: the model does not build"; exit 1; }

expect 0 "PASS fit: 18 passed, 0 failed, 0 skipped" "$dtrain" check "$work/fit/fit.so"
expect 0 "PASS drive: 9 passed, 0 failed, 0 skipped" "$dtrain" check "$work/drive/drive.so"
DTRAIN_PLUGIN_PATH=$work/fit:$work/drive
export DTRAIN_PLUGIN_PATH
expect 0 "fit_model" "$dtrain" list
expect 0 "frequency = 3.0" "$dtrain" show fit_data

# it learns: the curve's own root mean square is 0.74
expect 0 "Training completed" "$dtrain" --plugin "$work/fit/fit.so" --run-dir "$work/run" --threads 2 \
    --set checkpoint.every_seconds=0
expect 0 '{"rmse":0.0' "$dtrain" eval --plugin fit --checkpoint "$work/run" --json
expect 2 "world_lstm is a model for the role world" "$dtrain" --plugin fit --set models.curve=world_lstm --dry-run
expect 2 'did you mean "hidden"?' "$dtrain" --plugin fit --set fit_model.hiden=3 --dry-run
expect 0 "drive" "$dtrain" --plugin phase1_world_model --set models.world=drive --dry-run

ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 # one of the broken ones leaks, and check says so itself
export ASAN_OPTIONS

# break_it KIND NAME TEXT SED-SCRIPT...: the template with one change, and what check says of it
break_it() {
    kind=$1 name=$2 text=$3
    shift 3
    rm -rf "$work/b"
    "$dtrain" new "$kind" "$name" "$work/b" >/dev/null || exit 1
    sed "$@" "$work/b/$name.c" >"$work/b/changed" || exit 1
    if cmp -s "$work/b/changed" "$work/b/$name.c"; then
        echo "FAIL: nothing to change for \"$text\""
        failed=1
    fi
    mv "$work/b/changed" "$work/b/$name.c"
    make_in "$work/b" CFLAGS="-O1 -w" || { echo "FAIL: does not build for \"$text\""; failed=1; }
    expect 3 "$text" "$dtrain" check "$work/b/$name.so"
}
break_it model m1 "forward: output future is [S 4 2 f32], its port says [S 4 3 f32]" 's/"S %lld 2"/"S %lld 3"/'
break_it model m2 "running on zeros: output spread is -inf" 's/SIGMA_FLOOR_M), 0.0)/0.0), 0.0)/; s/dt_unary(g, DT_FN_SOFTPLUS, grow, 0.0)/grow/'
break_it model m3 "destroy leaves 2 blocks of host memory" 's/s->config = \*(const config \*)cfg;/&\n    h->alloc(h, 8);/'
break_it model m4 "params: " 's/"hidden.b", b/"hidden.w", b/'
break_it model m5 "forward: " 's/api->param(g, "along.w")/api->param(g, "alone.w")/'
break_it model m6 "create: m6 needs the dimensions" 's/"dt_ms") . 1000.0/"dt_us") \/ 1000.0/'
break_it model m7 "summary or reference is empty" 's/.summary = ".*"/.summary = ""/'
break_it model m8 "option hidden has no help" 's/"width of the hidden layer"/NULL/'
break_it model m9 "ports: output spread: " 's/"spread", s->text\[1\]/"spread", "S Q 2"/'
break_it phase p1 "its defaults: phases.0.training.epoch = \"20\" by default of plugin p1: unknown key" 's/training.epochs=20/training.epoch=20/'
break_it phase p2 "read writes behind the end of field y" 's/y\[i\] = /y[i + 1] = /'
break_it phase p3 "twice gives different bytes" 's/weight\[i\] = 1.0F/static float n; weight[i] = n++/'
break_it phase p4 "lacks the operation iterate" 's/    .iterate = iterate,//'
break_it phase p5 "life cycle: after create: " 's/api->input(g, "y")/api->input(g, "z")/'
break_it phase p7 "with keys, for augmentation: reading the same samples twice" \
    's/^    (void)key;/    static float turn;/; s/weight\[i\] = 1.0F/weight[i] = key[i] != 0 ? turn++ : 1.0F/'
break_it phase p8 "sizes says that 3 samples have 4 of N together, and 6 one by one" \
    -e 's/^    \*n_p = 0;/    static const char *const letter[] = {"N"};\n    *n_p = 1;/; s/^    return NULL;/    return letter;/' \
    -e 's/^    (void)size;/    size[0] = (int64_t)n * (n + 1) \/ (n > 1 ? 3 : 1);/'
break_it phase p6 "fields, symbols, count: field x: " 's/{"x", "B 1", DT_F32, 0}, {"y"/{"x", "Q 1", DT_F32, 0}, {"y"/'

[ $failed -eq 0 ] && echo "template: all is well"
exit $failed
