#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make gpu-bundle: a folder with all that measures and tests dtrain on a machine that has a GPU, its driver, CUDA's
# libraries and Python with PyTorch, but no library of ours: programs, modules, shared libraries, data, scripts,
# licences. It has the layout of a build tree, so that everything is found relative to the programs, and can be moved.
# CUDA itself is never part of it. Programs and libraries are checked where nothing but the C library and CUDA's are
# installed. usage: gpu-bundle.sh SOURCE BUILD DESTINATION PROGRAM... -- MODULE...   with CUDA_LIBDIR, CUDA_VERSION,
# GPU_ARCHS, MAX_MIB and VERSION in the environment
set -eu
src=$1 build=$2 to=$3
shift 3
major=${CUDA_VERSION%%.*}

rm -rf "$to"
mkdir -p "$to/lib" "$to/licenses"

fail() {
    echo "gpu-bundle: $*" >&2
    exit 1
}

elf() { # FROM TO: copied without debugging information
    test -f "$1" || fail "$1 is missing: plugins must be shared objects (configure without --enable-force-preopen)"
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2"
    strip --strip-unneeded "$2"
    chmod 755 "$2"
}

# programs; at their usual place are scripts that set the library path for this one program and not for its callers
while [ "$1" != -- ]; do
    folder=$(dirname "$1") name=$(basename "$1")
    real=$build/$1
    test ! -f "$build/$folder/.libs/$name" || real=$build/$folder/.libs/$name
    elf "$real" "$to/$folder/.libs/$name"
    cat >"$to/$1" <<END
#!/bin/sh
. "\$(dirname "\$0")/$(echo "$folder" | sed 's|[^/.][^/]*|..|g')/env.sh"
exec "\$(dirname "\$0")/.libs/$name" "\$@"
END
    chmod 755 "$to/$1"
    shift
done
shift

# modules where libtool leaves them
for module; do
    case $module in
        *.la) so=$(dirname "$module")/.libs/$(basename "$module" .la).so ;;
        *) so=core/engine/backend/cuda/.libs/$(basename "$module") && build_so=$build/$module ;;
    esac
    elf "${build_so:-$build/$so}" "$to/$so"
    build_so=
done
test ! -s "$build/tests/engine/gpu/libcupti_trace.so" ||
    elf "$build/tests/engine/gpu/libcupti_trace.so" "$to/tests/engine/gpu/libcupti_trace.so"

# shared libraries in addition to the C library's and CUDA's; the package they came from has their licence
is_of_c() { # NAME of a library
    case $1 in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libutil.so.*) return 0 ;;
    esac
    return 1
}
libraries() { # PROGRAM...: lines NAME PATH
    for f; do
        LD_LIBRARY_PATH=$CUDA_LIBDIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ldd "$f" 2>/dev/null
    done | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 } $1 ~ /^\/.*ld-linux/ { print "ld-linux", $1 }' | sort -u
}
elves=$(find "$to" -type f \( -path '*/.libs/*' -o -name '*.so' \))
# shellcheck disable=SC2086
libraries $elves | while read -r name path; do
    is_of_c "$name" && continue
    case $name in
        libcu* | libnccl* | libnv*) continue ;;
    esac
    elf "$(readlink -f "$path")" "$to/lib/$name"
    real=$(readlink -f "$path") # packages name files as before /lib became /usr/lib, or as after
    package=$( (dpkg -S "$real" || dpkg -S "${real#/usr}") 2>/dev/null | head -n 1 | cut -d : -f 1) || package=
    if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
        cp -L "/usr/share/doc/$package/copyright" "$to/licenses/$package"
    fi
done
# Debian's expat takes random numbers from arc4random_buf, which the C library has since 2.36; nothing else here needs
# more than 2.35 (Ubuntu 22.04). So expat is linked once more, from its static library, with a function of that name.
if objdump -T "$to/lib/libexpat.so.1" 2>/dev/null | grep -q 'GLIBC_2.36.*arc4random_buf'; then
    cat >"$to/random.c" <<'END'
#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>
void arc4random_buf(void *p, size_t n)
{
    for (char *c = p; n > 0;) {
        const ssize_t k = getrandom(c, n, 0);
        c += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
}
END
    if ${CC:-cc} -O2 -fPIC -shared -o "$to/random.so" -Wl,-soname,libexpat.so.1 "$to/random.c" \
        -Wl,--whole-archive -l:libexpat.a -Wl,--no-whole-archive; then
        elf "$to/random.so" "$to/lib/libexpat.so.1"
    else
        echo "gpu-bundle: no static libexpat here, so the bundle needs glibc 2.36" >&2
    fi
    rm -f "$to/random.c" "$to/random.so"
fi
cp "$src/LICENSE" "$to/licenses/dtrain"

# data, profiles, scripts
mkdir -p "$to/share" "$to/tests/engine/device" "$to/tests/engine/gpu" "$to/bench"
cp -R "$build/share/demo.store" "$to/share/"
cp -R "$src/profiles" "$to/profiles"
cp "$src/tests/engine/device/run.sh" "$to/tests/engine/device/"
cp "$src/tests/engine/gpu/measure.sh" "$src/tests/engine/gpu/trace_report.py" "$to/tests/engine/gpu/"
cp -R "$src/bench/phase1_step" "$src/bench/gpu" "$src/bench/common.py" "$to/bench/"
find "$to" \( -name local.mk -o -name driver.c -o -name __pycache__ \) -prune -exec rm -rf {} +
commit=$(git -C "$src" describe --always --dirty --abbrev=12 2>/dev/null || echo "no git repository")
echo "dtrain $VERSION ($commit), CUDA $CUDA_VERSION, code for sm_$(echo "$GPU_ARCHS" | sed 's/ / sm_/g')" >"$to/VERSION"

cat >"$to/env.sh" <<END
# Sourced by the scripts around the programs of this folder: where CUDA's libraries are, for that program alone.
# Toolkits come first, then the packages that PyTorch needs (nvidia/*/lib). DT_CUDA_PATH: folders that were found
# before.
bundle=\$(cd "\$(dirname "\$0")" && while [ ! -e env.sh ]; do cd ..; done && pwd)
if [ -z "\${DT_CUDA_PATH:-}" ]; then
    DT_CUDA_PATH=
    folders=\$(python3 -c 'import glob, sys
for p in sys.path:
    print("\n".join(glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null || true)
    for file in libcublasLt.so.$major libcudart.so.$major libnccl.so.2 libcupti.so.$major; do
        for d in /usr/local/cuda/lib64 /usr/local/cuda-$major*/lib64 /usr/local/cuda*/targets/*/lib \\
            /usr/local/cuda*/extras/CUPTI/lib64 \$folders; do
            if [ -e "\$d/\$file" ]; then
                case :\$DT_CUDA_PATH: in
                    *":\$d:"*) ;;
                    *) DT_CUDA_PATH=\${DT_CUDA_PATH:+\$DT_CUDA_PATH:}\$d ;;
                esac
                break
            fi
        done
    done
    export DT_CUDA_PATH
fi
LD_LIBRARY_PATH=\$bundle/lib\${DT_CUDA_PATH:+:\$DT_CUDA_PATH}\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
DT_BUILDDIR=\$bundle DT_SRCDIR=\$bundle
export LD_LIBRARY_PATH DT_BUILDDIR DT_SRCDIR
END
cat >"$to/measure.sh" <<'END'
#!/bin/sh
bundle=$(cd "$(dirname "$0")" && pwd)
chmod -R u+x "$bundle" 2>/dev/null # a copy may have lost these bits
test -x "$bundle/dtrain" && test -x "$bundle/.libs/dtrain" || {
    echo "measure.sh: programs in $bundle cannot be executed (read-only, or mounted noexec): copy the folder elsewhere" >&2
    exit 2
}
. "$bundle/env.sh"
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#"$bundle/lib"} # of our programs alone: Python has libraries of its own
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#":$DT_CUDA_PATH"}
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
test -n "$LD_LIBRARY_PATH" || unset LD_LIBRARY_PATH
exec sh "$bundle/tests/engine/gpu/measure.sh" "$@"
END
chmod 755 "$to/measure.sh" "$to/tests/engine/device/run.sh" "$to/tests/engine/gpu/measure.sh"

glibc=$(find "$to" -type f -perm -100 -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
cat >"$to/README" <<END
$(cat "$to/VERSION")

For NVIDIA GPUs, in a folder that can be moved:

  sh measure.sh                  all tests and measurements, at most 560 s; results in \$OUT (default: gpu-results)
  sh measure.sh STAGE...         single stages; sh measure.sh --list prints them
  sh measure.sh doctor           what this machine has, and what is missing
  ./dtrain --plugin phase1_world_model --device cuda

measure.sh restores bits that make files executable where a copy has lost them; before ./dtrain, run it once.

Needs: Linux on $(uname -m), ${glibc:-glibc of the machine it was built on} or later, an NVIDIA driver, the libraries
of CUDA $major (libcudart, libcublasLt: a toolkit, or those that PyTorch brings). Licences are in licenses/.
END

# checked where nothing is installed but the C library and what the CUDA module needs of CUDA
root=$(mktemp -d "$(dirname "$to")/gpu-bundle-root-XXXXXX")
trap 'rm -rf "$root"' EXIT INT TERM
mkdir -p "$root/proc" "$root/tmp" "$root/cuda"
cp -R "$to" "$root/bundle"
# shellcheck disable=SC2086
libraries $elves | while read -r name path; do
    case $name in
        libcu*) ln "$(readlink -f "$path")" "$root/cuda/$name" 2>/dev/null || cp -L "$path" "$root/cuda/$name" ;;
        *) ! is_of_c "$name" || { mkdir -p "$root$(dirname "$path")" && cp -L "$path" "$root$path"; } ;;
    esac
done
# shellcheck disable=SC2016 # of the inner shell
alone='mount --rbind /proc "$0/proc" && exec env -i DT_CHECK_GPU=1 LD_LIBRARY_PATH=/bundle/lib:/cuda "$(PATH=$PATH:/usr/sbin command -v chroot)" "$0" "$@"'
for names in -m -rm; do
    if unshare $names sh -c "$alone" "$root" /bundle/.libs/dtrain --version >/dev/null 2>&1; then
        way="in a root folder with the C library and CUDA alone"
        inside() { unshare $names sh -c "$alone" "$root" "$@"; }
        top=
        break
    fi
done
if [ -z "${way:-}" ]; then
    way="NOT in a root folder of its own (unshare and chroot are not permitted here), with an empty environment instead"
    top=$root
    inside() { env -i DT_CHECK_GPU=1 LD_LIBRARY_PATH="$root/bundle/lib:$root/cuda" "$@"; }
fi
inside "$top/bundle/.libs/dtrain" --plugin phase1_world_model --device cpu --max-steps 2 --set data.batch=16 --threads 2 \
    --run-dir "$top/tmp/run" -q || fail "training on the CPU ended with code $?, $way"
code=0
said=$(inside "$top/bundle/.libs/dtrain" --plugin phase1_world_model --device cuda --dry-run -q 2>&1) || code=$?
case $code:$said in
    0:* | 5:*driver*) ;;
    *) fail "the CUDA module does not load, $way: $said" ;;
esac
for f in "$to"/tests/engine/cuda/.libs/test_*; do
    said=$(inside "$top/bundle/${f#"$to/"}" 2>&1) || true # skips: there is no driver here
    case $said in
        *"no module for"*) fail "${f##*/} does not find the CUDA module: $said" ;;
    esac
done
ld=$(libraries "$to/.libs/dtrain" | sed -n 's/^ld-linux //p')
for f in $elves; do
    missing=$(inside "$ld" --list "$top/bundle/${f#"$to/"}" | grep 'not found') || continue
    fail "$f does not load, $way: $missing"
done

kib=$(du -sk "$to" | cut -f 1)
if [ "$kib" -gt $((MAX_MIB * 1024)) ]; then
    du -ak "$to" | sort -rn | head -n 12 >&2
    fail "$((kib / 1024)) MiB, more than $MAX_MIB (make gpu-bundle GPU_BUNDLE_MAX_MIB=...)"
fi
echo "$to: $((kib / 1024)) MiB, needs ${glibc:-?} and CUDA $major; trained on the CPU and loaded $way"
