#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What quickstart gives to configure and make, by GPU, toolkit and what the folder was configured by before. It runs on
# a copy, whose configure, compilers and GPUs are scripts that write down what they were given; nothing is installed.
set -eu
work=$(mktemp -d "$PWD/test-quickstart-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build-aux"
mkdir "$work/tests"
cp "$DT_SRCDIR/quickstart" "$work/quickstart"
cp "$DT_SRCDIR/tests/failures.sh" "$work/tests/failures.sh"
chmod +x "$work/quickstart"
cd "$work"
touch Makefile.in config.h.in build-aux/ltmain.sh
PATH=$work/bin:$PATH
export PATH
unset DTRAIN_CONFIGURE NVCC CC CFLAGS LDFLAGS MAKEFLAGS MFLAGS || true

stand_in() { # NAME, its text on standard input
    { echo '#!/bin/sh'; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
for name in cc make autoreconf automake libtoolize pkg-config g++ sumo; do echo 'exit 0' | stand_in "$name"; done
echo 'echo "a test would install packages" >&2; exit 1' | stand_in apt-get
echo 'echo "$@" >>made; echo "# PASS: 1" >"$2/test-suite.log"' | stand_in make
stand_in nvcc <<'END'
printf 'compute_%s\n' 75 80 86 90
END
cat >configure <<'END'
#!/bin/sh
touch Makefile
printf '#!/bin/sh\necho "%s"\n' "$*" >config.status
chmod +x config.status
echo "    CUDA            ${FAKE_CUDA:-yes}"
END
chmod +x configure

cases=0
fail() {
    echo "$*; it said:"
    cat said
    exit 1
}
# one call, then what configure was last given, what it said, and whether the folder was cleaned
expect() { # "configure's arguments" kept|fresh|rebuilt "words" MODE [ENVIRONMENT...]
    given=$1 how=$2 words=$3 mode=$4
    shift 4
    dir=build
    test "$mode" != check || dir=build-check
    rm -f made
    env "$@" ./quickstart "$mode" >said 2>&1 || fail "quickstart $mode failed"
    test "$("$dir/config.status" --config)" = "$given" ||
        fail "configure was given '$("$dir/config.status" --config)', not '$given'"
    case $how in
        kept) grep -q 'configure.*done before' said || fail "configured again" ;;
        fresh) ! grep -q clean made || fail "a new folder was cleaned" ;;
        rebuilt) grep -q clean made || fail "objects of other options are kept" ;;
    esac
    grep -q -e "$words" said || fail "no '$words'"
    cases=$((cases + 1))
}

echo 'exit 9' | stand_in nvidia-smi
expect "--without-cuda" fresh "GPU module: not built, no GPU answers here; .*--with-cuda" build
grep -q ' training$' made || fail "what training needs is not what was built: $(cat made)"
expect "--without-cuda" kept "no GPU answers" build
expect "--with-cuda" rebuilt "rebuilt" build DTRAIN_CONFIGURE=--with-cuda
expect "--with-cuda" kept "done before" build DTRAIN_CONFIGURE=--with-cuda
expect "--with-cuda" rebuilt "rebuilt" build DTRAIN_CONFIGURE=--with-cuda CFLAGS=-O1
expect "--without-cuda --enable-debug" rebuilt "no GPU answers" build DTRAIN_CONFIGURE=--enable-debug
(cd build && ../configure --by-hand >/dev/null)
expect "--without-cuda --enable-debug" rebuilt "rebuilt" build DTRAIN_CONFIGURE=--enable-debug

# GPUs that answer: code for them alone, each kind once
stand_in nvidia-smi <<'END'
case $1 in
    -L) printf 'GPU 0: one\nGPU 1: two\nGPU 2: three\n' ;;
    --query-gpu=compute_cap) printf "${FAKE_CAPS:-8.6\n9.0\n9.0\n}" ;;
esac
END
expect "--with-nvcc-gencode=-gencode=arch=compute_86,code=sm_86 -gencode=arch=compute_90,code=sm_90" rebuilt "rebuilt" build
expect "" rebuilt "not built, the toolkit lacks" build FAKE_CAPS='12.0\n' FAKE_CUDA='no: the toolkit lacks cuBLAS'
expect "--without-cuda" rebuilt "there is no nvcc" build NVCC=/nonexistent/nvcc
expect "--without-cuda" rebuilt "ok" build DTRAIN_CONFIGURE=--without-cuda
! grep -q 'GPU module' said || fail "who asked for no module is told that there is none"

# the gate compiles the module whether a GPU is there or not
echo 'exit 9' | stand_in nvidia-smi
expect "--enable-werror \
--with-nvcc-gencode=-gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_75,code=compute_75 -Xcicc -O0 -Xptxas -O0" \
    fresh "tests" check
grep -q ' all$' made && grep -q ' check-quick VERBOSE=1' made || fail "check made $(cat made)"
expect "--enable-werror --without-cuda" rebuilt "tests" check DTRAIN_CONFIGURE=--without-cuda

# a test that fails is named, with the end of what it said; what failed in an earlier call is not
stand_in make <<'END'
case " $* " in *" check-quick "*) ;; *) exit 0 ;; esac
mkdir -p "$2/tests/room"
echo ':test-result: PASS' >"$2/tests/room/good.trs"
echo ':test-result: FAIL exit status: 1' >"$2/tests/room/bad.trs"
echo 'six is not seven' >"$2/tests/room/bad.log"
seq 100
exit 2
END
echo ':test-result: FAIL' >build-check/yesterday.trs
! env DTRAIN_CONFIGURE=--without-cuda ./quickstart check >said 2>&1 || fail "a test failed, and quickstart did not"
tail -n 5 said | tr '\n' '|' | grep -q 'failed: build-check/tests/room/bad|    six is not seven||error: make failed' ||
    fail "the failed test is not told"
! grep -q -e 'room/good' -e yesterday said || fail "what did not fail is told as failed"
cases=$((cases + 1))
echo "$cases cases"
