#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What dtrain writes, read by the packages it is written for: tests/peers/run.sh BUILD [NAME...]
# A line below is a check: its name (tests/peers/NAME.py or NAME.sh BUILD, also by hand), and what it needs from PyPI.
# The packages go into BUILD/peers; without network nothing is checked, and 77 says so.
set -eu

build=${1:?usage: tests/peers/run.sh BUILD [NAME...]}
shift
src=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
checks='read_tensorboard tensorboard
export_onnx onnx onnxruntime numpy
argoverse2 pyarrow'

cd "$build"
if [ ! -x peers/bin/pip ]; then
    python3 -m venv peers || { echo "no python3 with venv: nothing was checked"; exit 77; }
fi
wanted=" $* "
n=0
while read -r name packages; do
    case $wanted in *" $name "* | "  ") ;; *) continue ;; esac
    # shellcheck disable=SC2086
    if ! peers/bin/pip install --quiet --disable-pip-version-check $packages; then
        echo "$packages cannot be had from PyPI, so $name was not run"
        exit 77
    fi
    echo "== $name"
    if [ -e "$src/$name.sh" ]; then
        PATH=$build/peers/bin:$PATH sh "$src/$name.sh" "$build"
    else
        peers/bin/python "$src/$name.py" "$build"
    fi
    n=$((n + 1))
done <<END
$checks
END
echo "$n checked by the packages themselves"
