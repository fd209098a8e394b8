#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A CUDA toolkit of a release, as far as the GPU module wants one, made of packages: compiler, headers, libcudart and
# libcublasLt. PyPI has all of it for 13; of 11 and 12 it has everything but nvcc itself, which Debian packages
# (non-free) for some releases. The last line of what it prints is the folder, in which configure --with-cuda finds what
# it wants. Ends with 77 and the reason when packages cannot be had.
# usage: toolkit.sh RELEASE FOLDER        FOLDER/RELEASE is made when it is missing; nothing else is written
set -u
release=$1
top=$2/$1

# What makes a release: packages of PyPI, and where nvcc is from: a suite of Debian and the upstream version there. 12.0
# and 12.9 have a neighbour's compiler: headers and libraries are theirs.
case $release in
    11.8) suite=bookworm nvcc=11.8.89
        packages='nvidia-cuda-nvcc-cu11==11.8.89 nvidia-cuda-runtime-cu11==11.8.89 nvidia-cublas-cu11==11.11.3.6
            nvidia-cuda-cccl-cu11==11.8.89.post1' ;;
    12.0) suite=trixie nvcc=12.4.131
        packages='nvidia-cuda-nvcc-cu12==12.4.131 nvidia-cuda-runtime-cu12==12.0.146 nvidia-cublas-cu12==12.0.2.224
            nvidia-cuda-cccl-cu12==12.4.127.post1' ;;
    12.4) suite=trixie nvcc=12.4.131
        packages='nvidia-cuda-nvcc-cu12==12.4.131 nvidia-cuda-runtime-cu12==12.4.127 nvidia-cublas-cu12==12.4.5.8
            nvidia-cuda-cccl-cu12==12.4.127.post1' ;;
    12.5) suite=experimental nvcc=12.5.40
        packages='nvidia-cuda-nvcc-cu12==12.5.40 nvidia-cuda-runtime-cu12==12.5.39 nvidia-cublas-cu12==12.5.2.13
            nvidia-cuda-cccl-cu12==12.5.39.post1' ;;
    12.9) suite=experimental nvcc=12.5.40
        packages='nvidia-cuda-nvcc-cu12==12.5.40 nvidia-cuda-runtime-cu12==12.9.79 nvidia-cublas-cu12==12.9.1.4
            nvidia-cuda-cccl-cu12==12.9.27' ;;
    13.0) suite=
        packages='nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96
            nvidia-cublas==13.1.0.3 nvidia-cuda-cccl==13.0.85' ;;
    13.5) suite=
        packages='nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
            nvidia-cublas==13.10.0.20 nvidia-cuda-cccl==13.3.5.0.6' ;;
    *) echo "toolkit.sh: CUDA $release is none of 11.8 12.0 12.4 12.5 12.9 13.0 13.5"; exit 2 ;;
esac

skip() {
    echo "$*"
    exit 77
}

if [ -e "$top/complete" ]; then
    echo "$top"
    exit 0
fi
rm -rf "$top.part"
mkdir -p "$top.part" || exit 1
cd "$top.part" || exit 1
trap 'rm -rf "$top.part"' EXIT
trap 'exit 1' INT TERM

# from PyPI: everything lies below nvidia/cu13, or below nvidia/<package> before 13
python3 -m pip --version >/dev/null 2>&1 || skip "no pip here (python3 -m pip), which gets CUDA $release from PyPI"
# shellcheck disable=SC2086 # a list
python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-cache-dir --only-binary=:all: --target pypi \
    $packages 2>pip.log || skip "CUDA $release cannot be had from PyPI: $(grep -v '^ *$' pip.log | tail -n 1)"
mkdir -p bin include lib nvvm
for part in pypi/nvidia/*/; do
    for kind in bin include lib nvvm; do
        test ! -d "$part$kind" || cp -Rlf "$part$kind/." "$kind/" || exit 1
    done
done
rm -rf pypi lib/libcublas.so* lib/libnvblas* lib/*.a
ln -s lib lib64
for library in cudart cublasLt; do
    for file in lib/lib"$library".so.*; do
        ln -sf "${file#lib/}" "lib/lib$library.so"
    done
done

# from Debian: the compiler, by an apt that knows nothing but this suite and keeps to this folder
if [ -n "$suite" ]; then
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && test -r $keys ||
        skip "no apt-get with Debian's keys here, which gets nvcc $nvcc of CUDA $release"
    # the mirror that this machine has Debian from
    # shellcheck disable=SC2016 # apt expands it
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }')
    test -n "$mirror" || skip "apt knows no mirror of Debian here; apt-get update finds it"
    mkdir -p apt/lists/partial apt/cache/archives/partial
    echo "deb [signed-by=$keys] $mirror $suite non-free" >apt/sources.list
    cat >apt/conf <<END
Dir::Etc::sourcelist "$PWD/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$PWD/apt/lists";
Dir::Cache "$PWD/apt/cache";
Acquire::Languages "none";
APT::Sandbox::User "";
END
    APT_CONFIG=$PWD/apt/conf
    export APT_CONFIG
    apt-get update >apt.log 2>&1
    package=$(apt-cache madison nvidia-cuda-toolkit 2>>apt.log |
        awk -v v="$nvcc" '{ if (index($3, v "~") == 1) print $1 "=" $3 }' | head -n 1)
    test -n "$package" || skip "nvcc $nvcc of CUDA $release cannot be had from Debian $suite: $(tail -n 1 apt.log)"
    apt-get download "$package" >>apt.log 2>&1 || skip "$package cannot be had: $(tail -n 1 apt.log)"
    dpkg-deb -x nvidia-cuda-toolkit_*.deb deb || exit 1
    # laid out as NVIDIA does, with paths from where nvcc lies
    mkdir -p nvvm/bin
    at=deb/usr
    cp $at/lib/nvidia-cuda-toolkit/bin/nvcc $at/bin/cudafe++ $at/bin/fatbinary $at/bin/ptxas $at/bin/nvlink bin/ &&
        cp $at/lib/nvidia-cuda-toolkit/bin/cicc nvvm/bin/ || exit 1
    cat >bin/nvcc.profile <<'END'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib:
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"
END
    rm -rf apt deb ./*.deb
fi
chmod 755 bin/* nvvm/bin/* || exit 1
"$top.part/bin/nvcc" --version >nvcc.log 2>&1 || {
    cat nvcc.log
    exit 1
}
test -e lib/libcudart.so && test -e lib/libcublasLt.so && test -e include/cublasLt.h || {
    echo "CUDA $release: its packages are not laid out as they were"
    exit 1
}
: >complete
cd / && rm -rf "$top" && mv "$top.part" "$top" && echo "$top"
