#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dtrain suggests for names that it does not know exists, and is what was meant: keys of other programs and of other
# sections, short names of components, verbs, and environment variables with one underscore.
set -u
dtrain=${DT_BUILDDIR:-.}/dtrain
src=${DT_SRCDIR:-.}
work=$(mktemp -d "$PWD/test-suggest-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# suggested OPTION...: what the refusal suggests, with code 2, or 3 for a plugin
suggested() {
    "$dtrain" "$@" >"$work/out" 2>&1
    code=$?
    [ $code -eq 2 ] || [ $code -eq 3 ] || fail "$*: code $code: $(cat "$work/out")"
    sed -n 's/.*did you mean "\([^"]*\)"?.*/\1/p; s/.*did you mean \([a-zA-Z_.= -]*\)?;.*/\1/p' "$work/out" | head -n 1
}
expect() { # SUGGESTION OPTION...
    want=$1
    shift
    got=$(suggested "$@")
    [ "$got" = "$want" ] || fail "$*: suggests \"$got\", expected \"$want\""
}

# --- keys ---
ppo="--plugin phase2_ppo --dry-run --set"
expect training.learning_rate $ppo training.lr=1
expect training.learning_rate $ppo phase2_ppo.learning_rate=1
expect training.learning_rate $ppo learning_rate=1
expect learning_rate $ppo training.lerning_rate=1
expect phase2_ppo.fragment $ppo phase2_ppo.n_steps=1
expect phase2_ppo.gamma $ppo training.discount=1
expect data.batch $ppo phase2_ppo.minibatch_size=1
expect seed $ppo training.seed=1
expect seed $ppo random_seed=1
expect env.instances $ppo num_envs=1
expect gamma $ppo phase2_ppo.gama=1
expect phase2_ppo $ppo ppo.gamma=1

# every synonym leads to a key that some section has
sed -n 's/^ *{"\([a-z0-9_]*\)", "\([a-z0-9_.]*\)"},$/\1 \2/p' "$src/core/config/synonym.c" >"$work/synonyms"
[ "$(wc -l <"$work/synonyms")" -ge 40 ] || fail "few synonyms: $(wc -l <"$work/synonyms")"
for id in phase2_ppo phase_sac training data env engine amp checkpoint evaluation models comm env_sumo shield_barrier; do
    "$dtrain" show "$id" --json | grep -o '{"name":"[a-z0-9_]*","type"' | sed "s/.*\"name\":\"\(.*\)\",.*/$id.\1/"
done >"$work/keys"
echo .seed >>"$work/keys"
if ! grep -q '^env_sumo' "$work/keys"; then # a build without SUMO
    grep -v ' env_sumo\.' "$work/synonyms" >"$work/some"
    mv "$work/some" "$work/synonyms"
fi
while read -r theirs ours; do
    case $ours in
        *.*) grep -qxF "$ours" "$work/keys" ;;
        *) grep -q "\.$ours\$" "$work/keys" ;;
    esac || fail "$theirs is said to be $ours, which is not a key"
done <"$work/synonyms"

# --- components and verbs ---
expect phase2_ppo --plugin ppo --dry-run
expect phase_sac --plugin sac --dry-run
expect phase1_world_model --plugin phase1 --dry-run
"$dtrain" --plugin dqn --dry-run 2>&1 | grep -q 'dtrain list' || fail "--plugin dqn: nothing is advised"
expect run train
expect eval evaluate
expect report reprot
expect "run --resume" resume
expect "config template" init

# --- options of other programs and of other verbs, in place of a key or another option ---
expect "--max-steps N" --plugin phase2_ppo --steps 3
expect "--set training.learning_rate=X" --plugin phase2_ppo --lr 3
expect "--set env.id=ID" --plugin phase2_ppo --env cartpole
expect "--set env.instances=N" --plugin phase2_ppo --num_envs 3
expect "--run-dir DIR" --plugin phase2_ppo --out x
expect "--max-steps" --plugin phase2_ppo --max-step 3
# every one that is advised exists
sed -n 's/.*{"[a-z-]*", "--set \([a-z_.]*\)=.*/\1/p' "$src/core/cli/cli.c" | sort -u >"$work/advised"
[ "$(wc -l <"$work/advised")" -ge 6 ] || fail "few options are advised"
grep -vxF -e models.ROLE -f "$work/keys" "$work/advised" >"$work/missing" && fail "advised: $(cat "$work/missing")"
"$dtrain" run --help >"$work/help" 2>&1
for option in $(sed -n 's/.*{"[a-z-]*", "\(--[a-z-]*\)[ "].*/\1/p' "$src/core/cli/cli.c" | sort -u); do
    case $option in --version | --help) continue ;; esac
    grep -q -- " $option[ \[]" "$work/help" || fail "$option is advised, which is not an option"
done

# --- what a refusal advises is possible: each row is refused, and taken once the advice is followed ---
small="--set env.id=cartpole --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16"
while IFS='|' read -r wrong advised followed; do
    set --
    for setting in $wrong; do set -- "$@" --set "$setting"; done
    # shellcheck disable=SC2086 # words
    "$dtrain" --plugin phase2_ppo --dry-run $small --set data.batch=32 "$@" -q >"$work/out" 2>&1 && fail "$wrong: taken"
    grep -q "$advised" "$work/out" || fail "$wrong: does not advise $advised: $(grep '^error' "$work/out")"
    case $followed in # the plan takes more where the code is instrumented
        *=ADVISED) followed=${followed%ADVISED}$(sed -n 's/.*raise memory.target_gb to \([0-9.]*[0-9]\).*/\1/p' "$work/out") ;;
    esac
    for setting in $followed; do set -- "$@" --set "$setting"; done
    # shellcheck disable=SC2086
    "$dtrain" --plugin phase2_ppo --dry-run $small --set data.batch=32 "$@" -q >"$work/out" 2>&1 ||
        fail "$wrong, followed by $followed: $(grep '^error' "$work/out")"
done <<'END'
comm.backend=sim comm.ranks=8|raise data.shards|data.shards=8
comm.backend=sim comm.ranks=8|at most 4|comm.ranks=4
data.batch=1000|lower data.batch|data.batch=192
data.batch=1000|train_batch|phase2_ppo.train_batch=1000
phase2_ppo.fragment=128|lower the first|phase2_ppo.fragment=64
phase2_ppo.fragment=128|raise the second|phase2_ppo.train_batch=128
env.mix=cartpole,cartpole,cartpole env.instances=2|raise env.instances|env.instances=3
checkpoint.best_by=return/mean training.eval_interval=0|training.eval_interval|training.eval_interval=1
checkpoint.best_by=return/mean training.eval_interval=0|checkpoint.best_by = ""|checkpoint.best_by=
checkpoint.best_by=x training.eval_interval=1|return/mean|checkpoint.best_by=return/mean
checkpoint.hand_on=best|checkpoint.best_by|checkpoint.best_by=return/mean
memory.target_gb=0.001|raise memory.target_gb to 0|memory.target_gb=ADVISED
env.id=|"cartpole"|env.id=cartpole
env.id=cartpol|"env_cartpole"|env.id=env_cartpole
comm.ranks=2|comm.backend = "sim"|comm.backend=sim
comm.backend=mpi|"auto"|comm.backend=auto
models.controller=controller_mpl|"controller_mlp"|models.controller=controller_mlp
phase2_ppo.imagine_weight=0.1|imagine_weight = 0|phase2_ppo.imagine_weight=0
rollouts.keep=100|at least 192|rollouts.keep=192
rollouts.keep=100|or to 0|rollouts.keep=0
engine.micro_shards=9|8|engine.micro_shards=8
END

# --- units in ranges ---
"$dtrain" $ppo env.timeout_s=-3 >"$work/out" 2>&1
grep -q 'in \[0.01, 1000000\], unit s' "$work/out" || fail "a range without its unit: $(cat "$work/out")"

# --- variables: one underscore sets nothing, and is reported ---
warns() { env "$1=3" "$dtrain" --plugin phase2_ppo --dry-run 2>&1 | grep -q "$1 is not known"; }
warns DTRAIN_PHASE2_PPO_ITERATIONS || fail "DTRAIN_PHASE2_PPO_ITERATIONS is ignored without a warning"
! warns DTRAIN__PHASE2_PPO__ITERATIONS || fail "a warning about a good variable"
for own in DTRAIN_LAUNCH_WORDS DTRAIN_LAUNCH_BOARD DTRAIN_WORKER; do # what --nproc and environments give their processes
    ! warns $own || fail "a warning about $own"
done
sed -n 's/.*{"\(DTRAIN_[A-Z_]*\)".*/\1/p' "$src/core/cli/cli_table.h" | grep -v SECTION >"$work/known"
[ "$(wc -l <"$work/known")" -ge 4 ] || fail "no table of variables"
while read -r name; do
    ! env "$name=" "$dtrain" --plugin phase2_ppo --dry-run 2>&1 | grep -q 'is not known' ||
        fail "a warning about $name"
done <"$work/known"
[ $failed -eq 0 ]
