#!/usr/bin/env bash
# The life of clusters: two at once, pods of Trawl's shape, processes killed, an 'up' that fails, and no trace left.
# Prints one line per law and ends with 'N passed, M failed'.
#   usage: dev/tests/cluster-lifecycle.sh   (as root; about 3 minutes)
# TRAWL_TEST_SHARED_MACHINE=1 looks only for traces of its own, for a machine on which others make links and mounts.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DEV=${HERE%/tests}
. "$HERE/checks.sh"
. "$HERE/traces.sh"
PROGRAM=dev/tests
. "$DEV/lib/common.sh"
. "$DEV/lib/process.sh"
. "$DEV/lib/packages.sh"
. "$DEV/lib/tools.sh"
. "$DEV/lib/images.sh"
need_root
install_packages dev
require_go
need_tools "${KUBERNETES_TOOLS[@]}" versitygw

export TRAWL_DEV_STATE=${TRAWL_DEV_STATE:-/var/tmp/trawl-test.$$}
STATE_ROOT=$TRAWL_DEV_STATE
A=life-a B=life-b C=life-c
MARKS="$A|$B|$C|$STATE_ROOT"
WORK=$(mktemp -d)
cleanup() {
  local n
  for n in $A $B; do "$DEV/cluster" down --name "$n" >/dev/null 2>&1 || true; done
  "$DEV/control-plane" down --name $C >/dev/null 2>&1 || true
  rm -rf "$WORK"
}
trap cleanup EXIT

# of NAME PROCESS: the pid of a process of that cluster.
of() { (S=$STATE_ROOT/$1 && pid_of "$2"); }
pids_of() { local p; for p in "$STATE_ROOT/$1"/pids/*; do of "$1" "$(basename "$p")" || true; done; }
kube() { "${TOOL[kubectl]}" --kubeconfig "$STATE_ROOT/$1/kubeconfig" --request-timeout=20s "${@:2}"; }
timed() { local s; s=$(now_ms); "$@"; local rc=$?; TOOK=$(seconds_since "$s"); return $rc; }

up_twice() {
  local a rc_a=0 rc_b=0 before
  "$DEV/cluster" up --name $A 2>"$WORK/up-a" & a=$!
  timed "$DEV/cluster" up --name $B 2>"$WORK/up-b" || rc_b=$?
  wait $a || rc_a=$?
  equal "two clusters come up at the same time ($TOOK)" "$rc_a $rc_b" "0 0"
  [ "$rc_a$rc_b" = 00 ] || cat "$WORK/up-a" "$WORK/up-b"
  before=$(pids_of $A)
  succeeds "up is idempotent" "$DEV/cluster" up --name $A
  equal "a second up keeps every process" "$(pids_of $A)" "$before"
  succeeds "status of a whole cluster is zero" "$DEV/cluster" status --name $A
  check "the node is Ready and labelled for sensors" 'True true' kube $A get node node-$A \
    -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.metadata.labels.trawl\.cloud/sensor}'
  refuses "a name is either a cluster or a control plane" "$DEV/control-plane" up --name $A
  refuses "a name that does not fit is refused" "$DEV/cluster" up --name 'No_Such'
  equal "clusters share no address" "$(cat "$STATE_ROOT"/{$A,$B}/kubeconfig | grep -c 'server:') $(cat "$STATE_ROOT"/{$A,$B}/kubeconfig | grep 'server:' | sort -u | wc -l)" "2 2"
}

mirror_link() {
  local before after NODE_NETNS MIRROR_IFACE MIRROR_PEER
  eval "$("$DEV/cluster" env --name $A | grep -E '^(NODE_NETNS|MIRROR_)')"
  received() { nsenter --net="/run/netns/$NODE_NETNS" ip -j -s link show dev "$MIRROR_IFACE" | jq '.[0].stats64.rx.packets'; }
  nsenter --net="/run/netns/$NODE_NETNS" ip link show "$MIRROR_IFACE" | grep -q 'state UP' && pass "the mirror NIC is up inside the node" || fail "the mirror NIC is up inside the node" ""
  before=$(received); sleep 2; after=$(received)
  equal "a mirror nobody feeds is silent" "$after" "$before"
  # One hand-made frame in from the far end.
  succeeds "the frame sender is at hand" "$WORK/probe" send-frame "$MIRROR_PEER"
  eventually 2 test "$(received)" -eq $((before + 1)) || true
  equal "one frame in at the far end is one frame at the mirror NIC" "$(received)" $((before + 1))
}

build_probe() {
  CGO_ENABLED=0 go build -C "$HERE/probe" -trimpath -buildvcs=false -ldflags='-s -w' -o "$WORK/probe" .
  pack_image "$WORK/probe.tar" localhost/trawl/probe:1 "$WORK/probe"
}

pods_run() {
  local image pod_ip service token
  image=$("$DEV/cluster" load --name $A "$WORK/probe.tar")
  check "load prints name and digest" '^localhost/trawl/probe@sha256:[0-9a-f]{64}$' echo "$image"
  # Every pod needs the CA bundle and its account, and both are made a moment after the namespace.
  sed "s#@IMAGE@#$image#" "$HERE/pods.yaml" >"$WORK/pods.yaml"
  succeeds "pods are accepted" kube $A apply -f "$WORK/pods.yaml"
  timed kube $A wait -n pods --for=condition=Ready pod/web --timeout=90s --request-timeout=0 >"$WORK/wait" 2>&1 || true
  check "a pod with a native sidecar, named by digest, is Ready ($TOOK)" 'condition met' cat "$WORK/wait"
  succeeds "the DaemonSet in the host network runs" kube $A rollout status -n pods ds/daemon --timeout=60s --request-timeout=0
  succeeds "a Job completes" kube $A wait -n pods --for=condition=Complete job/once --timeout=60s --request-timeout=0
  check "logs of a finished pod" 'CapEff:' kube $A logs -n pods job/once
  check "the sidecar's socket answers in the main container, through the hostPath" 'hello over a unix socket' \
    kube $A exec -n pods web -c web -- /usr/bin/probe unix-get /run/trawl/sidecar.sock
  check "the same socket answers on the host, in SOCKET_DIR" 'hello over a unix socket' "$WORK/probe" unix-get "$STATE_ROOT/$A/run/sidecar.sock"
  check "the other cluster does not see it" 'No such file' ls "$STATE_ROOT/$B/run/sidecar.sock"
  check "the projected token is known to the API server, by its ClusterIP, from the pod" 'status 403' \
    kube $A exec -n pods web -c web -- /usr/bin/probe get "https://${SERVICE_CIDR%.*}.1/api/v1/namespaces/pods/pods"
  check "its name is that of the ServiceAccount" 'system:serviceaccount:pods:bot' \
    kube $A exec -n pods web -c web -- /usr/bin/probe get "https://${SERVICE_CIDR%.*}.1/api/v1/namespaces/pods/pods"
  check "a container that drops ALL has no capability" 'CapEff:.0000000000000000' kube $A exec -n pods web -c web -- /usr/bin/probe show /proc/self/status
  check "it has the RuntimeDefault seccomp profile" 'Seccomp:.2' kube $A exec -n pods web -c web -- /usr/bin/probe show /proc/self/status
  # NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, BPF 39.
  check "the daemon has NET_ADMIN, NET_RAW, IPC_LOCK and BPF, no more" 'CapEff:.0000008000007000' kube $A exec -n pods ds/daemon -- /usr/bin/probe show /proc/self/status
  check "the daemon opens a packet socket beside the mirror NIC" 'packet socket opened.*mirror0' kube $A exec -n pods ds/daemon -- /usr/bin/probe packet-socket
  check "a pod without NET_RAW does not" 'operation not permitted' kube $A exec -n pods web -c web -- /usr/bin/probe packet-socket
  pod_ip=$(kube $A get pod -n pods web -o 'jsonpath={.status.podIP}'); service=$(kube $A get svc -n pods web -o 'jsonpath={.spec.clusterIP}')
  check "the host reaches a pod by its address" 'hello from web' curl -sS --noproxy '*' -m 5 "http://$pod_ip:8080/"
  eventually 10 curl -sf --noproxy '*' -m 2 "http://$service/" || true
  check "the host reaches a Service by its ClusterIP" 'hello from web' curl -sS --noproxy '*' -m 5 "http://$service/"
}

s3_beside() {
  local S3_ENDPOINT
  succeeds "an S3 server comes up beside the cluster" "$DEV/s3" up --name $A
  eval "$("$DEV/s3" env --name $A | grep S3_ENDPOINT)"
  check "a pod reaches it and trusts its certificate" 'status 200' kube $A exec -n pods web -c web -- /usr/bin/probe get "$S3_ENDPOINT/health"
  kill -KILL "$(of $A s3)"
  refuses "its status tells that it was killed" "$DEV/s3" status --name $A
  succeeds "up starts it again on what it stored" "$DEV/s3" up --name $A
}

killed_processes_come_back() {
  local victim uid restarts old
  uid=$(kube $A get pod -n pods web -o 'jsonpath={.metadata.uid}')
  for victim in etcd apiserver kcm scheduler kubelet containerd proxy; do
    old=$(of $A $victim); kill -KILL "$old"
    eventually 5 test ! -e "/proc/$old" || true
    refuses "status tells that $victim was killed" "$DEV/cluster" status --name $A
    succeeds "up starts $victim again" "$DEV/cluster" up --name $A
  done
  check "the pod outlived all of that, unrestarted" "^$uid 0\$" kube $A get pod -n pods web -o 'jsonpath={.metadata.uid} {.status.containerStatuses[0].restartCount}'
  check "and still answers exec" 'hello over' kube $A exec -n pods web -c web -- /usr/bin/probe unix-get /run/trawl/sidecar.sock
}

everything_killed() {
  local pid
  pids_of $B | while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done
  succeeds "up after every process was killed" "$DEV/cluster" up --name $B
  succeeds "and it is whole" "$DEV/cluster" status --name $B
  pids_of $B | while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done
  succeeds "down after every process was killed" "$DEV/cluster" down --name $B
}

failing_up() {
  local bin=$WORK/bin
  mkdir -p "$bin"
  printf '#!/bin/sh\necho "E0101 00:00:00.000000 1 run.go:1] broken on purpose" >&2\nexit 1\n' >"$bin/kubelet"; chmod +x "$bin/kubelet"
  check "a failing up prints the log line that says why" 'kubelet says: .*broken on purpose' env TRAWL_BIN_DIR="$bin" "$DEV/cluster" up --name $B
  succeeds "down after a failed up" "$DEV/cluster" down --name $B
  succeeds "a cluster comes up" "$DEV/cluster" up --name $B
  # The kubelet writes on while its files are being deleted.
  until rm -rf --one-file-system "${STATE_ROOT:?}/$B" 2>/dev/null; do sleep 0.1; done
  succeeds "down after its directory was deleted" "$DEV/cluster" down --name $B
  succeeds "down of what is not there" "$DEV/cluster" down --name $B
}

control_plane_alone() {
  succeeds "a control plane comes up" "$DEV/control-plane" up --name $C
  kube $C create namespace kept >/dev/null
  kill -KILL "$(of $C etcd)" "$(of $C apiserver)"
  succeeds "up after etcd and API server were killed" "$DEV/control-plane" up --name $C
  rm -f "/run/trawl-dev/$(cat "$STATE_ROOT/$C/index")"
  succeeds "up after the register of indices was lost" "$DEV/control-plane" up --name $C
  check "is a new control plane" 'NotFound' kube $C get namespace kept -o name
  kube $C create namespace kept >/dev/null
  kill -KILL "$(of $C etcd)"
  succeeds "up after etcd alone was killed" "$DEV/control-plane" up --name $C
  check "and its objects are kept" kept kube $C get namespace kept -o name
  # A pid file whose pid now belongs to somebody else must neither count as running nor be killed.
  sleep 300 & local stranger=$!
  kill -KILL "$(of $C scheduler)"; sed -i "s/^[0-9]*/$stranger/" "$STATE_ROOT/$C/pids/scheduler"
  succeeds "up is not deceived by a reused pid" "$DEV/control-plane" up --name $C
  succeeds "an S3 server comes up beside it" "$DEV/s3" up --name $C
  check "its certificate is of the same CA" OK curl -sS --noproxy '*' --cacert "$STATE_ROOT/$C/pki/ca.crt" "https://$(cat "$STATE_ROOT/$C/s3/listen")/health"
  succeeds "down" "$DEV/control-plane" down --name $C
  succeeds "the stranger was left alone" kill "$stranger"
}

machine_traces >"$WORK/before"
build_probe
up_twice
eval "$("$DEV/cluster" env --name $A | grep SERVICE_CIDR)"
for name in $A $B; do MARKS+="|$("$DEV/cluster" env --name "$name" | sed -nE 's/^MIRROR_PEER=trawl-m([0-9]+)$/trawl-[nm]\1$|10\\.7[789]\\.\1\\./p')"; done
namespaces_of_node "$(of $A node-init)" >"$WORK/namespaces"
mirror_link
pods_run
s3_beside
killed_processes_come_back
namespaces_of_node "$(of $A node-init)" | sort -u - "$WORK/namespaces" -o "$WORK/namespaces"
everything_killed
failing_up
control_plane_alone
succeeds "down of a cluster with pods" "$DEV/cluster" down --name $A
machine_traces >"$WORK/after"
empty "no mount, namespace, link, route, table, cgroup, sysctl or directory is left" "$(new_traces "$WORK/before" "$WORK/after" "$MARKS")"
empty "no process is left" "$(processes_of "$STATE_ROOT")"
[ "$(wc -l <"$WORK/namespaces")" -ge 8 ] && pass "the namespaces of node and pods were seen ($(wc -l <"$WORK/namespaces"))" || fail "the namespaces of node and pods were seen" "$(cat "$WORK/namespaces")"
empty "no namespace of the node or of a pod is left" "$(namespaces_alive "$WORK/namespaces")"
empty "no file is left" "$(ls -A "$STATE_ROOT" 2>/dev/null)"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
