#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the direction of the arrows: every include line of core, phases, models, plugins and include/dtrain is read
# against the table below. With a folder as argument it checks that tree; the test first proves on small wrong trees
# that it does refuse.
set -eu
LC_ALL=C
export LC_ALL

# room: the rooms it may include besides itself. A file belongs to the longest name here that its folder begins with.
# Public headers and libc are open to all.
table='
base:
config: base
config/port: base config
engine/tensor: base
engine/device: base engine/tensor
engine/backend: base engine/tensor engine/device
engine/graph: base engine/tensor engine/device engine/backend
engine/amp: base engine/tensor engine/backend engine/graph
engine/optim: base engine/tensor engine/backend engine/graph
comm: base engine/tensor engine/backend engine/optim
comm/launch: base comm
state/checkpoint: base config engine/tensor
rl/env: base engine/tensor
rl/buffer: base engine/tensor engine/backend rl/env
export: base engine/tensor engine/backend engine/graph state/checkpoint rl/env rl/buffer train plugin/service rl/rollout rl/replay
telemetry/metrics: base config
telemetry/report: base plugin/loader
train: base engine/tensor engine/device engine/backend engine/graph engine/amp engine/optim comm
plugin/loader: base config
plan/machine: base engine/backend engine/device
plugin/service: base config engine/tensor engine/backend engine/graph engine/optim comm telemetry/metrics rl/env rl/buffer train plugin/loader engine/device plan/machine
rl/policy: base plugin/loader plugin/service
rl/rollout: base config engine/graph comm telemetry/metrics rl/env rl/buffer train plugin/service
rl/replay: base config comm state/checkpoint rl/env rl/buffer train plugin/service rl/rollout
rl/offline: base config comm state/checkpoint rl/env rl/buffer train plugin/service rl/rollout rl/replay
rl/evaluate: base config engine/graph comm rl/env rl/buffer train plugin/service rl/rollout
rl/experience: base config comm rl/env rl/buffer train plugin/service rl/policy rl/rollout rl/replay rl/offline rl/evaluate
telemetry/tensorboard: base config telemetry/metrics train plugin/service
state/snapshot: base config engine/tensor engine/backend comm state/checkpoint train plugin/service rl/experience rl/rollout rl/replay
plan: base config engine/backend engine/device comm state/checkpoint train plugin/service rl/env rl/buffer rl/experience rl/rollout rl/replay telemetry/metrics telemetry/report plan/machine
run: base config engine/tensor engine/backend engine/graph engine/device comm comm/launch state/checkpoint state/snapshot rl/env rl/buffer telemetry/metrics telemetry/report train plugin/loader plan plan/machine plugin/service rl/experience rl/rollout rl/replay telemetry/tensorboard
study: base config telemetry/report
embed: base config engine/tensor plugin/loader plugin/service rl/env
plugin/trial: base config engine/tensor engine/graph plan/machine rl/env rl/buffer plugin/loader plugin/service
cli: *
'
# the same of the folders of plugins/traffic
traffic='
text:
features:
map: text features
store: text features map
hdf5: store
inspect: features map store import
import: text features map store hdf5 inspect
export: store hdf5
foresight:
panels:
verbs: store import export inspect roadnet
roadnet: text
'
# foreign headers and the only places that may see them
foreign='
libconfig.h core/config/
ltdl.h core/plugin/loader/
dnnl core/engine/backend/cpu/
zlib.h plugins/traffic/text/source|core/telemetry/metrics/png|plugins/env_traffic/xml
expat.h plugins/traffic/text/xml_reader|plugins/env_traffic/xml
lzma.h plugins/traffic/text/source
zstd.h plugins/traffic/store/blocks
hdf5.h plugins/traffic/hdf5/
yaml.h core/config/port/yaml
mpi.h core/comm/mpi
nccl core/comm/nccl
cuda core/engine/backend/cuda/|core/comm/nccl
cublas core/engine/backend/cuda/
cudnn core/engine/backend/cuda/
'

check() { # tree
    (cd "$1" && find core phases models plugins include/dtrain -type f \
        \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort |
        xargs grep -HnE '^[[:space:]]*#[[:space:]]*include' 2>/dev/null || true) |
    awk -v table="$table" -v traffic="$traffic" -v foreign="$foreign" '
    BEGIN {
        shared_by_phases = " ppo offpolicy constraints scenes common "
        n = split(table, line, "\n")
        for (i = 1; i <= n; i++) {
            if (split(line[i], half, ":") == 2) {
                may[half[1]] = " " half[2] " "
            }
        }
        n = split(traffic, line, "\n")
        for (i = 1; i <= n; i++) {
            if (split(line[i], half, ":") == 2) {
                folder_may[half[1]] = " " half[2] " "
            }
        }
        n_foreign = split(foreign, line, "\n")
        for (i = 1; i <= n_foreign; i++) {
            split(line[i], half, " ")
            lib[i] = half[1]; place[i] = half[2]
        }
    }
    function room_of(path,  k, best) { # of a file below core/
        best = ""
        for (k in may) if (index(path, k "/") == 1 && length(k) > length(best)) best = k
        return best
    }
    function bad(why) { printf "%s: %s: %s\n", where, text, why; n_bad++ }
    {
        split($0, part, ":")
        file = part[1]; where = part[1] ":" part[2]
        text = substr($0, length(where) + 2)
        sub(/^[ \t]*/, "", text)
        name = text
        sub(/^#[ \t]*include[ \t]*/, "", name)
        quoted = substr(name, 1, 1) == "\""
        if (!quoted && substr(name, 1, 1) != "<") {
            next # a macro, as in generated lists
        }
        name = substr(name, 2); sub(/[">].*/, "", name)
        split(file, dir, "/")
        n_part = split(name, to, "/")

        for (i = 1; i <= n_foreign; i++) {
            if (lib[i] != "" && index(name, lib[i]) == 1 && file !~ ("^(" place[i] ")")) {
                bad(lib[i] " belongs to " place[i] " alone")
            }
        }
        if (dir[1] == "core") {
            room = room_of(substr(file, 6))
            goal = room_of(name)
            if (room == "") {
                bad("core/" dir[2] " is not in the table of tests/layers.sh")
            } else if (name == "config.h" || (!quoted && to[1] != "dtrain" && goal == "")) {
                next # the build configuration, the system
            } else if (to[1] == "dtrain") {
                if (room == "base" && name !~ /^dtrain\/(status|random|checked)\.h$/) {
                    bad("base sees dtrain/status.h, random.h and checked.h only")
                }
            } else if (goal == "") {
                bad("write it as \"<room>/<file>\"")
            } else if (goal != room && may[room] !~ /\*/ && index(may[room], " " goal " ") == 0) {
                bad(room " may not look into " goal)
            }
        } else if (dir[1] == "plugins" && dir[2] == "traffic") { # linked into the program
            if (quoted && name != "config.h" && name !~ /^(dtrain|traffic|base|plugin\/loader|telemetry\/report)\//) {
                bad("plugins/traffic may include dtrain/, traffic/, base/, plugin/loader/ and telemetry/report/ alone")
            } else if (to[1] == "traffic" && n_part == 3 && dir[4] != "" && to[2] != dir[3] &&
                       index(folder_may[dir[3]], " " to[2] " ") == 0) {
                bad("traffic/" dir[3] " may not look into traffic/" to[2])
            }
        } else if (dir[1] == "include") {
            if (quoted && to[1] != "dtrain") {
                bad("a public header includes public headers and standard C alone")
            } else if (!quoted && name !~ /^(std[a-z]*|string|math|float|limits|inttypes)\.h$/) {
                bad("a public header includes public headers and standard C alone")
            }
        } else if (dir[1] == "phases" && quoted && n_part == 2 && index(shared_by_phases, " " to[1] " ")) {
            if (index(shared_by_phases, " " dir[2] " ") && to[1] != "common" && to[1] != dir[2]) {
                bad("shared code of phases may include common/ and files of its own folder alone")
            }
        } else if ((quoted && to[1] != "dtrain" && n_part > 1) || room_of(name) != "" || name == "config.h") {
            bad(dir[1] " may include dtrain/ and files of its own folder alone")
        }
    }
    END { exit n_bad > 0 }'
}

# A function that a header of core declares is called by several files; templates of CUDA kernels are defined there.
check_declared() { # tree
    (cd "$1" && find . \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' -o -name '*.cpp' \) ! -path './build*' ! -path './.git/*' \
        -exec awk '
    function count_words(line,  w) {
        while (match(line, /[a-z_][a-z0-9_]*/)) {
            w = substr(line, RSTART, RLENGTH)
            if (index(w, "dt_") == 1 && !((w, FILENAME) in seen)) { seen[w, FILENAME] = 1; print "use " w }
            line = substr(line, RSTART + RLENGTH)
        }
    }
    FILENAME ~ /\.h$/ && FILENAME ~ /^\.\/core\// && FILENAME !~ /backend\/cuda/ && /^[a-z].*[ *]dt_[a-z0-9_]*\(/ &&
        !/^(typedef|static|extern)/ && match($0, /[ *]dt_[a-z0-9_]*\(/) {
        print "declared " substr($0, RSTART + 1, RLENGTH - 2) " " FILENAME ":" FNR
    }
    /dt_/ && (FILENAME !~ /\.h$/ || /^(    |#)/) { count_words($0) }' {} +) | awk '
    $1 == "use" { uses[$2]++ }
    $1 == "declared" { at[$2] = $3 }
    END { for (f in at) if (uses[f] < 2) { print at[f] ": " f ": at most one file calls it; make it static"; n++ } exit n > 0 }'
}

# Core is for any environment and data: words of traffic belong in plugins, except NVML's POWER_BRAKE. Names of files
# of core that still have some; the list may only become shorter. Lanes and signals also have other meanings and are not
# checked.
words_of_traffic="(^|[^[:alnum:]])(vehicles?|sumo|traffic|headways?|ttc|brak(e|es|ing)|junctions?|intersections?|pedestrians?|roads?|\
streets?|cars?)([^[:alnum:]]|\$)"
files_with_words='
cfg_doc.c cli_table.c evaluate.c event_pictures.c event_pictures.h film.c film.h
frames.c frames.h process_scene.c risk.c risk.h
'
check_traffic() { # tree, names of files that may have such words
    (cd "$1" && find core -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) \
        -exec grep -iHE "$words_of_traffic" /dev/null {} + | grep -v POWER_BRAKE | cut -d: -f1 | sort -u) >"$tmp/found" || true
    awk -v list="$2" '
    BEGIN { n = split(list, name); for (i = 1; i <= n; i++) may[name[i]] = 1 }
    { base = $0; sub(/.*\//, "", base); seen[base] = 1 }
    !(base in may) { print $0 ": words of traffic belong in plugins"; n_bad++ }
    END {
        for (base in may) if (!(base in seen)) print base ": no word of traffic is left; drop it from the list in tests/layers.sh"
        exit n_bad > 0
    }' "$tmp/found"
}

if [ $# -gt 0 ]; then
    check "$1"
    check_declared "$1"
    exit
fi

# a tree with this one line must be refused with this text, and accepted without it
tmp=$(mktemp -d ./layers-XXXXXX)
trap 'rm -rf "$tmp"' EXIT
refuse() { # file line text
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/$(dirname "$1")"
    printf '#include <stdio.h>\n#include "dtrain/status.h"\n' >"$tmp/t/$1"
    check "$tmp/t" || { echo "layers: refuses a clean $1"; exit 1; }
    printf '%s\n' "$2" >>"$tmp/t/$1"
    if check "$tmp/t" >"$tmp/out"; then
        echo "layers: does not see '$2' in $1"
        exit 1
    fi
    if ! grep -qF "$1:3: $2" "$tmp/out" || ! grep -qF "$3" "$tmp/out"; then
        echo "layers: '$2' in $1 is refused, but not with '$3':"
        cat "$tmp/out"
        exit 1
    fi
}
refuse core/base/x.c '#include "config/config.h"' 'base may not look into config'
refuse core/base/x.h '#include "dtrain/plugin.h"' 'status.h'
refuse core/engine/graph/x.h '#  include "run/run.h"' 'engine/graph may not look into run'
refuse core/engine/optim/x.c '#include "train/train.h"' 'optim may not look into train'
refuse core/engine/optim/x.c '#include "store.h"' 'write it as'
refuse core/plugin/service/x.c '#include "traffic/store/store.h"' 'write it as'
refuse plugins/traffic/x.c '#include "engine/graph/graph.h"' 'plugins/traffic may include'
refuse plugins/traffic/store/x.c '#include "traffic/import/rows.h"' 'traffic/store may not look into traffic/import'
refuse core/engine/tensor/x.c '#include <engine/backend/backend.h>' 'engine/tensor may not look into engine/backend'
mkdir -p "$tmp/new/core/elsewhere"
echo '#include <stdio.h>' >"$tmp/new/core/elsewhere/x.c"
if check "$tmp/new" >"$tmp/out" || ! grep -q 'core/elsewhere is not in the table' "$tmp/out"; then
    echo "layers: does not see a room that the table lacks"
    exit 1
fi
refuse core/run/x.c '#include <libconfig.h>' 'core/config/'
refuse core/run/x.c '#include <ltdl.h>' 'core/plugin/loader/'
refuse core/engine/graph/x.c '#include <dnnl.h>' 'core/engine/backend/cpu/'
refuse core/engine/backend/cpu/x.c '#include <cuda_runtime.h>' 'core/engine/backend/cuda/'
refuse include/dtrain/x.h '#include "base/str.h"' 'public headers'
refuse include/dtrain/x.h '#include <unistd.h>' 'public headers'
refuse phases/x.c '#include "base/str.h"' 'phases may include'
refuse phases/ppo/x.c '#include "scenes/metrics.h"' 'shared code of phases'
refuse models/m/x.c '#include "../../core/base/str.h"' 'models may include'
refuse plugins/p/x.c '#include <config.h>' 'plugins may include'

# words of traffic in core, and others that look like them
for line in 'int n_vehicles;' '/* Cars brake. */' 'int cart, carry, broad, roadmap; DT_NVML_POWER_BRAKE'; do
    mkdir -p "$tmp/words/core/base"
    printf '%s\n' "$line" >"$tmp/words/core/base/x.c"
    case $line in *cart*) want=0 ;; *) want=1 ;; esac
    code=0
    check_traffic "$tmp/words" '' >"$tmp/out" || code=$?
    [ $code -eq $want ] || { echo "layers: code $code for the words of: $line"; exit 1; }
done
# a function of one file, then of two
mkdir -p "$tmp/own/core/base"
echo 'int dt_x(int a);' >"$tmp/own/core/base/x.h"
echo 'int dt_x(int a)' >"$tmp/own/core/base/x.c"
! check_declared "$tmp/own" >"$tmp/out" || { echo "layers: does not see a function of one file"; exit 1; }
echo '    return dt_x(1);' >"$tmp/own/core/base/y.c"
check_declared "$tmp/own" || { echo "layers: refuses a function of two files"; exit 1; }

check "${DT_SRCDIR:-$(dirname "$0")/..}"
check_declared "${DT_SRCDIR:-$(dirname "$0")/..}"
check_traffic "${DT_SRCDIR:-$(dirname "$0")/..}" "$files_with_words"
