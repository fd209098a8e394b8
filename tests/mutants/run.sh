#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mutation tests: applies one fault at a time to a copy of the source and checks that a named test fails.
# `make check-mutants` calls it in the build folder. README.md here describes the tables.
# usage: run.sh TABLE...
#   MUTANTS=REGEX      only mutants whose "file: old -> new" matches (awk syntax)
#   MUTANT_JOBS=1      mutants at a time, each worker with its own copy of the source and its own build
#   MUTANT_LIMIT=60    seconds for one test; a test that takes longer has noticed the mutant
#   MUTANT_LIST=1      only check that each pattern occurs exactly once and each test exists
#   MUTANT_SKIP_BASE=1 do not first check that the named tests pass without a mutant
# Results are killed, survived, build failed and stale (the source does not contain the pattern exactly once).
# The exit code is 0 only when every selected mutant was killed.
set -u
export LC_ALL=C
top=$(cd "${DT_SRCDIR:-$(dirname "$0")/../..}" && pwd)
jobs=${MUTANT_JOBS:-1} limit=${MUTANT_LIMIT:-60} select=${MUTANTS:-.}
root=$PWD/mutants.build
queue=$root/queue results=$root/results
unset MAKEFLAGS MFLAGS MAKELEVEL MUTANTS
rm -rf "$queue" "$results"
mkdir -p "$queue/base" "$queue/mutants" "$results"

# one folder per mutant, with its file, old text, new text and tests
awk -v queue="$queue/mutants" -v select="$select" '
    function fail(text) { printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"; bad = 1; exit 1 }
    function flush() {
        if (state == 0) return
        if (state != 3) fail("a mutant needs a line \"@ FILE TEST...\", a line \"- OLD\" and a line \"+ NEW\"")
        state = 0
        if (seen[file, old, new]++) fail("this mutant is listed twice: " file ": " old)
        if (file ": " old " -> " new !~ select) return
        path = sprintf("%s/%04d", queue, ++count)
        system("mkdir " path)
        print file > (path "/file"); print tests > (path "/tests"); print old > (path "/old"); print new > (path "/new")
        close(path "/file"); close(path "/tests"); close(path "/old"); close(path "/new")
    }
    FNR == 1 { flush() }
    /^#/ || /^$/ { next }
    /^@ / {
        flush(); file = $2; tests = ""; state = 1
        for (i = 3; i <= NF; i++) tests = tests (i > 3 ? " " : "") $i
        if (tests == "") fail("no test is named for " file)
        next
    }
    /^- ./ { if (state != 1) fail("unexpected line"); old = substr($0, 3); state = 2; next }
    /^\+( |$)/ { if (state != 2) fail("unexpected line"); new = substr($0, 3); state = 3; next }
    { fail("unexpected line") }
    END { if (!bad) flush(); if (!bad && !count) { print "no mutant is selected" > "/dev/stderr"; bad = 1 } exit bad }
' "$@" || exit 2
cat "$queue"/mutants/*/tests | tr ' ' '\n' | sort -u | while read -r test; do
    path=$queue/base/$(echo "$test" | tr / _)
    mkdir "$path" && echo "$test" >"$path/tests" && : >"$path/file"
done

# copy what differs from the source, without build folders
sync_source() { # destination
    mkdir -p "$1"
    for entry in "$top"/*; do
        name=${entry##*/}
        test -e "$entry/config.status" && continue
        case $name in
            build-aux) ;;
            build* | autom4te.cache | *.build | config.log | config.status | *.log | share) continue ;;
        esac
        if ! test -e "$1/$name"; then
            cp -a "$entry" "$1/$name"
        elif test -d "$entry"; then
            diff -rq "$entry" "$1/$name" | while read -r word a b c _; do
                case $word in
                    Files) cat "$a" >"$c" ;;
                    Only)
                        b=${b%:}
                        case $b/ in
                            "$1"/*) rm -rf "${b:?}/${c:?}" ;;
                            *) cp -a "$b/$c" "$1/${b#"$top"/}/" ;;
                        esac
                        ;;
                esac
            done
        elif ! cmp -s "$entry" "$1/$name"; then
            cat "$entry" >"$1/$name"
        fi
    done
    mkdir -p "$1/share" && cp -pR "$top"/share/* "$1/share/" && rm -rf "$1/share/demo.store"
}

prepare() { # worker
    sync_source "$root/$1/src" && mkdir -p "$root/$1/obj" && cd "$root/$1/obj" || return 1
    test -e config.status ||
        ../src/configure -q --without-cuda --disable-emulation CC="${CC:-cc}" CFLAGS='-O1 -g0' || return 1
    make -s -j"$jobs" core/libdtcore.la mutant-plugins
}

# replace the only occurrence of the pattern; 3: it occurs not once
apply() { # mutant source destination
    awk -v old_file="$1/old" -v new_file="$1/new" '
        BEGIN { getline old < old_file; getline new < new_file }
        {
            rest = $0; head = ""
            while ((at = index(rest, old)) > 0) {
                found++
                head = head substr(rest, 1, at - 1) new
                rest = substr(rest, at + length(old))
            }
            print head rest
        }
        END { exit found == 1 ? 0 : 3 }
    ' "$2" >"$3"
}

if [ -n "${MUTANT_LIST:-}" ]; then
    stale=0
    for mutant in "$queue"/mutants/*; do
        file=$(cat "$mutant/file")
        apply "$mutant" "$top/$file" /dev/null ||
            { echo "stale: $file: $(cat "$mutant/old")"; stale=$((stale + 1)); }
        read -r tests <"$mutant/tests"
        for test in $tests; do
            [ -e "$top/$test" ] || [ -e "$top/$test.c" ] || { echo "stale: no test $test"; stale=$((stale + 1)); }
        done
    done
    rm -rf "$queue" "$results"
    rmdir "$root" 2>/dev/null
    echo "$stale stale mutants"
    [ $stale -eq 0 ]
    exit
fi

# the objects of the host that a source is compiled to; several, where it is once for each instruction set
objects_of() { # file
    for object in "${1%.c}.lo" "${1%/*}"/*_la-"$(basename "$1" .c).lo"; do
        case $object in */tests_*) ;; *) test ! -e "$object" || echo "$object" ;; esac
    done
}

# Build one program. Objects of the host are linked in front of core/libdtcore.la, whose own are then not used: building
# that library again takes ten times as long as all the rest.
build() { # objects of the host or nothing, program
    if [ -n "$1" ]; then
        rm -f "$2"
        make -s $1 >build.log 2>&1 || return 1
        front=
        for object in $1; do
            front="$front ${object%/*}/$(sed -n "s,^pic_object='\(.*\)',\1,p" "$object")"
        done
        make -s -o core/libdtcore.la LDFLAGS="$front" "$2" >>build.log 2>&1 && return 0
        # a test that includes the source has the mutant itself, and no need of a new library
        if grep -q 'multiple definition' build.log; then
            make -s -o core/libdtcore.la "$2" >>build.log 2>&1 && return 0
        fi
    fi
    make -s "$2" >build.log 2>&1
}

# run one test that is built; the last line of run.log says how it ended
run_test() { # test without its ending
    rm -f "$1.log" "$1.trs"
    timeout -k 5 "$limit" make -s -o core/libdtcore.la "$1.log" >run.log 2>&1
    test $? -lt 124 || { echo "time limit"; return; }
    sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p' "$1.trs" 2>/dev/null
}

# build and run tests until one fails: prints killed, survived or "build failed"
run_tests() { # file tests...
    plugins='' objects=''
    case $1 in
        tests/*) ;;
        core/*.c) objects=$(objects_of "$1") ;;
        *) plugins="mutant-plugins" ;;
    esac
    shift
    outcome=survived
    for test in "$@"; do
        case $test in *.sh) program=dtrain base=${test%.sh} ;; *) program=$test base=$test ;; esac
        if { [ -n "$plugins" ] && ! make -s $plugins >build.log 2>&1; } || ! build "$objects" "$program"; then
            outcome="build failed"
        else
            case $(run_test "$base") in
                PASS) ;;
                FAIL | ERROR) outcome="killed by $test" ;;
                "time limit") outcome="killed (time limit) by $test" ;;
                SKIP) outcome="skipped $test" ;;
                *) outcome="build failed" ;;
            esac
        fi
        test -z "$objects" || rm -f "$program"
        test "$outcome" = survived || break
    done
    echo "$outcome"
}

work() { # worker, base or mutants
    cd "$root/$1/obj" || return 1
    for mutant in "$queue/$2"/*; do
        mkdir "$mutant/taken" 2>/dev/null || continue
        read -r file <"$mutant/file"
        read -r tests <"$mutant/tests"
        from=$(date +%s)
        if [ "$2" = base ]; then
            outcome=$(run_tests tests/ $tests)
        elif ! test -f "../src/$file" || ! apply "$mutant" "../src/$file" "$root/$1/mutant"; then
            outcome=stale
        else
            cat "../src/$file" >"$root/$1/original"
            cat "$root/$1/mutant" >"../src/$file"
            outcome=$(run_tests "$file" $tests)
            cat "$root/$1/original" >"../src/$file"
        fi
        if [ "$2" = base ]; then
            test "$outcome" = survived || printf '%s\n' "$tests: $outcome" >>"$results/base"
        else
            printf '%s\n' "$outcome" >"$mutant/outcome"
            printf '%-12s %3d s  %s: %s -> %s [%s]\n' "${outcome%% by *}" $(($(date +%s) - from)) "$file" \
                "$(cat "$mutant/old")" "$(cat "$mutant/new")" "$tests" | tee -a "$results/mutants"
        fi
    done
}

in_parallel() { # base or mutants
    worker=0 pids=
    while [ $((worker += 1)) -le "$jobs" ]; do
        work $worker "$1" &
        pids="$pids $!"
    done
    wait $pids
}

worker=0
while [ $((worker += 1)) -le "$jobs" ]; do
    (prepare $worker) >"$root/prepare.log" 2>&1 || {
        tail -n 20 "$root/prepare.log" >&2
        echo "check-mutants: the copy in $root/$worker does not build" >&2
        exit 2
    }
done
if [ "${MUTANT_SKIP_BASE:-0}" != 1 ]; then
    in_parallel base
    if test -s "$results/base"; then
        cat "$results/base" >&2
        echo "check-mutants: these tests must pass without a mutant" >&2
        exit 2
    fi
fi
in_parallel mutants
awk '{ n[/^killed/ ? "killed" : /^survived/ ? "survived" : /^build failed/ ? "build failed" : /^stale/ ? "stale" : "skipped"]++ }
    END {
        printf "%d mutants: %d killed, %d survived, %d build failed, %d stale, %d skipped\n", NR, n["killed"], n["survived"],
            n["build failed"], n["stale"], n["skipped"]
        exit n["killed"] != NR
    }' "$results/mutants"
