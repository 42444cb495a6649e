# shellcheck shell=bash
# The node of a cluster: containerd, kubelet and kube-proxy in namespaces that node-init holds.

NODE_TOOLS=(kubelet kube-proxy)
NODE_PROCESSES=(proxy kubelet containerd node-init)

node_names() {
  NETNS=trawl-node-$NAME CGROUP=trawl-$NAME NODE_NAME=node-$NAME
  CONTAINERD_SOCKET=$S/containerd.sock
}

# adopt_child NAME: from the wrapper that forked to the process that matters.
adopt_child() {
  local parent child i
  for ((i = 0; i < 100; i++)); do
    parent=$(pid_of "$1") || { why "$1"; die "$1 could not start"; }
    child=$(pgrep -P "$parent" | head -1) || true
    [ -z "$child" ] || { record_pid "$1" "$child"; return 0; }
    sleep 0.05
  done
  die "$1 has not started within 5 s"
}

in_node() { nsenter --target "$(pid_of node-init)" --mount --pid --net "$@"; }
spawn_in_node() {
  local name=$1; shift
  alive "$name" && return 0
  spawn "$name" nsenter --target "$(pid_of node-init)" --mount --pid --net "$@"
  adopt_child "$name"
}

start_node_init() {
  alive node-init && return 0
  rm -f "$S/node/ready"; mkdir -p "$S/node"
  spawn node-init nsenter --net="/run/netns/$NETNS" unshare --mount --pid --fork --kill-child --mount-proc "$DEV_DIR/lib/node-init" "$S"
  adopt_child node-init
  wait_for 10 "namespaces of the node" node-init test -e "$S/node/ready"
}

containerd_config() {
  mkdir -p "$S/node/cni-conf"
  write_if_changed "$S/node/containerd.toml" <<TOML
version = 2
root = "$S/node/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "$PAUSE_IMAGE"
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$S/node/cni-conf"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
TOML
  write_if_changed "$S/node/cni-conf/10-pods.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": false,
  "ipam": {"type": "host-local", "subnet": "$POD_CIDR", "dataDir": "/var/lib/cni/ipam", "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

kubelet_config() {
  write_if_changed "$S/node/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
makeIPTablesUtilChains: false
failSwapOn: false
address: $NODE_IP
readOnlyPort: 0
healthzPort: 10248
volumePluginDir: /var/lib/kubelet/plugins-exec
resolvConf: ""
hairpinMode: none
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
syncFrequency: 10s
YAML
}

proxy_config() {
  # clusterCIDR makes the proxy masquerade what comes from the host, whose own API server is behind a ClusterIP.
  write_if_changed "$S/node/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $S/proxy.kubeconfig}
clusterCIDR: $POD_CIDR
hostnameOverride: $NODE_NAME
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 100ms}
YAML
}

node_certificates() {
  pki_client node "/O=system:nodes/CN=system:node:$NODE_NAME"
  pki_server kubelet "$NODE_NAME" "DNS:$NODE_NAME,IP:$NODE_IP"
  pki_client proxy /CN=system:kube-proxy
  kubeconfig "$S/node.kubeconfig" node "https://$API_IP:$API_PORT"
  kubeconfig "$S/proxy.kubeconfig" proxy "https://$API_IP:$API_PORT"
}

ctr_node() { ctr -a "$CONTAINERD_SOCKET" -n k8s.io "$@"; }

# The old condition outlives a killed kubelet: it must have been renewed since $1 (seconds since the epoch).
node_ready_since() {
  local beat
  beat=$(kubectl_admin get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}')
  [ "${beat%% *}" = True ] && [ "$(date -d "${beat#* }" +%s)" -ge "$1" ]
}

node_up() {
  local since=0
  node_certificates
  cgroups_up
  start_node_init
  containerd_config
  spawn_in_node containerd containerd -c "$S/node/containerd.toml"
  wait_for 30 "containerd answering" containerd ctr_node version
  load_pause_image
  kubelet_config
  if ! alive kubelet; then since=$(date +%s); fi
  spawn_in_node kubelet "${TOOL[kubelet]}" --config="$S/node/kubelet.yaml" --kubeconfig="$S/node.kubeconfig" \
    --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --root-dir=/var/lib/kubelet --node-labels=trawl.cloud/sensor=true --v=1
  proxy_config
  spawn_in_node proxy "${TOOL[kube-proxy]}" --config="$S/node/proxy.yaml"
  wait_for 60 "node $NODE_NAME Ready" kubelet node_ready_since "$since"
  wait_for 30 "Services routed (kube-proxy)" proxy in_node curl -sf http://127.0.0.1:10256/healthz
  wait_for 30 "API server reached by its ClusterIP $API_SERVICE_IP" proxy \
    curl -sf --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "https://$API_SERVICE_IP/readyz"
}

# node_down: also after a failed 'up' and after somebody killed some or all of it.
node_down() {
  stop_process proxy 2
  stop_process kubelet 5
  stop_process node-init 2
  stop_process containerd 2
  [ -e "$S/pids" ] || kill_strays
  local i
  for ((i = 0; i < 100; i++)); do
    ! cgroups_gone || break
    cgroups_kill
    sleep 0.1
  done
  cgroups_gone || die "cgroups of $NAME still hold processes: $(cgroup_dirs | tr '\n' ' ')"
  links_down
  rm -rf --one-file-system "$S/node" "$CONTAINERD_SOCKET" "$CONTAINERD_SOCKET.ttrpc"
}
