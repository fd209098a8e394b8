#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The scripts of examples/python. Those of trainers that are not installed here are only compiled, and the test says so.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
. "${DT_SRCDIR:-.}/tests/python/python.inc"

examples=$src/examples/python
for file in "$examples"/*.py; do
    expect 0 "" "$python" -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$file"
    grep -q "python/$(basename "$file"))" "$src/examples/README.md" || fail "examples/README.md lacks $file"
    [ "$(wc -l <"$file")" -lt 60 ] || fail "$file is long"
done
cd "$work" || exit 1

peer() { # module, command...
    if "$python" -c "import $1" 2>/dev/null; then
        shift
        OMP_NUM_THREADS=1 expect 0 "" "$python" -W ignore "$@"
    else
        echo "skipped: $2, as $1 is not installed"
    fi
}
peer stable_baselines3 "$examples/stable_baselines3_ppo.py" 1
peer torchrl "$examples/torchrl_ppo.py" 2048

# what scripts of CleanRL do with the id that they get
cat >script.py <<'END'
import sys, gymnasium
assert __name__ == "__main__" and sys.argv[3:] == ["--seed", "2"]
env = gymnasium.make(sys.argv[sys.argv.index("--env-id") + 1])
env.reset(seed=1)
print(env.observation_space.shape, *env.step(env.action_space.sample())[0].shape)
END
expect 0 "(9,) 9" "$python" "$examples/cleanrl_ppo.py" script.py --seed 2

# Gymnasium 0.29, which CleanRL needs
if timeout 60 "$python" -m pip -q --disable-pip-version-check --retries 0 --timeout 15 install --target old \
    gymnasium==0.29.1 'numpy<2' >out 2>err; then
    PYTHONPATH=$work/old:$PYTHONPATH expect 0 "" "$python" "$src/tests/python/old.py"
else
    echo "skipped: Gymnasium 0.29 cannot be installed from PyPI"
fi

finish python_examples
