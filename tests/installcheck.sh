#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an installed dtrain must do without its source tree: say its version, find its plugins, and serve a third party
# who has nothing but pkg-config dtrain. Called by make installcheck (and so by make distcheck) with the folders below.
set -eu
: "${DT_SRCDIR:?}" "${bindir:?}" "${includedir:?}" "${libdir:?}" "${plugindir:?}" "${docdir:?}" "${plugins?}"
PKG_CONFIG_PATH=$libdir/pkgconfig
PATH=$bindir:$PATH
export PKG_CONFIG_PATH PATH
unset DTRAIN_PLUGIN_PATH DTRAIN_CONFIG DTRAIN_FAULT
work=$(mktemp -d "$PWD/installcheck-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
    echo "installcheck: $*" >&2
    exit 1
}
step() { echo "installcheck: $*"; }

step "the program runs from $bindir"
test "$(command -v dtrain)" = "$bindir/dtrain" || fail "dtrain is not in $bindir"
dtrain --version | grep '^dtrain [0-9]' || fail "no version"

step "plugins are files that are opened by name, and the documents are there"
found=$(find "$plugindir" -name '*.la' -o -name '*.a')
test -z "$found" || fail "not for use once installed: $found"
for file in LICENSE CHANGELOG.md README.md docs/howto/installing.md docs/reference/glossary.md; do
    test -s "$docdir/$file" || fail "no $docdir/$file"
done

step "pkg-config dtrain answers"
test "$(pkg-config --variable=plugindir dtrain)" = "$plugindir" || fail "plugindir differs"
if test -e "$plugindir/modules/comm_mpi.so" && command -v mpirun >/dev/null; then
    (cd "$work" && dtrain run --plugin phase1_world_model --nproc 2 --dry-run >two.txt 2>&1) ||
        { cat "$work/two.txt"; fail "two processes"; }
fi
pkg-config --variable=abi dtrain | grep -qx '[0-9][0-9]*\.[0-9][0-9]*' || fail "no abi"

step "installed headers alone, as C11 and C++17"
for test in headers_c headers_cxx; do
    (cd "$work" && DT_HEADERS=$includedir sh "$DT_SRCDIR/tests/abi/$test.sh" >/dev/null) || test $? -eq 77
done

step "every shipped plugin is listed and accepted"
(cd "$work" && dtrain list >list.txt) || fail "dtrain list"
(cd "$work" && dtrain --plugin phase2_ppo -q --set env.id=cartpole --set env.instances=4 --set phase2_ppo.iterations=1 \
    --set phase2_ppo.train_batch=400 --set phase2_ppo.fragment=100 --set data.batch=100 --set rollouts.keep=400 \
    --set report.enabled=false --set evaluation.baselines= --run-dir kept) || fail "no rollouts are kept"
for id in $plugins; do
    grep -qw "$id" "$work/list.txt" || fail "dtrain list does not name $id"
    needs=
    [ "$id" != phase_offline ] || needs="--set env.id=cartpole --set phase_offline.rollouts=kept/rollouts/phase2_ppo-1"
    (cd "$work" && dtrain check "$plugindir/$id.so" $needs) >"$work/check.txt" 2>&1 || { cat "$work/check.txt"; fail "dtrain check $id"; }
    if [ "$id" != env_sumo ] && [ "$id" != env_gym ] && grep -q '^SKIP ' "$work/check.txt"; then # they have required options
        cat "$work/check.txt"
        fail "$id is not run"
    fi
done

step "a copy in another folder, or one installed with DESTDIR, finds its own plugins and profiles"
prefix=$(pkg-config --variable=prefix dtrain)
share=$prefix/share/dtrain
dtrain list --json >"$work/list.txt" # plugins that are linked in have no file
if [ "$bindir" = "$prefix/bin" ] && [ "$plugindir" != "${plugindir#"$prefix"/}" ] && [ -d "$share/profiles" ] &&
    grep -q "\"file\":\"$plugindir/phase2_ppo.so\"" "$work/list.txt"; then
    moved=$work/moved
    mkdir -p "$moved/bin" "$moved/share/dtrain" "$moved/${plugindir#"$prefix"/}"
    cp "$bindir/dtrain" "$moved/bin"
    cp -R "$share/profiles" "$moved/share/dtrain"
    : >"$moved/share/dtrain/profiles/only_moved.cfg"
    cp "$plugindir"/*.so "$moved/${plugindir#"$prefix"/}"
    "$moved/bin/dtrain" list --json >"$work/list.txt" || fail "moved: dtrain list"
    grep -q "\"file\":\"$moved/${plugindir#"$prefix"/}/phase2_ppo.so\"" "$work/list.txt" || fail "the moved dtrain lists other plugins"
    (cd "$work" && "$moved/bin/dtrain" --plugin phase2_ppo --profile only_moved --set env.id=cartpole --dry-run -q >/dev/null) ||
        fail "the moved dtrain finds no profile of its own"
    cp -R "$share/env_gym" "$moved/share/dtrain"
    if command -v python3 >/dev/null; then
        for program in dtrain "$moved/bin/dtrain"; do
            (cd "$work" && "$program" --plugin phase2_ppo --set env.id=gym --set env_gym.id=no_such_module:x -q >gym.txt 2>&1) &&
                fail "$program: a module that does not exist is accepted"
            grep -q "module no_such_module is not found" "$work/gym.txt" || fail "$program: env_gym does not start its script"
        done
    fi
fi

step "a third party's project from the template: built, checked, listed"
for kind in phase model env; do
    (cd "$work" && dtrain new $kind third_$kind third_$kind) || fail "dtrain new $kind"
    (cd "$work/third_$kind" && make CC="${CC:-cc}") || fail "building third_$kind"
    dtrain check "$work/third_$kind/third_$kind.so" || fail "dtrain check third_$kind.so"
    DTRAIN_PLUGIN_PATH=$work/third_$kind dtrain list | grep -qw third_$kind || fail "third_$kind is not listed"
done

step "training steps: the shipped phase on the installed recording, the third party's on its own data"
(cd "$work" && dtrain run --plugin phase1_world_model --profile test --max-steps 1 --threads 1 -q \
    --run-dir run_shipped) ||
    fail "dtrain run --plugin phase1_world_model"
(cd "$work" && DTRAIN_PLUGIN_PATH=$work/third_phase dtrain run --plugin third_phase.so --max-steps 2 -q \
    --run-dir run_third) || fail "dtrain run --plugin third_phase"
grep -q '"step"' "$work/run_third/metrics.jsonl" || fail "no metrics of third_phase"
step "a program of one's own drives an environment by an exported policy: pkg-config dtrain-policy alone"
test "$(pkg-config --variable=plugindir dtrain-policy)" = "$plugindir" || fail "plugindir of dtrain-policy differs"
(cd "$work" && dtrain run --plugin phase2_ppo --set env.id=env_traffic --set env_traffic.control=signals \
    --set env_traffic.scenario=intersection --set env_traffic.episode_s=60 --set env.instances=2 \
    --set phase2_ppo.fragment=8 --set phase2_ppo.train_batch=16 --set data.batch=16 --set phase2_ppo.iterations=1 \
    --threads 1 -q --run-dir run_policy && dtrain export --checkpoint run_policy -q --out policy.safetensors) ||
    fail "dtrain export"
# shellcheck disable=SC2046
(cd "$work" && ${CC:-cc} -o drive "$docdir/examples/drive_env_traffic.c" $(pkg-config --cflags --libs dtrain-policy) -ldl) ||
    fail "building the example"
(cd "$work" && env -u LD_LIBRARY_PATH ./drive "$plugindir/env_traffic.so" policy.safetensors 3 >drive.txt) ||
    fail "running the example"
dtrain eval --checkpoint "$work/run_policy" --seeds 3 --episodes 1 --json -q >"$work/eval.json" || fail "dtrain eval"
ours=$(awk '$1 == "return" { printf "%.12g", $2 }' "$work/drive.txt")
theirs=$(sed -n 's/.*"return":{"mean":\([-0-9.e]*\),.*/\1/p' "$work/eval.json" | awk '{ printf "%.12g", $1 }')
test -n "$ours" && test "$ours" = "$theirs" || fail "the example's return is $ours, that of dtrain eval $theirs"
step "all is well"
