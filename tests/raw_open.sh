#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of runs, checkpoints and stores are opened through core/base/fs.h and beneath.h, which follow no link in a
# folder that others may have made: nothing in core calls the system by a path itself, but for the places below, whose
# paths are not of such a folder. With a folder as argument it checks that tree; the test first proves that it does see.
set -eu
LC_ALL=C
export LC_ALL

# file: why its paths are not of a run, a checkpoint or a store
known='
core/base/beneath.c: is the way itself
core/base/fs.c: calls of the system below descriptors of beneath.h
core/base/clock.c: /proc
core/base/mapping.c: asks whether a file that is mapped was changed, in a signal handler; opens nothing
core/base/fault.c: where a test that names it waits
core/cli/main.c: /dev/null
core/cli/phase_trial.c: /dev/null
core/base/mem.c: /sys
core/comm/board.c: /proc, and memory that another process of this machine shares
core/state/checkpoint/run_config.c: the full name of a folder that the user gives
core/plan/machine/limits.c: /proc and /sys
core/plugin/trial/check.c: /proc
core/plugin/trial/trial.c: /proc
core/plugin/trial/process_state.c: is the working folder there; opens nothing
core/plan/machine/doctor_machine.c: /proc, /sys, and a file of its own that it measures with
core/plan/machine/doctor_device.c: /dev
core/base/module.c: modules that belong to dtrain
core/engine/device/open.c: /dev
core/comm/launch/hostfile.c: is a file there that the user names
core/comm/launch/mpirun.c: mpirun on the PATH, /dev/null, is TMPDIR there
core/plugin/loader/loader.c: plugins, which the user names
core/plugin/loader/search.c: plugins
plugins/traffic/import/sort.c: a file without a name
core/run/layers.c: the real path of what the user names
core/run/session_check.c: asks whether a path of the user is there
core/cli/verb_new.c: a project of the user
core/cli/verb_run.c: the real path of what the user names
core/cli/verb_export.c: the length of what it wrote where the user said
core/run/rundir.c: a new folder below runs/; ages of runs
core/telemetry/report/logbook.c: the name of the folder itself
core/cli/verb_runs.c: folders below one that the user names, links left out
core/run/resume.c: the real path of what the user names
'
calls='(open|openat|fopen|freopen|opendir|rename|unlink|mkdir|truncate|stat|lstat|access|realpath|scandir|symlink|link|creat)'

check() { # tree
    (cd "$1"; find core -name '*.c' | sort | xargs grep -nE "(^|[^a-zA-Z0-9_>.\"])$calls\\(" 2>/dev/null || true) |
        grep -vE '^[^:]*:[0-9]+: *(\*|/\*|//)' | grep -vE '/\* .*'"$calls"'\([^)]*\) .*\*/$' |
        while IFS=: read -r file line text; do
            case $known in
                *"
$file:"*) ;;
                *) echo "$file:$line: $text: go through base/fs.h or base/beneath.h" ;;
            esac
        done
}

# Durations and deadlines are of the monotonic clock, which nobody sets: the time of day only dates and names.
dated='
core/telemetry/metrics/events.c: the time of a record
core/state/checkpoint/save.c: names a folder
core/state/checkpoint/load.c: names a folder
core/base/clock.c: dates of logs
'
clocks() { # tree
    (cd "$1"; find core phases models plugins include -name '*.[ch]' 2>/dev/null | sort |
        xargs grep -nE 'CLOCK_REALTIME|TIME_UTC|gettimeofday' 2>/dev/null || true) |
        while IFS=: read -r file line text; do
            case $dated in
                *"
$file:"*) ;;
                *) echo "$file:$line: $text: measure by dt_clock_s or CLOCK_MONOTONIC" ;;
            esac
        done
}

if [ $# -gt 0 ]; then
    check "$1"
    clocks "$1"
    exit
fi
tmp=$(mktemp -d ./raw-open-XXXXXX)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/core/telemetry/metrics"
printf 'void f(void)\n{\n    FILE *f = fopen(path, "a");\n    dt_fs_open(path, 0, &fd);\n    api->open(x);\n}\n' \
    >"$tmp/core/telemetry/metrics/x.c"
[ "$(check "$tmp" | wc -l)" -eq 1 ] || { echo "raw_open: does not see fopen"; exit 1; }
mkdir -p "$tmp/phases"
printf 'void f(void)\n{\n    timespec_get(&t, TIME_UTC);\n}\n' >"$tmp/phases/x.c"
[ "$(clocks "$tmp" | wc -l)" -eq 1 ] || { echo "raw_open: does not see a clock that others set"; exit 1; }
found=$(check "${DT_SRCDIR:-$(dirname "$0")/..}")
found=$found$(clocks "${DT_SRCDIR:-$(dirname "$0")/..}")
[ -z "$found" ] || { echo "$found"; exit 1; }
