#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Dockerfile without a container engine: stages and paths that it copies exist, .dockerignore keeps what the build
# needs, packages exist in Debian 12, both bases install the same ones, those of quickstart among them, and the run-time
# image has every library that the programs of this build need.
set -eu
src=${DT_SRCDIR:-.}
fail() { echo "FAIL: $*"; exit 1; }
work=$(mktemp -d "$PWD/test-docker-XXXXXX")
trap 'rm -rf "$work"' EXIT
sed -e :a -e '/\\$/N; s/\\\n//; ta' "$src/Dockerfile" | grep -v '^#' >"$work/lines"

# --- stages and paths ---
sed -n 's/^FROM .* AS //p' "$work/lines" >"$work/stages"
[ "$(tr '\n' ' ' <"$work/stages")" = "cpu-build cpu cuda-build cuda " ] || fail "stages: $(cat "$work/stages")"
sed -n 's/^COPY --from=\([^ ]*\) .*/\1/p' "$work/lines" | while read -r stage; do
    grep -qx -e "$stage" "$work/stages" || fail "COPY from $stage, which is no stage"
done
sed -n 's/^COPY \([^-][^ ]*\) .*/\1/p' "$work/lines" | while read -r path; do
    [ -e "$src/$path" ] || fail "COPY of $path, which does not exist"
done
for need in bootstrap configure.ac Makefile.am LICENSE README.md core docs include m4 models phases plugins profiles share tests; do
    [ -e "$src/$need" ] || fail "$need does not exist"
    ! grep -qxF -e "$need" -e "**/$need" "$src/.dockerignore" || fail ".dockerignore excludes $need"
done
grep -vE '^#|\*' "$src/.dockerignore" | while read -r path; do # in a clone nothing that git keeps is left out, but these
    case $path in .git | .gitignore | debian) continue ;; esac
    [ ! -d "$src/.git" ] || [ -z "$(git -C "$src" ls-files -- "$path")" ] || fail ".dockerignore excludes $path"
done

# --- packages ---
packages() { # the n-th installation
    grep 'apt-get install' "$work/lines" | sed -n "$1p" | sed 's/.*--no-install-recommends//; s/&&.*//' | tr -s ' ' '\n' | sed '/^$/d'
}
for n in 1 2 3 4; do packages $n >"$work/packages.$n"; done
cmp "$work/packages.1" "$work/packages.3" && cmp "$work/packages.2" "$work/packages.4" || fail "the two bases differ"
sed -n "/^program cc gcc/,/^END/s/^\(program\|header\|module\) [^ ]* //p" "$src/quickstart" | while read -r package; do
    grep -qx -e "$package" "$work/packages.1" || fail "quickstart needs $package, the image lacks it"
done
if grep -qs 'VERSION_CODENAME=bookworm' /etc/os-release && command -v apt-cache >/dev/null; then
    cat "$work/packages.1" "$work/packages.2" | xargs apt-cache show 2>/dev/null | sed -n 's/^Package: //p' | sort -u >"$work/known"
    [ ! -s "$work/known" ] || sort -u "$work/packages.1" "$work/packages.2" | comm -23 - "$work/known" >"$work/unknown"
    [ ! -s "$work/unknown" ] || fail "Debian 12 has no package $(cat "$work/unknown")"

    # libraries of the program and its modules come from the packages of the image, what they depend on, or its base
    find "${DT_BUILDDIR:-.}" \( -path '*/.libs/dtrain' -o -name dtrain -o -name comm_mpi.so -o -name data_hdf5.so \) -type f \
        -exec ldd {} \; 2>/dev/null | sed -n 's/^[[:space:]]*lib[^ ]*\.so[^ ]* => \(\/[^ ]*\).*/\1/p' | sort -u >"$work/libraries"
    while read -r library; do
        readlink -f "$library"
        readlink -f "$library" | sed 's|^/usr/lib|/lib|'
    done <"$work/libraries" | xargs dpkg -S 2>/dev/null | sed 's/:.*//' | sort -u >"$work/needed"
    {
        echo libgcc-s1
        xargs apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
            --no-enhances <"$work/packages.2" | grep '^[a-z]'
    } | sort -u | comm -13 - "$work/needed" | grep -vE '^lib(asan|ubsan|tsan)' >"$work/missing" || true
    [ ! -s "$work/missing" ] || fail "the image lacks $(cat "$work/missing")"
fi
echo "the Dockerfile is consistent"
