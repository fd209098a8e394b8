#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several machines: two network namespaces with names, processes and addresses of their own, joined by a wire. 2 x 2
# processes end in the bits of one; a process that is killed on the other machine, and a wire that is cut, are named and
# end within their time. Takes half a minute; `make check-hosts`. DT_HOSTS_BY=ssh: the other machine runs an sshd with
# keys of its own, and is reached by ssh (make check-ssh); else by a script.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy
for tool in ip unshare nsenter; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here (Debian: apt-get install iproute2 util-linux)"; exit 77; }
done
by=${DT_HOSTS_BY:-script}
sshd=/usr/sbin/sshd
if [ "$by" = ssh ] && ! { [ -x $sshd ] && command -v ssh >/dev/null && command -v ssh-keygen >/dev/null; }; then
    echo "skipped: no sshd here (Debian: apt-get install openssh-server openssh-client)"
    exit 77
fi
id=$$
a=dta$id b=dtb$id
if ! said=$(ip netns add $a 2>&1 && ip netns add $b 2>&1 && ip link add va$id type veth peer name vb$id 2>&1); then
    ip netns del $a 2>/dev/null
    ip netns del $b 2>/dev/null
    echo "skipped: no network namespaces here (they want root): $said"
    exit 77
fi
name=hosts
. "$DT_SRCDIR/tests/run/job.inc"
dtrain=$(cd "$DT_BUILDDIR" && pwd)/dtrain
work=$(cd "$work" && pwd)
clear_away() {
    for ns in $a $b; do
        for pid in $(ip netns pids $ns); do
            kill -KILL "$pid"
        done
        ip netns del $ns
    done
    rm -rf "$work"
}
trap clear_away EXIT
trap 'exit 1' INT TERM

ip link set va$id netns $a && ip link set vb$id netns $b || exit 1
ip -n $a addr add 10.77.0.1/24 dev va$id
ip -n $b addr add 10.77.0.2/24 dev vb$id
for ns in $a $b; do
    ip -n $ns link set lo up
done
ip -n $a link set va$id up
ip -n $b link set vb$id up
printf '127.0.0.1 localhost\n10.77.0.1 node-a\n10.77.0.2 node-b\n' >"$work/hosts"

# on NAMESPACE NAME COMMAND...: with the machine's own name, hosts, temporary folder and processes
cat >"$work/on" <<'END_ON'
#!/bin/sh
ns=$1 name=$2 work=$3
shift 3
mkdir -p "$work/tmp-$name"
exec ip netns exec "$ns" unshare --uts --mount --pid --fork --kill-child --mount-proc sh -c '
    hostname "$0" && mount --bind "$1/hosts" /etc/hosts && export TMPDIR="$1/tmp-$0" && shift && exec "$@"' "$name" "$work" "$@"
END_ON
cat >"$work/agent" <<END_AGENT
#!/bin/sh
name=\$1
shift
exec "$work/on" $b "\$name" "$work" sh -c "\$*"
END_AGENT
chmod +x "$work/on" "$work/agent"
if [ "$by" = ssh ]; then
    mkdir -m 700 "$work/ssh"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host" && ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user" || exit 1
    cat >"$work/ssh/sshd_config" <<END
Port 2222
ListenAddress 10.77.0.2
HostKey $work/ssh/host
PidFile none
AuthorizedKeysFile $work/ssh/user.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
END
    # /run/sshd, which sshd wants, is seen there alone
    "$work/on" $b node-b "$work" sh -c "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd &&
        exec $sshd -D -e -f '$work/ssh/sshd_config'" >"$work/sshd.log" 2>&1 &
    echo "[node-b]:2222 $(cat "$work/ssh/host.pub")" >"$work/ssh/known"
    cat >"$work/agent" <<END_SSH
#!/bin/sh
exec ssh -p 2222 -i "$work/ssh/user" -o UserKnownHostsFile="$work/ssh/known" -o BatchMode=yes "\$@"
END_SSH
    tries=0
    until said=$("$work/on" $a node-a "$work" "$work/agent" node-b true 2>&1) || [ $tries -gt 50 ]; do
        sleep 0.2
        tries=$((tries + 1))
    done
    if [ $tries -gt 50 ]; then
        echo "skipped: sshd does not start here: $said; $(tail -n 3 "$work/sshd.log")"
        exit 77
    fi
fi
printf 'node-a slots=2\nnode-b slots=2\n' >"$work/machines"
job <<'END'
phase2_ppo = { train_batch = 40; fragment = 8; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 5; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 3; }; } );
END

OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_btl=tcp,vader,self OMPI_MCA_plm_rsh_no_tree_spawn=1
OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
OMPI_MCA_orte_leave_session_attached=1 # what stays behind its starter would end with the namespace of processes
export OMPI_MCA_plm OMPI_MCA_plm_rsh_agent OMPI_MCA_btl OMPI_MCA_plm_rsh_no_tree_spawn OMPI_MCA_btl_tcp_if_include
export OMPI_MCA_oob_tcp_if_include OMPI_MCA_orte_leave_session_attached
# spread DIR [options]: four processes on the two machines
spread() {
    dir=$1
    shift
    timeout -k 5 45 "$work/on" $a node-a "$work" "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$dir" -q \
        --nproc 4 --hostfile "$work/machines" "$@" >"$work/out" 2>"$work/err"
}
on_b() { # processes of dtrain on the other machine
    for pid in $(ip netns pids $b); do
        [ "$(tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | head -n 1)" = "$dtrain" ] && echo "$pid"
    done
}
nobody_left() {
    tries=0
    while [ -n "$(on_b)" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    cases=$((cases + 1))
    [ $tries -lt 100 ] || fail "$1: processes are left on the other machine: $(on_b | tr '\n' ' ')"
}

# --- the same bits ---
train 0 whole
cases=$((cases + 1))
spread two
code=$?
[ $code -eq 0 ] || fail "two machines: code $code"
same two "two machines"
nobody_left "two machines"

# --- a process of the other machine is killed: the run goes on by itself ---
long="--set phase2_ppo.train_batch=2000 --set env_traffic.episode_s=600 --set phases.1.stop.iterations=100000"
spread killed --max-restarts 1 --set checkpoint.every_steps=1 &
job=$!
await "$work/killed/checkpoints"
begin=$(date +%s%N)
victim=$(on_b | tail -n 1)
cases=$((cases + 1))
[ -n "$victim" ] && kill -KILL "$victim" || fail "nobody is there to be killed"
wait $job
code=$?
echo "a process of the other machine was killed: code $code, $((($(date +%s%N) - begin) / 1000000)) ms later"
cases=$((cases + 1))
[ $code -eq 0 ] && grep -q "restart 1 of 1" "$work/err" || fail "killed: code $code"
same killed "a process of the other machine was killed"
nobody_left "killed"

# --- the wire is cut: mpirun misses the machine, or the ranks that wait for its ranks do ---
cut() { # DIR MOST_S TEXT [options]
    dir=$1 most=$2 text=$3
    shift 3
    # shellcheck disable=SC2086 # options
    spread "$dir" --max-restarts 0 "$@" $long &
    job=$!
    await "$work/$dir/checkpoints/step-000000000005"
    sleep 1
    begin=$(date +%s)
    ip -n $a link set va$id down
    wait $job
    code=$?
    took=$(($(date +%s) - begin))
    ip -n $a link set va$id up
    echo "the wire was cut ($*): code $code after $took s"
    cases=$((cases + 1))
    [ $code -eq 6 ] && [ $took -le "$most" ] || fail "the wire was cut ($*): code $code after $took s, expected 6 within $most"
    cases=$((cases + 1))
    grep -q "$text" "$work/err" || fail "the wire was cut ($*): who is missing is not named"
    nobody_left "$dir"
}
cut cut 40 "waiting for rank 2 (process" --set comm.timeout_s=3
cut missed 30 "^error machine node-b is gone, or cannot be reached any more"

if [ "$by" = ssh ]; then
    cases=$((cases + 1))
    [ "$(grep -c "Accepted publickey" "$work/sshd.log")" -ge 4 ] || fail "the other machine was not reached by ssh"
fi
finish
