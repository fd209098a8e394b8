#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make gpu-bundle: a folder with all that `check-gpu` and `bench-gpu` need on a machine that has a driver, CUDA and
# Python with PyTorch but none of our libraries: program, modules, shared libraries, tests, benches, data, licences. It
# is laid out like a build tree, so that everything finds everything by where it lies, and can be moved anywhere. CUDA
# itself is never in it. usage: gpu-bundle.sh SOURCE BUILD DESTINATION CUDA-VERSION PROGRAM... -- MODULE...
set -eu
src=$1 build=$2 to=$3 cuda=$4
shift 4

rm -rf "$to"
mkdir -p "$to/.libs" "$to/lib" "$to/licenses"

elf() { # FROM TO: copied without what only debuggers want
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2"
    strip --strip-unneeded "$2" 2>/dev/null || true
    chmod 755 "$2"
}

# programs, then modules where libtool leaves them
while [ "$1" != -- ]; do
    real=$build/$1
    test -f "$build/$(dirname "$1")/.libs/$(basename "$1")" && real=$build/$(dirname "$1")/.libs/$(basename "$1")
    case $1 in
        dtrain) elf "$real" "$to/.libs/dtrain" ;;
        *) elf "$real" "$to/$1" ;;
    esac
    shift
done
shift
for la; do
    so=$(dirname "$la")/.libs/$(basename "$la" .la).so
    elf "$build/$so" "$to/$so"
done

# shared libraries beside the C library's and CUDA's; where they came from says their licence
find "$to" -type f -perm -100 | while read -r f; do
    ldd "$f" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
    case $name in
        ld-linux* | libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.*) continue ;;
        libcuda* | libcublas* | libcudnn* | libnccl* | libnv*) continue ;;
    esac
    cp -L "$path" "$to/lib/$name"
    chmod 755 "$to/lib/$name"
    real=$(readlink -f "$path") # packages name files as before /lib became /usr/lib, or as after
    package=$( (dpkg -S "$real" || dpkg -S "${real#/usr}") 2>/dev/null | head -n 1 | cut -d : -f 1) || package=
    if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
        cp -L "/usr/share/doc/$package/copyright" "$to/licenses/$package"
    fi
done
cp "$src/LICENSE" "$to/licenses/dtrain"

# data, profiles, scripts
mkdir -p "$to/share" "$to/tests/device" "$to/bench"
cp -R "$build/share/demo.store" "$to/share/"
cp -R "$src/profiles" "$to/profiles"
cp "$src/tests/device/run.sh" "$to/tests/device/"
cp "$src/tests/check_gpu.sh" "$src/tests/gpu_trace.awk" "$to/tests/"
cp -R "$src/bench/phase1_step" "$src/bench/gpu" "$to/bench/"
rm -f "$to/bench/phase1_step/driver.c"
find "$to" -name local.mk -exec rm -f {} +

cat >"$to/env.sh" <<END
# sourced: where the libraries are; CUDA $cuda is looked for beside PyTorch too
here=\$(cd "\$(dirname "\$0")" && pwd)
dirs=\$here/lib
for d in /usr/local/cuda/lib64 /usr/local/cuda-${cuda%%.*}*/lib64 /usr/local/cuda*/targets/*/lib \\
    \$(python3 -c 'import site, glob
for s in site.getsitepackages() + [site.getusersitepackages()]:
    print("\n".join(glob.glob(s + "/nvidia/*/lib")))' 2>/dev/null); do
    if [ -e "\$d/libcudart.so.${cuda%%.*}" ] || [ -e "\$d/libcublasLt.so.${cuda%%.*}" ]; then
        dirs=\$dirs:\$d
    fi
done
LD_LIBRARY_PATH=\$dirs\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
DT_BUILDDIR=\$here DT_SRCDIR=\$here
export LD_LIBRARY_PATH DT_BUILDDIR DT_SRCDIR
END
cat >"$to/dtrain" <<'END'
#!/bin/sh
. "$(dirname "$0")/env.sh"
exec "$here/.libs/dtrain" "$@"
END
cat >"$to/check-gpu" <<'END'
#!/bin/sh
. "$(dirname "$0")/env.sh"
cd "$here" && exec sh tests/check_gpu.sh "$@"
END
cat >"$to/bench-gpu" <<'END'
#!/bin/sh
. "$(dirname "$0")/env.sh"
exec python3 "$here/bench/gpu/peer.py" --driver "$here/bench_phase1_step" "$@"
END
chmod 755 "$to/dtrain" "$to/check-gpu" "$to/bench-gpu" "$to/tests/device/run.sh" "$to/tests/check_gpu.sh"

glibc=$(find "$to" -type f -perm -100 -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
kib=$(du -sk "$to" | cut -f 1)
cat >"$to/README" <<END
dtrain for NVIDIA GPUs, in a folder that can be moved.

  ./dtrain doctor                what this machine has, and what is missing
  ./check-gpu                    tests on the GPU; the last line counts them
  ./bench-gpu                    against PyTorch, in one run
  ./dtrain --plugin phase1_world_model --device cuda

Needs: Linux on $(uname -m), ${glibc:-glibc of the machine it was built on} or later, an NVIDIA driver, the libraries
of CUDA ${cuda%%.*} (libcudart, libcublasLt: a toolkit, or those that PyTorch brings). Licences are in licenses/.
END
echo "$to: $((kib / 1024)) MiB, needs ${glibc:-?} and CUDA ${cuda%%.*}"
if [ "$kib" -gt 61440 ]; then
    echo "gpu-bundle: more than 60 MB" >&2
    exit 1
fi
