#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dtrain suggests for names that it does not know exists, and is what was meant: keys of other programs and of
# other sections, short names of components, verbs, and environment variables with one underscore.
set -u
. "${DT_SRCDIR:-.}/tests/check.inc"
src=${DT_SRCDIR:-.}

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
sed -n 's/.*{"[a-z-]*", "\(--[a-z-]*\)[ "].*/\1/p' "$src/core/cli/cli.c" | sort -u >"$work/options"
while read -r option; do
    case $option in --version | --help) continue ;; esac
    grep -q -- " ${option}[ \[]" "$work/help" || fail "$option is advised, which is not an option"
done <"$work/options"

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

# --- the same in other phases and components; ADVICE is followed in place of WRONG where it changes the same key ---
rollouts=$work/kept/rollouts/phase2_ppo-1
# shellcheck disable=SC2086
"$dtrain" --plugin phase2_ppo $small --set data.batch=32 --set rollouts.keep=256 --set evaluation.baselines= --threads 1 -q \
    --run-dir "$work/kept" >"$work/out" 2>&1 || fail "rollouts to learn from: $(cat "$work/out")"
base_of() { # PHASE: what a small plan of it takes
    case $1 in
        phase2_ppo) echo "$small --set data.batch=32" ;;
        phase3_constrained) echo "--set env.id=constrained --set phase3_constrained.iterations=1 --set data.batch=32" \
            "--set phase3_constrained.train_batch=64 --set phase3_constrained.fragment=16" ;;
        phase_sac | phase_ddpg) echo "--set env.id=pendulum --set data.batch=32" ;;
        phase_offline) echo "--set env.id=cartpole --set data.batch=32" ;;
        *) echo "--set data.batch=16" ;;
    esac
}
refuses_until() { # PHASE WRONG ADVISED FOLLOWED; settings are separated by blanks
    phase=$1
    # shellcheck disable=SC2046,SC2086 # words
    set -- "$2" "$3" "$4" $(base_of "$phase")
    wrong=$1 advised=$2 followed=$3
    shift 3
    for setting in $wrong; do set -- "$@" --set "$setting"; done
    "$dtrain" --plugin "$phase" --dry-run "$@" -q >"$work/out" 2>&1 && fail "$phase $wrong: taken"
    grep -qF -- "$advised" "$work/out" || fail "$phase $wrong: does not advise $advised: $(grep '^error' "$work/out")"
    case $followed in
        plugin=*) phase=${followed#plugin=} ;;
        *) for setting in $followed; do set -- "$@" --set "$setting"; done ;;
    esac
    "$dtrain" --plugin "$phase" --dry-run "$@" -q >"$work/out" 2>&1 ||
        fail "$phase $wrong, followed by $followed: $(grep '^error' "$work/out")"
}
while IFS='|' read -r phase wrong advised followed; do
    refuses_until "$phase" "$wrong" "$advised" "$(echo "$followed" | sed "s|ROLLOUTS|$rollouts|")"
done <<'END'
phase_sac|phase_sac.learning_starts=1000000 phase_sac.buffer_size=1000|lower the first|phase_sac.learning_starts=1000
phase_sac|phase_sac.learning_starts=100000 phase_sac.buffer_size=1000|raise the second|phase_sac.buffer_size=100000
phase_ddpg|phase_ddpg.learning_starts=100000 phase_ddpg.buffer_size=1000|lower the first|phase_ddpg.learning_starts=1000
phase_sac|phase_sac.buffer_size=1 phase_sac.learning_starts=1|raise it|phase_sac.buffer_size=1000
phase_sac|phase_sac.n_step=100|lower the first|phase_sac.n_step=8
phase_sac|env.id=cartpole|phase2_ppo|plugin=phase2_ppo
phase3_constrained||with the costs of env_constrained: price|phase3_constrained.limits=price:1
phase3_constrained|phase3_constrained.limits=price|write cost:limit|phase3_constrained.limits=price:1
phase3_constrained|phase3_constrained.limits=price:1 phase3_constrained.multiplier_max=0|set it above 0|phase3_constrained.multiplier_max=1
phase3_constrained|phase3_constrained.limits=price:1 phase3_constrained.start=0 phase3_constrained.kp=0 phase3_constrained.ki=0 phase3_constrained.kd=0|set one of them above 0|phase3_constrained.ki=0.1
phase3_constrained|phase3_constrained.limits=price:1 phase3_constrained.start=10 phase3_constrained.multiplier_max=5|lower the first|phase3_constrained.start=5
phase3_constrained|phase3_constrained.limits=price:1 phase3_constrained.start=10 phase3_constrained.multiplier_max=5|raise the second|phase3_constrained.multiplier_max=10
phase3_constrained|phase3_constrained.limits=price:1 phase3_constrained.margin=1|set it below 1|phase3_constrained.margin=0.5
phase_offline||name a folder|phase_offline.rollouts=ROLLOUTS
phase2_ppo|training.eta_min=1|lower it|training.eta_min=0
phase2_ppo|training.eta_min=1|the scheduler constant|training.scheduler=constant
phase2_ppo|comm.wire=bf16 engine.reduction=fast comm.backend=sim comm.ranks=2|comm.wire = "fp32"|comm.wire=fp32
phase2_ppo|comm.wire=bf16 engine.reduction=fast comm.backend=sim comm.ranks=2|engine.reduction = "exact"|engine.reduction=exact
phase2_ppo|comm.shard_weights=1,2|comm.shard_weights= to distribute|comm.shard_weights=
phase2_ppo|comm.shard_weights=1,2|one per rank|comm.shard_weights=1
phase2_ppo|comm.shard_weights=1,2 comm.backend=sim comm.ranks=2 engine.reduction=fast|or no weights|comm.shard_weights=
phase2_ppo|comm.backend=nccl|"auto"|comm.backend=auto
phase2_ppo|controller_mlp.critic_layers=2 controller_mlp.trunk=shared|leave it at -1|controller_mlp.critic_layers=-1
phase2_ppo|controller_mlp.critic_layers=2 controller_mlp.trunk=shared|"separate"|controller_mlp.trunk=separate
phase2_ppo|models.controller=controller_lstm|set the option window|phase2_ppo.window=4
phase2_ppo|phase2_ppo.foresight=true|turn it off|phase2_ppo.foresight=false
phase2_ppo|env.id=cartpol|"env_cartpole"|env.id=env_cartpole
phase2_ppo|env.id=traffic env_traffic.control=signals env_traffic.scenario=intersection env_traffic.reward=-queue/vehicles|write max(..., 1)|env_traffic.reward=-queue/max(vehicles,1)
phase2_ppo|env.id=traffic env_traffic.control=signals env_traffic.scenario=intersection env_traffic.reward=phase.near|write phase_sum()|env_traffic.reward=phase_sum(phase.near)
phase2_ppo|env.id=traffic env_traffic.control=signals env_traffic.scenario=intersection env_traffic.history_s=2|"vehicles"|env_traffic.control=vehicles
phase1_world_model|phase1_world_model.calibration_folds=3|set its option calibrated|world_lstm.calibrated=true
phase1_world_model|phase1_world_model.calibration_folds=3|calibration_folds to 0|phase1_world_model.calibration_folds=0
phase1_world_model|data.batch=100000|lower data.batch|data.batch=400
phase1_world_model|data.batch=100000|data.drop_last = false|data.drop_last=false
phase1_world_model|data.source=data_trajectry|"data_trajectory"|data.source=data_trajectory
phase1_world_model|models.world=world_lstn|"world_lstm"|models.world=world_lstm
END

# a component of another kind is not meant
for wrong in data.source=cartpole models.world=cartpole env.id=ppo_phase2; do
    "$dtrain" --plugin phase1_world_model --dry-run --set "$wrong" -q >"$work/out" 2>&1 && fail "$wrong: taken"
    ! grep -q 'did you mean' "$work/out" || fail "$wrong: $(cat "$work/out")"
done

# --- a file that --out names, in a folder that is not there, and in the place of a folder ---
for verb in "export --checkpoint $work/kept" "report $work/kept" "config template phase2_ppo"; do
    # shellcheck disable=SC2086
    "$dtrain" $verb --out "$work/later/x" -q >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -q "make it first" "$work/out" || fail "$verb into no folder: $(cat "$work/out")"
    mkdir "$work/later"
    # shellcheck disable=SC2086
    "$dtrain" $verb --out "$work/later/x" -q >"$work/out" 2>&1 || fail "$verb, once it is made: $(cat "$work/out")"
    rm -r "$work/later"
done
"$dtrain" export --checkpoint "$work/kept" --out "$work/kept" -q >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q "name a file in it" "$work/out" || fail "a folder: $(cat "$work/out")"
"$dtrain" export --checkpoint "$work/kept" --out "$work/kept/policy" -q >"$work/out" 2>&1 || fail "$(cat "$work/out")"

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
sed -n 's/.*{"\(DTRAIN_[A-Z_]*\)".*/\1/p' "$src/core/cli/cli_table.c" | grep -v SECTION >"$work/known"
[ "$(wc -l <"$work/known")" -ge 4 ] || fail "no table of variables"
while read -r name; do
    ! env "$name=" "$dtrain" --plugin phase2_ppo --dry-run 2>&1 | grep -q 'is not known' ||
        fail "a warning about $name"
done <"$work/known"
[ $failed -eq 0 ]
