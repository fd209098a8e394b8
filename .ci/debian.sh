#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages of a release, in a folder of their own: built, read by lintian, unpacked beside each other (nothing is
# installed) and used from there. usage: .ci/debian.sh RELEASE FOLDER   (what a tarball holds; replaced)
# Leaves with 77 where the tools of Debian are not there and cannot be installed.
set -eu
cd "$(dirname "$0")/.."
release=$1
folder=$2

has() { command -v "$1" >/dev/null 2>&1; }
ready() { has dpkg-buildpackage && has lintian && dpkg-checkbuilddeps -Pnocheck debian/control 2>/dev/null; }
if ! ready && [ "$(id -u)" -eq 0 ] && has apt-get; then
    wanted=$({ has dpkg-checkbuilddeps || apt-get install -y dpkg-dev >&2; } &&
        dpkg-checkbuilddeps -Pnocheck debian/control 2>&1 | sed -e 's/.*: *//' -e 's/([^)]*)//g' -e 's/debhelper-compat/debhelper/')
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends dpkg-dev lintian $wanted || true
fi
ready || { echo "no debhelper, lintian and what else builds packages here"; exit 77; }

rm -rf "$folder"
mkdir "$folder"
cp -R "$release" "$folder/dtrain"
cp -R debian "$folder/dtrain/debian"
cd "$folder"
unset DTRAIN_PLUGIN_PATH DTRAIN_CONFIG CFLAGS LDFLAGS CC || true
# quickly: nothing below looks at debug information, or at how fast a step is
(cd dtrain && DEB_BUILD_PROFILES=nocheck DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" \
    DEB_CFLAGS_APPEND='-g0 -O1' DEB_CXXFLAGS_APPEND='-g0 -O1' dpkg-buildpackage -us -uc -b)
lintian --fail-on error --info ./*.changes >lintian.txt 2>&1 || { cat lintian.txt; exit 1; }
cat lintian.txt

fail() {
    echo "debian: $*" >&2
    exit 1
}
root=$PWD/root
mkdir "$root"
for package in dtrain dtrain-mpi dtrain-sumo dtrain-dev libdtrain-policy0; do
    test -e "$(echo ${package}_*.deb)" || fail "no package $package"
    dpkg-deb -c ${package}_*.deb | awk '$6 !~ /\/$/ { print $6 }' >$package.files
    dpkg-deb -x ${package}_*.deb "$root"
done
holds() { # PACKAGE PATTERN...
    package=$1
    shift
    for pattern; do
        grep -qx -e "$pattern" $package.files || fail "$package holds no $pattern"
    done
}
lib=./usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
holds dtrain ./usr/bin/dtrain "$lib/dtrain/phase1_world_model.so" "$lib/dtrain/env_traffic.so" \
    ./usr/share/dtrain/hybrid.cfg ./usr/share/dtrain/demo.store/store.json ./usr/share/dtrain/profiles/normal.cfg \
    ./usr/share/man/man1/dtrain.1.gz ./usr/share/zsh/vendor-completions/_dtrain ./usr/share/doc/dtrain/copyright ./usr/share/doc/dtrain/changelog.gz
holds dtrain-mpi "$lib/dtrain/modules/comm_mpi.so"
holds dtrain-sumo "$lib/dtrain/env_sumo.so" "$lib/dtrain/sumo/env_sumo_shim.so"
holds libdtrain-policy0 "$lib/libdtrain-policy.so.0"
holds dtrain-dev ./usr/include/dtrain/plugin.h ./usr/include/dtrain/policy.h "$lib/libdtrain-policy.so" \
    "$lib/pkgconfig/dtrain.pc" "$lib/pkgconfig/dtrain-policy.pc"
sort -- *.files | uniq -d | grep . && fail "these files are in two packages"
cat -- *.files | grep '\.la$' && fail "a package holds files of libtool"
dpkg-deb -f dtrain-sumo_*.deb Depends | grep -q 'sumo (>= [0-9]' || fail "dtrain-sumo does not want sumo"

# the unpacked program: every plugin of its source is found, a step trains; a program builds against the unpacked
# headers
PATH=$root/usr/bin:$PATH
LD_LIBRARY_PATH=$root/$lib
DTRAIN_PLUGIN_PATH=$root/$lib/dtrain
export PATH LD_LIBRARY_PATH DTRAIN_PLUGIN_PATH
dtrain list >list.txt
grep -hoE '(phases|models|plugins)/[a-z0-9_]+\.la' dtrain/*/local.mk dtrain/plugins/*/local.mk |
    sed 's/.*\/\(.*\)\.la/\1/' | sort -u >ids.txt
test "$(wc -l <ids.txt)" -ge 20 || fail "the source names $(wc -l <ids.txt) plugins"
while read -r id; do
    grep -qw "$id" list.txt || fail "dtrain list does not name $id"
done <ids.txt
dtrain run --plugin phase1_world_model --profile "$root/usr/share/dtrain/profiles/test.cfg" --max-steps 1 --threads 1 -q \
    --set data.store="$root/usr/share/dtrain/demo.store" --run-dir run
grep -q '"step"' run/metrics.jsonl || fail "no step was trained"
PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root/$lib/pkgconfig
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
# shellcheck disable=SC2046 # words
cc -o drive "$root/usr/share/doc/dtrain-dev/examples/drive_env_traffic.c" $(pkg-config --cflags --libs dtrain-policy) -ldl
objdump -p drive | grep -q 'NEEDED *libdtrain-policy\.so\.0$' || fail "the library's name is not the package's"
echo "$(find . -maxdepth 1 -name '*.deb' | wc -l) packages, $(grep -c '^W:' lintian.txt || true) warnings of lintian"
