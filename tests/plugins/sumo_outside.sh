#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Scenarios of SUMO that a third party made act on nothing outside the simulation: they write no file, connect nowhere,
# wait for no connection (docs/explanation/security.md). Skipped where SUMO or the module for it is missing.
set -u

dtrain=$(cd "${DT_BUILDDIR:-.}" && pwd)/dtrain
source=$(cd "${DT_SRCDIR:-.}" && pwd)
[ -e "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ] || { echo "skipped: built without SUMO"; exit 77; }
command -v netconvert >/dev/null || { echo "skipped: no netconvert (Debian: apt-get install sumo)"; exit 77; }
work=$(mktemp -d ./test-sumo-outside-XXXXXX) || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" 2>/dev/null | sed 's/^/    /'
    failed=$((failed + 1))
}

mkdir "$work/theirs" "$work/here" "$work/outside"
cp "$source"/tests/fixtures/sumo/pair.* "$work/theirs"
chmod u+w "$work"/theirs/*
(cd "$work/theirs" && netconvert -n pair.nod.xml -e pair.edg.xml -o pair.net.xml --no-turnarounds --xml-validation never \
    >/dev/null 2>&1) || { echo "FAIL: no net"; exit 1; }

scenario() { # OPTIONS [ADDITIONAL [ROUTES [NET]]]: the elements of a .sumocfg
    echo "<additional>${2:-}</additional>" >"$work/theirs/x.add.xml"
    echo "<configuration><net-file value=\"${4:-pair.net.xml}\"/><route-files value=\"${3:-pair.rou.xml}\"/>
        <additional-files value=\"x.add.xml\"/><begin value=\"100\"/><end value=\"200\"/>$1</configuration>" \
        >"$work/theirs/x.sumocfg"
}
state() { (cd "$work" && find theirs here outside -exec ls -ldi {} + && find theirs -type f -exec cksum {} +); }
play() { # MORE...: the exit code
    (cd "$work/here" && timeout 60 "$dtrain" eval --plugin phase2_ppo --env sumo --set "env_sumo.sumocfg=$work/theirs/x.sumocfg" \
        --set env_sumo.control=program --set models.controller=controller_fixed --set env.timeout_s=20 --seeds 1 \
        --episodes 1 "$@" >"$work/out" 2>"$work/err")
}
harmless() { # NAME [MORE]: it is played, and nothing has changed
    name=$1
    shift
    before=$(state)
    play "$@"
    code=$?
    [ $code -eq 0 ] || fail "$name: exit code $code"
    [ "$before" = "$(state)" ] || fail "$name: files were written: $(state)"
}
rejected() { # NAME CODE WORDS: for a reason, and soon
    before=$(state)
    begin=$(date +%s)
    play
    code=$?
    [ $code -eq "$2" ] || fail "$1: exit code $code, expected $2"
    grep -qF -- "$3" "$work/err" || fail "$1: nothing said about $3"
    [ $(($(date +%s) - begin)) -le 15 ] || fail "$1: it took $(($(date +%s) - begin)) s"
    [ "$before" = "$(state)" ] || fail "$1: files were written"
}

# --- options of the .sumocfg ---
# what the installed SUMO writes to a file, by its own template: all in one scenario
sumo --save-template "$work/template.xml" --save-template.commented >/dev/null 2>&1
outputs=$(sed -n 's/.*<\([a-z][a-zA-Z.-]*\) value="[^"]*".*type="FILE".*/\1/p' "$work/template.xml" |
    grep -E 'output|dump|log|^save-' | grep -vE 'filter-edges|prefix|^save-(conf|temp|sch)|gui')
[ "$(echo "$outputs" | wc -l)" -gt 25 ] || fail "SUMO's template has no outputs"
all=
for name in $outputs; do all="$all<$name value=\"$work/outside/$name.xml\"/>"; done
scenario "$all"
harmless "every output, outside"
grep -q "fcd-output" "$work/err" || fail "outputs are left out without a message"
all=
for name in $outputs; do all="$all<$name>../outside/$name.xml</$name>"; done
scenario "$all"
harmless "every output, .."
scenario '<summary value="a.xml"/><tripinfo value="b.xml"/><ndump v="c.xml"/><l value="d.txt"/><vehroutes value="e.xml"/>'
harmless "outputs by their other names"
scenario '<save-state.times value="150"/><save-state.prefix value="s"/><save-state.period value="20"/><output-prefix value="p_"/>'
harmless "saved states, a prefix"
scenario '<remote-port value="48123"/><num-clients value="2"/><breakpoints value="120"/><start value="true"/>
    <quit-on-end value="true"/><gui-settings-file value="none.xml"/><save-configuration value="c.cfg"/><help value="true"/>'
harmless "other programs, windows, and what ends SUMO"
scenario '<human-readable-time value="true"/><no-warnings value="true"/><tripinfo-output.write-unfinished value="false"/>'
harmless "what dtrain reads"
echo keep >"$work/outside/kept"
ln -s ../outside/kept "$work/theirs/link.xml"
scenario '<summary-output value="link.xml"/><fcd-output value="127.0.0.1:48124"/>'
harmless "a link and a host"
scenario '<mesosim value="true"/>'
rejected mesosim 4 mesosim
scenario '<load-state value="state.xml"/>'
rejected load-state 4 load-state
scenario '<no-such-option value="1"/>'
rejected "an unknown option" 4 no-such-option
scenario '<no-such-output value="x.xml"/>' # as of a later SUMO
harmless "an unknown output"

# --- what the files of a scenario name ---
lane=$(sed -n 's/.*<lane id="\([^:"]*_0\)".*/\1/p' "$work/theirs/pair.net.xml" | head -n 1)
signal=$(sed -n 's/.*<tlLogic id="\([^"]*\)".*/\1/p' "$work/theirs/pair.net.xml" | head -n 1)
o=$work/outside
scenario '' "<e1Detector id=\"1\" lane=\"$lane\" pos=\"10\" freq=\"10\" file=\"$o/e1.xml\"/>
    <e2Detector id=\"2\" lane=\"$lane\" pos=\"1\" length=\"20\" freq=\"10\" file=\"../outside/e2.xml\"/>
    <instantInductionLoop id=\"3\" lane=\"$lane\" pos=\"5\" file=\"e1i.xml\"/>
    <edgeData id=\"4\" file=\"$o/edge.xml\"/><laneData id=\"5\" file=\"link.xml\"/>
    <vTypeProbe id=\"6\" freq=\"10\" file=\"$o/probe.xml\"/><routeProbe id=\"7\" edge=\"${lane%_0}\" freq=\"10\" file=\"$o/r.xml\"/>
    <timedEvent type=\"SaveTLSStates\" source=\"$signal\" dest=\"$o/tls.xml\"/>
    <timedEvent type=\"SaveTLSSwitchTimes\" source=\"$signal\" dest=\"switch.xml\"/>"
harmless "detectors and events"
harmless "detectors and events in a thread of the host" --set env.isolation=thread --set env.instances=1
scenario '<device.ssm.probability value="1"/>'
harmless "devices that write to the current folder"
sed "s|<vType |<vType><param key=\"device.ssm.file\" value=\"$o/ssm.xml\"/><param key=\"has.ssm.device\" value=\"true\"/></vType><vType |;
    s|<routes>|<routes><vType id=\"own\"><param key=\"has.ssm.device\" value=\"true\"/><param key=\"device.ssm.file\" value=\"$o/s.xml\"/></vType>|" \
    "$work/theirs/pair.rou.xml" | sed 's/ type="[^"]*"//; s/<\(flow\|trip\|vehicle\) /<\1 type="own" /' >"$work/theirs/y.rou.xml"
scenario '' '' y.rou.xml
play
[ -z "$(find "$o" -name 's*.xml')" ] || fail "a parameter of a vehicle type had a file written"
sed "s|<tlLogic \(.*\) type=\"static\"\(.*\)>|<tlLogic \1 type=\"actuated\"\2><param key=\"file\" value=\"$o/act.xml\"/>|" \
    "$work/theirs/pair.net.xml" >"$work/theirs/y.net.xml"
scenario '' '' pair.rou.xml y.net.xml
play
[ ! -e "$o/act.xml" ] || fail "a parameter of a signal had a file written"
mkfifo "$work/theirs/pipe.xml"
scenario '' '' pipe.xml
rejected "a pipe for routes" 4 pipe.xml
rm "$work/theirs/pipe.xml"
cat >"$work/theirs/z.rou.xml" <<EOF
<!DOCTYPE routes [<!ENTITY x SYSTEM "http://127.0.0.1:9/x.xml">]>
<routes>&x;</routes>
EOF
scenario '' '' z.rou.xml
before=$(state)
play
[ "$before" = "$(state)" ] || fail "an entity had files written"

# --- a run that a third party made ---
scenario "<summary-output value=\"$o/summary.xml\"/>"
"$dtrain" --plugin phase2_ppo --set env.id=sumo --set "env_sumo.sumocfg=$work/theirs/x.sumocfg" --set env.instances=2 \
    --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=20 --set phase2_ppo.fragment=10 --set data.batch=10 \
    --set evaluation.baselines= --run-dir "$work/run" -q >"$work/out" 2>"$work/err" || fail "no run"
before=$(state)
"$dtrain" eval --checkpoint "$work/run" --seeds 1 --episodes 1 >"$work/out" 2>"$work/err" || fail "a foreign run"
[ "$before" = "$(state)" ] || fail "a foreign run had files written"
for file in "$work/run/config.cfg" "$work"/run/checkpoints/*/config.cfg; do
    sed -i 's|outputs = false|outputs = true|' "$file"
done
"$dtrain" eval --checkpoint "$work/run" --seeds 1 --episodes 1 >"$work/out" 2>"$work/err"
[ $? -eq 3 ] || fail "a foreign run sets outputs"
[ "$before" = "$(state)" ] || fail "a foreign run sets outputs, and files were written"

# --- the user's own word ---
is_xml() { # FILE: it is there, and whole
    [ -s "$1" ] && [ "$(tail -n 1 "$1")" = "$2" ] || fail "$1 is torn: $(tail -n 1 "$1")"
    [ "$(grep -c '<?xml' "$1")" -eq 1 ] || fail "$1 is of several"
}
train_two() { # MORE...
    rm -rf "$work/run2"
    "$dtrain" --plugin phase2_ppo --set env.id=sumo --set "env_sumo.sumocfg=$work/theirs/x.sumocfg" --set env.instances=2 \
        --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=20 --set phase2_ppo.fragment=10 --set data.batch=10 \
        --set evaluation.baselines= --run-dir "$work/run2" -q "$@" >"$work/out" 2>"$work/err" || fail "training: $*"
}
train_two --set "env_sumo.sumo_options=--fcd-output $o/fcd.xml"
is_xml "$o/fcd.xml" "</fcd-export>"
[ ! -e "$o/summary.xml" ] || fail "sumo_options name one file, and another was written, too"
train_two --set env_sumo.outputs=true
is_xml "$o/summary.xml" "</summary>"
play --set "env_sumo.sumo_options=--remote-port=4000"
[ $? -eq 2 ] || fail "--remote-port in sumo_options"

# --- every option of the installed SUMO has a row, if it looks like one that needs one ---
sed -n 's/^SUMO_OPTION("\([^"]*\)".*/\1/p' "$source/plugins/env_sumo/options.def" | tr ' ' '\n' >"$work/rows"
awk '
    NR == FNR { if (sub(/\*$/, "")) family[$0] = 1; else known[$0] = 1; next }
    /<!--/ { text = $0; next }
    match($0, /<[a-z][A-Za-z.-]* value="/) {
        name = substr($0, RSTART + 1, RLENGTH - 9)
        names = name
        if (match($0, /synonymes="[^"]*"/)) names = names " " substr($0, RSTART + 11, RLENGTH - 12)
        needs = /type="FILE"/ || tolower(name " " text) ~ /output|[ .-]log|logged|save|dump|write|record|file|client|traci|remote|gui/
        n = split(names, each, " ")
        for (i = 1; i <= n && needs; i++) {
            found = (each[i] in known)
            for (f in family) found = found || index(each[i], f) == 1
            if (!found) print each[i]
        }
        checked += needs
    }
    END { print checked >"/dev/stderr" }' "$work/rows" "$work/template.xml" >"$work/missing" 2>"$work/checked" || fail "awk"
[ "$(cat "$work/checked")" -gt 100 ] || fail "$(cat "$work/checked") options were compared"
[ ! -s "$work/missing" ] || fail "options.def has no row for: $(tr '\n' ' ' <"$work/missing")"

[ $failed -eq 0 ] && echo "sumo_outside: all as it should be"
exit $failed
